"""A coding agent from a fresh home directory: installed, run through its hooks in two repositories, asked over MCP."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.integrations.coding_room import Host, git

import muniment

TRANSPORT = """import time

import httpx


def send(request):
    return httpx.post(request.url, content=request.body, timeout=5)
"""


def first_session(host: Host, harbour: Path) -> None:
    """A retry is added to an uploader, with a wrong turn, a rule of the user's and a decision."""
    assert host.begin(harbour, "s1") == "", "a memory that holds nothing tells nothing"
    assert host.prompt("Uploads fail now and then with a 503. Add a retry. We still support Python 3.9 here.") == ""
    host.say("I'll look at how uploads are sent.")
    host.bash("rg -n 'def upload|httpx' src", "src/uploader.py:12:def upload(path):\nsrc/transport.py:3:import httpx")
    host.read(f"{harbour}/src/transport.py", TRANSPORT)
    host.say("The request goes through transport.send, so the retry could stand in uploader.py or in transport.py.")
    host.edit(f"{harbour}/src/uploader.py", "    return send(request)", "    return retried(send, request)")
    host.bash("pytest -q tests/test_uploader.py", "2 failed, 5 passed\nFAILED test_timeout - clock", ok=False)
    host.say("I added the retry in uploader.py; test_timeout fails because the fake clock is never advanced.")
    host.prompt("Retries belong in transport.py, not in the uploader: every caller needs them. Move it there.")
    host.edit(f"{harbour}/src/transport.py", "def send(request):", "def send(request, tries=3, pause_s=0.5):")
    host.edit(f"{harbour}/src/uploader.py", "    return retried(send, request)", "    return send(request)")
    host.bash("pytest -q", "41 passed in 3.20s")
    host.say("The retry is in transport.send now: three tries, 0.5 s pause, doubled each time. All 41 tests pass.")
    host.prompt("Good. Never run the deploy script yourself, I do that from the office on Fridays.")
    host.say("Understood: I will not run the deploy script.")
    host.stop()
    host.end()


def second_session(host: Host, harbour: Path) -> tuple[str, str, str, str]:
    """Another day in the same repository, with a compaction in the middle."""
    started = host.begin(harbour, "s2")
    other = host.prompt("What is a monad?")
    host.say("A pattern for chaining computations.")
    asked = host.prompt("Make the pause configurable as UPLOAD_PAUSE_S, but keep 0.5 as the default.")
    host.bash("rg -n pause_s src", "src/transport.py:6:def send(request, tries=3, pause_s=0.5):")
    host.edit(f"{harbour}/src/transport.py", "pause_s=0.5", "pause_s=float(os.environ.get('UPLOAD_PAUSE_S', 0.5))")
    host.bash("pytest -q", "1 failed, 40 passed\nFAILED test_settings - unknown variable UPLOAD_PAUSE_S", ok=False)
    compacted = host.compact("The user wants UPLOAD_PAUSE_S; test_settings fails because the variable is not listed.")
    host.edit(f"{harbour}/src/settings.py", "KNOWN = (", "KNOWN = ('UPLOAD_PAUSE_S',")
    host.bash("pytest -q", "41 passed in 3.31s")
    host.say("UPLOAD_PAUSE_S is read in transport.send and listed in settings.KNOWN; all 41 tests pass.")
    host.end()
    return started, asked, other, compacted


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_from_installation_to_memory_in_two_repositories(tmp_path: Path) -> None:
    """One test, and a long one: it runs the commands that stand in the configuration, as a host does."""
    home, harbour, garden = tmp_path / "home", tmp_path / "work" / "harbour", tmp_path / "work" / "garden"
    for folder in (home, harbour, garden):
        folder.mkdir(parents=True)
    for repository in (harbour, garden):
        git(repository, "init", "-q", "-b", "main")
    host = Host(home)
    done = host.command(harbour, "install", "claude-code", "--user", "ana")
    assert done.returncode == 0, done.stderr
    assert "+++ " in done.stdout

    first_session(host, harbour)
    started, asked, other, compacted = second_session(host, harbour)
    host.begin(garden, "g1")
    in_garden = host.prompt("Where do our retries live, and may you run the deploy script?")

    # what the next session of the repository is told, and what another one is not
    assert "Retries belong in transport.py, not in the uploader" in started
    assert "Never run the deploy script yourself" in started
    assert "Edit(file_path=src/transport.py)" in started
    assert "return httpx.post" not in started, "what a file held is not told: it stands in the repository"
    assert other == "", "a question that memory has nothing for is told nothing"
    assert "Retries belong" not in asked, "what was told at the start is not told again"
    assert in_garden == ""

    # after a compaction the session gets back what it did, not what the host's summary says already
    assert "UPLOAD_PAUSE_S" in compacted
    assert "keep 0.5 as the default" in compacted
    assert "test_settings" in compacted

    _check_ledger(home / ".muniment" / "agents.db")
    _check_server(host, harbour, garden)

    done = host.command(harbour, "uninstall", "claude-code")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in home.iterdir()) == [".claude", ".muniment"]
    assert [path.name for path in (home / ".claude").iterdir()] == ["projects"]


def _check_ledger(path: Path) -> None:
    with muniment.open(path) as mem:
        assert mem.verify().ok
        tenants = mem.store.tenants()
        assert sorted(name.split(".")[1].rsplit("-", 1)[0] for name in tenants) == ["garden", "harbour"]
        tenant = next(name for name in tenants if "harbour" in name)
        told = [
            (entry.role, entry.content)
            for entry in mem.ledger.entries(user_id="ana", session_id="s1", tenant_id=tenant)
            if entry.kind in ("message", "tool_result")
        ]
        assert len(told) == len(set(told)) == 15, "everything once, though hooks and transcript both tell it"
        assert told[:3] == [
            ("user", "Uploads fail now and then with a 503. Add a retry. We still support Python 3.9 here."),
            ("assistant", "I'll look at how uploads are sent."),
            ("tool", "src/uploader.py:12:def upload(path):\nsrc/transport.py:3:import httpx"),
        ]
        runs = [mem.log.run_state(run, tenant_id=tenant) for run in _runs(mem, tenant)]
        assert len(runs) == 2
        assert all(run.stop_reason == "HUMAN_REQUESTED" for run in runs)


def _runs(mem: muniment.Memory, tenant: str) -> set[str]:
    entries = mem.ledger.entries(user_id="ana", tenant_id=tenant)
    return {entry.scope.run_id for entry in entries}


def _check_server(host: Host, harbour: Path, garden: Path) -> None:
    """The MCP server as the configuration starts it, in either repository."""
    server = json.loads((host.home / ".claude.json").read_text())["mcpServers"]["muniment"]
    found = {}
    for where in (harbour, garden):
        lines = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ]  # fmt: skip
        env = {**host.env, **server["env"], "CLAUDE_PROJECT_DIR": str(where)}
        with subprocess.Popen(
            [server["command"], *server["args"]],
            cwd=host.home, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdin is not None
            assert process.stdout is not None
            for line in lines:
                process.stdin.write(json.dumps(line) + "\n")
            process.stdin.flush()
            answers = [json.loads(process.stdout.readline()) for _ in range(2)]
            names = [tool["name"] for tool in answers[1]["result"]["tools"]]
            search = next(name for name in names if "search" in name)
            call = {"name": search, "arguments": {"query": "Where do retries live?"}}
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call}) + "\n")
            process.stdin.flush()
            found[where] = process.stdout.readline()
            process.stdin.close()
    assert "transport.py" in found[harbour]
    assert "transport.py" not in found[garden]
