"""One form for what is written in several: letters without accents, digits of every script, Chinese numerals."""

from __future__ import annotations

import unicodedata
from functools import cache

from muniment.core.text.patterns import lazy_pattern

__all__ = ["ascii_digits", "numbers_in_han", "plain_letters"]

_ACCENTED = lazy_pattern("[\u00c0-\u024f\u0300-\u036f\u0386-\u03ce\u1e00-\u1fff]+")
"""Accents, and letters of Latin and Greek that may have some. Those of Cyrillic stay: й is another letter than и."""


def plain_letters(text: str) -> str:
    """Composed text (NFC) without the accents on its Latin and Greek letters."""
    return text if text.isascii() else _ACCENTED.sub(lambda match: _plain(match[0]), text)


def _plain(letters: str) -> str:
    return "".join([_plain_letter(letter) for letter in letters])


@cache
def _plain_letter(letter: str) -> str:
    return "".join([part for part in unicodedata.normalize("NFD", letter) if not "\u0300" <= part <= "\u036f"])


_OTHER_DIGIT = lazy_pattern(r"[^\D0-9]")


def ascii_digits(text: str) -> str:
    """The text with 0 to 9 for the digits of every script."""
    return _OTHER_DIGIT.sub(lambda match: str(unicodedata.digit(match[0])), text)


_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_MYRIADS, _MYRIAD = "万萬", 10**4
_NUMERAL = lazy_pattern("[零〇一二三四五六七八九两兩十][零〇一二三四五六七八九两兩十百千万萬亿億]{1,30}")
_YEAR_SIGNS = 4


def numbers_in_han(run: str) -> list[str]:
    """The numbers that are written with several Chinese numerals: 十二 is 12, 三百 is 300, 二〇一九 is 2019.

    One sign alone is too often part of another word, and two digits side by side mean "about so many".
    """
    found = []
    for numeral in _NUMERAL.findall(run):
        if all(sign in _DIGITS for sign in numeral):
            if len(numeral) >= _YEAR_SIGNS:
                found.append("".join([str(_DIGITS[sign]) for sign in numeral]).lstrip("0") or "0")
        else:
            found.append(str(_value(numeral)))
    return found


def _value(numeral: str) -> int:
    """A digit counts what the unit behind it says, and all since the last greater one what a 万 or 亿 says."""
    whole = myriads = part = digit = 0
    for sign in numeral:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif sign in _UNITS:
            part, digit = part + (digit or 1) * _UNITS[sign], 0
        elif sign in _MYRIADS:
            myriads, part, digit = myriads + (part + digit) * _MYRIAD, 0, 0
        else:
            whole, myriads, part, digit = whole + (myriads + part + digit) * _MYRIAD**2, 0, 0, 0
    return whole + myriads + part + digit
