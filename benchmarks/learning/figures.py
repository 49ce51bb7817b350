"""The figures of the generated worlds: pass rates, cost per pass, how long after a drift, what the lessons are worth.

Intervals are 95 % of a bootstrap over seeds. Rates are of the truth, not of what the verifier said. How long it takes
after a drift is read off the rate that the agent has with what it is told (worked out for each run, so that it does not
hang on single outcomes), as a mean over seeds in windows of `WINDOW` runs of the family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.learning.arms import HARM, Lesson, Row

__all__ = [
    "LATER",
    "SEGMENT_NAMES",
    "SOON",
    "Seed",
    "arm_rows",
    "drift_rows",
    "lesson_rows",
    "line_rows",
    "share_interval",
]

Array = npt.NDArray[np.float64]
SEGMENT_NAMES = ("before", "after drift", "back again")
DRAWS = 10_000
WINDOW = 10
SOON, LATER = 30, 80
"""Runs of a family after a drift: by then as good as without memory, and better."""
ABOVE = 0.02
STAGES = ("candidate", "trial", "active", "suspended", "retired")

Seed = Mapping[str, Any]
"""What one seed brought: `arms` (name to rows) and `lessons` (segment to lessons)."""


def share_interval(top: Sequence[float], bottom: Sequence[float]) -> tuple[float, float, float]:
    """The sum of the one over that of the other, by seeds."""
    sums = np.array([top, bottom], np.float64)
    drawn = np.random.default_rng(0).integers(0, len(top), (DRAWS, len(top)))
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = sums[0][drawn].sum(axis=1) / sums[1][drawn].sum(axis=1)
        whole = sums[0].sum() / sums[1].sum()
    # a draw in which nothing passed has no cost per pass
    low, high = np.quantile(spread[np.isfinite(spread)], [0.025, 0.975])
    return float(whole), float(low), float(high)


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(value, 4) for value in values]


def arm_rows(seeds: Sequence[Seed], kinds: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Every arm before and after the drift, over all families and by family."""
    rows: dict[str, dict[str, Any]] = {}
    for segment, name in enumerate(SEGMENT_NAMES):
        for arm in seeds[0]["arms"]:
            rows[f"all families, {name}: {arm}"] = _rates(seeds, arm, partial(_is_of, segment, None))
    for kind in kinds:
        for segment, name in enumerate(SEGMENT_NAMES):
            for arm in seeds[0]["arms"]:
                rows[f"{kind}, {name}: {arm}"] = _rates(seeds, arm, partial(_is_of, segment, kind))
    return rows


def _is_of(segment: int, family: str | None, row: Row) -> bool:
    return row.segment == segment and family in (None, row.family)


def _rates(seeds: Sequence[Seed], arm: str, wanted: Callable[[Row], bool]) -> dict[str, Any]:
    held = [[row for row in seed["arms"][arm] if wanted(row)] for seed in seeds]
    passes = [sum(row.passed for row in rows) for rows in held]
    rate, low, high = _rounded(share_interval(passes, [len(rows) for rows in held]))
    cost, cost_low, cost_high = _rounded(share_interval([sum(row.cost for row in rows) for rows in held], passes))
    found = {"pass_rate": rate, "low": low, "high": high, "cost_per_pass": cost, "cost_low": cost_low}
    found |= {"cost_high": cost_high, "expected": round(float(np.mean([r.expected for rows in held for r in rows])), 4)}
    base = [[row for row in seed["arms"]["none"] if wanted(row)] for seed in seeds]
    gain = [
        sum(row.passed for row in one) - sum(row.passed for row in two) for one, two in zip(held, base, strict=True)
    ]
    over, over_low, over_high = _rounded(share_interval(gain, [len(rows) for rows in held]))
    return found | {"over_none": over, "over_low": over_low, "over_high": over_high}


# -- after a drift ------------------------------------------------------------------------------------


def drift_rows(seeds: Sequence[Seed], kinds: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Of each family and arm: the run after the drift from which on it is as good as without memory, and better."""
    rows: dict[str, dict[str, Any]] = {}
    for segment, name in ((1, "drift"), (2, "drift back")):
        for kind in kinds:
            for arm in seeds[0]["arms"]:
                if arm != "none":
                    rows[f"{name}, {kind}: {arm}"] = _drift(seeds, arm, kind, segment)
    return rows


def _drift(seeds: Sequence[Seed], arm: str, kind: str, segment: int) -> dict[str, Any]:
    def curve(name: str) -> Array:
        return np.array([
            [row.expected for row in seed["arms"][name] if row.family == kind and row.segment == segment]
            for seed in seeds
        ])  # fmt: skip

    over = curve(arm) - curve("none")
    means = over.mean(axis=0)
    windows = np.convolve(means, np.ones(min(WINDOW, len(means))) / min(WINDOW, len(means)), "valid")
    found: dict[str, Any] = {"back_after": _first(windows >= -ABOVE / 2), "above_after": _first(windows >= ABOVE)}
    for title, part in ((f"over_{SOON}_{LATER}", over[:, SOON:LATER]), (f"over_{LATER}_on", over[:, LATER:])):
        if part.size:
            whole, low, high = share_interval(part.sum(axis=1).tolist(), [part.shape[1]] * len(over))
            found |= {title: round(whole, 4), f"{title}_low": round(low, 4), f"{title}_high": round(high, 4)}
    return found


def _first(holds: npt.NDArray[np.bool_]) -> int | None:
    """The first run of the first window for which it holds; None where it never does."""
    places = np.flatnonzero(holds)
    return int(places[0]) if places.size else None


# -- lessons ------------------------------------------------------------------------------------------


def lesson_rows(seeds: Sequence[Seed], kinds: Sequence[str]) -> dict[str, dict[str, Any]]:
    """At the end of each segment: how many lessons, where they stand, and what they are by the truth of then."""
    rows: dict[str, dict[str, Any]] = {}
    for segment, name in enumerate(SEGMENT_NAMES):
        held = [lesson for seed in seeds for lesson in seed["lessons"][segment]]
        rows[f"lessons, end of {name}"] = _counts(held)
        for kind in kinds:
            rows[f"lessons, end of {name}, {kind}"] = _counts([each for each in held if each.family == kind])
    return rows


def worth(lesson: Lesson) -> str:
    return "useful" if lesson.effect >= HARM else "harmful" if lesson.effect <= -HARM else "idle"


def _counts(lessons: Sequence[Lesson]) -> dict[str, Any]:
    found: dict[str, Any] = {"made": len(lessons)}
    found |= {stage: sum(each.stage == stage for each in lessons) for stage in STAGES}
    for name in ("useful", "idle", "harmful"):
        found[name] = sum(worth(each) == name for each in lessons)
        found[f"active_{name}"] = sum(worth(each) == name and each.stage == "active" for each in lessons)
    return found


def line_rows(seeds: Sequence[Seed], kinds: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What was handed out: how often a line stands against the solution, and harmful lessons late after a drift."""
    rows: dict[str, dict[str, Any]] = {}
    for arm in seeds[0]["arms"]:
        if any(row.lines for seed in seeds for row in seed["arms"][arm]):
            for segment, name in enumerate(SEGMENT_NAMES):
                rows[f"handed out, {name}: {arm}"] = _handed(seeds, arm, segment, None)
                if arm == "ours":
                    for kind in kinds:
                        rows[f"handed out, {name}, {kind}: ours"] = _handed(seeds, arm, segment, kind)
    return rows


def _handed(seeds: Sequence[Seed], arm: str, segment: int, kind: str | None) -> dict[str, Any]:
    held = [
        row for seed in seeds for row in seed["arms"][arm]
        if row.segment == segment and row.lines and kind in (None, row.family)
    ]  # fmt: skip
    lines = [line for row in held for line in row.lines]
    lessons = [line for line in lines if line.is_lesson]
    starts = {row.family: 0 for row in held}
    for seed in seeds:
        for row in reversed(seed["arms"][arm]):
            if row.segment == segment:
                starts[row.family] = row.number
    late = [line for row in held if row.number - starts[row.family] >= LATER for line in row.lines if line.is_lesson]
    return {
        "recalls": len(held),
        "recalls_against": _share(sum(any(line.against for line in row.lines) for row in held), len(held)),
        "recalls_with_lesson_against": _share(
            sum(any(line.against and line.is_lesson for line in row.lines) for row in held),
            sum(any(line.is_lesson for line in row.lines) for row in held),
        ),
        "lines": len(lines),
        "lesson_lines": len(lessons),
        "lessons_against": _share(sum(line.against for line in lessons), len(lessons)),
        "harmful_lessons": sum(line.effect <= -HARM for line in lessons),
        f"harmful_lessons_after_{LATER}": sum(line.effect <= -HARM for line in late),
        f"lessons_after_{LATER}": len(late),
    }


def _share(count: int, whole: int) -> float | None:
    return round(count / whole, 4) if whole else None
