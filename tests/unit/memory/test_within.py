"""A search that looks where it is told to: by fields, roles, sessions, moments and events, from the index alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import muniment
from muniment.errors import InvalidInput
from muniment.memory._index import FIELD_CHARS_MAX, FIELDS_KEY, FIELDS_MAX, field_terms
from products import for_each


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        first = opened.run(user_id="ana", session_id="s1")
        for number in range(20):
            first.observe(
                "user" if number % 2 else "assistant",
                f"tea number {number}",
                id=f"e{number}",
                ts=f"2026-01-{number + 1:02d}T00:00:00Z",
                metadata={FIELDS_KEY: [f"n={number % 5}", *(["green"] if number < 3 else [])]},
            )
        opened.run(user_id="ana", session_id="s2").observe("user", "tea elsewhere", id="x", ts="2026-03-01T00:00:00Z")
        yield opened


def found(mem: muniment.Memory, within: dict[str, Any] | None) -> set[str]:
    return {hit.id for hit in mem.run(user_id="ana").search("tea", k=50, within=within)}


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        (None, {*(f"e{n}" for n in range(20)), "x"}),
        ({}, {*(f"e{n}" for n in range(20)), "x"}),
        ({"fields": ["n=3"]}, {"e3", "e8", "e13", "e18"}),
        ({"fields": ["n=1", "green"]}, {"e1"}),
        ({"fields": ["nothing has it"]}, set()),
        ({"fields": ["n=3"], "roles": ["user"]}, {"e3", "e13"}),
        ({"sessions": ["s2"]}, {"x"}),
        ({"sessions": ["s2", "no such"]}, {"x"}),
        ({"events": ["e4", "x", "none"]}, {"e4", "x"}),
        ({"since": "2026-01-19T00:00:00Z"}, {"e18", "e19", "x"}),
        ({"until": "2026-01-02T00:00:00Z"}, {"e0", "e1"}),
        ({"any_of": [{"fields": ["green"]}, {"sessions": ["s2"]}]}, {"e0", "e1", "e2", "x"}),
        ({"any_of": []}, set()),
        ({"all_of": [{"fields": ["green"]}, {"any_of": [{"events": ["e1"]}, {"events": ["e5"]}]}]}, {"e1"}),
        ({"sessions": ["s1"], "none_of": [{"roles": ["user"]}, {"fields": ["n=0"]}]},
         {f"e{n}" for n in range(0, 20, 2) if n % 5}),
    ],
)  # fmt: skip
def test_what_is_found_lies_within(mem: muniment.Memory, within: dict[str, Any] | None, expected: set[str]) -> None:
    assert found(mem, within) == expected


@for_each(
    ("within", "path"),
    [
        ({"colour": "green"}, "$.within.colour"),
        ({"fields": "green"}, "$.within.fields"),
        ({"since": "soon"}, "$.within.since"),
        ({"any_of": [{"since": 3}]}, "$.within.any_of[0].since"),
        (7, "$.within"),
        ({"events": ["e"] * 20_001}, "$.within.events"),
    ],
)
def test_what_is_no_condition_is_refused_at_its_place(mem: muniment.Memory, within: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        found(mem, within)
    assert refused.value.path == path


def test_conditions_stand_no_deeper_than_they_may(mem: muniment.Memory) -> None:
    deep: dict[str, Any] = {"roles": ["user"]}
    for _ in range(24):
        deep = {"any_of": [deep]}
    with pytest.raises(InvalidInput, match="deep"):
        found(mem, deep)


def test_without_a_question_the_newest_there_are_found(mem: muniment.Memory) -> None:
    run = mem.run(user_id="ana")
    assert [hit.id for hit in run.search("", k=3, within={})] == ["x", "e19", "e18"]
    assert [hit.id for hit in run.search("  ", k=9, within={"fields": ["n=3"]})] == ["e18", "e13", "e8", "e3"]
    assert {hit.score for hit in run.search("", k=9, within={})} == {0.0}
    assert run.search("", k=9, within={}, min_score=0.1) == []
    assert run.search("", k=9) == []
    mem.forget(event="e18")
    assert [hit.id for hit in run.search("", k=2, within={"sessions": ["s1"]})] == ["e19", "e17"]


def test_a_fact_is_within_where_a_source_is() -> None:
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", session_id="s1")
        run.observe("user", "I live in Berlin.", id="b", metadata={FIELDS_KEY: ["kind=home"]})
        run.observe("user", "I work as a nurse.", id="w", metadata={FIELDS_KEY: ["kind=work"]})
        run.extract()
        homes = run.search("where do I live and work", k=20, within={"fields": ["kind=home"]})
        assert {(hit.kind, hit.sources) for hit in homes} == {("event", ("b",)), ("fact", ("b",))}


def test_fields_survive_a_rebuild_and_go_with_a_forget(mem: muniment.Memory) -> None:
    assert mem.verify().ok
    mem.store.rebuild()
    assert found(mem, {"fields": ["n=3"]}) == {"e3", "e8", "e13", "e18"}
    mem.forget(event="e8")
    assert found(mem, {"fields": ["n=3"]}) == {"e3", "e13", "e18"}
    assert mem.verify().ok


def test_fields_weigh_nothing_in_a_ranking() -> None:
    said = [
        "I drink tea in the morning",
        "My manager is Ben",
        "My manager is Clara now",
        "tea with milk",
        "a long walk",
    ]
    answers = []
    for fields in ([], ["a", "b", "c", "d", "e", "f"]):
        with muniment.open(":memory:") as mem:
            run = mem.run(user_id="ana", session_id="s")
            for number, text in enumerate(said):
                metadata = {FIELDS_KEY: fields} if fields else {}
                run.observe("user", text, id=f"e{number}", ts=f"2026-01-0{number + 1}T00:00:00Z", metadata=metadata)
            hits = [hit for query in ("tea", "who is my manager", "walk") for hit in run.search(query, k=5)]
            answers.append([(hit.id, hit.score, hit.parts) for hit in hits])
    assert answers[0] == answers[1]


@for_each("listed", [None, "a", 3, [], [3, "", "x" * (FIELD_CHARS_MAX + 1)], {"a": 1}])
def test_what_is_no_list_of_short_words_has_no_fields(listed: Any) -> None:
    assert field_terms({FIELDS_KEY: listed}) == []


def test_no_more_fields_are_indexed_than_may_be() -> None:
    assert len(field_terms({FIELDS_KEY: [str(number) for number in range(FIELDS_MAX + 9)]})) == FIELDS_MAX
