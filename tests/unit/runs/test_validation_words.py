"""What a check of a snapshot says, where it holds and where it does not: exactly, and to the last one of each limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from run_entries import (
    CHUNKS,
    POLICY,
    SEA,
    A,
    B,
    claim,
    conflict,
    entries,
    fold,
    known,
    message,
    patch,
    question,
    snapshot,
    start,
    step,
    taken,
    window,
)
from validation_cases import STORY, altered, case, failed, failed_after

from muniment.contracts.snapshot import CompactionSnapshot
from muniment.runs._validation import CHECKS, validate
from muniment.runs.snapshots import log_of
from products import for_each


def test_a_check_that_holds_says_what_it_looked_at() -> None:
    made, held = case()
    assert {check.name: check.message for check in validate(made, held, POLICY)} == dict.fromkeys(CHECKS, "holds") | {
        "claims_in_ledger": "3 claims and 1 conflicts are what their entries say",
        "verified_cited": "3 verified claims have evidence",
        "pointers_resolve": "6 pointers resolve to the stored bytes",
        "sources_stand": "3 verified claims rest on sources that stand",
        "conflicts_two_sided": "1 conflicts have evidence on both sides",
    }


@pytest.mark.req("CS-02", "CS-06", "CS-09")
def test_what_the_sealed_predecessor_holds_unchanged_is_not_checked_again() -> None:
    """A compaction checks what is new or changed; a person who asks has everything checked."""
    made, held = case()
    fresh = replace(held, is_whole=False)
    said = {check.name: check.message for check in validate(made, fresh, POLICY)}
    assert said["claims_in_ledger"] == (
        "2 claims and 1 conflicts are what their entries say; 1 are as the previous snapshot has them"
    )
    assert said["verified_cited"] == "2 verified claims have evidence"
    assert said["pointers_resolve"] == "5 pointers resolve to the stored bytes"
    assert said["sources_stand"] == "3 verified claims rest on sources that stand"
    without = {id_: entry for id_, entry in held.entries.items() if id_ != "e8"}
    assert failed(made, replace(fresh, entries=without)) == {}, "the claim of e8 was sealed"
    assert failed(made, replace(held, entries=without)).keys() == {"claims_in_ledger"}
    reworded = altered(lambda wire: wire["state"]["claims"][0].update(statement="another"))
    assert failed(reworded, fresh).keys() == {"claims_in_ledger"}, "a claim that differs from the sealed one is new"


def test_what_nobody_relies_on_is_not_counted_as_looked_at() -> None:
    told = [
        start(), claim("k1", A), claim("k2", B, status="candidate"), conflict("c1", A, SEA), conflict("c2", A, B),
        patch("conflict_settled", id="c2", resolution="a"),
    ]  # fmt: skip
    seen = entries(told)
    log = fold(seen)
    said = {check.name: check.message for check in validate(snapshot(log), known(seen, log), POLICY)}
    assert said["pointers_resolve"] == "3 pointers resolve to the stored bytes"
    assert said["verified_cited"] == "1 verified claims have evidence"
    assert said["claims_in_ledger"] == "2 claims and 2 conflicts are what their entries say"


def test_what_has_not_the_shape_is_not_looked_at_further() -> None:
    unread = "not checked: the snapshot does not have the shape of one"
    found = failed(altered(lambda wire: wire.pop("cursor")), case()[1])
    assert found == {"shape": "$.cursor: wanted an object"} | dict.fromkeys(CHECKS[1:], unread)


@pytest.mark.req("CS-08")
@pytest.mark.parametrize(
    ("noun", "part"),
    [
        ("claim k1", "claims"),
        ("conflict c1", "conflicts"),
        ("failure", "failures"),
        ("question qst_", "open_questions"),
    ],
)
def test_what_stands_twice_is_told_once_by_its_kind(noun: str, part: str) -> None:
    def twice(wire: dict[str, Any]) -> None:
        if part == "open_questions":  # their ids stand beside them
            wire["state"][part] = ["a", "b", "c"]
            wire["state"]["open_question_refs"] = wire["state"]["open_question_refs"] * 3
        else:
            wire["state"][part] += [wire["state"][part][0]] * 2

    found = failed(altered(twice), case()[1]).get("shape", "")
    assert found.startswith(f"the {noun}")
    assert found.count(" is listed more than once") == 1


@pytest.mark.req("CS-08")
def test_a_conflict_that_the_previous_snapshot_had_is_missed() -> None:
    first = [start(), claim("k1", A), conflict("c1", A, SEA), conflict("c0", A, B)]
    seen = entries([*first, taken(1, len(first)), question("Which year?")])
    previous = snapshot(fold(seen[: len(first)]))
    log = fold(seen)
    wire = snapshot(log, previous).to_wire()
    wire["state"]["conflicts"] = []
    found = failed(CompactionSnapshot.from_wire(wire), known(seen, log, previous))
    assert found["sequence"] == "; ".join(
        f"the conflict {name} of the previous snapshot is missing" for name in ("c0", "c1")
    )


@pytest.mark.req("CS-08")
def test_the_predecessor_is_one_of_the_same_run() -> None:
    made, held = case()
    assert held.previous is not None
    foreign = held.previous.model_copy(update={"run_id": "run_2"})
    found = failed(made, replace(held, previous=foreign, before=log_of(foreign)))
    assert "the previous snapshot is one of the run run_2" in found["sequence"]


def _write(*path: str | int) -> Callable[[dict[str, Any], str], None]:
    """Puts a text where the path leads to."""

    def put(wire: dict[str, Any], text: str) -> None:
        *way, last = path
        place: Any = wire
        for name in way:
            place = place[name]
        place[last] = text

    return put


@pytest.mark.req("CS-03")
@for_each(
    ("where", "put"),
    [
        ("the statement of k1", _write("state", "claims", 0, "statement")),
        ("the reason of k1", _write("state", "claims", 0, "reason")),
        ("the description of c1", _write("state", "conflicts", 0, "description")),
        ("the resolution of c1", _write("state", "conflicts", 0, "resolution")),
        ("category of", _write("state", "failures", 0, "category")),
        ("where of", _write("state", "failures", 0, "where")),
        ("why of", _write("state", "failures", 0, "why")),
        ("retrieval_diagnostics", lambda wire, text: wire.update(retrieval_diagnostics={"a": [{text: 1}]})),
        ("deltas", lambda wire, text: wire.update(deltas={"claims": [text]})),
        ("latest_context_manifest_ids", lambda wire, text: wire.update(latest_context_manifest_ids=[text])),
        ("state.next_actions", lambda wire, text: wire["state"].update(next_actions=[text])),
        ("state.source_coverage", lambda wire, text: wire["state"]["source_coverage"].update(more=[text])),
    ],
)
def test_words_over_the_limit_are_found_wherever_they_stand(where: str, put: Callable[..., None]) -> None:
    held = case()[1]
    over = failed(altered(lambda wire: put(wire, "x" * 101)), held, claim_chars_max=100)["pointers_only"]
    assert over.startswith(where)
    assert over.endswith(" has 101 characters, over the limit of 100")
    at = failed(altered(lambda wire: put(wire, "x" * 100)), held, claim_chars_max=100)
    assert "pointers_only" not in at


@pytest.mark.req("CS-03")
def test_a_pointer_with_words_in_it_is_told_with_their_names() -> None:
    ref = A | {"quote": "Ålesund", "about": "x"}
    said = failed_after(start(), claim("k7", ref), conflict("c7", B, ref))["pointers_only"].split("; ")
    tail = f"cites {A['evidence_id']} with more than a pointer: about, quote"
    assert said == [f"the claim k7 {tail}", f"the conflict c7 {tail}"]
    long = A | {"corpus_id": "x" * 2001}
    found = failed_after(start(), claim("k7", long))["pointers_only"]
    assert found.split("; ")[1:] == [
        f"the claim k7 cites {A['evidence_id']} with a text over the limit of 2000 characters"
    ]
    assert "pointers_only" not in failed_after(start(), claim("k7", A | {"corpus_id": "x" * 2000}))


@pytest.mark.req("CS-06")
def test_a_pointer_that_does_not_resolve_is_told_with_who_cites_it() -> None:
    gone = B | {"chunk_id": "evt_gone"}
    said = failed_after(start(), claim("k7", A, gone), conflict("c7", gone, B))["pointers_resolve"].split("; ")
    tail = f"cites {B['evidence_id']}: it is not in the store"
    assert said == [f"the claim k7 {tail}", f"the conflict c7 {tail}"]


def test_each_chunk_is_read_once() -> None:
    made, held = case()
    read: list[tuple[str, str]] = []

    def chunk(corpus: str, name: str) -> bytes | str:
        read.append((corpus, name))
        return CHUNKS[corpus, name]

    assert failed(made, replace(held, chunk=chunk)) == {}
    assert sorted(read) == [("ledger", "evt_a"), ("ledger", "evt_b"), ("maps", "chk_1"), ("maps", "chk_2")]


@pytest.mark.req("CS-02")
def test_an_entry_that_says_no_such_thing_is_named() -> None:
    made, held = case()
    other = held.entries | {"e8": entries([message()], first=8)[0]}  # type: ignore[operator]
    found = failed(made, replace(held, entries=other))["claims_in_ledger"]
    assert found == "the claim k1 names the entry e8, which says no such thing"


def test_a_snapshot_is_compared_with_what_the_ledger_folds_to_where_that_is_given() -> None:
    made, held = case()
    log = fold(entries(STORY))
    same = validate(made, replace(held, folded=log), POLICY)
    assert [check.name for check in same] == [*CHECKS, "replay"]
    assert same[-1].status == "PASS"
    other = validate(made, replace(held, folded=log.model_copy(update={"claims": ()})), POLICY)
    assert [check.name for check in other if check.status == "FAIL"] == ["replay"]


def test_limits_hold_to_the_last_one() -> None:
    many = entries([start(), *(step("COMPILE_DONE", manifest=window(f"evt_{n}", id_=f"m{n}")) for n in range(9))])
    log = fold(many)
    assert failed(snapshot(log), known(many, log), seen_max=9, manifests_max=9) == {}
    _, held = case()
    assert failed(altered(lambda wire: wire["state"].update(next_actions=["a", "b", "c"])), held) == {}
    assert failed(altered(lambda wire: wire["state"]["failures"][0].update(count=1)), held) == {}
    for odd in ("look", [1], ["a", ""]):
        change = {"next_actions": odd}
        assert "next_actions" in failed(altered(lambda wire, change=change: wire["state"].update(change)), held)


def test_what_is_far_too_long_is_named_by_its_beginning() -> None:
    _, held = case()
    found = failed(altered(lambda wire: wire.update(created_at="y" * 100)), held)
    assert found["shape"] == f"created_at is no date-time: '{'y' * 59}"
    found = failed(altered(lambda wire: wire.update(snapshot_id="z" * 100)), held)
    assert found["sequence"] == f"'{'z' * 79} is not the id of snapshot 2 of the run"
