"""The working set of a run (001 §4.1): a stack of small, frequently rewritten records that lasts as long as the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from muniment.contracts.learning import WorkingSet, WorkingSetRecord
from muniment.core.canonical import canonical_bytes
from muniment.core.ports.engine import Condition
from muniment.core.record import RULECRAFT_VERSION
from muniment.errors import InvalidInput, NotFound
from muniment.learning.keys import expires_at, parse_ttl
from muniment.learning.projection import trace_id_of
from muniment.memory.patches import Decided, cleaned, draft_patch, texts_of, write_patches
from muniment.store.items import latest, newest_items
from muniment.store.ledger import WORKING_SET_CHANGED

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.memory.patches import Writer

__all__ = ["PARTS", "current_set", "live_sets", "note", "pop_set", "push_set", "set_bytes", "shrink", "stack_of"]

PARTS = ("facts", "assumptions", "constraints", "decisions", "open_questions")


def live_sets(reader: Reader, scope: Scope, now: str) -> list[WorkingSetRecord]:
    """The active, unexpired records of a run's stack, bottom first; empty once the run has ended."""
    run = latest(reader, scope.run_id)
    if run is not None and run.status == "finished":
        return []
    where: tuple[Condition, ...] = (("kind", "=", "working_set"), ("run_id", "=", scope.run_id))
    live = newest_items(reader, where, order=("created_at", "id", "version"))
    own = [item for item in live if item.user_id == scope.user_id]
    records = [WorkingSetRecord.from_wire(item.plain()["record"]) for item in own]
    return [record for record in records if record.status == "active" and not _has_expired(record, now)]


def _has_expired(record: WorkingSetRecord, now: str) -> bool:
    if record.ttl is None or record.updated_at is None:
        return False
    end = expires_at(parse_ttl(record.ttl), record.updated_at)
    return end is not None and now > end


def stack_of(records: list[WorkingSetRecord]) -> WorkingSet:
    ids = [record.ws_id for record in records]
    plain = {"schema_version": RULECRAFT_VERSION, "current_ws_id": ids[-1] if ids else None, "stack": ids}
    return WorkingSet.from_wire(plain)


def current_set(reader: Reader, scope: Scope, now: str) -> WorkingSetRecord | None:
    records = live_sets(reader, scope, now)
    return records[-1] if records else None


def set_bytes(record: WorkingSetRecord) -> int:
    """Its stored size: above the policy's limit it should be folded."""
    return len(canonical_bytes(record.to_wire()))


def push_set(writer: Writer, given: Mapping[str, Any], ttl: str | None) -> WorkingSetRecord:
    """Open a new record on top of the stack."""
    parts = _parts(writer, given)
    lasting = writer.ctx.policy.learn.working_set_ttl if ttl is None else ttl
    if not isinstance(lasting, str):
        raise InvalidInput("a ttl is text", path="$.ttl", hint='"session", "hours:6" or "days:14"')
    parse_ttl(lasting)
    plain = {
        "schema_version": RULECRAFT_VERSION,
        "ws_id": writer.ctx.ids.new("ws"),
        "trace_id": trace_id_of(writer.scope.run_id),
        "status": "active",
        "ttl": lasting,
        "updated_at": writer.ctx.now(),
        **parts,
    }
    record = WorkingSetRecord.from_wire(plain)
    write_patches(writer, lambda _tx: Decided([_draft(record)]), lambda _reader: None)
    return record


def note(writer: Writer, given: Mapping[str, Any]) -> WorkingSetRecord:
    """Add to the record on top, or open one. Duplicates are not added."""
    parts = _parts(writer, given)
    now = writer.ctx.now()
    written: list[WorkingSetRecord] = []
    fresh = writer.ctx.ids.new("ws")

    def decide(tx: Transaction) -> Decided:
        top = current_set(tx, writer.scope, now)
        held = {} if top is None else top.to_wire()
        merged = {name: list(dict.fromkeys([*(held.get(name) or ()), *added])) for name, added in parts.items()}
        start = {
            "schema_version": RULECRAFT_VERSION,
            "ws_id": fresh,
            "trace_id": trace_id_of(writer.scope.run_id),
            "status": "active",
            "ttl": writer.ctx.policy.learn.working_set_ttl,
        }
        record = WorkingSetRecord.from_wire((held or start) | merged | {"updated_at": now})
        written.append(record)
        return Decided([_draft(record)])

    write_patches(writer, decide, lambda _reader: None)
    return written[-1]


def shrink(writer: Writer) -> WorkingSetRecord:
    """Replace the record on top by a smaller one: constraints, open items, and the newest of the rest."""
    limit = writer.ctx.policy.learn.fold.working_set_bytes_max // 2
    fresh = writer.ctx.ids.new("ws")

    def smaller(top: WorkingSetRecord, now: str) -> WorkingSetRecord:
        return _within(top.model_copy(update={"ws_id": fresh, "updated_at": now}), limit)

    return _retire_top(writer, smaller)


def _within(record: WorkingSetRecord, limit: int) -> WorkingSetRecord:
    """Drop the oldest facts, assumptions, decisions, questions and constraints, in this order, to fit the limit."""
    for name in ("facts", "assumptions", "decisions", "open_questions", "constraints"):
        held = list(getattr(record, name) or ())
        while held and set_bytes(record) > limit:
            held = held[(len(held) + 1) // 2 :]
            record = record.model_copy(update={name: tuple(held)})
    return record


def pop_set(writer: Writer) -> WorkingSetRecord:
    """Retire and return the record on top of the stack."""
    return _retire_top(writer)


def _retire_top(
    writer: Writer, go_on: Callable[[WorkingSetRecord, str], WorkingSetRecord] | None = None
) -> WorkingSetRecord:
    """Retire the record on top, and open the successor that `go_on` makes of it, if any; returns the last record
    written.
    """
    now = writer.ctx.now()
    written: list[WorkingSetRecord] = []

    def decide(tx: Transaction) -> Decided:
        top = current_set(tx, writer.scope, now)
        if top is None:
            raise NotFound("the working set of this run is empty", path="$.working_set")
        written[:] = [top.model_copy(update={"status": "retired", "updated_at": now})]
        if go_on is not None:
            written.append(go_on(top, now))
        return Decided([_draft(record) for record in written])

    write_patches(writer, decide, lambda _reader: None)
    return written[-1]


def _draft(record: WorkingSetRecord) -> Any:
    return draft_patch(WORKING_SET_CHANGED, "assistant", {"id": record.ws_id, "record": record.to_wire()})


def _parts(writer: Writer, given: Mapping[str, Any]) -> dict[str, list[str]]:
    unknown = sorted(set(given) - set(PARTS))
    if unknown:
        raise InvalidInput(f"a working set has no {unknown[0]!r:.40}", path=f"$.{unknown[0]}", hint=", ".join(PARTS))
    read: dict[str, list[str]] = {}
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InvalidInput(f"{name} is a list of texts", path=f"$.{name}")
        read[name] = [cleaned(writer.ctx, each) for each in texts_of(value, f"$.{name}")]
    return read
