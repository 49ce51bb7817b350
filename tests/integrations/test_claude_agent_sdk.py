"""The Claude Agent SDK: its own types take our hooks and our server, and the callbacks do what they should."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import muniment
from muniment.errors import InvalidInput

sdk = pytest.importorskip("claude_agent_sdk", reason="the extra [claude-agent-sdk] is not installed")

from claude_agent_sdk.types import HookEvent  # noqa: E402

from muniment.integrations import claude_agent_sdk as ours  # noqa: E402


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


def call(options: Any, name: str, **more: Any) -> Any:
    (matcher,) = options.hooks[name]
    (callback,) = matcher.hooks
    given = {"hook_event_name": name, "session_id": "s1", "transcript_path": "", "cwd": "/p", **more}
    return asyncio.run(callback(given, more.get("tool_use_id"), {"signal": None}))


def test_the_sdk_takes_hooks_and_server(mem: muniment.Memory, tmp_path: Path) -> None:
    options = sdk.ClaudeAgentOptions(**ours.memory_options(mem, user_id="ana", directory=tmp_path))
    known = {name for literal in get_args(HookEvent) for name in get_args(literal)}
    assert set(options.hooks) <= known
    assert options.mcp_servers["muniment"]["type"] == "sdk"
    assert call(options, "UserPromptSubmit", prompt="We deploy on Fridays with the harbour script.") == {}
    call(options, "PostToolUse", tool_name="Bash", tool_input={}, tool_response="done", tool_use_id="t1")
    call(options, "Stop", stop_hook_active=False, last_assistant_message="Noted.")
    call(options, "PreCompact", trigger="auto", custom_instructions=None)
    asked = call(options, "UserPromptSubmit", prompt="When do we deploy?", session_id="s2")
    assert "harbour script" in asked["hookSpecificOutput"]["additionalContext"]
    other = sdk.ClaudeAgentOptions(**ours.memory_options(mem, user_id="ana", directory=tmp_path.parent))
    assert call(other, "UserPromptSubmit", prompt="When do we deploy?", session_id="s3") == {}


def test_tools_of_the_server_read_memory(mem: muniment.Memory) -> None:
    mem.run(user_id="ana", session_id="s0").observe("user", "Tulips are planted in October.")
    server = ours.memory_server(mem, user_id="ana")
    assert server["name"] == "muniment"

    async def ask() -> list[str]:
        from mcp.client import Client

        async with Client(server["instance"]) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            answers = [await client.call_tool(name, {"query": "When are tulips planted?"}) for name in names]
            return [*names, *(answer.content[0].text for answer in answers)]

    *names, found, context = asyncio.run(ask())
    assert names == ["search_memory", "get_context"]
    assert "October" in found
    assert "October" in context


def test_a_callback_that_fails_or_is_slow_tells_nothing(
    mem: muniment.Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    options = sdk.ClaudeAgentOptions(hooks=ours.memory_hooks(mem, user_id="ana", seconds=0.05))

    def slow(*_: Any, **__: Any) -> Any:
        time.sleep(0.3)

    def broken(*_: Any, **__: Any) -> Any:
        raise InvalidInput("secret words of the user")

    for each in (slow, broken):
        monkeypatch.setattr(ours, "handle", each)
        assert call(options, "UserPromptSubmit", prompt="hello") == {}
    assert len(caplog.messages) == 2
    assert "secret" not in caplog.text
