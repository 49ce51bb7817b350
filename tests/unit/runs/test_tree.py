"""The stored form of a snapshot: what two of them share, and that nothing altered passes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.canonical import canonical_text, parse_json, salted_digest
from muniment.errors import IntegrityFailure
from muniment.runs.compaction.tree import FAN, LEAF, Split, head_digest, join, split
from products import for_each

SALT, OTHER = b"0123456789abcdef", b"fedcba9876543210"
SIZES = [0, 1, 8, 9, 16, 255, 256, 257, 259, 300, 1000, 8192, 8193, 8200, 9000]


def document(claims: int, **more: Any) -> dict[str, Any]:
    """As much of a snapshot as the tree looks at."""
    return {
        "objective": "x",
        "latest_context_manifest_ids": [],
        "state": {
            "claims": [{"claim_id": f"k{number}", "statement": f"it is {number}"} for number in range(claims)],
            "conflicts": [],
            "source_coverage": {"chunk_ids_seen": [], "chunk_ids_cited": []},
        }
        | more,
    }


def joined(stored: Split, salt: bytes = SALT) -> dict[str, Any]:
    head = parse_json(canonical_text(stored.head))
    return join(head, salt, lambda names: {name: stored.parts[name] for name in names if name in stored.parts})


def depth(count: int) -> int:
    """Levels of nodes above the leaves."""
    names, levels = -(-count // LEAF), 0
    while names > 1:
        names, levels = -(-names // FAN), levels + 1
    return levels


@pytest.mark.soak
@for_each("count", SIZES)
def test_what_is_split_is_joined_again(count: int) -> None:
    wire = document(count)
    stored = split(wire, SALT)
    assert joined(stored) == wire == document(count), "and the document itself is left as it was"
    assert bool(stored.parts) == (count > LEAF)
    assert all(salted_digest(SALT, text.encode()) == name for name, text in stored.parts.items())
    assert all(len(parse_json(text)) <= FAN for text in stored.parts.values())


@settings(max_examples=examples(20))
@given(st.integers(9, 1200), st.integers(0, 1199), st.integers(1, 40))
def test_a_change_makes_new_parts_only_on_its_way_up(count: int, at: int, more: int) -> None:
    before = split(document(count), SALT).parts
    changed = document(count)
    changed["state"]["claims"][at % count] = {"claim_id": "changed"}
    new = split(changed, SALT).parts.keys() - before.keys()
    assert 1 <= len(new) <= depth(count) + 1
    grown = split(document(count + more), SALT).parts.keys() - before.keys()
    assert len(grown) <= -(-more // LEAF) + 1 + 2 * (depth(count + more) + 1)
    one = split(document(count + 1), SALT).parts.keys() - before.keys()
    assert 1 <= len(one) <= depth(count + 1) + 1


@pytest.mark.soak
@for_each("count", SIZES[3:])
def test_one_of_a_thousand(count: int) -> None:
    before = split(document(count), SALT).parts
    for at in (0, count // 2, count - 1):
        changed = document(count)
        changed["state"]["claims"][at]["statement"] = "another"
        assert 1 <= len(split(changed, SALT).parts.keys() - before.keys()) <= depth(count) + 1
    assert depth(1000) + 1 == 3


def test_lists_with_the_same_beginning_share_its_parts() -> None:
    ids = [f"evt_{number}" for number in range(300)]
    coverage = {"chunk_ids_seen": [*ids, "evt_x"], "chunk_ids_cited": ids}
    both = split(document(0, source_coverage=coverage), SALT)
    assert joined(both) == document(0, source_coverage=coverage)
    one = split(document(0, source_coverage=coverage | {"chunk_ids_seen": []}), SALT)
    assert len(both.parts) <= len(one.parts) + 3


def test_a_free_object_that_looks_like_a_tree_stays_what_it_is() -> None:
    wire = document(20) | {"done_definition": {"trees": {"state.claims": {"count": 9, "root": "00"}}, "document": {}}}
    assert joined(split(wire, SALT)) == wire


def test_equal_lists_under_another_salt_share_nothing() -> None:
    one, other = split(document(50), SALT), split(document(50), OTHER)
    assert not one.parts.keys() & other.parts.keys()
    assert head_digest(one.head, SALT) != head_digest(other.head, OTHER)
    with pytest.raises(IntegrityFailure):
        joined(one, OTHER)


@pytest.mark.req("CS-12")
@settings(max_examples=examples(20))
@given(st.integers(9, 400), st.data())
def test_any_part_that_is_missing_or_altered_is_named(count: int, data: st.DataObject) -> None:
    stored = split(document(count), SALT)
    name = data.draw(st.sampled_from(sorted(stored.parts)))
    text = stored.parts[name]
    at = data.draw(st.integers(0, len(text) - 1))
    altered = text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1 :]
    for parts, said in (({name: altered}, "was altered"), ({}, "is missing")):
        broken = Split(stored.head, {key: stored.parts[key] for key in stored.parts if key != name} | parts)
        with pytest.raises(IntegrityFailure) as caught:
            joined(broken)
        assert name.hex() in caught.value.message
        assert "of state.claims (elements " in caught.value.message
        assert said in caught.value.message
        assert caught.value.details["tree"] == "state.claims"


@pytest.mark.req("CS-12")
def test_the_digest_covers_the_head_and_all_below() -> None:
    stored = split(document(40), SALT)
    digest = head_digest(stored.head, SALT)
    assert digest == head_digest(parse_json(canonical_text(stored.head)), SALT)
    changed = document(40)
    changed["state"]["claims"][39]["statement"] = "another"
    assert head_digest(split(changed, SALT).head, SALT) != digest
    assert head_digest(split(document(40) | {"objective": "y"}, SALT).head, SALT) != digest


@for_each(
    "head",
    [
        {},
        {"document": [], "trees": {}},
        {"document": {}, "trees": []},
        {"document": document(0), "trees": {"state.else": {"count": 9, "root": "00"}}},
        {"document": document(0), "trees": {"state.claims": {"count": 3, "root": "00"}}},
        {"document": document(0), "trees": {"state.claims": {"count": True, "root": "00"}}},
        {"document": document(0), "trees": {"state.claims": 7}},
        {"document": document(0), "trees": {"state.claims": {"count": 10**12, "root": "zz"}}},
        {"document": document(0), "trees": {"state.claims": {"count": 9, "root": 7}}},
        {"document": document(1), "trees": {"state.claims": {"count": 9, "root": "00"}}},
        {"document": {"state": 7}, "trees": {"state.claims": {"count": 9, "root": "00"}}},
    ],
    ids=lambda head: str(head)[-60:],
)
def test_a_head_that_does_not_fit_is_refused(head: dict[str, Any]) -> None:
    with pytest.raises(IntegrityFailure):
        join(head, SALT, lambda names: {})


@pytest.mark.parametrize("count", [10, 257, 10**9])
def test_a_count_that_is_not_that_of_the_tree_is_refused(count: int) -> None:
    stored = split(document(20), SALT)
    stored.head["trees"]["state.claims"]["count"] = count
    with pytest.raises(IntegrityFailure, match=r"does not hold|was altered|is missing|names no part"):
        joined(stored)
