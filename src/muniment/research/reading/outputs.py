"""An agent's Markdown, read: sections, sentences with their citation marks, lists of sources, addresses.

Any text can be read, in time linear in its length; nothing is refused. Offsets are characters of the Markdown. A mark
belongs to the sentence it stands in or directly behind. The marks that close a paragraph are also named at the
sentences before its last one, apart (`closing`): whether they bear those is for a check to say.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from muniment.research.reading.blocks import Block, read_blocks
from muniment.research.reading.marks import Inline, Mark, read_inline
from muniment.research.reading.outline import Outline, outline_of
from muniment.research.reading.references import Entry, Reference, References, read_entries
from muniment.research.reading.sections import Section, kinds_of, names_of
from muniment.research.reading.splitting import masked_text, sentence_places, words_between
from muniment.research.reading.web import FoundUrl, find_urls

__all__ = [
    "FoundUrl",
    "Mark",
    "Reading",
    "Reference",
    "Section",
    "Sentence",
    "SentenceKind",
    "count_words",
    "find_section",
    "read_markdown",
    "sections_of",
    "sentences_between",
]

SentenceKind = Literal["prose", "bullet", "heading", "table", "quote", "reference"]


class Sentence(NamedTuple):
    """A sentence, a heading, a row of a table or an entry of a list of sources.

    `text` is `markdown[start:end]` word for word, with marks taken out, emphasis, links and code reduced to their words
    and white space made one blank. Marks behind its full stop are outside of the span. An entry is not reduced.
    """

    text: str
    section: str
    """The title of the nearest heading above, or ""; a line in bold is one only where there are no others."""
    start: int
    end: int
    marks: tuple[Mark, ...]
    closing: tuple[Mark, ...]
    kind: SentenceKind
    block: int = 0
    """The number of the paragraph, list item or row it stands in."""


class Reading(NamedTuple):
    markdown: str
    sections: tuple[Section, ...]
    sentences: tuple[Sentence, ...]
    references: dict[str, Reference]
    urls: tuple[FoundUrl, ...]
    """All addresses in the order of their places, each as often as it is written; none from code and images."""


_HARD_BREAK = re.compile(r"(?:  |\\)\r?\n")
_STOPPED = ".!?…。！？;；:："
_WRAPPED_CHARS_MIN = 60
"""A line of words that is shorter was not broken for want of room."""
_CLOSING_MAX = 20
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_HAN}]|\d+(?:[.,]\d+)*(?:[^\W{_HAN}])*|[^\W{_HAN}]+(?:['’-][^\W{_HAN}]+)*")


def read_markdown(markdown: str) -> Reading:
    """Read an output. Code is left out; all else is in some sentence."""
    outline = outline_of(markdown, read_blocks(markdown))
    entries, taken = read_entries(markdown, outline.blocks, outline.listed)
    references = References(entries)
    sentences: list[Sentence] = []
    urls: list[FoundUrl] = []
    for number, block in enumerate(outline.blocks):
        if taken[number]:
            continue
        read = _read_block(markdown, block, references, outline.titles[number], number)
        urls += read.urls
        if read.sentences:
            sentences += read.sentences
        elif read.marks and sentences and sentences[-1].block == number - 1:
            _close_with(sentences, read.marks)
    sentences += _entry_sentences(markdown, entries, outline)
    urls += _entry_urls(markdown, entries)
    return Reading(
        markdown,
        outline.sections,
        tuple(sorted(sentences, key=lambda sentence: sentence.start)),
        references.by_key,
        tuple(sorted(urls, key=lambda url: url.start)),
    )


class _Block(NamedTuple):
    sentences: list[Sentence]
    marks: tuple[Mark, ...]
    urls: list[FoundUrl]


def _read_block(markdown: str, block: Block, references: References, section: str, number: int) -> _Block:
    base = block.start
    text = markdown[base : block.end]
    inline = read_inline(text, references, base)
    masked = masked_text(text, inline.cuts, _gaps(markdown, block))
    if block.kind in ("heading", "table"):
        places = [(0, len(text))] if words_between(masked, 0, len(text)) else []
    else:
        places = sentence_places(masked)
    dealt = _deal(places, inline)
    closing = _moved(_closing(masked, inline.marks), base) if len(places) > 1 else ()
    sentences = [
        Sentence(
            text=words_between(masked, start, end),
            section=section,
            start=base + start,
            end=base + end,
            marks=_moved(marks, base),
            closing=closing if place < len(places) - 1 else (),
            kind=block.kind,
            block=number,
        )
        for place, ((start, end), marks) in enumerate(zip(places, dealt, strict=True))
    ]
    urls = [found._replace(start=base + found.start) for found in inline.urls]
    return _Block([each for each in sentences if each.text], _moved(inline.marks, base), urls)


def _gaps(markdown: str, block: Block) -> Iterator[tuple[int, int, bool]]:
    """For each break between lines: may a sentence end there, or was a line only too long?"""
    for (start, end), (after, _) in zip(block.lines, block.lines[1:], strict=False):
        last, first = markdown[end - 1], markdown[after]
        soft = first.islower() or (end - start >= _WRAPPED_CHARS_MIN and last.isascii() and first.isascii())
        broken = _HARD_BREAK.match(markdown, end) is not None
        yield end - block.start, after - block.start, broken or last in _STOPPED or not soft


def _deal(places: Sequence[tuple[int, int]], inline: Inline) -> list[list[Mark]]:
    """A mark goes to the last sentence that begins before it; one before the first sentence goes to that."""
    dealt: list[list[Mark]] = [[] for _ in places]
    starts = [start for start, _ in places]
    for mark in inline.marks if places else ():
        place = bisect_right(starts, mark.start) - 1
        if 0 <= place + 1 < len(places) and mark.start <= starts[place + 1] < mark.end:
            place += 1  # a link that its sentence begins with
        dealt[max(0, place)].append(mark)
    return dealt


def _closing(masked: str, marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Marks with no word behind them, the first so many."""
    end = len(masked)
    while end > 0 and not masked[end - 1].isalnum():
        end -= 1
    return tuple(mark for mark in marks if mark.start >= end)[:_CLOSING_MAX]


def _moved(marks: Sequence[Mark], base: int) -> tuple[Mark, ...]:
    return tuple(mark._replace(start=mark.start + base, end=mark.end + base) for mark in marks)


def _close_with(sentences: list[Sentence], marks: tuple[Mark, ...]) -> None:
    """A paragraph of marks alone closes the one before it."""
    block = sentences[-1].block
    for at in range(len(sentences) - 1, -1, -1):
        if sentences[at].block != block or sentences[at].kind == "heading":
            return
        sentences[at] = sentences[at]._replace(closing=(*sentences[at].closing, *marks[:_CLOSING_MAX]))


def _entry_sentences(markdown: str, entries: Sequence[Entry], outline: Outline) -> Iterator[Sentence]:
    starts = [block.start for block in outline.blocks]
    for entry in entries:
        number = max(0, bisect_right(starts, entry.start) - 1)
        text = " ".join(markdown[entry.start : entry.end].split())
        yield Sentence(text, outline.titles[number], entry.start, entry.end, (), (), "reference", number)


def _entry_urls(markdown: str, entries: Sequence[Entry]) -> Iterator[FoundUrl]:
    for entry in entries:
        for place, (url, start) in enumerate(find_urls(markdown, entry.start, entry.end)):
            yield FoundUrl(url, entry.reference.title if place == 0 else None, start)


def find_section(reading: Reading, name: str) -> Section | None:
    """The section of that name, whatever its case, numbering and emphasis, by any of its English and Chinese names.

    A heading that joins several names ("Gaps and limitations") is each of them. Of several sections it is one that is
    called so and nothing else, and the first that is not empty.
    """
    found = sections_of(reading, name)
    whole = names_of(name)[:1]
    ranked = sorted(found, key=lambda section: names_of(section.title)[:1] != whole)
    return next(
        (section for section in ranked if reading.markdown[section.start : section.end].strip()),
        next(iter(ranked), None),
    )


def sections_of(reading: Reading, name: str) -> list[Section]:
    """All sections of a name, in their order."""
    wanted = kinds_of(name)
    return [section for section in reading.sections if wanted & kinds_of(section.title)]


def sentences_between(reading: Reading, start: int, end: int) -> tuple[Sentence, ...]:
    """The sentences that begin in a span, such as a section's; found without going through all."""
    first = bisect_left(reading.sentences, start, key=lambda sentence: sentence.start)
    last = bisect_left(reading.sentences, end, key=lambda sentence: sentence.start)
    return reading.sentences[first:last]


def count_words(text: str) -> int:
    """Words; a Han or kana character counts by itself."""
    return sum(1 for _ in _WORD.finditer(text))
