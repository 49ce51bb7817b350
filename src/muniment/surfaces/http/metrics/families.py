"""Every figure that `/metrics` tells: its name, what kind it is, what it means, by which labels it is told apart.

Labels have few values by their making: templates of routes, methods, codes. None is a name that a caller chose.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["BUCKETS_S", "FAMILIES", "METHODS", "Family", "family"]

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the latencies that are told apart."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that are called by their name; a caller may send any other word as one."""


class Family(NamedTuple):
    """One figure, or one for each set of labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    of: Literal["process", "server"] = "server"
    """Whether each worker counts its own, and the page has the sum; or whoever answers knows it for all of them."""


FAMILIES: tuple[Family, ...] = (
    Family(
        "muniment_http_requests_total",
        "counter",
        "Requests that were answered, by the template of their address.",
        ("method", "route", "status"),
        "process",
    ),
    Family(
        "muniment_http_request_duration_seconds",
        "histogram",
        "How long requests took, from their head to the last byte of the answer; streams of events are not among them.",
        ("method", "route"),
        "process",
    ),
    Family(
        "muniment_http_errors_total",
        "counter",
        "Requests that were refused or failed, by the code of the error.",
        ("code",),
        "process",
    ),
    Family(
        "muniment_http_rate_limited_total",
        "counter",
        "Requests that were refused because their key or address asked too often.",
        (),
        "process",
    ),
    Family("muniment_http_requests_in_flight", "gauge", "Requests that are being answered.", (), "process"),
    Family("muniment_http_queue_waiting", "gauge", "Requests that wait for their turn, by lane.", ("lane",), "process"),
    Family(
        "muniment_http_queue_oldest_seconds",
        "gauge",
        "How long the oldest of those that wait has waited, by lane.",
        ("lane",),
        "process",
    ),
    Family("muniment_http_streams_open", "gauge", "Streams of changes and of progress that are open.", (), "process"),
    Family("muniment_operations", "gauge", "Long operations that are known, by how they stand.", ("status",)),
    Family("muniment_store_up", "gauge", "1 where the store answered the last look at it, 0 where it did not."),
    Family(
        "muniment_store_replica",
        "gauge",
        "1 for how the replica is that answers reads of the process that tells, 0 for how it is not.",
        ("state",),
    ),
    Family("muniment_store_bytes", "gauge", "The bytes that the store takes on its disk."),
    Family("muniment_store_entries", "gauge", "Entries of the ledger, of all tenants; on PostgreSQL about so many."),
    Family("muniment_store_tenants", "gauge", "Tenants of the store."),
    Family("muniment_store_scrubs_due", "gauge", "Forgets whose bytes wait for `muniment store scrub`."),
    Family(
        "muniment_index_lag_turns",
        "gauge",
        "Turns that search by meaning does not know yet (`muniment store reembed`). Words are indexed with the turn.",
    ),
    Family("muniment_store_looked_timestamp_seconds", "gauge", "When the figures of the store were taken."),
    Family("muniment_workers", "gauge", "Processes of this server that are alive."),
    Family("muniment_build_info", "gauge", "Always 1; its labels say what runs.", ("version", "python", "engine")),
    Family(
        "muniment_metrics_dropped_total",
        "counter",
        "What was not counted because too many different labels were counted already.",
        (),
        "process",
    ),
    Family("process_cpu_seconds_total", "counter", "CPU time of the server's processes.", (), "process"),
    Family("process_resident_memory_bytes", "gauge", "Resident memory of the server's processes.", (), "process"),
    Family("process_open_fds", "gauge", "Open file descriptors of the server's processes.", (), "process"),
    Family("process_start_time_seconds", "gauge", "When the process that answers was started."),
)
"""In the order in which the page tells them."""

_BY_NAME = {each.name: each for each in FAMILIES}


def family(name: str) -> Family:
    return _BY_NAME[name]
