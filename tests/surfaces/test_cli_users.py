"""`muniment store users`: who is in a tenant, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import muniment
from muniment.surfaces.cli.main import cli


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MUNIMENT_DB", raising=False)
    monkeypatch.delenv("MUNIMENT_TENANT", raising=False)


def call(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, ["store", "users", *args])
    assert result.exit_code == code, result.output
    return result.output


def test_users_are_listed_by_tenant() -> None:
    with muniment.open("muniment.db") as mem:
        for user_id, tenant_id in (("zoe", "default"), ("ana", "default"), ("rival", "acme")):
            mem.run(user_id=user_id, tenant_id=tenant_id).observe("user", "x")
        mem.run(user_id="ana").observe("user", "y")
        known = [user.to_wire() for user in mem.store.users()]
    assert [line.rsplit(",", 1)[0] for line in call().splitlines()] == [
        "ana  2 sessions, 2 runs, 4 events",
        "zoe  1 session, 1 run, 2 events",
    ]
    assert json.loads(call("--json")) == {"users": known}
    assert call("--tenant", "acme").startswith("rival  1 session")
    assert "no users of nobody" in call("--tenant", "nobody")


def test_no_store_is_made_by_asking(tmp_path: Path) -> None:
    assert "no store" in call("--db", "missing.db", code=2)
    assert not (tmp_path / "missing.db").exists()
