"""What a page says of what earlier runs taught: lessons, runs that can be read; and of those that have no line of their
own, why: held out, or told with others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["HELD_OUT", "MERGED_WITH", "held_out_words", "is_left_out", "merged_with", "taught_noun"]

HELD_OUT = "held_out"
"""Marks a lesson among the hints that fitted the run and was left out of it, to measure it: it says nothing."""
MERGED_WITH = "merged_with"
"""Of an earlier run that is told within the line of another: that one's id. It has no line of its own."""
_NOUNS = {"ReuseBuffer": "lesson", "ReasoningBank": "earlier run"}
"""What is recalled, by where it is kept: what runs teach together, and one run that can be read."""

_TO_TRY = "by earlier runs"
"""Before the way that is to be tried: no run said so, it is what came of them."""


def taught_noun(hint: Any) -> str:
    """What the line of a hint begins with."""
    source = hint.get("source") if isinstance(hint, Mapping) else None
    noun = _NOUNS.get(str(source), "hint")
    return _TO_TRY if noun == "earlier run" and str(hint.get("summary")).startswith("Try ") else noun


def is_left_out(hint: Any) -> bool:
    """Is it a lesson that was left out of the run, to measure it?"""
    return isinstance(hint, Mapping) and hint.get(HELD_OUT) is True


def merged_with(hint: Any) -> str | None:
    """The record whose line tells of this one too; None for one that has its own."""
    leader = hint.get(MERGED_WITH) if isinstance(hint, Mapping) else None
    return leader if isinstance(leader, str) and leader else None


def held_out_words(hint: Mapping[str, Any]) -> str:
    """What an explanation says of such a lesson; no page does."""
    return f"the lesson {hint.get('memory_id')} fits, and was left out of this run to measure it"
