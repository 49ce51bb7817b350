"""Sessions that nobody uses, moved into archives outside, and back.

One object a session, put before a row says so; each session in a transaction of its own, so that what was interrupted
goes on where it stopped while others read and write. Heads, hashes, salts and the index stay in the store: what was
archived is found, cited, verified and forgotten as before. Writes no event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.cancellation import checkpoint
from muniment.core.instants import format_instant, parse_instant
from muniment.core.owners import is_reserved
from muniment.core.ports.engine import Condition, Lock, Patch, Reader, Transaction
from muniment.core.ports.objects import ObjectRow
from muniment.core.ports.rows import by_ids, get, insert, select, stream
from muniment.core.ports.schema import BLOBS, ENTRIES, OBJECTS, SESSIONS, EntryRow
from muniment.errors import InvalidInput, StoreDamaged, UnknownScope
from muniment.store.ledger.rows import check_content
from muniment.store.objects.archives import MARK, Marker, archive_row, marker_of, read_archive
from muniment.store.objects.clearing import MOVED, announce, clear_outside, give_back, retire, take_up
from muniment.store.objects.moving import move_blob
from muniment.store.objects.sweeping import outside_of
from muniment.store.objects.view import near
from muniment.store.reports import Archived

if TYPE_CHECKING:
    from muniment.store.context import Context

__all__ = ["archive", "unarchive"]

Progress = Callable[[int], None]
_KINDS = ("message", "tool_result")
"""What is archived: what was said. What a run notes of itself is small, and is read to make other things."""
_BODIES_BYTES_MAX = 64 * 1024 * 1024
"""A session with more than this gets several objects."""


class _Place(NamedTuple):
    user_id: str
    session_id: str
    head_recorded_at: str


class _Written(NamedTuple):
    id: str
    body: str | None


class _Name(NamedTuple):
    hash: bytes


def archive(
    ctx: Context,
    tenant_id: str,
    *,
    before: Any = None,
    user_id: str | None = None,
    session_id: str | None = None,
    progress: Progress | None = None,
) -> Archived:
    """Move what was said in sessions that were last written before a time, or in one session, into archives."""
    if (before is None) == (session_id is None):
        raise InvalidInput("say which sessions: before a time, or one by its name", path="$.before")
    moment = None if before is None else format_instant(parse_instant(before))
    outside_of(ctx)
    counts = dict.fromkeys(("sessions", "events", "size_bytes", "stored_bytes"), 0)
    for place in _places(ctx, tenant_id, user_id, session_id, moment):
        checkpoint()
        events = _archive_session(ctx, tenant_id, place, counts)
        counts["sessions"] += events > 0
        if progress is not None and events:
            progress(1)
    ctx.clear_caches()
    return Archived(tenant_id=tenant_id, **counts)


def _places(
    ctx: Context, tenant_id: str, user_id: str | None, session_id: str | None, moment: str | None
) -> list[_Place]:
    given = {"user_id": user_id, "session_id": session_id}
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{name} should be a string", path=f"$.{name}")
    where: tuple[Condition, ...] = tuple((name, "=", value) for name, value in given.items() if value is not None)

    def read(reader: Reader) -> list[_Place]:
        rows = stream(reader, SESSIONS, where, into=_Place, order=("user_id", "session_id"))
        return [row for row in rows if not is_reserved(row.user_id)]

    found = ctx.engine.read(tenant_id, read)
    if not found and where:
        raise UnknownScope("nothing is stored for this scope", hint="check the tenant, user and session ids")
    if session_id is not None and len(found) > 1:
        raise InvalidInput(
            f"several users have a session {session_id!r:.80}", path="$.user_id", hint="give user_id as well"
        )
    return [place for place in found if moment is None or place.head_recorded_at < moment]


def _archive_session(ctx: Context, tenant_id: str, place: _Place, counts: dict[str, int]) -> int:
    """Answers how many events were moved; none where all of them were before."""
    rows = ctx.engine.read(tenant_id, lambda reader: _rows_of(near(reader), place))
    kept = [row for row in rows if row.body is not None and not row.body.startswith(MARK)]
    for row in kept:
        check_content(row)  # what is damaged is not put where nobody sees it
    moved = 0
    for portion in _portions(kept):
        ids = [row.id for row in portion]
        names = ctx.engine.read(tenant_id, lambda reader, ids=ids: _blobs_in_rows(near(reader), ids))  # type: ignore[misc]
        for name in names:
            counts["size_bytes"] += move_blob(ctx, tenant_id, name)
        moved += _put_away(ctx, tenant_id, place, portion, counts)
    return moved


def _rows_of(reader: Reader, place: _Place) -> list[EntryRow]:
    where: tuple[Condition, ...] = (
        ("user_id", "=", place.user_id),
        ("session_id", "=", place.session_id),
        ("kind", "in", _KINDS),
    )
    return select(reader, ENTRIES, where, order=("user_id", "session_id", "seq"))


def _blobs_in_rows(reader: Reader, ids: Sequence[str]) -> list[bytes]:
    rows = by_ids(reader, BLOBS, ids, column="entry_id", where=(("data", ">=", b""),), into=_Name)
    return [row.hash for row in rows]


def _portions(rows: Sequence[EntryRow]) -> Iterator[list[EntryRow]]:
    portion: list[EntryRow] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += len(row.body or "")
        if size >= _BODIES_BYTES_MAX:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _put_away(ctx: Context, tenant_id: str, place: _Place, rows: Sequence[EntryRow], counts: dict[str, int]) -> int:
    """One object; where something of it was forgotten before its rows were changed, it goes again."""
    outside = outside_of(ctx)
    name, salt = ctx.ids.salts(2)
    held = {str(number): (row.id, row.body or "") for number, row in enumerate(rows)}
    row, data = archive_row(outside, tenant_id, name, salt, held)
    announce(ctx, tenant_id, [row])
    outside.store.put(row.held_at, data)
    ids = [id_ for id_, _ in held.values()]

    def change(tx: Transaction) -> bool:
        tx.do(Lock(("session", place.user_id, place.session_id)))
        now = {each.id: each.body for each in by_ids(near(tx), ENTRIES, ids, into=_Written)}
        if any(now.get(id_) != body for id_, body in held.values()) or not take_up(tx, row.held_at):
            return False
        insert(tx, OBJECTS, [row])
        for number, (id_, _) in held.items():
            tx.do(Patch("entries", (("id", "=", id_),), {"body": str(Marker(name, int(number)))}))
        return True

    if not ctx.engine.write(tenant_id, change):
        give_back(ctx, tenant_id, [row])
        return 0
    counts["events"] += len(held)
    counts["size_bytes"] += sum(len(body.encode()) for _, body in held.values())
    counts["stored_bytes"] += len(data)
    return len(held)


# -- the way back -------------------------------------------------------------------------------------


def unarchive(
    ctx: Context,
    tenant_id: str,
    *,
    user_id: str | None = None,
    session_id: str | None = None,
    progress: Progress | None = None,
) -> Archived:
    """Bring back into its rows what lies in the archives of a session, of a user or of the tenant."""
    outside_of(ctx)
    counts = dict.fromkeys(("sessions", "events", "size_bytes"), 0)
    for place in _places(ctx, tenant_id, user_id, session_id, None):
        checkpoint()
        rows = ctx.engine.read(tenant_id, lambda reader, place=place: _rows_of(near(reader), place))  # type: ignore[misc]
        markers = (marker_of(row.body) for row in rows if row.body is not None and row.body.startswith(MARK))
        names = sorted({marker.name for marker in markers if marker is not None})
        for name in names:
            _bring_back(ctx, tenant_id, name, counts)
        counts["sessions"] += bool(names)
        if progress is not None and names:
            progress(1)
    ctx.clear_caches()
    left = clear_outside(ctx, tenant_id, (MOVED,)).get(MOVED)
    return Archived(tenant_id=tenant_id, left=0 if left is None else left.left, **counts)


def _bring_back(ctx: Context, tenant_id: str, name: bytes, counts: dict[str, int]) -> None:
    row = ctx.engine.read(tenant_id, lambda reader: get(reader, OBJECTS, (name,)))
    held = None if row is None else read_archive(outside_of(ctx), tenant_id, row)
    if row is None or held is None:
        raise StoreDamaged(
            "an archive is missing or was altered",
            hint="bring the object back from a copy of the bucket or folder, or forget the session",
            details={"object": None if row is None else row.held_at},
        )

    def change(tx: Transaction) -> list[str]:
        """The bodies that were brought back."""
        brought: list[str] = []
        whole = {each.id: each for each in by_ids(near(tx), ENTRIES, [id_ for id_, _ in held.values()])}
        for number, (id_, body) in held.items():
            entry = whole.get(id_)
            if entry is not None and entry.body == str(Marker(name, int(number))):
                check_content(entry._replace(body=body))
                tx.do(Patch("entries", (("id", "=", id_),), {"body": body}))
                brought.append(body)
        current: ObjectRow | None = get(tx, OBJECTS, (name,))
        if current is not None:
            retire(ctx, tx, current, "\n".join([*current.subject.split(), MOVED]))
        return brought

    bodies = ctx.engine.write(tenant_id, change)
    counts["events"] += len(bodies)
    counts["size_bytes"] += sum(len(body.encode()) for body in bodies)
