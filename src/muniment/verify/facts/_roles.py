"""Semantic roles from word order: both sides of a verb, and whether another word fills a slot better.

Roles are read from words and punctuation with small closed classes of English (prepositions, articles, relative
pronouns). Insertions between commas, prepositional phrases and possessors ("the rival of Ostrava", "Moss's brother")
are no side of the verb. If the source has the claim's verb with the same other side, the name on this side there is
compared with the claim's. This guards against swapped roles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.verify.facts._senses import is_irregular, is_ordinary, is_verb, relation
from muniment.verify.facts._source import Claim, Source
from muniment.verify.facts._words import ARTICLES, AUXILIARY, GENDER, PASSIVE, PREPOSITIONS, Word, negates, verb_stems

if TYPE_CHECKING:
    from muniment.verify.facts._slots import Slot

_OCCURRENCES_MAX = 12
_SPOTS_MAX = 4
_ALONE = 0.4
"""Weight of the same verb with a different other side; an open side adds half of the rest."""
_PRONOUN = 0.9
"""Weight of a statement about a pronoun for its most likely referent."""
_LIKE = 0.7
_BACK = 2
"""How many sentences back to look for a pronoun's referent."""


class Fillers(NamedTuple):
    """How well the claim's own word fills its slot somewhere, how well another one does, and which."""

    filled: float = 0.0
    usurped: float = 0.0
    by: Word | None = None
    place: int = -1


def _roles_at(source: Source, place: int, position: int) -> Roles:
    """The sides of a source word, cached."""
    found = source.roles.get((place, position))
    if found is None:
        sentence = source.sentences[place]
        breaks = source.breaks.get(place)
        if breaks is None:
            text = source.documents[sentence.document].text[sentence.start : sentence.end]
            breaks = source.breaks[place] = find_breaks(text, sentence.words)
        found = source.roles[place, position] = read_roles(sentence.words, breaks, position)
    return found


class Acts:
    """The verbs of a claim with their sides and their occurrences in the source. One object per claim."""

    def __init__(self, claim: Claim, source: Source) -> None:
        self._claim = claim
        self._source = source
        breaks = find_breaks(claim.text, claim.words) if "verb" in claim.roles else ()
        self.roles = {at: read_roles(claim.words, breaks, at) for at, role in enumerate(claim.roles) if role == "verb"}
        self._found: dict[int, list[tuple[int, int]]] = {}

    def occurrences(self, verb: int) -> list[tuple[int, int]]:
        """Sentences and places of a verb in the source."""
        found = self._found.get(verb)
        if found is None:
            found = self._found[verb] = list(_occurrences(self._claim, self._source, verb))
        return found


def fill_role(claim: Claim, source: Source, slot: Slot, acts: Acts) -> Fillers:
    """Find the fillers of the claim's name in the source, with the same verb."""
    roles = acts.roles
    verb, side = _role_of(slot, roles)
    if verb < 0:
        return Fillers()
    own = {form.key for at in range(slot.at, slot.end) for form in claim.variants[at]}
    other = roles[verb].side("patient" if side == "agent" else "agent")
    theirs = _forms(claim, other)
    filled = usurped = 0.0
    by: Word | None = None
    spot = -1
    key = claim.words[verb].key
    for place, position in acts.occurrences(verb):
        sure = place in claim.tops and position in source.positions(place).get(key, ())
        there = _roles_at(source, place, position)
        mine = there.side(side)
        value = _worth(theirs, there.side("patient" if side == "agent" else "agent"), source, place)
        keys = _stand_for(source, place, mine) if mine is not None and mine.open else None
        if keys:
            value *= _PRONOUN
            if not own.isdisjoint(keys[:2]):
                filled = max(filled, value)
            elif own.isdisjoint(keys):
                usurped = max(usurped, value * sure)
        elif mine is None or mine.open or not _is_named(mine, source):
            continue  # a common noun may refer to anybody
        elif not own.isdisjoint(mine.keys):
            if value > filled:
                filled, spot = value, place
        elif sure and value > usurped:
            usurped = value
            words = source.sentences[place].words
            by = next((word for word in words[mine.at : mine.end] if word.kind == "name"), None)
            spot = place if not filled else spot
    return Fillers(filled, usurped, by, spot)


def compare_verbs(claim: Claim, source: Source, verb: int, roles: Roles) -> Fillers:
    """Compare the verb between the same sides in the source: the claim's, one like it, or another."""
    mine = (_forms(claim, roles.agent), _forms(claim, roles.patient))
    if mine == (None, None):
        return Fillers()
    key = claim.words[verb].key
    filled = usurped = 0.0
    by: Word | None = None
    for place in claim.tops:
        for position, other in _acts(source, place):
            there = _roles_at(source, place, position)
            value = _both(mine, there, source)
            if value <= 0:
                continue
            near = 1.0 if other.key == key else relation(key, other.key)
            if value * near > filled:
                filled = value * near
            if near < _LIKE and value > usurped:
                usurped, by = value, other
    return Fillers(filled, usurped, by)


def _acts(source: Source, place: int) -> list[tuple[int, Word]]:
    """The verbs of a sentence and their places."""
    found = source.acts.get(place)
    if found is None:
        words = source.sentences[place].words
        found = source.acts[place] = [(at, word) for at, word in enumerate(words) if is_act(words, at)][
            :_OCCURRENCES_MAX
        ]
    return found


def _both(mine: tuple[set[str] | None, set[str] | None], there: Roles, source: Source) -> float:
    """How well both sides match: half for each; an open side counts a quarter if the other matches."""
    value = met = 0.0
    for own, phrase in zip(mine, (there.agent, there.patient), strict=True):
        if own is None or phrase is None:
            continue
        if not own.isdisjoint(phrase.keys):
            value += 0.5
            met = 1.0
        elif phrase.open or not _is_named(phrase, source):
            value += 0.2
    return value * met


def _role_of(slot: Slot, roles: dict[int, Roles]) -> tuple[int, str]:
    for verb, sides in roles.items():
        for name in ("agent", "patient"):
            phrase = sides.side(name)
            if phrase is not None and phrase.at < slot.end and phrase.end > slot.at:
                return verb, name
    return -1, ""


def _forms(claim: Claim, phrase: Phrase | None) -> set[str] | None:
    """Words that may stand for a side of a claim's verb in the source; None if the side is missing or open."""
    if phrase is None or phrase.open:
        return None
    return {form.key for at in range(phrase.at, phrase.end) for form in claim.variants[at]}


def _worth(own: set[str] | None, phrase: Phrase | None, source: Source, place: int) -> float:
    """Weight of a source verb by its other side: the same, open, or another."""
    if own is not None and phrase is not None and phrase.open:
        return 1.0 if not own.isdisjoint(_stand_for(source, place, phrase)) else (1 + _ALONE) / 2
    if own is None or phrase is None:
        return (1 + _ALONE) / 2
    if not own.isdisjoint(phrase.keys):
        return 1.0
    return _ALONE if _is_named(phrase, source) else (1 + _ALONE) / 2


def _is_named(phrase: Phrase, source: Source) -> bool:
    return phrase.named or not phrase.keys.isdisjoint(source.named)


def _occurrences(claim: Claim, source: Source, verb: int) -> Iterator[tuple[int, int]]:
    """Occurrences of the verb in the source, best-covering sentences first."""
    keys = [form.key for form in claim.variants[verb]]
    tops = [place for place in claim.tops if any(key in source.keys[place] for key in keys)]
    near = [at for at in claim.near if at not in tops]
    places = [*tops, *near, *(place for key in keys for place in source.spread.get(key, ())[:_OCCURRENCES_MAX])]
    for place in list(dict.fromkeys(places))[:_OCCURRENCES_MAX]:
        if not any(key in source.keys[place] for key in keys):
            continue
        rows = source.positions(place)
        for key in keys:
            for position in rows.get(key, ())[:_SPOTS_MAX]:
                yield place, position


def _sort(source: Source, place: int, kind: str) -> list[tuple[int, Word]]:
    """The words of one sort in a sentence."""
    found = source.sorts.get((place, kind))
    if found is None:
        words = source.sentences[place].words
        found = source.sorts[place, kind] = [
            (at, word)
            for at, word in enumerate(words)
            if word.kind == kind and (at > 0 or kind != "name" or word.key in source.named)
        ]
    return found


def _names_before(source: Source, place: int, spot: int) -> list[str]:
    """Possible referents of a pronoun: names before it in its sentence, else in the nearest earlier
    sentence with any.
    """
    names = [word.key for at, word in _sort(source, place, "name") if at < spot]
    for back in range(1, _BACK + 1):
        if names or place - back < 0:
            break
        names = [word.key for _, word in _sort(source, place - back, "name")]
    return names


def _stand_for(source: Source, place: int, phrase: Phrase) -> list[str]:
    return _names_before(source, place, phrase.at)


# -- reading roles -------------------------------------------------------------------------------------

_AND = frozenset(("and", "or", "but", "then", "nor"))
_RELATIVE = frozenset(("who", "which", "that", "whom"))
_CLAUSES = frozenset(("as", "after", "before", "since", "until"))
"""Prepositions that may open a clause: "as the ship left"."""
_QUOTES = "'\"’”»"
_REACH = 14
_PHRASE_MAX = 6
_JOINED_MAX = 4
_PASSIVE_REACH = 3
_BY_REACH = 4
_DEEP = 2


class Phrase(NamedTuple):
    """Words that form one side of a verb; `named`: they include a name; `open`: a pronoun or the like."""

    at: int
    end: int
    keys: frozenset[str]
    named: bool
    open: bool = False


class Roles(NamedTuple):
    """Both sides of a verb, in active order."""

    agent: Phrase | None = None
    patient: Phrase | None = None

    def side(self, name: str) -> Phrase | None:
        return self.agent if name == "agent" else self.patient


def find_breaks(text: str, words: Sequence[Word]) -> tuple[int, ...]:
    """Punctuation before each word: 1 a comma, bracket or dash, or the end of a quotation; 2 a clause end."""
    ends = [0, *(word.end for word in words)]
    gaps = (text[end : word.start] for end, word in zip(ends, words, strict=False))
    return tuple(_break(gap) for gap in gaps)


def _break(gap: str) -> int:
    if len(gap) < 2:
        return 0
    if any(sign in ";:" for sign in gap):
        return 2
    return int(gap[0] in _QUOTES or any(sign in ",()–—" for sign in gap))


def is_act(words: Sequence[Word], at: int) -> bool:
    """True if a word looks like a verb in its place."""
    word = words[at]
    if word.kind != "word" or (at and words[at - 1].key in ARTICLES):
        return False
    if word.text.endswith("ed"):
        return is_verb(word.key) or is_verb(word.text[:-1]) or word.key in verb_stems()
    return word.key in verb_stems() or is_irregular(word.text)


def read_roles(words: Sequence[Word], breaks: Sequence[int], verb: int) -> Roles:
    """The sides of the word at a place, a verb or a noun derived from one."""
    passive = _passive(words, verb)
    by = _by(words, breaks, verb)
    behind = words[verb + 1].key if verb + 1 < len(words) else ""
    if behind == "of":  # the acquisition of one by another
        return Roles(by or _owner(words, verb), _forward(words, breaks, verb + 2))
    if by is not None and not words[verb].text.endswith("ing"):
        return Roles(by, _before(words, breaks, verb, 0, done_to=True))
    if verb and words[verb - 1].key in PREPOSITIONS and words[verb - 1].key != "to":  # "per diluted share"
        return Roles()
    if passive:
        return Roles(None, _before(words, breaks, verb, 0, done_to=True))
    agent = _before(words, breaks, verb, 0)
    patient = _forward(words, breaks, verb + 1)
    if patient is None and agent is not None and agent.at > 1 and _opens(words, agent.at) in _RELATIVE:
        start = next(at for at in range(agent.at - 1, -1, -1) if words[at].key in _RELATIVE)
        patient = _ending(words, breaks, start - 1)
    return Roles(agent, patient)


def _passive(words: Sequence[Word], verb: int) -> bool:
    near = words[max(0, verb - _PASSIVE_REACH) : verb]
    if words[verb].text.endswith("ing"):
        return False
    for word in reversed(near):
        if word.key in PASSIVE:
            return True
        if word.kind != "small" and not word.text.endswith("ly"):
            return False
    return False


def _by(words: Sequence[Word], breaks: Sequence[int], verb: int) -> Phrase | None:
    """The agent after "by", shortly after the verb."""
    for at in range(verb + 1, min(len(words) - 1, verb + 1 + _BY_REACH)):
        if words[at].key == "by":
            found = _forward(words, breaks, at + 1)
            return found if found is not None and words[found.at].kind in ("name", "word") else None
        if breaks[at] or is_act(words, at):
            return None
    return None


def _owner(words: Sequence[Word], noun: int) -> Phrase | None:
    at = noun - 1
    return _phrase(words, at, noun) if at >= 0 and words[at].text.endswith(("'s", "’s")) else None


def _opens(words: Sequence[Word], at: int) -> str:
    """The word before a phrase, skipping its article."""
    at -= 1
    while at >= 0 and words[at].key in ARTICLES and words[at].key not in ("of", "that"):
        at -= 1
    return words[at].key if at >= 0 else ""


def _before(
    words: Sequence[Word], breaks: Sequence[int], verb: int, deep: int, *, done_to: bool = False
) -> Phrase | None:
    """The phrase before a verb that is its subject; `done_to`: or that it acts on ("the mill, sold by Moss")."""
    at = verb - 1
    while at >= 0 and not breaks[at + 1] and _is_helper(words[at]):
        at -= 1
    if at < 0:
        return None
    key = words[at].key
    if key in _RELATIVE:
        return _ending(words, breaks, at - 1, climb=False)
    if key in _AND or key == "to":
        return _earlier(words, breaks, at, deep)
    if breaks[at + 1]:  # an insertion, or another verb of the same series
        comma = next((spot for spot in range(at, max(0, at - _REACH), -1) if breaks[spot]), 0)
        if comma and breaks[comma] < 2 and not any(is_act(words, spot) for spot in range(comma, min(at, comma + 1))):
            return _also_called(words, comma, at, _ending(words, breaks, comma - 1))
        found = _earlier(words, breaks, at, deep)
        return _ending(words, breaks, at) if found is None and done_to else found
    return _ending(words, breaks, at)


def _also_called(words: Sequence[Word], start: int, end: int, phrase: Phrase | None) -> Phrase | None:
    """A phrase with the name that alone is inserted after it: "the European Commission (EC)"."""
    inserted = words[start : end + 1]
    if phrase is None or any(word.kind != "name" for word in inserted):
        return phrase
    return phrase._replace(keys=phrase.keys | {word.key for word in inserted}, named=True)


def _is_helper(word: Word) -> bool:
    if word.key in GENDER or word.key in _RELATIVE or word.key in _AND or word.key in PREPOSITIONS:
        return False
    return word.kind == "small" or word.key in AUXILIARY or word.text.endswith("ly") or negates(word.text, word.key)


def _earlier(words: Sequence[Word], breaks: Sequence[int], at: int, deep: int) -> Phrase | None:
    """The subject of the preceding verb: "built the quay and sold the mill"."""
    verb = next((spot for spot in range(at - 1, max(-1, at - 1 - _REACH), -1) if is_act(words, spot)), None)
    return _before(words, breaks, verb, deep + 1) if verb is not None and deep < _DEEP else None


def _ending(words: Sequence[Word], breaks: Sequence[int], at: int, *, climb: bool = True) -> Phrase | None:
    """The phrase that ends at a place; for a prepositional phrase, the phrase it modifies."""
    for _ in range(_DEEP + 1):
        if at < 0:
            return None
        if words[at].kind == "small":
            return _pronoun(words, at)
        start = at
        while start and at - start < _PHRASE_MAX and not breaks[start] and _continues(words, start - 1, at):
            start -= 1
        hung = start - 1
        while hung >= 0 and words[hung].key in ARTICLES and words[hung].key not in PREPOSITIONS:
            hung -= 1
        key = words[hung].key if climb and hung > 0 and not breaks[hung + 1] else ""
        if key in PREPOSITIONS and key not in _CLAUSES:
            at = hung - 1
            if words[at].kind == "small" or is_act(words, at):
                at -= 1
            continue
        return _joined_before(words, breaks, _phrase(words, start, at + 1), hung)
    return None


def _pronoun(words: Sequence[Word], at: int) -> Phrase | None:
    return Phrase(at, at + 1, frozenset(), False, True) if words[at].key in GENDER else None


def _continues(words: Sequence[Word], at: int, last: int) -> bool:
    word = words[at]
    if word.text.endswith(("'s", "’s")) or word.kind in ("small", "date"):
        return False
    return word.kind == "name" or (not is_act(words, at) and not (word.kind == "number" and words[last].kind == "name"))


def _phrase(words: Sequence[Word], start: int, end: int) -> Phrase:
    own = words[start:end]
    named = any(
        word.kind == "name" and (at > 0 or not is_ordinary(word.key)) for at, word in enumerate(own, start=start)
    )
    return Phrase(start, end, frozenset(word.key for word in own), named)


def _joined_before(words: Sequence[Word], breaks: Sequence[int], phrase: Phrase, at: int) -> Phrase:
    """Extend a phrase by names joined to it by "and" before it."""
    if at < 1 or not phrase.named or words[at].key not in ("and", "or"):
        return phrase
    keys, spot = set(phrase.keys), at - 1
    for _ in range(_JOINED_MAX):
        end = spot
        while spot >= 0 and words[spot].kind == "name" and (spot == end or not breaks[spot + 1]):
            spot -= 1
        if spot == end or (spot >= 0 and is_act(words, spot)):
            break
        keys.update(word.key for word in words[spot + 1 : end + 1])
        if not breaks[spot + 1]:
            break
    return phrase._replace(keys=frozenset(keys))


def _forward(words: Sequence[Word], breaks: Sequence[int], at: int) -> Phrase | None:
    """The first phrase from a place on, before the clause ends or a time or place begins."""
    first = at
    while at < len(words) and words[at].kind == "small":
        key = words[at].key
        if breaks[at]:
            return None
        if key in GENDER:
            return _pronoun(words, at) if key not in ("his", "their", "its") else None
        if (key in PREPOSITIONS and at > first) or key in _RELATIVE or key in _AND:
            return None
        at += 1
    if at >= len(words) or breaks[at] or words[at].kind == "date" or (at == first and is_act(words, at)):
        return None
    end = at + 1
    while end < len(words) and end - at < _PHRASE_MAX and not breaks[end] and words[end].kind in ("word", "name"):
        if is_act(words, end) or words[end].key in PREPOSITIONS:
            break
        end += 1
    owner = next((spot for spot in range(end - 2, at - 1, -1) if words[spot].text.endswith(("'s", "’s"))), None)
    return _joined_behind(words, breaks, _phrase(words, at if owner is None else owner + 1, end), end)


def _joined_behind(words: Sequence[Word], breaks: Sequence[int], phrase: Phrase, at: int) -> Phrase:
    """Extend a phrase by the names that follow, up to one after "and"."""
    keys: set[str] = set()
    for _ in range(_JOINED_MAX):
        last = at < len(words) and words[at].key in ("and", "or")
        at += last
        start = at
        while at < len(words) and words[at].kind == "name" and (at == start or not breaks[at]):
            at += 1
        if at == start or not (last or breaks[start]):
            break
        keys.update(word.key for word in words[start:at])
        if last:
            return phrase._replace(keys=phrase.keys | keys)
    return phrase
