"""What a model's answer is worth against what was expected, with no judge: token F1, containment, declining, citations.

Texts are compared as tokens: casefolded stems without articles, "and" and the ends of possessives, numbers in digits
("two" is "2", "1,200" is "1200"), and dates by what they name, so that "7 May 2023", "May 7th, 2023" and "2023-05-07"
are the same three tokens. Chinese, Japanese and Thai are compared sign by sign. Nothing
here weighs meaning: two words for one thing differ.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.analyzer import NUMBER_WORDS, plain_number, stem, take_dates
from muniment.core.text.patterns import ascii_digits, lazy_pattern, plain_letters
from muniment.core.text.sentences import MARK, sentence_spans
from muniment.core.text.word_lists import WordList
from muniment.packets.answers import resolve

_WORDS = WordList(__package__, "declined.txt")
_SAY_NOTHING = frozenset(
    "a an the and january february april june july august september october november december".split()  # noqa: SIM905
)
"""Articles, what joins the parts of a list, and the months that are told as dates even where nothing else of a date
stands around them."""
_FIRST_CHARS_MAX = 1_000
_APOSTROPHES = str.maketrans("", "", "'’‘`´")
_POSSESSIVE = lazy_pattern(r"(?<=[^\W\d_]{2})['’]s\b")
_NUMBER_WORDS = NUMBER_WORDS | {"zero": "0", "one": "1"}
_SIGNS = "\u0e01-\u0e4e\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々〇"
"""Scripts that write no blanks between words."""
_TOKEN = lazy_pattern(rf"[{_SIGNS}]|\d+(?:[.,]\d+)*(?:st|nd|rd|th|s)?(?![^\W_])|[^\W_{_SIGNS}]+")


class AnswerTokens(NamedTuple):
    """A text as it is compared."""

    words: tuple[str, ...]
    """In reading order."""
    dates: tuple[str, ...]
    """The parts of the dates that are written out: months, days, years."""

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.dates, *self.words)


@remembered(4096)
def answer_tokens(text: str) -> AnswerTokens:
    """A text as it is compared; marks of citation (`[3]`) say nothing."""
    folded = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", MARK.sub(" ", text)).casefold()).translate(_APOSTROPHES)
    dates: list[str] = []
    left = take_dates(plain_letters(ascii_digits(folded)), dates)
    words = [_token(found) for found in _TOKEN.findall(left) if found not in _SAY_NOTHING]
    return AnswerTokens(tuple(words), tuple(dates))


def _token(word: str) -> str:
    return _NUMBER_WORDS.get(word) or (plain_number(word) if word[0].isdecimal() else stem(word))


# -- against what was expected ------------------------------------------------------------------------


def token_f1(answer: str, expected: str) -> float:
    """The harmonic mean of the share of the answer's tokens that were expected and of those expected that it has.

    Two texts without a token are alike; one of the two without any has nothing of the other.
    """
    return f1_of(answer_tokens(answer).all, answer_tokens(expected).all)


def f1_of(tokens: Iterable[str], expected: Iterable[str]) -> float:
    """The same of texts that are cut up already."""
    mine, wanted = Counter(tokens), Counter(expected)
    if not mine or not wanted:
        return float(mine == wanted)
    return 2 * (mine & wanted).total() / (mine.total() + wanted.total())


def best_f1(answer: str, expected: Iterable[str]) -> float:
    """The token F1 against whichever of the expected answers fits best; 0 where none is."""
    return max((token_f1(answer, each) for each in expected), default=0.0)


def tokens_hold(text: AnswerTokens, wanted: AnswerTokens) -> bool:
    """Do the words stand in the text in a row, and the dates anywhere? What has no token stands nowhere."""
    if not wanted.all or not set(wanted.dates) <= set(text.dates):
        return False
    if f" {' '.join(wanted.words)} " in f" {' '.join(text.words)} ":
        return True
    return set(wanted.words) <= set(text.dates)  # a year that stands alone in one, and in a date of the other


def contains_any(text: str, expected: Iterable[str]) -> bool:
    """Does one of the expected answers stand in the text?"""
    held = answer_tokens(text)
    return any(tokens_hold(held, answer_tokens(each)) for each in expected)


# -- declining ----------------------------------------------------------------------------------------


@cache
def _forms(section: str) -> re.Pattern[str]:
    return re.compile(_WORDS.either(section))


def was_declined(answer: str) -> bool:
    """Does the answer say that it is not known, and go on to nothing else?

    Its first sentence decides, for what follows is commonly an offer to help: where it holds such words, and no "but"
    behind them, nothing was answered. An answer without a word or a number declines too; one that is nothing but marks
    points at what answers.
    """
    said = MARK.sub(" ", answer).strip()
    if not any(map(str.isalnum, said)):
        return not any(map(str.isalnum, answer))
    start, end = sentence_spans(said)[0]
    first = unicodedata.normalize("NFKC", said[start : min(end, _FIRST_CHARS_MAX)]).casefold().replace("’", "'")
    found = _forms("declines").search(first)
    return found is not None and _forms("turns").search(first, found.end()) is None


# -- citations ----------------------------------------------------------------------------------------


class Citations(NamedTuple):
    """What the marks of one answer cite."""

    any: bool
    """Is there a mark at all?"""
    known: bool
    """Does a mark name evidence that the prompt holds?"""
    unknown: bool
    """Is there a mark that names nothing which the prompt holds?"""
    right: bool
    """Does a mark name evidence that was expected?"""
    recall: float
    """Which share of the expected evidence is named."""


def judge_citations(answer: str, marks: Mapping[str, str], expected: Collection[str]) -> Citations:
    """The marks of an answer against the evidence ids that were expected; `marks` says which id each number names."""
    resolved = resolve(answer, marks)
    named, wanted = set(resolved.evidence_ids), set(expected)
    right = named & wanted
    unknown = bool(resolved.unknown_marks)
    recall = len(right) / len(wanted) if wanted else 0.0
    return Citations(bool(named) or unknown, bool(named), unknown, bool(right), recall)
