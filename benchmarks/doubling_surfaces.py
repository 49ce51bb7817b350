"""The doors of the surfaces, HTTP, MCP and the command line, beside those of the library; and how any door is opened."""

# ruff: noqa: E501, ARG001 - a door is one call with all that it takes, and has the signature of all doors

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.doubling_doors import TOKENS, Work, door_named, new_store
from benchmarks.doubling_learning import DOORS
from muniment.errors import MunimentError

__all__ = ["DOORS", "opened"]


@contextmanager
def opened(door: str, text: str) -> Iterator[Work]:
    """The work of a door, ready to be done once; a refusal is an answer."""
    with ExitStack() as stack:
        work = DOORS[door](text, stack)

        def done() -> None:
            with suppress(MunimentError):
                work()

        yield done


# -- the surfaces ---------------------------------------------------------------------------------------

_RUN = "/v1/tenants/default/users/ana/runs/r1"
_ADDRESS_CHARS_MAX = 60_000
"""No client sends a longer one."""


def _server(stack: ExitStack) -> Any:
    from starlette.testclient import TestClient

    from muniment.surfaces.http.app import create_app
    from muniment.surfaces.http.settings import ServerSettings

    mem, _ = new_store(stack)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    settings = ServerSettings(keys=str(folder / "keys.json"), research_dir=str(folder / "research"))
    client = TestClient(create_app(mem, settings), base_url="http://localhost", raise_server_exceptions=False)
    http = stack.enter_context(client)
    http.get("/v1/health")
    return http


@door_named("HTTP: a body of it")
def _http_raw(text: str, stack: ExitStack) -> Work:
    http = _server(stack)
    data, headers = text.encode("utf-8", "replace"), {"content-type": "application/json"}
    return lambda: [
        http.post(f"{_RUN}/{path}", content=data, headers=headers) for path in ("events", "messages", "verify")
    ]


@door_named("HTTP: content of a body")
def _http_content(text: str, stack: ExitStack) -> Work:
    http = _server(stack)
    return lambda: http.post(f"{_RUN}/events", json={"role": "user", "content": text})


@door_named("HTTP: a wide body")
def _http_wide(text: str, stack: ExitStack) -> Work:
    http = _server(stack)
    words = text.split() or [text]
    body = {"role": "user", "content": "x", "metadata": {f"{at}{word}": word for at, word in enumerate(words)}}
    many = [{"role": "user", "content": word or "x"} for word in words[:4000]]

    def work() -> None:
        http.post(f"{_RUN}/events", json=body)
        http.post(f"{_RUN}/events", json=dict.fromkeys(words, text[:10]))
        http.post(f"{_RUN}/events/batch", json={"events": many})

    return work


@door_named("HTTP: a deep body")
def _http_deep(text: str, stack: ExitStack) -> Work:
    http = _server(stack)
    deep = len(text) // 8
    bodies = [
        '{"content":' * deep,
        '{"metadata":' + "[" * deep + "]" * deep + "}",
        '{"content":"a","metadata":{"a":' * deep,
    ]
    headers = {"content-type": "application/json"}
    return lambda: [http.post(f"{_RUN}/events", content=body, headers=headers) for body in bodies]


@door_named("HTTP: query, path and headers")
def _http_query(text: str, stack: ExitStack) -> Work:
    http = _server(stack)
    quoted = quote(text.encode("utf-8", "replace"))[: min(3 * len(text), _ADDRESS_CHARS_MAX)]
    named = "&".join(f"a{at}={at}" for at in range(len(text) // 6))[:_ADDRESS_CHARS_MAX]
    told = text.encode("ascii", "replace").decode().translate(dict.fromkeys((*range(32), 127), "."))

    def work() -> None:
        calls: tuple[Work, ...] = (
            lambda: http.get(f"{_RUN}/search?query={quoted}"),
            lambda: http.get(f"{_RUN}/facts?{named}"),
            lambda: http.get(f"/v1/{quoted}"),
            lambda: http.get(f"{_RUN}/facts", headers={"accept": told, "if-none-match": told, "accept-encoding": told}),
            lambda: http.get(
                f"{_RUN}/facts", headers={"authorization": f"Bearer {told}", "cookie": told, "prefer": told}
            ),
            lambda: http.get(
                "/v1/health", headers={"traceparent": told, "x-request-id": told, "origin": told, "host": told}
            ),
        )
        for call in calls:
            with suppress(ValueError):
                call()

    return work


@door_named("MCP: a call")
def _mcp(text: str, stack: ExitStack) -> Work:
    from mcp.shared.exceptions import MCPError

    from muniment.surfaces.mcp.callers import CallerScope, ToolCallers
    from muniment.surfaces.mcp.server import _call  # type: ignore[attr-defined,unused-ignore]
    from muniment.surfaces.mcp.settings import McpSettings

    mem, _ = new_store(stack)
    caller = ToolCallers(mem, McpSettings(profile="full")).take(CallerScope("default", "ana", "support"))
    calls = (
        ("record", {"role": "user", "content": text}),
        ("remember", {"key": "user.note", "value": text, "text": text}),
        ("search_memory", {"query": text}),
        ("claim", {"statement": text}),
        ("why", {"text": text}),
        ("get_context", {"query": text, "max_tokens": TOKENS}),
        (text, {text: text}),
    )

    def work() -> None:
        for name, arguments in calls:
            with suppress(MunimentError, MCPError):
                _call(caller, name, arguments)

    return work


def _file(text: str, stack: ExitStack, name: str) -> str:
    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / name
    path.write_bytes(text.encode("utf-8", "replace"))
    return str(path)


@door_named("CLI: files")
def _cli(text: str, stack: ExitStack) -> Work:
    from click.testing import CliRunner

    from muniment.surfaces.cli.main import cli

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    store = str(folder / "m.db")
    given, constraints = _file(text, stack, "in.json"), _file(text, stack, "c.yaml")
    plain = _file("- words: {max: 5}\n- contains: thanks\n", stack, "plain.yaml")
    lines = _file(json.dumps({"text": text, "role": "user", "content": text}) + "\n", stack, "lines.jsonl")
    commands = (
        ("check", plain, given),
        ("check", constraints, lines),
        ("validate", "--kind", "MemoryPacket", given),
        ("validate", "--kind", "VerifierResult", lines),
        ("ingest", lines, "--db", store, "--user", "ana"),
        ("ingest", given, "--db", store, "--user", "ana"),
        ("memory", "record", given, "--db", store, "--user", "ana"),
        ("corpus", "add", given, "--corpus", "notes", "--db", store),
        ("import", given, "--db", store),
    )

    def work() -> None:
        for command in commands:
            CliRunner().invoke(cli, list(command))

    return work


@door_named("readers: JSON, YAML, predicates, answers")
def _readers(text: str, stack: ExitStack) -> Work:
    from muniment.core.canonical import canonical_text, parse_json
    from muniment.core.predicates import parse
    from muniment.memory._extract_checks import SourceTurn
    from muniment.memory._extract_model import read_answer
    from muniment.verify.constraint_files import parse_yaml

    turn = SourceTurn("e1", "user", "user", "2026-05-20T10:00:00Z", text, 1)

    def work() -> None:
        for call in (
            lambda: parse_json(text),
            lambda: canonical_text({"a": text.split(), text[:100]: [text]}),
            lambda: parse_yaml(text),
            lambda: parse(text),
            lambda: read_answer('{"facts": [' + text, [turn], is_cut=True),
        ):
            with suppress(MunimentError, ValueError, RecursionError):
                call()

    return work
