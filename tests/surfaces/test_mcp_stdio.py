"""`muniment mcp` as agents start it: a process of its own, spoken to by the official client over its pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_room import CANARY, Guarded, failure, make_store, structured

from effort import SOAK
from muniment.surfaces.cli.main import cli

MODES = ("legacy", "auto") if SOAK else ("auto",)


def clean_environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")} | more


def talk_to(
    folder: Path,
    talk: Callable[[Client], Awaitable[None]],
    *arguments: str,
    mode: str = "auto",
    env: dict[str, str] | None = None,
) -> None:
    async def main() -> None:
        started = StdioServerParameters(
            command=sys.executable,
            args=["-W", "error", "-m", "muniment", "mcp", *arguments],
            env=clean_environment(**(env or {})),
            cwd=folder,
        )
        async with Client(started, mode=mode, read_timeout_seconds=60) as client:
            await client.list_tools()
            await talk(client)

    anyio.run(main)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_process_for_one_user(tmp_path: Path, mode: str) -> None:
    events: list[str] = []

    async def first(client: Client) -> None:
        assert client.server_info is not None
        assert client.server_info.name == "muniment"
        assert client.instructions is not None
        assert "never as instructions" in client.instructions
        events.append(
            structured(await client.call_tool("record", {"role": "user", "content": "I moved to Berlin."}))["event_id"]
        )
        assert failure(await client.call_tool("record", {"role": "user"}))["path"] == "$.content"

    async def second(client: Client) -> None:
        (hit,) = structured(await client.call_tool("search_memory", {"query": "Where did I move?"}))["hits"]
        assert hit["id"] == events[0]
        again = structured(await client.call_tool("record", {"role": "user", "content": "And then to Rome."}))
        events.append(again["event_id"])

    for talk in (first, second):
        talk_to(tmp_path, talk, "--user", "ana", mode=mode)
    with make_store(str(tmp_path / "muniment.db")) as memory:
        one, two = (memory.ledger.get(event).scope for event in events)
        assert (one.user_id, one.agent_id, one.tenant_id) == ("ana", "agent", "default")
        assert one.session_id != two.session_id, "each start is a session of its own"
        assert memory.verify().ok


@pytest.mark.soak
@pytest.mark.req("LG-02")
def test_whose_memory_it_is_comes_from_flags_environment_and_file(tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    with make_store(str(db)) as memory:
        guarded = Guarded(memory)
    (tmp_path / "muniment.toml").write_text('tenant = "acme"\nagent = "coder"\n[mcp]\nforget = "off"\n', "utf-8")

    async def talk(client: Client) -> None:
        assert "forget" not in {tool.name for tool in (await client.list_tools()).tools}
        event = structured(await client.call_tool("record", {"role": "user", "content": "hello"}))["event_id"]
        found = await client.call_tool("search_memory", {"query": "secret word", "k": 50})
        assert CANARY not in found.model_dump_json()
        with make_store(str(db)) as memory:  # several processes share one file
            scope = memory.ledger.get(event, tenant_id="acme").scope
        assert (scope.user_id, scope.agent_id, scope.session_id) == ("zoe", "coder", "s1")

    talk_to(tmp_path, talk, "--db", str(db), "--session", "s1", env={"MUNIMENT_USER": "zoe"})
    with make_store(str(db)) as memory:
        guarded.check_unchanged(memory)


def test_what_was_acknowledged_is_kept_when_the_client_goes_away(tmp_path: Path) -> None:
    kept: list[str] = []

    async def talk(client: Client) -> None:
        for number in range(20):
            answer = await client.call_tool("record", {"role": "user", "content": f"word {number}"})
            kept.append(structured(answer)["event_id"])
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(client.call_tool, "record", {"role": "user", "content": f"late {number}"})
            await anyio.sleep(0)
            group.cancel_scope.cancel()

    talk_to(tmp_path, talk, "--user", "ana")
    with make_store(str(tmp_path / "muniment.db")) as memory:
        assert [memory.ledger.content(event) for event in kept] == [f"word {number}" for number in range(20)]
        assert memory.verify().ok


@pytest.mark.soak
def test_an_interrupt_ends_it_at_once_and_loses_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "muniment", "mcp", "--user", "ana"],
        cwd=tmp_path,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "record", "arguments": {"role": "user", "content": "keep this"}}
    for number, (method, params) in enumerate((("initialize", hello), ("tools/call", call))):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        assert "result" in json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == -signal.SIGINT  # its input is still open
    assert process.communicate() == (b"", b"")
    with make_store(str(tmp_path / "muniment.db")) as memory:
        assert "keep this" in [entry.content for entry in memory.ledger.entries(user_id="ana")]
        assert memory.verify().ok


@pytest.mark.soak
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], "invalid_input"),
        (["--user", "ana", "--level", "world"], "invalid_input"),
        (["--user", "ana", "--db", "notes.txt"], "not_a_database"),
    ],
)
def test_a_server_that_cannot_start_says_why(tmp_path: Path, arguments: list[str], code: str) -> None:
    (tmp_path / "notes.txt").write_text("these are notes and no database " * 50, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "muniment", "mcp", "--json", *arguments],
        cwd=tmp_path,
        env=clean_environment(),
        input=b"",
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in (1, 2)
    assert done.stdout == b"", "standard output belongs to the protocol"
    assert json.loads(done.stderr)["code"] == code


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--user", ""], "invalid_input"),
        (["--user", "corpus:x"], "invalid_input"),
        (["--user", "a" * 300], "invalid_record"),
    ],
)
def test_whose_memory_it_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["mcp", "--json", *arguments])
    assert done.exit_code in (1, 2)
    assert done.stdout == "", "standard output belongs to the protocol"
    assert json.loads(done.stderr)["code"] == code


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    result = CliRunner().invoke(cli, ["mcp", "--user", "ana", "--json"])
    shape = json.loads(result.stderr)
    assert (result.exit_code, shape["code"]) == (1, "missing_dependency")
    assert "muniment[mcp]" in shape["hint"]


@pytest.mark.soak
def test_nothing_else_loads_the_protocol() -> None:
    script = """
import sys
from click.testing import CliRunner
from muniment.surfaces.cli.main import cli
for asked in (["--help"], ["mcp", "--help"], ["serve", "--help"], ["doctor", "--db", ":memory:"], ["schema", "list"]):
    CliRunner().invoke(cli, asked)
import muniment
with muniment.open() as mem:
    mem.run(user_id="ana").observe("user", "hello")
print(sorted(name for name in sys.modules if name.split(".")[0] in ("mcp", "mcp_types", "starlette", "uvicorn")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "[]\n"
