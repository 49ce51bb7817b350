"""A forgotten document leaves no word of itself, its title, its id or its headings, in any table or byte (LG-07)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.core.scope import ChunkSpan
from muniment.errors import Forgotten, NotFound, UnknownScope
from muniment.handles.memory import Memory
from muniment.memory.corpus import standing_of

WORDS = ("quokkafile", "quokkatitle", "quokkahead", "quokkabody", "quokkasource", "quokkameta", "quokkareason")


def add(mem: Memory, body: str = "quokkabody", **scope: Any) -> tuple[str, ...]:
    filler = "Something is said at some length here, so that sections do not share a chunk. " * 3
    text = f"# quokkahead\n\n{filler}\n\n## quokkahead two\n\n{filler} {body}"
    return (
        mem.corpus("zoo", **scope)
        .add(
            text,
            document_id="quokkafile.md",
            title="quokkatitle",
            source="quokkasource",
            metadata={"note": "quokkameta"},
        )
        .chunk_ids
    )


def gone(everything: Callable[[Memory], str], stored_bytes: Callable[[], bytes], mem: Memory) -> None:
    left = everything(mem)
    raw = stored_bytes()
    for word in WORDS:
        assert word not in left, word
        assert word.encode() not in raw, word


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_document_goes_in_all_its_revisions(make: Any, everything: Any, stored_bytes: Any, engine: str) -> None:
    mem = make(engine)
    corpus = mem.corpus("zoo")
    kept = corpus.add("The wombat stays.", document_id="wombat")
    ids = (*add(mem), *add(mem, "quokkabody, revised"))
    corpus.retract("quokkafile.md", "quokkareason")
    assert all(word in everything(mem) for word in WORDS)
    receipt = corpus.forget("quokkafile.md")
    assert receipt.selector.keys() == {"tenant_id", "user_id", "document"}
    assert {each.id for each in receipt.erased} >= set(ids)
    gone(everything, stored_bytes, mem)
    for id_ in ids:
        with pytest.raises(Forgotten) as caught:
            mem.ledger.resolve(ChunkSpan(corpus_id="zoo", chunk_id=id_))
        assert caught.value.details["receipt_id"] == receipt.receipt_id
        with pytest.raises(Forgotten):
            corpus.chunk(id_)
    with pytest.raises(Forgotten):
        corpus.get("quokkafile.md")
    standing = mem._ctx.engine.read("default", lambda reader: standing_of(reader, "default", [*ids, *kept.chunk_ids]))
    assert standing == dict.fromkeys(ids, "forgotten") | {kept.chunk_ids[0]: "live"}
    assert corpus.documents(include_all=True) == [kept]
    assert [hit.text for hit in corpus.search("quokkabody wombat")] == ["The wombat stays."]
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()
    gone(everything, stored_bytes, mem)
    assert corpus.forget("quokkafile.md").erased == ()
    again = corpus.add("The quokka is back.", document_id="quokkafile.md")
    assert (again.revision, again.status) == (3, "live")


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("engine", ["sqlite"])
def test_forgetting_one_chunk_forgets_its_revision(make: Any, everything: Any, stored_bytes: Any, engine: str) -> None:
    """Its heading stands in the path of the other chunks, and may be the title."""
    mem = make(engine)
    ids = add(mem)
    receipt = mem.forget(event=ids[0])
    assert {each.id for each in receipt.erased} >= set(ids)
    gone(everything, stored_bytes, mem)


@pytest.mark.req("LG-07")
def test_an_older_revision_can_stand_without_the_newer_one(mem: Memory) -> None:
    corpus = mem.corpus("zoo")
    first = corpus.add("The quokka is small.", document_id="q")
    second = corpus.add("The quokka is tiny.", document_id="q")
    mem.forget(event=second.chunk_ids[0])
    left = corpus.get("q")
    assert (left.revision, left.status, left.chunk_ids) == (1, "superseded", first.chunk_ids)
    assert corpus.search("quokka") == []
    assert mem.store.rebuild().repaired == ()
    assert corpus.add("The quokka is small.", document_id="q").revision == 3


@pytest.mark.req("LG-07", "LG-02")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_who_is_forgotten_loses_their_private_corpora_alone(
    make: Any, everything: Any, stored_bytes: Any, engine: str
) -> None:
    mem = make(engine)
    add(mem, user_id="ana")
    shared = mem.corpus("zoo").add("The shared wombat.", document_id="w")
    bobs = mem.corpus("zoo", user_id="bob:ana").add("Bob's wombat.", document_id="w")
    mem.forget(user_id="ana")  # who never said a word
    gone(everything, stored_bytes, mem)
    assert mem.corpus("zoo").documents() == [shared]
    assert mem.corpus("zoo", user_id="bob:ana").documents() == [bobs]
    with pytest.raises(UnknownScope):
        mem.forget(user_id="cleo")
    mem.corpus("zoo").forget()
    assert mem.corpus("zoo").documents(include_all=True) == []
    assert mem.corpus("zoo", user_id="bob:ana").documents() == [bobs]
    mem.forget(tenant="default")
    assert mem.corpus("zoo", user_id="bob:ana").documents() == []
    with pytest.raises(NotFound):
        mem.corpus("never").forget("x")
    with pytest.raises(UnknownScope):
        mem.corpus("never").forget()


@pytest.mark.req("LG-07")
def test_another_tenant_forgets_nothing(mem: Memory) -> None:
    ids = add(mem)
    with pytest.raises(NotFound):
        mem.corpus("zoo", tenant_id="acme").forget("quokkafile.md")
    with pytest.raises(NotFound):
        mem.forget(event=ids[0], tenant_id="acme")
    assert mem.corpus("zoo").get("quokkafile.md").chunk_ids == ids
