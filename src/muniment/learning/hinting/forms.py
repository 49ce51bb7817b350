"""Texts of one form: the same words but for numbers, ids, dates and names. Pure.

`Find order 107` and `Find order 112` have one form, and together they are told as `Find order …`. What is the same in
all of them is told as it stands, also where it is a name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.patterns import lazy_pattern

__all__ = ["LEFT_OPEN", "Form", "Token", "form_of", "make_form", "together"]

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


class Token(NamedTuple):
    """A word, number or id of a text, and what stands around it."""

    text: str
    before: str
    """A little of what stands before it."""
    after: str
    goes_on: bool
    """Does it stand right behind what is left open?"""
    in_code: bool
    """Does it stand between backticks?"""

    @property
    def is_id(self) -> bool:
        return any(sign.isdigit() or sign in "@/" for sign in self.text)

    @property
    def is_capital(self) -> bool:
        return self.text[0].isupper()

    @property
    def starts_sentence(self) -> bool:
        return not self.before.strip() or _SENTENCE_END.search(self.before) is not None


@remembered(4096)
def form_of(text: str) -> Form:
    """The form of a text. A word that begins with a capital is a name, unless it begins a sentence; what is written as
    code is told word for word.
    """
    return make_form(text, _may_vary)


def make_form(text: str, may_vary: Callable[[Token], bool | slice]) -> Form:
    """The form of a text, by what of it may be another in the next: a whole word, or a slice of one."""
    fixed = [""]
    places: list[str] = []
    end, ticks, counted = 0, 0, 0
    for found in _TOKEN.finditer(text):
        before = text[end : found.start()]
        goes_on = bool(places) and not fixed[-1] and not before.strip()
        around = (
            text[max(0, found.start() - _LOOKED_BACK) : found.start()],
            text[found.end() : found.end() + _LOOKED_BACK],
        )
        ticks, counted = ticks + text.count("`", counted, found.start()), found.start()
        varies = may_vary(Token(found[0], *around, goes_on, in_code=ticks % 2 == 1))
        if isinstance(varies, slice):
            start, stop, _ = varies.indices(len(found[0]))
            fixed[-1] += before + found[0][:start]
            places.append(found[0][start:stop])
            fixed.append(found[0][stop:])
        elif not varies:
            fixed[-1] += before + found[0]
        elif goes_on:  # names of several words
            places[-1] += before + found[0]
        else:
            fixed[-1] += before
            places.append(found[0])
            fixed.append("")
        end = found.end()
    fixed[-1] += text[end:]
    return Form(tuple(fixed), tuple(places))


def _may_vary(token: Token) -> bool:
    return not token.in_code and (token.is_id or (token.is_capital and not token.starts_sentence))


def together(forms: Sequence[Form]) -> str:
    """Texts of one form as one: what is not the same in all of them is left open. Of texts of one form that were cut
    at different words, as far as they go together.
    """
    keys = [form.key for form in forms]
    least = min(map(len, keys))
    same = next((at for at in range(least) if len({key[at] for key in keys}) > 1), least)
    if all(len(key) == same for key in keys):
        return _filled(forms, same)
    return f"{_filled(forms, same)}{LEFT_OPEN}" if same else ""


def _filled(forms: Sequence[Form], pieces: int) -> str:
    """So many pieces, and the places between them."""
    shown = [_shared([form.open[place].split() for form in forms]) for place in range(max(0, pieces - 1))]
    return "".join(part for pair in zip(forms[0].fixed[:pieces], (*shown, ""), strict=True) for part in pair)


def _shared(values: Sequence[Sequence[str]]) -> str:
    """The words that all begin with and end with, and what is between left open."""
    if all(value == values[0] for value in values):
        return " ".join(values[0])
    least = min(map(len, values))
    start = next((at for at in range(least) if len({value[at] for value in values}) > 1), least - 1)
    rest = least - start - 1
    end = next((at for at in range(rest) if len({value[-1 - at] for value in values}) > 1), rest)
    return " ".join((*values[0][:start], LEFT_OPEN, *values[0][len(values[0]) - end :]))
