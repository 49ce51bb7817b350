"""What was said and composed, in one order: a user's entries with the packets between them, session by session.

A session, or one run of it, is the same list with fewer in it. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from muniment.core.listing import ListQuery, Placed
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import first, texts
from muniment.core.ports.schema import ITEMS, PROOFS, SESSIONS
from muniment.errors import InvalidInput, NotFound
from muniment.packets.session_turns import RunTurn, SessionTurns, TurnBuild, TurnScope
from muniment.runs.snapshots import run_item
from muniment.store.items import Item
from muniment.store.lists.entries import count_entries
from muniment.store.lists.seeking import count_rows, seek

if TYPE_CHECKING:
    from muniment.store.context import Context

__all__ = ["TURN_KINDS", "RunTurn", "TurnBuild", "TurnKind", "count_turns", "page_turns"]

TurnKind = Literal["message", "tool_result", "state_patch", "system", "step", "build"]
TURN_KINDS: tuple[str, ...] = get_args(TurnKind)
_PASSED = (0, "", "")
"""The place of a session in which nothing was found: no entry has that number."""
_BEFORE_ALL, _AFTER_ALL = -1, 2**62
"""Numbers that no proof has."""

Where = tuple[Condition, ...]
Place = tuple[Any, ...]


class _Held(NamedTuple):
    user_id: str | None
    session_id: str | None


def page_turns(
    ctx: Context, tenant_id: str, user_id: str | None, session_id: str | None, run_id: str | None, asked: ListQuery
) -> Iterator[Placed[RunTurn]]:
    """Each turn with its place: its session, then the number of an entry; of a packet the number of the last entry that
    was written before it, then when it was composed, and its id. `since` and `until` go by when it was written."""
    scope = _scope_of(ctx, tenant_id, user_id, session_id, run_id)

    def read(reader: Reader, after: Place | None, descending: bool, size: int) -> list[Placed[RunTurn]]:
        found: list[Placed[RunTurn]] = []
        begun = None if after is None else after[0]
        is_passed = after is not None and after[1:] == _PASSED
        for name in _sessions(reader, scope, begun, descending, is_passed=is_passed):
            turns = SessionTurns(ctx, reader, scope.of(name), asked)
            place = after[1:] if after is not None and name == begun else None
            wanted = size - len(found)
            own = turns.before(place, wanted) if descending else turns.after(place, wanted)
            found += [Placed((name, *each.place), each.value) for each in own]
            if not own:  # it was looked at, so it counts
                found.append(Placed((name, *_PASSED), None))
            if len(found) >= size:
                break
        return found

    def find(reader: Reader, name: str) -> Placed[RunTurn] | None:
        return _find(ctx, reader, scope, name, asked)

    return seek(ctx, tenant_id, read, asked, find)


def count_turns(
    ctx: Context, tenant_id: str, user_id: str | None, session_id: str | None, run_id: str | None, asked: ListQuery
) -> int | None:
    """How many there are, forgotten entries with them; None where not all are shown, or there are too many."""
    if (asked.q, asked.since, asked.until) != (None,) * 3 or asked.kind not in (None, "build"):
        return None
    scope = _scope_of(ctx, tenant_id, user_id, session_id, run_id)
    builds = count_rows(ctx, tenant_id, "items", scope.builds)
    if asked.kind == "build":
        return builds
    entries = count_entries(ctx, tenant_id, scope.user_id, scope.session_id, scope.run_id, asked)
    return None if entries is None or builds is None else entries + builds


def _scope_of(
    ctx: Context, tenant_id: str, user_id: str | None, session_id: str | None, run_id: str | None
) -> TurnScope:
    """Whose turns are meant. A run is known by what it began with or, where it only composed, by its packets."""
    for name, given in (("user_id", user_id), ("session_id", session_id), ("run_id", run_id)):
        if given is not None and (not isinstance(given, str) or not given):
            raise InvalidInput(f"{name} should be a non-empty string", path=f"$.{name}")
    if run_id is None:
        if user_id is None:
            raise InvalidInput("say whose turns", path="$.user_id", hint="give user_id, or the run_id of a run")
        return TurnScope(tenant_id, user_id, session_id, None)
    held = ctx.engine.read(tenant_id, lambda reader: _run_scope(reader, tenant_id, run_id, user_id))
    if session_id not in (None, held.session_id):
        raise NotFound(f"no run {run_id!r:.80} in this session", path="$.run_id", hint="leave session_id out")
    return held


def _run_scope(reader: Reader, tenant_id: str, run_id: str, user_id: str | None) -> TurnScope:
    run: Item | _Held | None
    try:
        run = run_item(reader, run_id, user_id)
    except NotFound:  # or another user's, which is looked for in the same way
        where: Where = (("kind", "=", "build"), ("run_id", "=", run_id), ("receipt_id", "=", None))
        where += () if user_id is None else (("user_id", "=", user_id),)
        run = first(reader, ITEMS, where, into=_Held)
        if run is None:
            raise
    return TurnScope(tenant_id, run.user_id or "", run.session_id or "", run_id)


def _sessions(
    reader: Reader, scope: TurnScope, begun: str | None, descending: bool, *, is_passed: bool
) -> Iterator[str]:
    """The sessions of a user by their ids, from one on. One in which something was only composed has no entry, and is
    known by the proofs of its packets."""
    if scope.session_id is not None:
        if not is_passed:
            yield scope.session_id
        return
    sign: Any = ("<" if descending else ">") + ("" if is_passed else "=")
    own: Where = (("user_id", "=", scope.user_id),)
    while True:
        where = own if begun is None else (*own, ("session_id", sign, begun))
        # Proofs hold numbers for names, so only a place in their order can be asked for.
        number = _BEFORE_ALL if sign in (">=", "<") else _AFTER_ALL
        place = None if begun is None else (scope.user_id, begun, number)
        found = {
            *texts(reader, SESSIONS, "session_id", where, descending=descending, limit=1),
            *texts(reader, PROOFS, "session_id", own, after=place, descending=descending, limit=1),
        }
        if not found:
            return
        begun, sign = max(found) if descending else min(found), "<" if descending else ">"
        yield begun


def _find(ctx: Context, reader: Reader, scope: TurnScope, name: str, asked: ListQuery) -> Placed[RunTurn] | None:
    """The entry or the build of an id; or, where a session is meant, the entry with a number or the one before it."""
    placed = SessionTurns.find(ctx, reader, scope, name, asked)
    if placed is None and scope.session_id is not None and name.isascii() and name.isdigit() and len(name) < 16:
        own = SessionTurns(ctx, reader, scope.of(scope.session_id), asked)
        placed = own.at(int(name))
    return placed
