"""Spans of a text: sentences, passages, byte offsets, citation marks, and texts that repeat each other."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern

# -- sentences ------------------------------------------------------------------------------------------


_SHORT = frozenset(("mr", "mrs", "ms", "dr", "prof", "st", "vs", "etc", "e.g", "i.e", "approx", "jr", "sr"))
# Possessive, and only from the start of a run: a page of dots is read once, not once for each of them. The sign that it
# begins with stands before the alternatives, so that the rest of a text is passed over without trying them.
_END = lazy_pattern(
    r"[.!?…。！？\n](?:(?<=\n)\n*+|(?<=[。！？])[。！？]*+[”’」』）]*+"
    r"|(?<=[.!?…])(?<![.!?…]{2})[.!?…]*+[\"'”’)\]]*+(?=\s))"
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return half-open spans of a text's sentences, which cover every character but surrounding white space."""
    spans: list[tuple[int, int]] = []
    start = 0
    for found in _END.finditer(text):
        if found[0] == "." and _is_short(text, start, found.start()):
            continue
        _add(spans, text, start, found.end())
        start = found.end()
    _add(spans, text, start, len(text))
    return spans


def _is_short(text: str, start: int, dot: int) -> bool:
    """Return whether the dot closes an abbreviation or an initial rather than a sentence."""
    word = text[max(start, dot - 8) : dot].rsplit(maxsplit=1)[-1:] or [""]
    bare = word[0].lstrip("(\"'“").casefold()
    return bare in _SHORT or (len(bare) == 1 and bare.isalpha() and bare != "i")


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end].rstrip()
    end = start + len(piece)
    start = end - len(piece.lstrip())
    if start < end:
        spans.append((start, end))


# -- passages -------------------------------------------------------------------------------------------


PASSAGE_WORDS = 45
"""Approximate words of a passage; in scripts that write no spaces, four times as many characters."""
_SHORT_CHARS = 240
"""A text up to this length is one passage."""
_SHORT_SIGNS = 80
"""The same for a text with letters beyond Latin."""


def passage_spans(text: str) -> list[tuple[int, int]]:
    """Return half-open spans of the passages of a text, in order, without white space between; none if empty."""
    if len(text) <= (_SHORT_CHARS if text.isascii() else _SHORT_SIGNS):
        return [(0, len(text))] if text.strip() else []
    spans: list[tuple[int, int]] = []
    begin, last, held = 0, 0, 0
    for start, end in _pieces(text):
        count = _words(text, start, end)
        if held and held + count > PASSAGE_WORDS * 4 // 3:
            spans.append((begin, last))
            held = 0
        begin = begin if held else start
        last, held = end, held + count
    if held:
        if spans and held < PASSAGE_WORDS // 4:  # a closing remark belongs to the passage before it
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((begin, last))
    return spans


def _pieces(text: str) -> list[tuple[int, int]]:
    """Return the sentences, cutting those too long for a passage into even parts, at spaces where possible."""
    pieces: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        count = _words(text, start, end)
        if count <= 2 * PASSAGE_WORDS:
            pieces.append((start, end))
            continue
        step = -(-(end - start) * PASSAGE_WORDS // count)
        while start < end:
            cut = min(start + step, end)
            if cut < end and (space := text.rfind(" ", start + step // 2, cut)) > 0:
                cut = space
            pieces.append((start, cut))
            start = cut
    return pieces


def _words(text: str, start: int, end: int) -> int:
    """Estimate the words of a run: by its spaces, or by its characters where it has few spaces."""
    spaces = text.count(" ", start, end) + 1
    return spaces if text.isascii() else max(spaces, _signs(text[start:end]) // 4)


def _signs(text: str) -> int:
    """Count characters of scripts that are written without spaces between words."""
    return sum(1 for sign in text if sign >= "\u0e00" and not "\uac00" <= sign <= "\ud7a3")


# -- offsets --------------------------------------------------------------------------------------------


class ByteOffsets:
    """`offsets[index]` is the start of a character; the text's length is the end of the last."""

    def __init__(self, text: str) -> None:
        self._offsets = None if text.isascii() else list(accumulate(map(_width, text), initial=0))

    def __getitem__(self, index: int) -> int:
        return index if self._offsets is None else self._offsets[index]


def _width(char: str) -> int:
    return len(char.encode())


def lines_at(text: str | bytes, places: Iterable[int]) -> list[int]:
    """Return the line of each place, from 1 on, in one walk; the places are in order."""
    lines: list[int] = []
    line, at = 1, 0
    for place in places:
        line += text.count("\n", at, place) if isinstance(text, str) else text.count(b"\n", at, place)
        at = place
        lines.append(line)
    return lines


# -- citation marks -------------------------------------------------------------------------------------


_BRACKETS = r"\[\s*({name}\d{{1,9}}(?:\s*[-–,;]\s*\d{{1,9}})*)\s*\]"
MARK = re.compile(_BRACKETS.format(name=""))
"""A mark; its group is the text in the brackets."""
_CODE_OR_MARK = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`"
    rf"|(?P<opens>(?<![^\n])(?=\[))?(?P<blank>[^\S\n]?){_BRACKETS.format(name='?P<numbers>')}(?(opens)[^\S\n]*)",
    re.DOTALL,
)
"""Code, or a mark: with the blank before it, or after one that opens a line."""
_RANGE = re.compile(r"(\d{1,9})\s*[-–]\s*(\d{1,9})")
_PARTS = re.compile(r"[,;]")
_CITATION = re.compile(r" \[[^\[\]\n]{1,256}\]")
_RANGE_MAX = 50
"""A longer range is not a citation: only its ends count."""


def mark_numbers(mark: str) -> list[str]:
    """Return the numbers in the brackets of a mark."""
    return [number for part in _PARTS.split(mark) if part for number in _numbers(part)]


def numbers_in(text: str) -> list[str]:
    """Return the numbers of all marks of a text, each once, in order."""
    return list(dict.fromkeys(number for found in MARK.finditer(text) for number in mark_numbers(found[1])))


def split_citations(line: str) -> tuple[str, str]:
    """Split off the ids in brackets that close a line; read from the end, each once."""
    begins = len(line)
    while line.endswith("]", 0, begins) and (opens := line.rfind(" [", 0, begins)) >= 0:
        if _CITATION.fullmatch(line, opens, begins) is None:
            break
        begins = opens
    return line[:begins], line[begins:]


def named_by_marks(answer: str, evidence_ids: Sequence[str], unknown_marks: Collection[str]) -> dict[str, str]:
    """Return the evidence named by each number of an answer with known citations, in order, and the marks without any.

    A number without evidence has an empty text. If numbers and citations do not match, every number has.
    """
    numbers = numbers_in(answer)
    known = [number for number in numbers if f"[{number}]" not in unknown_marks]
    if len(known) != len(evidence_ids):
        return dict.fromkeys(numbers, "")
    return dict.fromkeys(numbers, "") | dict(zip(known, evidence_ids, strict=True))


def with_marks(text: str, named: Mapping[str, str], mark: Callable[[str], str | None] = lambda _: None) -> str:
    """Replace the marks of a text by those of the same evidence elsewhere, dropping those of other evidence.

    `named` maps numbers to evidence. Code is kept, and so are brackets after a word that name nothing, as they are not
    a citation.
    """

    def written(found: re.Match[str]) -> str:
        numbers = mark_numbers(found["numbers"] or "")
        if not numbers or any(number not in named for number in numbers):
            return found[0]
        is_apart = found["blank"] or not text[found.start() - 1 : found.start()].isalnum()
        if not is_apart and not any(named[number] for number in numbers):
            return found[0]
        marks = [shown for number in numbers if named[number] and (shown := mark(named[number])) is not None]
        if not marks:
            return ""
        return found["blank"] + " ".join(marks) + (" " if found[0][-1] != "]" else "")

    return _CODE_OR_MARK.sub(written, text) if named else text


def _numbers(part: str) -> list[str]:
    found = _RANGE.search(part)
    if found is None:
        return [str(int(part))]
    first, last = int(found[1]), int(found[2])
    if not 0 <= last - first <= _RANGE_MAX:
        return [str(first), str(last)]
    return [str(number) for number in range(first, last + 1)]


# -- duplicates -----------------------------------------------------------------------------------------


_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_ASCII_WORD = re.compile("[a-z0-9]+")
_FIRST_CJK = re.compile(f"[{_CJK}]")
_TURNS = frozenset(
    (
        "not",
        "no",
        "never",
        "dont",
        "doesnt",
        "didnt",
        "isnt",
        "wasnt",
        "cant",
        "wont",
        "nor",
        "without",
        "안",
        "못",
    )
)
"""Words that reverse a sentence: texts that differ in one have different meanings."""
_SIGNS_THAT_TURN = frozenset("不没未无非")
"""Chinese characters that reverse a sentence, at either place of a pair."""


def words_of(text: str) -> list[str]:
    """Return words in order, folded; runs of CJK as pairs of neighbours."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower().replace("'", ""))
    text = unicodedata.normalize("NFKC", text)
    words: list[str] = []
    for run in _WORD.findall(text.casefold().replace("'", "").replace("’", "")):
        if len(run) > 2 and _FIRST_CJK.match(run):
            words += [run[at : at + 2] for at in range(len(run) - 1)]
        else:
            words.append(run)
    return words


class Words(NamedTuple):
    """The distinct words of a text, and the same ones with the longest first."""

    held: frozenset[str]
    longest: tuple[str, ...]
    turning: frozenset[str] = frozenset()
    """Words that change the meaning: texts that differ in one are not alike."""


def read_words(text: str) -> Words:
    """Split a text into the words by which it is compared with others."""
    held = frozenset(words_of(text))
    turning = [word for word in held if word in _TURNS or (not (word.isascii() and word.isalpha()) and turns(word))]
    return Words(held, tuple(sorted(sorted(held), key=len, reverse=True)), frozenset(turning))


def cosine(one: Iterable[str], other: Iterable[str]) -> float:
    """Return the similarity of two texts by word counts, from 0 to 1; 0 where either has none."""
    mine, theirs = Counter(one), Counter(other)
    product = sum(count * theirs[word] for word, count in mine.items())
    size = sum(count * count for count in mine.values()) * sum(count * count for count in theirs.values())
    return product / math.sqrt(size) if size else 0.0


class Seen:
    """Texts added so far. A text is compared with those that have the same turning words and share one of its first
    words, the longest being first.

    Two sets that overlap by at least t share a word among the first n - ceil(t n) + 1 of each, so nothing is missed,
    and long words are rare.
    """

    def __init__(self, overlap_min: float) -> None:
        self._min = overlap_min
        self._exact: dict[str, str] = {}
        self._texts: list[tuple[frozenset[str], str]] = []
        self._by_word: dict[frozenset[str], dict[str, list[int]]] = {}
        self._known: dict[str, Words] = {}

    def find(self, text: str, words: Words | None = None) -> str | None:
        """Return the name of an added near-duplicate. `words` are those of the text, where known."""
        if (name := self._exact.get(text.strip())) is not None:
            return name
        words = words or self._words(text)
        by_word = self._by_word.get(words.turning)
        if by_word is None:
            return None
        looked: set[int] = set()
        for word in self._first(words):
            for at in by_word.get(word, ()):
                if at not in looked:
                    looked.add(at)
                    other, name = self._texts[at]
                    if self._alike(words.held, other):
                        return name
        return None

    def add(self, text: str, name: str, words: Words | None = None) -> None:
        self._exact.setdefault(text.strip(), name)
        words = words or self._words(text)
        by_word = self._by_word.setdefault(words.turning, {})
        for word in self._first(words):
            by_word.setdefault(word, []).append(len(self._texts))
        self._texts.append((words.held, name))

    def rename(self, old: str, new: str) -> None:
        """Rename an added text."""
        self._exact = {text: new if name == old else name for text, name in self._exact.items()}
        self._texts = [(held, new if name == old else name) for held, name in self._texts]

    def _first(self, words: Words) -> tuple[str, ...]:
        count = len(words.held)
        return words.longest[: count - math.ceil(self._min * count - 1e-9) + 1]

    def _words(self, text: str) -> Words:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = read_words(text)
        return known

    def _alike(self, one: frozenset[str], other: frozenset[str]) -> bool:
        small, large = len(one), len(other)
        if small > large:
            small, large = large, small
        if small < self._min * large - 1e-9:
            return False
        both = len(one & other)
        return both >= self._min * (small + large - both) - 1e-9


def turns(word: str) -> bool:
    """Return whether a text with this word differs in meaning from one without it. Numbers do, 三 as well as 3."""
    return word in _TURNS or not _SIGNS_THAT_TURN.isdisjoint(word) or any(map(str.isnumeric, word))
