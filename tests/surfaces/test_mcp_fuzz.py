"""Sessions of nonsense: the server answers or refuses, never fails, never tells what another scope holds."""

from __future__ import annotations

import json
import logging
import queue
import random
import string
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_room import CANARY, Guarded, make_store, said, served
from pydantic import ValidationError

from muniment.surfaces.mcp.prompts import PROMPTS
from muniment.surfaces.mcp.tools import TOOLS

METHODS = (
    "ping", "initialize", "tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list",
    "prompts/list", "prompts/get", "completion/complete", "logging/setLevel", "resources/subscribe", "server/discover",
    "subscriptions/listen", "notifications/initialized", "notifications/cancelled", "roots/list", "tasks/get", "", "🦆",
    "__init__", "tools/call/../../x", "rpc.discover", "sampling/createMessage",
)  # fmt: skip
NAMES = (
    "query", "content", "role", "key", "value", "sources", "event_id", "fact_id", "build_id", "text", "k",
    "statement", "evidence", "claim_id", "status", "reason", "intent", "state", "cues", "purpose", "max_tokens", "tags",
    "user_id", "tenant_id", "session_id", "run_id", "scope", "grants", "trust", "tool", "ts", "now", "uri", "name",
)  # fmt: skip

SOUND: dict[str, dict[str, Any]] = {
    "record": {"role": "user", "content": "I moved to Berlin."},
    "remember": {"key": "user.city", "value": "Berlin", "text": "I moved to Berlin."},
    "search_memory": {"query": "secret word zanzibar"},
    "read": {"event_id": "evt_none"},
    "get_context": {"query": "What is the secret word?"},
    "get_profile": {"max_tokens": 300},
    "get_lessons": {"query": "secret word"},
    "claim": {"statement": "Ana lives in Berlin."},
    "forget": {"event_id": "evt_none"},
    "why": {"text": "zanzibar"},
}


class Nonsense:
    """Made of a seed, so that what went wrong can be seen again."""

    def __init__(self, seed: int, ids: list[str]) -> None:
        self.dice = random.Random(seed)
        self.ids = ids

    def text(self) -> str:
        dice = self.dice
        return dice.choice(
            (
                "",
                " ",
                "x" * dice.choice((1, 256, 257, 8_001, 70_000)),
                "".join(dice.choices(string.printable, k=dice.randrange(40))),
                "".join(chr(dice.choice((0, 7, 0x202E, 0xFEFF, 0x1F600, 0x4E2D, 0xFFFF))) for _ in range(5)),
                "' OR 1=1; DROP TABLE entries; --",
                '"unclosed AND (NEAR* "',
                "../../etc/passwd",
                "{{7*7}} ${jndi:ldap://x} <script>alert(1)</script>",
                "secret word zanzibar",
                "user", "tool", "verified", "responder", "2026-05-03T10:00:00Z", "9999-99-99", "-1",
            )
        )  # fmt: skip

    def value(self, depth: int = 0) -> Any:
        dice = self.dice
        kind = dice.randrange(10 if depth < 4 else 7)
        if kind < 2:
            return dice.choice(self.ids)
        if kind < 4:
            return self.text()
        if kind < 7:
            return dice.choice((None, True, False, 0, -1, 1, 10**30, 2**63, 0.5, -1e308, 1e-320))
        if kind < 8:
            return [self.value(depth + 1) for _ in range(dice.randrange(4))]
        return self.arguments(depth + 1)

    def arguments(self, depth: int = 0) -> dict[str, Any]:
        return {self.dice.choice((*NAMES, self.text())): self.value(depth) for _ in range(self.dice.randrange(6))}

    def fitting(self, tool: str) -> dict[str, Any]:
        """What the tool takes, with some of it turned into nonsense."""
        fields = [name for name in TOOLS[tool].takes.model_fields if self.dice.random() < 0.2]
        return SOUND[tool] | {name: self.value(2) for name in fields}


@pytest.mark.soak
@pytest.mark.req("LG-02")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_session_of_nonsense_through_the_client(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    memory = make_store()
    guarded = Guarded(memory)
    caplog.set_level(logging.WARNING)
    others = [id_ for known in guarded.ids.values() for name, id_ in known.items() if name != "state"]
    nonsense = Nonsense(7 if mode == "legacy" else 8, [*others, "evt_none", "default", "bo", "*"])
    counts = {"answered": 0, "refused": 0}

    async def ask(client: Client, tool: str, arguments: dict[str, Any]) -> None:
        result = await client.call_tool(tool, arguments)
        told = result.model_dump_json()
        if CANARY not in json.dumps(arguments):
            assert CANARY not in told
        counts["refused" if result.is_error else "answered"] += 1
        if result.is_error:
            shape = json.loads(said(result))
            assert shape["code"] != "error", shape
            assert len(told) < 20_000

    async def read(client: Client, dice: random.Random) -> None:
        uri = f"muniment://{dice.choice(('events', 'builds', 'facts', 'sessions', 'runs'))}/{dice.choice(nonsense.ids)}"
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri + dice.choice(("", "/narrative", "/narrative/1", "/x")))
        assert caught.value.error.code == -32602
        assert CANARY not in json.dumps(caught.value.error.data)

    async def main() -> None:
        async with Client(served(memory, profile="full"), mode=mode) as client:
            await client.list_tools()
            for _ in range(75):
                batch = []
                for tool in nonsense.dice.choices(list(TOOLS), k=6):
                    wild = nonsense.dice.random() < 0.4
                    batch.append((tool, nonsense.arguments() if wild else nonsense.fitting(tool)))
                async with anyio.create_task_group() as group:
                    for tool, arguments in batch:
                        group.start_soon(ask, client, tool, arguments)
                await read(client, nonsense.dice)
                for name in ("nope", nonsense.text(), *PROMPTS):
                    with suppress(MCPError, ValidationError):
                        prompt = await client.get_prompt(name, nonsense.arguments())
                        assert CANARY not in prompt.model_dump_json()
            last = await client.call_tool("search_memory", {"query": "still here"})
            counts["answered"] -= 1 if last.is_error else 0

    anyio.run(main)
    guarded.check_unchanged(memory)
    assert memory.verify().ok
    memory.close()
    assert counts["refused"] > 60
    assert counts["answered"] > 60, "some of it should get through, or nothing was tried"
    assert "defect" not in caplog.text


class Piped:
    """`muniment mcp` as a process, spoken to by hand."""

    def __init__(self, db: Path, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "muniment", "mcp", "--db", str(db), "--user", "ana"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
        )
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.errors: list[bytes] = []
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._drain)]
        for each in self._threads:
            each.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def _drain(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, id_: str, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to a request, and what else was said before it."""
        self.send(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode())
        others: list[bytes] = []
        while True:
            line = self.lines.get(timeout=60)
            answer = json.loads(line)
            if answer.get("id") == id_:
                return answer, others
            others.append(line)

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(60)
        for each in self._threads:
            each.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


CALL = b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"search","arguments":'


def junk(nonsense: Nonsense) -> bytes:
    """A line that may be anything: broken JSON, JSON that is no request, a request that asks for nothing there is."""
    dice = nonsense.dice
    message: Any = {
        "jsonrpc": "2.0",
        "id": dice.choice((dice.randrange(10**6), "a", None, True, [], 1.5, {})),
        "method": dice.choice(METHODS),
        "params": dice.choice((nonsense.arguments(), nonsense.value(), None)),
    }
    if dice.random() < 0.4:
        message["method"] = "tools/call"
        message["params"] = {"name": dice.choice((*TOOLS, "nope")), "arguments": nonsense.value()}
    for name in list(message):
        if dice.random() < 0.08:
            del message[name]
    line = json.dumps(message).encode()
    match dice.randrange(8):
        case 0:
            return line[: dice.randrange(len(line))].replace(b"\n", b"")
        case 1:
            return bytes(dice.choices([byte for byte in range(256) if byte != 10], k=dice.randrange(1, 200)))
        case 2:
            return CALL + dice.choice((b'{"query":"\\ud800"}', b'{"query":1e999}', b'{"k":NaN}', b"-")) + b"}}"
        case 3:
            return CALL + b"[" * 5_000 + b"]" * 5_000 + b"}}"
        case 4:
            return b"[" + line + b"," + line + b"]"
    return line


@pytest.mark.soak
@pytest.mark.req("LG-02")
@pytest.mark.parametrize("era", ["before the handshake", "after it"])
def test_a_pipe_full_of_nonsense(tmp_path: Path, era: str) -> None:
    db = tmp_path / "agent.db"
    with make_store(str(db)) as memory:
        guarded = Guarded(memory)
    others = [id_ for known in guarded.ids.values() for name, id_ in known.items() if name != "state"]
    nonsense = Nonsense(era == "after it", [*others, "evt_none"])
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    piped = Piped(db, tmp_path)
    try:
        if era == "after it":
            answer, _ = piped.ask("hello", "initialize", hello)
            assert answer["result"]["serverInfo"]["name"] == "muniment"
            piped.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        heard: list[bytes] = []
        for number in range(12):
            for _ in range(25):
                piped.send(junk(nonsense))
            answer, others_said = piped.ask(f"ping{number}", "ping", {})
            assert "result" in answer, answer
            heard += others_said
        if era == "before the handshake":
            assert "result" in piped.ask("hello", "initialize", hello)[0]
            piped.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        call = {"name": "search_memory", "arguments": {"query": "secret word zanzibar", "k": 50}}
        answer, more = piped.ask("last", "tools/call", call)
        assert answer["result"]["isError"] is False
        heard += [*more, json.dumps(answer).encode()]
    finally:
        code = piped.close()
    assert code == 0
    assert heard
    assert not any(CANARY.encode() in line for line in heard)
    assert not any(b"Traceback" in line for line in piped.errors), b"".join(piped.errors).decode()
    with make_store(str(db)) as memory:
        guarded.check_unchanged(memory)
        assert memory.verify().ok
