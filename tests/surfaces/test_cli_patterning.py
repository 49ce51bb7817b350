"""`muniment learn patterning` by hand: measurements or a function in, a plan out, tried and taken back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from muniment.contracts.rules import PatterningPlan
from muniment.contracts.semantics import check_patterning
from muniment.surfaces.cli.main import cli

FUNCTIONS = """
def good(weights, seed):
    return {"x": 0.4 + 0.3 * weights["a"] + 0.1 * weights["b"], "y": 0.5 + 0.2 * weights["b"]}

def bad(weights, seed):
    return {"x": 0.9 - weights["a"], "y": 0.5}

def crash(weights, seed):
    raise ValueError("no such file")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "pattern_functions", raising=False)
    (tmp_path / "pattern_functions.py").write_text(FUNCTIONS, "utf-8")
    (tmp_path / "pattern_broken.py").write_text("1 / 0", "utf-8")
    write(tmp_path / "asked.json", asked())
    return tmp_path


def asked(**more: Any) -> dict[str, Any]:
    return {
        "base_dataset": "distill\x1b[31m_v3",
        "probes": [{"probe_id": "a", "description": "sums"}, {"probe_id": "b"}, {"probe_id": "c"}],
        "observables": [{"obs_id": "x", "kind": "pass_rate", "target_delta": 0.02}, {"obs_id": "y"}],
        "base_weights": {"a": 1, "b": 1, "c": 1},
    } | more


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), "utf-8")


def call(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["learn", "patterning", *args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.mark.req("RC-24")
def test_a_plan_from_a_function_tried_and_taken_back(folder: Path) -> None:
    shown = call(
        "plan", "asked.json", "--call", "pattern_functions:good", "--repeats", "2", "--out", "plan.json"
    ).stdout
    assert "planned" in shown
    assert "sums" in shown
    assert "\x1b[31m" not in shown
    assert "stay" in shown
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    assert check_patterning(plan) == []
    assert PatterningPlan.from_wire(plan).applied is False
    good, bad = "pattern_functions:good", "pattern_functions:bad"
    rolled = call("try", "plan.json", "--replay", good, "--canary", bad, code=1).stdout
    assert "canary: x is worse" in rolled
    call("try", "plan.json", "--replay", good, "--out", "plan.json")
    (line,) = call("try", "plan.json", "--canary", good, "--out", "plan.json", "--json").stdout.splitlines()
    assert json.loads(line)["applied"] is True
    assert "canary: held" in call("show", "plan.json").stdout
    back = json.loads(call("rollback", "plan.json", "--reason", "worse for ana", "--json").stdout)
    assert back["applied"] is False
    assert back["validation"]["results"]["rollback"] == {"reasons": ["worse for ana"]}


@pytest.mark.req("RC-24")
def test_a_plan_from_measurements_is_the_same_every_time(folder: Path) -> None:
    rows: list[dict[str, Any]] = [{"values": {"x": 0.5, "y": 0.5}}]
    for name, slope in (("a", 0.2), ("b", 0.0), ("c", -0.2)):
        rows += [{"probe_id": name, "step": 0.05, "values": {"x": 0.5 + 0.05 * slope, "y": 0.5}}]
    write(folder / "measured.json", asked(evaluations=rows))
    one, two = (call("plan", "measured.json", "--now", "2026-01-01", "--json").stdout for _ in range(2))
    assert one == two
    assert json.loads(one)["chi_estimation"]["notes"].startswith("differences by probe: forward")
    given = asked(response={"chi": [[0.2, 0, -0.2], [0, 0, 0]], "base": {"x": 0.5, "y": 0.5}})
    write(folder / "given.json", given)
    assert json.loads(call("plan", "given.json", "--json").stdout)["chi_estimation"]["method"] == "grad_proxy"


@pytest.mark.parametrize(
    ("args", "code", "error", "said"),
    [
        (("plan", "asked.json"), 2, "invalid_input", "evaluations"),
        (("plan", "none.json"), 2, "invalid_input", "none.json"),
        (("plan", "asked.json", "--call", "pattern_functions"), 2, "invalid_input", "names no function"),
        (("plan", "asked.json", "--call", "pattern_functions:none"), 2, "invalid_input", "no function none"),
        (("plan", "asked.json", "--call", "pattern_broken:go"), 2, "invalid_input", "ZeroDivisionError"),
        (("plan", "asked.json", "--call", "pattern_nowhere:go"), 2, "invalid_input", "pattern_nowhere"),
        (("plan", "asked.json", "--call", "pattern_functions:crash"), 1, "evaluation_failed", "no such file"),
        (("plan", "asked.json", "--call", "pattern_functions:good", "--epsilon", "2"), 1, "invalid_record", "Policy"),
        (("plan", "singular.json"), 1, "ill_conditioned", "moves x"),
        (("try", "asked.json"), 2, "invalid_input", "nothing to try"),
        (("try", "asked.json", "--replay", "pattern_functions:good"), 1, "invalid_record", "PatterningPlan"),
        (("plan", "asked.json", "--call", "pattern_functions:good", "--out", "no/p.json"), 2, "invalid_input", "no/p"),
        (("plan", "measured.json", "--call", "pattern_functions:good"), 2, "invalid_input", "already"),
    ],
)  # fmt: skip
def test_errors_have_the_one_shape(folder: Path, args: tuple[str, ...], code: int, error: str, said: str) -> None:
    given = {"chi": [[0, 0, 0], [0, 1, 0]], "base": {"x": 0.5, "y": 0.5}}
    write(folder / "singular.json", asked(response=given))
    write(folder / "measured.json", asked(response=given))
    problem = json.loads(call(*args, "--json", code=code).stderr)
    assert problem["code"] == error
    assert said in problem["message"]
    assert problem["hint"]


def test_a_singular_response_can_be_planned_and_never_applied(folder: Path) -> None:
    given = {"chi": [[0, 0, 0], [0, 1, 0]], "base": {"x": 0.5, "y": 0.5}}
    write(folder / "singular.json", asked(response=given))
    shown = call("plan", "singular.json", "--ill-conditioned", "plan", "--out", "plan.json").stdout
    assert "refused: nothing that was tried moves x" in shown
    problem = json.loads(call("try", "plan.json", "--replay", "pattern_functions:good", "--json", code=1).stderr)
    assert problem["code"] == "wrong_stage"
