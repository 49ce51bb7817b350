"""What one entry does to one record of a run."""

from __future__ import annotations

from typing import Any

import pytest
from run_entries import (
    RUN,
    SEA,
    A,
    B,
    Told,
    answered,
    claim,
    conflict,
    entries,
    failure,
    message,
    patch,
    question,
    question_id,
    start,
    tool,
)

from muniment.runs.fold import (
    claim_after,
    conflict_after,
    failure_after,
    failure_fingerprint,
    failure_id,
    question_after,
    started_by,
    subject_of,
)
from muniment.store.ledger import LedgerEntry
from products import for_each


def one(told: Told) -> LedgerEntry:
    return entries([told])[0]


def after(transition: Any, *told: Told) -> Any:
    """The record that these entries make, one after the other; what says nothing leaves it as it is."""
    record = None
    for entry in entries(told):
        record = transition(entry, record) or record
    return record


def test_a_claim_is_made_verified_and_retracted() -> None:
    made = after(claim_after, claim("k1", A, status="candidate", depends_on=["k0"]))
    assert (made.status, made.made_by, made.changed_by, made.entry_ids) == ("candidate", "e1", "e1", ("e1",))
    assert made.depends_on == ("k0",)
    told = [claim("k1", A, status="candidate"), patch("claim_verified", id="k1", evidence_refs=[B, A])]
    verified = after(claim_after, *told)
    assert (verified.status, verified.changed_by) == ("verified", "e2")
    assert [ref.chunk_id for ref in verified.evidence_refs] == ["evt_a", "evt_b"], "each once, the earlier ones first"
    gone = after(claim_after, *told, patch("claim_retracted", id="k1", reason="a misprint", evidence_refs=[SEA]))
    assert (gone.status, gone.reason, gone.entry_ids) == ("retracted", "a misprint", ("e1", "e2", "e3"))
    assert [ref.chunk_id for ref in gone.evidence_refs] == ["evt_a", "evt_b"], "what spoke for it does not change"
    assert [ref.chunk_id for ref in gone.refuted_by] == ["chk_1"]


def test_a_claim_that_fell_back_can_be_verified_again_and_then_has_no_reason() -> None:
    fell = [claim("k1", A), patch("claim_demoted", id="k1", reason="k0 fell")]
    assert (after(claim_after, *fell).status, after(claim_after, *fell).reason) == ("candidate", "k0 fell")
    again = after(claim_after, *fell, patch("claim_verified", id="k1", evidence_refs=[B]))
    assert (again.status, again.reason) == ("verified", None)
    assert "reason" not in again.to_wire()
    assert (again.made_by, again.between, again.changed_by) == ("e1", ("e2",), "e3")


@for_each(
    ("told", "entry"),
    [
        ([claim("k1", A)], claim("k1", B)),
        ([claim("k1", A)], patch("claim_verified", id="k2", evidence_refs=[B])),
        ([claim("k1", A, status="candidate")], patch("claim_demoted", id="k1", reason="no")),
        ([claim("k1", A), patch("claim_retracted", id="k1", reason="no")], patch("claim_verified", id="k1")),
        ([claim("k1", A), patch("claim_retracted", id="k1", reason="no")], patch("claim_retracted", id="k1")),
        ([], patch("claim_verified", id="k1", evidence_refs=[A])),
        ([], claim("k1", A, status="retracted")),
    ],
    ids=["made twice", "another", "not verified", "verify retracted", "retract twice", "unknown", "born retracted"],
)
def test_an_entry_out_of_turn_says_nothing(told: list[Told], entry: Told) -> None:
    before = after(claim_after, *told)
    assert claim_after(one(entry), before) is None


@for_each(
    "said",
    [
        {"status": "certain"},
        {"status": None},
        {"statement": None},
        {"statement": 7},
        {"id": ""},
        {"id": "a\nb"},
        {"id": 7},
        {"evidence_refs": None},
        {"evidence_refs": "evt_a"},
        {"evidence_refs": [{"evidence_id": "ev_1", "chunk_id": "c"}]},
        {"evidence_refs": ["evt_a"]},
        {"depends_on": "k0"},
        {"depends_on": [""]},
        {"depends_on": [7]},
    ],
    ids=str,
)
def test_a_malformed_claim_says_nothing(said: dict[str, Any]) -> None:
    whole = claim("k1", A)["body"]["metadata"]
    assert (
        claim_after(one(patch("claim_made", **{key: whole[key] for key in whole if key != "event"} | said)), None)
        is None
    )
    before = after(claim_after, claim("k1", A))
    if "evidence_refs" in said:
        assert claim_after(one(patch("claim_verified", id="k1", **said)), before) is None
        assert claim_after(one(patch("claim_retracted", id="k1", reason="no", **said)), before) is None
    assert claim_after(one(patch("claim_retracted", id="k1", reason=7)), before) is None


@pytest.mark.req("CS-02")
def test_only_a_state_patch_says_something_about_a_claim() -> None:
    """Anyone may choose the metadata of a message or a tool's result."""
    said = {"event": "claim_made", "id": "k1", "statement": "s", "status": "verified", "evidence_refs": [A]}
    for told in (message("hi", **said), {"kind": "system", "body": {"content": "", "metadata": said}}):
        assert claim_after(one(told), None) is None
        assert subject_of(one(told)) is None
    assert started_by(one(message("hi", event="run_started", objective="mine"))) is None


def test_a_conflict_is_recorded_and_settled_once() -> None:
    settled = patch("conflict_settled", id="c1", resolution="the map is right")
    found = after(conflict_after, conflict("c1", A, B), settled, patch("conflict_settled", id="c1", resolution="no"))
    assert (found.status, found.resolution, found.entry_ids) == ("settled", "the map is right", ("e1", "e2"))
    before = after(conflict_after, conflict("c1", A, B))
    assert before.status == "open"
    for said in ({"id": "c2", "resolution": "x"}, {"id": "c1"}, {"id": "c1", "resolution": 7}):
        assert conflict_after(one(patch("conflict_settled", **said)), before) is None
    assert conflict_after(one(settled), None) is None
    assert conflict_after(one(conflict("c1", side_b_refs=None)), None) is None
    assert conflict_after(one(conflict("c1", A, B)), before) is None


def test_failures_count_by_their_fingerprint() -> None:
    found = after(failure_after, failure(why="1 of 9 failed"), failure(why="2  of 17 FAILED"))
    assert (found.count, found.why, found.first_by, found.last_by) == (2, "1 of 9 failed", "e1", "e2")
    assert found.failure_id == failure_id(RUN, found.fingerprint)
    assert subject_of(one(failure())) == ("failure", found.failure_id)
    assert failure_after(one(failure(where="elsewhere")), found) is None
    for said in ({"fingerprint": None}, {"fingerprint": ""}, {"why": 7}, {"category": None}):
        assert (
            failure_after(one(failure(**said) if "why" not in said else patch("failure_recorded", **said)), None)
            is None
        )


def test_a_tool_that_failed_is_a_failure() -> None:
    found = failure_after(one(tool("\n  cannot open /tmp/a.txt: denied  \nTraceback …", name="shell")), None)
    assert found is not None
    assert (found.category, found.where, found.why) == ("tool_failure", "shell", "cannot open /tmp/a.txt: denied")
    same = one(tool("cannot open /var/b.txt: denied\nelse"))
    assert subject_of(same) == ("failure", found.failure_id)
    assert failure_after(one(tool("fine", ok=True)), None) is None
    assert subject_of(one(tool("fine", ok=True))) is None
    long = failure_after(one(tool("x" * 999)), None)
    assert long is not None
    assert len(long.why) == 200
    silent = failure_after(one(tool(" \n ")), None)
    assert silent is not None
    assert silent.why == "no output"
    blob = {"blob": "00", "bytes": 70_000, "tool": {"name": "shell", "ok": False}}
    outside = failure_after(one({"kind": "tool_result", "body": blob}), None)
    assert outside is not None
    assert outside.why == "an output of 70000 bytes"


@for_each(
    ("one_way", "another"),
    [
        ("timeout after 30 s", "Timeout after 7.5  s"),
        ("no row 'ana' in users", "no row 'bo b' in users"),
        ('key "a" missing', "key “b c” missing"),
        ("cannot read /etc/hosts:12", "cannot read ~/notes.txt:9"),
        ("cannot read C:\\a\\b.txt", "cannot read ../x/y.md"),
        ("in src/a/b.py line 3", "in lib/c.py line 44"),
        ("GET https://a.example/x?y=1 gave 500", "GET http://b.example gave 502"),
        ("run 550e8400-e29b-41d4-a716-446655440000 died", "run 3f2a9b8c77 died"),
        ("at 0xdeadbeef", "at 0x1F"),
        ("evt_0f3a9b8c77aa is gone", "evt_12345678 is gone"),
        ("line one\n\tline two", "line one line two"),
    ],
)
def test_what_differs_by_chance_is_the_same_failure(one_way: str, another: str) -> None:
    assert failure_fingerprint("c", "w", one_way) == failure_fingerprint("c", "w", another)


@for_each(
    ("one_way", "another"),
    [
        ("timeout", "connection refused"),
        ("can't open file, doesn't exist", "can't read file, doesn't exist"),
        ("client/server error", "input/output error"),
        ("the facade failed", "the defaced failed"),
        ("", "x"),
    ],
)
def test_what_differs_in_words_is_another_failure(one_way: str, another: str) -> None:
    assert failure_fingerprint("c", "w", one_way) != failure_fingerprint("c", "w", another)
    assert failure_fingerprint("c", "w", one_way) != failure_fingerprint("d", "w", one_way)


def test_a_question_is_opened_closed_and_asked_anew() -> None:
    opened = after(question_after, question("Which year?"))
    assert (opened.status, opened.opened_by) == ("open", "e1")
    assert opened.question_id == question_id("Which year?")
    assert question_after(one(question("Which year?")), opened) is None, "asked twice it is one question"
    closed = question_after(one(answered("Which year?", answer="1905")), opened)
    assert closed is not None
    assert (closed.status, closed.answer) == ("closed", "1905")
    assert question_after(one(answered("Which year?")), closed) is None
    anew = question_after(one(question("Which year?")), closed)
    assert anew == question_after(one(question("Which year?")), None), "as if it had never been asked"
    assert question_after(one(answered("Which year?")), None) is None
    assert question_after(one(answered("Who?")), opened) is None
    assert question_after(one(answered("Which year?", answer=7)), opened) is None
    assert question_after(one(patch("question_opened", id="q1", text=None)), None) is None


@pytest.mark.req("CS-05")
def test_what_a_run_is_for() -> None:
    told = started_by(one(start("Find it", "found", budgets={"steps": 9})))
    assert told is not None
    assert tuple(told) == ("Find it", "found", {"steps": 9})
    bare = started_by(one({"kind": "system", "body": {"content": "", "metadata": {"event": "run_started"}}}))
    assert bare is not None
    assert tuple(bare) == ("", "", {})
    for wrong in ({"objective": 7}, {"done": ["x"]}, {"budgets": 3}):
        assert started_by(one(start(**wrong))) is None


def test_what_an_entry_speaks_of() -> None:
    assert subject_of(one(claim("k1", A))) == ("claim", "k1")
    assert subject_of(one(conflict("c1"))) == ("conflict", "c1")
    assert subject_of(one(question())) == ("question", question_id("Which year?"))
    assert subject_of(one(answered())) == ("question", question_id("Which year?"))
    for told in (patch("actions_planned", actions=[]), patch("claim_made"), patch("else", id="k1"), message()):
        assert subject_of(one(told)) is None
    assert (
        subject_of(one({"kind": "state_patch", "body": {"content": "", "metadata": {"event": ["claim_made"]}}})) is None
    )
    assert subject_of(one(claim("k1", A) | {"forgotten": True})) is None
