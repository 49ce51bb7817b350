"""Lessons that a real model writes of recorded runs: what it proposes, what is refused and why, what it takes.

    python -m benchmarks.lessons_written --model qwen2.5-coder-1.5b --runs coding
    python -m benchmarks.lessons_written --model smollm2-135m --runs tau --tasks 11

`coding` are eight short tasks in a small repository, each failed once and then passed, written down here. `tau` are the
airline tasks whose runs differ: they are folded in order, and the model is asked about the last of each. Every proposal
is told as it is. Where the wheels of a model cannot be had, that is said and nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import muniment
from benchmarks.answers_server import MODELS, Missing, environment, serving, weights
from benchmarks.data import default_data

Call = tuple[str, dict[str, Any], str]
TAU = "taubench_gpt4o_airline_tasks0-24.json"
CODING: tuple[tuple[str, Call, Call, str], ...] = (
    (
        "Totals in cart.py are a cent too high.",
        ("edit", {"file": "cart.py", "line": 12}, "saved"),
        ("edit", {"file": "money.py", "function": "round_half_even"}, "saved"),
        "tests/test_cart.py::test_total: expected 10.02, got 10.03: cart.py calls money.round_half_up",
    ),
    (
        "The date in invoices is wrong by a day.",
        ("edit", {"file": "invoice.py", "line": 30}, "saved"),
        ("edit", {"file": "invoice.py", "call": "datetime.now(UTC)"}, "saved"),
        "tests/test_invoice.py::test_date: expected 2026-05-01, got 2026-04-30: datetime.now() has no timezone",
    ),
    (
        "Uploads over 1 MB fail.",
        ("edit", {"file": "upload.py", "line": 8}, "saved"),
        ("edit", {"file": "settings.toml", "key": "max_upload_mb"}, "saved"),
        "tests/test_upload.py::test_large: 413, limit is read from settings.toml max_upload_mb",
    ),
    (
        "Login fails for users with a dot in their name.",
        ("edit", {"file": "login.py", "line": 51}, "saved"),
        ("edit", {"file": "names.py", "pattern": "[a-z.]+"}, "saved"),
        "tests/test_login.py::test_dot: ValueError in names.py: pattern [a-z]+ does not match a.b",
    ),
    (
        "The report page is empty.",
        ("restart", {"service": "web"}, "restarted"),
        ("migrate", {"to": "0042_reports"}, "applied 0042_reports"),
        "tests/test_report.py::test_rows: relation reports does not exist",
    ),
    (
        "Search finds nothing for upper case words.",
        ("edit", {"file": "search.py", "line": 19}, "saved"),
        ("reindex", {"fold_case": True}, "312 documents indexed"),
        "tests/test_search.py::test_case: 0 hits, the index was built with fold_case=false",
    ),
    (
        "Mails are sent twice.",
        ("edit", {"file": "mail.py", "line": 77}, "saved"),
        ("edit", {"file": "queue.py", "add": "ack before retry"}, "saved"),
        "tests/test_mail.py::test_once: 2 mails, queue.py retries before ack",
    ),
    (
        "Prices show no currency.",
        ("edit", {"file": "price.html"}, "saved"),
        ("edit", {"file": "price.html", "filter": "currency"}, "saved"),
        "tests/test_price.py::test_sign: expected EUR, template has no filter currency",
    ),
)
"""The task, what was tried first, what helped, and what the tests said in between."""
POLICY = {
    "learn": {
        "writing": {
            "timeout_s": 1_500,
            "events_max": 10,
            "event_chars_max": 220,
            "attempts_max": 1,
            "answer_tokens_max": 300,
        }
    }
}
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


def fold_coding(mem: muniment.Memory, task: str, tried: Sequence[Call], said: str, lessons: Any) -> None:
    """A run of the small repository: what was tried, then its tests; passed where those say so."""
    run = mem.run(user_id="bench", agent_id="dev")
    run.observe("user", task)
    for name, args, content in tried:
        run.observe_tool(name, args=args, content=content, ok=True)
    passed = said == "all passed"
    run.observe_tool("run_tests", args={}, content=said, ok=passed)
    result = {"verifier_id": "tests", "verdict": "PASS" if passed else "FAIL", "outcome": "OK" if passed else "FAIL"}
    more = {} if lessons is None else {"lessons": lessons}
    run.finish(verifier_result=result, intent={"domain_tag": "shop", "task_family": "coding"}, **more)


def mixed_tasks(path: Path) -> list[list[dict[str, Any]]]:
    """The runs of each task of which some passed and some failed, so that the last differs from one before it."""
    tasks: dict[int, list[dict[str, Any]]] = {}
    for each in json.loads(path.read_text(encoding="utf-8")):
        tasks.setdefault(each["task_id"], []).append(each)
    return [runs for runs in tasks.values() if len({each["reward"] for each in runs}) > 1]


def tell_tau(mem: muniment.Memory, path: Path, model: str, most: int) -> Iterator[str]:
    for runs in mixed_tasks(path)[:most]:
        for number, each in enumerate(runs):
            fold(mem, each, model if number == len(runs) - 1 else None)
        yield f"task {runs[0]['task_id']}"


def tell_coding(mem: muniment.Memory, model: str, most: int) -> Iterator[str]:
    for task, first, then, said in CODING[:most]:
        fold_coding(mem, task, [first], said, None)
        fold_coding(mem, task, [first, then], "all passed", model)
        yield task


def measure(given: argparse.Namespace, address: str) -> dict[str, Any]:
    start, name = time.perf_counter(), given.model
    with muniment.open(":memory:", policy=POLICY) as mem:
        model = f"{address}/v1#{name}"
        telling = (
            tell_coding(mem, model, given.tasks)
            if given.runs == "coding"
            else tell_tau(mem, given.data / TAU, model, given.tasks)
        )
        for said in telling:
            print(f"{said} {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        bank = mem.bank(user_id="bench")
        reports = bank.lesson_reports()[::-1]
        proposed = [each for report in reports for each in report.proposals]
        kept = {each.lesson_id for each in proposed if each.fate != "refused"}
        stages = Counter(
            "none" if memory.lesson is None else memory.lesson.stage
            for memory in bank.records(kind="tactic")
            if memory.id in kept
        )
    return {
        "benchmark": "lessons_written",
        "command": f"python -m benchmarks.lessons_written --model {name} --runs {given.runs} --tasks {given.tasks}",
        "model": name,
        "runs": given.runs,
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
    parser.add_argument("--runs", choices=("coding", "tau"), default="coding")
    parser.add_argument("--tasks", type=int, default=11)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--scratch", type=Path, default=Path("build/lessons"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.runs == "tau" and not (given.data / TAU).exists():
        sys.exit(f"SKIPPED: no {TAU} in {given.data}")
    try:
        python, held = environment(given.scratch), weights(given.model, given.scratch)
        with serving(python, held, given.threads) as served:
            found = measure(given, served.address)
    except Missing as why:
        sys.exit(f"SKIPPED: {why}")
    text = json.dumps(found, indent=1, ensure_ascii=False)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
