"""The short text of each answer: for models and people who do not read the structured content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muniment.core.canonical import canonical_text
from muniment.surfaces.cli.terminal import one_line, when
from muniment.surfaces.mcp.answers import NOTICE, Composed, Explanation, Found, Observed, Read, Recalled

if TYPE_CHECKING:
    from muniment.contracts.memory_packet import Fact
    from muniment.runs.records import RunClaim
    from muniment.store.ledger.records import Receipt

__all__ = [
    "say_claim",
    "say_composed",
    "say_explanation",
    "say_fact",
    "say_found",
    "say_observed",
    "say_read",
    "say_recalled",
    "say_receipt",
]

_LINE_MAX = 500
_SHOWN_MAX = 12


def say_observed(entry: Observed) -> str:
    flagged = f"; flagged {', '.join(entry.flags)}" if entry.flags else ""
    return f"recorded {entry.event_id} with trust {entry.trust}{flagged}"


def say_fact(fact: Fact) -> str:
    value = fact.value if isinstance(fact.value, str) else canonical_text(fact.value)
    said = f"{fact.status} {fact.fact_id}: {fact.fact_key} = {value}"
    return f"{NOTICE}\n{one_line(said, _LINE_MAX)} (from {', '.join(fact.sources[:_SHOWN_MAX])})"


def say_found(found: Found) -> str:
    if not found.hits:
        return "nothing found"
    lines = [NOTICE]
    for number, hit in enumerate(found.hits, 1):
        who = hit.speaker or hit.role or hit.kind
        flags = f", {', '.join(hit.flags)}" if hit.flags else ""
        lines.append(f"{number}. {hit.id} · {when(hit.ts)} · {one_line(who, 60)} · trust {hit.trust}{flags}")
        lines.append(f"   {one_line(hit.text, _LINE_MAX)}")
        for each in hit.superseded:
            said = "what it says" if each.is_whole else f"“{one_line(each.quote, 80)}”"
            lines.append(f"   superseded by {each.by}: {said} may no longer hold")
    return "\n".join(lines)


def say_composed(composed: Composed) -> str:
    told = f"build {composed.build_id}, {composed.tokens} of {composed.max_tokens} tokens"
    return f"{NOTICE}\n\n{composed.text}\n({told})" if composed.text else f"nothing to tell ({told})"


def say_read(part: Read) -> str:
    where = f"characters {part.start} to {part.end} of {part.chars}"
    more = "" if part.end >= part.chars else f"; read on from {part.end}"
    return f"{NOTICE}\n{part.event_id}, {where}{more}:\n\n{part.text}"


def say_recalled(recalled: Recalled) -> str:
    if not recalled.response.items:
        return "nothing was learnt that fits"
    return f"{NOTICE}\n\n{recalled.text}"


def say_claim(claim: RunClaim) -> str:
    rests = f"evidence: {len(claim.evidence_refs)}" if claim.evidence_refs else "no evidence"
    return f"{NOTICE}\n{claim.status} {claim.claim_id} ({rests}): {one_line(claim.statement, _LINE_MAX)}"


def say_receipt(receipt: Receipt) -> str:
    what = ", ".join(f"{name} {count}" for name, count in sorted(receipt.counts.items())) or "nothing was left of it"
    return f"forgotten, receipt {receipt.receipt_id}: {what}"


def say_explanation(explanation: Explanation) -> str:
    if explanation.build is not None:
        build = explanation.build
        lines = [NOTICE, f"{build.build_id} for a {build.purpose} took {len(build.selected)}:"]
        lines += [
            f"+ {_said(each)} ({one_line(str(each.get('why', '')), 160)})" for each in build.selected[:_SHOWN_MAX]
        ]
        lines.append(f"left out {build.omitted_count}:")
        lines += [f"- {_said(each)} ({each.get('reason')})" for each in build.omitted[:_SHOWN_MAX]]
        return "\n".join(lines)
    tellings = explanation.tellings or ()
    if not tellings:
        return "no build that is still kept told this"
    lines = [NOTICE]
    for each in tellings[:_SHOWN_MAX]:
        sources = ", ".join(each.evidence_ids[:_SHOWN_MAX]) or "no event"
        lines.append(f"{when(each.at)} {each.build_id} ({each.purpose}) from {sources}: {one_line(each.line, 200)}")
    return "\n".join(lines)


def _said(candidate: dict[str, Any]) -> str:
    return f"{candidate['section']}: {one_line(str(candidate['text']), 160)}"
