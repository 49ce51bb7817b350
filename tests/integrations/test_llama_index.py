"""LlamaIndex's memory: one suite over ours and LlamaIndex's own buffer; ours under an agent and in their `Memory`."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip(
        "llama_index.core", reason="the llama-index extra is not installed: pip install 'muniment[llama-index]'"
    )

    from llama_index.core.base.llms.types import ChatMessage, TextBlock
    from llama_index.core.chat_engine import SimpleChatEngine
    from llama_index.core.llms import MockLLM
    from llama_index.core.memory import ChatMemoryBuffer, Memory

    from muniment.integrations.llama_index import MunimentMemory, MunimentMemoryBlock

import muniment

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


@pytest.fixture(params=["muniment-memory", "muniment-sqlite", "llama-index-buffer"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "llama-index-buffer":
        yield ChatMemoryBuffer.from_defaults(token_limit=4000, tokenizer_fn=str.split)
        return
    with muniment.open(":memory:" if request.param == "muniment-memory" else tmp_path / "a.db") as opened:
        yield MunimentMemory.from_defaults(mem=opened, user_id="ana", session_id="s1")


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def assistant(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


TURNS = [
    user("I moved to Berlin in May."),
    assistant("How nice."),
    ChatMessage(role="tool", content="12 °C", additional_kwargs={"name": "weather", "tool_call_id": "c1"}),
    ChatMessage(role="user", blocks=[TextBlock(text="one"), TextBlock(text="two")]),
    ChatMessage(role="system", content="be brief"),
]


def test_messages_come_back_as_they_were(memory: Any) -> None:
    assert memory.get_all() == []
    for message in TURNS[:2]:
        memory.put(message)
    memory.put_messages(TURNS[2:])
    assert memory.get_all() == TURNS


def test_others_may_be_set_in_their_place(memory: Any) -> None:
    memory.set(TURNS[:2])
    assert memory.get_all() == TURNS[:2]
    memory.set(TURNS[:4])
    assert memory.get_all() == TURNS[:4]
    memory.set([user("anew")])
    assert memory.get_all() == [user("anew")]


def test_a_reset_begins_anew(memory: Any) -> None:
    memory.put_messages(TURNS)
    memory.reset()
    assert memory.get_all() == []
    memory.put(user("again"))
    assert memory.get_all() == [user("again")]


def test_what_is_got_ends_with_what_was_said(memory: Any) -> None:
    memory.put_messages(TURNS[:2])
    assert memory.get("Where do I live?")[-2:] == TURNS[:2]


def test_the_same_with_await(memory: Any) -> None:
    async def work() -> None:
        await memory.aput(TURNS[0])
        await memory.aput_messages(TURNS[1:2])
        assert await memory.aget_all() == TURNS[:2]
        assert (await memory.aget("Where?"))[-1] == TURNS[1]
        await memory.areset()
        assert await memory.aget_all() == []

    asyncio.run(work())


# -- what only ours does ------------------------------------------------------------------------------


def test_another_session_is_told(mem: muniment.Memory) -> None:
    MunimentMemory.from_defaults(mem=mem, user_id="ana", session_id="s1").put_messages(TURNS[:2])
    later = MunimentMemory.from_defaults(mem=mem, user_id="ana", session_id="s2", max_tokens=512)
    told = later.get("Where do I live?")
    assert told[0].role.value == "system"
    assert "Berlin" in str(told[0].content)
    other = MunimentMemory.from_defaults(mem=mem, user_id="ben", session_id="s2")
    assert "Berlin" not in "".join(str(each.content) for each in other.get("Where do I live?"))


def test_the_window_begins_with_the_user(mem: muniment.Memory) -> None:
    memory = MunimentMemory.from_defaults(mem=mem, user_id="ana", session_id="s1", messages_max=3)
    memory.put_messages([user("a"), assistant("b"), user("c"), assistant("d")])
    assert memory.get("x")[-2:] == [user("c"), assistant("d")]
    assert user("a") not in memory.get("x")


def test_a_chat_engine_talks_through_it(mem: muniment.Memory) -> None:
    memory = MunimentMemory.from_defaults(mem=mem, user_id="ana", session_id="s1")
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)
    engine.chat("My cat is called Toby.")
    assert [each.role.value for each in memory.get_all()] == ["user", "assistant"]
    assert [hit.text for hit in memory.run.search("the cat Toby") if hit.role == "user"] == ["My cat is called Toby."]


def test_their_own_memory_takes_the_block(mem: muniment.Memory) -> None:
    async def work() -> None:
        before = MunimentMemoryBlock(mem=mem, user_id="ana", session_id="s0")
        await before.aput(TURNS[:2])
        block = MunimentMemoryBlock(mem=mem, user_id="ana", session_id="s1", max_tokens=512)
        theirs = Memory.from_defaults(session_id="s1", memory_blocks=[block], token_limit=4000, tokenizer_fn=str.split)
        await theirs.aput(user("Where do I live?"))
        assert any("Berlin" in str(each.content) for each in await theirs.aget())
        await theirs.sql_store._async_engine.dispose()  # type: ignore[attr-defined]

    asyncio.run(work())


def test_erased_is_erased(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db") as mem:
        memory = MunimentMemory.from_defaults(mem=mem, user_id="ana", session_id="s1", erase=True)
        blocks = [TextBlock(text="plugh"), TextBlock(text="b")]
        memory.put_messages([user("xyzzy"), ChatMessage(role="user", blocks=blocks)])
        memory.reset()
        assert memory.get_all() == []
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"xyzzy" not in held
    assert b"plugh" not in held
