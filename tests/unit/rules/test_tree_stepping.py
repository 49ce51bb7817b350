"""Guided tree search, step by step: what is asked next, what an answer does, how it ends (RC-22)."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import pytest

from muniment.core.policy import PuctPolicy, TreePolicy
from muniment.errors import InvalidInput, InvalidJson, InvalidRecord, TooLarge
from muniment.rules.tree_search import Answer, Ask, Child, Expanded, Failed, Scored, TreeSearch, Verified
from products import for_each

pytestmark = pytest.mark.req("RC-22")

PUCT, BEAM = "puct_guided_tree_v1", "beam_guided_tree_v1"
BOTH = pytest.mark.parametrize("algo", [PUCT, BEAM])
Space = dict[str, list[Any]]


def policy(algo: str = PUCT, **numbers: Any) -> TreePolicy:
    return TreePolicy.model_validate({"algo": algo, **numbers})


def answering(space: Space, values: dict[str, float], goal: str = "") -> Callable[[Ask], Answer]:
    """States are letters; what follows, their values and the goal are written down."""

    def answer(ask: Ask) -> Answer:
        state = str(ask.state)
        if ask.kind == "expand":
            return Expanded(tuple(each if isinstance(each, Child) else Child(each) for each in space.get(state, [])))
        if ask.kind == "score":
            return Scored(values.get(state, 0.5))
        return Verified("pass" if state == goal else "fail")

    return answer


def walk(search: TreeSearch, answer: Callable[[Ask], Answer], most: int = 10_000) -> list[str]:
    """Step a search to its end; answers the states it expanded, in order."""
    expanded = []
    for _ in range(most):
        ask = search.next()
        if ask is None:
            break
        if ask.kind == "expand":
            expanded.append(str(ask.state))
        search.take(answer(ask))
    return expanded


def test_a_state_is_verified_then_scored_then_expanded() -> None:
    search = TreeSearch.start("a", policy())
    asked = []
    answer = answering({"a": ["b", "c"], "b": ["d"]}, {"b": 0.9}, goal="d")
    while (ask := search.next()) is not None:
        assert search.next() == ask  # asking changes nothing
        asked.append((ask.kind, ask.state, ask.depth))
        search.take(answer(ask))
    assert asked == [
        ("verify", "a", 0),
        ("score", "a", 0),
        ("expand", "a", 0),
        ("verify", "b", 1),
        ("score", "b", 1),
        ("verify", "c", 1),
        ("score", "c", 1),
        ("expand", "b", 1),
        ("verify", "d", 2),
    ]
    assert search.end is not None
    assert (search.end.kind, search.way(), search.reason_codes) == ("solved", ["a", "b", "d"], ())
    assert search.block("trc_1").to_wire() == {
        "enabled": True,
        "algo": PUCT,
        "node_expanded": 2,
        "depth_max": 2,
        "frontier_max": 2,
        "best_node_ref": "trc_1:node#4",
        "notes": "solved; 4 states; 9 calls",
    }


def test_puct_chooses_by_the_formula_of_seeds() -> None:
    """After a and b were tried once each, c's prior outweighs their values."""
    space: Space = {"r": [Child("a", 0.2), Child("b", 0.1), Child("c", 0.7)], "a": ["a1"], "b": ["b1"], "c": ["c1"]}
    values = {"a": 0.6, "b": 0.5, "c": 0.3, "a1": 0.55, "b1": 0.1, "c1": 0.1, "r": 0.0}
    search = TreeSearch.start("r", policy(puct={"c": 1.0}))
    order = walk(search, answering(space, values))
    # T=0: by value alone: a. T=1: a1 0.55 + .2·1/2, b 0.5 + .1, c 0.3 + .7.
    assert order[:3] == ["r", "a", "c"]
    scores = {"a": 0.55 + 0.2 * sqrt(1) / 2, "b": 0.5 + 0.1 * sqrt(1), "c": 0.3 + 0.7 * sqrt(1)}
    assert max(scores, key=scores.__getitem__) == "c"
    # T=2: a 0.55 + .2·√2/2, b 0.5 + .1·√2, c 0.1 + .7·√2/2 (0.595): a is the best
    assert order[3] == "a1"


def test_what_was_looked_at_to_its_end_counts_no_longer() -> None:
    """A dead end of the highest value does not hold the search: its parent is worth what is left below it."""
    space: Space = {"r": ["a", "b"], "a": ["dead", "poor"], "b": ["c"], "c": ["goal"]}
    values = {"a": 0.9, "dead": 0.95, "poor": 0.1, "b": 0.5, "c": 0.5}
    search = TreeSearch.start("r", policy(puct={"c": 0.0}))
    assert walk(search, answering(space, values, "goal")) == ["r", "a", "dead", "b", "c"]


@pytest.mark.parametrize(("method", "second"), [("max_reward", "b"), ("mean_reward", "a")])
def test_q_is_the_best_or_the_mean_below(method: str, second: str) -> None:
    space: Space = {"r": ["a", "b"], "a": ["a1", "a2"], "b": ["b1"]}
    values = {"a": 0.9, "a1": 0.45, "a2": 0.45, "b": 0.5}
    search = TreeSearch.start("r", policy(puct={"c": 0.0, "q_method": method}))
    order = walk(search, answering(space, values))
    assert order[2][0] == second  # the best below a is 0.45; the mean of a and what follows 0.6


def test_without_priors_the_rank_of_values_is_the_prior() -> None:
    space: Space = {"r": ["a", "b", "c"]}
    values = {"a": 0.2, "b": 0.8, "c": 0.8}
    search = TreeSearch.start("r", policy(puct=PuctPolicy(alpha=1.0).to_wire()))
    walk(search, answering(space, values), most=9)
    shares = [node.p for node in search._tree.nodes[2:]]
    assert sum(shares) == pytest.approx(1)
    assert shares[1] == shares[2] == pytest.approx(shares[0] * 2.718281828**2)


def test_a_beam_goes_level_by_level() -> None:
    space: Space = {"r": ["a", "b", "c"], "a": ["a1"], "b": ["b1"], "c": ["c1"], "a1": ["a2"], "b1": ["b2"]}
    values = {"a": 0.9, "b": 0.5, "c": 0.4, "a1": 0.1, "b1": 0.2, "c1": 1.0}
    search = TreeSearch.start("r", policy(BEAM, beam_width=2))
    order = walk(search, answering(space, values))
    assert order[:5] == ["r", "a", "b", "b1", "a1"]
    assert set(order) == {"r", "a", "b", "c", "a1", "b1", "c1", "a2", "b2"}  # what was set aside is not lost


def test_a_beam_that_dies_goes_on_with_what_it_set_aside() -> None:
    space: Space = {"r": ["a", "b"], "a": [], "b": ["goal"]}
    search = TreeSearch.start("r", policy(BEAM, beam_width=1))
    assert walk(search, answering(space, {"a": 0.9, "b": 0.1}, "goal")) == ["r", "a", "b"]
    assert search.end is not None
    assert search.end.kind == "solved"


@BOTH
def test_ties_go_by_age_and_the_same_answers_are_the_same_search(algo: str) -> None:
    space: Space = {"r": ["z", "y", "x"], "x": ["x1"], "y": ["y1"], "z": ["z1"]}
    runs = [walk(TreeSearch.start("r", policy(algo)), answering(space, {})) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0][:2] == ["r", "z"]


# -- how it ends --------------------------------------------------------------------------------------


@BOTH
def test_all_of_a_space_without_the_goal_is_a_proof(algo: str) -> None:
    """Cycles and states that are reached twice are looked at once."""
    space: Space = {"r": ["a", "b"], "a": ["b", "r"], "b": ["a", "b"]}
    search = TreeSearch.start("r", policy(algo))
    assert sorted(walk(search, answering(space, {}))) == ["a", "b", "r"]
    assert search.end is not None
    assert (search.end.kind, search.is_complete, search.reason_codes) == ("exhausted", True, ("proof_not_found",))
    assert search.duplicates == 4


def endless(ask: Ask) -> Answer:
    state = int(ask.state)  # type: ignore[arg-type]
    if ask.kind == "expand":
        return Expanded(tuple(Child(state * 10 + digit) for digit in range(10)), cost=2.0)
    return Scored(1 / (1 + state % 7)) if ask.kind == "score" else Verified("fail")


@BOTH
@pytest.mark.parametrize(
    ("cap", "numbers"),
    [
        ("nodes", {"nodes_max": 7}),
        ("calls", {"calls_max": 50}),
        ("cost", {"cost_max": 9}),
    ],
)
def test_caps_hold_and_say_so(algo: str, cap: str, numbers: dict[str, Any]) -> None:
    search = TreeSearch.start(1, policy(algo, **numbers))
    walk(search, endless)
    assert search.end is not None
    assert (search.end.kind, search.end.cap) == ("budget", cap)
    assert search.reason_codes == ("search_budget_exhausted",)
    assert not search.is_complete
    assert search.expanded <= numbers.get("nodes_max", 10**9)
    assert search.calls <= numbers.get("calls_max", 10**9)
    assert search.cost <= numbers.get("cost_max", 10**9) + 1
    assert f"budget ({cap})" in (search.block().notes or "")


@BOTH
def test_depth_and_frontier_are_capped_and_the_search_is_no_proof(algo: str) -> None:
    search = TreeSearch.start(1, policy(algo, depth_max=2, frontier_max=4))
    walk(search, endless)
    block = search.block()
    assert search.end is not None
    assert search.end.kind == "exhausted"
    assert block.depth_max == 2
    assert block.frontier_max == 4
    assert search.cuts["depth"]
    assert search.cuts["frontier"]
    assert search.reason_codes == ("search_budget_exhausted",)


def test_what_was_dropped_may_come_back() -> None:
    space: Space = {"r": ["a", "b", "goalward"], "a": ["goalward"], "goalward": ["goal"]}
    values = {"a": 0.9, "b": 0.8, "goalward": 0.1}
    search = TreeSearch.start("r", policy(frontier_max=2))
    order = walk(search, answering(space, values, "goal"))
    assert search.cuts["frontier"] == 1
    assert order[-1] == "goalward"
    assert search.way() == ["r", "a", "goalward", "goal"]


def test_more_children_than_may_be_are_cut() -> None:
    search = TreeSearch.start("r", policy(children_max=2))
    walk(search, answering({"r": ["a", "b", "c"]}, {}))
    assert search.made == 3
    assert search.cuts == {"children": 1}
    assert search.reason_codes == ("search_budget_exhausted",)


def test_a_verifier_that_cannot_say_makes_no_proof() -> None:
    def answer(ask: Ask) -> Answer:
        if ask.kind == "verify" and ask.state == "a":
            return Verified("unknown")
        return answering({"r": ["a", "b"]}, {"b": 0.9})(ask)

    search = TreeSearch.start("r", policy())
    walk(search, answer)
    assert search.end is not None
    assert (search.end.kind, search.is_complete) == ("exhausted", False)
    assert search.reason_codes == ("proof_not_found", "prover_incomplete")
    assert search.way() == ["r", "a"]  # it may be the one, whatever else looks better


def test_stopping_is_a_budget() -> None:
    search = TreeSearch.start("r", policy())
    search.stop("time")
    assert search.next() is None
    assert search.end is not None
    assert (search.end.kind, search.end.cap) == ("budget", "time")
    search.stop("stopped")
    assert search.end.cap == "time"
    with pytest.raises(InvalidRecord):
        TreeSearch.start("r", policy()).stop("boredom")


# -- what goes wrong ----------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("kind", ["expand", "score", "verify"])
def test_a_call_that_fails_costs_its_own_answer_and_no_more(algo: str, kind: str) -> None:
    space: Space = {"r": ["a", "b"], "a": ["a1"], "b": ["goal"]}

    def answer(ask: Ask) -> Answer:
        if ask.kind == kind and ask.state == "a":
            return Failed("tool_failure", "it raised KeyError")
        return answering(space, {"a": 0.9}, "goal")(ask)

    search = TreeSearch.start("r", policy(algo))
    walk(search, answer)
    assert search.end is not None
    assert search.end.kind == "solved"
    assert search.faults == {"tool_failure": 1}
    assert search.said == f"{kind} at node 2: it raised KeyError"


def test_too_many_failures_end_it() -> None:
    def answer(ask: Ask) -> Answer:
        return Failed("tool_timeout", "too slow") if ask.kind == "score" else endless(ask)

    search = TreeSearch.start(1, policy(failures_max=5))
    walk(search, answer)
    assert search.end is not None
    assert (search.end.cap, search.faults) == ("failures", {"tool_timeout": 5})
    assert search.reason_codes == ("search_budget_exhausted", "tool_timeout")


def test_children_that_are_no_states_are_counted_and_the_rest_kept() -> None:
    loop: list[Any] = []
    loop.append(loop)
    bad = (Child({1, 2}), Child(float("nan")), Child(loop), Child("x" * 99), Child(object()))
    odd = (Child("p", float("nan")), Child("q", -1.0), Child("s", "much"), Child("t", None, 7))  # type: ignore[arg-type]

    def answer(ask: Ask) -> Answer:
        if ask.kind == "expand" and ask.state == "r":
            return Expanded((*bad, *odd, Child("b", 1)))
        return answering({}, {})(ask)

    search = TreeSearch.start("r", policy(state_bytes_max=50))
    assert walk(search, answer)[0] == "r"
    assert search.made == 1 + len(odd) + 1
    assert search.cuts["refused"] == len(bad)
    assert search.faults == {"tool_output_invalid": 1}
    assert search.said is not None
    assert search.said.startswith("child 0: ")
    assert "left out by refused: 5" in search.notes


def test_answers_that_are_none_are_refused_and_change_nothing() -> None:
    search = TreeSearch.start("r", policy())
    before = search.to_wire()
    for answer in (
        Scored(0.5),
        Expanded(()),
        Verified("fail", cost=float("nan")),
        Verified("fail", cost=-1),
        Failed("", ""),
    ):
        with pytest.raises(InvalidInput):
            search.take(answer)
    assert search.to_wire() == before
    search.take(Verified("fail"))
    with pytest.raises(InvalidInput):
        search.take(Scored(1.5))
    search.take(Scored(None))
    search.take(Expanded(()))
    with pytest.raises(InvalidInput, match="over"):
        search.take(Expanded(()))


@pytest.mark.parametrize("root", [{1, 2}, float("inf"), object(), "\ud800"])
def test_a_root_that_is_no_state_is_refused(root: Any) -> None:
    with pytest.raises(InvalidJson):
        TreeSearch.start(root, policy())


def test_a_root_that_is_too_large_is_refused() -> None:
    with pytest.raises(TooLarge):
        TreeSearch.start("x" * 100, policy(state_bytes_max=50))


def test_a_caller_may_change_the_state_it_is_handed() -> None:
    search = TreeSearch.start({"at": [0]}, policy())
    ask = search.next()
    assert ask is not None
    ask.state["at"].append(1)  # type: ignore[index, union-attr, call-overload]
    again = search.next()
    assert again is not None
    assert again.state == {"at": [0]}


def test_starting_states_stand_beside_the_root() -> None:
    search = TreeSearch.start("r", policy(), starts=["s", "r", Child("t", 0.0)])
    order = walk(search, answering({"s": ["goal"]}, {"s": 0.9}, "goal"))
    assert order == ["s"]
    assert search.way() == ["s", "goal"]
    assert search.duplicates == 1


def test_keys_make_states_the_same() -> None:
    def answer(ask: Ask) -> Answer:
        if ask.kind == "expand":
            return Expanded(tuple(Child([number, "how"], None, str(number % 3)) for number in range(9)))
        return Scored(0.5) if ask.kind == "score" else Verified("fail")

    search = TreeSearch.start(Child([0, ""], None, "0"), policy())
    walk(search, answer)
    assert search.made == 3


# -- written down -------------------------------------------------------------------------------------


def broken(wire: dict[str, Any], change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    change(wire)
    return wire


@for_each(
    "change",
    [
        lambda wire: wire.pop("policy"),
        lambda wire: wire.update(schema_version="tree_search.v2"),
        lambda wire: wire.update(nodes=[]),
        lambda wire: wire["nodes"][1].update(parent=9),
        lambda wire: wire["nodes"][2].update(parent=2),
        lambda wire: wire["nodes"][2].update(key=wire["nodes"][1]["key"]),
        lambda wire: wire["nodes"][1].update(value=2),
        lambda wire: wire["nodes"][1].update(status="forgotten"),
        lambda wire: wire.update(beam=[77]),
        lambda wire: wire.update(level=[0]),
        lambda wire: wire.update(end={"kind": "solved"}),
        lambda wire: wire.update(end={"kind": "exhausted", "node": 1}),
        lambda wire: wire["nodes"].append({"key": "k", "state": 1, "status": "verify"}),
    ],
)
def test_what_is_no_search_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    search = TreeSearch.start("r", policy(BEAM))
    walk(search, answering({"r": ["a", "b"]}, {}), most=4)
    assert TreeSearch.from_wire(search.to_wire()).to_wire() == search.to_wire()
    with pytest.raises(InvalidRecord):
        TreeSearch.from_wire(broken(search.to_wire(), change))
