"""Rules of two parts in any order: a word of a class (an illness, a food, a place) and words that make it the speaker's.

`penicillin gives me a rash`, `as someone with adhd lists help`, `gym 5x a week`. Where a sentence speaks of others or to the
reader, nothing is read: these rules know no subject.
"""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.memory.extraction.english.classes import noun_class
from muniment.memory.extraction.english.reading import make_rule
from muniment.memory.extraction.english.slots import read_doing, read_firm, read_place, shown
from muniment.memory.extraction.english.words import (
    CONDITIONS,
    DIETS,
    FOODS,
    JOBS,
    LANGUAGES,
    NATIONALITIES,
    PASTIME,
    RELIGIONS,
)
from muniment.memory.extraction.grammar import Place, Reader, Rule, Told

__all__ = ["PASSING"]

_OTHERS = re.compile(
    r"\b(?:he|she|they|he's|she's|they're|his|her|him|hers|their|them|you|your|you're|u|people|someone else|somebody|patients|anyone|everyone|my (?:son|daughter|wife|husband|mom|mum|mother|dad|father|"
    r"sister|brother|friend|boss|partner|girlfriend|boyfriend|kid|kids|child|grandma|grandpa|nan|uncle|aunt|cousin|niece|nephew|mate|roommate|neighbor|teacher|cat|dog|ex|other half|colleague|dads?|sis|bro)|"
    r"if|would|wish|used to|what is|what's|what are|symptoms of|causes of|ago|was|were|had|never had|not|recipe|recipes|book|movie|film|song|story|character|hypothetical\w*|translate|no longer|anymore|quit|stopped|left)\b|n't\b"
)
"""Words of others, of what is asked and of what is over."""


_NO = re.compile(r"\b(?:not|never|no longer|outgrew|used to|no|ex)\b|n't\b")


def _cued(attribute: str, cue: str, *, is_name: bool = False, over: bool = True, denied: bool = False) -> Reader:
    """A group of the pattern, where the clause (or the sentence) holds the cue and speaks of nobody else."""

    wanted = re.compile(cue)

    def read(match: re.Match[str], place: Place) -> Iterator[Told]:
        text = place.view.text
        begin, stop = place.clause.start, max(place.clause.end, match.end())
        if wanted.search(text, begin, stop) is None or (over and _OTHERS.search(text)):
            return
        if not denied and _NO.search(text, begin, stop):
            return
        span = match.span("value")
        value = shown(place.view, *span) if is_name else place.view.verbatim(*span)
        yield Told(f"user.{attribute}", value.strip(), *span)

    return read


def _place(match: re.Match[str], place: Place) -> Iterator[Told]:
    if _OTHERS.search(place.view.text, 0, match.start()):
        return
    found = read_place(
        place.view,
        match.end(),
        must_know=not place.view.is_capital(match.end()) if match.end() < len(place.view.text) else True,
    )
    if found is not None:
        yield Told("user.location", found.value, found.start, found.end)


def _firm(match: re.Match[str], place: Place) -> Iterator[Told]:
    found = read_firm(place.view, match.end())
    if found is not None and not _OTHERS.search(place.view.text, 0, match.start()):
        yield Told("user.employer", found.value, found.start, found.end)


def _routine(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`parkrun every saturday`, `gym 5x a week`: a fragment with how often, of nobody else."""
    match.span("value")
    words = match["value"].split()
    if _OTHERS.search(place.view.text) or words[0] in _NO_ROUTINE or len(words) > 7:
        return
    yield Told("user.habit", place.view.verbatim(*match.span()).strip(), *match.span())


_NO_ROUTINE = frozenset(
    [
        "the",
        "it",
        "this",
        "that",
        "there",
        "now",
        "my",
        "is",
        "are",
        "happens",
        "closed",
        "open",
        "new",
        "available",
        "a",
        "an",
        "i",
        "i'm",
        "what",
        "how",
        "when",
        "where",
        "who",
        "which",
        "can",
        "do",
        "does",
        "why",
        "and",
        "or",
        "but",
        "so",
        "to",
        "in",
        "on",
        "at",
        "for",
        "with",
        "from",
        "of",
        "takes",
        "same",
        "once",
    ]
)


def _aim(match: re.Match[str], place: Place) -> Iterator[Told]:
    found = read_doing(place.view, match.end(), 10)
    if found is not None and not re.search(
        r"\b(?:you|this|that|it|help|today|tonight|tomorrow)\b", found.value.lower()
    ):
        yield Told("user.goal", found.value, found.start, found.end)


def _pet(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my hens`, `our tortoise Sheldon`: an animal by its class."""
    word = match["value"]
    if noun_class(word) == "animal" and word not in _NO_ANIMALS:
        span = match.span("value")
        yield Told("user.pet", place.view.verbatim(*span), *span)


_NO_ANIMALS = frozenset(
    [
        "baby",
        "babies",
        "boy",
        "boys",
        "girl",
        "girls",
        "kid",
        "kids",
        "mouse",
        "bug",
        "bugs",
        "chicken",
        "turkey",
        "fish",
        "female",
        "male",
        "young",
        "adult",
        "people",
        "pack",
        "fly",
    ]
)


def _thing(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`my kindle died`: something that breaks, and is nobody and no part of a body."""
    word = match["value"].split()[-1]
    if noun_class(word) in (
        "body",
        "kin",
        "person",
        "worker",
        "animal",
        "food",
        "beverage",
        "period",
        "group",
        "cognition",
        "communication",
        "attribute",
        "state",
        "act",
        "event",
        "feeling",
        "plant",
        "location",
        "illness",
    ):
        return
    if word in _NO_THINGS:
        return
    span = match.span("value")
    yield Told("user.owns", place.view.verbatim(*span), *span)


_NO_THINGS = frozenset(
    [
        "code",
        "script",
        "program",
        "app",
        "query",
        "test",
        "tests",
        "build",
        "internet",
        "connection",
        "wifi",
        "computer's",
        "heart",
        "hope",
        "plan",
        "patience",
        "order",
        "account",
        "request",
        "function",
        "class",
        "site",
        "page",
        "deploy",
        "server",
        "brain",
        "head",
        "phone",
        "laptop",
    ]
)

_DOSES = r"(?:\d{1,2}|two|three|four|five|six) ?(?:x|times|days|nights|hours|mornings) (?:a|per|each|every) (?:day|week|month)|\d{1,2}x/(?:week|wk)"
_OFTEN = rf"(?:(?:every|each) (?:single |other )?(?:day|morning|evening|night|week|weekend|month|year|summer|winter|(?:mon|tues|wednes|thurs|fri|satur|sun)day)s?|{_DOSES}|most (?:days|mornings|evenings|nights|weekends)|daily|on (?:mon|tues|wednes|thurs|fri|satur|sun)days)"
_ME = r"\b(?:i|i'm|i've|me|my|mine|myself|we|our|here|us)\b"
_MONEY = r"(?P<value>(?:[$€£] ?\d[\d,.]*k?|\d[\d,.]*k(?=\s|$|[,.!])|\d[\d,.]* ?(?:dollars|euros|pounds|quid|bucks|usd|eur|gbp)))"
_ALLERGENS = rf"(?P<value>{FOODS}|pollen|latex|penicillin|cats?|dogs?|bees?|bee stings|dust|grass|nickel|aspirin|ibuprofen|amoxicillin|mold|mould|wasps?)"

PASSING: tuple[Rule, ...] = (
    make_rule("health", rf"\b(?:my|i have|i've got|i get|i suffer from|diagnosed with|going through|living with|thanks to my|ever since my|got diagnosed with) (?:[a-z]+ ){{0,2}}?(?P<value>{CONDITIONS}|menopause|dementia|cancer|stroke)(?![\w-])(?! (?:education|research|association|awareness|seminar|charity|clinic|center|centre|drugs?|treatment|society|foundation|prevention|book|recipe|diet)s?\b)", _cued("health", r"."), 0.8),
    make_rule("health", rf"\bas (?:someone|a person|somebody) (?:with|who has) (?P<value>{CONDITIONS})(?![\w-])", _cued("health", r"."), 0.85, may_ask=True, may_doubt=True),
    make_rule("health", r"\bmy (?P<value>(?:bad |dodgy |dicky |gammy |sore |bum )(?:back|knee|knees|hip|shoulder|ankle|heart|hand|wrist|leg|foot|eye))\b", _cued("health", r"."), 0.85, may_ask=True),
    make_rule("health", r"\bmy (?P<value>(?:cholesterol|blood pressure|blood sugar|bp|iron|thyroid)(?:'s| is| levels? (?:is|are)) (?:a bit |too |very |quite |really )?(?:high|low|borderline|up|underactive|overactive))\b", _cued("health", r"."), 0.85, may_doubt=True),
    make_rule("health", r"(?:^|(?<=[,.!] )|\bi'm )(?P<value>pregnant|\d{1,2} weeks pregnant)(?= with|,|$| and)", _cued("health", r"."), 0.85),
    make_rule("allergy", rf"\b{_ALLERGENS}\b", _cued("allergy", r"\b(?:hives|a rash|rashes|swell(?:s|ing)?|epipen|epi-pen|anaphyla\w+|throat (?:close|itch|swell)\w*|itchy|break out|allerg\w+|kills? me|would kill me|send(?:s)? me to|can't breathe|makes me sneeze)\b", over=False), 0.8),
    make_rule("avoids", rf"\b(?P<value>{FOODS})\b", _cued("avoids", r"\b(?:i'm off|been off|gave up|given up|cutting out|cut out|can't (?:have|eat|digest|tolerate|stomach|drink)|off-limits|doesn't agree with me|doesn't sit well|upsets my stomach|not allowed|i avoid|i stay away|i skip)\b", over=False, denied=True), 0.8, negates=True),
    make_rule("diet", rf"(?:^|(?<=[,.!] ))(?P<value>{DIETS}|plant[- ]based)(?: (?:eater|diet))?(?= (?:here|for \d|for (?:a few|many|several|two|three|five|ten)|since|household|btw|by the way|now)\b|$|,)(?! (?:recipe|option|restaurant))", _cued("diet", r"."), 0.85),
    make_rule("religion", rf"(?:^|(?<=[,.!] ))(?:lapsed |practicing |devout |proud )?(?P<value>{RELIGIONS}) here\b", _cued("religion", r"."), 0.85),
    make_rule("age", r"(?:^|(?<=[,.!] ))at (?P<value>[2-9]\d)(?=,? (?:i|my|i'm)\b)", _cued("age", r"."), 0.85),
    make_rule("age", r"\bi'll be (?P<value>[1-9]\d)(?= (?:in|on|next|this)\b)(?! (?:minutes|percent|min))", _cued("age", r".", over=False), 0.85, may_doubt=True),
    make_rule("habit", rf"(?:^|(?<=[,.!;] ))(?P<value>[a-z][a-z&'-]*(?: [a-z&'-]+){{0,5}}?) {_OFTEN}(?![\w-])(?: at \d{{1,2}}(?::\d{{2}})? ?(?:am|pm)?)?(?=$|[,.!;)])", _routine, 0.8),
    make_rule("habit", rf"\b(?:i|we) (?:do|have|play|go to|go|hit|attend) (?P<value>(?:{PASTIME})(?: (?:before|after) (?:work|bed|breakfast|school|dinner|lunch)|{_OFTEN}))\b", _cued("habit", r"."), 0.85),
    make_rule("habit", r"\bi (?P<value>(?:brew|bake|grow|roast|knit|sew|make|build|restore|collect|keep|raise|breed|ferment|pickle|can|write|fix) (?:my|our) own [a-z]+(?: [a-z]+)?)(?=$|[,.!]| (?:and|at|in|every)\b)", _cued("habit", r"."), 0.85),
    make_rule("likes", rf"(?<![\w-])(?P<value>{PASTIME})(?![\w-])", _cued("likes", r"\b(?:is how i|my guy|my jam|my therapy|keeps me sane|my happy place|is life|since (?:19|20)\d\d|i'm obsessed|obsessed with|i'm mad about|i'm nuts about|been playing|i never miss|can't get enough|my whole personality|is my life|is everything to me)\b"), 0.8),
    make_rule("likes", r"\bi never miss an? (?P<value>[a-z0-9]+(?: [a-z0-9]+)?) (?:game|match|episode|race|concert|show)\b", _cued("likes", r".", denied=True), 0.85, negates=True),
    make_rule("likes", r"(?:^|(?<=[,.!] ))(?:so |totally |absolutely |completely )?(?:obsessed|mad|crazy|nuts) (?:with|about|w/) (?P<value>[a-z0-9][\w'-]*(?: [\w'-]+){0,2}?)(?=$|[,.!]| (?:rn|right now|lately|atm|at the moment|and|these)\b)", _cued("likes", r".", over=False), 0.85),
    make_rule("dislikes", r"(?:^|(?<=[,.!] ))(?P<value>[a-z]+(?: [a-z]+)?) (?:freaks? me out|creeps? me out|drains? me|gives? me the (?:creeps|ick)|makes? me (?:gag|sick|want to scream)|drives? me (?:mad|nuts|crazy|insane)|terrif(?:y|ies) me|scares? me|(?:is|are) not for me|(?:is|are) not my thing)\b", _cued("dislikes", r".", over=False, denied=True), 0.8, negates=True),
    make_rule("job", rf"\b(?:perks of being|joys of being|life as|life of|being|speaking as) an? (?P<value>{JOBS})\b", _cued("job", r"."), 0.8),
    make_rule("job", rf"(?:^|(?<=[,.!] ))(?P<value>{JOBS}) life\b", _cued("job", r"."), 0.8),
    make_rule("job", r"\bmy (?P<value>(?:barber ?shop|bakery|cafe|café|salon|garage|practice|studio|shop|store|restaurant|farm|pub|clinic|business|startup|agency|food truck|gym|nursery|workshop|stall|gallery))\b(?= (?:opens|closes|is|has|sells|in|on|makes|needs)\b)", _cued("job", r".", over=False), 0.8),
    make_rule("employer", r"\b(?:(?:my|an) (?:apprenticeship|internship|placement|contract) (?:at|with)|apprenticeship at|seconded to|contracting for|freelancing for|temping at) ", _firm, 0.85),
    make_rule("home", r"\b(?:since (?:i |we )?mov(?:ing|ed) to|us (?=[a-z]+ (?:folk|lot|people))|winters? here in|summers? here in|my (?:landlord|street|neighbou?rhood|council|local pub|gym|commute|garden|school|office|neighbou?rs) in|our (?:house|place|flat|street|garden|school|landlord) in|the kids' school in|the kids school in|now living in) ", _place, 0.8),
    make_rule("origin", r"\b(?:my|back in my) (?:hometown|home town|home city|village) of ", lambda match, place: (each._replace(key="user.origin") for each in _place(match, place)), 0.85),
    make_rule("nationality", rf"(?:^|(?<=[,.!] )|\bi'm )(?P<value>{NATIONALITIES})[- ](?:born|by birth|native)\b", _cued("nationality", r".", is_name=True), 0.85),
    make_rule("nationality", rf"\bmy passport(?:'s| is) (?P<value>{NATIONALITIES})\b", _cued("nationality", r".", is_name=True), 0.85),
    make_rule("language", rf"\b(?:we|i) speak (?P<value>{LANGUAGES}|[a-z]+) at home\b", _cued("language", r".", is_name=True), 0.85),
    make_rule("pet", r"\b(?:my|our) (?:(?:old|little|rescue|pet|new|two|three|four|\d) ){0,2}(?P<value>[a-z]+)(?= (?:is|are|was|has|have|keeps?|stopped|won't|ate|died|needs?|loves?|hates?|escaped|got|sleeps?|barks?|[a-z]+s)\b|$|[,.!?])", _pet, 0.8, may_ask=True, may_doubt=True, negates=True),
    make_rule("owns", r"\bmy (?:(?:trusty|old|new|beloved|poor|little|second-hand|work) )*(?P<value>[\w+-]+(?: [\w+-]+)?) (?:died|broke|broke down|failed its mot|won't start|won't turn on|won't charge|got stolen|needs a service|needs new [a-z]+|keeps breaking|conked out|packed up|packed in)\b", _thing, 0.8, negates=True, may_doubt=True),
    make_rule("owns", r"(?:^|(?<=[,.!] ))(?P<value>[a-z0-9]+(?: [a-z0-9]+)?) owner here\b", _cued("owns", r"."), 0.85),
    make_rule("goal", r"\b(?:one day i'll|someday i'll|working towards|working toward|the plan is to|my plan is to|my aim is to|determined to|i've set my heart on|saving for|saving up for) (?:my |a |an )?", _aim, 0.8, may_doubt=True),
    make_rule("goal", r"(?:^|(?<=[,.!] )|\bi'm |\bi )(?:hoping|hope|aiming|aim|training|need|want|trying) to (?=[^?!.]{3,60}(?:this year|next year|by (?:summer|christmas|spring|autumn|20\d\d|the end)))", _aim, 0.8, may_doubt=True),
    make_rule("budget", rf"(?<![\w$€£]){_MONEY}", _cued("budget", r"\b(?:(?:i|we) can (?:only |just )?(?:stretch to|spend|afford|pay)|skint|tops|at most|i've got about|we've got about|set aside|to play with|is my (?:limit|max)|my (?:limit|max))\b", over=False), 0.8, may_ask=True, may_doubt=True),
    make_rule("schedule", r"\bi (?:clock in|clock on|start(?: work)?|finish(?: work)?|knock off|get up|wake up) (?:at|around) (?P<value>\d{1,2}(?::\d{2})? ?(?:am|pm)|\d{1,2}(?::\d{2})?)(?=$|[,.!]| (?:every|most|on|and|so|daily)\b)", _cued("schedule", r"."), 0.8),
    make_rule("schedule", r"(?:^|(?<=[,.!] ))(?P<value>(?:mon|tues|wednes|thurs|fri|satur|sun)days? (?:is|are|=) (?:[a-z]+ ){0,2}(?:choir|gym|yoga|football|band|practice|rehearsal|training|class|club|date|night|day|therapy|band practice|school|swimming|dance|pilates|lessons))\b", _cued("schedule", r"."), 0.8),
    make_rule("study", r"\b(?:my|a|finishing my|writing my) (?:dissertation|thesis|phd|essay for uni) (?:is )?(?:on|about) (?P<value>[a-z]+(?: [a-z]+)?)(?=$|[,.!])", _cued("study", r"."), 0.85),
    make_rule("study", r"\b(?:(?:first|second|third|fourth|final|1st|2nd|3rd|4th)[- ]year )(?P<value>[a-z]+(?: [a-z]+)?) (?:student|undergrad|major)\b", _cued("study", r"."), 0.85),
    make_rule("study", r"(?:^|(?<=[,.!] ))(?:i'm |been |currently )?learning (?P<value>(?:the )?[a-z]+)(?= (?:so|for|because|at|on|to|these)\b|$|[,.!])", _cued("study", r"."), 0.8),
)  # fmt: skip
