"""Where someone can live, as far as a name tells: places that are well known, and names that are no places.

The names stand in `data/places.txt`, which is read with this module: what speaks of no place does not load it.
"""

from __future__ import annotations

import re

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

__all__ = ["is_known_place", "is_no_place"]

_WORDS = WordList(__package__, "places.txt")
_PLACES = frozenset(_WORDS.entries("places"))
_PRODUCTS = frozenset(_WORDS.entries("products"))
"""Names of products that people say they moved to."""
_ELSEWHERE = frozenset(_WORDS.entries("elsewhere"))
"""Teams, plans, seasons, states of mind, time zones, places of stories."""
_KINDS = lazy_pattern(
    r"(?i)\b(?:team|department|dept|group|plan|tier|room|building|block|unit|apartment|floor|desk|gate|seat|row|chapter|"
    r"section|level|phase|stage|zone|time|mode|edition|version|corp|inc|ltd|university|college|bank|airlines|drive|code|"
    r"cloud|studio|desktop|office|workspace|docs|server|teams|search|music|pay|maps|pixel|iphone|galaxy|world)$|"
    r"^(?:team|room|building|block|unit|gate|row|group|platform|chapter|section|phase|stage|level|zone|plan|seat|table|"
    r"line|slide|page|google|microsoft|apple|amazon|adobe|visual)\b"
)
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")


def is_known_place(name: str) -> bool:
    """A country, state or larger city; or a place with its region: `Springfield, Illinois`."""
    first, _, region = name.casefold().replace("’", "'").partition(", ")
    return first in _PLACES or region in _PLACES


def is_no_place(name: str) -> bool:
    """A product, a team, a state of mind, an ordinal: what one can move to or live in without being there."""
    if is_known_place(name):
        return False
    words = name.casefold().split()
    is_named_so = words[0] in _PRODUCTS or name.casefold() in _ELSEWHERE or words[-1] in _PRODUCTS
    return is_named_so or _INNER_CAPITAL.search(name) is not None or _KINDS.search(name) is not None
