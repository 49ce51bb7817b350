"""Run by test_rules_load.py in a process of its own: selects, runs and learns in a store while others change its rules.

    python load_ruler.py FILE SEED ROUNDS

Prints, for each look it took, one JSON line: the run's id, the revision and what was selected.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from rule_stores import store

from muniment.core.outside.system import system_clock
from muniment.errors import Conflict
from muniment.store.engines.opening import open_engine
from muniment.testing.stories import COUNTING, RuleStory

OWNER = "bank:user:ana"


def look(story: RuleStory, run_id: str) -> dict[str, Any]:
    """What a run of this id would be given, and by which revision."""
    selection = story.book.select(intent=COUNTING, run_id=run_id)
    chosen = [one.to_wire() for one in selection.response.selected_rules]
    return {"run": run_id, "revision": selection.revisions[OWNER], "chosen": chosen, "text": selection.text}


def work(story: RuleStory, seed: str, rounds: int) -> Iterator[dict[str, Any]]:
    """Looks and judged runs in turn. A run that finds the rulebook changing again and again may be turned away."""
    for number in range(rounds):
        yield look(story, f"{seed} {number}")
        try:
            story.run()
        except Conflict:
            continue


if __name__ == "__main__":
    path, seed, rounds = sys.argv[1:]
    with store(open_engine(path), seed=seed, clock=system_clock) as mem:
        for seen in work(RuleStory(mem, seed=ord(seed[0])), seed, int(rounds)):
            print(json.dumps(seen), flush=True)
