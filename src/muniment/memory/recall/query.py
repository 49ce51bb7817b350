"""What a query asks for: its terms and what may stand for them, whom and when it names, what answer it wants."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import date
from typing import NamedTuple

from muniment.core.text.analyzer import analyze, ascii_words, term_hash
from muniment.core.text.kinds import widen
from muniment.core.text.patterns import sign
from muniment.core.text.stated.attributes import AskedAttribute, asked_attributes
from muniment.core.text.stated.measures import Measure, asked_measures
from muniment.core.text.times.asked_when import query_window
from muniment.core.text.times.turn_dates import feast_terms
from muniment.core.text.times.when import Window, window_terms
from muniment.memory.recall.people import Holding, Named, names_unsaid, speakers_named
from muniment.memory.recall.several import asks_for_account, gathers
from muniment.memory.results.asked_calls import NOISE, asked_marks

__all__ = ["QUERY_CHARS_MAX", "Query", "Slot", "read_query"]

QUERY_CHARS_MAX = 20_000
"""Characters of a query that are read: a longer one is a document, and its start says what it is about."""
TERMS_MAX = 256
"""How many different terms of a query are looked up; of a longer one the first."""

ATTRIBUTE_REPEATS = 2
"""An attribute that is asked for counts as a word that is repeated: it tells more than the words it is asked with."""


_FIRST_PERSON = sign(
    "i me my mine myself we our",
    r"\b(?:i|me|my|mine|myself|we|our)\b|我|咱|나는|나의|내가|내 |제가|저는|제 |저의",
)
_ADDRESSED = sign(
    "you your remind last previous earlier",
    r"\byou (?:said|mention|recommend|suggest|told|tell|gave|give|provid|list|refer|wrote|share|describ|explain|had)"
    r"|\byour (?:suggestion|recommendation|answer|advice|list)|\bremind me (?:what|of|which|how)\b"
    r"|\b(?:our|the) (?:last|previous|earlier) (?:conversation|chat|discussion)"
    r"|你(?:说|建议|推荐|提到|告诉)|당신이|네가 (?:말|추천)|추천해 ?준",
)
_LOOKS_BACK = sign(
    "previous previously before initial initially original originally first used earlier former formerly ago history "
    "when long date day year month",
    r"\b(?:previous(?:ly)?|before|initial(?:ly)?|original(?:ly)?|first|used to|earlier|former(?:ly)?|ago|history"
    r"|when (?:did|was|were|had|has)|(?:how long|(?:what|which) (?:date|day|year|month))"
    r"(?! (?:is|are|do|does|will|have|has|should|can)\b))\b"
    r"|以前|之前|最初|原来|第一|原本|什么时候|哪天|何时|이전|예전|처음|원래|언제",
)
_CURRENT = sign(
    "current currently now nowadays days latest recent recently still moment presently today far anymore lately date",
    r"\b(?:current(?:ly)?|now|nowadays|these days|latest|recent(?:ly)?|still|at the moment|presently|today"
    r"|so far|anymore|lately|up to date)\b|目前|现在|如今|最近|最新|当前|还在|지금|현재|요즘|최근|아직",
)
_STATE = sign(
    "where who when time do does switch switchd change changed upgrade upgraded replace replaced",
    r"\bwhere (?:do|does|is|are)\b|\bwho (?:is|are)\b|\b(?:when|what time) (?:does|is) (?:the|my|our)\b|^do(?:es)? \w+"
    r"|\b(?:switch|change|upgrade|replace)d?\b"
    r"|在哪|住|叫什么|是谁|어디|누구",
)
_LIKES = sign(
    "like likes love loves enjoy enjoys hate hates dislike dislikes allergic afraid speak speaks play plays collect",
    r"^(?!.*(?:favou?rite|\bbest\b|\bmost\b|最|가장|제일)).*(?:\b(?:like|love|enjoy|hate|dislike|speak|play)s?\b"
    r"|\b(?:allergic|afraid|collect)\b|喜欢|喜爱|爱[吃喝看听玩]|讨厌|过敏|会说|좋아|싫어|알레르기|즐겨)",
)
_QUANTITY = sign(
    "many much often old far big tall fast heavy amount number total price cost rate score salary rent percentage "
    "limit budget record time",
    r"\bhow (?:many|much|often|old|far|big|tall|fast|heavy)\b"
    r"|\bwhat (?:is|was|'s|are|were) (?:the |my |our |his |her |their |\w+'s )?(?:\w+ ){0,3}?"
    r"(?:amount|number|total|price|cost|rate|score|salary|rent|percentage|limit|budget|record|best time)\b"
    r"|多少|几|얼마|몇",
)
_PAST = sign(
    "did was were had could would should might taught gave told made bought said",
    r"\b(?:did|was|were|had|could|would|should|might|taught|gave|told|made|bought|said)\b|曾|过吗|了吗|했|었|았",
)
_MOVED = sign("move moved relocate relocated", r"\b(?:move|relocate)d?\b|搬|이사")
"""Of what is past, this says how things stand."""


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
    """The number of the one person named who speaks in this scope; None where several do, or nobody."""
    asker: bool
    """The user asks about themselves."""
    addressed: bool
    """The user asks about what the assistant said."""
    looks_back: bool
    """It asks for a former state, for a point in time or for a tool's call: the newest is not better."""
    current: bool
    """It asks how things are now."""
    state: bool
    """It asks how something stands that may have changed, so that of answers alike the newest is the likeliest."""
    gathers: bool
    """It asks for several things, each of which holds, or for an account of what was said."""
    quantity: bool
    """It asks for a number, or how often."""
    likes: bool
    """It asks for what somebody likes or cannot bear: one such thing does not end another."""
    speakers: tuple[int, ...] = ()
    """The numbers of all those named who speak in this scope, in their order."""
    measures: frozenset[Measure] = frozenset()
    """The kinds of values that it asks for; empty where it does not say."""
    account: bool = False
    """It asks for what was said on something: a stretch of turns, of which many do not name it."""


def read_query(text: str, speakers: Sequence[str], now: date, holding: Holding | None = None) -> Query:
    """Read a query against those who speak in a scope and the day it is asked on.

    `holding` tells how many turns of the scope have a term: a name that none of them has is looked for as they spell
    it.
    """
    text = text[:QUERY_CHARS_MAX]
    folded = text.casefold()
    spelled = ascii_words(text) if text.isascii() else None
    words = None if spelled is None else frozenset(spelled)
    window = query_window(text, now, spelled)
    counted: dict[str, int] = {}
    for term in analyze(text, spelled):
        counted[term] = counted.get(term, 0) + 1
    if window is not None:
        _count_dates(counted, window)
    for term in feast_terms(folded, now.year, words):
        if term.startswith("#d"):  # the month alone would match whatever was said in it
            counted.setdefault(term, 1)
    marks = {} if holding is None else asked_marks(text, holding)
    if marks:
        counted = {term: count for term, count in counted.items() if term not in NOISE} | marks
    named = speakers_named(text, speakers, holding)
    names = {term for each in named for name in (speakers[each.number], *each.spelled) for term in analyze(name)}
    is_past = _PAST.is_in(folded, words)
    attributes: list[AskedAttribute] = []
    if not is_past or _MOVED.is_in(folded, words):
        attributes = asked_attributes(text, names_speaker=len(named) == 1)
    for term, count in {asked.term: 1 if asked.is_shared else ATTRIBUTE_REPEATS for asked in attributes}.items():
        counted[term] = counted.get(term, 0) + count
    slots = tuple([Slot(word, term_hash(word), count) for word, count in list(counted.items())[:TERMS_MAX]])
    addressed = _ADDRESSED.is_in(folded, words)
    asker = not addressed and _FIRST_PERSON.is_in(folded, words)
    current = _CURRENT.is_in(folded, words)
    quantity = _QUANTITY.is_in(folded, words)
    is_present = asker and not is_past
    kinds = _kinds(slots, names, attributes) + _name_kinds(slots, text, speakers, named, holding)
    return Query(
        slots=slots,
        kinds=kinds,
        window=window,
        speaker=named[0].number if len(named) == 1 else None,
        asker=asker,
        addressed=addressed,
        looks_back=bool(marks) or _LOOKS_BACK.is_in(folded, words),
        current=current,
        state=current or quantity or is_present or bool(attributes) or _STATE.is_in(folded, words),
        gathers=gathers(text),
        quantity=quantity,
        likes=_LIKES.is_in(folded, words),
        speakers=tuple([each.number for each in named]),
        measures=asked_measures(frozenset(folded.split()) if words is None else words),
        account=asks_for_account(text),
    )


def _count_dates(counted: dict[str, int], window: Window) -> None:
    """The terms of the time asked about. What lies before or after a date does not have that date.

    A year is a term only where it is what is named: by itself it would match whatever was said in it.
    """
    if window.grain in ("before", "after"):
        for term in [term for term in counted if term.startswith(("#m", "#d"))]:
            del counted[term]
    for term in window_terms(window):
        if window.grain == "year" or term.startswith("#"):
            counted.setdefault(term, 1)


def _kinds(slots: Sequence[Slot], names: Set[str], attributes: Sequence[AskedAttribute]) -> tuple[Kind, ...]:
    """What may stand for the slots; nothing stands for a name."""
    places = {slot.word: place for place, slot in enumerate(slots)}
    kinds = [
        Kind(tuple(sorted(places[word] for word in head)), tuple(sorted(map(term_hash, group))))
        for head, group in widen([word for word in places if word not in names])
    ]
    for asked in attributes:
        kinds += [Kind((place,), (term_hash(asked.term),)) for word, place in places.items() if word in asked.words]
    return tuple(kinds)


def _name_kinds(
    slots: Sequence[Slot], text: str, speakers: Sequence[str], named: Sequence[Named], holding: Holding | None
) -> tuple[Kind, ...]:
    """How the scope spells a name that the query spells otherwise."""
    places = {slot.word: place for place, slot in enumerate(slots)}
    spellings: dict[str, Sequence[str]] = {
        word: analyze(speakers[each.number]) for each in named for word in each.spelled
    }
    if holding is not None:
        spellings = names_unsaid(text, holding) | spellings
    kinds = []
    for word, terms in spellings.items():
        at = tuple(sorted({places[term] for term in analyze(word) if term in places}))
        if at and terms:
            kinds.append(Kind(at, tuple(sorted(map(term_hash, terms)))))
    return tuple(kinds)
