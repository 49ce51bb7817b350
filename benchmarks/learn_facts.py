"""Learn the weights of `FactCheckPolicy` from the shared data, and say how they hold on what they did not learn from.

    python -m benchmarks.learn_facts [--data DIR]

One logistic regression over the signs of `verify.facts.scoring`, on eleven sets at once: six of cited answers, BUMP and
four domains of SummEdits. Every set has its share, and in a set what is supported counts as much as what is not, so
that no sign can learn which set an output is from. BUMP's pairs count besides. No weight has the wrong sign; kinds of
doubt are drawn towards one weight for all of them, so that a kind too rare to learn keeps it.
Each set is then scored by what was learned from all the others (BUMP also by fifths of its articles), and from these
numbers, of sets that had no part in them, the scale is learned by which the sum is a chance (Platt). The result goes to
benchmarks/results with its provenance; `benchmarks.verify_support` has the tables.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.harness import RESULTS
from benchmarks.support_sets import ATTRIBUTION, DOMAINS, SETS, Case, read_cases
from muniment.core.policy.verify import DoubtWeights, FactCheckPolicy, NearnessWeights
from muniment.verify.facts.checking import measure_units
from muniment.verify.facts.scoring import DOUBT_SIGNS, NEAR_SIGNS, Measured, pressed, read_signs
from muniment.verify.facts.source import Source, SourceText

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]

SIGNS = (*DOUBT_SIGNS, *NEAR_SIGNS)
AGAINST = (*DOUBT_SIGNS, "doubted", "contradicted", "swapped", "unmatched")
"""What is taken off."""
PRIOR = 0.3
"""The weight that every kind of doubt is drawn to, in log-odds."""
LEAST = 0.05
"""No kind of doubt weighs less."""
STRENGTH = 50.0
SIZE = 300.0
SHARES = dict.fromkeys(ATTRIBUTION, 1.0) | {"lfqa": 0.4, "attributedqa": 0.4, "bump": 1.0} | dict.fromkeys(DOMAINS, 0.5)
"""How many times `SIZE` outputs each set counts; the two small ones and each domain of SummEdits less."""
PAIRS_SHARE = 0.5
"""The same for BUMP's pairs."""
FOLDS = 5


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

    def pairs(self, rows: Rows) -> npt.NDArray[np.int_]:
        """Places of BUMP's references among some rows; the edited one stands behind each."""
        return np.flatnonzero(rows & self.of("bump") & self.good)


def tabulate(cases: Sequence[Case]) -> Table:
    policy = FactCheckPolicy()
    groups: dict[tuple[str, ...], int] = {}
    source = Source([])
    signs, verdicts = [], []
    last: tuple[str, ...] | None = None
    for case in cases:
        groups.setdefault(case.sources, len(groups))
        if case.sources != last:
            source = Source([SourceText(str(at), text) for at, text in enumerate(case.sources)])
            last = case.sources
        units: list[Measured] = measure_units(case.output, source, policy)
        found = read_signs(units, policy.doubts_max)
        signs.append([found[name] for name in SIGNS])
        verdicts.append(bool(units) and all(unit.is_supported for unit in units))
    articles = {
        sources: place % FOLDS
        for place, sources in enumerate(dict.fromkeys(case.sources for case in cases if case.set == "bump"))
    }
    return Table(
        np.array(signs),
        np.array(verdicts),
        np.array([case.good for case in cases]),
        np.array([case.label == "partial" for case in cases]),
        np.array([case.set for case in cases]),
        np.array([groups[case.sources] for case in cases]),
        np.array([articles[case.sources] if case.set == "bump" else -1 for case in cases]),
    )


# -- learning -----------------------------------------------------------------------------------------


def solve(inputs: Array, wanted: Array, counts: Array, prior: Array, strength: Array) -> Array:
    """Logistic regression by Newton's method, drawn to a prior; weights that would be negative are held at 0."""
    free = np.ones(inputs.shape[1], bool)
    weights = prior.copy()
    while True:
        weights[~free] = 0
        for _ in range(50):
            expected = 1 / (1 + np.exp(-np.clip(inputs @ weights, -30, 30)))
            slope = inputs.T @ (counts * (expected - wanted)) + strength * (weights - prior)
            bend = (inputs * (counts * expected * (1 - expected))[:, None]).T @ inputs + np.diag(strength)
            step = np.linalg.solve(bend[np.ix_(free, free)], slope[free])
            weights[free] -= step
            if np.abs(step).max() < 1e-8:
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


def learn(table: Table, rows: Rows) -> Array:
    """Weights of the signs, taken off where they speak against, and the constant."""
    turned = table.signs * np.array([-1.0 if name in AGAINST else 1.0 for name in SIGNS])
    scale = turned[rows].std(axis=0) + 1e-3
    inputs = np.hstack([turned / scale, np.ones((len(turned), 1))])
    first = table.pairs(rows)
    counts = np.concatenate(
        [count_rows(table, rows)[rows], np.full(len(first), SIZE * PAIRS_SHARE / max(1, len(first)))]
    )
    stacked = np.vstack([inputs[rows], inputs[first] - inputs[first + 1]])
    wanted = np.concatenate([table.good[rows].astype(float), np.ones(len(first))])
    prior = np.array([*(PRIOR if name in DOUBT_SIGNS else 0.0 for name in SIGNS), 0.0]) * np.append(scale, 1.0)
    strength = np.append(np.full(len(SIGNS), STRENGTH), 1e-6)
    found = solve(stacked, wanted, counts, prior, strength)
    return np.append(found[:-1] / scale, found[-1])


def scores(table: Table, weights: Array) -> Array:
    """Log-odds, before the verdict has its word."""
    turned = table.signs * np.array([-1.0 if name in AGAINST else 1.0 for name in SIGNS])
    return np.asarray(turned @ weights[:-1] + weights[-1])


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
    counts = count_rows(table, rows)[rows]
    inputs = np.stack([odds[rows], np.ones(int(rows.sum()))], axis=1)
    found = solve(inputs, table.good[rows].astype(float), counts, np.array([1.0, 0.0]), np.full(2, 1e-6))
    return float(found[0]), float(found[1])


def make_policy(weights: Array, slope: float, shift: float) -> FactCheckPolicy:
    """The policy of some weights, with the scale worked in."""
    by_name = dict(zip(SIGNS, (round(float(one), 4) for one in weights[:-1] * slope), strict=True))
    return FactCheckPolicy(
        base=round(float(weights[-1]) * slope + shift, 4),
        doubts=DoubtWeights(**{name: max(LEAST, by_name[name]) for name in DOUBT_SIGNS}),
        nearness=NearnessWeights(**{name: by_name[name] for name in NEAR_SIGNS}),
    )


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
            "shares": SHARES | {"bump pairs": PAIRS_SHARE},
            "prior": PRIOR,
            "strength": STRENGTH,
            "scale": {"slope": round(slope, 4), "shift": round(shift, 4)},
            "outputs_with": {name: int((table.signs[:, at] > 0).sum()) for at, name in enumerate(SIGNS)},
        },
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "fact_check_policy.json").write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
