"""Resources and prompts with the official client: what stands at an address, pages of lists, what is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_room import at, make_store, protocol_failure, served, structured
from mcp_types import ReadResourceResult, TextContent, TextResourceContents

from effort import SOAK
from muniment.handles.memory import Memory
from muniment.packets.builds import list_readables
from muniment.surfaces.mcp.answers import NOTICE
from muniment.surfaces.mcp.resources import PAGE
from muniment.surfaces.mcp.uris import build_uri, event_uri, parts_of

MODES = ("legacy", "auto") if SOAK else ("auto",)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with make_store() as mem:
        yield mem


def text_of(result: ReadResourceResult) -> str:
    (contents,) = result.contents
    assert isinstance(contents, TextResourceContents)
    assert contents.meta == {"muniment/notice": NOTICE}
    return contents.text


@pytest.mark.parametrize("mode", MODES)
def test_a_build_is_read_as_the_packet_it_is(memory: Memory, mode: str) -> None:
    async def talk(client: Client) -> None:
        await client.call_tool("record", {"role": "user", "content": "I moved to Berlin in May."})
        composed = structured(await client.call_tool("get_context", {"query": "Where did I move?"}))
        read = await client.read_resource(build_uri(composed["build_id"]))
        assert text_of(read).encode() == memory.replay(composed["build_id"]).packet_bytes
        (listed,) = (await client.list_resources()).resources
        assert (listed.uri, listed.name, listed.mime_type) == (
            build_uri(composed["build_id"]),
            composed["build_id"],
            "application/json",
        )
        assert listed.title == "responder: Where did I move?"

    at(served(memory), talk, mode)


def test_a_run_is_told_in_words(memory: Memory) -> None:
    run = memory.run(user_id="ana", agent_id="support", run_id="trip/1 ä", objective="Plan a trip")
    event = run.observe("user", "I want to see the sea.")
    run.log.claim("Ana wants to see the sea.", evidence=[event.id], status="verified")
    run.log.compact()
    run.observe("user", "In May.")
    run.log.compact()

    async def talk(client: Client) -> None:
        listed = (await client.list_resources()).resources
        assert [each.name for each in listed] == ["trip/1 ä#2", "trip/1 ä#1"]
        for number, each in zip((2, 1), listed, strict=True):
            assert text_of(await client.read_resource(each.uri)) == memory.log.narrative("trip/1 ä", number)
        latest = await client.read_resource("muniment://runs/trip%2F1%20%C3%A4/narrative")
        assert text_of(latest) == memory.log.narrative("trip/1 ä")
        assert (await protocol_failure(client.read_resource(listed[0].uri[:-1] + "9")))["code"] == "not_found"

    at(served(memory), talk)


def test_an_event_is_read_whole_and_a_forgotten_one_says_so(memory: Memory) -> None:
    async def talk(client: Client) -> None:
        content = "long " * 50_000  # lies out of line
        event = structured(await client.call_tool("record", {"role": "user", "content": content}))
        entry = json.loads(text_of(await client.read_resource(event_uri(event["event_id"]))))
        assert entry["body"]["content"] == content
        assert entry["ts"] == event["ts"]
        build = structured(await client.call_tool("get_context", {"query": "long"}))
        await client.call_tool("forget", {"event_id": event["event_id"]})
        tombstone = json.loads(text_of(await client.read_resource(event_uri(event["event_id"]))))
        assert tombstone["body"] is None
        assert tombstone["receipt_id"]
        shape = await protocol_failure(client.read_resource(build_uri(build["build_id"])))
        assert shape["code"] == "forgotten"
        assert (await client.list_resources()).resources == []

    at(served(memory), talk)


@pytest.mark.parametrize(
    "uri",
    [
        "muniment://",
        "muniment://builds",
        "muniment://builds/",
        "muniment://builds/bld_none",
        "muniment://builds/../events/x",
        "muniment://events/evt_none",
        "muniment://events/%00",
        "muniment://runs/r/narrative/zero",
        "muniment://runs/r/narrative/99999999999999999999",
        "muniment://runs/r/secrets",
        "file:///etc/passwd",
        "http://127.0.0.1/",
        "",
        "muniment://events/" + "x" * 10_000,
        "MUNIMENT://events/x",
        "muniment://events/'; DROP TABLE entries; --",
    ],
)
def test_what_is_not_there_is_not_found(memory: Memory, uri: str) -> None:
    async def talk(client: Client) -> None:
        shape = await protocol_failure(client.read_resource(uri))
        assert shape["code"] in ("not_found", "invalid_input"), shape
        assert len(json.dumps(shape)) < 2_000

    at(served(memory), talk)


def test_addresses_are_read_back_as_they_were_written() -> None:
    for id_ in ("bld_1", "a/b", "ü %25?#", "..", "{x}"):
        assert parts_of(build_uri(id_)) == ["builds", id_]
        assert parts_of(event_uri(id_)) == ["events", id_]


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
def test_a_long_list_comes_in_pages_without_gap_or_double(memory: Memory, mode: str) -> None:
    run = memory.run(user_id="ana", agent_id="support")
    run.observe("user", "I moved to Berlin.")
    same = "2026-06-01T00:00:00Z"
    builds = [run.compose("responder", query=f"q{number}", now=same).id for number in range(PAGE + 20)]
    builds += [run.compose("planner", query=f"p{number}").id for number in range(PAGE)]
    other = memory.run(user_id="bo").compose("responder", query="not Ana's").id

    async def talk(client: Client) -> None:
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = await client.list_resources(cursor=cursor)
            assert len(page.resources) <= PAGE
            seen += [each.name for each in page.resources]
            if page.next_cursor is None:
                break
            run.compose("responder", query="meanwhile")  # what is added does not move what comes
            cursor = page.next_cursor
        assert sorted(seen) == sorted(builds)
        assert other not in seen

    at(served(memory), talk, mode)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_engine_lists_alike(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    target = str(tmp_path / "agent.db")
    if engine == "postgres":
        dsn = request.getfixturevalue("postgres_dsn")
        target = f"{dsn}{'&' if '?' in dsn else '?'}schema={request.getfixturevalue('postgres_schema')}"
    with make_store(target) as memory:
        run = memory.run(user_id="ana", agent_id="support", run_id="r1", objective="Talk")
        run.observe("user", "I moved to Berlin.")
        times = ("2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z")
        builds = [run.compose("responder", query=f"q{number}", now=times[number % 2]).id for number in range(6)]
        run.log.compact()
        memory.run(user_id="bo").compose("responder", query="not Ana's")
        seen: list[str] = []
        after: tuple[str, str, int] | None = None
        while page := list_readables(memory._ctx, "default", "ana", after, 2):
            seen += [each.id for each in page]
            after = page[-1].place
        assert sorted(seen[1:]) == sorted(builds)
        assert [builds.index(id_) % 2 for id_ in seen[1:]] == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("cursor", ["", "x", "2026 1", "2026 one bld_1", "2026 99999999999999999999 x", "a " * 5_000])
def test_a_cursor_that_was_not_answered_is_refused(memory: Memory, cursor: str) -> None:
    async def talk(client: Client) -> None:
        assert (await protocol_failure(client.list_resources(cursor=cursor)))["path"] == "$.cursor"
        assert (await protocol_failure(client.list_prompts(cursor=cursor)))["path"] == "$.cursor"
        assert (await protocol_failure(client.list_tools(cursor=cursor)))["path"] == "$.cursor"
        assert (await protocol_failure(client.list_resource_templates(cursor=cursor)))["path"] == "$.cursor"

    at(served(memory), talk)


def test_templates_say_what_can_be_read(memory: Memory) -> None:
    async def talk(client: Client) -> None:
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == [
            "muniment://builds/{build_id}",
            "muniment://events/{event_id}",
            "muniment://facts/{fact_id}",
            "muniment://sessions/{session_id}",
            "muniment://runs/{run_id}/narrative",
            "muniment://runs/{run_id}/narrative/{sequence}",
        ]

    at(served(memory), talk)


@pytest.mark.parametrize("mode", MODES)
def test_prompts_carry_what_was_composed(memory: Memory, mode: str) -> None:
    async def prompt(client: Client, name: str, arguments: dict[str, str]) -> str:
        (message,) = (await client.get_prompt(name, arguments)).messages
        assert message.role == "user"
        assert isinstance(message.content, TextContent)
        return message.content.text

    async def talk(client: Client) -> None:
        offered = (await client.list_prompts()).prompts
        assert [each.name for each in offered] == ["answer", "keep", "catch_up"]
        assert [each.arguments and each.arguments[0].required for each in offered] == [True, True, False]
        question = "Where did I move?"
        unknown = await prompt(client, "answer", {"query": question})  # nothing is known yet
        assert unknown == question
        await client.call_tool("remember", {"key": "user.city", "value": "Berlin", "text": "I moved to Berlin."})
        text = await prompt(client, "answer", {"query": question})
        assert text.startswith(f"{question}\n\n{NOTICE}\n\n")
        assert "City: Berlin [1]" in text
        assert "no earlier session" in await prompt(client, "catch_up", {})
        memory.run(user_id="ana", session_id="other").observe("user", "We stopped at chapter four.")
        for given in ({}, {"session_id": "other"}):
            assert "We stopped at chapter four." in await prompt(client, "catch_up", given)
        kept = await prompt(client, "keep", {"text": "I went vegan."})
        assert kept.endswith("I went vegan.")

    at(served(memory), talk, mode)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nope", {}),
        ("answer", {}),
        ("answer", {"query": ""}),
        ("answer", {"query": "x", "user_id": "bo"}),
        ("answer", {"query": "x" * 9_000}),
        ("keep", {"query": "x"}),
        ("catch_up", {"session_id": ""}),
    ],
)
def test_a_prompt_that_cannot_be_made_is_refused(memory: Memory, name: str, arguments: dict[str, Any]) -> None:
    async def talk(client: Client) -> None:
        shape = await protocol_failure(client.get_prompt(name, arguments))
        assert shape["code"] in ("invalid_input", "invalid_record")

    at(served(memory), talk)
