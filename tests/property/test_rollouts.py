"""Whatever verifiers say and attempts cost: the answer is the best there was, caps hold, logs fit, and it repeats."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import muniment
from muniment.contracts.schemas import validate
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.handles.runner import Done
from muniment.rules._attempts import AgentTask
from muniment.rules._summaries import is_confirmed, rank_of

pytestmark = pytest.mark.soak

FEW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PLAIN = {"verifier_id": "v"}
VERDICTS = st.sampled_from(
    [
        PLAIN | {"verdict": "PASS", "outcome": "OK"},
        PLAIN | {"verdict": "PASS", "outcome": "UNKNOWN"},
        PLAIN | {"verdict": "PASS", "outcome": "UNKNOWN", "score": 0.9},
        PLAIN | {"verdict": "PASS", "outcome": "FAIL"},
        PLAIN | {"verdict": "PARTIAL", "outcome": "UNKNOWN"},
        PLAIN | {"verdict": "FAIL", "outcome": "FAIL"},
        PLAIN | {"verdict": "FAIL", "outcome": "UNKNOWN", "violated_constraints": ["FORMAT:JSON_ONLY"]},
    ]
)
MODES = st.sampled_from(["main", "sot", "kroll", "matts", "synth", "auto"])
ANSWERS = st.sampled_from(["24", "Let me think. 24", "<think>x", "", "Solver: 7\nChallenger: no?\nAnswer: 24"])
IMPACTS = st.sampled_from(["I1", "I2", "I3"])


def play(mode: str, verdicts: list[Any], answers: list[str], impact: str, **more: Any) -> Done:
    """One task on a fresh memory; attempt n answers and is judged by the n-th of what is given, over and over."""
    said = 0

    def agent(task: AgentTask) -> dict[str, Any]:
        return {"text": answers[task.attempt % len(answers)], "usage": {"tokens_out": 10 * (task.attempt % 4)}}

    def verifier(_output: Any, _task: str) -> Any:
        nonlocal said
        said += 1
        return verdicts[(said - 1) % len(verdicts)]

    with muniment.open(":memory:", clock=TickingClock(), ids=CountingIds()) as mem:
        runner = mem.runner(agent, verifier, user_id="ana")
        done = runner.run("Reach 24.", mode, bucket_key=f"{impact}|math|clarity_high", **more)
        assert mem.verify().ok
        assert all(state.finished_at is not None for state in mem.runs(user_id="ana"))
    return done


@pytest.mark.req("RC-20", "RC-27")
@FEW
@given(MODES, st.lists(VERDICTS, min_size=1, max_size=9), st.lists(ANSWERS, min_size=1, max_size=4), IMPACTS)
def test_the_answer_is_the_best_there_was(mode: str, verdicts: list[Any], answers: list[str], impact: str) -> None:
    done = play(mode, verdicts, answers, impact)
    best = max(rank_of(each.result) for each in done.attempts)
    assert rank_of(done.result) == best
    plain = [each for each in done.attempts if each.kind != "synth"]
    confirmed = [each.run_id for each in plain if is_confirmed(each.result)]
    if confirmed:
        assert done.run_id in confirmed
    for each in done.attempts:
        assert validate("EventLog", each.learned.event_log.to_wire()) == []


@pytest.mark.req("RC-20")
@FEW
@given(MODES, st.lists(VERDICTS, min_size=1, max_size=9), st.sampled_from(["I1", "I2"]), st.integers(1, 600))
def test_caps_hold(mode: str, verdicts: list[Any], impact: str, most: int) -> None:
    done = play(mode, verdicts, ["24"], impact, caps={"tokens_max": most, "attempts_max": 5})
    assert len(done.attempts) <= 5
    costs = [10 * (each.number % 4) for each in done.attempts]
    assert sum(costs[:-1]) <= most


@pytest.mark.req("RC-20")
@FEW
@given(MODES, st.lists(VERDICTS, min_size=1, max_size=9), st.lists(ANSWERS, min_size=1, max_size=4), IMPACTS)
def test_it_repeats(mode: str, verdicts: list[Any], answers: list[str], impact: str) -> None:
    one, other = (play(mode, verdicts, answers, impact, seed="s") for _ in range(2))
    assert one.steps == other.steps
    assert one.run_id == other.run_id
    assert [each.cfg for each in one.attempts] == [each.cfg for each in other.attempts]
    logs = [[each.learned.event_log.to_bytes() for each in done.attempts] for done in (one, other)]
    assert logs[0] == logs[1]
