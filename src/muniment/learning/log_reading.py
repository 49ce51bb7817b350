"""The logs of a bank's ended runs, read one by one: memory does not grow with their number; and an earlier run as a
fold compares with it, read back from what was kept of it. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muniment.core.canonical import canonical_text, read_canonical
from muniment.core.limits import remembered
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ITEMS
from muniment.learning.stored_memory import Feature, IntentParts, RunFacts, StateParts

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader

__all__ = ["LogWindow", "peer_of", "stream_logs"]

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


_UNSAID = dict(RunFacts(trace_id="unsaid", x_summary="", passed=False, at=""))


def peer_of(kept: Mapping[str, Any]) -> RunFacts:
    """A run as it was kept. It was checked then and is not again: a fold reads two hundred, of a hundred features."""
    said = {key: tuple(value) if isinstance(value, list) else value for key, value in kept.items()}
    said["features"] = tuple(_feature(each["name"], each.get("before", False)) for each in kept.get("features", ()))
    said["intent"] = IntentParts.from_wire(kept.get("intent", {}))
    said["state"] = StateParts.from_wire(kept.get("state", {}))
    return RunFacts.unchecked(_UNSAID | said, set(kept))


@remembered(1 << 14)
def _feature(name: str, before: bool) -> Feature:
    """Runs of one kind share most of theirs."""
    return Feature(name=name, before=before)
