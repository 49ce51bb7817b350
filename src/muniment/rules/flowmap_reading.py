"""The flow map of a bank (RC-23): its logs read one by one, in memory that does not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.instants import check_window
from muniment.learning.log_reading import LogWindow, stream_logs
from muniment.learning.recalling import bucket_given
from muniment.memory.patches import instant_of
from muniment.rules.flowmap.rows import ALL_BUCKETS, FlowRow, FlowTask, Rung, Tried, stage_of
from muniment.rules.flowmap.snapshots import estimator_of, flow_snapshot
from muniment.rules.flowmap.tally import FlowTally
from muniment.rules.routing.log_rows import row_of

if TYPE_CHECKING:
    from muniment.contracts.rules import FlowMapSnapshot
    from muniment.core.ports.engine import Reader
    from muniment.store.context import Context

__all__ = ["flow_map", "flow_row", "flow_rows"]


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
    for at, body in stream_logs(reader, LogWindow(owner, start, end), newest_first=False):
        row = flow_row(body, at)
        if row is not None:
            yield row


def flow_row(body: Mapping[str, Any], at: str) -> FlowRow | None:
    """A stored log as the map reads it; None where nobody judged the run."""
    row, log = row_of(body), body["event_log"]
    if row.verdict is None:
        return None
    task = _part(_part(log, "run"), "task")
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
        is_first=not (task.get("number") or row.after),
        task=_task_of(task),
        is_planned=bool(task),
    )


def _task_of(block: Mapping[str, Any]) -> FlowTask | None:
    """The task that a first attempt began; None where its log does not tell what was planned."""
    if not block.get("attempts"):
        return None
    return FlowTask(
        tuple(Rung(each["mode"], each.get("tier"), each["k"]) for each in block.get("rungs", ())),
        tuple(
            Tried(each["mode"], each.get("tier"), each.get("passed"), each.get("cost", 0.0))
            for each in block["attempts"]
        ),
    )


def _part(block: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return block.get(name) or {}
