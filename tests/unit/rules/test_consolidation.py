"""Drafts among the rules that are there: merged, split so that both can stand, or refused with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from promotion_makers import HOME, LATER, NOW, advice, draft, memory_of, rule

from muniment.contracts.rules import DistillDraft, RuleRecord
from muniment.errors import InvalidInput
from muniment.learning.records import StoredMemory
from muniment.rules._consolidate import (
    Consolidated,
    applies,
    are_apart,
    consolidate,
    next_version,
    place_of,
    rule_of,
)
from muniment.rules._gate import rule_digest
from products import for_each

LARGE = 'x_features.size == "large"'
SEARCH = "tool:search"


def among(newcomer: DistillDraft, *existing: StoredMemory) -> Consolidated:
    return consolidate(rule(newcomer), existing, now=LATER)


def where(*predicates: str, **fields: Any) -> dict[str, Any]:
    return HOME | ({"predicates": list(predicates)} if predicates else {}) | fields


def active(made: DistillDraft) -> StoredMemory:
    return memory_of(rule(made).model_copy(update={"status": "active"}), report_id="r")


@pytest.mark.req("RC-18")
def test_a_draft_becomes_a_temporary_rule_without_tests() -> None:
    made = rule(advice("d1", SEARCH))
    assert (made.status, made.version, made.type) == ("temporary", "1", "StrategyRule")
    assert made.evidence.to_wire() == {
        "feature": SEARCH,
        "trace_ids": ["d1-t1", "d1-t2"],
        "draft_ids": ["d1"],
    }
    assert made.tests.to_wire() == {"regression_tests": [], "counterexample_tests": []}
    assert made.priority is not None
    assert not made.priority.guardrail_first
    assert rule(draft()).priority.guardrail_first  # type: ignore[union-attr]


@pytest.mark.parametrize("fields", [{"body": None}, {"body": "  "}, {"type": None}])
def test_a_draft_that_proposes_nothing_is_no_rule(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="proposes no rule"):
        rule(draft(**fields))


@pytest.mark.parametrize(
    "predicates", [["x_features.n > 3", "x_features.n < 2"], ['domain_tag == "retail"'], ["this is nonsense ("]]
)
def test_conditions_that_contradict_or_do_not_parse_are_refused(predicates: list[str]) -> None:
    with pytest.raises(InvalidInput):
        rule_of(draft(applicability=where(*predicates)), "r", NOW)


@pytest.mark.req("RC-18")
def test_near_duplicates_merge_and_their_evidence_is_united() -> None:
    there = memory_of(rule(advice("d1", SEARCH)))
    said = advice("d2", SEARCH, body="Call search: passed 18 of 20 with it, 3 of 20 without.")
    found = among(said, there)
    assert (found.kind, found.into, found.restarts) == ("merged", "rule-d1", False)
    assert found.record is not None
    assert found.record.evidence.trace_ids == ("d1-t1", "d1-t2", "d2-t1", "d2-t2")
    assert found.record.evidence.to_wire()["draft_ids"] == ["d1", "d2"]
    assert rule_digest(found.record) == rule_digest(rule(advice("d1", SEARCH)))
    assert found.record.version == "1"


def test_words_alike_are_duplicates_unless_one_turns_them_round_or_names_another_number() -> None:
    body = "Write the answer as one JSON document with the fields total and currency and nothing else around it"
    there = memory_of(rule(draft("d1", title=None, body=f"{body}.")))
    assert among(draft("d2", title=None, body=f"{body}!"), there).kind == "merged"
    assert among(draft("d3", title=None, body=body.replace("Write", "Never write")), there).kind != "merged"
    assert among(draft("d4", title=None, body=body.replace("one", "1")), there).kind == "new"
    assert among(draft("d5", title=None, body=body, type="StrategyRule"), there).kind == "new"
    assert among(draft("d6", title=None, body=body, applicability={"domain_tag": "retail"}), there).kind == "new"


def test_what_an_active_rule_says_is_evidence_for_it_and_leaves_it_as_it_is() -> None:
    found = among(advice("d2", SEARCH, applicability=where(LARGE)), active(advice("d1", SEARCH)))
    assert (found.kind, found.into) == ("merged", "rule-d1")
    assert found.record is not None
    assert found.record.status == "active"
    assert found.record.applicability == rule(advice("d1", SEARCH)).applicability


def test_a_larger_place_is_taken_by_a_rule_that_does_not_act_yet_and_by_no_other() -> None:
    narrow, wide = advice("d1", SEARCH, applicability=where(LARGE)), advice("d2", SEARCH)
    found = among(wide, memory_of(rule(narrow)))
    assert (found.kind, found.restarts) == ("merged", True)
    assert found.record is not None
    assert (found.record.rule_id, found.record.version, found.record.status) == ("rule-d1", "2", "temporary")
    assert found.record.applicability.predicates is None
    assert among(wide, active(narrow)).kind == "new"
    assert among(wide, memory_of(rule(narrow), stage="canary")).kind == "new"


def test_buckets_of_the_same_advice_are_united() -> None:
    one, other = (
        advice(name, SEARCH, applicability=where(bucket_keys=[key])) for name, key in (("d1", "A"), ("d2", "B"))
    )
    found = among(other, memory_of(rule(one)))
    assert found.record is not None
    assert found.record.applicability.bucket_keys == ("A", "B")
    assert among(other, active(one)).kind == "new"


# -- the opposite ----------------------------------------------------------------------------------------

OPPOSED = [
    (advice("d1", SEARCH), advice("d2", SEARCH, do=False)),
    (advice("d1", "order:search>book"), advice("d2", SEARCH, do=False)),
    (advice("d1", "first:search"), advice("d2", "first:book")),
    (advice("d1", "own:strategy=greedy"), advice("d2", "own:strategy=random")),
    (advice("d1", "check:made"), advice("d2", "check:none")),
    (advice("d1", "arg:book.cabin=economy"), advice("d2", "tool:book", do=False)),
    (
        draft("d1", type="StrategyRule", title="Call search before book", body="Call search before book."),
        draft("d2", title="Do not call search", body="Do not call search."),
    ),
    (
        draft("d1", type="StrategyRule", title=None, body="Always use search. It helps."),
        draft("d2", title=None, body="Never use search: it is slow."),
    ),
    (draft("d1", type="StrategyRule", title=None, body="Use search."), advice("d2", SEARCH, do=False)),
]


def _placed(made: DistillDraft, place: dict[str, Any]) -> DistillDraft:
    wire = made.to_wire()
    return DistillDraft.from_wire({**wire, "proposed_rule": {**wire["proposed_rule"], "applicability": place}})


@pytest.mark.req("RC-18")
@for_each("pair", OPPOSED, ids=lambda pair: str(pair[0].proposed_rule.title))
def test_what_advises_the_opposite_in_the_same_place_is_refused_by_name(
    pair: tuple[DistillDraft, DistillDraft],
) -> None:
    for one, other in (pair, pair[::-1]):
        found = among(other, memory_of(rule(one)))
        assert found.kind == "refused"
        assert found.record is None
        assert f"rule-{one.draft_id}" in found.reasons[0]


@for_each(
    ("one", "other"),
    [
        (advice("d1", SEARCH), advice("d2", "tool:book", do=False)),
        (advice("d1", SEARCH), advice("d2", "order:search>book", do=False)),
        (advice("d1", "check:made"), advice("d2", "check:none", do=False)),
        (advice("d1", "check:made"), advice("d2", "check:last", do=False)),
        (
            draft("d1", type="StrategyRule", title=None, body="Use search results to fill the form."),
            draft("d2", title=None, body="Do not call search."),
        ),
    ],
)
def test_what_can_be_done_together_is_no_conflict(one: DistillDraft, other: DistillDraft) -> None:
    assert among(other, memory_of(rule(one))).kind == "new"


@pytest.mark.req("RC-18")
@for_each("pair", OPPOSED, ids=lambda pair: str(pair[0].proposed_rule.title))
def test_the_narrower_is_the_exception_and_no_run_has_both(pair: tuple[DistillDraft, DistillDraft]) -> None:
    wide, narrow = pair[0], _placed(pair[1], where(LARGE))
    found = among(narrow, memory_of(rule(wide)))
    assert found.kind == "split"
    assert found.record is not None
    assert found.record.to_wire()["exception_to"] == ["rule-d1"]
    assert found.record.applicability == rule(narrow).applicability
    (cut,) = found.cuts
    assert (cut.rule_id, cut.is_active, cut.record.status, cut.record.version) == ("rule-d1", False, "temporary", "2")
    _apart_by_size(cut.record, found.record)


@pytest.mark.req("RC-18")
def test_a_wider_newcomer_is_cut_and_what_stands_is_left_alone() -> None:
    narrow, wide = advice("d1", SEARCH, do=False, applicability=where(LARGE)), advice("d2", SEARCH)
    found = among(wide, active(narrow))
    assert (found.kind, found.cuts) == ("split", ())
    assert found.record is not None
    _apart_by_size(found.record, rule(narrow))


def _apart_by_size(wide: RuleRecord, narrow: RuleRecord) -> None:
    """The wider one still applies wherever the narrower does not, also where nothing is known of the size."""
    assert are_apart(place_of(wide.applicability), place_of(narrow.applicability))
    for size in (None, "large", "small"):
        features = HOME | ({} if size is None else {"x_features": {"size": size}})
        assert applies(narrow, features) == (size == "large")
        assert applies(wide, features) == (size != "large")


def test_of_places_that_overlap_the_newcomer_gives_way() -> None:
    there = advice("d1", SEARCH, do=False, applicability=where(LARGE))
    found = among(advice("d2", SEARCH, applicability=where('"vip" in tags')), active(there))
    assert (found.kind, found.cuts) == ("split", ())
    assert found.record is not None
    assert "gives way to rule-d1" in found.reasons[0]
    assert applies(found.record, HOME | {"tags": ["vip"], "x_features": {"size": "small"}})
    assert not applies(found.record, HOME | {"tags": ["vip"], "x_features": {"size": "large"}})
    assert not applies(found.record, HOME | {"tags": [], "x_features": {"size": "small"}})


def test_the_cut_of_an_active_rule_is_told_and_not_made() -> None:
    found = among(advice("d2", SEARCH, do=False, applicability=where(LARGE)), active(advice("d1", SEARCH)))
    assert [(cut.is_active, cut.record.status) for cut in found.cuts] == [(True, "temporary")]


def test_rules_in_places_apart_are_both_new() -> None:
    there = memory_of(rule(advice("d1", SEARCH, do=False, applicability=where('x_features.size == "small"'))))
    assert among(advice("d2", SEARCH, applicability=where(LARGE)), there).kind == "new"
    assert among(advice("d2", SEARCH, applicability={"domain_tag": "retail"}), there).kind == "new"


def test_several_conflicts_are_all_settled_or_none_is() -> None:
    there = [
        memory_of(rule(advice("d1", SEARCH, do=False))),
        memory_of(rule(advice("d2", "first:search", do=False, applicability=where(LARGE, '"vip" in tags')))),
    ]
    found = among(advice("d3", "first:search", applicability=where(LARGE)), *there)
    assert found.kind == "split"
    assert found.record is not None
    (cut,) = found.cuts
    assert cut.rule_id == "rule-d1"
    assert are_apart(place_of(cut.record.applicability), place_of(found.record.applicability))
    assert are_apart(
        place_of(RuleRecord.from_wire(there[1].record).applicability), place_of(found.record.applicability)
    )
    same = memory_of(rule(advice("d4", "first:search", do=False, applicability=where(LARGE))))
    assert among(advice("d3", "first:search", applicability=where(LARGE)), *there, same).kind == "refused"


def test_retired_and_submitted_rules_are_passed_over() -> None:
    opposite = rule(advice("d1", SEARCH, do=False))
    for memory in (memory_of(opposite, status="retired"), memory_of(opposite, layer="user")):
        assert among(advice("d2", SEARCH), memory).kind == "new"


def test_the_order_of_what_is_there_does_not_matter() -> None:
    there = [memory_of(rule(advice(name, SEARCH))) for name in ("d1", "d2", "d3")]
    found = [among(advice("d9", SEARCH), *several) for several in (there, there[::-1])]
    assert found[0] == found[1]
    assert found[0].into == "rule-d1"
    first = among(advice("d9", SEARCH), *there[:2], active(advice("d7", SEARCH)))
    assert first.into == "rule-d7"


@for_each(("before", "after"), [("1", "2"), ("9", "10"), ("1.4.9", "1.4.10"), ("v2-b", "v3-b"), ("x", "x.1")])
def test_versions_grow(before: str, after: str) -> None:
    assert next_version(before) == after
