"""Commands about what lies outside the store: sweeping up, moving out and back, archives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.terminal import counted, progress_bar

if TYPE_CHECKING:
    from muniment.store.reports import Archived, MovedContents

__all__ = ["archive", "move", "sweep", "unarchive"]


def _show_swept(call: Call) -> Iterator[str]:
    done = call.answer
    yield f"{counted(done.seen, 'object')} of this store, {done.young} younger than the grace"
    yield f"{counted(done.deleted, 'object')} that no event names deleted"
    if done.left:
        yield f"{counted(done.left, 'object')} could not be deleted, or not in every version"


sweep = Command(
    "memory.sweep_objects",
    _show_swept,
    holds=lambda done: not done.left,
    words={"grace_hours": Word("Leave what is younger than so many hours.", metavar="HOURS")},
    about="A call that ends between its object and its transaction leaves an object that no event names. Run it on a "
    "timer, from one store: a copy of a store that is used beside it does not know what the other has written.",
)


T = TypeVar("T", "MovedContents", "Archived")


def _move(call: Call, ask: Callable[..., T]) -> T:
    with progress_bar("moving", None, quiet=call.as_json) as advance:
        return ask(progress=advance)


def _show_moved(call: Call) -> Iterator[str]:
    done = call.answer
    way = "back into the store" if call.typed.get("back") else "out of the store"
    yield f"{counted(done.moved, 'content')} of {done.size_bytes} bytes moved {way}"
    if done.left:
        yield f"{counted(done.left, 'object')} could not be deleted outside: `muniment store scrub` tries again"


move = Command(
    "memory.move_contents",
    _show_moved,
    around=_move,
    left_out=("progress",),
    holds=lambda done: not done.left,
    words={"back": Word("Bring everything back into the store.", flag=True)},
    about="For a store that was given an object store later (MUNIMENT_OBJECTS), or is to do without one. Others go on "
    "meanwhile; what was interrupted goes on where it stopped.",
)


def _show_archived(call: Call) -> Iterator[str]:
    done = call.answer
    held = f"{counted(done.events, 'event')} of {counted(done.sessions, 'session')}"
    yield f"{held} archived: {done.size_bytes} bytes as {done.stored_bytes}"


archive = Command(
    "memory.archive",
    _show_archived,
    around=_move,
    left_out=("progress",),
    words={
        "before": Word("Sessions last written before this time.", metavar="TIME"),
        "session": Word("One session (with --user where several users have one of that name).", metavar="ID"),
        "user_id": Word("Sessions of one user."),
    },
    about="Into the object store (MUNIMENT_OBJECTS), one object a session. What is archived is still found, cited and "
    "forgotten. Others go on meanwhile; what was interrupted goes on where it stopped.",
)


def _show_unarchived(call: Call) -> Iterator[str]:
    done = call.answer
    held = f"{counted(done.events, 'event')} of {counted(done.sessions, 'session')}"
    yield f"{held} brought back, {done.size_bytes} bytes"
    if done.left:
        yield f"{counted(done.left, 'object')} could not be deleted outside: `muniment store scrub` tries again"


unarchive = Command(
    "memory.unarchive",
    _show_unarchived,
    around=_move,
    left_out=("progress",),
    holds=lambda done: not done.left,
    words={
        "session": Word("One session (with --user where several users have one of that name).", metavar="ID"),
        "user_id": Word("Sessions of one user."),
    },
    about="All of the tenant, unless a user or a session is named.",
)
