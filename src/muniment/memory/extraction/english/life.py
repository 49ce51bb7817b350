"""Rules on a life: name, age, home, origin, work, study, family, food and health."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.core.text.stated.places import is_no_place
from muniment.memory.extraction.dates import ENGLISH_DAY, day_of_english
from muniment.memory.extraction.english.bodies import BODIES
from muniment.memory.extraction.english.reading import ADVERB, BE, HAVE, JOINTS, group, is_we, make_rule, told
from muniment.memory.extraction.english.slots import Slot, read_firm, read_name, read_place, read_small_firm
from muniment.memory.extraction.english.words import (
    CONDITIONS,
    DIETS,
    FIELDS,
    HEALTH,
    JOBS,
    LANGUAGES,
    MEDICINES,
    NATIONALITIES,
    NO_JOBS,
    RELIGIONS,
    SCHOOLS,
)
from muniment.memory.extraction.grammar import USER, Place, Reader, Rule, Told, owner_of

__all__ = ["PASSING", "RULES"]

_YEAR = re.compile(r"\b((?:19|20)\d{2})\b")
_THEN = re.compile(
    r",? (?:and )?then\b| for (?:the (?:weekend|day|night|summer|holidays)|a (?:few|couple|week|day|bit|night)|work|holiday|vacation|\d+ days)\b"
)
_NUMBER = r"(?:\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten)"


# -- names and days -------------------------------------------------------------------------------------


def _own_name(match: re.Match[str], place: Place) -> Iterator[Told]:
    named = read_name(place.view, match.end(), is_said=True)
    if named is not None:
        yield told(place, "name", named.value, named)


def _kin_name(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my brother's name is Tom` is a fact about the user: whose brother he is."""
    named = read_name(place.view, match.end(), is_said=True)
    if named is None:
        return
    if place.subject.owner == USER:
        yield told(place, "name", named.value, named)
        return
    person = place.subject.owner.removeprefix("person.")
    kin = place.talk.names.get(person.replace("_", " "), person)
    place.talk.names.setdefault(named.value.casefold(), kin)
    place.talk.last = owner_of(named.value)
    yield Told(f"user.{kin}", named.value, named.start, named.end)


def _plain_name(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I'm Kate`: a first name, or a word written large that is followed by nothing of a sentence."""
    text = place.view.text
    named = read_name(place.view, match.end(), most=2)
    if named is None or not _NAME_ENDS.match(text, named.end) or _NO_PERSON.fullmatch(text[named.start : named.end]):
        return
    yield told(place, "name", named.value, named)
    more = _AND_MORE.match(text, named.end)
    if more is None:
        return
    if more["age"]:
        yield told(place, "age", more["age"], more.span("age"))
    if more["job"]:
        yield told(place, "job", place.view.verbatim(*more.span("job")), more.span("job"))
    lives = _FROM.match(text, more.end())
    home = read_place(place.view, lives.end()) if lives is not None else None
    if home is not None:
        yield told(place, "location", home.value, home)


_NAME_ENDS = re.compile(
    r"$|\s*[,.!;:)(?…—–\n-]|\s(?:and|but|from|by the way|btw|here|again|nice|the|your|a|an|i|lol|haha|so|with)\b|[^\w\s']"
)
_NO_PERSON = re.compile(rf"(?:{NATIONALITIES}|{DIETS}|{JOBS}|{HEALTH}|{RELIGIONS})(?: .*)?")
_AND_MORE = re.compile(
    rf",? (?:and )?(?:i'm )?(?:a |an |the |your )?(?:(?P<age>\d{{2}})(?:[- ]years?[- ]old)?,? )?(?:a |an )?(?P<job>{JOBS})\b"
)


def _here(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`it's Dev again, the electrician`, `Michael here`."""
    named = read_name(place.view, match.end(), most=2)
    if named is not None and _HERE.match(place.view.text, named.end):
        yield Told("user.name", named.value, named.start, named.end)
        more = _HERE_JOB.match(place.view.text, named.end)
        if more is not None:
            yield Told("user.job", place.view.verbatim(*more.span("job")), *more.span("job"))


_HERE = re.compile(r" (?:here|again|speaking)\b|,? (?:from|your) ")
_HERE_JOB = re.compile(rf" (?:here|again),? (?:the |a |your )(?P<job>{JOBS})\b")


def _nickname(match: re.Match[str], place: Place) -> Iterator[Told]:
    is_asked_for = match[0].endswith("call me ")
    named = read_name(place.view, match.end(), is_said=not is_asked_for, most=2)
    if named is not None:
        yield told(place, "nickname", named.value, named)


def _day(match: re.Match[str], place: Place) -> Iterator[Told]:
    day = day_of_english(match["value"])
    if day is not None:
        yield told(place, "birthday", day, match.span("value"))


def _age(match: re.Match[str], place: Place) -> Iterator[Told]:
    if 1 <= int(match["value"]) <= 110:
        yield told(place, "age", match["value"], match.span("value"))


def _age_and_state(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my son is 7 and lactose intolerant`."""
    yield from _age(match, place)
    span = match.span("state")
    attribute = "diet" if re.fullmatch(DIETS, match["state"]) else "health"
    yield told(place, attribute, place.view.verbatim(*span), span)


# -- places -----------------------------------------------------------------------------------------------


def _home(match: re.Match[str], place: Place) -> Iterator[Told]:
    """A place to live in. `I moved to Slack` names none; a `we` may be a firm, so its place must be well known."""
    left = match.groupdict().get("left")
    if left is not None and is_no_place(place.view.verbatim(*match.span("left"))):
        return
    found = read_place(place.view, match.end(), must_know=is_we(place) or place.subject.left_out != "no")
    if found is None or _is_past(place, found):
        return
    yield told(place, "location", found.value, found)


_STAYS = re.compile(
    r"$|[,.!;:)?—]| (?:now|area|these days|too|currently|and|but|so|which|where|by the way|btw|-|for (?:about |over |almost )?(?:\d+|ten|two|three|five|a few|many|several) (?:years|months))(?:\s|$)"
)
_IS_LIST = re.compile(r"\s*(?:about )?me\s?[:-]")


def _known_home(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I'm in Seattle`: only a place that is known, and not on a visit."""
    found = read_place(place.view, match.end(), must_know=True)
    if found is not None and _STAYS.match(place.view.text, found.end) and not _is_past(place, found):
        yield told(place, "location", found.value, found)


def _listed_age(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`me: 29, graphic designer, Glasgow`."""
    if _IS_LIST.match(place.view.text):
        yield from _age(match, place)


def _listed_home(match: re.Match[str], place: Place) -> Iterator[Told]:
    found = read_place(place.view, match.end(), must_know=True) if _IS_LIST.match(place.view.text) else None
    if found is not None:
        yield told(place, "location", found.value, found)


def _known_place(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`here in Miami`."""
    found = read_place(place.view, match.end(), must_know=True)
    if found is not None:
        yield Told("user.location", found.value, found.start, found.end)


def _known_origin(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`back home in California`."""
    found = read_place(place.view, match.end(), must_know=True)
    if found is not None:
        yield Told("user.origin", found.value, found.start, found.end)


def _is_past(place: Place, found: Slot) -> bool:
    """A move of years ago, or one that was followed by another, says little about where someone lives."""
    view, year = place.view, int(place.talk.ts[:4]) if place.talk.ts[:4].isdigit() else 0
    tail = view.text[found.end : place.clause.end]
    return _THEN.match(view.text, found.end) is not None or any(int(each) < year - 1 for each in _YEAR.findall(tail))


def _origin(match: re.Match[str], place: Place) -> Iterator[Told]:
    found = read_place(place.view, match.end())
    if found is None:
        return
    yield told(place, "origin", found.value, found)
    if "born" in place.view.text[found.end : found.end + 8]:
        yield told(place, "birthplace", found.value, found)


def _birthplace(match: re.Match[str], place: Place) -> Iterator[Told]:
    found = read_place(place.view, match.end())
    if found is not None:
        yield told(place, "birthplace", found.value, found)


# -- work and study ---------------------------------------------------------------------------------------

_AT_FIRM = re.compile(r" (?:at|for|with) ")
_FROM = re.compile(r",? (?:from|based in|living in) ")


def _job(match: re.Match[str], place: Place) -> Iterator[Told]:
    span = match.span("value")
    words = match["value"].split()
    if words[-1] in NO_JOBS:
        return
    yield told(place, "job", place.view.verbatim(*span), span)
    firm = _AT_FIRM.match(place.view.text, span[1])
    found = read_firm(place.view, firm.end()) if firm is not None else None
    if found is not None and "at heart" not in found.value:
        yield told(place, "employer", found.value, found)
        return
    lives = _FROM.match(place.view.text, span[1])
    home = read_place(place.view, lives.end()) if lives is not None else None
    if home is not None and place.subject.owner == USER:
        yield told(place, "location", home.value, home)


def _terse_job(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`me: 29, graphic designer`: in a list of what somebody is."""
    text = place.view.text
    is_list = _IS_LIST.match(text) is not None
    if is_list or (place.talk.is_own and match[0].startswith(("a ", "an ")) and "," in text[: place.clause.start]):
        yield from _job(match, place)


def _employer(match: re.Match[str], place: Place) -> Iterator[Told]:
    large = read_firm(place.view, match.end())
    found = large or read_small_firm(place.view, match.end())
    if found is None:
        return
    employer = told(place, "employer", found.value, found)
    yield employer if large is not None else employer._replace(confidence=CONFIDENCE_SMALL_LETTERS)
    job = _AS_JOB.match(place.view.text, found.end)
    if job is not None:
        yield told(place, "job", place.view.verbatim(*job.span("value")), job.span("value"))


CONFIDENCE_SMALL_LETTERS = 0.75
"""A word in small letters may be no name: it waits for a decision."""
_AS_JOB = re.compile(rf" as (?:a|an|the|their) (?P<value>{JOBS})\b")
_TOPIC = re.compile(
    rf"(?:the |some )?(?P<value>(?:{LANGUAGES})\b|[a-z]+(?: [a-z]+)?(?= (?:at|in|on|lately|recently|for|to|with|and)\b|$|[,.!]))"
)
_NO_TOPIC = frozenset(
    (
        "a",
        "the",
        "how",
        "to",
        "for",
        "more",
        "about",
        "different",
        "and",
        "hard",
        "in",
        "at",
        "all",
        "that",
        "it",
        "this",
        "from",
        "abroad",
        "new",
    )
)


def _study(match: re.Match[str], place: Place) -> Iterator[Told]:
    text, at = place.view.text, match.end()
    field = re.compile(
        rf"(?:a |an |my )?(?:(?:bachelor's|master's|masters|bachelors|associate's|phd|doctorate|degree|major|minor|ba|bs|bsc|msc|ma|mba)(?: degree)?(?: in)? )?(?P<value>(?:{FIELDS})(?: and (?:{FIELDS}))?)\b"
    ).match(text, at)
    if field is not None:
        yield told(place, "study", place.view.verbatim(*field.span("value")), field.span("value"))
        at = field.end()
        joint = re.compile(r" (?:at|from|in) ").match(text, at)
        if joint is None:
            return
        at = joint.end()
    else:
        joint = re.compile(r"(?:at |from )?(?:the )?").match(text, at)
        at = joint.end() if joint is not None else at
    school = read_firm(place.view, at)
    if school is not None:
        yield told(place, "study", school.value, school)


def _topic(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I have been studying programming`."""
    found = _TOPIC.match(place.view.text, match.end())
    if found is not None and found["value"].split()[0] not in _NO_TOPIC:
        yield told(place, "study", place.view.verbatim(*found.span("value")), found.span("value"))


def _school(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I went to UCLA`: a name of a school."""
    school = read_firm(place.view, match.end())
    if school is None:
        return
    words = school.value.split()
    if (
        words[-1].casefold() in SCHOOLS
        or words[0].casefold() in SCHOOLS
        or (len(words) == 1 and words[0].isupper() and len(words[0]) > 2)
    ):
        yield told(place, "study", school.value, school)


# -- food and health --------------------------------------------------------------------------------------


def _conditions(match: re.Match[str], place: Place) -> Iterator[Told]:
    text, at = place.view.text, match.end()
    for _ in range(5):
        found = re.compile(
            rf"(?:a |an |the |my |mild |severe |bad |chronic |really bad |some |a bit of |high-functioning )*(?P<value>(?:(?:mild|severe|chronic) )?(?:{CONDITIONS}))(?![\w-])"
        ).match(text, at)
        if found is None:
            return
        yield told(place, "health", place.view.verbatim(*found.span("value")), found.span("value"))
        joint = JOINTS.match(text, found.end())
        if joint is None:
            return
        at = joint.end()


_DOSE = r"\d[\d,.]* ?(?:mg|mcg|iu|ml|g|units)"
_OFTEN = r"(?: (?:daily|twice daily|once daily|every morning|every night|as needed|once a week))?"
_MEDICINE = re.compile(
    rf"(?:my |the |some |a low dose of |{_DOSE} of |a |an |both |daily |regular |low-dose )*"
    rf"(?P<value>(?:(?:{MEDICINES})(?: {_DOSE})?|(?:[a-z]+[- ])?(?:supplements?|pills|tablets|injections)\b|[a-z]+(?: [a-z]\d?)? {_DOSE}|{_DOSE} [a-z]+){_OFTEN})"
)


def _medicines(match: re.Match[str], place: Place) -> Iterator[Told]:
    text, at = place.view.text, match.end()
    for _ in range(5):
        found = _MEDICINE.match(text, at)
        if found is None:
            return
        yield told(place, "medication", place.view.verbatim(*found.span("value")), found.span("value"))
        joint = JOINTS.match(text, found.end())
        if joint is None:
            return
        at = joint.end()


def _own(attribute: str) -> Reader:
    """What is the speaker's wherever it stands: `my arthritis`."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        span = match.span("value")
        yield Told(f"user.{attribute}", place.view.verbatim(*span), *span)

    return read


_A = r"(?:a|an|the|one of the|one)"
_KIDS = r"(?:kids|children|boys|girls|sons|daughters|kid|child|son|daughter|boy|girl|toddlers|teenagers|little ones|grandkids|grandchildren)"
_WHO_AGED = re.compile(
    r",? (?:who(?:'s| is| are| just turned| turned)|aged?|age) (?P<value>\d{1,3})\b|, (?P<bare>\d{1,3})(?=,|$| years)|\((?P<in>\d{1,3})\)"
)


def _languages(match: re.Match[str], place: Place) -> Iterator[Told]:
    text, at = place.view.text, match.end()
    for _ in range(6):
        found = re.compile(
            rf"(?:fluent |some |a little |a bit of |basic |conversational |decent |both )*(?P<value>{LANGUAGES})\b"
        ).match(text, at)
        if found is None:
            return
        yield told(place, "language", shown_language(place, found), found.span("value"))
        joint = JOINTS.match(text, found.end())
        if joint is None:
            return
        at = joint.end()


def shown_language(place: Place, found: re.Match[str]) -> str:
    written = place.view.verbatim(*found.span("value"))
    return written[:1].upper() + written[1:]


_GO = rf"{HAVE}{ADVERB}\s?"
_DAY_VALUE = rf"(?P<value>{ENGLISH_DAY})(?![\w-])"

RULES: tuple[Rule, ...] = (
    make_rule("name", r" (?:(?:full|first|real|last|given) )?name(?:'s| is) (?:actually )?", _kin_name, 0.95, is_owned=True),
    make_rule("name", rf"{BE} (?:called|named) ", _kin_name, 0.9, of="person"),
    make_rule("name", r"(?:'m| am) (?:called|named) ", _own_name, 0.9, of="user"),
    make_rule("name", r"(?:'m| am) ", _plain_name, 0.85, of="user"),
    make_rule("name", r" (?:surname|last name|first name)(?:'s| is)(?: spelled| spelt)? ", _kin_name, 0.9, is_owned=True),
    make_rule("nickname", r"(?:(?:everyone|everybody|people|my friends|friends) )?(?:just |all |usually )?calls me |(?:everyone|everybody|people|friends) call me ", _nickname, 0.9, leaves_out="terse"),
    make_rule("nickname", r"(?:(?:you|u) can |please |pls |just )*call me ", _nickname, 0.9, leaves_out="terse", may_ask=True),
    make_rule("name", r"(?:it's |its |this is )", _here, 0.85, leaves_out="terse"),
    make_rule("nickname", r" (?:go|goes) by (?:the name )?", _nickname, 0.9),
    make_rule("nickname", r" (?:friends|family|mates|colleagues|people|everyone|parents|coworkers)(?: all| usually)? calls? me ", _nickname, 0.9, is_owned=True),
    make_rule("birthday", rf" birthday(?:'s| is|:)(?: on)? {_DAY_VALUE}", _day, 0.95, is_owned=True),
    make_rule("birthday", rf" was born on {_DAY_VALUE}", _day, 0.95),
    make_rule("birthday", rf" turns? \d{{1,3}} on {_DAY_VALUE}", _day, 0.9),
    make_rule("age", rf"{BE}(?: now| only)? (?P<value>\d{{1,2}})(?: years? old)? and (?:also |a |an )?(?P<state>{HEALTH}|{DIETS})(?![\w-])", _age_and_state, 0.9),
    make_rule("age", r"(?: just)? (?:turned|turns|is turning|'s turning|will be) (?P<value>\d{1,3})(?=$|[,.!;)]| (?:today|last|this|in|on|next|and|so|but|years)\b)", _age, 0.85, of="person"),
    make_rule("age", rf"(?:{BE}| just turned| turned|{BE} turning)(?: now| only| already| just)? (?P<value>\d{{1,3}})(?: years? old| yrs? old|-years?-old)", _age, 0.95),
    make_rule("age", r"(?:'m| am)(?: now| only)? (?P<value>\d{2})(?=$|[,.!;)]| (?:and|now|with|but|so|not|male|female|m\b|f\b|years)(?!\s(?:minutes|percent)))", _age, 0.9, of="user", may_doubt=True),
    make_rule("age", r"(?P<value>\d{2}) years old", _age, 0.9, of="user", leaves_out="terse"),
    make_rule("age", r"(?:'m| am)? ?in my (?P<value>(?:early|mid|late)?-? ?(?:20|30|40|50|60|70|80)s)", group("age"), 0.9, of="user", leaves_out="terse"),
    make_rule("age", r"(?P<value>\d{2})(?=, )", _listed_age, 0.85, of="user", leaves_out="terse"),
    make_rule("age", rf"{BE}(?: now| only)? (?P<value>\d{{1,3}})(?=$|[,.!;)]| (?:and|now|but|so) (?!minutes|hours|days|percent|km|miles))", _age, 0.85, of="person"),
    make_rule("age", r"(?:'m| am)? ?an? (?P<value>\d{2})[- ]years?[- ]old\b", _age, 0.9, leaves_out="terse"),
    make_rule("home", rf"{ADVERB}\s?(?:live|lives|reside|resides) (?:over |up |down |out |alone |together |with [a-z ]{{2,20}}? )?(?:in|near|outside|just outside|outside of) ", _home, 0.9, leaves_out="opening"),
    make_rule("home", rf"(?:{BE})?{ADVERB}\s?(?:living|based|residing|located|settled) (?:over |up |down |out )?(?:in|near|outside|outside of|out of) ", _home, 0.9, leaves_out="opening"),
    make_rule("home", rf"(?:'ve| have|'s| has)(?: been)?{ADVERB} (?:living|lived) in (?=[a-z .']{{2,40}}? (?:for|since)\b)", _home, 0.85),
    make_rule("home", rf"{HAVE}{ADVERB}\s?(?:moved|relocated) (?:house |back |over |out |here )?(?:from (?P<left>[\w ]{{2,30}}?) )?(?:back )?to ", _home, 0.9, leaves_out="opening"),
    make_rule("home", rf"{HAVE} (?:bought|rented|found|got) (?:a|an|our|my) (?:[a-z]+ ){{0,2}}(?:house|flat|apartment|place|condo|home) in ", _home, 0.85),
    make_rule("home", rf"(?:'m| am|'re| are){ADVERB} in ", _known_home, 0.85, of="user"),
    make_rule("home", r"in (?=[a-z ]{3,30} (?:now|these days))", _known_home, 0.8, of="user", leaves_out="terse"),
    make_rule("home", r"", _listed_home, 0.85, of="user", leaves_out="terse"),
    make_rule("origin", rf"(?:{BE})?{ADVERB}\s?(?:originally )?from ", _origin, 0.85, leaves_out="opening"),
    make_rule("origin", rf"{ADVERB}\s?(?:grew up|come|comes|came|hail|hails|was raised|were raised)(?: originally)? (?:in|from) ", _origin, 0.85, leaves_out="opening"),
    make_rule("born in", r"(?: was| were)? ?born(?: and (?:raised|bred))? in ", _birthplace, 0.9, leaves_out="opening"),
    make_rule("home town", r" (?:hometown|home town)(?:'s| is) ", _origin, 0.9, is_owned=True),
    make_rule("nationality", rf"{BE}{ADVERB}\s?(?:half |part |proudly |a |an )?(?P<value>{NATIONALITIES})(?=$|[,.!;)]| (?:and|but|so|too|citizen|myself|by birth|btw|living|based))", group("nationality", is_name=True), 0.85),
    make_rule("language", rf"{ADVERB}\s?(?:speak|speaks|can speak) (?:fluent(?:ly)? |only |mostly )?", _languages, 0.9),
    make_rule("language", rf"{BE}{ADVERB}\s?(?:fluent|bilingual|a native speaker) (?:in|of) ", _languages, 0.9),
    make_rule("language", r" (?:native|first|mother|second) (?:language|tongue)(?:'s| is) ", _languages, 0.9, is_owned=True),
    make_rule("religion", rf"{BE}{ADVERB}\s?(?:a |an )?(?:practicing |devout |lapsed )?(?P<value>{RELIGIONS})(?=$|[,.!;)]| (?:and|but|so|too|myself|btw))", group("religion"), 0.85),
    *BODIES,
    make_rule("health", rf"{BE}{ADVERB}\s?(?:a )?(?P<value>(?!\w+[- ]intolerant)(?:{HEALTH}))(?![\w-])", group("health"), 0.9),
    make_rule("health", rf"{ADVERB}(?: have| has|'ve got|'ve had|'ve| live with| suffer from| suffers from| struggle with| struggles with| deal with| was diagnosed with| got diagnosed with|'ve been diagnosed with|'s got| get| gets) ", _conditions, 0.9),
    make_rule("health", rf"{BE}{ADVERB} (?:living with|dealing with|struggling with|recovering from|managing|diagnosed with) ", _conditions, 0.9),
    make_rule("health", r"(?:just |recently )?diagnosed with ", _conditions, 0.85, leaves_out="opening"),
    make_rule("health", r"(?P<value>(?:type 1 |type 2 )?diabetic|celiac|coeliac|asthmatic)(?= here)", group("health"), 0.9, leaves_out="opening"),
    make_rule("medication", rf"(?:{BE}(?: on| taking)| take| takes|'ve been taking|'ve been on| use| uses|'ve been prescribed| was prescribed) ", _medicines, 0.9),
    make_rule("job", rf"{ADVERB}(?: work| works|'m working| am working|'s working| is working|'m employed| freelance| was hired| got hired|'ve been working|'ve worked) (?:[a-z-]+ )?as (?:a|an|the) (?P<value>(?!team\b)[a-z][\w/-]+(?: (?!at\b|for\b|in\b|with\b|on\b|and\b|but\b|so\b|from\b|who\b)[a-z][\w/-]*){{0,3}}?)(?=$|[,.!;)]| (?:at|for|in|with|on|and|but|so|from|by|now|these)\b)", _job, 0.9),
    make_rule("job", rf"(?:{BE}|{BE}(?: actually| currently| just| still| also)| became| recently became| just became)(?: only| also| currently| now| still| actually)? {_A} (?:\d{{2}}[- ]year[- ]old )?(?P<value>{JOBS})(?=$|[,.!;)\n]| (?:at (?!heart)|for (?=[a-z]+$|[a-z]+,|the |a )(?!halloween)|in (?!training)|with |from |working |and |but |so |by |here|now|who|based|specializ|myself|too|living|since|these|btw|focus|if |which |because |on |during ))", _job, 0.85),
    make_rule("job", rf"(?:a |an )?(?P<value>{JOBS})(?=$|[,.!;)]| (?:at|from|by|based|here|in) )", _terse_job, 0.85, of="user", leaves_out="terse"),
    make_rule("job", r"(?P<value>freelancing (?:in|as a|as an) [a-z]+(?: [a-z]+)?)", group("job"), 0.85, of="user", leaves_out="terse"),
    make_rule("job", rf" (?:job|work|profession|occupation|role|career|day job)(?:'s| is)(?: as)? (?:a |an |being a |being an )?(?P<value>{JOBS})(?=$|[,.!;)]| (?:at|for|in|and|but|so))", _job, 0.9, is_owned=True),
    make_rule("job", rf",? {_A} (?P<value>{JOBS})(?=,)", _job, 0.85, of="person"),
    make_rule("job", rf" (?:teach|teaches) (?P<value>(?:{FIELDS}|{LANGUAGES})|(?:high school|middle school|elementary school|primary school|kindergarten|preschool|yoga|piano|guitar)(?: [a-z]+)?)(?=$|[,.!;)]| (?:at|in|and|to|for|on))", group("job"), 0.85),
    make_rule("employer", rf"{ADVERB}\s?(?:work|works|working|intern|interns|interning)(?: [a-z-]+)? (?:at|for) (?!home\b|night\b)", _employer, 0.85, leaves_out="opening"),
    make_rule("employer", r"(?:'ve| have) (?:been working|worked) (?:at|for) ", _employer, 0.85),
    make_rule("employer", r"(?:'m| am)(?: over)? at (?=[a-z&' ]{2,30}? (?:now|these days))", _employer, 0.85, of="user"),
    make_rule("employer", rf"{BE}{ADVERB} (?:working|employed|interning|an? intern|a contractor) (?:at|for|by|with) ", _employer, 0.85),
    make_rule("employer", rf"{HAVE}{ADVERB}\s?(?:got|started|landed|have|start|starting|accepted|began|begun)(?: working)? (?:a|my|the|an) (?:new |great )?(?:job|position|role|gig|internship|offer)?(?: as (?:a|an) [a-z ]{{3,30}}?)? ?(?:at|with|for) ", _employer, 0.85, leaves_out="opening"),
    make_rule("employer", rf"{HAVE}{ADVERB}\s?(?:started|joined|started working|started out) at (?=[a-z])", _employer, 0.85, of="user", leaves_out="opening"),
    make_rule("study", rf"(?:{BE}| have been|'ve been)?{ADVERB}\s?(?:study|studies|studying|majoring|majored|major|minoring|specializing)(?: in)? ", _study, 0.85, leaves_out="opening"),
    make_rule("study", rf"{HAVE}{ADVERB}\s?(?:graduated|graduating)(?: with| from| in)? ", _study, 0.85, leaves_out="opening"),
    make_rule("study", rf"{HAVE}{ADVERB}\s?(?:earned|got|completed|finished|have|has|hold|holds|did|doing|pursuing|'m doing|'m pursuing|am pursuing)(?: my| a| an) (?=(?:bachelor's|master's|masters|bachelors|associate's|phd|doctorate|degree|mba|ba|bs|bsc|msc|ma)\b)", _study, 0.85),
    make_rule("study", rf"{ADVERB}\s?(?:attended|attend|attends|went to|go to|goes to|am at|'m at|enrolled at|got into|going to) (?=[a-z])", _school, 0.85, leaves_out="opening"),
    make_rule("study", rf"(?:{BE}|{HAVE} been|{HAVE})?{ADVERB}\s?(?:also )?(?:started )?(?:taking|take|enrolled in|signed up for|doing|completed) (?:a |an |some |my |several )?(?P<value>(?:(?!that\b|this\b)[a-z]+ ){{0,2}}(?:course|courses|class|classes|lessons|degree|bootcamp|specialization|certification)(?: (?:on|in|at|about|from) (?!that\b|this\b|the\b)[a-z]+(?: [a-z]+)?)?)\b", group("study"), 0.8),
    make_rule("study", rf"(?:{BE}|{HAVE} been){ADVERB} (?:studying|learning) (?:about )?", _topic, 0.8),
    make_rule("study", rf"{BE}{ADVERB} (?:a|an) (?P<value>[a-z ]{{2,30}}? (?:student|major))(?= at| in|$|[,.])", group("study"), 0.8),
    make_rule("relationship", rf"{HAVE}(?:\s?been)?(?:{BE})?{ADVERB}\s?(?:happily |newly |recently )?(?P<value>married|single|divorced|engaged|widowed|separated|in a relationship|in a long-distance relationship|dating someone)(?=$|[,.!;)]| (?:and|but|so|now|to|with|for|again|mom|mum|dad|mother|father|parent|since|btw|\d+ years|two|three|ten))", group("relationship"), 0.85, leaves_out="terse"),
    make_rule("relationship", rf"(?:{BE}| got| just got)(?: a)? (?P<value>single|married|engaged|divorced)(?= (?:mom|mum|dad|mother|father|parent|man|woman|guy|in |last |this |two|three|\d))", group("relationship"), 0.85),
    make_rule("children", rf"(?: have|'ve got|'ve| got| has)?(?: a family with| a family of)? ?(?P<value>{_NUMBER} (?:(?:little|young|small|grown|adult|beautiful|lovely|teenage|older|amazing) )?{_KIDS}(?: and {_NUMBER} {_KIDS})?)\b", group("children"), 0.85, leaves_out="terse"),
    make_rule("children", rf"{BE} (?:a )?(?:single )?(?:mom|mum|dad|mother|father|parent) (?:of|to) (?P<value>{_NUMBER})\b", group("children"), 0.9),
    make_rule("budget", r" (?:[a-z]+ )?(?:budget)(?:'s| is|:) (?:about |around |roughly |only |up to |approximately |under )?(?P<value>[$€£]? ?\d(?:[\d,.]*\d)?k?(?: (?:dollars|euros|pounds|quid|bucks|usd|eur|gbp))?(?: (?:a|per) (?:month|week|year|day|person|night)| total| max)?(?: for [a-z ]{3,20})?)", group("budget"), 0.9, is_owned=True),
    make_rule("budget", rf"{HAVE}(?:'ve)? (?:have )?(?:a |an )?(?:budget of|budgeted|set a budget of|set aside) (?:about |around )?(?P<value>[$€£]? ?\d(?:[\d,.]*\d)?k?(?: (?:dollars|euros|pounds|quid|bucks))?(?: (?:a|per) (?:month|week|year|day|person|night))?)", group("budget"), 0.9, of="user"),
    make_rule("income", r"(?:'m| am| currently)? (?:earning|earn|make|making) (?:about |around |roughly )?(?P<value>[$€£]\d(?:[\d,.]*\d)?k?(?: (?:a|per) (?:month|week|year|hour)| annually| monthly)?)", group("income"), 0.9, of="user"),
)  # fmt: skip

PASSING: tuple[Rule, ...] = (
    make_rule("health", rf"\b(?:my|managing(?: my)?|manage my|living with|struggle with|struggling with|battle with|for my|deal with is|diagnosed with|recovering from|due to my|because of my|history of|flare-?ups? of) (?:(?:mild|severe|chronic|bad|own|ongoing|recent|long-standing) )*(?P<value>{CONDITIONS})(?![\w-])", _own("health"), 0.85, may_ask=True, may_doubt=True, negates=True),
    make_rule("medication", rf"(?<![\w-])(?P<value>(?:{MEDICINES}|[a-z]+(?:in|ol|ine|ide|am|one|pril|tan|statin|mab|fen)) {_DOSE}{_OFTEN})", _own("medication"), 0.85, may_doubt=True),
    make_rule("medication", rf"(?:prescribed(?: me)?|put me on|started me on|stable on|started taking|start taking|been taking|rely on|i take|i'm on|i also take|i sometimes take|supplements like) (?:a |an |my |some |both |the |daily |low-dose )*(?P<value>(?:{MEDICINES})(?: supplements?)?(?:(?:,| and|, and) (?:a |an |my |some )?(?:{MEDICINES})(?: supplements?)?)*(?: {_DOSE})?)", _own("medication"), 0.85, may_doubt=True),
    make_rule("age", r"\b(?:being|now that i'm|feeling) in my (?P<value>(?:early|mid|late)?-? ?(?:20|30|40|50|60|70|80)s)", _own("age"), 0.85),
    make_rule("home", r"\b(?:here in|living (?:here )?in|life in|winters? in|back here in) ", _known_place, 0.85),
    make_rule("origin", r"\bback home in ", _known_origin, 0.85),
    make_rule("budget", r"\bmy (?P<value>[$€£]\d(?:[\d,.]*\d)?k?) (?:[a-z]+ )?budget\b", _own("budget"), 0.85, may_ask=True, may_doubt=True),
    make_rule("budget", r"\b(?:my|our|the|a) (?:[a-z]+ )?budget (?:is|of) (?:about |around |roughly |only )?(?P<value>(?:under |up to )?[$€£] ?\d(?:[\d,.]*\d)?k?(?: ?/ ?month| (?:a|per) (?:month|week|year|day|person|night))?)", _own("budget"), 0.85, may_ask=True, may_doubt=True),
)  # fmt: skip
