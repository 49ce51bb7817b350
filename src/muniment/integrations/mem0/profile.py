"""Recognise questions about all that is known of a person, or about the person's likes.

"What do you know about me?" has no word in common with any fact, so no ranking of words finds one. Such questions are
recognised by the words left after removing fillers. Nothing here reads a store.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import Literal, NamedTuple

from muniment.core.text.word_lists import WordList

__all__ = ["Asked", "read_question"]

_WORDS = WordList("muniment.integrations.mem0", "profile.txt")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_QUERY_CHARS_MAX = 400
"""Longer texts are never such questions."""


class Asked(NamedTuple):
    """The subject of the question, and how exclusively it asks for that: 1 if for nothing else."""

    kind: Literal["profile", "preferences"]
    share: float
    leaning: Literal["likes", "dislikes"] | None = None
    """For preferences, the kind that is meant; None for both."""


@cache
def _section(name: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORDS.words(name))


def read_question(query: str, names: Collection[str] = ()) -> Asked | None:
    """Read a question about a person; `names` are words for that person. None if it is not such a question."""
    if len(query) > _QUERY_CHARS_MAX:
        return None
    words = [word.replace("’", "'").casefold() for word in _WORD.findall(query)]
    words = [word.removesuffix("'s") for word in words]
    people = _section("person") | {name.casefold() for name in names}
    is_about = any(word in people for word in words)
    preferring = [word for word in words if word in _section("preferring")]
    knowing = [word for word in words if word in _section("knowing")]
    skipped = people | _section("filling") | _section("knowing") | _section("preferring")
    rest = [word for word in words if word not in skipped]
    if not is_about:
        return None
    if preferring:
        disliking = [word in _section("disliking") for word in preferring]
        leaning: Literal["likes", "dislikes"] | None = "dislikes" if all(disliking) else None
        if leaning is None and not any(disliking) and not _section("either").issuperset(preferring):
            leaning = "likes"
        return Asked("preferences", 1 / (1 + len(rest)), leaning)
    return Asked("profile", 1.0) if knowing and not rest else None
