"""Resolve the marks of an answer: the evidence cited by each sentence, unknown marks, and uncited sentences."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass

from muniment.core.text.sentences import MARK, mark_numbers, numbers_in, sentence_spans

__all__ = ["CitedSentence", "Resolution", "resolve", "unmarked"]

_LEADING = re.compile(rf"(?:\s*{MARK.pattern})+[.!?。！？]*")
_SPACED_MARK = re.compile(rf"[^\S\n]?{MARK.pattern}")


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence of an answer, with the evidence its marks name and its unknown marks."""

    text: str
    evidence_ids: tuple[str, ...]
    unknown_marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """An answer, sentence by sentence."""

    sentences: tuple[CitedSentence, ...]

    @property
    def evidence_ids(self) -> tuple[str, ...]:
        """All cited evidence, deduplicated, in order."""
        return tuple(dict.fromkeys(name for each in self.sentences for name in each.evidence_ids))

    @property
    def unknown_marks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(mark for each in self.sentences for mark in each.unknown_marks))

    @property
    def uncited(self) -> tuple[str, ...]:
        """Sentences that cite no existing evidence."""
        return tuple(each.text for each in self.sentences if not each.evidence_ids)


def resolve(answer: str, marks: Mapping[str, str]) -> Resolution:
    """Resolve marks. Those after a full stop belong to the sentence before it; `[1, 2]` and `[1-3]` are read as
    several.
    """
    sentences: list[list[str]] = []
    for start, end in sentence_spans(answer):
        text = answer[start:end]
        leading = _LEADING.match(text)
        if leading is not None and sentences and _joins(answer, start):
            sentences[-1].append(leading[0].strip())
            text = text[leading.end() :].strip()
        if text:
            sentences.append([text])
    return Resolution(tuple(_cited(" ".join(parts), marks) for parts in sentences))


def unmarked(answer: str, unknown_marks: Container[str]) -> str:
    """The answer without the marks that name evidence. Unknown marks stay, since they are no citation."""

    def left(found: re.Match[str]) -> str:
        return found[0] if any(f"[{number}]" in unknown_marks for number in mark_numbers(found[1])) else ""

    return _SPACED_MARK.sub(left, answer)


def _joins(answer: str, start: int) -> bool:
    """True if the mark is on the same line as the sentence before it."""
    while start and answer[start - 1].isspace():
        if answer[start - 1] == "\n":
            return False
        start -= 1
    return True


def _cited(text: str, marks: Mapping[str, str]) -> CitedSentence:
    numbers = numbers_in(text)
    known = dict.fromkeys(marks[number] for number in numbers if number in marks)
    unknown = tuple(f"[{number}]" for number in numbers if number not in marks)
    return CitedSentence(text, tuple(known), unknown)
