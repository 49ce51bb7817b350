"""`muniment learn route` and `muniment learn rates`, by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_room import Commands, copied, in_folder

import muniment
from muniment.rules._records import RateReport, RouteDecision

BUCKET = "I2|math|clarity_high"
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "failure_cluster_id": "fc_1"}
UNRUN = {"verifier_id": "v", "verdict": "PASS", "outcome": "UNKNOWN", "reason_codes": ["sandbox_denied"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return in_folder(tmp_path, monkeypatch)


@pytest.fixture(scope="module", name="filled")
def make_filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "muniment.db"
    with muniment.open(path) as mem:
        for result in [PASS, PASS, FAIL, FAIL, FAIL, *[UNRUN] * 8]:
            run = mem.run(user_id="ana")
            run.observe("user", "Reach 24 with 3 and 8.")
            run.finish(verifier_result=result, bucket_key=BUCKET, cost={"tokens_out": 500})
    return path


@pytest.fixture
def store(folder: Path, filled: Path) -> Path:
    return copied(filled, folder)


COMMANDS = Commands()
call, document = COMMANDS.call, COMMANDS.document


@pytest.mark.req("RC-26")
def test_route(store: Path) -> None:
    found = RouteDecision.from_wire(document("learn", "route", "--user", "ana", "--bucket", BUCKET))
    assert (found.action, found.tier, found.rungs[0].cost) == ("run", "hot", 500)
    shown = call("learn", "route", "--user", "ana", "--bucket", BUCKET).stdout
    assert shown.startswith("run  1 hot (main), then 3 probe (kroll)")
    assert "cost:     at most " in shown
    assert all(reason.code in shown for reason in found.reasons)


def test_route_after_an_attempt(store: Path) -> None:
    after = ("learn", "route", "--user", "ana", "--bucket", BUCKET, "--verdict", "FAIL", "--outcome", "FAIL")
    assert document(*after, "--violated", "FORMAT:JSON_ONLY")["action"] == "repair"
    assert document(*after)["tier"] == "probe"
    assert document(*after, "--cluster", "fc_1")["recurs"]
    low = ("learn", "route", "--impact", "low", "--verdict", "PASS", "--outcome", "UNKNOWN")
    assert document(*low, "--user", "ana")["reasons"][0]["code"] == "low_impact_unknown"
    assert "stop" in call(*low).stdout


def test_route_under_pressure_and_with_a_cap(store: Path) -> None:
    pressed = document("learn", "route", "--user", "ana", "--pressure", "severe")
    assert [rung["tier"] for rung in pressed["rungs"]] == ["hot"]
    capped = document("learn", "route", "--user", "ana", "--bucket", BUCKET, "--cost-max", "1")
    assert (capped["action"], capped["reasons"][0]["code"]) == ("stop", "cost_cap")


def test_a_new_bucket_says_how_many_runs_are_missing(store: Path) -> None:
    shown = call("learn", "route", "--user", "ana", "--bucket", "I1|law|clarity_low").stdout
    assert "missing: 6 judged runs" in shown


@pytest.mark.req("RC-04")
def test_observe_rates(store: Path) -> None:
    report = RateReport.from_wire(document("learn", "rates", "--user", "ana"))
    assert report.observables.exec_unavailable_rate.count == 8
    assert [each.code for each in report.advice] == ["get_sandbox", "cluster_recurs"]
    shown = call("learn", "rates", "--user", "ana").stdout
    assert "13 judged runs of all buckets" in shown
    assert "61.5%" in shown
    assert "get a sandbox" in shown
    assert "fc_1" in shown


def test_rates_of_nothing(store: Path) -> None:
    shown = call("learn", "rates", "--user", "ana", "--since", "2999-01-01").stdout
    assert "unknown" in shown
    assert "too_few_runs" in shown


@pytest.mark.parametrize(
    ("args", "path"),
    [
        (("learn", "route", "--bucket", "x"), None),
        (("learn", "route", "--user", "a", "--agent", "b"), "$.agent"),
        (("learn", "route", "--intent", "colour=red"), "$.intent"),
        (("learn", "rates", "--since", "2026-05-02", "--until", "2026-05-01"), "$.until"),
        (("learn", "rates", "--since", "soon"), "$.since"),
    ],
)
def test_errors_have_code_and_hint(store: Path, args: tuple[str, ...], path: str | None) -> None:
    result = call(*args, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    error = json.loads(result.stderr)
    assert error["code"] == "invalid_input"
    assert error.get("path") == path
    assert error["hint"]
    assert "error[invalid_input]" in call(*args).stderr


def test_no_store_is_made(folder: Path) -> None:
    for command in ("route", "rates"):
        assert call("learn", command).exit_code == 2
    assert list(folder.iterdir()) == []
