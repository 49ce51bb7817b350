"""What a checkout finds on the pool: the other side of `benchmarks.recall_pool --before`, a process of its own.

    python -m benchmarks.recall_pool_side JOB FOUND

`JOB` says which sets to search, and how; `FOUND` is where what each question found is written. It is the module of the
other checkout that runs, so that any checkout can be the other side.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path

import muniment
from benchmarks.data import Scope, pooled
from benchmarks.embedders import KeptVectors
from benchmarks.recall import Near, index_of, ours
from muniment.core.policy import RecallPolicy

__all__ = ["counts_of", "drawn"]

SEED = 18


def counts_of(told: str) -> dict[str, int]:
    """How many scopes of which sets are drawn, from `qmsum=20,memdaily=20`."""
    return {name: int(count) for name, _, count in (each.partition("=") for each in told.split(",") if each)}


def drawn(data: Path, name: str, counts: Mapping[str, int]) -> list[Scope]:
    """The scopes of a set, or so many of them, drawn with a fixed seed."""
    scopes = pooled(data, name)
    count = counts.get(name, 0)
    if not 0 < count < len(scopes):
        return scopes
    return [scopes[at] for at in sorted(random.Random(SEED).sample(range(len(scopes)), count))]


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    vectors = KeptVectors(job["embedder"]) if job["embedder"] else None
    policy = RecallPolicy()
    found: dict[str, list[list[list[int]]]] = {}
    for name in job["sets"]:
        found[name] = []
        for scope in drawn(Path(job["data"]), name, job["scopes"]):
            near = None if vectors is None else Near(scope.turns, vectors)
            search = ours(scope.turns, policy, index_of(scope.turns), near)
            found[name].append([search(question) for question in scope.questions])
    package = str(Path(muniment.__file__).parent)
    Path(sys.argv[2]).write_text(json.dumps({"package": package, "found": found}), "utf-8")


if __name__ == "__main__":
    main()
