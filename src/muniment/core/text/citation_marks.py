"""Marks in an answer (`[3]`, `[1, 2]`, `[1-3]`): what they name, and the same text with other marks or none. Pure.

A mark means something on the page that the answer was given for. On another page the same number is another source's,
so there an answer's marks are written anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

__all__ = ["MARK", "mark_numbers", "named_by_marks", "numbers_in", "split_citations", "with_marks"]

_BRACKETS = r"\[\s*({name}\d{{1,9}}(?:\s*[-–,;]\s*\d{{1,9}})*)\s*\]"
MARK = re.compile(_BRACKETS.format(name=""))
"""A mark; its group is what stands within the brackets."""
_CODE_OR_MARK = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`"
    rf"|(?P<opens>(?<![^\n])(?=\[))?(?P<blank>[^\S\n]?){_BRACKETS.format(name='?P<numbers>')}(?(opens)[^\S\n]*)",
    re.DOTALL,
)
"""Code, or a mark: with the blank before it, or behind one that opens a line."""
_RANGE = re.compile(r"(\d{1,9})\s*[-–]\s*(\d{1,9})")
_PARTS = re.compile(r"[,;]")
_CITATION = re.compile(r" \[[^\[\]\n]{1,256}\]")
_RANGE_MAX = 50
"""A longer range is not a citation: its ends count, not what lies between."""


def mark_numbers(mark: str) -> list[str]:
    """The numbers within the brackets of a mark."""
    return [number for part in _PARTS.split(mark) if part for number in _numbers(part)]


def numbers_in(text: str) -> list[str]:
    """The numbers of all marks of a text, each once, in order."""
    return list(dict.fromkeys(number for found in MARK.finditer(text) for number in mark_numbers(found[1])))


def split_citations(line: str) -> tuple[str, str]:
    """A line without the ids in brackets that close it, and these; read from the end, each once."""
    begins = len(line)
    while line.endswith("]", 0, begins) and (opens := line.rfind(" [", 0, begins)) >= 0:
        if _CITATION.fullmatch(line, opens, begins) is None:
            break
        begins = opens
    return line[:begins], line[begins:]


def named_by_marks(answer: str, evidence_ids: Sequence[str], unknown_marks: Collection[str]) -> dict[str, str]:
    """What each number of an answer named, of which it is known what it cites, in order, and which marks named nothing.

    A number that named nothing has an empty text. Where the two do not fit each other every number has.
    """
    numbers = numbers_in(answer)
    known = [number for number in numbers if f"[{number}]" not in unknown_marks]
    if len(known) != len(evidence_ids):
        return dict.fromkeys(numbers, "")
    return dict.fromkeys(numbers, "") | dict(zip(known, evidence_ids, strict=True))


def with_marks(text: str, named: Mapping[str, str], mark: Callable[[str], str | None] = lambda _: None) -> str:
    """A text with the marks that the evidence has elsewhere; those of evidence that has none there are left out.

    `named` says what each number names. What stands in code stays, and so do brackets behind a word that name nothing:
    they are no citation.
    """

    def written(found: re.Match[str]) -> str:
        numbers = mark_numbers(found["numbers"] or "")
        if not numbers or any(number not in named for number in numbers):
            return found[0]
        is_apart = found["blank"] or not text[found.start() - 1 : found.start()].isalnum()
        if not is_apart and not any(named[number] for number in numbers):
            return found[0]
        marks = [shown for number in numbers if named[number] and (shown := mark(named[number])) is not None]
        if not marks:
            return ""
        return found["blank"] + " ".join(marks) + (" " if found[0][-1] != "]" else "")

    return _CODE_OR_MARK.sub(written, text) if named else text


def _numbers(part: str) -> list[str]:
    found = _RANGE.search(part)
    if found is None:
        return [str(int(part))]
    first, last = int(found[1]), int(found[2])
    if not 0 <= last - first <= _RANGE_MAX:
        return [str(first), str(last)]
    return [str(number) for number in range(first, last + 1)]
