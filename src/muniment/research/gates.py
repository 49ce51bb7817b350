"""Gates A to E (RP-07): whether the run may continue. Each returns metrics, and a reason for each failed condition.

A: the plan · B: the outputs of the waves · C: citations · D: the pack, in bytes on disk (RP-05) · E: the report. A gate
only reports; the stage machine acts on it. Shares are compared as exact fractions: 9 of 10 are 0.9, without rounding
errors of floats. The caller adds the digests of a gate's inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import get_args

from muniment.contracts.research import Perspective, SummaryEntry, SummaryPack
from muniment.core.policy import ResearchLimits, ResearchPolicy
from muniment.core.record import JsonValue
from muniment.errors import Issue
from muniment.research.records import (
    CITABLE,
    GATES,
    Citation,
    CitationStatus,
    DraftCheck,
    DraftProblem,
    GateId,
    GateResult,
    Standing,
    WaveResult,
)

_NAMED_MAX = 5
"""The maximum number of offenders named in a reason; the rest are counted."""

_REMEDIES: dict[DraftProblem, str] = {
    "uncited_figure": "cite a source of the pack for each figure, or take the figure out",
    "unknown_citation": "cite what the pack lists under sources, and nothing else",
    "invalid_citation": "take out sources that may not be cited, with what rests on them",
    "unsupported_citation": "keep to the source, cite another that supports it, or take the sentence out",
    "missing_section": "write the sections that are missing",
    "empty_report": "write the report",
}


def pending_gates() -> tuple[GateResult, ...]:
    """All gates, as not evaluated."""
    return tuple(GateResult(gate=gate, status="not_run") for gate in GATES)


# -- A: the plan --------------------------------------------------------------------------------------


def gate_a(perspectives: Sequence[Perspective], issues: Sequence[Issue], checked_at: str) -> GateResult:
    """Check that the plan has perspectives and no issues."""
    tracks = Counter(perspective.track for perspective in perspectives)
    reasons = [f"{issue.message} (at {issue.path})" for issue in issues]
    if not perspectives:
        reasons.append("the plan has no perspectives: route the question, or hand in a plan")
    metrics: dict[str, JsonValue] = {
        "perspectives": len(perspectives),
        "agent_types": len({perspective.agent_type for perspective in perspectives}),
        "issues": len(issues),
        **{track: tracks[track] for track in get_args(Perspective.model_fields["track"].annotation)},
    }
    return _result("A", metrics, reasons, checked_at)


# -- B: the waves -------------------------------------------------------------------------------------


def gate_b(
    perspectives: Sequence[Perspective],
    standings: Mapping[str, Standing],
    results: Sequence[WaveResult],
    given_up: Mapping[str, str],
    policy: ResearchPolicy,
    checked_at: str,
) -> GateResult:
    """Check that every perspective has an accepted output or was given up with a reason, and that enough have an
    output.
    """
    accepted_ids = {result.perspective_id for result in results if result.accepted}
    by_standing: dict[Standing, list[str]] = {standing: [] for standing in get_args(Standing)}
    for perspective in perspectives:
        by_standing[standings.get(perspective.id, "waiting")].append(perspective.id)
    accepted, total = by_standing["accepted"], len(perspectives)
    reasons = []
    if by_standing["waiting"]:
        reasons.append(f"no output of {_listing(by_standing['waiting'])}: ingest it, or give the perspective up")
    if by_standing["rejected"]:
        reasons.append(
            f"the output of {_listing(by_standing['rejected'])} breaks its contract: have it done again as the retry "
            "directive says, or give the perspective up"
        )
    if without_output := [each for each in accepted if each not in accepted_ids]:
        reasons.append(f"{_listing(without_output)} passes for accepted without an accepted output: ingest it again")
    if silent := [each for each in by_standing["given_up"] if not given_up.get(each, "").strip()]:
        reasons.append(f"{_listing(silent)} was given up without a reason: say why")
    if not accepted or not _at_least(len(accepted), total, policy.accepted_share_min):
        wanted = max(1, _needed(total, policy.accepted_share_min))
        reasons.append(
            f"{len(accepted)} of {total} perspectives have an accepted output, {wanted} are needed: "
            "give fewer of them up, or route the question anew"
        )
    metrics: dict[str, JsonValue] = {
        "perspectives": total,
        "accepted_share": _share(len(accepted), total),
        "breaches": sum(len(result.breaches) for result in results if not result.accepted),
        **{standing: len(ids) for standing, ids in by_standing.items()},
    }
    return _result("B", metrics, reasons, checked_at)


# -- C: citations -------------------------------------------------------------------------------------


def gate_c(
    citations: Sequence[Citation],
    uncategorised: Sequence[str],
    policy: ResearchPolicy,
    checked_at: str,
) -> GateResult:
    """Check that enough citations are valid or paywalled, few are invalid, and every address has its line.

    Blocked and unchecked ones count as neither: they lower the validated share. `uncategorised`: addresses in the
    accepted outputs that have no line.
    """
    total = len(citations)
    by_status: dict[CitationStatus, list[str]] = {status: [] for status in get_args(CitationStatus)}
    for citation in citations:
        by_status[citation.status].append(citation.url)
    validated = sum(len(urls) for status, urls in by_status.items() if status in CITABLE)
    invalid = by_status["invalid"]
    reasons = []
    if not total:
        reasons.append("nothing is cited: have the perspectives name their sources by address")
    elif not _at_least(validated, total, policy.validated_share_min):
        missing = _needed(total, policy.validated_share_min) - validated
        open_ones = [*by_status["unchecked"], *by_status["blocked"], *invalid]
        reasons.append(
            f"{validated} of {total} citations are valid or paywalled, {missing} more are needed: supply what was read "
            f"at {_listing(open_ones)}, or have the addresses looked at"
        )
    if not _at_most(len(invalid), total, policy.invalid_share_max):
        reasons.append(
            f"{len(invalid)} of {total} citations are invalid: correct {_listing(invalid)} in the outputs, "
            "supply the pages, or take out what rests on them"
        )
    if uncategorised:
        reasons.append(
            f"{_listing(uncategorised)} stands in an accepted output and has no citation: write the address out in full"
        )
    metrics: dict[str, JsonValue] = {
        "citations": total,
        "validated": validated,
        "validated_share": _share(validated, total),
        "invalid_share": _share(len(invalid), total),
        "uncategorised": len(uncategorised),
        **{status: len(urls) for status, urls in by_status.items()},
    }
    return _result("C", metrics, reasons, checked_at)


# -- D: the pack --------------------------------------------------------------------------------------


def gate_d(
    pack: SummaryPack,
    files: Mapping[str, bytes],
    limits: ResearchLimits,
    perspectives: Sequence[Perspective],
    citations: Sequence[Citation],
    policy: ResearchPolicy,
    checked_at: str,
    given_up: Collection[str] = (),
) -> GateResult:
    """Check the pack against the manifest: `files` are the summaries as read from disk, `limits` the manifest's.

    Perspectives that were given up have no summary; Gate B decides whether there are too many of them.
    """
    sizes = {entry.summary_md: len(files[entry.summary_md]) for entry in pack.summaries if entry.summary_md in files}
    due = [perspective.id for perspective in perspectives if perspective.id not in given_up]
    named = {entry.perspective_id for entry in pack.summaries if entry.summary_md in files}
    summarised = sum(each in named for each in due)
    reasons = [
        *_over_limits(pack, sizes, limits),
        *_wrong_entries(pack, files, {perspective.id for perspective in perspectives}),
        *_wrong_claims(pack, files, limits, {citation.cid: citation.status for citation in citations}),
    ]
    if not due or not _at_least(summarised, len(due), policy.summarised_share_min):
        wanted = max(1, _needed(len(due), policy.summarised_share_min))
        absent = [each for each in due if each not in named]
        reasons.append(
            f"{summarised} of {len(due)} perspectives have a summary, {wanted} are needed: "
            f"pack again with {_listing(absent) or 'an accepted output'}"
        )
    if not any(entry.key_claims for entry in pack.summaries):
        reasons.append("no claim is supported by its source: supply what was read, settle the citations and pack again")
    metrics: dict[str, JsonValue] = {
        "perspectives": len(due),
        "summarised": summarised,
        "summarised_share": _share(summarised, len(due)),
        "bytes_largest": max(sizes.values(), default=0),
        "bytes_largest_max": limits.summary_bytes_max,
        "bytes_total": sum(sizes.values()),
        "bytes_total_max": limits.total_bytes_max,
        "key_claims": sum(len(entry.key_claims) for entry in pack.summaries),
        "key_claims_most": max((len(entry.key_claims) for entry in pack.summaries), default=0),
        "estimated_tokens": pack.total_estimated_tokens,
    }
    return _result("D", metrics, reasons, checked_at)


def _over_limits(pack: SummaryPack, sizes: Mapping[str, int], limits: ResearchLimits) -> Iterable[str]:
    if pack.limits != limits.model_dump(mode="json"):
        yield "the pack was made under other limits than the manifest's: pack again"
    if large := [f"{path} ({size} bytes)" for path, size in sizes.items() if size > limits.summary_bytes_max]:
        yield f"over max_summary_kb, which is {limits.summary_bytes_max} bytes: {_listing(large)}; pack again"
    if (total := sum(sizes.values())) > limits.total_bytes_max:
        yield f"over max_total_summary_kb, which is {limits.total_bytes_max} bytes: {total} in all; pack again"


def _wrong_entries(pack: SummaryPack, files: Mapping[str, bytes], known: Collection[str]) -> Iterable[str]:
    if missing := [entry.summary_md for entry in pack.summaries if entry.summary_md not in files]:
        yield f"the pack names {_listing(missing)}, and there is no such file: write it from the store"
    if strange := [entry.perspective_id for entry in pack.summaries if entry.perspective_id not in known]:
        yield f"the pack summarises {_listing(strange)}, which the plan does not have: pack again"
    for key in ("perspective_id", "summary_md"):
        counts = Counter(getattr(entry, key) for entry in pack.summaries)
        if twice := [name for name, count in counts.items() if count > 1]:
            yield f"{_listing(twice)} stands in the pack more than once: pack again"


def _wrong_claims(
    pack: SummaryPack, files: Mapping[str, bytes], limits: ResearchLimits, statuses: Mapping[str, CitationStatus]
) -> Iterable[str]:
    if full := [entry.perspective_id for entry in pack.summaries if len(entry.key_claims) > limits.max_key_claims]:
        yield f"more than {limits.max_key_claims} key claims (max_key_claims) in {_listing(full)}: pack again"
    claims = [(entry, claim) for entry in pack.summaries for claim in entry.key_claims]
    if bare := [_brief(claim.claim) for _, claim in claims if not claim.citation_cids]:
        yield f"key claims without a citation: {_listing(bare)}; pack again"
    cids = dict.fromkeys(cid for _, claim in claims for cid in claim.citation_cids)
    if unknown := [cid for cid in cids if cid not in statuses]:
        yield f"key claims cite {_listing(unknown)}, which citations.jsonl does not have: make the citations again"
    if barred := [cid for cid in cids if statuses.get(cid, "valid") not in CITABLE]:
        yield f"key claims cite {_listing(barred)}, which may not be cited: pack again after the citations"
    if apart := [_brief(claim.claim) for entry, claim in claims if not _stands_in(entry, claim.claim, files)]:
        yield f"key claims that their summaries do not have: {_listing(apart)}; pack again"


def _stands_in(entry: SummaryEntry, claim: str, files: Mapping[str, bytes]) -> bool:
    """Return whether the claim is in its summary. A missing summary is reported separately."""
    return entry.summary_md not in files or claim.encode() in files[entry.summary_md]


# -- E: the report ------------------------------------------------------------------------------------


def gate_e(check: DraftCheck, checked_at: str) -> GateResult:
    """Check that the draft has no findings."""
    counts = Counter(finding.problem for finding in check.findings)
    reasons = [f"{counts[problem]} × {problem}: {remedy}" for problem, remedy in _REMEDIES.items() if counts[problem]]
    if not check.passed and not reasons:
        reasons.append("the draft did not pass: check it again")
    metrics: dict[str, JsonValue] = {
        **check.metrics,
        "review": check.review,
        "findings": len(check.findings),
        **{problem: counts[problem] for problem in _REMEDIES},
    }
    return _result("E", metrics, reasons, checked_at)


# -- parts --------------------------------------------------------------------------------------------


def _result(gate: GateId, metrics: dict[str, JsonValue], reasons: Sequence[str], checked_at: str) -> GateResult:
    return GateResult(
        gate=gate,
        status="fail" if reasons else "pass",
        metrics=metrics,
        reasons=tuple(reasons),
        checked_at=checked_at,
    )


def _fraction(share: float) -> Fraction:
    """The exact decimal value: 0.9 is nine tenths."""
    return Fraction(repr(share))


def _at_least(part: int, whole: int, share: float) -> bool:
    return part >= _fraction(share) * whole


def _at_most(part: int, whole: int, share: float) -> bool:
    return part <= _fraction(share) * whole


def _needed(whole: int, share: float) -> int:
    return ceil(_fraction(share) * whole)


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _listing(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    shown = ", ".join(names[:_NAMED_MAX])
    more = len(names) - _NAMED_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def _brief(claim: str) -> str:
    return f"“{claim}”" if len(claim) <= 60 else f"“{claim[:60]}…”"
