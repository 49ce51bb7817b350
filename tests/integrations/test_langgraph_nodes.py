"""Memory nodes in a real graph, with a checkpointer, taken up again and run again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="the langgraph extra is not installed: pip install 'muniment[langgraph]'")

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

import muniment
from muniment.errors import InvalidInput
from muniment.integrations.langgraph import compose_node, observe_node


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    memory: dict[str, Any]


def answer(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage(f"told: {'Berlin' in state['memory']['text']}")]}


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


def build(mem: muniment.Memory, **compile_with: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("hear", observe_node(mem))
    graph.add_node("recall", compose_node(mem))
    graph.add_node("answer", answer)
    graph.add_node("keep", observe_node(mem))
    graph.add_edge(START, "hear")
    graph.add_edge("hear", "recall")
    graph.add_edge("recall", "answer")
    graph.add_edge("answer", "keep")
    graph.add_edge("keep", END)
    return graph.compile(checkpointer=InMemorySaver(), **compile_with)


def config(thread: str, user: str = "ana") -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, "user_id": user}}


def said(mem: muniment.Memory, thread: str, user: str = "ana") -> list[tuple[str, str | None]]:
    entries = mem.ledger.entries(user_id=user, session_id=thread)
    return [(entry.role, entry.content) for entry in entries if entry.kind in ("message", "tool_result")]


def test_a_later_thread_is_told_what_an_earlier_one_heard(mem: muniment.Memory) -> None:
    graph = build(mem)
    graph.invoke({"messages": [HumanMessage("I moved to Berlin in May.")]}, config("t1"))
    state = graph.invoke({"messages": [HumanMessage("Where do I live?")]}, config("t2"))
    assert state["messages"][-1].content == "told: True"
    assert mem.replay(state["memory"]["build_id"]).text == state["memory"]["text"]
    other = graph.invoke({"messages": [HumanMessage("Where do I live?")]}, config("t3", "ben"))
    assert other["messages"][-1].content == "told: False"


def test_each_message_is_written_once(mem: muniment.Memory) -> None:
    graph = build(mem)
    graph.invoke({"messages": [HumanMessage("one")]}, config("t1"))
    graph.invoke({"messages": [HumanMessage("one")]}, config("t1"))
    assert said(mem, "t1") == [
        ("user", "one"),
        ("assistant", "told: False"),
        ("user", "one"),  # said twice, by two messages
        ("assistant", "told: False"),
    ]


def test_a_run_from_an_older_checkpoint_writes_nothing_twice(mem: muniment.Memory) -> None:
    graph = build(mem, interrupt_before=["answer"])
    graph.invoke({"messages": [HumanMessage("I moved to Berlin in May.")]}, config("t1"))
    started = next(step for step in graph.get_state_history(config("t1")) if step.next == ("hear",))
    again = {"configurable": {**started.config["configurable"], "user_id": "ana"}}
    graph.invoke(None, again)
    graph.invoke(None, again)
    graph.invoke(None, config("t1"))
    assert [each for each in said(mem, "t1") if each[0] == "user"] == [("user", "I moved to Berlin in May.")]


def test_tools_are_recorded_as_tools_and_system_messages_not_at_all(mem: muniment.Memory) -> None:
    node = observe_node(mem)
    call = {"name": "weather", "args": {"city": "Berlin"}, "id": "c1"}
    messages = [
        SystemMessage("you are helpful"),
        HumanMessage([{"type": "text", "text": "How warm is it?"}]),
        AIMessage("", tool_calls=[call]),
        ToolMessage("12 °C", tool_call_id="c1"),
        ToolMessage("timeout", tool_call_id="c9", name="sea", status="error"),
        AIMessage("It is 12 °C."),
    ]
    assert node({"messages": messages}, config("t1")) == {}  # type: ignore[arg-type]
    assert node({"messages": messages}, config("t1")) == {}  # type: ignore[arg-type]
    entries = [entry for entry in mem.ledger.entries(user_id="ana", session_id="t1") if entry.kind != "system"]
    assert [(entry.role, entry.content) for entry in entries] == [
        ("user", "How warm is it?"),
        ("tool", "12 °C"),
        ("tool", "timeout"),
        ("assistant", "It is 12 °C."),
    ]
    tools = [entry.tool for entry in entries if entry.tool is not None]
    assert [(tool.name, tool.args, tool.ok) for tool in tools] == [
        ("weather", {"city": "Berlin"}, True),
        ("sea", {}, False),
    ]


def test_a_node_wants_to_know_whose_thread_it_is(mem: muniment.Memory) -> None:
    with pytest.raises(InvalidInput, match="whose thread"):
        observe_node(mem)({"messages": []}, {"configurable": {"thread_id": "t"}})
    assert observe_node(mem, user_id="ana")({"messages": []}, {"configurable": {"thread_id": "t"}}) == {}


def test_no_token_is_paid_twice(mem: muniment.Memory) -> None:
    """The graph sends the messages of its state itself: the packet leaves them out, and tells what was trimmed."""
    hear, recall, thread = observe_node(mem), compose_node(mem), config("t1")
    messages: list[AnyMessage] = []
    for number, text in enumerate(("My cat is called Toby.", "My dog is called Rex.", "What is my cat called?")):
        messages += [HumanMessage(text, id=f"h{number}"), AIMessage(f"Noted {number}.", id=f"a{number}")]
    hear({"messages": messages}, thread)  # type: ignore[arg-type]
    state = {"messages": messages}
    told = recall(state, thread)["memory"]["text"]  # type: ignore[arg-type]
    assert not any(str(message.content) in told for message in messages)
    trimmed = {"messages": messages[2:]}
    told = recall(trimmed, thread)["memory"]["text"]  # type: ignore[arg-type]
    assert "called Toby" in told
    assert "called Rex" not in told
    whole = compose_node(mem, exclude_sent=False)(state, thread)["memory"]["text"]  # type: ignore[arg-type]
    assert "called Toby" in whole
    elsewhere = recall({"messages": messages[-2:]}, config("t2"))["memory"]["text"]  # type: ignore[arg-type]
    assert "called Toby" in elsewhere
