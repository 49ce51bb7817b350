"""What a query asks for: its terms and what may stand for them, whom and when it names, what answer it wants."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from muniment.text.analyzer import analyze, term_hash
from muniment.text.attributes import asked_attributes
from muniment.text.kinds import widen
from muniment.text.patterns import lazy_pattern
from muniment.text.when import Window, query_window, window_terms

__all__ = ["QUERY_CHARS_MAX", "Query", "Slot", "read_query"]

QUERY_CHARS_MAX = 20_000
"""What of a query is read: a longer one is a document, and its start says what it is about."""
TERMS_MAX = 256
"""How many different terms of a query are looked up; of a longer one the first."""

ATTRIBUTE_REPEATS = 2
"""An attribute that is asked for counts as a word that is repeated: it tells more than the words it is asked with."""

_NOBODY = frozenset(("", "user", "assistant", "human", "ai", "bot", "system", "tool", "agent", "model", "me", "you"))
_FIRST_PERSON = lazy_pattern(r"\b(?:i|me|my|mine|myself|we|our)\b|我|咱|나는|나의|내가|내 |제가|저는|제 |저의")
_ADDRESSED = lazy_pattern(
    r"\byou (?:said|mention|recommend|suggest|told|tell|gave|give|provid|list|refer|wrote|share|describ|explain|had)"
    r"|\byour (?:suggestion|recommendation|answer|advice|list)|\bremind me (?:what|of|which|how)\b"
    r"|\b(?:our|the) (?:last|previous|earlier) (?:conversation|chat|discussion)"
    r"|你(?:说|建议|推荐|提到|告诉)|당신이|네가 (?:말|추천)|추천해 ?준"
)
_LOOKS_BACK = lazy_pattern(
    r"\b(?:previous(?:ly)?|before|initial(?:ly)?|original(?:ly)?|first|used to|earlier|former(?:ly)?|ago|history"
    r"|when (?:did|was|were|had|has)|how long|what (?:date|day|year|month)|which (?:date|day|year|month))\b"
    r"|以前|之前|最初|原来|第一|原本|什么时候|哪天|何时|이전|예전|처음|원래|언제"
)
_CURRENT = lazy_pattern(
    r"\b(?:current(?:ly)?|now|nowadays|these days|latest|recent(?:ly)?|still|at the moment|presently|today"
    r"|so far|anymore|lately|up to date)\b|目前|现在|如今|最近|最新|当前|还在|지금|현재|요즘|최근|아직"
)
_STATE = lazy_pattern(
    r"\bwhere (?:do|does|is|are)\b|\bwho (?:is|are)\b|\b(?:switch|change|upgrade|replace)d?\b"
    r"|在哪|住|叫什么|是谁|어디|누구"
)
_QUANTITY = lazy_pattern(
    r"\bhow (?:many|much|often|old|far|big|tall|fast|heavy)\b"
    r"|\bwhat (?:is|was|'s|are|were) (?:the |my |our |his |her |their |\w+'s )?(?:\w+ ){0,3}?"
    r"(?:amount|number|total|price|cost|rate|score|salary|rent|percentage|limit|budget|record|best time)\b"
    r"|多少|几|얼마|몇"
)
_PAST = lazy_pattern(
    r"\b(?:did|was|were|had|could|would|should|might|taught|gave|told|made|bought|said)\b|曾|过吗|了吗|했|었|았"
)
_MOVED = lazy_pattern(r"\b(?:move|relocate)d?\b|搬|이사")
"""Of what is past, this says how things stand."""
_GATHERS = lazy_pattern(
    r"\b(?:how many|how often|list|all|both|each|every|various|different|types? of|kinds? of|names? of)\b"
    r"|\b(?:what|which)\s+(?:\w+\s+){0,2}?(?!was|is|has|does|his|this|as\b|us\b|yes)\w{2,}(?<!s)s\b"
    r"|\b(?:what|who|where|which)\b.*\b(?:has|have)\b|哪些|多少|几|都|모두|몇|어떤 .*들"
)


class Slot(NamedTuple):
    """One term that is asked for."""

    word: str
    term: int
    repeats: int


class Kind(NamedTuple):
    """Terms that may stand for one or more slots."""

    slots: tuple[int, ...]
    terms: tuple[int, ...]


class Query(NamedTuple):
    slots: tuple[Slot, ...]
    kinds: tuple[Kind, ...]
    window: Window | None
    speaker: int | None
    """The number of the one person named who speaks in this scope."""
    asker: bool
    """The user asks about themselves …"""
    addressed: bool
    """… or about what the assistant said."""
    looks_back: bool
    """It asks for a former state or for a point in time: the newest is not better."""
    current: bool
    """It asks how things are now."""
    state: bool
    """It asks how something stands that may have changed, so that of answers alike the newest is the likeliest …"""
    gathers: bool
    """… or for several things, each of which holds."""
    quantity: bool
    """It asks for a number, or how often."""


def read_query(text: str, speakers: Sequence[str], now: date) -> Query:
    """Read a query against those who speak in a scope and the day it is asked on."""
    text = text[:QUERY_CHARS_MAX]
    folded = text.casefold()
    window = query_window(text, now)
    words = Counter(analyze(text))
    if window is not None:
        for term in window_terms(window):
            words.setdefault(term, 1)
    named = _named(folded, speakers)
    names = {term for number in named for term in analyze(speakers[number])}
    is_past = _PAST.search(folded) is not None
    attributes = asked_attributes(text, names_speaker=len(named) == 1) if not is_past or _MOVED.search(folded) else []
    words.update({asked.term: 1 if asked.is_shared else ATTRIBUTE_REPEATS for asked in attributes})
    slots = tuple(Slot(word, term_hash(word), count) for word, count in list(words.items())[:TERMS_MAX])
    places = {slot.word: place for place, slot in enumerate(slots)}
    kinds = tuple(
        Kind(tuple(sorted(places[word] for word in head)), tuple(sorted(term_hash(word) for word in group)))
        for head, group in widen(word for word in places if word not in names)
    )
    kinds += tuple(
        Kind((place,), (term_hash(asked.term),))
        for asked in attributes
        for word, place in places.items()
        if word in asked.words
    )
    addressed = _ADDRESSED.search(folded) is not None
    asker = not addressed and _FIRST_PERSON.search(folded) is not None
    current = _CURRENT.search(folded) is not None
    quantity = _QUANTITY.search(folded) is not None
    is_present = asker and not is_past
    return Query(
        slots=slots,
        kinds=kinds,
        window=window,
        speaker=named[0] if len(named) == 1 else None,
        asker=asker,
        addressed=addressed,
        looks_back=_LOOKS_BACK.search(folded) is not None,
        current=current,
        state=current or quantity or is_present or bool(attributes) or _STATE.search(folded) is not None,
        gathers=_GATHERS.search(folded) is not None,
        quantity=quantity,
    )


def _named(folded: str, speakers: Sequence[str]) -> list[int]:
    """The speakers whose name, or first name, stands in the query."""
    words = set(re.findall(r"[^\W_]+", folded))
    found = []
    for number, name in enumerate(speakers):
        name = name.casefold().strip()
        if name in _NOBODY:
            continue
        first = re.split(r"[\W_]+", name, maxsplit=1)[0] or name
        if (first in words and len(first) > 1) or (not name.isascii() and len(name) > 1 and name in folded):
            found.append(number)
    return found
