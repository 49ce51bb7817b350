"""Checking a draft report against the pack it was written from (Gate E). The draft is never edited.

- A sentence with a figure needs a citation: in it, directly after it, or at the end of its paragraph if the check finds
  that the source supports it.
- A row of a table is a sentence. Its citations may also be in the line directly before or after the table, if the check
  finds that they support it; that line then needs no support of its own.
- Cited sources must be in the pack: by cid or a unique prefix, by address, or by a number of the draft's list.
- A cited source must support the citing sentence. If a sentence cites different sources for its parts, each part is
  checked with its own.

Headings, code and the list of sources make no claims, but the sources listed must be in the pack.
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
from muniment.research.records import CITABLE, Citation, DraftCheck, DraftFinding, DraftProblem
from muniment.research.sources import Judge, Judgement, identify

_CID = re.compile(r"cid_[0-9a-f]+")
_POINTER = re.compile(
    r"(?i)[?？]\s*\Z|\A(?:for\s(?:more|further|details|background)\b[^.]{0,40}\b)?(?:see|refer\sto|cf\.?)\s"
    r"|\A(?:详见|参见|参阅|参考|请见)"
)
_LINK = re.compile(r"\[((?:(?![\[\]])[\W\d_])*+[^\W\d_][^\[\]]*+)\]\([^()\s]*+\)")
_BRACKETS = re.compile(r"\[[^\[\]]*\](?:\([^()\s]*\))?|【[^【】]*】|https?://\S+")


def check_draft(
    markdown: str,
    pack: SummaryPack,
    citations: Sequence[Citation],
    sections: Sequence[str],
    review: int,
    digest: str,
    judge: Judge,
) -> DraftCheck:
    """Find all faults of a draft, in order. It passes if there are none."""
    reading = read_markdown(markdown)
    sources = _PackSources(pack, citations)
    lines = [
        _Line(sentence, tuple(sources.resolve(mark, reading.references) for mark in sentence.marks))
        for sentence in reading.sentences
        if sentence.kind != "reference"
    ]
    claims = [at for at, line in enumerate(lines) if line.sentence.kind != "heading"]
    figures = [at for at in claims if has_figure(lines[at].sentence.text)]
    uncited, captions = _uncited_figures(lines, figures, reading, sources, judge)
    pointers = {at for at in claims if _POINTER.search(lines[at].sentence.text)}.difference(figures)
    unsupported = [
        found
        for at in claims
        if at not in pointers and at not in captions and (found := _unsupported(markdown, lines[at], judge))
    ]
    findings = [*_missing_sections(reading, sections), *unsupported, *_wrong_marks(reading, lines, sources)]
    if not claims:
        findings.append(_Finding("empty_report", "the draft is empty"))
    for at in uncited:
        sentence = lines[at].sentence
        if not sentence.marks:  # dangling marks are separate findings
            message = "a figure, and no source of the pack is cited for it"
            findings.append(_Finding("uncited_figure", message, sentence.start, sentence.end, sentence.text))
    used = {cid for line in lines for cid in line.cids}
    metrics: dict[str, JsonValue] = {
        "sentences": len(claims),
        "figures": len(figures),
        "figures_cited": len(figures) - len(uncited),
        "citations": sum(len(line.cited) for line in lines),
        "distinct": len(used),
        "unsupported": len(unsupported),
        "utilisation": round(len(used) / len(sources.packed), 4) if sources.packed else 0.0,
    }
    offsets = ByteOffsets(markdown)
    records = tuple(found.record(offsets) for found in sorted(findings, key=lambda found: found.start))
    return DraftCheck(passed=not findings, findings=records, metrics=metrics, digest=digest, review=review)


class _Finding(NamedTuple):
    """A finding with its span in characters; without an end it has no position."""

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
    filled = [sentence.start for sentence in reading.sentences if sentence.kind != "heading"]
    filled += [url.start for url in reading.urls]
    for name in wanted:
        section = find_section(reading, name)
        if section is None:
            yield _Finding("missing_section", f"there is no section “{name}”")
        elif not any(section.start <= place < section.end for place in filled):
            yield _Finding("missing_section", f"the section “{name}” is empty", section.start, section.start)


# -- cited sources ------------------------------------------------------------------------------------


class _Cited(NamedTuple):
    """A mark, and the source of the pack that it names, or else its fault."""

    mark: Mark
    cid: str | None
    problem: DraftProblem | None = None
    message: str = ""


class _Line(NamedTuple):
    """A sentence or heading with its citations."""

    sentence: Sentence
    cited: tuple[_Cited, ...]

    @property
    def cids(self) -> list[str]:
        return _cids(self.cited)


def _cids(cited: Iterable[_Cited]) -> list[str]:
    return list(dict.fromkeys(each.cid for each in cited if each.cid is not None))


class _PackSources:
    """The sources of the pack whose status allows citing them."""

    def __init__(self, pack: SummaryPack, citations: Sequence[Citation]) -> None:
        self._statuses = {citation.cid: citation.status for citation in citations}
        self._cids = sorted(self._statuses)
        claimed = {cid for entry in pack.summaries for claim in entry.key_claims for cid in claim.citation_cids}
        listed = (pack.model_extra or {}).get("sources")
        named = (source.get("cid") for source in listed if isinstance(source, dict)) if isinstance(listed, list) else ()
        self.packed = frozenset(claimed | {cid for cid in named if isinstance(cid, str)})

    def resolve(self, mark: Mark, references: Mapping[str, Reference]) -> _Cited:
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


def _wrong_marks(reading: Reading, lines: Sequence[_Line], sources: _PackSources) -> Iterator[_Finding]:
    """Marks that name no source of the pack, then other addresses and cids, including the list of sources."""
    named: set[str] = set()
    for line in lines:
        for cited in line.cited:
            if cited.problem is not None:
                mark = cited.mark
                named.update((mark.key, mark.url or ""))
                yield _Finding(cited.problem, cited.message, mark.start, mark.end, line.sentence.text, mark.key)
    listed = [Mark(url.url, url.url, url.start, url.start + len(url.url)) for url in reading.urls]
    for sentence in reading.sentences:
        if sentence.kind == "reference":
            found = _CID.finditer(reading.markdown, sentence.start, sentence.end)
            listed += [Mark(cid[0], None, *cid.span()) for cid in found]
    for mark in listed:
        cited = sources.resolve(mark, {})
        if cited.problem is not None and mark.key not in named:
            named.add(mark.key)
            yield _Finding(cited.problem, cited.message, mark.start, mark.end, None, mark.key)


# -- figures ------------------------------------------------------------------------------------------


def _uncited_figures(
    lines: Sequence[_Line], figures: Sequence[int], reading: Reading, sources: _PackSources, judge: Judge
) -> tuple[list[int], set[int]]:
    """The lines with a figure and no source, and the lines around tables whose citations support a row."""

    def supports(text: str, cids: Sequence[str]) -> bool:
        return bool(cids) and any(judged.support == "supported" for judged in judge(text, cids).values())

    around = _lines_around_tables(lines)
    uncited: list[int] = []
    captions: set[int] = set()
    for at in figures:
        line, sentence = lines[at], lines[at].sentence
        if line.cids or sentence.marks:
            cited = bool(line.cids)
        elif sentence.kind == "table":
            supporting = [one for one in around[at] if supports(sentence.text, lines[one].cids)]
            captions.update(supporting)
            cited = bool(supporting)
        else:
            closing = _cids(sources.resolve(mark, reading.references) for mark in sentence.closing)
            cited = supports(sentence.text, closing)
        if not cited:
            uncited.append(at)
    return uncited, captions


def _lines_around_tables(lines: Sequence[_Line]) -> dict[int, list[int]]:
    """For each row of a table, the lines directly before and after the table, in the same section."""
    around: dict[int, list[int]] = {}
    for is_table, run in groupby(range(len(lines)), key=lambda at: lines[at].sentence.kind == "table"):
        if is_table:
            rows = list(run)
            edges = [at for at in (rows[0] - 1, rows[-1] + 1) if 0 <= at < len(lines)]
            for row in rows:
                section = lines[row].sentence.section
                around[row] = [at for at in edges if lines[at].sentence.section == section]
    return around


# -- support ------------------------------------------------------------------------------------------


def _unsupported(markdown: str, line: _Line, judge: Judge) -> _Finding | None:
    if not line.cids:
        return None
    judged = judge(line.sentence.text, line.cids)
    if _is_supported(judged):
        return None
    parts = _parts(markdown, line)
    if len(parts) > 1 and all(cids and _is_supported(judge(text, cids)) for text, cids in parts):
        return None
    cid, best = max(judged.items(), key=lambda item: item[1].confidence)
    sentence = line.sentence
    message = f"what is cited does not support it: {best.reason}"
    return _Finding("unsupported_citation", message, sentence.start, sentence.end, sentence.text, cid)


def _is_supported(judged: Mapping[str, Judgement]) -> bool:
    return any(each.support in ("supported", "unchecked") for each in judged.values())


def _parts(markdown: str, line: _Line) -> list[tuple[str, list[str]]]:
    """Cut a sentence at its marks into parts with their sources: all marks end their parts, or all begin them."""
    marks = [cited.mark for cited in line.cited]
    start, end = line.sentence.start, max(line.sentence.end, marks[-1].end)
    closes = any(map(str.isalnum, markdown[start : marks[0].start]))
    cuts = [mark.end for mark in marks[:-1]] if closes else [mark.start for mark in marks[1:]]
    parts: list[tuple[str, list[str]]] = []
    for (begins, ends), cited in zip(pairwise((start, *cuts, end)), line.cited, strict=True):
        written = _BRACKETS.sub("", _LINK.sub(r"\1", markdown[begins:ends]))
        words = re.sub(r"[*_`~]+", "", written).strip(" \t\n,;，；、")
        both = parts and any(map(str.isalnum, words)) and any(map(str.isalnum, parts[-1][0]))
        if parts and not both:  # adjacent marks cite for one part
            parts[-1] = (parts[-1][0] + words, [*parts[-1][1], *_cids([cited])])
        else:
            parts.append((words, _cids([cited])))
    return parts
