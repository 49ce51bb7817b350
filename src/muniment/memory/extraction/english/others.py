"""Is what a sentence tells by the way the speaker's own, or somebody else's?

`My daughter has a peanut allergy`, `strawberries give my son hives`, `one of the guests is diabetic`: rules that look
for words anywhere know no subject, and would tell these of the speaker. So the person named last before the words
counts, or, where none is, the first one behind them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from muniment.core.text.latin_names import plain
from muniment.core.text.names import is_name
from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.english.classes import noun_class
from muniment.memory.extraction.english.words import ANIMAL_KEYS, KIN_KEYS
from muniment.memory.extraction.grammar import Clause, Told
from muniment.memory.extraction.views import View

__all__ = ["is_anothers"]

_WORDS = WordList(__package__, "others.txt")
_OWN = frozenset(_WORDS.words("may be anybody's"))
"""What may be anybody's: whose it is stands in the subject alone."""
_MORE_BEINGS = frozenset(_WORDS.words("beings"))
_I = frozenset(_WORDS.words("the speaker"))
_THIRD = frozenset(_WORDS.words("others"))
_BODY = frozenset(_WORDS.words("parts of the speaker"))
_BEFORE = frozenset(_WORDS.words("before a being"))
_AS = frozenset(_WORDS.words("before what the speaker is"))
_BE = frozenset(_WORDS.words("verbs of a subject"))
_WITH = frozenset(_WORDS.words("behind several"))
_ENDS = _BE | frozenset(_WORDS.words("ends of a noun"))
_NO_NAMES = frozenset(_WORDS.words("no names"))
_HEALERS = frozenset(_WORDS.words("healers"))
_BEINGS = frozenset(("kin", "person", "worker", "animal"))
_BODILY = re.compile(
    r"(?:'s| is| was)(?: [a-z]+){0,2} (?:allergic|allergy|intolerant)\b"
    r"|(?: has| had| gets| got) an? (?:[a-z]+ ){1,3}(?:allergy|intolerance)\b"
)
"""Behind a name that is a word as well: `Grace has a nut allergy`, where `June's pollen …` is of a month."""
_WORD = re.compile(r"[a-z][a-z'-]*")
_MY = re.compile(r"\bmy $")
_AS_A = re.compile(r"(?:^|[,.;:!?] ?|\b(?:and|so|but|because|since) )$")
"""What stands before `as a nurse`, where it is the speaker who is one."""
_NOUN_AWAY_MAX = 4
_REACH = 240
"""How far around the words is looked, in characters: a sentence may be as long as a message."""


class _Named(NamedTuple):
    start: int
    end: int
    is_own: bool


def is_anothers(view: View, clause: Clause, told: Told) -> bool:
    """Do the words speak of somebody other than the one who says them?"""
    if told.key not in _OWN:
        return False
    if _MY.search(view.text, max(0, told.start - 4), told.start) and not _is_being(str(told.value).lower()):
        return False
    named = [*_named(view, max(0, told.start - _REACH), min(clause.end, told.end + _REACH))]
    before = [each for each in named if each.end <= told.start]
    if before:
        return not before[-1].is_own
    within = [each for each in named if each.start < told.end and told.start < each.end]
    behind = [each for each in named if each.start >= told.end]
    if behind:
        return not behind[0].is_own
    return any(_states(view, each.end) for each in within)


def _states(view: View, at: int) -> bool:
    """Does a verb follow, of which the words before are the subject?"""
    word = _WORD.match(view.text, at + 1)
    return word is not None and word[0] in _BE


def _named(view: View, begin: int, stop: int) -> Iterator[_Named]:
    """Whom a stretch of a sentence names, in order."""
    words = [*_WORD.finditer(view.text, begin, stop)]
    at = 0
    while at < len(words):
        word, (start, end) = words[at][0], words[at].span()
        following = words[at + 1][0] if at + 1 < len(words) else ""
        at += 1
        if word in _I or (word in ("my", "our") and following in _BODY):
            yield _Named(start, end, is_own=True)
        elif word == "as" and following in ("a", "an") and _AS_A.search(view.text, max(0, start - 9), start):
            yield _Named(start, end, is_own=True)
            at += 1
        elif word in _THIRD:
            yield _Named(start, end, is_own=False)
        elif word in _BEFORE:
            noun = _being_behind(view, words, at)
            if noun is not None and not _heals(words[noun][0]):
                is_own = word in ("a", "an") and at > 1 and words[at - 2][0] in _AS
                yield _Named(start, words[noun].end(), is_own=is_own)
                at = noun + 1
        elif _is_several(word, following) or (
            view.is_capital(start) and (_is_named(word, following) or _is_ill(view, word, start))
        ):
            yield _Named(start, end, is_own=False)


def _being_behind(view: View, words: list[re.Match[str]], first: int) -> int | None:
    """The number of the person or animal that a `my` or `the` stands before: `my little daughter`."""
    for number in range(first, min(first + _NOUN_AWAY_MAX, len(words))):
        word, before = words[number][0], words[number - 1]
        if word in _ENDS or view.text[before.end() : words[number].start()] != " ":
            return None
        if _is_being(word.removesuffix("'s")):
            return number
    return None


def _heals(noun: str) -> bool:
    """`my doctor prescribed …` is said of the speaker."""
    return noun in _HEALERS or noun.endswith(("ologist", "iatrist"))


def _is_several(word: str, following: str) -> bool:
    """`guests with`, `kids who`."""
    return word.endswith("s") and following in _WITH and _is_being(word)


def _is_named(word: str, following: str) -> bool:
    """`Ben is …`, `Ben's allergic …`: what a name is the subject of."""
    bare = word.removesuffix("'s")
    return (following in _BE and _is_name(word)) or (bare != word and _is_name(bare))


def _is_ill(view: View, word: str, start: int) -> bool:
    """Is it a name of which only a body's matter is said, though it is a place or a month as well?"""
    bare = word.removesuffix("'s")
    return is_name(plain(bare)) and _BODILY.match(view.text, start + len(bare)) is not None


def _is_name(word: str) -> bool:
    return word not in _NO_NAMES and not noun_class(word)


def _is_being(noun: str) -> bool:
    return noun in KIN_KEYS or noun in ANIMAL_KEYS or noun in _MORE_BEINGS or noun_class(noun) in _BEINGS
