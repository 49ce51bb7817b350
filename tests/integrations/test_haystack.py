"""Haystack with the real package: a pipeline and an Agent with a scripted chat generator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.connected import over_http

pytest.importorskip("haystack", reason="the haystack extra is not installed: pip install 'muniment[haystack]'")

from haystack import Pipeline, component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ImageContent, ToolCall
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

import muniment
from muniment.errors import Closed, InvalidInput
from muniment.integrations.haystack import (
    MunimentRecaller,
    MunimentStore,
    MunimentWriter,
    RecallHook,
    RecordHook,
    memory_tools,
)

pytestmark = pytest.mark.filterwarnings("ignore")

BERLIN = "I moved to Berlin in May."


@component
class Script:
    """A generator that says what it is told to, and keeps what it was asked."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers
        self.asked: list[list[ChatMessage]] = []

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        self.asked.append(list(messages))
        answer = self.answers.pop(0)
        if isinstance(answer, ToolCall):
            return {"replies": [ChatMessage.from_assistant(tool_calls=[answer])]}
        return {"replies": [ChatMessage.from_assistant(answer)]}


@pytest.fixture(params=["memory", "http"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[muniment.Memory]:
    with ExitStack() as stack:
        opened = stack.enter_context(muniment.open(":memory:"))
        yield opened if request.param == "memory" else over_http(opened, tmp_path, stack)


def user(text: str) -> ChatMessage:
    return ChatMessage.from_user(text)


def told(messages: list[ChatMessage]) -> str:
    return "\n".join(text for message in messages for text in message.texts)


def turns(mem: muniment.Memory, session: str, who: str = "ana") -> list[str]:
    entries = mem.ledger.entries(user_id=who, session_id=session)
    return [entry.content or "" for entry in entries if entry.kind in ("message", "tool_result")]


def pipeline_of(store: MunimentStore, llm: Any, **given: Any) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("recall", MunimentRecaller(store, **given))
    pipeline.add_component("llm", llm)
    pipeline.add_component("record", MunimentWriter(store, **given))
    pipeline.connect("recall.messages", "llm.messages")
    pipeline.connect("recall.messages", "record.messages")
    pipeline.connect("recall.build_id", "record.build_id")
    pipeline.connect("llm.replies", "record.replies")
    return pipeline


def ask(pipeline: Pipeline, messages: list[ChatMessage], session: str, who: str = "ana") -> dict[str, Any]:
    named = {"user_id": who, "session_id": session}
    answered: dict[str, Any] = pipeline.run({"recall": {"messages": messages, **named}, "record": named})
    return answered["record"]


def test_a_pipeline_is_told_and_the_answer_leads_back(mem: muniment.Memory) -> None:
    llm = Script(["Noted.", "In Berlin [1].", "You asked.", "No idea."])
    pipeline = pipeline_of(MunimentStore(mem), llm)
    ask(pipeline, [ChatMessage.from_system("Be brief."), user(BERLIN)], "s1")
    second = [ChatMessage.from_system("Be brief."), user("Where do I live?")]
    done = ask(pipeline, second, "s2")
    whole = told(llm.asked[-1])
    assert whole.count(BERLIN) == whole.count("Where do I live?") == 1
    assert whole.index("Be brief.") < whole.index(BERLIN) < whole.index("Where do I live?")
    assert len(done["event_ids"]) == 1
    (why,) = mem.why(done["event_ids"][0])
    assert [mem.ledger.content(id_) for id_ in why.evidence_ids] == [BERLIN]
    assert done["messages"] == [*second, ChatMessage.from_assistant("In Berlin [1].")], "no packet is handed on"
    before = llm.asked[-1]
    ask(pipeline, [*done["messages"], user("What did I ask about my home?")], "s2")
    whole = told(llm.asked[-1])
    assert whole.count("Where do I live?") == whole.count("In Berlin [1].") == 1, "nothing of the session twice"
    assert llm.asked[-1][: len(before) - 1] == before[:-1], "a cache keeps what was sent"
    assert turns(mem, "s2") == [
        "Where do I live?", "In Berlin [1].", "What did I ask about my home?", "You asked.",
    ]  # fmt: skip
    ask(pipeline, [user("Where do I live?")], "s1", "ben")
    assert "Berlin" not in told(llm.asked[-1])


def weather(city: str) -> str:
    """How warm it is."""
    return f"12 °C in {city}"


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("ids", [("c1", "c2"), (None, None)])
def test_an_agent_keeps_its_packet_while_tools_are_asked(is_async: bool, ids: tuple[str | None, str | None]) -> None:
    calls = [ToolCall("weather", {"city": "Berlin"}, id=id_) for id_ in ids]
    llm = Script(["Noted.", *calls, "It is 12 °C [1].", "As I said."])
    with muniment.open(":memory:") as mem:
        store = MunimentStore(mem)
        agent = Agent(
            chat_generator=llm,
            tools=[create_tool_from_function(weather)],
            system_prompt="Be brief.",
            hooks={"before_run": [RecallHook(store)], "after_run": [RecordHook(store)]},
        )

        def talk(messages: list[ChatMessage], session: str) -> list[ChatMessage]:
            context = {"user_id": "ana", "session_id": session}
            if is_async:
                return list(asyncio.run(agent.run_async(messages=messages, hook_context=context))["messages"])
            return list(agent.run(messages=messages, hook_context=context)["messages"])

        talk([user(BERLIN)], "old")
        answered = talk([user("How warm is it where I live?")], "s1")
        assert BERLIN not in told(answered), "the packet is taken out again"
        first, *rest = llm.asked[1:]
        assert BERLIN in told(first)
        assert len(rest) == 2
        for request in rest:
            assert request[: len(first)] == first
        said = ["How warm is it where I live?", "12 °C in Berlin", "12 °C in Berlin", "It is 12 °C [1]."]
        assert turns(mem, "s1") == said
        tools = [entry.tool for entry in mem.ledger.entries(user_id="ana", session_id="s1") if entry.tool]
        assert [(tool.name, tool.args) for tool in tools] == [("weather", {"city": "Berlin"})] * 2
        (entry,) = [e for e in mem.ledger.entries(user_id="ana", session_id="s1") if e.content == said[-1]]
        (why,) = mem.why(entry.id)
        assert [mem.ledger.content(id_) for id_ in why.evidence_ids] == [BERLIN]
        own = [message for message in answered if not message.is_from("system")]
        talk([*own, user("Sure?")], "s1")
        assert turns(mem, "s1") == [*said, "Sure?", "As I said."]
        assert told(llm.asked[-1]).count("How warm is it where I live?") == 1


def test_pictures_and_names_are_recorded_as_what_they_are() -> None:
    with muniment.open(":memory:") as mem:
        recaller = MunimentRecaller(MunimentStore(mem), user_id="ana", session_id="s1")
        picture = ImageContent(base64_image="aGk=", mime_type="image/png", validation=False)
        asked = ChatMessage.from_user(content_parts=["What is this?", picture], name="Ana", meta={"k": 1})
        mem.run(user_id="ana", session_id="old").observe("user", "What is this, a heron?")
        got = recaller.run(messages=[asked])["messages"]
        assert got[0].name == "Ana"
        assert got[0].images == [picture]
        again = recaller.run(messages=got)["messages"]
        assert told(again) == told(got), "a packet is not put before a packet"
        assert turns(mem, "s1")[0].startswith("What is this?")
        assert len(turns(mem, "s1")) == 1


def test_pipelines_are_written_into_files_and_read(tmp_path: Path) -> None:
    place = str(tmp_path / "a.db")
    store = MunimentStore(place, key=Secret.from_env_var("MUNIMENT_KEY", strict=False))
    pipeline = Pipeline()
    pipeline.add_component("recall", MunimentRecaller(store, user_id="ana", max_tokens=777, on_error="closed"))
    pipeline.add_component("record", MunimentWriter(store, user_id="ana"))
    pipeline.connect("recall.messages", "record.messages")
    read = Pipeline.loads(pipeline.dumps(), allowed_modules=["muniment.integrations.haystack"])
    assert read.to_dict() == pipeline.to_dict()
    done = read.run({"recall": {"messages": [user(BERLIN)], "session_id": "s1"}, "record": {"session_id": "s1"}})
    assert done["record"]["messages"] == [user(BERLIN)]
    for name in ("recall", "record"):
        read.get_component(name).close()
    with muniment.open(place) as mem:
        assert turns(mem, "s1") == [BERLIN]
    for hook in (RecallHook(store, user_id="ana"), RecordHook(store, session_id="s1")):
        assert type(hook).from_dict(hook.to_dict()).to_dict() == hook.to_dict()
    with muniment.open(":memory:") as opened, pytest.raises(InvalidInput, match="handed in open"):
        MunimentRecaller(MunimentStore(opened)).to_dict()


def test_whose_memory_it_is_must_be_said() -> None:
    with muniment.open(":memory:") as mem, pytest.raises(InvalidInput, match="session_id is not said"):
        MunimentRecaller(MunimentStore(mem), user_id="ana").run(messages=[user("Hi.")])


def test_a_model_searches_and_what_is_forgotten_is_gone() -> None:
    with muniment.open(":memory:") as mem:
        writer = MunimentWriter(MunimentStore(mem), user_id="ana", session_id="s1")
        (said,) = writer.run(messages=[user(BERLIN)])["event_ids"]
        search, propose = memory_tools(mem, user_id="ana")
        assert search.invoke(query="where she lives")[0]["id"] == said
        fact = {"key": "user.city", "value": "Berlin", "source_id": said, "quote": "moved to Berlin"}
        assert propose.invoke(**fact)["status"] == "proposed"
        writer.memory().forget(said)
        assert search.invoke(query="where she lives") == []


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_where_memory_fails(on_error: Any) -> None:
    mem = muniment.open(":memory:")
    llm = Script(["Hello."])
    pipeline = pipeline_of(MunimentStore(mem), llm, on_error=on_error)
    mem.close()
    if on_error == "open":
        assert told(ask(pipeline, [user("Hi.")], "s1")["messages"]) == "Hi.\nHello."
        return
    with pytest.raises(Exception, match="closed") as caught:
        ask(pipeline, [user("Hi.")], "s1")
    assert isinstance(caught.value, Closed) or isinstance(caught.value.__cause__, Closed)
    assert llm.asked == []
