"""Google's ADK with the real package: one suite over its services and ours, and its runner with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.connected import over_http

pytest.importorskip("google.adk", reason="the google-adk extra is not installed: pip install 'muniment[google-adk]'")

from google.adk.agents import Agent, SequentialAgent
from google.adk.apps import App
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import load_memory, preload_memory
from google.genai import types

import muniment
from muniment.integrations.google_adk import MunimentMemoryService, MunimentPlugin, MunimentSessionService

pytestmark = pytest.mark.filterwarnings("ignore")

BERLIN = "I moved to Berlin in May."
APP: Any = {"app_name": "shop", "user_id": "ana"}


def wait(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


@pytest.fixture(params=["muniment", "muniment-http", "adk"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with ExitStack() as stack:
        if request.param == "adk":
            yield InMemorySessionService()
            return
        opened = stack.enter_context(muniment.open(tmp_path / "a.db"))
        yield MunimentSessionService(opened if request.param == "muniment" else over_http(opened, tmp_path, stack))


def said(text: str, author: str = "user", **more: Any) -> Event:
    role = "user" if author == "user" else "model"
    return Event(author=author, content=types.Content(role=role, parts=[types.Part(text=text)]), **more)


# -- the kit's contract, for its own service and ours ---------------------------------------------------------------


def test_sessions_come_and_go(service: Any) -> None:
    async def work() -> None:
        assert await service.get_session(**APP, session_id="s1") is None
        made = await service.create_session(**APP, session_id=" s1 ", state={"k": [1, {"a": None}]})
        assert (made.id, made.state, made.events) == ("s1", {"k": [1, {"a": None}]}, [])
        assert await service.get_session(**APP, session_id="s1") == made
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**APP, session_id="s1")
        other = await service.create_session(**APP)
        assert other.id
        assert await service.get_session(app_name="shop", user_id="ben", session_id="s1") is None
        assert await service.get_session(app_name="desk", user_id="ana", session_id="s1") is None
        await service.delete_session(**APP, session_id="s1")
        await service.delete_session(**APP, session_id="s1")
        assert await service.get_session(**APP, session_id="s1") is None
        with pytest.raises(SessionNotFoundError):
            await service.append_event(made, said("too late"))
        again = await service.create_session(**APP, session_id="s1")
        assert (again.state, again.events) == ({}, [])
        event = said("once more", id="e1")
        await service.append_event(again, event)
        assert [each.id for each in (await service.get_session(**APP, session_id="s1")).events] == ["e1"]

    wait(work())


def test_events_come_back_as_they_were(service: Any) -> None:
    async def work() -> None:
        session = await service.create_session(**APP, session_id="s1")
        call = types.Part(function_call=types.FunctionCall(id="c1", name="weather", args={"city": "Berlin"}))
        back = types.Part(function_response=types.FunctionResponse(id="c1", name="weather", response={"c": 12}))
        events = [
            said("How warm is it?", invocation_id="i1", timestamp=1700000000.123),
            Event(author="bot", content=types.Content(role="model", parts=[call]), long_running_tool_ids={"c1"}),
            Event(author="bot", content=types.Content(role="user", parts=[back])),
            Event(
                author="bot",
                content=types.Content(role="model", parts=[types.Part(text="hm", thought=True), types.Part(text="12")]),
            ),
            Event(
                author="user",
                content=types.Content(
                    role="user", parts=[types.Part.from_bytes(data=b"\x00\xff", mime_type="image/png")]
                ),
            ),
            Event(
                author="bot",
                actions=EventActions(artifact_delta={"f": 1}, escalate=True),
                error_code="E",
                partial=False,
            ),
            said("It is 12 °C.", "bot", branch="a.b", custom_metadata={"k": 1}, turn_complete=True),
        ]
        for event in events:
            await service.append_event(session, event)
        await service.append_event(session, said("It is", "bot", partial=True))
        await service.append_event(session, events[-1])
        got = await service.get_session(**APP, session_id="s1")
        assert got.events == events
        assert got == session
        assert got.last_update_time == events[-1].timestamp

    wait(work())


PARTS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [1, 2, 3, 4, 5]),
    ({"num_recent_events": 0}, []),
    ({"num_recent_events": 3}, [3, 4, 5]),
    ({"after_timestamp": 4.0}, [4, 5]),
    ({"after_timestamp": 50.0}, []),
    ({"after_timestamp": 4.0, "num_recent_events": 3}, [4, 5]),
]


def test_part_of_a_session(service: Any) -> None:
    async def work() -> None:
        session = await service.create_session(**APP, session_id="s1")
        for number in range(1, 6):
            await service.append_event(session, Event(author="user", timestamp=number))
        for config, kept in PARTS:
            got = await service.get_session(**APP, session_id="s1", config=GetSessionConfig(**config))
            assert [event.timestamp for event in got.events] == kept, config

    wait(work())


def test_state_is_the_sessions_the_users_and_the_apps(service: Any) -> None:
    async def work() -> None:
        first = await service.create_session(
            **APP, session_id="s1", state={"a": 1, "user:b": 2, "app:c": 3, "temp:d": 4}
        )
        assert {key: value for key, value in first.state.items() if key != "temp:d"} == {
            "a": 1,
            "user:b": 2,
            "app:c": 3,
        }
        delta = {"a": 5, "user:b": 6, "app:c": None, "temp:d": 8, "e": {"x": [1.5]}}
        event = Event(author="bot", actions=EventActions(state_delta=delta))
        await service.append_event(first, event)
        assert first.state["temp:d"] == 8, "for the rest of the invocation"
        assert "temp:d" not in event.actions.state_delta
        second = await service.create_session(**APP, session_id="s2")
        assert second.state == {"user:b": 6, "app:c": None}
        bens = await service.create_session(app_name="shop", user_id="ben", session_id="s1")
        assert bens.state == {"app:c": None}
        elsewhere = await service.create_session(app_name="desk", user_id="ana", session_id="s1")
        assert elsewhere.state == {}
        got = await service.get_session(**APP, session_id="s1")
        assert got.state == {"a": 5, "e": {"x": [1.5]}, "user:b": 6, "app:c": None}
        assert await service.get_user_state(**APP) == {"b": 6}
        assert await service.get_user_state(app_name="shop", user_id="eva") == {}

    wait(work())


def test_lists_of_sessions(service: Any) -> None:
    async def work() -> None:
        for user, id_ in (("ana", "s1"), ("ana", "s2"), ("ben", "s1")):
            await service.create_session(app_name="shop", user_id=user, session_id=id_, state={"k": user + id_})
        await service.create_session(app_name="desk", user_id="ana", session_id="d1")
        first = await service.get_session(**APP, session_id="s1")
        await service.append_event(first, said("hello", timestamp=first.last_update_time + 100))
        listed = (await service.list_sessions(**APP)).sessions
        assert [(each.id, each.state, each.events) for each in listed] == [
            ("s2", {"k": "anas2"}, []),
            ("s1", {"k": "anas1"}, []),
        ]
        everyone = (await service.list_sessions(app_name="shop")).sessions
        assert sorted((each.user_id, each.id) for each in everyone) == [("ana", "s1"), ("ana", "s2"), ("ben", "s1")]
        await service.delete_session(**APP, session_id="s2")
        assert [each.id for each in (await service.list_sessions(**APP)).sessions] == ["s1"]
        assert (await service.list_sessions(app_name="none")).sessions == []

    wait(work())


@pytest.fixture(params=["muniment", "adk"])
def remembering(request: pytest.FixtureRequest, mem: muniment.Memory) -> Any:
    return InMemoryMemoryService() if request.param == "adk" else MunimentMemoryService(mem)


def test_memory_is_found_added_once_and_deleted(remembering: Any) -> None:
    async def work() -> None:
        session = await InMemorySessionService().create_session(**APP, session_id="s1")
        session.events += [said(BERLIN, id="e1"), said("I like ramen.", id="e2"), Event(author="bot")]
        if isinstance(remembering, MunimentMemoryService):  # the kit's own keeps what only streams
            session.events.append(said("Berlin, as it str", id="e9", partial=True))
        for _ in range(2):
            await remembering.add_session_to_memory(session)
        await remembering.add_events_to_memory(
            **APP, events=[said("Bruno lives in Berlin too.", id="e3")], session_id="s2"
        )
        found = (await remembering.search_memory(**APP, query="Berlin")).memories[:2]
        assert sorted(each.content.parts[0].text for each in found) == ["Bruno lives in Berlin too.", BERLIN]
        assert all(each.id and each.author == "user" and each.timestamp for each in found)
        for app, user in (("shop", "ben"), ("desk", "ana")):
            assert (await remembering.search_memory(app_name=app, user_id=user, query="Berlin")).memories == []
        for each in found:
            await remembering.delete_memory(**APP, memory_id=each.id)
        await remembering.add_session_to_memory(session)
        left = (await remembering.search_memory(**APP, query="Who likes ramen, and who is in Berlin?")).memories
        assert [each.content.parts[0].text for each in left] == ["I like ramen."], "what was deleted stays away"

    wait(work())


def test_memories_are_added_directly(mem: muniment.Memory) -> None:
    async def work() -> None:
        service = MunimentMemoryService(mem)
        content = types.Content(role="user", parts=[types.Part(text=BERLIN)])
        entry = MemoryEntry(content=content, author="ana", timestamp="2026-05-02T10:00:00Z")
        await service.add_memory(**APP, memories=[entry])
        (found,) = (await service.search_memory(**APP, query="Where did she move?")).memories
        assert found.timestamp is not None
        assert found.timestamp.startswith("2026-05-02")
        assert found.custom_metadata["sources"] == [found.id]
        assert 0 < found.custom_metadata["score"] <= 1

    wait(work())


# -- with the kit's runner --------------------------------------------------------------------------------------------


class Script(BaseLlm):
    """A model that says what it is told to, and keeps what it was asked."""

    answers: list[Any]
    asked: list[list[types.Content]]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.append([content.model_copy(deep=True) for content in llm_request.contents])
        answer = self.answers.pop(0)
        part = types.Part(text=answer) if isinstance(answer, str) else types.Part(function_call=answer)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def weather(city: str) -> dict[str, Any]:
    """How warm it is."""
    return {"celsius": 12, "city": city}


def runner_of(mem: Any, model: Script, *, tools: Any = (), sessions: Any = None, plugins: Any = None) -> Runner:
    agent = Agent(name="helper", model=model, tools=list(tools))
    return Runner(
        app=App(name="shop", root_agent=agent, plugins=[MunimentPlugin(mem)] if plugins is None else plugins),
        session_service=sessions or MunimentSessionService(mem),
        memory_service=MunimentMemoryService(mem),
        auto_create_session=True,
    )


async def talk(runner: Runner, text: str, session: str = "s1", user: str = "ana") -> list[Event]:
    message = types.Content(role="user", parts=[types.Part(text=text)])
    return [event async for event in runner.run_async(user_id=user, session_id=session, new_message=message)]


def told(contents: list[types.Content]) -> str:
    return "\n".join(part.text or "" for content in contents for part in content.parts or ())


@pytest.mark.soak
@pytest.mark.parametrize("sessions", ["ours", "theirs"])
def test_a_later_session_is_told_and_the_answer_leads_back(mem: muniment.Memory, sessions: str) -> None:
    async def work() -> None:
        model = Script(model="script", answers=["Noted.", "In Berlin [1].", "You asked.", "No idea."], asked=[])
        runner = runner_of(mem, model, sessions=None if sessions == "ours" else InMemorySessionService())
        await talk(runner, BERLIN)
        (answer,) = await talk(runner, "Where do I live?", "s2")
        whole = told(model.asked[-1])
        assert whole.count(BERLIN) == 1
        assert whole.count("Where do I live?") == 1
        assert whole.index(BERLIN) < whole.index("Where do I live?")
        (entry,) = [
            e
            for e in mem.ledger.entries(user_id="ana", session_id="s2", tenant_id="shop")
            if e.content == "In Berlin [1]."
        ]
        assert entry.cited is not None
        assert entry.cited.build_id == answer.custom_metadata["muniment_build_id"]
        (why,) = mem.why(entry.id, tenant_id="shop")
        assert [mem.ledger.content(id_, tenant_id="shop") for id_ in why.evidence_ids] == [BERLIN]
        await talk(runner, "What did I ask about my home?", "s2")
        whole = told(model.asked[-1])
        assert whole.count("Where do I live?") == 1, "nothing of the live session twice"
        assert whole.count("In Berlin [1].") == 1
        kept = await runner.session_service.get_session(**APP, session_id="s2")
        assert BERLIN not in str(kept), "no session keeps a packet"
        await talk(runner, "Where do I live?", "s1", "ben")
        assert "Berlin" not in told(model.asked[-1])
        entries = list(mem.ledger.entries(user_id="ana", session_id="s2", tenant_id="shop"))
        assert [e.content for e in entries if e.kind == "message"] == [
            "Where do I live?", "In Berlin [1].", "What did I ask about my home?", "You asked.",
        ]  # fmt: skip
        assert mem.verify(tenant_id="shop").ok

    wait(work())


def test_a_question_keeps_its_packet_while_tools_are_asked(mem: muniment.Memory) -> None:
    async def work() -> None:
        call = types.FunctionCall(id="c1", name="weather", args={"city": "Berlin"})
        model = Script(model="script", answers=["Noted.", call, call, "12 °C."], asked=[])
        runner = runner_of(mem, model, tools=[weather])
        await talk(runner, BERLIN, "old")
        await talk(runner, "How warm is it where I live?")
        first, *rest = model.asked[1:]
        assert BERLIN in told(first)
        assert len(rest) == 2
        for request in rest:
            assert request[: len(first)] == first, "a cache keeps what was sent"
            assert told(request).count(BERLIN) == 1
        tools = [e.tool for e in mem.ledger.entries(user_id="ana", session_id="s1", tenant_id="shop") if e.tool]
        assert [tool.name for tool in tools] == ["weather", "weather"]

    wait(work())


def test_agents_that_follow_one_another_are_told_nothing_twice(mem: muniment.Memory) -> None:
    async def work() -> None:
        first = Script(model="script", answers=["Berlin is cold in May.", "Yes, cold."], asked=[])
        second = Script(model="script", answers=["Take a warm coat.", "Yes, the coat."], asked=[])
        agents = [Agent(name=name, model=model) for name, model in (("teller", first), ("packer", second))]
        root = SequentialAgent(name="both", sub_agents=agents)
        runner = Runner(
            app=App(name="shop", root_agent=root, plugins=[MunimentPlugin(mem)]),
            session_service=MunimentSessionService(mem),
            auto_create_session=True,
        )
        mem.run(user_id="ana", session_id="old", tenant_id="shop").observe("user", BERLIN)
        await talk(runner, "How is it in Berlin, and what do I pack?")
        whole = told(second.asked[-1])
        assert whole.count("Berlin is cold in May.") == 1, "the kit tells it in words of its own"
        assert whole.count("How is it in Berlin, and what do I pack?") == 1
        assert whole.index(BERLIN) < whole.index("How is it in Berlin, and what do I pack?")
        await talk(runner, "Is it cold in Berlin in May, and do I take a warm coat?")
        for model in (first, second):
            whole = told(model.asked[-1])
            assert whole.count("Berlin is cold in May.") == whole.count("Take a warm coat.") == 1

    wait(work())


@pytest.mark.parametrize("tool", [load_memory, preload_memory])
def test_the_kits_own_tools_search_what_other_sessions_said(mem: muniment.Memory, tool: Any) -> None:
    async def work() -> None:
        call = types.FunctionCall(id="c1", name="load_memory", args={"query": "where does the user live"})
        later = [call, "In Berlin."] if tool is load_memory else ["In Berlin."]
        model = Script(model="script", answers=["Noted.", *later], asked=[])
        runner = runner_of(mem, model, tools=[tool], plugins=[])
        await talk(runner, BERLIN)
        await talk(runner, "Where do I live?", "s2")
        whole = str([content.model_dump() for content in model.asked[-1]])
        assert BERLIN in whole
        assert whole.count("Where do I live?") == 1, "the live session is not found"
        hits = mem.run(user_id="ana", tenant_id="shop").search("Berlin", k=20)
        assert [hit.text for hit in hits].count(BERLIN) == 1
        assert not [hit for hit in hits if hit.role == "tool"], "what memory answered is no news"

    wait(work())


def test_what_is_erased_is_gone(tmp_path: Path) -> None:
    async def work() -> None:
        with muniment.open(tmp_path / "a.db") as mem:
            service = MunimentSessionService(mem, erase=True)
            session = await service.create_session(**APP, session_id="s1", state={"secret": "xyzzy"})
            await service.append_event(session, said("plugh is here", id="e1"))
            await service.delete_session(**APP, session_id="s1")
            assert await service.get_session(**APP, session_id="s1") is None
            again = await service.create_session(**APP, session_id="s1")
            await service.append_event(again, said("hello"))
            got = await service.get_session(**APP, session_id="s1")
            assert got is not None
            assert len(got.events) == 1
            assert mem.verify(tenant_id="shop").ok

    wait(work())
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"xyzzy" not in held
    assert b"plugh" not in held


def test_apps_may_share_a_tenant(mem: muniment.Memory) -> None:
    async def work() -> None:
        service = MunimentSessionService(mem, tenant_id="default")
        for app in ("shop", "desk"):
            session = await service.create_session(app_name=app, user_id="ana", session_id="s1", state={"user:k": app})
            await service.append_event(session, said(f"{BERLIN} ({app})"))
        got = await service.get_session(**APP, session_id="s1")
        assert got is not None
        assert [event.content.parts[0].text for event in got.events] == [f"{BERLIN} (shop)"]  # type: ignore[union-attr,index]
        assert got.state == {"user:k": "shop"}
        memory = MunimentMemoryService(mem, tenant_id="default")
        assert len((await memory.search_memory(app_name="new", user_id="ana", query="Berlin")).memories) == 2
        assert "Berlin" in mem.run(user_id="ana").compose("responder", query="Where do I live?").text

    wait(work())


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_where_memory_fails(mem: muniment.Memory, on_error: Any) -> None:
    async def work() -> None:
        model = Script(model="script", answers=["Hello."], asked=[])
        runner = runner_of(
            mem, model, sessions=InMemorySessionService(), plugins=[MunimentPlugin(mem, on_error=on_error)]
        )
        mem.close()
        if on_error == "open":
            assert [event.content.parts[0].text for event in await talk(runner, "Hi.")] == ["Hello."]
            return
        with pytest.raises(Exception, match="closed"):
            await talk(runner, "Hi.")
        assert model.asked == []

    wait(work())
