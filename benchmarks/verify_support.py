"""Is the support score the chance that a claim is supported? Eleven sets, each scored by what the others taught.

    python -m benchmarks.verify_support [--data DIR] [--samples N]

A row a set: the AUC of the score with weights learned from all the other sets (`benchmarks.learn_facts`), with the
verdict's word on its side of one half, beside the share of the claim's words and of its pairs of words that the
sources have (of plain words and of stems without stop words the better one) in the same run, and beside the score of
the version before (`benchmarks/results/verify_support_before.json`, measured once on that tree). `interval` and `gap`
(ours less the better of the two overlaps) are 95 % intervals of samples drawn by source. `partial` counts as not
supported in `wice`, and is left out in `wice, no partial`. `ece` is the expected calibration error in ten bins, the
scale learned from the other sets too; `balanced` weighs both labels alike, as the score does.
BUMP: `consistency` is the share of pairs in which the reference scores higher (a tie fails); `by articles` learns from
four fifths of BUMP's articles and all other sets. SummEdits: balanced accuracy with the threshold that is best on the
other domains. `acceptable not PASS`: of texts that are right, how many the verdict does not pass.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.harness import RESULTS, report
from benchmarks.learn_facts import FOLDS, Table, learn_scale, left_out, press, tabulate
from benchmarks.support_sets import ATTRIBUTION, DOMAINS, SETS, Case, bigram_overlap, read_cases, unigram_overlap
from benchmarks.verify_facts import balanced_accuracy, best_threshold
from muniment.core.policy import FactCheckPolicy

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]

SEED = 7
BINS = 10
BEFORE = RESULTS / "verify_support_before.json"
Samples = list[npt.NDArray[np.int_]]


def ranks_auc(scores: Array, good: Rows) -> float:
    """AUC by ranks: what `auc` gives, in less than a square of steps."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    higher = int(good.sum())
    return float((ranks[good].sum() - higher * (higher + 1) / 2) / (higher * (len(good) - higher)))


def draw(groups: npt.NDArray[np.int_], count: int) -> Samples:
    """Samples of rows, drawn by source with replacement."""
    random = np.random.default_rng(SEED)
    names = np.unique(groups)
    places = {name: np.flatnonzero(groups == name) for name in names}
    return [np.concatenate([places[name] for name in random.choice(names, len(names))]) for _ in range(count)]


def interval(values: Sequence[float]) -> list[float]:
    return [round(float(one), 3) for one in np.quantile(values, (0.025, 0.975))]


def calibration_error(chances: Array, good: Rows, counts: Array) -> float:
    """The mean distance of what was promised from what came true, over bins of equal width."""
    bins = np.minimum(BINS - 1, (chances * BINS).astype(int))
    gaps = [abs(float((counts * (good - chances))[bins == one].sum())) for one in range(BINS) if (bins == one).any()]
    return sum(gaps) / float(counts.sum())


class Overlaps:
    """What the counting of words gives, for every case."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.columns: dict[str, Array] = {}
        for name, count in (("unigram", unigram_overlap), ("bigram", bigram_overlap)):
            for plain in (True, False):
                self.columns[f"{name}{' plain' * plain}"] = np.array([count(case, plain=plain) for case in cases])

    def best(self, name: str, rows: Rows, good: Rows) -> tuple[float, Array]:
        """The better way of counting such overlap on some rows."""
        ways = [own[rows] for key, own in self.columns.items() if key.startswith(name)]
        return max(((ranks_auc(own, good), own) for own in ways), key=lambda pair: pair[0])


def measure_set(
    rows: Rows, table: Table, odds: Array, chances: Array, overlaps: Overlaps, count: int
) -> dict[str, Any]:
    good, own = table.good[rows], odds[rows]
    samples = [at for at in draw(table.groups[rows], count) if good[at].any() and not good[at].all()]
    unigram, bigram = overlaps.best("unigram", rows, good), overlaps.best("bigram", rows, good)
    better = max(unigram, bigram, key=lambda pair: pair[0])
    drawn = [ranks_auc(own[at], good[at]) for at in samples]
    gaps = [one - ranks_auc(better[1][at], good[at]) for one, at in zip(drawn, samples, strict=True)]
    even = np.where(good, 0.5 / good.sum(), 0.5 / (~good).sum())
    return {
        "n": int(rows.sum()),
        "auc": ranks_auc(own, good),
        "interval": interval(drawn),
        "unigram": unigram[0],
        "bigram": bigram[0],
        "gap": ranks_auc(own, good) - better[0],
        "gap_interval": interval(gaps),
        "ece": calibration_error(chances[rows], good, np.ones(len(good))),
        "ece_balanced": calibration_error(chances[rows], good, even),
    }


def left_out_chances(table: Table, odds: Array) -> Array:
    """Chances of every set by a scale that was learned from the numbers of the others."""
    scaled = np.full(len(odds), np.nan)
    for name in SETS:
        out = table.of(name)
        slope, shift = learn_scale(odds, table, ~out)
        scaled[out] = slope * odds[out] + shift
    return np.asarray(1 / (1 + np.exp(-press(scaled, table.verdicts))))


def measure_bump(table: Table, odds: Array, count: int) -> dict[str, Any]:
    rows = table.of("bump")
    own, good = odds[rows], table.good[rows]
    right = (own[::2] > own[1::2]).astype(float)
    groups = table.groups[rows]
    drawn = [float(right[at].mean()) for at in draw(groups[::2], count)]
    folds = table.folds[rows]
    return {
        "auc": ranks_auc(own, good),
        "auc_folds": [round(ranks_auc(own[folds == one], good[folds == one]), 3) for one in range(FOLDS)],
        "consistency": float(right.mean()),
        "consistency_interval": interval(drawn),
    }


def measure_domains(table: Table, odds: Array) -> dict[str, Any]:
    values = {}
    for name in DOMAINS:
        others = [(odds[table.of(other)], table.good[table.of(other)]) for other in DOMAINS if other != name]
        rows = table.of(name)
        values[name] = round(balanced_accuracy(odds[rows], table.good[rows], best_threshold(others)), 4)
    return {"balanced_accuracy": float(np.mean(list(values.values()))), **values}


def measure(cases: Sequence[Case], count: int) -> dict[str, dict[str, Any]]:
    table = tabulate(cases)
    raw, raw_folds = left_out(table)
    odds, folds = press(raw, table.verdicts), press(np.nan_to_num(raw_folds), table.verdicts)
    chances = left_out_chances(table, raw)
    before = json.loads(BEFORE.read_text("utf-8")) if BEFORE.exists() else {}
    overlaps = Overlaps(cases)
    found: dict[str, dict[str, Any]] = {}
    for name in SETS:
        parts = {name: table.of(name)} | (
            {"wice, no partial": table.of(name) & ~table.partial} if name == "wice" else {}
        )
        for part, rows in parts.items():
            found[part] = measure_set(rows, table, odds, chances, overlaps, count)
            found[part] |= {"before": before[part]} if part in before else {}
            found[part] |= {"raw_auc": ranks_auc(raw[rows], table.good[rows])}
    found["attribution, mean"] = {"auc": float(np.mean([found[name]["auc"] for name in ATTRIBUTION]))}
    found["bump, set left out"] = measure_bump(table, odds, count)
    found["bump, by articles"] = measure_bump(table, folds, count)
    found["summedits, domains left out"] = measure_domains(table, odds)
    found["acceptable not PASS"] = {
        name: round(float(1 - table.verdicts[table.of(name) & table.good].mean()), 3) for name in SETS
    }
    found["unsupported PASS"] = {
        name: round(float(table.verdicts[table.of(name) & ~table.good & ~table.partial].mean()), 3) for name in SETS
    }
    return found


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--samples", type=int, default=1_000)
    options = parser.parse_args(argv)
    found = measure(read_cases(options.data), options.samples)
    report("verify_support", found, {"samples": options.samples, "seed": SEED, "policy": FactCheckPolicy().digest})


if __name__ == "__main__":
    main()
