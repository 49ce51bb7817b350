"""How often does a packet's `found` deny an answer that memory has, and how often does it see that there is none?

    python -m benchmarks.found [--data DIR]      prints the table and writes results/found.json

Per set: the area under the curve of the chance, false alarms (answerable questions below `found_min`) and what is seen
(unanswerable ones below it), by turns alone and without an embedder. `seen_at_2_percent` is what a threshold could see
if it were set for this set so that 2 % of its answerable questions are denied.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import default_data, pooled
from benchmarks.recall import index_of, said_before
from muniment.core.policy import ComposePolicy, RecallPolicy
from muniment.core.stats import wilson_bounds
from muniment.memory.ranking import rank

SETS = (
    "locomo",
    "realtalk",
    "longmemeval",
    "beam_100k",
    "beam_500k",
    "qmsum",
    "madial",
    "bfcl_memory",
    "memdaily",
    "friendsqa",
    "prefeval",
)
_FALSE_ALARMS = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    options = parser.parse_args()
    least = ComposePolicy().found_min
    result: dict[str, Any] = {"found_min": least} | {name: _row(options.data, name, least) for name in SETS}
    path = Path(__file__).parent / "results" / "found.json"
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    print(path.read_text())


def _row(data: Path, name: str, least: float) -> dict[str, Any]:
    policy = RecallPolicy()
    chances: dict[bool, list[float]] = {True: [], False: []}
    for scope in pooled(data, name):
        index = index_of(scope.turns)
        for question in scope.questions:
            among = said_before(scope.turns, question)
            found = rank(question.text, index, policy, question.now.date(), 1, None, among=among)
            chances[question.answerable].append(found[0].chance if found else 0.0)
    known, unknown = (np.array(chances[answerable]) for answerable in (True, False))
    row: dict[str, Any] = {"answerable": len(known), "false_alarms": _share(known < least)}
    if len(unknown):
        above = (known[:, None] > unknown) + 0.5 * (known[:, None] == unknown)
        at = float(np.quantile(known, _FALSE_ALARMS))
        row |= {
            "unanswerable": len(unknown),
            "seen": _share(unknown < least),
            "auc": round(float(above.mean()), 3),
            "seen_at_2_percent": round(float((unknown < at).mean()), 3),
        }
    return row


def _share(hits: Any) -> dict[str, Any]:
    low, high = wilson_bounds(int(hits.sum()), len(hits))
    return {"share": round(float(hits.mean()), 4), "bounds": [round(low, 4), round(high, 4)]}


if __name__ == "__main__":
    main()
