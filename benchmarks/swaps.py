"""Claims with one slot swapped, and true ones in other words, made by rule from claims that their source supports.

A maker is given a claim, its source and a seeded generator of numbers, and gives at most one claim: false by one slot
(subject, object, place, number, date, verb, polarity, both sides turned round), or true in another form (passive and
active, a noun for the verb, a short name, another form of a date or a number, the name that a pronoun stands for).
The rules here share no table with the checker: what it cannot see is not left out for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from random import Random
from typing import NamedTuple

__all___TEXT = "FALSE_KINDS TRUE_KINDS Made claims_of make_claims sentences"
__all__ = __all___TEXT.split()


class Made(NamedTuple):
    """A claim that was made, and whether the source still bears it."""

    kind: str
    text: str
    true: bool


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"“])")
_NAME = r"(?:[A-Z][\w’'-]*[a-z][\w’'-]*|[A-Z]{2,})"
_NAMES = re.compile(rf"\b{_NAME}(?: {_NAME})*\b")
_MONTHS_TEXT = "January February March April May June July August September October November December"
_MONTHS = _MONTHS_TEXT.split()
_DAYS_TEXT = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_DAYS = _DAYS_TEXT.split()
_NO_NAMES_TEXT = (
    "The A An In On At By For From To Of And But Or If When While After Before During Since Until As It He She "
    "They We You I His Her Their Its Our My This That These Those There Here What Who Which How Why Where Yes No "
    "Not Some Many Most All Each Every Both Other Another Such One Two Three First Second Also However Although "
    "Though Because According Additionally Therefore Overall Then Thus So With Without Under Over Despite About "
    "New More Once Is Are Was Were Can May Will Would Could Should Do Does Did Has Have Had Mr Mrs Ms Dr"
)
_NO_NAMES = frozenset(_NO_NAMES_TEXT.split()) | frozenset((*_MONTHS, *_DAYS))
_STRANGERS_TEXT = (
    "Marlow Denholm Kestrel Orlanda Vickers Tamsin Brightwell Halvard Quillfeather Rosmere Ashgrove Peregrin "
    "Thornby Calloway Fennimore Lysander"
)
_STRANGERS = _STRANGERS_TEXT.split()
_PLACE_BEFORE = re.compile(r"\b(?:in|at|near|from|to) $")
_NUMBER = re.compile(r"(?<![\w.,:/-])\d{1,3}(?:,\d{3})+(?![\w.,-]*\d)|(?<![\w.,:/-])\d+(?:\.\d+)?(?![\w:/-]|[.,]\d)")
_YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
_DATE_DAY_FIRST = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(_MONTHS)}),? (\d{{4}})\b")
_DATE_MONTH_FIRST = re.compile(rf"\b({'|'.join(_MONTHS)}) (\d{{1,2}}), (\d{{4}})\b")
_PAST_TEXT = """
acquire acquired acquisition|appoint appointed appointment|arrest arrested arrest|attack attacked attack|
buy bought purchase|build built construction|choose chose selection|conquer conquered conquest|create created creation|
defeat defeated defeat|defend defended defence|describe described description|design designed design|
destroy destroyed destruction|develop developed development|direct directed direction|discover discovered discovery|
dismiss dismissed dismissal|elect elected election|employ employed employment|establish established establishment|
expand expanded expansion|explore explored exploration|fund funded funding|
install installed installation|invent invented invention|introduce introduced introduction|
invade invaded invasion|investigate investigated investigation|launch launched launch|nominate nominated nomination|
open opened opening|oppose opposed opposition|perform performed performance|praise praised praise|
produce produced production|publish published publication|purchase purchased purchase|recognise recognised recognition|
reject rejected rejection|release released release|remove removed removal|replace replaced replacement|
rescue rescued rescue|restore restored restoration|support supported support|translate translated translation|
treat treated treatment|use used use
"""
_VERBS = {row.split()[1]: row.split() for row in _PAST_TEXT.replace("\n", "").split("|")}
"""A past form → the verb, the past form, the noun."""
_OTHER_PASTS_TEXT = (
    "accepted accused admitted advised allowed announced approved asked avoided awarded banned beat became began "
    "blamed blocked broke brought called cancelled captured carried caught caused changed charged claimed closed "
    "collected completed condemned confirmed contained continued convicted cost covered crashed criticised "
    "crossed cut decided declared declined delayed delivered demanded denied designated died divorced doubled "
    "dropped earned ended enjoyed entered escaped estimated exceeded explained exported failed feared fell fired "
    "followed forced formed fought found founded gained gave grew handed hated heard held helped hired hit "
    "honoured hosted hunted identified ignored improved included increased influenced injured inspired "
    "interviewed invited issued jailed joined kept killed left lost loved maintained managed married met missed "
    "moved murdered named needed observed offered ordered organised outlawed owned painted passed played "
    "postponed prevented promised promoted proposed protected proved provided raised ran reached received "
    "recommended recorded recovered reduced refused registered regretted remained repaired reported represented "
    "requested resigned resolved retained retired returned revealed rose rushed sacked said saved scored seized "
    "sent served settled shared shot showed signed sold started stole stopped studied submitted succeeded sued "
    "suffered suggested suspended taught threatened told took transferred trained urged visited voted wanted "
    "warned watched won wore wrote"
)
_OTHER_PASTS = frozenset(_OTHER_PASTS_TEXT.split())
_PASTS = _OTHER_PASTS | _VERBS.keys()
_OPPOSITES_TEXT = (
    "accepted rejected|approved blocked|increased decreased|rose fell|grew shrank|won lost|opened closed|started ended|"
    "began ended|joined left|hired sacked|praised criticised|supported opposed|bought sold|gained lost|raised lowered|"
    "allowed banned|confirmed denied|arrived departed|built demolished|created destroyed|attacked defended|"
    "expanded reduced|succeeded failed|accelerated slowed|strengthened weakened|remembered forgot|loved hated|"
    "installed removed|published withdrew|increase decrease|increases decreases|higher lower|largest smallest|"
    "more fewer|first last|before after|oldest youngest|highest lowest|best worst|north south|east west|"
    "northern southern|eastern western|early late|earlier later|major minor|male female|men women|husband wife|"
    "son daughter|father mother|brother sister"
)
_OPPOSITES = {one: two for pair in _OPPOSITES_TEXT.split("|") for one, two in (pair.split(), reversed(pair.split()))}
_SYMMETRIC_TEXT = "married met divorced shared became remained met joined fought beat faced"
_SYMMETRIC = frozenset(_SYMMETRIC_TEXT.split()) - {"beat"}
_BE = re.compile(r"\b(is|are|was|were|can|will|could|should|would|must|has been|have been)\b(?! (?:not|never|no)\b)")
_PLACED = re.compile(r"\b(?:did not|does not|do not|is not|was not|are not|were not|cannot|never)\b")
_ONES_TEXT = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_ONES = _ONES_TEXT.split()
_ONES_MORE_TEXT = "seventeen eighteen nineteen"
_ONES += _ONES_MORE_TEXT.split()
_TENS_TEXT = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = _TENS_TEXT.split()
_TURNED = re.compile(rf"\b({_NAME}(?: {_NAME})*) ((?:was |were )?[a-z]+(?: by)?) ((?:the )?{_NAME}(?: {_NAME})*)\b")
_WORDS_MAX = 30
"""A sentence of the source is made a claim only if it is not longer."""


def sentences(text: str) -> list[str]:
    return [one.strip() for one in _SENTENCE_END.split(" ".join(text.split())) if one.strip()]


def _names(text: str) -> list[re.Match[str]]:
    """Names: runs of capitals; a sentence's first word only where more of the name follows or it is no common word."""
    return [found for found in _NAMES.finditer(text) if found[0].split()[0] not in _NO_NAMES]


def _starts(text: str) -> set[int]:
    return {0, *(found.end() for found in _SENTENCE_END.finditer(text))}


def _known_names(source: str) -> list[str]:
    """Names that stand inside a sentence of the source."""
    starts = _starts(source)
    return list(dict.fromkeys(found[0] for found in _names(source) if found.start() not in starts))


def _put(text: str, start: int, end: int, new: str) -> str:
    if start == 0:
        new = new[:1].upper() + new[1:]
    return text[:start] + new + text[end:]


def _swap_name(claim: str, source: str, random: Random, slot: str, *, stranger: bool) -> str | None:
    known = set(_known_names(source))
    spots = [found for found in _names(claim) if found[0] in known and _slot(claim, found.start()) == slot]
    if not spots:
        return None
    spot = random.choice(spots)
    if stranger:
        return _put(claim, *spot.span(), random.choice(_STRANGERS))
    own = set(re.findall(r"\w+", claim))
    length = len(spot[0].split())
    others = [name for name in _known_names(source) if own.isdisjoint(re.findall(r"\w+", name))]
    alike = [name for name in others if len(name.split()) == length] or others
    return _put(claim, *spot.span(), random.choice(alike)) if alike else None


def _slot(claim: str, start: int) -> str:
    """Where a name stands: subject at the beginning, place behind a preposition of place, else object."""
    before = claim[:start]
    if before in ("", "The "):
        return "subject"
    return "place" if _PLACE_BEFORE.search(before) else "object"


def _numbers(text: str, *, years: bool) -> list[re.Match[str]]:
    return [found for found in _NUMBER.finditer(text) if bool(_YEAR.fullmatch(found[0])) == years]


def _swap_number(claim: str, source: str, random: Random, *, years: bool, known: bool) -> str | None:
    spots = [found for found in _numbers(claim, years=years) if found[0] in source]
    if not spots:
        return None
    spot = random.choice(spots)
    here = {found[0] for found in _NUMBER.finditer(claim)}
    there = list(dict.fromkeys(found[0] for found in _numbers(source, years=years)))
    if known:
        others = [one for one in there if one not in here]
    else:
        value = int(float(spot[0].replace(",", "")))
        moved = [value + step for step in (-7, -3, 2, 5, 11)] if years else [value + 3, value * 2 + 1, value * 10 + 4]
        others = [str(one) for one in moved if one > 0 and str(one) not in {*here, *there}]
    return _put(claim, *spot.span(), random.choice(others)) if others else None


def _swap_month(claim: str, _source: str, random: Random) -> str | None:
    spots = [*re.finditer(rf"\b(?:{'|'.join((*(m for m in _MONTHS if m != 'May'), *_DAYS))})\b", claim)]
    if not spots:
        return None
    spot = random.choice(spots)
    row = _DAYS if spot[0] in _DAYS else _MONTHS
    return _put(claim, *spot.span(), random.choice([one for one in row if one not in claim]))


def _swap_verb(claim: str, source: str, random: Random, *, known: bool) -> str | None:
    spots = [found for found in re.finditer(r"\b[a-z]+\b", claim) if found[0] in _PASTS and found[0] in source]
    if not spots:
        return None
    spot = random.choice(spots)
    have = _PASTS & set(re.findall(r"[a-z]+", source))
    pool = (have if known else _PASTS - have) - set(re.findall(r"[a-z]+", claim))
    return _put(claim, *spot.span(), random.choice(sorted(pool))) if pool else None


def _swap_opposite(claim: str, source: str, random: Random) -> str | None:
    spots = [found for found in re.finditer(r"\b[a-z]+\b", claim) if found[0] in _OPPOSITES and found[0] in source]
    if not spots:
        return None
    spot = random.choice(spots)
    return _put(claim, *spot.span(), _OPPOSITES[spot[0]])


def _deny(claim: str, _source: str, random: Random) -> str | None:
    if re.search(r"\b(?:not|never|no|nor|without)\b|n[’']t\b", claim):
        spots = [*_PLACED.finditer(claim)]
        if len(spots) != 1:
            return None
        said = {"did not": "did", "cannot": "can", "never": "always"}.get(spots[0][0], spots[0][0].split()[0])
        return _put(claim, *spots[0].span(), said)
    found = _BE.search(claim)
    if found:
        return claim[: found.end()] + " " + random.choice(("not", "never")) + claim[found.end() :]
    spots = [one for one in re.finditer(r"\b[a-z]+\b", claim) if one[0] in _VERBS]
    return _put(claim, *spots[0].span(), f"did not {_VERBS[spots[0][0]][0]}") if spots else None


def _turn_round(claim: str, _source: str, _random: Random) -> str | None:
    for found in _TURNED.finditer(claim):
        one, middle, two = found.groups()
        verb = next((word for word in middle.split() if word in _PASTS - _SYMMETRIC), None)
        if verb and one.split()[0] not in _NO_NAMES and two.removeprefix("the ").split()[0] not in _NO_NAMES:
            return claim[: found.start()] + f"{two} {middle} {one}" + claim[found.end() :]
    return None


# -- true ones ----------------------------------------------------------------------------------------

_THING = rf"(?:(?:[Tt]he|[Aa]n?|[Ii]ts|[Tt]heir) (?:[a-z-]+ )?[a-z-]+|(?:[Tt]he )?{_NAME}(?: {_NAME})*)"
_THEN = r"(?=[.,]| (?:in|on|at|from|for|during|after|before) )"
_SOMEBODY = rf"(?:[Tt]he )?{_NAME}(?: {_NAME})*"
_ACTIVE = re.compile(rf"^({_SOMEBODY}) ([a-z]+) ({_THING}){_THEN}")
_PASSIVE = re.compile(rf"^({_THING}) (?:was|were) ([a-z]+) by ({_SOMEBODY}){_THEN}")


def _voice(claim: str, _source: str, _random: Random) -> str | None:
    for pattern, joined in ((_ACTIVE, "{two} was {verb} by {one}"), (_PASSIVE, "{two} {verb} {one}")):
        found = pattern.match(claim)
        if found and found[2] in _VERBS and found[2] not in ("bought", "chose"):
            one, verb, two = found.groups()
            one = one[:1].lower() + one[1:] if one.split()[0] in _NO_NAMES else one
            turned = joined.format(one=one, verb=verb, two=two[:1].upper() + two[1:])
            return turned + claim[found.end() :]
    return None


def _noun(claim: str, _source: str, _random: Random) -> str | None:
    found = _ACTIVE.match(claim)
    if not found or found[2] not in _VERBS:
        return None
    one, verb, two = found.groups()
    one = one[:1].lower() + one[1:] if one.startswith("The ") else one
    return f"There was a {_VERBS[verb][2]} of {two} by {one}{claim[found.end() :]}"


def _short_name(claim: str, source: str, random: Random) -> str | None:
    """The last word of a person's name, where the source uses it alone too."""
    spots = [
        found
        for found in _names(claim)
        if len(found[0].split()) == 2 and len(re.findall(rf"\b{re.escape(found[0].split()[-1])}\b", source)) > 1
    ]
    spot = random.choice(spots) if spots else None
    return _put(claim, *spot.span(), spot[0].split()[-1]) if spot else None


def _initials(claim: str, source: str, random: Random) -> str | None:
    """A name of several words by its first letters, where the source says both."""
    spots = [
        found
        for found in _names(claim)
        if len(found[0].split()) > 1 and f"({''.join(word[0] for word in found[0].split())})" in source
    ]
    spot = random.choice(spots) if spots else None
    return _put(claim, *spot.span(), "".join(word[0] for word in spot[0].split())) if spot else None


def _other_date(claim: str, _source: str, random: Random) -> str | None:
    found = _DATE_DAY_FIRST.search(claim)
    day, month, year = found.groups() if found else ("", "", "")
    if not found:
        found = _DATE_MONTH_FIRST.search(claim)
        month, day, year = found.groups() if found else ("", "", "")
    if not found:
        return None
    number = _MONTHS.index(month) + 1
    forms = [f"{day} {month} {year}", f"{month} {day}, {year}", f"{year}-{number:02}-{int(day):02}"]
    forms += [f"{month} {year}"] if claim[: found.start()].endswith("in ") else [f"{month[:3]} {day}, {year}"]
    return _put(claim, *found.span(), random.choice([form for form in forms if form != found[0]]))


def _other_number(claim: str, _source: str, random: Random) -> str | None:
    spots = [one for one in _numbers(claim, years=False) if one[0].replace(",", "").isdecimal()]
    if not spots:
        return None
    spot = random.choice(spots)
    value = int(spot[0].replace(",", ""))
    if claim[spot.end() : spot.end() + 9].startswith((" million", " billion", "th", "%")):
        return None
    if "," in spot[0]:
        return _put(claim, *spot.span(), str(value))
    if value < 20:
        return _put(claim, *spot.span(), _ONES[value])
    if value < 100:
        return _put(claim, *spot.span(), _TENS[value // 10 - 2] + (f"-{_ONES[value % 10]}" if value % 10 else ""))
    return _put(claim, *spot.span(), f"{value:,}") if value >= 10_000 else None


def _pronouns(source: str) -> Iterator[str]:
    """A sentence that begins with a pronoun, said with the one name that begins the sentence before it."""
    rows = sentences(source)
    for before, sentence in pairwise(rows):
        found = re.match(r"(?:He|She) (?=[a-z])", sentence)
        named = re.match(rf"{_NAME}(?: {_NAME})+\b", before)
        if found and named and named[0].split()[0] not in _NO_NAMES and len(sentence.split()) <= _WORDS_MAX:
            others = [one for one in _names(before) if one.start() and len(one[0].split()) > 1]
            if not others:
                yield f"{named[0]} {sentence[found.end() :]}"


Maker = Callable[[str, str, Random], str | None]
FALSE_KINDS: dict[str, Maker] = {
    "subject": lambda claim, source, random: _swap_name(claim, source, random, "subject", stranger=False),
    "subject, a stranger": lambda claim, source, random: _swap_name(claim, source, random, "subject", stranger=True),
    "object": lambda claim, source, random: _swap_name(claim, source, random, "object", stranger=False),
    "object, a stranger": lambda claim, source, random: _swap_name(claim, source, random, "object", stranger=True),
    "place": lambda claim, source, random: _swap_name(claim, source, random, "place", stranger=False),
    "number of the source": lambda claim, source, random: _swap_number(claim, source, random, years=False, known=True),
    "number, a strange one": lambda claim, source, random: _swap_number(
        claim, source, random, years=False, known=False
    ),
    "year of the source": lambda claim, source, random: _swap_number(claim, source, random, years=True, known=True),
    "year, a strange one": lambda claim, source, random: _swap_number(claim, source, random, years=True, known=False),
    "month or day": _swap_month,
    "verb of the source": lambda claim, source, random: _swap_verb(claim, source, random, known=True),
    "verb, a strange one": lambda claim, source, random: _swap_verb(claim, source, random, known=False),
    "opposite": _swap_opposite,
    "polarity": _deny,
    "turned round": _turn_round,
}
TRUE_KINDS: dict[str, Maker] = {
    "passive or active": _voice,
    "a noun for the verb": _noun,
    "last name": _short_name,
    "initials": _initials,
    "date in another form": _other_date,
    "number in another form": _other_number,
}


_RARE = ("turned round", "passive or active", "a noun for the verb", "initials", "date in another form")


def make_claims(
    claim: str, source: str, seed: str, kinds: Collection[str] = (*FALSE_KINDS, *TRUE_KINDS)
) -> Iterator[Made]:
    """All that can be made of a claim that the source bears; the same for the same seed."""
    for makers, true in ((FALSE_KINDS, False), (TRUE_KINDS, True)):
        for kind in (one for one in makers if one in kinds):
            made = makers[kind](claim, source, Random(f"{seed}/{kind}/{claim}"))
            if made is not None and made != claim and made not in source:
                yield Made(kind, made, true)


def claims_of(source: str, seed: str, most: int) -> Iterator[Made]:
    """Made of the source's own sentences: of a few everything, of all what is rare, and of its pronouns."""
    rows = [one for one in sentences(source) if 5 <= len(one.split()) <= _WORDS_MAX and one[-1] == "."]
    picked = Random(f"{seed}/sentences").sample(rows, min(most, len(rows)))
    for sentence in rows:
        yield from make_claims(sentence, source, seed, (*FALSE_KINDS, *TRUE_KINDS) if sentence in picked else _RARE)
    for told in _pronouns(source):
        yield Made("name for a pronoun", told, True)
