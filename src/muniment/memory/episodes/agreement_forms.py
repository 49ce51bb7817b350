"""The forms in which people lay down, promise, decide and take back, as patterns over one plain sentence.

Most sentences have none of them. Which forms a sentence may have is told by its words, each looked at once: a form has
*needles*, of which one stands in every sentence that has it, and a needle has a *piece*, which stands in a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from typing import NamedTuple

from muniment.core.limits import Memo, remembered
from muniment.core.text.analyzer import ascii_words
from muniment.core.text.patterns import Needles, lazy_pattern, needle_sets_of
from muniment.core.text.word_lists import WordList, forms_in

__all__ = ["SECTIONS", "has_form", "plain_sentence", "strength_of"]

_WEIGHED = ("constraint", "commitment", "decision")
"""Sections whose entries begin with a strength."""
SECTIONS = (*_WEIGHED, "momentary", "conditional", "not said so", "permitted", "not for good", "done", "not done")
_WORDS = WordList(__package__, "agreements.txt")
_NAMED = re.compile(r"<(\w[\w ]*)>")
_STRAIGHT = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})


def plain_sentence(sentence: str) -> str:
    """A sentence as the forms are written: lowered, with straight quotes."""
    return (sentence if sentence.isascii() else sentence.translate(_STRAIGHT)).lower()


def has_form(section: str, plain: str) -> bool:
    """Does a plain sentence have one of the forms of a section?"""
    return _section(section).first_in(plain) is not None


def strength_of(section: str, plain: str) -> int:
    """How strongly a plain sentence says what a section is about, by its strongest form; 0 where it does not."""
    form = _section(section).first_in(plain)
    return 0 if form is None else form.strength


# -- forms --------------------------------------------------------------------------------------------


class _Form(NamedTuple):
    pattern: re.Pattern[str]
    strength: int
    needles: tuple[Needles, ...]
    """One of each of these stands in every sentence that has the form."""


class _Section:
    """The forms of a section in order, by what a sentence must hold to have one."""

    def __init__(self, forms: Iterable[_Form]) -> None:
        pieces = _pieces()
        self._forms = [(form, [pieces.bits_of(needles) for needles in form.needles]) for form in forms]
        self._bits = 0
        for bits in chain.from_iterable(needed for _, needed in self._forms):
            self._bits |= bits
        self._possible: Memo[int, tuple[_Form, ...]] = Memo()

    def first_in(self, plain: str) -> _Form | None:
        """The first of the forms that a plain sentence has."""
        held = _bits_held(plain) & self._bits
        possible = self._possible.get(held)
        if possible is None:
            if len(self._possible) > _POSSIBLE_MAX:
                self._possible.clear()
            forms = [form for form, needed in self._forms if all(held & bits for bits in needed)]
            possible = self._possible[held] = tuple(forms)
        for form in possible:
            if form.pattern.search(plain) is not None:
                return form
        return None


@cache
def _section(section: str) -> _Section:
    return _Section(_forms(section))


@cache
def _forms(section: str) -> tuple[_Form, ...]:
    """The forms of a section, the strongest first."""
    if section not in _WEIGHED:
        given = ((form, 0) for entry in _WORDS.entries(section) for form in forms_in(entry))
        return tuple(_read(given))
    read = (entry.replace("\n", "").split(" ", 1) for entry in _WORDS.entries(section))
    return tuple(sorted(_read((form, int(strength)) for strength, form in read), key=lambda form: -form.strength))


def _read(given: Iterable[tuple[str, int]]) -> Iterator[_Form]:
    """Forms of these patterns and strengths."""
    for pattern, strength in given:
        source = _spelled(pattern)
        yield _Form(lazy_pattern(source), strength, needle_sets_of(source))


def _spelled(pattern: str) -> str:
    """A pattern with the alternatives of the sections that it names in their place."""
    while found := _NAMED.search(pattern):
        pattern = f"{pattern[: found.start()]}{_WORDS.either(found[1])}{pattern[found.end() :]}"
    return pattern


# -- what a sentence may hold -------------------------------------------------------------------------

_ANY, _BEYOND_ASCII = 1, 2
"""The bits of what words cannot tell: every sentence may hold it, or every one that has more than ASCII."""
_RUN = re.compile("[a-z0-9]+")
_LETTERS_MIN = 2
"""A single letter tells nothing."""
_KEPT_MAX, _POSSIBLE_MAX = 1 << 16, 1 << 12
_KEPT_CHARS_MAX = 64


class _Piece(NamedTuple):
    """The longest run of letters and digits of a needle: it stands in a word of every sentence that has the needle."""

    bit: int
    begins: bool
    """The word begins with it: in the needle something else stands before it."""
    ends: bool


class _Pieces(Memo[str, int]):
    """A word of ASCII → the needles that it may be a part of, as bits; words are remembered."""

    def __init__(self, needles: Iterable[str]) -> None:
        super().__init__()
        self._bits: dict[str, int] = {}
        self._pieces: dict[str, list[_Piece]] = {}
        for place, needle in enumerate(sorted(set(needles))):
            runs = _RUN.finditer(needle)
            run = max(runs, key=lambda match: match.end() - match.start(), default=None)
            if not needle.isascii() or run is None or len(run[0]) < _LETTERS_MIN:
                self._bits[needle] = _ANY if needle.isascii() else _BEYOND_ASCII
                continue
            self._bits[needle] = bit = 2 * _BEYOND_ASCII << place
            self._pieces.setdefault(run[0], []).append(_Piece(bit, run.start() > 0, run.end() < len(needle)))
        self._longest = max(map(len, self._pieces), default=0)
        free, begin, end = ([], [], [])  # type: tuple[list[str], list[str], list[str]]
        for text, pieces in self._pieces.items():
            for piece in pieces:
                (begin if piece.begins else end if piece.ends else free).append(text)
        self._inside = re.compile("|".join(sorted(set(free))))
        self._beginnings, self._ends = tuple(begin), tuple(end)

    def bits_of(self, needles: Iterable[str]) -> int:
        """The bits of needles of which one stands in a sentence."""
        bits = 0
        for needle in needles:
            bits |= self._bits[needle]
        return bits

    def __missing__(self, word: str) -> int:
        has_piece = word.startswith(self._beginnings) or word.endswith(self._ends) or self._inside.search(word)
        bits = self._looked_up(word) if has_piece else 0  # few words have one
        if len(word) <= _KEPT_CHARS_MAX:
            if len(self) > _KEPT_MAX:
                self.clear()
            self[word] = bits
        return bits

    def _looked_up(self, word: str) -> int:
        bits, size = 0, len(word)
        for start in range(size):
            for end in range(start + 1, min(size, start + self._longest) + 1):
                for bit, begins, ends in self._pieces.get(word[start:end], ()):
                    if not (begins and start) and not (ends and end < size):
                        bits |= bit
        return bits


@cache
def _pieces() -> _Pieces:
    """Of the needles of all sections, numbered in order: made twice, it is the same."""
    return _Pieces(needle for form in chain.from_iterable(map(_forms, SECTIONS)) for needle in chain(*form.needles))


@remembered(16)
def _bits_held(plain: str) -> int:
    """The needles that a plain sentence may hold: any of them where it has more than ASCII."""
    if not plain.isascii():
        return -1
    pieces, bits = _pieces(), _ANY
    for word in set(ascii_words(plain)):
        bits |= pieces[word]
    return bits
