"""Routing and rates by what a bank has logged: windows, buckets, families, forgetting, and who may see what."""

from __future__ import annotations

import pytest

from muniment.errors import InvalidInput, InvalidRecord
from muniment.learning.event_logs import LogWindow
from muniment.rules._records import RouteRequest
from muniment.rules.routing import read_rates, read_stats, stream_rows
from products import for_each

BUCKET, OTHER = "I2|math|clarity_high", "I3|law|clarity_low"
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
MUTE = {"verifier_id": "v", "verdict": "PARTIAL", "outcome": "UNKNOWN", "reason_codes": ["exec_unavailable"]}
CLUSTERED = FAIL | {"failure_cluster_id": "fc_1", "violated_constraints": ["FORMAT:JSON_ONLY"]}


def log(mem, *results, bucket=BUCKET, tier="hot", user_id="ana", family="countdown", tokens=100, **more):
    runs = []
    for result in results:
        run = mem.run(user_id=user_id, agent_id="solver")
        run.observe("user", "Reach 24.")
        run.observe("assistant", "3 × 8.")
        run.finish(
            verifier_result=result,
            intent={"task_family": family},
            state={"budget_tier": tier},
            bucket_key=bucket,
            cost={"tokens_out": tokens},
            **more,
        )
        runs.append(run)
    return runs


@pytest.mark.req("RC-26")
def test_a_decision_by_what_was_logged(any_mem):
    log(any_mem, *[PASS] * 9, FAIL)
    log(any_mem, *[FAIL] * 9, bucket=OTHER)
    decision = any_mem.learning.route(user_id="ana", bucket_key=BUCKET)
    assert (decision.action, decision.zone, decision.tier, decision.impact) == ("run", "easy", "hot", "med")
    assert decision.rungs[0].cost == 100
    assert any_mem.learning.route(user_id="ana", bucket_key=OTHER).zone == "hard"
    assert any_mem.learning.route(user_id="ana", bucket_key=OTHER).impact == "high"
    assert any_mem.learning.route({"bucket_key": OTHER, "impact": "low"}, user_id="ana").impact == "low"
    assert any_mem.learning.route(RouteRequest(bucket_key=BUCKET), user_id="ana") == decision
    assert any_mem.learning.route(user_id="bo", bucket_key=BUCKET).zone == "unknown"
    assert any_mem.learning.route().zone == "unknown"


@pytest.mark.soak
def test_the_same_logs_on_another_engine_route_the_same(make):
    decisions, reports = [], []
    for engine in ("memory", "sqlite"):
        mem = make(engine)
        log(mem, PASS, FAIL, FAIL, MUTE, CLUSTERED, PASS, FAIL)
        log(mem, *[FAIL] * 4, tier="probe")
        decisions.append(mem.learning.route(user_id="ana", bucket_key=BUCKET).to_bytes())
        reports.append(mem.learning.observe_rates(user_id="ana").to_bytes())
    assert decisions[0] == decisions[1]
    assert reports[0] == reports[1]


@pytest.mark.soak
def test_attempts_are_told_apart_by_their_tier(mem):
    log(mem, *[FAIL] * 6)
    log(mem, *[FAIL] * 6, tier="full")
    decision = mem.learning.route(user_id="ana", bucket_key=BUCKET)
    assert (decision.action, decision.zone) == ("escalate", "deadzone")


def test_a_failure_that_recurs_is_counted_from_the_logs(mem):
    log(mem, *[CLUSTERED] * 3)
    decision = mem.learning.route(user_id="ana", bucket_key=BUCKET, cluster_id="fc_1")
    assert decision.recurs
    assert "hard_cluster" in [each.code for each in decision.reasons]
    assert not mem.learning.route(user_id="ana", bucket_key=BUCKET, cluster_id="fc_2").recurs


@pytest.mark.soak
def test_a_family_is_read_alone(mem):
    log(mem, *[PASS] * 7)
    log(mem, *[FAIL] * 7, family="sudoku")
    assert mem.learning.route(user_id="ana", bucket_key=BUCKET, intent={"task_family": "countdown"}).zone == "easy"
    assert mem.learning.route(user_id="ana", bucket_key=BUCKET, intent={"task_family": "sudoku"}).zone == "hard"
    assert mem.learning.route(user_id="ana", bucket_key=BUCKET).zone == "frontier"


@pytest.mark.soak
def test_what_leaves_the_window_or_is_beyond_the_newest_is_not_read(make):
    mem = make("memory", policy={"route": {"runs_max": 4}})
    log(mem, *[FAIL] * 6, *[PASS] * 4)
    assert mem.learning.route(user_id="ana", bucket_key=BUCKET).runs_missing == 2


@pytest.mark.req("RC-04")
def test_rates_over_a_window_and_bucket(any_mem):
    log(any_mem, PASS, FAIL, MUTE, MUTE, CLUSTERED)
    log(any_mem, PASS, bucket=OTHER)
    middle = any_mem.bank(user_id="ana").event_logs(limit=1)[0]
    report = any_mem.learning.observe_rates(user_id="ana")
    seen = report.observables
    assert seen.n == 6
    assert seen.exec_unavailable_rate.count == seen.unknown_rate.count == 2
    assert seen.l1_violation_rate.count == 1
    assert "fc_1" in [each.cluster_id for each in seen.cluster_recurrence]
    assert seen.clustered == 2  # the other failure has one that was read off its run
    assert [(each.bucket_key, each.n) for each in report.buckets] == [(BUCKET, 5), (OTHER, 1)]
    assert report.advice
    assert any_mem.learning.observe_rates(user_id="ana", bucket_key=OTHER).observables.n == 1
    assert any_mem.learning.observe_rates(user_id="bo").observables.n == 0
    assert middle.bucket_key == OTHER


def test_a_window_of_time(mem):
    log(mem, PASS, PASS)
    with mem._ctx.engine.snapshot("default") as reader:
        first, last = sorted(row.at for row in stream_rows(reader, LogWindow("bank:user:ana")))
    assert mem.learning.observe_rates(user_id="ana", until=first).observables.n == 0
    assert mem.learning.observe_rates(user_id="ana", since=first, until="2999-01-01").observables.n == 2
    assert 0 < mem.learning.observe_rates(user_id="ana", since=last).observables.n < 2
    assert mem.learning.observe_rates(user_id="ana", since="2999-01-01").advice[0].code == "too_few_runs"


def test_what_is_forgotten_is_counted_no_more(mem):
    runs = log(mem, PASS, FAIL, FAIL)
    mem.forget(event=next(iter(runs[1].ledger.entries())).id)
    assert mem.learning.observe_rates(user_id="ana").observables.n == 2


def test_runs_that_are_not_over_are_not_counted(mem):
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "Reach 24.")
    run.learning.fold("manual")
    assert mem.learning.observe_rates(user_id="ana").observables.n == 0


def test_many_buckets_are_read_in_one_pass(mem):
    log(mem, PASS, PASS)
    log(mem, FAIL, bucket=None)
    with mem._ctx.engine.snapshot("default") as reader:
        total, buckets = read_rates(reader, LogWindow("bank:user:ana"))
    assert total.n == 3
    assert {name: each.n for name, each in buckets.items()} == {BUCKET: 2, "I2|countdown|clarity_low": 1}


@for_each(
    ("asked", "error"),
    [
        ({"bucket_key": "nonsense"}, InvalidInput),
        ({"bucket_key": 7}, InvalidInput),
        ({"impact": "huge"}, InvalidRecord),
        ({"verdict": "MAYBE"}, InvalidRecord),
        ({"speed": 3}, InvalidRecord),
        ({"cost_max": float("nan")}, InvalidRecord),
        ({"asked": 3}, InvalidInput),
        ({"asked": RouteRequest(), "impact": "low"}, InvalidInput),
        ({"intent": 4}, InvalidInput),
        ({"user_id": "ana", "agent_id": "solver"}, InvalidInput),
    ],
)
def test_bad_questions(mem, asked, error):
    with pytest.raises(error) as caught:
        mem.learning.route(**asked)
    assert caught.value.code


@pytest.mark.parametrize(
    "window", [{"since": "then"}, {"until": 5}, {"since": "2026-05-02", "until": "2026-05-01"}, {"bucket_key": "x"}]
)
def test_bad_windows(mem, window):
    with pytest.raises(InvalidInput) as caught:
        mem.learning.observe_rates(**window)
    assert caught.value.hint


@pytest.mark.req("RC-20")
def test_what_a_runner_logs_is_what_the_router_reads(mem):
    tiers = []

    def agent(task):
        tiers.append(task.tier)
        return {"text": "yes" if task.tier == "probe" else "no", "usage": {"tool_calls": 2}}

    runner = mem.runner(
        agent, lambda output, _task: output.text == "yes", {"recall": False}, user_id="ana", router=True
    )
    done = runner.run("Reach 24.", bucket_key=BUCKET)
    assert (done.passed, tiers) == (True, ["hot", "probe"])
    assert done.decision.tier == "hot"
    window = LogWindow("bank:user:ana", None, None, BUCKET)
    known, _ = mem._ctx.engine.read("default", lambda reader: read_stats(reader, window))
    assert (known.at("hot").n, known.at("hot").passes) == (1, 0)
    assert (known.at("probe").n, known.at("probe").passes, known.at("probe", fresh=True).n) == (1, 1, 0)
    assert (known.tasks.n, known.tasks.passes) == (1, 1)
