"""How far to go: probe, full, synthesis; dead zones, easy ones, repairs and caps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.runs import RunCost, VerifierResult
from muniment.core.policy import RoutePolicy
from muniment.core.stats import Tally
from muniment.rules._records import RouteRequest
from muniment.rules._summaries import is_confirmed
from muniment.rules.rollouts import Caps, MadeAttempt, Plan, Spent, Step, next_step, plan_mode, plan_route
from muniment.rules.routing import BucketStats, LogRow, route
from muniment.verify.results import is_pass

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
    plan: Plan, words: list[str], caps: Caps | None = None, costs: list[int] | None = None
) -> tuple[list[Step], list[MadeAttempt], list[int]]:
    """A task taken as far as it goes; attempt n gets the n-th word and cost, over and over."""
    made: list[MadeAttempt] = []
    spent = Spent()
    steps: list[Step] = []
    paid: list[int] = []
    while True:
        step = next_step(plan, made, spent, caps or Caps(), POLICY)
        steps.append(step)
        if step.action in ("stop", "escalate"):
            return steps, made, paid
        assert step.k > 0
        for _ in range(step.k):
            cost = (costs or [10])[spent.attempts % len(costs or [10])]
            found = result(words[spent.attempts % len(words)])
            paid.append(cost)
            spent = spent.add(RunCost(tokens_in=cost, tool_calls=1, latency_ms=1))
            made.append(MadeAttempt(found, step.action))


def kinds(made: list[MadeAttempt]) -> tuple[int, int, int]:
    """How many attempts, repairs and syntheses."""
    counts = [sum(each.kind == kind for each in made) for kind in ("attempt", "repair", "synth")]
    return counts[0], counts[1], counts[2]


def shown(steps: list[Step]) -> list[str]:
    return [f"{step.action}:{step.code}:{step.k}" for step in steps]


@pytest.mark.req("RC-20")
def test_probe_then_full_then_synthesis() -> None:
    steps, made, _ = play(plan_mode("synth", POLICY), ["maybe", "fail"])
    assert shown(steps) == ["attempt:kroll:3", "attempt:kroll:3", "synth:synth:1", "stop:synthesised:0"]
    assert kinds(made)[0] == 6
    assert [step.tier for step in steps[:3]] == ["probe", "full", "full"]
    high, made, _ = play(plan_mode("synth", POLICY, "high"), ["maybe", "fail"])
    assert kinds(made)[0] == 8
    assert high[-1].code == "synthesised"


@pytest.mark.req("RC-20")
def test_a_confirmed_pass_ends_it() -> None:
    steps, made, _ = play(plan_mode("auto", POLICY), ["ok"])
    assert shown(steps) == ["attempt:main:1", "stop:confirmed:0"]
    steps, made, _ = play(plan_mode("kroll", POLICY), ["fail", "fail", "fail", "ok"])
    assert steps[-1].code == "confirmed"
    assert kinds(made)[0] == 6  # a wave starts at once


@pytest.mark.req("RC-20")
def test_what_is_made_to_be_compared_is_made_whole() -> None:
    _, made, _ = play(plan_mode("matts", POLICY), ["ok"])
    assert kinds(made)[0] == 3
    _, made, _ = play(plan_mode("kroll", POLICY, k=5), ["ok"])
    assert kinds(made)[0] == 5


@pytest.mark.req("RC-20")
def test_a_dead_zone_stops_and_escalates() -> None:
    steps, made, _ = play(plan_mode("synth", POLICY), ["fail"])
    assert shown(steps)[-1] == "escalate:deadzone:0"
    assert kinds(made)[0] == 6
    assert not kinds(made)[2]
    assert "decompose" in steps[-1].words


@pytest.mark.req("RC-20")
def test_what_is_known_of_the_bucket_saves_attempts() -> None:
    easy = plan_mode("auto", POLICY, known=Tally(30, 30))
    steps, made, _ = play(easy, ["fail"])
    assert kinds(made)[0] == 1
    assert steps[-1].action == "stop"
    hopeless = plan_mode("synth", POLICY, known=Tally(0, 12))
    steps, made, _ = play(hopeless, ["fail"])
    assert kinds(made)[0] == 1
    assert shown(steps)[-1] == "escalate:deadzone:0"
    assert play(hopeless, ["maybe"])[0][-1].action == "stop"
    few = plan_mode("auto", POLICY, known=Tally(8, 8))  # 8 of 8 is a bound of .68: not enough runs to call it easy
    assert few == plan_mode("auto", POLICY)


@pytest.mark.req("RC-20")
def test_a_broken_form_is_mended_before_more_is_tried() -> None:
    steps, _, _ = play(plan_mode("auto", POLICY), ["form", "ok"])
    assert shown(steps) == ["attempt:main:1", "repair:form:1", "stop:confirmed:0"]
    steps, made, _ = play(plan_mode("synth", POLICY), ["form"])
    assert [step.action for step in steps[:3]] == ["attempt", "repair", "attempt"]
    assert kinds(made)[1] == POLICY.repairs_max
    assert [step.action for step in play(plan_mode("main", POLICY), ["form"])[0]] == ["attempt", "stop"]


@pytest.mark.req("RC-20")
def test_caps_cut_the_synthesis_and_then_attempts() -> None:
    goal = plan_mode("synth", POLICY)
    words = ["maybe", "fail"]
    steps, made, _ = play(goal, words, Caps(tokens_max=60))
    assert (kinds(made), steps[-1].code) == ((6, 0, 0), "capped")
    steps, made, _ = play(goal, words, Caps(tokens_max=45))
    assert kinds(made) == (4, 0, 0)
    steps, made, _ = play(goal, words, Caps(attempts_max=2))
    assert shown(steps) == ["attempt:kroll:2", "stop:capped:0"]
    high = plan_mode("synth", POLICY, "high")
    assert kinds(play(high, words, Caps(tokens_max=10))[1])[0] == POLICY.k_probe
    assert kinds(play(goal, words, Caps(tokens_max=10))[1])[0] == 1
    assert kinds(play(high, words, Caps(attempts_max=1))[1])[0] == 1


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
    goal = plan_mode(mode, POLICY, impact, k)  # type: ignore[arg-type]
    _, made, paid = play(goal, words, Caps(tokens_max=cap), costs)
    assert len(made) == len(paid)
    begun_over = sum(sum(paid[:number]) > cap for number in range(len(paid)))
    assert begun_over == 0 if impact != "high" else begun_over < POLICY.k_probe  # the probe is made at any cost


@given(
    mode=st.sampled_from(["kroll", "synth", "auto", "matts"]),
    words=st.lists(st.sampled_from(list(WORDS)), min_size=1, max_size=12),
    most=st.none() | st.integers(1, 12),
)
def test_it_always_ends_and_the_same_way(mode: str, words: list[str], most: int | None) -> None:
    caps = Caps() if most is None else Caps(attempts_max=most)
    steps, made, _ = play(plan_mode(mode, POLICY), words, caps)
    assert (steps, made) == play(plan_mode(mode, POLICY), words, caps)[:2]
    assert len(made) <= (most or POLICY.k_full_max + POLICY.repairs_max + 1)
    if kinds(made)[2]:
        assert not any(is_confirmed(each.result) for each in made if each.kind != "synth")
    if steps[-1].action == "escalate":
        assert not any(is_pass(each.result.verdict, each.result.outcome) for each in made if each.kind == "attempt")


# -- a router's ladder ---------------------------------------------------------------------------------


def routed(request: RouteRequest | None = None, stats: BucketStats | None = None) -> Plan:
    return plan_route(route(request or RouteRequest(), stats or BucketStats(), POLICY), is_parallel=False)


@pytest.mark.req("RC-20", "RC-26")
def test_a_routed_task_climbs_one_by_one_and_escalates() -> None:
    steps, _, _ = play(routed(RouteRequest(impact="high")), ["fail"])
    assert [step.tier for step in steps[:-1]] == ["hot", *["probe"] * 3, *["full"] * POLICY.k_full_max]
    assert shown(steps)[-1] == "escalate:deadzone:0"
    steps, _, _ = play(routed(), ["fail", "ok"])
    assert [step.tier for step in steps[:-1]] == ["hot", "probe"]
    assert steps[-1].code == "confirmed"


@pytest.mark.req("RC-20")
def test_a_routed_form_is_repaired_once_at_its_tier() -> None:
    steps, made, _ = play(routed(), ["form", "fail"])
    assert [step.action for step in steps[:3]] == ["attempt", "repair", "attempt"]
    assert kinds(made)[1] == 1


@pytest.mark.req("RC-26")
@pytest.mark.parametrize(
    ("impact", "code", "action"),
    [
        ("low", None, "stop"),
        ("med", None, "attempt"),
        ("med", "sandbox_denied", "stop"),
        ("high", "sandbox_denied", "attempt"),
    ],
)
def test_a_pass_that_nobody_confirmed(impact: str, code: str | None, action: str) -> None:
    plan = routed(RouteRequest(impact=impact))  # type: ignore[arg-type]
    maybe = result("maybe").model_copy(update={"reason_codes": None if code is None else (code,)})
    assert next_step(plan, [MadeAttempt(maybe)], Spent(1), Caps(), POLICY).action == action


@pytest.mark.req("RC-26")
def test_where_nothing_was_ever_confirmed_a_pass_is_enough() -> None:
    good = LogRow("PASS", "UNKNOWN", passed=True)
    plan = routed(stats=BucketStats.of([good] * 8 + [LogRow("FAIL", "FAIL")] * 12))
    assert play(plan, ["maybe"])[0][-1].code == "never_confirmed"


@pytest.mark.req("RC-20")
def test_where_a_router_would_try_nothing_one_attempt_is_made() -> None:
    dead = [LogRow("FAIL", "FAIL", mode="kroll", tier="full")] * 6 + [LogRow("FAIL", "FAIL")] * 6
    steps, made, _ = play(routed(stats=BucketStats.of(dead)), ["fail"])
    assert (len(made), shown(steps)[-1]) == (1, "escalate:deadzone:0")
