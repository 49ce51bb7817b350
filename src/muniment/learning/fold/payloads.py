"""What a WRITE or MERGE brings (RC-06): a contract's record, judged before anything is kept. Never stores it.

A payload says by its id's name what it is: `memory_id`, `rule_id`, `state_id`, `tactic_id`, or else `trace_id`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from muniment.contracts.learning import ConditionalTactic, ReasoningMemory, ReuseStateRecord
from muniment.contracts.rules import RuleRecord
from muniment.contracts.runs import TraceCapsule
from muniment.core.canonical import canonical_bytes, child_path
from muniment.core.predicates import parse
from muniment.core.record import JsonObject, RulecraftRecord
from muniment.errors import InvalidInput, InvalidRecord, Issue
from muniment.learning.stored_memory import MemoryKind

__all__ = [
    "Payload",
    "Refused",
    "Status",
    "id_of",
    "in_step",
    "issue_words",
    "lineage_of",
    "named_traces",
    "read_payload",
]

Status = Literal["active", "pinned", "temporary", "retired", "pruned"]

_IDS: dict[MemoryKind, str] = {
    "reasoning": "memory_id",
    "rule": "rule_id",
    "seed": "state_id",
    "tactic": "tactic_id",
    "trace_capsule": "trace_id",
}
_RECORDS: dict[MemoryKind, type[RulecraftRecord]] = {
    "reasoning": ReasoningMemory,
    "rule": RuleRecord,
    "seed": ReuseStateRecord,
    "tactic": ConditionalTactic,
    "trace_capsule": TraceCapsule,
}
_STATUS_WORDS: dict[MemoryKind, tuple[Status, ...]] = {
    "reasoning": ("active", "pinned", "temporary", "retired"),
    "rule": ("temporary", "active", "retired"),
    "tactic": ("active", "pinned", "retired"),
}
"""The kinds whose record has a status, and the words it knows; a pinned rule stays `temporary` in its record."""
_WITH_TTL: tuple[MemoryKind, ...] = ("reasoning", "seed", "tactic")
_ISSUES_SHOWN = 3


class Refused(Exception):
    """An action that cannot be done. Its text, a stable code and then words, becomes the record's error."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(f"{code}: {words}")
        self.code = code


class Payload(NamedTuple):
    """A validated record, and what the stores want to know of it."""

    id: str
    kind: MemoryKind
    record: JsonObject
    status: Status
    ttl: str | None
    sources: tuple[str, ...]
    """Trace ids it was learnt from."""
    size_bytes: int
    """Of its canonical form, as it was given."""


def read_payload(plain: Any, kinds: Collection[MemoryKind]) -> Payload:
    """The record in `plain`, which must be of one of these kinds; anything wrong with it is `Refused`."""
    kind = _kind_of(plain)
    if kind not in kinds:
        raise Refused("wrong_kind", f"the payload is a {kind} and should be a {' or '.join(kinds)}")
    try:
        record = _RECORDS[kind].from_wire(plain)
        size = len(canonical_bytes(plain))
    except InvalidInput as error:
        raise Refused("invalid_record", issue_words(error)) from None
    wire = record.to_wire()
    if kind == "rule" and wire["status"] == "active":
        raise Refused("activation", f"{_id(wire, kind)} would be an active rule; only promotion makes those")
    _check_predicates(record)
    status: Status = wire["status"] if kind in _STATUS_WORDS else "active"
    ttl = wire.get("ttl") if kind in _WITH_TTL else None
    return Payload(_id(wire, kind), kind, wire, status, ttl, _sources(record), size)


def id_of(plain: Any) -> str | None:
    """The id that a payload names, if it is one."""
    kinds = _kinds_named(plain) if isinstance(plain, Mapping) else []
    name = plain[_IDS[kinds[0]]] if len(kinds) == 1 else None
    return name if isinstance(name, str) else None


def in_step(kind: MemoryKind, record: JsonObject, status: Status, ttl: str | None = None) -> JsonObject:
    """The record with the status and TTL that stand around it, as far as its contract has a word for them."""
    if status in _STATUS_WORDS.get(kind, ()):
        record = record | {"status": status}
    if ttl is not None and kind in _WITH_TTL:
        record = record | {"ttl": ttl}
    return record


def lineage_of(kind: MemoryKind, record: JsonObject) -> tuple[str, ...]:
    """The seeds that a seed says it was made from."""
    lineage = record.get("lineage") if kind == "seed" else None
    if not isinstance(lineage, Mapping):
        return ()
    parents = lineage.get("parent_ids")
    named = [lineage.get("parent_state_id"), *(parents if isinstance(parents, list | tuple) else ())]
    return tuple(dict.fromkeys(name for name in named if isinstance(name, str)))


def named_traces(plain: Any) -> tuple[str, ...]:
    """The runs that a payload, valid or not, says it was learnt from."""
    if not isinstance(plain, Mapping):
        return ()
    evidence = plain.get("evidence")
    listed = [plain.get("trace_ids"), plain.get("source_trace_ids"), [plain.get("trace_id")]]
    listed.append(evidence.get("trace_ids") if isinstance(evidence, Mapping) else None)
    named = [each for traces in listed if isinstance(traces, list | tuple) for each in traces]
    return tuple(dict.fromkeys(each for each in named if isinstance(each, str)))


def issue_words(error: InvalidInput) -> str:
    """What is wrong, in one line: the first few issues by path, or the error's own words."""
    issues: Iterable[Issue] = error.issues if isinstance(error, InvalidRecord) else ()
    shown = [f"{issue.path} {issue.message}" for issue in issues]
    if not shown:
        return str(error)
    more = len(shown) - _ISSUES_SHOWN
    return "; ".join(shown[:_ISSUES_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _kind_of(plain: Any) -> MemoryKind:
    if not isinstance(plain, Mapping):
        raise Refused("invalid_record", "$ wanted an object")
    named = _kinds_named(plain)
    if len(named) > 1:
        raise Refused("mixed_kinds", f"the payload is at once a {' and a '.join(named)}")
    if not named:
        raise Refused("unknown_kind", f"the payload has none of {', '.join(_IDS.values())}")
    return named[0]


def _kinds_named(plain: Mapping[str, Any]) -> list[MemoryKind]:
    """A trace id makes a capsule of what is nothing else: other records may name a trace beside their own id."""
    found = [kind for kind, name in _IDS.items() if name in plain]
    return found if len(found) < 2 else [kind for kind in found if kind != "trace_capsule"]


def _id(wire: JsonObject, kind: MemoryKind) -> str:
    return str(wire[_IDS[kind]])


def _sources(record: RulecraftRecord) -> tuple[str, ...]:
    traces: Iterable[str] | None = None
    if isinstance(record, ReasoningMemory):
        traces = record.trace_ids
    elif isinstance(record, ReuseStateRecord):
        traces = record.source_trace_ids
    elif isinstance(record, TraceCapsule):
        traces = (record.trace_id,)
    elif isinstance(record, ConditionalTactic | RuleRecord):
        traces = record.evidence.trace_ids if record.evidence is not None else None
    return tuple(dict.fromkeys(traces or ()))


def _check_predicates(record: RulecraftRecord) -> None:
    """A condition that does not parse or type-check is an error when it is written, not when it is read (RC-13)."""
    predicates: Iterable[str] | None = None
    path = "$.predicates"
    if isinstance(record, ConditionalTactic):
        predicates = record.predicates
    elif isinstance(record, RuleRecord):
        predicates, path = record.applicability.predicates, "$.applicability.predicates"
    for index, text in enumerate(predicates or ()):
        try:
            parse(text, path=child_path(path, index))
        except InvalidInput as error:
            raise Refused("invalid_predicate", issue_words(error)) from None
