"""Where a rule stands in its life, as its record, a run and its log tell it."""

from typing import Literal

from muniment.core.record import Items, Number, Record
from muniment.core.scope import IdText, RuleType

__all__ = ["Arm", "CanaryPlan", "RuleArm", "RuleLayer", "RuleStage"]

RuleStage = Literal["drafted", "gated", "replayed", "canary", "active", "retired"]
"""drafted, gated, replayed and canary are `temporary` in the RuleRecord. A rule acts in `canary` and `active` alone."""
RuleLayer = Literal["learned", "user"]
"""Rules that a person wrote stand in a layer of their own: added, never changed, with a TTL, never a system guard."""
Arm = Literal["active", "canary", "holdout", "baseline"]
"""What a run did with a rule that applied to it: had it as an active rule or as one on trial; or left it out, being of
the few that leave an active rule out so that its worth stays known, or of those that a trial is compared with."""


class RuleArm(Record):
    """A rule that applied to a run, and whether the run had it."""

    rule_id: IdText
    version: str
    type: RuleType
    arm: Arm


class CanaryPlan(Record):
    """Which runs try a rule: a share by the hash of their ids, or all of these buckets, or a share of them."""

    canary_id: IdText
    share: Number
    bucket_keys: Items[str] = ()
    started_at: str
