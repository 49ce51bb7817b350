"""A snapshot as a page for people (CS-11): eight sections in a fixed order, from the snapshot alone, without a model.

The page only presents the snapshot: nothing is added, cut or weighted. The same snapshot gives the same bytes,
regardless of the order of its keys. It reads any snapshot of the contract, ours or not: our own extra keys (`budgets`,
`previous_snapshot_id`, `deltas`, `state.next_actions`) may be missing or of another shape.

Stored text is kept on one line and escaped where CommonMark or GitHub's dialect would read it as a heading, a list, a
link, code, a table or HTML. Other text is not escaped, so that ids can be found with a plain search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from muniment.contracts.snapshot import Claim, CompactionSnapshot, EvidencePointer
from muniment.core.canonical import canonical_text
from muniment.core.record import OpenRecord
from muniment.errors import InvalidRecord

__all__ = [
    "HEADINGS",
    "NEXT_ACTIONS_MAX",
    "escaped",
    "is_verified",
    "narrative",
    "place_text",
    "pointer_text",
    "span_text",
    "value_text",
]

HEADINGS = (
    "## 1. Objective, budgets, provenance mode",
    "## 2. What changed since last snapshot",
    "## 3. Verified claims",
    "## 4. Conflicts",
    "## 5. Failures encountered",
    "## 6. Open questions / unknowns",
    "## 7. Next actions",
    "## 8. Manifest references",
)
NEXT_ACTIONS_MAX = 3
"""Maximum number of next actions shown; the rest is counted."""


def narrative(snapshot: CompactionSnapshot) -> str:
    """The page: a title, the snapshot's identity, the eight sections."""
    bodies: tuple[Iterable[str], ...] = (
        _aims(snapshot),
        _changes(snapshot),
        _verified(snapshot),
        _conflicts(snapshot),
        _failures(snapshot),
        _unknowns(snapshot),
        _next_actions(snapshot),
        _manifests(snapshot),
    )
    parts = ["# Run narrative", "\n".join(_opening(snapshot))]
    for heading, body in zip(HEADINGS, bodies, strict=True):
        parts += [heading, "\n".join(listed(body))]
    return "\n\n".join(parts) + "\n"


def is_verified(claim: Claim) -> bool:
    """True if a status counts as verified, as the contract's rules read the open status string."""
    return claim.status.strip().casefold() == "verified"


# -- sections -----------------------------------------------------------------------------------------


def _opening(snapshot: CompactionSnapshot) -> Iterator[str]:
    validation = snapshot.validation
    yield f"- run: {value_text(snapshot.run_id)}"
    yield f"- snapshot: {value_text(snapshot.snapshot_id)}, number {value_text(snapshot.sequence)}"
    yield f"- taken: {value_text(snapshot.created_at)}"
    held = sum(check.status.strip().casefold() == "pass" for check in validation.checks)
    action = validation.failure_action_taken
    said = "" if action == "NONE" else f"; action taken: {action}"
    yield f"- validation: {validation.status}, {held} of {len(validation.checks)} checks passed{said}"
    for check in validation.checks:
        if check.status.strip().casefold() != "pass":
            shown = (value_text(part) for part in (check.name, check.status, check.message))
            yield f"  - {': '.join(shown)}"


def _aims(snapshot: CompactionSnapshot) -> Iterator[str]:
    yield f"- objective: {value_text(snapshot.objective)}"
    yield from _field("done when", snapshot.done_definition)
    yield from _field("budgets", _extra(snapshot, "budgets"))
    yield f"- provenance mode: {value_text(snapshot.provenance_mode)}"
    yield f"- policy: {NONE if snapshot.policy_snapshot_ref is None else value_text(snapshot.policy_snapshot_ref)}"


def _changes(snapshot: CompactionSnapshot) -> Iterator[str]:
    counts = snapshot.counts
    yield f"- steps since last compaction: {value_text(counts.steps_since_last_compaction)}"
    yield f"- counted events since last compaction: {value_text(counts.counted_events_since_last_compaction)}"
    yield from _field("previous snapshot", _extra(snapshot, "previous_snapshot_id"))
    yield from _deltas(_extra(snapshot, "deltas"))


def _deltas(deltas: Any) -> Iterator[str]:
    """Changes by kind; for a list, their number and ids."""
    if not isinstance(deltas, Mapping):
        yield from _field("deltas", deltas)
        return
    counted = {key: f"{len(each)} ({value_text(each)})" for key, each in deltas.items() if _is_list(each) and each}
    yield from _lines("deltas", {key: counted.get(key) or value_text(deltas[key]) for key in sorted(deltas)})


def _verified(snapshot: CompactionSnapshot) -> Iterator[str]:
    for claim in snapshot.state.claims:
        if is_verified(claim):
            yield f"- {value_text(claim.claim_id)}: {value_text(claim.statement)}"
            yield from _pointers(claim.evidence_refs)


def _conflicts(snapshot: CompactionSnapshot) -> Iterator[str]:
    for conflict in snapshot.state.conflicts:
        yield f"- {value_text(conflict.conflict_id)}{_status(conflict)}: {value_text(conflict.description)}"
        for side, refs in (("a", conflict.side_a_refs), ("b", conflict.side_b_refs)):
            yield f"  - side {side}:" + (f" {NONE}" if not refs else "")
            yield from (f"    - {pointer_text(ref)}" for ref in refs)
        yield from _notes(conflict, ("claim_ids", "between claims"), ("resolution", "settled"))


def _failures(snapshot: CompactionSnapshot) -> Iterator[str]:
    for failure in snapshot.state.failures:
        times = _extra(failure, "count")
        met = f" ({times} times)" if type(times) is int and times > 1 else ""
        yield (
            f"- {value_text(failure.failure_id)}: {value_text(failure.category)} in {value_text(failure.where)}{met}: "
            f"{value_text(failure.why)}"
        )


def _unknowns(snapshot: CompactionSnapshot) -> Iterator[str]:
    """Unanswered questions, then every unverified claim, by status."""
    yield from (f"- question: {value_text(question)}" for question in snapshot.state.open_questions)
    for claim in snapshot.state.claims:
        if not is_verified(claim):
            named = f"{value_text(claim.status)} claim {value_text(claim.claim_id)}"
            yield f"- {named}: {value_text(claim.statement)}"
            yield from _pointers(claim.evidence_refs)
            yield from _notes(claim, ("reason", "reason"), ("refuted_by", "refuted by"))


def _next_actions(snapshot: CompactionSnapshot) -> Iterator[str]:
    given = _extra(snapshot.state, "next_actions")
    actions = given if _is_list(given) else [] if given is None else [given]
    for number, action in enumerate(actions[:NEXT_ACTIONS_MAX], 1):
        yield f"{number}. {value_text(action)}"
    if len(actions) > NEXT_ACTIONS_MAX:
        yield f"\n{len(actions) - NEXT_ACTIONS_MAX} more in the snapshot"


def _manifests(snapshot: CompactionSnapshot) -> Iterator[str]:
    coverage = snapshot.state.source_coverage
    yield from _field("context manifests", snapshot.latest_context_manifest_ids)
    yield f"- sources seen: {len(coverage.source_ids_seen)}"
    yield f"- chunks seen: {len(coverage.chunk_ids_seen)}, cited: {len(coverage.chunk_ids_cited)}"
    yield from _field("retrieval diagnostics", snapshot.retrieval_diagnostics)


# -- lines --------------------------------------------------------------------------------------------


def _extra(record: OpenRecord, key: str) -> Any:
    """A key that the contract does not list: an extra one of a parsed document, or a field of our record."""
    return getattr(record, key, None)


def _field(label: str, value: Any) -> Iterator[str]:
    """A labelled value; an object or a list has one line for each of its parts."""
    if isinstance(value, Mapping):
        yield from _lines(label, {key: value_text(value[key]) for key in sorted(value)})
    elif _is_list(value) and value:
        yield f"- {label}:"
        yield from (f"  - {value_text(each)}" for each in value)
    else:
        yield f"- {label}: {NONE if value is None else value_text(value)}"


def _lines(label: str, parts: Mapping[str, str]) -> Iterator[str]:
    yield f"- {label}:" if parts else f"- {label}: {NONE}"
    yield from (f"  - {value_text(key)}: {shown}" for key, shown in parts.items())


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _pointers(refs: Sequence[EvidencePointer]) -> Iterator[str]:
    yield from (f"  - {pointer_text(ref)}" for ref in refs)
    if not refs:
        yield "  - no evidence"


def _status(record: OpenRecord) -> str:
    status = _extra(record, "status")
    return f" ({value_text(status)})" if isinstance(status, str) else ""


def _notes(record: OpenRecord, *wanted: tuple[str, str]) -> Iterator[str]:
    """Our keys present in this record, each on its line."""
    for key, label in wanted:
        value = _extra(record, key)
        if value not in (None, [], (), ""):
            shown = _loose_pointers(value) if key == "refuted_by" else value_text(value)
            yield f"  - {label}: {shown}"


def _loose_pointers(value: Any) -> str:
    """Pointers in a key that the contract does not list, which other writers may use for anything."""
    if not _is_list(value):
        return value_text(value)
    return ", ".join(map(_loose_pointer, value))


def _loose_pointer(value: Any) -> str:
    try:
        return pointer_text(value if isinstance(value, EvidencePointer) else EvidencePointer.from_wire(value))
    except InvalidRecord:
        return value_text(value)


# -- stored text in Markdown --------------------------------------------------------------------------

NONE = "none"
"""The text of an empty list."""

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")
"""Controls and marks that break a line, move the cursor or change the text direction."""
_SPECIAL = re.compile(
    r"[\\`*\[\]<|~]|(?<![^ #])#|&(?=[#0-9A-Za-z])|:(?=//)|(?<=www)\.|(?<![0-9A-Za-z_])_++|(?<!_)_++(?![0-9A-Za-z_])",
    re.IGNORECASE,
)
_OPENER = re.compile(r"[+=>-]|[0-9]{1,9}(?=[.)](?: |$))")
"""Text that begins a block at the start of a line or a list item."""


def escaped(text: str) -> str:
    """The text on one line, with Markdown escaped, for any position in a line."""
    flat = " ".join(_UNSEEN.sub(" ", text).split())
    safe = _SPECIAL.sub(lambda found: "".join(f"\\{char}" for char in found[0]), flat)
    opener = _OPENER.match(safe)
    if opener is None:
        return safe
    at = opener.end() if opener[0].isdigit() else 0
    return f"{safe[:at]}\\{safe[at:]}"


def value_text(value: Any) -> str:
    """A JSON value in readable form: text escaped, lists with commas, objects as `key: value`, sorted."""
    if isinstance(value, str):
        return escaped(value) or "(empty)"
    if isinstance(value, Mapping):
        return "; ".join(f"{escaped(key)}: {_nested(value[key])}" for key in sorted(value)) or NONE
    if isinstance(value, list | tuple):
        return ", ".join(map(_nested, value)) or NONE
    return canonical_text(value)


def _nested(value: Any) -> str:
    shown = value_text(value)
    return f"({shown})" if isinstance(value, Mapping | list | tuple) and value else shown


def span_text(span: Any) -> str:
    """`12–34` for offsets, in any of the allowed shapes; anything else as a plain value."""
    ends = [span["start"], span["end"]] if isinstance(span, Mapping) and span.keys() == {"start", "end"} else span
    if isinstance(ends, list) and len(ends) == 2 and all(type(end) in (int, float) for end in ends):
        return f"{canonical_text(ends[0])}–{canonical_text(ends[1])}"
    return value_text(span)


def listed(lines: Iterable[str]) -> list[str]:
    """The lines, or a single line for an empty list."""
    return list(lines) or [NONE]


def pointer_text(pointer: EvidencePointer) -> str:
    """`ev_1 [corpus/chunk 12–34]`."""
    return f"{value_text(pointer.evidence_id)} [{place_text(pointer)}]"


def place_text(pointer: EvidencePointer) -> str:
    """`corpus/chunk 12–34`; without the corpus if the pointer does not name it."""
    named = getattr(pointer, "corpus_id", None)
    corpus = escaped(named) if isinstance(named, str) else ""
    return f"{corpus}{'/' if corpus else ''}{value_text(pointer.chunk_id)} {span_text(pointer.span)}"
