"""Which of some turns state something that stands of the person who asks: each read, then held against the others.

What a turn states is what the extractor reads of it, and `memory.extraction.standing`. Of what has one value at a time
the newest stands, what was taken back stands no longer, and what is said again is said once. Only what the user says of
themselves counts, and of theirs: a partner and children always, others of the family where the question is for several
or names them, anybody else where it names them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.analyzer import analyze
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.english.classes import noun_class
from muniment.memory.extraction.english.words import FOODS, either
from muniment.memory.extraction.patterns import KIN, propose, take_back
from muniment.memory.extraction.standing import propose_standing, technology_words
from muniment.memory.extraction.standing_ends import KIN_KEY, MARRIED, end_standing
from muniment.memory.extraction.taken_back import opposite_of
from muniment.packets.advice.topics import Matter, household, relatives, topic_of

__all__ = [
    "TEXT_CHARS_MAX",
    "URGENT",
    "Asker",
    "Reading",
    "Standing",
    "Stated",
    "adds_up",
    "choose",
    "names_in",
    "read_standing",
    "same_keys",
    "value_words",
]

TEXT_CHARS_MAX = 4_000
"""Of a turn: what stands farther down in a long one is no plain word in passing."""
TOPIC_TURNS_MAX = 4
"""Of a topic that is not urgent."""
_LISTS = WordList(__package__, "topics.txt")
URGENT = frozenset(("allergy", "diet", "health", "constraint"))
"""Of these nothing is left out for the sake of another topic, or because there is much of it."""
_DIETS = frozenset(_LISTS.words("one at a time"))
"""Who eats so does not eat otherwise. Anything else under the same key stands beside it: kosher, gluten-free."""
_ADDS_UP = frozenset(("budget", "stack", "team", "constraint", "limit", "lacks", "schedule", "diet"))
"""Keys of which a further value replaces none: it may be of another thing. Which is newer is told by their days."""
_PARTNERS = frozenset(("wife", "husband", "spouse"))
_HOMES = ("location", "base")
"""Both say where somebody lives: the newest of either stands."""
_WORD = lazy_pattern(r"[^\W_]+")
_SEVERAL = lazy_pattern(r"(?i)\b(?:we|us|our|wir|uns|nous|nosotros|noi)\b")


class Stated(NamedTuple):
    """One thing that a turn states."""

    topic: str
    key: str
    value: str
    quote: str
    """The words that say it."""


class Reading(NamedTuple):
    """What a turn states, and what it says no longer holds: keys, each with its value or none."""

    stated: tuple[Stated, ...]
    ended: tuple[tuple[str, str | None, str], ...]
    """Key, value (None: whichever stands), and the words that say so."""


class Standing(NamedTuple):
    """A turn that states something which stands, the topics, and the words that say it, what matters most first."""

    number: int
    topics: tuple[str, ...]
    quotes: tuple[str, ...]


def read_standing(text: str, ts: str, names: Mapping[str, str]) -> Reading:
    """What a message of the user states of what stands. `names` are those of their people that are known."""
    said = {word.casefold() for word in _WORD.findall(text)} if names else set()
    known = tuple(sorted((name, kin) for name, kin in names.items() if not said.isdisjoint(name.split())))
    return _read(text[:TEXT_CHARS_MAX], ts, known)


@remembered(1024)
def _read(text: str, ts: str, names: tuple[tuple[str, str], ...]) -> Reading:
    proposals = propose(text, "user", ts, dict(names))
    stated = [
        Stated(topic, each.key, str(each.value), each.quote)
        for each in (*proposals, *propose_standing(text, "user", ts))
        if (topic := _topic(each.key)) is not None
    ]
    ends = [*take_back(text, "user"), *(back for each in proposals if (back := opposite_of(each)) is not None)]
    over = [(each.key, str(each.value), each.quote) for each in end_standing(text, "user", ts)]
    return Reading(tuple(stated), (*((back.key, back.value, back.quote) for back in ends), *over))


def _topic(key: str) -> str | None:
    topic = topic_of(key)
    if topic is None and key.removeprefix("user.") in KIN & (household() | relatives()):
        return "family"
    return topic


def names_in(readings: Iterable[Reading]) -> dict[str, str]:
    """The names of the user's people that are told, in small letters, and what each is to them."""
    return {
        each.value.casefold(): each.key.removeprefix("user.")
        for reading in readings
        for each in reading.stated
        if each.key.removeprefix("user.") in KIN
    }


# -- whose it is, and does it bear on the question ----------------------------------------------------


class Asker(NamedTuple):
    """What a question is about, and whom it names."""

    matter: Matter
    words: frozenset[str]
    """The words of the question, in small letters."""
    is_for_several: bool
    names: Mapping[str, str]
    """The names of the asker's people, and what each is to them."""

    @classmethod
    def of(cls, query: str, matter: Matter, names: Mapping[str, str]) -> Asker:
        words = frozenset(word.casefold() for word in _WORD.findall(query))
        return cls(matter, words, _SEVERAL.search(query) is not None, names)

    def hears(self, stated: Stated) -> bool:
        """Does it bear on the question, and is it of somebody whom the question has to do with?"""
        return stated.topic in self.matter.topics and self._is_theirs(stated.key) and self._is_to_taste(stated)

    def _is_theirs(self, key: str) -> bool:
        owner, _, rest = key.partition(".")
        if owner != "person":
            return True
        name = rest.partition(".")[0].replace("_", " ")
        kin = self.names.get(name, name)
        if kin in household() or not self.words.isdisjoint((*name.split(), kin)):
            return True
        return kin in relatives() and self.is_for_several

    def _is_to_taste(self, stated: Stated) -> bool:
        """What somebody likes bears on a question of its own kind only."""
        if stated.topic != "taste":
            return True
        kind = _kind_of(stated.value)
        return any(kind in _TASTES.get(each, ("other",)) for each in self.matter.kinds)


_TASTES: Mapping[str, tuple[str, ...]] = {
    "food": ("food",),
    "work": ("technology",),
    "learning": ("technology", "other"),
    "device": ("technology",),
    "gift": ("food", "technology", "other"),
    "other": ("food", "technology", "other"),
}
"""Kinds of what is liked that bear on a kind of question."""


_FOOD = lazy_pattern(rf"(?:{FOODS}|{either(_LISTS.words('food itself'))})s?")


def _kind_of(value: str) -> str:
    words = [word.casefold() for word in _WORD.findall(value)]
    if any(_FOOD.fullmatch(word) or noun_class(word) == "food" for word in (*words, " ".join(words))):
        return "food"
    return "technology" if not technology_words().isdisjoint(words) else "other"


# -- what stands ---------------------------------------------------------------------------------------


class _Held(NamedTuple):
    """A statement that stands so far, by the place of its turn in time."""

    place: int
    stated: Stated


def choose(
    readings: Sequence[Reading],
    asker: Asker,
    is_many_valued: Callable[[str], bool],
    count_max: int,
    has_ended: Callable[[int, Stated], bool],
) -> tuple[list[Standing], int]:
    """Of turns, oldest first, those that state something which stands and bears on the question, what matters most
    first; and how many more there are. `count_max` bounds those that are not urgent.

    `has_ended` says of a turn, by its place, and of what it states, whether that is known to hold no longer.
    """
    held: dict[tuple[str, str], _Held] = {}
    for place, reading in enumerate(readings):
        for key, value, quote in reading.ended:
            if key == KIN_KEY:
                _part(held, place, value or "", quote, asker.names)
            else:
                _end(held, place, key, value, quote)
        for stated in reading.stated:
            _state(held, place, stated, is_many_valued)
    by_turn: dict[int, list[Stated]] = {}
    for place, stated in held.values():
        if asker.hears(stated) and not has_ended(place, stated):
            by_turn.setdefault(place, []).append(stated)
    ranked = _ranked(by_turn, asker.matter.topics)
    urgent = sum(each.topics[0] in URGENT for each in ranked)
    chosen = ranked[: max(urgent, count_max)]
    return chosen, len(by_turn) - len(chosen)


def _end(held: dict[tuple[str, str], _Held], place: int, key: str, value: str | None, quote: str) -> None:
    """Let go of what is taken back. What takes it back is told in its place, but for a taste, where the new one is."""
    words = None if value is None else value_words(value)
    gone = [
        each for each in held if each[0] == key and (words is None or words <= value_words(held[each].stated.value))
    ]
    for each in gone:
        del held[each]
    topic = _topic(key)
    if gone and topic is not None and topic != "taste":
        held[key, f"not {value or ''}"] = _Held(place, Stated(topic, key, f"not {value or ''}", quote))


def _part(held: dict[tuple[str, str], _Held], place: int, kin: str, quote: str, names: Mapping[str, str]) -> None:
    """Let go of what was said of somebody who is no longer with the speaker."""
    gone_kin = _PARTNERS if kin == MARRIED else {kin}
    gone = []
    for each in held:
        owner, _, rest = each[0].partition(".")
        name = rest.partition(".")[0].replace("_", " ")
        if (names.get(name, name) if owner == "person" else rest) in gone_kin:
            gone.append(each)
    for each in gone:
        del held[each]
    if gone:
        held[KIN_KEY, kin] = _Held(place, Stated("family", KIN_KEY, f"not {kin}", quote))


def _state(
    held: dict[tuple[str, str], _Held], place: int, stated: Stated, is_many_valued: Callable[[str], bool]
) -> None:
    """Let a statement stand: in place of the others of its key, where there is one at a time."""
    key, value = stated.key, " ".join(sorted(value_words(stated.value)))
    attribute = key.rpartition(".")[2]
    is_name = stated.topic == "family" and key.removeprefix("user.") in KIN
    if is_name and (key, value) in held:
        return  # who told of somebody first, introduced them
    if attribute == "diet" and stated.value in _DIETS:
        for each in [each for each in held if each[0] == key and held[each].stated.value in _DIETS]:
            del held[each]
    elif not adds_up(key) and not is_many_valued(key) and not is_name:
        same = same_keys(key)
        for each in [each for each in held if each[0] in same]:
            del held[each]
    held.pop((key, value), None)
    held[key, value] = _Held(place, stated)


def adds_up(key: str) -> bool:
    """May a further value of the key stand beside the others?"""
    return key.rpartition(".")[2] in _ADDS_UP


def same_keys(key: str) -> frozenset[str]:
    """The key, and those that say the same otherwise."""
    attribute = key.rpartition(".")[2]
    return frozenset((key, *(key.removesuffix(attribute) + other for other in _HOMES if attribute in _HOMES)))


def value_words(value: str) -> frozenset[str]:
    """What a value says, however it is written."""
    return frozenset(analyze(value)) or frozenset((value.casefold(),))


def _ranked(by_turn: Mapping[int, Sequence[Stated]], topics: Sequence[str]) -> list[Standing]:
    """The newest of each topic in the order in which topics matter, then the next newest, at most so many of each;
    what is urgent before all others.
    """
    places = {topic: place for place, topic in enumerate(topics)}
    counts = dict.fromkeys(topics, 0)
    ranked: list[tuple[int, int, int, Standing]] = []
    for number in sorted(by_turn, reverse=True):
        stated = sorted(by_turn[number], key=lambda each: places[each.topic])
        first = stated[0].topic
        if first in URGENT or counts[first] < TOPIC_TURNS_MAX:
            told = Standing(number, _once(each.topic for each in stated), _once(each.quote for each in stated))
            ranked.append((0 if first in URGENT else 1 + counts[first], places[first], -number, told))
            counts[first] += 1
    return [told for *_, told in sorted(ranked)]


def _once(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
