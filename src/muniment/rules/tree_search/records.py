"""A tree search as it is kept: resumable from these alone (RC-22)."""

from typing import Literal

from muniment.core.policy import TreePolicy
from muniment.core.record import Absent, Confidence, Count, Items, JsonValue, NonEmpty, Number, Record

__all__ = ["TreeEnd", "TreeNodeRecord", "TreeNodeStatus", "TreeSearchRecord"]

TreeNodeStatus = Literal["verify", "score", "open", "expanded", "left", "dropped"]
"""To be verified, to be scored, waiting, expanded; left alone, being too deep or because it cannot be expanded; dropped
from a full frontier, and welcome again."""


class TreeNodeRecord(Record):
    """One state of the tree. Its number is its place in the list; the first stands for all starting states."""

    parent: Absent[Count] = None
    key: str
    state: JsonValue = None
    prior: Absent[Number] = None
    """As it was given, not yet weighed against its siblings."""
    value: Absent[Confidence] = None
    status: TreeNodeStatus
    unknown: Absent[Literal[True]] = None
    """The verifier could not say."""


class TreeEnd(Record):
    """Why a search is over."""

    kind: Literal["solved", "exhausted", "budget"]
    cap: Absent[Literal["nodes", "calls", "cost", "failures", "time", "stopped"]] = None
    node: Absent[Count] = None
    """The state that was verified."""


class TreeSearchRecord(Record):
    """All that the rest of a search depends on."""

    schema_version: Literal["tree_search.v1"] = "tree_search.v1"
    policy: TreePolicy
    scored: bool
    nodes: Items[TreeNodeRecord]
    beam: Items[Count] = ()
    level: Items[Count] = ()
    calls: Count = 0
    cost: Number = 0
    frontier_max: Count = 0
    duplicates: Count = 0
    cuts: dict[NonEmpty, Count]
    """What was left out, by why."""
    faults: dict[NonEmpty, Count]
    """Calls that failed, by reason code."""
    said: Absent[str] = None
    """What went wrong first, in words."""
    end: Absent[TreeEnd] = None
