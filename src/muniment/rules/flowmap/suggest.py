"""What a flow map would have the router's thresholds be: said, never done.

Each suggestion has its numbers, the runs behind it and a sentence that says how it comes about. Where the bounds leave
room for the threshold as it is, nothing is suggested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from muniment.contracts.rules import FlowMapSnapshot, Intervention, StageHotspot
from muniment.core.policy import FlowMapPolicy
from muniment.rules.flowmap.cells import rounded
from muniment.rules.flowmap.rows import stage_of

__all__ = ["Suggestion", "suggest_thresholds"]

_RATE_MIN, _RATE_MAX = 0.5, 0.99


class Suggestion(NamedTuple):
    """A threshold by its name in the router's policy."""

    threshold: str
    current: float
    suggested: float
    lower: float
    upper: float
    support_n: int
    text: str

    def to_wire(self) -> dict[str, Any]:
        return self._asdict()


class _MapFigures(NamedTuple):
    """The parts of a map that suggestions rest on."""

    plain: StageHotspot | None
    """All logs of plain runs."""
    gains: Mapping[str, Intervention]
    gain_min: float


def suggest_thresholds(
    snapshot: FlowMapSnapshot, thresholds: Mapping[str, Any], policy: FlowMapPolicy
) -> tuple[Suggestion, ...]:
    """Suggest which of some thresholds should move; they are given by name, such as a RoutePolicy as plain data."""
    found = [
        make(seen, float(current))
        for seen in [_map_figures(snapshot, policy)]
        for name, make in _MAKERS.items()
        if isinstance(current := thresholds.get(name), int | float) and not isinstance(current, bool)
    ]
    return tuple(each for each in found if each is not None)


def _map_figures(snapshot: FlowMapSnapshot, policy: FlowMapPolicy) -> _MapFigures:
    """Read off a map what suggestions rest on."""
    spots = snapshot.risk.stage_hotspots or ()
    plain = next((each for each in spots if each.stage == stage_of("main") and each.reason_code is None), None)
    gains = {each.intervention or "": each for each in snapshot.opportunity.interventions or ()}
    return _MapFigures(plain, gains, policy.gain_min)


def _extra(record: StageHotspot | Intervention, name: str) -> float:
    value = (record.__pydantic_extra__ or {}).get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _easy_rate(seen: _MapFigures, current: float) -> Suggestion | None:
    """Scaling recovers a share of what fails: it pays until so little fails that the gain is below the least."""
    gain = seen.gains.get("tier:probe") or seen.gains.get("tier:full")
    fails = 0.0 if gain is None else 1 - _extra(gain, "base_pass")
    if gain is None or fails <= 0:
        return None
    span = (_extra(gain, "lower"), gain.gain_pass or 0.0, _extra(gain, "upper"))
    lower, suggested, upper = (_break_even(each / fails, seen.gain_min) for each in span)
    if lower <= current <= upper:
        return None
    text = (
        f"{gain.intervention} recovers {max(0.0, span[1] / fails):.0%} of what fails without it (gain {span[1]:+.3f}); "
        f"it brings less than {seen.gain_min:.2f} where more than {suggested:.0%} pass anyway"
    )
    return Suggestion("easy_rate", current, suggested, lower, upper, gain.support_n or 0, text)


def _break_even(recovered: float, gain_min: float) -> float:
    """The pass rate at which recovering this share of failures gains the least that is worth it."""
    edge = 1 - gain_min / recovered if recovered > 0 else _RATE_MIN
    return rounded(min(max(edge, _RATE_MIN), _RATE_MAX))


def _k_probe(seen: _MapFigures, current: float) -> Suggestion | None:
    """A probe that surely recovers next to nothing is an attempt wasted."""
    gain = seen.gains.get("K:2-4")
    if gain is None or current <= 1 or _extra(gain, "upper") >= seen.gain_min:
        return None
    text = f"attempts 2 to 4 recover at most {_extra(gain, 'upper'):.3f} of tasks, less than {seen.gain_min:.2f}"
    return _of_gain("k_probe", current, 1, gain, text)


def _k_full(seen: _MapFigures, current: float) -> Suggestion | None:
    """A full search that surely recovers next to nothing beyond a probe need not be one."""
    full = seen.gains.get("K:5+")
    if full is None or current <= 4 or _extra(full, "late_upper") >= seen.gain_min:
        return None
    most = _extra(full, "late_upper")
    text = f"attempts from the 5th on recover at most {most:.3f} of tasks, less than {seen.gain_min:.2f}"
    return _of_gain("k_full_max", current, 4, full, text)


def _of_gain(name: str, current: float, suggested: float, gain: Intervention, text: str) -> Suggestion:
    return Suggestion(name, current, suggested, _extra(gain, "lower"), _extra(gain, "upper"), gain.support_n or 0, text)


def _prior_rate(seen: _MapFigures, current: float) -> Suggestion | None:
    """What is expected of a tier that nobody has tried: as much as of a plain run."""
    plain = seen.plain
    if plain is None or plain.risk_rate is None or _extra(plain, "thin"):
        return None
    lower, upper = rounded(1 - _extra(plain, "upper")), rounded(1 - _extra(plain, "lower"))
    if lower <= current <= upper:
        return None
    suggested = rounded(1 - plain.risk_rate)
    text = f"{suggested:.0%} of plain runs were not at risk, over {plain.support_n} logs"
    return Suggestion("prior_rate", current, suggested, lower, upper, plain.support_n or 0, text)


_MAKERS: dict[str, Callable[[_MapFigures, float], Suggestion | None]] = {
    "easy_rate": _easy_rate,
    "k_probe": _k_probe,
    "k_full_max": _k_full,
    "prior_rate": _prior_rate,
}
