"""Check an output against documents: each sentence gets a verdict, its evidence, and a correction if there is one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from muniment.contracts.runs import FGFCEvidence, FGFCOverall, FGFCReport, FGFCUnit
from muniment.core.limits import checkpoint
from muniment.core.policy import FactCheckPolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.text.patterns import lazy_pattern
from muniment.verify.facts._doubts import Before, Doubt, relation_doubts, word_doubts
from muniment.verify.facts._score import Measured, Nearness, measure_nearness, support
from muniment.verify.facts._source import Claim, Source, SourceText, Unit, read_claim, split_units, unmarked
from muniment.verify.facts._swaps import Alignment, match_slots

Verdict = Literal["SUPPORTED", "REFUTED", "NOT_ENOUGH_INFO"]
_WORD_FOR_WORD = Alignment(swapped=-9.0)
"""For a verbatim claim: no slot is in doubt."""


class Judged(NamedTuple):
    """A unit with its findings."""

    unit: Unit
    claim: Claim
    doubts: tuple[Doubt, ...]
    nearness: Nearness
    alignment: Alignment
    """Its slots by kind: how many the source supports, does not support, or contradicts."""
    exact: int | None
    """The source sentence that states it verbatim, which overrides any doubt."""


def check_facts(
    output: str,
    documents: Sequence[SourceText],
    *,
    policy: FactCheckPolicy,
    unitization: Literal["sentence", "atomic_claim"] = "sentence",
) -> FGFCReport:
    """Check an output. `support`, a number from 0 to 1, is an extra key of each unit and of the whole report."""
    return check_source(output, Source(documents), policy=policy, unitization=unitization)


def check_source(
    output: str,
    source: Source,
    *,
    policy: FactCheckPolicy,
    unitization: Literal["sentence", "atomic_claim"] = "sentence",
) -> FGFCReport:
    """Run `check_facts` on documents that were read already."""
    judged = judge_units(output, source, policy, unitization)
    evidence = _Evidence(source, policy)
    units = tuple(_unit(one, evidence, policy) for one in judged)
    verdicts = [unit.verdict for unit in units]
    measured = [_measured(one, verdict) for one, verdict in zip(judged, verdicts, strict=True)]
    overall = FGFCOverall.model_validate(
        {
            "supported": verdicts.count("SUPPORTED"),
            "refuted": verdicts.count("REFUTED"),
            "nei": verdicts.count("NOT_ENOUGH_INFO"),
            "support": support(measured, policy),
        }
    )
    return FGFCReport(
        schema_version=RULECRAFT_VERSION, mode="infi_check_v1", unitization=unitization, units=units, overall=overall
    )


def judge_units(
    output: str, source: Source, policy: FactCheckPolicy, unitization: Literal["sentence", "atomic_claim"] = "sentence"
) -> list[Judged]:
    """Judge every unit: its doubts and its nearness; a unit without a word has neither."""
    judged: list[Judged] = []
    stated = unmarked(output, source)
    units = split_units(stated, unitization)
    before = Before(alone=len(units) == 1)
    known: dict[tuple[str, Before], Judged] = {}
    """A statement repeated in the same context is judged once."""
    for unit in units:
        checkpoint()
        given = unit._replace(text=output[unit.start : unit.start + len(unit.text)])
        found = known.get((unit.text, before))
        if found is None:
            found = known[unit.text, before] = _judge(unit, source, policy, before)
        claim = found.claim
        judged.append(found._replace(unit=given))
        names = [word.key for word, role in zip(claim.words, claim.roles, strict=True) if role == "name"]
        before = Before(before.content or bool(claim.content), names[-1] if names else before.name, before.alone)
    return judged


def _judge(unit: Unit, source: Source, policy: FactCheckPolicy, before: Before) -> Judged:
    claim = read_claim(unit.text, source)
    exact = source.exact.get(unit.text)
    doubts: tuple[Doubt, ...] = ()
    alignment = Alignment()
    if exact is None:
        doubts = (*word_doubts(claim, source), *relation_doubts(claim, source, before, policy.absent_share))
        alignment, more = match_slots(claim, source, policy, doubts)
        doubts = (*doubts, *more)
    return Judged(unit, claim, doubts, measure_nearness(claim, source), alignment, exact)


def measure_units(output: str, source: Source, policy: FactCheckPolicy) -> list[Measured]:
    """Every unit in the form the score uses."""
    judged = judge_units(output, source, policy)
    return [_measured(one, _verdict(one, _heavy(one, policy), policy)) for one in judged]


def _heavy(judged: Judged, policy: FactCheckPolicy) -> list[Doubt]:
    """The doubts that affect the verdict, the worst first."""
    weights: dict[str, float] = vars(policy.doubts)
    heavy = [doubt for doubt in judged.doubts if not doubt.quiet and weights[doubt.kind] > 0]
    return sorted(heavy, key=lambda doubt: (-doubt.contradicts, -weights[doubt.kind] * doubt.weight, doubt.start))


class _Evidence:
    """The evidence of claims, cached for repeated ones."""

    def __init__(self, source: Source, policy: FactCheckPolicy) -> None:
        self._source, self._policy = source, policy
        self._places: dict[str, list[int]] = {}
        self._cited: dict[tuple[str, tuple[int, ...]], tuple[FGFCEvidence, ...]] = {}

    def of(self, claim: Claim, first: int) -> tuple[FGFCEvidence, ...]:
        """Cited sentences that support the claim; `first` is one that must be among them, or -1."""
        if claim.text not in self._places:
            found = pick_evidence(claim, self._source, self._policy) if len(self._source) else []
            self._places[claim.text] = found
        places = self._places[claim.text]
        if first >= 0:
            places = [first, *(place for place in places if place != first)][: self._policy.evidence_max]
        asked = claim.text, tuple(places)
        if asked not in self._cited:
            self._cited[asked] = tuple(cite(place, claim.keys, self._source, self._policy) for place in places)
        return self._cited[asked]


def _unit(judged: Judged, evidence: _Evidence, policy: FactCheckPolicy) -> FGFCUnit:
    claim = judged.claim
    heavy = _heavy(judged, policy)
    worst = heavy[0] if heavy else None
    verdict = _verdict(judged, heavy, policy)
    first = judged.exact if judged.exact is not None else worst.place if worst is not None else -1
    return FGFCUnit.model_validate(
        {
            "unit_id": judged.unit.id,
            "text": judged.unit.text,
            "verdict": verdict,
            "error_type": worst.error if worst is not None and verdict != "SUPPORTED" else None,
            "evidence": evidence.of(claim, first),
            "justification": _justify(claim, heavy, verdict),
            "correction": _corrected(judged.unit.text, heavy) if verdict == "REFUTED" else None,
            "support": support([_measured(judged, verdict)], policy),
        }
    )


def _measured(judged: Judged, verdict: str | None) -> Measured:
    alignment = judged.alignment if judged.exact is None else _WORD_FOR_WORD
    return Measured(judged.doubts, judged.nearness, alignment, verdict == "SUPPORTED")


def _verdict(judged: Judged, heavy: Sequence[Doubt], policy: FactCheckPolicy) -> Verdict:
    claim = judged.claim
    if judged.exact is not None:
        return "SUPPORTED"
    if heavy and heavy[0].contradicts:
        return "REFUTED"
    if heavy or claim.best < 0 or claim.covered < policy.cover_min:
        return "NOT_ENOUGH_INFO"
    return "SUPPORTED"


def _justify(claim: Claim, heavy: Sequence[Doubt], verdict: Verdict) -> str:
    if heavy:
        return "; ".join(dict.fromkeys(doubt.why for doubt in heavy[:3]))
    if verdict == "SUPPORTED":
        return "the evidence says it, and nothing in it speaks against it"
    return "nothing in the source says it" if claim.best < 0 else "too little of it is in the source"


def _corrected(text: str, heavy: Sequence[Doubt]) -> str | None:
    """The claim with its contradicted words replaced by the evidence's; None if there is no replacement."""
    known = sorted((doubt for doubt in heavy if doubt.instead is not None), key=lambda doubt: -doubt.start)
    edge = len(text) + 1
    fixed = text
    for doubt in known:
        if doubt.end > edge:
            continue
        new = doubt.instead or ""
        end = doubt.end + (not new and text[doubt.end : doubt.end + 1] == " ")
        fixed, edge = fixed[: doubt.start] + new + fixed[end:], doubt.start
    return fixed if fixed != text else None


# -- evidence ------------------------------------------------------------------------------------------

_SPACED = lazy_pattern(r"\S+")
_WORD_CHARS_MAX = 100
"""Characters that count as one word in text without spaces."""


def pick_evidence(claim: Claim, source: Source, policy: FactCheckPolicy) -> list[int]:
    """Sentences that together cover most of the claim: the best one, then each that adds enough."""
    held: dict[str, dict[int, float]] = {}
    for key, form in dict.fromkeys((claim.words[at].key, form) for at in claim.content for form in claim.variants[at]):
        worth = form.degree * source.rarity(form.key)
        by_place = held.setdefault(key, {})
        for place in source.spread[form.key]:
            by_place[place] = max(by_place.get(place, 0.0), worth)
    total = sum(max(by_place.values()) for by_place in held.values())
    have = dict.fromkeys(held, 0.0)
    picked: list[int] = []
    while len(picked) < policy.evidence_max:
        gains: dict[int, float] = {}
        for key, by_place in held.items():
            for place, worth in by_place.items():
                if worth > have[key]:
                    gains[place] = gains.get(place, 0.0) + worth - have[key]
        best = max(gains, key=lambda place: (gains[place], -place), default=-1)
        if best < 0 or (picked and gains[best] < policy.evidence_gain_min * total):
            break
        picked.append(best)
        for key, by_place in held.items():
            have[key] = max(have[key], by_place.get(best, 0.0))
    return picked


def cite(place: int, keys: Collection[str], source: Source, policy: FactCheckPolicy) -> FGFCEvidence:
    """A source sentence as evidence; a long one is cut to the stretch with most of the given words."""
    sentence = source.sentences[place]
    document = source.documents[sentence.document]
    text = document.text[sentence.start : sentence.end]
    most = policy.quote_words_max
    parts = text.split()
    if len(parts) <= most and max(map(len, parts), default=0) <= _WORD_CHARS_MAX:
        ref = f"{document.source}:{document.id}#c{sentence.start}-{sentence.end}"
        return FGFCEvidence(source=document.source, ref=ref, quote=text)
    spans = _pieces(text)
    marks, ends = [0] * len(spans), [end for _, end in spans]
    for word in sentence.words:
        if word.kind != "small" and word.key in keys:
            marks[bisect_right(ends, word.start)] += 1
    first = max(range(max(1, len(spans) - most + 1)), key=lambda at: (sum(marks[at : at + most]), -at))
    start, end = spans[first][0], spans[min(len(spans), first + most) - 1][1]
    ref = f"{document.source}:{document.id}#c{sentence.start + start}-{sentence.start + end}"
    return FGFCEvidence(source=document.source, ref=ref, quote=text[start:end])


def _pieces(text: str) -> list[tuple[int, int]]:
    """Words between spaces; a long run without a space is cut."""
    return [
        (start, min(found.end(), start + _WORD_CHARS_MAX))
        for found in _SPACED.finditer(text)
        for start in range(found.start(), found.end(), _WORD_CHARS_MAX)
    ]
