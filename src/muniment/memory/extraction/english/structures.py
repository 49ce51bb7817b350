"""Rules on forms that people use for many things: fragments that open a message, apposition, time first, `… is my thing`."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from muniment.memory.extraction.dates import ENGLISH_DAY, day_of_english
from muniment.memory.extraction.english.classes import noun_class
from muniment.memory.extraction.english.reading import make_rule
from muniment.memory.extraction.english.slots import (
    Slot,
    read_doing,
    read_firm,
    read_name,
    read_place,
    read_things,
    shown,
)
from muniment.memory.extraction.english.words import (
    DIETS,
    FIELDS,
    FOODS,
    JOBS,
    KIN,
    KINS,
    LANGUAGES,
    MEDICINES,
    NATIONALITIES,
    NO_JOBS,
    NO_NAMES,
    PASTIME,
)
from muniment.memory.extraction.grammar import Place, Reader, Rule, Told

__all__ = ["PASSING"]

_OPEN = r"(?:^|(?<=[,.!?:;(] )|(?<=so )|(?<=btw )|(?<=by the way )|(?<=and )|(?<=but )|(?<=- )|(?<=ok )|(?<=hi )|(?<=hey )|(?<=we're )|(?<=i'm ))"
_END = r"(?=$|\s*[,.!?;:)(—–-]|\s(?:and|so|but|here|since|because|for|with|now|lol|btw|by the way|which|who|i|on|in|at|as|if|my|any|what|can|then|too|though|myself|these|right|imo|household|not|til|while)\b|[^\w\s'])"
_OFTEN = r"(?:every|each|most|on|some) (?:other |single )?(?:days?|mornings?|evenings?|nights?|weekends?|weekdays?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?(?: (?:mornings?|evenings?|nights?|afternoons?))?|week|month|year|summer|winter|christmas|easter)"
_NUMBER = r"(?:\d{1,2}|two|three|four|five|six|seven|twins|triplets)"
_OVER = re.compile(
    r"\b(?:used to|no longer|quit|left|lost|stopped|ex|former|formerly|old|never|not|back when|ago|was|were|had|years? before|wish|want to|if)\b"
)


_OTHERS = re.compile(
    rf"\b(?:he|she|they|he's|she's|they're|his|her|their|you|your|you're|who)\b|\b(?:my|our|little|big|the|his|her) (?:{KIN}|{KINS})\b|^(?:dad|mom|grandma|grandpa|sister|brother|son|daughter|wife|husband|hubby)\b"
)


def _is_over(place: Place, start: int) -> bool:
    """Do words before it in its clause say that it is of others, holds no more, or does not hold?"""
    text, begin = place.view.text, place.clause.start
    return _OVER.search(text, begin, start) is not None or _OTHERS.search(text, begin, start) is not None


def _user(attribute: str) -> Reader:
    """Each group of the pattern, of the speaker."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        for name in match.re.groupindex:
            start, end = match.span(name)
            if 0 <= start < end and not _is_over(place, match.start()):
                yield Told(f"user.{attribute}", place.view.verbatim(start, end).strip(), start, end)

    return read


def _fixed(attribute: str, value: str) -> Reader:
    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        if not _is_over(place, match.start()):
            yield Told(f"user.{attribute}", value, *match.span("value"))

    return read


def _slot(attribute: str, read_slot: Callable[..., Slot | None], **how: object) -> Reader:
    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        found = read_slot(place.view, match.end(), **how)
        if found is not None and not _is_over(place, match.start()):
            yield Told(f"user.{attribute}", found.value, found.start, found.end)

    return read


def _things(attribute: str) -> Reader:
    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        if not _is_over(place, match.start()):
            yield from (
                Told(f"user.{attribute}", found.value, found.start, found.end)
                for found in read_things(place.view, match.end())
            )

    return read


def _named(attribute: str) -> Reader:
    """A name in a group, written as names are."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        for name in match.re.groupindex:
            start, end = match.span(name)
            if 0 <= start < end and not _is_over(place, match.start()):
                yield Told(f"user.{attribute}", shown(place.view, start, end), start, end)

    return read


def _nickname(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`everyone knows me as Fitz`: a name, not a word of praise."""
    named = read_name(place.view, match.end(), most=2)
    if named is not None:
        yield Told("user.nickname", named.value, named.start, named.end)


def _birthday(match: re.Match[str], _place: Place) -> Iterator[Told]:
    day = day_of_english(match["value"])
    if day is not None:
        yield Told("user.birthday", day, *match.span("value"))


def _age(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`31f here`, `as a 38 year old man`: of the speaker, unless it is another who is asked."""
    if 12 <= int(match["value"]) <= 110 and not _OF_OTHERS.search(place.view.text, 0, match.start()):
        yield Told("user.age", match["value"], *match.span("value"))


_OF_OTHERS = re.compile(r"\b(?:he|she|his|her|my|they|their|son|daughter|kid|guy|man|woman|friend|who)\b")


def _job(match: re.Match[str], place: Place) -> Iterator[Told]:
    """A word for somebody who works, known or found in the classes of nouns."""
    start, end = match.span("value")
    words = match["value"].split()
    is_worker = noun_class(words[-1]) == "worker" and words[-1] not in NO_JOBS and words[-1] not in _NO_WORKERS
    if (is_worker or re.fullmatch(JOBS, match["value"])) and not _is_over(place, match.start()):
        yield Told("user.job", place.view.verbatim(start, end), start, end)
        firm = re.compile(r" (?:at|for|with) ").match(place.view.text, end)
        found = read_firm(place.view, firm.end()) if firm is not None else None
        if found is not None:
            yield Told("user.employer", found.value, found.start, found.end)
        home = re.compile(r",? (?:from|based in|living in) ").match(place.view.text, end)
        where = read_place(place.view, home.end()) if home is not None else None
        if where is not None:
            yield Told("user.location", where.value, where.start, where.end)


_NO_WORKERS = frozenset(
    ["creator", "winner", "loser", "leader", "player", "runner", "master", "slave", "doctor", "captain", "king", "queen", "star", "hero", "fan", "host", "creep", "god", "clown", "beginner", "member", "user", "owner", "customer", "client", "fool", "genius", "wizard", "drinker", "eater", "smoker", "reader", "maker", "believer", "person", "guest", "mess", "model", "server"]
) - {"doctor"}  # fmt: skip


def _partner(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`going out with a girl called Freya`."""
    named = read_name(place.view, match.end(), is_said=True, most=1)
    if named is not None:
        place.talk.names.setdefault(named.value.casefold(), "partner")
        yield Told("user.partner", named.value, named.start, named.end)


_THING = re.compile(
    r"(?:(?:new|old|used|second-hand|beat up|beaten up|brand new|trusty|little|small|big|vintage) )*(?P<value>[\w+-]+(?: [\w+-]+){0,3}?)(?=$|[,.!?;:)]| (?:and|but|so|which|that|for|with|now|to|last|from|in|on|at|i|who|since|because|won't|keeps|is|was|has|this|as)\b)"
)
_OWNED = frozenset(["vehicle", "machine", "instrument", "clothing", "building", "artifact"])
_NO_OWNED = frozenset(
    [
        "bunch",
        "handle",
        "lot",
        "couple",
        "few",
        "favorite",
        "bus",
        "train",
        "taxi",
        "cab",
        "ambulance",
        "truck",
        "lorry",
        "forklift",
        "tractor",
        "van",
        "ticket",
        "plane",
        "flight",
        "lift",
        "elevator",
        "call",
        "job",
        "question",
        "idea",
        "feeling",
        "point",
        "time",
        "chance",
        "text",
        "pass",
        "meal",
        "drink",
        "coffee",
    ]
)


def _owned(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`i own a narrowboat`, `i ride a Triumph Bonneville`: a thing by its class, or by a name or number it bears."""
    found = _THING.match(place.view.text, match.end())
    if found is None or _is_over(place, match.start()):
        return
    start, end = found.span("value")
    words = found["value"].split()
    bears_name = any(place.view.is_capital(start + at.start()) for at in re.finditer(r"(?<!\S)\S", found["value"]))
    bears_number = len(words) > 1 and any(word[-1].isdigit() for word in words[1:])
    if (
        noun_class(words[-1]) in ("animal", "kin", "person", "worker")
        or words[-1] in _NO_OWNED
        or words[-1] in NO_NAMES
    ):
        return
    if noun_class(words[-1]) in _OWNED or bears_name or bears_number or "own" in match[0]:
        yield Told("user.owns", place.view.verbatim(start, end), start, end)


def _doing(attribute: str, most: int = 12) -> Reader:
    """What is done, from the group `verb` on."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        found = read_doing(place.view, match.start("verb"), most)
        if (
            found is None
            or match["verb"] in _NO_DOINGS
            or match["verb"].endswith("ed")
            or _is_over(place, match.start())
        ):
            return
        if not _AT_HAND.intersection(found.value.lower().split()):
            yield Told(f"user.{attribute}", found.value, found.start, found.end)

    return read


_NO_DOINGS = frozenset(
    [
        "am",
        "is",
        "are",
        "was",
        "were",
        "have",
        "had",
        "has",
        "feel",
        "think",
        "need",
        "want",
        "get",
        "got",
        "know",
        "see",
        "went",
        "did",
        "said",
        "will",
        "would",
        "can",
        "could",
        "should",
        "made",
        "took",
        "be",
        "been",
        "don't",
        "didn't",
        "wonder",
        "hope",
        "wish",
        "might",
        "may",
        "must",
        "saw",
        "came",
        "left",
        "met",
    ]
)
_AT_HAND = frozenset(
    ["this", "that", "these", "those", "it", "you", "your", "today", "tomorrow", "tonight", "yesterday"]
)


def _meds(match: re.Match[str], place: Place) -> Iterator[Told]:
    for found in re.compile(rf"(?P<value>{MEDICINES})(?![\w-])").finditer(place.view.text, match.end()):
        yield Told("user.medication", place.view.verbatim(*found.span("value")), *found.span("value"))


def _foods(attribute: str) -> Reader:
    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        found = re.compile(
            rf"(?:any |all |much )?(?P<value>{FOODS}|(?:spicy|fried|raw|processed|greasy|sugary|fatty|salty|hot) (?:food|foods|stuff|things|meat|fish))\b"
        ).match(place.view.text, match.end())
        if found is not None:
            yield Told(f"user.{attribute}", place.view.verbatim(*found.span("value")), *found.span("value"))

    return read


def _listed(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`im Lena, 27`, `im dave (42)`: an age behind a name that is told."""
    named = read_name(place.view, match.start("name"), most=2)
    if named is not None and named.end == match.end("name"):
        yield Told("user.age", match["age"], *match.span("age"))
        job = re.compile(rf"\)?,? (?:an? )?(?P<value>{JOBS})(?= (?:from|in|at|based) |[,.!]|$| and\b)").match(
            place.view.text, match.end()
        )
        if job is not None:
            yield Told("user.job", place.view.verbatim(*job.span("value")), *job.span("value"))
            home = re.compile(r" (?:from|in|based in) ").match(place.view.text, job.end())
            where = read_place(place.view, home.end()) if home is not None else None
            if where is not None:
                yield Told("user.location", where.value, where.start, where.end)


_BIRTHDAY = rf"(?P<value>{ENGLISH_DAY})(?![\w-])"
_HOME = r"(?:flat|house|apartment|place|home|condo|studio|cottage|farm|bungalow|loft|new place|new flat|new house)"

PASSING: tuple[Rule, ...] = (
    # -- who
    make_rule("name", r"(?:^|(?<=[,.!] ))(?:the |my )?(?:surname|last name|name)(?:'s| is)(?: spelled| spelt)? ", _slot("name", read_name, is_said=True), 0.9),
    make_rule("nickname", r"\b(?:people|friends|everyone|everybody|mates|family|folks|most people|all my friends|they all)(?: all| just| usually| mostly)? (?:call|calls|know|knows) me (?:as |by )?", _nickname, 0.9),
    make_rule("age", r"(?:^|(?<=[,.!:] ))(?P<value>\d{2}) ?(?:m|f|yo|y/o|(?:year|yr)s?[ -]old)\b(?= here|,| and|$| from| in| living| with| male| female| man| woman)", _age, 0.9, may_ask=True),
    make_rule("age", r"\bas an? (?P<value>\d{2})[ -](?:year|yr)s?[ -]old\b(?! (?:son|daughter|kid|dog|car|house|you))", _age, 0.85, may_ask=True),
    make_rule("age", r"\bi'm (?P<name>[a-z][a-z'-]+),? \(?(?P<age>\d{2})(?=[,.)]|$)", _listed, 0.85),
    make_rule("birthday", rf"(?:^|(?<=[,.!] )|\bmy )(?:birthday|bday)(?:'s| is| falls)?[a-z, ]{{0,24}}? {_BIRTHDAY}", _birthday, 0.9),
    # -- where
    make_rule("home", rf"\b(?:my|our) (?:little |tiny |new |small |rented |old )?{_HOME} (?:is )?(?:in|near|outside) ", _slot("location", read_place, must_know=True), 0.85),
    make_rule("home", r"\bi stay in (?=[a-z]+(?: [a-z]+)? with (?:my|a)\b)", _slot("location", read_place, must_know=True), 0.8),
    make_rule("home", r"(?:^|(?<=[,.!] )|(?<=now ))home(?:'s| is)(?: now| currently)? ", _slot("location", read_place), 0.85),
    make_rule("home", r"(?:^|(?<=[,.!] )|(?<=i ))settled (?:down )?in ", _slot("location", read_place, must_know=True), 0.85),
    make_rule("home", r"(?:(?<=, )|(?<=and ))(?:i )?(?:live|living|based) in ", _slot("location", read_place), 0.85),
    make_rule("home", r"\bi'm in (?=[a-z]+(?: [a-z]+)?, (?:what|where|any|is|are|how|who|do|can))", _slot("location", read_place, must_know=True), 0.85),
    make_rule("origin", r"\bi(?:'m| come| am)? from (?:a (?:tiny|small|little) )?(?:village|town|city|place) (?:near|in|outside|called) ", _slot("origin", read_place), 0.85),
    make_rule("nationality", rf"(?:^|(?<=[,.!] )|\bi'm )half[- ](?P<one>{NATIONALITIES})(?:,? (?:and )?half[- ](?P<two>{NATIONALITIES}))?\b", _named("nationality"), 0.85),
    make_rule("nationality", rf"\bas an? (?P<value>{NATIONALITIES}),? (?=i\b|i'm|my)", _named("nationality"), 0.85),
    make_rule("language", rf"(?:^|(?<=[,.!] )|(?<=and )|\bi'm )(?:fluent|bilingual) in (?P<one>{LANGUAGES})(?:(?:,| and) (?P<two>{LANGUAGES}))?\b", _named("language"), 0.85),
    make_rule("language", rf"\bmy (?:mother tongue|native tongue|first language|native language)(?:'s| is) (?:actually )?(?P<value>{LANGUAGES})\b", _named("language"), 0.9),
    make_rule("language", rf"\bisn't my (?:first|native|mother) (?:language|tongue),? (?:it's |that's |but )?(?P<value>{LANGUAGES})\b(?= is|$|[,.!])", _named("language"), 0.85, negates=True),
    make_rule("language", rf"\bi speak (?P<one>{LANGUAGES})(?:(?:,| and) (?:a bit of |some |a little )?(?P<two>{LANGUAGES}))?\b", _named("language"), 0.9),
    # -- work and study
    make_rule("job", rf"\bi do (?:the )?(?P<value>{FIELDS}|marketing|sales|admin|it support|hair|nails|catering|cleaning|security|deliveries)(?= (?:for|at|in) )", _user("job"), 0.85),
    make_rule("job", rf"{_OPEN}(?:i'm )?(?:currently |still )?(?:working|work) as an? (?P<value>[a-z-]+(?: [a-z-]+){{0,2}}?){_END}", _job, 0.85),
    make_rule("job", r"(?<!\bas )(?:\bi'm|\bi am|\bi became|\bby day i'm) (?:now |currently |still |actually |just |also )?an? (?:retired |former |freelance |self-employed |part-time |full-time |senior |junior |trainee |newly qualified )*(?P<value>[a-z-]+(?: [a-z-]+){0,2}?)(?=$|[,.!;)]| (?:and|at (?!heart)|for (?!halloween)|in (?!training)|by|here|so|but|from|with|who|working)\b)", _job, 0.85),
    make_rule("job", r"(?:^|(?<=[,.!] ))(?:(?:self[- ]employed|freelance|part[- ]time|full[- ]time|trainee|senior|junior|lead|head) )+(?P<value>[a-z-]+(?: [a-z-]+)?)(?=,| (?:at|for|in|here)\b|$)", _job, 0.85),
    make_rule("job", r"(?:^|(?<=[,.!] ))(?P<value>(?:senior|junior|lead|principal|head|chief) (?:[a-z]+ )?(?:dev|developer|engineer|designer|manager|analyst|nurse|chef|editor|accountant|consultant))(?= (?:at|for|in) )", _user("job"), 0.85),
    make_rule("job", r"\bmy job(?:'s| is) in (?P<value>[a-z]+(?: [a-z]+)?)(?=$|[,.!])", _user("job"), 0.85),
    make_rule("job", r"\bi work in (?P<value>(?:hr|it|tech|finance|marketing|sales|retail|logistics|construction|hospitality|education|healthcare|insurance|advertising|publishing|banking|film|tv|music|fashion|politics|security|catering|a (?:[a-z]+ )?(?:lab|bank|school|hospital|shop|bar|cafe|factory|warehouse|library|restaurant|kitchen|call centre|call center|pharmacy|nursery|pub|hotel|museum|bakery|supermarket)))\b", _user("job"), 0.85),
    make_rule("job", r"\bi teach (?P<value>(?:year|grade|kindergarten|reception|primary|secondary|nursery|preschool)(?: \d{1,2}| school)?|\d(?:st|nd|rd|th) grade(?:rs)?|(?:[a-z]+ ){0,2}(?:lessons|classes|kids))(?=$|[,.!]| (?:at|in|and|so)\b)", _user("job"), 0.85),
    make_rule("job", r"\bi'm (?P<value>retired|self[- ]employed|unemployed|between jobs|a stay[- ]at[- ]home (?:dad|mom|mum|parent)|a freelancer)\b", _user("job"), 0.85),
    make_rule("employer", r"\bi'm (?:now )?with (?=[a-z&' ]{2,30}? now\b)", _slot("employer", read_firm), 0.8),
    make_rule("employer", r"\bmy (?:company|firm|startup|employer|workplace),? (?:is |is called |called )?", _slot("employer", read_firm), 0.85),
    make_rule("employer", r"\b(?:team|folks|people|work|colleagues|everyone) here at ", _slot("employer", read_firm), 0.85),
    make_rule("study", rf"\b(?:studying|doing (?:a|my) (?:degree|phd|masters|master's|ba|bsc|msc|course|diploma) in|(?:taking|take|doing) (?:[a-z]+ )?(?:classes|lessons|a course|courses) in|student of) (?P<value>(?:{FIELDS})|[a-z]+)(?=$|[,.!?]| (?:at|in|and|on|since|for|this)\b)", _user("study"), 0.85),
    make_rule("study", rf"\b(?P<value>{FIELDS}) (?:student|major|undergrad)\b(?! (?:loan|discount|union)s?)", _user("study"), 0.8),
    # -- family
    make_rule("relationship", r"\bi'm a (?P<value>widow|widower|bachelor|newlywed|divorcee)\b", _user("relationship"), 0.9),
    make_rule("relationship", r"(?:^|(?<=[,.!] )|\bwe |\bi )(?:just |finally )?got (?P<value>married|engaged|divorced)\b(?! (?:in my dream|couple))", _user("relationship"), 0.85),
    make_rule("relationship", r"\b(?:my|our) (?P<value>fiance|fiancé|fiancee|fiancée)\b", _fixed("relationship", "engaged"), 0.85, may_doubt=True, may_ask=True, negates=True),
    make_rule("children", rf"(?:^|(?<=[,.!] )|\bi'm an? |\bas an? )(?:proud |single |busy )?(?:mom|mum|dad|mother|father|parent) (?:of|to) (?P<value>{_NUMBER}(?: (?:boys|girls|kids|children))?)\b", _user("children"), 0.9, may_ask=True),
    make_rule("partner", r"\bi'm (?:going out with|seeing|dating) (?:a|this) (?:girl|guy|man|woman|boy|lad|bloke)(?: who's)? (?:called|named) ", _partner, 0.85),
    # -- food and health
    make_rule("diet", rf"(?:^|(?<=[,.!] ))(?:i've |we've )?been (?:a )?(?P<value>{DIETS})(?= (?:since|for|now|all)\b|$|,)", _user("diet"), 0.9),
    make_rule("diet", r"\b(?:i|we) keep (?P<value>kosher|halal)\b", _user("diet"), 0.9),
    make_rule("diet", r"\b(?:i'm|we're|i've been) (?:doing|on|eating|following) (?:the |a )?(?P<value>keto|paleo|whole30|carnivore|low[- ]carb|atkins|dash|fodmap|low[- ]fodmap|intermittent fasting|plant[- ]based|gluten[- ]free|dairy[- ]free)\b(?! (?:recipe|app|blog|book)s?)", _user("diet"), 0.85),
    make_rule("diet", rf"(?:^|(?<=[,.!] ))(?P<value>(?:gluten|dairy|nut|sugar|meat)[- ]free|{DIETS}|kosher|halal) (?:household|family|house|home)\b", _user("diet"), 0.85),
    make_rule("avoids", r"\b(?:i|we) (?:steer clear of|stay away from|keep away from|stay off|can't eat|cannot eat|can't digest|don't touch|can't handle|never touch) ", _foods("avoids"), 0.85, negates=True),
    make_rule("allergy", rf"(?:^|(?<=[,.!] ))(?:severe |bad )?(?P<value>{FOODS}|nut|peanut|bee|cat|dog|pollen|latex|dust|egg|milk|soy|fish|shellfish) allergy(?= here|$|[,.!]| btw| by the way| so)", _user("allergy"), 0.9),
    make_rule("allergy", rf"(?:^|(?<=[,.!] ))(?P<value>{FOODS})(?: [a-z']+){{1,6}}, i'm (?:really |very |super )?allergic\b", _user("allergy"), 0.85),
    make_rule("health", r"\bi (?:wear|use|have|need|walk with|rely on) (?:a |an |my )?(?P<value>hearing aids?|wheelchair|walking stick|cane|crutches|prosthetic(?: leg| arm)?|pacemaker|insulin pump|cpap(?: machine)?|guide dog|walker|mobility scooter|oxygen|colostomy bag)\b(?! for (?:a|my) (?:dad|mom|mum))", _user("health"), 0.85),
    make_rule("health", r"\bi'm (?:legally |partially |totally |completely )?(?P<value>(?:blind|deaf)(?: in (?:one|my (?:left|right)) (?:eye|ear))?|colou?r[- ]?blind|hard of hearing|partially sighted|short-sighted|autistic|dyslexic|epileptic|anemic|anaemic|bipolar|neurodivergent|dyspraxic|hypothyroid|immunocompromised)\b", _user("health"), 0.9),
    make_rule("medication", r"\bmy (?:meds|medication|medications|pills|prescriptions)(?: are| include|\s?:| is)? ", _meds, 0.85),
    # -- tastes
    make_rule("likes", r"(?:^|(?<=[,.!] )|(?<=btw ))(?:such a |a )?(?:big|huge|massive|lifelong|avid) (?:fan|lover) of (?!you|your|this|that|it\b)", _things("likes"), 0.85),
    make_rule("likes", rf"\bi do (?:a lot of|lots of|loads of|some|a bit of|plenty of) (?P<value>{PASTIME}){_END}", _user("likes"), 0.85),
    make_rule("likes", r"\bi go (?P<value>[a-z]+ing(?: (?:with|in|on|at) [a-z ]{3,30}?)?)(?=$|[,.!]| (?:every|on|each|most|twice|once|a lot|regularly|and)\b)", _user("likes"), 0.8),
    make_rule("habit", rf"(?:^|(?<=[,.!] )|(?<=and )){_OFTEN},? (?:i|we|me and my [a-z]+) (?:always |usually )?(?P<verb>[a-z]+)", _doing("habit"), 0.85),
    make_rule("habit", r"\bin (?:my|our) (?:spare|free) time,? (?:i|we) (?:like to |love to |usually |mostly )?(?P<verb>[a-z]+)", _doing("likes"), 0.85),
    make_rule("likes", r"\b(?:i|we) spend (?:most of |all |a lot of )?(?:my|our) (?:evenings|weekends|mornings|nights|days|free time|spare time|time|summers|sundays|saturdays) (?P<verb>[a-z]+ing)", _doing("likes", 8), 0.85),
    make_rule("likes", rf"(?:^|(?<=[,.!] ))(?P<value>{FOODS}|{PASTIME}) over (?:{FOODS}|{PASTIME}) (?:any ?day|every time|always)\b", _user("likes"), 0.85),
    make_rule("likes", r"\b(?:i|we) support (?=[a-z]+(?: [a-z]+)?(?:$|[,.!]| (?:and|since|so|fc|united|city)\b))", _slot("likes", read_firm), 0.8),
    make_rule("likes", r"\bi've always (?:loved|liked|enjoyed|adored) (?!you|it\b|that|this|how)", _things("likes"), 0.85),
    make_rule("likes", r"\bmy (?:thing|jam|passion|guilty pleasure|happy place|escape|hobby)(?:'s| is) (?!that|to|how|when|not|just|you)", _things("likes"), 0.85),
    make_rule("dislikes", rf"(?:^|(?<=[,.!] ))(?P<value>{FOODS}|{PASTIME}) (?:is|are) (?:so |really |just |absolutely |totally )?(?:disgusting|gross|vile|revolting|the worst|awful)\b", _user("dislikes"), 0.8),
    make_rule("dislikes", r"\bi (?:hate|can't stand|loathe|despise) the (?P<value>traffic|noise|cold|heat|rain|winter|summer|crowds|gym|dentist|dark|snow|heights?)\b", _user("dislikes"), 0.85, negates=True),
    make_rule("favorite", r"(?:^|(?<=[,.!] ))best (?P<noun>[a-z]+) ever (?:for me )?(?:is|are) ", _things("favorite.thing"), 0.8),
    # -- things, aims, times, money
    make_rule("owns", r"\b(?:i own|i ride|i drive|i bought|i just bought|i just got|we own|we bought) (?:myself )?(?:a|an|this) ", _owned, 0.8),
    make_rule("owns", r"\b(?:i've got|i have|we've got|we have) (?:a|an) (?=(?:[a-z]+ ){0,2}[a-z]*\d)", _owned, 0.8),
    make_rule("owns", r"(?:^|(?<=[,.!] ))(?:just )?(?:bought|got)(?: myself)? an? ", _owned, 0.8),
    make_rule("owns", r"\b(?:typing (?:this )?on|writing (?:this )?(?:from|on)|sent from|chatting on|on) my (?=[a-z]+ (?:[a-z]+ )?\d)", _owned, 0.8),
    make_rule("goal", r"\bi (?:want|hope|intend|would like|'d like|'d love) to (?P<verb>learn|master|become|qualify|graduate|retire|emigrate|move|run|write|publish|climb|visit|travel|lose|gain|quit|stop|save|buy|open|start|launch|build|get fit|get married|study|read more|eat|speak|give up)(?= )(?=[^?]*(?:this year|next year|one day|some day|someday|before i|by (?:the end|christmas|summer|\d{4})|by the time|in (?:\d|two|three|five|ten) years|for good))", _doing("goal"), 0.8, may_doubt=True),
    make_rule("goal", r"\bi (?:plan on|dream of|dream about|intend on|'m set on|'m working on|'m dreaming of) (?P<verb>(?:retiring|becoming|opening|moving|starting|writing|learning|buying|getting (?:married|fit)|quitting|running|building|launching|going back|emigrating|adopting|having))(?= |$)", _doing("goal"), 0.85, may_doubt=True),
    make_rule("budget", r"\b(?:(?:don't|do not|can't|not) (?:want to |wanna )?(?:spend|pay|go)(?: any)? (?:more than|over|above)|(?:my|our) (?:limit|max|maximum|cap) is|keep it under|max(?:imum)?) (?P<value>(?:[$€£] ?\d[\d,.]*k?|\d[\d,.]*k? ?(?:dollars|euros|pounds|quid|bucks|usd|eur|gbp))(?: (?:a|per) (?:month|week|year|day|person|night))?)", _user("budget"), 0.85, negates=True, may_doubt=True, may_ask=True),
    make_rule("schedule", r"\bi work (?P<value>\d on,? \d off|alternate [a-z]+|shifts|rotating shifts|(?:four|three|five|two|\d) days a week|every other [a-z]+|from home on [a-z]+)\b", _user("schedule"), 0.85),
    make_rule("schedule", r"\bi (?:finish|start|clock off|clock out|get off|get home from|leave|begin)(?: work| school| my shift)?(?: at| around) (?P<value>\d{1,2}(?::\d{2})? ?(?:am|pm)?)(?=$|[,.!]| (?:every|most|on|and|so|daily|each)\b)", _user("schedule"), 0.8),
)  # fmt: skip
"""Looked for anywhere in a sentence."""
