"""What is kept sealed, over HTTP and on the command line: for an administrator, not for agents (LG-10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from http_support import ANA, TENANT, Serve, bearer

import muniment
from muniment.surfaces.cli.main import cli
from muniment.surfaces.http.keys import KeyFile
from muniment.surfaces.mcp.tools import TOOLS

KEY, PASSWORD = "5e" * 32, "tru" + "stno1-zq"
SEAL = {"ledger": {"redact": "seal"}}

pytestmark = pytest.mark.req("LG-10")


def test_an_administrator_of_the_owner_alone_unseals(serve: Serve, keys: KeyFile, caplog: Any) -> None:
    with muniment.open(policy=SEAL, seal_key=lambda: KEY) as mem:
        event = mem.run(user_id="ana", session_id="s", run_id="r").observe("user", f"password={PASSWORD}").id
        client = serve(mem, auth="on")
        path = f"{ANA}/events/{event}/unseal"
        tokens = {
            (user, access): keys.create("seals", tenant="default", user=user, access=access).token
            for user in ("ana", "bob", None)
            for access in ("read", "write", "admin")
        }
        for (user, access), token in tokens.items():
            answer = client.post(path, headers=bearer(token), json={})
            if access == "admin" and user != "bob":
                assert answer.status_code == 200, answer.text
                assert answer.json()["values"][0]["value"] == PASSWORD
            else:
                assert answer.status_code == 403
                assert PASSWORD not in answer.text
        admin = bearer(tokens[None, "admin"])
        assert client.post(f"{TENANT}/users/bob/events/{event}/unseal", headers=admin, json={}).status_code == 404
        assert client.post(f"{TENANT}/reseal", headers=admin, json={}).json()["kept"] == 1
        for address in (f"{ANA}/events", f"{TENANT}/events/{event}", f"{ANA}/export", f"{ANA}/events/{event}/content"):
            answer = client.get(address, headers=admin)
            assert answer.status_code == 200
            assert PASSWORD not in answer.text
        assert PASSWORD not in caplog.text
        assert KEY not in caplog.text
    assert not any("seal" in str((name, tool)) for name, tool in TOOLS.items())


def test_the_command_line_unseals_and_reseals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUNIMENT_CONFIG", "muniment.toml")
    (tmp_path / "muniment.toml").write_text('seal_key = "file:seal.key"\n[policy.ledger]\nredact = "seal"\n', "ascii")
    (tmp_path / "seal.key").write_text(KEY, "ascii")
    (tmp_path / "said.jsonl").write_text(json.dumps({"role": "user", "content": f"password={PASSWORD}"}), "utf-8")

    def call(*words: str) -> Any:
        return CliRunner().invoke(cli, list(words))

    done = call("ingest", "said.jsonl", "--user", "ana", "--json")
    assert done.exit_code == 0, done.output
    with muniment.open("muniment.db") as mem:
        (event,) = [entry.id for entry in mem.ledger.entries(user_id="ana") if entry.kind == "message"]
    assert PASSWORD in call("memory", "unseal", event, "--user", "ana").output
    assert (
        json.loads(call("memory", "unseal", event, "--user", "ana", "--json").output)["values"][0]["kind"] == "password"
    )
    (tmp_path / "seal.key").write_text(f"{'a7' * 32}\n{KEY}\n", "ascii")
    assert "1 seal brought to the key" in call("store", "reseal").output
    (tmp_path / "seal.key").write_text(KEY, "ascii")
    assert call("store", "reseal").exit_code == 1
    refused = call("memory", "unseal", event, "--user", "ana", "--json")
    assert refused.exit_code == 1
    assert json.loads(refused.stderr)["code"] == "no_seal_key"
    assert KEY not in refused.output
