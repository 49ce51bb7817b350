"""The short text of each answer: for models and people who do not read the structured content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muniment.core.canonical import canonical_text
from muniment.store.ledger import INSTRUCTION_LIKE
from muniment.surfaces.cli.terminal import one_line, when
from muniment.surfaces.mcp.answers import (
    NOTICE,
    Choice,
    Composed,
    Erased,
    Explanation,
    Found,
    FoundHit,
    Known,
    Lessons,
    Read,
    Recorded,
    Remembered,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muniment.core.record import JsonValue
    from muniment.runs.records import RunClaim

__all__ = [
    "say_claim",
    "say_composed",
    "say_erased",
    "say_explanation",
    "say_found",
    "say_known",
    "say_lessons",
    "say_read",
    "say_recorded",
    "say_remembered",
]

_LINE_MAX = 600
_VALUE_MAX = 500
_SHOWN_MAX = 12


def say_recorded(entry: Recorded) -> str:
    flagged = f"; flagged {', '.join(entry.flags)}" if entry.flags else ""
    return f"recorded {entry.event_id} with trust {entry.trust}{flagged}"


def say_remembered(kept: Remembered, value: JsonValue) -> str:
    if kept.fact is None:
        return f"recorded {kept.event_id}; it will be found"
    fact = kept.fact
    told = value if isinstance(value, str) else canonical_text(value)
    said = f"{fact.status} {fact.fact_id}: {fact.key} = {told}"
    return f"{NOTICE}\n{one_line(said, _VALUE_MAX)} (from {', '.join(fact.sources[:_SHOWN_MAX])})"


def say_found(found: Found) -> str:
    if not found.hits:
        return "nothing found"
    lines = [NOTICE]
    for number, hit in enumerate(found.hits, 1):
        lines += _hit_lines(number, hit, is_read=hit.score is None)
    if found.more is not None:
        lines.append(f"({found.more})")
    return "\n".join(lines)


def _hit_lines(number: int, hit: FoundHit, *, is_read: bool) -> list[str]:
    who = hit.who or hit.kind
    flags = f", {', '.join(hit.flags)}" if hit.flags else ""
    head = f"{hit.id} · {when(hit.ts)} · {one_line(who, 60)} · trust {hit.trust}{flags}"
    if is_read:  # one entry, unshortened
        return [head, "", _as_data(hit.text, hit.flags)]
    cut = "…" if hit.start else "", "…" if hit.next is not None else ""
    said = _as_data(f"{cut[0]}{one_line(hit.text, _LINE_MAX)}{cut[1]}", hit.flags)
    return [f"{number}. {head}", f"   {said}"]


def _as_data(text: str, flags: Sequence[str] | None) -> str:
    """A stored text, with every line quoted if it reads like orders from outside (LG-08)."""
    if INSTRUCTION_LIKE not in (flags or ()):
        return text
    return "\n".join(f"> {line}" for line in text.splitlines())


def say_composed(composed: Composed) -> str:
    told = f"build {composed.build_id}, {composed.tokens} of {composed.max_tokens} tokens"
    return f"{NOTICE}\n\n{composed.text}\n({told})" if composed.text else f"nothing to tell ({told})"


def say_known(known: Known) -> str:
    return f"{NOTICE}\n\n{known.text}" if known.text else "the user said nothing of themselves yet"


def say_read(part: Read) -> str:
    where = f"characters {part.start} to {part.end} of {part.chars}"
    more = "" if part.end >= part.chars else f"; read on from {part.end}"
    return f"{NOTICE}\n{part.event_id}, {where}{more}:\n\n{_as_data(part.text, part.flags)}"


def say_lessons(lessons: Lessons) -> str:
    if not lessons.lessons:
        return "nothing was learnt that fits"
    return f"{NOTICE}\n\n{lessons.text}"


def say_claim(claim: RunClaim) -> str:
    rests = f"evidence: {len(claim.evidence_refs)}" if claim.evidence_refs else "no evidence"
    return f"{NOTICE}\n{claim.status} {claim.claim_id} ({rests}): {one_line(claim.statement, _LINE_MAX)}"


def say_erased(erased: Erased) -> str:
    what = ", ".join(f"{name} {count}" for name, count in sorted(erased.counts.items())) or "nothing was left of it"
    return f"forgotten, receipt {erased.receipt_id}: {what}"


def say_explanation(explanation: Explanation) -> str:
    more = [] if explanation.more is None else [f"({explanation.left_out} more; {explanation.more})"]
    if explanation.build is not None:
        build = explanation.build
        lines = [NOTICE, f"{build.build_id} for a {build.purpose} took {build.selected_count}:"]
        lines += [f"+ {_said(each)}" for each in build.selected]
        lines.append(f"left out {build.omitted_count}:")
        lines += [f"- {_said(each)}" for each in build.omitted]
        return "\n".join(lines + more)
    tellings = explanation.tellings or ()
    if not tellings:
        return "no build that is still kept told this"
    lines = [NOTICE]
    for each in tellings:
        sources = ", ".join(each.sources) or "no event"
        lines.append(f"{when(each.at)} {each.build_id} ({each.purpose}) from {sources}: {one_line(each.line, 300)}")
    return "\n".join(lines + more)


def _said(choice: Choice) -> str:
    return f"{choice.section}: {one_line(choice.text, 160)} ({one_line(choice.why, 160)})"
