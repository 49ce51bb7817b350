"""The first verification of a process does no work that it does not need: tables and patterns are counted, not time."""

from __future__ import annotations

import json
import subprocess
import sys

COUNTING = """
import json, re._compiler, sys
import muniment
from muniment.core.text import word_lists

counts = {"patterns": 0, "tables": []}
compiled, read = re._compiler.compile, word_lists.read_data

def count_pattern(*given):
    counts["patterns"] += 1
    return compiled(*given)

def count_table(package, name, *more):
    counts["tables"].append(name)
    return read(package, name, *more)

with muniment.open(":memory:") as mem:
    run = mem.run(user_id="ana")
    run.compose("responder", query="hello")
    re._compiler.compile, word_lists.read_data = count_pattern, count_table
    found = []
    for given in (
        {"constraints": [{"words": {"max": 30}}]},
        {"constraints": [{"words": {"max": 30}}]},
        {"documents": ["Ana moved to Berlin in 2024."]},
        {"documents": ["Ana moved to Berlin in 2024."]},
    ):
        run.verify("Ana moved to Berlin in May 2024.", **given)
        if len(found) == 1:
            early = [name for name in sys.modules if name.startswith("muniment.verify.facts")]
        found.append({"patterns": counts["patterns"], "tables": sorted(counts["tables"])})
        counts["patterns"], counts["tables"] = 0, []
from muniment.verify.facts import _senses
print(json.dumps({"calls": found, "words": _senses._entry.cache_info().currsize, "facts": early}))
"""


def test_the_first_verification_loads_what_it_needs() -> None:
    ran = subprocess.run([sys.executable, "-c", COUNTING], capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout)
    form, again, facts, same = found["calls"]
    assert form["patterns"] <= 16, form
    assert form["tables"] == found["facts"] == []  # no document, no fact checker
    assert again == same == {"patterns": 0, "tables": []}
    assert facts["patterns"] <= 10, facts
    assert found["words"] <= 20  # of 48,000 words of the table only those of the texts are taken apart
