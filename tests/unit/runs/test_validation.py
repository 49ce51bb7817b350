"""The gate: a snapshot that holds passes every check, and each thing that is wrong fails the check of its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from run_entries import (
    CHUNKS,
    POLICY,
    RUN,
    A,
    B,
    claim,
    conflict,
    entries,
    fold,
    known,
    patch,
    pointer,
    snapshot,
    start,
    step,
    taken,
    window,
)
from validation_cases import STORY, altered, case, failed, failed_after

from muniment.contracts.snapshot import CompactionSnapshot
from muniment.core.scope import quote_hash
from muniment.runs._validation import CHECKS, entries_named, validate, validation_of
from muniment.runs.snapshots import snapshot_id_of
from products import for_each


@pytest.mark.req("CS-09")
def test_a_snapshot_that_holds_passes_every_check() -> None:
    made, held = case()
    checks = validate(made, held, POLICY)
    assert [(check.name, check.status) for check in checks] == [(name, "PASS") for name in CHECKS]
    block = validation_of(checks, "NONE")
    assert (block.status, block.failure_action_taken) == ("PASS", "NONE")
    assert all(check.message for check in block.checks)
    assert entries_named(fold(entries(STORY))) == ["e8", "e9", "e15", "e16", "e17"]


@pytest.mark.req("CS-09")
def test_the_validation_block_of_the_snapshot_is_not_looked_at() -> None:
    made, held = case()
    lying = validation_of(
        validate(altered(lambda wire: wire["counts"].update(steps_since_last_compaction=9)), held, POLICY), "RETRY"
    )
    assert (lying.status, lying.failure_action_taken) == ("FAIL", "RETRY")
    assert failed(made.model_copy(update={"validation": lying}), held) == {}


def _state(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda wire: wire["state"][name]


def _claims(wire: dict[str, Any]) -> Any:
    return wire["state"]["claims"]


SELF = snapshot_id_of(RUN, 1).rpartition(".")[0]
"""How the ids of the run's snapshots begin."""
FORGED = {"claim_id": "k9", "status": "verified", "statement": "forged", "evidence_refs": [A], "made_by": "e8"}

CORRUPTIONS: list[tuple[str, str, Callable[[dict[str, Any]], Any], set[str]]] = [
    ("shape", "$.cursor: wanted an object", lambda wire: wire.pop("cursor"), set(CHECKS)),
    (
        "shape",
        "$.claims[0].status: wanted 'candidate', 'verified' or 'retracted', found \"certain\"",
        lambda wire: _claims(wire)[0].update(status="certain"),
        set(CHECKS),
    ),
    ("shape", "created_at is no date-time: 'yesterday'", lambda wire: wire.update(created_at="yesterday"), set()),
    ("shape", "the claim k1 is listed more than once", lambda wire: _claims(wire).append(_claims(wire)[0]), set()),
    (
        "sequence",
        f"wanted the sequence 2, found 3; '{SELF}.2' is not the id of snapshot 3 of the run",
        lambda wire: wire.update(sequence=3),
        set(),
    ),
    (
        "sequence",
        "'snp_x.2' is not the id of snapshot 2 of the run",
        lambda wire: wire.update(snapshot_id="snp_x.2"),
        set(),
    ),
    (
        "sequence",
        f"wanted {SELF}.1 as previous_snapshot_id",
        lambda wire: wire.update(previous_snapshot_id=None),
        set(),
    ),
    ("sequence", "the claim k1 of the previous snapshot is missing", lambda wire: _claims(wire).pop(0), {"coverage"}),
    ("sequence", "it goes up to entry 1, the previous one to 9", lambda wire: wire["cursor"].update(seq=1), set()),
    (
        "objective_pinned",
        "objective is not what the run started with",
        lambda wire: wire.update(objective="another"),
        set(),
    ),
    (
        "objective_pinned",
        "done_definition is not what the run started with",
        lambda wire: wire.update(done_definition={"cited": False}),
        set(),
    ),
    (
        "claims_in_ledger",
        "the claim k1 is not what its entries say: statement",
        lambda wire: _claims(wire)[0].update(statement="another"),
        set(),
    ),
    (
        "claims_in_ledger",
        "the claim k1 is not what its entries say: status",
        lambda wire: _claims(wire)[0].update(status="candidate"),
        set(),
    ),
    (
        "claims_in_ledger",
        "the claim k1 is not what its entries say: evidence_refs",
        lambda wire: _claims(wire)[0]["evidence_refs"].append(B),
        set(),
    ),
    (
        "claims_in_ledger",
        "the claim k2 is not what its entries say: depends_on",
        lambda wire: _claims(wire)[2].update(depends_on=[]),
        set(),
    ),
    (
        "claims_in_ledger",
        "the claim k0 is not what its entries say: evidence_refs, status",
        lambda wire: _claims(wire)[1].update(changed_by="e9"),
        set(),
    ),
    (
        "claims_in_ledger",
        "the claim k0 names the entry e99, which the run's ledger does not hold as it was written",
        lambda wire: _claims(wire)[1].update(made_by="e99"),
        set(),
    ),
    (
        "claims_in_ledger",
        "the claim k9 is not what its entries say: claim_id, statement",
        lambda wire: _claims(wire).append(FORGED | {"between": [], "changed_by": "e8", "depends_on": []}),
        set(),
    ),
    (
        "claims_in_ledger",
        "the conflict c1 is not what its entries say: description",
        lambda wire: _state("conflicts")(wire)[0].update(description="else"),
        set(),
    ),
    (
        "claims_in_ledger",
        "the conflict c1 is not what its entries say: status",
        lambda wire: _state("conflicts")(wire)[0].update(status="settled"),
        set(),
    ),
    (
        "verified_cited",
        "k1, evidence_refs: wanted a full evidence pointer for a verified claim, found none",
        lambda wire: _claims(wire)[0].update(evidence_refs=[]),
        {"claims_in_ledger"},
    ),
    (
        "conflicts_two_sided",
        "c1, side_b_refs: wanted a full evidence pointer on each side of a conflict, found none",
        lambda wire: _state("conflicts")(wire)[0].update(side_b_refs=[]),
        {"claims_in_ledger"},
    ),
    (
        "conflicts_two_sided",
        "c1, side_a_refs: wanted a full evidence pointer on each side of a conflict, found none",
        lambda wire: _state("conflicts")(wire)[0].update(side_a_refs=[]),
        {"claims_in_ledger"},
    ),
    (
        "pointers_only",
        "the question qst_Which year? has 2001 characters, over the limit of 2000",
        lambda wire: _state("open_questions")(wire).__setitem__(0, "x" * 2001),
        set(),
    ),
    (
        "pointers_only",
        "why of flr_d6976c116d68e536997ab604b252300d has 2001 characters, over the limit of 2000",
        lambda wire: _state("failures")(wire)[0].update(why="x" * 2001),
        set(),
    ),
    (
        "pointers_only",
        "retrieval_diagnostics has 2001 characters, over the limit of 2000",
        lambda wire: wire.update(retrieval_diagnostics={"a": [{"b": "x" * 2001}]}),
        set(),
    ),
    (
        "counts",
        "wanted 3 counted events since the last snapshot, found 4; "
        "budgets.used has 3 more counted events than the previous snapshot, counts say 4",
        lambda wire: wire["counts"].update(counted_events_since_last_compaction=4),
        set(),
    ),
    (
        "counts",
        "wanted 2 steps since the last snapshot, found 1; "
        "budgets.used has 2 more steps than the previous snapshot, counts say 1",
        lambda wire: wire["counts"].update(steps_since_last_compaction=1),
        set(),
    ),
    (
        "counts",
        "budgets.used has 7 more steps than the previous snapshot, counts say 2",
        lambda wire: wire["budgets"]["used"].update(steps=9),
        set(),
    ),
    ("counts", "a failure was met less than once", lambda wire: _state("failures")(wire)[0].update(count=0), set()),
    (
        "coverage",
        "chunk_ids_cited lacks evt_a; chunk_ids_seen does not begin with what is cited",
        lambda wire: _drop(wire, "chunk_ids_cited", "evt_a"),
        set(),
    ),
    (
        "coverage",
        "chunk_ids_cited names evt_q, which nothing cites",
        lambda wire: _covered(wire, "chunk_ids_cited").append("evt_q"),
        set(),
    ),
    (
        "coverage",
        "chunk_ids_seen does not begin with what is cited",
        lambda wire: _covered(wire, "chunk_ids_seen").reverse(),
        set(),
    ),
    (
        "coverage",
        "chunk_ids_seen names evt_q more than once",
        lambda wire: _covered(wire, "chunk_ids_seen").append("evt_q"),
        set(),
    ),
    ("coverage", "source_ids_seen lacks maps", lambda wire: _drop(wire, "source_ids_seen", "maps"), set()),
    ("next_actions", "wanted 1 to 3 next actions", lambda wire: wire["state"].update(next_actions=[]), set()),
    (
        "next_actions",
        "wanted 1 to 3 next actions",
        lambda wire: wire["state"].update(next_actions=["a", "b", "c", "d"]),
        set(),
    ),
    ("next_actions", "a next action says nothing", lambda wire: wire["state"].update(next_actions=[" "]), set()),
]


def _covered(wire: dict[str, Any], name: str) -> list[Any]:
    found: list[Any] = wire["state"]["source_coverage"][name]
    return found


def _drop(wire: dict[str, Any], name: str, id_: str) -> None:
    _covered(wire, name).remove(id_)


@pytest.mark.req("CS-02", "CS-03", "CS-05", "CS-06", "CS-07", "CS-08", "CS-09")
@for_each(
    ("name", "said", "change", "also"), CORRUPTIONS, ids=[f"{name}-{at}" for at, (name, *_) in enumerate(CORRUPTIONS)]
)
def test_each_single_corruption_is_caught_by_name(
    name: str, said: str, change: Callable[[dict[str, Any]], Any], also: set[str]
) -> None:
    found = failed(altered(change), case()[1])
    assert found.get(name) == said
    assert found.keys() <= {name} | also


@pytest.mark.req("CS-06")
@for_each(
    ("said", "ref"),
    [
        ("its span ends at byte 99", A | {"span": {"start": 18, "end": 99}}),
        ("cuts a character in two", A | {"span": {"start": 19, "end": 26}}),
        ("cuts a character in two", A | {"span": {"start": 0, "end": 19}}),
        ("its span is empty", A | {"span": {"start": 5, "end": 5}}),
        ("its span is not", A | {"span": {"start": 9, "end": 5}}),
        ("its span is not", A | {"span": [18, 26]}),
        ("its span is not", A | {"span": {"start": 18, "end": "26"}}),
        ("not those that were quoted", A | {"quote_hash": quote_hash("Alesund")}),
        ("not those that were quoted", {key: A[key] for key in A if key != "quote_hash"}),
        ("not those that were quoted", A | {"span": {"start": 18, "end": 25}}),
        ("its evidence_id is not", A | {"evidence_id": B["evidence_id"]}),
        ("its evidence_id is not", pointer("ledger", "evt_a", 0, 3) | {"evidence_id": A["evidence_id"]}),
        ("it names no corpus", {key: A[key] for key in A if key != "corpus_id"}),
        ("it is not in the store", A | {"corpus_id": "maps"}),
        ("it is not in the store", A | {"chunk_id": "evt_gone"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@for_each("place", ["claim", "side_a", "side_b"])
def test_a_pointer_that_does_not_resolve(said: str, ref: dict[str, Any], place: str) -> None:
    """The ledger tells of it, so it is the pointer alone that does not hold."""
    told = {"claim": claim("k7", ref), "side_a": conflict("c7", ref, B), "side_b": conflict("c7", B, ref)}[place]
    found = failed_after(start(), told)
    backwards = ref["span"] == {"start": 9, "end": 5}  # which the contract itself refuses
    assert found.keys() - ({"verified_cited", "conflicts_two_sided"} if backwards else set()) == {"pointers_resolve"}
    assert said in found["pointers_resolve"]
    assert ("k7" if place == "claim" else "c7") in found["pointers_resolve"]


@pytest.mark.req("CS-08")
def test_new_entries_can_correct_what_does_not_resolve() -> None:
    """What was taken back or settled is history: nobody relies on it, and an operator can get a run going again."""
    gone = A | {"chunk_id": "evt_gone"}
    made = [start(), claim("k7", gone), conflict("c7", gone, B)]
    assert failed_after(*made).keys() == {"pointers_resolve"}
    retracted = patch("claim_retracted", id="k7", reason="its evidence is gone")
    settled = patch("conflict_settled", id="c7", resolution="no longer known")
    assert failed_after(*made, retracted).keys() == {"pointers_resolve"}
    assert failed_after(*made, retracted, settled) == {}
    demoted = patch("claim_demoted", id="k7", reason="its evidence is gone")
    assert failed_after(*made, demoted, settled) == {}


@pytest.mark.req("CS-06")
def test_stored_bytes_that_changed_are_found() -> None:
    made, held = case()
    changed = CHUNKS | {("ledger", "evt_a"): CHUNKS["ledger", "evt_a"].replace(b"sund", b"vund")}
    found = failed(made, replace(held, chunk=lambda corpus, chunk: changed[corpus, chunk]))
    assert found.keys() == {"pointers_resolve"}
    assert found["pointers_resolve"].count("not those that were quoted") == 2


@pytest.mark.req("CS-02")
def test_a_verified_claim_on_what_was_retracted() -> None:
    made, held = case()
    fallen = replace(held, standing=lambda corpus, chunk: "retracted" if chunk == "chk_2" else "superseded")
    assert failed(made, fallen) == {"sources_stand": "the claim k2 cites chk_2, whose document was retracted"}
    seen = entries([*STORY, patch("claim_retracted", id="k0", reason="no")])
    log = fold(seen)
    basis = failed(snapshot(log, held.previous), known(seen, log, held.previous))
    assert basis == {"sources_stand": "the claim k2 depends on k0, which was retracted"}


@pytest.mark.req("CS-02")
@pytest.mark.parametrize("gone", ["e8", "e9", "e15", "e17"])
def test_what_the_ledger_does_not_hold_does_not_pass(gone: str) -> None:
    made, held = case()
    without = {id_: entry for id_, entry in held.entries.items() if id_ != gone}
    assert failed(made, replace(held, entries=without)).keys() == {"claims_in_ledger"}
    forgotten = held.entries | {gone: held.entries[gone].model_copy(update={"body": None})}  # type: ignore[operator]
    assert failed(made, replace(held, entries=forgotten)).keys() == {"claims_in_ledger"}
    scope = held.entries[gone].scope.model_copy(update={"run_id": "run_2"})
    foreign = held.entries | {gone: held.entries[gone].model_copy(update={"scope": scope})}  # type: ignore[operator]
    assert failed(made, replace(held, entries=foreign)).keys() == {"claims_in_ledger"}


@pytest.mark.req("CS-05")
def test_what_the_run_started_with_binds_each_snapshot() -> None:
    made, held = case()
    assert held.started is not None
    other = held.started._replace(objective="another")
    assert failed(made, replace(held, started=other)).keys() == {"objective_pinned"}
    assert failed(made, replace(held, started=None)) == {}, "forgotten: the predecessor still binds"
    assert held.previous is not None
    moved = held.previous.model_copy(update={"done_definition": "else"})
    assert failed(made, replace(held, started=None, previous=moved)).keys() == {"objective_pinned"}


@pytest.mark.req("CS-08")
def test_a_run_whose_earlier_snapshots_were_forgotten_goes_on() -> None:
    seen = entries(STORY)
    log = fold(seen).model_copy(update={"sequence": 0})
    made = snapshot(log, snapshot_id=snapshot_id_of(RUN, 5))
    assert failed(made, known(seen, log, last_sequence=4)) == {}
    assert failed(made, known(seen, log)).keys() == {"sequence"}


@pytest.mark.req("CS-03")
def test_no_text_is_inlined_in_a_pointer() -> None:
    for extra, said in (
        ({"quote": "Ålesund"}, "more than a pointer: quote"),
        ({"corpus_id": "x" * 3000}, "over the limit"),
    ):
        assert said in failed_after(start(), claim("k7", A | extra))["pointers_only"]


@pytest.mark.req("CS-03")
def test_a_limit_that_became_stricter_does_not_lock_what_it_let_in() -> None:
    made, held = case()
    assert "pointers_only" in failed(made, held, claim_chars_max=3)
    seen = entries([start(), claim("k7", A, statement="x" * 500)])
    first = fold(seen)
    before = snapshot(first)
    later = entries([start(), claim("k7", A, statement="x" * 500), taken(1, 2), claim("k8", A, statement="y" * 500)])
    assert (
        failed(snapshot(fold(later[:3]), before), known(later[:3], fold(later[:3]), before), claim_chars_max=400) == {}
    )
    found = failed(snapshot(fold(later), before), known(later, fold(later), before), claim_chars_max=400)
    assert found == {"pointers_only": "the statement of k8 has 500 characters, over the limit of 400"}


@pytest.mark.parametrize(("count", "more"), [(2, []), (3, []), (4, ["and 1 more"]), (7, ["and 4 more"])])
def test_a_message_names_the_first_and_how_many_there_are(count: int, more: list[str]) -> None:
    seen = entries([start(), *(claim(f"k{number}", A) for number in range(count))])
    log = fold(seen)
    wire = snapshot(log).to_wire()
    for each in wire["state"]["claims"]:
        each["statement"] = "forged"
    found = failed(CompactionSnapshot.from_wire(wire), known(seen, log))["claims_in_ledger"]
    assert found == "; ".join(
        [f"the claim k{number} is not what its entries say: statement" for number in range(min(count, 3))] + more
    )


def test_bounds_of_the_policy() -> None:
    made, held = case()
    assert failed(made, held, manifests_max=1) == {}
    many = entries([start(), *(step("COMPILE_DONE", manifest=window(f"evt_{n}", id_=f"m{n}")) for n in range(9))])
    log = fold(many)
    found = failed(snapshot(log), known(many, log), seen_max=8, manifests_max=8)
    assert found == {"coverage": "chunk_ids_seen holds more than 8 that are not cited; more than 8 context manifests"}
