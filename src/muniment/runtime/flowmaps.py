"""The flow map of a bank (RC-23): its logs read one by one, in memory that does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from muniment.flowmap.rows import ALL_BUCKETS, FlowRow, stage_of
from muniment.flowmap.snapshots import check_window, estimator_of, flow_snapshot
from muniment.flowmap.tally import FlowTally
from muniment.ports.engine import Condition, Select
from muniment.routing.log_rows import row_of
from muniment.runtime.patches import instant_of
from muniment.runtime.recalling import bucket_given
from muniment.text.canonical import read_canonical

if TYPE_CHECKING:
    from muniment.ports.engine import Reader
    from muniment.records.flowmap import FlowMapSnapshot
    from muniment.runtime.context import Context

__all__ = ["flow_map", "flow_row", "flow_rows"]

_JUDGED = ("passed", "failed")
"""The status of a log whose run has ended. A run has one such version."""


def flow_map(
    ctx: Context,
    tenant_id: str,
    owner: str,
    *,
    since: Any = None,
    until: Any = None,
    bucket_key: str | None = None,
    estimator: str | None = None,
) -> FlowMapSnapshot:
    """The map of the runs that a bank logged from `since` until before `until`."""
    start, end = instant_of(since, "$.since"), instant_of(until, "$.until")
    check_window(start, end)
    bucket, kind = bucket_given(bucket_key) or ALL_BUCKETS, estimator_of(estimator, ctx.policy.flow.estimator)
    tally = FlowTally(ctx.policy.flow)
    with ctx.engine.snapshot(tenant_id) as reader:
        tally.add_all(flow_rows(reader, owner, start, end))
    return flow_snapshot(tally, kind, now=ctx.now(), bucket_key=bucket, start_at=start, end_at=end)


def flow_rows(reader: Reader, owner: str, start: str | None = None, end: str | None = None) -> Iterator[FlowRow]:
    """The judged runs of a bank, in the order they were logged."""
    where: tuple[Condition, ...] = (
        ("kind", "=", "event_log"),
        ("user_id", "=", owner),
        ("status", "in", _JUDGED),
        ("created_at", ">=", start or ""),  # always asked: so the rows come from an index in this order, never sorted
    )
    if end is not None:
        where = (*where, ("created_at", "<", end))
    order = ("created_at", "id", "version")
    for at, text in reader.stream(Select("items", where=where, order=order, columns=("created_at", "body"))):
        row = None if text is None else flow_row(cast("dict[str, Any]", read_canonical(str(text))), str(at))
        if row is not None:
            yield row


def flow_row(body: Mapping[str, Any], at: str) -> FlowRow | None:
    """A stored log as the map reads it; None where nobody judged the run."""
    row, log = row_of(body), body["event_log"]
    if row.verdict is None:
        return None
    return FlowRow(
        trace_id=log["trace_id"],
        stage=stage_of(row.mode),
        verdict=row.verdict,
        outcome=row.outcome or "",
        passed=row.passed if row.counts else None,
        reason_codes=row.reason_codes,
        cost=row.cost,
        mode=row.mode,
        tier=row.tier,
        bucket_key=row.bucket_key,
        at=at,
        hints=len(_part(log, "memory_recall").get("used_ids") or ()),
        rules=len(log.get("selected_rules") or ()),
        k=_part(log, "rollout_select").get("rollouts_n") or 1,
    )


def _part(block: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return block.get(name) or {}
