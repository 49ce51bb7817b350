"""Claims on a chunk of a document: checked, walled, noticed when it is retracted, gone when it is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.core.ports.engine import Patch, Select
from muniment.core.ports.schema import TABLES
from muniment.errors import Conflict, Forgotten, NotFound, QuoteMismatch, RunLocked
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.testing.stories import check_run

Maker = Callable[..., Memory]
Counts = Callable[[Memory], dict[str, int]]
GUIDE = "# Crane\n\nThe Zebulonia crane lifts forty tons at most. Above a wind of nine the crane stands still.\n"


def pointer(mem: Memory, quote: str, document: str = "crane.md", **scope: Any) -> dict[str, Any]:
    corpus = mem.corpus("handbook", **scope)
    held = corpus.add(GUIDE, document_id=document)
    return {"corpus_id": "handbook", "chunk_id": held.chunk_ids[0], "quote": quote}


def begin(mem: Memory) -> Run:
    run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective="how much does it lift")
    run.observe("user", "begin")
    return run


@pytest.mark.req("CS-06")
def test_a_chunk_is_evidence(any_mem: Memory, make: Maker) -> None:
    run = begin(any_mem)
    claim = run.log.claim("It lifts forty tons", evidence=[pointer(any_mem, "forty tons")], status="verified")
    assert claim.evidence_refs[0].to_wire()["corpus_id"] == "handbook"
    run.log.step("COMPILE_DONE", context={"selected": [claim.evidence_refs[0].chunk_id]})
    snapshot = run.log.compact()
    assert snapshot is not None
    coverage = snapshot.state.source_coverage
    assert "handbook" in coverage.source_ids_seen
    assert coverage.chunk_ids_cited == (claim.evidence_refs[0].chunk_id,)
    log = check_run(any_mem, run)
    lines = list(any_mem.export())
    moved = make("memory")
    moved.import_(lambda: lines)
    assert check_run(moved, moved.resume("r1").run) == log


@pytest.mark.req("CS-12", "LG-02")
def test_what_is_a_users_own_moves_with_the_user(any_mem: Memory, make: Maker) -> None:
    run = begin(any_mem)
    refs = [pointer(any_mem, "forty tons", user_id="ana")]
    run.log.claim("It lifts forty tons", evidence=refs, status="verified")
    pointer(any_mem, "forty tons", "theirs.md", user_id="bob")
    pointer(any_mem, "forty tons", "shared.md")
    log = check_run(any_mem, run)
    lines = list(any_mem.export(user_id="ana"))
    assert b"theirs.md" not in b"".join(lines)
    assert b"shared.md" not in b"".join(lines)
    moved = make("memory")
    moved.import_(lambda: lines)
    assert moved.corpus("handbook", user_id="ana").get("crane.md").chunk_ids == (refs[0]["chunk_id"],)
    assert check_run(moved, moved.resume("r1").run) == log
    assert moved.verify().ok
    session = list(any_mem.export(user_id="ana", session_id="s1"))
    assert b"crane.md" not in b"".join(session)
    alone = make("memory")
    alone.import_(lambda: session)
    assert "It lifts" not in alone.resume("r1").run.compose("planner", query="how much does it lift").text


@pytest.mark.req("CS-06", "LG-02")
def test_a_chunk_that_does_not_hold_is_refused(any_mem: Memory, counts: Counts) -> None:
    run = begin(any_mem)
    sound = pointer(any_mem, "forty tons")
    private = pointer(any_mem, "forty tons", "mine.md", user_id="bob")
    before = counts(any_mem)
    for given, wanted in (
        (sound | {"quote": "fifty tons"}, QuoteMismatch),
        (sound | {"corpus_id": "another"}, NotFound),
        (sound | {"chunk_id": "chk_none"}, NotFound),
        (private, NotFound),
        ({"event_id": sound["chunk_id"], "quote": "forty tons"}, NotFound),
    ):
        with pytest.raises(wanted) as caught:
            run.log.claim("It lifts", evidence=[given], status="verified")
        assert (caught.value.path or "").startswith("$.evidence[0]")
    assert counts(any_mem) == before


@pytest.mark.req("CS-06", "CS-08")
def test_a_document_is_retracted(any_mem: Memory, counts: Counts) -> None:
    run = begin(any_mem)
    refs = [pointer(any_mem, "forty tons")]
    claim = run.log.claim("It lifts forty tons", evidence=refs, status="verified")
    waiting = run.log.claim("It stands still", evidence=refs)
    run.log.compact()
    assert "verified: It lifts forty tons" in run.compose("planner", query="how much does it lift").text
    any_mem.corpus("handbook").retract("crane.md", "the crane was sold")
    before = counts(any_mem)
    for call in (
        lambda: run.log.claim("It lifts", evidence=refs, status="verified"),
        lambda: run.log.verify_claim(waiting.claim_id),
    ):
        with pytest.raises(Conflict, match="retracted") as caught:
            call()
        assert caught.value.path == "$.evidence[0]"
        assert caught.value.hint
    assert counts(any_mem) == before
    assert "It lifts forty tons" not in run.compose("planner", query="how much does it lift").text
    run.log.question("What now?")
    with pytest.raises(RunLocked, match=claim.claim_id):
        run.log.compact()
    repair = any_mem.resume("r1", repair=True).run
    repair.log.retract_claim(claim.claim_id, reason="its source was retracted")
    assert repair.log.unlock("done").sequence == 2
    run.observe("user", "it goes on")


def test_a_newer_revision_changes_nothing_of_a_claim(mem: Memory) -> None:
    run = begin(mem)
    run.log.claim("It lifts forty tons", evidence=[pointer(mem, "forty tons")], status="verified")
    mem.corpus("handbook").add(GUIDE.replace("forty", "fifty"), document_id="crane.md")
    run.log.compact()
    check_run(mem, run)


@pytest.mark.req("CS-06", "CS-08")
def test_a_chunk_was_altered_on_disk(make: Maker) -> None:
    mem = make("sqlite")
    run = begin(mem)
    claim = run.log.claim("It lifts forty tons", evidence=[pointer(mem, "forty tons")], status="verified")
    body = '{"content":"The crane lifts nothing at all, and what is more it never has, whatever they said of it."}'
    chunk = claim.evidence_refs[0].chunk_id
    mem._ctx.engine.write("default", lambda tx: tx.do(Patch("entries", (("id", "=", chunk),), {"body": body})))
    with pytest.raises(RunLocked, match=claim.claim_id):
        run.log.compact()


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_document_is_forgotten(make: Maker, engine: str) -> None:
    mem = make(engine)
    run = begin(mem)
    claim = run.log.claim("The Zebulonia crane lifts", evidence=[pointer(mem, "forty tons")], status="verified")
    run.log.compact()
    receipt = mem.corpus("handbook").forget("crane.md")
    assert ("claim", claim.claim_id) in {(each.kind, each.id) for each in receipt.erased}
    rows = mem._ctx.engine.read("default", lambda reader: [reader.do(Select(spec.name)) for spec in TABLES])
    assert "Zebulonia" not in repr(rows)
    with pytest.raises(Forgotten):
        mem.log.snapshot("r1")
    assert mem.resume("r1").log.claims == ()
    snapshot = run.log.compact()
    assert snapshot is not None
    assert snapshot.sequence == 2
    check_run(mem, run)
