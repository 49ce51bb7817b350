"""A model cannot leave the place it was given: every tool, resource and prompt tried with what others hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_room import CANARY, Guarded, at, failure, make_store, protocol_failure, said, served, structured

from muniment.errors import InvalidInput, MunimentError
from muniment.handles.memory import Memory
from muniment.surfaces.mcp.callers import RUNS_MAX, CallerScope, ToolCallers
from muniment.surfaces.mcp.settings import McpSettings, load_mcp_settings

KINDS = ("event", "fact", "build", "claim", "run")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with make_store() as mem:
        yield mem


def attempts(known: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way in which a tool could be pointed at something of another's."""
    for kind in KINDS:
        id_ = known[kind]
        yield "why", {"build_id": id_}
        yield "search_memory", {"event_id": id_}
        yield "forget", {"event_id": id_}
        yield "forget", {"fact_id": id_}
        yield "remember", {"key": "k", "value": 1, "sources": [id_]}
        yield "claim", {"statement": f"about {id_}", "evidence": [{"event_id": id_}]}
        yield "claim", {"statement": f"with {id_}", "evidence": [{"event_id": id_, "quote": CANARY}]}
        yield "claim", {"claim_id": id_, "status": "verified"}
        yield "claim", {"claim_id": id_, "status": "retracted", "reason": "mine now"}


@pytest.mark.req("LG-02")
@pytest.mark.parametrize("whose", ["default/bo", "other/ana", "other/bo"])
def test_what_others_hold_does_not_exist(memory: Memory, whose: str) -> None:
    guarded = Guarded(memory)
    known = guarded.ids[whose]

    async def talk(client: Client) -> None:
        for tool, arguments in attempts(known):
            shape = failure(await client.call_tool(tool, arguments))
            assert shape["code"] in ("not_found", "invalid_input"), (tool, arguments, shape)
            nobody = json.loads(json.dumps(arguments).replace(known["event"], "evt_nobody"))
            for kind in KINDS:
                nobody = json.loads(json.dumps(nobody).replace(known[kind], f"{known[kind][:4]}nobody"))
            alike = failure(await client.call_tool(tool, nobody))
            assert (alike["code"], alike.get("path")) == (shape["code"], shape.get("path")), "it can be told apart"
        for uri in (
            f"muniment://events/{known['event']}",
            f"muniment://builds/{known['build']}",
            f"muniment://facts/{known['fact']}",
            "muniment://sessions/s1",
            f"muniment://runs/{known['run']}/narrative",
            f"muniment://runs/{known['run']}/narrative/1",
        ):
            shape = await protocol_failure(client.read_resource(uri))
            assert shape["code"] == "not_found"
            assert CANARY not in json.dumps(shape)

    at(served(memory, profile="full"), talk)
    guarded.check_unchanged(memory)


@pytest.mark.req("LG-02")
def test_nothing_that_is_found_composed_or_listed_is_anothers(memory: Memory) -> None:
    Guarded(memory)

    async def talk(client: Client) -> None:
        told = [
            await client.call_tool("search_memory", {"query": CANARY, "k": 50}),
            await client.call_tool("search_memory", {"query": "secret word", "k": 50}),
            await client.call_tool("get_context", {"query": "What is the secret word?", "purpose": "planner"}),
            await client.call_tool("get_profile", {}),
            await client.call_tool("get_lessons", {"query": "secret word"}),
            await client.call_tool("why", {"text": "zanzibar"}),
            await client.list_resources(),
            await client.get_prompt("answer", {"query": "What is the secret word?"}),
            await client.get_prompt("catch_up"),
        ]
        assert all(CANARY not in each.model_dump_json() for each in told)

    at(served(memory, profile="full"), talk)


@pytest.mark.req("LG-02", "MP-08")
def test_a_level_above_the_users_is_configured_and_never_asked_for(memory: Memory) -> None:
    remembered = {"key": "office.hours", "value": "9-17", "text": "We are open nine to five."}
    asked: list[str] = []

    async def plain(client: Client) -> None:
        for level in ("tenant", "agent"):
            shape = failure(await client.call_tool("remember", remembered | {"scope_level": level}))
            assert shape["path"] == "$.scope_level"
        kept = structured(await client.call_tool("remember", remembered))["fact"]
        (fact,) = memory.run(user_id="ana", agent_id="support").facts("office.hours")
        assert (fact.fact_id, fact.scope_level) == (kept["fact_id"], "user")

    async def shared(client: Client) -> None:
        kept = structured(await client.call_tool("remember", remembered))["fact"]
        (fact,) = memory.run(user_id="zoe", agent_id="support").facts("office.hours")
        assert (fact.fact_id, fact.scope_level) == (kept["fact_id"], "tenant")
        asked.append(kept["fact_id"])

    async def stranger(client: Client) -> None:
        (hit,) = structured(await client.call_tool("search_memory", {"query": "office hours"}))["hits"]
        assert hit["id"] == asked[0]
        assert hit["trust"] == "external", "what it rests on is another user's"
        assert failure(await client.call_tool("forget", {"fact_id": asked[0]}))["code"] == "not_found"

    at(served(memory), plain)
    at(served(memory, CallerScope("default", "zoe", "support"), level="tenant"), shared)
    at(served(memory, CallerScope("default", "kim", "support")), stranger)


def test_forget_can_be_switched_off(memory: Memory) -> None:
    async def talk(client: Client) -> None:
        assert "forget" not in {tool.name for tool in (await client.list_tools()).tools}
        event = structured(await client.call_tool("record", {"role": "user", "content": "keep me"}))["event_id"]
        shape = await protocol_failure(client.call_tool("forget", {"event_id": event}))
        assert shape["path"] == "$.name"
        assert memory.ledger.content(event) == "keep me"

    at(served(memory, forget="off"), talk)


def test_a_server_that_only_reads_writes_nothing_at_all(memory: Memory) -> None:
    run = memory.run(user_id="ana", agent_id="support", session_id="s0")
    event = run.observe("user", "I moved to Berlin.")
    build = run.compose("responder", query="Where?")
    before = [entry.hash for entry in memory.ledger.entries(user_id="ana")]

    async def talk(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "search_memory",
            "read",
            "get_profile",
            "why",
        }
        assert [each.name for each in (await client.list_prompts()).prompts] == ["catch_up"]
        (hit,) = structured(await client.call_tool("search_memory", {"query": "Berlin"}))["hits"]
        assert hit["id"] == event.id
        structured(await client.call_tool("why", {"build_id": build.id}))
        assert [each.name for each in (await client.list_resources()).resources] == [build.id]
        for name in ("record", "remember", "get_context", "get_lessons", "claim", "forget"):
            await protocol_failure(client.call_tool(name, {}))
        await protocol_failure(client.get_prompt("answer", {"query": "Where?"}))

    at(served(memory, writes="off", profile="full"), talk)
    assert [entry.hash for entry in memory.ledger.entries(user_id="ana")] == before
    assert len(memory.runs(user_id="ana")) == 1


def test_session_and_run_are_those_that_were_configured(memory: Memory) -> None:
    async def talk(client: Client) -> None:
        event = structured(await client.call_tool("record", {"role": "user", "content": "hello"}))["event_id"]
        scope = memory.ledger.get(event, tenant_id="acme").scope
        assert (scope.user_id, scope.agent_id, scope.session_id, scope.run_id) == ("ana", "coder", "s9", "r9")

    place = CallerScope("acme", "ana", "coder", "s9", "r9")
    at(served(memory, place), talk)
    at(served(memory, place), talk)
    assert len(memory.runs(user_id="ana", tenant_id="acme")) == 1


def test_a_place_keeps_its_run_and_no_more_are_held_than_fit(memory: Memory) -> None:
    tool_callers = ToolCallers(memory, McpSettings())
    first = tool_callers.take(CallerScope("default", "u0", "a"))
    assert tool_callers.take(CallerScope("default", "u0", "a")).run is first.run
    for number in range(1, RUNS_MAX + 1):
        tool_callers.take(CallerScope("default", f"u{number}", "a"))
    assert len(tool_callers._runs) == RUNS_MAX
    assert tool_callers.take(CallerScope("default", "u0", "a")).run is not first.run


@pytest.mark.parametrize(
    "place",
    [
        CallerScope("default", "", "a"),
        CallerScope("default", "corpus:x", "a"),
        CallerScope("", "ana", "a"),
        CallerScope("default", "ana", "a" * 300),
        CallerScope("default", "ana\n", "a"),
    ],
)
def test_a_place_that_cannot_be_is_refused(memory: Memory, place: CallerScope) -> None:
    with pytest.raises(MunimentError):
        ToolCallers(memory, McpSettings()).take(place)


def test_settings_come_from_arguments_environment_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "muniment.toml").write_text('[mcp]\nforget = "off"\ntrust = "user"\nsession = "s1"\n', "utf-8")
    config = {"MUNIMENT_CONFIG": "muniment.toml"}
    settings = load_mcp_settings({"trust": "assistant"}, {"MUNIMENT_MCP_SESSION": "s2", **config})
    assert (settings.trust, settings.session, settings.forget, settings.writes) == ("assistant", "s2", "off", "on")
    for given, path in (({"level": "world"}, "$.mcp.level"), ({"writes": "yes"}, "$.mcp.writes")):
        with pytest.raises(InvalidInput) as caught:
            load_mcp_settings(given, config)
        assert caught.value.path == path
    for text in ("mcp = 5\n", "[mcp]\nforget = true\n", '[mcp]\nuser = "bo"\n'):
        (tmp_path / "muniment.toml").write_text(text, "utf-8")
        with pytest.raises(InvalidInput):
            load_mcp_settings({}, config)


def test_an_error_of_a_place_is_told_to_whoever_asks(memory: Memory) -> None:
    memory.run(user_id="bo", session_id="s1", run_id="r1").observe("user", "taken")
    seats_of_ana = served(memory, CallerScope("default", "ana", "support", "s1", "r1"))

    async def talk(client: Client) -> None:
        answer = await client.call_tool("search_memory", {"query": "taken"})
        assert failure(answer)["code"] in ("conflict", "duplicate_id", "not_found")
        assert "bo" not in said(answer).split()

    async def main(client: Client) -> None:
        await protocol_failure(client.list_resources())
        await talk(client)

    import anyio

    async def session() -> None:
        async with Client(seats_of_ana) as client:
            await main(client)

    anyio.run(session)
