"""A small repository with bugs, and an agent that mends them or does not: files, tests, errors, edits.

Every bug has a file, an error that its test raises, one edit that mends it and two that do not. Hard bugs are searched
for with `search_method`, whatever comes of it; so calling it goes with failing, and causes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import muniment

INTENT = {"domain_tag": "coding", "task_family": "bug fixing"}


class Bug(NamedTuple):
    """A bug, and what is written to mend it."""

    asked: str
    path: str
    test: str
    error: str
    mends: str
    others: tuple[str, str]
    is_hard: bool


BUGS = (
    Bug("The cart's total breaks on items without a discount.", "src/cart.py", "test_total", "KeyError: 'discount'",
        'price -= item.get("discount", 0)', ('price -= float(item["discount"])', "price -= 0"), False),
    Bug("Orders imported at midnight are dated a day early.", "src/dates.py", "test_midnight",
        "ValueError: naive datetime", "moment = moment.replace(tzinfo=UTC)",
        ("moment = moment + timedelta(hours=1)", "moment = datetime.now()"), True),
    Bug("The command line cannot find its settings module.", "src/cli.py", "test_cli",
        "ModuleNotFoundError: No module named 'config'", "from app import config",
        ("import settings as config", "import os as config"), True),
    Bug("Reports of empty months crash.", "src/report.py", "test_empty_month", "ZeroDivisionError: division by zero",
        "mean = total / count if count else 0.0", ("mean = total // count", "mean = total / (count + 1)"), False),
)  # fmt: skip


def trace(bug: Bug, line: int) -> str:
    return (
        f'FAILED tests/{bug.path[4:-3]}::{bug.test} Traceback (most recent call last): File "{bug.path}", line {line}, '
        f"in run {bug.error}"
    )


def attempts(seed: int, times: int, skill: float = 0.5) -> Iterator[tuple[Bug, bool, list[dict[str, Any]]]]:
    """Each bug `times` times, in turn: the bug, whether it was mended, and the events."""
    draw = random.Random(seed)
    for _ in range(times):
        for bug in BUGS:
            mends = draw.random() < (skill - 0.2 if bug.is_hard else skill + 0.2)
            written = bug.mends if mends else draw.choice(bug.others)
            events: list[dict[str, Any]] = [{"role": "user", "content": bug.asked}]
            if draw.random() < (0.8 if bug.is_hard else 0.2):
                events.append(tool("search_method", {"name": bug.test[5:]}, "3 matches in 2 files"))
            events.append(tool("run_tests", {"path": "tests"}, trace(bug, draw.randint(5, 90)), ok=False))
            events.append(tool("edit_file", {"path": bug.path, "old_str": "pass", "new_str": f"    {written}"}, "done"))
            passed = mends and draw.random() < 0.95
            answer = "12 passed" if passed else trace(bug, draw.randint(5, 90))
            events.append(tool("run_tests", {"path": "tests"}, answer, ok=passed))
            events.append({"role": "assistant", "content": "Mended."})
            yield bug, passed, events


def tool(name: str, args: dict[str, Any], content: str, *, ok: bool = True) -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool": {"name": name, "args": args, "ok": ok}}


def work(mem: muniment.Memory, seed: int, times: int, user: str = "dev", **fields: Any) -> None:
    """All attempts, observed, judged and learnt from."""
    for _, passed, events in attempts(seed, times):
        run = mem.run(user_id=user, agent_id="coder")
        run.observe_many(events)
        ending = {"verdict": "PASS", "outcome": "OK"} if passed else {"verdict": "FAIL", "outcome": "FAIL"}
        run.finish(verifier_result={"verifier_id": "tests", **ending}, **{"intent": INTENT} | fields)
