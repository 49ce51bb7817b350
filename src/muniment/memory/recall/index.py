"""What ranking needs to know of a scope: a few arrays over its turns, and postings of their words.

Turns are numbered 0…N-1 (*ordinals*) in the order (session by its start, place in the session), so the neighbours of a
turn are the ordinals beside it that belong to the same session. A turn's terms are stored once, for itself; context is
spread from neighbours when a query is scored. Statistics are those of the scope alone.

`ScopeIndex` is the interface; `MemoryIndex` builds one from passages. Engines keep others, with the same arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from muniment.core.text.analyzer import analyze, ascii_words, term_hashes
from muniment.core.text.attributes import marks
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.when import date_terms

__all__ = [
    "ONLY_ASKS",
    "QUESTION",
    "ROLES",
    "Floats",
    "Ints",
    "Kept",
    "MemoryIndex",
    "Passage",
    "ScopeIndex",
    "passage_hashes",
    "passage_terms",
    "role_number",
]

Ints = npt.NDArray[np.integer]
Floats = npt.NDArray[np.floating]

ROLES = ("user", "assistant", "other")
"""Who speaks, as the array `role` numbers them."""

QUESTION = "#q"
"""The term of a turn that ends by asking."""

ONLY_ASKS = 2
"""How often that term counts where there is nothing but the question."""

_SENTENCE_END = lazy_pattern(r"[.!?;。！？\n]")

_EMPTY: tuple[Ints, Ints] = (np.empty(0, np.int32), np.empty(0, np.int32))
_KEPT_MAX = 32
"""A store has one policy, or a few: more is let go of."""

T = TypeVar("T")


def role_number(role: str) -> int:
    return ROLES.index(role) if role in ROLES else len(ROLES) - 1


class ScopeIndex(Protocol):
    """The turns of one scope, as arrays of equal length N in ordinal order, and their postings."""

    @property
    def session(self) -> Ints:
        """The number of the turn's session: equal for turns of one session, which lie side by side."""

    @property
    def speaker(self) -> Ints:
        """An index into `speakers`."""

    @property
    def role(self) -> Ints:
        """An index into `ROLES`."""

    @property
    def ts(self) -> Ints:
        """When it was said, in whole seconds since 1970 UTC."""

    @property
    def length(self) -> Ints:
        """How many terms it has, with repetitions (`passage_terms` gives it)."""

    @property
    def speakers(self) -> Sequence[str]:
        """The names of those who speak in the scope."""

    def prepare(self, terms: Sequence[int]) -> None:
        """Look up terms that will be asked for, all at once."""

    def postings(self, term: int) -> tuple[Ints, Ints]:
        """The ordinals whose own text has the term (hash), ascending, and how often each has it."""

    def terms(self, ordinal: int) -> frozenset[int]:
        """The hashes of the turn's own terms; asked for a handful of turns of a query."""

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` works out of the index alone and `key`: done once, as its turns never change."""


class Kept:
    """The part of an index that keeps what was worked out of it. By any thread: at worst two make the same."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _KEPT_MAX:
                self._kept = {}
            found = self._kept[key] = make()
        return cast("T", found)


def passage_hashes(text: str, said: date) -> tuple[list[int], int]:
    """What is indexed for a turn: the hashes of its terms, each as often as it counts, and its length.

    Its words, the dates that its "yesterday" and "last May" meant on the day it was said, what it states of a person
    (`core.text.attributes`), and a mark if it asks. Only words count towards the length.
    """
    words = ascii_words(text) if text.isascii() else None
    terms = analyze(text, words)
    length = len(terms)
    told = marks(text, terms)
    terms += date_terms(text, said, words)
    terms += told
    body = text.rstrip(" \t\r\n\"')]*”’")
    if body.endswith(("?", "？")):
        terms += [QUESTION] if _SENTENCE_END.search(body, 0, len(body) - 1) else [QUESTION] * ONLY_ASKS
    return list(term_hashes(terms)), length


def passage_terms(text: str, said: date) -> tuple[dict[int, int], int]:
    """`passage_hashes`, counted: hash → how often."""
    hashes, length = passage_hashes(text, said)
    return Counter(hashes), length


class Passage(NamedTuple):
    """A turn as it comes to be indexed."""

    session: str
    speaker: str
    role: str
    said_at: datetime
    text: str


class MemoryIndex(Kept):
    """A scope's index in memory, built once from its passages; they are given in ordinal order."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        super().__init__()
        sessions: dict[str, int] = {}
        speakers: dict[str, int] = {}
        rows: list[tuple[int, int, int, int, int]] = []
        gathered: dict[int, tuple[list[int], list[int]]] = {}
        self._terms: list[frozenset[int]] = []
        for ordinal, passage in enumerate(passages):
            said_at = passage.said_at.astimezone(UTC)
            counted, length = passage_terms(passage.text, said_at.date())
            rows.append(
                (
                    sessions.setdefault(passage.session, len(sessions)),
                    speakers.setdefault(passage.speaker, len(speakers)),
                    role_number(passage.role),
                    int(said_at.timestamp()),
                    length,
                )
            )
            self._terms.append(frozenset(counted))
            for term, count in counted.items():
                ordinals, counts = gathered.setdefault(term, ([], []))
                ordinals.append(ordinal)
                counts.append(count)
        table = np.array(rows, np.int64).reshape(-1, 5)
        self.session: Ints = table[:, 0].astype(np.int32)
        self.speaker: Ints = table[:, 1].astype(np.int32)
        self.role: Ints = table[:, 2].astype(np.int8)
        self.ts: Ints = np.ascontiguousarray(table[:, 3])
        self.length: Ints = table[:, 4].astype(np.int32)
        self.speakers: Sequence[str] = tuple(speakers)
        self._postings: dict[int, tuple[Ints, Ints]] = {
            term: (np.array(ordinals, np.int32), np.array(counts, np.int32))
            for term, (ordinals, counts) in gathered.items()
        }

    def prepare(self, terms: Sequence[int]) -> None:
        """All of them are at hand."""

    def postings(self, term: int) -> tuple[Ints, Ints]:
        return self._postings.get(term, _EMPTY)

    def terms(self, ordinal: int) -> frozenset[int]:
        return self._terms[ordinal]
