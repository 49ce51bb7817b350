"""`demo` and `completion`: the main job on a sample, traced, checked and erased; and shell completion."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing, redirect_stdout
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from muniment.errors import Forgotten
from muniment.surfaces.cli._command import Call, Command
from muniment.surfaces.cli.terminal import echo, one_line, style

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.packets.builds import Build

__all__ = ["CHATS", "TASKS", "Calendar", "completion", "demo", "record_chats", "show_main_job"]

CHATS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "2026-03-08",
        (
            ("user", "Hi! I live in Lisbon. I carry an EpiPen: sesame nearly killed me twice."),
            ("assistant", "Thank you for telling me. I will keep sesame away from everything I suggest."),
            ("user", "Please always give me prices in euros, and never call me before ten."),
        ),
    ),
    (
        "2026-04-19",
        (
            ("user", "My sister says I should be paid to eat. If I were a dog I would be a very fat beagle, haha."),
            ("user", 'Write a review for my friend Tom, in his voice: "I am vegan and I hated the cheese."'),
            ("assistant", '"I am vegan and I hated the cheese. One star."'),
        ),
    ),
    (
        "2026-06-02",
        (
            ("user", "I moved: Lisbon is over, I live in Berlin now."),
            ("assistant", "Welcome to Berlin!"),
            ("user", "Thanks!"),
        ),
    ),
)
"""An allergy, standing requests, a joke, a draft in somebody else's voice, and a change of mind."""
TASKS = ("Book a table for two at a Lebanese place on Friday.", "Which city is Ana's home?")
TOKENS = 256


class Calendar:
    """A clock set to the days of the story, advancing one second on each read."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment

    def turn_to(self, day: str) -> None:
        self.moment = datetime.fromisoformat(f"{day}T18:00:00+00:00")


def show_main_job() -> None:
    """Play both acts in a store that is deleted at the end."""
    from muniment.handles.memory import open as open_memory

    calendar = Calendar()
    with tempfile.TemporaryDirectory(prefix="muniment-demo-") as folder:
        path = Path(folder) / "agent.db"
        with open_memory(path, clock=calendar) as mem:
            build = _act_one(mem, calendar)
            _act_two(mem, path, build)
    echo()


def record_chats(mem: Memory, calendar: Calendar) -> None:
    """Write the chats into the ledger, one session a day."""
    for day, turns in CHATS:
        calendar.turn_to(day)
        run = mem.run(user_id="ana", session_id=day)
        run.observe_many([{"role": role, "content": text} for role, text in turns])


def _act_one(mem: Memory, calendar: Calendar) -> Build:
    echo(style("1 · What your agent is handed", bold=True))
    record_chats(mem, calendar)
    for day, turns in CHATS:
        for role, text in turns:
            _say(f"{day}  {role:<9}  {one_line(text, 88)}")
    calendar.turn_to("2026-06-10")
    run = mem.run(user_id="ana", session_id="2026-06-10")
    builds = [run.compose("responder", query=task, max_tokens=TOKENS) for task in TASKS]
    for task, build in zip(TASKS, builds, strict=True):
        echo()
        _say(f"Asked: {task}   → {build.tokens} of {TOKENS} tokens, no model involved")
        for line in build.text.splitlines():
            _say(f"  │ {line}")
    return builds[0]


def _act_two(mem: Memory, path: Path, build: Build) -> None:
    echo()
    echo(style("2 · Why, and how to check it", bold=True))
    mark = next(mark for mark, id_ in build.marks.items() if "EpiPen" in (mem.ledger.get(id_).content or ""))
    answer = f"I booked a place without sesame [{mark}]. They have a garden [99]."
    for sentence in build.resolve(answer).sentences:
        for event_id in sentence.evidence_ids:
            entry = mem.ledger.get(event_id)
            _say(f"trace      {sentence.text}  ←  {entry.ts[:10]}: {one_line(entry.content or '', 60)!r}")
        for unknown in sentence.unknown_marks:
            _say(f"           {sentence.text}  ←  mark {unknown} names no evidence")
    mem.run(user_id="ana", session_id="later").observe("user", "I am back in Lisbon for good.")
    same = mem.replay(build.id).packet_bytes == build.packet_bytes
    _say(f"replay     the same {len(build.packet_bytes):,} bytes after later writes: {same}")
    _say(f"proof      {_tamper(mem, path)}")
    receipt = mem.forget(user_id="ana")
    counts = ", ".join(f"{count} {name}" for name, count in receipt.counts.items() if count)
    _say(f"forget     receipt {receipt.receipt_id}: {counts}")
    data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    left = sum(word.encode() in data for word in ("EpiPen", "sesame", "Lisbon", "Berlin"))
    _say(f"           her words left in the bytes of the store: {left}")
    try:
        mem.replay(build.id)
    except Forgotten as error:
        _say(f"           the packet is refused, and names the receipt: {error.details['receipt_id']}")


def _tamper(mem: Memory, path: Path) -> str:
    """Edit a row directly in the database, verify, and restore it."""
    swap = "UPDATE entries SET body = replace(body, ?, ?)"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(swap, ("Welcome to Berlin", "Welcome to Munich"))
    broken = mem.verify().broken[0]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(swap, ("Welcome to Munich", "Welcome to Berlin"))
    return f"somebody edits the file: session {broken.session_id}, entry {broken.seq}: {broken.reason}"


def _say(text: str) -> None:
    echo(f"  {text}")


def _demo(call: Call) -> list[str]:
    if not call.as_json:
        show_main_job()
        return []
    with redirect_stdout(StringIO()) as printed:
        show_main_job()
    return click.unstyle(printed.getvalue()).splitlines()


demo = Command(
    function=_demo,
    on="nothing",
    view=lambda _: (),
    noun="lines",
    about="Three chats of a person, the packets composed from them, and how these are traced, replayed, checked and "
    "forgotten.",
)


def _completion(_: Call, shell: Literal["bash", "zsh", "fish"]) -> str:
    from click.shell_completion import ShellComplete, get_completion_class

    from muniment.surfaces.cli.main import cli

    known = get_completion_class(shell)
    assert known is not None
    return ShellComplete.source(known(cli, {}, "muniment", "_MUNIMENT_COMPLETE"))


completion = Command(
    view=lambda call: [call.answer],
    function=_completion,
    on="nothing",
    document=lambda call: {"shell": call.typed["shell"], "script": call.answer},
    about='For example: `eval "$(muniment completion bash)"` in ~/.bashrc, the same with zsh in ~/.zshrc, or `muniment '
    "completion fish > ~/.config/fish/completions/muniment.fish`.",
)
