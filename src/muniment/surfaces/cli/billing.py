"""`bill` and `packet in-view`: the input cost of a recorded conversation, and the lines in the model's window."""

from __future__ import annotations

from collections.abc import Iterator

from muniment.surfaces.cli._command import Call, Command, OptionSpec
from muniment.surfaces.cli.terminal import counted, one_line, strong, when

__all__ = ["bill", "in_view"]


def _show_bill(call: Call) -> Iterator[str]:
    made = call.answer
    yield (
        f"{counted(made.requests, 'request')} in the session {made.session_id}: {made.tokens:,} tokens of input, "
        f"{made.tokens_without_memory:,} without memory"
    )
    if made.forgotten_packets:
        yield f"{counted(made.forgotten_packets, 'packet')} forgotten since, and not counted"
    for each in made.rules:
        yield ""
        yield f"{strong(each.rule)}  {each.ratio:.2f} × the price without memory  ({each.models}; {each.as_of})"
        for name, side in (("with memory", each.with_memory), ("without", each.without_memory)):
            yield (
                f"  {name + ':':<13} {side.fresh:>9,} fresh {side.cached:>9,} cached {side.written:>9,} written"
                f"   = {side.price:,.0f} fresh tokens"
            )


bill = Command(
    "memory.bill",
    _show_bill,
    arguments={"run_id": "RUN"},
    options={"run_id": OptionSpec("The run whose session is billed.")},
    about="The requests are made again from the ledger and the builds that were sent. Tokens are counted text by text; "
    "a cache is taken to hold from one request to the next.",
)


def _show_view(call: Call) -> Iterator[str]:
    shown_by = ""
    for each in call.answer:
        if each.build_id != shown_by:
            shown_by = each.build_id
            yield f"{strong(each.build_id)}  since {when(each.since)}"
        yield f"  {one_line(each.line, 200)}  · {each.evidence_id}"
    if not call.answer:
        yield "nothing was before the model with this build"


in_view = Command(
    "memory.in_view",
    _show_view,
    noun="lines",
    arguments={"build_id": "BUILD"},
    about="In a conversation whose packets stay where they were sent: the lines of the earlier ones, with the packet "
    "that shows each, and then its own.",
)
