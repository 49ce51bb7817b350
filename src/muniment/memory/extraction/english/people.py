"""Rules on people, animals and things of somebody's, mostly told by the way: `my sister Ana`, `my road bike`."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.core.text.stated.places import is_known_place
from muniment.memory.extraction.english.reading import ADVERB, HAVE, make_rule, told
from muniment.memory.extraction.english.slots import Slot, read_firm, read_name, read_names
from muniment.memory.extraction.english.words import (
    ANIMAL_KEYS,
    ANIMALS,
    CAR_MAKES,
    JOBS,
    KIN,
    KIN_KEYS,
    KINS,
    PLAIN_THINGS,
    SPOUSES,
    THINGS,
)
from muniment.memory.extraction.grammar import Place, Rule, Told, owner_of

__all__ = ["PASSING", "RULES"]

_GIVING = re.compile(
    r"\b(?:g[ai]ve|giving|buy|bought|buying|sen[dt]|sending|show(?:ed|ing)?|g[eo]t|getting|read|teach|taught|teaching|"
    r"ma[dk]e|making|lent|lend|offer(?:ed)?|br(?:ing|ought)|cook(?:ed)?|hand(?:ed)?|call(?:ed|s)?|name[ds]?|feed|fed|book(?:ed)?|order(?:ed)?|"
    r"play(?:ed)?|pa(?:y|id)|sing|sang|ow(?:e|ed)|pass(?:ed)?|serve[ds]?) $"
)
_EX = re.compile(r"\b(?:ex|late|former|old|imaginary)[- ](?:[a-z]+ )?$")
_AGE = re.compile(
    r"(?:, (?:who(?:'s| is| just turned) |aged? )?| \(|,? who(?:'s| is| just turned) |,? aged? |'s | is )(?P<age>\d{1,3})(?=$|[,.;)!]| years? old| and\b| now\b|-year)"
)
_AFTER = re.compile(
    r",? (?:called |named |whose name is |is called |is named |'s name is |whose name's )?|'s name is |\s?\("
)


def _relative(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my sister Ana`. `I gave my sister Harry Potter books` does not say what she is called."""
    view, text = place.view, place.view.text
    before = text[: match.start()]
    if _GIVING.search(before) is not None or _EX.search(text[match.start() : match.end()].rsplit(" ", 1)[0] + " "):
        return
    after = _AFTER.match(text, match.end())
    if after is None:
        return
    word = match.groupdict().get("kin") or match["kins"]
    is_said = "name" in after[0] or "called" in after[0]
    slots = (
        read_names(view, after.end())
        if match.groupdict().get("kins")
        else [read_name(view, after.end(), is_said=is_said)]
    )
    for slot in slots:
        if slot is None or _is_kin(slot.value):
            return
        place.talk.names.setdefault(slot.value.casefold(), KIN_KEYS[word])
        place.talk.last = owner_of(slot.value if match.groupdict().get("kin") else word)
        yield Told(f"user.{KIN_KEYS[word]}", slot.value, slot.start, slot.end)
        yield from _aged(text, slot)


def _aged(text: str, slot: Slot) -> Iterator[Told]:
    """`Thomas, who's 45`."""
    age = _AGE.match(text, slot.end)
    if age is not None and 0 < int(age["age"]) < 111:
        yield Told(f"{owner_of(slot.value)}.age", age["age"], *age.span("age"))


def _is_kin(name: str) -> bool:
    return name.casefold() in KIN_KEYS


def _named_first(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`Kim, my partner, works at Shell`."""
    slot = read_name(place.view, match.start("name"), most=2)
    if slot is None or slot.end != match.end("name"):
        return
    word = match.groupdict().get("kin") or match["kins"]
    place.talk.names.setdefault(slot.value.casefold(), KIN_KEYS[word])
    place.talk.last = owner_of(slot.value)
    yield Told(f"user.{KIN_KEYS[word]}", slot.value, slot.start, slot.end)


def _spouse(match: re.Match[str], place: Place) -> Iterator[Told]:
    """Who has a husband is married."""
    at = match.end()
    is_named = at + 1 < len(place.view.text) and place.view.is_capital(at + 1)
    if not is_named and not _EX.search(place.view.text[max(0, match.start() - 12) : match.start("kin")]):
        yield Told("user.relationship", SPOUSES[match["kin"]], *match.span("kin"))


def _employer_of(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my boss at Acme`: where the speaker works."""
    if _ENDED.search(place.view.text, max(0, match.start() - 40), match.end()):
        return
    firm = read_firm(place.view, match.end())
    if firm is not None:
        yield Told("user.employer", firm.value, firm.start, firm.end)


_ENDED = re.compile(
    r"\b(?:quit|quitting|left|leaving|lost|losing|resigned|fired|laid off|let go|old|former|previous|ex|outgrew|used to)\b"
)


def _job_of(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`as a nurse`, `my job as a nurse`; in `as a nurse, what would you do` it is another."""
    span = match.span("value")
    if match[0].startswith("as ") and not _OWN.search(place.view.text, span[1]):
        return
    yield Told("user.job", place.view.verbatim(*span), *span)


_OWN = re.compile(r"\b(?:i|i'm|i've|i'd|my|me|we|our)\b")


# -- animals ----------------------------------------------------------------------------------------------

_PET_NAME = re.compile(r",? (?:called |named |whose name is |is called |is named |who's called )?|'s name is |\s?\(")


def _pet(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my dog Rex`, `my cat`."""
    view, word = place.view, match["animal"]
    kind = ANIMAL_KEYS[word]
    span = match.span("animal")
    after = _PET_NAME.match(view.text, match.end())
    named = (
        read_name(view, after.end(), is_said="name" in after[0] or "called" in after[0], most=1)
        if after is not None
        else None
    )
    if match["many"] and after is not None:
        for each in read_names(view, after.end()):
            yield Told("user.pet", each.value, each.start, each.end)
        named = None
    if named is not None and _GIVING.search(view.text[: match.start()]) is None:
        key = f"user.{kind}" if kind in ("dog", "cat") else "user.pet"
        place.talk.last = f"pet.{named.value.casefold()}"
        yield Told(key, named.value, named.start, named.end)
        yield from (
            Told(f"pet.{named.value.casefold()}.age", each.value, each.start, each.end)
            for each in _aged(view.text, named)
        )
        return
    if _AFTER_PET.match(view.text, match.end()):
        yield Told("user.pet", view.verbatim(*span), *span)


_AFTER_PET = re.compile(
    r"$|[,.!?;:)(—–]|'s\b| -| (?:is|was|has|had|and|or|to|for|from|in|on|at|with|who|that|loves?|likes?|just|got|are|were|sleeps|keeps|will|can|does|doesn't|out|while|when|but|so|"
    r"named|called|too|because|since|as|needs|hates|every|a|the|up|down|around|after|lately|always|often|usually|runs|jumps|barks|also|gets|seems|eats|plays|recently|would|i|my)\b"
)
"""`my horse painting` is no horse: another noun follows."""


def _has_pet(match: re.Match[str], place: Place) -> Iterator[Told]:
    span = match.span("value")
    yield told(place, "pet", place.view.verbatim(*span), span)
    after = re.compile(r",? (?:called |named |whose name is |who's called |whose name's )(?=\w)|, (?=\w)").match(
        place.view.text, match.end()
    )
    if after is not None:
        for named in read_names(place.view, after.end()):
            yield told(place, "pet", named.value, named)


# -- things -----------------------------------------------------------------------------------------------

_THING_WORD = re.compile(r"[\w'&/.+-]*\w\+?")
_NO_MODIFIERS = frozenset(
    (
        "new",
        "old",
        "own",
        "favorite",
        "trusty",
        "beloved",
        "current",
        "other",
        "good",
        "entire",
        "whole",
        "usual",
        "nice",
        "same",
        "main",
        "brand",
    )
)
_NOT_NOW = frozenset(
    ("next", "dream", "future", "ideal", "potential", "former", "last", "childhood", "friend's", "late")
)
_ENDS_THING = frozenset(
    (
        "and",
        "or",
        "with",
        "for",
        "to",
        "in",
        "on",
        "at",
        "is",
        "was",
        "from",
        "the",
        "a",
        "that",
        "i",
        "as",
        "but",
        "so",
        "my",
        "who",
        "which",
    )
)
_PAIR = re.compile(r"(?:[a-z]+ )?(?:pair|set) of ")


def _possession(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my road bike`: words up to one that names a thing to own. One word alone must be worth telling."""
    text, start = place.view.text, match.end()
    pair = _PAIR.match(text, start)
    start = pair.end() if pair is not None else start
    at, end = start, 0
    words: list[str] = []
    for word in _THING_WORD.finditer(text, start, min(len(text), start + 70)):
        bare = word[0].removesuffix("'s")
        if (
            word.start() != at
            or len(words) == 6
            or bare in _ENDS_THING
            or bare in _NOT_NOW
            or bare in KIN_KEYS
            or (word[0] != bare and not end and bare not in THINGS)
        ):
            break
        if bare in THINGS or bare in CAR_MAKES:
            end = word.start() + len(bare)
        elif end:
            break
        words.append(bare)
        at = word.end() + 1 if text.startswith(" ", word.end()) else -1
    if not end or _is_compound(text, end):
        return
    skipped = _SKIPPED.match(text, start, end)
    begin = skipped.end() if skipped is not None and skipped.end() < end else start
    told_words = [word for word in text[begin:end].split() if word not in _NO_MODIFIERS]
    if (
        len(told_words) < 2
        and not (told_words and told_words[0] in PLAIN_THINGS)
        and not (pair and match.re.pattern.startswith("\\bmy"))
    ):
        return
    yield Told("user.owns", place.view.verbatim(begin, end), begin, end)


_SKIPPED = re.compile(
    r"(?:(?:new|old|own|favorite|trusty|beloved|current|first|second|other|brand new|brand-new|good|entire|whole) )+"
)
_AFTER_THING = re.compile(
    r"$|\s*[,.!?;:)(…—–-]|'s\b|\s(?:and|or|but|so|for|to|in|on|at|with|from|is|was|has|had|are|were|that|which|who|i|by|as|because|since|when|while|while|lately|now|again|today|yesterday|last|this|after|before|every|down|up|out|off|around|than|like|would|could|should|can|will|needs|keeps|just|too|about|of|if|got|a|the|my|securely|over|through|during|into)\b|[^\w\s]"
)


def _is_compound(text: str, end: int) -> bool:
    """`my bike ride` is no bike: another noun follows."""
    return _AFTER_THING.match(text, end) is None


def _got(match: re.Match[str], place: Place) -> Iterator[Told]:
    for each in _possession(match, place):
        yield Told(f"{place.subject.owner}.owns", each.value, each.start, each.end)


def _kind_of(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my laptop is a thinkpad x1`: an attribute of a thing."""
    noun = match["noun"].split()[-1]
    if noun not in THINGS:
        return
    span = match.span("value")
    name = "_".join(match["noun"].split())
    yield Told(f"thing.{name}.kind", place.view.verbatim(*span), *span)


def _price_of(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I spent $80 on my running shoes`."""
    span = match.span("value")
    yield Told(f"thing.{'_'.join(match['noun'].split())}.price", place.view.verbatim(*span), *span)


def _aged_person(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`Carla, who's 81`: somebody with a name that is written large."""
    named = read_name(place.view, match.start("name"), most=1)
    if named is None or not place.view.is_capital(match.start("name")) or named.end != match.end("name"):
        return
    before = place.view.text[: match.start("name")]
    if is_known_place(named.value) or before.endswith(("i'm ", "i am ", "name is ", "it's ", "in ", "from ", "at ")):
        return
    place.talk.names.setdefault(named.value.casefold(), "acquaintance")
    if match.groupdict().get("job"):
        yield Told(f"{owner_of(named.value)}.job", place.view.verbatim(*match.span("job")), *match.span("job"))
        return
    group = "age" if match["age"] else "age2"
    if 0 < int(match[group]) < 111:
        yield Told(f"{owner_of(named.value)}.age", match[group], *match.span(group))


def _drives(match: re.Match[str], place: Place) -> Iterator[Told]:
    found = re.compile(
        r"(?:a |an |my |the )?(?P<value>(?:(?:19|20)\d{2} )?(?:[\w-]+ ){0,2}?[\w-]+)(?=$|[,.!;)]| (?:and|but|so|which|to|that|for|with|now))"
    ).match(place.view.text, match.end())
    if found is None:
        return
    words = set(found["value"].split())
    if words & CAR_MAKES or words & {
        "car",
        "truck",
        "van",
        "suv",
        "hybrid",
        "motorcycle",
        "motorbike",
        "scooter",
        "tesla",
    }:
        yield told(place, "owns", place.view.verbatim(*found.span("value")), found.span("value"))


_NUM = r"(?:a|an|another|one|two|three|four|five|\d|some|several)"
RULES: tuple[Rule, ...] = (
    make_rule("pet", rf"{HAVE}{ADVERB}\s?(?:have|has|'ve got|got|own|adopted|rescued|had|keep|foster)?(?: got)? ?(?P<value>{_NUM} (?:(?!of\b|in\b|on\b|at\b|to\b|for\b|the\b|with\b)[a-z-]+ ){{0,2}}?(?:{ANIMALS})(?:s|es|ies)?(?: and (?:a|an|one|two|three|\d) (?:[a-z]+ )?(?:{ANIMALS})s?)?)(?=$|[,.!;)]| (?:and|but|so|called|named|who|that|which|at|too|now|from|whose|with|last|this|recently|today|yesterday|since|as|i|in|for))", _has_pet, 0.85, leaves_out="opening"),
    make_rule("owns", rf"{HAVE}{ADVERB}\s?(?:drive|drives|driving|ride|rides) ", _drives, 0.85),
    make_rule("owns", rf"{HAVE}{ADVERB}\s?(?:own|owns|bought|have|has|got|purchased|picked up|invested in|upgraded to|inherited)(?: myself)? (?:a|an|two|some|this|the) (?:new |brand new |brand-new |used |second-hand |pair of |new pair of |few |couple of )*", _got, 0.8, leaves_out="opening"),
    make_rule("thing", r" (?P<noun>(?:[a-z]+ ){0,2}?[a-z]+)(?:'s| is)(?: just| actually| only)? (?:a|an) (?P<value>(?:[\w-]+ ){0,4}?[\w-]+)(?=$|[,.!;)]| (?:and|but|so|with|from|that|which|running|i)\b)", _kind_of, 0.85, is_owned=True, of="user"),
    make_rule("thing", r" (?:spent|paid) (?P<value>[$€£]\d[\d,.]*) (?:on|for) (?:my|a|the|these|some) (?:new )?(?P<noun>[a-z]+(?: [a-z]+){0,2})(?=$|[,.!;)]| (?:and|but|so|which|last|at|from)\b)", _price_of, 0.85, of="user"),
)  # fmt: skip

PASSING: tuple[Rule, ...] = (
    make_rule("relation", rf"\b(?:my|our) (?:{KIN}|{KINS})\b(?!-)", _relative, 0.85, may_ask=True, may_doubt=True, negates=True),
    make_rule("relation", rf"(?<![\w'])(?P<name>[a-z][a-z'-]+(?: [a-z][a-z'-]+)?), (?:who(?:'s| is) )?(?:my|our) (?:{KIN})\b(?=,| who|$|\)| and| from)", _named_first, 0.85, may_ask=True, may_doubt=True),
    make_rule("relationship", rf"\b(?:my|our) (?P<kin>{'|'.join(sorted(SPOUSES, key=len, reverse=True))})\b(?!-)", _spouse, 0.85, may_ask=True, may_doubt=True, negates=True),
    make_rule("pet", rf"\b(?:my|our) (?:(?!friend's\b|dream\b|neighbor's\b|sister's\b|brother's\b|favorite\b|spirit\b|first\b|old\b)[a-z-]+ ){{0,2}}?(?P<animal>{ANIMALS})(?P<many>s)?(?![\w-])", _pet, 0.85, may_ask=True, may_doubt=True, negates=True),
    make_rule("owns", r"\bmy ", _possession, 0.8, may_ask=True, may_doubt=True, negates=True),
    make_rule("owns", r"\b(?:the|some|these|a|an|this|those) (?=(?:[\w'-]+ ){1,5}(?:that )?i (?:just |recently |already |finally )?(?:bought|got|own|have|wear|wore|ordered|purchased|picked up|use)\b)", _possession, 0.8, may_ask=True, may_doubt=True),
    make_rule("employer", r"\bmy (?:new |old |current )?(?:boss|manager|job|work|colleagues?|coworkers?|co-workers?|team|role|position|internship|shift|desk|office)(?: here)? (?:at|with) ", _employer_of, 0.85, may_ask=True),
    make_rule("job", rf"\b(?:my (?:job|work|role|career|position)|i work|i'm working|i've been working) as (?:a|an|the) (?P<value>{JOBS})\b", _job_of, 0.85, may_ask=True),
    make_rule("job", rf"(?<!work )(?<!working )(?<!serve )(?<!see )(?<!seen )(?<!him )(?<!her )(?<!such )(?:\bbeing|\bas) (?:a|an) (?P<value>(?!guide\b|model\b|server\b|principal\b|cook\b|coach\b|judge\b){JOBS})(?=,| (?:i\b|my\b|in\b|at\b|myself|i'm|i've|with\b)|$)", _job_of, 0.8, may_ask=True),
    make_rule("person", r"(?<![\w'])(?P<name>[a-z]+)(?:, who(?:'s| is) (?P<age>\d{1,3})\b|, (?:aged )?(?P<age2>\d{1,3})(?=,| and|$| years))", _aged_person, 0.85, may_ask=True, may_doubt=True),
    make_rule("person", rf"(?<![\w'])(?P<name>[a-z]+), (?:who(?:'s| is) )?an? (?:fellow |retired |local |young |senior )?(?P<job>{JOBS})(?=,| who| at| from|$)", _aged_person, 0.85, may_ask=True, may_doubt=True),
)  # fmt: skip
