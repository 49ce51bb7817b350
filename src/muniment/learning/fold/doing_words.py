"""What a run did as one line, and that line as steps again: every call in its order, and what comes again counted.

`get_user, then (get_order, then ship) 3 times, then report 2 times`: a line is whole, or says with ` … ` where calls
are left out. It is written here and read here, so that what is compared is what is told. Pure; it knows no runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from muniment.core.limits import remembered
from muniment.core.text.patterns import lazy_pattern

__all__ = [
    "CUT",
    "THEN",
    "in_order",
    "is_cut",
    "is_given",
    "name_of",
    "notes_of",
    "step_texts",
    "stretches",
    "with_counts",
    "without_counts",
]

CUT = " … "
"""Stands where calls are left out."""
THEN = ", then "
_PARTS_MAX, _FIRST, _LAST = 7, 2, 3
"""Of more parts so many of the beginning and of the end are told."""
_STRETCH_MAX = 4
"""So many steps that come again together are looked for."""
_AGAIN = 2
"""However often a step came again, it is read as so many: what matters is that it did, and what came after it."""
_SEVERAL = "several times"
_COUNT = lazy_pattern(r" (\d+) times(?=, then | … |$)")
_SEVERAL_TOLD = lazy_pattern(rf" {_SEVERAL}(?=, then | … |$)")
_TOGETHER = lazy_pattern(r"\((.+?)\) (?:\d+(?: to \d+)?|several) times(?=, then | … |$)")
_PART = lazy_pattern(r"^(.*?)(?: \((.*)\))?(?: (\d+(?: to \d+)?|several) times)?$")


def in_order(steps: Sequence[str]) -> str:
    """Steps one after the other as a line; of many parts the first and the last."""
    parts: list[str] = []
    at = 0
    while at < len(steps):
        length, times = _repeated(steps, at)
        told = THEN.join(steps[at : at + length])
        parts.append(told if times == 1 else f"{told if length == 1 else f'({told})'} {times} times")
        at += length * times
    if len(parts) <= _PARTS_MAX:
        return THEN.join(parts)
    return f"{THEN.join(parts[:_FIRST])}{CUT}{THEN.join(parts[-_LAST:])}"


def _repeated(steps: Sequence[str], at: int) -> tuple[int, int]:
    """How many steps from here on come again together, and how often: what takes up most, of equals the shortest."""
    best = 1, _times(steps, at, 1)
    for length in range(2, _STRETCH_MAX + 1):
        times = _times(steps, at, length)
        inner = steps[at : at + length]
        is_plain = all(one != other for one, other in pairwise(inner))
        if times > 1 and is_plain and length * times > best[0] * best[1]:
            best = length, times
    return best


def _times(steps: Sequence[str], at: int, length: int) -> int:
    block, times = steps[at : at + length], 1
    while steps[at + times * length : at + (times + 1) * length] == block:
        times += 1
    return times


# -- reading ------------------------------------------------------------------------------------------


def is_cut(did: str) -> bool:
    return CUT in did


def stretches(did: str) -> list[list[str]]:
    """The steps of `Did: …`, each without its count and twice where it came again; a list for each side of a cut."""
    told = did.partition(": ")[2]
    return [list(_steps(part)) for part in told.split(CUT)] if told else []


@remembered(2048)
def step_texts(did: str) -> tuple[str, ...]:
    """The steps of both sides."""
    return tuple(step for part in stretches(did) for step in part)


def _steps(line: str) -> Iterator[str]:
    at = 0
    while at < len(line):
        found = _TOGETHER.match(line, at) if line[at] == "(" else None
        if found is not None:
            for _ in range(_AGAIN):
                yield from found[1].split(THEN)
            at = found.end() + len(THEN)
            continue
        end = line.find(THEN, at)
        part = line[at:] if end < 0 else line[at:end]
        text, times = _without_count(part)
        for _ in range(_AGAIN if times else 1):
            yield text
        at = len(line) if end < 0 else end + len(THEN)


def _without_count(part: str) -> tuple[str, bool]:
    found = _PART.match(part)
    if found is None or found[3] is None:
        return part, False
    return part[: found.start(3) - 1], True


def name_of(step: str) -> str:
    """The tool that a step calls."""
    found = _PART.match(step)
    return "" if found is None else found[1]


def notes_of(step: str) -> list[str]:
    """What is told beside the name: what it was given, wrote and answered."""
    found = _PART.match(step)
    return [] if found is None or not found[2] else found[2].split("; ")


def is_given(note: str) -> bool:
    """Is it what a call was given, or wrote? Else it is what it answered."""
    return "=" in note or note.startswith("wrote ")


# -- counts -------------------------------------------------------------------------------------------


def without_counts(did: str) -> str:
    """The same for lines that differ in how often something came again: `get_order several times, then ship`."""
    return _COUNT.sub(f" {_SEVERAL}", did)


def with_counts(told: str, dids: Sequence[str]) -> str:
    """A line without counts with those of the lines it was made of: `get_order 2 to 4 times, then ship`. Where it says
    "several times" more or less often than they count, as in a tool's name, nothing tells which is which: it stays.
    """
    counts = [[int(each) for each in _COUNT.findall(did)] for did in dids]
    if {len(_SEVERAL_TOLD.findall(told))} != {len(each) for each in counts}:
        return told
    ranges = iter([(min(each), max(each)) for each in zip(*counts, strict=True)])
    return _SEVERAL_TOLD.sub(lambda _found: f" {_span(*next(ranges))} times", told)


def _span(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"
