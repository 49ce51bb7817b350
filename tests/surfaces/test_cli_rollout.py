"""`muniment learn rollout` and `muniment demo rules`, by hand; and bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli_room import Commands, in_folder
from click.testing import CliRunner

import muniment
from muniment.contracts.runs import RolloutSummary, VerifierResult
from muniment.rules._records import RouteDecision
from muniment.surfaces.cli.main import cli
from products import for_each

TASK = "Which multiple of 8 is 24?"
SOLVER = """
def agent(task):
    task.run.observe_tool("calc", args={"n": task.attempt}, content=str(task.attempt * 8))
    return {"text": f"Because 8 divides 24.\\nAnswer: {task.attempt * 8}", "usage": {"tokens_in": 30, "tokens_out": 10}}

async def waits(task):
    return "Answer: 24"

def crashing(task):
    raise RuntimeError("no such number")

def hangs(task):
    import time
    time.sleep(30)

def verifier(output, task):
    return output.text.endswith("24")
"""
FUNCTIONS = ("--agent", "rollout_solver:agent", "--verifier", "rollout_solver:verifier")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_folder(tmp_path, monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("MUNIMENT_USER", "ana")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "rollout_solver", raising=False)
    (tmp_path / "rollout_solver.py").write_text(SOLVER, "utf-8")
    return tmp_path


COMMANDS = Commands("learn", "rollout")
call, document = COMMANDS.call, COMMANDS.document


@pytest.mark.req("RC-20")
def test_a_task_is_tried_as_often_as_it_takes(folder: Path) -> None:
    done = document(TASK, *FUNCTIONS, "--mode", "auto", "--intent", "family=multiples")
    assert [each["passed"] for each in done["attempts"]] == [False, False, False, True, False, False]
    assert [each["stands"] for each in done["attempts"]].index(True) == 3
    assert [step["code"] for step in done["steps"]] == ["main", "kroll", "kroll", "confirmed"]
    assert done["output"]["text"].endswith("24")
    assert done["spent"]["tokens"] == 240
    VerifierResult.from_wire(done["result"])
    RolloutSummary.from_wire(done["attempts"][0]["summary"])
    assert done["attempts"][0]["cost"]["tokens_out"] == 10
    with muniment.open("muniment.db") as mem:
        logs = {log.trace_id for log in mem.bank(user_id="ana").event_logs()}
    assert {each["trace_id"] for each in done["attempts"]} == logs


def test_what_is_shown_is_readable(folder: Path) -> None:
    result = call("-", *FUNCTIONS, "--mode", "kroll", "--k", "4", "--run", "first", "--seed", "s", stdin=TASK)
    assert (result.exit_code, result.stderr) == (0, "")
    shown = result.stdout
    assert shown.startswith("passed, after 4 attempts; run first-4 stands")
    for piece in (
        "*4  kroll  PASS",
        "trc_",
        "40 tokens, 1 call",
        "step 1:",
        "compared:",
        "spent:        160 tokens",
        "answer:",
    ):
        assert piece in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_none_passes_and_caps_hold(folder: Path) -> None:
    done = document("Which multiple of 8 is 99?", *FUNCTIONS, "--mode", "synth", "--attempts-max", "2", code=1)
    assert (len(done["attempts"]), done["passed"], done["steps"][-1]["code"]) == (2, False, "capped")
    alone = document("Which multiple of 8 is 99?", *FUNCTIONS, code=1)
    assert len(alone["attempts"]) == 1
    assert alone["attempts"][0]["summary"] is None
    shown = call("Which multiple of 8 is 99?", *FUNCTIONS, "--tokens-max", "50", "--mode", "kroll", "--no-recall")
    assert shown.exit_code == 1
    assert shown.stdout.startswith("not passed")


def test_a_router_says_how_far(folder: Path) -> None:
    done = document(TASK, *FUNCTIONS, "--router", "--bucket", "I2|math|clarity_high", "--agent-id", "solver")
    assert RouteDecision.from_wire(done["decision"]).reasons
    assert "routed:" in call(TASK, *FUNCTIONS, "--router", "--bucket", "I2|math|clarity_high").stdout


def test_what_an_agent_does_wrong_is_an_outcome(folder: Path) -> None:
    judge = ("--verifier", "rollout_solver:verifier")
    crashed = document(TASK, "--agent", "rollout_solver:crashing", *judge, code=1)
    assert crashed["result"]["reason_codes"] == ["tool_failure"]
    late = document(TASK, "--agent", "rollout_solver:hangs", *judge, "--timeout", "0.2", code=1)
    assert late["result"]["reason_codes"] == ["tool_timeout"]
    assert "reason:       tool_failure" in call(TASK, "--agent", "rollout_solver:crashing", *judge).stdout
    assert document(TASK, "--agent", "rollout_solver:waits", *judge)["passed"]


BAD = (
    (" ", *FUNCTIONS),
    (TASK, "--agent", "nonsense", "--verifier", "rollout_solver:verifier"),
    (TASK, "--agent", "rollout_solver:nobody", "--verifier", "rollout_solver:verifier"),
    (TASK, "--agent", "no_such_module:agent", "--verifier", "rollout_solver:verifier"),
    (TASK, *FUNCTIONS, "--intent", "colour=red"),
    (TASK, *FUNCTIONS, "--bucket", "nonsense"),
    (TASK, *FUNCTIONS, "--user", ""),
)


@for_each("args", BAD, ids=range(len(BAD)))
def test_bad_input_is_said_and_nothing_is_run(folder: Path, args: tuple[str, ...]) -> None:
    result = call(*args, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    error = json.loads(result.stderr)
    assert error["code"] == "invalid_input"
    assert error["hint"]


@pytest.mark.parametrize(
    "more", [("--mode", "tree"), ("--k", "0"), ("--k", "65"), ("--attempts-max", "0"), ("--timeout", "0")]
)
def test_options_out_of_range(folder: Path, more: tuple[str, ...]) -> None:
    assert call(TASK, *FUNCTIONS, *more).exit_code == 2
    assert not list(folder.glob("*.db"))


@pytest.mark.soak
def test_the_demo_of_rules(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["demo", "rules"])
    assert result.exit_code == 0, result.output
    for piece in (
        "0 of 20 get it",
        "not passed without tests",
        "refused, signature or not: wrong_stage",
        "16 of 16 tests pass: True",
        "runs    promote: effect +",
        "it is still canary",
        "by rosa",
        "20 of 20 would get it, of another kind 0 of 20",
        "selections are as before: False",
        "in one call; selections are as before: True",
    ):
        assert piece in result.stdout
    assert len(result.stdout.splitlines()) <= 60
    assert not list(folder.glob("*.db"))
