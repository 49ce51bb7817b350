"""Several documents at once: all of them or none, each with its own chain, found as if they had come one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.core.ports.engine import Engine, Transaction
from muniment.errors import DuplicateId, InvalidInput, InvalidRecord, MunimentError
from muniment.handles.memory import Memory
from muniment.memory.corpus import Corpus
from muniment.testing.hash_embedder import HashEmbedder

Counts = Callable[[Memory], dict[str, int]]
TEXTS = ("The heron stands in the reeds.", "A lighthouse keeps its lamp.", "Bread rises overnight.")


def _given(document_id: str | None, text: Any, **more: Any) -> dict[str, Any]:
    return {"text": text, "document_id": document_id, "media_type": "text/plain", "title": None, "source": None, **more}


def _many(mem: Memory) -> list[tuple[Corpus, dict[str, Any]]]:
    """Into two corpora of the tenant and one of a user."""
    corpora = mem.corpus("birds"), mem.corpus("towers"), mem.corpus("own", user_id="ana")
    return [(corpus, _given("one", text)) for corpus, text in zip(corpora, TEXTS, strict=True)]


@pytest.mark.soak
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
    any_mem.store.rebuild()
    assert list(any_mem.export())[1:-1] == before
    assert any_mem.verify().ok


@pytest.mark.soak
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
        (_given("two", 7), InvalidInput, "$[3].text"),
        (_given("two", "fine", metadata={"a": {1}}), MunimentError, None),
        (_given("", "no name"), InvalidRecord, None),
        (_given("one", "A second text for the same one."), DuplicateId, "$[3].document_id"),  # each document once
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


@pytest.mark.soak
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


def test_a_document_that_is_given_twice_is_named(any_mem: Memory) -> None:
    corpus = any_mem.corpus("birds")
    twice = [(corpus, _given(name, TEXTS[0])) for name in ("one", "two", "one")]
    with pytest.raises(DuplicateId, match="the document 'one' is given twice for the corpus 'birds', at 0 and 2"):
        Corpus._add_many(twice)
    with pytest.raises(DuplicateId, match="the same text is given twice for the corpus 'birds', at 0 and 1"):
        Corpus._add_many([(corpus, _given(None, TEXTS[0]))] * 2)
    assert corpus.documents() == []
    Corpus._add_many([(corpus, _given("one", TEXTS[0])), (any_mem.corpus("towers"), _given("one", TEXTS[0]))])


def test_documents_are_added_to_corpora_by_name(any_mem: Memory) -> None:
    asked = [
        {"corpus_id": "birds", "text": TEXTS[0], "document_id": "one"},
        {"corpus_id": "own", "user_id": "ana", "text": TEXTS[1], "title": "Lamp", "metadata": {"a": 1}},
        {"corpus_id": "birds", "text": TEXTS[2]},
    ]
    added = any_mem.store.add_documents(asked)
    own, birds = any_mem.corpus("own", user_id="ana"), any_mem.corpus("birds")
    assert added[1] == own.get(added[1].document_id)
    assert [added[0], added[2]] == [birds.get("one"), birds.get(added[2].document_id)]
    assert any_mem.store.add_documents(asked) == added, "the same again is the same"
    assert any_mem.store.add_documents([]) == []
    assert any_mem.verify().ok


@pytest.mark.req("LG-02")
@pytest.mark.parametrize("other", ["bob", None])
def test_documents_of_one_user_go_nowhere_else(any_mem: Memory, counts: Counts, other: str | None) -> None:
    said = {"corpus_id": "own", "text": TEXTS[0], "document_id": "one"}
    (added,) = any_mem.store.add_documents([said], user_id="ana")
    assert any_mem.corpus("own", user_id="ana").documents() == [added]
    assert any_mem.corpus("own").documents() == []
    assert any_mem.store.add_documents([said | {"user_id": "ana"}], user_id="ana") == [added]
    before = counts(any_mem)
    with pytest.raises(InvalidInput) as caught:
        any_mem.store.add_documents([said | {"text": TEXTS[1]}, said | {"user_id": other}], user_id="ana")
    assert caught.value.path == "$[1].user_id"
    assert counts(any_mem) == before


@pytest.mark.soak
@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"corpus_id": "x", "text": "y"}, "$"),
        ("text", "$"),
        ([7], "$[0]"),
        ([{"corpus_id": "x"}], "$[0].text"),
        ([{"text": "y"}], "$[0].corpus_id"),
        ([{"corpus_id": "x", "text": "y"}, {"corpus_id": "a b", "text": "y"}], "$[1].corpus_id"),
        ([{"corpus_id": "x", "text": "y", "colour": "red"}], "$[0]"),
        ([{"corpus_id": "x", "text": "y"}, {"corpus_id": "x", "text": "z", "title": 7}], "$[1].title"),
    ],
)
def test_documents_that_cannot_be_added_are_named_by_their_place(
    any_mem: Memory, counts: Counts, asked: Any, path: str
) -> None:
    before = counts(any_mem)
    with pytest.raises(InvalidInput) as caught:
        any_mem.store.add_documents(asked)
    assert caught.value.path == path
    assert counts(any_mem) == before


def test_documents_are_listed_by_their_ids(any_mem: Memory) -> None:
    corpus = any_mem.corpus("birds")
    for name in ("one", "two", "three"):
        corpus.add(f"{TEXTS[0]} {name}", document_id=name)
    corpus.add(TEXTS[1], document_id="two")
    corpus.retract("three", "no longer so")
    asked = ["two", "nowhere", "three", "two"]
    assert corpus.documents(document_ids=asked) == [corpus.get("two")]
    told = [(each.document_id, each.revision) for each in corpus.documents(include_all=True, document_ids=asked)]
    assert told == [("three", 1), ("two", 1), ("two", 2)]
    assert corpus.documents(document_ids=[]) == []
    for wrong in ("two", [7], 7):
        with pytest.raises(InvalidInput):
            corpus.documents(document_ids=wrong)  # type: ignore[arg-type]
