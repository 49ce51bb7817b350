"""A flow map as a grid that can be drawn: stages by reason codes, the colours of risk, and interventions in order."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

from muniment.contracts.rules import FlowMapSnapshot, Intervention, StageHotspot
from muniment.errors import InvalidInput

__all__ = ["ALL", "STEPS", "HeatCell", "HeatGrid", "Lift", "heat_grid", "short", "step_of"]

ALL = "all"
"""The column of a stage as a whole."""
STEPS = (0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75)
"""Where each colour begins: the same on every map, so that two can be compared."""
_CODES_MAX = 16
_STAGES_MAX = 24
_LIFTS_MAX = 12
_CHARS_MAX = 30


class HeatCell(NamedTuple):
    """How often a log of the stage goes wrong with the code, and how many logs say so."""

    rate: float
    n: int
    risky: int | None
    thin: bool
    hint: str
    """All that is known of it, for who points at it."""


class Lift(NamedTuple):
    """An intervention as a line: its gain between its bounds."""

    name: str
    gain: float
    lower: float
    upper: float
    cost: float
    n: int


class HeatGrid(NamedTuple):
    title: str
    subtitle: str
    stages: tuple[str, ...]
    codes: tuple[str, ...]
    cells: dict[tuple[str, str], HeatCell]
    lifts: tuple[Lift, ...]
    left_out: str
    """What is in the map and not in the picture; empty where it is all there."""


def step_of(rate: float) -> int:
    """Which colour."""
    return bisect_right(STEPS, rate) - 1


def heat_grid(snapshot: FlowMapSnapshot) -> HeatGrid:
    """The grid of a map; one without a hotspot has nothing to be drawn of."""
    spots = [each for each in snapshot.risk.stage_hotspots or () if each.stage is not None]
    if not spots:
        raise InvalidInput("nothing went wrong in this window: there is nothing to draw", path="$.risk.stage_hotspots")
    stages = _ranked(spots, lambda each: str(each.stage))
    codes = _ranked([each for each in spots if each.reason_code is not None], lambda each: str(each.reason_code))
    columns = ((ALL,) if any(each.reason_code is None for each in spots) else ()) + codes[:_CODES_MAX]
    gains = snapshot.opportunity.interventions or ()
    return HeatGrid(
        title="Flow map: where runs go wrong",
        subtitle=_subtitle(snapshot),
        stages=stages[:_STAGES_MAX],
        codes=columns,
        cells={(str(each.stage), each.reason_code or ALL): _cell(each) for each in spots},
        lifts=tuple(_lift(each) for each in gains[:_LIFTS_MAX]),
        left_out=_left_out(len(stages), len(codes), len(gains)),
    )


def short(text: str) -> str:
    """A label that fits."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return shown if len(shown) <= _CHARS_MAX else shown[: _CHARS_MAX - 1] + "…"


def _ranked(spots: list[StageHotspot], name: Any) -> tuple[str, ...]:
    """Names by how many logs went wrong with them, most first."""
    mass: dict[str, float] = {}
    for each in spots:
        mass[name(each)] = mass.get(name(each), 0.0) + (each.risk_rate or 0.0) * (each.support_n or 0)
    return tuple(sorted(mass, key=lambda key: (-mass[key], key)))


def _number(record: StageHotspot | Intervention, name: str, default: float) -> float:
    value = (record.__pydantic_extra__ or {}).get(name)
    return float(value) if isinstance(value, int | float) else default


def _cell(spot: StageHotspot) -> HeatCell:
    rate, n = min(max(spot.risk_rate or 0.0, 0.0), 1.0), spot.support_n or 0
    risky = (spot.__pydantic_extra__ or {}).get("risky_n")
    lower, upper = _number(spot, "lower", rate), _number(spot, "upper", rate)
    hint = f"{spot.stage} · {spot.reason_code or 'all'}: {rate:.1%} ({lower:.1%} to {upper:.1%}), {n:,} logs"
    thin = bool((spot.__pydantic_extra__ or {}).get("thin", False))
    return HeatCell(rate, n, risky if isinstance(risky, int) else None, thin, hint)


def _lift(given: Intervention) -> Lift:
    gain = given.gain_pass or 0.0
    lower, upper = _number(given, "lower", gain), _number(given, "upper", gain)
    return Lift(given.intervention or "?", gain, lower, upper, given.delta_cost or 0.0, given.support_n or 0)


def _subtitle(snapshot: FlowMapSnapshot) -> str:
    bucket = "all buckets" if snapshot.bucket_key == "*" else snapshot.bucket_key
    window = snapshot.window
    when = f"{window.start_at[:16]} to {window.end_at[:16]}".replace("T", " ") if window is not None else "all time"
    kind = None if snapshot.estimator is None else snapshot.estimator.kind
    return " · ".join(part for part in (bucket, when, kind) if part)


def _left_out(stages: int, codes: int, gains: int) -> str:
    over = {"stages": stages - _STAGES_MAX, "codes": codes - _CODES_MAX, "interventions": gains - _LIFTS_MAX}
    said = [f"{count} more {name}" for name, count in over.items() if count > 0]
    return f"Not drawn: {', '.join(said)}." if said else ""
