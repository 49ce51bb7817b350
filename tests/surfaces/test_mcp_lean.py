"""The lean profile: six tools in few tokens, answers under one cap, and nothing of the rest out of reach."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_room import CANARY, Guarded, at, failure, make_store, protocol_failure, said, served, structured
from mcp_types import PromptReference, ResourceTemplateReference

from muniment.core.canonical import canonical_text
from muniment.core.outside.token_counters import load_token_counter
from muniment.handles.memory import Memory
from muniment.surfaces.mcp.answers import ANSWER_CHARS_MAX
from muniment.surfaces.mcp.excerpts import excerpt
from muniment.surfaces.mcp.server import described
from muniment.surfaces.mcp.tools import BEFORE, TOOLS
from muniment.surfaces.mcp.uris import TEMPLATES

SIX = ["search_memory", "remember", "get_context", "record", "forget", "why"]
TOKENS_MAX = 1_600


@pytest.fixture
def memory() -> Iterator[Memory]:
    with make_store() as mem:
        yield mem


def sizes(answer: Any) -> tuple[int, int]:
    return len(said(answer)), len(canonical_text(structured(answer)))


def test_six_tools_cost_less_than_sixteen_hundred_tokens(memory: Memory) -> None:
    async def talk(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == SIX
        assert all(tool.output_schema is None for tool in tools)
        plain = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        for counter in ("auto", "estimate_v1"):
            assert load_token_counter(counter).count(json.dumps(plain, ensure_ascii=False)) < TOKENS_MAX

    at(served(memory), talk)


def test_the_full_profile_has_every_argument_and_an_output_schema(memory: Memory) -> None:
    async def talk(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(TOOLS)
        for tool in tools:
            assert set(tool.input_schema["properties"]) == set(TOOLS[tool.name].takes.model_fields)
            assert tool.output_schema is not None

    at(served(memory, profile="full"), talk)
    for name in SIX:
        lean, full = (described(TOOLS[name], profile).input_schema for profile in ("lean", "full"))
        assert set(lean["properties"]) < set(full["properties"]) or name in ("forget", "why")
        assert lean.get("required") == full.get("required")


def test_names_of_before_are_answered_in_the_full_profile_and_told_elsewhere(memory: Memory) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "observe": {"role": "user", "content": "hello"},
        "search": {"query": "hello"},
        "compose": {"query": "hello"},
        "explain": {"text": "hello"},
        "recall": {"query": "hello"},
    }
    assert arguments.keys() == BEFORE.keys()

    async def full(client: Client) -> None:
        for name, given in arguments.items():
            if name != "recall":
                structured(await client.call_tool(name, given))
        assert "get_lessons" in (await protocol_failure(client.call_tool("recall", {"query": "hello"})))["hint"]

    async def lean(client: Client) -> None:
        for name, given in arguments.items():
            assert f"`{BEFORE[name]}`" in (await protocol_failure(client.call_tool(name, given)))["hint"]
        for name in set(TOOLS) - set(SIX):
            assert "`full`" in (await protocol_failure(client.call_tool(name, {})))["hint"]

    at(served(memory, profile="full"), full)
    at(served(memory), lean)


# -- answers under one cap -----------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("filling", ["words and words ", "\x00\x1b", "🦆" * 3, "\n- ", '"\\'])
def test_text_and_structured_form_stay_under_one_cap(memory: Memory, filling: str) -> None:
    run = memory.run(user_id="ana", agent_id="support", session_id="s0")
    body = filling * (5_000 // len(filling))
    for number in range(60):
        run.observe("user", f"The heron stood at pond {number}. {body} heron {number}")
    run.remember("bird.seen", "heron", sources=[run.observe("user", "I saw a heron.").id])

    async def talk(client: Client) -> None:
        answer = await client.call_tool("search_memory", {"query": "heron pond", "k": 50})
        found = structured(answer)
        assert max(sizes(answer)) <= ANSWER_CHARS_MAX
        assert found["left_out"] + len(found["hits"]) == 50
        assert "narrower" in found["more"]
        assert found["more"] in said(answer)
        context = structured(await client.call_tool("get_context", {"query": "heron", "max_tokens": 8_000}))
        for given in ({"build_id": context["build_id"]}, {"text": "heron"}):
            assert max(sizes(await client.call_tool("why", given))) <= ANSWER_CHARS_MAX
        event = next(hit["id"] for hit in found["hits"] if hit["kind"] == "event")
        whole, start = "", 0
        while True:
            part = await client.call_tool("search_memory", {"event_id": event, "start": start})
            assert max(sizes(part)) <= ANSWER_CHARS_MAX
            (hit,) = structured(part)["hits"]
            whole += hit["text"]
            if "next" not in hit:
                break
            start = hit["next"]
            assert f"start {start}" in structured(part)["more"]
        assert whole == memory.ledger.content(event)

    at(served(memory), talk)


def test_a_short_search_is_lean(memory: Memory) -> None:
    run = memory.run(user_id="ana", agent_id="support", session_id="s0")
    for number in range(10):
        run.observe("user", f"Note {number}: the ferry to Split leaves at noon. " + "It is a long trip. " * 10)

    async def talk(client: Client) -> None:
        answer = await client.call_tool("search_memory", {"query": "When does the ferry to Split leave?"})
        text, plain = sizes(answer)
        assert len(structured(answer)["hits"]) >= 5
        assert plain < 1.5 * text
        assert "left_out" not in structured(answer)

    at(served(memory), talk)


def test_an_excerpt_shows_where_the_words_stand() -> None:
    text = "hay " * 1_000 + "the needle and the thread are here " + "hay " * 1_000
    part = excerpt(text, "Where are needle and thread?", 600)
    assert "needle and the thread" in part.text
    assert text[part.start : part.end] == part.text
    assert len(part.text) == 600
    assert excerpt(text, "nothing of it", 600).start == 0
    assert excerpt(text, "", 600) == excerpt(text, "zebra", 600)
    assert excerpt("short", "needle", 600) == ("short", 0, 5)
    end = excerpt("hay " * 1_000 + "needle", "needle", 600)
    assert end.text.endswith("needle")


# -- remember ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "sentence", "role"),
    [
        ({"key": "user.city", "value": "Berlin"}, "user.city: Berlin", "assistant"),
        ({"key": "user.children", "value": 2}, "user.children: 2", "assistant"),
        ({"key": "user.pets", "value": {"cat": "Mia"}}, 'user.pets: {"cat":"Mia"}', "assistant"),
        ({"key": "user.car", "value": None}, "user.car: null", "assistant"),
        ({"key": "user.diet", "value": "vegan", "text": "I went vegan."}, "I went vegan.", "user"),
        ({"text": "She likes long walks."}, "She likes long walks.", "user"),
    ],
)
@pytest.mark.req("LG-08")
def test_what_has_no_evidence_is_recorded_and_cited(
    memory: Memory, given: dict[str, Any], sentence: str, role: str
) -> None:
    async def talk(client: Client) -> None:
        answer = await client.call_tool("remember", given)
        kept = structured(answer)
        entry = memory.ledger.get(kept["event_id"])
        assert (entry.content, entry.role, entry.trust) == (sentence, role, "assistant")
        if "key" in given:
            assert kept["fact"]["sources"] == [entry.id]
            (fact,) = memory.run(user_id="ana").facts(given["key"])
            assert (fact.value, fact.fact_id) == (given["value"], kept["fact"]["fact_id"])
            assert kept["fact"]["fact_id"] in said(answer)
        else:
            assert "fact" not in kept
            (hit, *_) = structured(await client.call_tool("search_memory", {"query": sentence}))["hits"]
            assert hit["id"] == entry.id

    at(served(memory), talk)


def test_a_fact_on_sources_records_nothing_more(memory: Memory) -> None:
    run = memory.run(user_id="ana", agent_id="support", session_id="s0")
    event = run.observe("user", "I live in Rome.").id

    async def talk(client: Client) -> None:
        before = len(list(memory.ledger.entries(user_id="ana", kind="message")))
        kept = structured(await client.call_tool("remember", {"key": "user.city", "value": "Rome", "sources": [event]}))
        assert "event_id" not in kept
        assert kept["fact"]["sources"] == [event]
        assert len(list(memory.ledger.entries(user_id="ana", kind="message"))) == before

    at(served(memory), talk)


# -- resources and completion --------------------------------------------------------------------------


def test_facts_and_sessions_are_read_by_address(memory: Memory) -> None:
    run = memory.run(user_id="ana", agent_id="support", session_id="trip/1")
    event = run.observe("user", "I live in Rome.\nReally.")
    fact = run.remember("user.city", "Rome", sources=[event.id])
    for number in range(150):
        run.observe("assistant", f"turn {number} " + "word " * 200)

    async def text(client: Client, uri: str) -> str:
        return (await client.read_resource(uri)).contents[0].text  # type: ignore[union-attr]

    async def talk(client: Client) -> None:
        plain = json.loads(await text(client, f"muniment://facts/{fact.fact_id}"))
        assert event.id in json.dumps(plain)
        assert "Rome" in json.dumps(plain)
        told = await text(client, "muniment://sessions/trip%2F1")
        assert len(told) <= ANSWER_CHARS_MAX + 100
        assert "turn 149" in told
        assert "earlier turns are left out" in told.splitlines()[0]
        await client.call_tool("forget", {"fact_id": fact.fact_id})
        shape = await protocol_failure(client.read_resource(f"muniment://facts/{fact.fact_id}"))
        assert shape["code"] in ("forgotten", "not_found")

    at(served(memory), talk)


@pytest.mark.req("LG-02")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_arguments_are_completed_out_of_what_is_ones_own(memory: Memory, mode: str) -> None:
    guarded = Guarded(memory)
    run = memory.run(user_id="ana", agent_id="support", session_id="trip", run_id="run_ana")
    event = run.observe("user", "I live in Rome.")
    fact = run.remember("user.city", "Rome", sources=[event.id])
    build = run.compose("responder", query="Where?")
    theirs = {id_ for known in guarded.ids.values() for id_ in known.values()}

    async def values(client: Client, uri: str, name: str, typed: str = "") -> list[str]:
        ref = ResourceTemplateReference(type="ref/resource", uri=uri)
        found = (await client.complete(ref, {"name": name, "value": typed})).completion
        assert not theirs & set(found.values)
        assert CANARY not in found.model_dump_json()
        return found.values

    async def talk(client: Client) -> None:
        address = {name: uri for name, (uri, _, _) in TEMPLATES.items()}
        assert await values(client, address["event"], "event_id") == [event.id]
        assert await values(client, address["fact"], "fact_id") == [fact.fact_id]
        assert await values(client, address["packet"], "build_id") == [build.id]
        assert "run_ana" in await values(client, address["narrative"], "run_id")
        assert await values(client, address["narrative"], "run_id", "run_a") == ["run_ana"]
        assert await values(client, address["session"], "session_id", "tr") == ["trip"]
        assert await values(client, address["event"], "event_id", "evt_zz") == []
        assert await values(client, address["event"], "fact_id") == []
        ref = PromptReference(type="ref/prompt", name="catch_up")
        found = await client.complete(ref, {"name": "session_id", "value": "trip"})
        assert found.completion.values == ["trip"]
        unknown = ResourceTemplateReference(type="ref/resource", uri="muniment://users/{user_id}")
        shape = await protocol_failure(client.complete(unknown, {"name": "user_id", "value": ""}))
        assert shape["path"] == "$.ref.uri"
        nobody = PromptReference(type="ref/prompt", name="nope")
        shape = await protocol_failure(client.complete(nobody, {"name": "query", "value": ""}))
        assert shape["path"] == "$.ref.name"

    at(served(memory), talk, mode)


def test_no_more_than_a_hundred_are_offered_and_the_rest_is_counted(memory: Memory) -> None:
    run = memory.run(user_id="ana", agent_id="support", session_id="s0")
    events = run.observe_many([{"role": "user", "content": f"word {number}"} for number in range(130)])

    async def talk(client: Client) -> None:
        ref = ResourceTemplateReference(type="ref/resource", uri=TEMPLATES["event"][0])
        found = (await client.complete(ref, {"name": "event_id", "value": ""})).completion
        assert found.values == [event.id for event in reversed(events)][:100]
        assert (found.total, found.has_more) == (130, True)

    at(served(memory), talk)


# -- while it lasts ------------------------------------------------------------------------------------


def slow(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """A search that takes long, and looks between its steps whether somebody still wants it."""
    import time

    from muniment.core.limits import checkpoint
    from muniment.handles.run import Run

    true_search = Run.search

    def search(self: Run, *args: Any, **more: Any) -> Any:
        for _ in range(steps):
            time.sleep(0.02)
            checkpoint()
        return true_search(self, *args, **more)

    monkeypatch.setattr(Run, "search", search)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_is_told_that_the_work_goes_on(memory: Memory, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.surfaces.mcp.carrying.PROGRESS_S", 0.05)
    slow(monkeypatch, 20)
    told: list[tuple[float, str | None]] = []

    async def heard(progress: float, _total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async def talk(client: Client) -> None:
        answer = await client.call_tool("search_memory", {"query": "x"}, progress_callback=heard)
        assert structured(answer)["hits"] == []
        assert len(told) >= 2
        assert [progress for progress, _ in told] == sorted(progress for progress, _ in told)
        assert all(message and message.startswith("at it for") for _, message in told)
        assert failure(await client.call_tool("search_memory", {}))["path"] == "$.query"

    at(served(memory), talk, mode)


def test_what_is_cancelled_stops_and_writes_nothing(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from muniment.core.limits import checkpoint
    from muniment.handles.run import Run

    began, ended = anyio.Event(), []
    true_observe = Run.observe

    def observe(self: Run, *args: Any, **more: Any) -> Any:
        import time

        anyio.from_thread.run_sync(began.set)
        try:
            for _ in range(500):
                time.sleep(0.01)
                checkpoint()
        finally:
            ended.append(True)
        return true_observe(self, *args, **more)

    async def talk(client: Client) -> None:
        monkeypatch.setattr(Run, "observe", observe)
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "record", {"role": "user", "content": "never written"})
            await began.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            while not ended:
                await anyio.sleep(0.01)
        monkeypatch.setattr(Run, "observe", true_observe)
        structured(await client.call_tool("record", {"role": "user", "content": "written"}))

    at(served(memory), talk)
    contents = [entry.content for entry in memory.ledger.entries(user_id="ana", kind="message")]
    assert contents == ["written"]


@pytest.mark.parametrize("text", ["a" * 5000, f"{'b' * 3000} and {'c' * 3000} end", f"short {'d' * 9000}"])
def test_a_word_longer_than_the_part_that_is_shown_is_shown_from_its_beginning(text: str) -> None:
    longest = max(text.split(), key=len)
    part = excerpt(text, longest, 800)
    assert part.text == text[part.start : part.end]
    assert len(part.text) == 800
    assert part.start <= text.index(longest) < part.end
