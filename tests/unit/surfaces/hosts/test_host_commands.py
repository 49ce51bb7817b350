"""`install`, `uninstall`, `doctor` and the settings that give a command a repository's memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from muniment.errors import InvalidInput
from muniment.surfaces.cli.main import cli
from muniment.surfaces.settings import load_settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh home directory, and a repository to stand in."""
    for name in ("MUNIMENT_HOME", "MUNIMENT_REPOSITORY", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    repository = tmp_path / "garden"
    (repository / ".git").mkdir(parents=True)
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.chdir(repository)
    return tmp_path


def run(*words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(cli, [*words, "--json"], prog_name="muniment")
    assert done.exit_code == code, (done.output, done.stderr)
    return json.loads(done.stderr if code else done.output)


def test_a_dry_run_tells_and_does_nothing(home: Path) -> None:
    told = run("install", "claude-code", "--dry-run", "--user", "ana")
    assert told["dry_run"] is True
    assert [file["does"] for file in told["files"]] == ["created", "created"]
    assert any('"SessionStart"' in line for line in told["files"][0]["diff"])
    assert sorted(path.name for path in home.iterdir()) == ["garden"]


@pytest.mark.soak
def test_what_is_installed_is_listed_and_told_by_the_doctor(home: Path) -> None:
    run("install", "codex", "--user", "ana")
    run("install", "cursor", "--scope", "project")
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text("{")
    listed = {each["host"]: each for each in run("install", "--list")["hosts"]}
    assert listed["codex"]["user"]["state"] == "installed"
    assert listed["cursor"]["project"]["state"] == "installed"
    assert listed["cursor"]["user"]["state"] == "none"
    assert listed["gemini-cli"]["user"]["state"] == "unreadable"
    assert run("doctor")["hosts"] == [
        {"host": "codex", "user": "installed"},
        {"host": "cursor", "project": "installed"},
        {"host": "gemini-cli", "user": "unreadable"},
    ]
    shown = CliRunner().invoke(cli, ["doctor"], prog_name="muniment").output
    assert "in codex: user: installed" in shown
    run("uninstall", "codex")
    run("uninstall", "cursor", "--scope", "project")
    assert not (home / ".codex").exists()
    assert not (home / "garden" / ".cursor").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("install",),
        ("uninstall",),
        ("install", "windsurf", "--scope", "project"),
        ("install", "claude-code", "--scope", "project", "--db", "postgresql://ana:secret@host/db"),
    ],
)
def test_what_cannot_be_done_is_said(home: Path, words: tuple[str, ...]) -> None:
    told = run(*words, code=2)
    assert told["hint"]
    assert sorted(path.name for path in home.iterdir()) == ["garden"]


# -- settings -----------------------------------------------------------------------------------------


def settled(**environ: str) -> Any:
    return load_settings({}, environ)


def test_a_command_has_the_memory_of_its_repository(home: Path) -> None:
    here = settled(MUNIMENT_REPOSITORY="checkout")
    assert here.tenant.startswith("default.garden-")
    assert here.user, "who runs it"
    assert settled(MUNIMENT_REPOSITORY="checkout").tenant == here.tenant
    assert settled().tenant == "default"
    assert load_settings({"tenant": "acme"}, {"MUNIMENT_REPOSITORY": "checkout"}).tenant == "acme"
    (home / "other").mkdir()
    there = settled(MUNIMENT_REPOSITORY="checkout", CLAUDE_PROJECT_DIR=str(home / "other"))
    assert there.tenant.startswith("default.other-")
    assert settled(MUNIMENT_REPOSITORY="checkout", MUNIMENT_DB="~/x.db").db == str(home / "x.db")


def test_a_server_that_is_started_at_home_does_not_guess_which_project(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    with pytest.raises(InvalidInput, match="which project"):
        settled(MUNIMENT_REPOSITORY="checkout")
    assert settled(MUNIMENT_REPOSITORY="checkout", MUNIMENT_DIRECTORY=str(home)).tenant != "default"


def test_a_repositorys_own_settings_are_not_read_where_a_host_starts_it(home: Path) -> None:
    (home / "garden" / "muniment.toml").write_text('embedder = "openai:https://elsewhere.example/v1#m"\n')
    with pytest.raises(InvalidInput, match="may not set embedder"):
        settled()
    for kind in ("none", "checkout"):
        assert settled(MUNIMENT_REPOSITORY=kind).embedder == "none"
    (home / ".muniment").mkdir()
    (home / ".muniment" / "muniment.toml").write_text('embedder = "hash"\n')
    for kind in ("none", "checkout"):
        assert settled(MUNIMENT_REPOSITORY=kind).embedder == "hash"
