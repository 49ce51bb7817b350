"""`store upkeep`: what waits beside the daily work, done once or again and again, by as many processes as there are."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.terminal import counted

if TYPE_CHECKING:
    from muniment.handles.upkeep.records import UpkeepReport

__all__ = ["upkeep"]


def _upkeep(call: Call, ask: Callable[..., UpkeepReport]) -> Iterator[UpkeepReport]:
    every_s = call.typed.get("every")
    if every_s is None:
        return iter([ask()])
    return _watched(call, every_s, **ask.keywords)  # type: ignore[attr-defined]


def _watched(
    call: Call, every_s: float, *, kinds: Any = None, lease_seconds: Any = 10.0, tenant_id: str | None = None
) -> Iterator[UpkeepReport]:
    from muniment.handles.upkeep.records import kinds_given, lease_given
    from muniment.handles.upkeep.watching import UpkeepWatch

    watch = UpkeepWatch(
        call.memory._ctx,
        kinds_given(kinds or ("index", "scrub"), tenant_id),
        lease_s=lease_given(lease_seconds),
        every_s=every_s,
        tenant_id=tenant_id,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: leases are given back
    try:
        yield from watch.reports()
    except KeyboardInterrupt:
        return


def _show(call: Call) -> Iterator[str]:
    for done in call.answer:
        yield from _lines(done)


def _lines(done: UpkeepReport) -> Iterator[str]:
    parts = {
        "indexed": counted(done.index, "turn") if done.index else "",
        "read for facts": counted(done.extract, "turn") if done.extract else "",
        "settled by a scrub": counted(done.scrub, "receipt") if done.scrub else "",
    }
    said = [f"{count} {what}" for what, count in parts.items() if count]
    yield "; ".join(said) if said else "nothing was to be done here"
    if done.taken_over:
        yield f"{counted(done.taken_over, 'piece')} taken over from a process that had ended or was held up"
    if done.lost:
        yield f"{counted(done.lost, 'piece')} lost to another process, since this one was held up"
    if done.held:
        yield f"other processes are at {counted(done.held, 'piece')}"


upkeep = Command(
    "memory.upkeep",
    _show,
    around=_upkeep,
    left_out=("progress",),
    words={
        "kinds": Word(
            "What to do: index, scrub, extract; repeatable (default: all but extract).", "kind", "KIND",
            many=True,
        ),
        "lease_seconds": Word(
            "How long a process may stand still before others take its work over (default: 10).", "lease-seconds",
            "SECONDS", click.FLOAT,
        ),
        "tenant_id": Word("One tenant (default: all of them)."),
    },
    more={"every": Word("Go on, and look so often whether something waits.", "", "SECONDS", click.FloatRange(0.1))},
    document=lambda call: (done.to_wire() for done in call.answer),
    about="Run it in as many processes and on as many machines as you like: each piece of work is one process' at a "
    "time, by a lease in the store. One that is killed leaves its pieces to the others.",
)  # fmt: skip
