"""What both estimators read from a tally: the cells of a bucket or of all, and the interventions there are to judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from muniment.core.stats import Tally
from muniment.errors import NotFound
from muniment.rules.flowmap.rows import ALL_BUCKETS, ALL_CODES, NO_TIER, ArmKey
from muniment.rules.flowmap.tally import FlowTally

__all__ = [
    "BASES",
    "Change",
    "RiskCell",
    "arm_keys",
    "changes_of",
    "code_cells",
    "named",
    "rounded",
    "tally_of",
]

BASES: dict[str, tuple[str | bool, ...]] = {
    "mode": ("main",),
    "tier": ("hot", NO_TIER),
    "k": ("1",),
    "hints": (False,),
    "rules": (False,),
}
"""Doing nothing of the kind. The first of them stands for all."""
PACKAGE = ("mode", "tier", "k")
"""What mostly comes together, and cannot be told apart where it does."""
_DIGITS = 6


class RiskCell(NamedTuple):
    """A stage and a code: of `n` logs of the stage `risky` went wrong with the code; `code_n` had it at all."""

    stage: str
    code: str
    n: int
    risky: int
    code_n: int


class Change(NamedTuple):
    """An intervention: one field of an arm's key, and what it is set to."""

    field: str
    level: str | bool


def rounded(value: float) -> float:
    """A figure as it is published: the last bits of a float are no information."""
    return round(value, _DIGITS) + 0.0


def code_cells(tally: FlowTally, bucket_key: str) -> list[RiskCell]:
    """The cells of the map of a bucket, or of all buckets together, stage by stage."""
    logs: defaultdict[str, int] = defaultdict(int)
    counted: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for key, counts in tally.codes.items():
        if bucket_key in (ALL_BUCKETS, key.bucket):
            n, risky = sum(counts[::2]), sum(counts[1::2])
            counted[key.stage, key.code][0] += n
            counted[key.stage, key.code][1] += risky
            logs[key.stage] += n if key.code == ALL_CODES else 0
    if not logs:
        raise NotFound(f"no logs of the bucket {bucket_key!r:.80} in this window", path="$.bucket_key", hint=_HINT)
    return [
        RiskCell(stage, code, logs[stage], min(risky, logs[stage]), n)
        for (stage, code), (n, risky) in sorted(counted.items())
    ]


_HINT = "leave the bucket out to see all of them"


def arm_keys(tally: FlowTally, bucket_key: str) -> list[ArmKey]:
    """What runs had, of a bucket or of all, in one order."""
    return sorted(key for key in tally.arms if bucket_key in (ALL_BUCKETS, key.bucket))


def changes_of(keys: list[ArmKey]) -> Iterator[Change]:
    """Every intervention that some task began with. How many attempts it had is told by the task itself."""
    for field, bases in BASES.items():
        for level in sorted({getattr(key, field) for key in keys} - set(bases)) if field != "k" else ():
            yield Change(field, level)


def without(key: ArmKey, change: Change) -> ArmKey:
    """The arm of a run without the intervention: a mode, a tier or more attempts go together with what they brought."""
    gone: dict[str, Any] = {field: BASES[field][0] for field in _fields(change)}
    return key._replace(**gone)


def side_of(key: ArmKey, change: Change) -> bool | None:
    """True for runs with the intervention, False for those with nothing of the kind, None for the others."""
    if getattr(key, change.field) == change.level:
        return True
    is_base = all(getattr(key, field) in BASES[field] for field in _fields(change))
    return False if is_base else None


def _fields(change: Change) -> tuple[str, ...]:
    return PACKAGE if change.field in PACKAGE else (change.field,)


def named(change: Change) -> str:
    """`hints`, `mode:synth`, `tier:full`, `K:2-4`."""
    field = "K" if change.field == "k" else change.field
    return field if change.level is True else f"{field}:{change.level}"


def tally_of(tally: FlowTally, key: ArmKey) -> Tally:
    """Passes of judged tasks of an arm, by what they began with."""
    arm = tally.arm(key)
    return Tally(sum(arm.passes), sum(arm.n))
