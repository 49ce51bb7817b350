"""What a page says of a failure: where, why, its kind, how often; and whether the tool's result says it already.

The words alone: which failures a page has, the composer decides.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from muniment.packets.page.breaks import flat

__all__ = ["failure_words", "is_only_a_result"]

_TOOL_FAILURE = "tool_failure"
"""The category of a failure that is no more than a tool's result."""


def is_only_a_result(failure: Mapping[str, Any], shown: Container[str]) -> bool:
    """Does the result that stands on the page say all of it?

    How often it was met, that it passed since, and what the run itself says of it are more.
    """
    is_result = failure.get("category") == _TOOL_FAILURE
    return is_result and failure.get("evidence_id") in shown and not _failure_notes(failure)


def failure_words(failure: Mapping[str, Any], shown: Container[str]) -> str:
    """`where: why`, with its kind unless a tool's result says it, how often it was met, and whether it passed since.

    Where the result itself stands on the page it tells why.
    """
    where, is_result = failure.get("where"), failure.get("category") == _TOOL_FAILURE
    why = " ".join(failure["why"].split())
    if isinstance(where, str):
        why = flat(where) if is_result and failure.get("evidence_id") in shown else f"{flat(where)}: {why}"
    notes = _failure_notes(failure)
    return f"{why} ({', '.join(notes)})" if notes else why


def _failure_notes(failure: Mapping[str, Any]) -> list[str]:
    category, times = failure.get("category"), failure.get("times")
    notes = [flat(category)] if isinstance(category, str) and category != _TOOL_FAILURE else []
    notes += [f"{times} times"] if isinstance(times, int) and times > 1 else []
    notes += ["passed since"] if failure.get("passed") is True else []
    return notes
