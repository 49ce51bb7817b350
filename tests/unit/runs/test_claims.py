"""Claims, conflicts, failures, questions: each pointer is checked when it is written (CS-06, CS-07); bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.core.ports.engine import Patch
from muniment.errors import (
    Conflict,
    DuplicateId,
    Forgotten,
    InvalidInput,
    MunimentError,
    NotFound,
    QuoteMismatch,
    RunFinished,
    StoreDamaged,
    TooLarge,
)
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.runs.records import RunClaim

Maker = Callable[..., Memory]
Counts = Callable[[Memory], dict[str, int]]
PARIS = "The capital of France is Paris, they say. 北京是首都。"


@pytest.fixture
def run(mem: Memory) -> Run:
    return mem.run(user_id="ana", run_id="r1", session_id="s1", objective="find the capital")


def verified(run: Run, statement: str = "Paris is the capital", **kwargs: Any) -> RunClaim:
    said = run.observe("user", PARIS)
    return run.log.claim(statement, evidence=[{"event_id": said.id, "quote": "Paris"}], status="verified", **kwargs)


# -- what holds ---------------------------------------------------------------------------------------


@pytest.mark.req("CS-06")
def test_a_pointer_is_written_with_its_bytes(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    said = run.observe("user", PARIS)
    claim = run.log.claim("So it is", evidence=[{"event_id": said.id, "quote": "北京"}, said.id], status="verified")
    (quoted, whole) = claim.evidence_refs
    start = PARIS.encode().index("北京".encode())
    assert quoted.to_wire()["span"] == {"start": start, "end": start + 6}
    assert whole.to_wire()["span"] == {"start": 0, "end": len(PARIS.encode())}
    assert {ref.to_wire()["corpus_id"] for ref in claim.evidence_refs} == {"ledger"}
    again = any_mem.run(user_id="ana").log.claim("So it is", evidence=[{"event_id": said.id, "quote": "北京"}])
    assert again.evidence_refs[0] == quoted  # derived, so the same for the same place and words
    assert run.log.claims("verified") == [claim]


def test_the_same_words_are_the_same_claim(any_mem: Memory, counts: Counts) -> None:
    run = any_mem.run(user_id="ana")
    claim = verified(run)
    before = counts(any_mem)
    assert run.log.claim("Paris is the capital") == claim
    refs = [{"event_id": claim.evidence_refs[0].chunk_id, "quote": "Paris"}]
    assert run.log.claim("Paris is the capital", evidence=refs, status="verified") == claim
    assert counts(any_mem) == before
    other = any_mem.run(user_id="ana").log.claim("Paris is the capital")
    assert other.claim_id != claim.claim_id


def test_claiming_more_in_the_same_words_is_refused(mem: Memory, run: Run, counts: Counts) -> None:
    claim, basis = run.log.claim("Paris is the capital"), run.log.claim("France has a capital")
    said = run.observe("user", PARIS)
    before = counts(mem)
    for more in (
        {"evidence": [said.id]},
        {"evidence": [said.id], "status": "verified"},
        {"depends_on": [basis.claim_id]},
    ):
        with pytest.raises(Conflict, match="claims this already") as caught:
            run.log.claim("Paris is the capital", **more)  # type: ignore[arg-type]
        assert caught.value.details["claim_id"] == claim.claim_id
        assert caught.value.hint
    assert counts(mem) == before


def test_a_candidate_is_verified_and_a_verified_one_gains_evidence(mem: Memory, run: Run, counts: Counts) -> None:
    said, other = run.observe("user", PARIS), run.observe_tool("search", content="Paris")
    claim = run.log.claim("Paris is the capital", evidence=[said.id])
    assert claim.status == "candidate"
    claim = run.log.verify_claim(claim.claim_id)
    assert (claim.status, len(claim.evidence_refs)) == ("verified", 1)
    before = counts(mem)
    assert run.log.verify_claim(claim.claim_id, evidence=[said.id]) == claim
    assert counts(mem) == before
    claim = run.log.verify_claim(claim.claim_id, evidence=[other.id])
    assert [ref.chunk_id for ref in claim.evidence_refs] == [said.id, other.id]


def test_what_rests_on_a_retracted_claim_falls_back(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    base = verified(run, "one")
    middle = verified(run, "two", depends_on=[base.claim_id])
    top = verified(run, "three", depends_on=[middle.claim_id])
    candidate = run.log.claim("four", depends_on=[top.claim_id])
    gone = run.log.retract_claim(base.claim_id, reason="it was wrong", evidence=[run.observe("user", "No!").id])
    assert (gone.status, gone.reason, len(gone.refuted_by or ())) == ("retracted", "it was wrong", 1)
    now = {claim.claim_id: claim for claim in run.log.claims()}
    assert [now[each.claim_id].status for each in (base, middle, top, candidate)] == ["retracted", *["candidate"] * 3]
    assert base.claim_id in (now[middle.claim_id].reason or "")
    with pytest.raises(Conflict, match="retracted") as caught:
        run.log.verify_claim(middle.claim_id)
    assert caught.value.path == "$.depends_on[0]"
    anew = verified(run, "one")
    assert anew.claim_id != base.claim_id
    assert run.log.compact() is not None
    assert any_mem.log.check_snapshot(run.run_id).status == "PASS"


@pytest.mark.req("CS-07")
def test_a_conflict_has_two_sides_and_is_settled_once(mem: Memory, run: Run, counts: Counts) -> None:
    one, other = run.observe("user", "It is Paris."), run.observe("user", "It is Lyon.")
    claim = run.log.claim("Paris is the capital")
    conflict = run.log.conflict("Which city?", side_a=[one.id], side_b=[other.id], claims=[claim.claim_id])
    assert (conflict.status, conflict.claim_ids) == ("open", (claim.claim_id,))
    settled = run.log.settle_conflict(conflict.conflict_id, resolution="Paris")
    assert (settled.status, settled.resolution) == ("settled", "Paris")
    before = counts(mem)
    with pytest.raises(Conflict, match="settled already"):
        run.log.settle_conflict(conflict.conflict_id, resolution="Lyon")
    assert counts(mem) == before
    assert run.log.conflicts() == [settled]


def test_questions_are_opened_once_and_closed_once(any_mem: Memory, counts: Counts) -> None:
    run = any_mem.run(user_id="ana")
    asked = run.log.question("How many live there?")
    before = counts(any_mem)
    assert run.log.question("How many live there?") == asked
    assert counts(any_mem) == before
    assert [each.text for each in run.log.questions()] == ["How many live there?"]
    assert run.log.close_question("How many live there?", answer="two million") == asked
    assert run.log.questions() == []
    before = counts(any_mem)
    for named in (asked, "How many live there?"):
        with pytest.raises(Conflict, match="closed already"):
            run.log.close_question(named)
    for named in ("qst_none", "Was this ever asked?", any_mem.run(user_id="ana").log.question("Another's?")):
        with pytest.raises(NotFound) as caught:
            run.log.close_question(named)
        assert caught.value.path == "$.question"
    assert counts(any_mem) != before  # the other run's question
    assert run.log.question("How many live there?") == asked
    assert len(run.log.questions()) == 1


def test_failures_are_counted_by_their_fingerprint(mem: Memory, run: Run) -> None:
    run.observe_tool("search", content="timeout after 30 s\nmore", ok=False)
    run.observe_tool("search", content="timeout after 31 s", ok=False)
    mark = run.log.failure("constraint_forgotten", "planner", "used 3 of 2 allowed calls")
    assert run.log.failure("constraint_forgotten", "planner", "used 4 of 2 allowed calls") == mark
    counted = {each.category: (each.where, each.count, each.why) for each in run.log.failures()}
    assert counted == {
        "tool_failure": ("search", 2, "timeout after 30 s"),
        "constraint_forgotten": ("planner", 2, "used 3 of 2 allowed calls"),
    }
    assert mem.resume("r1").log.failures == tuple(run.log.failures())


def test_next_actions_are_replaced(run: Run) -> None:
    assert run.log.plan_next(["a", "b", "b"]) == ("a", "b")
    run.log.plan_next(["c"])
    assert run.log.read().next_actions == ("c",)
    run.log.plan_next([])
    assert run.log.read().next_actions == ()


@pytest.mark.req("LG-10")
def test_secrets_are_redacted_everywhere(mem: Memory, run: Run) -> None:
    secret = "password=hunter2222"
    said = run.observe("user", PARIS)
    claim = run.log.claim(f"The {secret}", evidence=[said.id])
    assert "hunter2222" not in claim.statement
    assert run.log.claim(f"The {secret}") == claim
    run.log.retract_claim(claim.claim_id, reason=secret)
    conflict = run.log.conflict(secret, side_a=[said.id], side_b=[said.id])
    run.log.settle_conflict(conflict.conflict_id, resolution=secret)
    run.log.failure("leak", secret, secret)
    asked = run.log.question(secret)
    assert run.log.close_question(secret, answer=secret) == asked
    run.log.plan_next([secret])
    assert "hunter2222" not in repr((list(run.ledger.entries()), run.log.read(), run.log.compact()))


def test_evidence_may_be_any_iterable_and_is_read_once(run: Run) -> None:
    ids = [run.observe("user", f"turn {n}").id for n in range(3)]
    claim = run.log.claim("They were told", evidence=(id_ for id_ in ids), status="verified")
    assert [ref.chunk_id for ref in claim.evidence_refs] == ids


def test_evidence_survives_a_lost_race(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine may run the work of a transaction again: what a caller gave as an iterator is then not used up."""
    mem = make("memory")
    run = mem.run(user_id="ana")
    said = run.observe("user", PARIS)
    engine, tries = mem._ctx.engine, []

    class Lost(Exception):
        pass

    def write(tenant_id: str, work: Callable[[Any], Any]) -> Any:
        def once(tx: Any) -> Any:
            done = work(tx)
            tries.append(done)
            if len(tries) == 1:
                raise Lost
            return done

        try:
            return original(tenant_id, once)
        except Lost:
            return original(tenant_id, once)

    original = engine.write
    monkeypatch.setattr(engine, "write", write)
    claim = run.log.claim("It is Paris", evidence=iter([said.id]), status="verified", depends_on=iter(()))
    assert (claim.status, len(tries)) == ("verified", 2)
    sides = run.log.conflict("Which?", side_a=iter([said.id]), side_b=iter([said.id]))
    assert len(sides.side_a_refs) == len(sides.side_b_refs) == 1


def test_evidence_of_another_session_and_run_of_the_user(mem: Memory, run: Run) -> None:
    said = mem.run(user_id="ana", session_id="other").observe("user", PARIS)
    assert run.log.claim("So it is", evidence=[said.id], status="verified").status == "verified"


# -- bad input: refused by a typed error that says where, and nothing is written ----------------------


def pointers(mem: Memory, run: Run) -> dict[str, tuple[Any, type[MunimentError]]]:
    said = run.observe("user", PARIS)
    own = run.observe("assistant", "I am sure it is Paris.")
    patch = run.patch(goal="find out")
    assert patch.goal == "find out"
    kinds = {entry.kind: entry.id for entry in run.ledger.entries()}
    run.log.step("PLAN_DONE", "think of Paris")
    kinds |= {entry.kind: entry.id for entry in run.ledger.entries()}
    other = mem.run(user_id="bob").observe("user", PARIS)
    tenant = mem.run(user_id="ana", tenant_id="acme").observe("user", PARIS)
    gone = run.observe("user", "to be forgotten")
    mem.forget(event=gone.id)
    size = len(PARIS.encode())
    cut = PARIS.encode().index("北".encode()) + 1
    return {
        "nothing": ("evt_none", NotFound),
        "empty": ("", MunimentError),
        "none": (None, InvalidInput),
        "a number": (3, InvalidInput),
        "unknown keys": ({"event_id": said.id, "words": "Paris"}, InvalidInput),
        "a span past the end": ({"event_id": said.id, "span": {"start": 0, "end": size + 1}}, MunimentError),
        "a span upside down": ({"event_id": said.id, "span": {"start": 5, "end": 4}}, MunimentError),
        "a negative span": ({"event_id": said.id, "span": {"start": -1, "end": 4}}, MunimentError),
        "an empty span": ({"event_id": said.id, "span": {"start": 4, "end": 4}}, MunimentError),
        "a span that cuts a character": ({"event_id": said.id, "span": {"start": cut, "end": cut + 3}}, MunimentError),
        "a quote one character off": ({"event_id": said.id, "quote": "Pariz"}, QuoteMismatch),
        "a quote of another case": ({"event_id": said.id, "quote": "paris"}, QuoteMismatch),
        "an empty quote": ({"event_id": said.id, "quote": ""}, MunimentError),
        "another user's": (other.id, NotFound),
        "another tenant's": (tenant.id, NotFound),
        "a change of state": (kinds["state_patch"], InvalidInput),
        "the start of the run": (kinds["system"], InvalidInput),
        "a step": (kinds["step"], InvalidInput),
        "what was forgotten": (gone.id, Forgotten),
        "own words alone": (own.id, InvalidInput),
        "a corpus that is not there": ({"corpus_id": "none", "chunk_id": "c", "quote": "x"}, NotFound),
        "a page that is not there": ({"cid": "c1"}, MunimentError),
    }


@pytest.mark.req("CS-06", "LG-02")
def test_a_pointer_that_does_not_hold_is_refused(any_mem: Memory, counts: Counts) -> None:
    run = any_mem.run(user_id="ana", run_id="r1")
    cases = pointers(any_mem, run)
    sound = run.observe("user", "sound")
    claim = run.log.claim("still a candidate")
    before = counts(any_mem)
    for name, (pointer, wanted) in cases.items():
        calls: list[Callable[[], Any]] = [
            lambda pointer=pointer: run.log.claim("It is so", evidence=[pointer], status="verified"),  # type: ignore[misc]
            lambda pointer=pointer: run.log.verify_claim(claim.claim_id, evidence=[pointer]),  # type: ignore[misc]
        ]
        if name != "own words alone":
            calls += [
                lambda pointer=pointer: run.log.claim("It is so", evidence=[pointer]),  # type: ignore[misc]
                lambda pointer=pointer: run.log.retract_claim(claim.claim_id, reason="no", evidence=[pointer]),  # type: ignore[misc]
                lambda pointer=pointer: run.log.conflict("Which?", side_a=[pointer], side_b=[sound.id]),  # type: ignore[misc]
                lambda pointer=pointer: run.log.conflict("Which?", side_a=[sound.id], side_b=[pointer]),  # type: ignore[misc]
                lambda pointer=pointer: run.log.failure("a", "b", "c", evidence=[pointer]),  # type: ignore[misc]
            ]
        for call in calls:
            with pytest.raises(wanted) as caught:
                call()
            assert (caught.value.path or "").startswith(("$.evidence", "$.side_a", "$.side_b")), (name, caught.value)
        assert counts(any_mem) == before, name
    assert run.log.claims() == [claim]


@pytest.mark.req("CS-06")
def test_own_words_verify_only_beside_others_or_by_policy(make: Maker) -> None:
    run = make("memory").run(user_id="ana")
    own, said = run.observe("assistant", "It is Paris."), run.observe("user", PARIS)
    assert run.log.claim("a", evidence=[own.id, said.id], status="verified").status == "verified"
    assert run.log.claim("b", evidence=[own.id]).status == "candidate"
    lax = make("memory", policy={"compaction": {"own_words_verify": True}}).run(user_id="ana")
    assert lax.log.claim("a", evidence=[lax.observe("assistant", "It is.").id], status="verified").status == "verified"


@pytest.mark.parametrize("status", ["verifed", "retracted", "VERIFIED", "", None, 1, ["verified"]])
def test_unknown_statuses_are_refused(mem: Memory, run: Run, counts: Counts, status: Any) -> None:
    before = counts(mem)
    with pytest.raises(InvalidInput) as caught:
        run.log.claim("It is so", status=status)
    assert caught.value.path == "$.status"
    assert "candidate" in (caught.value.hint or "")
    with pytest.raises(InvalidInput) if status not in ("retracted", None) else _nothing():
        run.log.claims(status)
    assert counts(mem) == before


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


@pytest.mark.req("CS-06", "CS-07")
def test_what_is_verified_or_in_conflict_needs_evidence(mem: Memory, run: Run, counts: Counts) -> None:
    said = run.observe("user", PARIS)
    claim = run.log.claim("still a candidate")
    before = counts(mem)
    for call, path in (
        (lambda: run.log.claim("It is so", status="verified"), "$.evidence"),
        (lambda: run.log.verify_claim(claim.claim_id), "$.evidence"),
        (lambda: run.log.conflict("Which?", side_a=[], side_b=[said.id]), "$.side_a"),
        (lambda: run.log.conflict("Which?", side_a=[said.id, said.id], side_b=[]), "$.side_b"),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.path == path
        assert caught.value.hint
    assert counts(mem) == before


@pytest.mark.parametrize("evidence", ["evt_1", b"evt_1", None, 3, {"event_id": "evt_1"}])
def test_evidence_is_a_list(mem: Memory, run: Run, counts: Counts, evidence: Any) -> None:
    before = counts(mem)
    with pytest.raises(InvalidInput, match="list of pointers"):
        run.log.claim("It is so", evidence=evidence)
    assert counts(mem) == before


@pytest.mark.parametrize("words", ["", "   ", "\n", None, 3, b"bytes", "\ud800"])
def test_words_are_words(mem: Memory, run: Run, counts: Counts, words: Any) -> None:
    said = run.observe("user", PARIS)
    claim = run.log.claim("a candidate")
    conflict = run.log.conflict("Which?", side_a=[said.id], side_b=[said.id])
    before = counts(mem)
    calls: list[Callable[[], Any]] = [
        lambda: run.log.claim(words),
        lambda: run.log.retract_claim(claim.claim_id, reason=words),
        lambda: run.log.conflict(words, side_a=[said.id], side_b=[said.id]),
        lambda: run.log.settle_conflict(conflict.conflict_id, resolution=words),
        lambda: run.log.failure(words, "b", "c"),
        lambda: run.log.failure("a", words, "c"),
        lambda: run.log.failure("a", "b", words),
        lambda: run.log.question(words),
        lambda: run.log.close_question(words),
        lambda: run.log.plan_next([words]),
    ]
    for call in calls:
        with pytest.raises(MunimentError) as caught:
            call()
        assert caught.value.path
    assert counts(mem) == before


@pytest.mark.req("CS-03")
def test_words_are_short(mem: Memory, run: Run, counts: Counts) -> None:
    assert len(run.log.claim("x" * 2000).statement) == 2000
    before = counts(mem)
    # Redacted, it is longer than it was: a snapshot would not take it.
    for words in ("x" * 2001, "x " * 985 + "pwd=abcdef " + "password: 123456"):
        with pytest.raises(TooLarge) as caught:
            run.log.claim(words)
        assert (caught.value.path, bool(caught.value.hint)) == ("$.statement", True)
    with pytest.raises(InvalidInput, match="over the limit of 3"):
        run.log.plan_next(["a", "b", "c", "d"])
    assert counts(mem) == before
    assert run.log.compact() is not None


def test_claims_of_another_run_do_not_exist(any_mem: Memory, counts: Counts) -> None:
    run = any_mem.run(user_id="ana", session_id="s1", run_id="r1")
    other = any_mem.run(user_id="ana", session_id="s1", run_id="r2")
    claim, said = other.log.claim("another's"), other.observe("user", PARIS)
    conflict = other.log.conflict("another's", side_a=[said.id], side_b=[said.id])
    run.observe("user", "begin")
    before = counts(any_mem)
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: run.log.verify_claim(claim.claim_id, evidence=[said.id]), "$.claim_id"),
        (lambda: run.log.retract_claim(claim.claim_id, reason="no"), "$.claim_id"),
        (lambda: run.log.claim("mine", depends_on=[claim.claim_id]), "$.depends_on[0]"),
        (lambda: run.log.conflict("mine", side_a=[said.id], side_b=[said.id], claims=[claim.claim_id]), "$.claims[0]"),
        (lambda: run.log.settle_conflict(conflict.conflict_id, resolution="no"), "$.conflict_id"),
        (lambda: run.log.verify_claim("clm_none"), "$.claim_id"),
        (lambda: run.log.verify_claim(said.id), "$.claim_id"),
        (lambda: run.log.verify_claim(None), "$.claim_id"),  # type: ignore[arg-type]
    ]
    for call, path in calls:
        with pytest.raises(NotFound if path != "$.claim_id" else MunimentError) as caught:
            call()
        assert caught.value.path == path
    assert counts(any_mem) == before
    assert other.log.claims() == [claim]


def test_an_id_that_is_taken_is_refused(any_mem: Memory, counts: Counts) -> None:
    """Above all that of another run's claim, which would otherwise be changed from here."""
    run, bob = any_mem.run(user_id="ana", run_id="r1"), any_mem.run(user_id="bob", run_id="r2")
    theirs = bob.log.claim("bob's own", id="c1")
    mine = run.log.claim("mine", id="c2")
    said = run.observe("user", PARIS)
    assert run.log.claim("mine", id="c2") == mine
    before = counts(any_mem)
    for taken in ("c1", "c2", said.id, "r1", "r2"):
        with pytest.raises(DuplicateId) as caught:
            run.log.claim("another", id=taken)
        assert caught.value.path == "$.id"
    for wrong in ("", "x" * 300, "a\nb", 3):
        with pytest.raises(InvalidInput):
            run.log.claim("another", id=wrong)  # type: ignore[arg-type]
    with pytest.raises(Conflict):
        run.log.claim("mine", id="c3")
    assert counts(any_mem) == before
    assert (bob.log.claims(), run.log.claims()) == ([theirs], [mine])


def test_twice_is_refused(mem: Memory, run: Run, counts: Counts) -> None:
    claim = run.log.claim("It is so")
    run.log.retract_claim(claim.claim_id, reason="no")
    before = counts(mem)
    with pytest.raises(Conflict, match="retracted already"):
        run.log.retract_claim(claim.claim_id, reason="no")
    with pytest.raises(Conflict, match="retracted"):
        run.log.verify_claim(claim.claim_id)
    with pytest.raises(Conflict, match="retracted") as caught:
        run.log.claim("rests on it", depends_on=[claim.claim_id])
    assert caught.value.path == "$.depends_on[0]"
    assert counts(mem) == before


def test_a_run_that_has_ended_claims_nothing(mem: Memory, run: Run, counts: Counts) -> None:
    claim = verified(run)
    run.finish()
    before = counts(mem)
    calls: list[Callable[[], Any]] = [
        lambda: run.log.claim("more"),
        lambda: run.log.retract_claim(claim.claim_id, reason="no"),
        lambda: run.log.question("more?"),
        lambda: run.log.plan_next(["more"]),
        lambda: run.log.failure("a", "b", "c"),
        lambda: run.log.compact(),
    ]
    for call in calls:
        with pytest.raises(RunFinished):
            call()
    assert counts(mem) == before


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_bytes_that_were_altered_do_not_verify(make: Maker, where: str) -> None:
    """A candidate's pointers are looked at once more before it is verified: no word of a changed event verifies."""
    mem = make("sqlite")
    run = mem.run(user_id="ana")
    said = run.observe("user", PARIS)
    claim = run.log.claim("It is Paris", evidence=[{"event_id": said.id, "quote": "Paris"}])
    changed = (
        '{"content":"' + (PARIS.replace("Paris", "Lyons") if where == "inside" else PARIS.replace("say", "SAY")) + '"}'
    )
    mem._ctx.engine.write("default", lambda tx: tx.do(Patch("entries", (("id", "=", said.id),), {"body": changed})))
    assert not mem.verify().ok
    with pytest.raises(StoreDamaged) as caught:
        run.log.verify_claim(claim.claim_id)
    assert (caught.value.details["id"], caught.value.path) == (said.id, "$.evidence_refs[0]")
    assert [each.status for each in run.log.claims()] == ["candidate"]
