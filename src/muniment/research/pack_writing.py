"""From checked citations to the bounded pack, and a draft checked against it (RP-04 … RP-08)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from muniment.contracts.research import SummaryPack
from muniment.core.canonical import canonical_text, digest, parse_json
from muniment.core.scope import Span
from muniment.core.text.sentences import ByteOffsets
from muniment.errors import InvalidInput, WrongStage
from muniment.memory.patches import texts_of
from muniment.research.citations import gather_sources
from muniment.research.drafts import check_draft
from muniment.research.gates import gate_a, gate_d, gate_e
from muniment.research.judging import Judge, Judgement
from muniment.research.packing import PackEntry, build_pack
from muniment.research.questions.perspectives import check_plan
from muniment.research.reading.claims import Candidate, find_claims
from muniment.research.reading.outputs import Reading
from muniment.research.run_records import (
    CITABLE,
    CheckedClaim,
    Citation,
    DraftCheck,
    GateResult,
    Support,
    SynthesisInput,
)
from muniment.research.source_judging import SourceJudge
from muniment.research.study_sources import first_chunks, gate_of_citations, readings_of, shelved_of
from muniment.research.study_store import CITATIONS, New, Step, StudyView, pretty, with_inputs
from muniment.research.waves import (
    check_size,
    gate_of_waves,
    need_gate,
    need_stage,
    wave_of,
    well_formed,
    without_secrets,
)
from muniment.store.injection import reads_like_instructions

if TYPE_CHECKING:
    from muniment.core.policy import Policy, ResearchPolicy
    from muniment.memory.corpus import Corpus

__all__ = ["CLAIMS", "PACK", "check_report", "claims_of", "evaluate_gates", "pack_study", "synthesis_input"]

PACK = "summaries/summary-pack.json"
CLAIMS = "claims/claims.jsonl"


# -- claims -------------------------------------------------------------------------------------------


def check_claims(
    perspective_id: str, reading: Reading, citations: Mapping[str, Citation], judge: Judge, policy: ResearchPolicy
) -> list[CheckedClaim]:
    """Each claim of an output against the citations beside it, in order; the first ones, where there are too many."""
    offsets = ByteOffsets(reading.markdown)
    found = _most_telling(find_claims(reading, policy), policy.claims_checked_max)
    return [_checked(perspective_id, each, citations, judge, offsets, policy) for each in found]


def _most_telling(found: Sequence[Candidate], most: int) -> list[Candidate]:
    """The claims that tell most: those with citations before those without, those with figures first; in the order of
    the output.
    """
    if len(found) <= most:
        return list(found)
    ranked = sorted(
        range(len(found)), key=lambda at: (not found[at].cited, not found[at].candidates, not found[at].figure, at)
    )
    return [found[at] for at in sorted(ranked[:most])]


def _checked(
    perspective_id: str,
    candidate: Candidate,
    citations: Mapping[str, Citation],
    judge: Judge,
    offsets: ByteOffsets,
    policy: ResearchPolicy,
) -> CheckedClaim:
    sentence = candidate.sentence
    cited = candidate.cited or candidate.candidates
    citable = [cid for cid in cited if cid in citations and citations[cid].status in CITABLE]
    judged = judge(sentence.text, citable)
    if not candidate.cited:  # a mark that closes the paragraph is theirs only if the check says so
        judged = {cid: each for cid, each in judged.items() if each.support == "supported"}
        cited = tuple(judged)
    support, best, reason = _weigh(cited, citable, judged, citations)
    bearing = [cid for cid, each in judged.items() if each.support == support][: policy.claim_cids_max]
    plain: dict[str, Any] = {
        "perspective_id": perspective_id,
        "claim": sentence.text,
        "section": sentence.section,
        "span": Span(start=offsets[sentence.start], end=offsets[sentence.end]),
        "cited": tuple(cited),
        "citation_cids": tuple(bearing) if support in ("supported", "unchecked") else (),
        "support": support,
        "confidence": 0 if best is None else best.confidence,
        "reason": reason,
    }
    if best is not None and best.evidence_id is not None:
        plain["evidence_id"] = best.evidence_id
    if best is not None and best.quote is not None:
        plain["quote"] = best.quote
    return CheckedClaim.model_validate(plain)


_BEST_FIRST: tuple[Support, ...] = ("supported", "unchecked", "refuted", "not_supported")


def _weigh(
    cited: Sequence[str], citable: Sequence[str], judged: Mapping[str, Judgement], citations: Mapping[str, Citation]
) -> tuple[Support, Judgement | None, str]:
    """What all its citations together say of a claim: the best of them. One that a source refutes is not unchecked."""
    if not cited:
        return "uncited", None, "no citation stands beside it"
    if not citable:
        states = sorted({citations[cid].status if cid in citations else "unknown" for cid in cited})
        return "not_supported", None, f"its citations may not be cited: {', '.join(states)}"
    if any(each.support == "refuted" for each in judged.values()):
        order: tuple[Support, ...] = ("supported", "refuted", "unchecked", "not_supported")
    else:
        order = _BEST_FIRST
    best = min(judged.values(), key=lambda each: (order.index(each.support), -each.confidence))
    return best.support, best, best.reason


def _disarmed(claim: CheckedClaim, orders: Callable[[str], bool]) -> CheckedClaim:
    """A sentence that tells its reader what to do is no finding, whatever source says it too (LG-08).

    It stays among the claims, flagged, and goes into no pack; neither does such a heading or quote of another.
    """
    plain = claim.to_wire()
    if orders(claim.claim):
        reason = "it reads like instructions to its reader, not like a finding"
        plain |= {"support": "not_supported", "citation_cids": [], "confidence": 0, "reason": reason}
    elif not orders(claim.section) and not orders(claim.quote or ""):
        return claim
    if orders(claim.section):
        plain["section"] = ""
    if orders(claim.quote or ""):
        del plain["quote"]
    return CheckedClaim.from_wire(plain)


def _untitled(citation: Citation) -> Citation:
    return Citation.from_wire({key: value for key, value in citation.to_wire().items() if key != "title"})


def _never(_text: str) -> bool:
    return False


def claims_of(view: StudyView) -> list[CheckedClaim]:
    """The claims as they were checked when the pack was made."""
    if CLAIMS not in view.artifacts:
        return []
    return [CheckedClaim.from_wire(parse_json(line)) for line in view.text(CLAIMS).splitlines()]


# -- the pack -----------------------------------------------------------------------------------------


def pack_study(view: StudyView, corpus: Corpus, policy: Policy, now: str) -> tuple[Step, SummaryPack]:
    """Check every claim, bound every summary, and measure what came of it."""
    need_stage(view, "citations", "summaries", "synthesis", doing="packing")
    need_gate(view.gate("C"))
    manifest, rules = view.manifest, policy.research
    by_cid = {citation.cid: citation for citation in view.citations}
    shelved = shelved_of(corpus)
    judge = SourceJudge(corpus, shelved, policy)
    paths = {result.perspective_id: result.path or "" for result in manifest.results if result.accepted}
    perspectives = {each.id: each for each in view.perspectives}
    orders = reads_like_instructions if policy.ledger.flag_instructions else _never
    claims: list[CheckedClaim] = []
    entries: list[PackEntry] = []
    for perspective_id, reading in readings_of(view):
        checked = [_disarmed(each, orders) for each in check_claims(perspective_id, reading, by_cid, judge, rules)]
        claims += checked
        told = tuple(claim for claim in checked if not orders(claim.claim))
        entries.append(PackEntry(perspectives[perspective_id], paths[perspective_id], told))
    pack, summaries = build_pack(
        manifest.run_id,
        now,
        manifest.limits,
        entries,
        [_untitled(each) if orders(each.title or "") else each for each in view.citations],
        manifest.question,
        rules,
        view.ctx.counter.count,
    )
    files = {path: text.encode() for path, text in summaries.items()}
    gate = gate_d(
        pack, files, manifest.limits, view.perspectives, view.citations, rules, now, given_up=manifest.given_up
    )
    lines = "".join(canonical_text(claim.to_wire()) + "\n" for claim in claims)
    holds = gate.status == "pass"
    step = Step(
        what=f"packed {len(pack.summaries)} summaries",
        stage="synthesis" if holds else "summaries",
        gates=[gate, GateResult(gate="E", status="not_run")],
        artifacts=[
            *(New(path, text) for path, text in summaries.items()),
            New(PACK, pretty(pack.to_wire())),
            New(CLAIMS, lines),
        ],
        removed=[path for path in view.artifacts if path.startswith("summaries/") and path not in summaries],
        sources=first_chunks(each for cid, each in shelved.items() if cid in by_cid),
    )
    return step, pack


def pack_of(view: StudyView) -> SummaryPack:
    return SummaryPack.from_wire(parse_json(view.text(PACK)))


def synthesis_input(view: StudyView) -> SynthesisInput:
    """The pack and its summaries, and nothing else (RP-06)."""
    if view.manifest.stage not in ("synthesis", "done"):
        raise WrongStage(
            f"there is no pack to synthesise from: the run is at {view.manifest.stage}",
            path="$.stage",
            details={"stage": view.manifest.stage},
        )
    pack = pack_of(view)
    return SynthesisInput(
        pack=pack, summaries={entry.summary_md: view.text(entry.summary_md) for entry in pack.summaries}
    )


# -- the report ---------------------------------------------------------------------------------------


def check_report(
    view: StudyView, corpus: Corpus, policy: Policy, draft: Any, sections: Any, now: str
) -> tuple[Step, DraftCheck]:
    """Check a draft against the pack and the stored sources (gate E); each check is a review round."""
    need_stage(view, "synthesis", doing="checking a draft")
    if not isinstance(draft, str):
        raise InvalidInput(f"a draft is Markdown, not {type(draft).__name__}", path="$.draft")
    draft = well_formed(draft, "$.draft")
    check_size(draft, policy.research)
    limit = view.manifest.limits.max_review_rounds
    if view.manifest.reviews >= limit:
        raise WrongStage(
            f"this run has had its {limit} review rounds",
            path="$.stage",
            hint="start another run, or accept the draft as it is: the findings are in gates.json",
        )
    text = without_secrets(view.ctx, draft)
    wanted = policy.research.report_sections if sections is None else texts_of(sections, "$.sections")
    for at, name in enumerate(wanted):
        well_formed(name, f"$.sections[{at}]")
    pack = pack_of(view)
    said: dict[str, list[str]] = {}
    for entry in pack.summaries:
        for claim in entry.key_claims:
            for cid in claim.citation_cids:
                said.setdefault(cid, []).append(claim.claim)
    judge = SourceJudge(corpus, shelved_of(corpus), policy, said)
    review = view.manifest.reviews + 1
    check = check_draft(text, pack, view.citations, wanted, review, digest(text.encode()).hex(), judge)
    gate = gate_e(check, now)
    told = {"review": review, "passed": check.passed}
    step = Step(
        what=f"draft {review}: {'passed' if check.passed else f'{len(check.findings)} findings'}",
        stage="done" if check.passed else None,
        manifest={"reviews": review},
        gates=[gate],
        artifacts=[New(None, text, "assistant", told)],
    )
    return step, check


# -- gates as they stand ------------------------------------------------------------------------------


def evaluate_gates(view: StudyView, files: Mapping[str, bytes], policy: Policy, now: str) -> list[GateResult]:
    """Every gate from what there is now, D on the bytes on disk; one whose turn has not come is as it was kept."""
    rules, manifest = policy.research, view.manifest
    gates: list[GateResult] = []
    if view.perspectives:
        first = [each for each in view.perspectives if wave_of(each) == 1]
        issues = check_plan(first, rules, manifest.limits, manifest.agent_types, 1)
        gates += [gate_a(view.perspectives, issues, now), gate_of_waves(view, rules, now)]
    if CITATIONS in view.artifacts:
        gates.append(gate_of_citations(view.citations, gather_sources(readings_of(view)), rules, now))
    if PACK in view.artifacts:
        summaries = {path: data for path, data in files.items() if path.endswith(".summary.md")}
        pack = pack_of(view)
        known = (manifest.limits, view.perspectives, view.citations, rules, now)
        gates.append(gate_d(pack, summaries, *known, given_up=manifest.given_up))
    done = {gate.gate for gate in gates}
    looked = [with_inputs(gate, manifest.artifacts) for gate in gates]
    return [*looked, *(gate for gate in view.gates.gates if gate.gate not in done)]
