"""`muniment doctor`: it knows what the settings ask for, advises that alone, and says where things lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cli_room import Commands, in_folder

import muniment
from muniment.core.outside.system import EXTRAS
from muniment.surfaces.inspector import pages
from muniment.testing.postgres import PostgresProcess, fresh_schema
from without_packages import called_without

call = Commands().call


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return in_folder(tmp_path, monkeypatch)


def doctor(folder: Path, *modules: str, **env: str) -> tuple[dict[str, Any], str, int]:
    """What is answered as JSON and as text, where these modules are not installed."""
    said, shown = called_without(modules, [["doctor", "--json"], ["doctor"]], folder, env=env)
    assert (said.raised, shown.raised, said.code) == (None, None, shown.code)
    return json.loads(said.stdout), shown.stdout, said.code


def test_with_no_settings_nothing_is_advised(folder: Path) -> None:
    every = [module for extra in EXTRAS.values() for module in extra.modules]
    found, shown, code = doctor(folder, *every)
    assert (found["problems"], code) == ([], 0)
    assert "pip install" not in shown.replace('or pip install "muniment[sandbox]"', "")
    assert "Everything that the settings ask for is here." in shown
    assert "extras: none; the core needs none" in shown
    assert "not installed: server (`muniment serve` and its inspector), client" in shown
    assert {extra["state"] for extra in found["extras"].values()} == {"missing"}


@pytest.mark.soak
def test_what_is_there_is_not_advised(folder: Path) -> None:
    found, shown, code = doctor(folder, MUNIMENT_EMBEDDER="hash", MUNIMENT_TOKENS="splintr", MUNIMENT_OTEL="on")
    assert (found["problems"], code) == ([], 0)
    assert "pip install" not in shown.replace('or pip install "muniment[sandbox]"', "")
    assert "not installed" not in shown
    assert found["embedder"]["identity"].startswith("hash")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("module", "env", "asked_by", "extra"),
    [
        ("psycopg", {"MUNIMENT_DB": "postgresql://ana:secret@127.0.0.1:1/x"}, "db", "postgres"),
        ("onnxruntime", {"MUNIMENT_EMBEDDER": "e5-small"}, "embedder", "embed"),
        ("splintr", {"MUNIMENT_TOKENS": "splintr"}, "tokens", "tokens"),
        ("opentelemetry", {"MUNIMENT_OTEL": "on"}, "otel", "otel"),
    ],
)
def test_what_is_asked_for_and_missing_is_advised_once(
    folder: Path, module: str, env: dict[str, str], asked_by: str, extra: str
) -> None:
    found, shown, code = doctor(folder, module, **env)
    (problem,) = found["problems"]
    assert (problem["asked_by"], problem["code"], code) == (asked_by, "missing_dependency", 1)
    assert problem["hint"].startswith(f'pip install "muniment[{extra}]"')
    assert shown.count("pip install") == 1 + shown.count('or pip install "muniment[sandbox]"')
    assert "secret" not in shown + json.dumps(found)


@pytest.mark.soak
@pytest.mark.parametrize(("table", "module"), [("server", "starlette"), ("mcp", "mcp"), ("proxy", "httpx2")])
def test_a_table_of_the_settings_asks_for_its_part(folder: Path, table: str, module: str) -> None:
    (folder / "muniment.toml").write_text(f"[{table}]\n")
    found, shown, code = doctor(folder, module)
    (problem,) = found["problems"]
    assert (problem["asked_by"], code) == (f"[{table}]", 1)
    assert f'pip install "muniment[{table}]"' in shown
    assert doctor(folder)[2] == 0


@pytest.mark.soak
def test_a_coding_agent_with_our_server_asks_for_mcp(folder: Path) -> None:
    done = call("install", "codex", "--user", "ana", "--json")
    assert "note" not in json.loads(done.stdout) or "MCP" not in json.loads(done.stdout)["note"]
    assert doctor(folder, "mcp")[0]["problems"][0]["hint"] == 'pip install "muniment[mcp]"'
    call("uninstall", "codex")
    assert doctor(folder, "mcp")[0]["problems"] == []
    (said,) = called_without(["mcp"], [["install", "codex", "--user", "ana", "--json"]], folder)
    assert 'pip install "muniment[mcp]"' in json.loads(said.stdout)["note"]


def test_a_wrong_setting_is_said_beside_a_store_that_is_well(folder: Path) -> None:
    with muniment.open(folder / "muniment.db") as mem:
        mem.run(user_id="ana").observe("user", "I moved to Berlin in May.")
    found, shown, code = doctor(folder, MUNIMENT_EMBEDDER="nobody", MUNIMENT_PORT="many")
    assert [each["asked_by"] for each in found["problems"]] == ["embedder", "[server]"]
    assert (found["store"]["state"], code) == ("ok", 1)
    assert "no embedder is called 'nobody'" in shown


def test_it_says_where_things_lie(folder: Path) -> None:
    (folder / "muniment.toml").write_text('db = "kept.db"\n')
    found = json.loads(call("doctor", "--json").stdout)
    assert found["paths"]["package"] == str(Path(muniment.__file__).parent)
    assert found["paths"]["config"] == str((folder / "muniment.toml").resolve())
    assert found["muniment"] == muniment.__version__
    assert (found["settings"]["db"], found["store"]["state"]) == ("kept.db", "none")
    (folder / "muniment.toml").unlink()
    assert "settings: no muniment.toml here" in call("doctor").stdout


@pytest.mark.soak
def test_without_the_inspector_a_pip_user_is_told_what_a_pip_user_can_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "is_built", lambda: False)
    assert "make inspector" in call("doctor").stdout, "in a clone"
    monkeypatch.setattr(pages, "_CLONE", folder / "inspector" / "package.json")
    told = json.loads(call("doctor", "--json").stdout)["inspector"]
    assert "install the wheel of a release" in told["hint"]
    assert "make inspector" not in told["hint"]
    assert told["hint"] in call("doctor").stdout


@pytest.mark.soak
def test_it_says_how_the_replica_is(folder: Path, pair: tuple[PostgresProcess, PostgresProcess]) -> None:
    primary, replica = pair
    with fresh_schema(primary.dsn) as schema:
        store = f"{primary.dsn}?schema={schema}"
        muniment.open(store).close()
        for _ in range(20):  # on a busy machine it may be a moment behind
            found, shown, code = doctor(folder, MUNIMENT_DB=f"{store}&replica={replica.address}")
            if found["store"]["replica"] != "behind":
                break
        assert (found["store"]["replica"], found["problems"], code) == ("follows", [], 0)
        assert "the replica answers reads" in shown
        gone = quote("postgresql://ana:s3cret@127.0.0.1:1/postgres", safe="")
        found, shown, code = doctor(folder, MUNIMENT_DB=f"{store}&replica={gone}")
        assert (found["store"]["replica"], code) == ("away", 1)
        assert [each["asked_by"] for each in found["problems"]] == ["replica= in db"]
        assert "the replica cannot be reached" in shown
        assert "s3cret" not in shown + json.dumps(found)
        found, _, _ = doctor(folder, MUNIMENT_DB=store)
        assert "replica" not in found["store"]
