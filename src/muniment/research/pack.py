"""The bounded pack (RP-04, RP-05): claims checked against their sources, summaries, and the check of the report.

A summary is a title and claims by section, each a whole sentence of the output with the short form of its citations. No
sentence is cut, and nothing but claims is written, except one line if a perspective has none. Sizes are in bytes;
claims hold no line breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from sys import maxsize
from typing import Any, NamedTuple

from muniment.contracts.research import Perspective, SummaryPack
from muniment.core.canonical import canonical_text, digest, parse_json
from muniment.core.policy import Policy, ResearchLimits, ResearchPolicy
from muniment.core.scope import Span
from muniment.core.text.sentences import ByteOffsets, Seen
from muniment.errors import InvalidInput, WrongStage
from muniment.memory.corpus import Corpus
from muniment.memory.patches import texts_of
from muniment.research._figures import has_figure
from muniment.research._markdown import Claim, Reading, find_claims
from muniment.research.drafts import check_draft
from muniment.research.gates import gate_a, gate_d, gate_e
from muniment.research.plan import check_plan
from muniment.research.records import (
    CITABLE,
    CheckedClaim,
    Citation,
    DraftCheck,
    GateResult,
    Support,
    SynthesisInput,
)
from muniment.research.sources import (
    Judge,
    Judgement,
    SourceJudge,
    documents_of,
    first_chunks,
    gate_of_citations,
    gather_sources,
    readings_of,
)
from muniment.research.store import CITATIONS, NewArtifact, StudyChange, StudyView, pretty, with_inputs
from muniment.research.urls import short_cids
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

PACK = "summaries/summary-pack.json"
CLAIMS = "claims/claims.jsonl"
_NO_SUPPORT = "No finding of this perspective is supported by a source that may be cited."
_DUPLICATES = "Other perspectives report what this one found."
_NO_ROOM = "None of the findings of this perspective fits here."
_FLAGS: tuple[Support, ...] = ("refuted", "not_supported", "uncited")
"""Most serious first."""
_FIGURE_WORTH = 15
"""Points of confidence that a figure adds when summaries are filled."""


# -- claims -------------------------------------------------------------------------------------------


def check_claims(
    perspective_id: str, reading: Reading, citations: Mapping[str, Citation], judge: Judge, policy: ResearchPolicy
) -> list[CheckedClaim]:
    """Check each claim of an output against its citations, source by source; too many are cut to the best cited ones.

    The claims are returned in the order of the output.
    """
    offsets = ByteOffsets(reading.markdown)
    found = find_claims(reading, policy)
    ranked = sorted(
        range(len(found)), key=lambda at: (not found[at].cited, not found[at].closing, not found[at].figure)
    )
    chosen = sorted(ranked[: policy.claims_checked_max], key=lambda at: (found[at].cited or found[at].closing)[:1])
    checked = {at: _checked(perspective_id, found[at], citations, judge, offsets, policy) for at in chosen}
    return [checked[at] for at in sorted(checked)]


def _checked(
    perspective_id: str,
    claim: Claim,
    citations: Mapping[str, Citation],
    judge: Judge,
    offsets: ByteOffsets,
    policy: ResearchPolicy,
) -> CheckedClaim:
    sentence = claim.sentence
    cited = claim.cited or claim.closing
    citable = [cid for cid in cited if cid in citations and citations[cid].status in CITABLE]
    judged = judge(sentence.text, citable)
    if not claim.cited:  # a mark that closes the paragraph counts only if the check confirms it
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
    """Combine the judgements on a claim's citations: the best one counts. A claim refuted by a source is not
    unchecked.
    """
    if not cited:
        return "uncited", None, "it cites nothing"
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
    """Flag a sentence with instructions to its reader: it is no finding, even if a source contains it (LG-08).

    It stays among the claims, but goes into no pack; the same holds for such a heading or quotation.
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
    """The claims as checked for the pack."""
    if CLAIMS not in view.artifacts:
        return []
    return [CheckedClaim.from_wire(parse_json(line)) for line in view.text(CLAIMS).splitlines()]


class Summary(NamedTuple):
    markdown: str
    used: tuple[CheckedClaim, ...]
    """Best first."""


class PackEntry(NamedTuple):
    """A perspective with an accepted output."""

    perspective: Perspective
    source_artifact: str
    """Path of the output in the run directory."""
    claims: Sequence[CheckedClaim]
    """As checked, in order."""


# -- one summary --------------------------------------------------------------------------------------


def write_summary(
    perspective: Perspective,
    claims: Sequence[CheckedClaim],
    bytes_max: int,
    short: Mapping[str, str],
    policy: ResearchPolicy,
    nothing: str = _NO_SUPPORT,
) -> Summary:
    """Write the best claims that fit into `bytes_max` bytes of UTF-8; `nothing` is the line used without claims."""
    page = _Page(perspective, bytes_max, short, policy)
    for claim in best_first(claims):
        if page.size + page.cost(claim) <= bytes_max:
            page.add(claim)
    if not page.used:
        page.remark(_NO_ROOM if claims else nothing)
    return Summary(page.markdown(), tuple(page.used))


def best_first(claims: Sequence[CheckedClaim]) -> list[CheckedClaim]:
    """Rank claims by their support, figures first, then by position."""
    return sorted(claims, key=lambda claim: -(claim.confidence + _FIGURE_WORTH * has_figure(claim.claim)))


def is_packable(claim: CheckedClaim) -> bool:
    """Return whether its source supports it, or may be cited and has no text to check against."""
    return claim.support in ("supported", "unchecked") and bool(claim.citation_cids)


def is_flagged(claim: CheckedClaim) -> bool:
    """Return whether its sources do not support it, or it gives a figure and names no source."""
    if claim.support == "uncited":
        return has_figure(claim.claim)
    return claim.support in ("refuted", "not_supported")


def drop_near_duplicates(claims: Sequence[CheckedClaim], overlap_min: float) -> list[int]:
    """Positions of the claims that are kept: of those in nearly the same words, the best supported."""
    seen = Seen(overlap_min)
    kept: list[int] = []
    for at in sorted(range(len(claims)), key=lambda at: (-claims[at].confidence, at)):
        if seen.find(claims[at].claim) is None:
            seen.add(claims[at].claim, str(at))
            kept.append(at)
    return sorted(kept)


class _Page:
    """A summary under construction, with its size in bytes."""

    def __init__(
        self, perspective: Perspective, bytes_max: int, short: Mapping[str, str], policy: ResearchPolicy
    ) -> None:
        self.perspective = perspective
        self.policy = policy
        self.used: list[CheckedClaim] = []
        self._short = short
        self._bytes_max = bytes_max
        self._head = f"# {_on_one_line(perspective.title)}\n"
        self._sections: dict[str, list[CheckedClaim]] = {}
        self._remark = ""
        self.size = len(self._head.encode())
        if self.size > bytes_max:
            raise InvalidInput(
                f"the summary of {perspective.id} has {bytes_max} bytes, and its title alone takes {self.size}",
                hint="raise max_summary_kb or max_total_summary_kb, or give the perspective a shorter title",
                details={"perspective_id": perspective.id, "bytes_max": bytes_max, "bytes_needed": self.size},
            )

    def cost(self, claim: CheckedClaim) -> int:
        """Bytes it would add: its line, and the heading of its section if new."""
        heading = "" if claim.section in self._sections else _heading(claim.section)
        return len((heading + self._line(claim)).encode())

    def add(self, claim: CheckedClaim) -> None:
        self.size += self.cost(claim)
        self._sections.setdefault(claim.section, []).append(claim)
        self.used.append(claim)

    def remark(self, text: str) -> None:
        """Add a line other than a claim, if it fits."""
        line = f"\n{text}\n"
        if self.size + len(line.encode()) <= self._bytes_max:
            self.size += len(line.encode())
            self._remark = line

    def markdown(self) -> str:
        """The summary in the order of the output; claims without a heading come first."""
        groups = [(section, sorted(held, key=_position)) for section, held in self._sections.items()]
        groups.sort(key=lambda group: (group[0] != "", _position(group[1][0])))
        body = [_heading(section) + "".join(map(self._line, held)) for section, held in groups]
        return "".join((self._head, *body, self._remark))

    def _line(self, claim: CheckedClaim) -> str:
        marks = "".join(f" [{self._short.get(cid, cid)}]" for cid in claim.citation_cids[: self.policy.claim_cids_max])
        return f"- {claim.claim}{marks}\n"


def _heading(section: str) -> str:
    return f"\n## {_on_one_line(section)}\n\n" if section else "\n"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _position(claim: CheckedClaim) -> tuple[int, int]:
    return claim.span.start, claim.span.end


# -- shares -------------------------------------------------------------------------------------------


def allot(demands: Sequence[int], each_max: int, total_max: int) -> list[int]:
    """Share `total_max` bytes equally, none over `each_max`; bytes that one demand does not need go to the others.

    No demand is exceeded, and no usable byte is left; odd bytes go to the first.
    """
    wanted = [min(demand, each_max) for demand in demands]
    given = [0] * len(wanted)
    left = total_max
    by_need = sorted(range(len(wanted)), key=lambda at: (wanted[at], at))
    for done, at in enumerate(by_need):
        share, odd = divmod(left, len(by_need) - done)
        if wanted[at] > share:
            for rank, other in enumerate(sorted(by_need[done:])):
                given[other] = share + (rank < odd)
            break
        given[at] = wanted[at]
        left -= wanted[at]
    return given


# -- the pack -----------------------------------------------------------------------------------------


class _Kept(NamedTuple):
    """An entry with its packable claims, without those that another entry has with better support."""

    entry: PackEntry
    claims: list[CheckedClaim]
    duplicates: int


def summary_path(perspective_id: str) -> str:
    return f"summaries/{perspective_id}.summary.md"


def build_pack(
    run_id: str,
    generated_at: str,
    limits: ResearchLimits,
    entries: Sequence[PackEntry],
    citations: Sequence[Citation],
    question: str,
    policy: ResearchPolicy,
    count_tokens: Callable[[str], int],
) -> tuple[SummaryPack, dict[str, str]]:
    """Build the pack, and its summaries by path.

    `total_estimated_tokens` counts the input of a synthesis: the pack's canonical JSON, with 0 in this place, and the
    summaries. A claim made by several perspectives is kept for the one whose source supports it best.
    """
    short = short_cids([citation.cid for citation in citations])
    kept = _keep(entries, policy)
    demands = [_demand(one, short, policy) for one in kept]
    shares = allot(demands, limits.summary_bytes_max, limits.total_bytes_max)
    summaries: dict[str, str] = {}
    listed: list[dict[str, Any]] = []
    cited: set[str] = set()
    for one, share in zip(kept, shares, strict=True):
        nothing = _DUPLICATES if one.duplicates else _NO_SUPPORT
        summary = write_summary(one.entry.perspective, one.claims, share, short, policy, nothing)
        listed.append(_entry(one, summary.used, limits, policy))
        summaries[listed[-1]["summary_md"]] = summary.markdown
        cited.update(cid for claim in summary.used for cid in claim.citation_cids[: policy.claim_cids_max])
    pack = {
        "schema_version": "summary_pack.v1",
        "run_id": run_id,
        "generated_at": generated_at,
        "question": question,
        "limits": limits.model_dump(mode="json"),
        "summaries": listed,
        "sources": [
            _source(each, short, policy) for each in sorted(citations, key=lambda one: one.cid) if each.cid in cited
        ],
        "total_estimated_tokens": 0,
    }
    pack["total_estimated_tokens"] = count_tokens(canonical_text(pack)) + sum(map(count_tokens, summaries.values()))
    return SummaryPack.from_wire(pack), summaries


def _keep(entries: Sequence[PackEntry], policy: ResearchPolicy) -> list[_Kept]:
    """Keep the packable claims of each entry, removing near duplicates across all entries."""
    packable = [(owner, claim) for owner, entry in enumerate(entries) for claim in entry.claims if is_packable(claim)]
    stay = [packable[at] for at in drop_near_duplicates([claim for _, claim in packable], policy.near_duplicate)]
    kept = [[claim for owner, claim in stay if owner == at] for at in range(len(entries))]
    return [
        _Kept(entry, claims, sum(map(is_packable, entry.claims)) - len(claims))
        for entry, claims in zip(entries, kept, strict=True)
    ]


def _demand(kept: _Kept, short: Mapping[str, str], policy: ResearchPolicy) -> int:
    """Size in bytes of a summary with all claims."""
    nothing = _DUPLICATES if kept.duplicates else _NO_SUPPORT
    return len(write_summary(kept.entry.perspective, kept.claims, maxsize, short, policy, nothing).markdown.encode())


def _entry(kept: _Kept, used: Sequence[CheckedClaim], limits: ResearchLimits, policy: ResearchPolicy) -> dict[str, Any]:
    flagged = sorted(filter(is_flagged, kept.entry.claims), key=lambda claim: _FLAGS.index(claim.support))
    return {
        "perspective_id": kept.entry.perspective.id,
        "source_artifact": kept.entry.source_artifact,
        "summary_md": summary_path(kept.entry.perspective.id),
        "key_claims": [_key_claim(claim, policy) for claim in used if len(claim.claim) <= policy.claim_chars_max][
            : limits.max_key_claims
        ],
        "left_out": len(kept.claims) - len(used),
        "duplicates": kept.duplicates,
        "flagged": [
            {"claim": claim.claim, "reason": claim.reason, "cited": list(claim.cited[: policy.claim_cids_max])}
            for claim in flagged
            if len(claim.claim) <= policy.claim_chars_max
        ][: policy.flagged_max],
        "flagged_total": len(flagged),
    }


def _key_claim(claim: CheckedClaim, policy: ResearchPolicy) -> dict[str, Any]:
    made: dict[str, Any] = {
        "claim": claim.claim,
        "citation_cids": list(claim.citation_cids[: policy.claim_cids_max]),
        "confidence": claim.confidence,
        "support": claim.support,
    }
    if claim.evidence_id is not None:
        made["evidence_id"] = claim.evidence_id
    if claim.quote is not None and len(claim.quote) <= policy.snippet_chars_max:
        made["quote"] = claim.quote
    return made


def _source(citation: Citation, short: Mapping[str, str], policy: ResearchPolicy) -> dict[str, Any]:
    title = {} if citation.title is None else {"title": citation.title[: policy.snippet_chars_max]}
    return {
        "cid": citation.cid,
        "short": short[citation.cid],
        "url": citation.url,
        **title,
        "status": citation.status,
    }


# -- steps of a study -----------------------------------------------------------------------------------------


def pack_study(view: StudyView, corpus: Corpus, policy: Policy, now: str) -> tuple[StudyChange, SummaryPack]:
    """Check every claim, write bounded summaries, and measure the result."""
    need_stage(view, "citations", "summaries", "synthesis", doing="packing")
    need_gate(view.gate("C"))
    manifest, rules = view.manifest, policy.research
    by_cid = {citation.cid: citation for citation in view.citations}
    documents = documents_of(corpus)
    judge = SourceJudge(corpus, documents, policy)
    paths = {result.perspective_id: result.path or "" for result in manifest.results if result.accepted}
    perspectives = {each.id: each for each in view.perspectives}
    orders = reads_like_instructions if policy.ledger.flag_instructions else _never
    claims: list[CheckedClaim] = []
    entries: list[PackEntry] = []
    for perspective_id, reading in readings_of(view):
        checked = [_disarmed(each, orders) for each in check_claims(perspective_id, reading, by_cid, judge, rules)]
        claims += checked
        kept = tuple(claim for claim in checked if not orders(claim.claim))
        entries.append(PackEntry(perspectives[perspective_id], paths[perspective_id], kept))
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
    change = StudyChange(
        what=f"packed {len(pack.summaries)} summaries",
        stage="synthesis" if holds else "summaries",
        gates=[gate, GateResult(gate="E", status="not_run")],
        artifacts=[
            *(NewArtifact(path, text) for path, text in summaries.items()),
            NewArtifact(PACK, pretty(pack.to_wire())),
            NewArtifact(CLAIMS, lines),
        ],
        removed=[path for path in view.artifacts if path.startswith("summaries/") and path not in summaries],
        sources=first_chunks(each for cid, each in documents.items() if cid in by_cid),
    )
    return change, pack


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
) -> tuple[StudyChange, DraftCheck]:
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
    packed: dict[str, list[str]] = {}
    for entry in pack.summaries:
        for claim in entry.key_claims:
            for cid in claim.citation_cids:
                packed.setdefault(cid, []).append(claim.claim)
    judge = SourceJudge(corpus, documents_of(corpus), policy, packed)
    review = view.manifest.reviews + 1
    check = check_draft(text, pack, view.citations, wanted, review, digest(text.encode()).hex(), judge)
    gate = gate_e(check, now)
    about = {"review": review, "passed": check.passed}
    change = StudyChange(
        what=f"draft {review}: {'passed' if check.passed else f'{len(check.findings)} findings'}",
        stage="done" if check.passed else None,
        manifest={"reviews": review},
        gates=[gate],
        artifacts=[NewArtifact(None, text, "assistant", about)],
    )
    return change, check


# -- current gates -------------------------------------------------------------------------------------


def evaluate_gates(view: StudyView, files: Mapping[str, bytes], policy: Policy, now: str) -> list[GateResult]:
    """Evaluate every gate on the current state, D on the bytes on disk; gates whose stage is not reached are
    unchanged.
    """
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
