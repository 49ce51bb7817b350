"""Every door gives the same profile, and refuses the same input: library, await, HTTP, command line, MCP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from cli_room import Commands, in_folder
from mcp import Client
from mcp_room import at, failure, said, served, structured

import muniment
from muniment import aio
from muniment.errors import InvalidInput
from muniment.surfaces.mcp.callers import CallerScope
from products import for_each
from served_store import connected

pytestmark = pytest.mark.req("TM-19")

SAID = ("I'm allergic to sesame and carry an EpiPen.", "Please always keep it short.\nI mean it.", "I live in Leeds.")
MUNIMENT = Commands()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = in_folder(tmp_path, monkeypatch) / "store.db"
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1")
        for text in SAID:
            run.observe("user", text)
    return path


def test_every_door_gives_the_same_profile(store: Path, tmp_path: Path) -> None:
    async def awaited() -> Any:
        async with await aio.open(str(store)) as mem:
            run = await mem.run(user_id="ana", session_id="s1", run_id="r1")
            assert await run.profile() == await mem.profile(user_id="ana")
            return await mem.profile(user_id="ana")

    with muniment.open(store) as mem:
        wanted = mem.profile(user_id="ana")
        assert "sesame" in wanted.text
        assert mem.run(user_id="ana", session_id="s2").profile() == wanted
        with connected(mem, tmp_path) as remote:
            assert remote.profile(user_id="ana") == wanted
            assert remote.run(user_id="ana", session_id="s1", run_id="r1").profile() == wanted

        async def talk(client: Client) -> None:
            told = await client.call_tool("get_profile", {})
            assert structured(told)["text"] == wanted.text
            assert list(structured(told)["marks"].values()) == [line.event_id for line in wanted.lines]
            assert said(told).endswith(wanted.text)

        at(served(mem, CallerScope("default", "ana", "agent"), profile="full"), talk)
    assert asyncio.run(awaited()) == wanted
    args = ("profile", "--user", "ana", "--db", str(store))
    assert MUNIMENT.document(*args) == wanted.to_wire()
    shown = MUNIMENT.text(*args).splitlines()
    assert len(shown) == len(wanted.lines)
    assert all(line.event_id in row for line, row in zip(wanted.lines, shown, strict=True))


@for_each(
    "asked, typed, path",
    [
        ({"max_tokens": -1}, ("--max-tokens", "-1"), "$.max_tokens"),
        ({"max_tokens": 1_000_000}, ("--max-tokens", "1000000"), "$.max_tokens"),
    ],
)
def test_every_door_refuses_the_same(
    store: Path, tmp_path: Path, asked: dict[str, Any], typed: tuple[str, ...], path: str
) -> None:
    with muniment.open(store) as mem, connected(mem, tmp_path) as remote:
        for each in (mem, remote):
            with pytest.raises(InvalidInput) as caught:
                each.profile(user_id="ana", **asked)
            assert caught.value.path == path

        async def talk(client: Client) -> None:
            assert failure(await client.call_tool("get_profile", asked))["path"] == path

        at(served(mem, CallerScope("default", "ana", "agent"), profile="full"), talk)
    error = MUNIMENT.failure("profile", "--user", "ana", "--db", str(store), *typed, code=2)
    assert (error["code"], error["path"]) == ("invalid_input", path)


def test_a_user_nobody_knows_has_an_empty_profile_at_every_door(store: Path, tmp_path: Path) -> None:
    with muniment.open(store) as mem, connected(mem, tmp_path) as remote:
        assert mem.profile(user_id="zoe") == remote.profile(user_id="zoe")
        assert not mem.profile(user_id="zoe").lines

        async def talk(client: Client) -> None:
            assert structured(await client.call_tool("get_profile", {}))["text"] == ""

        at(served(mem, CallerScope("default", "zoe", "agent"), profile="full"), talk)
    assert (
        MUNIMENT.text("profile", "--user", "zoe", "--db", str(store)) == "no statements of zoe about themselves yet\n"
    )
    assert json.loads(MUNIMENT.text("profile", "--user", "zoe", "--db", str(store), "--json"))["lines"] == []
