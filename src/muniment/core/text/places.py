"""Places where someone can live, by name: well-known places, and names that are not places.

The names are in `data/places.txt`, read with this module, so code that needs no places does not load it.
"""

from __future__ import annotations

import re

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

__all__ = ["is_known_place", "is_no_place"]

_WORDS = WordList(__package__, "places.txt")
_PLACES = frozenset(_WORDS.entries("places"))
_PRODUCTS = frozenset(_WORDS.entries("products"))
"""Product names that people write they moved to."""
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
    """Return whether it is a country, state or larger city; or a place with its region: `Springfield, Illinois`."""
    first, _, region = name.casefold().replace("’", "'").partition(", ")
    return first in _PLACES or region in _PLACES


def is_no_place(name: str) -> bool:
    """Return whether it is a product, a team, a state of mind, an ordinal: one can move to it without being there."""
    if is_known_place(name):
        return False
    words = name.casefold().split()
    is_named_so = words[0] in _PRODUCTS or name.casefold() in _ELSEWHERE or words[-1] in _PRODUCTS
    return is_named_so or _INNER_CAPITAL.search(name) is not None or _KINDS.search(name) is not None
