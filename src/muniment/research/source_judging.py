"""Does a source bear a claim? The fact checker over the stored text of a study's citations (RP-08)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.research.judging import Judgement
from muniment.verify.facts import Source, SourceText, check_source
from muniment.verify.results import fact_score, unit_score

if TYPE_CHECKING:
    from muniment.contracts.runs import FGFCReport
    from muniment.core.policy import Policy
    from muniment.memory.corpus import Corpus
    from muniment.research.study_sources import Shelved

__all__ = ["SourceJudge"]

_PACK = "pack-"
"""Begins the name of a text that is a claim of the pack, not a chunk."""
_ORDER = ("REFUTED", "NOT_ENOUGH_INFO", "SUPPORTED")
"""Verdicts, the worst first."""


class _Texts(NamedTuple):
    """What is stored of a citation, and the same as the checker reads it."""

    texts: tuple[SourceText, ...]
    source: Source


class SourceJudge:
    """Judges claims against the texts of their citations; each text is read once.

    A claim that none of its sources bears alone may be borne by several together: a sentence with two marks often
    takes half from each. Then all that hold a part of the evidence support it.
    """

    def __init__(
        self,
        corpus: Corpus,
        shelved: Mapping[str, Shelved],
        policy: Policy,
        said: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._corpus = corpus
        self._shelved = shelved
        self._policy = policy
        self._said = said or {}
        """Cid → claims that were checked against it already, and may be repeated."""
        self._known: dict[str, _Texts | None] = {}

    def __call__(self, claim: str, cids: Sequence[str]) -> dict[str, Judgement]:
        judged = {cid: self._judge(claim, cid) for cid in cids}
        readable = [cid for cid in judged if self._texts(cid) is not None]
        if len(readable) > 1 and not any(judged[cid].support in ("supported", "refuted") for cid in readable):
            judged |= self._judge_together(claim, readable)
        return judged

    def _judge(self, claim: str, cid: str) -> Judgement:
        texts = self._texts(cid)
        if texts is None:
            reason = "its source may be cited, but no text of it is stored to check against"
            return Judgement("unchecked", self._policy.research.unchecked_confidence, reason)
        return self._judgement(self._check(claim, texts.source))

    def _check(self, claim: str, source: Source) -> FGFCReport:
        return check_source(claim, source, policy=self._policy.verify)

    def _judge_together(self, claim: str, cids: Sequence[str]) -> dict[str, Judgement]:
        """By source, the judgement on a claim that several sources bear together; empty where they do not."""
        held = {cid: texts.texts for cid in cids if (texts := self._texts(cid)) is not None}
        checked = self._check(claim, Source([text for texts in held.values() for text in texts]))
        judgement = self._judgement(checked)
        if judgement.support != "supported":
            return {}
        named = {_document(evidence.ref) for unit in checked.units or () for evidence in unit.evidence or ()}
        bearing = [cid for cid, texts in held.items() if named & {text.id for text in texts}]
        reason = f"borne by {len(bearing)} sources together: {judgement.reason}"
        return {cid: judgement._replace(reason=reason) for cid in bearing}

    def _judgement(self, checked: FGFCReport) -> Judgement:
        """The worst unit decides and gives the reason; how sure we are is the checker's score of the whole claim."""
        if not checked.units:
            return Judgement("not_supported", 0, "it says nothing that could be checked")
        worst = min(checked.units, key=lambda unit: (_ORDER.index(unit.verdict or _ORDER[1]), unit_score(unit)))
        confidence = round(100 * fact_score(checked))
        best = (worst.evidence or (None,))[0]
        name = None if best is None else _document(best.ref)
        where = None if name is None or name.startswith(_PACK) else name
        quote = None if best is None else best.quote
        why = worst.justification or ""
        if worst.verdict == "REFUTED":
            return Judgement("refuted", confidence, f"the source speaks against it: {why}", where, quote)
        if worst.verdict != "SUPPORTED":
            return Judgement("not_supported", confidence, f"the source does not bear it: {why}", where, quote)
        if confidence < 100 * self._policy.research.support_min:
            reason = f"the source bears it too weakly ({confidence} of 100)"
            return Judgement("not_supported", confidence, reason, where, quote)
        return Judgement("supported", confidence, why, where, quote)

    def _texts(self, cid: str) -> _Texts | None:
        if cid not in self._known:
            shelved = self._shelved.get(cid)
            texts = list(self._read(() if shelved is None else shelved.chunk_ids))
            if texts:
                texts += [SourceText(f"{_PACK}{cid}", claim, "artifact") for claim in self._said.get(cid, ())]
            self._known[cid] = _Texts(tuple(texts), Source(texts)) if texts else None
        return self._known[cid]

    def _read(self, chunk_ids: Sequence[str]) -> Iterable[SourceText]:
        return (SourceText(chunk_id, self._corpus.chunk(chunk_id).text, "artifact") for chunk_id in chunk_ids)


def _document(ref: str | None) -> str | None:
    """The text that a reference of the checker names."""
    return None if ref is None else ref.partition(":")[2].rpartition("#")[0]
