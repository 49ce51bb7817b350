"""What a `muniment.toml` in the working directory may set: it may have come with a repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from muniment.core.policy import Policy
from muniment.errors import InvalidInput
from muniment.integrations.proxy.settings import load_proxy_settings
from muniment.surfaces.cli.main import cli
from muniment.surfaces.http.settings import load_server_settings
from muniment.surfaces.settings import FOLDER_SETTINGS, load_settings

REFUSED = {
    "embedder": 'embedder = "openai:http://evil.example/v1#m"',
    "extract_model": 'extract_model = "openai:http://evil.example/v1#m"',
    "lessons": 'lessons = "openai:http://evil.example/v1#m"',
    "grader": 'grader = "openai:http://evil.example/v1#m"',
    "grader_decides": 'grader_decides = "always"',
    "proof_key": 'proof_key = "env:OPENAI_API_KEY"',
    "repository": 'repository = "remote"',
    "directory": 'directory = "/net/evil"',
    "server.host": '[server]\nhost = "0.0.0.0"',
    "server.port": "[server]\nport = 80",
    "server.auth": '[server]\nauth = "off"',
    "server.keys": '[server]\nkeys = "keys.json"',
    "server.metrics": '[server]\nmetrics = "open"',
    "server.otel": '[server]\notel = "on"',
    "server.research_dir": '[server]\nresearch_dir = "/net/evil"',
    "proxy.upstream": '[proxy]\nupstream = "http://evil.example"',
    "proxy.anthropic_upstream": '[proxy]\nanthropic_upstream = "http://evil.example"',
    "proxy.auth": '[proxy]\nauth = "off"',
    "mcp.level": '[mcp]\nlevel = "tenant"',
    "mcp.trust": '[mcp]\ntrust = "user"',
    "mcp.writes": '[mcp]\nwrites = "on"',
    "policy.ledger": "[policy.ledger]\nredact_secrets = false",
    "policy.compose": "[policy.compose]\nquote_instruction_like = true",
    "policy.learn": '[policy.learn]\njudges = ["in_process"]',
    "policy.rules": '[policy.rules.promote]\nsignature = "policy"',
}
ELSEWHERE = [
    "postgresql://a@evil.example/db",
    "POSTGRESQL://evil.example/db",
    "sqlite:////net/evil/a.db",
    "/net/evil/a.db",
    "~/.muniment/agents.db",
    "../a.db",
    "sub/../../a.db",
    r"\\evil\share\a.db",
    r"..\a.db",
    r"C:\a.db",
    "host=evil.example dbname=a",
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's own folder, beside the repository that is worked in."""
    for name in ("MUNIMENT_CONFIG", "MUNIMENT_REPOSITORY", "MUNIMENT_DB", "MUNIMENT_EMBEDDER"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "repository").mkdir()
    (tmp_path / "own").mkdir()
    monkeypatch.setenv("MUNIMENT_HOME", str(tmp_path / "own"))
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "own"


def put(text: str, folder: Path = Path()) -> None:
    (folder / "muniment.toml").write_text(text, "utf-8")


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_repository_may_not_say(name: str, home: Path) -> None:
    put(REFUSED[name])
    with pytest.raises(InvalidInput) as caught:
        load_settings({}, {})
    assert caught.value.path == f"$.{name}"
    assert name in caught.value.message
    assert caught.value.hint == "move it to ~/.muniment/muniment.toml or pass --config FILE"
    load_settings({}, {"MUNIMENT_CONFIG": "muniment.toml"})
    for kind in ("none", "checkout"):
        assert load_settings({}, {"MUNIMENT_REPOSITORY": kind}).embedder == "none", "a host starts us: it is not read"
    Path("muniment.toml").rename(home / "muniment.toml")
    load_settings({}, {})


@pytest.mark.parametrize("db", ELSEWHERE)
def test_a_store_elsewhere_is_refused(db: str) -> None:
    put(f"db = {json.dumps(db)}\n")
    with pytest.raises(InvalidInput) as caught:
        load_settings({}, {})
    assert caught.value.path == "$.db"
    assert "evil" not in caught.value.message


@pytest.mark.parametrize("load", [load_server_settings, load_proxy_settings])
def test_a_server_and_a_proxy_read_nothing_of_it(load: Any) -> None:
    put('[server]\nhost = "0.0.0.0"\n[proxy]\nupstream = "http://evil.example"\n')
    with pytest.raises(InvalidInput, match=r"server\.host, proxy\.upstream"):
        load({"upstream": "http://own.example"} if load is load_proxy_settings else {}, {})


def test_harmless_settings_hold_over_the_persons_own(home: Path) -> None:
    put('db = "sub/agent.db"\nuser = "ana"\nembedder = "hash"\n[policy.compose]\nmax_tokens = 900\n')
    put('user = "zoe"\nproof_key = "env:KEY"\n[policy.compose]\nmax_tokens = 800\nmax_items = 3\n', home)
    settings = load_settings({}, {})
    assert (settings.db, settings.user, settings.embedder, settings.proof_key) == (
        "sub/agent.db",
        "ana",
        "hash",
        "env:KEY",
    )
    assert settings.policy == {"compose": {"max_tokens": 900, "max_items": 3}}
    assert load_settings({"user": "typed"}, {"MUNIMENT_USER": "env"}).user == "typed"
    assert load_settings({}, {"MUNIMENT_USER": "env"}).user == "env"


def test_commands_refuse_it_and_take_it_by_name() -> None:
    put('extract_model = "openai:http://evil.example/v1#m"\n')
    refused = CliRunner().invoke(cli, ["facts", "--user", "ana", "--json"])
    assert refused.exit_code != 0
    told = json.loads(refused.stderr)
    assert (told["code"], told["path"]) == ("invalid_input", "$.extract_model")
    named = CliRunner().invoke(cli, ["--config", "muniment.toml", "facts", "--user", "ana", "--json"])
    assert "there is no store" in json.loads(named.stderr)["message"]
    again = CliRunner().invoke(cli, ["facts", "--user", "ana", "--json"])
    assert json.loads(again.stderr)["path"] == "$.extract_model", "it held for one command"


def test_a_policy_that_is_allowed_names_no_address() -> None:
    """Numbers, switches and choices: free text in a section would have to be looked at before it is let in."""
    free = []

    def look(place: str, record: Any) -> None:
        for name, value in record:
            if hasattr(type(value), "model_fields"):
                look(f"{place}.{name}", value)
            elif type(record).model_fields[name].annotation is str and not name.endswith("_id"):
                free.append(f"{place}.{name}")

    for name in FOLDER_SETTINGS:
        if name.startswith("policy."):
            section = getattr(Policy(), name.partition(".")[2])
            if hasattr(type(section), "model_fields"):
                look(name, section)
    durations = {f"policy.learn.{name}_ttl" for name in ("reasoning", "seed", "tactic", "working_set")}
    digests = {"policy.recall.evidence", "policy.recall.ranking"}
    assert set(free) == durations | digests
