"""A draft report against the pack it was written from (Gate E). It is read, never mended.

- A sentence that gives a figure cites a source. Its citations are those in it or directly behind it; a mark that closes
  its paragraph is its own only if the check says that the source bears it.
- A row of a table is a sentence. Its citations may also stand in the sentence directly before or after the table, again
  only if the check says so; that sentence then need not be borne out itself.
- What is cited is a source of the pack: by cid or its unique beginning, by address, or by a number of the draft's list.
- Whatever is cited must bear what cites it. Where a sentence cites different sources for its parts, each part is
  looked at with its own.

Headings, code and the list of sources make no claims; what the list names must be a source of the pack all the same.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from muniment.contracts.research import SummaryPack
from muniment.core.record import JsonValue
from muniment.core.scope import Span
from muniment.core.text.sentences import ByteOffsets
from muniment.research._figures import has_figure
from muniment.research._markdown import Reading, Sentence, find_section, read_markdown
from muniment.research._marks import Mark, Reference
from muniment.research.records import CITABLE, Citation, CitationStatus, DraftCheck, DraftFinding, DraftProblem
from muniment.research.sources import Judge, Judgement, identify

_CID = re.compile(r"cid_[0-9a-f]+")
_POINTER = re.compile(
    r"[?？]\s*\Z|\A(?:for\s(?:more|further|details|background)\b[^.]{0,40}\b)?(?:see|refer\sto|cf\.?)\s|\A(?:详见|参见|参阅|参考|请见)",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[((?:(?![\[\]])[\W\d_])*+[^\W\d_][^\[\]]*+)\]\([^()\s]*+\)")
_BRACKETS = re.compile(r"\[[^\[\]]*\](?:\([^()\s]*\))?|【[^【】]*】|https?://\S+")
_MARKUP = re.compile(r"[*_`~]+")


def check_draft(
    markdown: str,
    pack: SummaryPack,
    citations: Sequence[Citation],
    sections: Sequence[str],
    review: int,
    digest: str,
    judge: Judge,
) -> DraftCheck:
    """All that is wrong with a draft, in its order. It passes if nothing is."""
    reading = read_markdown(markdown)
    draft = _Draft(reading, _Sources(pack, citations), judge)
    findings = [*_missing_sections(reading, sections), *draft.findings()]
    offsets = ByteOffsets(markdown)
    return DraftCheck(
        passed=not findings,
        findings=tuple(found.record(offsets) for found in sorted(findings, key=lambda found: found.start)),
        metrics=draft.metrics(),
        digest=digest,
        review=review,
    )


class _Finding(NamedTuple):
    """A finding, by characters; without an end it has no place."""

    problem: DraftProblem
    message: str
    start: int = -1
    end: int = -1
    text: str | None = None
    citation: str | None = None

    def record(self, offsets: ByteOffsets) -> DraftFinding:
        plain: dict[str, object] = {"problem": self.problem, "message": self.message}
        if self.end >= 0:
            plain["span"] = Span(start=offsets[self.start], end=offsets[self.end])
        if self.text is not None:
            plain["text"] = self.text
        if self.citation is not None:
            plain["citation"] = self.citation
        return DraftFinding.model_validate(plain)


def _missing_sections(reading: Reading, wanted: Sequence[str]) -> Iterator[_Finding]:
    for name in wanted:
        section = find_section(reading, name)
        if section is None:
            yield _Finding("missing_section", f"there is no section “{name}”")
        elif not any(section.start <= place < section.end for place in _filled(reading)):
            yield _Finding("missing_section", f"the section “{name}” is empty", section.start, section.start)


def _filled(reading: Reading) -> Iterator[int]:
    yield from (sentence.start for sentence in reading.sentences if sentence.kind != "heading")
    yield from (url.start for url in reading.urls)


# -- what is cited ------------------------------------------------------------------------------------


class _Cited(NamedTuple):
    """A mark, and the source of the pack that it means; else what is wrong with it."""

    mark: Mark
    cid: str | None
    problem: DraftProblem | None = None
    message: str = ""


class _Sources:
    """What may be cited: the sources of the pack, as far as their status lets them."""

    def __init__(self, pack: SummaryPack, citations: Sequence[Citation]) -> None:
        self._statuses: dict[str, CitationStatus] = {citation.cid: citation.status for citation in citations}
        self._cids = sorted(self._statuses)
        self.packed = frozenset(_packed(pack))

    def cited(self, mark: Mark, references: Mapping[str, Reference]) -> _Cited:
        if mark.key.startswith("cid_"):
            return self._by_prefix(mark, mark.key)
        if mark.url is not None:
            return self._by_cid(mark, identify(mark.url).cid)
        entry = references.get(mark.key)
        named = _CID.search(entry.title or "") if entry is not None else None
        if named is not None:
            return self._by_prefix(mark, named[0])
        return _Cited(mark, None, "unknown_citation", f"the mark “{mark.key}” leads to no source of the draft's list")

    def _by_prefix(self, mark: Mark, prefix: str) -> _Cited:
        at = bisect_left(self._cids, prefix)
        matches = [cid for cid in self._cids[at : at + 2] if cid.startswith(prefix)]
        if len(matches) == 1:
            return self._by_cid(mark, matches[0])
        problem = "is the beginning of several" if matches else "is no source of this run"
        return _Cited(mark, None, "unknown_citation", f"{prefix} {problem}")

    def _by_cid(self, mark: Mark, cid: str) -> _Cited:
        status = self._statuses.get(cid)
        if status is not None and status not in CITABLE:
            return _Cited(mark, None, "invalid_citation", f"“{mark.key}” is {status}: it may not be cited")
        if status is None or cid not in self.packed:
            return _Cited(mark, None, "unknown_citation", f"“{mark.key}” is no source of the pack")
        return _Cited(mark, cid)


def _packed(pack: SummaryPack) -> Iterator[str]:
    """Cids of the pack: those it lists as its sources, and those its claims cite."""
    for entry in pack.summaries:
        for claim in entry.key_claims:
            yield from claim.citation_cids
    listed = (pack.model_extra or {}).get("sources")
    for source in listed if isinstance(listed, list) else ():
        if isinstance(source, dict) and isinstance(cid := source.get("cid"), str):
            yield cid


# -- sentences ----------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """A sentence or heading with what it cites."""

    sentence: Sentence
    cited: tuple[_Cited, ...]

    @property
    def cids(self) -> list[str]:
        return _cids(self.cited)

    @property
    def claims(self) -> bool:
        """Headings announce; they claim nothing."""
        return self.sentence.kind != "heading"

    @property
    def points(self) -> bool:
        """Whether a sentence asks, or sends the reader to a source: then there is nothing to bear out."""
        return _POINTER.search(self.sentence.text) is not None


def _cids(cited: Iterable[_Cited]) -> list[str]:
    return list(dict.fromkeys(each.cid for each in cited if each.cid is not None))


class _Draft:
    """The body of a draft, each sentence judged once."""

    def __init__(self, reading: Reading, sources: _Sources, judge: Judge) -> None:
        self._reading = reading
        self._sources = sources
        self._judge = judge
        self._lines = [
            _Line(sentence, self._resolve(sentence.marks))
            for sentence in reading.sentences
            if sentence.kind != "reference"
        ]
        self._beside = _beside_tables(self._lines)
        self._captions: set[int] = set()
        """Lines beside a table whose citations bear a row of it."""
        claims = [at for at, line in enumerate(self._lines) if line.claims]
        figures = [at for at in claims if has_figure(self._lines[at].sentence.text)]
        self._uncited = [at for at in figures if not self._is_cited(at)]
        pointers = {at for at in claims if self._lines[at].points}.difference(figures)
        self._unsupported = [found for at in claims if at not in pointers and (found := self._unsupported_at(at))]
        self._counts = {"sentences": len(claims), "figures": len(figures)}

    def _resolve(self, marks: Iterable[Mark]) -> tuple[_Cited, ...]:
        return tuple(self._sources.cited(mark, self._reading.references) for mark in marks)

    def findings(self) -> Iterator[_Finding]:
        if not self._counts["sentences"]:
            yield _Finding("empty_report", "the draft says nothing")
        for at in self._uncited:
            sentence = self._lines[at].sentence
            if not sentence.marks:  # marks that lead nowhere are findings of their own
                message = "a figure, and no source of the pack is cited for it"
                yield _Finding("uncited_figure", message, sentence.start, sentence.end, sentence.text)
        yield from self._unsupported
        yield from self._wrong_marks()

    def _wrong_marks(self) -> Iterator[_Finding]:
        named: set[str] = set()
        for line in self._lines:
            for cited in line.cited:
                if cited.problem is not None:
                    mark = cited.mark
                    named.update((mark.key, mark.url or ""))
                    yield _Finding(cited.problem, cited.message, mark.start, mark.end, line.sentence.text, mark.key)
        for listed in self._listed():
            if listed.problem is not None and listed.mark.key not in named:
                named.add(listed.mark.key)
                yield _Finding(
                    listed.problem, listed.message, listed.mark.start, listed.mark.end, None, listed.mark.key
                )

    def _listed(self) -> Iterator[_Cited]:
        """What the draft names anywhere, its list of sources included."""
        for url in self._reading.urls:
            yield self._sources.cited(Mark(url.url, url.url, url.start, url.start + len(url.url)), {})
        for sentence in self._reading.sentences:
            if sentence.kind == "reference":
                for found in _CID.finditer(self._reading.markdown, sentence.start, sentence.end):
                    yield self._sources.cited(Mark(found[0], None, *found.span()), {})

    # -- figures --------------------------------------------------------------------------------------

    def _is_cited(self, at: int) -> bool:
        """Is a source of the pack cited beside the figures of this line?"""
        line = self._lines[at]
        if line.cids or line.sentence.marks:
            return bool(line.cids)
        if line.sentence.kind != "table":
            return self._any_bears(line.sentence.text, _cids(self._resolve(line.sentence.closing)))
        beside = [one for one in self._beside[at] if self._any_bears(line.sentence.text, self._lines[one].cids)]
        self._captions.update(beside)
        return bool(beside)

    def _any_bears(self, text: str, cids: Sequence[str]) -> bool:
        return bool(cids) and any(judged.support == "supported" for judged in self._judge(text, cids).values())

    # -- support --------------------------------------------------------------------------------------

    def _unsupported_at(self, at: int) -> _Finding | None:
        line = self._lines[at]
        if not line.cids or at in self._captions:
            return None
        judged = self._judge(line.sentence.text, line.cids)
        if _stands(judged) or self._parts_stand(line):
            return None
        cid, best = max(judged.items(), key=lambda item: item[1].confidence)
        sentence = line.sentence
        message = f"what is cited does not bear it: {best.reason}"
        return _Finding("unsupported_citation", message, sentence.start, sentence.end, sentence.text, cid)

    def _parts_stand(self, line: _Line) -> bool:
        """Does each part of a sentence stand by the marks that close it?"""
        parts = _parts(self._reading.markdown, line)
        return len(parts) > 1 and all(cids and _stands(self._judge(text, cids)) for text, cids in parts)

    def metrics(self) -> dict[str, JsonValue]:
        used = {cid for line in self._lines for cid in line.cids}
        packed = len(self._sources.packed)
        return {
            **self._counts,
            "figures_cited": self._counts["figures"] - len(self._uncited),
            "citations": sum(len(line.cited) for line in self._lines),
            "distinct": len(used),
            "unsupported": len(self._unsupported),
            "utilisation": round(len(used) / packed, 4) if packed else 0.0,
        }


def _beside_tables(lines: Sequence[_Line]) -> dict[int, list[int]]:
    """For each row of a table the lines directly before and after the table, in the same section."""
    beside: dict[int, list[int]] = {}
    for is_table, run in groupby(range(len(lines)), key=lambda at: lines[at].sentence.kind == "table"):
        if is_table:
            rows = list(run)
            edges = [at for at in (rows[0] - 1, rows[-1] + 1) if 0 <= at < len(lines)]
            for row in rows:
                section = lines[row].sentence.section
                beside[row] = [at for at in edges if lines[at].sentence.section == section]
    return beside


def _stands(judged: Mapping[str, Judgement]) -> bool:
    return any(each.support in ("supported", "unchecked") for each in judged.values())


def _parts(markdown: str, line: _Line) -> list[tuple[str, list[str]]]:
    """A sentence cut at its marks, each part with its sources: marks close their parts, or all of them open theirs."""
    marks = [cited.mark for cited in line.cited]
    start, end = line.sentence.start, max(line.sentence.end, marks[-1].end)
    if _has_word(markdown[start : marks[0].start]):
        cuts = [mark.end for mark in marks[:-1]]
    else:
        cuts = [mark.start for mark in marks[1:]]
    parts: list[tuple[str, list[str]]] = []
    for (begins, ends), cited in zip(pairwise((start, *cuts, end)), line.cited, strict=True):
        words = _words(markdown[begins:ends])
        if parts and not (_has_word(words) and _has_word(parts[-1][0])):  # marks beside each other cite for one part
            parts[-1] = (parts[-1][0] + words, [*parts[-1][1], *_cids([cited])])
        else:
            parts.append((words, _cids([cited])))
    return parts


def _words(written: str) -> str:
    """What is left without marks and markup."""
    return _MARKUP.sub("", _BRACKETS.sub("", _LINK.sub(r"\1", written))).strip(" \t\n,;，；、")


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))
