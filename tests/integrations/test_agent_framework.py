"""Microsoft Agent Framework with the real package and a scripted chat client."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.connected import over_http

pytest.importorskip("agent_framework", reason="no agent-framework: pip install 'muniment[agent-framework]'")

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    ResponseStream,
)

import muniment
from muniment.errors import InvalidInput
from muniment.integrations.agent_framework import MunimentContext, MunimentHistory

pytestmark = pytest.mark.filterwarnings("ignore")

BERLIN = "I moved to Berlin in May."


def wait(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


@pytest.fixture(params=["memory", "http"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[muniment.Memory]:
    with ExitStack() as stack:
        opened = stack.enter_context(muniment.open(":memory:"))
        yield opened if request.param == "memory" else over_http(opened, tmp_path, stack)


class Script(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A client that says what it is told to, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[list[Message]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        self.asked.append(list(messages))
        answer = self.answers.pop(0)

        async def whole() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", [answer])])

        async def parts() -> Any:
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(answer)])

        return ResponseStream(parts(), finalizer=ChatResponse.from_updates) if stream else whole()


def told(messages: Sequence[Message]) -> str:
    return "\n".join(each.text or "" for message in messages for each in message.contents if each.type == "text")


def turns(mem: muniment.Memory, session: str, user: str = "ana") -> list[str]:
    entries = mem.ledger.entries(user_id=user, session_id=session)
    return [entry.content or "" for entry in entries if entry.kind in ("message", "tool_result")]


def agent_of(mem: Any, client: Script, *, with_history: bool = False, user: str = "ana", **more: Any) -> Agent[Any]:
    history = [MunimentHistory(mem, user_id=user)] if with_history else []
    tools = more.pop("tools", None)
    providers = [*history, MunimentContext(mem, user_id=user, **more)]
    return Agent(client=client, instructions="Be brief.", context_providers=providers, tools=tools)


@pytest.mark.soak
@pytest.mark.parametrize("with_history", [False, True])
@pytest.mark.parametrize("stream", [False, True])
def test_a_later_session_is_told_and_the_answer_leads_back(
    mem: muniment.Memory, with_history: bool, stream: bool
) -> None:
    client = Script("Noted.", "In Berlin [1].", "You asked.", "No idea.")
    agent = agent_of(mem, client, with_history=with_history)

    async def talk(text: str, session: Any, of: Agent[Any] = agent) -> Any:
        if not stream:
            return await of.run(text, session=session)
        streamed = of.run(text, session=session, stream=True)
        async for _ in streamed:
            pass
        return await streamed.get_final_response()

    async def work() -> None:
        await talk(BERLIN, agent.create_session(session_id="s1"))
        second = agent.create_session(session_id="s2")
        answer = await talk("Where do I live?", second)
        whole = told(client.asked[-1])
        assert whole.count(BERLIN) == whole.count("Where do I live?") == 1
        assert whole.index(BERLIN) < whole.index("Where do I live?")
        assert BERLIN in client.asked[-1][-1].contents[0].text, "in the message of the question"
        (entry,) = [e for e in mem.ledger.entries(user_id="ana", session_id="s2") if e.content == "In Berlin [1]."]
        assert entry.cited is not None
        assert entry.cited.build_id == answer.messages[-1].additional_properties["muniment_build_id"]
        (why,) = mem.why(entry.id)
        assert [mem.ledger.content(id_) for id_ in why.evidence_ids] == [BERLIN]
        before = client.asked[-1]
        await talk("What did I ask about my home?", second)
        whole = told(client.asked[-1])
        assert whole.count("Where do I live?") == whole.count("In Berlin [1].") == 1, "nothing of the session twice"
        assert told(client.asked[-1][: len(before) - 1]) == told(before[:-1]), "a cache keeps what was sent"
        assert turns(mem, "s2") == [
            "Where do I live?", "In Berlin [1].", "What did I ask about my home?", "You asked.",
        ]  # fmt: skip
        assert BERLIN not in str(second.to_dict()), "no session keeps a packet"
        bens = agent_of(mem, client, with_history=with_history, user="ben")
        await talk("Where do I live?", bens.create_session(session_id="s1"), bens)
        assert "Berlin" not in told(client.asked[-1])

    wait(work())


def test_a_question_keeps_its_packet_while_tools_are_asked() -> None:
    def weather(city: str) -> str:
        """How warm it is."""
        return f"12 °C in {city}"

    call = Content.from_function_call("c1", "weather", arguments='{"city": "Berlin"}')
    again = Content.from_function_call("c2", "weather", arguments='{"city": "Berlin"}')
    client = Script("Noted.", call, again, "It is 12 °C.")

    async def work() -> None:
        with muniment.open(":memory:") as mem:
            agent = agent_of(mem, client, tools=[weather])
            await agent.run(BERLIN, session=agent.create_session(session_id="old"))
            await agent.run("How warm is it where I live?", session=agent.create_session(session_id="s1"))
            first, *rest = client.asked[1:]
            assert BERLIN in told(first)
            assert len(rest) == 2
            for request in rest:
                assert told(request[: len(first)]) == told(first)
                assert told(request).count(BERLIN) == 1
            assert turns(mem, "s1") == [
                "How warm is it where I live?", "12 °C in Berlin", "12 °C in Berlin", "It is 12 °C.",
            ]  # fmt: skip
            tools = [entry.tool for entry in mem.ledger.entries(user_id="ana", session_id="s1") if entry.tool]
            assert [tool.name for tool in tools] == ["weather", "weather"]

    wait(work())


MESSAGES = [
    Message("user", ["How warm is it?"], author_name="Ana", message_id="m1"),
    Message("assistant", [Content.from_function_call("c1", "weather", arguments='{"city": "Berlin"}')]),
    Message("tool", [Content.from_function_result("c1", result="12 °C")]),
    Message("assistant", ["It is", "12 °C."], additional_properties={"k": [1, None]}),
    Message("user", [Content.from_uri("https://example.com/a.png", media_type="image/png"), "And this?"]),
    Message("system", ["Be brief."]),
    Message("user", []),
]


@pytest.mark.parametrize("of", ["muniment", "framework"])
def test_a_history_comes_back_as_it_was(of: str, tmp_path: Path) -> None:
    async def work() -> None:
        with muniment.open(tmp_path / "a.db") as mem:
            history: Any = MunimentHistory(mem, user_id="ana") if of == "muniment" else InMemoryHistoryProvider()
            state: dict[str, Any] = {}
            assert await history.get_messages("s1", state=state) == []
            await history.save_messages("s1", MESSAGES[:2], state=state)
            await history.save_messages("s1", MESSAGES[2:], state=state)
            got = await history.get_messages("s1", state=state)
            assert [each.to_dict() for each in got] == [each.to_dict() for each in MESSAGES]

    wait(work())


def test_a_history_is_each_users_and_can_be_erased(tmp_path: Path) -> None:
    async def work() -> None:
        with muniment.open(tmp_path / "a.db") as mem:
            for user, text in (("ana", "plugh"), ("ben", "hello")):
                await MunimentHistory(mem, user_id=user).save_messages("s1", [Message("user", [text])])
            taken = MunimentHistory(mem, user_id="ana")
            await taken.clear("s1")
            assert await taken.get_messages("s1") == []
            assert [hit.text for hit in taken.transcript("s1").memory.search("plugh")] == ["plugh"]
            await MunimentHistory(mem, user_id="ana", erase=True).clear("s1")
            assert mem.run(user_id="ana").search("plugh") == []
            assert [each.text for each in await MunimentHistory(mem, user_id="ben").get_messages("s1")] == ["hello"]
            with pytest.raises(InvalidInput, match="needs a session"):
                await taken.get_messages(None)

    wait(work())
    assert b"plugh" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_model_searches_and_proposes() -> None:
    async def work() -> None:
        with muniment.open(":memory:") as mem:
            (said,) = mem.run(user_id="ana", session_id="old").observe_many([{"role": "user", "content": BERLIN}])
            search = Content.from_function_call("c1", "search_memory", arguments='{"query": "Berlin"}')
            fact = f'{{"key": "user.city", "value": "Berlin", "source_id": "{said.id}", "quote": "moved to Berlin"}}'
            client = Script(search, Content.from_function_call("c2", "propose_fact", arguments=fact), "Done.")
            agent = agent_of(mem, client, with_tools=True)
            await agent.run("Look it up.", session=agent.create_session(session_id="s1"))
            results = [
                each for message in client.asked[-1] for each in message.contents if each.type == "function_result"
            ]
            assert said.id in str(results[0].result)
            assert "proposed" in str(results[1].result)
            assert len(mem.run(user_id="ana").memory.candidates()) == 1

    wait(work())


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_where_memory_fails(on_error: Any) -> None:
    async def work() -> None:
        mem = muniment.open(":memory:")
        client = Script("Hello.")
        agent = agent_of(mem, client, on_error=on_error)
        mem.close()
        if on_error == "open":
            assert (await agent.run("Hi.")).text == "Hello."
            return
        with pytest.raises(muniment.errors.Closed):
            await agent.run("Hi.")
        assert client.asked == []

    wait(work())
