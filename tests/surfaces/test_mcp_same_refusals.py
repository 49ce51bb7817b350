"""A tool of the MCP server refuses what the library refuses with the library's own error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client
from mcp_room import at, failure, make_store, served, structured

from muniment.errors import MunimentError
from muniment.handles.run import Run


@pytest.mark.parametrize(
    ("tool", "given", "ask"),
    [
        ("search_memory", {"query": "tea", "k": 0}, lambda run: run.search("tea", k=0)),
        ("search_memory", {"query": "tea", "k": "5"}, lambda run: run.search("tea", k="5")),
        ("search_memory", {"query": 5}, lambda run: run.search(5)),
        ("search_memory", {"query": "tea", "min_score": 2}, lambda run: run.search("tea", min_score=2)),
        ("search_memory", {"query": "tea", "min_score": "a"}, lambda run: run.search("tea", min_score="a")),
        ("search_memory", {"query": "tea", "now": "soon"}, lambda run: run.search("tea", now="soon")),
        ("get_context", {"purpose": "writer"}, lambda run: run.compose("writer")),
        ("get_context", {"purpose": 3}, lambda run: run.compose(3)),
        ("get_context", {"max_tokens": 10}, lambda run: run.compose("responder", max_tokens=10)),
        ("get_context", {"cues": ["a"]}, lambda run: run.compose("responder", cues=["a"])),
        ("get_context", {"cues": {"tags": "trip"}}, lambda run: run.compose("responder", cues={"tags": "trip"})),
        ("get_lessons", {"query": "tea", "intent": 5}, lambda run: run.learning.recall("tea", intent=5)),
    ],
)
def test_a_tool_refuses_as_the_library_does(tool: str, given: dict[str, Any], ask: Callable[[Run], Any]) -> None:
    with make_store() as memory:
        with pytest.raises(MunimentError) as caught:
            ask(memory.run(user_id="ana", session_id="s1", run_id="r1"))
        wanted = caught.value

        async def talk(client: Client) -> None:
            told = failure(await client.call_tool(tool, given))
            assert (told["code"], told["path"], told["hint"]) == (wanted.code, wanted.path, wanted.hint)

        at(served(memory, profile="full"), talk)


def test_a_tool_keeps_its_own_narrower_bounds() -> None:
    async def talk(client: Client) -> None:
        for tool, given, path in (
            ("search_memory", {"query": "tea", "k": 51}, "$.k"),
            ("get_context", {"max_tokens": 32_001}, "$.max_tokens"),
            ("get_lessons", {"query": "tea", "top_k": 21}, "$.top_k"),
        ):
            told = failure(await client.call_tool(tool, given))
            assert (told["code"], told["path"]) == ("invalid_input", path)
        assert structured(await client.call_tool("get_context", {"max_tokens": 256.0}))["max_tokens"] == 256

    with make_store() as memory:
        at(served(memory, profile="full"), talk)
