"""Texts of one form: the same words but for numbers, ids, dates and names. Pure.

`Find order 107` and `Find order 112` have one form, and together they are told as `Find order …`. What is the same in
all of them is told as it stands, also where it is a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muniment.core.memos import remembered
from muniment.core.text.patterns import lazy_pattern

__all__ = ["Form", "form_of", "together"]

LEFT_OPEN = "…"
_TOKEN = lazy_pattern(
    r"#?(?:[A-Za-z]{1,6}-)?[A-Za-z_]*\d[A-Za-z0-9_]*(?:[.:/@-][A-Za-z0-9_]+)*"  # numbers, ids, dates, times
    r"|[\w.+-]+@[\w.-]+|https?://\S+"
    r"|[^\W\d_]+(?:['’-][^\W\d_]+)*"  # words
)
_SENTENCE_END = lazy_pattern(r"[.!?:–]\s*[\"'“(]*$")
_SPACE = lazy_pattern(r"\s+")
_LOOKED_BACK = 16
"""Characters before a word in which the end of a sentence is looked for."""


class Form(NamedTuple):
    """What stays of a text, piece by piece, and what may be another in the next: one more piece than places."""

    fixed: tuple[str, ...]
    open: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """The same for texts of one form."""
        return tuple(_SPACE.sub(" ", piece).casefold() for piece in self.fixed)

    @property
    def has_words(self) -> bool:
        """Does anything stay by which a text could be told?"""
        return any(character.isalpha() for piece in self.fixed for character in piece)


@remembered(4096)
def form_of(text: str) -> Form:
    """The form of a text. A word that begins with a capital is a name, unless it begins a sentence."""
    fixed = [""]
    places: list[str] = []
    end = 0
    for found in _TOKEN.finditer(text):
        before = text[end : found.start()]
        if not _may_vary(found[0], text[max(0, found.start() - _LOOKED_BACK) : found.start()]):
            fixed[-1] += before + found[0]
        elif places and not fixed[-1] and not before.strip():  # names of several words
            places[-1] += before + found[0]
        else:
            fixed[-1] += before
            places.append(found[0])
            fixed.append("")
        end = found.end()
    fixed[-1] += text[end:]
    return Form(tuple(fixed), tuple(places))


def _may_vary(token: str, before: str) -> bool:
    if any(sign.isdigit() or sign in "@/" for sign in token):
        return True
    return token[0].isupper() and bool(before.strip()) and _SENTENCE_END.search(before) is None


def together(forms: Sequence[Form]) -> str:
    """Texts of one form as one: what is not the same in all of them is left open."""
    first = forms[0]
    shown = [_shared([form.open[place].split() for form in forms]) for place in range(len(first.open))]
    return "".join(part for pair in zip(first.fixed, (*shown, ""), strict=True) for part in pair)


def _shared(values: Sequence[Sequence[str]]) -> str:
    """The words that all begin with and end with, and what is between left open."""
    if all(value == values[0] for value in values):
        return " ".join(values[0])
    least = min(map(len, values))
    start = next((at for at in range(least) if len({value[at] for value in values}) > 1), least - 1)
    rest = least - start - 1
    end = next((at for at in range(rest) if len({value[-1 - at] for value in values}) > 1), rest)
    return " ".join((*values[0][:start], LEFT_OPEN, *values[0][len(values[0]) - end :]))
