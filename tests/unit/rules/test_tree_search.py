"""Guided tree search: the order in which states are asked for, and how it ends (RC-22)."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest

from muniment.core.policy import PuctPolicy, TreePolicy
from muniment.errors import InvalidJson, TooLarge
from muniment.rules import tree_search
from muniment.rules.tree_search import TREE_PUCT, Child, TreeProblem, TreeSearch

pytestmark = pytest.mark.req("RC-22")

PUCT, BEAM = "puct_guided_tree_v1", "beam_guided_tree_v1"
BOTH = pytest.mark.parametrize("algo", [PUCT, BEAM])
Space = dict[str, list[Any]]


def policy(algo: str = PUCT, **numbers: Any) -> TreePolicy:
    return TreePolicy.model_validate({"algo": algo, **numbers})


class Letters:
    """States are letters; their children, values and the goal are written down. Every call is noted."""

    def __init__(self, space: Space, values: dict[str, float], goal: str = "", broken: str = "") -> None:
        self.space, self.values, self.goal, self.broken = space, values, goal, broken
        self.asked: list[tuple[str, str]] = []

    def _note(self, kind: str, state: Any) -> None:
        self.asked.append((kind, state))
        if kind == self.broken and state == "a":
            raise KeyError("a")

    def expand(self, state: str) -> list[Any]:
        self._note("expand", state)
        return self.space.get(state, [])

    def score(self, state: str) -> float:
        self._note("score", state)
        return self.values.get(state, 0.5)

    def verify(self, state: str) -> bool:
        self._note("verify", state)
        return state == self.goal

    def search(self, chosen: TreePolicy | None = None, root: Any = "r", puct: PuctPolicy = TREE_PUCT) -> TreeSearch:
        problem = TreeProblem(root=root, expand=self.expand, score=self.score, verify=self.verify)
        return TreeSearch(problem, chosen or policy(), puct=puct).run()

    @property
    def expanded(self) -> list[str]:
        return [state for kind, state in self.asked if kind == "expand"]


def test_a_state_is_verified_then_scored_then_expanded() -> None:
    letters = Letters({"a": ["b", "c"], "b": ["d"]}, {"b": 0.9}, goal="d")
    search = letters.search(root="a")
    assert letters.asked == [
        ("verify", "a"),
        ("score", "a"),
        ("expand", "a"),
        ("verify", "b"),
        ("score", "b"),
        ("verify", "c"),
        ("score", "c"),
        ("expand", "b"),
        ("verify", "d"),
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
    """After a was tried once, c's prior outweighs the values."""
    space: Space = {"r": [Child("a", 0.2), Child("b", 0.1), Child("c", 0.7)], "a": ["a1"], "b": ["b1"], "c": ["c1"]}
    values = {"a": 0.6, "b": 0.5, "c": 0.3, "a1": 0.55, "b1": 0.1, "c1": 0.1, "r": 0.0}
    letters = Letters(space, values)
    letters.search(puct=PuctPolicy(c=1.0))
    assert letters.expanded[:3] == ["r", "a", "c"]
    scores = {"a": 0.55 + 0.2 * sqrt(1) / 2, "b": 0.5 + 0.1 * sqrt(1), "c": 0.3 + 0.7 * sqrt(1)}
    assert max(scores, key=scores.__getitem__) == "c"
    # T=2: a 0.55 + .2·√2/2, b 0.5 + .1·√2, c 0.1 + .7·√2/2 (0.595): a is the best
    assert letters.expanded[3] == "a1"


def test_what_was_searched_to_its_end_counts_no_longer() -> None:
    """A dead end of the highest value does not hold the search: its parent is worth what is left below it."""
    space: Space = {"r": ["a", "b"], "a": ["dead", "poor"], "b": ["c"], "c": ["goal"]}
    letters = Letters(space, {"a": 0.9, "dead": 0.95, "poor": 0.1, "b": 0.5, "c": 0.5}, "goal")
    letters.search(puct=PuctPolicy(c=0.0))
    assert letters.expanded == ["r", "a", "dead", "b", "c"]


@pytest.mark.parametrize(("method", "second"), [("max_reward", "b"), ("mean_reward", "a")])
def test_q_is_the_best_or_the_mean_below(method: Any, second: str) -> None:
    space: Space = {"r": ["a", "b"], "a": ["a1", "a2"], "b": ["b1"]}
    letters = Letters(space, {"a": 0.9, "a1": 0.45, "a2": 0.45, "b": 0.5})
    letters.search(puct=PuctPolicy(c=0.0, q_method=method))
    assert letters.expanded[2][0] == second  # the best below a is 0.45; the mean of a and what follows 0.6


def test_without_priors_the_rank_of_values_is_the_prior() -> None:
    letters = Letters({"r": ["a", "b", "c"]}, {"a": 0.2, "b": 0.8, "c": 0.8})
    search = letters.search(puct=PuctPolicy(alpha=1.0))
    shares = [node.p for node in search._tree.nodes[2:]]
    assert sum(shares) == pytest.approx(1)
    assert shares[1] == shares[2] == pytest.approx(shares[0] * 2.718281828**2)


def test_a_beam_goes_level_by_level() -> None:
    space: Space = {"r": ["a", "b", "c"], "a": ["a1"], "b": ["b1"], "c": ["c1"], "a1": ["a2"], "b1": ["b2"]}
    letters = Letters(space, {"a": 0.9, "b": 0.5, "c": 0.4, "a1": 0.1, "b1": 0.2, "c1": 1.0})
    letters.search(policy(BEAM, beam_width=2))
    assert letters.expanded[:5] == ["r", "a", "b", "b1", "a1"]
    assert set(letters.expanded) == {"r", "a", "b", "c", "a1", "b1", "c1", "a2", "b2"}  # nothing set aside is lost


def test_a_beam_that_dies_goes_on_with_what_it_set_aside() -> None:
    letters = Letters({"r": ["a", "b"], "a": [], "b": ["goal"]}, {"a": 0.9, "b": 0.1}, "goal")
    search = letters.search(policy(BEAM, beam_width=1))
    assert letters.expanded == ["r", "a", "b"]
    assert search.end is not None
    assert search.end.kind == "solved"


@BOTH
def test_ties_go_by_age(algo: str) -> None:
    letters = Letters({"r": ["z", "y", "x"], "x": ["x1"], "y": ["y1"], "z": ["z1"]}, {})
    letters.search(policy(algo))
    assert letters.expanded[:2] == ["r", "z"]


# -- how it ends --------------------------------------------------------------------------------------


@BOTH
def test_all_of_a_space_without_the_goal_is_a_proof(algo: str) -> None:
    """Cycles and states that are reached twice are looked at once."""
    letters = Letters({"r": ["a", "b"], "a": ["b", "r"], "b": ["a", "b"]}, {})
    search = letters.search(policy(algo))
    assert sorted(letters.expanded) == ["a", "b", "r"]
    assert search.end is not None
    assert (search.end.kind, search.is_complete, search.reason_codes) == ("exhausted", True, ("proof_not_found",))
    assert search.duplicates == 4


def endless(chosen: TreePolicy) -> TreeSearch:
    problem = TreeProblem(
        root=1,
        expand=lambda state: [state * 10 + digit for digit in range(10)],
        score=lambda state: 1 / (1 + state % 7),
        verify=lambda _state: False,
        cost=lambda kind, _state: 2.0 * (kind == "expand"),
    )
    return TreeSearch(problem, chosen).run()


@BOTH
@pytest.mark.parametrize(
    ("cap", "numbers"), [("nodes", {"nodes_max": 7}), ("calls", {"calls_max": 50}), ("cost", {"cost_max": 9})]
)
def test_caps_hold_and_say_so(algo: str, cap: str, numbers: dict[str, Any]) -> None:
    search = endless(policy(algo, **numbers))
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
    search = endless(policy(algo, depth_max=2, frontier_max=4))
    block = search.block()
    assert search.end is not None
    assert (search.end.kind, block.depth_max, block.frontier_max) == ("exhausted", 2, 4)
    assert search.cuts["depth"]
    assert search.cuts["frontier"]
    assert search.reason_codes == ("search_budget_exhausted",)


def test_what_was_dropped_may_come_back() -> None:
    letters = Letters(
        {"r": ["a", "b", "goalward"], "a": ["goalward"], "goalward": ["goal"]},
        {"a": 0.9, "b": 0.8, "goalward": 0.1},
        "goal",
    )
    search = letters.search(policy(frontier_max=2))
    assert search.cuts["frontier"] == 1
    assert letters.expanded[-1] == "goalward"
    assert search.way() == ["r", "a", "goalward", "goal"]


def test_more_children_than_may_be_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_search, "_CHILDREN_MAX", 2)
    search = Letters({"r": ["a", "b", "c"]}, {}).search()
    assert search.made == 3
    assert +search.cuts == {"children": 1}
    assert search.reason_codes == ("search_budget_exhausted",)


def test_a_verifier_that_cannot_say_makes_no_proof() -> None:
    problem = TreeProblem(
        root="r",
        expand=lambda state: ["a", "b"] if state == "r" else [],
        score=lambda state: 0.9 if state == "b" else 0.5,
        verify=lambda state: None if state == "a" else False,
    )
    search = TreeSearch(problem, policy()).run()
    assert search.end is not None
    assert (search.end.kind, search.is_complete) == ("exhausted", False)
    assert search.reason_codes == ("proof_not_found", "prover_incomplete")
    assert search.way() == ["r", "a"]  # it may be the one, whatever else looks better


# -- what goes wrong ----------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("kind", ["expand", "score", "verify"])
def test_a_call_that_fails_costs_its_own_answer_and_no_more(algo: str, kind: str) -> None:
    letters = Letters({"r": ["a", "b"], "a": ["a1"], "b": ["goal"]}, {"a": 0.9}, "goal", broken=kind)
    search = letters.search(policy(algo))
    assert search.end is not None
    assert search.end.kind == "solved"
    assert search.faults == {"tool_failure": 1}
    assert search.said == f"{kind} at node 2: {kind} raised KeyError: 'a'"


def test_too_many_failures_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_search, "_FAILURES_MAX", 5)
    problem = TreeProblem(root=1, expand=lambda state: [state + 1], score=lambda _state: 1 / 0, verify=bool)
    search = TreeSearch(TreeProblem(**{**vars_of(problem), "verify": lambda _state: False}), policy()).run()
    assert search.end is not None
    assert (search.end.cap, search.faults) == ("failures", {"tool_failure": 5})
    assert search.reason_codes == ("search_budget_exhausted", "tool_failure")


def vars_of(problem: TreeProblem) -> dict[str, Any]:
    return {name: getattr(problem, name) for name in ("root", "expand", "score", "verify")}


def test_children_that_are_no_states_are_counted_and_the_rest_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_search, "_STATE_BYTES_MAX", 50)
    loop: list[Any] = []
    loop.append(loop)
    bad = (Child({1, 2}), Child(float("nan")), Child(loop), Child("x" * 99), Child(object()))
    odd = (Child("p", float("nan")), Child("q", -1.0), Child("s", "much"), Child("t", None, 7))  # type: ignore[arg-type]
    search = Letters({"r": [*bad, *odd, Child("b", 1)]}, {}).search()
    assert search.made == 1 + len(odd) + 1
    assert search.cuts["refused"] == len(bad)
    assert search.faults == {"tool_output_invalid": 1}
    assert search.said is not None
    assert search.said.startswith("child 0: ")
    assert "left out by refused: 5" in search.notes


@pytest.mark.parametrize("root", [{1, 2}, float("inf"), object(), "\ud800"])
def test_a_root_that_is_no_state_is_refused(root: Any) -> None:
    with pytest.raises(InvalidJson):
        tree_search.state_text(root)


def test_a_root_that_is_too_large_is_refused() -> None:
    with pytest.raises(TooLarge):
        tree_search.state_text("x" * 20_000)


def test_a_function_may_change_the_state_it_is_handed() -> None:
    def expand(state: dict[str, Any]) -> list[Any]:
        state["at"].append(1)
        return [] if len(state["at"]) > 2 else [state]

    search = TreeSearch(TreeProblem(root={"at": [0]}, expand=expand, verify=lambda _state: False), policy()).run()
    assert search.way() in ([], [{"at": [0]}])
    assert search.made == 2


def test_keys_make_states_the_same() -> None:
    problem = TreeProblem(
        root=[0, ""],
        expand=lambda _state: [[number, "how"] for number in range(9)],
        verify=lambda _state: False,
        key=lambda state: state[0] % 3,
    )
    assert TreeSearch(problem, policy()).run().made == 3
