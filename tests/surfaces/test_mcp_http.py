"""MCP on the server's port with the official client: keys and headers say where a caller sits, nothing else does."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_room import CANARY, Guarded, failure, make_store, protocol_failure, said, structured

from effort import SOAK
from free_ports import free_port
from muniment.core.outside.system import system_clock
from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.surfaces.http._guard import OPEN, Caller
from muniment.surfaces.http._keys import KeyFile
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.mcp.callers import CallerScope
from muniment.surfaces.mcp.settings import McpSettings
from muniment.surfaces.mcp.streamable import PATH, mcp_app, place_asked
from muniment.surfaces.mcp.uris import build_uri
from muniment.surfaces.processes.worker import beside as _beside
from muniment.surfaces.settings import load_settings
from products import for_each

MODES = ("legacy", "auto") if SOAK else ("auto",)
STORE = load_settings({"db": ":memory:", "tenant": "default", "user": "ana", "agent": "support"}, {})
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@contextmanager
def listening(memory: Memory, settings: ServerSettings, **told: str) -> Iterator[str]:
    """A server on a free port; answers the address of its MCP."""
    mounted = mcp_app(memory, STORE, settings, McpSettings(**told))
    app = create_app(memory, settings, beside={PATH: mounted.mount}, lifespans=[mounted.lifespan])
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=10))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield f"http://127.0.0.1:{bound.getsockname()[1]}{PATH}"
        finally:
            server.should_exit = True
            thread.join()


def talk_to(
    url: str, talk: Callable[[Client], Awaitable[None]], headers: dict[str, str] | None = None, mode: str = "auto"
) -> None:
    async def main() -> None:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            await client.list_tools()
            await talk(client)

    anyio.run(main)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with make_store(str(tmp_path / "agent.db")) as mem:
        yield mem


@pytest.mark.parametrize("mode", MODES)
def test_the_same_tools_on_the_servers_port(memory: Memory, mode: str) -> None:
    async def talk(client: Client) -> None:
        assert len((await client.list_tools()).tools) == 6
        event = structured(await client.call_tool("record", {"role": "user", "content": "I moved to Berlin."}))
        assert memory.ledger.get(event["event_id"]).scope.user_id == "ana"
        composed = structured(await client.call_tool("get_context", {"query": "Where did I move?"}))
        read = await client.read_resource(build_uri(composed["build_id"]))
        assert json.loads(read.contents[0].text)["meta"]["scope"]["user_id"] == "ana"  # type: ignore[union-attr]
        assert (await client.get_prompt("answer", {"query": "Where did I move?"})).messages
        assert failure(await client.call_tool("search_memory", {}))["code"] == "invalid_input"
        assert (await protocol_failure(client.read_resource("muniment://builds/x")))["code"] == "not_found"

    with listening(memory, ServerSettings()) as url:
        talk_to(url, talk, mode=mode)


def test_a_client_that_is_configured_for_a_user_is_that_user(memory: Memory) -> None:
    async def talk(client: Client) -> None:
        event = structured(await client.call_tool("record", {"role": "user", "content": "hello"}))
        scope = memory.ledger.get(event["event_id"], tenant_id="acme").scope
        assert (scope.user_id, scope.agent_id, scope.session_id) == ("zoë", "coder", "s 7")

    headers = {"muniment-tenant": "acme", "muniment-user": "zo%C3%AB", "muniment-agent": "coder"}
    with listening(memory, ServerSettings()) as url:
        talk_to(url, talk, headers | {"muniment-session": "s%207"})


@pytest.mark.soak
@pytest.mark.req("LG-02")
def test_a_key_says_how_far_its_caller_may_go(memory: Memory, tmp_path: Path) -> None:
    guarded = Guarded(memory)
    keys = KeyFile(tmp_path / "keys.json", system_clock)
    made = keys.create("ana", tenant="default", user="ana", access="write")
    anas = made.token
    tenants = keys.create("all of it", tenant="default", access="write").token
    readers = keys.create("reader", tenant="default", user="ana", access="read").token
    settings = ServerSettings(auth="on", keys=str(tmp_path / "keys.json"))

    async def as_ana(client: Client) -> None:
        event = structured(await client.call_tool("record", {"role": "user", "content": "I like green tea"}))
        assert memory.ledger.get(event["event_id"]).scope.user_id == "ana"
        found = await client.call_tool("search_memory", {"query": "secret word", "k": 50})
        assert CANARY not in found.model_dump_json()

    async def as_bo(client: Client) -> None:
        found = await client.call_tool("search_memory", {"query": "secret word", "k": 50})
        assert CANARY in found.model_dump_json(), "a key of the tenant may say whose memory it wants"

    async def reading(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"search_memory", "why"}
        assert "green tea" in said(await client.call_tool("search_memory", {"query": "green tea"}))
        await protocol_failure(client.call_tool("record", {"role": "user", "content": "x"}))

    with listening(memory, settings) as url:
        talk_to(url, as_ana, _bearer(anas))
        talk_to(url, as_bo, _bearer(tenants) | {"muniment-user": "bo"})
        talk_to(url, reading, _bearer(readers))
        for token, more in (
            (anas, {"muniment-user": "bo"}),
            (anas, {"muniment-tenant": "other"}),
            (anas, {"muniment-tenant": "*"}),
            (tenants, {"muniment-tenant": "other", "muniment-user": "ana"}),
            (readers, {"muniment-user": "bo"}),
        ):
            call = LIST | {"method": "tools/call", "params": {"name": "search", "arguments": {"query": "secret word"}}}
            answer = httpx2.post(url, json=call, headers=JSON | _bearer(token) | more).json()
            shape = json.loads(answer["result"]["content"][0]["text"])
            assert shape["code"] in ("forbidden", "invalid_input"), shape
            assert CANARY not in json.dumps(answer)
        for headers in ({}, _bearer("mun_000000000000_" + "x" * 43), {"authorization": "Basic eA=="}):
            refused = httpx2.post(url, json=LIST, headers=JSON | headers)
            assert refused.status_code == 401
            assert refused.json()["code"] == "unauthorized"
        proxied = JSON | _bearer(anas) | {"host": "memory.example.com"}
        assert httpx2.post(url, json=LIST, headers=proxied).status_code == 200
        keys.revoke(made.key.key_id)
        assert httpx2.post(url, json=LIST, headers=JSON | _bearer(anas)).status_code == 401
    guarded.check_unchanged(memory)


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_writing_above_the_users_level_takes_an_administrators_key(memory: Memory, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json", system_clock)
    tokens = {access: keys.create(access, tenant="default", access=access).token for access in ("write", "admin")}
    settings = ServerSettings(auth="on", keys=str(tmp_path / "keys.json"))
    call = {"name": "remember", "arguments": {"key": "office", "value": "Berlin", "text": "We are in Berlin."}}
    with listening(memory, settings, level="tenant") as url:
        for access, token in tokens.items():
            asked = LIST | {"method": "tools/call", "params": call}
            result = httpx2.post(url, json=asked, headers=JSON | _bearer(token)).json()["result"]
            assert result["isError"] is (access == "write"), result


@for_each(
    ("caller", "headers", "place"),
    [
        (OPEN, {}, CallerScope("default", "ana", "support")),
        (OPEN, {"muniment-tenant": "t2"}, None),  # the configured user is one of the configured tenant
        (OPEN, {"muniment-tenant": "t2", "muniment-user": "x"}, CallerScope("t2", "x", "support")),
        (Caller("k", "t2", None, "write"), {}, None),
        (Caller("k", "t2", "zoe", "write"), {}, CallerScope("t2", "zoe", "support")),
        (Caller("k", "t2", "zoe", "write"), {"muniment-user": "ana"}, None),
        (Caller("k", "t2", None, "admin"), {"muniment-tenant": "default"}, None),
        (Caller("k", "*", None, "admin"), {"muniment-tenant": "*"}, None),
    ],
)
def test_where_a_caller_sits(caller: Caller, headers: dict[str, str], place: CallerScope | None) -> None:
    if place is None:
        with pytest.raises(MunimentError):
            place_asked(caller, headers, STORE, McpSettings())
    else:
        assert place_asked(caller, headers, STORE, McpSettings()) == place


def test_what_is_no_request_of_the_protocol_is_refused(memory: Memory) -> None:
    with listening(memory, ServerSettings(body_bytes_max=1 << 20)) as url:
        for method in ("GET", "DELETE", "PUT", "OPTIONS"):
            refused = httpx2.request(method, url, headers=JSON)
            assert (refused.status_code, refused.json()["code"]) == (405, "wrong_method")
            assert refused.headers["allow"] == "POST"
        assert httpx2.post(url, content=b"x" * (2 << 20), headers=JSON).status_code == 413
        assert httpx2.post(url, content=b"{}", headers=JSON | {"content-encoding": "gzip"}).status_code == 415
        assert httpx2.post(url, content=b"{}", headers={"content-type": "text/plain"}).status_code in (400, 406, 415)
        assert httpx2.post(url, json=LIST, headers=JSON | {"host": "evil.example"}).status_code == 403
        assert httpx2.post(url, json=LIST, headers=JSON | {"origin": "http://evil.example"}).status_code == 403
        assert httpx2.post(url, json=LIST, headers=JSON).status_code == 200


def test_what_a_proxy_passes_on_is_not_of_this_machine(memory: Memory) -> None:
    passed_on = JSON | {"x-forwarded-for": "203.0.113.9"}
    with listening(memory, ServerSettings()) as url:
        refused = httpx2.post(url, json=LIST, headers=passed_on)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    with listening(memory, ServerSettings(auth="off")) as url:
        assert httpx2.post(url, json=LIST, headers=passed_on).status_code == 200


def test_bodies_of_nonsense_are_never_a_failure_of_the_server(memory: Memory) -> None:
    guarded = Guarded(memory)
    dice = random.Random(11)
    call = json.dumps(LIST | {"method": "tools/call", "params": {"name": "search", "arguments": {"query": "secret"}}})
    bodies: list[bytes] = [b"", b"null", b"[]", b"[1]", b'"x"', b"{}", b"[" * 10_000, b'{"jsonrpc":"2.0","id":NaN}']
    for _ in range(120):
        made = bytearray(call.encode())
        for _ in range(dice.randrange(1, 6)):
            made[dice.randrange(len(made))] = dice.randrange(256)
        bodies.append(bytes(made))
    versions = ("", "2025-11-25", "2026-07-28", "2099-01-01", "x", "2024-11-05")
    with listening(memory, ServerSettings()) as url, httpx2.Client(timeout=30) as client:
        for body in bodies:
            version = dice.choice(versions)
            headers = JSON | ({"mcp-protocol-version": version} if version else {})
            if dice.random() < 0.2:
                headers |= {"mcp-session-id": "x" * dice.randrange(1, 200)}
            answer = client.post(url, content=body, headers=headers)
            assert answer.status_code < 500, (body, answer.text)
            assert CANARY not in answer.text
        assert client.post(url, json=LIST, headers=JSON).status_code == 200
    guarded.check_unchanged(memory)


def test_many_clients_at_once_keep_apart(memory: Memory) -> None:
    async def one(url: str, user: str) -> None:
        async with (
            httpx2.AsyncClient(headers={"muniment-user": user}, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            for number in range(5):
                await client.call_tool("record", {"role": "user", "content": f"{user} says fact {number}"})
            found: dict[str, Any] = structured(await client.call_tool("search_memory", {"query": "says fact", "k": 50}))
            assert sorted(hit["text"] for hit in found["hits"]) == [f"{user} says fact {number}" for number in range(5)]

    async def main(url: str) -> None:
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(one, url, f"user{number}")

    with listening(memory, ServerSettings()) as url:
        anyio.run(main, url)
    assert memory.verify().ok
    assert len(memory.runs()) == 8, "each place has one run"


@pytest.mark.soak
def test_serve_answers_mcp_on_its_port(tmp_path: Path) -> None:
    (tmp_path / "muniment.toml").write_text('user = "ana"\n[mcp]\nforget = "off"\n', "utf-8")
    env = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "muniment", "serve", "--auth", "auto", "--json", "--port", str(free_port())],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        for _ in range(600):
            try:
                httpx2.get(f"{url}/v1/health")
                break
            except httpx2.ConnectError:
                time.sleep(0.1)

        async def talk(client: Client) -> None:
            assert len((await client.list_tools()).tools) == 5
            structured(await client.call_tool("record", {"role": "user", "content": "hello"}))

        talk_to(f"{url}{PATH}", talk)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    with make_store(str(tmp_path / "muniment.db")) as memory:
        assert [run.scope.user_id for run in memory.runs()] == ["ana"]


def test_without_the_extra_serve_has_no_mcp(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    mounted = _beside(memory, STORE, ServerSettings())
    assert PATH not in mounted.get("beside", {})
