"""What the logs of a bank say of its buckets, for the router and the observables: read one by one, in flat memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from muniment.learning.log_reading import LogWindow, stream_logs
from muniment.rules.routing.bucket_stats import BucketStats
from muniment.rules.routing.log_rows import LogRow, row_of
from muniment.rules.routing.observables import Observed

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader

__all__ = ["read_rates", "read_stats", "stream_rows"]

_NOWHERE = ""
"""The bucket of runs that name none."""


def stream_rows(reader: Reader, window: LogWindow) -> Iterator[LogRow]:
    """The logs of a window as rows, newest first."""
    for _at, body in stream_logs(reader, window):
        row = row_of(body)
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
