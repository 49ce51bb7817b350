"""The bounded pack (RP-04, RP-05): a summary for each perspective, and the pack that names them. Bytes are counted.

A summary is a title and claims by section, each a whole sentence of the output with the short form of its citations. No
sentence is cut, and nothing is written that is not a claim, but one line where a perspective has none to show. Claims
hold no line breaks: who reads the output sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from sys import maxsize
from typing import Any, NamedTuple

from muniment.contracts.research import Perspective, SummaryPack
from muniment.core.canonical import canonical_text
from muniment.core.policy import ResearchLimits, ResearchPolicy
from muniment.core.text.script import Written, written_in
from muniment.errors import InvalidInput
from muniment.research.ranking import asked_terms, best_first, first_said, is_flagged, is_packable
from muniment.research.run_records import CheckedClaim, Citation, Support
from muniment.research.urls import short_cids

__all__ = ["PackEntry", "Summary", "allot", "build_pack", "summarise", "summary_path"]

_NOTHING_BORNE = {
    "en": "No finding of this perspective is borne out by a source that may be cited.",
    "zh": "本视角没有任何发现得到可引用来源的支持。",
}
_SAID_ELSEWHERE = {"en": "Other perspectives say what this one found.", "zh": "本视角的发现已见于其他视角。"}
_NOTHING_FITS = {"en": "None of the findings of this perspective fits here.", "zh": "本视角的发现均无法容纳于此。"}

_FLAGS: tuple[Support, ...] = ("refuted", "not_supported", "uncited")
"""The gravest first."""


class Summary(NamedTuple):
    markdown: str
    used: tuple[CheckedClaim, ...]
    """Best first."""
    left_out: int
    """Claims that could have been in it: no room, or said already."""


class PackEntry(NamedTuple):
    """A perspective with an accepted output."""

    perspective: Perspective
    source_artifact: str
    """Where the output stands in the run directory."""
    claims: Sequence[CheckedClaim]
    """As checked, in their order."""


# -- one summary --------------------------------------------------------------------------------------


def summarise(
    perspective: Perspective,
    claims: Sequence[CheckedClaim],
    question: str,
    bytes_max: int,
    short: Mapping[str, str],
    policy: ResearchPolicy,
) -> Summary:
    """The claims of a perspective that are borne out, as many and as good as fit into so many bytes of UTF-8."""
    packable = [claim for claim in claims if is_packable(claim)]
    distinct = [packable[at] for at in first_said(packable, policy.near_duplicate)]
    page = _Page(perspective, bytes_max, short, policy)
    used = _fill(page, distinct, question, _NOTHING_BORNE[written_in(question)])
    return Summary(page.markdown(), used, len(packable) - len(used))


def _fill(page: _Page, claims: Sequence[CheckedClaim], question: str, nothing: str) -> tuple[CheckedClaim, ...]:
    """Put in what fits; returns it, best first. `nothing` is said where there are no claims."""
    asked = asked_terms(question, page.perspective)
    for claim in best_first(claims, asked, page.policy.rank, page.fits):
        page.add(claim)
    if not page.used:
        page.remark(_NOTHING_FITS[written_in(question)] if claims else nothing)
    return tuple(page.used)


class _Page:
    """A summary while it is written: what stands in it, and how many bytes that takes."""

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
        """Bytes that it would add: its line, and the heading of its section where that is new."""
        heading = "" if claim.section in self._sections else _heading(claim.section)
        return len((heading + self._line(claim)).encode())

    def fits(self, claim: CheckedClaim) -> bool:
        return self.size + self.cost(claim) <= self._bytes_max

    def add(self, claim: CheckedClaim) -> None:
        self.size += self.cost(claim)
        self._sections.setdefault(claim.section, []).append(claim)
        self.used.append(claim)

    def remark(self, text: str) -> None:
        """A line that is no claim; left out where it has no room."""
        line = f"\n{text}\n"
        if self.size + len(line.encode()) <= self._bytes_max:
            self.size += len(line.encode())
            self._remark = line

    def markdown(self) -> str:
        """What is in, in the order of the output; claims that stood under no heading come first."""
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
    """Equal shares of `total_max` bytes, none over `each_max`; what one does not need goes to the others.

    Nobody is given more than it asks for, and no byte is left that somebody could use; odd bytes go to the first.
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
    """An entry with those of its packable claims that no other says better."""

    entry: PackEntry
    claims: list[CheckedClaim]
    duplicates: int
    language: Written

    @property
    def nothing(self) -> str:
        """What to say where no claim is left."""
        return (_SAID_ELSEWHERE if self.duplicates else _NOTHING_BORNE)[self.language]


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
    """The pack, and its summaries by path.

    `total_estimated_tokens` counts what a synthesis reads: the pack's canonical JSON, with 0 in this place, and the
    summaries. A claim that several perspectives make stands with the one whose source bears it best.
    """
    short = short_cids([citation.cid for citation in citations])
    kept = _keep(entries, policy, written_in(question))
    demands = [_demand(one, short, policy) for one in kept]
    shares = allot(demands, limits.summary_bytes_max, limits.total_bytes_max)
    summaries: dict[str, str] = {}
    listed: list[dict[str, Any]] = []
    cited: set[str] = set()
    for one, share in zip(kept, shares, strict=True):
        page = _Page(one.entry.perspective, share, short, policy)
        used = _fill(page, one.claims, question, one.nothing)
        listed.append(_entry(one, used, limits, policy))
        summaries[listed[-1]["summary_md"]] = page.markdown()
        cited.update(cid for claim in used for cid in claim.citation_cids[: policy.claim_cids_max])
    pack = {
        "schema_version": "summary_pack.v1",
        "run_id": run_id,
        "generated_at": generated_at,
        "question": question,
        "limits": limits.model_dump(mode="json"),
        "summaries": listed,
        "sources": [_source(each, short, policy) for each in sorted(citations, key=_cid) if each.cid in cited],
        "total_estimated_tokens": 0,
    }
    pack["total_estimated_tokens"] = count_tokens(canonical_text(pack)) + sum(map(count_tokens, summaries.values()))
    return SummaryPack.from_wire(pack), summaries


def _keep(entries: Sequence[PackEntry], policy: ResearchPolicy, language: Written) -> list[_Kept]:
    """What is packable of each entry, each thing said once in all of them."""
    packable = [(owner, claim) for owner, entry in enumerate(entries) for claim in entry.claims if is_packable(claim)]
    stay = [packable[at] for at in first_said([claim for _, claim in packable], policy.near_duplicate)]
    kept = [[claim for owner, claim in stay if owner == at] for at in range(len(entries))]
    return [
        _Kept(entry, claims, sum(map(is_packable, entry.claims)) - len(claims), language)
        for entry, claims in zip(entries, kept, strict=True)
    ]


def _demand(kept: _Kept, short: Mapping[str, str], policy: ResearchPolicy) -> int:
    """Bytes of the summary that holds all claims."""
    page = _Page(kept.entry.perspective, maxsize, short, policy)
    for claim in kept.claims:
        page.add(claim)
    if not kept.claims:
        page.remark(kept.nothing)
    return page.size


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


def _cid(citation: Citation) -> str:
    return citation.cid
