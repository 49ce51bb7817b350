"""Several documents at once: all of them or none, each with its own chain, found as if they had come one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.adapters.embed_hash import HashEmbedder
from muniment.errors import InvalidInput, InvalidRecord, MunimentError
from muniment.ports.engine import Engine, Transaction
from muniment.runtime.corpora import Corpus
from muniment.runtime.memory import Memory

Counts = Callable[[Memory], dict[str, int]]
TEXTS = ("The heron stands in the reeds.", "A lighthouse keeps its lamp.", "Bread rises overnight.")


def _given(document_id: str | None, text: Any, **more: Any) -> dict[str, Any]:
    return {"text": text, "document_id": document_id, "media_type": "text/plain", "title": None, "source": None, **more}


def _many(mem: Memory) -> list[tuple[Corpus, dict[str, Any]]]:
    """Into two corpora of the tenant and one of a user."""
    corpora = mem.corpus("birds"), mem.corpus("towers"), mem.corpus("own", user_id="ana")
    return [(corpus, _given("one", text)) for corpus, text in zip(corpora, TEXTS, strict=True)]


@pytest.mark.req("LG-03")
def test_all_of_a_batch_is_there_and_the_chains_hold(any_mem: Memory) -> None:
    added = _many(any_mem)
    Corpus._add_many(added)
    for corpus, given in added:
        document = corpus.get("one")
        assert (document.revision, document.status) == (1, "live")
        assert [hit.text for hit in corpus.search(given["text"])] == [given["text"]]
    assert any_mem.verify().ok
    Corpus._add_many([*added[:1], (added[1][0], _given("one", "The lighthouse was torn down."))])
    assert [corpus.get("one").revision for corpus, _ in added] == [1, 2, 1]  # the same again is no new revision
    assert [hit.text for hit in added[1][0].search("lighthouse")] == ["The lighthouse was torn down."]
    before = list(any_mem.export())[1:-1]
    any_mem.rebuild()
    assert list(any_mem.export())[1:-1] == before
    assert any_mem.verify().ok


@pytest.mark.parametrize("embedder", [None, HashEmbedder()])
def test_many_at_once_are_found_as_one_by_one(make: Callable[..., Memory], embedder: Any) -> None:
    at_once, one_by_one = make(), make()
    for mem in (at_once, one_by_one):
        mem._ctx.embedder = embedder
    documents = [_given(str(number), f"{TEXTS[number % 3]} Page {number}.") for number in range(20)]
    Corpus._add_many([(at_once.corpus("all"), given) for given in documents])
    for given in documents:
        one_by_one.corpus("all").add(**given)
    for query in ("heron", "lamp of the lighthouse", "page 7", "bread overnight"):
        found = [
            [(hit.text, hit.score, hit.why) for hit in mem.corpus("all").search(query, k=8)]
            for mem in (at_once, one_by_one)
        ]
        assert found[0] == found[1]
        assert found[0]


@pytest.mark.parametrize(
    ("bad", "error", "path"),
    [
        (_given("two", 7), InvalidInput, "$.text"),
        (_given("two", "fine", metadata={"a": {1}}), MunimentError, None),
        (_given("", "no name"), InvalidRecord, None),
        (_given("one", "A second text for the same one."), MunimentError, None),  # each document once
    ],
)
def test_one_that_is_refused_refuses_all(
    any_mem: Memory, counts: Counts, bad: dict[str, Any], error: type[MunimentError], path: str | None
) -> None:
    any_mem.corpus("birds").add("It is here before.", document_id="zero")
    before = counts(any_mem)
    with pytest.raises(error) as caught:
        Corpus._add_many([*_many(any_mem), (any_mem.corpus("birds"), bad)])
    assert path is None or caught.value.path == path
    assert counts(any_mem) == before
    assert any_mem.corpus("birds").search("heron") == []
    assert any_mem.verify().ok


@pytest.mark.req("LG-03")
def test_a_failure_at_the_end_leaves_nothing(any_mem: Memory, counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Engine = any_mem._ctx.engine
    write = engine.write
    before = counts(any_mem)

    def failing(tenant_id: str, work: Callable[[Transaction], Any]) -> Any:
        def worked(tx: Transaction) -> Any:
            work(tx)
            raise RuntimeError("the lights go out")

        return write(tenant_id, worked)

    with monkeypatch.context() as patched:
        patched.setattr(engine, "write", failing)
        with pytest.raises(RuntimeError):
            Corpus._add_many(_many(any_mem))
    assert counts(any_mem) == before
    assert any_mem.corpus("birds").search("heron") == []  # nor from what was kept in memory
    Corpus._add_many(_many(any_mem))
    assert [hit.text for hit in any_mem.corpus("birds").search("heron")] == [TEXTS[0]]
    assert any_mem.verify().ok
