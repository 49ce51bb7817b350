"""What was redacted, and where: the values that a policy may keep sealed.

A text is redacted in passes, and a later one may take in what an earlier one left. So a trace follows each replaced
stretch through the passes: where it stands in the redacted text, and which original it stands for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_text

__all__ = ["RedactedValue", "Trace", "redacted_values"]


class RedactedValue(NamedTuple):
    """One value that was replaced."""

    place: str
    """The text or value it stood in, as a path through the redacted body: `$.content`, `$.tool.args.key`."""
    kind: str
    value: Any
    span: tuple[int, int] | None
    """Where its replacement stands in that text, in characters; None where the whole value was replaced."""
    is_name: bool
    """It stood in the name of the place, not in its value."""


class _Mark(NamedTuple):
    start: int
    end: int
    original: str
    kind: str


class _Edit(NamedTuple):
    start: int
    end: int
    kind: str


class Trace(Counter[str]):
    """Counts like the counter it is, and holds what the stretches of one text were."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[_Mark] = []
        self._edits: list[_Edit] = []

    def note(self, start: int, end: int, kind: str) -> None:
        """This stretch of the text of the present pass becomes `[redacted:kind]`. Stretches come in order."""
        self._edits.append(_Edit(start, end, kind))

    def settle(self, before: str) -> None:
        """The pass over this text is done: where everything stands after it."""
        if not self._edits:
            return
        made: list[_Mark] = []
        shift = 0
        for group in _groups(self.marks, self._edits):
            start, end = min(each.start for each in group), max(each.end for each in group)
            edits = [each for each in group if isinstance(each, _Edit)]
            grown = sum(len(f"[redacted:{each.kind}]") - (each.end - each.start) for each in edits)
            held = [each for each in group if isinstance(each, _Mark)]
            kind = edits[-1].kind if edits else held[-1].kind
            made.append(_Mark(start + shift, end + shift + grown, _expand(before, start, end, held), kind))
            shift += grown
        self.marks, self._edits = made, []


def _groups(marks: list[_Mark], edits: list[_Edit]) -> Iterator[list[_Mark | _Edit]]:
    """What overlaps, together, in the order of the text."""
    group: list[_Mark | _Edit] = []
    end = -1
    parts: list[_Mark | _Edit] = [*marks, *edits]
    for each in sorted(parts, key=lambda part: (part.start, part.end)):
        if group and each.start >= end:
            yield group
            group = []
        group.append(each)
        end = max(end, each.end)
    if group:
        yield group


def _expand(text: str, start: int, end: int, marks: list[_Mark]) -> str:
    """A stretch with the marks in it as they were before."""
    parts: list[str] = []
    for mark in marks:
        parts += (text[start : mark.start], mark.original)
        start = mark.end
    return "".join([*parts, text[start:end]])


Redact = Callable[[str, Trace, str], str]


def redacted_values(before: Any, after: Any, redact: Redact, place: str = "$", under: str = "") -> list[RedactedValue]:
    """The values in which redacted data differs from what it was, in order; `redact` does a text again, traced."""
    if isinstance(before, dict) and isinstance(after, dict) and len(before) == len(after):
        found: list[RedactedValue] = []
        for (key, old), (name, new) in zip(before.items(), after.items(), strict=True):
            inner = _child(place, name)
            if key != name:
                found += _of_text(str(key), str(name), redact, inner, "", is_name=True)
            found += redacted_values(old, new, redact, inner, str(key))
        return found
    if isinstance(before, list | tuple) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [
            each
            for index, (old, new) in pairs
            for each in redacted_values(old, new, redact, f"{place}[{index}]", under)
        ]
    if type(before) is type(after) and before == after:
        return []
    if isinstance(before, str) and isinstance(after, str):
        return _of_text(before, after, redact, place, under, is_name=False)
    return [_whole(before, after, place)]


def _of_text(before: str, after: str, redact: Redact, place: str, under: str, *, is_name: bool) -> list[RedactedValue]:
    trace = Trace()
    if redact(before, trace, under) != after:  # it went for what it stood under, or its name was numbered
        return [_whole(before, after, place, is_name=is_name)]
    return [RedactedValue(place, mark.kind, mark.original, (mark.start, mark.end), is_name) for mark in trace.marks]


def _whole(before: Any, after: Any, place: str, *, is_name: bool = False) -> RedactedValue:
    kind = (
        after[10:-1] if isinstance(after, str) and after.startswith("[redacted:") and after[-1] == "]" else "password"
    )
    return RedactedValue(place, kind if kind.replace("_", "").isalpha() else "password", before, None, is_name)


def _child(place: str, name: Any) -> str:
    text = str(name)
    return f"{place}.{text}" if text.isidentifier() else f"{place}[{canonical_text(text)}]"
