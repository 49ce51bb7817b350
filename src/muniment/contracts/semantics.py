"""The binding rules that a schema cannot express (`--semantic`): of one document, and of the snapshots of one run.

Every function takes plain data that already fits its schema and returns issues whose code is the clause. "Now" is the
document's own `meta.generated_at`; no clock is read. A snapshot's own `validation` block is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from muniment.contracts.kinds import check_kind
from muniment.core.canonical import canonical_text, child_path, digest_of
from muniment.core.instants import Instant, parse_rfc3339
from muniment.errors import Issue

__all__ = ["RunInvariants", "check_packet", "check_patterning", "check_semantics", "check_snapshot", "evidence_ids"]

_INSIGHT_LISTS = ("hypotheses", "strategy_sketches", "patterns")


def check_semantics(kind: str, data: Any) -> list[Issue]:
    """Check the runtime rules of one document of this kind; most kinds have none."""
    check_kind(kind)
    if kind == "MemoryPacket":
        return check_packet(data)
    if kind == "CompactionSnapshot":
        return check_snapshot(data)
    if kind == "PatterningPlan":
        return check_patterning(data)
    return []


def _issue(clause: str, path: str, message: str) -> Issue:
    return Issue(path, message, clause)


# -- MemoryPacket -------------------------------------------------------------------------------------


def check_packet(packet: Mapping[str, Any]) -> list[Issue]:
    """Check MP-07, MP-09, MP-12 and MP-13."""
    issues: list[Issue] = []
    now = parse_rfc3339(packet["meta"]["generated_at"])
    if now is None:
        issues.append(_no_instant("MP-07", "$.meta.generated_at", packet["meta"]["generated_at"]))
    for index, fact in enumerate(packet["long_term"]["facts"]):
        issues += _check_fact(fact, child_path("$.long_term.facts", index), now)
    issues += _check_preferences(packet["long_term"])
    issues += _check_insight(packet["insight"], packet["meta"]["purpose"], now)
    issues += _check_citations(packet)
    return issues


def _no_instant(clause: str, path: str, text: str) -> Issue:
    return _issue(clause, path, f"wanted an RFC 3339 date-time with an offset, found {text!r:.60}")


def _check_fact(fact: Mapping[str, Any], path: str, now: Instant | None) -> Iterator[Issue]:
    """Check MP-07: active, and valid now. Valid until exactly now is still valid."""
    if fact["status"] != "active":
        yield _issue("MP-07", f"{path}.status", f"wanted an active fact, found {fact['status']!r}")
    validity = fact.get("validity", {})
    for key in ("valid_from", "valid_to"):
        text = validity.get(key)
        if text is None:
            continue
        here, moment = f"{path}.validity.{key}", parse_rfc3339(text)
        if moment is None:
            yield _no_instant("MP-07", here, text)
        elif now is None:
            continue
        elif key == "valid_from" and moment > now:
            yield _issue("MP-07", here, f"the fact is not valid yet at generated_at: from {text}")
        elif key == "valid_to" and moment < now:
            yield _issue("MP-07", here, f"the fact is no longer valid at generated_at: until {text}")


def _check_preferences(long_term: Mapping[str, Any]) -> Iterator[Issue]:
    """Check MP-09: every preference equals one of the facts."""
    facts = {canonical_text(fact) for fact in long_term["facts"]}
    known = {fact["fact_id"] for fact in long_term["facts"]}
    for index, preference in enumerate(long_term.get("preferences", ())):
        if canonical_text(preference) in facts:
            continue
        path, name = child_path("$.long_term.preferences", index), preference["fact_id"]
        said = "differs from the fact of the same id" if name in known else "is not among long_term.facts"
        yield _issue("MP-09", path, f"the preference {name!r:.60} {said}")


def _check_insight(insight: Mapping[str, Any], purpose: str, now: Instant | None) -> Iterator[Issue]:
    """Check MP-12: nothing rejected or expired; for a responder only validated insights, and only where allowed."""
    allowed = insight["usage_policy"]["allow_in_responder"]
    for name in _INSIGHT_LISTS:
        for index, item in enumerate(insight[name]):
            path, state = child_path(f"$.insight.{name}", index), item["validation_state"]
            if state == "rejected":
                yield _issue("MP-12", f"{path}.validation_state", "a rejected insight never shows")
            elif purpose == "responder" and state != "validated":
                yield _issue("MP-12", f"{path}.validation_state", f"a responder packet holds no {state} insight")
            elif purpose == "responder" and not allowed:
                yield _issue("MP-12", path, "allow_in_responder is false: a responder packet holds no insight")
            yield from _check_expiry(item.get("expires_at"), f"{path}.expires_at", now)


def _check_expiry(text: str | None, path: str, now: Instant | None) -> Iterator[Issue]:
    if text is None or text == "run_end":  # null is read as run_end, and the packet's run is still going on
        return
    moment = parse_rfc3339(text)
    if moment is None:
        yield _issue("MP-12", path, f"wanted 'run_end' or an RFC 3339 date-time with an offset, found {text!r:.60}")
    elif now is not None and moment < now:
        yield _issue("MP-12", path, f"the insight has expired at generated_at: {text}")


def _check_citations(packet: Mapping[str, Any]) -> Iterator[Issue]:
    """Check MP-13: unique citations, which include every evidence id."""
    cited: dict[str, int] = {}
    for index, citation in enumerate(packet["citations"]):
        first = cited.setdefault(citation["id"], index)
        if first != index:
            path = f"{child_path('$.citations', index)}.id"
            yield _issue("MP-13", path, f"the citation {citation['id']!r:.60} stands already at $.citations[{first}]")
    for place, evidence_id in _evidence(packet):
        if evidence_id not in cited:
            yield _issue("MP-13", _path(place), f"the evidence id {evidence_id!r:.60} is not in citations")


def evidence_ids(packet: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every evidence id that a packet names, with its path, except the citations themselves."""
    return ((_path(place), evidence_id) for place, evidence_id in _evidence(packet))


_Place = tuple[str | int, ...]
"""A path and its further keys and indexes, joined lazily because most are never written out."""


def _path(place: _Place) -> str:
    first, *rest = place
    return reduce(child_path, rest, str(first))


def _evidence(packet: Mapping[str, Any]) -> Iterator[tuple[_Place, str]]:
    short, long = packet["short_term"], packet["long_term"]
    state = short["working_state"]
    yield from _ids_at(short, "$.short_term", "key_quotes", "evidence_id")
    yield from _ids_at(short, "$.short_term", "conversation_window", "evidence_id")
    yield from _ids_at(short, "$.short_term", "open_loops", "evidence_id")
    yield from _ids_at(short, "$.short_term", "last_tool_evidence", "ref")
    yield from _ids_at(state, "$.short_term.working_state", "decisions", "evidence_id")
    yield from _ids_at(state, "$.short_term.working_state", "tool_evidence", "ref")
    yield from _told_in_run(state)
    for name in ("facts", "preferences", "procedures", "episodes"):
        yield from _ids_at(long, "$.long_term", name, "sources")
    for name in _INSIGHT_LISTS:
        yield from _ids_at(packet["insight"], "$.insight", name, "sources")


_RUN_LISTS = {
    "board": ("evidence_ids",),
    "claims": ("evidence_id",),
    "next_actions": ("evidence_id",),
    "failures": ("evidence_id",),
    "conflicts": ("evidence_id", "side_a", "side_b"),
    "memory_hints": ("evidence_ids",),
}
"""Parts of a run's open working state that name evidence, and their keys."""


def _told_in_run(state: Mapping[str, Any]) -> Iterator[tuple[_Place, str]]:
    """Yield evidence of claims, actions, failures, conflicts and hints in an open object, where they have our form."""
    for name, keys in _RUN_LISTS.items():
        listed = state.get(name)
        for index, each in enumerate(listed if isinstance(listed, list | tuple) else ()):
            for key in keys if isinstance(each, Mapping) else ():
                held = each.get(key)
                sides = held if isinstance(held, list | tuple) and key != "evidence_id" else (held,)
                here = ("$.short_term.working_state", name, index, key)
                yield from ((here, id_) for id_ in sides if isinstance(id_, str) and id_)


def _ids_at(parent: Mapping[str, Any], path: str, name: str, key: str) -> Iterator[tuple[_Place, str]]:
    for index, item in enumerate(parent.get(name, ())):
        value = item.get(key)
        if isinstance(value, str):
            yield (path, name, index, key), value
        elif value is not None:
            yield from (((path, name, index, key, at), each) for at, each in enumerate(value))


# -- CompactionSnapshot -------------------------------------------------------------------------------


def check_snapshot(snapshot: Mapping[str, Any]) -> list[Issue]:
    """Check CS-06 and CS-07, recounting from the pointers."""
    issues: list[Issue] = []
    for index, claim in enumerate(snapshot["state"]["claims"]):
        refs = claim["evidence_refs"]
        if claim["status"].strip().casefold() == "verified" and not _has_full_pointer(refs):
            path = f"{child_path('$.state.claims', index)}.evidence_refs"
            issues.append(_issue("CS-06", path, f"wanted a full evidence pointer for a verified claim, {_held(refs)}"))
    for index, conflict in enumerate(snapshot["state"]["conflicts"]):
        for side in ("side_a_refs", "side_b_refs"):
            refs = conflict[side]
            if not _has_full_pointer(refs):
                path = f"{child_path('$.state.conflicts', index)}.{side}"
                issues.append(
                    _issue("CS-07", path, f"wanted a full evidence pointer on each side of a conflict, {_held(refs)}")
                )
    return issues


def _has_full_pointer(refs: Sequence[Mapping[str, Any]]) -> bool:
    return any(ref["evidence_id"].strip() and ref["chunk_id"].strip() and _points(ref["span"]) for ref in refs)


def _points(span: Any) -> bool:
    """Return whether a span is meaningful; one with offsets does not end before it starts."""
    if isinstance(span, str):
        return bool(span.strip())
    ends = (span.get("start"), span.get("end")) if isinstance(span, Mapping) else tuple(span)
    offsets = [end for end in ends if isinstance(end, int | float) and not isinstance(end, bool)]
    if len(ends) == len(offsets) == 2:
        return bool(0 <= offsets[0] <= offsets[1])
    return bool(span)


def _held(refs: Sequence[Any]) -> str:
    return "found one without evidence_id, chunk_id or span" if refs else "found none"


@dataclass(frozen=True, slots=True)
class _Seen:
    index: int
    sequence: int
    fixed: tuple[tuple[str, str], ...]


class RunInvariants:
    """Check of CS-05 over many snapshots, in any order: a run's objective and done_definition equal those of its first.

    Holds a few hashes for each snapshot, so a long stream takes little memory.
    """

    def __init__(self) -> None:
        self._runs: dict[str, list[_Seen]] = {}

    def add(self, index: int, snapshot: Mapping[str, Any]) -> None:
        fixed = tuple((key, digest_of(snapshot[key])) for key in ("objective", "done_definition"))
        self._runs.setdefault(snapshot["run_id"], []).append(_Seen(index, int(snapshot["sequence"]), fixed))

    def issues(self) -> dict[int, list[Issue]]:
        """Issues by the index a snapshot was added under."""
        found: dict[int, list[Issue]] = {}
        for seen in self._runs.values():
            ordered = sorted(seen, key=lambda one: (one.sequence, one.index))
            first = ordered[0]
            for before, one in zip([None, *ordered], ordered, strict=False):
                wrong = [
                    _issue(
                        "CS-05", f"$.{key}", f"{key} is not that of the run's first snapshot, document {first.index}"
                    )
                    for (key, value), (_, wanted) in zip(one.fixed, first.fixed, strict=True)
                    if value != wanted
                ]
                if before is not None and before.sequence == one.sequence:
                    said = f"document {before.index} of this run has sequence {one.sequence} too"
                    wrong.append(_issue("CS-05", "$.sequence", said))
                if wrong:
                    found[one.index] = wrong
        return found


# -- PatterningPlan -----------------------------------------------------------------------------------


def check_patterning(plan: Mapping[str, Any]) -> list[Issue]:
    """Check RC-24: as many weights as probes."""
    probes, weights = len(plan["probes"]), len(plan["solution"]["weights"])
    if probes == weights:
        return []
    said = f"wanted as many weights as probes, {probes}, found {weights}"
    return [_issue("RC-24", "$.solution.weights", said)]
