"""Letters without their accents."""

from __future__ import annotations

import unicodedata
from functools import cache

from muniment.core.text.patterns import lazy_pattern

__all__ = ["plain_letters"]

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
