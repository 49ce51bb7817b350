"""mem0's calls over a store: what its default threshold would cost, and how many rows a filtered search reads.

    python -m benchmarks.mem0_calls [--data DIR]     both; DIR is the folder of the shared sets
    python -m benchmarks.mem0_calls --memories 1000  fewer memories of one user

The threshold: turns of LoCoMo as memories, its questions asked, and of those whose evidence is among the first twenty
how many keep some of it at a threshold of 0.1, mem0's default. Rows: one user with many memories, the rows that the
store hands out for a search of ten, filter by filter, once the index is in memory. Nothing was tuned on either.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import muniment
from benchmarks.data import default_data
from muniment.integrations.mem0 import Memory

RESULT = Path(__file__).parent / "results" / "mem0_calls.json"
THRESHOLD = 0.1
TOP = 20
BATCH = 500
FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "equal, one in 200": {"topic": "rare"},
    "in": {"topic": {"in": ["rare", "topic 3"]}},
    "a run": {"run_id": "r7"},
    "nested list": {"nested.deep": 3},
    "wildcard": {"topic": "*"},
    "since": {"created_at": {"gte": "2000-01-01"}},
    "nothing fits": {"topic": "nowhere"},
    "a range": {"n": {"lt": 1}},
    "not": {"NOT": [{"topic": "rare"}]},
}


def measure_threshold(data: Path) -> dict[str, int]:
    """Questions, those whose evidence is found, and those that keep some of it at the threshold."""
    counted: Counter[str] = Counter()
    for sample in json.loads((data / "locomo_dev3.json").read_text("utf-8")):
        with muniment.open(":memory:") as mem:
            memory = Memory(mem)
            ids = _told(memory, sample["conversation"])
            for asked in sample["qa"]:
                evidence = {ids[each] for each in asked["evidence"] if each in ids}
                if asked.get("category") == 5 or not evidence:
                    continue
                found = memory.search(asked["question"], filters={"user_id": "u"}, top_k=TOP)["results"]
                right = [each["score"] for each in found if each["id"] in evidence]
                counted["questions"] += 1
                counted["found"] += bool(right)
                counted["found at the threshold"] += any(score >= THRESHOLD for score in right)
    return dict(counted)


def _told(memory: Memory, conversation: dict[str, Any]) -> dict[str, str]:
    """The turns as memories; their ids by those of the set."""
    names = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    ids: dict[str, str] = {}
    for name in sorted(names, key=lambda name: int(name.rpartition("_")[2])):
        turns = [turn for turn in conversation[name] if turn["text"]]
        said = [{"role": "user", "content": turn["text"], "name": turn["speaker"]} for turn in turns]
        added = memory.add(said, user_id="u", run_id=name, infer=False)["results"]
        ids |= {turn["dia_id"]: each["id"] for turn, each in zip(turns, added, strict=True)}
    return ids


class _Counting:
    """A reader that counts the rows it hands out."""

    def __init__(self, inner: Any, rows: list[int]) -> None:
        self._inner, self._rows = inner, rows

    def do(self, op: Any) -> Any:
        answer = self._inner.do(op)
        self._rows[0] += len(answer) if isinstance(answer, list) else 1
        return answer

    def stream(self, select: Any) -> Iterator[Any]:
        for row in self._inner.stream(select):
            self._rows[0] += 1
            yield row


def measure_rows(memories: int) -> dict[str, int]:
    """By filter, the rows that a search of ten reads."""
    with muniment.open(":memory:") as mem:
        memory = Memory(mem)
        for batch in range(memories // BATCH):
            metadata = {
                "topic": "rare" if batch == 1 else f"topic {batch % 40}",
                "n": batch,
                "nested": {"deep": [batch % 7]},
            }
            said = [{"role": "user", "content": f"tea and cake number {batch * BATCH + at}"} for at in range(BATCH)]
            memory.add(said, user_id="u", run_id=f"r{batch}", infer=False, metadata=metadata)
        engine = mem._ctx.engine
        read, rows = engine.read, [0]
        engine.read = lambda tenant, work: read(tenant, lambda reader: work(_Counting(reader, rows)))  # type: ignore[method-assign, assignment]
        counted = {}
        for name, wanted in FILTERS.items():
            for _ in range(2):  # the second time: the first may load the index
                rows[0] = 0
                memory.search("tea number", filters={"user_id": "u", **wanted}, top_k=10)
            counted[name] = rows[0]
        return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--memories", type=int, default=100_000)
    asked = parser.parse_args()
    result = {
        "command": "python -m benchmarks.mem0_calls",
        "threshold": {"set": "locomo_dev3", "threshold": THRESHOLD, "top_k": TOP, **measure_threshold(asked.data)},
        "rows": {"memories": asked.memories, "top_k": 10, **measure_rows(asked.memories)},
    }
    print(json.dumps(result, indent=1))
    if asked.memories == 100_000:
        RESULT.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
