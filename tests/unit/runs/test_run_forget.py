"""What a forget does to a run (LG-07): claims, their dependents, conflicts and snapshots go with the evidence."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from muniment.core.outside.system import TickingClock
from muniment.core.ports.engine import Reader, Row, Select
from muniment.core.ports.schema import TABLES
from muniment.errors import Conflict, Forgotten, NotFound
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.runs.records import RunClaim
from muniment.testing.stories import check_run, replayed

Maker = Callable[..., Memory]
ENGINES = pytest.mark.parametrize("engine", ["sqlite", "postgres"])
WORD = "Zebulonia"


def stored_bytes(tmp_path: Path) -> bytes:
    """Every byte of every file of the stores, read by another process, so that SQLite keeps its locks."""
    command = ["find", str(tmp_path / "store"), "-type", "f", "-exec", "cat", "{}", ";"]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


def everything(mem: Memory) -> str:
    def rows(reader: Reader) -> list[Row]:
        return [row for spec in TABLES for row in reader.do(Select(spec.name))]

    return repr(mem._ctx.engine.read("default", rows))


def begin(mem: Memory, run_id: str = "r1") -> Run:
    run = mem.run(
        user_id="ana", session_id=f"s-{run_id}", run_id=run_id, objective="find out", done_definition="one claim"
    )
    other = run.observe("user", "Something else was said.")
    for number in range(12):  # more than fit into the head of a snapshot
        run.log.claim(f"kept {number}", evidence=[other.id], status="verified")
    return run


def filled(run: Run, event: str) -> dict[str, RunClaim]:
    """Everything of a run that can cite an event, each holding the word in a place of its own."""
    other = run.observe("user", "And another thing.").id
    base = run.log.claim(f"{WORD}-claimed", evidence=[event], status="verified")
    claims = {
        "base": base,
        "both": run.log.claim(f"{WORD}-both", evidence=[other, event], status="verified"),
        "dependent": run.log.claim(
            f"{WORD}-dependent", evidence=[other], status="verified", depends_on=[base.claim_id]
        ),
        "later": run.log.claim(f"{WORD}-later", evidence=[other], status="verified"),
        "refuted": run.log.claim(f"{WORD}-refuted", evidence=[other], status="verified"),
    }
    run.log.verify_claim(claims["later"].claim_id, evidence=[event])
    run.log.retract_claim(claims["refuted"].claim_id, reason=f"{WORD}-reason", evidence=[event])
    conflict = run.log.conflict(f"{WORD}-conflict", side_a=[event], side_b=[other])
    run.log.settle_conflict(conflict.conflict_id, resolution=f"{WORD}-resolution")
    run.log.conflict(f"{WORD}-between", side_a=[other], side_b=[other], claims=[base.claim_id])
    run.log.failure("broken", f"{WORD}-where", f"{WORD}-why", evidence=[event])
    return claims


@pytest.mark.req("LG-07", "CS-12")
@ENGINES
def test_forgetting_the_evidence_takes_what_cites_it(make: Maker, engine: str, tmp_path: Path) -> None:
    mem = make(engine)
    run = begin(mem)
    run.log.compact()
    said = run.observe("user", f"I moved to {WORD} in May.")
    claims = filled(run, said.id)
    run.log.step("COMPILE_DONE", context={"selected": [said.id]})
    run.log.compact()
    run.log.question("And now?")
    assert run.log.compact() is not None
    assert WORD in everything(mem)
    receipt = mem.forget(event=said.id)
    erased = {(each.kind, each.id) for each in receipt.erased}
    assert {("claim", claim.claim_id) for claim in claims.values()} <= erased
    assert sum(kind == "conflict" for kind, _ in erased) == 2
    assert sum(kind == "snapshot" for kind, _ in erased) == 1
    assert receipt.scrubbed or engine == "postgres"
    assert WORD not in everything(mem)
    assert WORD.encode() not in stored_bytes(tmp_path)
    for sequence in (1, 2, 3, None):
        for look in (mem.log.snapshot, mem.log.check_snapshot, mem.log.narrative):
            with pytest.raises(Forgotten) as caught:
                look("r1", sequence)
            assert caught.value.details["receipt_id"] == receipt.receipt_id
    assert list(mem.log.snapshots("r1")) == []
    resumed = mem.resume("r1")
    assert (resumed.snapshot, resumed.rejected) == (None, ())
    assert resumed.log == replayed(mem, run)
    assert len(resumed.log.claims) == 12
    assert resumed.log.conflicts == ()
    assert [question.text for question in resumed.log.open_questions] == ["And now?"]
    snapshot = resumed.run.log.compact()
    assert snapshot is not None
    assert (snapshot.sequence, snapshot.to_wire()["previous_snapshot_id"]) == (4, None)
    check_run(mem, run)
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()
    assert WORD not in everything(mem)
    lines = b"".join(mem.export())
    assert WORD.encode() not in lines


@ENGINES
def test_what_was_forgotten_can_be_claimed_anew_and_not_be_changed(make: Maker, engine: str) -> None:
    mem = make(engine)
    run = begin(mem)
    said = run.observe("user", f"I moved to {WORD}.")
    claims = filled(run, said.id)
    asked = run.log.question(f"{WORD}?")
    mem.forget(event=said.id)
    before = run.log.read()
    for claim in claims.values():
        with pytest.raises(Forgotten):
            run.log.verify_claim(claim.claim_id)
        with pytest.raises(Forgotten):
            run.log.retract_claim(claim.claim_id, reason="no")
        with pytest.raises(Forgotten):
            run.log.claim("rests on it", depends_on=[claim.claim_id])
    with pytest.raises(Forgotten):
        run.log.claim("cites it", evidence=[said.id])
    assert run.log.read() == before
    assert run.log.question(f"{WORD}?") == asked
    again = run.log.claim(f"{WORD}-claimed", evidence=[run.observe("user", f"{WORD}, I said.").id], status="verified")
    assert again.claim_id not in {claim.claim_id for claim in claims.values()}
    run.log.compact()
    check_run(mem, run)
    assert mem.store.rebuild().repaired == ()


@pytest.mark.req("LG-07")
def test_other_runs_that_cite_it_lose_their_snapshots_and_others_keep_theirs(make: Maker) -> None:
    mem = make("sqlite")
    citing, other = begin(mem, "r1"), begin(mem, "r2")
    said = mem.run(user_id="ana", session_id="talk", run_id="r3").observe("user", f"I moved to {WORD}.")
    citing.log.claim(f"She moved to {WORD}", evidence=[said.id], status="verified")
    for run in (citing, other):
        run.log.compact()
    mem.forget(event=said.id)
    with pytest.raises(Forgotten):
        mem.log.snapshot("r1")
    assert mem.log.snapshot("r2").sequence == 1
    assert mem.log.check_snapshot("r2").status == "PASS"
    for run in (citing, other):
        run.log.compact()
        check_run(mem, run)


@pytest.mark.req("LG-07", "CS-05")
@ENGINES
def test_forgetting_what_a_run_is_for(make: Maker, engine: str, tmp_path: Path) -> None:
    mem = make(engine)
    run = mem.run(
        user_id="ana", session_id="s1", run_id="r1", objective=f"find {WORD}", done_definition={"found": WORD}
    )
    run.observe("user", "begin")
    run.log.compact()
    mem.forget(event=next(iter(run.ledger.entries())).id)
    assert WORD not in everything(mem)
    assert WORD.encode() not in stored_bytes(tmp_path)
    assert mem.resume("r1").log.objective == ""
    mem.resume("r1").run.observe("user", "it goes on")
    run.observe("user", "the handle that knew goes on as well")
    assert WORD not in everything(mem)
    snapshot = run.log.compact()
    assert snapshot is not None
    assert (snapshot.objective, snapshot.sequence) == ("", 2)
    check_run(mem, run)


@pytest.mark.req("LG-07")
@ENGINES
@pytest.mark.parametrize("what", ["session", "user"])
def test_forgetting_a_whole_run(make: Maker, engine: str, what: str, tmp_path: Path) -> None:
    mem = make(engine)
    run = begin(mem)
    filled(run, run.observe("user", f"I moved to {WORD}.").id)
    run.log.question(f"{WORD}-asked")
    run.log.plan_next([f"{WORD}-next"])
    run.log.step("ACT_DONE", f"{WORD}-step", action={"to": WORD})
    run.log.compact()
    receipt = mem.forget(session="s-r1", user_id="ana") if what == "session" else mem.forget(user_id="ana")
    assert WORD not in everything(mem)
    assert WORD.encode() not in stored_bytes(tmp_path)
    with pytest.raises(Forgotten) as caught:
        mem.resume("r1")
    assert caught.value.details["receipt_id"] == receipt.receipt_id
    with pytest.raises(Forgotten):
        mem.log.snapshot("r1")
    assert mem.runs() == []
    assert run.log.read().claims == ()
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()


def test_a_locked_run_is_put_right_by_a_forget(make: Maker) -> None:
    from muniment.core.ports.engine import Patch
    from muniment.errors import RunLocked

    mem = make("sqlite")
    run = begin(mem)
    said = run.observe("user", f"I moved to {WORD}.")
    filled(run, said.id)
    body = '{"content":"I moved to Atlantis."}'
    mem._ctx.engine.write("default", lambda tx: tx.do(Patch("entries", (("id", "=", said.id),), {"body": body})))
    with pytest.raises(RunLocked):
        run.log.compact()
    mem.forget(event=said.id)
    assert mem.resume("r1", repair=True).run.log.unlock("the altered event was forgotten").sequence == 1
    check_run(mem, run)
    assert mem.verify().ok


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
def test_a_dump_brings_back_nothing_of_what_was_forgotten_here(
    make: Maker, batch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claimed and snapshot where the dump comes from, after what it rests on was forgotten here."""
    monkeypatch.setattr("muniment.store.transfer.BATCH_ROWS", batch_rows)
    later = TickingClock(datetime(2027, 1, 1, tzinfo=UTC))
    source, here = make("memory"), make("sqlite", clock=later, seed="here")
    run = begin(source)
    said = run.observe("user", f"I moved to {WORD}.")
    here.import_(lambda: list(source.export()))
    here.forget(event=said.id)
    run.log.claim(f"She moved to {WORD}", evidence=[said.id], status="verified")
    for number in range(3):
        run.log.claim(f"later {number}")
        run.log.compact()
    lines = list(source.export())
    for _ in range(2):  # and once more changes nothing
        here.import_(lambda: lines)
        assert WORD not in everything(here)
    with pytest.raises(Forgotten):
        here.log.snapshot("r1")
    resumed = here.resume("r1")
    assert resumed.snapshot is None
    assert resumed.run.log.compact() is not None  # it is not locked by a claim on what is not there
    check_run(here, resumed.run)
    assert here.verify().ok


@pytest.mark.req("LG-07")
def test_a_dump_that_was_imported_before_a_forget_can_be_imported_again(make: Maker) -> None:
    source, here = make("memory"), make("memory")
    run = begin(source)
    said = run.observe("user", f"I moved to {WORD}.")
    filled(run, said.id)
    run.remember("user.city", WORD, sources=[said.id])
    run.log.compact()
    lines = list(source.export())
    here.import_(lambda: lines)
    here.forget(event=said.id)
    report = here.import_(lambda: lines)
    assert not any(report.written.values())
    assert WORD not in everything(here)


def test_a_claim_is_not_named_by_its_words(make: Maker) -> None:
    """Ids stay after a forget, so none is a digest of what was said: who guesses the words must not be able to tell."""
    ids = []
    for seed in ("one", "two"):
        run = make("memory", seed=seed).run(user_id="ana", run_id="r1", session_id="s1")
        ids.append((run.log.claim("I have measles").claim_id, run.log.question("Do I have measles?")))
    assert not set(ids[0]) & set(ids[1])


def test_a_run_of_another_user_is_not_forgotten_by_name(make: Maker) -> None:
    mem = make("memory")
    run = begin(mem)
    said = run.observe("user", "mine")
    with pytest.raises(NotFound):
        mem.forget(event=said.id, user_id="bob")
    with pytest.raises(Conflict):
        mem.run(user_id="bob", session_id="s-r1", run_id="r1")
    assert mem.resume("r1").log == run.log.read()
