"""How the frozen agent of the generated worlds reads what it is told: by the words of sentences, as a model would.

It knows the names of what it can do (tools, values of arguments, orders of two steps, a step that can be left out) and
the values of what it can see (in the task, or in a tool's result). A sentence that names one of its options shifts the
odds of it, up or down by the words around the name: "use", "call", "works" against "do not", "avoid", "instead of",
"fails". Where only the outcome of runs is told ("Passed. Did: …", "passed 3 of 4"), or two rates, the shift is
smaller. A text that names a value the agent does not see here ("when the sheet is wide", and it is narrow) is not
about this task, and does nothing; neither does a name inside a condition ("when scan_index fails, …").

Nothing here knows how the library words a lesson, what a feature is called, or what is right in a world.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

__all__ = ["EXAMPLE", "TOLD", "Said", "Slot", "concerns", "odds_told", "read_text"]

TOLD, RATES, EXAMPLE = 6.0, 2.0, 1.5
"""What a piece of advice multiplies the odds of an option by; what two rates do; what an earlier run does."""
_MOST = math.log(TOLD) * 1.5
"""The same thing said ten times is not ten times as convincing."""

_NOT = (
    r"do not|don'?t|does not|doesn'?t|did not|didn'?t|cannot|can'?t|should not|must not|not|never|avoid\w*|without"
    r"|instead of|rather than|in place of|skip\w*|stop\w*|leave out|leaving out|left out|omit\w*|except|over|against"
    r"|no longer|worse than|drop\w*|refrain from|beware of"
)
_RUN = r"(?<!\ba )(?<!\bthe )(?<!\bthis )(?<!\bone )run(?! (?:like|that|of|with|in|which)\b)"
"""The verb."""
_DO = (
    r"use|using|call|calling|start with|starting with|start by|begin with|prefer\w*|choose|choosing|pick\w*|try|trying"
    r"|set|setting|write|writing|add|adding|give|giving|apply|applying|take|taking|go with|going with|switch to"
    r"|switching to|change to|should be|must be|needs?|make|keep|works? with|works? best with|solved by|fixed by"
    rf"|fixed with|answer is|go for|{_RUN}"
)
_GOOD = r"works?|worked|pass(?:es|ed)?|succeed(?:s|ed)?|help(?:s|ed)?|holds?|fix(?:es|ed)?|is right|is better|does it"
_BAD = r"fails?|failed|breaks?|broke|is wrong|is worse|hurts?|does not|did not|doesn'?t|didn'?t|never|is rejected"
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|(?<=[a-z)]) [–—] ")
_CONDITION = re.compile(
    r"\b(?:when(?:ever)?|if|where(?:ver)?|unless|once|as soon as|in case)\b[^,;:.]*(?:\.\w[^,;:.]*)*", re.IGNORECASE
)
_ELSE = re.compile(r"(?:\bnot|\bunless|\bexcept|\bother than|\bwithout|\bno|n't|!=)\W+(?:\w+\W+){0,3}$", re.IGNORECASE)
_RATE = re.compile(r"(\d+) (?:of|out of|/) (\d+)|(\d{1,3}(?:\.\d+)?) ?%")
_COUNT = re.compile(r"\bpassed (\d+) of (\d+)\b", re.IGNORECASE)
_PASSED = re.compile(r"\b(?:passed|worked|succeeded|solved|went through)\b(?! \d)", re.IGNORECASE)
_FAILED = re.compile(
    r"\bFailed\b|\b(?:it|runs?|task|attempt|tests?|all|and|but|which|that) failed\b|\bdid not (?:pass|work)\b"
    r"|\bwent wrong\b"
)
_FIRST = re.compile(r"\b(?:first|start(?:ing)? (?:with|by)|begin(?:ning)? (?:with|by))\b", re.IGNORECASE)
_LATER = re.compile(r"\b(?:after|following|once|later than|behind)\b", re.IGNORECASE)

Kind = Literal["tool", "argument", "order", "step"]


class Slot(NamedTuple):
    """A place with a choice. The options of an order are `a>b` and `b>a`; of a step, its tool and nothing."""

    name: str
    kind: Kind
    options: tuple[str, ...]
    odds: tuple[float, ...]
    """How the agent leans, told nothing."""
    opens: str = ""
    closes: str = ""
    """Of an order, the tools before and after both: what is said to follow the first comes first."""
    also: tuple[tuple[str, str], ...] = ()
    """Other words for an option, each with the option: a piece of code for the change that writes it."""


class Said(NamedTuple):
    slot: str
    option: str
    log_odds: float


def odds_told(slot: Slot, odds: Sequence[float], said: Iterable[Said]) -> list[float]:
    """The odds of the options after what was said, adding up to 1."""
    logs = dict.fromkeys(slot.options, 0.0)
    for each in said:
        if each.slot == slot.name:
            logs[each.option] += each.log_odds
    shifted = [
        odd * math.exp(max(-_MOST, min(_MOST, logs[name]))) for name, odd in zip(slot.options, odds, strict=True)
    ]
    whole = sum(shifted)
    return [each / whole for each in shifted]


def concerns(text: str, values: Mapping[str, Sequence[str]], seen: Mapping[str, str]) -> bool:
    """Is the text about a task that looks like this? What names no value is about all."""
    for name, known in values.items():
        named = {value: _mention(value).search(text) for value in known}
        stated = {value for value, found in named.items() if found and not _ELSE.search(text[: found.start()])}
        ruled_out = {value for value, found in named.items() if found and value not in stated}
        here = seen.get(name)
        if here is not None and (here in ruled_out or (stated and here not in stated)):
            return False
    return True


def read_text(text: str, slots: Sequence[Slot]) -> list[Said]:
    """What a text says for and against options."""
    sentences = _SENTENCE.split(_named(text, slots))
    outcomes = [_counted(each) or bool(_PASSED.search(each)) - bool(_FAILED.search(each)) for each in sentences]
    outcome = next((each for each in outcomes if each), 0)
    found: dict[tuple[str, str], float] = {}
    for sentence, said in zip(sentences, outcomes, strict=True):
        outcome = said or outcome  # what was told of a run holds until another outcome is told
        for slot in slots:
            for option, log in _read_slot(sentence, slot, outcome):
                held = found.get((slot.name, option), 0.0)
                found[slot.name, option] = max(held, log, key=abs)
    return [Said(slot, option, log) for (slot, option), log in found.items() if log]


def _counted(sentence: str) -> int:
    """Of "4 runs like it: passed 3 of 4", 1; of runs that mostly failed -1; 0 where no single count is told."""
    counts = _COUNT.findall(sentence)
    if len(counts) != 1 or len(_RATE.findall(sentence)) != 1:
        return 0
    passes, runs = map(int, counts[0])
    return (2 * passes > runs) - (2 * passes < runs)


def _named(text: str, slots: Sequence[Slot]) -> str:
    """The text with quoted code put as the option that it is: what stands in code is no word of the sentence."""
    for words, option in (each for slot in slots for each in slot.also):
        if words in text:
            code = re.escape(words)
            text = re.sub(rf"`[^`]*{code}[^`]*`|{code}", option, text)
    return text


def _read_slot(sentence: str, slot: Slot, outcome: int) -> list[tuple[str, float]]:
    if slot.kind == "order":
        return _read_order(sentence, slot, outcome)
    found = []
    for option in slot.options:
        log = _leaning(sentence, option, outcome) if option else 0.0
        if log:
            found.append((option, log))
    return found


def _leaning(sentence: str, name: str, outcome: int) -> float:
    """For or against a name, as log odds: what the last mention says that says anything."""
    conditions = [found.span() for found in _CONDITION.finditer(sentence)]
    log = 0.0
    for found in _mention(name).finditer(sentence):
        if any(start <= found.start() < end for start, end in conditions):
            continue
        sign = _sign(sentence, found.start(), found.end())
        if sign:
            log = sign * math.log(TOLD)
        elif rates := _rates(sentence):
            log = rates * math.log(RATES)
        elif outcome:
            log = outcome * math.log(EXAMPLE)
    return log


_CUE = re.compile(rf"\b(?:(?P<no>{_NOT})|(?P<yes>{_DO}))\b", re.IGNORECASE)
_JOINED = re.compile(r"\W*(?:(?:ever|just|simply|to|the|always|again|even|only|then|step) )*", re.IGNORECASE)
_AFTER = re.compile(rf"^\W{{0,3}}(?:\w+ )?(?:(?P<bad>{_BAD})|(?P<good>{_GOOD}))\b", re.IGNORECASE)
_CHOSEN = re.compile(r"^\W{0,3}(?:instead of|rather than|and not|not)\b", re.IGNORECASE)


def _sign(sentence: str, start: int, end: int) -> int:
    """1 for, -1 against, 0 where the words around say neither."""
    sign, last = 0, 0
    for cue in _CUE.finditer(sentence, 0, start):
        is_joined = sign < 0 and _JOINED.fullmatch(sentence, last, cue.start()) is not None
        if cue["no"]:
            sign, last = 1 if is_joined else -1, cue.end()  # "do not skip x" is for x
        elif not is_joined:
            sign = 1  # "do not use x" stays against; "instead of y use x" is for x
    if sign:
        return sign
    after = _AFTER.match(sentence[end : end + 40])
    if after and not _RATE.search(sentence[end : end + 40]):
        return -1 if after["bad"] else 1
    return 1 if _CHOSEN.match(sentence[end:]) else 0


def _rates(sentence: str) -> int:
    """Of "8 of 9 with it, 2 of 9 without": 1; of two rates the other way round -1."""
    rates = [
        float(each[3]) / 100 if each[3] else int(each[1]) / max(1, int(each[2])) for each in _RATE.finditer(sentence)
    ]
    return 0 if len(rates) != 2 or rates[0] == rates[1] else 1 if rates[0] > rates[1] else -1


def _read_order(sentence: str, slot: Slot, outcome: int) -> list[tuple[str, float]]:
    one, two = slot.options[0].split(">")
    places = sorted(
        (found.start(), found.end(), name) for name in (one, two) if (found := _mention(name).search(sentence))
    )
    if not places:
        return []
    start, end, name = places[0]
    other = two if name == one else one
    if len(places) == 2:
        is_later = _LATER.search(sentence[end : places[1][0]]) is not None
        order = f"{other}>{name}" if is_later else f"{name}>{other}"
    elif _FIRST.search(sentence) or (slot.opens and _mention(slot.opens).search(sentence)):
        order = f"{name}>{other}"
    elif slot.closes and _mention(slot.closes).search(sentence):
        order = f"{other}>{name}"
    else:
        return []
    sign = _sign(sentence, start, end)
    if sign:
        return [(order, sign * math.log(TOLD))]
    weight = _rates(sentence) * math.log(RATES) or outcome * math.log(EXAMPLE)
    return [(order, weight)] if weight else []


@lru_cache(maxsize=4096)
def _mention(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w]){re.escape(name)}(?!\w)", re.IGNORECASE)
