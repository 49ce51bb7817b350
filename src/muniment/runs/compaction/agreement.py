"""Is a kept log what the ledger folds to? (CS-12)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muniment.contracts.snapshot import SnapshotCheck
from muniment.runs.records import RunLog

__all__ = ["compare_logs"]

_SINCE = frozenset({"sequence", "counted_since", "steps_since"})
"""What depends on when one looks, not on what happened."""
_IDS = {"claims": "claim_id", "conflicts": "conflict_id", "failures": "failure_id", "open_questions": "question_id"}
_NAMED_MAX = 3


def compare_logs(kept: RunLog, replayed: RunLog, damaged: Iterable[str] = ()) -> SnapshotCheck:
    """The check `replay`: names what differs, and before it the entries that could not be replayed."""
    unread = list(damaged)
    differing = [*unread, *_differing(kept, replayed)]
    if not differing:
        return SnapshotCheck(name="replay", status="PASS", message="a replay of the whole ledger gives the same state")
    more = len(differing) - _NAMED_MAX
    said = "; ".join(differing[:_NAMED_MAX]) + (f"; and {more} more" if more > 0 else "")
    found = "the ledger cannot be replayed" if unread else "a replay of the ledger gives another state"
    return SnapshotCheck(name="replay", status="FAIL", message=f"{found}: {said}")


def _differing(kept: RunLog, replayed: RunLog) -> Iterator[str]:
    for name in RunLog.model_fields:
        ours, theirs = getattr(kept, name), getattr(replayed, name)
        if name in _SINCE or ours == theirs:
            continue
        key = _IDS.get(name)
        if key is None:
            yield name
            continue
        held = {getattr(each, key): each for each in ours}
        told = {getattr(each, key): each for each in theirs}
        ids = [id_ for id_ in held | told if held.get(id_) != told.get(id_)]
        yield from (f"{name}: {id_}" for id_ in ids) if ids else iter([f"{name}: their order"])
