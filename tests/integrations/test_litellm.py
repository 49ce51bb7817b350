"""LiteLLM: its calls through the proxy, and the callback in its own calls, by the real package."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it looks for prices on the network
litellm = pytest.importorskip(
    "litellm", reason="LITELLM TESTS SKIPPED: no litellm here: pip install -e '.[litellm]' in an environment of its own"
)

import muniment  # noqa: E402
from model_server import Chat, Messages, Responses, Server, serving  # noqa: E402
from muniment.errors import InvalidInput, StorageFailure  # noqa: E402
from muniment.integrations.litellm import MunimentLogger  # noqa: E402
from proxy_room import proxying, stored  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
TOLD = "I moved to Berlin in May."
ASKED = [{"role": "user", "content": "Where do I live?"}]


@pytest.fixture
def upstream() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as store:
        store.run(user_id="ana", session_id="before").observe("user", TOLD)
        yield store


@pytest.fixture(autouse=True)
def _no_callbacks() -> Iterator[None]:
    litellm.callbacks = []
    yield
    litellm.logging_callback_manager._reset_all_callbacks()
    litellm.callbacks = []


def test_its_calls_through_the_proxy(upstream: Server, mem: muniment.Memory) -> None:
    """Sync and async, OpenAI's way and Anthropic's, whole and streamed."""
    chat, messages = Chat(), Messages()
    upstream.answers += [chat.says("In Berlin."), chat.streams("In ", "Berlin."), messages.says("In Berlin.")]
    with proxying(mem, upstream.url) as proxy:
        headers = {"muniment-user": "ana"}
        near = {"model": "openai/small", "api_base": f"{proxy.url}/v1", "api_key": "k", "messages": ASKED}
        answer = litellm.completion(**near, extra_headers=headers | {"muniment-session": "one"})
        assert answer.choices[0].message.content == "In Berlin."

        async def streamed() -> str:
            parts = await litellm.acompletion(**near, stream=True, extra_headers=headers | {"muniment-session": "two"})
            return "".join([part.choices[0].delta.content or "" async for part in parts])

        assert asyncio.run(streamed()) == "In Berlin."
        other = near | {"model": "anthropic/claude-small", "api_base": proxy.url}
        answer = litellm.completion(**other, max_tokens=9, extra_headers=headers | {"muniment-session": "three"})
        assert answer.choices[0].message.content == "In Berlin."
    assert all(TOLD.encode() in each.body for each in upstream.received)
    for session in ("one", "two", "three"):
        assert stored(mem, session=session) == [("user", "Where do I live?"), ("assistant", "In Berlin.")]


async def _settled(mem: muniment.Memory, count: int) -> None:
    """LiteLLM tells its callbacks of answers in the background."""
    for _ in range(500):
        if len(stored(mem)) >= count:
            return
        await asyncio.sleep(0.02)


def test_the_callback_records_and_tells(upstream: Server, mem: muniment.Memory) -> None:
    chat = Chat()
    call = chat.says("", (("call_1", "weather", {"city": "Berlin"}),))
    upstream.answers += [chat.says("In Berlin."), chat.streams("Quite ", "sure."), call, chat.says("12 degrees.")]

    async def talk() -> None:
        litellm.callbacks = [MunimentLogger(mem)]
        near = {"model": "openai/small", "api_base": f"{upstream.url}/v1", "api_key": "k"}
        near["metadata"] = {"user_id": "ana"}  # type: ignore[assignment]
        messages: list[Any] = list(ASKED)
        answer = await litellm.acompletion(**near, messages=messages)
        messages += [answer.choices[0].message.model_dump(), {"role": "user", "content": "Sure?"}]
        await _settled(mem, 3)
        parts = await litellm.acompletion(**near, messages=messages, stream=True)
        text = "".join([part.choices[0].delta.content or "" async for part in parts])
        await _settled(mem, 5)
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "How warm?"}]
        answer = await litellm.acompletion(**near, messages=messages)
        await _settled(mem, 6)
        messages += [answer.choices[0].message.model_dump(), chat.result("call_1", "12 °C")]
        await litellm.acompletion(**near, messages=messages)
        await _settled(mem, 8)

    asyncio.run(talk())
    assert TOLD in upstream.asked[0]["messages"][0]["content"]
    sent = upstream.asked[0]["messages"]
    assert upstream.asked[1]["messages"][: len(sent)] == sent, "what was sent stays where it was sent"
    asked = upstream.asked[2]["messages"]
    assert asked == upstream.asked[3]["messages"][: len(asked)], "a question keeps its packet while tools are asked"
    assert stored(mem)[1:] == [
        ("user", "Where do I live?"), ("assistant", "In Berlin."), ("user", "Sure?"), ("assistant", "Quite sure."),
        ("user", "How warm?"), ("tool", "12 °C"), ("assistant", "12 degrees."),
    ]  # fmt: skip
    assert len({entry.scope.session_id for entry in mem.ledger.entries(user_id="ana")}) == 2
    assert mem.verify().ok


def test_the_callback_and_responses_and_nobody(upstream: Server, mem: muniment.Memory) -> None:
    upstream.answers += [Responses().says("In Berlin."), Chat().says("No idea.")]

    async def talk() -> None:
        litellm.callbacks = [MunimentLogger(mem)]
        near = {"model": "openai/small", "api_base": f"{upstream.url}/v1", "api_key": "k"}
        named = {"user_id": "ana", "session_id": "s1"}
        await litellm.aresponses(**near, input="Where do I live?", litellm_metadata=named)
        await _settled(mem, 3)
        await litellm.acompletion(**near, messages=ASKED)

    asyncio.run(talk())
    assert TOLD in upstream.asked[0]["instructions"]
    assert stored(mem, session="s1") == [("user", "Where do I live?"), ("assistant", "In Berlin.")]
    assert upstream.asked[1]["messages"] == ASKED, "nobody's call passes memory by"


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_the_callback_where_memory_fails(
    upstream: Server, mem: muniment.Memory, monkeypatch: pytest.MonkeyPatch, on_error: Any
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise StorageFailure("the disk is gone")

    monkeypatch.setattr("muniment.handles.run.Run.record", fail)
    upstream.answers.append(Chat().says("No idea."))

    async def talk() -> Any:
        litellm.callbacks = [MunimentLogger(mem, user_id="ana", on_error=on_error)]
        near = {"model": "openai/small", "api_base": f"{upstream.url}/v1", "api_key": "k"}
        return await litellm.acompletion(**near, messages=ASKED, num_retries=0)

    if on_error == "open":
        assert asyncio.run(talk()).choices[0].message.content == "No idea."
        assert upstream.asked[0]["messages"] == ASKED
    else:
        with pytest.raises(Exception, match="the disk is gone"):
            asyncio.run(talk())
        assert upstream.asked == []
    with pytest.raises(InvalidInput):
        MunimentLogger(mem, on_error="perhaps")  # type: ignore[arg-type]
