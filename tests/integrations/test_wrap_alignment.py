"""What of a list is new: over generated conversations that were cut, thinned out and added to. No client is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muniment
from muniment.core.matching import common_stretches
from muniment.integrations.session.alignment import align, ends_with, missing_calls, recorded
from muniment.integrations.wrapping.answers import ChatReader, MessageReader, ResponseReader
from muniment.store.messages import MessageEvent, read_messages


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def events(*texts: str) -> list[MessageEvent]:
    return read_messages([user(text) for text in texts])


def session(*messages: dict[str, Any]) -> Any:
    """The session as a store has it after these messages."""
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", session_id="s1")
        run.record(list(messages))
        return recorded(mem.ledger.entries(user_id="ana", session_id="s1"), run.ledger.content)


NUMBERS = st.lists(st.booleans(), min_size=1, max_size=40)
PLACES = st.lists(st.integers(0, 40), max_size=6)


@given(kept=NUMBERS, added=PLACES)
def test_what_was_added_is_new_and_what_was_left_is_known(kept: list[bool], added: list[int]) -> None:
    """Any part of a session in its order, with messages put between them and one at the end: these alone are new."""
    texts = [f"turn {number}" for number in range(len(kept))]
    known = KNOWN[: len(kept)]
    given_texts = [text for text, is_kept in zip(texts, kept, strict=True) if is_kept]
    for number, place in enumerate(added):
        given_texts.insert(min(place, len(given_texts)), f"added {number}")
    given_texts.append("the last")
    found = align(known, events(*given_texts))
    assert [each.event["content"] for each in found.new] == [
        text for text in given_texts if not text.startswith("turn")
    ]
    assert found.known_ids == [each.id for each, is_kept in zip(known, kept, strict=True) if is_kept]


KNOWN = session(*(user(f"turn {number}") for number in range(40)))


@pytest.mark.parametrize(
    ("held", "sent", "new"),
    [
        ("a b c", "a b c d", "d"),
        ("a b c", "b c d", "d"),
        ("a b c", "d", "d"),
        ("a b c", "a b", ""),  # asked again
        ("a b c", "c", ""),  # sent again after a failure
        ("a yes b yes c", "yes", "yes"),  # said again, behind something else
        ("a b c d", "x c d e", "x e"),  # summed up
        ("a b c d", "a x c d e", "x e"),  # edited
        ("ok ok ok", "ok ok ok ok", "ok"),
        ("", "a b", "a b"),
        ("a b", "", ""),
    ],
)
def test_cases(held: str, sent: str, new: str) -> None:
    found = align(session(*map(user, held.split())), events(*sent.split()))
    assert [each.event["content"] for each in found.new] == new.split()


def test_who_says_it_matters() -> None:
    known = session(user("yes"))
    assert len(align(known, read_messages([{"role": "assistant", "content": "yes"}])).new) == 1


def test_the_callers_prompts_are_no_turns() -> None:
    known = session({"role": "system", "content": "Be brief."}, user("a"))
    assert [each.mark.count("Be brief") for each in known] == [0]
    assert align(known, read_messages([{"role": "system", "content": "Be long."}, user("a")])).new == []


def test_the_last_turns() -> None:
    known = session(user("a"), user("b"))
    assert ends_with(known, events("b"))
    assert ends_with(known, events("a", "b"))
    assert not ends_with(known, events("a"))
    assert not ends_with(known, events("x", "a", "b"))


def test_calls_that_are_missing_are_found_by_the_ids_of_their_results() -> None:
    function = {"name": "weather", "arguments": '{"city": "Berlin"}'}
    made = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    known = session(user("How warm?"), made)
    anthropic = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "12"}]}
    for result in (
        {"role": "tool", "tool_call_id": "c1", "content": "12"},
        {"type": "function_call_output", "call_id": "c1", "output": "12"},
        anthropic,
    ):
        (call,) = missing_calls(known, [result])
        assert (call["name"], call["arguments"]) == ("weather", {"city": "Berlin"})
        assert missing_calls(known, [made, result]) == [], "it is there"
        read = read_messages([call, result])[-1].event
        assert read["tool"]["args"] == {"city": "Berlin"}
    assert missing_calls(known, [{"role": "tool", "tool_call_id": "c9", "content": "12"}]) == []


@pytest.mark.parametrize("reader", [ChatReader, MessageReader, ResponseReader])
def test_events_of_a_kind_nobody_knows_say_nothing(reader: Any) -> None:
    made = reader()
    for odd in (None, object(), 3, {"type": "new"}):
        made.take(odd)
    assert made.messages() == []
    assert not made.is_whole


LETTERS = st.lists(st.sampled_from("abcde"), max_size=24)


@given(one=LETTERS, other=LETTERS, unbounded=st.booleans())
def test_stretches_stand_in_both_lists_in_their_order(one: list[str], other: list[str], unbounded: bool) -> None:
    with mock.patch("muniment.core.matching._STEPS_MAX", 400_000 if unbounded else 0):
        found = common_stretches(one, other)
    at = place = 0
    for each in found:
        assert each.at >= at
        assert each.place >= place
        assert one[each.at : each.at + each.size] == other[each.place : each.place + each.size] != []
        at, place = each.at + each.size, each.place + each.size
    if one == other[: len(one)] or other == one[: len(other)]:
        assert sum(each.size for each in found) == min(len(one), len(other))


HOSTILE: dict[str, Callable[[int], tuple[list[str], list[str]]]] = {
    "one turn again and again": lambda size: (["x", *["ok"] * size, "y"], ["z", *["ok"] * size, "w"]),
    "two in turn": lambda size: (["x", *["ok", "go"] * (size // 2)], [*["go", "ok"] * (size // 2), "z"]),
    "every second one edited": lambda size: (
        [f"turn {number}" for number in range(size)],
        ["x", *[f"turn {number}" if number % 2 else f"edited {number}" for number in range(size)], "y"],
    ),
    "turned round": lambda size: (
        [f"turn {number}" for number in range(size)],
        ["x", *[f"turn {number}" for number in reversed(range(size))], "y"],
    ),
}


@pytest.mark.soak
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_list_costs_more_than_its_length(name: str) -> None:
    common_stretches(*HOSTILE[name](100_000))
