"""One suite for sessions of the OpenAI Agents SDK: ours on two engines, and the SDK's own `SQLiteSession`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents", reason="the openai-agents extra is not installed: pip install 'muniment[openai-agents]'")

from agents import Agent, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, function_tool
from agents.memory import Session
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import muniment
from muniment.integrations.openai_agents import MunimentSession


@pytest.fixture(params=["muniment-memory", "muniment-sqlite", "agents-sqlite"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "agents-sqlite":
        made = SQLiteSession("chat", tmp_path / "own.db")
        yield made
        made.close()
        return
    with muniment.open(":memory:" if request.param == "muniment-memory" else tmp_path / "a.db") as mem:
        yield MunimentSession("chat", mem, user_id="ana")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


ITEMS: list[dict[str, Any]] = [
    user("How warm is it in Berlin?"),
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "ask the tool"}]},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Berlin"}', "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c1", "output": "12 °C"},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It is 12 °C.", "annotations": []}],
    },
    {"role": "user", "content": [{"type": "input_text", "text": "And in Rome?"}]},
    {"role": "system", "content": "be brief"},
    user(""),
]


def test_it_is_a_session(session: Any) -> None:
    assert isinstance(session, Session)
    assert session.session_id == "chat"


def test_items_come_back_as_they_were(session: Any) -> None:
    assert run(session.get_items()) == []
    run(session.add_items(ITEMS[:3]))
    run(session.add_items([]))
    run(session.add_items(ITEMS[3:]))
    assert run(session.get_items()) == ITEMS


@pytest.mark.parametrize("limit", [0, 1, 3, 8, 100])
def test_a_limit_takes_the_latest(session: Any, limit: int) -> None:
    run(session.add_items(ITEMS))
    assert run(session.get_items(limit)) == (ITEMS[-limit:] if limit else [])


def test_popping_takes_the_latest_away(session: Any) -> None:
    run(session.add_items([user("one"), user("two"), user("three")]))
    assert run(session.pop_item()) == user("three")
    assert run(session.pop_item()) == user("two")
    assert run(session.get_items()) == [user("one")]
    run(session.add_items([user("four")]))
    assert run(session.get_items()) == [user("one"), user("four")]
    assert [run(session.pop_item()) for _ in range(3)] == [user("four"), user("one"), None]


def test_a_cleared_session_begins_anew(session: Any) -> None:
    run(session.add_items([user("one"), user("two")]))
    run(session.clear_session())
    assert run(session.get_items()) == []
    assert run(session.pop_item()) is None
    run(session.clear_session())
    run(session.add_items([user("three")]))
    assert run(session.get_items()) == [user("three")]


def test_equal_items_are_two_items(session: Any) -> None:
    run(session.add_items([user("same"), user("same")]))
    run(session.pop_item())
    assert run(session.get_items()) == [user("same")]


def test_settings_may_limit(tmp_path: Path) -> None:
    with muniment.open(":memory:") as mem:
        session = MunimentSession("chat", mem, user_id="ana", session_settings={"limit": 2})
        run(session.add_items([user(str(n)) for n in range(5)]))  # type: ignore[misc]
        assert run(session.get_items()) == [user("3"), user("4")]


# -- with the SDK's own runner ------------------------------------------------------------------------


class Script(Model):
    """A model that says what it is told to, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        self.asked.append(input)
        return ModelResponse(output=[self.answers.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("not streamed here")


def says(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="msg", type="message", role="assistant", status="completed", content=[part])


def calls(name: str, arguments: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", call_id="c1", name=name, arguments=arguments)


@function_tool
def weather(city: str) -> str:
    """How warm it is."""
    return f"12 °C in {city}"


def talk(agent: Agent[Any], session: Any, text: str) -> str:
    config = RunConfig(tracing_disabled=True)
    return str(run(Runner.run(agent, text, session=session, run_config=config)).final_output)


def test_an_agent_talks_through_it(session: Any) -> None:
    model = Script(calls("weather", '{"city":"Berlin"}'), says("It is 12 °C."), says("You asked about Berlin."))
    agent = Agent(name="helper", model=model, tools=[weather])
    assert talk(agent, session, "How warm is it in Berlin?") == "It is 12 °C."
    assert talk(agent, session, "What did I ask?") == "You asked about Berlin."
    heard = [item.get("content") for item in model.asked[-1] if item.get("role") == "user"]
    assert heard == ["How warm is it in Berlin?", "What did I ask?"]
    assert [item.get("type", item.get("role")) for item in run(session.get_items())] == [
        "user",
        "function_call",
        "function_call_output",
        "message",
        "user",
        "message",
    ]


# -- what only ours does ------------------------------------------------------------------------------


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


def test_another_session_is_told_what_this_one_heard(mem: muniment.Memory) -> None:
    run(MunimentSession("s1", mem, user_id="ana").add_items([user("I moved to Berlin in May.")]))  # type: ignore[list-item]
    later = MunimentSession("s2", mem, user_id="ana")
    assert "Berlin" in later.run.compose("responder", query="Where do I live?").text
    other = MunimentSession("s2", mem, user_id="ben")
    assert "Berlin" not in other.run.compose("responder", query="Where do I live?").text


def test_tool_results_are_recorded_under_the_tools_name(mem: muniment.Memory) -> None:
    session = MunimentSession("s1", mem, user_id="ana")
    run(session.add_items(ITEMS[:3]))  # type: ignore[arg-type]
    run(session.add_items(ITEMS[3:4]))  # type: ignore[arg-type]
    tools = [entry.tool for entry in session.run.ledger.entries() if entry.tool is not None]
    assert [tool.name for tool in tools] == ["weather"]


def test_two_handles_see_the_same(mem: muniment.Memory) -> None:
    here, there = (MunimentSession("s1", mem, user_id="ana") for _ in range(2))
    run(here.add_items([user("one"), user("two")]))  # type: ignore[list-item]
    run(there.pop_item())
    assert run(here.get_items()) == [user("one")]
    assert run(MunimentSession("s1", mem, user_id="ben").get_items()) == []


def test_what_is_taken_back_stays_evidence(mem: muniment.Memory) -> None:
    session = MunimentSession("s1", mem, user_id="ana")
    run(session.add_items([user("My cat is called Toby.")]))  # type: ignore[list-item]
    run(session.clear_session())
    assert [hit.text for hit in session.run.search("cat called Toby")] == ["My cat is called Toby."]
    assert mem.verify().ok


def test_what_is_erased_is_gone(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db") as mem:
        session = MunimentSession("s1", mem, user_id="ana", erase=True)
        run(session.add_items([user("one xyzzy"), user("two plugh")]))  # type: ignore[list-item]
        assert run(session.pop_item()) == user("two plugh")
        assert run(session.get_items()) == [user("one xyzzy")]
        run(session.clear_session())
        run(session.clear_session())
        assert run(session.get_items()) == []
        run(session.add_items([user("three")]))  # type: ignore[list-item]
        assert run(session.get_items()) == [user("three")]
        assert mem.verify().ok
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"xyzzy" not in held
    assert b"plugh" not in held


def test_a_long_text_comes_back_whole(mem: muniment.Memory) -> None:
    session = MunimentSession("s1", mem, user_id="ana")
    long = "word " * 30_000
    run(session.add_items([user(long)]))  # type: ignore[list-item]
    assert run(session.get_items()) == [user(long)]
