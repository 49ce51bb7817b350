"""Strands Agents, by the real package and a scripted model: the plugin, the session manager, the memory store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "strands", reason="STRANDS TESTS SKIPPED: no strands-agents here; `make tools` installs it beside the product"
)

from connected import over_http
from framework_pages import play_page
from strands import Agent, tool
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.memory import MemoryManager
from strands.models import Model
from strands.types.content import Message

import muniment
from muniment.errors import InvalidInput, NotFound
from muniment.integrations.strands import (
    MunimentMemoryStore,
    MunimentPlugin,
    MunimentSessionManager,
)

pytestmark = pytest.mark.filterwarnings("ignore")
BERLIN = "I moved to Berlin in May."
ASKED = "Where do I live?"


class Script(Model):
    """A model that says what it is told to, and keeps what it was asked."""

    def __init__(self, *answers: str | dict[str, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[list[Any]] = []

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {"model_id": "script"}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        self.asked.append(deepcopy(messages))
        answer = self.answers.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(answer, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": answer}}}
        else:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": answer["id"], "name": answer["name"]}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": answer["input"]}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(answer, str) else "tool_use"}}


@tool
def weather(city: str) -> str:
    """How warm it is.

    Args:
        city: Where.
    """
    return f"12 °C in {city}"


CALL = {"id": "c1", "name": "weather", "input": '{"city": "Berlin"}'}


@pytest.fixture(params=["open", "connected"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[muniment.Memory]:
    with ExitStack() as stack:
        store = stack.enter_context(muniment.open(":memory:"))
        yield store if request.param == "open" else over_http(store, tmp_path, stack)


@pytest.fixture
def store() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as made:
        yield made


def agent_of(model: Script, **given: Any) -> Agent:
    return Agent(model=model, callback_handler=None, **given)


def with_plugin(mem: Any, model: Script, session: str, user: str = "ana", **given: Any) -> Agent:
    plugin = MunimentPlugin(mem, user_id=user, session_id=session, **given.pop("plugin", {}))
    return agent_of(model, plugins=[plugin], **given)


def with_both(mem: Any, model: Script, session: str, user: str = "ana", **given: Any) -> Agent:
    return with_plugin(
        mem, model, session, user, session_manager=MunimentSessionManager(session, mem, user_id=user), **given
    )


def told(messages: list[Any]) -> str:
    return "\n".join(block.get("text", "") for message in messages for block in message["content"])


def said(mem: Any, session: str, user: str = "ana") -> list[str]:
    entries = mem.ledger.entries(user_id=user, session_id=session)
    turns = [entry for entry in entries if entry.kind in ("message", "tool_result") and not entry.is_forgotten]
    return [mem.ledger.content(entry.id) for entry in turns]


@pytest.mark.parametrize("make", [with_plugin, with_both])
def test_a_later_session_is_told_and_the_answer_leads_back(mem: Any, make: Any) -> None:
    model = Script("Noted.", "In Berlin [1].", "You asked.", "No idea.")
    make(mem, model, "s1")(BERLIN)
    agent = make(mem, model, "s2")
    agent(ASKED)
    whole = told(model.asked[-1])
    assert whole.count(BERLIN) == 1
    assert whole.count(ASKED) == 1
    (answer,) = [e for e in mem.ledger.entries(user_id="ana", session_id="s2") if e.role == "assistant"]
    assert answer.cited is not None
    (why,) = mem.why(answer.id)
    assert [mem.ledger.content(each) for each in why.evidence_ids] == [BERLIN]
    assert BERLIN not in str(agent.messages), "no history keeps a packet"

    agent("What did I ask about my home?")
    whole = told(model.asked[-1])
    assert whole.count(ASKED) == 1, "nothing of the live session twice"
    assert whole.count("In Berlin [1].") == 1
    assert said(mem, "s2") == [ASKED, "In Berlin [1].", "What did I ask about my home?", "You asked."]

    make(mem, model, "s1", "ben")(ASKED)
    assert "Berlin" not in told(model.asked[-1])
    assert mem.verify().ok


@pytest.mark.parametrize("make", [with_plugin, with_both])
def test_a_question_keeps_its_packet_while_tools_are_asked(store: Any, make: Any) -> None:
    model = Script("Noted.", CALL, CALL | {"id": "c2"}, "12 °C.")
    make(store, model, "old")(BERLIN)
    make(store, model, "s1", tools=[weather])("How warm is it where I live?")
    first, *rest = model.asked[1:]
    assert told(first).count(BERLIN) == 1
    assert len(rest) == 2
    for request in rest:
        assert request[: len(first)] == first, "a cache keeps what was sent"
        assert told(request).count(BERLIN) == 1
    tools = [entry.tool for entry in store.ledger.entries(user_id="ana", session_id="s1") if entry.tool]
    assert [each.name for each in tools] == ["weather", "weather"]
    assert said(store, "s1").count("12 °C in Berlin") == 2


def test_what_a_window_cut_is_told(store: Any) -> None:
    model = Script("Noted.", "Fine.", "Well.", "In Berlin.")
    agent = with_plugin(
        store, model, "s1", conversation_manager=SlidingWindowConversationManager(window_size=2, per_turn=True)
    )
    for text in (BERLIN, "How are you?", "And you?", ASKED):
        agent(text)
    sent = model.asked[-1]
    own = [message["content"][0]["text"] for message in sent]
    assert BERLIN not in own, "the window cut it"
    assert told(sent).count(BERLIN) == 1, "and the packet tells it"


@pytest.mark.parametrize("make", [with_plugin, with_both])
def test_a_model_searches_and_proposes(store: Any, make: Any) -> None:
    teaching = Script("Noted.")
    with_plugin(store, teaching, "old")(BERLIN)
    (hit, *_) = store.run(user_id="ana").search(ASKED)
    search = {"id": "c1", "name": "search_memory", "input": '{"query": "where does the user live"}'}
    wrong = f'{{"key": "user.city", "value": "Rome", "source_id": "{hit.id}", "quote": "I moved to Rome"}}'
    right = f'{{"key": "user.city", "value": "Berlin", "source_id": "{hit.id}", "quote": "moved to Berlin"}}'
    model = Script(
        search,
        {"id": "c2", "name": "propose_fact", "input": wrong},
        {"id": "c3", "name": "propose_fact", "input": right},
        "In Berlin.",
    )
    agent = make(store, model, "s1")
    assert {"search_memory", "propose_fact"} == set(agent.tool_names)
    agent(ASKED)
    assert said(store, "s1")[1] == "(what memory answered)", "what memory answered is no news to it"
    results = [str(message) for message in model.asked[-1] if "toolResult" in str(message)]
    assert hit.id in results[0]
    assert "declined" in results[1] or "error" in results[1]
    candidates = store.run(user_id="ana").memory.candidates()
    assert [(each.value, each.status) for each in candidates if each.status != "declined"] == [("Berlin", "proposed")]
    assert set(with_plugin(store, model, "s", plugin={"tools": False, "forget_tool": True}).tool_names) == {
        "forget_memory"
    }


def test_a_conversation_is_restored(mem: Any) -> None:
    model = Script("Noted.", CALL, "12 °C in Berlin.", "Yes.")
    first = with_both(mem, model, "s1", tools=[weather], state={"lang": "en"})
    first(BERLIN)
    first("How warm is it there?")
    first.state.set("seen", [1, {"x": None}])
    again = with_both(mem, model, "s1", tools=[weather])
    assert [m["content"] for m in again.messages] == [m["content"] for m in first.messages]
    assert [m["tracking_id"] for m in again.messages] == [m["tracking_id"] for m in first.messages]
    assert again.state.get("lang") == "en"
    again("Are you sure?")
    assert told(model.asked[-1]).count(BERLIN) == 1
    assert said(mem, "s1") == [
        BERLIN, "Noted.", "How warm is it there?", "12 °C in Berlin", "12 °C in Berlin.", "Are you sure?", "Yes.",
    ]  # fmt: skip
    other = with_both(mem, model, "s1", "ben")
    assert other.messages == []


def test_what_a_window_cut_stays_cut_when_something_was_forgotten(store: Any) -> None:
    def agent() -> Agent:
        window = SlidingWindowConversationManager(window_size=2, per_turn=True)
        return agent_of(
            model, conversation_manager=window, session_manager=MunimentSessionManager("s1", store, user_id="ana")
        )

    model = Script("One.", "Two.", "Three.")
    first = agent()
    for text in ("a", "b", "c"):
        first(text)
    early = next(e for e in store.ledger.entries(user_id="ana", session_id="s1") if e.content == "a")
    store.forget(event=early.id, user_id="ana")
    assert [each["content"] for each in agent().messages] == [each["content"] for each in first.messages]


def test_two_agents_share_a_session(store: Any) -> None:
    model = Script("One.", "Two.")
    for name in ("a", "b"):
        agent_of(model, agent_id=name, session_manager=MunimentSessionManager("s1", store, user_id="ana"))(name)
    again = agent_of(model, agent_id="a", session_manager=MunimentSessionManager("s1", store, user_id="ana"))
    assert [message["content"] for message in again.messages] == [[{"text": "a"}], [{"text": "One."}]]


def test_a_message_of_bytes_and_one_that_is_redacted(store: Any) -> None:
    manager = MunimentSessionManager("s1", store, user_id="ana")
    picture: Any = {"image": {"format": "png", "source": {"bytes": b"\x00\x01"}}}
    model = Script("A cat.", "Hello.")
    agent = agent_of(model, session_manager=manager)
    agent([{"text": "What is this?"}, picture])
    again = agent_of(model, session_manager=MunimentSessionManager("s1", store, user_id="ana"))
    assert again.messages[0]["content"] == [{"text": "What is this?"}, picture]

    agent("plugh xyzzy")
    last: Message = {"role": "assistant", "content": [{"text": "[redacted]"}]}
    manager.redact_latest_message(last, agent)
    later = agent_of(model, session_manager=MunimentSessionManager("s1", store, user_id="ana"))
    assert later.messages[-1]["content"] == [{"text": "[redacted]"}]
    assert "Hello." not in said(store, "s1")
    assert store.verify().ok


@pytest.mark.parametrize("make", [with_plugin, with_both])
def test_what_is_erased_is_gone(tmp_path: Path, make: Any) -> None:
    with muniment.open(tmp_path / "a.db") as mem:
        model = Script("Noted.", "No idea.")
        agent = make(mem, model, "s1")
        agent("plugh is where I keep the key")
        plugin = MunimentPlugin(mem, user_id="ana")
        (hit, *_) = plugin.memory.search("where is the key")
        with pytest.raises(NotFound):
            MunimentPlugin(mem, user_id="ben").memory.forget(hit.id)
        plugin.memory.forget(hit.id)
        make(mem, model, "s2")("Where do I keep the key?")
        assert "plugh" not in told(model.asked[-1])
        if make is with_both:
            kept = make(mem, model, "s1").messages
            assert [(each["role"], each["content"]) for each in kept] == [
                ("user", [{"text": "(forgotten)"}]), ("assistant", [{"text": "Noted."}]),
            ]  # fmt: skip
        MunimentPlugin(mem, user_id="ana", session_id="s1").memory.forget_session()
        assert mem.verify().ok
    assert b"plugh" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_where_memory_fails(store: Any, on_error: Any) -> None:
    model = Script("Hello.")
    agent = with_plugin(store, model, "s1", plugin={"on_error": on_error})
    store.close()
    if on_error == "open":
        assert str(agent("Hi.")).strip() == "Hello."
        return
    with pytest.raises(Exception, match="closed"):
        agent("Hi.")
    assert model.asked == []


def test_bad_names_are_refused_before_anything_is_written(store: Any) -> None:
    for wrong in ({"user_id": ""}, {"user_id": "ana", "on_error": "never"}):
        with pytest.raises(InvalidInput):
            MunimentPlugin(store, **wrong)
    assert list(store.ledger.entries(user_id="ana")) == []


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    play_page("strands.md")


# -- Strands' own memory manager ---------------------------------------------------------------------------------------


def managed(mem: Any, model: Script, session: str, user: str = "ana", **given: Any) -> Agent:
    store = MunimentMemoryStore(mem, user_id=user, session_id=session)
    return agent_of(model, memory_manager=MemoryManager(stores=[store], **given))


def test_the_memory_manager_is_served(mem: Any) -> None:
    note = {"id": "c1", "name": "add_memory", "input": '{"entries": ["The user lives in Berlin."]}'}
    model = Script("Noted.", "In Berlin.", note, "Kept.", "No idea.")
    managed(mem, model, "s1")(BERLIN)
    agent = managed(mem, model, "s2", add_tool_config=True)
    agent(ASKED)
    assert told(model.asked[-1]).count(BERLIN) == 1
    assert said(mem, "s2") == [ASKED, "In Berlin."]
    agent("Keep that.")
    assert told(model.asked[-1]).count(ASKED) == 1, "nothing of the live session twice"
    assert said(mem, "s2").count("The user lives in Berlin.") == 1
    managed(mem, model, "s1", "ben")(ASKED)
    assert "Berlin" not in told(model.asked[-1])


def test_what_the_store_finds_has_its_source_and_is_written_once(store: Any) -> None:
    async def work() -> None:
        kept = MunimentMemoryStore(store, user_id="ana", session_id="s1")
        first = await kept.add(BERLIN, {"by": "test"})
        assert await kept.add(BERLIN, {"by": "test"}) == first
        elsewhere = MunimentMemoryStore(store, user_id="ana", session_id="s2")
        (found,) = await elsewhere.search(ASKED)
        assert found.content == BERLIN
        assert found.metadata is not None
        assert found.metadata["sources"] == [first]
        assert await kept.search(ASKED) == [], "its own session is sent by the agent"
        kept.memory.forget(first)
        assert await elsewhere.search(ASKED) == []
        assert await kept.add(BERLIN, {"by": "test"}) == "", "what was forgotten does not come back"

    asyncio.run(work())
