"""Run by test_compaction_kill.py in a process of its own: tells a run what happens, and acknowledges each call.

    python kill_runner.py FILE ACKS SEED

A line of ACKS is JSON: {"claims": n, "steps": n, "snapshot": sequence}, what the run had acknowledged until then.
Each is written with one `os.write`, after the call came back, so a line that is there was promised.
"""

from __future__ import annotations

import json
import os
import random
import sys

import muniment
from muniment.handles.run import Run

POLICY = {"compaction": {"event_threshold": 4}}


def tell(run: Run, acks: int, seed: int) -> None:
    chance = random.Random(seed)
    log = run.log.read()
    claims, steps, snapshot = len(log.claims), log.spent.counted_events, log.sequence
    for number in range(10**9):
        kind = chance.choice(("claim", "claim", "step", "retract", "compact"))
        if kind == "claim":
            said = run.observe("user", f"{seed} {number} " + "x" * chance.choice((0, 100, 3000)))
            run.log.claim(f"said {seed} {number}", evidence=[said.id], status="verified")
            claims += 1
        elif kind == "step":
            run.log.step("ACT_DONE", action={"tool": "t", "args": {"n": number % 2}})  # may snapshot
            steps += 1
        elif kind == "retract":
            standing = run.log.claims("verified")
            if standing:
                run.log.retract_claim(chance.choice(standing).claim_id, reason="no")
        else:
            made = run.log.compact()
            assert made is not None
            snapshot = made.sequence
        line = {"claims": claims, "steps": steps, "snapshot": snapshot}
        os.write(acks, json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    path, acks_path, seed = sys.argv[1:]
    acks = os.open(acks_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with muniment.open(path, policy=POLICY) as mem:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective="go on")
        run.observe("user", "begin")
        os.write(acks, b"{}\n")
        tell(run, acks, int(seed))
