"""Patterning over a function of the caller's: measured, solved, tried; what crashes or lies is a typed error."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muniment
from muniment.contracts.rules import PatterningPlan
from muniment.core.policy import PatterningPolicy
from muniment.errors import EvaluationFailed, InvalidInput, WrongStage
from muniment.rules.patterning import (
    TrainAndEvaluate,
    observe_logs,
    run_patterning,
    stage_of,
    validate_plan,
    weights_in_force,
)
from products import for_each

PACKAGE = Path(muniment.__file__).parent
OFFLINE = ("muniment.rules.patterning", "muniment.rules.patterning")


def linear(weights: Mapping[str, float], seed: int, /) -> dict[str, Any]:
    """Better with more of a; numpy's numbers are numbers."""
    return {
        "x": np.float64(0.4 + 0.3 * weights["a"] + 0.1 * weights["b"] + 0.001 * seed),
        "y": np.float32(0.5) + 0.2 * weights["b"] - 0.1 * weights["c"],
    }


def falling(weights: Mapping[str, float], seed: int, /) -> dict[str, float]:
    return {"x": 0.9 - 0.5 * weights["a"], "y": 0.5}


def asked(evaluate: TrainAndEvaluate = linear, **more: Any) -> PatterningPlan:
    given: dict[str, Any] = {
        "probes": [{"probe_id": "a"}, {"probe_id": "b"}, {"probe_id": "c"}],
        "observables": [{"obs_id": "x", "kind": "pass_rate", "target_delta": 0.02}, {"obs_id": "y", "kind": "custom"}],
        "base_weights": {"a": 1, "b": 1, "c": 1},
        "base_dataset": "distill_v3",
        "seed": 7,
        "generated_at": "2026-01-01T00:00:00Z",
    }
    return run_patterning(evaluate, **given | more)


@pytest.mark.req("RC-24")
def test_from_a_function_to_a_plan() -> None:
    calls: list[tuple[dict[str, float], int]] = []

    def noted(weights: Mapping[str, float], seed: int, /) -> Mapping[str, float]:
        calls.append((dict(weights), seed))
        return linear(weights, seed)

    plan = asked(noted, policy=PatterningPolicy(repeats=2))
    assert len(calls) == 2 * 7
    assert [seed for _, seed in calls] == [7] * 7 + [8] * 7
    assert all(sum(weights.values()) == pytest.approx(1) for weights, _ in calls)
    assert stage_of(plan) == "planned"
    assert not plan.applied
    weights = dict(zip("abc", plan.solution.weights, strict=True))
    gain = linear(weights, 0)["x"] - linear(dict.fromkeys("abc", 1 / 3), 0)["x"]
    assert gain == pytest.approx(0.02, rel=0.01)
    assert plan.to_bytes() == asked(policy=PatterningPolicy(repeats=2)).to_bytes()
    one_sided = PatterningPolicy(difference="one_sided")
    calls.clear()
    asked(noted, policy=one_sided)
    assert len(calls) == 4


@pytest.mark.req("RC-24")
def test_replay_and_canary_decide() -> None:
    done = asked(replay=linear, canary=linear)
    assert done.applied
    assert weights_in_force(done)["a"] > 1 / 3
    assert stage_of(asked(replay=linear)) == "replayed"
    for bad in (asked(replay=falling, canary=linear), asked(replay=linear, canary=falling)):
        assert stage_of(bad) == "rolled_back"
        assert not bad.applied
        assert weights_in_force(bad)["a"] == pytest.approx(1 / 3)


@pytest.mark.req("RC-24")
def test_the_order_is_kept_and_nothing_is_trained_in_vain() -> None:
    def never(weights: Mapping[str, float], seed: int, /) -> Mapping[str, float]:
        raise AssertionError("was called")

    plan = asked()
    with pytest.raises(WrongStage):
        validate_plan(plan, canary=never, seed=0)
    with pytest.raises(WrongStage):
        asked(canary=linear)
    replayed = validate_plan(plan, replay=linear, seed=0)
    with pytest.raises(WrongStage):
        validate_plan(replayed, replay=never, seed=0)
    assert validate_plan(replayed, canary=linear, seed=0).applied
    refused = asked(
        lambda weights, seed: {"x": 0.5, "y": weights["a"]}, policy=PatterningPolicy(ill_conditioned="plan")
    )
    with pytest.raises(WrongStage):
        validate_plan(refused, replay=never, canary=never, seed=0)


# -- functions that misbehave -------------------------------------------------------------------------


def crashing(weights: Mapping[str, float], seed: int, /) -> Mapping[str, float]:
    if weights["b"] > 0.34:
        raise ZeroDivisionError("no data left")
    return linear(weights, seed)


@pytest.fixture(params=["here", "threads", "processes"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor | None]:
    if request.param == "here":
        yield None
        return
    pool = ThreadPoolExecutor(2) if request.param == "threads" else ProcessPoolExecutor(2, get_context("spawn"))
    with pool:
        yield pool


@pytest.mark.soak
def test_a_crash_names_its_evaluation(executor: Executor | None) -> None:
    assert asked(executor=executor).to_bytes() == asked().to_bytes()
    with pytest.raises(EvaluationFailed, match=r"evaluating \w \+0.05 with seed 7|evaluating a -0.05") as failed:
        asked(crashing, executor=executor)
    assert "no data left" in failed.value.message
    assert failed.value.details["seed"] == 7


@for_each(
    ("answer", "said"),
    [
        (None, "NoneType"),
        ({"x": 0.5}, "no value of y"),
        ({"x": float("nan"), "y": 0.5}, "x is nan"),
        ({"x": "0.5", "y": 0.5}, "x is '0.5'"),
        ({"x": True, "y": 0.5}, "x is True"),
        ({"x": 1.5, "y": 0.5}, "a rate"),
        ([0.5, 0.5], "list"),
    ],
)
def test_nonsense_is_refused(answer: Any, said: str) -> None:
    with pytest.raises(EvaluationFailed, match=said):
        asked(lambda weights, seed: answer)


def test_what_hangs_is_given_up_and_a_dead_executor_said() -> None:
    released = threading.Event()

    def hanging(weights: Mapping[str, float], seed: int, /) -> Mapping[str, float]:
        released.wait(30)
        return linear(weights, seed)

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(EvaluationFailed, match="no answer within"):
            asked(hanging, executor=pool, policy=PatterningPolicy(evaluation_timeout_s=0.05))
        released.set()
    with pytest.raises(EvaluationFailed, match="takes no work"):
        asked(executor=pool)


def test_what_stops_the_program_is_not_an_outcome() -> None:
    def stopping(weights: Mapping[str, float], seed: int, /) -> Mapping[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked(stopping)


def test_bad_questions_are_refused_before_anything_is_trained() -> None:
    def never(weights: Mapping[str, float], seed: int, /) -> Mapping[str, float]:
        raise AssertionError("was called")

    for changes in (
        {"base_weights": {"a": 1}},
        {"observables": [{"obs_id": "x"}]},
        {"probes": [{"probe_id": "a"}]},
        {"probes": [{"id": "a"}]},
        {"base_weights": {"a": "1", "b": 1, "c": 1}},
    ):
        with pytest.raises(InvalidInput):
            asked(never, **changes)


# -- offline ------------------------------------------------------------------------------------------


@pytest.mark.req("RC-24")
def test_no_run_imports_patterning() -> None:
    """No room and nothing of the runtime names it; surfaces may, each in a command of its own."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(("muniment", *path.relative_to(PACKAGE).with_suffix("").parts))
        text = path.read_text("utf-8")
        if "patterning" not in text or name.startswith((*OFFLINE, "muniment.surfaces")):
            continue
        named: list[str] = []
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                named += [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                named += [str(node.module), *(f"{node.module}.{each.name}" for each in node.names)]
        assert not [each for each in named if each.startswith(OFFLINE)], name


RUN = """
import sys, muniment
with muniment.open(sys.argv[1]) as mem:
    run = mem.run(user_id="ana", agent_id="a")
    run.observe("user", "Find order 7.")
    run.compose("responder", query="order")
    run.learning.learn({"verifier_id": "v", "verdict": "PASS", "outcome": "OK"})
allowed = ("muniment.core.policy", "muniment.contracts")
print([name for name in sys.modules if "patterning" in name and not name.startswith(allowed)])
"""


@pytest.mark.soak
@pytest.mark.req("RC-24")
def test_a_whole_run_loads_nothing_of_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "m.db")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


# -- from the logs of a bank --------------------------------------------------------------------------


@pytest.mark.req("RC-24")
def test_observables_of_a_bank(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "m.db") as mem:
        for outcome in ("OK", "UNKNOWN", "FAIL", "OK"):
            run = mem.run(user_id="ana", agent_id="a")
            run.observe("user", "Find order 7.")
            run.learning.learn({"verifier_id": "v", "verdict": "PASS", "outcome": outcome}, cost={"tokens_in": 10})
        logs = mem.bank(user_id="ana").event_logs()
    wanted = [
        {"obs_id": "p", "kind": "pass_rate"},
        {"obs_id": "u", "kind": "unknown_rate"},
        {"obs_id": "c", "kind": "avg_cost"},
    ]
    assert observe_logs(logs, wanted) == {"p": 0.75, "u": 0.25, "c": 10.0}
    with pytest.raises(InvalidInput, match="no run"):
        observe_logs(logs, [{"obs_id": "r", "kind": "reason_code_rate", "reason_code": "x"}])
