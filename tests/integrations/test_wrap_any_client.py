"""Clients that are nobody's: stubs, instrumented ones, those of compatible servers. What they have is what counts."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import muniment
from muniment.errors import InvalidInput

ASKED = [{"role": "user", "content": "Where do I live?"}]
TOLD = "I live in Berlin."


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        opened.run(user_id="ana", session_id="s0").observe("user", TOLD)
        yield opened


def chat_answer(text: str = "In Berlin.") -> Any:
    call = SimpleNamespace(id="c1", type="function", function=SimpleNamespace(name="map", arguments="{}"))
    message = SimpleNamespace(content=text, tool_calls=[call], refusal=None)
    return SimpleNamespace(choices=[SimpleNamespace(message=message)])


def chunks() -> list[Any]:
    deltas = [{"content": "In "}, {"content": "Berlin."}]
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    return [*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]


class Completions:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    def create(self, **given: Any) -> Any:
        self.asked.append(given)
        return self.answer(given) if callable(self.answer) else self.answer


class AsyncCompletions(Completions):
    async def create(self, **given: Any) -> Any:
        return super().create(**given)


def chat(completions: Any) -> Any:
    return SimpleNamespace(chat=SimpleNamespace(completions=completions), name="stub")


def said(mem: muniment.Memory) -> list[str | None]:
    return [entry.content for entry in mem.ledger.entries(user_id="ana", session_id="s1") if entry.kind == "message"]


def wrapped(client: Any, mem: Any) -> Any:
    return muniment.wrap(client, mem, user_id="ana", session_id="s1", on_error="closed")


def test_a_stub_of_chat_completions(mem: muniment.Memory) -> None:
    completions = Completions(chat_answer())
    client = wrapped(chat(completions), mem)
    answer = client.chat.completions.create(model="any", messages=ASKED)
    assert answer.choices[0].message.content == "In Berlin."
    assert TOLD in completions.asked[0]["messages"][0]["content"]
    assert said(mem) == ["Where do I live?", "In Berlin."]
    assert answer.muniment_build_id == client.last_build.id
    assert client.name == "stub"


def test_an_answer_of_plain_data(mem: muniment.Memory) -> None:
    completions = Completions({"choices": [{"message": {"role": "assistant", "content": "In Berlin."}}]})
    wrapped(chat(completions), mem).chat.completions.create(model="any", messages=ASKED)
    assert said(mem) == ["Where do I live?", "In Berlin."]


@pytest.mark.parametrize("content", [[SimpleNamespace(type="text", text="In Berlin.")], "In Berlin."])
def test_a_stub_of_messages(mem: muniment.Memory, content: Any) -> None:
    messages = Completions(SimpleNamespace(content=content))
    client = wrapped(SimpleNamespace(messages=messages), mem)
    client.messages.create(model="any", max_tokens=100, messages=ASKED)
    assert TOLD in str(messages.asked[0]["messages"])
    assert said(mem) == ["Where do I live?", "In Berlin."]


def test_a_stub_of_responses(mem: muniment.Memory) -> None:
    text = SimpleNamespace(type="output_text", text="In Berlin.")
    item = SimpleNamespace(type="message", role="assistant", content=[text])
    responses = Completions(SimpleNamespace(output=[item]))
    client = wrapped(SimpleNamespace(responses=responses), mem)
    client.responses.create(model="any", input="Where do I live?")
    assert TOLD in responses.asked[0]["instructions"]
    assert said(mem) == ["Where do I live?", "In Berlin."]


def decorated(completions: Any) -> Any:
    """As tracers do it: a plain function around the call, which says by `__wrapped__` what it is around."""
    held = completions.create
    completions.create = functools.wraps(held)(lambda **given: held(**given))
    return completions


class Called:
    """A call that is an object."""

    def __init__(self, held: Any) -> None:
        self._held = held

    async def __call__(self, **given: Any) -> Any:
        return await self._held(**given)


def hidden(completions: Any) -> Any:
    """A plain function whose answer is awaited, and nothing says so."""
    held = completions.create
    completions.create = lambda **given: held(**given)
    return completions


def called(completions: Any) -> Any:
    completions.create = Called(completions.create)
    return completions


@pytest.mark.parametrize("change", [lambda same: same, decorated, called, hidden])
@pytest.mark.parametrize("streams", [False, True])
def test_an_async_client_is_known_by_its_call(mem: muniment.Memory, change: Any, streams: bool) -> None:
    async def events() -> AsyncIterator[Any]:
        for chunk in chunks():
            yield chunk

    async def run() -> None:
        completions = AsyncCompletions(lambda _given: events() if streams else chat_answer())
        client = wrapped(chat(change(completions)), mem)
        asked = client.chat.completions.create(model="any", messages=ASKED, **({"stream": True} if streams else {}))
        answer = await asked
        if streams:
            assert len([chunk async for chunk in answer]) == 3

    asyncio.run(run())
    assert said(mem) == ["Where do I live?", "In Berlin."]


class OwnIterator:
    """A stream that is its own iterator."""

    def __init__(self) -> None:
        self._rest = chunks()

    def __iter__(self) -> OwnIterator:
        return self

    def __next__(self) -> Any:
        if not self._rest:
            raise StopIteration
        return self._rest.pop(0)


class Slotted:
    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = chunks()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rest)


@pytest.mark.parametrize(
    "make", [chunks, lambda: iter(chunks()), lambda: (each for each in chunks()), OwnIterator, Slotted]
)
@pytest.mark.parametrize("by_step", [False, True])
def test_a_stream_is_whatever_iterates(mem: muniment.Memory, make: Any, by_step: bool) -> None:
    client = wrapped(chat(Completions(lambda _given: make())), mem)
    stream = client.chat.completions.create(model="any", messages=ASKED, stream=True)
    if by_step and make is not Slotted:
        events = [next(stream) for _ in range(3)]
        assert next(stream, None) is None
    else:
        events = list(stream)
    assert events == chunks()
    assert said(mem) == ["Where do I live?", "In Berlin."]


def test_a_stream_that_was_left_keeps_what_came(mem: muniment.Memory) -> None:
    client = wrapped(chat(Completions(lambda _given: (each for each in chunks()))), mem)
    for _ in client.chat.completions.create(model="any", messages=ASKED, stream=True):
        break
    assert said(mem) == ["Where do I live?", "In "]


@pytest.mark.parametrize("other", [object(), SimpleNamespace(chat=SimpleNamespace()), SimpleNamespace(messages=[])])
def test_a_client_with_no_such_call_is_refused_with_a_hint(mem: muniment.Memory, other: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot be wrapped: it has no chat") as refused:
        muniment.wrap(other, mem, user_id="ana")
    assert "run.record" in refused.value.hint


def test_a_wrapped_client_is_not_wrapped_again(mem: muniment.Memory) -> None:
    with pytest.raises(InvalidInput, match="already"):
        wrapped(wrapped(chat(Completions(chat_answer())), mem), mem)
