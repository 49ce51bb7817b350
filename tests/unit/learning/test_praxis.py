"""Memory that stops helping goes by numbers."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_makers import NOW, run, stored

from effort import examples
from muniment.contracts.learned_memory import ConditionalTactic, ReasoningMemory, ReuseStateRecord
from muniment.core.policy.learning import PraxisPolicy
from muniment.learning.fold.praxis import praxis_update
from muniment.learning.stored_memory import StoredMemory, Tally

POLICY = PraxisPolicy()
TACTIC: dict[str, Any] = {
    "schema_version": "0.5.15",
    "tactic_id": "tac_1",
    "created_at": NOW,
    "status": "active",
    "summary": "Use a=x.",
    "injection": {"content": "Use a=x."},
    "metrics": {"use_n": 0},
}


def after(memory: StoredMemory, outcomes: str, *, used: bool = True) -> tuple[StoredMemory, str | None]:
    """`1` passes, `0` fails; stops where it should be retired."""
    reason = None
    for place, outcome in enumerate(outcomes):
        memory, reason = praxis_update(memory, run(f"t{place}", outcome == "1"), used, POLICY)
        if reason is not None:
            break
    return memory, reason


@pytest.mark.req("RC-13")
def test_runs_are_counted_with_and_without() -> None:
    memory, _ = after(stored(TACTIC), "1101")
    memory, _ = after(memory, "10", used=False)
    assert memory.with_tally == Tally(n=4, passes=3, cost_sum=40)
    assert memory.without_tally == Tally(n=2, passes=1, cost_sum=20)
    assert memory.record["metrics"] == {
        "use_n": 4,
        "fail_n": 1,
        "pass_p_hat": 0.75,
        "avg_cost": 10,
        "efficiency_est": 0.075,
    }
    assert memory.last_used_at == NOW
    assert memory.version == 1


def test_the_streak_is_of_failing_uses() -> None:
    memory, _ = after(stored(TACTIC), "1000")
    assert memory.streak == 3
    assert after(memory, "0", used=False)[0].streak == 3
    assert after(memory, "1")[0].streak == 0


def test_a_run_that_nobody_judged_counts_for_nothing() -> None:
    unjudged = run("t", False).model_copy(update={"verdict": None})
    assert praxis_update(stored(TACTIC), unjudged, True, POLICY) == (stored(TACTIC), None)


@pytest.mark.req("RC-13")
@pytest.mark.parametrize("code", ["praxis_tactic_conflict", "memory_conflict"])
def test_a_reported_conflict_retires_at_once_and_only_what_was_used(code: str) -> None:
    conflict = run("t", True, reason_codes=(code,))
    assert praxis_update(stored(TACTIC), conflict, True, POLICY)[1] == "conflict"
    assert praxis_update(stored(TACTIC), conflict, False, POLICY)[1] is None


@pytest.mark.req("RC-13")
def test_one_that_fails_where_others_pass_is_retired_soon() -> None:
    known = stored(TACTIC, without_tally=Tally(n=20, passes=16, cost_sum=200))
    memory, reason = after(known, "0" * 20)
    assert reason == "pass_rate_below"
    assert memory.with_tally.n <= 6
    memory, reason = after(known, "1" + "0" * 20)
    assert reason is not None
    assert memory.with_tally.n <= 9


def test_failures_in_a_row_end_it_before_the_bound_does() -> None:
    known = stored(TACTIC, without_tally=Tally(n=20, passes=10, cost_sum=200))
    memory, reason = after(known, "11" + "0" * 20)
    assert reason == "fails_in_a_row"
    assert memory.streak >= POLICY.fails_in_a_row_max


def test_failing_is_no_reason_where_runs_without_it_fail_too() -> None:
    assert after(stored(TACTIC, without_tally=Tally(n=30)), "0" * 30)[1] is None


def test_where_nothing_is_known_of_runs_without_it_nothing_is_said() -> None:
    assert after(stored(TACTIC, without_tally=Tally(n=2, passes=2)), "0" * 30)[1] is None


@pytest.mark.parametrize(("advice", "side"), [("do", "without"), ("avoid", "with")])
def test_runs_it_was_learnt_from_stand_in_for_runs_without_it(advice: str, side: str) -> None:
    learnt = {
        "feature": "own:a=x",
        "advice": advice,
        "with": {"n": 9, "passes": 0},
        "without": {"n": 9, "passes": 0},
        side: {"n": 9, "passes": 9},
    }
    assert after(stored(TACTIC | {"learnt": learnt}), "0" * 30)[1] is not None


def test_a_neutral_one_is_seldom_retired_and_a_harmful_one_nearly_always() -> None:
    """Over 100 runs, half of them with it."""

    def retired(rate: float, other: float) -> int:
        gone = 0
        for seed in range(60):
            draw, memory, reason = random.Random(seed), stored(TACTIC), None
            for place in range(100):
                used = draw.random() < 0.5
                passed = draw.random() < (rate if used else other)
                memory, reason = praxis_update(memory, run(f"t{place}", passed), used, POLICY)
                if reason is not None:
                    gone += 1
                    break
        return gone

    assert retired(0.6, 0.6) <= 9
    assert retired(0.2, 0.2) <= 9
    assert retired(0.8, 0.6) == 0
    assert retired(0.2, 0.7) >= 57


@pytest.mark.parametrize("kind", ["tactic", "reasoning", "seed"])
def test_the_record_stays_valid(kind: str) -> None:
    records: dict[str, tuple[dict[str, Any], Any]] = {
        "tactic": (TACTIC, ConditionalTactic),
        "reasoning": (
            {
                "schema_version": "0.5.15",
                "memory_id": "m",
                "kind": "episode",
                "created_at": NOW,
                "status": "active",
                "summary": "s",
            },
            ReasoningMemory,
        ),
        "seed": (
            {"schema_version": "0.5.15", "state_id": "s", "created_at": NOW, "seed_summary": "s"},
            ReuseStateRecord,
        ),
    }
    record, shape = records[kind]
    memory, _ = after(stored(record, kind), "10")
    shape.from_wire(memory.record)
    StoredMemory.from_wire(memory.to_wire())


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30), st.randoms(use_true_random=False))
def test_tallies_are_exact_in_any_order(runs: list[tuple[bool, bool]], shuffler: random.Random) -> None:
    def counted(order: list[tuple[bool, bool]]) -> tuple[Tally, Tally]:
        memory = stored(TACTIC)
        for place, (used, passed) in enumerate(order):
            memory, _ = praxis_update(memory, run(f"t{place}", passed), used, POLICY)
        return memory.with_tally, memory.without_tally

    mixed = [*runs]
    shuffler.shuffle(mixed)
    assert counted(runs) == counted(mixed)
    assert counted(runs)[0].passes == sum(used and passed for used, passed in runs)
