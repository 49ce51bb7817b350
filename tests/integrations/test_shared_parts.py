"""What the integrations share, on all three engines and over HTTP: values under keys, and conversations as events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.integrations.connected import over_http

from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.integrations.anthropic import MemoryFiles
from muniment.integrations.keyed_documents import KeyedDocuments
from muniment.integrations.mem0 import Memory as Mem0
from muniment.integrations.transcript import Line, Transcript
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.postgres import Unavailable, fresh_schema, server_dsn


@pytest.fixture(params=["sqlite", "postgres", "http"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with ExitStack() as stack:
        if request.param == "postgres":
            try:
                dsn = server_dsn()
            except Unavailable as reason:
                pytest.skip(str(reason))
            engine = PostgresEngine(dsn, schema=stack.enter_context(fresh_schema(dsn)))
        else:
            engine = open_engine(tmp_path / "a.db")
        made = Memory(new_context(engine=engine, policy=Policy(), clock=TickingClock(), ids=CountingIds()))
        stack.callback(made.close)
        yield made if request.param != "http" else over_http(made, tmp_path, stack)


@pytest.mark.soak
def test_values_under_keys(mem: Memory) -> None:
    documents = KeyedDocuments(mem, "things", user_id="ana")
    assert (documents.get("k"), documents.all(), documents.take("k")) == (None, [], False)
    documents.put("k", {"v": 1}, "green apples")
    documents.put("k", {"v": 2}, "red cherries")
    documents.put("other", {"v": [None, 1.5, {"a": "é"}]}, "")
    kept = documents.get("k")
    assert kept is not None
    assert (kept.value, kept.revision) == ({"v": 2}, 2)
    assert [each.key for each in documents.all()] == ["k", "other"]
    assert [each.key for each, _ in documents.find("red cherries", 5)] == ["k"]
    assert list(documents.find("green apples", 5)) == []
    assert documents.take("k") is True
    assert documents.take("k") is False
    assert [status for _, status in documents.history("k")] == ["superseded", "retracted"]
    assert documents.take("other", erase=True) is True
    assert documents.take("never", erase=True) is False
    assert documents.history("other") == []
    documents.put("other", {"v": 3}, "again")
    documents.clear()
    assert documents.all() == []
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.parametrize("key", ["", " ", "a" * 1000, "\x00", "a\nb", "é" * 400, "long_00", "../x", "长" * 256])
def test_any_text_is_a_key(mem: Memory, key: str) -> None:
    documents = KeyedDocuments(mem, "things")
    documents.put(key, {"v": 1}, "text")
    documents.put(key + "!", {"v": 2}, "text")
    kept = documents.get(key)
    assert kept is not None
    assert (kept.key, kept.value) == (key, {"v": 1})


def test_a_conversation(mem: Memory) -> None:
    def transcript(erase: bool = False) -> Transcript:
        return Transcript(mem, "test", user_id="ana", session_id="s1", agent_id="a", erase=erase)

    lines = [
        Line({"role": "user", "content": "My cat is called Toby."}, "My cat is called Toby.", "user", "content"),
        Line({"thought": "hm"}),
        Line({"out": "12"}, "12", "tool", "out", {"name": "weather", "ok": True}),
    ]
    transcript().append(lines)
    transcript().append([])
    assert transcript().items() == [line.item for line in lines]
    assert transcript().pop() == {"out": "12"}
    transcript().run.observe("user", "not an item")
    assert len(transcript().items()) == 2
    transcript().clear()
    assert transcript().items() == []
    assert "My cat is called Toby." in [hit.text for hit in transcript().run.search("cat called Toby")]
    transcript().append(lines[:1])
    assert transcript(erase=True).pop() == lines[0].item
    transcript(erase=True).clear()
    assert list(transcript().run.search("cat called Toby")) == []
    assert mem.verify().ok


@pytest.mark.soak
def test_facades_over_every_engine(mem: Memory) -> None:
    memory = Mem0(mem)
    id_ = memory.add("I moved to Berlin.", user_id="ana", metadata={"n": 1})["results"][0]["id"]
    memory.update(id_, "I moved to Hamburg.")
    found = memory.search("moved", filters={"user_id": "ana", "n": {"gte": 1}})["results"]
    assert [each["memory"] for each in found] == ["I moved to Hamburg."]
    files = MemoryFiles(mem, user_id="ana")
    files.create("/memories/d/a.md", "text")
    files.rename("/memories/d", "/memories/e")
    assert files.view("/memories/e/a.md").endswith("\ttext")
    mem.forget(user_id="ana")
    assert memory.get(id_) is None
    assert len(files.view("/memories").splitlines()) == 2
