"""Rules on what is told by the way or in fragments: `nurse here`, `my sister in Oslo`, `mum of 3`, `20 years at Boeing`."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from muniment.memory.extraction.english.reading import make_rule
from muniment.memory.extraction.english.slots import Slot, read_doing, read_firm, read_name, read_place, read_things
from muniment.memory.extraction.english.words import (
    ANIMALS,
    CONDITIONS,
    DIETS,
    FIELDS,
    FOODS,
    HEALTH,
    JOBS,
    KIN,
    KIN_KEYS,
    LANGUAGES,
    NATIONALITIES,
    RELIGIONS,
)
from muniment.memory.extraction.grammar import Place, Reader, Rule, Told, owner_of

__all__ = ["PASSING"]

_NUMBER = r"(?:\d{1,2}|one|two|three|four|five|six|seven)"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SHORT_DAY = rf"(?:{_DAY}s?|mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun|weekdays|weekends)"
_TIME = r"\d{1,2}(?::\d{2})? ?(?:am|pm)?"


def _user(attribute: str, name: str = "value") -> Reader:
    """A group of the pattern, of the speaker."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        for group in (name, "other", "third", "fourth"):
            start, end = match.span(group) if group in match.re.groupindex else (0, 0)
            if start < end and not _ENDED.search(place.view.text, max(0, start - 40), start):
                yield Told(f"user.{attribute}", place.view.verbatim(start, end).strip(), start, end)

    return read


def _slot(attribute: str, read_slot: Callable[..., Slot | None], **how: object) -> Reader:
    """What stands where the pattern ends, of the speaker."""

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        if _ENDED.search(place.view.text, max(0, match.start() - 40), match.start()):
            return
        found = read_slot(place.view, match.end(), **how)
        if found is not None:
            yield Told(f"user.{attribute}", found.value, found.start, found.end)

    return read


def _things(attribute: str) -> Reader:
    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        for found in read_things(place.view, match.end()):
            yield Told(f"user.{attribute}", found.value, found.start, found.end)

    return read


def _owner(match: re.Match[str], place: Place, at: int) -> tuple[str, int]:
    """Whose it is: by name, where one follows the kin."""
    named = None
    if place.view.text.startswith(" ", at):
        named = read_name(place.view, at + 1, most=1)
    if named is not None:
        return owner_of(named.value), named.end
    return owner_of(KIN_KEYS[match["kin"]]), at


def _kin_place(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my sister in Oslo`, `mum's in Leeds`."""
    owner, at = _owner(match, place, match.end())
    joint = re.compile(
        r"(?:'s| is)?(?: still| back| over| up| down| out| who lives| living| who's| currently| now)* in "
    ).match(place.view.text, at)
    found = read_place(place.view, joint.end(), must_know=True) if joint is not None else None
    if found is not None:
        yield Told(f"{owner}.location", found.value, found.start, found.end)


def _kin_job(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my uncle the plumber`, `my dad, a retired cop`."""
    owner, at = _owner(match, place, match.end())
    job = re.compile(
        rf",? \(?(?:who's |who is |is |'s )?(?:a|an|the) (?P<job>{JOBS})(?=$|[,.)!?]| (?:and|in|at|who|so|but|from))"
    ).match(place.view.text, at)
    if job is not None:
        yield Told(f"{owner}.job", place.view.verbatim(*job.span("job")), *job.span("job"))


def _kin_age(match: re.Match[str], _place: Place) -> Iterator[Told]:
    """`my 5 year old son`, `my daughter (7)`."""
    yield Told(f"{owner_of(KIN_KEYS[match['kin']])}.age", match["age"], *match.span("age"))


def _spouse_name(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`married to Amy`."""
    named = read_name(place.view, match.end(), most=2)
    if named is not None:
        place.talk.names.setdefault(named.value.casefold(), "partner")
        yield Told("user.partner", named.value, named.start, named.end)


def _name_then_kin(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`Amy (my wife)`, `Amy is my wife`."""
    named = read_name(place.view, match.start("name"), most=2)
    if named is None or named.end != match.end("name"):
        return
    place.talk.names.setdefault(named.value.casefold(), KIN_KEYS[match["kin"]])
    yield Told(f"user.{KIN_KEYS[match['kin']]}", named.value, named.start, named.end)


def _pet_then_kind(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`Noodle is our corgi`, `Noodle (my cat)`."""
    named = read_name(place.view, match.start("name"), is_said=True, most=1)
    if named is None or named.end != match.end("name"):
        return
    yield Told("user.pet", named.value, named.start, named.end)


def _sign_off(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`Sam here`."""
    named = read_name(place.view, match.start("name"), most=2)
    if named is not None and named.end == match.end("name"):
        yield Told("user.name", named.value, named.start, named.end)


def _living(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I fix boilers for a living`."""
    span = match.span("value")
    if match["value"].strip() not in ("work", "do", "live", "am", "have"):
        yield Told("user.job", place.view.verbatim(*span).strip(), *span)


def _firm_years(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`20 years at Boeing`."""
    if re.compile(r"\b(?:quit|left|after|lost|worked|spent|previous|former)\b").search(
        place.view.text, place.clause.start, match.start()
    ):
        return
    firm = read_firm(place.view, match.end())
    if firm is not None:
        yield Told("user.employer", firm.value, firm.start, firm.end)


def _flight(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my flight to SFO on the 12th`."""
    where = read_place(place.view, match.end()) or read_firm(place.view, match.end())
    if where is None:
        return
    when = re.compile(
        r"[a-z' ]{0,20}? (?:on |from |in )?(?P<value>(?:the )?\d{1,2}(?:st|nd|rd|th)(?: of [a-z]+)?|\d{1,2}(?:-| to )\d{1,2} [a-z]{3,9}|[a-z]{3,9} \d{1,2}(?:st|nd|rd|th)?|(?:next |this )?"
        + _DAY
        + r")\b"
    ).match(place.view.text, where.end)
    if when is not None:
        name = place.view.text[where.start : where.end].partition(",")[0].replace(" ", "_")
        yield Told(f"trip.{name}.dates", place.view.verbatim(*when.span("value")), *when.span("value"))


def _mileage(match: re.Match[str], place: Place) -> Iterator[Told]:
    yield Told(f"thing.{match['noun']}.mileage", place.view.verbatim(*match.span("value")), *match.span("value"))


_ENDED = re.compile(r"\b(?:outgrew|used to|no longer|quit|left|lost|stopped|ex|former)\b")
_KIN_NP = rf"\b(?:my|our|the) {KIN}(?![\w-])"
_BARE_KIN = r"(?:^|(?<=[,.!] )|(?<=and )|(?<=but ))(?P<kin>dad|mom|grandma|grandpa|wife|husband|hubby|partner|sister|brother|son|daughter|boyfriend|girlfriend)(?![\w-])"
_END = r"(?=$|\s*[,.!?;:)(—–-]|\s(?:and|so|but|here|since|because|for|with|now|lol|btw|which|who|i|on|in|at|as|if|my|any|what|can|then|too|by|though|myself|trying|looking)\b|[^\w\s'])"
_OPEN = r"(?:^|(?<=[,.!?:;(] )|(?<=so )|(?<=btw )|(?<=and )|(?<=but )|(?<=- )|(?<=ok )|(?<=hi )|(?<=hey ))"

PASSING: tuple[Rule, ...] = (
    # -- the speaker's people
    make_rule("kin's home", rf"{_KIN_NP}", _kin_place, 0.85, may_ask=True, may_doubt=True),
    make_rule("kin's home", rf"{_BARE_KIN}", _kin_place, 0.85),
    make_rule("kin's job", rf"{_KIN_NP}", _kin_job, 0.85, may_ask=True, may_doubt=True),
    make_rule("kin's age", rf"\b(?:my|our) (?P<age>\d{{1,2}})[ -]?(?:years?[ -]old|yo|y/o) {KIN}\b", _kin_age, 0.9, may_ask=True, may_doubt=True),
    make_rule("kin's age", rf"\b(?:my|our) {KIN} \((?P<age>\d{{1,2}})\)", _kin_age, 0.9, may_ask=True, may_doubt=True),
    make_rule("partner", r"\b(?:married to|engaged to|i'm dating|i'm seeing|been dating|living with my partner) ", _spouse_name, 0.85),
    make_rule("relation", rf"(?<![\w'])(?P<name>[a-z][a-z'-]+) ?\((?:my|our) {KIN}\)", _name_then_kin, 0.9, may_ask=True, may_doubt=True),
    make_rule("relation", rf"{_OPEN}(?P<name>[a-z][a-z-]+)(?:'s| is| was) (?:my|our) {KIN}\b", _name_then_kin, 0.85),
    make_rule("pet", rf"(?<![\w'])(?P<name>[a-z][a-z-]+) ?\((?:my|our|the) (?:[a-z]+ )?(?:{ANIMALS})\)", _pet_then_kind, 0.9, may_ask=True, may_doubt=True),
    make_rule("pet", rf"{_OPEN}(?P<name>[a-z][a-z-]+)(?:'s| is)? (?:my|our) (?:[a-z]+ )?(?:{ANIMALS})\b", _pet_then_kind, 0.85),
    make_rule("children", rf"\b(?:mom|dad|mother|father|parent|parents) (?:of|to) (?P<value>{_NUMBER})\b", _user("children"), 0.9, may_ask=True),
    make_rule("children", rf"\b(?:with |my |our )(?P<value>{_NUMBER} (?:(?:young|little|small|teenage) )?(?:kids|children|boys|girls|sons|daughters))\b", _user("children"), 0.85, may_ask=True),
    # -- the speaker
    make_rule("name", r"(?:^|(?<=! )|(?<=hi )|(?<=hey )|(?<=hello )|(?<=, ))(?P<name>[a-z][a-z'-]+(?: [a-z][a-z'-]+)?) here(?=$|[,.!:;]| again| -|—)", _sign_off, 0.85),
    make_rule("name", r"(?:^|(?<=[,.!] ))name's ", _slot("name", read_name, is_said=True), 0.9),
    make_rule("age", r"(?:^|\bi |\bi've |\bi'm |(?<=[,.!] ))(?:just turned|turned|turning) (?P<value>\d{2})(?! (?:percent|degrees|miles|km|minutes))\b", _user("age"), 0.85),
    make_rule("age", r"\b(?:at|aged) (?P<value>\d{2})(?= (?:i|i'm|my)\b|, i)", _user("age"), 0.8),
    make_rule("job", rf"{_OPEN}(?:a |an |as a |as an |fellow |speaking as an? )?(?P<value>{JOBS}) here\b", _user("job"), 0.9, may_ask=True),
    make_rule("job", rf"\b(?:i'm|i am|me) (?:only |just |still )?(?P<value>(?:a |an )?{JOBS}) by (?:day|trade|profession|training)\b", _user("job"), 0.9),
    make_rule("job", r"\bi (?P<value>[a-z]+ (?:[a-z-]+ ){0,4}?)for a living\b", _living, 0.9),
    make_rule("job", r"\bi (?:run|own|manage|co-own) (?P<value>an? (?:[a-z-]+ ){0,3}?(?:bakery|cafe|café|shop|store|restaurant|farm|salon|studio|business|bar|pub|agency|company|startup|clinic|gym|hotel|gallery|food truck|bookshop|practice))\b", _user("job"), 0.85),
    make_rule("job", r"\bi (?P<value>(?:drive|fly) (?:an? |the )?(?:bus|buses|taxi|cab|truck|trucks|lorry|lorries|train|trains|van|ambulance|planes|forklift|uber))\b", _user("job"), 0.85),
    make_rule("job", rf"\b(?:just |recently |newly )?(?:promoted to|hired as|retired as|trained as|qualified as|my job is|job as)(?: an?| the)? (?P<value>{JOBS})\b", _user("job"), 0.85),
    make_rule("employer", rf"(?<![\w'])(?:{_NUMBER}|ten|twenty|thirty) (?:years|months|weeks)(?: now)? (?:at|with) ", _firm_years, 0.85),
    make_rule("employer", r"\b(?:my (?:new )?(?:shifts?|job|gig|role|desk|team|internship|contract|placement)|new job|new gig|new role|i start|i started|i joined|we at|here at|been) (?:at|with) ", _slot("employer", read_firm), 0.85),
    make_rule("employer", r"\b(?:i|i'm) [^.?!,]{2,60}? and (?:now |currently )?(?:work|working) (?:at|for) ", _slot("employer", read_firm), 0.85),
    make_rule("employer", r"\b(?:i|i've|i just|recently|just) joined (?=[a-z])", _slot("employer", read_firm), 0.7),
    make_rule("employer", r"\bleft [a-z&' ]{2,25}? for ", _slot("employer", read_firm), 0.8),
    make_rule("study", rf"\bmy (?:phd|thesis|dissertation|degree|masters|master's|bachelor's|major|minor|course)(?: is)? (?:in|on|at) (?P<value>(?:{FIELDS})|[a-z]+(?: [a-z]+)?)\b", _user("study"), 0.85, may_ask=True),
    make_rule("study", rf"\b(?:(?:1st|2nd|3rd|4th|first|second|third|fourth|final)[- ]year|undergrad|grad student|phd student|phd|masters student|student)(?: student)?(?: of| in|,)? (?P<value>{FIELDS})\b", _user("study"), 0.85, may_ask=True),
    make_rule("study", r"\b(?:(?:1st|2nd|3rd|4th|first|second|third|fourth|final)[- ]year|undergrad|student|studying|enrolled|degree|freshman|sophomore|junior|senior) at ", _slot("study", read_firm), 0.85),
    make_rule("language", rf"\b(?P<value>{LANGUAGES})(?:'s| is) my (?:first|native|mother|second|main) (?:language|tongue)\b", _user("language"), 0.9),
    make_rule("language", rf"\b(?:native|fluent) (?P<value>{LANGUAGES}) speaker\b", _user("language"), 0.85),
    make_rule("language", rf"\b(?:we|i)(?: only| mostly)? speak (?P<value>{LANGUAGES}) at home\b", _user("language"), 0.9),
    make_rule("religion", rf"(?:\bas an? (?:practicing |devout )?|{_OPEN}|\bi'm (?:a )?|\bwe're )(?P<value>{RELIGIONS})(?= here\b|, i\b|, so\b| so\b| i\b|, we\b| family\b| myself\b)", _user("religion"), 0.85),
    make_rule("nationality", rf"{_OPEN}(?P<value>{NATIONALITIES}) (?:here|by birth)\b", _user("nationality"), 0.85),
    make_rule("relationship", r"(?:^|(?<=[,.!] )|(?<=and )|(?<=i'm )|(?<=newly )|(?<=recently ))(?:newly |recently |happily )?(?P<value>divorced|widowed|single|married)(?=,| with| and| mom| dad|$| for| since| \d)", _user("relationship"), 0.8),
    make_rule("origin", r"\b(?:born and (?:raised|bred) in|grew up in|raised in|hometown is|originally from|moved here from) ", _slot("origin", read_place), 0.85),
    # -- food and health
    make_rule("diet", rf"{_OPEN}(?:strict |lifelong )?(?P<value>vegan|vegetarian|pescatarian) here\b|\b(?:as an? (?=[a-z -]{{3,20}},? i\b)|being an? |i'm an? |we're (?!.{{0,120}}\b(?:except|apart from|aside from|but|besides|not)(?: for)? (?:me|myself)\b)|i've gone |i went |(?<!up )(?<!stopped )(?<!quit )going )(?:strict )?(?P<other>{DIETS})(?=,| i\b|$|[.!]| since| for| now)", _user("diet"), 0.85),
    make_rule("allergy", rf"\b(?:my|got an?|have an?|with an?|a) (?:severe |bad |mild |serious )?(?P<value>(?:{FOODS}|nut|peanut|shellfish|egg|pollen|dust|cat|dog|bee|latex|penicillin|milk|gluten|fish|soy)) allergy\b", _user("allergy"), 0.85, may_ask=True),
    make_rule("allergy", rf"\b(?P<value>(?:{FOODS}|pollen|latex|penicillin|cats|dogs|bees)) (?:gives me hives|makes me (?:itch|swell|break out)|makes my (?:throat|lips|face) (?:itch|swell)|sends me to (?:the )?(?:hospital|a&e|er))", _user("allergy"), 0.85),
    make_rule("avoids", rf"\b(?:no (?P<value>{FOODS}) for me|i(?:'m| am) off (?P<other>{FOODS})|i don't do (?P<third>{FOODS})|i can't (?:have|do|tolerate|digest) (?P<fourth>{FOODS}))\b", _user("avoids"), 0.85, negates=True),
    make_rule("health", rf"{_OPEN}(?:a )?(?P<value>{HEALTH}|wheelchair user|cancer survivor|(?:type (?:1|2|one|two)(?: diabetic)?)) here\b", _user("health"), 0.9, may_ask=True),
    make_rule("health", rf"\b(?:with|got|having|have|has given me|thanks to|because of|due to|since) (?:my |a |an |this |bad |severe |mild |chronic )*(?P<value>{CONDITIONS}){_END}", _user("health"), 0.8, may_ask=True),
    make_rule("health", r"\b(?:my|a) (?P<value>(?:hip|knee) replacement|pacemaker|prosthetic (?:leg|arm)|hearing aids?|cochlear implant|insulin pump|wheelchair|stoma|service dog)\b", _user("health"), 0.85, may_ask=True),
    make_rule("medication", r"\b(?:my|on|taking|take|popped my|off my|started) (?P<value>(?:[a-z]+(?:pril|tan|statin|mab|formin|xetine|aline|pram|zepam|olol|thyroxine|prazole|cillin|profen|lukast)))\b", _user("medication"), 0.85, may_ask=True),
    # -- tastes
    make_rule("likes", rf"{_OPEN}(?:huge |big |massive |total |lifelong |avid |diehard )+(?P<value>[a-z0-9]+(?: [a-z]+)?) (?:fan|nerd|lover|guy|girl|person|geek)(?= here|$|[,.!]| so| btw)", _user("likes"), 0.85),
    make_rule("likes", r"(?:^|(?<=[.!?;(] )|(?<=btw )|(?<=i'm ))(?:so |really |super |totally |completely |kinda |big )?(?:obsessed with|addicted to|hooked on|crazy about|mad about|big into|really into|in love with|can't get enough of|can't live without|can't beat|nothing beats) (?!you|this|that|it\b|these|your)", _things("likes"), 0.8, negates=True),
    make_rule("likes", r"\b(?:i'm |i am )?more of an? (?P<value>[a-z]+(?: [a-z]+)?) (?:person|guy|girl|gal|drinker|lover|fan)\b", _user("likes"), 0.8),
    make_rule("dislikes", rf"{_OPEN}(?:really |so |definitely )?not (?:a |really a |much of a |a huge |a big )?(?:fan of|into|keen on) (?!you|this|that|it\b|these|your)", _things("dislikes"), 0.8, negates=True),
    make_rule("dislikes", r"\b(?P<value>[a-z]+(?: [a-z]+)?) (?:isn't|aren't|is not|are not|is really not|just isn't) (?:really )?my (?:thing|cup of tea|jam)\b", _user("dislikes"), 0.8, negates=True),
    # -- when
    make_rule("schedule", rf"\b(?P<value>(?:i'm off|off work|i'm free|free|i finish|i finish work|i start|i start work|i work|i get up|i wake up|i clock off|my shift (?:starts|ends)|shift starts|shifts?|lunch is|school run is|pick-?up is) (?:on |at |from |after |around )?(?:{_SHORT_DAY}(?:(?:,| and|-| to|/) ?{_SHORT_DAY})*|{_TIME} ?(?:-|to|till|until) ?{_TIME}|{_TIME}(?: every day| daily| most days| on {_SHORT_DAY})))", _user("schedule"), 0.8),
    make_rule("schedule", rf"\bi (?:have|'ve got|do|go to|teach|see my) (?P<value>(?:[a-z]+ ){{1,4}}?(?:every|each|on) (?:other |second )?(?:{_DAY}s?|week|fortnight|month|(?:{_DAY}) (?:morning|evening|night|afternoon)s?)(?: at {_TIME})?)", _user("schedule"), 0.8),
    make_rule("schedule", rf"\bmy (?P<value>(?:[a-z]+ ){{1,3}}?(?:is|are) (?:every|on|each) (?:other |second )?(?:{_DAY}s?|week|month)(?: (?:mornings?|evenings?|nights?|afternoons?))?(?: at {_TIME})?)", _user("schedule"), 0.85),
    make_rule("trip", r"\b(?:my|our|a|the) (?:flight|train|trip|cruise|conference|wedding|layover) (?:to|in) ", _flight, 0.85, may_ask=True),
    make_rule("trip", r"\b(?:off to|flying (?:out )?to|landing in|heading to|driving to|going to) ", _flight, 0.8, may_ask=True, may_doubt=True),
    make_rule("thing", r"\bmy (?:[a-z0-9-]+ ){0,2}?(?P<noun>car|truck|van|bike|motorcycle|suv|jeep|honda|toyota|ford|tesla) (?:has|is at|just hit|hit|'s at) (?P<value>\d[\d,.]*k?(?: miles| km| kilometers)?)", _mileage, 0.85, may_ask=True),
    make_rule("budget", r"\b(?:(?:i|we) can (?:only )?(?:spend|afford)|max(?:imum)?(?: budget)?(?: is)?|budget(?:'s| is|:)?|no more than|looking to spend|willing to spend|spend up to)(?: about| around| max| up to| under)? (?P<value>[$€£] ?\d(?:[\d,.]*\d)?k?|\d(?:[\d,.]*\d)?k? (?:dollars|euros|pounds|quid|bucks|usd|eur|gbp)(?: (?:a|per) (?:month|week|year|day|person|night))?)", _user("budget"), 0.8, may_ask=True, negates=True, may_doubt=True),
    make_rule("goal", r"\b(?:saving up for|saving for|training for|working towards?|my new year's resolution is to|on a mission to|determined to) (?=[a-z])", _slot("goal", read_doing, most=10), 0.8, may_doubt=True),
)  # fmt: skip
