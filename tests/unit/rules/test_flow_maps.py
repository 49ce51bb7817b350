"""`bank.flow_map`: the logs of a bank over a window, read one by one, alike on every engine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from muniment.contracts.rules import FlowMapSnapshot
from muniment.contracts.schemas import validate
from muniment.core.ports.engine import Row, Select
from muniment.errors import InvalidInput, InvalidRecord, NotFound
from muniment.handles.memory import Memory
from muniment.rules.flow_map import FlowRow, flow_rows
from products import for_each

EASY, HARD = "I1|math|clarity_high", "I3|code|clarity_low"
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
UNSURE = {"verifier_id": "v", "verdict": "PASS", "outcome": "UNKNOWN"}
MUTE = {"verifier_id": "v", "verdict": "PARTIAL", "outcome": "UNKNOWN", "reason_codes": ["exec_unavailable"]}
INTENT = {"domain_tag": "math", "task_family": "countdown"}


def learn(mem: Memory, result: dict[str, Any] | None, bucket: str = EASY, user: str = "ana", **more: Any) -> str:
    """A run learnt from; answers the id of what was asked in it."""
    run = mem.run(user_id=user, agent_id="solver", task_type="countdown")
    asked = run.observe("user", "Reach 24.")
    run.observe("assistant", "3 × 8")
    state = {"mode": "main", **more.pop("state", {})}
    run.finish(verifier_result=result, intent=INTENT, state=state, bucket_key=bucket, **more)
    return asked.id


def told(snapshot: FlowMapSnapshot) -> dict[tuple[str, str | None], tuple[float, int]]:
    return {
        (str(spot.stage), spot.reason_code): (float(spot.risk_rate or 0), int(spot.support_n or 0))
        for spot in snapshot.risk.stage_hotspots or ()
    }


@pytest.mark.req("RC-23")
@pytest.mark.parametrize("estimator", ["aggregate_v1", "logit_field_v1"])
def test_the_map_of_a_bank(any_mem: Memory, estimator: Any) -> None:
    for result in (PASS, PASS, FAIL, UNSURE, MUTE):
        learn(any_mem, result)
    learn(any_mem, FAIL, HARD, state={"budget_tier": "probe"})
    learn(any_mem, FAIL, user="ben")
    snapshot = any_mem.bank(user_id="ana").flow_map(estimator=estimator)
    assert validate("FlowMapSnapshot", snapshot.to_wire()) == []
    assert str(snapshot.notes).startswith("6 logs, 5 judged")
    found = told(snapshot)
    assert set(found) == {
        ("main→verify", None),
        ("main→verify", "numeric_error"),
        ("main→verify", "exec_unavailable"),
        ("main→verify", "(no code)"),
    }
    assert all(n == 6 for _, n in found.values())
    if estimator == "aggregate_v1":
        assert found["main→verify", None][0] == pytest.approx(4 / 6, abs=1e-6)
        assert found["main→verify", "numeric_error"][0] == pytest.approx(2 / 6, abs=1e-6)


@pytest.mark.soak
@pytest.mark.req("RC-23")
def test_engines_agree_to_the_byte(make: Any) -> None:
    maps = []
    for engine in ("sqlite", "postgres"):
        mem = make(engine)
        for at, result in enumerate((PASS, FAIL, UNSURE, FAIL, PASS, MUTE)):
            learn(mem, result, (EASY, HARD)[at % 2], state={"budget_tier": ("hot", "full")[at // 3]})
        maps.append(
            [mem.bank(user_id="ana").flow_map(estimator=kind).to_bytes() for kind in ("aggregate_v1", "logit_field_v1")]
        )
    assert maps[0] == maps[1]


@pytest.mark.req("RC-23")
def test_a_bucket_and_a_window(mem: Memory) -> None:
    learn(mem, FAIL)
    bank = mem.bank(user_id="ana")
    (first,) = rows(mem)
    later = (datetime.fromisoformat(first.at) + timedelta(microseconds=1)).astimezone(UTC)
    learn(mem, PASS, HARD)
    learn(mem, FAIL, HARD)
    assert told(bank.flow_map())["main→verify", None] == (pytest.approx(2 / 3, abs=1e-6), 3)
    assert told(bank.flow_map(bucket_key=HARD))["main→verify", None] == (0.5, 2)
    assert told(bank.flow_map(since=later))["main→verify", None] == (0.5, 2)
    assert told(bank.flow_map(until=later))["main→verify", None] == (1.0, 1)
    window = bank.flow_map(since=first.at, until=later).window
    assert window is not None
    assert (window.start_at, window.end_at[:26]) == (first.at, later.isoformat(timespec="microseconds")[:26])


def rows(mem: Memory) -> list[FlowRow]:
    return mem._ctx.engine.read("default", lambda reader: list(flow_rows(reader, "bank:user:ana")))


def test_a_row_has_what_the_log_tells(mem: Memory) -> None:
    learn(mem, FAIL, HARD, state={"budget_tier": "full"}, cost={"tokens_in": 40, "tokens_out": 2})
    (row,) = rows(mem)
    assert (row.stage, row.verdict, row.outcome, row.passed) == ("main→verify", "FAIL", "FAIL", False)
    assert (row.reason_codes, row.bucket_key, row.tier, row.cost) == (("numeric_error",), HARD, "full", 42.0)
    assert (row.hints, row.rules, row.is_first, row.task) == (0, 0, True, None)


def test_runs_that_are_forgotten_are_gone_from_the_map(mem: Memory) -> None:
    gone = learn(mem, FAIL)
    learn(mem, PASS)
    mem.forget(event=gone)
    assert [row.passed for row in rows(mem)] == [True]


@pytest.mark.req("RC-23")
@for_each(
    ("asked", "error", "path"),
    [
        ({"since": "2027-01-01", "until": "2026-01-01"}, InvalidInput, "$.until"),
        ({"since": "2026-01-01", "until": "2026-01-01"}, InvalidInput, "$.until"),
        ({"since": "yesterday"}, InvalidInput, "$.since"),
        ({"until": 7}, InvalidInput, "$.until"),
        ({"since": "2999-01-01"}, NotFound, "$.window"),
        ({"bucket_key": HARD}, NotFound, "$.bucket_key"),
        ({"bucket_key": 7}, InvalidInput, "$.bucket_key"),
        ({"estimator": "nn_field_v1"}, InvalidInput, "$.estimator"),
    ],
)
def test_bad_windows_are_refused_by_name(mem: Memory, asked: dict[str, Any], error: type[Exception], path: str) -> None:
    learn(mem, PASS)
    with pytest.raises(error) as caught:
        mem.bank(user_id="ana").flow_map(**asked)
    assert getattr(caught.value, "path", None) == path
    assert not isinstance(caught.value, InvalidRecord)


def test_a_bank_without_a_judged_run_has_no_map(mem: Memory) -> None:
    with pytest.raises(NotFound, match="no judged run"):
        mem.bank(user_id="ana").flow_map()


def test_logs_are_never_sorted_by_the_store() -> None:
    """SQLite sorts in memory: what has a condition on `created_at` comes from an index in that order."""
    asked: list[Select] = []

    class Spy:
        def stream(self, select: Select) -> Iterator[Row]:
            asked.append(select)
            return iter(())

    assert list(flow_rows(Spy(), "bank:tenant")) == []  # type: ignore[arg-type]
    (select,) = asked
    assert ("created_at", ">=", "") in select.where
    assert select.order[0] == "created_at"
