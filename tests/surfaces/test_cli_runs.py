"""The commands of long runs, by hand: run, claims, snapshot, narrative, resume, drift."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from cli_room import Commands, copied, in_folder

import muniment
from muniment.contracts.snapshot import CompactionSnapshot
from muniment.errors import RunLocked
from muniment.runs.narrative import HEADINGS, narrative
from muniment.store.engines.codec import encode_id, pack, unpack

RUN = "run_dinner"
READERS = (
    ("run", "list"),
    ("run", "show", RUN),
    ("run", "unlock", RUN, "--reason", "x"),
    ("run", "claims", RUN),
    ("run", "snapshot", RUN),
    ("run", "narrative", RUN),
    ("run", "resume", RUN),
    ("run", "drift"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return in_folder(tmp_path, monkeypatch)


@pytest.fixture(scope="module", name="filled")
def make_filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A run with a bit of everything and two snapshots; another user's run, which has ended."""
    path = tmp_path_factory.mktemp("filled") / "muniment.db"
    with muniment.open(path) as mem:
        run = mem.run(
            user_id="ana",
            session_id="s1",
            run_id=RUN,
            objective="Find a table for six",
            done_definition={"answer": "a place and a time"},
            budgets={"tokens": 1000, "minutes": 30},
        )
        asked = run.observe("user", "A table for six at seven, please.")
        found = run.observe_tool("tables", args={"people": 6}, content="Lokal Nord: 19:00 frei für 6", ok=True)
        run.observe_tool("tables", args={"people": 6}, content="timeout", ok=False)
        free = run.log.claim(
            "There is a table.", evidence=[{"event_id": found.id, "quote": "frei für 6"}], status="verified"
        )
        quiet = run.log.claim("It is quiet\nthere.", depends_on=[free.claim_id])
        run.log.question("Is the terrace heated?")
        side = [{"event_id": found.id, "quote": "19:00"}]
        run.log.conflict("Seven or eight", side_a=[{"event_id": asked.id, "quote": "seven"}], side_b=side)
        run.log.compact()
        run.log.step("PLAN_DONE", tokens=40)
        run.log.step("ACT_DONE", action={"tool": "tables"}, tokens=60)
        run.log.retract_claim(quiet.claim_id, reason="it is by the road")
        run.log.plan_next(["Book 19:00"])
        run.log.compact()
        run.log.step("OBSERVE_DONE")
        other = mem.run(user_id="bob", session_id="s1", run_id="run_bob")
        other.observe("user", "hello")
        other.finish("HUMAN_REQUESTED")
    return path, {"asked": asked.id, "found": found.id, "free": free.claim_id, "quiet": quiet.claim_id}


@pytest.fixture
def store(folder: Path, filled: tuple[Path, dict[str, str]]) -> dict[str, str]:
    copied(filled[0], folder)
    return filled[1]


COMMANDS = Commands()
call, text, document, failure = COMMANDS.call, COMMANDS.text, COMMANDS.document, COMMANDS.failure


def alter(path: str, event_id: str, old: str, new: str) -> None:
    """Change stored words behind the library's back."""
    with sqlite3.connect(path) as db:
        changed = db.execute(
            "UPDATE entries SET body = replace(body, ?, ?) WHERE id = ?", (old, new, encode_id(event_id))
        )
        assert changed.rowcount == 1
    db.close()


# -- all of them ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_no_store_is_made_by_asking(folder: Path, command: tuple[str, ...]) -> None:
    assert failure(*command, code=2)["path"] == "$.db"
    assert not (folder / "muniment.db").exists()


@pytest.mark.parametrize("command", [each for each in READERS if RUN in each], ids=" ".join)
def test_an_unknown_run_is_named(store: dict[str, str], command: tuple[str, ...]) -> None:
    error = failure(*("run_nobody" if part == RUN else part for part in command), code=1)
    assert error["code"] == "not_found"
    assert "run_nobody" in error["message"]


@pytest.mark.parametrize("command", [each for each in READERS if RUN in each], ids=" ".join)
def test_another_tenant_sees_nothing(store: dict[str, str], command: tuple[str, ...]) -> None:
    assert failure(*command, "--tenant", "other", code=1)["code"] == "not_found"


# -- run ------------------------------------------------------------------------------------------------


def test_run_list(store: dict[str, str]) -> None:
    assert [each["run_id"] for each in document("run", "list")["runs"]] == [RUN, "run_bob"]
    assert [each["run_id"] for each in document("run", "list", "--user", "bob")["runs"]] == ["run_bob"]
    shown = text("run", "list").splitlines()
    assert "open" in shown[0]
    assert "Find a table for six" in shown[0]
    assert "ended, HUMAN_REQUESTED" in shown[1]
    assert text("run", "list", "--user", "cy") == "no runs of cy in muniment.db\n"


def test_run_show(store: dict[str, str]) -> None:
    found = document("run", "show", RUN)
    assert found["run"]["run_id"] == RUN
    assert found["claims"] == {"retracted": 1, "verified": 1}
    assert found["conflicts"] == {"open": 1}
    assert found["failures"] == {"kinds": 1, "met": 1}
    assert found["open_questions"] == ["Is the terrace heated?"]
    assert found["next_actions"] == ["Book 19:00"]
    assert found["budgets"]["limits"] == {"tokens": 1000, "minutes": 30}
    assert (found["budgets"]["used"]["tokens"], found["last_snapshot"]) == (100, 2)
    assert found["since_snapshot"] == {"steps": 0, "counted_events": 1}
    shown = text("run", "show", RUN)
    for piece in (
        "open",
        "ana with agent in session s1",
        "Find a table for six",
        "answer: a place and a time",
        "1 retracted, 1 verified",
        "100 of 1000 tokens",
        "minutes 30",
        "? Is the terrace heated?",
        "→ Book 19:00",
        "taken at 18 counted events or 8 steps; there are 1 and 0",
    ):
        assert piece in shown
    ended = text("run", "show", "run_bob")
    assert "ended, HUMAN_REQUESTED" in ended
    assert "none given" in ended
    assert "next snapshot" not in ended


# -- claims ---------------------------------------------------------------------------------------------


@pytest.mark.req("CS-06")
def test_claims_show_the_words_they_rest_on(store: dict[str, str]) -> None:
    free, quiet = document("run", "claims", RUN)["claims"]
    assert (free["claim_id"], free["status"]) == (store["free"], "verified")
    assert free["quotes"] == [{"evidence_id": free["evidence_refs"][0]["evidence_id"], "text": "frei für 6"}]
    assert (quiet["status"], quiet["reason"], quiet["quotes"]) == ("retracted", "it is by the road", [])
    assert [each["claim_id"] for each in document("run", "claims", RUN, "--status", "verified")["claims"]] == [
        store["free"]
    ]
    shown = text("run", "claims", RUN)
    assert f"[ledger/{store['found']} 18–29] “frei für 6”" in shown
    assert "It is quiet there." in shown
    assert "because: it is by the road" in shown
    assert "no evidence" in shown
    assert text("run", "claims", RUN, "--status", "candidate") == f"{RUN} has made no candidate claims\n"
    assert call("run", "claims", RUN, "--status", "sure").exit_code == 2


def test_a_claim_whose_words_changed_says_so(store: dict[str, str]) -> None:
    with sqlite3.connect("muniment.db") as db:
        db.execute('UPDATE entries SET body = \'{"content":"x"}\' WHERE id = ?', (encode_id(store["found"]),))
    db.close()
    (quote,) = document("run", "claims", RUN, "--status", "verified")["claims"][0]["quotes"]
    assert "text" not in quote
    assert quote["error"]["code"]
    assert f"not to be had: {quote['error']['message']}" in text("run", "claims", RUN)


# -- snapshot and narrative -----------------------------------------------------------------------------


@pytest.mark.req("CS-01")
def test_snapshot_prints_exactly_the_document(store: dict[str, str]) -> None:
    with muniment.open("muniment.db") as mem:
        kept = mem.log.snapshot(RUN)
        first = mem.log.snapshot(RUN, 1)
    assert text("run", "snapshot", RUN, "--json").encode() == kept.to_bytes() + b"\n"
    assert text("run", "snapshot", RUN, "--sequence", "1", "--json").encode() == first.to_bytes() + b"\n"
    shown = text("run", "snapshot", RUN)
    for piece in (kept.snapshot_id, "snapshot 2 of run_dinner", "1 retracted, 1 verified", "PASS"):
        assert piece in shown


def test_snapshot_takes_one_when_asked(store: dict[str, str]) -> None:
    assert document("run", "snapshot", RUN, "--take")["sequence"] == 3
    assert document("run", "snapshot", RUN, "--take")["sequence"] == 3, "nothing happened since"
    assert document("run", "show", RUN)["last_snapshot"] == 3
    assert failure("run", "snapshot", RUN, "--take", "--sequence", "1", code=2)["code"] == "invalid_input"
    assert failure("run", "snapshot", RUN, "--sequence", "9", code=1)["code"] == "not_found"
    assert failure("run", "snapshot", "run_bob", code=1)["code"] == "not_found"
    assert failure("run", "snapshot", "run_bob", "--take", code=1)["code"] == "run_finished"
    assert call("run", "snapshot", RUN, "--sequence", "0").exit_code == 2


@pytest.mark.req("CS-09")
def test_snapshot_check_holds_until_the_bytes_change(store: dict[str, str]) -> None:
    validation = document("run", "snapshot", RUN, "--check")
    assert (validation["status"], {check["status"] for check in validation["checks"]}) == ("PASS", {"PASS"})
    assert text("run", "snapshot", RUN, "--check", "--sequence", "1").endswith(f"snapshot 1 of {RUN} holds\n")
    alter("muniment.db", store["found"], "frei", "voll")
    broken = call("run", "snapshot", RUN, "--check", "--json")
    assert (broken.exit_code, json.loads(broken.stdout)["status"]) == (1, "FAIL")
    shown = call("run", "snapshot", RUN, "--check")
    assert shown.exit_code == 1
    assert "BROKEN" in shown.stdout
    assert shown.stdout.endswith(f"snapshot 2 of {RUN} does not hold\n")


@pytest.mark.req("CS-11")
def test_narrative_is_that_of_the_snapshot(store: dict[str, str]) -> None:
    snapshot = CompactionSnapshot.from_wire(document("run", "snapshot", RUN))
    page = text("run", "narrative", RUN)
    assert page == narrative(snapshot) == document("run", "narrative", RUN)["markdown"]
    assert [line for line in page.splitlines() if line.startswith("## ")] == list(HEADINGS)
    first = text("run", "narrative", RUN, "--sequence", "1")
    assert first != page
    assert f"candidate claim {store['quiet']}: It is quiet there." in first
    assert f"retracted claim {store['quiet']}: It is quiet there." in page


# -- resume ---------------------------------------------------------------------------------------------


@pytest.mark.req("CS-12")
def test_resume_says_what_a_restart_begins_with(store: dict[str, str]) -> None:
    found = document("run", "resume", RUN)
    with muniment.open("muniment.db") as mem:
        again = mem.resume(RUN)
        assert found["log"] == again.log.to_wire()
        assert (found["snapshot_id"], found["tail"]) == (mem.log.snapshot(RUN).snapshot_id, again.tail)
    assert (found["is_locked"], found["rejected"]) == (False, [])
    shown = text("run", "resume", RUN)
    assert "begins with snapshot 2 of " in shown
    assert "→ Book 19:00" in shown
    assert failure("run", "resume", "run_bob", code=1)["code"] == "run_finished"


@pytest.mark.req("CS-12")
def test_resume_names_a_snapshot_that_does_not_hold(store: dict[str, str]) -> None:
    latest = document("run", "snapshot", RUN)["snapshot_id"]
    item, _, version = latest.rpartition(".")
    key = (encode_id(item), int(version))
    with sqlite3.connect("muniment.db") as db:
        ((body,),) = db.execute("SELECT body FROM items WHERE id = ? AND version = ?", key)
        altered = unpack(body).replace("Find a table", "Find a chair")
        changed = db.execute("UPDATE items SET body = ? WHERE id = ? AND version = ?", (pack(altered), *key))
        assert changed.rowcount == 1
    db.close()
    found = document("run", "resume", RUN)
    assert [each["snapshot_id"] for each in found["rejected"]] == [latest]
    assert found["snapshot_id"].endswith(".1")
    assert f"passed over: {latest}" in text("run", "resume", RUN)
    assert failure("run", "snapshot", RUN, code=1)["code"] == "store_damaged"


# -- documents ------------------------------------------------------------------------------------------


@pytest.mark.req("CS-06", "CS-08")
def test_claims_on_a_document_and_the_run_that_loses_it(store: dict[str, str]) -> None:
    with muniment.open("muniment.db") as mem:
        guides = mem.corpus("guides")
        guides.add("Lokal Nord serves no meat.", document_id="lokal")
        (hit, *_) = guides.search("meat")
        pointer = {"corpus_id": "guides", "chunk_id": hit.id, "quote": "no meat"}
        claim = mem.resume(RUN).run.log.claim("No meat there.", evidence=[pointer], status="verified")
    assert f"[guides/{hit.id} 18–25] “no meat”" in text("run", "claims", RUN)
    assert len(document("run", "list")["runs"]) == document("run", "drift")["runs"] == 2, "a document is no run"
    with muniment.open("muniment.db") as mem:
        guides = mem.corpus("guides")
        guides.retract("lokal", "of last year")
    error = failure("run", "snapshot", RUN, "--take", code=1)
    assert error["code"] == "run_locked"
    assert claim.claim_id in error["message"]
    assert f"the claim {claim.claim_id} cites {hit.id}" in text("run", "show", RUN)
    with muniment.open("muniment.db") as mem:
        mem.resume(RUN, repair=True).run.log.retract_claim(claim.claim_id, reason="its source was withdrawn")
    assert "is open again: snapshot 3 holds" in text("run", "unlock", RUN, "--reason", "retracted what it said")
    assert text("run", "snapshot", RUN, "--check").endswith("holds\n")


# -- the gate -------------------------------------------------------------------------------------------


@pytest.mark.req("CS-08")
def test_a_locked_run_is_shown_and_opened_only_when_it_holds(store: dict[str, str]) -> None:
    assert failure("run", "unlock", RUN, "--reason", "why not", code=1)["code"] == "conflict"
    with muniment.open("muniment.db") as mem:
        mem.resume(RUN).run.log.claim("It is free.", evidence=[store["found"]], status="verified")
    alter("muniment.db", store["found"], "frei", "voll")
    assert failure("run", "snapshot", RUN, "--take", code=1)["code"] == "run_locked"
    assert "LOCKED" in text("run", "list")
    shown = text("run", "show", RUN)
    assert "locked: its snapshot did not hold" in shown
    assert "muniment run unlock" in shown
    assert document("run", "resume", RUN)["is_locked"]
    assert "locked: its snapshot did not hold" in text("run", "resume", RUN)
    assert failure("run", "unlock", RUN, "--reason", "trying", code=1)["code"] == "run_locked"
    alter("muniment.db", store["found"], "voll", "frei")
    with muniment.open("muniment.db") as mem, pytest.raises(RunLocked):
        mem.resume(RUN)
    opened = document("run", "unlock", RUN, "--reason", "the bytes are back")
    assert (opened["run_id"], opened["sequence"]) == (RUN, 3)
    assert "open" in text("run", "show", RUN).splitlines()[0]
    assert call("run", "unlock", RUN).exit_code == 2, "a reason is asked for"


# -- drift ----------------------------------------------------------------------------------------------


@pytest.mark.req("CS-13")
def test_drift_measures(store: dict[str, str]) -> None:
    report = document("run", "drift")
    assert (report["runs"], report["steps"], report["snapshots"]) == (2, 1, 2)
    assert report["loop_rate"] == 0.0
    assert document("run", "drift", "--user", "bob")["steps"] == 0
    assert document("run", "drift", "--run", RUN)["steps"] == 1
    assert document("run", "drift", "--since", "2100-01-01")["runs"] == 0
    shown = text("run", "drift")
    for piece in (
        "2 runs, 1 step, 1 action, 2 snapshots",
        "loops:",
        "forgotten constraints:",
        "verified claims:",
    ):
        assert piece in shown
    assert failure("run", "drift", "--since", "2026-02-01", "--until", "2026-01-01", code=2)["path"] == "$.until"
    assert failure("run", "drift", "--since", "soon", code=2)["code"] == "invalid_input"
    assert failure("run", "drift", "--run", "run_nobody", code=1)["code"] == "not_found"
