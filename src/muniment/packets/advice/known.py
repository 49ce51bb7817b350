"""What the facts at hand know of the one who asks: their names, their people, and what no longer holds.

A statement is left out whose fact has ended, or of which another value is known since. Nothing is told because of a
fact here: facts have a block of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from muniment.core.instants import Instant, parse_rfc3339
from muniment.memory.extraction.patterns import KIN
from muniment.packets.advice.statements import Stated, adds_up, same_keys, value_words
from muniment.packets.pool import FactCandidate

__all__ = ["KnownFacts"]


class KnownFacts:
    """Of the user's own level."""

    def __init__(self, facts: Sequence[FactCandidate], now: str) -> None:
        self._facts = [each for each in facts if each.fact.scope_level == "user"]
        self._now = _instant(now)

    def names(self) -> list[str]:
        """What the user is called."""
        return [str(each.fact.value) for each in self._standing() if each.fact.fact_key == "user.name"]

    def people(self) -> dict[str, str]:
        """The names of the user's people, in small letters, and what each is to them."""
        told = ((each.fact.fact_key.removeprefix("user."), each.fact.value) for each in self._standing())
        return {value.casefold(): kin for kin, value in told if kin in KIN and isinstance(value, str)}

    def end(
        self,
        stated: Stated,
        said_at: str,
        is_many_valued: Callable[[str], bool],
        may_tell: Callable[[FactCandidate], bool],
    ) -> bool:
        """Is it known that what was said at a time holds no longer? A fact that may not be told ends nothing."""
        said = _instant(said_at)
        keys = same_keys(stated.key)
        known = [each for each in self._facts if each.fact.fact_key in keys and may_tell(each)]
        words = value_words(stated.value)
        alike = [each for each in known if value_words(str(each.fact.value)) == words]
        if any(self._holds(each) for each in alike):
            return False
        if any(self._ended_after(each, said) for each in alike):
            return True
        if said is None or adds_up(stated.key) or is_many_valued(stated.key):
            return False
        since = (_instant(each.since) for each in known if self._holds(each))
        return any(each is not None and each > said for each in since)

    def _standing(self) -> Iterator[FactCandidate]:
        return (each for each in self._facts if each.fact.status == "active")

    def _holds(self, each: FactCandidate) -> bool:
        return each.fact.status != "deprecated" and not self._is_over(each)

    def _is_over(self, each: FactCandidate) -> bool:
        end = _end_of(each)
        return end is not None and self._now is not None and end < self._now

    def _ended_after(self, each: FactCandidate, said: Instant | None) -> bool:
        """What was said behind the end says that it holds again."""
        end = _end_of(each)
        return end is None or said is None or said <= end


def _end_of(each: FactCandidate) -> Instant | None:
    return None if each.fact.validity is None else _instant(each.fact.validity.valid_to)


def _instant(ts: str | None) -> Instant | None:
    return parse_rfc3339(ts) if ts else None
