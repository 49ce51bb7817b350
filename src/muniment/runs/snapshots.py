"""A run's snapshots and its log: written as the contract's document, read back, resumed from, listed.

A snapshot contains the whole log, so that `log_of` is an exact inverse. Data not listed in the contract is kept in
extra keys: `budgets`, `previous_snapshot_id`, `deltas`, `cursor` (the position of the fold, and the limits it used),
and in `state` the keys `next_actions` and `open_question_refs`. The store keeps the document whole, as one item that
the engine compresses; its digest is sealed in the ledger.

A log is folded from the latest valid snapshot and the entries after it, or from the whole ledger (CS-12).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar

from muniment.contracts.snapshot import CompactionSnapshot, SnapshotValidation
from muniment.core.canonical import canonical_bytes, canonical_text, parse_json, read_canonical, salted_digest, short_id
from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.policy import CompactionPolicy
from muniment.core.ports.engine import Condition, Count
from muniment.core.ports.rows import by_ids, get, select, stream, texts
from muniment.core.ports.schema import ENTRIES, LINKS, PARTS, EntryRow
from muniment.core.record import JsonObject
from muniment.core.requests import Expect, FromOne, Request, checked
from muniment.errors import (
    IntegrityFailure,
    InvalidInput,
    InvalidRecord,
    Issue,
    MunimentError,
    NotFound,
    RunFinished,
    StoreDamaged,
)
from muniment.runs.fold import RunFold
from muniment.runs.records import CLAIM_STATUSES, OpenQuestion, RunClaim, RunConflict, RunLog
from muniment.store.append import locked
from muniment.store.chain import Head, link_fault
from muniment.store.items import Item, get_version, latest
from muniment.store.ledger import SNAPSHOT_TAKEN, RunState, check_header, entry_of_row
from muniment.store.lists.seeking import each_made, find_listed, read_listed, read_versions, seek

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.store.context import Context

__all__ = [
    "DELTAS",
    "NEXT_ACTIONS_MAX",
    "PROVENANCE_MODE",
    "Loaded",
    "Rejected",
    "Resumed",
    "check_claim_status",
    "count_tail",
    "get_run",
    "get_snapshot",
    "is_whole",
    "load_log",
    "load_snapshot",
    "log_of",
    "log_of_wire",
    "page_claims",
    "page_conflicts",
    "page_questions",
    "page_runs",
    "page_snapshots",
    "resume",
    "run_item",
    "snapshot_id_of",
    "snapshot_of",
    "snapshots_id",
    "split_snapshot_id",
    "tail_of",
    "with_spoken_times",
]

PROVENANCE_MODE = "audit_only"
NEXT_ACTIONS_MAX = 3
DELTAS = (
    "claims_made",
    "claims_verified",
    "claims_retracted",
    "claims_demoted",
    "conflicts_recorded",
    "conflicts_settled",
    "failures_met",
    "questions_opened",
    "questions_closed",
)
"""The lists of ids in `deltas`, which also holds `counts`."""
_CURSOR = ("seq", "step", "phase", "last_action", "repeats", "loops")
_SHOWN_CHARS_MAX = 120
_NOTHING_OPEN = "Compare what is verified with the done definition: finish, or plan the next step"


def snapshots_id(run_id: str) -> str:
    """The id of the single item whose versions are the run's snapshots."""
    return short_id("snp", run_id)


def snapshot_id_of(run_id: str, sequence: int) -> str:
    return f"{snapshots_id(run_id)}.{sequence}"


def split_snapshot_id(snapshot_id: str) -> tuple[str, int] | None:
    """The item and the version that an id names; None if it is not one of ours."""
    match = re.fullmatch(r"(snp_[0-9a-f]{32})\.([1-9][0-9]{0,18})", snapshot_id, re.ASCII)
    return None if match is None else (match[1], int(match[2]))


# -- from the log -------------------------------------------------------------------------------------


def snapshot_of(
    log: RunLog,
    *,
    snapshot_id: str,
    created_at: str,
    previous: CompactionSnapshot | None,
    policy_ref: str | None,
    limits: Sequence[JsonObject],
    retrieval_diagnostics: JsonObject,
    validation: SnapshotValidation,
) -> CompactionSnapshot:
    """The next snapshot of the run: its current log, and the changes since `previous`.

    Its sequence is the one its id names: an earlier snapshot may have been forgotten, with the entry that sealed it.
    `limits` are those it was folded under (`limits_of`).
    """
    wire = log.to_wire()
    named = split_snapshot_id(snapshot_id)
    state = {
        "claims": wire["claims"],
        "conflicts": wire["conflicts"],
        "open_questions": [question.text for question in log.open_questions],
        "open_question_refs": [
            {"question_id": question.question_id, "opened_by": question.opened_by} for question in log.open_questions
        ],
        "failures": wire["failures"],
        "source_coverage": wire["coverage"],
        "next_actions": wire["next_actions"] or _derived_actions(log),
    }
    return CompactionSnapshot.from_wire(
        {
            "snapshot_id": snapshot_id,
            "run_id": log.run_id,
            "sequence": log.sequence + 1 if named is None else named[1],
            "created_at": created_at,
            "objective": log.objective,
            "done_definition": wire["done_definition"],
            "provenance_mode": PROVENANCE_MODE,
            "policy_snapshot_ref": policy_ref,
            "counts": {
                "steps_since_last_compaction": len(log.steps_since),
                "counted_events_since_last_compaction": len(log.counted_since),
            },
            "latest_context_manifest_ids": wire["manifest_ids"],
            "state": state,
            "retrieval_diagnostics": retrieval_diagnostics,
            "validation": validation.to_wire(),
            "previous_snapshot_id": None if previous is None else previous.snapshot_id,
            "budgets": {"limits": wire["budgets"], "used": wire["spent"]},
            "deltas": _deltas(log, previous),
            "cursor": {name: wire[name] for name in _CURSOR}
            | {"planned": len(log.next_actions), "limits": list(limits)},
        }
    )


_LIMITS = ("claim_chars_max", "seen_max", "manifests_max", "next_actions_max", "loop_actions")
"""The settings of a policy that a log depends on."""


def limits_of(wire: Mapping[str, Any] | None, policy: CompactionPolicy) -> list[JsonObject]:
    """The limits that the next snapshot is folded under: those of the snapshot it starts from, each with its first
    entry, and today's where they differ. So a log can be folded again after its policy has changed.
    """
    cursor = {} if wire is None else wire["cursor"]
    known: list[JsonObject] = list(cursor.get("limits", ()))
    now: JsonObject = {name: getattr(policy, name) for name in _LIMITS}
    if not known or any(known[-1].get(name) != now[name] for name in _LIMITS):
        known.append({"after": cursor.get("seq", 0)} | now)
    return known


def policies_of(wire: Mapping[str, Any], today: CompactionPolicy) -> list[tuple[int, CompactionPolicy]]:
    """The policies that a snapshot was folded under, each with the entry after which it applied."""
    known = wire["cursor"].get("limits") or [{"after": 0}]
    return [(each["after"], today.model_copy(update={k: each[k] for k in _LIMITS if k in each})) for each in known]


def _derived_actions(log: RunLog) -> list[str]:
    """Open matters, if the run has no plan: conflicts first, then claims without evidence, then questions."""
    found = [
        f"Settle the conflict {each.conflict_id}: {_short_line(each.description)}" for each in _open(log.conflicts)
    ]
    for claim in log.claims:
        if claim.status == "candidate":
            found.append(f"Find evidence for the claim {claim.claim_id}: {_short_line(claim.statement)}")
        if len(found) >= NEXT_ACTIONS_MAX:
            break
    found += [f"Answer the question: {_short_line(each.text)}" for each in log.open_questions[:NEXT_ACTIONS_MAX]]
    return found[:NEXT_ACTIONS_MAX] or [_NOTHING_OPEN]


def _open(records: Iterable[Any]) -> list[Any]:
    return [record for record in records if record.status == "open"][:NEXT_ACTIONS_MAX]


def _short_line(words: str) -> str:
    """Words on one line, cut to the display length."""
    line = " ".join(words.split())
    return line if len(line) <= _SHOWN_CHARS_MAX else line[: _SHOWN_CHARS_MAX - 1] + "…"


# -- changes -------------------------------------------------------------------------------------------


def _deltas(log: RunLog, previous: CompactionSnapshot | None) -> dict[str, Any]:
    before = {} if previous is None else previous.to_wire()
    state = before.get("state", {})
    claims = _by_id(state, "claims", "claim_id", "status")
    conflicts = _by_id(state, "conflicts", "conflict_id", "status")
    failures = _by_id(state, "failures", "failure_id", "count")
    questions = _by_id(state, "open_question_refs", "question_id", "opened_by")
    now = {question.question_id: question.opened_by for question in log.open_questions}
    changed = [claim for claim in log.claims if claims.get(claim.claim_id) != claim.status]
    lists = (
        [claim.claim_id for claim in changed if claim.claim_id not in claims],
        [claim.claim_id for claim in changed if claim.status == "verified"],
        [claim.claim_id for claim in changed if claim.status == "retracted"],
        [claim.claim_id for claim in changed if claim.status == "candidate" and claim.claim_id in claims],
        [each.conflict_id for each in log.conflicts if each.conflict_id not in conflicts],
        [each.conflict_id for each in log.conflicts if each.status == "settled" != conflicts.get(each.conflict_id)],
        [each.failure_id for each in log.failures if each.count != failures.get(each.failure_id)],
        [id_ for id_, by in now.items() if by != questions.get(id_)],
        [id_ for id_, by in questions.items() if by != now.get(id_)],
    )
    used = _used(before)
    counts = {name: value - used.get(name, 0) for name, value in log.spent.to_wire().items()}
    return dict(zip(DELTAS, lists, strict=True)) | {"counts": counts}


def _by_id(state: Mapping[str, Any], name: str, key: str, value: str) -> dict[str, Any]:
    return {each[key]: each.get(value) for each in state.get(name, ())}


def _used(before: Mapping[str, Any]) -> dict[str, int]:
    return before["budgets"]["used"] if before else {}


# -- and back -----------------------------------------------------------------------------------------


def log_of(snapshot: CompactionSnapshot) -> RunLog:
    """The log just after this snapshot, before any later entry.

    Raises `InvalidRecord` if the snapshot lacks our extra keys.
    """
    return log_of_wire(snapshot.to_wire())


def log_of_wire(wire: Mapping[str, Any]) -> RunLog:
    """`log_of` a snapshot in its plain form."""
    cursor, budgets = _part(wire, "$", "cursor"), _part(wire, "$", "budgets")
    state = wire["state"]
    return RunLog.from_wire(
        {name: cursor[name] for name in _CURSOR if name in cursor}
        | {
            "run_id": wire["run_id"],
            "objective": wire["objective"],
            "done_definition": wire["done_definition"],
            "budgets": budgets.get("limits"),
            "spent": budgets.get("used"),
            "claims": state["claims"],
            "conflicts": state["conflicts"],
            "failures": state["failures"],
            "open_questions": _questions(state),
            "next_actions": _planned(cursor, state),
            "coverage": state["source_coverage"],
            "manifest_ids": wire["latest_context_manifest_ids"],
            "sequence": wire["sequence"],
            "counted_since": [],
            "steps_since": [],
        }
    )


def _planned(cursor: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    """The run's own next actions; derived ones are not part of its plan."""
    planned, actions = cursor.get("planned"), state.get("next_actions")
    if planned == 0:
        return []
    if not isinstance(actions, list) or planned != len(actions):
        raise _not_ours("$.state.next_actions", "not as many as were planned")
    return actions


def _questions(state: Mapping[str, Any]) -> list[Any]:
    texts: Sequence[str] = state["open_questions"]
    refs = state.get("open_question_refs")
    if not isinstance(refs, list) or len(refs) != len(texts) or not all(isinstance(ref, dict) for ref in refs):
        raise _not_ours("$.state.open_question_refs", "wanted one for each open question")
    return [ref | {"text": text, "status": "open"} for text, ref in zip(texts, refs, strict=True)]


def _part(wire: Mapping[str, Any], path: str, name: str) -> Mapping[str, Any]:
    part = wire.get(name)
    if not isinstance(part, dict):
        raise _not_ours(f"{path}.{name}", "wanted an object")
    return part


def _not_ours(path: str, said: str) -> InvalidRecord:
    return InvalidRecord("not a snapshot that a log can be made of", [Issue(path, said)])


# -- a log, read from the store ------------------------------------------------------------------------

_COUNTING = ("step", "state_patch")
"""Entries about steps and snapshots; other entries make no difference (CS-10)."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A rejected snapshot, and the reason."""

    snapshot_id: str
    reason: str


@dataclass(frozen=True)
class Loaded:
    """A run's log, and the data it was read from."""

    log: RunLog
    wire: dict[str, Any] | None
    """The snapshot it starts from, in its plain form; None if the whole ledger was folded."""
    tail: int
    """The number of entries folded on top."""
    sequence: int
    """The number of the last snapshot, valid or not."""
    rejected: tuple[Rejected, ...]
    live: int
    """The number of snapshots not forgotten."""
    base: RunLog | None
    """The log at that snapshot."""
    damaged: Mapping[str, str]
    """Damaged entries after that snapshot that could have changed the log, with the damage."""

    @cached_property
    def snapshot(self) -> CompactionSnapshot | None:
        return None if self.wire is None else CompactionSnapshot.from_wire(self.wire)

    @property
    def previous(self) -> CompactionSnapshot | None:
        """The last snapshot, if valid: the predecessor of the next one."""
        return self.snapshot if self.wire is not None and self.wire["sequence"] == self.sequence else None

    def unless_damaged(self, *, repairs: bool) -> Loaded:
        """This log; raises if a damaged entry could have changed it, except for repairs."""
        if self.damaged and not repairs:
            entry_id, why = next(iter(self.damaged.items()))
            raise StoreDamaged(why, details={"id": entry_id})
        return self


def run_item(reader: Reader, run_id: str, user_id: str | None = None) -> Item:
    """The run with this id; one of another user does not exist (LG-02)."""
    item = latest(reader, run_id)
    if item is None or item.kind != "run" or (user_id is not None and item.user_id != user_id):
        raise NotFound(f"no run {run_id!r:.80} in this store", path="$.run_id", hint="mem.runs() lists those there are")
    return item


def _newest_own(reader: Reader, scope: Scope) -> Item | None:
    """The latest snapshot of the run; None if another user took the id after this scope was made."""
    item = latest(reader, snapshots_id(scope.run_id))
    return None if item is None or item.user_id != scope.user_id else item


def load_log(
    reader: Reader,
    scope: Scope,
    policy: CompactionPolicy,
    upto: int | None = None,
    before: int | None = None,
    later: Sequence[tuple[int, CompactionPolicy]] = (),
) -> Loaded:
    """The log of a run as of now (or of the entry `upto`), from the latest valid snapshot.

    With `before`, only from one with a lower number; so `before=1` folds the whole ledger. `later` are policies that
    replace `policy` after an entry, in order.
    """
    newest = _newest_own(reader, scope)
    rejected: list[Rejected] = []
    wire = None
    start = newest.version if newest else 0
    for version in range(start if before is None else min(start, before - 1), 0, -1):
        item = newest if newest is not None and version == newest.version else _version(reader, scope.run_id, version)
        if item is None or item.body is None:
            break  # forgotten, together with everything before it
        try:
            wire = _read(reader, scope.tenant_id, item)
            break
        except MunimentError as error:
            rejected.append(Rejected(snapshot_id_of(scope.run_id, version), error.message))
    log = None if wire is None else log_of_wire(wire)
    fold = RunFold(scope.run_id, policy, log)
    tail = live = 0
    damaged: dict[str, str] = {}
    changes = list(later)
    for row in tail_of(reader, scope, 0 if log is None else log.seq, upto):
        while changes and row.seq > changes[0][0]:
            fold.use(changes.pop(0)[1])
        try:
            fold.apply(entry_of_row(scope.tenant_id, row))
        except StoreDamaged as error:
            if _is_missed(fold, scope.tenant_id, row):
                damaged[row.id] = error.message
        tail += 1
        live += row.receipt_id is None
    if damaged:  # the entry that seals a snapshot does not affect the log, and the damaged snapshot itself is skipped
        for entry_id in texts(reader, LINKS, "source_id", (("item_id", "=", snapshots_id(scope.run_id)),)):
            damaged.pop(entry_id, None)
    folded = fold.log().model_copy(update={"sequence": start})
    return Loaded(folded, wire, tail, start, tuple(rejected), live, log, damaged)


def _is_missed(fold: RunFold, tenant_id: str, row: EntryRow) -> bool:
    """Count a damaged entry; return whether the fold may miss its content."""
    is_missed = type(row.seq) is not int or fold.skip_damaged(row.seq, row.kind)
    try:
        check_header(tenant_id, row)
    except StoreDamaged:  # its content is unknown
        return True
    return is_missed


def is_whole(reader: Reader, scope: Scope, loaded: Loaded) -> bool:
    """True if nothing that this log was folded from has been forgotten since.

    A forget that removes an entry of a run removes its snapshots: so check the snapshot, and the entries after it.
    """
    after = 0
    if loaded.wire is not None:
        item = _version(reader, scope.run_id, loaded.wire["sequence"])
        if item is None or item.body is None:
            return False
        after = loaded.wire["cursor"]["seq"]
    where = (*_of_run(scope, after, loaded.log.seq), ("receipt_id", "=", None))
    return reader.do(Count("entries", where)) == loaded.live


def count_tail(reader: Reader, scope: Scope, policy: CompactionPolicy) -> RunLog:
    """Count only the steps after the latest snapshot: enough to decide whether the next one is due."""
    newest = _newest_own(reader, scope)
    start = None if newest is None or newest.body is None else _start_after(reader, scope, policy, newest)
    fold = RunFold(scope.run_id, policy, start)
    for row in tail_of(reader, scope, 0 if start is None else start.seq, kinds=_COUNTING):
        fold.apply(entry_of_row(scope.tenant_id, row))
    return fold.log()


def _start_after(reader: Reader, scope: Scope, policy: CompactionPolicy, item: Item) -> RunLog:
    """The run's position at a snapshot, from its ledger entry rather than the snapshot; the whole log if that entry is
    invalid.
    """
    try:
        entry_id = _sealed(item).entry_id
        said = _anchor(reader, scope.tenant_id, item, entry_id)
        known = {"seq": said["upto"], "step": said["step"], "phase": said["phase"], "sequence": item.version}
    except (MunimentError, KeyError):
        return load_log(reader, scope, policy).log
    return RunFold(scope.run_id, policy).log().model_copy(update=known)


def tail_of(
    reader: Reader, scope: Scope, after: int, upto: int | None = None, kinds: tuple[str, ...] = ()
) -> Iterator[EntryRow]:
    """The run's entries after a position in its session, in order, optionally of some kinds."""
    where = _of_run(scope, after, upto)
    if kinds:
        where = (*where, ("kind", "in", kinds))
    return stream(reader, ENTRIES, where, order=("user_id", "session_id", "seq"))


def _of_run(scope: Scope, after: int, upto: int | None) -> tuple[Condition, ...]:
    where: tuple[Condition, ...] = (
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
        ("seq", ">", after),
        ("run_id", "=", scope.run_id),
    )
    return where if upto is None else (*where, ("seq", "<=", upto))


# -- snapshots ----------------------------------------------------------------------------------------


def load_snapshot(reader: Reader, tenant_id: str, run_id: str, sequence: int | None = None) -> CompactionSnapshot:
    """A kept snapshot, by default the latest; raises if it differs from the one sealed in the ledger."""
    item = latest(reader, snapshots_id(run_id)) if sequence is None else _version(reader, run_id, sequence)
    if item is None:
        which = "no snapshot" if sequence is None else f"no snapshot {sequence}"
        raise NotFound(f"{which} of the run {run_id!r:.80}", path="$.sequence", hint="run.log.compact() takes one")
    return CompactionSnapshot.from_wire(_read(reader, tenant_id, item))


def _version(reader: Reader, run_id: str, version: int) -> Item | None:
    return get_version(reader, snapshots_id(run_id), version)


class _Sealed(NamedTuple):
    """The content of a snapshot's item."""

    document: dict[str, Any]
    salt: bytes
    entry_id: str
    head: dict[str, Any] | None = None
    """The head that version 0.1 sealed instead of the document: it stored long lists separately, named in `trees`."""


def snapshot_body(document: JsonObject, salt: bytes, entry_id: str) -> JsonObject:
    """The body of a snapshot's item: the document, and the entry that seals its digest."""
    return {"document": document, "salt": salt.hex(), "entry_id": entry_id}


def snapshot_digest(document: JsonObject, salt: bytes) -> str:
    """The digest sealed in the ledger. The salt is erased with the snapshot, so that the remaining digest reveals
    nothing.
    """
    return salted_digest(salt, canonical_bytes(document)).hex()


def _sealed(item: Item) -> _Sealed:
    try:
        body = item.plain()
        head = body.get("head")
        document = body["document"] if head is None else head["document"]
        return _Sealed(dict(document), bytes.fromhex(body["salt"]), body["entry_id"], head)
    except (KeyError, TypeError, ValueError):
        raise _altered(item, "is not one that was written here") from None


def _altered(item: Item, why: str, **details: Any) -> IntegrityFailure:
    name = f"{item.id}.{item.version}"
    return IntegrityFailure(
        f"the snapshot {name} {why}",
        hint="it was altered on disk; the ledger still has what it was made of",
        details={"snapshot_id": name} | details,
    )


def _read(reader: Reader, tenant_id: str, item: Item) -> dict[str, Any]:
    """A snapshot in its plain form, with its digest checked against the chain."""
    sealed = _sealed(item)
    anchor = _anchor(reader, tenant_id, item, sealed.entry_id)
    try:
        whole = sealed.document if sealed.head is None else sealed.head
        is_same = anchor.get("digest") == snapshot_digest(whole, sealed.salt)
    except InvalidInput:
        is_same = False
    if not is_same:
        raise _altered(item, "is not what the ledger says: its digest differs", entry_id=sealed.entry_id)
    return sealed.document if sealed.head is None else _joined(reader, item, sealed)


def _joined(reader: Reader, item: Item, sealed: _Sealed) -> dict[str, Any]:
    """A snapshot of version 0.1 with its long lists restored: leaves of 8 elements below nodes of 32 names, each part
    named by its salted hash.
    """

    def elements(name: str, count: int) -> list[Any]:
        (part,) = by_ids(reader, PARTS, [bytes.fromhex(name)], column="hash", where=(("owner", "=", item.id),)) or [
            None
        ]
        if part is None or salted_digest(sealed.salt, (part.body or "").encode()) != part.hash:
            raise _altered(item, f"lacks its part {name}, or that was altered")
        held, span = read_canonical(part.body or ""), 8
        if count <= span:
            return list(held)
        while span * 32 < count:
            span *= 32
        return [each for at, below in enumerate(held) for each in elements(below, min(span, count - at * span))]

    document: dict[str, Any] = parse_json(canonical_text(sealed.document))
    for path, tree in (sealed.head or {})["trees"].items():
        *above, last = path.split(".")
        here = document
        for key in above:
            here = here[key]
        here[last] = elements(tree["root"], tree["count"])
    return document


def _anchor(reader: Reader, tenant_id: str, item: Item, entry_id: str) -> JsonObject:
    """The content of the entry that sealed this snapshot."""
    row = get(reader, ENTRIES, (entry_id,))
    if row is None or row.receipt_id is not None:
        raise IntegrityFailure(
            f"the ledger does not hold the entry of snapshot {item.id}.{item.version}", hint="run `muniment verify`"
        )
    fault = link_fault(tenant_id, row, Head(row.seq - 1, row.prev_hash, row.recorded_at))
    said = {} if fault is not None else entry_of_row(tenant_id, row).metadata
    if (said.get("event"), said.get("id"), said.get("sequence")) != (SNAPSHOT_TAKEN, item.id, item.version):
        why = fault or "its entry seals another one"
        raise _altered(item, f"is not what the ledger says: {why}", entry_id=entry_id)
    return said


# -- runs by id ----------------------------------------------------------------------------------------

RunT = TypeVar("RunT")


@dataclass(frozen=True, slots=True)
class Resumed(Generic[RunT]):
    """A resumed run."""

    run: RunT
    _loaded: Loaded

    @property
    def log(self) -> RunLog:
        """The run as folded from its entries, up to now."""
        return self._loaded.log

    @property
    def snapshot(self) -> CompactionSnapshot | None:
        """The snapshot it was read from; None if the whole ledger was folded."""
        return self._loaded.snapshot

    @property
    def tail(self) -> int:
        """The number of entries after that snapshot."""
        return self._loaded.tail

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Later invalid snapshots, with the reasons."""
        return self._loaded.rejected


class RunQuery(Request):
    """A query for a run and one of its snapshots; by default the latest."""

    sequence: Annotated[FromOne | None, Expect("a snapshot's sequence is a whole number from 1")] = None
    run_id: Annotated[str, Expect("a run is named by its id")]


def resume(
    ctx: Context, tenant_id: str, run_id: str, handle: Callable[[RunState], RunT], *, repairs: bool
) -> Resumed[RunT]:
    """Return the run's handle under its own scope, and its log; refuses a run that has ended or is locked."""
    item = _run_item(ctx, tenant_id, run_id)
    if item.status == "finished":
        raise RunFinished(f"the run {run_id} has ended", path="$.run_id", hint="start a new run in the same session")
    if item.status == "locked" and not repairs:
        raise locked(item)
    state = RunState.from_wire(item.plain())
    return Resumed(handle(state), _load(ctx, state).unless_damaged(repairs=repairs))


def _load(ctx: Context, state: RunState) -> Loaded:
    policy = ctx.policy.compaction
    return ctx.engine.read(state.scope.tenant_id, lambda reader: load_log(reader, state.scope, policy))


def _run_item(ctx: Context, tenant_id: str, run_id: Any) -> Item:
    named = checked(RunQuery, run_id=run_id).run_id
    return ctx.engine.read(tenant_id, lambda reader: run_item(reader, named))


def get_run(ctx: Context, tenant_id: str, run_id: str) -> RunState:
    return RunState.from_wire(_run_item(ctx, tenant_id, run_id).plain())


def get_snapshot(ctx: Context, tenant_id: str, run_id: str, sequence: int | None) -> CompactionSnapshot:
    asked = checked(RunQuery, run_id=run_id, sequence=sequence)
    _run_item(ctx, tenant_id, run_id)
    return ctx.engine.read(tenant_id, lambda reader: load_snapshot(reader, tenant_id, run_id, asked.sequence))


# -- pages ---------------------------------------------------------------------------------------------

T = TypeVar("T")


def page_runs(ctx: Context, tenant_id: str, user_id: str | None, asked: ListQuery) -> Iterator[Placed[RunState]]:
    """The agent runs of a user or of the tenant, in their current state."""

    def make(reader: Reader, items: Sequence[Item]) -> list[RunState | None]:
        states = (RunState.from_wire(item.plain()) for item in items)
        return [with_spoken_times(reader, state) if _is_asked_for(state, asked.q) else None for state in states]

    return seek(ctx, tenant_id, read_listed("run", user_id, make, asked), asked, find_listed(("run",), user_id, make))


def _is_asked_for(state: RunState, q: str | None) -> bool:
    scope = state.scope
    return matches(q, state.run_id, state.task_type, state.objective, scope.session_id, scope.agent_id)


def page_snapshots(ctx: Context, tenant_id: str, run_id: str, asked: ListQuery) -> Iterator[Placed[CompactionSnapshot]]:
    """The snapshots of a run that were not forgotten, by number."""
    get_run(ctx, tenant_id, run_id)

    def make(reader: Reader, items: Sequence[Item]) -> list[CompactionSnapshot | None]:
        return [load_snapshot(reader, tenant_id, run_id, item.version) for item in items]

    return seek(ctx, tenant_id, read_versions(snapshots_id(run_id), make), asked)


def check_claim_status(status: str | None) -> None:
    if status is not None and status not in CLAIM_STATUSES:
        raise InvalidInput(
            f"{status!r:.40} is not a status of a claim", path="$.status", hint=f"one of {', '.join(CLAIM_STATUSES)}"
        )


def page_claims(ctx: Context, scope: Scope, status: str | None, asked: ListQuery) -> Iterator[Placed[RunClaim]]:
    check_claim_status(status)
    return _logged(ctx, scope, "claim", status, RunClaim.from_wire, asked)


def page_conflicts(ctx: Context, scope: Scope, asked: ListQuery) -> Iterator[Placed[RunConflict]]:
    return _logged(ctx, scope, "conflict", None, RunConflict.from_wire, asked)


def page_questions(ctx: Context, scope: Scope, asked: ListQuery) -> Iterator[Placed[OpenQuestion]]:
    return _logged(ctx, scope, "question", "open", OpenQuestion.from_wire, asked)


def _logged(
    ctx: Context, scope: Scope, kind: str, status: str | None, read: Callable[..., T], asked: ListQuery
) -> Iterator[Placed[T]]:
    """A run's log items of one kind. Another user's run is not read at all."""
    run = ctx.engine.read(scope.tenant_id, lambda reader: latest(reader, scope.run_id))
    if run is None or run.user_id != scope.user_id:
        return iter(())

    def made(item: Item) -> T | None:
        return read(item.plain()) if item.user_id == scope.user_id else None

    make = each_made(made)
    reading = read_listed(kind, scope.run_id, make, asked, status)
    return seek(ctx, scope.tenant_id, reading, asked, find_listed((kind,), scope.run_id, make))


_LOOKED_MAX = 20
"""Entries examined at either end of a run; little but its start precedes its first turn."""
_TURNS = ("message", "tool_result")


class _SpokenRow(NamedTuple):
    kind: str
    ts: str


def with_spoken_times(reader: Reader, state: RunState) -> RunState:
    """The run with the times of its first and last turn, if they are near its ends."""
    first, last = _end(reader, state, descending=False), _end(reader, state, descending=True)
    if first is None or last is None:
        return state
    return state.model_copy(update={"first_said_at": min(first, last), "last_said_at": max(first, last)})


def _end(reader: Reader, state: RunState, *, descending: bool) -> str | None:
    scope = state.scope
    where: tuple[Condition, ...] = (
        ("run_id", "=", state.run_id),
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
    )
    rows = select(
        reader, ENTRIES, where, into=_SpokenRow, order=("user_id", "session_id", "seq"), descending=descending,
        limit=_LOOKED_MAX,
    )  # fmt: skip
    return next((row.ts for row in rows if row.kind in _TURNS), None)
