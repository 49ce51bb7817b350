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
from typing import Literal, get_args

from muniment.core.text.analyzer import MONTHS, analyze, stop_words

__all__ = ["MEASURES", "Measure", "asked_measures", "counted", "stated", "value_marks"]

Measure = Literal["money", "percent", "date", "clock", "duration", "size", "ratio", "version", "number"]
MEASURES: tuple[Measure, ...] = get_args(Measure)

VALUES_MAX = 16
"""So many values of a text are looked at: more is a table, and nobody's plain word."""
COUNTED_WORDS = 3
"""So many words behind a number may say what is counted: "12 conditional probability problems"."""
_BEFORE, _BEHIND = 72, 32
"""So many characters before and behind a value are looked at."""
_NEAR_WORDS = 4
"""So many words before a value may say that it no longer holds."""


def stated(measure: str) -> str:
    """The term of a text that states a value of this kind."""
    return f"#value-{measure}"


def counted(term: str) -> str:
    """The term of a text that states how many there are of something."""
    return f"#count-{term}"


_STATED = {measure: stated(measure) for measure in MEASURES}
_CODE = re.compile(r"(?s)```.*?(?:```|\Z)")
_NUMBER = re.compile(r"[0-9]+(?:[.,:/-][0-9]+)*")
_WORD = re.compile(r"[ -]?(%|[^\W\d_]+)")
_COINS = "$€£¥₩"
_UNITS: dict[str, Measure] = {
    unit: measure
    for measure, units in (
        ("percent", "% percent pct"),
        ("money", "dollar dollars euro euros bucks usd eur gbp cents yen francs rupees pesos 元 块 원"),
        ("clock", "am pm o"),
        ("duration", "ms millisecond milliseconds sec secs second seconds min mins minute minutes hr hrs hour hours day"),
        ("duration", "days week weeks month months year years h"),
        ("size", "kb mb gb tb kib mib gib bytes km mile miles meter meters metre metres m kg kilo kilos lb lbs pound"),
        ("size", "pounds oz ounce ounces gram grams g liter liters litre litres l ml cm mm inch inches feet ft mmhg bpm"),
        ("size", "mph kmh degrees acres"),
    )
    for unit in units.split()
} | dict.fromkeys(MONTHS, "date")
_NUMBERS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty thirty forty fifty"
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
    "suggesting recommend recommends recommended proposed propose proposing let's lets want wants wanted planning "
    "plan plans thinking considering rather instead".split()
)
"""What stands in the clause before a value that is only thought of."""
_LEFT = frozenset(
    "from than not isn't wasn't longer used old previous former original initial earlier previously formerly originally "
    "initially replacing unlike".split()
)
"""What stands right before a value that holds no more."""
_LEFT_BEHIND = frozenset("before previously formerly originally initially ago".split())
"""What stands right behind one."""
_UNSTATED = _DOUBT | _LEFT
_JOINTS = (", ", "; ", ". ", "? ", "! ", "\n", " - ", "—", " but ", " so ", " now ", " since ", " considering i", " and i")
"""Where the clause of a value may begin."""


def value_marks(text: str, words: Sequence[str]) -> list[str]:
    """The terms of the values that a text states, each once. `words` are its words in lower case."""
    has_written = not _WRITTEN_WORDS.isdisjoint(words)
    if not has_written and _DIGIT.search(text) is None:
        return []
    written = _WRITTEN_WORDS.intersection(words) if has_written else frozenset[str]()
    if "```" in text:
        text = _CODE.sub("\n", text)
    found: dict[str, None] = {}
    looked_at = 0
    for start, end, measure in _values(text, written):
        looked_at += 1
        if looked_at > VALUES_MAX:
            break
        marks = [_STATED[measure]]
        if measure in ("number", "duration"):
            marks += _counted(text, end)
        fresh = [mark for mark in marks if mark not in found]
        if fresh and _is_stated(text, start, end):
            found.update(dict.fromkeys(fresh))
    return list(found)


_DIGIT = re.compile("[0-9]")


def _values(text: str, written: Set[str]) -> Iterator[tuple[int, int, Measure]]:
    """Where the values of a text begin and end, and of what kind each is."""
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        before = text[start - 1] if start else "\n"
        if before.isalpha() and before not in "vV":
            continue  # `utf8`, `h264`
        if before == "\n" and text[end : end + 2] in (". ", ") "):
            continue  # the number of an item of a list
        measure = _measure(text, start, end, match[0], before)
        if measure is not None:
            yield start, end, measure
    if written:
        folded = text.lower()
        for word in sorted(written):
            at = folded.find(word)
            while at >= 0:
                end = at + len(word)
                if not folded[at - 1 : at].isalnum() and not folded[end : end + 1].isalnum():
                    follows = _WORD.match(folded, end)
                    unit = None if follows is None else _UNITS.get(follows[1])
                    yield at, end, unit if unit == "duration" else _WRITTEN[word]
                at = folded.find(word, end)


def _measure(text: str, start: int, end: int, number: str, before: str) -> Measure | None:
    """Of what kind a number is that stands there; None for a year, and for what is part of a name."""
    if before in _COINS:
        return "money"
    if before in "vV":
        return "version"
    follows = _WORD.match(text, end)
    unit = None if follows is None else _UNITS.get(follows[1].casefold())
    if unit is not None:
        return unit
    if ":" in number:
        return "clock"
    if "/" in number:
        return "date" if number.count("/") == 2 else "ratio"
    if "-" in number:
        return "date" if number.count("-") == 2 else "ratio"
    if number.count(".") > 1:
        return "version"
    ahead = text[max(0, start - 14) : start].split()
    word = ahead[-1].strip(".,(").casefold() if ahead else ""
    if word in MONTHS:
        return "date"
    if word in ("version", "release"):
        return "version"
    return None if len(number) == 4 and number.startswith(("19", "20")) else "number"


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
    """Neither only thought of, nor past, nor left behind."""
    behind = text[end : end + _BEHIND].partition(",")[0].lower().split()[:3]
    if any(word.rstrip(".;!?") in _LEFT_BEHIND for word in behind):
        return False
    before = text[max(0, start - _BEFORE) : start].lower().replace("’", "'")
    if _UNSTATED.isdisjoint(before.split()):
        return True
    joints = [before.rfind(joint) + len(joint) for joint in _JOINTS if joint in before]
    words = before[max(joints, default=0) :].split()
    near = words[-_NEAR_WORDS:]
    left = [place for place, word in enumerate(near) if word in _LEFT]
    return _DOUBT.isdisjoint(words) and (not left or "to" in near[left[-1] + 1 :])


# -- what a question asks for -------------------------------------------------------------------------

_ASKED: tuple[tuple[Measure, frozenset[str]], ...] = tuple(
    (measure, frozenset(words.split()))
    for measure, words in (
        ("money", "budget cost costs price salary rent fee fees spend spent pay paid wage allowance amount expenses"),
        ("percent", "percentage percent rate accuracy coverage share discount probability"),
        ("date", "when deadline date day due scheduled"),
        ("clock", "when time"),
        ("duration", "long duration time"),
        ("size", "weight height distance far size memory"),
        ("ratio", "score record ratio reading"),
        ("version", "version release"),
        ("number", "many number count target goal quota limit level setting capacity"),
    )
)


def asked_measures(words: Set[str]) -> frozenset[Measure]:
    """The kinds of values that a question with these words asks for; none where it does not say."""
    return frozenset([measure for measure, cues in _ASKED if not cues.isdisjoint(words)])
