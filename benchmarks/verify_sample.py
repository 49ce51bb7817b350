"""The fact checker on a sample of every set: AUC, balanced accuracy at one threshold, swapped claims.

    python -m benchmarks.verify_sample [--data DIR] [--cases N] [--rows N] [--file NAME]

The threshold is one half everywhere: the side on which the verdict puts the support of an output. Cases that are
supported in part are left out. Swapped claims are made from `--rows` true ones of each set by `benchmarks.swaps`.
The whole sets take an hour (`verify_support`, `verify_swaps`); this takes minutes, for before and after a change.
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
from benchmarks.support_sets import SETS, Case, read_cases
from benchmarks.verify_facts import auc, balanced_accuracy
from benchmarks.verify_swaps import DEVELOPED, JUDGED, answers, supported_rows, tally
from muniment.core.policy import FactCheckPolicy
from muniment.verify.facts import Source, SourceText, check_source
from muniment.verify.results import fact_score

THRESHOLD = 0.5
SEED = "sample"


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
        "auc": auc(found, good),
        "balanced_accuracy": balanced_accuracy(found, good, THRESHOLD),
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--file", default="verify_sample")
    options = parser.parse_args(argv)
    policy, rows = FactCheckPolicy(), dict[str, dict[str, Any]]()
    cases = [case for case in read_cases(options.data) if case.label != "partial"]
    for name in SETS:
        own = [case for case in cases if case.set == name]
        rows[name] = measure_set(Random(SEED).sample(own, min(options.cases, len(own))), policy)
    for title, names in (("swaps developed", DEVELOPED), ("swaps judged", JUDGED)):
        found = []
        for name in names:
            true = supported_rows(options.data, name)
            found += answers(Random(SEED).sample(true, min(options.rows, len(true))), SEED, policy)
        rows[title] = tally([one for one in found if one.origin == "claim"])
    report("verify_sample", rows, {"cases": options.cases, "rows": options.rows, "seed": SEED}, options.file)


if __name__ == "__main__":
    main()
