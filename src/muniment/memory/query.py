"""Queries: the terms to look up, their stand-ins, and the speakers and times that the query names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from datetime import date
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.analyzer import analyze, ascii_words, term_hash
from muniment.core.text.kinds import widen
from muniment.core.text.latin_names import plain
from muniment.core.text.patterns import lazy_pattern, sign
from muniment.core.text.times.asked_when import query_window
from muniment.core.text.times.turn_dates import feast_terms
from muniment.core.text.times.when import Window, window_terms
from muniment.memory.tool_results import NOISE, asked_marks

__all__ = ["NAMELESS", "QUERY_CHARS_MAX", "Kind", "Query", "Slot", "asks_for_account", "read_query", "speakers_named"]

QUERY_CHARS_MAX = 20_000
"""Characters of a query that are read: a longer one is a document, whose start shows its topic."""
TERMS_MAX = 256
"""Maximum number of distinct query terms looked up; the first ones win."""

Holding = Callable[[int], int]
"""Maps a term's hash to the number of turns with it."""


class Slot(NamedTuple):
    """One query term."""

    word: str
    term: int
    repeats: int


class Kind(NamedTuple):
    """Stand-in terms for one or more slots."""

    slots: tuple[int, ...]
    terms: tuple[int, ...]


class Query(NamedTuple):
    slots: tuple[Slot, ...]
    kinds: tuple[Kind, ...] = ()
    window: Window | None = None
    """The time period it names."""
    speaker: int | None = None
    """The number of the only named person who speaks in this scope; None for several or none."""
    speakers: tuple[int, ...] = ()
    """The numbers of all named speakers of this scope, in their order."""
    asker: bool = False
    """True if the user asks about themselves."""
    addressed: bool = False
    """True if the user asks about the assistant's words."""
    looks_back: bool = False
    """True if it asks for a former state, a point in time or a tool call, so that newer is not better."""
    account: bool = False
    """True if it asks for an account: a stretch of turns, many of which do not name the topic."""

    @property
    def terms(self) -> list[int]:
        """All terms to look up, deduplicated."""
        return list(
            dict.fromkeys([*[slot.term for slot in self.slots], *[t for kind in self.kinds for t in kind.terms]])
        )


def read_query(text: str, speakers: Sequence[str], now: date, holding: Holding | None = None) -> Query:
    """Parse a query, given the scope's speakers and the day of the question.

    `holding` gives the number of turns of the scope that have a term.
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
        if term.startswith("#d"):  # the month alone would match everything said in it
            counted.setdefault(term, 1)
    marks = {} if holding is None else asked_marks(text, holding)
    if marks:
        counted = {term: count for term, count in counted.items() if term not in NOISE} | marks
    named = speakers_named(text, speakers)
    names = {term for number in named for term in analyze(speakers[number])}
    slots = tuple([Slot(word, term_hash(word), count) for word, count in list(counted.items())[:TERMS_MAX]])
    addressed = _ADDRESSED.is_in(folded, words)
    return Query(
        slots=slots,
        kinds=_kinds(slots, names),
        window=window,
        speaker=named[0] if len(named) == 1 else None,
        speakers=tuple(named),
        asker=not addressed and _FIRST_PERSON.is_in(folded, words),
        addressed=addressed,
        looks_back=bool(marks) or window is not None or _LOOKS_BACK.is_in(folded, words),
        account=asks_for_account(text),
    )


def _count_dates(counted: dict[str, int], window: Window) -> None:
    """Add the terms of the time asked about. Turns before or after a date do not carry that date's terms.

    A year is a term only if it is named by itself; otherwise it would match everything said in it.
    """
    if window.grain in ("before", "after"):
        for term in [term for term in counted if term.startswith(("#m", "#d"))]:
            del counted[term]
    for term in window_terms(window):
        if window.grain == "year" or term.startswith("#"):
            counted.setdefault(term, 1)


def _kinds(slots: Sequence[Slot], names: Set[str]) -> tuple[Kind, ...]:
    """Stand-ins for the slots; names have none."""
    places = {slot.word: place for place, slot in enumerate(slots)}
    return tuple(
        [
            Kind(tuple(sorted(places[word] for word in head)), tuple(sorted(map(term_hash, group))))
            for head, group in widen([word for word in places if word not in names])
        ]
    )


# -- signs ----------------------------------------------------------------------------------------------

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
_ACCOUNT = sign(
    "summary summaries summarize summarise summarized summarised summarizes summarises summarizing summarising "
    "overview recap rundown discuss discussed discussion discussions discussing debate debated about on over of "
    "regarding toward towards",
    r"\bsummar(?:y|ies|i[sz]e[ds]?|i[sz]ing)\b|\b(?:overview|recap|rundown)\b"
    r"|(?<!our last )(?<!our previous )(?<!our earlier )(?<!to )(?<!started )\bdiscuss(?:ed|ions?|ing)?\b|\bdebated?\b"
    r"|\btalk(?:ed|ing)? (?:about|on|over)\b"
    r"|\b(?:opinions?|views?|attitudes?|thoughts) (?:on|about|of|regarding|towards?)\b"
    r"|\b(?:think|thought) (?:about|of|on)\b"
    r"|总结|概括|概述|回顾一下|讨论|[谈聊]了(?:什么|些|哪)|谈论|看法|意见|观点|态度"
    r"|요약|개요|논의|토론|의견|견해|(?:무슨|어떤) (?:이야기|얘기)|정리해",
)
_SENTENCE = lazy_pattern(r"(?:[^.!?。！？\n]|[.!?](?!\s|$))+[.!?。！？]*")
_ASKING = lazy_pattern(
    r"[?？]$|^\W*(?:(?:please|and|so|then|also|now)\s+)*"
    r"(?:(?:can|could|would|will) you\s+|i(?:'d| would) like (?:you )?to\s+)?"
    r"(?:please\s+)?(?:what|which|who|where|when|why|how|list|name|tell|give|show|summari[sz]e|recap|describe|outline"
    r"|count|compare|enumerate|remind|walk)\b"
)


@remembered(256)
def asks_for_account(text: str) -> bool:
    """True if a query asks for an account: a summary, a discussion, somebody's opinion.

    The answer is a stretch of consecutive turns, many of which do not name the topic. Statements ("I love all
    animals.") are ignored, unless there is nothing else.
    """
    folded = text[:QUERY_CHARS_MAX].casefold().replace("’", "'")
    sentences = [match[0].strip() for match in _SENTENCE.finditer(folded)]
    asked = "\n".join([each for each in sentences if _ASKING.search(each)] or sentences)
    return _ACCOUNT.is_in(asked, frozenset(ascii_words(asked)) if asked.isascii() else None)


# -- named speakers --------------------------------------------------------------------------------------

NAMELESS = frozenset(("", "user", "assistant", "human", "ai", "bot", "system", "tool", "agent", "model", "me", "you"))
"""Generic labels of speakers without a name."""
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "mx", "dr", "prof", "sir", "madam", "hon", "rt", "the", "right"))
_WORD = re.compile(r"[^\W_]+")
_BESIDE = re.compile(r"[(\[,]")
"""In a speaker's name, text after these characters is an affiliation rather than a name."""


class _Name(NamedTuple):
    number: int
    words: tuple[str, ...]
    whole: str
    """The whole name, casefolded."""


def speakers_named(text: str, speakers: Sequence[str]) -> list[int]:
    """The speakers whose full, first or family name occurs in a query, in the order of `speakers`.

    A full name wins over a part that others share.
    """
    names = _names(tuple(speakers))
    if not names:
        return []
    folded = text.casefold()
    said, written = [plain(word) for word in _WORD.findall(folded)], frozenset(_WORD.findall(text))
    held = frozenset(said)
    joined = f" {' '.join(said)} " if any(len(name.words) > 1 for name in names) else ""
    found: set[int] = set()
    taken: set[str] = set()
    parts: dict[str, list[int]] = {}
    family: dict[str, list[int]] = {}
    for number, words, whole in names:
        first, last = words[0], words[-1]
        if (len(words) > 1 and f" {' '.join(words)} " in joined) or (
            not whole.isascii() and len(whole) > 1 and whole in folded
        ):
            found.add(number)
            taken.update(words)
        elif first in held and len(first) > 1 and _is_called_so(words, written):
            parts.setdefault(first, []).append(number)
        elif len(words) > 1 and len(last) > 2 and last in held:
            family.setdefault(last, []).append(number)
    for word, numbers in parts.items():
        if word not in taken:
            found.update(numbers)
    for word, numbers in family.items():
        if word not in taken and word not in parts and len(numbers) == 1 and word not in written:
            found.add(numbers[0])
    return sorted(found)


@remembered(64)
def _names(speakers: tuple[str, ...]) -> tuple[_Name, ...]:
    """The speakers with names; cached, as every query of a scope has the same."""
    return tuple(_read_names(speakers))


def _read_names(speakers: Sequence[str]) -> Iterator[_Name]:
    for number, speaker in enumerate(speakers):
        whole = speaker.casefold().strip()
        if whole not in NAMELESS:
            words = _WORD.findall(_BESIDE.split(whole, maxsplit=1)[0]) or _WORD.findall(whole)
            last = len(words) - 1
            found = tuple([word for place, word in enumerate(words) if word not in _TITLES or place == last])
            yield _Name(number, tuple(map(plain, found)) or (whole,), whole)


def _is_called_so(words: Sequence[str], written: frozenset[str]) -> bool:
    """True if the first word of a name is used as a name ("Professor B"), not a word ("Project Manager")."""
    is_label = all(len(word) == 1 or word.isdecimal() for word in words[1:])
    return is_label or words[0] not in written
