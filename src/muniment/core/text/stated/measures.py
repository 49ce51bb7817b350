"""Values that a text states: amounts, shares, dates, durations, counts; and which of them a question asks for.

"I raised the snack budget to $75" and "we are 12 guests" both have a number, and only the first says what the budget
is. So the mark of a value says of what kind it is, or what was counted: where two turns speak of the same matter and
each states a value of the same kind, the later one says how it stands.

A value that is only thought of ("should we move to 500?"), that is told as past ("it used to be 400") or that a change
leaves behind ("from 400 to 500") is not stated. Nothing here compares values, or knows who said them and when.
"""

# ruff: noqa: SIM905 - tables of words read best as lines of words

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import islice
from typing import Literal, get_args

from muniment.core.text.analyzer import MONTHS, analyze, stop_words
from muniment.core.text.patterns import lazy_pattern

__all__ = ["MEASURES", "Measure", "asked_measures", "counted", "stated", "value_marks"]

_KIN = (
    r"(?:best friend|friend|(?:half |step)?(?:brother|sister)s?|twin|parents|mother|mom|mum|father|dad|sons?|daughters?"
    r"|kids?|children|girlfriend|boyfriend|wife|husband|partner|fianc[eé]e?|spouse|boss|manager|colleague|coworker|co-worker|roommate|flatmate"
    r"|neighbou?rs?|cousin|uncle|aunt|nephew|niece|grandmother|grandfather|grandma|grandpa|grandparents|in-laws|mother-in-law|father-in-law"
    r"|teacher|coach|ex|landlord)"
)

Measure = Literal["money", "percent", "date", "clock", "duration", "size", "ratio", "version", "number"]
MEASURES: tuple[Measure, ...] = get_args(Measure)

VALUES_MAX = 16
"""So many values of a text are looked at: more is a table, and nobody's plain word."""
COUNTED_WORDS = 3
"""So many words behind a number may say what is counted: "12 conditional probability problems"."""
_BEFORE, _BEHIND = 72, 32
"""So many characters before and behind a value are looked at."""
_SENTENCE_CHARS = 200
"""So far behind a value the end of its sentence is looked for."""
_NEAR_WORDS = 4
"""So many words before a value may say that it no longer holds."""


def stated(measure: str) -> str:
    """The term of a text that states a value of this kind."""
    return f"#value-{measure}"


def counted(term: str) -> str:
    """The term of a text that states how many there are of something."""
    return f"#count-{term}"


_STATED = {measure: stated(measure) for measure in MEASURES}
_DIGIT = re.compile("[0-9]")
_CODE = lazy_pattern(r"(?s)```.*?(?:```|\Z)")
_NUMBER = lazy_pattern(r"([0-9]+(?:[.,:/-][0-9]+)*)(?:st|nd|rd|th)?(?:[ -]?(%|[^\W\d_]+))?")
"""A number, and the word behind it. It begins with what is seldom: a look behind would be taken at every sign."""
_WORD = lazy_pattern(r"[ -]?(%|[^\W\d_]+)")
_COINS = "$€£¥₩"
_AROUND = ".,;:!?…()[]\"'“”‘’*-–—"
"""The signs around a word."""
_UNIT_WORDS: dict[Measure, str] = {
    "percent": "% percent pct",
    "money": "dollar dollars euro euros bucks usd eur gbp cents yen francs rupees pesos 元 块 원",
    "clock": "am pm o",
    "duration": "ms millisecond milliseconds sec secs second seconds min mins minute minutes hr hrs hour hours day "
    "days week weeks month months year years h",
    "size": "kb mb gb tb kib mib gib bytes km mile miles meter meters metre metres m kg kilo kilos lb lbs pound pounds "
    "oz ounce ounces gram grams g liter liters litre litres l ml cm mm inch inches feet ft mmhg bpm mph kmh degrees "
    "acres",
    "date": " ".join(MONTHS),
}
_UNITS: dict[str, Measure] = {unit: measure for measure, units in _UNIT_WORDS.items() for unit in units.split()}
"""What stands behind a number → the kind of value that it makes it."""
_NUMBERS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty thirty forty fifty third fourth fifth sixth seventh eighth ninth tenth"
)
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_WRITTEN: dict[str, Measure] = {
    **dict.fromkeys(_NUMBERS.split(), "number"),
    **dict.fromkeys(_WEEKDAYS.split(), "date"),
}
"""Values that are written as words."""
_WRITTEN_WORDS = frozenset(_WRITTEN)
_DOUBT = frozenset(
    "should would could might if whether maybe perhaps suppose imagine wish hope hoping suggest suggests suggested "
    "suggesting recommend recommends recommended proposed propose proposing offer offers offered let's lets want wants "
    "wanted planning plan plans thinking considering rather instead".split()
)
"""What stands in the clause before a value that is only thought of."""
_LEFT = frozenset(
    "from than not isn't wasn't longer used old previous former original initial earlier previously formerly "
    "originally initially replacing unlike".split()
)
"""What stands right before a value that holds no more."""
_LEFT_BEHIND = frozenset("before previously formerly originally initially ago".split())
"""What stands right behind one."""
_THEIRS = lazy_pattern(
    rf"\b(?:he|she|his|her)\b|\b(?:my|our) (?:[a-z]+ )?{_KIN}"
    r"(?:'s?\b|,? (?:(?!(?:i|we|you|they|and|to|for|in)\b)[a-z]+ )?(?:had|got|set|[a-z]+(?:ed|s))\b)"
)
"""What makes the value of a clause somebody else's."""
_OPENING = frozenset("Is Are Was Were Am Do Does Did Has Have Had Will".split())
"""How a question begins that is answered by yes or no."""
_SENTENCE_END = lazy_pattern(r"[.!?](?=\s|$)|\n")
_TELLING = _DOUBT | _LEFT | frozenset("he she his her my our".split())
"""A value without one of these before it, and behind none that is asked for, is stated."""
_JOINTS = lazy_pattern(r"[,;.?!] |\n| - |—| (?:but|so|now|since) | (?:considering|and) (?=(?:i|we|my|our|the)\b)")
"""Where the clause of a value may begin."""


def value_marks(text: str, words: Sequence[str] | None = None) -> list[str]:
    """The terms of the values that a text states, each once. `words` are its words in lower case, where known."""
    if words is None:
        words = [word.strip(_AROUND) for word in text.casefold().split()]
    has_written = not _WRITTEN_WORDS.isdisjoint(words)
    if not has_written and _DIGIT.search(text) is None:
        return []
    if "```" in text:
        text = _CODE.sub("\n", text)
    found: dict[str, None] = {}
    for match in islice(_NUMBER.finditer(text), VALUES_MAX):
        measure = _measure(text, match)
        if measure is not None:
            _add(found, text, match.start(), match.end(1), measure, match[2])
    if has_written:
        for start, word in islice(_written(text, words), VALUES_MAX):
            follows = _WORD.match(text, start + len(word))
            is_long = follows is not None and _UNITS.get(follows[1].casefold()) == "duration"
            measure = "duration" if is_long else _WRITTEN[word]
            _add(found, text, start, start + len(word), measure, None if follows is None else follows[1])
    return list(found)


def _written(text: str, words: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Where values stand that are written as words."""
    folded = text.lower()
    for word in sorted(_WRITTEN_WORDS.intersection(words)):
        at = folded.find(word)
        while at >= 0:
            end = at + len(word)
            if not folded[max(0, at - 1) : at].isalnum() and not folded[end : end + 1].isalnum():
                yield at, word
            at = folded.find(word, end)


def _measure(text: str, match: re.Match[str]) -> Measure | None:
    """Of what kind a number is; None for a year, for the number of an item of a list and for part of a name."""
    number, follows = match.groups()
    start = match.start()
    before = text[start - 1] if start else "\n"
    if before in _COINS:
        return "money"
    if before.isalpha():
        return "version" if before in "vV" else None  # `h264`
    if follows is not None and (unit := _UNITS.get(follows.casefold())) is not None:
        return unit
    ahead = text[max(0, start - 14) : start].split()
    word = ahead[-1].strip(".,(").casefold() if ahead else ""
    if word in MONTHS:
        return "date"
    if not number.isdecimal() and (measure := _measure_by_signs(number)) is not None:
        return measure
    if word in ("version", "release"):
        return "version"
    is_item = before == "\n" and text[match.end(1) : match.end(1) + 2] in (". ", ") ")
    return None if is_item or (len(number) == 4 and number.startswith(("19", "20"))) else "number"


def _measure_by_signs(number: str) -> Measure | None:
    """Of what kind a number is by the signs between its digits."""
    if ":" in number:
        return "clock"
    for sign in "/-":
        if sign in number:
            return "date" if number.count(sign) == 2 else "ratio"
    return "version" if number.count(".") > 1 else None


def _add(found: dict[str, None], text: str, start: int, end: int, measure: Measure, follows: str | None) -> None:
    """Add the marks of a value, if it is stated. A mark that was found before tells no more."""
    marks = [_STATED[measure]]
    if follows is not None and measure in ("number", "duration"):
        marks += _counted(text, end)
    fresh = [mark for mark in marks if mark not in found]
    if fresh and _is_stated(text, start, end):
        found.update(dict.fromkeys(fresh))


def _counted(text: str, at: int) -> list[str]:
    """The marks of the words behind a number, up to one that joins or a sign."""
    words = []
    small = stop_words("english")
    for _ in range(COUNTED_WORDS):
        word = _WORD.match(text, at)
        if word is None or (folded := word[1].casefold()) in small:
            break
        words.append(folded)
        at = word.end()
    return [counted(term) for term in analyze(" ".join(words))] if words else []


def _is_stated(text: str, start: int, end: int) -> bool:
    """Neither only thought of, nor past, nor left behind, nor somebody else's."""
    behind = text[end : end + _BEHIND].partition(",")[0].lower().split()[:3]
    if any(word.rstrip(".;!?") in _LEFT_BEHIND for word in behind):
        return False
    spelled = text[start - _BEFORE : start].partition(" ")[2] if start > _BEFORE else text[:start]  # whole words
    if not _OPENING.isdisjoint(spelled.split()) and _is_asked(spelled, text, end):
        return False
    before = spelled.lower().replace("’", "'")
    if _TELLING.isdisjoint(before.split()):
        return True
    clause = before[max([joint.end() for joint in _JOINTS.finditer(before)], default=0) :]
    words = clause.split()
    near = words[-_NEAR_WORDS:]
    left = [place for place, word in enumerate(near) if word in _LEFT]
    is_left = bool(left) and (near[left[-1]] == "used" or "to" not in near[left[-1] + 1 :])
    return not is_left and _DOUBT.isdisjoint(words) and _THEIRS.search(clause) is None


def _is_asked(before: str, text: str, end: int) -> bool:
    """Is a value in a question that is answered by yes or no? "What shall I do with $75?" takes it for given."""
    opened = [found.end() for found in _SENTENCE_END.finditer(before)]
    words = before[opened[-1] if opened else 0 :].split(maxsplit=1)
    closed = _SENTENCE_END.search(text, end, end + _SENTENCE_CHARS)
    return bool(words) and words[0] in _OPENING and (closed is None or closed[0] == "?")


# -- what a question asks for -------------------------------------------------------------------------

_ASKED_WORDS: dict[Measure, str] = {
    "money": "budget cost costs price salary rent fee fees spend spent pay paid wage allowance amount expenses",
    "percent": "percentage percent rate accuracy coverage share discount probability",
    "date": "when deadline date day due scheduled",
    "clock": "when time",
    "duration": "long duration time",
    "size": "weight height distance far size memory",
    "ratio": "score record ratio reading",
    "version": "version release",
    "number": "many number count target goal quota limit level setting capacity",
}
_ASKED = [(measure, frozenset(words.split())) for measure, words in _ASKED_WORDS.items()]


def asked_measures(words: Set[str]) -> frozenset[Measure]:
    """The kinds of values that a question with these words asks for; none where it does not say."""
    return frozenset([measure for measure, cues in _ASKED if not cues.isdisjoint(words)])
