"""What lies outside the store, at every door: what cannot be read is one error for the library, HTTP, MCP and the
command line, and upkeep is done through each (LG-12).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_room import Commands, in_folder
from mcp import Client
from mcp_room import at, protocol_failure, served

import muniment
from muniment.errors import MunimentError
from muniment.handles.memory import Memory
from muniment.surfaces.mcp.uris import event_uri
from served_store import connected

TEXT = "The ferry to the island leaves at nine. " * 3000


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "objects").mkdir()
    return in_folder(tmp_path, monkeypatch)


def opened(place: Path, **more: Any) -> Memory:
    return muniment.open(place / "a.db", **{"objects": (place / "objects").as_uri()} | more)


def files(place: Path) -> list[Path]:
    return sorted(path for path in (place / "objects").rglob("*") if path.is_file())


def vanish(place: Path) -> None:
    (place / "objects").rename(place / "gone")


def lose(place: Path) -> None:
    files(place)[0].unlink()


def alter(place: Path) -> None:
    files(place)[0].write_text("something else")


@pytest.mark.req("LG-12")
@pytest.mark.parametrize(
    ("spoil", "code", "status"),
    [(vanish, "objects_unavailable", 503), (lose, "blob_corrupt", 500), (alter, "blob_corrupt", 500)],
)
def test_what_cannot_be_read_is_one_error_at_every_door(
    place: Path, spoil: Callable[[Path], None], code: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(place) as mem:
        event = mem.run(user_id="ana", session_id="s1").observe("user", TEXT).id
        monkeypatch.setenv("MUNIMENT_OBJECTS", (place / "objects").as_uri())
        monkeypatch.setenv("MUNIMENT_DB", "a.db")
        assert Commands().document("verify")["objects"] == 1
        spoil(place)
        mem._ctx.clear_caches()
        with pytest.raises(MunimentError) as caught:
            mem.ledger.content(event)
        wanted = caught.value
        assert (wanted.code, wanted.status) == (code, status)
        with connected(mem, place) as far, pytest.raises(type(wanted)) as over_http:
            far.ledger.content(event)
        assert over_http.value.to_dict() == wanted.to_dict()

        async def talk(client: Client) -> None:
            assert await protocol_failure(client.read_resource(event_uri(event))) == wanted.to_dict()

        at(served(mem), talk)
    told = Commands().failure("export", "all.jsonl", code=2 if spoil is vanish else 1)
    if spoil is vanish:  # a command opens the store anew, and the folder is not there
        assert (told["code"], told["path"]) == ("invalid_input", "$.objects")
    else:
        assert told["code"] == code
        assert event in told["message"]
    assert not (place / "all.jsonl").exists()


@pytest.mark.req("LG-13")
def test_another_key_is_one_error_at_every_door(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place, objects_key=lambda: "5e" * 32) as mem:
        event = mem.run(user_id="ana", session_id="s1").observe("user", TEXT).id
    monkeypatch.setenv("MUNIMENT_OBJECTS", (place / "objects").as_uri())
    monkeypatch.setenv("MUNIMENT_DB", "a.db")
    monkeypatch.setenv("MUNIMENT_OBJECTS_KEY", "env:OTHER")
    monkeypatch.setenv("OTHER", "a7" * 32)
    assert Commands().failure("export", "all.jsonl")["code"] == "no_objects_key"
    monkeypatch.delenv("OTHER")
    assert Commands().failure("verify")["code"] == "no_objects_key"
    with opened(place, objects_key=lambda: "a7" * 32) as mem, connected(mem, place) as far:
        with pytest.raises(MunimentError) as caught:
            far.ledger.content(event)
        assert caught.value.code == "no_objects_key"
        assert "a7" * 16 not in json.dumps(caught.value.to_dict())


@pytest.mark.req("LG-15", "LG-16")
def test_upkeep_is_done_over_http_and_by_commands(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as mem, connected(mem, place) as far:
        mem.run(user_id="ana", session_id="s1").observe("user", TEXT)
        assert far.store.move_contents(back=True).moved == 1
        assert far.store.move_contents().moved == 1
        assert far.store.archive(session="s1", user_id="ana").events == 1
        assert far.store.unarchive(user_id="ana").events == 1
        assert far.store.sweep_objects(grace_hours=0).deleted == 0
        with pytest.raises(MunimentError) as caught:
            far.store.archive()
        assert (caught.value.code, caught.value.path) == ("invalid_input", "$.before")
    monkeypatch.setenv("MUNIMENT_OBJECTS", (place / "objects").as_uri())
    commands = Commands("store")
    monkeypatch.setenv("MUNIMENT_DB", "a.db")
    assert commands.document("archive", "--before", "2100-01-01T00:00:00Z")["events"] == 1
    assert commands.document("unarchive")["events"] == 1
    assert commands.document("sweep-objects", "--grace-hours", "0.5")["seen"] == 1
    assert commands.document("backup", "copy.db")["objects"] == 1
    assert "1 object of it outside" in commands.text("backup", "copy2.db")
    assert commands.failure("archive", code=2)["path"] == "$.before"
    monkeypatch.delenv("MUNIMENT_OBJECTS")
    for words in (("archive", "--before", "2100-01-01T00:00:00Z"), ("sweep-objects",), ("move-contents",)):
        assert commands.failure(*words)["code"] == "conflict"


# -- how a folder is named ------------------------------------------------------------------------------


@pytest.mark.req("LG-11")
@pytest.mark.parametrize("given", ["file:objects", "file:./objects", "file:../{here}/objects", "file:~/objects"])
def test_a_relative_folder_is_taken_as_the_path_of_the_store_is(
    place: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = given.format(here=place.name)
    monkeypatch.setenv("HOME", str(place))
    with opened(place, objects=named) as mem:
        (place / "elsewhere").mkdir()
        monkeypatch.chdir(place / "elsewhere")  # where the process stands later is no matter
        event = mem.run(user_id="ana", session_id="s1").observe("user", TEXT).id
        assert len(files(place)) == 1
        with connected(mem, place) as far:
            assert far.ledger.content(event) == TEXT
    monkeypatch.chdir(place)
    with opened(place) as mem:
        assert mem.ledger.content(event) == TEXT, "the same folder by its whole path"
    monkeypatch.setenv("MUNIMENT_DB", "a.db")
    monkeypatch.setenv("MUNIMENT_OBJECTS", named)
    assert Commands().document("verify")["objects"] == 1
    monkeypatch.delenv("MUNIMENT_OBJECTS")
    monkeypatch.setenv("MUNIMENT_CONFIG", "muniment.toml")
    (place / "muniment.toml").write_text(f'objects = "{named}"\n')
    assert Commands().document("verify")["objects"] == 1


@pytest.mark.req("LG-12")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("file:nowhere", "the folder for objects is not there: '{place}/nowhere'"),
        ("file:a.txt", "the folder for objects is no folder: '{place}/a.txt'"),
        ("file:", "that names no folder for objects"),
        ("file:%00objects", "that names no folder for objects"),
        ("file://objects", "what follows file:// is the name of a machine, and objects lie on this one"),
    ],
)
def test_a_folder_that_cannot_be_meant_is_one_error_at_every_door(
    place: Path, given: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "a.txt").write_text("no folder")
    with pytest.raises(MunimentError) as caught:
        opened(place, objects=given)
    wanted = caught.value.to_dict()
    assert (wanted["code"], wanted["path"], wanted["message"]) == (
        "invalid_input", "$.objects", said.format(place=place),
    )  # fmt: skip
    monkeypatch.setenv("MUNIMENT_DB", "a.db")
    monkeypatch.setenv("MUNIMENT_OBJECTS", given)
    (place / "said.jsonl").write_text('{"role": "user", "content": "I live in Oslo."}')
    for words in (("ingest", "said.jsonl", "--user", "ana"), ("serve", "--port", "0"), ("mcp", "--user", "ana")):
        told = Commands().failure(*words, code=2)
        assert (told["code"], told["path"], told["message"]) == (wanted["code"], wanted["path"], wanted["message"])
    assert not (place / "a.db").exists(), "nothing was opened"
