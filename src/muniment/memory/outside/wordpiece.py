"""BERT's uncased WordPiece tokenizer, small and without dependencies. Control tokens in a text are plain text."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from muniment.core.limits import Memo
from muniment.errors import IntegrityFailure

__all__ = ["WordPieces"]

_WORD_CHARS_MAX = 100
_CACHE_WORDS_MAX = 262_144
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
"""What the model was trained to see apart; the gap before 0x2B920 is the reference's own."""


_CONTROLS = ("Cc", "Cf", "Co", "Cs")


class _Cleaning(dict[int, str | None]):
    """For str.translate, before decomposition: controls go, blanks become spaces, ideographs stand apart."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        value: str | None = char
        is_control = unicodedata.category(char) in _CONTROLS
        if char in "\t\n\r" or (char.isspace() and not is_control):
            value = " "
        elif code == 0xFFFD or is_control:
            value = None
        elif any(first <= code <= last for first, last in _IDEOGRAPHS):
            value = f" {char} "
        self[code] = value
        return value


class _Splitting(dict[int, str | None]):
    """For str.translate, after decomposition: accents go, punctuation stands apart."""

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        value: str | None = char
        category = unicodedata.category(char)
        if category == "Mn":
            value = None
        elif category[0] == "P" or (code < 128 and char.isprintable() and not char.isalnum() and char != " "):
            value = f" {char} "
        self[code] = value
        return value


class WordPieces:
    """Words cut into the longest known beginnings; a word with no such cut is one unknown token."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: at for at, piece in enumerate(vocabulary)}
        missing = {"[CLS]", "[SEP]", "[UNK]"} - self._ids.keys()
        if missing:
            raise IntegrityFailure(f"the vocabulary lacks {sorted(missing)}")
        self._unknown = (self._ids["[UNK]"],)
        self._first, self._last = self._ids["[CLS]"], self._ids["[SEP]"]
        self._clean, self._split = _Cleaning(), _Splitting()
        self._cache: Memo[str, tuple[int, ...]] = Memo()

    @classmethod
    def read(cls, path: Path) -> WordPieces:
        """From a `vocab.txt`, one piece a line, the line's number its id."""
        try:
            return cls(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
        except UnicodeDecodeError as cause:
            raise IntegrityFailure(f"{path.name} is not a vocabulary") from cause

    def words(self, text: str) -> list[str]:
        """Lower-case words, marks and ideographs, without accents."""
        text = unicodedata.normalize("NFD", text.translate(self._clean)).translate(self._split)
        return text.replace("Σ", "σ").lower().split()  # the reference knows no final sigma

    def ids(self, text: str, ids_max: int) -> list[int]:
        """[CLS] pieces [SEP], at most `ids_max` in all; empty where the text has no pieces."""
        ids = [self._first]
        for word in self.words(text):
            if len(ids) >= ids_max - 1:
                break
            found = self._cache.get(word)
            if found is None:
                found = self._word_ids(word)
                if len(self._cache) >= _CACHE_WORDS_MAX:
                    self._cache.clear()
                self._cache[word] = found
            ids.extend(found)
        if len(ids) == 1:
            return []
        del ids[ids_max - 1 :]
        ids.append(self._last)
        return ids

    def _word_ids(self, word: str) -> tuple[int, ...]:
        if len(word) > _WORD_CHARS_MAX:
            return self._unknown
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                known = self._ids.get(prefix + word[start:end])
                if known is not None:
                    break
            else:
                return self._unknown
            ids.append(known)
            start = end
        return tuple(ids)
