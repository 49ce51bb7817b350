"""Rules on people, animals and things of somebody's, mostly told by the way: `my sister Ana`, `my road bike`."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

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
        place.talk.last = owner_of(slot.value)
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
    if not _EX.search(place.view.text[max(0, match.start() - 12) : match.start("kin")]):
        yield Told("user.relationship", SPOUSES[match["kin"]], *match.span("kin"))


def _employer_of(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my boss at Acme`: where the speaker works."""
    firm = read_firm(place.view, match.end())
    if firm is not None:
        yield Told("user.employer", firm.value, firm.start, firm.end)


def _job_of(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`as a nurse`, `my job as a nurse`."""
    span = match.span("value")
    yield Told("user.job", place.view.verbatim(*span), *span)


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
    if named is not None and _GIVING.search(view.text[: match.start()]) is None:
        key = f"user.{kind}" if kind in ("dog", "cat") else "user.pet"
        place.talk.last = f"pet.{named.value.casefold()}"
        yield Told(key, named.value, named.start, named.end)
        yield from (
            Told(f"pet.{named.value.casefold()}.age", each.value, each.start, each.end)
            for each in _aged(view.text, named)
        )
        return
    yield Told("user.pet", view.verbatim(*span), *span)


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

_OWN_WORDS = re.compile(r"(?:[\w'&/.-]+ ){0,5}?(?P<last>[\w'&-]+)")
_NOT_OWNED = frozenset(
    [
        "way",
        "own",
        "friend",
        "friends",
        "life",
        "time",
        "day",
        "days",
        "week",
        "work",
        "job",
        "family",
        "mind",
        "body",
        "heart",
        "head",
        "hand",
        "hands",
        "eyes",
        "hair",
        "face",
        "voice",
        "name",
        "question",
        "questions",
        "trip",
        "project",
        "goal",
        "goals",
        "plan",
        "plans",
        "idea",
        "budget",
        "schedule",
        "answer",
        "response",
        "first",
        "last",
        "next",
        "favorite",
        "favourite",
        "new",
    ]
)


def _possession(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my road bike`: words up to one that names a thing to own."""
    view, text = place.view, place.view.text
    start, count = match.end(), 0
    at, end = start, 0
    for word in re.compile(r"[\w'&/.+-]*\w\+?").finditer(text, start, min(len(text), start + 70)):
        if word.start() != at or count == 6:
            break
        bare = word[0].removesuffix("'s")
        if bare in THINGS or bare in CAR_MAKES:
            end = word.start() + len(bare)
        elif end or bare in (
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
            "of",
            "the",
            "a",
            "that",
            "i",
            "as",
            "but",
            "so",
        ):
            if bare == "of" and text[start : word.start()].strip() in (
                "pair",
                "favorite pair",
                "old pair",
                "new pair",
                "trusty pair",
                "set",
                "collection",
            ):
                end = end or 0
            elif not (bare == "of" and not end):
                break
        count += 1
        at = word.end() + 1 if text.startswith(" ", word.end()) else -1
    if not end:
        return
    skipped = re.compile(
        r"(?:(?:new|old|own|favorite|trusty|beloved|current|first|second|other|brand new|brand-new|pair of|good|entire|whole) )+"
    ).match(text, start, end)
    begin = skipped.end() if skipped is not None and skipped.end() < end else start
    if text[begin:end].split()[0] in ("next", "dream", "future", "ideal", "potential", "former", "last", "childhood"):
        return
    yield Told("user.owns", view.verbatim(begin, end), begin, end)


def _got(match: re.Match[str], place: Place) -> Iterator[Told]:
    for each in _possession(match, place):
        yield Told(f"{place.subject.owner}.owns", each.value, each.start, each.end)


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


_NUM = r"(?:a|an|one|two|three|four|five|\d|some|several)"
RULES: tuple[Rule, ...] = (
    make_rule("pet", rf"{HAVE}{ADVERB}\s?(?:have|has|'ve got|got|own|adopted|rescued|had|keep|foster)?(?: got)? ?(?P<value>{_NUM} (?:(?!of\b|in\b|on\b|at\b|to\b|for\b|the\b|with\b)[a-z-]+ ){{0,2}}?(?:{ANIMALS})(?:s|es|ies)?(?: and (?:a|an|one|two|three|\d) (?:[a-z]+ )?(?:{ANIMALS})s?)?)(?=$|[,.!;)]| (?:and|but|so|called|named|who|that|which|at|too|now|from|whose|with|last|this|recently|today|yesterday|since|as|i|in|for))", _has_pet, 0.85, may_leave_out=True),
    make_rule("owns", rf"{HAVE}{ADVERB}\s?(?:drive|drives|driving|ride|rides) ", _drives, 0.85),
    make_rule("owns", rf"{HAVE}{ADVERB}\s?(?:own|owns|bought|have|has|got|purchased|picked up|invested in|upgraded to|inherited)(?: myself)? (?:a|an|two|some|this|the) (?:new |brand new |brand-new |used |second-hand |pair of |new pair of |few |couple of )*", _got, 0.8),
)  # fmt: skip

PASSING: tuple[Rule, ...] = (
    make_rule("relation", rf"\b(?:my|our) (?:{KIN}|{KINS})\b(?!-)", _relative, 0.85, may_ask=True, may_doubt=True, negates=True),
    make_rule("relation", rf"(?<![\w'])(?P<name>[a-z][a-z'-]+(?: [a-z][a-z'-]+)?), (?:who(?:'s| is) )?(?:my|our) (?:{KIN})\b(?=,| who|$|\)| and| from)", _named_first, 0.85, may_ask=True, may_doubt=True),
    make_rule("relationship", rf"\b(?:my|our) (?P<kin>{'|'.join(sorted(SPOUSES, key=len, reverse=True))})\b", _spouse, 0.85, may_ask=True, may_doubt=True, negates=True),
    make_rule("pet", rf"\b(?:my|our) (?:[a-z-]+ ){{0,2}}?(?P<animal>{ANIMALS})(?![\w-])(?! (?:food|person|lover|training|trainer|walker|hair|sitter|allergy|bed|park|shelter|toy|toys|treats|show|house|cage|tank|riding))", _pet, 0.85, may_ask=True, may_doubt=True, negates=True),
    make_rule("owns", r"\bmy ", _possession, 0.8, may_ask=True, may_doubt=True, negates=True),
    make_rule("employer", r"\bmy (?:new |old |current )?(?:boss|manager|job|work|colleagues?|coworkers?|co-workers?|team|role|position|internship|shift|desk|office)(?: here)? (?:at|with) ", _employer_of, 0.85, may_ask=True),
    make_rule("job", rf"\b(?:my (?:job|work|role|career|position)|i work|working|speaking) as (?:a|an|the) (?P<value>{JOBS})\b", _job_of, 0.85, may_ask=True),
    make_rule("job", rf"(?:^|, |\band )(?:being|as) (?:a|an) (?P<value>(?!student of|teacher of|guide\b|model\b|server\b|principal\b|cook\b|coach\b){JOBS})(?=,| (?:i\b|my\b|in\b|at\b|myself))", _job_of, 0.8, may_ask=True, may_doubt=True),
)  # fmt: skip
