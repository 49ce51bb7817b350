"""A portable file over HTTP and over a connection: uploaded, checked, brought in, and taken out again. MV-01, MV-05."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from http_support import Serve, running

import muniment
from muniment.errors import Forbidden, InvalidInput
from muniment.handles.memory import Memory

LINES = {"Content-Type": "application/x-ndjson"}
ANA = "/v1/tenants/default/users/ana/portable"


@pytest.fixture
def file() -> list[bytes]:
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", session_id="s")
        run.observe("user", "I live in Turin.", ts="2025-01-01T00:00:00Z")
        run.extract()
        return list(mem.store.export_memory(user_id="ana"))


def test_a_file_is_brought_in_and_taken_out(serve: Serve, file: list[bytes]) -> None:
    client = serve()
    body = b"".join(file)
    assert client.get(ANA).status_code == 404
    done = client.post(ANA, content=body, headers=LINES)
    assert (done.status_code, done.json()["written"]) == (200, {"facts": 1, "messages": 1})
    assert client.post(ANA, content=body, headers=LINES).json()["written"] == {}
    out = client.get(ANA).text
    assert "I live in Turin." in out
    assert '"system":"muniment"' in out


def test_it_becomes_the_memory_of_whose_address_it_is(serve: Serve, file: list[bytes]) -> None:
    client = serve()
    done = client.post(ANA.replace("ana", "ben"), content=b"".join(file), headers=LINES)
    assert done.json()["users"] == ["ben"]
    assert client.get(ANA).status_code == 404


def test_what_does_not_hold_is_a_problem(serve: Serve, file: list[bytes]) -> None:
    client = serve()
    for body, status in ((b"".join(file[:-1]), 422), (b"".join(file).replace(b"Turin", b"Paris"), 422), (b"{", 400)):
        answer = client.post(ANA, content=body, headers=LINES)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert client.get(ANA).status_code == 404


def test_over_a_connection(tmp_path: Path, file: list[bytes]) -> None:
    def tell(mem: Memory) -> list[Any]:
        seen: list[int] = []
        told = [
            mem.store.import_memory(file, progress=seen.append),
            mem.store.import_memory(lambda: iter(file)),
        ]
        assert sum(seen) == 1
        out = list(mem.store.export_memory(user_id="ana"))
        return [*told, [line for line in out if line.startswith((b'{"message"', b'{"fact"'))]]

    with (
        muniment.open(":memory:") as here,
        muniment.open(":memory:") as behind,
        running(behind, tmp_path) as there,
        muniment.connect(there) as remote,
    ):
        assert tell(remote) == tell(here)
        with pytest.raises(Forbidden):
            remote.store.import_from("mem0", ["x"])
        with pytest.raises(InvalidInput):
            remote.store.import_memory(file[:-1])
        with pytest.raises(InvalidInput, match="over a connection"):
            remote.store.import_memory(file, dry_run=True)
