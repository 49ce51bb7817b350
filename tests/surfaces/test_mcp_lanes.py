"""MCP beside the API: calls have their turn in the server's lanes, under whose they are, with the same deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp_room import failure, make_store, protocol_failure, structured
from test_mcp_http import JSON, listening, talk_to

from muniment.core.limits import checkpoint
from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.surfaces.http.lanes.running import Lanes
from muniment.surfaces.http.settings import ServerSettings


@pytest.fixture
def memory() -> Iterator[Memory]:
    with make_store() as mem:
        yield mem


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_call_has_its_turn_under_whose_it_is(memory: Memory, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, str]] = []
    true_run = Lanes.run

    async def run(self: Lanes, who: Any, call: Any, **more: Any) -> Any:
        seen.append((who.tenant, who.caller, who.route))
        assert more["seconds"] == 30
        return await true_run(self, who, call, **more)

    monkeypatch.setattr(Lanes, "run", run)

    async def talk(client: Client) -> None:
        event = structured(await client.call_tool("record", {"role": "user", "content": "hello"}))["event_id"]
        await client.read_resource(f"muniment://events/{event}")
        await protocol_failure(client.call_tool("x" * 500, {}))

    with listening(memory, ServerSettings()) as url:
        talk_to(url, talk, {"muniment-tenant": "acme", "muniment-user": "zoe"}, mode=mode)
    assert {(tenant, caller) for tenant, caller, _ in seen} == {("acme", "- zoe")}
    routes = {route for _, _, route in seen}
    assert routes == {"mcp tools/list", "mcp tools/call record", "mcp resources/read", "mcp tools/call"}


def test_a_call_that_takes_too_long_is_told_so_and_writes_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    true_observe = Run.observe

    def observe(self: Run, *args: Any, **more: Any) -> Any:
        try:
            for _ in range(1_000):
                time.sleep(0.01)
                checkpoint()
        except MunimentError:
            stopped.set()
            raise
        return true_observe(self, *args, **more)

    monkeypatch.setattr(Run, "observe", observe)
    given = {"role": "user", "content": "never written"}

    async def talk(client: Client) -> None:
        shape = failure(await client.call_tool("record", given))
        assert (shape["code"], shape["details"]["seconds"]) == ("deadline_exceeded", 0.2)

    with listening(memory, ServerSettings()) as url:
        talk_to(url, talk, {"prefer": "wait=0.2"})
        assert stopped.wait(10)
        stopped.clear()
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "record", "arguments": given}}
        with pytest.raises(httpx2.TimeoutException):  # whoever hangs up is worked for no longer
            httpx2.post(url, json=body, headers=JSON | {"mcp-protocol-version": "2025-06-18"}, timeout=0.5)
        assert stopped.wait(10)
    assert not [entry for entry in memory.ledger.entries(user_id="ana") if entry.kind == "message"]
