"""What the logs of a bank say of its buckets, for the router and the observables: read one by one, in flat memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muniment.ports.engine import Condition, Select
from muniment.routing.bucket_stats import BucketStats
from muniment.routing.log_rows import LogRow, row_of
from muniment.routing.observables import Observed
from muniment.text.canonical import canonical_text, read_canonical

if TYPE_CHECKING:
    from muniment.ports.engine import Reader

__all__ = ["LogWindow", "read_rates", "read_stats", "stream_rows"]

_ENDED = ("passed", "failed")
"""The status of a log whose run has ended. A run has one such version."""
_NOWHERE = ""
"""The bucket of runs that name none."""


class LogWindow(NamedTuple):
    """Which logs of a bank: learnt from `start` until before `end`, of one bucket, of one kind of work."""

    owner: str
    start: str | None = None
    end: str | None = None
    bucket_key: str | None = None
    name: str | None = None
    newest: int | None = None
    """No more than so many, newest first, counted before the bucket is looked at."""


def stream_rows(reader: Reader, window: LogWindow) -> Iterator[LogRow]:
    """The logs of a window as rows, newest first."""
    where: tuple[Condition, ...] = (
        ("kind", "=", "event_log"),
        ("user_id", "=", window.owner),
        ("status", "in", _ENDED),
    )
    if window.name is not None:
        where = (*where, ("name", "=", window.name))
    if window.start is not None:
        where = (*where, ("created_at", ">=", window.start))
    if window.end is not None:
        where = (*where, ("created_at", "<", window.end))
    needle = None if window.bucket_key is None else canonical_text(window.bucket_key)
    order = ("created_at", "id", "version")
    select = Select("items", where=where, order=order, descending=True, limit=window.newest, columns=("body",))
    for (text,) in reader.stream(select):
        if text is None or (needle is not None and needle not in str(text)):  # forgotten; or read for nothing
            continue
        row = row_of(cast("dict[str, Any]", read_canonical(str(text))))
        if window.bucket_key in (None, row.bucket_key):
            yield row


def read_stats(reader: Reader, window: LogWindow, cluster_id: str | None = None) -> tuple[BucketStats, int]:
    """How the runs of a window fared, and how often a failure came up among them."""
    stats, hits = BucketStats(), 0
    for row in stream_rows(reader, window):
        stats.add(row)
        hits += cluster_id is not None and row.cluster_id == cluster_id
    return stats, hits


def read_rates(reader: Reader, window: LogWindow, clusters_max: int) -> tuple[Observed, dict[str, Observed]]:
    """What was observed in a window: in all, and bucket by bucket."""
    total, buckets = Observed(clusters_max=clusters_max), dict[str, Observed]()
    for row in stream_rows(reader, window):
        total.add(row)
        name = row.bucket_key or _NOWHERE
        if name not in buckets:
            buckets[name] = Observed(clusters_max=clusters_max)
        buckets[name].add(row)
    return total, buckets
