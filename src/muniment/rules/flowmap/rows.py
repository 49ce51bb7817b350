"""A log as the flow map reads it, the task that it began, and the cells both are counted in."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

from muniment.errors import InvalidInput

__all__ = [
    "ALL_BUCKETS",
    "ALL_CODES",
    "NO_BUCKET",
    "NO_CODE",
    "NO_TIER",
    "OTHER",
    "ArmKey",
    "FlowRow",
    "FlowTask",
    "Rung",
    "Tried",
    "check_cost",
    "is_risky",
    "k_band",
    "stage_of",
]

ALL_BUCKETS = "*"
"""The `bucket_key` of a map of all buckets together."""
ALL_CODES = ""
OTHER = "(other)"
"""What is told apart no further: over the sizes of the policy."""
NO_BUCKET = "(no bucket)"
NO_CODE = "(no code)"
"""Went wrong, and nothing says how."""
NO_TIER = "(no tier)"
_COST_MAX = 1e15


class Rung(NamedTuple):
    """Up to `k` attempts of one mode and tier, made as long as none before has passed."""

    mode: str
    tier: str | None
    k: int


class Tried(NamedTuple):
    """One attempt at a task; `passed` is None where nobody could tell."""

    mode: str
    tier: str | None
    passed: bool | None
    cost: float


class FlowTask(NamedTuple):
    """What was planned for a task before anything was tried, and what was then made of it."""

    rungs: tuple[Rung, ...]
    attempts: tuple[Tried, ...]


class FlowRow(NamedTuple):
    """One log: where it went, how it ended, what it had and what it cost."""

    trace_id: str
    stage: str
    verdict: str
    outcome: str
    passed: bool | None
    """None where a verifier was asked and could not tell: a risk, and neither pass nor fail."""
    reason_codes: tuple[str, ...] = ()
    cost: float = 0.0
    mode: str = "main"
    tier: str | None = None
    bucket_key: str | None = None
    at: str = ""
    hints: int = 0
    rules: int = 0
    is_first: bool = True
    """Is it the first attempt at its task? What a later one had, it had because another failed."""
    task: FlowTask | None = None
    """Of a first attempt: the task. None where the log does not tell what was planned."""
    is_planned: bool = False
    """Of a later attempt: does the log of the first tell what was planned?"""


class ArmKey(NamedTuple):
    """What a task began with: those of one key differ in nothing the map knows of."""

    bucket: str
    mode: str
    tier: str
    hints: bool
    rules: bool
    k: str


def is_risky(verdict: str, outcome: str) -> bool:
    """The contract's risk: not passed, or not known to be right."""
    return verdict in ("FAIL", "PARTIAL") or outcome in ("FAIL", "UNKNOWN")


def stage_of(mode: str) -> str:
    """`main→verify`, `synth→verify`."""
    return f"{mode}→verify"


def k_band(k: int) -> str:
    """How many attempts, in the bands that mean something: one, a probe, a full search."""
    return "1" if k <= 1 else "2-4" if k <= 4 else "5+"


def check_cost(cost: float) -> float:
    if not isfinite(cost) or not 0 <= cost <= _COST_MAX:
        raise InvalidInput(f"a log that cost {cost!r}", path="$.cost", hint="a number from 0")
    return cost
