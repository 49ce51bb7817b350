"""Intent and state keys: one line, order-free, parsed back, compared part by part (RC-07)."""

from __future__ import annotations

from random import Random
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.errors import InvalidInput
from muniment.learning.keys import (
    Likeness,
    intent_key,
    intent_likeness,
    key_hash,
    parse_intent_key,
    parse_state_key,
    read_intent_key,
    read_state_key,
    state_compat,
    state_key,
)
from muniment.learning.records import IntentParts, StateParts
from products import for_each

pytestmark = pytest.mark.req("RC-07")

WORDS = st.one_of(st.sampled_from(["travel", "Travel", "a|b", "x=y", "50%", "a,b", " ", "", "é", "e\u0301"]), st.text())
MAYBE = st.none() | WORDS
SETS = st.none() | st.lists(WORDS, max_size=4).map(tuple)


def filled(kind: type, **fields: st.SearchStrategy) -> st.SearchStrategy:
    return st.fixed_dictionaries(fields).map(
        lambda found: kind(**{name: value for name, value in found.items() if value is not None})
    )


INTENTS = filled(
    IntentParts,
    domain_tag=MAYBE,
    task_family=MAYBE,
    required_tools=SETS,
    output_format=MAYBE,
    constraint_profile=MAYBE,
)
STATES = filled(
    StateParts,
    mode=MAYBE,
    budget_tier=MAYBE,
    policy_profile=MAYBE,
    tool_availability=SETS,
    verifier_profile=MAYBE,
    sandbox_flags=SETS,
)
ANY_TEXT = st.text(st.characters()) | st.text(alphabet="intestamode|=,%20 \ud800")
INTENT_KEYS = st.one_of(st.none(), INTENTS.map(intent_key), ANY_TEXT)
STATE_KEYS = st.one_of(st.none(), STATES.map(state_key), ANY_TEXT)

BOOKING = IntentParts(
    domain_tag="travel", task_family="booking", required_tools=("search", "book"), output_format="json"
)


def test_a_key_reads_like_a_line() -> None:
    assert intent_key(BOOKING) == "intent|domain=travel|family=booking|tools=book,search|format=json"
    parts = StateParts(mode="main", budget_tier="full", tool_availability=(), sandbox_flags=("network=off",))
    assert state_key(parts) == "state|mode=main|tier=full|tools=|sandbox=network%3Doff"
    assert intent_key(IntentParts()) == "intent"


@given(INTENTS)
def test_an_intent_is_parsed_back(parts: IntentParts) -> None:
    key = intent_key(parts)
    back = parse_intent_key(key)
    assert intent_key(back) == key
    assert parse_intent_key(intent_key(back)) == back
    assert (back.required_tools is None) == (parts.required_tools is None)
    assert not set(key) & set(map(chr, [*range(33), 127]))


@given(STATES)
def test_a_state_is_parsed_back(parts: StateParts) -> None:
    key = state_key(parts)
    assert state_key(parse_state_key(key)) == key
    assert read_intent_key(key) is None


@given(st.text().filter(lambda text: text.strip() == text != ""))
def test_text_survives_as_it_is_but_for_its_composition(text: str) -> None:
    back = parse_intent_key(intent_key(IntentParts(domain_tag=text, required_tools=(text,))))
    assert back.domain_tag == normalize("NFC", text)
    assert back.required_tools == (normalize("NFC", text),)


def test_composed_and_decomposed_text_are_one_key() -> None:
    composed, apart = ("caf\u00e9", "cafe\u0301")
    assert intent_key(IntentParts(domain_tag=composed)) == intent_key(IntentParts(domain_tag=f" {apart}\t"))
    assert intent_key(IntentParts(required_tools=(apart, composed))) == f"intent|tools={composed}"


@given(st.lists(WORDS, max_size=5), st.randoms())
def test_sets_have_no_order(tools: list[str], chance: Random) -> None:
    other = [*tools, *tools]
    chance.shuffle(other)
    assert intent_key(IntentParts(required_tools=tuple(tools))) == intent_key(IntentParts(required_tools=tuple(other)))


@for_each(
    "text",
    [
        "",
        "intents",
        "travel/booking",
        "intent|",
        "intent|domain",
        "intent|domain=",
        "intent|domain=a|domain=b",
        "intent|family=b|domain=a",
        "intent|tools=b,a",
        "intent|tools=a,a",
        "intent|domain=a b",
        "intent|domain=%zz",
        "intent|domain=%61",
        "intent|colour=red",
        "state|mode=main",
        "intent|domain=\ud800",
    ],
)
def test_what_was_not_written_so_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_intent_key(text)


def test_reading_is_tolerant_of_order_and_no_more() -> None:
    assert read_intent_key("intent|tools=b,a|domain= travel ") == IntentParts(
        domain_tag="travel", required_tools=("a", "b")
    )
    assert read_intent_key("intent|colour=red") is None
    assert read_intent_key("intent|domain=a|domain=a") is None
    assert read_state_key("whatever") is None


@given(ANY_TEXT)
def test_reading_takes_any_text(text: str) -> None:
    for read, write in ((read_intent_key, intent_key), (read_state_key, state_key)):
        parts = read(text)
        assert parts is None or read(write(parts)) == parts
    assert len(key_hash(text)) == 32


def test_a_hash_is_the_same_everywhere() -> None:
    assert key_hash(intent_key(BOOKING)) == "a7bc0fd62e4c09e38b49b85b9532dab4"
    assert key_hash("") == "e3b0c44298fc1c149afbf4c8996fb924"


@given(INTENT_KEYS, INTENT_KEYS)
def test_likeness_of_intents_goes_both_ways(a: str | None, b: str | None) -> None:
    one, other = intent_likeness(a, b), intent_likeness(b, a)
    assert (one.score, one.clash) == (other.score, other.clash)
    assert 0 <= one.score <= 1
    assert one.why


@pytest.mark.soak
@given(INTENT_KEYS.filter(lambda key: key is not None), STATE_KEYS.filter(lambda key: key is not None))
def test_equal_keys_are_wholly_alike(intent: str, state: str) -> None:
    assert intent_likeness(intent, intent)[:2] == (1.0, False)
    assert state_compat(state, state)[:2] == (1.0, False)


@given(STATE_KEYS, STATE_KEYS, SETS)
def test_compatibility_is_a_share(wanted: str | None, memory: str | None, needs: tuple[str, ...] | None) -> None:
    assert 0 <= state_compat(wanted, memory).score <= 1
    assert 0 <= state_compat(wanted, memory, needs=needs).score <= 1


def like(**change: object) -> Likeness:
    return intent_likeness(intent_key(BOOKING), intent_key(BOOKING.model_copy(update=change)))


def test_intents_part_by_part() -> None:
    assert like(domain_tag="TRAVEL") == (1.0, False, ("same domain", "same family", "same tools", "same format"))
    assert like(domain_tag="coding").clash
    assert like(task_family="cancelling").clash
    assert not like(output_format="text").clash
    assert "other format" in like(output_format="text").why
    assert "1 of 2 tools" in like(required_tools=("book",)).why


def test_tools_alone() -> None:
    def shared(ours: tuple[str, ...], theirs: tuple[str, ...]) -> float:
        return intent_likeness(*(intent_key(IntentParts(required_tools=tools)) for tools in (ours, theirs))).score

    assert shared(("a", "b"), ("b", "a")) == 1.0
    assert shared(("a",), ("a", "b")) == pytest.approx(0.75)  # the one holds the other: halfway from 1/2 to 1
    assert shared(("a", "c"), ("a", "b")) == pytest.approx(1 / 3)
    assert shared((), ("a", "b")) == shared(("c",), ("a", "b")) == 0.0


def test_more_in_common_is_more_alike() -> None:
    whole, subset = like(constraint_profile="strict"), like(required_tools=("book",))
    beside, none = like(required_tools=("book", "pay")), like(required_tools=("pay",))
    assert 1 > subset.score > beside.score > none.score
    assert whole.score < 1
    assert like(required_tools=()).score == none.score


def test_what_is_unknown_neither_matches_nor_clashes() -> None:
    less = like(domain_tag=None, task_family=None)
    assert not less.clash
    assert less.score < 1
    assert intent_likeness(None, intent_key(BOOKING)) == (0.0, False, ("unknown",))
    assert intent_likeness("intent", intent_key(BOOKING)) == (0.0, False, ("unknown",))
    tools = intent_key(IntentParts(required_tools=("a",)))
    assert intent_likeness(intent_key(IntentParts(domain_tag="a")), tools) == (0.0, False, ("unknown",))


def test_opaque_keys_are_compared_as_wholes() -> None:
    assert intent_likeness("mine/1", "mine/1") == (1.0, False, ("same key",))
    assert intent_likeness("mine/1", "mine/2") == (0.0, True, ("other key",))
    assert intent_likeness("mine/1", intent_key(BOOKING)) == (0.0, False, ("unknown",))
    assert intent_likeness(key_hash(intent_key(BOOKING)), intent_key(BOOKING)).score == 1.0
    assert state_compat("mine/1", "mine/2") == (0.0, False, ("unknown",))


HERE = StateParts(
    mode="main",
    budget_tier="full",
    policy_profile="strict",
    tool_availability=("book", "search"),
    verifier_profile="v_l1_only",
    sandbox_flags=("exec", "network=off"),
)


def compat(needs: tuple[str, ...] | None = None, **learnt: object) -> Likeness:
    return state_compat(state_key(HERE), state_key(HERE.model_copy(update=learnt)), needs=needs)


def test_tools_a_memory_takes_must_be_available() -> None:
    assert not compat(tool_availability=("book",)).clash
    assert compat(tool_availability=("book", "pay")).clash
    assert "needs tools: pay" in compat(tool_availability=("book", "pay")).why
    assert state_compat(state_key(HERE), None, needs=("pay",)).clash
    assert not state_compat(None, None, needs=("pay",)).clash


def test_tools_that_were_there_and_not_needed_are_no_clash() -> None:
    learnt = compat(needs=("book",), tool_availability=("book", "pay"))
    assert not learnt.clash
    assert "had tools: pay" in learnt.why
    assert compat(needs=("pay",), tool_availability=("book", "pay")) == (0.0, True, ("needs tools: pay",))


def test_conditions_of_a_run() -> None:
    assert compat(policy_profile="open").clash
    for soft in ({"mode": "sot"}, {"budget_tier": "hot"}, {"verifier_profile": "other"}):
        assert not compat(**soft).clash
        assert 0 < compat(**soft).score < 1


def test_sandbox_flags() -> None:
    assert compat(sandbox_flags=("exec", "network=on")).clash
    assert compat(sandbox_flags=("gpu",)).clash
    assert not compat(sandbox_flags=("exec",)).clash
    assert not compat(sandbox_flags=("network:off", "gpu=off")).clash
    assert compat(sandbox_flags=("EXEC=on", "network:off")).score == 1.0
