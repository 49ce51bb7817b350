"""Fit the weights of `FactCheckPolicy` on text whose licence permits shipping what was fitted on it.

    python -m benchmarks.learn_facts [--data DIR]

Three sets of cited answers (HAGRID, Stanford's generative search, ExpertQA), and the claims that `benchmarks.swaps`
makes of their supported rows: false by one slot, or true in other words. Two logistic regressions over the signs of
`verify.facts._score`, whose chances are multiplied: an output is supported if the source speaks of it and nothing was
changed. Which of the two a wrong output fails is known only for the made ones, so both are fitted by expectation and
maximisation. Every set counts alike, and so do supported and unsupported outputs within a set. No weight has the wrong
sign. The kinds of doubt share one weight; kinds that are common enough have a part of their own besides, shrunk
towards zero. Each set is then scored with what the other two taught, and on these numbers the scale is fitted by which
the product is a chance (Platt). All other sets are for measuring: `python -m benchmarks.verify_support`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.harness import RESULTS
from benchmarks.support_sets import PERMITTED, Case, read_cases
from benchmarks.swaps import make_claims
from benchmarks.verify_swaps import supported_rows
from muniment.core.policy import ChangeWeights, DoubtWeights, FactCheckPolicy, WordingWeights
from muniment.verify.facts._score import CHANGE_SIGNS, DOUBT_SIGNS, WORDING_SIGNS, read_signs
from muniment.verify.facts._source import Source, SourceText
from muniment.verify.facts.check import measure_units

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]

SIGNS = (*WORDING_SIGNS, *CHANGE_SIGNS)
OWN = ("number_absent", "name_absent", "opposed", "number_unmatched", "verb_unmatched")
"""Kinds of doubt with a part of their own in their weight: those that occur in a hundred outputs or more."""
SHARED = tuple(name for name in DOUBT_SIGNS if not name.endswith("_unmatched") and name != "polarity_changed")
"""Kinds that share a weight; `swapped` covers those of slots."""
DOUBT_MIN = 0.05
STRENGTH = 20.0
TURNS = 25
SIZE = 300.0
"""Outputs that each set counts for."""
SEED = "facts"


class Table(NamedTuple):
    """One row an output."""

    signs: Array
    good: Rows
    sets: npt.NDArray[np.str_]


class Weights(NamedTuple):
    """The weight of each sign, with the constant last."""

    wording: Array
    change: Array


def made_cases(data: Path, name: str) -> list[Case]:
    """Claims made of the supported rows of a set: one false and one true for each row, where both can be made."""
    cases: list[Case] = []
    for row in supported_rows(data, name):
        made = make_claims(row.claim, row.source, SEED)
        for is_true in (True, False):
            own = [one for one in made if one.true == is_true]
            text = Random(f"{SEED}/{row.claim}").choice(own).text if own else row.claim if is_true else None
            if text is not None:
                cases.append(Case(f"{name}, made", (row.source,), text, "supported" if is_true else "not"))
    return cases


def look(cases: Sequence[Case]) -> list[list[float]]:
    """The signs of each case."""
    policy = FactCheckPolicy()
    rows: list[list[float]] = []
    for case in cases:
        source = Source([SourceText(str(at), text) for at, text in enumerate(case.sources)])
        found = read_signs(measure_units(case.output, source, policy), policy.doubts_max)
        rows.append([found[name] for name in SIGNS])
    return rows


def tabulate(cases: Sequence[Case]) -> Table:
    names = list(dict.fromkeys(case.set for case in cases))
    ordered = [case for name in names for case in cases if case.set == name]
    with ProcessPoolExecutor(2) as pool:
        parts = pool.map(look, [[case for case in ordered if case.set == name] for name in names])
        rows = [row for part in parts for row in part]
    return Table(np.array(rows), np.array([case.good for case in ordered]), np.array([case.set for case in ordered]))


def solve(inputs: Array, wanted: Array, counts: Array, strength: Array, start: Array | None = None) -> Array:
    """Logistic regression by Newton's method, shrunk towards 0; weights that would be negative are held at 0."""
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


def count_rows(table: Table) -> Array:
    """What each row counts: every set the same, and in it both labels the same."""
    counts = np.zeros(len(table.good))
    for name in np.unique(table.sets):
        for good in (True, False):
            chosen = (table.sets == name) & (table.good == good)
            counts[chosen] = SIZE / 2 / max(1, chosen.sum())
    return counts


def heads(table: Table) -> tuple[Array, Array]:
    """The columns of wording, and those of change: shared doubts, doubts of their own and slots, all negated."""
    columns = dict(zip(SIGNS, table.signs.T, strict=True))
    shared = np.sum([columns[name] for name in SHARED], axis=0)
    change = [shared, *(columns[name] for name in (*OWN, "swapped", "swapped_far"))]
    return np.stack([columns[name] for name in WORDING_SIGNS], axis=1), -np.stack(change, axis=1)


def chance(odds: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -30, 30))))


def fit(table: Table) -> Weights:
    scaled, scales = [], []
    for own in heads(table):
        scales.append(own.std(axis=0) + 1e-3)
        scaled.append(np.hstack([own / scales[-1], np.ones((len(own), 1))]))
    counts = count_rows(table)
    is_made = np.char.endswith(table.sets, ", made")
    found: list[Array] = [np.append(np.zeros(own.shape[1] - 1), 1.0) for own in scaled]
    strengths = [np.append(np.full(own.shape[1] - 1, STRENGTH), 1e-3) for own in scaled]
    for _ in range(TURNS):
        first, second = (chance(own @ weights) for own, weights in zip(scaled, found, strict=True))
        both = first * second
        for at, (mine, other) in enumerate(((first, second), (second, first))):
            wanted = np.where(table.good, 1.0, mine * (1 - other) / np.maximum(1e-9, 1 - both))
            wanted = np.where(~table.good & is_made, float(at == 0), wanted)
            found[at] = solve(scaled[at], wanted, counts, strengths[at], found[at])
    wording, change = (np.append(own[:-1] / scale, own[-1]) for own, scale in zip(found, scales, strict=True))
    return Weights(wording, change)


def log_odds(table: Table, weights: Weights) -> Array:
    """The log-odds of the product, before it is scaled."""
    wording, change = heads(table)
    both = chance(wording @ weights.wording[:-1] + weights.wording[-1])
    both = both * chance(change @ weights.change[:-1] + weights.change[-1])
    return np.asarray(np.log(both / (1 - both)))


def left_out(table: Table) -> Array:
    """The log-odds of every row by what the other sets taught."""
    odds = np.full(len(table.good), np.nan)
    for name in PERMITTED:
        out = np.char.startswith(table.sets, name)
        rest = Table(table.signs[~out], table.good[~out], table.sets[~out])
        odds[out] = log_odds(table, fit(rest))[out]
    return odds


def make_policy(weights: Weights, slope: float, shift: float) -> FactCheckPolicy:
    change = dict(zip(("shared", *OWN, "swapped", "swapped_far"), weights.change[:-1], strict=True))
    doubts = {name: change["shared"] * (name in SHARED) + change.get(name, 0.0) for name in DOUBT_SIGNS}
    wording = dict(zip(WORDING_SIGNS, weights.wording[:-1], strict=True))
    return FactCheckPolicy(
        wording=WordingWeights(base=_kept(weights.wording[-1]), **{name: _kept(one) for name, one in wording.items()}),
        change=ChangeWeights(
            base=_kept(weights.change[-1]), swapped=_kept(change["swapped"]), swapped_far=_kept(change["swapped_far"])
        ),
        doubts=DoubtWeights(**{name: max(DOUBT_MIN, _kept(one)) for name, one in doubts.items()}),
        slope=_kept(slope),
        shift=_kept(shift),
    )


def _kept(value: float) -> float:
    return round(float(value), 4)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    options = parser.parse_args(argv)
    given = [case for case in read_cases(options.data) if case.set in PERMITTED]
    table = tabulate([*given, *(case for name in PERMITTED for case in made_cases(options.data, name))])
    odds = left_out(table)
    inputs = np.stack([odds, np.ones(len(odds))], axis=1)
    slope, shift = solve(inputs, table.good.astype(float), count_rows(table), np.full(2, 1e-6))
    policy = make_policy(fit(table), slope, shift)
    document: dict[str, Any] = {
        "policy": policy.model_dump(mode="json"),
        "digest": policy.digest,
        "provenance": {
            "command": "python -m benchmarks.learn_facts",
            "sets": {name: int((table.sets == name).sum()) for name in dict.fromkeys(table.sets.tolist())},
            "strength": STRENGTH,
            "turns": TURNS,
            "outputs_with": {name: int((table.signs[:, at] > 0).sum()) for at, name in enumerate(SIGNS)},
        },
    }
    (RESULTS / "fact_check_policy.json").write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
