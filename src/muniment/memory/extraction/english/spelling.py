"""English as it is typed in chats, in one spelling: small letters, apostrophes restored, slips of long words mended."""

from __future__ import annotations

import re
from functools import cache

from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.sentences import Sentence
from muniment.memory.extraction.views import View, make_view

__all__ = ["view_english"]

_LIST = WordList(__package__, "spelling.txt")
_PART = re.compile(r"[^\W_]+(?:['’‘/-][^\W_]+)*|\s+|[^\w\s]|_")
_LONG = re.compile(r"(.)\1{2,}")
_MARKS = str.maketrans("’‘`´“”„«»", '\'\'\'\'"""""')
_MENDED_MIN = 6
"""Letters of a word that may be a slip: shorter ones are too near to other words."""


@cache
def _forms() -> dict[str, str]:
    return dict(_LIST.pairs("forms"))


@cache
def _slips() -> dict[str, str]:
    """A word with one letter left out → the word: two words meet here where one is a slip of the other."""
    found: dict[str, str] = {}
    for word in _LIST.words("mended"):
        for shorter in (word, *_shorter(word)):
            found.setdefault(shorter, word)
    return found


@cache
def _right() -> frozenset[str]:
    return frozenset(_LIST.words("mended")) | frozenset(_LIST.words("no slips"))


def _shorter(word: str) -> list[str]:
    return [word[:at] + word[at + 1 :] for at in range(len(word))]


def _mended(word: str) -> str:
    """A slip of a long word as the word; anything else as it is."""
    if len(word) < _MENDED_MIN or len(word) > 14 or not word.isalpha() or word in _right():
        return word
    slips = _slips()
    for shorter in (word, *_shorter(word)):
        right = slips.get(shorter)
        if right is not None and word[0] == right[0] and abs(len(word) - len(right)) <= 1 and _is_slip(word, right):
            return right
    return word


def _is_slip(word: str, right: str) -> bool:
    """One letter too many, too few or wrong, or two swapped; an ending is no slip."""
    if word.rstrip("s") == right or right.rstrip("s") == word:
        return False
    if len(word) == len(right):
        differ = [at for at, (one, other) in enumerate(zip(word, right, strict=True)) if one != other]
        if len(differ) == 1:
            return differ[0] < len(word) - 1
        return len(differ) == 2 and differ[1] == differ[0] + 1 and word[differ[0]] == right[differ[1]]
    return True


def view_english(text: str, sentence: Sentence) -> View:
    """A sentence as rules read it."""
    parts: list[tuple[str, int, int]] = []
    forms = _forms()
    for match in _PART.finditer(sentence.text):
        typed, start, end = match[0], sentence.start + match.start(), sentence.start + match.end()
        if typed.isspace():
            parts.append((" ", start, end))
            continue
        spelled = typed.lower().translate(_MARKS)
        if _LONG.search(spelled) and spelled.isalpha():
            spelled = _LONG.sub(r"\1", spelled)
        known = forms.get(spelled)
        if known is None and spelled.endswith("'s") and spelled[:-2] in forms:
            known = f"{forms[spelled[:-2]]}'s"
        if known is not None and not (typed.isupper() and len(typed) > 1):
            spelled = known
        elif spelled == typed or not typed[:1].isupper() or sentence.text.startswith(typed):
            spelled = _mended(spelled)
        parts.append((spelled, start, end))
    return make_view(text, parts)
