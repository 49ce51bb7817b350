"""Lessons that a real model writes of recorded runs: what it proposes, what is refused and why, what it takes.

    python -m benchmarks.lessons_written --model qwen2.5-coder-1.5b --tasks 11

Of the τ-bench airline tasks whose runs differ, the runs are folded in order, and the model is asked about the last that
went another way than one before it. Every proposal is told as it is. A model of 1.5 billion parameters on a CPU is slow:
about a minute a call. Where its wheels cannot be had, that is said and nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import muniment
from benchmarks.answers_server import MODELS, Missing, environment, serving, weights

TAU = "taubench_gpt4o_airline_tasks0-24.json"
POLICY = {"learn": {"writing": {"timeout_s": 600, "events_max": 10, "event_chars_max": 220, "attempts_max": 1}}}
INTENT = {"domain_tag": "airline", "task_family": "tau_airline"}


def fold(mem: muniment.Memory, run_of: dict[str, Any], lessons: Any) -> Any:
    """A recorded run observed, judged by its reward, and learnt from."""
    run = mem.run(user_id="bench", agent_id="airline")
    calls: dict[str, tuple[str, Any]] = {}
    for message in run_of["traj"][1:]:
        for call in message.get("tool_calls") or ():
            calls[call["id"]] = call["function"]["name"], json.loads(call["function"]["arguments"])
        said = message.get("content") or ""
        if message["role"] == "tool":
            name, args = calls.get(message.get("tool_call_id", ""), (message.get("name") or "tool", {}))
            run.observe_tool(name, args=args, content=said, ok=not said.startswith("Error"))
        elif said.strip():
            run.observe(message["role"], said)
    passed = run_of["reward"] == 1.0
    result = {"verifier_id": "tau", "verdict": "PASS" if passed else "FAIL", "outcome": "OK" if passed else "FAIL"}
    return run.finish(verifier_result=result, intent=INTENT, **({} if lessons is None else {"lessons": lessons}))


def mixed_tasks(path: Path) -> list[list[dict[str, Any]]]:
    """The runs of each task of which some passed and some failed, so that the last differs from one before it."""
    tasks: dict[int, list[dict[str, Any]]] = {}
    for each in json.loads(path.read_text(encoding="utf-8")):
        tasks.setdefault(each["task_id"], []).append(each)
    return [runs for runs in tasks.values() if len({each["reward"] for each in runs}) > 1]


def measure(path: Path, address: str, name: str, most: int) -> dict[str, Any]:
    tasks = mixed_tasks(path)[:most]
    start = time.perf_counter()
    with muniment.open(":memory:", policy=POLICY) as mem:
        for runs in tasks:
            for number, each in enumerate(runs):
                is_last = number == len(runs) - 1
                fold(mem, each, f"{address}/v1#{name}" if is_last else None)
                print(f"task {each['task_id']} {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        bank = mem.bank(user_id="bench")
        reports = bank.lesson_reports()[::-1]
        proposed = [each for report in reports for each in report.proposals]
        stages = Counter(
            "none" if memory.lesson is None else memory.lesson.stage
            for memory in bank.records(kind="tactic")
            if (memory.record.get("lesson") or {}).get("origin") == "model"
        )
    return {
        "benchmark": "lessons_written",
        "command": f"python -m benchmarks.lessons_written --model {name} --tasks {most}",
        "model": name,
        "asked": len(reports),
        "failed": dict(Counter(report.failed for report in reports if report.failed)),
        "tokens_in": sum(report.tokens_in for report in reports),
        "tokens_out": sum(report.tokens_out for report in reports),
        "proposed": len(proposed),
        "fates": dict(Counter(each.fate for each in proposed)),
        "refused": dict(Counter(each.code for each in proposed if each.code)),
        "stages": dict(stages),
        "lessons": [each.to_wire() for each in proposed],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), default="qwen2.5-coder-1.5b")
    parser.add_argument("--tasks", type=int, default=11)
    parser.add_argument("--data", type=Path, default=Path("shared/data"))
    parser.add_argument("--scratch", type=Path, default=Path("build/lessons"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if not (given.data / TAU).exists():
        sys.exit(f"SKIPPED: no {TAU} in {given.data}")
    try:
        python, held = environment(given.scratch), weights(given.model, given.scratch)
        with serving(python, held, given.threads) as served:
            found = measure(given.data / TAU, served.address, given.model, given.tasks)
    except Missing as why:
        sys.exit(f"SKIPPED: {why}")
    text = json.dumps(found, indent=1, ensure_ascii=False)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
