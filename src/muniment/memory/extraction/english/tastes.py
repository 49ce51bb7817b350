"""Rules on what somebody likes, dislikes, prefers and does regularly."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.english.reading import ADVERB, BE, HAVE, group, make_rule, things, told
from muniment.memory.extraction.english.slots import Slot, is_pastime, read_doing, read_things
from muniment.memory.extraction.english.words import DOINGS, GAMES, INSTRUMENTS, NO_FAVORITES, PASTIME, PASTIMES, VAGUE
from muniment.memory.extraction.grammar import USER, Place, Rule, Told

__all__ = ["PASSING", "RULES"]

_VAGUE_DOINGS = re.compile(
    r"(?:say|admit|be|see|hear|think|break|know|believe|ask|inform|imagine|do (?:it|that|this)|get (?:your|some|a|the)|have (?:a|some|your)|make sure|start|learn more|add|include|try|call it|point|mention|use (?:this|that|the|it)|keep (?:it|things|this)|go (?:with|for|ahead))\b"
)


def _likes(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I love Einaudi too` answers somebody and may be politeness: with `too`, only what is well known counts."""
    found = read_things(place.view, match.end())
    for each in found:
        tail = place.view.text[each.end : each.end + 4]
        if tail == " too" and not (is_pastime(each.value.lower()) or found[0].value.split()[0].lower().endswith("ing")):
            return
    yield from (told(place, "likes", each.value, each) for each in found)


_ASKS = re.compile(r"(?:the|a|an|this|that|these|those|any|some|more|other|both|your)\b")


def _interest(match: re.Match[str], place: Place) -> Iterator[Told]:
    """An interest, not what is asked for just now: `interested in the early days of Airbnb`."""
    is_strong = re.search(r"always|really|very|deeply|been", match[0]) is not None
    is_asking = "learning" in match[0] or "hearing" in match[0] or _ASKS.match(place.view.text, match.end()) is not None
    if is_asking and not is_strong:
        return
    for found in read_things(place.view, match.end()):
        first = place.view.text[found.start : found.end].split()[0]
        if (
            first.endswith("ing")
            and not is_pastime(place.view.text[found.start : found.end])
            and first not in ("learning",)
        ):
            return
        yield told(place, "likes", found.value, found)


_NO_MORE = (" anymore", " any more", " any longer")


def _dislikes(match: re.Match[str], place: Place) -> Iterator[Told]:
    """What one does not like; what one likes no more is another thing."""
    for found in read_things(place.view, match.end()):
        if not place.view.text.startswith(_NO_MORE, found.end):
            yield told(place, "dislikes", found.value, found)


def _likes_to(match: re.Match[str], place: Place) -> Iterator[Told]:
    if _VAGUE_DOINGS.match(place.view.text, match.end()):
        return
    found = read_doing(place.view, match.end(), 10)
    if found is not None and not any(
        word in ("you", "your", "this", "that", "it") for word in found.value.lower().split()
    ):
        yield told(place, "likes", found.value, found)


def _favorite(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`My favorite shop is closing` says what it does, not which it is."""
    noun = (match["noun"] or "thing").strip()
    if noun.split()[-1] in ("part", "one", "ones", "thing about", "bit", "moment", "memory"):
        return
    for found in read_things(place.view, match.end()):
        first = found.value.split()[0].lower()
        is_doing = first.endswith("ing") and noun.split()[-1] not in DOINGS
        if (
            is_doing
            or first in NO_FAVORITES
            or (first.endswith("ed") and not place.view.is_capital(found.start))
            or first in VAGUE
        ):
            return
        yield told(place, f"favorite.{noun.replace(' ', '_').rstrip('s') or 'thing'}", found.value, found)


def _is_favorite(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`skiing is my favorite sport`."""
    span = match.span("value")
    words = match["value"].split()
    if words[0] in VAGUE or words[0] in ("there", "here", "such", "what", "which") or len(words) > 6:
        return
    noun = (match.groupdict().get("noun") or "thing").strip()
    attribute = "likes" if match.groupdict().get("noun") is None else f"favorite.{noun.replace(' ', '_')}"
    yield told(place, attribute, place.view.verbatim(*span), span)


_DEGREES = frozenset(
    (
        "huge",
        "big",
        "massive",
        "real",
        "total",
        "good",
        "great",
        "true",
        "people",
        "nice",
        "bad",
        "morning",
        "night",
        "different",
        "private",
        "busy",
        "kind",
        "new",
        "happy",
        "strong",
        "young",
        "old",
        "creative",
        "sensitive",
        "introverted",
    )
)


def _fan(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I'm a big soccer fan`."""
    span = match.span("value")
    if not _DEGREES.intersection(match["value"].split()):
        yield told(place, "likes", place.view.verbatim(*span), span)


def _plays(match: re.Match[str], place: Place) -> Iterator[Told]:
    span = match.span("value")
    yield told(place, "likes", place.view.verbatim(*span), span)


_WORDS = WordList(__package__, "clauses.txt")
_NO_HABIT = frozenset(_WORDS.words("not lasting"))
_PAST = frozenset(_WORDS.words("past"))


_NO_TRIES = frozenset(
    (
        "be",
        "get",
        "find",
        "understand",
        "figure",
        "make",
        "see",
        "avoid",
        "do",
        "think",
        "remember",
        "explain",
        "not",
        "solve",
        "decide",
        "keep",
        "focus",
        "stay",
        "limit",
    )
)


def _tries(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I try to cook at home`: a routine, as the present tense tells it."""
    if match["verb"] in _NO_TRIES:
        return
    yield from _habit_any(match, place)


def _habit_any(match: re.Match[str], place: Place) -> Iterator[Told]:
    found = read_doing(place.view, match.start("verb"), 12)
    if (
        found is not None
        and not _MEDICAL.search(found.value.lower())
        and not _PASSES.intersection(found.value.lower().split())
    ):
        yield told(place, "habit", found.value, found)


def _found_fine(match: re.Match[str], place: Place) -> Iterator[Told]:
    span = match.span("value")
    words = match["value"].split()
    if words[0] in VAGUE or {"you", "your", "this", "that", "it", "these"}.intersection(words):
        return
    yield told(place, "likes", place.view.verbatim(span[0], span[1] - 1), (span[0], span[1] - 1))


def _helps(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`Painting helps me relax`."""
    span = match.span("value")
    words = match["value"].split()
    if {
        "sounds",
        "looks",
        "can",
        "must",
        "be",
        "it",
        "has",
        "is",
        "was",
        "you",
        "your",
        "this",
        "that",
        "me",
        "seems",
    }.intersection(words):
        return
    if words[0].endswith("ing") or match["value"] in PASTIMES or words[-1] in PASTIMES:
        yield Told("user.likes", place.view.verbatim(*span), *span)


def _habit(match: re.Match[str], place: Place) -> Iterator[Told]:
    if match["verb"] in _NO_HABIT or match["verb"] in _PAST:
        return
    found = read_doing(place.view, match.start("verb"), 14)
    if found is not None and _is_routine(found):
        yield told(place, "habit", found.value, found)


_PASSES = frozenset(
    ("it", "this", "that", "you", "your", "today", "tomorrow", "tonight", "yesterday", "them", "these", "those")
)


_MEDICAL = re.compile(
    r"\b(?:supplements?|statin|vitamins?|multivitamin|medications?|pills?|mg|dose|metformin|insulin|probiotics)\b"
)


def _is_routine(found: Slot) -> bool:
    """More than a word, and not about something at hand."""
    words = found.value.lower().split()
    return len(words) > 1 and not _PASSES.intersection(words)


_OFTEN = (
    r"(?:every (?:single )?(?:day|morning|evening|night|week|weekend|month|year|summer|winter|other day|few (?:days|weeks|months)|monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?|"
    r"each (?:day|morning|evening|night|week|weekend|month|year)|daily|weekly|monthly|twice a (?:day|week|month|year)|once a (?:day|week|month|year)|"
    r"(?:two|three|four|five|six|\d) (?:times|days|nights) (?:a|per) (?:week|month|day|year)|on (?:weekends|weekdays|(?:mon|tues|wednes|thurs|fri|satur|sun)days|(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday) (?:mornings|evenings|nights|afternoons))|"
    r"most (?:days|mornings|evenings|nights|weekends)|in my (?:free|spare) time|before bed|after work|all the time|regularly)"
)
_VERB = r"(?P<verb>(?!am\b|'m\b|is\b|was\b|will\b|would\b|can\b|could\b|should\b|have to\b|need\b|want\b|think\b|feel\b|get tired\b|got\b|had\b|know\b|wonder\b|hear\b|see\b|said\b|been\b)[a-z]+)"
_EVERY = re.compile(rf"\b{_OFTEN}\b")


def _regular(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I run every morning at 6`: what is done, with how often."""
    text = place.view.text
    found = read_doing(place.view, match.start("verb"), 16)
    if found is None or _EVERY.search(text, found.start, found.end) is None:
        return
    first = text[found.start : found.end].split()[0]
    if first in _NO_HABIT or first.endswith("ed") or first in _PAST or not _is_routine(found):
        return
    is_theirs = place.subject.owner != USER
    if (is_theirs and not first.endswith("s")) or _MEDICAL.search(found.value.lower()):
        return
    yield told(place, "habit", found.value, found)


def _passing_things(match: re.Match[str], place: Place) -> Iterator[Told]:
    for found in read_things(place.view, match.end()):
        yield Told("user.likes", found.value, found.start, found.end)


def _passing_favorite(match: re.Match[str], place: Place) -> Iterator[Told]:
    noun = (match["noun"] or "thing").split()[-1]
    if noun in ("part", "bit", "moment", "memory", "one", "ones"):
        return
    for found in read_things(place.view, match.end()):
        first = found.value.split()[0].lower().strip('"')
        is_doing = first.endswith("ing") and noun not in DOINGS
        is_state = first.endswith("ed") and not place.view.is_capital(found.start)
        if is_doing or is_state or first in NO_FAVORITES or first in VAGUE:
            return
        yield Told(f"user.favorite.{noun}", found.value, found.start, found.end)


_THINGY = r"(?P<value>(?:[a-z][\w'-]*)(?: [\w'&-]+){0,5}?)"

RULES: tuple[Rule, ...] = (
    make_rule("favorite", r"\s?(?:all[- ]time |absolute |personal |very |current |other |new |second )?favorites?(?: (?P<noun>(?!is\b|are\b|its\b|has\b|would\b)[a-z]+(?: (?!is\b|are\b|was\b|has\b|to\b|of\b|in\b)[a-z]+)?))?(?: (?:of all time|to [a-z ]{3,20}?|in [a-z ]{3,20}?))?(?: is| are|\s?:| has to be| would be| would have to be| was always| has always been) (?:definitely |probably |always |called |the )?", _favorite, 0.9, is_owned=True, may_doubt=True, leaves_out="opening"),
    make_rule("dislikes", rf"{ADVERB} (?:don't|do not|can't|cannot|doesn't|does not|never|didn't)(?: really| particularly| even)? (?:like|enjoy|stand|care for|handle|liked) (?!to\b)", _dislikes, 0.85, negates=True, leaves_out="opening"),
    make_rule("dislikes", r"\s?(?:can't|cannot|don't|do not) (?:stand|like) ", _dislikes, 0.85, negates=True, leaves_out="opening"),
    make_rule("dislikes", rf"{ADVERB}\s?(?:hate|hates|dislike|dislikes|despise|detest|loathe) (?!to\b)", _dislikes, 0.85, leaves_out="opening"),
    make_rule("dislikes", rf"{BE} not(?: really| too much| much| exactly)?(?: of)? (?:a |an )?(?:big |huge )?(?:fan of|into|keen on|fond of) ", _dislikes, 0.85, negates=True),
    make_rule("dislikes", rf"{BE}{ADVERB} (?:scared|afraid|terrified) of ", _dislikes, 0.8),
    make_rule("likes", rf"{HAVE}{ADVERB}\s?(?:like|likes|love|loves|enjoy|enjoys|adore|adores|cherish|treasure|appreciate) (?:to )(?=[a-z])", _likes_to, 0.85, leaves_out="opening"),
    make_rule("likes", rf"{HAVE}(?: been| always| do| does)?{ADVERB}\s?(?:do )?(?:like|likes|love|loves|enjoy|enjoys|adore|adores|cherish|treasure|loving|enjoying|fancy|dig) (?!to\b)", _likes, 0.85, leaves_out="opening"),
    make_rule("likes", rf"{BE}{ADVERB} (?:loving|enjoying) (?!to\b)", _likes, 0.85),
    make_rule("likes", rf"(?:{BE}|{HAVE} been|{HAVE} become|{HAVE} gotten| got| was)?{ADVERB}\s?(?:a )?(?:huge |big |massive |avid |die-hard |diehard |lifelong |real |total |long-time |great )*(?:fan of|lover of|into|fond of|keen on|obsessed with|passionate about|addicted to|crazy about|enthusiastic about|hooked on|fascinated by|fascinated with|captivated by|a sucker for) (?!to\b|you|your)", things("likes"), 0.85, leaves_out="opening"),
    make_rule("likes", rf"(?:{BE}|{HAVE} been|{HAVE} become|{HAVE} gotten){ADVERB}\s?(?:always )?(?:very |really |quite |deeply |also |particularly |mostly )*(?:interested in|curious about|drawn to)(?: learning(?: more)? about| hearing(?: more)? about| reading about)? (?!it\b|to\b|you|your|\")", _interest, 0.8),
    make_rule("likes", rf"(?:{BE})?{ADVERB}\s?(?:all )?(?:an? )?(?:bit of an? )?(?:huge |big |massive |avid |die-hard |diehard |lifelong |real |total |keen |amateur |passionate |serious )*(?P<value>[a-z]+(?: [a-z]+)?) (?:fans?|lovers?|enthusiasts?|buffs?|nerds?|geeks?|addicts?|aficionados?|junkies?|freaks?)(?=$|[,.!;)]| (?:and|but|so|too|myself|here|when|since|because|as|who|which))", _fan, 0.85, leaves_out="terse"),
    make_rule("likes", rf"{ADVERB}\s?(?:prefer|prefers|favor) (?!to\b)", things("likes"), 0.85, leaves_out="opening"),
    make_rule("likes", rf"{ADVERB}\s?(?:prefer|prefers) to (?=[a-z])", _likes_to, 0.85),
    make_rule("likes", rf"(?:{HAVE} been|{HAVE}|{BE})?{ADVERB}\s?(?:play|plays|playing|played) (?:the |some |a lot of |a bit of )?(?P<value>(?:{INSTRUMENTS}|{GAMES})(?:(?:,| and|, and) (?:the )?(?:{INSTRUMENTS}|{GAMES}))*)\b(?! (?:yesterday|today|last))", _plays, 0.85, leaves_out="opening"),
    make_rule("skill", rf"{BE}{ADVERB} (?:best|great|good|decent|skilled|experienced) (?:at|in) (?!it\b|that\b|this\b|you)", things("skill"), 0.8),
    make_rule("likes", rf"{ADVERB}\s?(?:collect|collects) (?!my\b|the\b)", things("likes"), 0.85),
    make_rule("likes", r" (?:main |other |biggest |current )?(?:hobby|hobbies|interests|interest|passion|passions|pastime|pastimes|pleasures?|guilty pleasure)(?:'s| is| are| include| includes|\s?:| lies? in) ", things("likes"), 0.9, is_owned=True),
    make_rule("likes", rf"{HAVE}(?:'ve)?(?: always)?(?: have| had| got) (?:a |an )?(?:strong |real |deep |huge |great |soft |big |growing )?(?:passion|love|interest|weakness|thing|fascination|obsession|soft spot)(?: for| in| with) ", things("likes"), 0.85),
    make_rule("likes", rf"(?:{BE}|{HAVE} been|{HAVE}|{HAVE} just)?{ADVERB}\s?(?:started|start|taken up|picked up|took up|gotten into|got into|getting into|begun|doing|learning|practicing|been doing|getting back into|trying out|been getting into|been)(?: doing| playing| learning| practicing| to learn| how to play)?(?: to| the| some| a bit of)? (?P<value>{PASTIME})(?! (?:class|lesson|course|party|game|competition)s?)(?=$|[,.!;)?]| (?:and|lately|recently|for|with|since|but|so|as|again|to|in|on|at|last|this|regularly|farther|longer|it's|every|which|because|a lot|more)\b)", _plays, 0.85, leaves_out="opening"),
    make_rule("habit", rf"{HAVE}{ADVERB}\s?(?:started|begun) (?P<verb>going|volunteering|attending|taking|coaching|mentoring|training|meditating)(?= )", _habit_any, 0.8, leaves_out="opening"),
    make_rule("habit", rf"(?:{HAVE} been|been){ADVERB}\s?(?:busy )?(?P<verb>volunteering|mentoring|coaching|tutoring|fostering)(?= )", _habit_any, 0.85, leaves_out="opening"),
    make_rule("habit", rf"{HAVE}{ADVERB}\s?(?:joined) (?:a|an|my|the|this) (?P<value>(?:[\w-]+ ){{0,4}}?(?:group|club|program|programme|class|team|gym|choir|band|orchestra|league|community|society|studio|circle|church)(?: for [a-z]+(?: [a-z]+)?)?)\b", group("habit"), 0.85, leaves_out="opening"),
    make_rule("habit", r"(?: also| primarily| mostly| mainly| casually)? (?P<verb>mentor|volunteer|coach|tutor|ski|snowboard|surf|hike|swim|cycle|jog|meditate|journal|garden|bake|paint|draw|knit|crochet|sew|climb|dance|sing|box|row|fish|camp|foster|blog|vlog|stretch|work out(?! (?:what|how|if|why|whether|the|a|that))|lift|kayak)(?=$|[,.!;)]| (?!for you|you))", _habit_any, 0.8, of="user"),
    make_rule("habit", r" (?:try to|always try to|make sure to|also make sure to|make sure i|make it a point to|tend to|like to always|have to always) (?P<verb>[a-z]+)(?= )", _tries, 0.8, of="user"),
    make_rule("likes", r" (?:loved|adored|really loved|absolutely loved) (?P<value>\"[^\"]{2,60}\")", group("likes"), 0.8),
    make_rule("likes", r" find (?P<value>(?:[\w'-]+ ){1,8}?)(?:to be )?(?:really |very |quite |so |super |absolutely |pretty |incredibly )?(?:relaxing|fascinating|great|amazing|therapeutic|interesting|refreshing|calming|enjoyable|fun|intriguing|exciting|inspiring|helps me)(?=$|[,.!;)]| (?:and|too|as|because|unwind|relax))", _found_fine, 0.8, of="user"),
    make_rule("habit", rf" (?:always|usually|often|typically|normally|generally|regularly|frequently|mostly|tend to|make sure to|make it a point to|primarily|occasionally|sometimes) {_VERB}", _habit, 0.85, of="user"),
    make_rule("habit", r"(?:'ve| have) been (?P<verb>[a-z]+ing)(?=[a-z ,']{3,60}?(?:for (?:about |over |almost |nearly |the (?:past|last) )?(?:\d+|a few|several|two|three|four|five|six|ten|many|a couple of|some) (?:years|months)|since (?:\d{4}|i was|high school|college|childhood|january|february|march|april|may|june|july|august|september|october|november|december)|every|daily|regularly|weekly|twice a|once a|times a))", _habit, 0.8, of="user"),
    make_rule("habit", rf"{ADVERB}\s?{_VERB}(?= )", _regular, 0.85, leaves_out="opening"),
)  # fmt: skip

PASSING: tuple[Rule, ...] = (
    make_rule("favorite", rf"(?:^|(?<=, )|(?<=! )|(?<=\band )){_THINGY}(?:'s| is| are|, it's|, they're|, that's| it's)(?: also| definitely| still| probably| always| easily)? (?:my|one of my)(?: all[- ]time| absolute| personal)? favorites? (?P<noun>[a-z]+)(?=$|[,.!;)]| (?:and|but|so|ever|of|to|too|in))", _is_favorite, 0.85),
    make_rule("likes", rf"(?:^|(?<=, )|(?<=! )|(?<=\band )){_THINGY}(?:'s| is| are|, it's| has been)(?: also| definitely| still| always| such| mostly| really)? (?:my|one of my|a|a real) (?:(?:biggest|main|new|favorite|true|great|real|big) )?(?:favorites?|passions?|hobby|hobbies|thing|jam|go-to|love|guilty pleasure|happy place|passion of mine|hobby of mine|favorite of mine|(?:huge |big )?part of my life)(?=$|[,.!;)]| (?:and|but|so|of mine|too|for))", _is_favorite, 0.8),
    make_rule("likes", r"(?:^|, |\. |! )(?P<value>[a-z]+(?: [a-z'-]+){0,5}?)(?:'s| is| has|) ?(?:helps me|relaxes me|keeps me (?:sane|grounded|going|calm|fit|motivated)|makes me (?:happy|feel)|fascinates me|brings me (?:joy|peace)|gives me (?:a sense|joy|energy|peace)|(?:is |'s )?(?:so |very |really |super |always |definitely )*(?:therapeutic|relaxing|my passion|my escape|so much fun|always fun|my outlet)|(?:is |'s )?(?:such )?a (?:great|fun|good|perfect|wonderful|nice) (?:way|outlet) (?:to|for) (?:me |express my|relax after|unwind after|de-?stress and clear my|clear my)|great for expressing|(?:has )?caught my (?:interest|eye))", _helps, 0.8),
    make_rule("likes", r"\bmy (?:own |new |newfound |big |biggest |deep |lifelong )*(?:love|passion|interest|obsession|preference|fascination|enthusiasm|weakness|appreciation)(?: of| for| in| with) (?!you|your|this|that|it)", _passing_things, 0.85, may_doubt=True),
    make_rule("favorite", r"\b(?:one of my|some of my|another(?: one)? of my)(?: all-time| absolute| personal)? favorites?(?: (?P<noun>(?!is\b|are\b|its\b|for\b|in\b|of\b)[a-z]+(?: (?!is\b|are\b|for\b|in\b|of\b|to\b)[a-z]+)?))?(?: (?:for|in|of|to) [a-z ]{3,30}?)?(?: is| are|:| its| it's| has to be| would be)(?: definitely| probably| called| also| always)? (?:the (?:amazing |classic )?)?(?=[a-z\"])", _passing_favorite, 0.85),
    make_rule("likes", r"\b(?:another|one|a)(?: [a-z]+)?(?: favorite)? (?:one |thing |place |spot |show |book |movie )?(?:i (?:really |also |absolutely )?(?:like|love|enjoy)|for me|of mine)(?: is| are|'s)(?: called| also)? (?=[a-z\"])", _passing_things, 0.8),
)  # fmt: skip
