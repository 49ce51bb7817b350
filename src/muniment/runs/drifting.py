"""Drift of long runs, measured from the ledger over a window (CS-13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import stream
from muniment.core.ports.schema import ENTRIES
from muniment.core.scope import is_reserved
from muniment.errors import InvalidInput
from muniment.memory.patches import instant_of
from muniment.runs.compaction.drift import DriftMeter
from muniment.runs.resuming import run_item
from muniment.store.ledger import entry_of_row

if TYPE_CHECKING:
    from typing import Any

    from muniment.runs.drift import DriftReport
    from muniment.store.context import Context

__all__ = ["measure"]


def measure(
    ctx: Context, tenant_id: str, user_id: str | None, run_id: str | None, since: Any, until: Any
) -> DriftReport:
    """Measure the drift of one run, of a user's runs or of the tenant's, by the entries recorded in the window."""
    start, end = instant_of(since, "$.since"), instant_of(until, "$.until")
    if start is not None and end is not None and end < start:
        raise InvalidInput("the window ends before it starts", path="$.until", hint="swap since and until")
    with ctx.engine.snapshot(tenant_id) as reader:
        where: tuple[Condition, ...] = ()
        if run_id is not None:
            item = run_item(reader, run_id, user_id)
            where = (("user_id", "=", item.user_id), ("session_id", "=", item.session_id), ("run_id", "=", run_id))
        elif user_id is not None:
            where = (("user_id", "=", user_id),)
        if start is not None:
            where = (*where, ("recorded_at", ">=", start))
        if end is not None:
            where = (*where, ("recorded_at", "<", end))
        meter = DriftMeter(ctx.policy.compaction)
        for row in stream(reader, ENTRIES, where, order=("user_id", "session_id", "seq")):
            if not is_reserved(row.user_id):  # what is written into a corpus is no run of an agent
                meter.see(entry_of_row(tenant_id, row))
    return meter.report()
