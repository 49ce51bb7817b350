"""Compaction through the library: the contract's own list, the gate, tampering on disk, races (CS-01 to CS-11)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.contracts.schemas import validate
from muniment.contracts.semantics import check_snapshot as check_rules
from muniment.contracts.snapshot import CompactionSnapshot
from muniment.core.ports.engine import Get, Patch, Select
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES, EntryRow
from muniment.errors import (
    Conflict,
    IntegrityFailure,
    InvalidInput,
    MunimentError,
    NotFound,
    RunFinished,
    RunLocked,
    TooLarge,
)
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.runs import compaction
from muniment.runs.narrative import narrative
from muniment.runs.records import RunClaim
from muniment.testing.stories import check_run, replayed

Maker = Callable[..., Memory]
Counts = Callable[[Memory], dict[str, int]]
ENGINES = pytest.mark.parametrize("engine", ["sqlite", "postgres"])
PARIS = "The capital of France is Paris."


def told(mem: Memory, run_id: str = "r1", claims: int = 12) -> Run:
    """A run with something of everything."""
    run = mem.run(
        user_id="ana",
        session_id="s1",
        run_id=run_id,
        objective="find the capital",
        done_definition={"verified": 1},
        budgets={"tokens": 100},
    )
    said, other = run.observe("user", PARIS), run.observe("user", "It is Lyon.")
    for number in range(claims):
        refs = [{"event_id": said.id, "quote": "Paris"}]
        run.log.claim(f"claim {number}", evidence=refs, status="verified" if number % 2 == 0 else "candidate")
    run.log.conflict("Which city?", side_a=[said.id], side_b=[other.id])
    run.observe_tool("search", content="timeout after 30 s", ok=False)
    run.log.question("How many live there?")
    run.log.step("COMPILE_DONE", context={"selected": [said.id]})
    run.log.step("ACT_DONE", action={"tool": "search"}, tokens=7)
    return run


def kept(snapshot: CompactionSnapshot | None) -> CompactionSnapshot:
    assert snapshot is not None
    return snapshot


def first(run: Run) -> RunClaim:
    return run.log.claims()[0]


def tamper(mem: Memory, table: str, key: dict[str, Any], values: dict[str, Any]) -> None:
    where = tuple((name, "=", value) for name, value in key.items())
    assert mem._ctx.engine.write("default", lambda tx: tx.do(Patch(table, where, values))) == 1  # type: ignore[arg-type]


def rows(mem: Memory) -> list[EntryRow]:
    """The ledger as it is stored, altered entries too."""
    order = ("user_id", "session_id", "seq")
    return mem._ctx.engine.read("default", lambda reader: list(select(reader, ENTRIES, order=order)))


def snapshot_row(mem: Memory, run: Run, version: int) -> Any:
    owner = compaction.snapshots_id(run.run_id)
    return mem._ctx.engine.read("default", lambda reader: reader.do(Get("items", (owner, version))))


def failed(validation: Any) -> dict[str, str]:
    return {check.name: check.message for check in validation.checks if check.status == "FAIL"}


# -- the contract's own list --------------------------------------------------------------------------

TOP = {
    "snapshot_id": str, "run_id": str, "sequence": int, "created_at": str, "objective": str,
    "done_definition": (dict, str), "provenance_mode": str, "policy_snapshot_ref": (str, type(None)), "counts": dict,
    "latest_context_manifest_ids": list, "state": dict, "retrieval_diagnostics": dict, "validation": dict,
}  # fmt: skip
STATE = {"claims": list, "conflicts": list, "open_questions": list, "failures": list, "source_coverage": dict}


@pytest.mark.req("CS-01", "CS-03", "CS-09")
def test_keys_and_types_are_those_of_the_contract(any_mem: Memory) -> None:
    run = told(any_mem)
    wire = kept(run.log.compact()).to_wire()
    assert validate("CompactionSnapshot", wire) == []
    assert check_rules(wire) == []
    assert all(isinstance(wire[name], type_) for name, type_ in TOP.items())
    assert all(isinstance(wire["state"][name], type_) for name, type_ in STATE.items())
    assert all(isinstance(question, str) for question in wire["state"]["open_questions"])
    for claim in wire["state"]["claims"]:
        assert {"claim_id", "status", "statement", "evidence_refs"} <= claim.keys()
        for ref in claim["evidence_refs"]:
            assert {"evidence_id", "chunk_id", "span"} <= ref.keys()
    for failure in wire["state"]["failures"]:
        assert {"failure_id", "category", "where", "why"} <= failure.keys()
    assert PARIS not in json.dumps(wire)  # pointers, not texts
    assert (wire["sequence"], wire["provenance_mode"], wire["objective"]) == (1, "audit_only", "find the capital")
    assert wire["validation"]["status"] == "PASS"
    assert all(check["message"] for check in wire["validation"]["checks"])
    assert wire["validation"]["failure_action_taken"] == "NONE"
    assert any_mem.log.snapshot("r1").to_wire() == wire


@pytest.mark.req("CS-01")
def test_snapshots_follow_each_other_and_never_change(any_mem: Memory) -> None:
    run = told(any_mem)
    one = kept(run.log.compact())
    assert run.log.compact() == one  # nothing happened since
    run.log.claim("one more")
    two = kept(run.log.compact())
    assert (one.sequence, two.sequence) == (1, 2)
    assert two.to_wire()["previous_snapshot_id"] == one.snapshot_id
    assert two.to_wire()["deltas"]["claims_made"] == [run.log.claims()[-1].claim_id]
    assert list(any_mem.log.snapshots("r1")) == [one, two]
    assert any_mem.log.snapshot("r1", 1) == one
    assert two.created_at > one.created_at
    assert [any_mem.log.check_snapshot("r1", n).status for n in (1, 2)] == ["PASS", "PASS"]


@pytest.mark.req("CS-11")
def test_the_same_snapshot_tells_the_same_story(any_mem: Memory, make: Maker) -> None:
    snapshot = kept(told(any_mem).log.compact())
    text = any_mem.log.narrative("r1")
    assert text == narrative(snapshot) == narrative(CompactionSnapshot.from_wire(json.loads(snapshot.to_bytes())))
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert [head.split(".")[0] for head in heads] == [f"## {n}" for n in range(1, 9)]
    again = make("memory")
    assert narrative(kept(told(again).log.compact())) == text  # and the same run makes the same snapshot


def lying(monkeypatch: pytest.MonkeyPatch, times: int, alter: Callable[[dict[str, Any]], None]) -> list[int]:
    """The first builds of a snapshot come out wrong."""
    made: list[int] = []
    original = compaction.snapshot_of

    def lie(*args: Any, **kwargs: Any) -> CompactionSnapshot:
        snapshot = original(*args, **kwargs)
        made.append(snapshot.sequence)
        if len(made) > times:
            return snapshot
        wire = snapshot.to_wire()
        alter(wire)
        return CompactionSnapshot.from_wire(wire)

    monkeypatch.setattr(compaction, "snapshot_of", lie)
    return made


def uncited(wire: dict[str, Any]) -> None:
    wire["state"]["claims"][0]["evidence_refs"] = []


def one_sided(wire: dict[str, Any]) -> None:
    wire["state"]["conflicts"][0]["side_b_refs"] = []


def invented(wire: dict[str, Any]) -> None:
    wire["state"]["claims"][1]["status"] = "verified"


def reworded(wire: dict[str, Any]) -> None:
    wire["state"]["claims"][0]["statement"] += "!"


def other_objective(wire: dict[str, Any]) -> None:
    wire["objective"] = "something else"


def other_end(wire: dict[str, Any]) -> None:
    wire["done_definition"] = {"verified": 0}


def raw_blob(wire: dict[str, Any]) -> None:
    wire["state"]["claims"][0]["evidence_refs"][0]["text"] = "x" * 5000


def moved(wire: dict[str, Any]) -> None:
    wire["state"]["claims"][0]["evidence_refs"][0]["span"]["end"] -= 1


def dropped(wire: dict[str, Any]) -> None:
    del wire["state"]["claims"][0]


def miscounted(wire: dict[str, Any]) -> None:
    wire["counts"]["counted_events_since_last_compaction"] += 1


def skipped(wire: dict[str, Any]) -> None:
    wire["sequence"] += 1


LIES = [
    (uncited, "verified_cited"),
    (one_sided, "conflicts_two_sided"),
    (invented, "claims_in_ledger"),
    (reworded, "claims_in_ledger"),
    (other_objective, "objective_pinned"),
    (other_end, "objective_pinned"),
    (raw_blob, "pointers_only"),
    (moved, "pointers_resolve"),
    (dropped, "sequence"),
    (miscounted, "counts"),
    (skipped, "sequence"),
]


@pytest.mark.soak
@pytest.mark.req("CS-02", "CS-05", "CS-06", "CS-07", "CS-08", "CS-09")
@pytest.mark.parametrize(("alter", "check"), LIES, ids=[alter.__name__ for alter, _ in LIES])
def test_a_snapshot_that_does_not_hold_locks_the_run(
    make: Maker, monkeypatch: pytest.MonkeyPatch, alter: Callable[[dict[str, Any]], None], check: str
) -> None:
    mem = make("memory")
    run = told(mem)
    run.log.compact()
    run.log.claim("one more")
    before = [entry.id for entry in run.ledger.entries()]
    made = lying(monkeypatch, 2, alter)
    with pytest.raises(RunLocked) as caught:
        run.log.compact()
    assert len(made) == 2  # once, and once more
    diagnosis = caught.value.details["validation"]
    assert (diagnosis["status"], diagnosis["failure_action_taken"]) == ("FAIL", "SYSTEM_ERROR")
    assert check in [each["name"] for each in diagnosis["checks"] if each["status"] == "FAIL"]
    assert [entry.id for entry in run.ledger.entries()][:-1] == before  # nothing but the entry that says so
    assert [snapshot.sequence for snapshot in mem.log.snapshots("r1")] == [1]
    assert mem.verify().ok
    state = mem.log.run_state("r1")
    assert (state.stop_reason, state.is_locked, state.is_finished) == ("SYSTEM_ERROR", True, False)


@pytest.mark.soak
@pytest.mark.req("CS-08", "CS-09")
@pytest.mark.parametrize(("alter", "check"), LIES, ids=[alter.__name__ for alter, _ in LIES])
def test_a_passing_fault_is_retried_once(
    make: Maker, monkeypatch: pytest.MonkeyPatch, alter: Callable[[dict[str, Any]], None], check: str
) -> None:
    del check
    mem = make("memory")
    run = told(mem)
    run.log.compact()
    run.log.claim("one more")
    made = lying(monkeypatch, 1, alter)
    snapshot = kept(run.log.compact())
    assert len(made) == 2
    assert (snapshot.sequence, snapshot.validation.failure_action_taken) == (2, "RETRY")
    assert snapshot.validation.status == "PASS"
    check_run(mem, run)


# -- the gate -----------------------------------------------------------------------------------------


def break_evidence(mem: Memory, run: Run) -> str:
    """Alter the bytes under the claims, as somebody with an editor would."""
    chunk = first(run).evidence_refs[0].chunk_id
    tamper(mem, "entries", {"id": chunk}, {"body": json.dumps({"content": PARIS.replace("Paris", "Lyons")})})
    return chunk


@pytest.mark.req("CS-08")
@ENGINES
def test_a_locked_run_takes_nothing_until_it_is_put_right(make: Maker, counts: Counts, engine: str) -> None:
    mem = make(engine)
    run = told(mem, claims=1)
    claim = first(run)
    break_evidence(mem, run)
    verdict = mem.verify()
    assert not verdict.ok
    with pytest.raises(RunLocked) as caught:
        run.log.compact()
    assert claim.claim_id in caught.value.message
    assert caught.value.details["validation"]["checks"]
    assert failed(_validation(caught.value))["pointers_resolve"].startswith(f"the claim {claim.claim_id} cites")
    assert [broken.id for broken in mem.verify().broken] == [broken.id for broken in verdict.broken]

    before = counts(mem)
    calls: list[Callable[[], Any]] = [
        lambda: run.observe("user", "go on"),
        lambda: run.observe_tool("t", content="go on"),
        lambda: run.observe_many([{"role": "user", "content": "go on"}]),
        lambda: run.log.step("PLAN_DONE"),
        lambda: run.log.claim("go on"),
        lambda: run.log.retract_claim(claim.claim_id, reason="no"),
        lambda: run.log.question("go on?"),
        lambda: run.log.plan_next(["go on"]),
        lambda: run.log.failure("a", "b", "c"),
        lambda: run.patch(goal="go on"),
        lambda: run.log.compact(),
        lambda: run.finish(),
        lambda: mem.run(user_id="ana", session_id="s1", run_id="r1").observe("user", "by another handle"),
        lambda: mem.resume("r1"),
        lambda: run.log.unlock("because I say so"),
    ]
    for call in calls:
        with pytest.raises(RunLocked) as again:
            call()
        assert again.value.code == "run_locked"
        assert "repair" in (again.value.hint or "")
    assert counts(mem) == before
    mem.run(user_id="ana", session_id="s1", run_id="r9").observe("user", "other runs of the session go on")

    repair = mem.resume("r1", repair=True)
    assert first(repair.run).claim_id == claim.claim_id
    with pytest.raises(RunLocked):
        repair.run.log.unlock("not yet")  # still broken
    assert mem.log.run_state("r1").is_locked
    repair.run.log.retract_claim(claim.claim_id, reason="its evidence was altered")
    with pytest.raises(RunLocked, match="the conflict"):
        repair.run.log.unlock("the conflict still rests on it")
    repair.run.log.settle_conflict(repair.run.log.conflicts()[0].conflict_id, resolution="one side was altered")
    snapshot = repair.run.log.unlock("what rested on the altered event was taken back")
    assert snapshot.validation.status == "PASS"
    state = mem.log.run_state("r1")
    assert (state.is_locked, state.stop_reason) == (False, None)
    run.observe("user", "it goes on")
    assert mem.resume("r1").log == replayed(mem, run)
    with pytest.raises(Conflict, match="not locked"):
        run.log.unlock("again")


def _validation(error: MunimentError) -> Any:
    from muniment.contracts.snapshot import SnapshotValidation

    return SnapshotValidation.from_wire(error.details["validation"])


@pytest.mark.req("CS-08")
def test_an_unlock_that_fails_again_says_so_once(mem: Memory, counts: Counts) -> None:
    run = told(mem, claims=1)
    break_evidence(mem, run)
    with pytest.raises(RunLocked):
        run.log.compact()
    repair = mem.resume("r1", repair=True).run
    size = counts(mem)
    for _ in range(3):
        with pytest.raises(RunLocked):
            repair.log.unlock("again")
    assert counts(mem) == size


@pytest.mark.req("CS-08", "LG-10")
def test_why_a_run_was_unlocked_is_short_and_no_secret(mem: Memory) -> None:
    run = told(mem, claims=1)
    break_evidence(mem, run)
    with pytest.raises(RunLocked):
        run.log.compact()
    repair = mem.resume("r1", repair=True).run
    repair.log.retract_claim(first(repair).claim_id, reason="its evidence was altered")
    for conflict in repair.log.conflicts():
        repair.log.settle_conflict(conflict.conflict_id, resolution="one side was altered")
    for reason, wanted in ((" ", InvalidInput), ("x" * 2001, TooLarge)):
        with pytest.raises(wanted) as caught:
            repair.log.unlock(reason)
        assert caught.value.path == "$.reason"
    repair.log.unlock("password=hunter2222")
    stored = rows(mem)
    assert any("run_unlocked" in (row.body or "") for row in stored)
    assert "hunter2222" not in repr(stored)


@pytest.mark.req("CS-08")
def test_a_step_that_makes_a_snapshot_due_meets_the_gate(make: Maker) -> None:
    mem = make("memory", policy={"compaction": {"event_threshold": 2}})
    run = told(mem, claims=1)
    break_evidence(mem, run)
    with pytest.raises(RunLocked):
        run.log.step("OBSERVE_DONE")
    steps = [row.body or "" for row in rows(mem) if row.kind == "step"]
    assert "OBSERVE_DONE" in steps[-1]  # the step itself is kept


def test_there_is_nothing_to_compact_before_the_first_write(any_mem: Memory, counts: Counts) -> None:
    """Else the snapshot would hold nothing of what the run is for, and the next one would not follow it."""
    run = any_mem.run(user_id="ana", run_id="r1", objective="find out")
    before = counts(any_mem)
    with pytest.raises(NotFound):
        run.log.compact()
    assert run.log.compact(force=False) is None
    assert counts(any_mem) == before
    run.observe("user", "begin")
    assert kept(run.log.compact()).objective == "find out"


def test_a_run_that_has_ended_is_not_compacted(mem: Memory, counts: Counts) -> None:
    run = told(mem)
    run.log.compact()
    run.finish()
    before = counts(mem)
    with pytest.raises(RunFinished):
        run.log.compact()
    with pytest.raises(RunFinished):
        mem.resume("r1")
    assert counts(mem) == before
    assert mem.log.check_snapshot("r1").status == "PASS"


# -- tampering on disk --------------------------------------------------------------------------------


def other_claims(mem: Memory, run: Run) -> None:
    body = snapshot_row(mem, run, 2)[11].replace("claim 0", "claim X")
    tamper(mem, "items", {"id": compaction.snapshots_id(run.run_id), "version": 2}, {"body": body})


def other_head(mem: Memory, run: Run) -> None:
    body = snapshot_row(mem, run, 2)[11].replace("find the capital", "lose the capital")
    tamper(mem, "items", {"id": compaction.snapshots_id(run.run_id), "version": 2}, {"body": body})


def other_salt(mem: Memory, run: Run) -> None:
    body = json.loads(snapshot_row(mem, run, 2)[11]) | {"salt": "00"}
    tamper(mem, "items", {"id": compaction.snapshots_id(run.run_id), "version": 2}, {"body": json.dumps(body)})


def no_head(mem: Memory, run: Run) -> None:
    tamper(mem, "items", {"id": compaction.snapshots_id(run.run_id), "version": 2}, {"body": "{}"})


def not_json(mem: Memory, run: Run) -> None:
    tamper(mem, "items", {"id": compaction.snapshots_id(run.run_id), "version": 2}, {"body": "{"})


def older_head(mem: Memory, run: Run) -> None:
    """A sound snapshot in the wrong place."""
    body = snapshot_row(mem, run, 1)[11]
    tamper(mem, "items", {"id": compaction.snapshots_id(run.run_id), "version": 2}, {"body": body})


def other_entry(mem: Memory, run: Run) -> None:
    entry_id = json.loads(snapshot_row(mem, run, 2)[11])["entry_id"]
    row = mem._ctx.engine.read("default", lambda reader: reader.do(Get("entries", (entry_id,))))
    tamper(mem, "entries", {"id": entry_id}, {"body": str(row[16]).replace('"sequence":2', '"sequence":3')})  # type: ignore[index]


def broken_entry(mem: Memory, run: Run) -> None:
    entry_id = json.loads(snapshot_row(mem, run, 2)[11])["entry_id"]
    tamper(mem, "entries", {"id": entry_id}, {"body": "not json"})


TAMPERING = [other_claims, other_head, other_salt, no_head, not_json, older_head]


@pytest.mark.soak
@pytest.mark.req("CS-08", "CS-12")
@pytest.mark.parametrize(
    ("engine", "alter"),
    [*(("sqlite", alter) for alter in TAMPERING), ("postgres", other_claims), ("postgres", other_head)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_snapshot_that_was_altered_is_named_and_passed_over(
    make: Maker, engine: str, alter: Callable[[Memory, Run], None]
) -> None:
    mem = make(engine)
    run = told(mem)
    run.log.compact()
    run.log.claim("one more", evidence=[first(run).evidence_refs[0].chunk_id], status="verified")
    two = kept(run.log.compact())
    run.log.question("And then?")
    whole = run.log.read()
    alter(mem, run)
    with pytest.raises(IntegrityFailure) as caught:
        mem.log.snapshot("r1")
    assert caught.value.hint
    with pytest.raises(IntegrityFailure):
        mem.log.check_snapshot("r1")
    resumed = mem.resume("r1")
    assert resumed.rejected[0].snapshot_id == two.snapshot_id
    assert all(each.reason for each in resumed.rejected)
    assert resumed.log == whole
    assert resumed.snapshot is not None
    assert resumed.snapshot.sequence == 1
    run.log.step("PLAN_DONE")  # whether one is due can still be told
    three = kept(run.log.compact())
    assert (three.sequence, three.to_wire()["previous_snapshot_id"]) == (3, None)
    assert three.to_wire()["retrieval_diagnostics"]["rejected_snapshots"][0]["snapshot_id"] == two.snapshot_id
    assert mem.log.snapshot("r1") == three
    assert mem.log.check_snapshot("r1").status == "PASS"
    run.log.claim("and one more")
    four = kept(run.log.compact())
    assert four.to_wire()["previous_snapshot_id"] == three.snapshot_id
    assert mem.resume("r1").rejected == ()
    assert mem.verify().ok


@pytest.mark.req("CS-08")
@pytest.mark.parametrize("alter", [other_entry, broken_entry], ids=["changed", "broken"])
def test_the_entry_that_seals_a_snapshot_was_altered(make: Maker, alter: Callable[[Memory, Run], None]) -> None:
    mem = make("sqlite")
    run = told(mem)
    run.log.compact()
    run.log.claim("one more")
    two = kept(run.log.compact())
    alter(mem, run)
    with pytest.raises(IntegrityFailure, match=two.snapshot_id):
        mem.log.snapshot("r1")
    assert not mem.verify().ok
    resumed = mem.resume("r1")
    assert [each.snapshot_id for each in resumed.rejected] == [two.snapshot_id]
    assert [claim.statement for claim in resumed.log.claims][-1] == "one more"
    three = kept(run.log.compact())  # what was altered told nothing of the run but that a snapshot was taken
    assert (three.sequence, mem.log.check_snapshot("r1").status) == (3, "PASS")


@pytest.mark.req("CS-02", "CS-06")
@ENGINES
def test_what_a_claim_rests_on_was_altered(make: Maker, engine: str) -> None:
    """The snapshot is what it was, so a run can be taken up; whoever checks it hears what does not hold."""
    mem = make(engine)
    run = told(mem)
    claim = first(run)
    run.log.compact()
    break_evidence(mem, run)
    faults = failed(mem.log.check_snapshot("r1"))
    assert claim.claim_id in faults["pointers_resolve"]
    assert "claims_in_ledger" not in faults
    assert mem.resume("r1").rejected == ()


@pytest.mark.req("CS-02")
def test_an_entry_of_a_claim_was_altered(make: Maker) -> None:
    mem = make("sqlite")
    run = told(mem)
    run.log.compact()
    claim = first(run)
    row: Any = mem._ctx.engine.read("default", lambda reader: reader.do(Get("entries", (claim.made_by,))))
    tamper(mem, "entries", {"id": claim.made_by}, {"body": row[16].replace("claim 0", "claim Y")})
    faults = failed(mem.log.check_snapshot("r1"))
    assert claim.claim_id in faults["claims_in_ledger"]
    assert claim.claim_id in faults["replay"]
    assert mem.resume("r1").log.claims[0] == claim  # as it was sealed
    run.log.claim("one more")
    assert kept(run.log.compact()).sequence == 2, "a compaction relies on what was sealed and checks what is new"
    assert failed(mem.log.check_snapshot("r1")).keys() == {"claims_in_ledger", "replay"}
    assert [broken.id for broken in mem.verify().broken] == [claim.made_by]


@pytest.mark.req("CS-08")
def test_a_snapshot_validates_what_changed_since_the_last_one(any_mem: Memory) -> None:
    run = told(any_mem, claims=40)
    first_checks = _messages(kept(run.log.compact()))
    assert first_checks["claims_in_ledger"] == "40 claims and 1 conflicts are what their entries say"
    said = run.observe("user", "It has two rivers.")
    run.log.claim("two rivers", evidence=[said.id], status="verified")
    two = _messages(kept(run.log.compact()))
    assert two["claims_in_ledger"].startswith("1 claims and 0 conflicts are what their entries say; 41 are as")
    assert two["pointers_resolve"] == "1 pointers resolve to the stored bytes"
    assert _messages(any_mem.log.check_snapshot("r1"))["claims_in_ledger"].startswith("41 claims and 1 conflicts")


def _messages(checked: Any) -> dict[str, str]:
    return {check.name: check.message for check in getattr(checked, "validation", checked).checks}


@pytest.mark.req("CS-12")
def test_a_snapshot_is_checked_under_the_limits_it_was_made_with(tmp_path: Path) -> None:
    """An intact run holds after its policy has changed, and so do the snapshots that follow under the new one."""
    path = tmp_path / "run.db"

    def act(run: Run, times: int) -> None:
        for _ in range(times):
            run.log.step("ACT_DONE", action={"tool": "search"})

    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective="find the capital")
        run.observe("user", PARIS)
        act(run, 2)
        assert kept(run.log.compact()).sequence == 1
    with muniment.open(path, policy={"compaction": {"loop_actions": 2}}) as mem:
        assert mem.log.check_snapshot("r1").status == "PASS"
        run = mem.resume("r1").run
        run.log.step("ACT_DONE", action={"tool": "other"})
        act(run, 2)
        two = kept(run.log.compact())
        assert mem.resume("r1").log.loops == 1
        assert [each["loop_actions"] for each in two.to_wire()["cursor"]["limits"]] == [3, 2]
        assert [mem.log.check_snapshot("r1", number).status for number in (1, 2)] == ["PASS", "PASS"]
    with muniment.open(path) as mem:
        assert [mem.log.check_snapshot("r1", number).status for number in (1, 2)] == ["PASS", "PASS"]


def test_the_item_of_a_claim_was_altered(make: Maker) -> None:
    """Items are projections: no snapshot is made of them, and a rebuild puts them right and names them."""
    mem = make("sqlite")
    run = told(mem)
    claim = run.log.claims()[1]
    assert claim.status == "candidate"
    body = json.dumps(claim.to_wire() | {"status": "verified", "statement": "claim Z"})
    tamper(mem, "items", {"id": claim.claim_id, "version": 1}, {"body": body, "status": "verified"})
    snapshot = kept(run.log.compact())
    assert snapshot.state.claims[1].status == "candidate"
    assert mem.store.rebuild().repaired == (claim.claim_id,)
    check_run(mem, run)


# -- races --------------------------------------------------------------------------------------------


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    answers: list[Any] = [None] * count

    def call(number: int) -> None:
        try:
            answers[number] = work(number)
        except BaseException as error:  # noqa: BLE001
            answers[number] = error

    threads = [threading.Thread(target=call, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.req("CS-01")
@ENGINES
def test_of_several_compactions_at_once_one_wins(make: Maker, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All have read before any has written: so each would be the first."""
    mem = make(engine)
    run = told(mem)
    together = threading.Barrier(3, timeout=30)
    original = compaction._keep

    def keep(*args: Any) -> Any:
        together.wait()
        return original(*args)

    monkeypatch.setattr(compaction, "_keep", keep)
    answers = in_threads(3, lambda _number: run.log.compact())
    assert [kept(answer).sequence for answer in answers] == [1, 1, 1]
    assert answers[0] == answers[1] == answers[2]
    assert [snapshot.sequence for snapshot in mem.log.snapshots("r1")] == [1]
    assert sum(entry.metadata.get("event") == "snapshot_taken" for entry in run.ledger.entries()) == 1
    check_run(mem, run)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_retry_in_a_race_is_made_from_the_same_inputs(
    make: Maker, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first try fails; then another compaction comes first; the second try does not build on that one."""
    mem = make(engine)
    run = told(mem)
    original, tries = compaction._make, []

    def make_one(writer: Any, loaded: Any, action: Any, reader: Any, *, is_whole: bool) -> Any:
        made, checks = original(writer, loaded, action, reader, is_whole=is_whole)
        tries.append(loaded.sequence)
        return (None, checks) if len(tries) == 1 else (made, checks)

    def between(*args: Any) -> Any:
        if len(tries) == 1:
            monkeypatch.setattr(compaction, "_make", original)
            in_threads(1, lambda _n: mem.run(user_id="ana", session_id="s1", run_id="r1").log.compact())
            monkeypatch.setattr(compaction, "_make", make_one)
        return again(*args)

    again = compaction._read_again
    monkeypatch.setattr(compaction, "_make", make_one)
    monkeypatch.setattr(compaction, "_read_again", between)
    snapshot = kept(run.log.compact())
    assert tries == [0, 0]
    assert [each.sequence for each in mem.log.snapshots("r1")] == [1]
    assert snapshot == mem.log.snapshot("r1")
    check_run(mem, run)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_appends_go_on_while_a_snapshot_is_validated(make: Maker, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mem = make(engine)
    run = told(mem)
    paused, go_on = threading.Event(), threading.Event()
    original = compaction.validate

    def slow(*args: Any) -> Any:
        paused.set()
        assert go_on.wait(30)
        return original(*args)

    monkeypatch.setattr(compaction, "validate", slow)
    answers: list[Any] = []
    compacting = threading.Thread(target=lambda: answers.append(run.log.compact()))
    compacting.start()
    assert paused.wait(30)
    run.observe("user", "while it validates")
    run.log.claim("while it validates")
    run.log.step("OBSERVE_DONE")
    go_on.set()
    compacting.join()
    monkeypatch.undo()
    snapshot = kept(answers[0])
    assert "while it validates" not in [claim.statement for claim in snapshot.state.claims]
    assert run.log.read().counted_since != ()
    check_run(mem, run)
    assert kept(run.log.compact()).counts.counted_events_since_last_compaction == 1


@ENGINES
def test_a_forget_during_a_compaction_leaves_nothing_behind(
    make: Maker, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before the forget is not kept after it (LG-07)."""
    mem = make(engine)
    run = told(mem, claims=3)
    run.log.compact()
    said = run.observe("user", "My name is Zebulonia.")
    run.log.claim("She is called Zebulonia", evidence=[said.id], status="verified")
    original, tries = compaction._keep, []

    def keep(*args: Any) -> Any:
        tries.append(args)
        if len(tries) == 1:
            mem.forget(event=said.id)
        return original(*args)

    monkeypatch.setattr(compaction, "_keep", keep)
    snapshot = kept(run.log.compact())
    assert len(tries) == 2
    assert "Zebulonia" not in repr(snapshot)
    assert snapshot.sequence == 2
    rows = mem._ctx.engine.read("default", lambda reader: [reader.do(Select("items"))])
    assert "Zebulonia" not in repr(rows)
    check_run(mem, run)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_appends_and_compactions_side_by_side(make: Maker, engine: str) -> None:
    mem = make(engine, policy={"compaction": {"event_threshold": 3}})
    run = told(mem)

    def work(number: int) -> None:
        for turn in range(5):
            said = run.observe("user", f"turn {number} {turn}")
            run.log.claim(f"claimed {number} {turn}", evidence=[said.id], status="verified")
            run.log.step("ACT_DONE")
            if turn % 2:
                run.log.compact()

    assert in_threads(4, work) == [None] * 4
    log = check_run(mem, run)
    assert (log.spent.counted_events, len(log.claims)) == (21, 32)
    assert mem.verify().ok
