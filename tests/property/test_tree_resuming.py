"""A tree search that is written down and taken up again, anywhere, is the search that was never cut off (RC-22)."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.canonical import canonical_text
from muniment.core.policy import TreePolicy
from muniment.errors import MunimentError
from muniment.rules.tree_search import (
    Answer,
    Ask,
    Child,
    Expanded,
    Failed,
    Scored,
    TreeSearch,
    Verified,
    answer_wire,
    children_of,
    read_answer,
)

pytestmark = pytest.mark.req("RC-22")

policies = st.builds(
    lambda algo, c, q, p, width, nodes, depth, frontier, children, failures: TreePolicy.model_validate(
        {
            "algo": algo,
            "puct": {"c": c, "q_method": q, "p_method": p},
            "beam_width": width,
            "nodes_max": nodes,
            "depth_max": depth,
            "frontier_max": frontier,
            "children_max": children,
            "failures_max": failures,
        }
    ),
    st.sampled_from(["puct_guided_tree_v1", "beam_guided_tree_v1"]),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.sampled_from(["max_reward", "mean_reward"]),
    st.sampled_from(["rank_prior", "uniform"]),
    st.integers(1, 4),
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(1, 12),
    st.integers(1, 5),
    st.integers(1, 8),
)


def answer(draws: int, ask: Ask) -> Answer:
    """An answer that depends on the question alone, of every kind there is."""
    random = Random(f"{draws} {ask.kind} {ask.state}")
    if random.random() < 0.05:
        return Failed(random.choice(["tool_failure", "tool_timeout"]), "it went wrong", random.random())
    if ask.kind == "verify":
        return Verified(random.choices(["fail", "unknown", "pass"], [90, 8, 2])[0], random.random())  # type: ignore[arg-type]
    if ask.kind == "score":
        return Scored(random.choice([None, 0.0, 1.0, random.random(), random.random()]), random.random())
    count = random.randrange(6)
    children = [
        Child(
            {"n": random.randrange(60), "f": random.choice([1.0, 0.5, -0.0])},
            random.choice([None, 0.0, random.random(), float("nan")]),
            random.choice([None, None, str(random.randrange(9))]),
        )
        for _ in range(count)
    ]
    return Expanded(tuple(children), random.random() < 0.1, cost=random.random())


def finish(search: TreeSearch, draws: int) -> list[Ask]:
    asked = []
    while (ask := search.next()) is not None:
        asked.append(ask)
        search.take(answer(draws, ask))
    return asked


@settings(max_examples=examples(40), deadline=None)
@given(policies, st.integers(0, 10**6), st.booleans(), st.data())
def test_cut_off_anywhere_and_taken_up_is_the_same(policy: TreePolicy, draws: int, scored: bool, data: Any) -> None:
    whole = TreeSearch.start({"n": 0}, policy, starts=[{"n": 1}, Child({"n": 2}, 0.5)], scored=scored)
    asked = finish(whole, draws)
    cuts = data.draw(st.sets(st.integers(0, len(asked)), max_size=4))
    search = TreeSearch.start({"n": 0}, policy, starts=[{"n": 1}, Child({"n": 2}, 0.5)], scored=scored)
    for step, ask in enumerate(asked):
        if step in cuts:
            search = TreeSearch.from_wire(json.loads(json.dumps(search.to_wire())))
        assert search.next() == ask
        search.take(answer(draws, ask))
    assert search.next() is None
    assert search.to_wire() == whole.to_wire()
    assert search.block() == whole.block()
    assert (search.reason_codes, search.way()) == (whole.reason_codes, whole.way())


@settings(max_examples=examples(25), deadline=None)
@given(policies, st.integers(0, 10**6))
def test_caps_hold_and_figures_are_true(policy: TreePolicy, draws: int) -> None:
    search = TreeSearch.start({"n": 0}, policy)
    asked = finish(search, draws)
    expansions = [ask for ask in asked if ask.kind == "expand"]
    block = search.block()
    failed = search.cuts["failed"]
    assert block.node_expanded == len(expansions) - failed <= policy.nodes_max
    deepest = max(ask.depth for ask in asked)
    assert block.depth_max in (deepest, deepest + 1)  # a state that was made, and not looked at before the end
    assert block.depth_max <= policy.depth_max
    assert block.frontier_max is not None
    assert block.frontier_max <= policy.frontier_max
    assert search.calls == len(asked) <= policy.calls_max
    assert len({ask.node for ask in expansions}) == len(expansions)  # no state is expanded twice
    assert search.end is not None
    if search.end.kind == "solved":
        assert search.reason_codes == ()
        assert search.way()[-1] == asked[-1].state
    else:
        assert search.reason_codes[0] in ("search_budget_exhausted", "proof_not_found")
    if search.is_complete:
        assert search.reason_codes[0] == "proof_not_found"


@settings(max_examples=examples(25), deadline=None)
@given(policies, st.integers(0, 10**6))
def test_a_search_is_made_by_its_answers(policy: TreePolicy, draws: int) -> None:
    """What the answers say as plain data makes the same search again."""
    whole = TreeSearch.start({"n": 0}, policy)
    again = TreeSearch.start({"n": 0}, policy)
    while (ask := whole.next()) is not None:
        told = answer(draws, ask)
        whole.take(told)
        if isinstance(told, Expanded):  # as the caller checks it
            told = children_of(told.children, policy.state_bytes_max, more=told.more, cost=told.cost)
        again.take(read_answer(json.loads(canonical_text(answer_wire(told))), policy.state_bytes_max))
    assert again.to_wire() == whole.to_wire()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 50) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(50), deadline=None)
@given(json_values, st.data())
def test_damaged_searches_are_refused_in_kind(value: Any, data: Any) -> None:
    """Whatever stands where a part of a search should: it is refused, or it is a search that comes to an end."""
    search = TreeSearch.start({"n": 0}, TreePolicy(nodes_max=5))
    for _ in range(data.draw(st.integers(0, 12))):
        ask = search.next()
        if ask is not None:
            search.take(answer(3, ask))
    wire = search.to_wire()
    name = data.draw(st.sampled_from(sorted(wire)))
    if name == "nodes" and data.draw(st.booleans()):
        node = data.draw(st.sampled_from(wire["nodes"]))
        node[data.draw(st.sampled_from(sorted(node)))] = value
    else:
        wire[name] = value
    try:
        read = TreeSearch.from_wire(wire)
    except MunimentError:
        return
    finish(read, 3)
    assert read.end is not None


@settings(max_examples=examples(30), deadline=None)
@given(json_values)
def test_damaged_answers_are_refused_in_kind(value: Any) -> None:
    rows = [
        value,
        ["expanded", value],
        ["scored", value, 0],
        ["verified", value, 0, None],
        ["expanded", [value], False],
    ]
    for row in rows:
        try:
            read_answer(row, 1000)
        except MunimentError:
            continue
