"""Which of those who speak in a scope a query names: by name, as they are called, in other letters, or with a slip.

A name that stands in the query as it is spelled wins over any other reading. What is read otherwise has to mean one
speaker and no other, and a slip has to be nobody's name: neither a known one nor one that the scope speaks of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.analyzer import analyze, korean_particles, stop_words, term_hash
from muniment.core.text.latin_names import plain
from muniment.core.text.names import (
    NAME,
    also_called,
    called,
    capitalised,
    is_abjad,
    is_everyday_word,
    is_name,
    is_slip,
    name_key,
    without_vowels,
)
from muniment.core.text.patterns import lazy_pattern

__all__ = ["NAMELESS", "Holding", "Named", "names_unsaid", "speakers_named"]

Holding = Callable[[int], int]
"""From a term's hash to the number of turns that have it."""

WORDS_MAX = 64
"""Words of a query that are read as another spelling of a name; of a longer one the first."""
MENTIONED_MIN = 2
"""A name that so many turns mention is somebody's: it is no slip for another."""
_CONSONANTS_MIN = 3

NAMELESS = frozenset(("", "user", "assistant", "human", "ai", "bot", "system", "tool", "agent", "model", "me", "you"))
"""What those are called who have no name of their own."""
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "mx", "dr", "prof", "sir", "madam", "hon", "rt", "the", "right"))
_WORD = re.compile(r"[^\W_]+")
_BESIDE = re.compile(r"[(\[,]")
"""What stands behind it in a speaker's name tells where they are from, not how they are called."""
_ENDS = lazy_pattern(r"[.!?\n]\s*\Z")


class Named(NamedTuple):
    """A speaker that a query names."""

    number: int
    spelled: tuple[str, ...] = ()
    """The words of the query, casefolded, that stand for the name and are not how it is spelled."""


class _Name(NamedTuple):
    number: int
    words: tuple[str, ...]
    whole: str
    """All of it, casefolded."""
    spelled: frozenset[str]
    """The first word in plain letters, and all of it."""

    @property
    def first(self) -> str:
        """The first word in plain letters."""
        return plain(self.words[0])


def speakers_named(text: str, speakers: Sequence[str], holding: Holding | None = None) -> list[Named]:
    """The speakers whose name, first name or family name stands in a query, in the order of `speakers`.

    `holding` tells what the scope speaks of; without it nothing is known of people who are only mentioned.
    """
    names = _names(tuple(speakers))
    if not names:
        return []
    folded = text.casefold()
    said = _WORD.findall(folded)
    found, taken = _exact(names, folded, said, frozenset(_WORD.findall(text)))
    others = [name for name in names if name.number not in found]
    if others:
        found |= _otherwise(others, text, taken, holding)
    return [found[number] for number in sorted(found)]


@remembered(64)
def _names(speakers: tuple[str, ...]) -> tuple[_Name, ...]:
    """Those who have a name: the same in every query of a scope."""
    return tuple(_read_names(speakers))


def _read_names(speakers: Sequence[str]) -> Iterator[_Name]:
    for number, speaker in enumerate(speakers):
        whole = speaker.casefold().strip()
        if whole in NAMELESS:
            continue
        words = _WORD.findall(_BESIDE.split(whole, maxsplit=1)[0]) or _WORD.findall(whole)
        without_title = [word for place, word in enumerate(words) if word not in _TITLES or place == len(words) - 1]
        found = tuple(without_title) or (whole,)
        first = plain(found[0])
        spelled = frozenset((first, plain(whole)) if len(found) > 1 else (first,))
        yield _Name(number, found, whole, spelled)


def _exact(
    names: Sequence[_Name], folded: str, said: Sequence[str], written: frozenset[str]
) -> tuple[dict[int, Named], frozenset[str]]:
    """Those named as they are spelled, and the words that did so. A whole name wins over a part that others share."""
    held = frozenset(said)
    joined = f" {' '.join(said)} " if any(len(name.words) > 1 for name in names) else ""
    whole: dict[int, Named] = {}
    parts: dict[str, list[int]] = {}
    family: dict[str, list[int]] = {}
    taken: set[str] = set()
    for name in names:
        number, words = name.number, name.words
        first, last = words[0], words[-1]
        if (len(words) > 1 and f" {' '.join(words)} " in joined) or (
            not name.whole.isascii() and len(name.whole) > 1 and name.whole in folded
        ):
            whole[number] = Named(number)
            taken.update(words)
        elif first in held and len(first) > 1 and _is_called_so(words, written):
            parts.setdefault(first, []).append(number)
        elif len(words) > 1 and len(last) > 2 and last in held:
            family.setdefault(last, []).append(number)
    found = dict(whole)
    for word, numbers in parts.items():
        if word not in taken:
            found |= {number: Named(number) for number in numbers}
    for word, numbers in family.items():
        if word not in taken and word not in parts and len(numbers) == 1 and word not in written:
            found[numbers[0]] = Named(numbers[0])
            taken.add(word)
    return found, frozenset(taken | parts.keys())


def _is_called_so(words: Sequence[str], written: frozenset[str]) -> bool:
    """Is the first word of a name what somebody is called ("Professor B"), or a word ("Project Manager")?"""
    is_label = all(len(word) == 1 or word.isdecimal() for word in words[1:])
    return is_label or is_name(plain(words[0])) or words[0] not in written


# -- those only mentioned -----------------------------------------------------------------------------


def names_unsaid(text: str, holding: Holding) -> dict[str, list[str]]:
    """The words of a query that look like names and that no turn has → the terms that the name may be found by: what
    the spellings of it have in common, and what else somebody of the name is called.
    """
    found: dict[str, list[str]] = {}
    for word, is_told in islice(capitalised(text), WORDS_MAX):
        terms = analyze(word)
        if not terms or any(holding(term_hash(term)) for term in terms):
            continue
        spelled = plain(word)
        if not is_told and not is_name(spelled) and not _is_odd(word.casefold()):
            continue
        key = name_key(word)
        others = sorted({term for form in also_called(spelled) for term in analyze(form)} - set(terms))
        found[word.casefold()] = [NAME + key, *others] if key else others
    return found


# -- other spellings ------------------------------------------------------------------------------------


class _Word(NamedTuple):
    """A word of a query that may be a name."""

    folded: str
    has_capital: bool
    """One that tells something: it is not there because a sentence begins."""


def _otherwise(names: Sequence[_Name], text: str, taken: frozenset[str], holding: Holding | None) -> dict[int, Named]:
    found: dict[int, Named] = {}
    decided = taken.union(name.words[0] for name in names)
    for word in _words(text):
        number = None if word.folded in decided else _meant(word, names, holding)
        if number is not None:
            found[number] = Named(number, (*(found[number].spelled if number in found else ()), word.folded))
    return found


def _words(text: str) -> Iterator[_Word]:
    """The words that may be names: with a capital, at the start of a sentence, or any where no capitals are written."""
    small = stop_words("english")
    is_cased = any(map(str.isupper, text[1:]))
    seen: set[str] = set()
    for match in _WORD.finditer(text):
        word, start = match[0], match.start()
        folded = word.casefold()
        if folded in seen or folded in small or len(word) < 2 or word.isdecimal():
            continue
        has_capital = word[0].isupper()
        if not has_capital and is_cased and word[0].islower():
            continue
        begins = start == 0 or _ENDS.search(text, max(0, start - 4), start) is not None
        seen.add(folded)
        if len(seen) > WORDS_MAX:
            return
        yield _Word(folded, has_capital and not begins)


def _meant(word: _Word, names: Sequence[_Name], holding: Holding | None) -> int | None:
    """The one speaker that a word stands for; the surest reading that any of them has decides."""
    forms = [form for form in map(plain, _forms(word.folded)) if len(form) > 1]
    if not forms or (is_everyday_word(forms[0]) and not word.has_capital):
        return None
    meant = [name.number for name in names if not name.spelled.isdisjoint(forms)]
    if not meant and (others := frozenset().union(*map(called, forms))):
        meant = [name.number for name in names if not called(name.first).isdisjoint(others)]
    if meant:
        return meant[0] if len(meant) == 1 else None
    in_consonants = [name.number for name in names if _has_consonants(word.folded, forms[0], name)]
    if in_consonants:
        return in_consonants[0] if len(in_consonants) == 1 else None
    meant = [name.number for name in names if any(is_slip(form, name.first) for form in forms)]
    return meant[0] if len(meant) == 1 and _may_be_slip(word, holding) else None


def _is_odd(folded: str) -> bool:
    """Is it a word that no dictionary has? What an everyday word is, tokenizers know."""
    from muniment.core.text.tokens import is_single_token

    return not (folded.isascii() and is_single_token(folded))


def _may_be_slip(word: _Word, holding: Holding | None) -> bool:
    """Is it with a capital, or in no dictionary; no place, and spoken of by nobody in the scope?"""
    from muniment.core.text.stated.places import is_known_place

    if not (word.has_capital or _is_odd(word.folded)) or is_known_place(word.folded):
        return False
    return holding is None or all(holding(term_hash(term)) < MENTIONED_MIN for term in analyze(word.folded))


def _forms(folded: str) -> Iterator[str]:
    """A word, and in Korean the word without what follows a noun."""
    yield folded
    if "\uac00" <= folded[0] <= "\ud7a3":
        for particle in korean_particles():
            if len(folded) > len(particle) + 1 and folded.endswith(particle):
                yield folded[: -len(particle)]
                return


def _has_consonants(folded: str, form: str, name: _Name) -> bool:
    """Is one of the two written without its vowels, and are the consonants the same?"""
    if is_abjad(folded) == is_abjad(name.whole) or len(without_vowels(form)) < _CONSONANTS_MIN:
        return False
    return without_vowels(form) == without_vowels(name.first)
