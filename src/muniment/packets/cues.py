"""What the caller points at: a stretch of time, tags, entities, keywords; and what of a packet lies there.

`time_range` is a wall: what was neither said nor held within it is left out of every section that has a time. With
`soft` it lifts instead, as keywords always do: what lies there comes before the rest. Tags and entities choose among
turns and episodes where any of them carries one, and lift facts that say one; with `soft` they only lift.
"""

from __future__ import annotations

from muniment.contracts.packet import Cues
from muniment.core.instants import Instant, parse_rfc3339
from muniment.core.record import JsonObject
from muniment.core.text.analyzer import analyze
from muniment.errors import InvalidInput
from muniment.packets.explain import Reason

__all__ = ["SOFT", "AskedCues"]

SOFT = "soft"
"""The key beside the cues that makes lifts of them all."""


class AskedCues:
    """The cues of a request, read once."""

    def __init__(self, cues: Cues) -> None:
        self.is_soft = is_soft(cues)
        self.start, self.end = _instant(cues, "start"), _instant(cues, "end")
        self.has_range = self.start is not None or self.end is not None
        self.tags, self.entities, self.keywords = map(_words, (cues.tags, cues.entities, cues.keywords))
        terms = [frozenset(analyze(word)) for word in (*self.tags, *self.entities, *self.keywords)]
        self._terms = tuple(each for each in terms if each)
        self._named = tuple(frozenset(analyze(word)) for word in self.entities)
        self._key = tuple(frozenset(analyze(word)) for word in self.keywords)

    @property
    def is_given(self) -> bool:
        """Does the caller point at anything?"""
        return bool(self.has_range or self.tags or self.entities or self.keywords)

    def to_report(self) -> JsonObject:
        """As `explain.filters` has it: what each cue does."""
        told: JsonObject = {}
        if self.has_range:
            told["time_range"] = "wall" if self.is_wall else "lift"
        labels = "choose, where any turn or episode carries one" if self.chooses else "lift"
        told |= {key: labels for key, given in (("tags", self.tags), ("entities", self.entities)) if given}
        return told | ({"keywords": "lift"} if self.keywords else {})

    @property
    def is_wall(self) -> bool:
        """Does a time range keep out what lies outside?"""
        return self.has_range and not self.is_soft

    @property
    def chooses(self) -> bool:
        """Do tags or entities keep out what carries none of them, where anything carries one?"""
        return bool(self.tags or self.entities) and not self.is_soft

    def holds(self, start: str | None, end: str | None = None) -> bool:
        """Does this moment, or stretch of time, lie at least in part within the range? What has no time does not."""
        first = parse_rfc3339(start) if start else None
        if first is None:
            return False
        last = max(first, (parse_rfc3339(end) if end else None) or first)
        return (self.start is None or last >= self.start) and (self.end is None or first <= self.end)

    def bars(self, start: str | None, end: str | None = None) -> Reason | None:
        """Why the range keeps out what was said at a moment, or lasted from one to another; None where it does not."""
        return "out_of_window" if self.is_wall and not self.holds(start, end) else None

    def bars_lasting(self, start: str | None, end: str | None) -> Reason | None:
        """The same of what holds from `start` on, and if there is no `end`, still does."""
        return "out_of_window" if self.is_wall and not self.holds_lasting(start, end) else None

    def holds_lasting(self, start: str | None, end: str | None) -> bool:
        """Does what lasts from `start` on, until `end` if there is one, hold at some time within the range?"""
        first, last = parse_rfc3339(start or ""), parse_rfc3339(end or "")
        is_before = last is not None and self.start is not None and last < self.start
        is_after = first is not None and self.end is not None and first > self.end
        return not (is_before or is_after)

    def says(self, text: str) -> bool:
        """Does a text say a tag, an entity or a keyword?"""
        return bool(self._terms) and _says(text, self._terms)

    def names(self, text: str) -> bool:
        """Does a text say an entity?"""
        return bool(self._named) and _says(text, self._named)

    def says_keyword(self, text: str) -> bool:
        """Does a text say a keyword?"""
        return bool(self._key) and _says(text, self._key)


def is_soft(cues: Cues) -> bool:
    given = (cues.model_extra or {}).get(SOFT, False)
    if not isinstance(given, bool):
        raise InvalidInput("soft is true or false", path=f"$.cues.{SOFT}", hint="leave it out for a wall")
    return given


def _instant(cues: Cues, key: str) -> Instant | None:
    text = getattr(cues.time_range, key, None)
    if text is None:
        return None
    moment = parse_rfc3339(text)
    if moment is None:
        raise InvalidInput(
            f"{text!r:.60} names no instant",
            path=f"$.cues.time_range.{key}",
            hint="write RFC 3339 with an offset, such as 2026-05-01T12:00:00Z",
        )
    return moment


def _words(given: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(word for word in given or () if word.strip())


def _says(text: str, wanted: tuple[frozenset[str], ...]) -> bool:
    said = set(analyze(text))
    return any(terms <= said for terms in wanted if terms)
