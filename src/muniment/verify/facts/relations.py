"""How the words of a claim hang together: who does what to whom, what follows what, whom a pronoun means.

Each check asks for the same words in one sentence of the source and is silent where it does not find them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from muniment.verify.facts.claims import Claim
from muniment.verify.facts.doubts import Doubt, DoubtKind, ErrorType
from muniment.verify.facts.lexicon import GENDER, LINKS, MODALITY, OPPOSED_LINKS, POSSESSIVE
from muniment.verify.facts.source import Source
from muniment.verify.facts.words import Word, is_cjk, is_hangul

__all__ = ["Before", "relation_doubts"]

_ROLE_REACH = 4
_NOUN_REACH = 2
"""A verb's sides stand at most so many words from it: names, and other nouns."""
_LINK_COVER_MIN = 0.6
_PRONOUN_COVER_MIN = 0.6
"""Where the evidence says the rest of the claim, an "it" that opens it is no reason to deny it support."""
_CERTAINTY_COVER_MIN = 0.7
_SIGNS_ALIKE_MIN = 0.5
_WORDS_ALIKE_MIN = 0.4
_SUBSTITUTE_SIGNS_MAX = 4
_SUBSTITUTE_TEXT_MAX = 400
_ABSENT_COUNT_MIN = 3


class Before(NamedTuple):
    """What the output has said before a unit: has it named anything, and whom last? Is the unit all there is?"""

    content: bool = False
    name: str | None = None
    alone: bool = False


def relation_doubts(claim: Claim, source: Source, before: Before, absent_share: float) -> Iterator[Doubt]:
    """The doubts that words raise together. `absent_share`: so much of a claim unknown to the source is too much."""
    yield from _pronouns(claim, source, before)
    if claim.best >= 0:
        yield from _swapped_roles(claim, source)
        yield from _changed_link(claim, source)
        yield from _certainty(claim, source)
        if any(is_cjk(word.text[0]) for word in claim.words):
            yield from _substituted(claim, source)
    yield from _extrinsic(claim, absent_share)


# -- whom a pronoun means -----------------------------------------------------------------------------


def _pronouns(claim: Claim, source: Source, before: Before) -> Iterator[Doubt]:
    name, content = before.name, before.content
    for at, word in enumerate(claim.words):
        role = claim.roles[at]
        if role == "name":
            name = word.key
        if role == "pronoun":
            known, meant = _gender_in(source, name), GENDER[word.key]
            if known is not None and meant in ("he", "she") and meant != known:
                why = f"the source speaks of “{known}”, the claim of “{word.text}”"
                yield Doubt("wrong_gender", "CorefE", word.start, word.end, why, place=claim.best)
                return
            if not content and not (at and word.key in POSSESSIVE):
                why = f"“{word.text}” stands for nobody named so far"
                told = meant == "it" and claim.covered >= _PRONOUN_COVER_MIN
                quiet = before.alone or told or _says(source, claim.best, meant)
                yield Doubt("no_antecedent", "CorefE", word.start, word.end, why, place=claim.best, quiet=quiet)
                return
        content = content or word.kind != "small"


def _says(source: Source, place: int, gender: str) -> bool:
    """Does the sentence itself leave it at such a pronoun?"""
    return place >= 0 and any(GENDER.get(word.key) == gender for word in source.sentences[place].words)


def _gender_in(source: Source, name: str | None) -> str | None:
    """`he` or `she`, where the source calls everybody by one of them alone, or this name by one of them alone."""
    if len(source.genders) == 1:
        return next(iter(source.genders))
    if name is None:
        return None
    found: set[str] = set()
    for place in source.spread.get(name, ()):
        words = source.sentences[place].words
        named = [at for at, word in enumerate(words) if word.kind == "name"]
        if {words[at].key for at in named} != {name}:
            continue  # another name stands beside it: the pronoun may be theirs
        found |= {GENDER[word.key] for word in words[named[-1] :] if word.key in GENDER} & {"he", "she"}
    return next(iter(found)) if len(found) == 1 else None


# -- who does what to whom ----------------------------------------------------------------------------


def _swapped_roles(claim: Claim, source: Source) -> Iterator[Doubt]:
    """Two names around a verb, and a sentence that has the same verb between them the other way round."""
    known: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for at, role in enumerate(claim.roles):
        if role != "verb" or claim.words[at].text.endswith("ing"):
            continue
        left = _side(claim, range(at - 1, -1, -1))
        right = _side(claim, range(at + 1, len(claim.words)))
        if left is None or right is None or claim.words[left].key == claim.words[right].key:
            continue
        ours = _agent(claim.words, left, at, right)
        key_left, verb, key_right = claim.words[left].key, claim.words[at].key, claim.words[right].key
        sides = key_left, verb, key_right
        if sides not in known:
            known[sides] = _agents(source, *sides)
        found = known[sides]
        if found and all(agent != ours for _, agent in found):
            word = claim.words[at]
            why = f"in the evidence the two sides of “{word.text}” stand the other way round"
            yield Doubt("roles_swapped", "EntE", claim.words[left].start, word.end, why, place=found[0][0])
            return


def _agents(source: Source, one: str, verb: str, other: str) -> list[tuple[int, str]]:
    """The sentences that have the verb between the two, each with the one who does it there."""
    found: list[tuple[int, str]] = []
    for place in source.spread.get(verb, ()):
        if one in source.keys[place] and other in source.keys[place]:
            agent = _agent_of(source.sentences[place].words, one, verb, other)
            if agent is not None:
                found.append((place, agent))
    return found


def _side(claim: Claim, places: range) -> int | None:
    """The name on one side of a verb, or else the noun next to it."""
    near = [place for place in places[:_ROLE_REACH] if claim.roles[place] == "name"]
    near += [place for place in places[:_NOUN_REACH] if claim.roles[place] == "word"]
    return near[0] if near else None


def _agent(words: Sequence[Word], left: int, verb: int, right: int) -> str:
    """Who stands behind "by" does it, be the verb's helper said ("was sold by") or not ("sold by")."""
    by = any(word.key == "by" for word in words[verb + 1 : min(right, verb + 4)])
    passive = by and not words[verb].text.endswith("ing")
    return words[right].key if passive else words[left].key


def _agent_of(words: Sequence[Word], one: str, verb: str, other: str) -> str | None:
    """Which of two names does it, where the verb stands between them."""
    spots = [at for at, word in enumerate(words) if word.key == verb and word.kind == "word"]
    for at in spots:
        behind, ahead = range(at - 1, -1, -1)[:_ROLE_REACH], range(at + 1, len(words))[:_ROLE_REACH]
        left = next((place for place in behind if words[place].key in (one, other)), None)
        right = next((place for place in ahead if words[place].key in (one, other)), None)
        if left is not None and right is not None and words[left].key != words[right].key:
            return _agent(words, left, at, right)
    return None


# -- what follows what --------------------------------------------------------------------------------


class _Joined(NamedTuple):
    """Two clauses and how the second is tied to the first: main clause, linked clause."""

    sense: str
    main: frozenset[str]
    linked: frozenset[str]
    at: int


def _changed_link(claim: Claim, source: Source) -> Iterator[Doubt]:
    if claim.covered < _LINK_COVER_MIN:
        return
    ours = _joined(claim.words, claim.text)
    sentence = source.sentences[claim.best]
    text = source.documents[sentence.document].text[sentence.start : sentence.end]
    theirs = _joined(sentence.words, text)
    if ours is None or theirs is None:
        return
    straight = len(ours.main & theirs.main) + len(ours.linked & theirs.linked)
    crossed = len(ours.main & theirs.linked) + len(ours.linked & theirs.main)
    if straight == crossed:
        return
    same = ours.sense == theirs.sense
    opposite = OPPOSED_LINKS.get(ours.sense) == theirs.sense
    turned = crossed > straight
    directed = ours.sense in ("earlier", "later", "cause")
    order = ours.sense in ("earlier", "later")
    if (same and turned and directed) or (opposite and not (turned and order)):
        word, rival = claim.words[ours.at], sentence.words[theirs.at]
        why = f"the evidence links this by “{rival.text}”, the claim by “{word.text}”"
        if same:
            why = f"the evidence has what “{word.text}” links the other way round"
        instead = None if same else rival.text
        yield Doubt("link_changed", "LinkE", word.start, word.end, why, instead=instead, place=claim.best)


def _joined(words: Sequence[Word], text: str) -> _Joined | None:
    """The one link of a sentence with clauses on both sides of it; "After X, Y" is read as "Y after X"."""
    links = [at for at, word in enumerate(words) if word.key in LINKS and LINKS[word.key] != "condition"]
    if len(links) != 1:
        return None
    at = links[0]
    if at == 0:
        comma = text.find(",", words[0].end)
        split = next((place for place, word in enumerate(words) if word.start > comma), len(words)) if comma > 0 else 0
        linked, main = words[1:split], words[split:]
    else:
        main, linked = words[:at], words[at + 1 :]
    sides = [frozenset(word.key for word in side if word.kind != "small") for side in (main, linked)]
    return _Joined(LINKS[words[at].key], sides[0], sides[1], at) if all(sides) else None


# -- how sure -----------------------------------------------------------------------------------------


def _certainty(claim: Claim, source: Source) -> Iterator[Doubt]:
    """The evidence says that something may be so, the claim, in the same words, that it is."""
    if claim.covered < _CERTAINTY_COVER_MIN:
        return
    words = source.sentences[claim.best].words
    if any(MODALITY.get(word.text.casefold(), 2) < 2 for word in claim.words):
        return
    for at, role in enumerate(claim.roles):
        if role != "verb":
            continue
        key = claim.words[at].key
        spots = [place for place, word in enumerate(words) if word.key == key]
        unsure = [[word for word in words[max(0, spot - 2) : spot] if _unsure(word)] for spot in spots]
        if spots and all(unsure):
            word, modal = claim.words[at], unsure[0][0].text
            why = f"the evidence says only “{modal}” of “{word.text}”"
            yield Doubt("certainty", "PredE", word.start, word.end, why, place=claim.best)
            return


def _unsure(word: Word) -> bool:
    return MODALITY.get(word.text.casefold()) == 0 and word.text[:1].islower()


# -- what is foreign to the source --------------------------------------------------------------------


def _substituted(claim: Claim, source: Source) -> Iterator[Doubt]:
    """Scripts without capitals: a short piece that differs, between pieces that the evidence has letter by letter."""
    sentence = source.sentences[claim.best]
    theirs = source.documents[sentence.document].text[sentence.start : sentence.end]
    if max(len(theirs), len(claim.text)) > _SUBSTITUTE_TEXT_MAX:
        return
    pieces = _hangul_pieces(sentence.words, claim.words) or _han_pieces(theirs, claim.text)
    for start, end, left, right in pieces:
        mine, other = claim.text[start:end], theirs[left:right]
        absent = not any(mine in one.text for one in source.documents)
        error: ErrorType = "OutE" if absent else "EntE"
        kind: DoubtKind = "name_absent" if absent else "name_elsewhere"
        why = f"the evidence has “{other}” where the claim has “{mine}”"
        yield Doubt(kind, error, start, end, why, instead=other, place=claim.best)


_Piece = tuple[int, int, int, int]
"""Where it stands in the claim, and where what differs stands in the evidence."""


def _framed(theirs: Sequence[str], mine: Sequence[str], alike_min: float) -> list[_Piece]:
    """Replaced stretches between equal ones, of two rows that are alike for the most part."""
    codes = SequenceMatcher(None, theirs, mine, autojunk=False).get_opcodes()
    same = sum(code[4] - code[3] for code in codes if code[0] == "equal")
    if same < alike_min * len(mine):
        return []
    rows = zip(codes, codes[1:], codes[2:], strict=False)
    return [
        (code[3], code[4], code[1], code[2])
        for before, code, after in rows
        if code[0] == "replace" and before[0] == after[0] == "equal"
    ]


def _han_pieces(theirs: str, mine: str) -> list[_Piece]:
    """Two to four signs in place of two to four others."""
    sizes = range(2, _SUBSTITUTE_SIGNS_MAX + 1)
    return [
        piece
        for piece in _framed(theirs, mine, _SIGNS_ALIKE_MIN)
        if piece[1] - piece[0] in sizes
        and piece[3] - piece[2] in sizes
        and all(
            is_cjk(sign) and not is_hangul(sign) for sign in mine[piece[0] : piece[1]] + theirs[piece[2] : piece[3]]
        )
    ]


def _hangul_pieces(theirs: Sequence[Word], mine: Sequence[Word]) -> list[_Piece]:
    """One word with a particle, so a noun, in place of another one, the verb at the end being the same."""
    pieces: list[_Piece] = []
    for start, end, left, right in _framed(
        [word.key for word in theirs], [word.key for word in mine], _WORDS_ALIKE_MIN
    ):
        one, other = mine[start], theirs[left]
        nouns = all(is_hangul(word.text[0]) and word.kind == "word" and word.key != word.text for word in (one, other))
        if end - start == right - left == 1 and nouns:
            pieces.append((one.start, one.end, other.start, other.end))
    return pieces


def _extrinsic(claim: Claim, absent_share: float) -> Iterator[Doubt]:
    unknown = [at for at in claim.content if not claim.variants[at]]
    if len(unknown) < _ABSENT_COUNT_MIN or len(unknown) < absent_share * len(claim.content):
        return
    first, last = claim.words[unknown[0]], claim.words[unknown[-1]]
    shown = ", ".join(dict.fromkeys(claim.words[at].text for at in unknown[:4]))
    why = f"{len(unknown)} of {len(claim.content)} words are not in the source: {shown}"
    yield Doubt("words_absent", "OutE", first.start, last.end, why)
