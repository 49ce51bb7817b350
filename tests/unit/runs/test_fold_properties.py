"""Properties of the fold and the snapshot, over streams of any kind of entry."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_entries import CHUNKS, RUN, SMALL, Told, entries, fold, known, snapshot, streams, taken

from effort import examples
from muniment.contracts.semantics import check_snapshot
from muniment.contracts.snapshot import CompactionSnapshot
from muniment.core.canonical import canonical_text, parse_json
from muniment.runs._validation import validate, validation_of
from muniment.runs.fold import claim_after, conflict_after, failure_after, question_after, subject_of
from muniment.runs.snapshots import log_of


def kept(made: CompactionSnapshot) -> CompactionSnapshot:
    """The snapshot after it was stored and read again."""
    return CompactionSnapshot.from_wire(parse_json(canonical_text(made.to_wire())))


@pytest.mark.req("CS-12")
@settings(max_examples=examples(100))
@given(streams(), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), min_size=1, max_size=4))
def test_a_snapshot_and_its_tail_are_the_whole_ledger(told: list[Told], cuts: list[tuple[int, int]]) -> None:
    """At any cut, with entries between the snapshot and the one that tells of it, one snapshot after another."""
    ledger: list[Told] = []
    log, previous = fold([], SMALL), None
    for piece, overtaking in [*cuts, (len(told), 0)]:
        ledger, told = ledger + told[:piece], told[piece:]
        whole = fold(entries(ledger), SMALL)
        assert fold(entries(ledger)[log.seq :], SMALL, log) == whole
        made = snapshot(whole, previous)
        previous = kept(made)
        assert previous == made
        log = log_of(previous)
        ledger, told = [*ledger, *told[:overtaking], taken(made.sequence, log.seq)], told[overtaking:]


@pytest.mark.req("CS-01", "CS-12")
@settings(max_examples=examples(60))
@given(streams())
def test_a_log_comes_back_from_its_snapshot(told: list[Told]) -> None:
    log = fold(entries(told), SMALL)
    made = snapshot(log)
    assert CompactionSnapshot.from_wire(made.to_wire()) == made
    assert log_of(made) == log.model_copy(update={"sequence": log.sequence + 1, "counted_since": (), "steps_since": ()})
    assert kept(made).to_bytes() == made.to_bytes()


@given(streams())
def test_folding_an_entry_again_changes_nothing(told: list[Told]) -> None:
    seen = entries(told)
    twice = [entry for entry in seen for _ in range(2)]
    assert fold(twice, SMALL) == fold(seen, SMALL)


@pytest.mark.req("CS-02", "CS-06", "CS-07", "CS-09")
@settings(max_examples=examples(50))
@given(streams(honest=True), st.integers(1, 41))
def test_what_an_honest_run_tells_is_valid(told: list[Told], cut: int) -> None:
    """Every check holds but those that the run itself may break: a basis that was retracted after it was used."""
    seen = entries(told)
    first = fold(seen[:cut], SMALL)
    before = snapshot(first)
    log = fold(entries([*told[:cut], taken(1, first.seq), *told[cut:]]), SMALL)
    after = entries([*told[:cut], taken(1, first.seq), *told[cut:]])
    for made, held in (
        (before, known(seen, first)),
        (snapshot(log, before), known(after, log, before)),
    ):
        checks = {check.name: check for check in validate(made, held, SMALL)}
        fallen = checks.pop("sources_stand")
        assert {check.message for check in checks.values() if check.status != "PASS"} == set()
        assert fallen.status == "PASS" or "which was retracted" in fallen.message
        assert not check_snapshot(made.to_wire())


@settings(max_examples=examples(60))
@given(streams())
def test_whatever_is_told_nothing_raises_and_the_gate_decides(told: list[Told]) -> None:
    seen = entries(told)
    log = fold(seen, SMALL)
    for entry in seen:
        assert claim_after(entry, None) is None or subject_of(entry) == ("claim", entry.metadata["id"])
        for after in (conflict_after, failure_after, question_after):
            after(entry, None)
    made = snapshot(log, snapshot_id="s1")
    checks = validate(made, known(seen, log), SMALL)
    assert validation_of(checks, "NONE").status == "FAIL", "the id is not one of ours"
    assert log.run_id == RUN
    assert set(log.coverage.chunk_ids_cited) <= {chunk for _, chunk in CHUNKS} | {
        ref.chunk_id for claim in log.claims for ref in claim.evidence_refs
    }
