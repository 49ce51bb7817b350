"""Does the support score say whether the cited sources support a claim?

    python -m benchmarks.verify_support [--data DIR] [--cases N] [--rows N] [--file NAME]

A row a set, on a sample of it: balanced accuracy at one threshold (one half, the side on which the verdict puts an
output) with a 95 % interval from resampling sources, AUC, and the AUC of the share of the claim's words that the
sources have. `fitted` marks the three sets on which the weights were fitted (`benchmarks.learn_facts`,
`benchmarks.learn_slots`); the other eight had no part in them. Outputs that are supported in part are left out.
Swapped claims are made by `benchmarks.swaps` from true ones, one slot each. The whole sets take an hour (`--cases
2000`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks import data as sets
from benchmarks.harness import report
from benchmarks.support_sets import PERMITTED, SETS, Case, read_cases, unigram_overlap
from benchmarks.verify_facts import auc, balanced_accuracy
from benchmarks.verify_swaps import DEVELOPED, JUDGED, answers, supported_rows, tally
from muniment.core.policy import FactCheckPolicy
from muniment.verify.facts import Source, SourceText, check_source
from muniment.verify.results import fact_score

THRESHOLD = 0.5
SEED = "sample"
SAMPLES = 1_000


def measure_set(cases: Sequence[Case], policy: FactCheckPolicy) -> dict[str, Any]:
    scores = [
        fact_score(
            check_source(
                case.output, Source([SourceText(str(at), text) for at, text in enumerate(case.sources)]), policy=policy
            )
        )
        for case in cases
    ]
    found, good = np.array(scores), np.array([case.good for case in cases])
    return {
        "n": len(cases),
        "balanced_accuracy": balanced_accuracy(found, good, THRESHOLD),
        "interval": interval(cases, found, good),
        "auc": auc(found, good),
        "overlap_auc": auc(np.array([unigram_overlap(case) for case in cases]), good),
    }


def interval(cases: Sequence[Case], found: Any, good: Any) -> list[float]:
    """95 % of the balanced accuracies of samples drawn by source with replacement."""
    random = np.random.default_rng(7)
    rows: dict[tuple[str, ...], list[int]] = {}
    for at, case in enumerate(cases):
        rows.setdefault(case.sources, []).append(at)
    groups, values = list(rows.values()), []
    for _ in range(SAMPLES):
        drawn = [at for group in random.integers(len(groups), size=len(groups)) for at in groups[group]]
        if 0 < good[drawn].sum() < len(drawn):
            values.append(balanced_accuracy(found[drawn], good[drawn], THRESHOLD))
    return [round(float(one), 3) for one in np.quantile(values, (0.025, 0.975))]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--cases", type=int, default=150)
    parser.add_argument("--rows", type=int, default=15)
    parser.add_argument("--file", default="verify_support")
    options = parser.parse_args(argv)
    policy, rows = FactCheckPolicy(), dict[str, dict[str, Any]]()
    cases = [case for case in read_cases(options.data) if case.label != "partial"]
    for name in SETS:
        own = [case for case in cases if case.set == name]
        sample = Random(SEED).sample(own, min(options.cases, len(own)))
        rows[name] = {"fitted": name in PERMITTED, **measure_set(sample, policy)}
    for title, names in (("swaps, fitted", DEVELOPED), ("swaps, held out", JUDGED)):
        found = []
        for name in names:
            true = supported_rows(options.data, name)
            found += answers(Random(SEED).sample(true, min(options.rows, len(true))), SEED, policy)
        rows[title] = tally([one for one in found if one.origin == "claim"])
    report("verify_support", rows, {"cases": options.cases, "rows": options.rows, "seed": SEED}, options.file)


if __name__ == "__main__":
    main()
