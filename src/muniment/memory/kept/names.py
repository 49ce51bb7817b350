"""Names under which something is kept: paths of labels, spaces of their own, and whose the entries are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from muniment.core.canonical import digest_of, short_id
from muniment.core.limits import remembered
from muniment.core.ports.schema import VALUES_SESSION
from muniment.core.scope import Scope, is_corpus, owner_of, scope_given
from muniment.errors import InvalidInput

__all__ = [
    "AGENT",
    "THREAD",
    "after_path",
    "is_kept",
    "labels_of",
    "name_of",
    "path_of",
    "prefixes_of",
    "scope_of",
    "space_of",
]

AGENT = "kept"
THREAD = "thread"
"""How the names of sessions begin in which threads are kept."""
PATH_CHARS_MAX = 1000
"""What an index of every engine takes."""
_END, _ESCAPE = "\x1f", "\x1e"
_NEXT = "\x20"
"""The sign after `_END`."""


def path_of(labels: Sequence[str]) -> str:
    """Labels as one text, each with a sign behind it that none of them holds."""
    return _path_of(tuple(labels))


@remembered(1024)
def _path_of(labels: tuple[str, ...]) -> str:
    path = "".join(f"{_escaped(label)}{_END}" for label in labels)
    if len(path) > PATH_CHARS_MAX or "\x00" in path:
        raise InvalidInput(
            f"names of {len(path)} characters that stand below each other are over the limit of {PATH_CHARS_MAX}"
            if "\x00" not in path
            else "a name holds no zero byte",
            path="$.namespace",
        )
    return path


def _escaped(label: str) -> str:
    if _END not in label and _ESCAPE not in label:
        return label
    return label.replace(_ESCAPE, f"{_ESCAPE}0").replace(_END, f"{_ESCAPE}1")


def labels_of(path: str) -> tuple[str, ...]:
    labels = path.split(_END)[:-1]
    if _ESCAPE not in path:
        return tuple(labels)
    return tuple(label.replace(f"{_ESCAPE}1", _END).replace(f"{_ESCAPE}0", _ESCAPE) for label in labels)


@remembered(1024)
def prefixes_of(path: str) -> tuple[str, ...]:
    """Every path that this one stands below, and itself."""
    parts = path.split(_END)[:-1]
    return ("", *accumulate(f"{part}{_END}" for part in parts))


def after_path(path: str) -> str:
    """The first text behind everything that stands below a path."""
    return path[:-1] + _NEXT if path else "\U0010ffff"


def space_of(kind: str, name: str, *more: str | int | None) -> str:
    """The names of one store or saver, which no other shares."""
    return short_id(kind, [name, *more])


def name_of(path: str, key: str) -> str:
    """What a value is called in a row: no word of its key."""
    return digest_of([path, key])[:32]


def scope_of(tenant_id: str, space: str, holder: str | None, session_id: str) -> Scope:
    """Where the entries of a space stand: below its own name, or below the user's who holds them."""
    owner = owner_of(space, holder)
    run_id = short_id("run", [tenant_id, owner, session_id])
    named = {"tenant_id": tenant_id, "user_id": owner, "agent_id": AGENT, "session_id": session_id, "run_id": run_id}
    return scope_given(named)


def is_kept(owner: str, session_id: str) -> bool:
    """Whether a session is one in which something is kept under names."""
    return is_corpus(owner) and (session_id == VALUES_SESSION or session_id.startswith(f"{THREAD}_"))
