"""The logs of a bank's ended runs, read one by one: memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muniment.core.canonical import canonical_text, read_canonical
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ITEMS

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader

__all__ = ["LogWindow", "stream_logs"]

_ENDED = ("passed", "failed")
"""The status of a log whose run has ended. A run has one such version."""


class LogWindow(NamedTuple):
    """Which logs of a bank: learnt from `start` until before `end`, of one bucket, of one kind of work."""

    owner: str
    start: str | None = None
    end: str | None = None
    bucket_key: str | None = None
    name: str | None = None
    newest: int | None = None
    """No more than so many, newest first, counted before the bucket is looked at."""


class _Log(NamedTuple):
    created_at: str
    body: str | None


def stream_logs(
    reader: Reader, window: LogWindow, *, newest_first: bool = True
) -> Iterator[tuple[str, dict[str, Any]]]:
    """When each was learnt and what it says. A bucket is looked for in the text: some of another may come along."""
    where: tuple[Condition, ...] = (
        ("kind", "=", "event_log"),
        ("user_id", "=", window.owner),
        ("status", "in", _ENDED),
        ("created_at", ">=", window.start or ""),  # always asked: so rows come from an index in this order, unsorted
    )
    if window.name is not None:
        where = (*where, ("name", "=", window.name))
    if window.end is not None:
        where = (*where, ("created_at", "<", window.end))
    needle = None if window.bucket_key is None else canonical_text(window.bucket_key)
    order = ("created_at", "id", "version")
    for at, text in stream(reader, ITEMS, where, into=_Log, order=order, descending=newest_first, limit=window.newest):
        if text is not None and (needle is None or needle in text):  # neither forgotten, nor read for nothing
            yield at, cast("dict[str, Any]", read_canonical(text))
