"""`muniment learn flowmap`, by hand: tables, a document, a picture, and bad input."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cli_room import Commands, in_folder

import muniment
from muniment.contracts.schemas import validate
from products import for_each

EASY, HARD = "I1|math|clarity_high", "I3|code|clarity_low"
ANA = ("--user", "ana")


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("taught") / "muniment.db"
    with muniment.open(path) as mem:
        for number in range(24):
            run = mem.run(user_id="ana", agent_id="solver", task_type="countdown")
            run.observe("user", f"Reach {number}.")
            run.observe("assistant", "done")
            result: dict[str, Any] = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
            if number % 3 == 0:
                result = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["format_leak"]}
            state = {"mode": "main", "budget_tier": ("hot", "probe")[number % 2]}
            run.finish(verifier_result=result, state=state, bucket_key=(EASY, HARD)[number % 4 == 0])
    return path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taught: Path) -> Path:
    in_folder(tmp_path, monkeypatch)
    monkeypatch.setenv("COLUMNS", "160")
    shutil.copy(taught, "muniment.db")
    return tmp_path


COMMANDS = Commands("learn", "flowmap")
call, document, failure = COMMANDS.call, COMMANDS.document, COMMANDS.failure


@pytest.mark.req("RC-23")
def test_a_table_of_hotspots_and_of_interventions(store: Path) -> None:
    result = call(*ANA)
    assert result.exit_code == 0, result.output
    assert "all buckets" in result.stdout
    assert "by aggregate_v1" in result.stdout
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["main→verify", "33.3%", "18.0%", "to", "53.3%", "8", "of", "24", "(all)"] in lines
    assert any(line[:1] == ["tier:probe"] for line in lines)
    assert "24 logs, 24 judged" in result.stdout


@pytest.mark.req("RC-23")
@pytest.mark.parametrize("estimator", ["aggregate_v1", "logit_field_v1"])
def test_json_is_the_contracts_record(store: Path, estimator: str) -> None:
    found = document(*ANA, "--estimator", estimator)
    assert validate("FlowMapSnapshot", found) == []
    assert found["estimator"]["kind"] == estimator
    assert found["bucket_key"] == "*"
    assert document(*ANA, "--bucket", HARD)["bucket_key"] == HARD


@pytest.mark.req("RC-23")
def test_a_picture_is_written(store: Path) -> None:
    result = call(*ANA, "--svg", "map.svg")
    assert result.exit_code == 0, result.output
    assert "drawn to map.svg" in result.stdout
    assert ElementTree.parse("map.svg").getroot().tag.endswith("svg")


@pytest.mark.req("RC-23")
@for_each(
    ("asked", "code", "exit_code"),
    [
        ((*ANA, "--since", "2999-01-01"), "not_found", 1),
        ((*ANA, "--since", "2026-02-01", "--until", "2026-01-01"), "invalid_input", 2),
        ((*ANA, "--since", "noon"), "invalid_input", 2),
        ((*ANA, "--bucket", "nonsense"), "invalid_input", 2),
        ((*ANA, "--bucket", "I2|law|clarity_med"), "not_found", 1),
        (("--user", "nobody"), "not_found", 1),
        ((*ANA, "--agent", "solver"), "invalid_input", 2),
        ((*ANA, "--svg", "no/such/folder/map.svg"), "invalid_input", 2),
    ],
)
def test_bad_input_is_refused_by_name(store: Path, asked: tuple[str, ...], code: str, exit_code: int) -> None:
    assert failure(*asked, code=exit_code)["code"] == code


def test_no_store_is_made_by_asking(store: Path) -> None:
    Path("muniment.db").unlink()
    failure(*ANA, code=2)
    assert not Path("muniment.db").exists()
