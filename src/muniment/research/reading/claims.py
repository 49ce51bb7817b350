"""The claims of an output: declarative sentences of its findings that can be read, and checked, by themselves.

Left out: questions, instructions, talk about the research itself, placeholders, headings, rows of tables, fragments,
and what stands in the sections on sources and gaps. A sentence that leans on the one before it ("It grew by 5 %",
"这一趋势…") says nothing alone, and in a summary even less than in its place: about one in eight of real reports. Such
ones are claims only where an output has no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muniment.core.policy import ResearchPolicy
from muniment.core.text.patterns import lazy_pattern
from muniment.research.reading.claim_words import has_verb, is_instruction, is_placeholder, is_research_talk, leans_back
from muniment.research.reading.figures import has_figure
from muniment.research.reading.outputs import Mark, Reading, Sentence, count_words
from muniment.research.reading.sections import main_kind
from muniment.research.reading.splitting import has_open_ends
from muniment.research.urls import cid_of, try_normalize_url

__all__ = ["Candidate", "find_claims", "mark_cids"]


class Candidate(NamedTuple):
    """A sentence that claims something, with the sources named beside it."""

    sentence: Sentence
    cited: tuple[str, ...]
    """cids of the marks in it or directly behind it."""
    candidates: tuple[str, ...]
    """cids that close its paragraph, where it has none of its own: a check has to say whether they are its."""
    figure: bool


_APART = frozenset({"sources", "gaps", "contents", "change note"})
"""Sections that make no claims."""
_QUESTION = lazy_pattern(r"[?？][\"'”’)）」』\s]*\Z")
_LEADS_ON = lazy_pattern(r"[:：][\s*]*\Z")
_GOES_ON = lazy_pattern(r"[a-z]{2}|[,;:，；：、)）”]")
_ENDS = lazy_pattern(r"[.!。！…；;][\"'”’)）」』\]\s]*\Z")
_HALF = lazy_pattern(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_POINTS_AT_MARK = lazy_pattern(
    r"(?:(?i:\b(?:in|by|from|of|see|to|with|per|ref|refs|reference|references|source|sources|and|as|that))|参考|文献|"
    r"根据|参见|见|如|由|据)\s*\Z"
)
_FULL_CID = lazy_pattern(r"cid_[0-9a-f]{64}\Z")


def find_claims(reading: Reading, policy: ResearchPolicy) -> list[Candidate]:
    """The claims, in their order."""
    apart = [(section.start, section.end) for section in reading.sections if main_kind(section.title) in _APART]
    found = [sentence for sentence in _outside(reading.sentences, apart) if _claims(reading, sentence, policy)]
    standing = [sentence for sentence in found if not leans_back(sentence.text)]
    cids = _Cids()
    return [_candidate(sentence, cids) for sentence in standing or found]


def _outside(sentences: Sequence[Sentence], apart: Sequence[tuple[int, int]]) -> Iterator[Sentence]:
    at, reach = 0, -1
    for sentence in sentences:
        while at < len(apart) and apart[at][0] <= sentence.start:
            reach = max(reach, apart[at][1])
            at += 1
        if sentence.start >= reach:
            yield sentence


def _claims(reading: Reading, sentence: Sentence, policy: ResearchPolicy) -> bool:
    text = sentence.text
    if sentence.kind in ("heading", "table", "reference") or len(text) > policy.claim_chars_max:
        return False
    if _QUESTION.search(text) or _LEADS_ON.search(text) or _GOES_ON.match(text) or has_open_ends(text):
        return False
    if count_words(text) - len(_HALF.findall(text)) / 2 < policy.claim_words_min:
        return False
    if not _ENDS.search(text) and not has_verb(text):
        return False
    if is_placeholder(text) or is_research_talk(text) or is_instruction(text):
        return False
    return not any(_is_part(reading.markdown, sentence, mark) for mark in sentence.marks)


def _is_part(markdown: str, sentence: Sentence, mark: Mark) -> bool:
    """Does it take the mark to read the sentence: as an object ("shown in [3]"), or as all it says (a bare link)?"""
    if mark.start <= sentence.start and sentence.end <= mark.end:
        return True
    inside = sentence.start < mark.start < sentence.end
    bare = mark.key != mark.url or markdown[mark.start] not in "[<"  # a link has words of its own
    return (
        inside
        and bare
        and _POINTS_AT_MARK.search(markdown, max(sentence.start, mark.start - 20), mark.start) is not None
    )


class _Cids(dict[str, str | None]):
    """Address → cid; each is worked out once."""

    def __missing__(self, url: str) -> str | None:
        normalized = try_normalize_url(url)
        self[url] = cid = None if normalized is None else cid_of(normalized)
        return cid


def mark_cids(marks: Sequence[Mark], cids: dict[str, str | None] | None = None) -> tuple[str, ...]:
    """The sources that marks name, each once, in order; what dangles or is no address names none."""
    known = _Cids() if cids is None else cids
    named = (
        known[mark.url] if mark.url is not None else mark.key if _FULL_CID.match(mark.key) else None for mark in marks
    )
    return tuple(dict.fromkeys(cid for cid in named if cid is not None))


def _candidate(sentence: Sentence, cids: _Cids) -> Candidate:
    cited = mark_cids(sentence.marks, cids)
    closing = () if sentence.marks else mark_cids(sentence.closing, cids)
    return Candidate(sentence, cited, closing, has_figure(sentence.text))
