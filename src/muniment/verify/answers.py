"""Score a model's answer against expected ones without a judge: token F1, containment, declining, citations.

Texts are compared as tokens: casefolded stems without articles, "and" and possessive endings, numbers in digits ("two"
is "2", "1,200" is "1200"), and dates normalised, so that "7 May 2023", "May 7th, 2023" and "2023-05-07" give the same
three tokens. Chinese, Japanese and Thai are compared character by character. Meaning is not compared: synonyms differ.
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
"""Articles, list conjunctions, and the months, which count as dates even without other parts of a date next to them."""
_FIRST_CHARS_MAX = 1_000
_APOSTROPHES = str.maketrans("", "", "'’‘`´")
_POSSESSIVE = lazy_pattern(r"(?<=[^\W\d_]{2})['’]s\b")
_NUMBER_WORDS = NUMBER_WORDS | {"zero": "0", "one": "1"}
_SIGNS = "\u0e01-\u0e4e\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff々〇"
"""Scripts that write no spaces between words."""
_TOKEN = lazy_pattern(rf"[{_SIGNS}]|\d+(?:[.,]\d+)*(?:st|nd|rd|th|s)?(?![^\W_])|[^\W_{_SIGNS}]+")


class AnswerTokens(NamedTuple):
    """A text in the form used for comparison."""

    words: tuple[str, ...]
    """In reading order."""
    dates: tuple[str, ...]
    """The parts of written-out dates: days, months, years."""

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.dates, *self.words)


@remembered(4096)
def answer_tokens(text: str) -> AnswerTokens:
    """Tokenise a text for comparison, ignoring citation marks (`[3]`)."""
    folded = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", MARK.sub(" ", text)).casefold()).translate(_APOSTROPHES)
    dates: list[str] = []
    left = take_dates(plain_letters(ascii_digits(folded)), dates)
    words = [_token(found) for found in _TOKEN.findall(left) if found not in _SAY_NOTHING]
    return AnswerTokens(tuple(words), tuple(dates))


def _token(word: str) -> str:
    return _NUMBER_WORDS.get(word) or (plain_number(word) if word[0].isdecimal() else stem(word))


# -- against what was expected ------------------------------------------------------------------------


def token_f1(answer: str, expected: str) -> float:
    """Return the harmonic mean of the answer's precision and recall over expected tokens.

    Two texts without tokens are equal; if only one has none, the score is 0.
    """
    return f1_of(answer_tokens(answer).all, answer_tokens(expected).all)


def f1_of(tokens: Iterable[str], expected: Iterable[str]) -> float:
    """Token F1 of texts that are already tokenised."""
    mine, wanted = Counter(tokens), Counter(expected)
    if not mine or not wanted:
        return float(mine == wanted)
    return 2 * (mine & wanted).total() / (mine.total() + wanted.total())


def best_f1(answer: str, expected: Iterable[str]) -> float:
    """The highest token F1 over the expected answers; 0 if there are none."""
    return max((token_f1(answer, each) for each in expected), default=0.0)


def tokens_hold(text: AnswerTokens, wanted: AnswerTokens) -> bool:
    """True if the words occur consecutively in the text and the dates anywhere. A text without tokens
    occurs nowhere.
    """
    if not wanted.all or not set(wanted.dates) <= set(text.dates):
        return False
    if f" {' '.join(wanted.words)} " in f" {' '.join(text.words)} ":
        return True
    return set(wanted.words) <= set(text.dates)  # a year alone in one, and in a date of the other


def contains_any(text: str, expected: Iterable[str]) -> bool:
    """True if the text contains one of the expected answers."""
    held = answer_tokens(text)
    return any(tokens_hold(held, answer_tokens(each)) for each in expected)


# -- declining ----------------------------------------------------------------------------------------


@cache
def _forms(section: str) -> re.Pattern[str]:
    return re.compile(_WORDS.either(section))


def was_declined(answer: str) -> bool:
    """Return whether the answer only says that it does not know.

    The first sentence decides, since the rest is commonly an offer to help: with such words in it, and no "but" after
    them, nothing was answered. An answer without a word or number declines too, unless it consists of citation marks,
    which point at evidence.
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
    """Properties of an answer's citation marks."""

    any: bool
    """True if there is a mark."""
    known: bool
    """True if a mark names evidence in the prompt."""
    unknown: bool
    """True if a mark names something that is not in the prompt."""
    right: bool
    """True if a mark names expected evidence."""
    recall: float
    """Share of the expected evidence that is cited."""


def judge_citations(answer: str, marks: Mapping[str, str], expected: Collection[str]) -> Citations:
    """Compare an answer's marks with the expected evidence ids; `marks` maps each mark's number to an id."""
    resolved = resolve(answer, marks)
    named, wanted = set(resolved.evidence_ids), set(expected)
    right = named & wanted
    unknown = bool(resolved.unknown_marks)
    recall = len(right) / len(wanted) if wanted else 0.0
    return Citations(bool(named) or unknown, bool(named), unknown, bool(right), recall)
