"""How far to go: probe, full, synthesis; dead zones, easy ones, repairs and caps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.runs import RunCost, VerifierResult
from muniment.core.policy import RoutePolicy
from muniment.rules._summaries import is_confirmed
from muniment.rules.rollouts import Caps, Goal, Known, Made, Spent, Step, goal_of, next_step
from muniment.verify.verdicts import is_pass

POLICY = RoutePolicy()
WORDS = {
    "ok": ("PASS", "OK"),
    "maybe": ("PASS", "UNKNOWN"),
    "part": ("PARTIAL", "UNKNOWN"),
    "fail": ("FAIL", "FAIL"),
    "form": ("FAIL", "UNKNOWN"),
}


def result(word: str) -> VerifierResult:
    verdict, outcome = WORDS[word]
    plain = {"schema_version": "0.5.15", "verifier_id": "v", "verdict": verdict, "outcome": outcome}
    return VerifierResult.from_wire(plain | ({"violated_constraints": ["FORMAT:JSON_ONLY"]} if word == "form" else {}))


def play(
    goal: Goal, words: list[str], caps: Caps | None = None, costs: list[int] | None = None
) -> tuple[list[Step], Made, list[int]]:
    """A task taken as far as it goes; attempt n gets the n-th word and cost, over and over."""
    attempts: list[VerifierResult] = []
    repairs: list[VerifierResult] = []
    spent, has_synth = Spent(), False
    steps: list[Step] = []
    paid: list[int] = []
    while True:
        made = Made(attempts, repairs, has_synth, spent)
        step = next_step(goal, made, caps or Caps(), POLICY)
        steps.append(step)
        if step.action in ("stop", "escalate"):
            return steps, made, paid
        assert step.k > 0
        for _ in range(step.k):
            cost = (costs or [10])[spent.attempts % len(costs or [10])]
            found = result(words[spent.attempts % len(words)])
            paid.append(cost)
            spent = spent.add(RunCost(tokens_in=cost, tool_calls=1, latency_ms=1))
            if step.action == "attempt":
                attempts.append(found)
            elif step.action == "repair":
                repairs.append(found)
            else:
                has_synth = True


def told(steps: list[Step]) -> list[str]:
    return [f"{step.action}:{step.code}:{step.k}" for step in steps]


@pytest.mark.req("RC-20")
def test_probe_then_full_then_synthesis() -> None:
    steps, made, _ = play(goal_of("synth", POLICY), ["maybe", "fail"])
    assert told(steps) == ["attempt:kroll:3", "attempt:kroll:3", "synth:synth:1", "stop:synthesised:0"]
    assert len(made.attempts) == 6
    assert [step.tier for step in steps[:3]] == ["probe", "full", "full"]
    high, made, _ = play(goal_of("synth", POLICY, "high"), ["maybe", "fail"])
    assert len(made.attempts) == 8
    assert high[-1].code == "synthesised"


@pytest.mark.req("RC-20")
def test_a_confirmed_pass_ends_it() -> None:
    steps, made, _ = play(goal_of("auto", POLICY), ["ok"])
    assert told(steps) == ["attempt:main:1", "stop:confirmed:0"]
    steps, made, _ = play(goal_of("kroll", POLICY), ["fail", "fail", "fail", "ok"])
    assert steps[-1].code == "confirmed"
    assert len(made.attempts) == 6  # a wave starts at once


@pytest.mark.req("RC-20")
def test_what_is_made_to_be_compared_is_made_whole() -> None:
    _, made, _ = play(goal_of("matts", POLICY), ["ok"])
    assert len(made.attempts) == 3
    _, made, _ = play(goal_of("kroll", POLICY, k=5), ["ok"])
    assert len(made.attempts) == 5


@pytest.mark.req("RC-20")
def test_a_dead_zone_stops_and_escalates() -> None:
    steps, made, _ = play(goal_of("synth", POLICY), ["fail"])
    assert told(steps)[-1] == "escalate:deadzone:0"
    assert len(made.attempts) == POLICY.deadzone_k
    assert not made.has_synth
    assert "decompose" in steps[-1].words


@pytest.mark.req("RC-20")
def test_what_is_known_of_the_bucket_saves_attempts() -> None:
    easy = goal_of("auto", POLICY, known=Known(30, 30))
    steps, made, _ = play(easy, ["fail"])
    assert len(made.attempts) == 1
    assert steps[-1].action == "stop"
    hopeless = goal_of("synth", POLICY, known=Known(0, 12))
    steps, made, _ = play(hopeless, ["fail"])
    assert len(made.attempts) == 1
    assert told(steps)[-1] == "escalate:deadzone:0"
    assert play(hopeless, ["maybe"])[0][-1].action == "stop"
    few = goal_of("auto", POLICY, known=Known(8, 8))  # 8 of 8 is a bound of .68: not enough runs to call it easy
    assert few == goal_of("auto", POLICY)


@pytest.mark.req("RC-20")
def test_a_broken_form_is_mended_before_more_is_tried() -> None:
    steps, _, _ = play(goal_of("auto", POLICY), ["form", "ok"])
    assert told(steps) == ["attempt:main:1", "repair:form:1", "stop:confirmed:0"]
    steps, made, _ = play(goal_of("synth", POLICY), ["form"])
    assert [step.action for step in steps[:3]] == ["attempt", "repair", "attempt"]
    assert len(made.repairs) == POLICY.repairs_max
    assert [step.action for step in play(goal_of("main", POLICY), ["form"])[0]] == ["attempt", "stop"]


@pytest.mark.req("RC-20")
def test_caps_cut_the_synthesis_and_then_attempts() -> None:
    goal = goal_of("synth", POLICY)
    words = ["maybe", "fail"]
    steps, made, _ = play(goal, words, Caps(tokens_max=60))
    assert (len(made.attempts), made.has_synth, steps[-1].code) == (6, False, "capped")
    steps, made, _ = play(goal, words, Caps(tokens_max=45))
    assert (len(made.attempts), made.has_synth) == (4, False)
    steps, made, _ = play(goal, words, Caps(attempts_max=2))
    assert told(steps) == ["attempt:kroll:2", "stop:capped:0"]
    high = goal_of("synth", POLICY, "high")
    assert len(play(high, words, Caps(tokens_max=10))[1].attempts) == POLICY.k_probe
    assert len(play(goal, words, Caps(tokens_max=10))[1].attempts) == 1
    assert len(play(high, words, Caps(attempts_max=1))[1].attempts) == 1


@pytest.mark.req("RC-20")
@given(
    mode=st.sampled_from(["main", "kroll", "matts", "synth", "auto"]),
    impact=st.sampled_from(["low", "med", "high"]),
    words=st.lists(st.sampled_from(list(WORDS)), min_size=1, max_size=12),
    costs=st.lists(st.integers(0, 500), min_size=1, max_size=12),
    cap=st.integers(1, 1_500),
    k=st.none() | st.integers(1, 12),
)
def test_a_cap_is_never_passed_by_more_than_one_attempt(
    mode: str, impact: str, words: list[str], costs: list[int], cap: int, k: int | None
) -> None:
    goal = goal_of(mode, POLICY, impact, k)  # type: ignore[arg-type]
    _, made, paid = play(goal, words, Caps(tokens_max=cap), costs)
    assert made.spent.tokens == sum(paid)
    begun_over = sum(sum(paid[:number]) > cap for number in range(len(paid)))
    assert begun_over == 0 if impact != "high" else begun_over < POLICY.k_probe  # the probe is made at any cost


@given(
    mode=st.sampled_from(["kroll", "synth", "auto", "matts"]),
    words=st.lists(st.sampled_from(list(WORDS)), min_size=1, max_size=12),
    most=st.none() | st.integers(1, 12),
)
def test_it_always_ends_and_the_same_way(mode: str, words: list[str], most: int | None) -> None:
    caps = Caps() if most is None else Caps(attempts_max=most)
    steps, made, _ = play(goal_of(mode, POLICY), words, caps)
    assert (steps, made) == play(goal_of(mode, POLICY), words, caps)[:2]
    assert made.spent.attempts <= (most or POLICY.k_full_max + POLICY.repairs_max + 1)
    results = [*made.attempts, *made.repairs]
    if made.has_synth:
        assert not any(map(is_confirmed, results))
    if steps[-1].action == "escalate":
        assert not any(is_pass(each.verdict, each.outcome) for each in made.attempts)
