"""Installations: what is written, that nothing else is touched, and that taking it out leaves what was there."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.effort import examples
from tests.unit.surfaces.hosts.test_config_text import documents, tables

from muniment.errors import InvalidInput
from muniment.surfaces.hosts import json_text
from muniment.surfaces.hosts.config_files import Notes
from muniment.surfaces.hosts.hosts import HOSTS, Setup
from muniment.surfaces.hosts.installing import (
    find_host,
    install,
    list_installed,
    plan_install,
    plan_uninstall,
    uninstall,
)

PLACES = [(host, scope) for host in HOSTS.values() for scope in host.scopes]


def setup(home: Path, scope: Any = "user", **more: Any) -> Setup:
    given = {"db": "/data/agents.db", "user": "ana"} | more
    return Setup(scope, home / "project", home, {}, **given)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put_in(name: str, asked: Setup, notes: Notes) -> None:
    install(plan_install(find_host(name, asked.scope), asked, notes), notes)


def take_out(name: str, asked: Setup, notes: Notes) -> None:
    uninstall(plan_uninstall(find_host(name, asked.scope), asked, notes), notes)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.mark.parametrize(("host", "scope"), PLACES, ids=lambda each: getattr(each, "name", each))
def test_into_nothing_and_out_again_leaves_nothing(tmp_path: Path, notes: Notes, host: Any, scope: Any) -> None:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    asked = setup(home, scope)
    put_in(host.name, asked, notes)
    assert snapshot(home)
    for edit in host.edits(asked):
        text = edit.path.read_text()
        whole = tomllib.loads(text) if edit.path.suffix == ".toml" else json.loads(text)
        for path in filter(None, (edit.server_at,)):
            for name in path:
                whole = whole[name]
            assert whole == edit.server
    before = snapshot(home)
    put_in(host.name, asked, notes)
    assert snapshot(home) == before, "a second time changes nothing"
    take_out(host.name, asked, notes)
    assert [path for path in home.rglob("*") if path != home / "project"] == []


@pytest.mark.soak
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents(), tables())
def test_what_was_there_is_there_again_byte_for_byte(tmp_path: Path, text: str, table: str) -> None:
    """Whatever was in the files, of whatever form; also where the host's own file is installed into twice."""
    home = tmp_path / f"home{len(list(tmp_path.iterdir()))}"
    notes = Notes(home / "notes")
    for host in HOSTS.values():
        for edit in host.edits(setup(home / "h")):
            edit.path.parent.mkdir(parents=True, exist_ok=True)
            edit.path.write_bytes((table if edit.path.suffix == ".toml" else text).encode())
    before = snapshot(home / "h")
    for host in HOSTS.values():
        put_in(host.name, setup(home / "h"), notes)
        put_in(host.name, setup(home / "h", db="/elsewhere.db", branches="same"), notes)
    assert list_installed(setup(home / "h"))[0]["user"]["state"] == "installed"
    for host in HOSTS.values():
        take_out(host.name, setup(home / "h"), notes)
    assert snapshot(home / "h") == before
    assert snapshot(home / "notes") == {}


@pytest.mark.soak
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents())
def test_what_came_in_meanwhile_stays(tmp_path: Path, text: str) -> None:
    home = tmp_path / f"home{len(list(tmp_path.iterdir()))}"
    notes = Notes(home / "notes")
    path = home / ".claude" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    put_in("claude-code", setup(home), notes)
    path.write_bytes(json_text.with_member(path.read_bytes().decode(), ("added", "later"), [1]).encode())
    put_in("claude-code", setup(home, user="ben"), notes)
    assert path.read_text().count("--user ana") == 0
    take_out("claude-code", setup(home), notes)
    was = json_text.parse(text).value
    assert json_text.parse(path.read_bytes().decode()).value == {**was, "added": {"later": [1]}}


def test_without_the_notes_our_entries_alone_are_taken_out(tmp_path: Path, notes: Notes) -> None:
    home = tmp_path / "home"
    for name in ("claude-code", "codex", "cursor"):
        put_in(name, setup(home), notes)
    hooks = home / ".claude" / "settings.json"
    held = json.loads(hooks.read_text())
    held["hooks"]["Stop"].insert(0, {"hooks": [{"type": "command", "command": "say done"}]})
    hooks.write_text(json.dumps(held, indent=2))
    config = home / ".codex" / "config.toml"
    config.write_text(f'model = "x"\n\n{config.read_text()}\n[tui]\nnotifications = true\n')
    fresh = Notes(tmp_path / "no-notes")
    for name in ("claude-code", "codex", "cursor"):
        take_out(name, setup(home), fresh)
    assert json.loads(hooks.read_text())["hooks"]["Stop"] == [{"hooks": [{"type": "command", "command": "say done"}]}]
    assert "muniment" not in "".join(path.read_text() for path in home.rglob("*") if path.is_file())
    assert tomllib.loads(config.read_text()) == {"model": "x", "tui": {"notifications": True}}


BROKEN = {
    ".claude/settings.json": ["{", "[]", '"x"', '{"hooks": []}', '{"hooks": {"Stop": {}}}', "\x00", "{'a': 1}"],
    ".claude.json": ["{ nonsense", '{"mcpServers": 3}', '{"mcpServers": {"muniment": {"command": "other"}}}'],
    ".codex/config.toml": ["a = ", "mcp_servers = {}", "[mcp_servers.muniment]\ncommand = 'x'"],
    ".codex/hooks.json": ['{"hooks": 1}'],
    ".cursor/mcp.json": ["{]"],
}


@pytest.mark.parametrize(("place", "text"), [(place, text) for place, texts in BROKEN.items() for text in texts])
def test_broken_and_foreign_files_are_refused_and_nothing_is_touched(
    tmp_path: Path, notes: Notes, place: str, text: str
) -> None:
    home = tmp_path / "home"
    path = home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    host = "codex" if "codex" in place else "cursor" if "cursor" in place else "claude-code"
    before = snapshot(tmp_path)
    with pytest.raises(InvalidInput, match=path.name):
        put_in(host, setup(home), notes)
    assert snapshot(tmp_path) == before


def test_bytes_that_are_no_text_and_things_that_are_no_file_are_refused(tmp_path: Path, notes: Notes) -> None:
    path = tmp_path / ".claude.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InvalidInput, match="UTF-8"):
        put_in("claude-code", setup(tmp_path), notes)
    path.unlink()
    path.mkdir()
    with pytest.raises(InvalidInput, match="no configuration file"):
        put_in("claude-code", setup(tmp_path), notes)


def test_modes_and_links_stay(tmp_path: Path, notes: Notes) -> None:
    real = tmp_path / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text('{"model": "opus"}\n')
    real.chmod(0o640)
    link = tmp_path / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    put_in("claude-code", setup(tmp_path), notes)
    assert link.is_symlink()
    assert "SessionStart" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / ".claude.json").stat().st_mode) == 0o600
    take_out("claude-code", setup(tmp_path), notes)
    assert link.is_symlink()
    assert real.read_text() == '{"model": "opus"}\n'
    assert sorted(os.listdir(real.parent)) == ["settings.json"]


def test_a_file_that_changes_between_plan_and_deed_is_left_alone(tmp_path: Path, notes: Notes) -> None:
    changes = plan_install(HOSTS["claude-code"], setup(tmp_path), notes)
    (tmp_path / ".claude.json").write_text('{"new": 1}')
    with pytest.raises(InvalidInput, match="meanwhile"):
        install(changes[1:], notes)
    assert (tmp_path / ".claude.json").read_text() == '{"new": 1}'


def test_shared_files_name_no_path_of_this_machine(tmp_path: Path, notes: Notes) -> None:
    (tmp_path / "project").mkdir()
    for host, scope in PLACES:
        if scope == "project":
            put_in(host.name, setup(tmp_path, "project", db=None, user=None), notes)
    written = "".join(path.read_text() for path in (tmp_path / "project").rglob("*") if path.is_file())
    assert "muniment hook" in written
    assert str(tmp_path) not in written
    assert os.path.dirname(os.sys.executable) not in written  # type: ignore[attr-defined]
