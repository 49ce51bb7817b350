"""A user's space of states searched within a run: on every engine, through crashes and bad functions (RC-22)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from muniment.contracts.learning import ReuseStateRecord
from muniment.contracts.runs import VerifierResult
from muniment.errors import InvalidInput, InvalidJson, InvalidRecord, RunFinished
from muniment.handles.memory import Memory
from muniment.rules import tree_search
from muniment.rules.tree_search import Child, Searched, TreeProblem, search_tree
from muniment.verify.outputs import Output

pytestmark = pytest.mark.req("RC-22")

GOAL = 97


class Counted:
    """Numbers that are doubled or added to, with every call counted."""

    def __init__(self, goal: int = GOAL, stop_after: int | None = None) -> None:
        self.goal, self.stop_after = goal, stop_after
        self.calls: Counter[str] = Counter()

    def _called(self, name: str) -> None:
        self.calls[name] += 1
        if self.calls.total() == self.stop_after:
            raise KeyboardInterrupt

    def expand(self, state: int) -> list[int]:
        self._called("expand")
        return [state * 2, state + 1] if state < 500 else []

    def verify(self, state: int) -> bool:
        self._called("verify")
        return state == self.goal

    def score(self, state: int) -> float:
        self._called("score")
        return 1 / (1 + abs(self.goal - state))

    def problem(self, **more: Any) -> TreeProblem:
        return TreeProblem(root=1, expand=self.expand, verify=self.verify, score=self.score, **more)


def open_run(mem: Memory, run_id: str = "run_1") -> Any:
    return mem.run(user_id="ana", agent_id="solver", session_id="s", run_id=run_id)


def told(found: Searched) -> tuple[Any, ...]:
    return (found.solved, found.way, found.output, found.block, found.result)


def test_a_way_is_found_and_told(any_mem: Memory) -> None:
    run = open_run(any_mem)
    counted = Counted()
    found = search_tree(run, counted.problem(answer=lambda way: " ".join(map(str, way))))
    assert found.solved
    assert found.output.text.startswith("1 2 ")
    assert found.output.text.endswith(" 97")
    assert found.result.verdict == "PASS"
    assert found.block.node_expanded == counted.calls["expand"]
    assert found.output.usage is not None
    assert found.output.usage.tool_calls == counted.calls.total() == found.search.calls
    assert (found.block.best_node_ref or "").startswith("trc_")
    assert [entry.step.event for entry in run.ledger.entries() if entry.step] == ["ACT_TREE", "ACT_DONE"]


@pytest.mark.soak
def test_the_block_stands_in_the_log_of_the_run(mem: Memory) -> None:
    run = open_run(mem)
    run.observe("user", "Reach 97 from 1.")
    found = search_tree(run, Counted().problem())
    run.observe("assistant", found.output.text)
    learned = run.learning.learn(found.result, blocks={"mode": "tree", "tree_search": found.block.to_wire()})
    assert learned.event_log.tree_search == found.block
    assert learned.event_log.run.mode == "tree"


@pytest.mark.parametrize("algo", ["puct_guided_tree_v1", "beam_guided_tree_v1"])
def test_a_search_that_was_cut_off_is_made_anew_and_finds_the_same(make: Callable[..., Memory], algo: str) -> None:
    whole = search_tree(open_run(make()), Counted().problem(), policy={"algo": algo})
    mem = make()
    with pytest.raises(KeyboardInterrupt):
        search_tree(open_run(mem), Counted(stop_after=9).problem(), policy={"algo": algo})
    assert told(search_tree(open_run(mem), Counted().problem(), policy={"algo": algo})) == told(whole)


def test_a_run_that_is_over_is_not_searched_in(mem: Memory) -> None:
    run, counted = open_run(mem), Counted()
    run.finish()
    with pytest.raises(RunFinished):
        search_tree(run, counted.problem())
    assert not counted.calls


def test_it_can_be_stopped_by_the_caller_and_by_the_clock(mem: Memory) -> None:
    calls = count(1)
    first = search_tree(open_run(mem), Counted().problem(), should_stop=lambda: next(calls) > 30)
    assert first.search.end is not None
    assert (first.search.end.kind, first.search.end.cap) == ("budget", "stopped")
    assert first.result.reason_codes == ("search_budget_exhausted",)
    timed = search_tree(open_run(mem, "run_2"), Counted().problem(), policy={"time_max_s": 1e-9})
    assert timed.search.end is not None
    assert timed.search.end.cap == "time"


# -- seeds --------------------------------------------------------------------------------------------


def teach(mem: Memory, answer: str) -> None:
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "Reach 96.")
    run.observe("assistant", answer)
    run.finish(verifier_result={"verifier_id": "v", "verdict": "PASS", "outcome": "OK"})


@pytest.mark.soak
def test_a_seed_of_the_bank_is_started_from_and_kept(any_mem: Memory) -> None:
    teach(any_mem, "48 96")

    def start(seed: ReuseStateRecord) -> Iterator[int]:
        return map(int, (seed.seed_prompt or "").split())

    bank = any_mem.bank(user_id="ana")
    bare = search_tree(open_run(any_mem), Counted().problem())
    found = search_tree(open_run(any_mem), Counted().problem(start=start), bank=bank)
    assert found.way == [96, 97]
    assert found.block.node_expanded == 1
    assert (bare.block.node_expanded or 0) > 1
    assert found.reuse is not None
    assert found.reuse.selected_state_id == bank.records(kind="seed")[0].id


@pytest.mark.soak
def test_a_seed_makes_steps_likelier(mem: Memory) -> None:
    teach(mem, "b")
    seed = ReuseStateRecord.from_wire(mem.bank(user_id="ana").records(kind="seed")[0].record)
    problem = TreeProblem(
        root="",
        expand=lambda state: [state + letter for letter in "abc"] if len(state) < 3 else [],
        verify=lambda state: state == "bbb",
        weigh=lambda seed, _state, child: 10.0 if child.endswith(seed.seed_prompt) else 1.0,
    )
    bare = search_tree(open_run(mem, "bare"), problem)
    seeded = search_tree(open_run(mem, "seeded"), problem, seed=seed)
    assert (bare.solved, seeded.solved) == (True, True)
    assert seeded.block.node_expanded == 3 < (bare.block.node_expanded or 0)


@pytest.mark.soak
def test_a_seed_that_helps_nothing_harms_nothing(mem: Memory) -> None:
    teach(mem, "b")
    bank = mem.bank(user_id="ana")

    def broken(*_given: Any) -> Any:
        raise ValueError("no")

    for name, start in enumerate((broken, lambda _seed: 7, lambda _seed: [{1}, object()])):
        found = search_tree(open_run(mem, f"r{name}"), Counted().problem(start=start), bank=bank)
        assert found.solved
    weighed = search_tree(open_run(mem, "weighed"), Counted().problem(weigh=broken), bank=bank)
    assert "weigh raised ValueError: no" in (weighed.search.said or "")
    empty = mem.bank(user_id="bob")
    nobody = search_tree(open_run(mem, "nobody"), Counted().problem(), bank=empty)
    assert nobody.reuse is not None
    assert nobody.reuse.selected_state_id is None


# -- bad functions ------------------------------------------------------------------------------------


def raising(_state: Any) -> Any:
    raise RuntimeError("broken")


def test_a_function_that_hangs_is_left_behind(mem: Memory) -> None:
    def expand(state: int) -> list[int]:
        if state == 2:
            time.sleep(3600)
        return [state + 1, state + 2]

    problem = TreeProblem(root=1, expand=expand, verify=lambda state: state == 9)
    found = search_tree(open_run(mem), problem, policy={"call_timeout_s": 0.05})
    assert found.solved
    assert found.search.faults == {"tool_timeout": 1}
    assert 2 not in found.way


@pytest.mark.soak
@pytest.mark.parametrize(
    ("part", "function", "code"),
    [
        ("expand", raising, "tool_failure"),
        ("expand", lambda _state: 7, "tool_output_invalid"),
        ("expand", lambda _state: None, "tool_output_invalid"),
        ("expand", lambda _state: "ab", "tool_output_invalid"),
        ("expand", lambda _state: {"a": 1}, "tool_output_invalid"),
        ("expand", lambda _state: [{1, 2}], "tool_output_invalid"),
        ("score", raising, "tool_failure"),
        ("score", lambda _state: 3, "tool_output_invalid"),
        ("score", lambda _state: float("nan"), "tool_output_invalid"),
        ("score", lambda _state: "good", "tool_output_invalid"),
        ("verify", raising, "tool_failure"),
        ("verify", lambda _state: "yes", "tool_output_invalid"),
        ("verify", lambda _state: {"verdict": "SURE"}, "tool_output_invalid"),
        ("cost", lambda _kind, _state: -1, "tool_output_invalid"),
    ],
)
def test_functions_that_do_not_do_their_part_are_told(mem: Memory, part: str, function: Any, code: str) -> None:
    problem = Counted(goal=-1).problem()
    whole = {name: getattr(problem, name) for name in ("root", "expand", "verify", "score")}
    found = search_tree(open_run(mem), TreeProblem(**whole | {part: function}), policy={"nodes_max": 50})
    assert not found.solved
    assert found.search.faults[code]
    assert code in (found.result.reason_codes or ())
    assert found.result.notes is not None
    assert found.search.said is not None
    assert found.search.said in found.result.notes
    if part == "verify":
        assert (found.result.verdict, found.result.outcome) == ("PARTIAL", "UNKNOWN")
        assert "prover_incomplete" in (found.result.reason_codes or ())


def test_what_was_found_is_not_lost_for_a_bad_price(mem: Memory) -> None:
    problem = TreeProblem(root=1, expand=lambda _state: [], verify=lambda _state: True, cost=lambda *_given: "dear")  # type: ignore[arg-type, return-value]
    assert search_tree(open_run(mem), problem).solved


def test_children_without_end_are_cut(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_search, "_CHILDREN_MAX", 10)
    problem = TreeProblem(
        root=0, expand=lambda state: (state + step for step in count(1)), verify=lambda state: state == 12
    )
    found = search_tree(open_run(mem), problem, policy={"nodes_max": 30})
    assert found.solved
    assert found.search.cuts["children"]


def test_async_functions_and_results_of_verifiers(mem: Memory) -> None:
    async def expand(state: int) -> list[Child]:
        return [Child(state + 1, 0.9), Child(state + 2, 0.1)]

    async def verify(state: int) -> dict[str, Any]:
        verdict = "PASS" if state == 5 else "PARTIAL"
        return {"verifier_id": "mine", "verdict": verdict, "outcome": "OK" if state == 5 else "UNKNOWN", "score": 0.5}

    found = search_tree(open_run(mem), TreeProblem(root=1, expand=expand, verify=verify))  # type: ignore[arg-type]
    assert found.solved
    assert (found.result.verifier_id, found.result.score) == ("mine", 0.5)
    assert found.search.unknowns
    again = search_tree(open_run(mem), TreeProblem(root=1, expand=expand, verify=verify))  # type: ignore[arg-type]
    assert again.result == found.result


def test_costs_are_counted_and_capped(mem: Memory) -> None:
    prices = {"expand": 5.0, "score": 1.0, "verify": 0.0}
    problem = Counted(goal=-1).problem(cost=lambda kind, _state: prices[kind])
    found = search_tree(open_run(mem), problem, policy={"cost_max": 30})
    assert found.search.end is not None
    assert found.search.end.cap == "cost"
    assert 30 <= found.search.cost < 35


@pytest.mark.soak
def test_an_answer_that_cannot_be_said_is_the_last_state(mem: Memory) -> None:
    found = search_tree(open_run(mem), Counted().problem(answer=raising))
    assert found.output == Output(text="97", usage=found.output.usage)


def test_what_is_no_problem_is_refused(mem: Memory) -> None:
    run = open_run(mem)
    with pytest.raises(InvalidInput):
        TreeProblem(root=1, expand=7, verify=bool)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        TreeProblem(root=1, expand=raising, verify=bool, score=0.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        search_tree(run, {"root": 1})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        search_tree(run, Counted().problem(), policy=7)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        search_tree(run, Counted().problem(), seed="seed")  # type: ignore[arg-type]
    with pytest.raises(InvalidRecord):
        search_tree(run, Counted().problem(), policy={"nodes_max": 0})
    with pytest.raises(InvalidJson):
        search_tree(run, TreeProblem(root={1}, expand=raising, verify=bool))
    assert run.state() is None


@pytest.mark.soak
def test_a_runner_searches(mem: Memory) -> None:
    runner = mem.runner(lambda task: "unused", lambda output, _task: output.text == "97", user_id="ana")
    done = runner.run("Reach 97 from 1.", mode="tree", tree=Counted().problem())
    assert done.passed
    assert isinstance(done.result, VerifierResult)
    log = done.learned.event_log
    assert (log.run.mode, log.tree_search.algo if log.tree_search else None) == ("tree", "puct_guided_tree_v1")
