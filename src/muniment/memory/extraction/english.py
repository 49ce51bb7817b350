"""English: what someone says of themselves in so many words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from muniment.core.text.stated.places import is_known_place, is_no_place
from muniment.memory.extraction.dates import ENGLISH_DAY, day_of_english
from muniment.memory.extraction.english_words import (
    ADVERB,
    CAP,
    CLAUSE,
    DOINGS,
    DOUBTFUL,
    FOODS,
    INTRO,
    JOBS,
    KIN,
    KIN_KEYS,
    NAME,
    NEGATION,
    NO_ALLERGENS,
    NO_FAVOURITES,
    NO_JOBS,
    NO_NAMES,
    NO_THINGS,
    ORG,
    PLACE,
    TAIL,
    THING,
)
from muniment.memory.extraction.sentences import Sentence
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["propose_english"]


class _Rule(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    key: Callable[[re.Match[str]], str]
    value: Callable[[re.Match[str]], Any]
    confidence: float
    negates: bool = False
    """Says no by itself: the words of the rule are not held against it."""


def _rule(
    name: str,
    pattern: str,
    key: str | Callable[[re.Match[str]], str],
    value: Callable[[re.Match[str]], Any],
    confidence: float,
    *,
    negates: bool = False,
    anchored: bool = True,
) -> _Rule:
    whole = rf"(?i:{INTRO}){pattern}" if anchored else pattern
    return _Rule(name, re.compile(whole), key if callable(key) else lambda _match: key, value, confidence, negates)


def _proper_name(match: re.Match[str]) -> str | None:
    """A name or place, without words that only begin a sentence or a date."""
    words = re.split(r"[ ,-]+", match["value"])
    return None if any(word in NO_NAMES for word in words) else match["value"]


def _placed(match: re.Match[str]) -> str | None:
    """A place to live in. `I moved to Slack` names none; a `we` may be a firm, so its place must be well known."""
    value = _proper_name(match)
    if value is None or is_no_place(value):
        return None
    parts = match.groupdict()
    left = parts.get("left")
    if left is not None and is_no_place(left):
        return None
    is_ours = (parts.get("who") or "I").lower() == "we"
    return value if not is_ours or is_known_place(value) else None


def _allergen(match: re.Match[str]) -> str | None:
    words = match["value"].split()
    return None if any(word in NO_ALLERGENS for word in words) else _thing(match)


def _work(match: re.Match[str]) -> str | None:
    return None if match["value"].split()[-1] in NO_JOBS else match["value"]


def _relative(match: re.Match[str]) -> str | None:
    """`I gave my sister Harry Potter books` does not say what she is called."""
    is_given = _GIVING.search(match.string[: match.start()]) is not None
    return None if is_given else _proper_name(match)


def _thing(match: re.Match[str]) -> str | None:
    value: str = match["value"]
    words = value.casefold().replace("’", "'").split()
    is_vague = len(words[-1]) < 2 or len(value) < 3 or any(char.isdigit() for char in value)
    return None if is_vague or any(word in NO_THINGS for word in words) else value


def _favourite(match: re.Match[str]) -> str | None:
    """`My favourite shop is closing` says what it does, not which it is."""
    first = match["value"].split()[0].lower()
    is_doing = first.endswith("ing") and match["noun"].split()[-1] not in DOINGS
    is_state = first in NO_FAVOURITES or first.endswith("ed")
    return None if is_doing or is_state else _thing(match)


def _lower(match: re.Match[str]) -> str:
    return match["value"].lower()


def _day(match: re.Match[str]) -> str | None:
    return day_of_english(match["value"])


def _kin_key(match: re.Match[str]) -> str:
    kin = match["kin"].lower()
    return f"user.{KIN_KEYS.get(kin, kin)}"


_GIVING = re.compile(
    r"\b(?:g[ai]ve|giving|buy|bought|buying|sen[dt]|sending|show(?:ed|ing)?|g[eo]t|getting|read|teach|taught|teaching|"
    r"ma[dk]e|making|lent|lend|offer(?:ed)?|br(?:ing|ought)|cook(?:ed)?|hand(?:ed)?|call(?:ed|s)?|name[ds]?|feed|fed|book(?:ed)?|order(?:ed)?|"
    r"play(?:ed)?|pa(?:y|id)|sing|sang|ow(?:e|ed)|pass(?:ed)?|serve[ds]?) $"
)
_WHO = r"(?P<who>I|[Ww]e)"
_FROM = rf"(?:from (?P<left>{CAP}(?: {CAP}){{0,3}}) )?"

_RULES = (
    _rule("name", rf"(?i:my (?:full |first |real )?name(?:['’]s| is)) {NAME}$", "user.name", _proper_name, 0.95),
    _rule("name", rf"(?i:I(?:['’]m| am) (?:called|named)) {NAME}$", "user.name", _proper_name, 0.9),
    _rule(
        "lives in", rf"{_WHO} (?:currently |now |still |actually )?live in {PLACE}{TAIL}", "user.location", _placed, 0.9
    ),
    _rule(
        "lives in",
        rf"I(?:['’]m| am) (?:currently |now |still )?(?:living|based|residing) in {PLACE}{TAIL}",
        "user.location",
        _placed,
        0.9,
    ),
    _rule(
        "moved to",
        rf"{_WHO}(?:['’]ve| have)? ?(?:just |recently |finally )?(?:moved|relocated) (?:back )?{_FROM}to {PLACE}"
        rf"(?: from (?P<came>{CAP}))?{TAIL}",
        "user.location",
        _placed,
        0.9,
    ),
    _rule(
        "comes from",
        rf"(?:I(?:['’]m| am) originally from|I grew up in|I come from) {PLACE}{TAIL}",
        "user.origin",
        _placed,
        0.85,
    ),
    _rule("born in", rf"I was born (?:and raised )?in {PLACE}{TAIL}", "user.birthplace", _placed, 0.9),
    _rule(
        "birthday",
        rf"(?i:my birthday(?:['’]s| is)(?: on)?|I was born on) (?P<value>(?i:{ENGLISH_DAY}))(?=$|[,!])",
        "user.birthday",
        _day,
        0.95,
    ),
    _rule("likes", rf"I {ADVERB}(?:like|love|enjoy|adore) {THING}$", "user.likes", _thing, 0.85),
    _rule("dislikes", rf"I {ADVERB}(?:hate|dislike|despise|detest) {THING}$", "user.dislikes", _thing, 0.85),
    _rule(
        "dislikes",
        rf"I {ADVERB}(?:don['’]t|do not|can['’]t|cannot) (?:really )?(?:like|enjoy|stand) {THING}$",
        "user.dislikes",
        _thing,
        0.85,
        negates=True,
    ),
    _rule(
        "favourite",
        rf"(?i:my (?:all-time )?favou?rite) (?P<noun>[a-z]+(?: [a-z]+)?) (?:is|are) {THING}$",
        lambda match: "user.favorite." + match["noun"].replace(" ", "_"),
        _favourite,
        0.9,
    ),
    _rule(
        "diet",
        r"I(?:['’]m| am) (?:a |an )?(?:strict |lifelong |committed )?(?P<value>vegetarian|vegan|pescatarian)"
        r"(?=$|[,!]| (?:now$|since|and|too$))",
        "user.diet",
        _lower,
        0.95,
    ),
    _rule(
        "diet",
        r"I(?:['’]ve| have) been (?:a |an )?(?:strict )?(?P<value>vegetarian|vegan|pescatarian)"
        r"(?=$|[,!]| (?:since|for) )",
        "user.diet",
        _lower,
        0.9,
    ),
    _rule(
        "diet",
        r"I(?:['’]ve| have)? ?(?:just |recently |finally )?(?:became|become|went|gone|turned) (?:a )?"
        r"(?P<value>vegetarian|vegan|pescatarian)(?=$|[,!]| (?:last|this|in|two|three|recently|because) ?)",
        "user.diet",
        _lower,
        0.9,
    ),
    _rule(
        "diet", r"I (?:only eat|eat only|keep|eat) (?P<value>halal|kosher)(?: food| meat)?$", "user.diet", _lower, 0.9
    ),
    _rule(
        "avoids",
        rf"I (?:don['’]t|do not) eat (?:any )?(?P<value>{FOODS})(?: any ?more)?$",
        "user.avoids",
        _lower,
        0.9,
        negates=True,
    ),
    _rule(
        "allergy",
        r"I(?:['’]m| am) (?:also |severely |very |deathly |mildly |highly )?allergic to "
        r"(?P<value>[a-z]+(?: (?!too$|as )[a-z]+)?)"
        r"(?:,? (?:too|as well))?$",
        "user.allergy",
        _allergen,
        0.95,
    ),
    _rule(
        "allergy",
        r"I (?:also )?have (?:a|an) (?:severe |bad |mild |serious )?(?P<value>[a-z]+(?: [a-z]+)?) allergy(?: too)?$",
        "user.allergy",
        _allergen,
        0.95,
    ),
    _rule(
        "job",
        r"I work as (?:a|an) (?P<value>[a-z][a-zA-Z-]+(?: [a-z-]+){0,3}?)(?=$|[,!]| (?:at|for|in|with|on) )",
        "user.job",
        _work,
        0.9,
    ),
    _rule(
        "job",
        rf"I(?:['’]m| am) (?:a|an) (?P<value>{JOBS})"
        r"(?=$|[,!]| (?:at (?!heart)|for (?=[A-Z])(?!Halloween)|in (?=[A-Z])|with |from |working ))",
        "user.job",
        lambda match: match["value"],
        0.85,
    ),
    _rule(
        "employer",
        rf"I (?:currently |now )?work (?:at|for) {ORG}(?=$|[,!]| now$| (?:as|in|now|since|on|and) )",
        "user.employer",
        _proper_name,
        0.85,
    ),
    _rule(
        "employer",
        rf"I(?:['’]ve| have)? ?(?:just |recently |finally )?(?:got|started|landed|have) (?:a|my) new job "
        rf"(?:at|with) {ORG}"
        r"(?=$|[,!]| (?:as|in|now|last|this|and) )",
        "user.employer",
        _proper_name,
        0.85,
    ),
    _rule(
        "relation",
        rf"(?i:my (?:older |younger |big |little |twin |elder )?{KIN}(?:['’]s name is| is called| is named)) {NAME}$",
        _kin_key,
        _proper_name,
        0.9,
    ),
    _rule(
        "relation",
        rf"\b(?:[Mm]y|our) (?:older |younger |big |little |twin |elder )?{KIN},? {NAME}(?=$|[,!]|['’]s\b| [a-z])",
        _kin_key,
        _relative,
        0.85,
        anchored=False,
    ),
)
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")


def propose_english(sentence: Sentence, ts: str) -> Iterator[Proposal]:
    """What an English sentence says of its speaker."""
    if sentence.is_question or sentence.is_quoting or DOUBTFUL.search(sentence.text):
        return
    clauses = CLAUSE.split(sentence.text)
    for clause in clauses:
        denies = NEGATION.search(clause) is not None
        for rule in _RULES:
            match = rule.pattern.match(clause) if rule.name != "relation" else rule.pattern.search(clause)
            if match is None or denies != rule.negates:
                continue
            if rule.name in ("lives in", "moved to") and _is_old(clause, ts):
                continue
            value = rule.value(match)
            if value is not None:
                yield Proposal(
                    key=rule.key(match),
                    value=value,
                    quote=clause.strip(),
                    confidence=rule.confidence,
                    why=f"english: {rule.name}",
                )
                if rule.name != "relation":
                    break


def _is_old(clause: str, ts: str) -> bool:
    """A move of years ago says little about where someone lives."""
    return any(int(year) < int(ts[:4]) - 1 for year in _YEAR.findall(clause))
