"""Rules on what somebody likes, dislikes, prefers and does regularly."""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.memory.extraction.english.reading import ADVERB, BE, HAVE, group, make_rule, things, told
from muniment.memory.extraction.english.slots import is_pastime, read_doing, read_things
from muniment.memory.extraction.english.words import DOINGS, GAMES, INSTRUMENTS, NO_FAVORITES, VAGUE
from muniment.memory.extraction.grammar import Place, Rule, Told

__all__ = ["PASSING", "RULES"]

_VAGUE_DOINGS = re.compile(
    r"(?:say|admit|be|see|hear|think|break|know|believe|ask|inform|imagine|do (?:it|that|this)|get (?:your|some|a|the)|have (?:a|some|your)|make sure|start|learn more|add|include|try|call it|point|mention|use (?:this|that|the|it)|keep (?:it|things|this)|go (?:with|for|ahead))\b"
)


def _likes(match: re.Match[str], place: Place) -> Iterator[Told]:
    """`I love Einaudi too` answers somebody and may be politeness: with `too`, only what is well known counts."""
    found = read_things(place.view, match.end())
    for each in found:
        tail = place.view.text[each.end : each.end + 4]
        if tail == " too" and not (is_pastime(each.value.lower()) or each.value.split()[0].lower().endswith("ing")):
            return
    yield from (told(place, "likes", each.value, each) for each in found)


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
    noun = match["noun"].strip()
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


def _plays(match: re.Match[str], place: Place) -> Iterator[Told]:
    span = match.span("value")
    yield told(place, "likes", place.view.verbatim(*span), span)


_HABIT_NO = re.compile(
    r"(?:am|is|are|was|be|have|had|feel|think|thought|wonder|get|know|forget|wanted|want|been|find|need|say|mean|use the|say|see|look|wish|hope|struggle|end|start|love|like|enjoy|prefer|hate|appreciate|believe|seem|remember|regret|assume|agree|fall)\b"
)


def _habit(match: re.Match[str], place: Place) -> Iterator[Told]:
    if _HABIT_NO.match(place.view.text, match.start("verb")):
        return
    found = read_doing(place.view, match.start("verb"), 14)
    if found is not None and len(found.value.split()) > 1:
        yield told(place, "habit", found.value, found)


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
    if (
        _HABIT_NO.match(first)
        or first.endswith("ed")
        or first in ("went", "did", "had", "ate", "took", "made", "saw", "got", "ran", "met", "wrote", "read it")
    ):
        return
    yield told(place, "habit", found.value, found)


_THINGY = r"(?P<value>(?:[a-z][\w'-]*)(?: [\w'&-]+){0,5}?)"

RULES: tuple[Rule, ...] = (
    make_rule("favorite", r" (?:all[- ]time |absolute |personal |very |current )?favorites? (?P<noun>[a-z]+(?: (?!is\b|are\b|was\b|has\b|to\b|of\b|in\b)[a-z]+)?)(?: (?:of all time|to [a-z ]{3,20}?|in [a-z ]{3,20}?))?(?: is| are|'s|\s?:| has to be| would be| would have to be| was always| has always been) (?:definitely |probably |always |called |the )?", _favorite, 0.9, is_owned=True, may_doubt=True),
    make_rule("dislikes", rf"{ADVERB} (?:don't|do not|can't|cannot|doesn't|does not|never|didn't)(?: really| particularly| even)? (?:like|enjoy|stand|care for|handle|liked) (?!to\b)", things("dislikes"), 0.85, negates=True, may_leave_out=True),
    make_rule("dislikes", r"\s?(?:can't|cannot|don't|do not) (?:stand|like) ", things("dislikes"), 0.85, negates=True, may_leave_out=True),
    make_rule("dislikes", rf"{ADVERB}\s?(?:hate|hates|dislike|dislikes|despise|detest|loathe) (?!to\b)", things("dislikes"), 0.85, may_leave_out=True),
    make_rule("dislikes", rf"{BE} not(?: really| too much| much| exactly)?(?: of)? (?:a |an )?(?:big |huge )?(?:fan of|into|keen on|fond of) ", things("dislikes"), 0.85, negates=True),
    make_rule("dislikes", rf"{BE}{ADVERB} (?:scared|afraid|terrified) of ", things("dislikes"), 0.8),
    make_rule("likes", rf"{HAVE}{ADVERB}\s?(?:like|likes|love|loves|enjoy|enjoys|adore|adores|cherish|treasure|appreciate) (?:to )(?=[a-z])", _likes_to, 0.85, may_leave_out=True),
    make_rule("likes", rf"{HAVE}(?: been| always| do)?{ADVERB}\s?(?:like|likes|love|loves|enjoy|enjoys|adore|adores|cherish|loving|enjoying|loved|fancy|dig) (?!to\b)(?:listening to |learning about |hearing about |watching |reading about )?", _likes, 0.85, may_leave_out=True),
    make_rule("likes", rf"(?:{BE}|{HAVE} been|{HAVE} become|{HAVE} gotten| got| was)?{ADVERB}\s?(?:a )?(?:huge |big |massive |avid |die-hard |diehard |lifelong |real |total |long-time |great )*(?:fan of|lover of|into|fond of|keen on|obsessed with|passionate about|addicted to|crazy about|enthusiastic about|hooked on|fascinated by|fascinated with|a sucker for|interested in|curious about)(?: learning(?: more)?(?: about)?| hearing about| reading about| exploring| knowing)? (?!to\b|you|your)", things("likes"), 0.85, may_leave_out=True),
    make_rule("likes", rf"{BE}{ADVERB} an? (?:huge |big |massive |avid |die-hard |diehard |lifelong |real |total |keen |amateur |passionate |serious )*(?P<value>[a-z]+(?: [a-z]+)?) (?:fan|lover|enthusiast|buff|nerd|geek|addict|aficionado|junkie|person)(?=$|[,.!;)]| (?:and|but|so|too|myself|here))", group("likes"), 0.85),
    make_rule("likes", rf"{ADVERB}\s?(?:prefer|prefers|favor) (?!to\b)", things("likes"), 0.85, may_leave_out=True),
    make_rule("likes", rf"{ADVERB}\s?(?:prefer|prefers) to (?=[a-z])", _likes_to, 0.85),
    make_rule("likes", rf"(?:{HAVE} been|{HAVE}|{BE})?{ADVERB}\s?(?:play|plays|playing|played) (?:the |some |a lot of |a bit of )?(?P<value>(?:{INSTRUMENTS}|{GAMES})(?:(?:,| and|, and) (?:the )?(?:{INSTRUMENTS}|{GAMES}))*)\b(?! (?:yesterday|today|last))", _plays, 0.85, may_leave_out=True),
    make_rule("likes", rf"{ADVERB}\s?(?:collect|collects) (?!my\b|the\b)", things("likes"), 0.85),
    make_rule("likes", r" (?:main |other |biggest |current )?(?:hobby|hobbies|interests|interest|passion|passions|pastime|pastimes|pleasures?|guilty pleasure)(?:'s| is| are| include| includes|\s?:| lies? in) ", things("likes"), 0.9, is_owned=True),
    make_rule("likes", rf"{HAVE}(?:'ve)?(?: always)?(?: have| had| got) (?:a |an )?(?:strong |real |deep |huge |great |soft |big |growing )?(?:passion|love|interest|weakness|thing|fascination|obsession|soft spot)(?: for| in| with) ", things("likes"), 0.85),
    make_rule("likes", rf"(?:{HAVE} (?:just )?(?:started|taken up|picked up|took up|gotten into|got into|getting into|begun|tried to get into)|{BE} getting (?:back )?into|{BE} learning(?: how)?(?: to play| to)?) (?:doing |playing |learning |to learn |learning to )?(?=[a-z])", things("likes"), 0.8),
    make_rule("habit", rf" (?:always|usually|often|typically|normally|generally|regularly|frequently|mostly|tend to|make sure to|make it a point to|primarily|occasionally|sometimes) {_VERB}", _habit, 0.85),
    make_rule("habit", rf"(?:'ve| have) been {_VERB}(?=[a-z ,']{{3,60}}?(?:for (?:about |over |almost |nearly |the (?:past|last) )?(?:\d+|a few|several|two|three|four|five|six|ten|many|a couple of|some) (?:years|months|weeks)|since (?:\d{{4}}|i was|high school|college|childhood|january|february|march|april|may|june|july|august|september|october|november|december)|every|daily|regularly|lately|recently|weekly))", _habit, 0.8),
    make_rule("habit", rf"{ADVERB}\s?{_VERB}(?= )", _regular, 0.85, may_leave_out=True),
)  # fmt: skip

PASSING: tuple[Rule, ...] = (
    make_rule("favorite", rf"(?<![\w']){_THINGY}(?:'s| is| are|, it's|, they're|, that's| it's)(?: also| definitely| still| probably| always| easily)? (?:my|one of my)(?: all[- ]time| absolute| personal)? favorites? (?P<noun>[a-z]+)(?=$|[,.!;)]| (?:and|but|so|ever|of|to|too|in))", _is_favorite, 0.85),
    make_rule("likes", rf"(?<![\w']){_THINGY}(?:'s| is| are|, it's| has been)(?: also| definitely| still| always| such)? (?:my|one of my|a|a real) (?:(?:biggest|main|new|favorite|true|great|real|big) )?(?:favorites?|passions?|hobby|hobbies|thing|jam|go-to|love|guilty pleasure|happy place|passion of mine|hobby of mine|favorite of mine)(?=$|[,.!;)]| (?:and|but|so|of mine|too|for))", _is_favorite, 0.8),
)  # fmt: skip
