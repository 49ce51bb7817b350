"""Learn the weights of `FactCheckPolicy` from the shared data, and say how they hold on what they did not learn from.

    python -m benchmarks.learn_facts [--data DIR]

Two logistic regressions over the signs of `verify.facts.scoring`, whose chances are multiplied, on eleven sets at once:
six of cited answers, BUMP and four domains of SummEdits. An output is supported if the source speaks of it and nothing
was changed; which of the two a wrong one fails is not known, so they are learned in turns, each from what the other
leaves open (expectation and maximisation). Every set has its share, and in a set what is supported counts as much as
what is not, so that no sign can learn which set an output is from. No weight has the wrong sign. The kinds of doubt
share one weight and have a part of their own besides, drawn to nothing: a kind too rare to learn keeps the shared one.
Each set is then scored by what was learned from all the others (BUMP also by fifths of its articles), and from these
numbers, of sets that had no part in them, the scale is learned by which the sum is a chance (Platt). The result goes to
benchmarks/results with its provenance; `benchmarks.verify_support` has the tables.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.harness import RESULTS
from benchmarks.support_sets import ATTRIBUTION, DOMAINS, SETS, Case, read_cases
from muniment.core.policy import ChangeWeights, DoubtWeights, FactCheckPolicy, WordingWeights
from muniment.verify.facts._score import CHANGE_SIGNS, DOUBT_SIGNS, WORDING_SIGNS, pressed, read_signs
from muniment.verify.facts._source import Source, SourceText
from muniment.verify.facts.check import measure_units

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]

SIGNS = (*WORDING_SIGNS, *CHANGE_SIGNS)
OWN = (
    "number_absent",
    "name_absent",
    "opposed",
    "no_antecedent",
    "wrong_gender",
    "link_changed",
    "number_unmatched",
    "verb_unmatched",
    "place_unmatched",
)
"""Kinds of doubt that have a part of their own in their weight; chosen on left-out sets."""
SHARED = tuple(name for name in DOUBT_SIGNS if not name.endswith("_unmatched") and name != "polarity_changed")
"""Kinds that share a weight: not those of slots, which `swapped` tells of."""
LEAST = 0.05
"""No kind of doubt weighs less."""
STRENGTH = 20.0
TURNS = 25
SIZE = 300.0
SHARES = dict.fromkeys(ATTRIBUTION, 1.0) | {"lfqa": 0.4, "attributedqa": 0.4, "bump": 1.0} | dict.fromkeys(DOMAINS, 0.5)
"""How many times `SIZE` outputs each set counts; the two small ones and each domain of SummEdits less."""
FOLDS = 5
JOBS = 2
"""Sets that are read at a time."""


@dataclass(frozen=True)
class Table:
    """One row an output."""

    signs: Array
    verdicts: Rows
    """Is every unit supported?"""
    good: Rows
    partial: Rows
    sets: npt.NDArray[np.str_]
    groups: npt.NDArray[np.int_]
    """Rows of one number have the same sources."""
    folds: npt.NDArray[np.int_]
    """The fold of an article of BUMP; -1 elsewhere."""

    def of(self, name: str) -> Rows:
        return np.asarray(self.sets == name)


def look(cases: Sequence[Case]) -> list[tuple[list[float], bool]]:
    """The signs of each case, and is every unit of it supported?"""
    policy = FactCheckPolicy()
    source = Source([])
    rows: list[tuple[list[float], bool]] = []
    last: tuple[str, ...] | None = None
    for case in cases:
        if case.sources != last:
            source = Source([SourceText(str(at), text) for at, text in enumerate(case.sources)])
            last = case.sources
        units = measure_units(case.output, source, policy)
        found = read_signs(units, policy.doubts_max)
        rows.append(([found[name] for name in SIGNS], bool(units) and all(unit.is_supported for unit in units)))
    return rows


def tabulate(cases: Sequence[Case]) -> Table:
    groups: dict[tuple[str, ...], int] = {}
    for case in cases:
        groups.setdefault(case.sources, len(groups))
    sets_ = [list(own) for _, own in groupby(cases, key=lambda case: case.set)]
    with ProcessPoolExecutor(JOBS) as pool:
        rows = [row for own in pool.map(look, sets_) for row in own]
    articles = {
        sources: place % FOLDS
        for place, sources in enumerate(dict.fromkeys(case.sources for case in cases if case.set == "bump"))
    }
    return Table(
        np.array([signs for signs, _ in rows]),
        np.array([verdict for _, verdict in rows]),
        np.array([case.good for case in cases]),
        np.array([case.label == "partial" for case in cases]),
        np.array([case.set for case in cases]),
        np.array([groups[case.sources] for case in cases]),
        np.array([articles[case.sources] if case.set == "bump" else -1 for case in cases]),
    )


# -- learning -----------------------------------------------------------------------------------------


class Weights(NamedTuple):
    """What was learned: each sign's weight, both heads with a constant behind."""

    wording: Array
    change: Array


def solve(inputs: Array, wanted: Array, counts: Array, strength: Array, start: Array | None = None) -> Array:
    """Logistic regression by Newton's method, drawn to 0; weights that would be negative are held at 0."""
    free = np.ones(inputs.shape[1], bool)
    weights = np.zeros(inputs.shape[1]) if start is None else start.copy()
    while True:
        weights[~free] = 0
        for _ in range(50):
            expected = 1 / (1 + np.exp(-np.clip(inputs @ weights, -30, 30)))
            slope = inputs.T @ (counts * (expected - wanted)) + strength * weights
            bend = (inputs * (counts * expected * (1 - expected))[:, None]).T @ inputs + np.diag(strength)
            step = np.linalg.solve(bend[np.ix_(free, free)], slope[free])
            weights[free] -= step
            if np.abs(step).max() < 1e-6:
                break
        negative = free & (weights < 0)
        negative[-1] = False  # the last one is the constant
        if not negative.any():
            return weights
        free &= ~negative


def count_rows(table: Table, rows: Rows) -> Array:
    """What each row counts: a set its share, in it both labels the same."""
    counts = np.zeros(len(table.good))
    for name in SETS:
        for good in (True, False):
            chosen = rows & table.of(name) & (table.good == good)
            if chosen.any():
                counts[chosen] = SIZE * SHARES[name] / 2 / chosen.sum()
    return counts


def heads(table: Table) -> tuple[Array, Array]:
    """What each head reads: wording; shared doubts, doubts of their own and slots, which are taken off."""
    columns = dict(zip(SIGNS, table.signs.T, strict=True))
    shared = np.sum([columns[name] for name in SHARED], axis=0)
    change = [shared, *(columns[name] for name in (*OWN, "swapped", "swapped_far"))]
    return np.stack([columns[name] for name in WORDING_SIGNS], axis=1), -np.stack(change, axis=1)


def chance(odds: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -30, 30))))


def learn(table: Table, rows: Rows) -> Weights:
    """Weights of the signs and constants, from some rows."""
    scaled, scales = [], []
    for own in heads(table):
        scales.append(own[rows].std(axis=0) + 1e-3)
        scaled.append(np.hstack([own[rows] / scales[-1], np.ones((int(rows.sum()), 1))]))
    good, counts = table.good[rows].astype(float), count_rows(table, rows)[rows]
    found: list[Array] = [np.append(np.zeros(own.shape[1] - 1), 1.0) for own in scaled]
    strengths = [np.append(np.full(own.shape[1] - 1, STRENGTH), 1e-3) for own in scaled]
    for _ in range(TURNS):
        first, second = (chance(own @ weights) for own, weights in zip(scaled, found, strict=True))
        both = first * second
        for at, (mine, other) in enumerate(((first, second), (second, first))):
            wanted = np.where(good > 0, 1.0, mine * (1 - other) / np.maximum(1e-9, 1 - both))
            found[at] = solve(scaled[at], wanted, counts, strengths[at], found[at])
    wording, change = (np.append(own[:-1] / scale, own[-1]) for own, scale in zip(found, scales, strict=True))
    return Weights(wording, change)


def scores(table: Table, weights: Weights) -> Array:
    """Log-odds, before the scale is worked in and the verdict has its word."""
    wording, change = heads(table)
    both = chance(wording @ weights.wording[:-1] + weights.wording[-1])
    both = both * chance(change @ weights.change[:-1] + weights.change[-1])
    return np.asarray(np.log(both / (1 - both)))


def press(odds: Array, verdicts: Rows) -> Array:
    """What the verdict leaves of the log-odds."""
    return np.array([pressed(one) if good else -pressed(-one) for one, good in zip(odds, verdicts, strict=True)])


def left_out(table: Table) -> tuple[Array, Array]:
    """Log-odds of every row by what was learned without its set; and without its fold of BUMP."""
    whole = np.full(len(table.good), np.nan)
    folds = np.full(len(table.good), np.nan)
    for name in SETS:
        out = table.of(name)
        whole[out] = scores(table, learn(table, ~out))[out]
    for fold in range(FOLDS):
        out = table.folds == fold
        folds[out] = scores(table, learn(table, ~out))[out]
    return whole, folds


def learn_scale(odds: Array, table: Table, rows: Rows) -> tuple[float, float]:
    """Slope and constant by which log-odds of sets that were left out become a chance (Platt), sets counting alike."""
    inputs = np.stack([odds[rows], np.ones(int(rows.sum()))], axis=1)
    found = solve(inputs, table.good[rows].astype(float), count_rows(table, rows)[rows], np.full(2, 1e-6))
    return float(found[0]), float(found[1])


def make_policy(weights: Weights, slope: float, shift: float) -> FactCheckPolicy:
    """The policy of some weights."""
    change = dict(zip(("shared", *OWN, "swapped", "swapped_far"), weights.change[:-1], strict=True))
    doubts = {name: change["shared"] * (name in SHARED) + change.get(name, 0.0) for name in DOUBT_SIGNS}
    wording = dict(zip(WORDING_SIGNS, weights.wording[:-1], strict=True))
    return FactCheckPolicy(
        wording=WordingWeights(base=_kept(weights.wording[-1]), **{name: _kept(one) for name, one in wording.items()}),
        change=ChangeWeights(
            base=_kept(weights.change[-1]), swapped=_kept(change["swapped"]), swapped_far=_kept(change["swapped_far"])
        ),
        doubts=DoubtWeights(**{name: max(LEAST, _kept(one)) for name, one in doubts.items()}),
        slope=_kept(slope),
        shift=_kept(shift),
    )


def _kept(value: float) -> float:
    return round(float(value), 4)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    options = parser.parse_args(argv)
    table = tabulate(read_cases(options.data))
    every = np.ones(len(table.good), bool)
    odds, _ = left_out(table)
    slope, shift = learn_scale(odds, table, every)
    policy = make_policy(learn(table, every), slope, shift)
    document: dict[str, Any] = {
        "policy": policy.model_dump(mode="json"),
        "digest": policy.digest,
        "provenance": {
            "command": "python -m benchmarks.learn_facts",
            "sets": {name: int(table.of(name).sum()) for name in SETS},
            "shares": SHARES,
            "strength": STRENGTH,
            "turns": TURNS,
            "outputs_with": {name: int((table.signs[:, at] > 0).sum()) for at, name in enumerate(SIGNS)},
        },
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "fact_check_policy.json").write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
