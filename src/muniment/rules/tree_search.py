"""Guided search of a state space within a run (RC-22): PUCT or a beam, decided by a verifier, within caps.

    problem = TreeProblem(root=[3, 8, 3, 8], expand=moves, score=promise, verify=is_24)
    found = search_tree(run, problem, policy={"nodes_max": 500})
    found.solved, found.output.text, found.block

A new state is verified and scored; then the most promising open state is expanded. Apart from the caps both algorithms
are complete: an exhausted beam continues with the best states it had set aside. A search lives in memory: after a crash
the same call repeats the search and finds the same result (decision 0054).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import islice
from math import fsum, inf, log
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from muniment.contracts.learning import ReuseSelectMeta, ReuseStateRecord
from muniment.contracts.runs import TreeSearchBlock, VerifierResult
from muniment.core.canonical import Written, canonical_text, digest, digest_of, read_canonical
from muniment.core.outside.calling import outcome_of, settled
from muniment.core.policy import PuctPolicy, TreePolicy
from muniment.core.record import RULECRAFT_VERSION, JsonValue
from muniment.errors import InvalidInput, InvalidRecord, MunimentError, TooLarge
from muniment.learning.projection import trace_id_of
from muniment.learning.puct import puct_score, rank_priors, ranks_of
from muniment.verify.outputs import Output, Usage
from muniment.verify.results import is_pass

if TYPE_CHECKING:
    from muniment.core.ports.models import Clock
    from muniment.handles.bank import Bank
    from muniment.handles.run import Run

TOOL = "tree_search"
TREE_PUCT = PuctPolicy(c=0.1)
"""Smaller c than among seeds: a state has a value before it is chosen, not only after it was tried."""
_CHILDREN_MAX = 256
"""Children of one state; functions may return more, even infinitely many."""
_FAILURES_MAX = 32
"""Failed calls (raised, hung or invalid) before a search gives up."""
_STATE_BYTES_MAX = 16 * 1024
_NUMBER_MAX = 1e100
_SAID_CHARS_MAX = 300
_KEY_HEX = 32
_UNSCORED = 0.5
"""The value of an unscored state: neutral."""
_CAPS = ("depth", "frontier", "children")
"""Cuts that a more generous policy would not make."""


class Child(NamedTuple):
    """A state that follows from another, with its prior if known. States are JSON."""

    state: Any
    prior: float | None = None
    key: str | None = None
    """Equal keys mean equal states; without one, JSON equality decides."""


@dataclass(frozen=True, slots=True)
class TreeProblem:
    """A state space and how to search it. States are JSON: a tuple comes back as a list."""

    root: Any
    expand: Callable[[Any], Iterable[Any]]
    """The states that follow from a state; `Child` gives them priors."""
    verify: Callable[[Any], Any]
    """Returns whether a state is a solution: true, false, None (unknown), or a verifier's result."""
    score: Callable[[Any], float | None] | None = None
    """Rates how promising a state is, from 0 to 1."""
    key: Callable[[Any], Any] | None = None
    """States with equal keys are the same; by default, JSON equality decides."""
    answer: Callable[[list[Any]], str] | None = None
    """The text of the answer for the path of states; by default, the last state."""
    start: Callable[[ReuseStateRecord], Iterable[Any]] | None = None
    """States that a seed suggests as starting points, besides the root."""
    weigh: Callable[[ReuseStateRecord, Any, Any], float] | None = None
    """A factor on the prior of a step between two states, according to a seed."""
    cost: Callable[[str, Any], float] | None = None
    """The cost of a call ("expand", "score", "verify") on a state, read after each."""

    def __post_init__(self) -> None:
        for name in ("expand", "verify"):
            if not callable(getattr(self, name)):
                raise InvalidInput(f"{name} is a function of a state", path=f"$.problem.{name}")
        for name in ("score", "key", "answer", "start", "weigh", "cost"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise InvalidInput(f"{name} is a function, or left out", path=f"$.problem.{name}")


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search."""

    search: TreeSearch
    output: Output
    """The answer found, or the best so far."""
    block: TreeSearchBlock
    """For the EventLog."""
    result: VerifierResult
    reuse: ReuseSelectMeta | None
    """The seed it started from, if it could choose one."""

    @property
    def solved(self) -> bool:
        return self.search.end is not None and self.search.end.kind == "solved"

    @property
    def way(self) -> list[Any]:
        """The states from the start to the best."""
        return self.search.way()


def search_tree(
    run: Run,
    problem: TreeProblem,
    *,
    policy: TreePolicy | Mapping[str, Any] | None = None,
    seed: ReuseStateRecord | None = None,
    bank: Bank | None = None,
    bucket_key: str | None = None,
    should_stop: Callable[[], bool] | None = None,
    verifier_id: str = TOOL,
) -> Searched:
    """Search until solved, exhausted or over a cap.

    It also starts from `seed`, or from one that PUCT chooses from a `bank`. Errors of the problem's functions are
    reported in the result; a root that is not JSON is refused. `should_stop` is called before every call.
    """
    if not isinstance(problem, TreeProblem):
        raise InvalidInput("wanted a TreeProblem", path="$.problem")
    if seed is not None and not isinstance(seed, ReuseStateRecord):
        raise InvalidInput("a seed is a ReuseStateRecord", path="$.seed")
    chosen = _policy(policy, run._ctx.policy.tree)
    state_text(problem.root)  # refused before anything is written
    reuse = None
    if seed is None and bank is not None:
        reuse, _ = bank.select_seed(bucket_key=bucket_key)
        named = reuse.selected_state_id
        seed = None if named is None else ReuseStateRecord.from_wire(bank.get(named).record)
    action = {"tool": TOOL, "args": {"algo": chosen.algo}}
    run.log.step("ACT_TREE", f"search by {chosen.algo}", action=action)
    search = TreeSearch(problem, chosen, seed=seed, clock=run._ctx.clock, should_stop=should_stop).run()
    run.log.step("ACT_DONE", search.notes, action=action)
    output = Output(text=search.answer(), usage=Usage(tool_calls=search.calls, turns=search.expanded))
    return Searched(search, output, search.block(trace_id_of(run.run_id)), search.result(verifier_id), reuse)


def _policy(given: TreePolicy | Mapping[str, Any] | None, usual: TreePolicy) -> TreePolicy:
    """The store's policy, overridden by the given settings."""
    if given is None or isinstance(given, TreePolicy):
        return given or usual
    if not isinstance(given, Mapping):
        raise InvalidInput("a policy of tree search is an object", path="$.policy")
    return TreePolicy.from_wire(usual.model_dump(exclude_none=True) | dict(given))


# == the search =======================================================================================


class Failed(NamedTuple):
    """A failed call: it raised, hung or returned an invalid value."""

    code: Literal["tool_failure", "tool_timeout", "tool_output_invalid"]
    said: str


class TreeEnd(NamedTuple):
    """The reason a search ended."""

    kind: Literal["solved", "exhausted", "budget"]
    cap: str | None = None
    node: int | None = None
    """The verified state."""


class _Nonsense(Exception):
    """An unusable return value; the message says why."""


class TreeSearch:
    """One search, in memory. Deterministic, given the return values of the problem's functions."""

    def __init__(
        self,
        problem: TreeProblem,
        policy: TreePolicy,
        *,
        seed: ReuseStateRecord | None = None,
        clock: Clock | None = None,
        should_stop: Callable[[], bool] | None = None,
        puct: PuctPolicy = TREE_PUCT,
    ) -> None:
        self.problem, self.policy, self.seed = problem, policy, seed
        self.end: TreeEnd | None = None
        self.calls = self.duplicates = self.frontier_max = 0
        self.cost = 0.0
        self.cuts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.said: str | None = None
        """The first failure, in words."""
        self.passed: VerifierResult | None = None
        """The verifier's result on the solution, if it gave one."""
        self._clock, self._should_stop = clock, should_stop
        self._tree = Tree(puct)
        self._known: set[str] = set()
        self._new: deque[int] = deque()
        """States still to be verified and scored, all with one parent."""
        self._beam: list[int] = []
        self._level: list[int] = []

    def run(self) -> Self:
        """Search to the end."""
        started = None if self._clock is None else self._clock()
        self._add(TOP, self._starts())
        while self.end is None:
            if not self._new and not self._tree.open:
                self.end = TreeEnd("exhausted")
            elif (cap := self._cap(started)) is not None:
                self.end = TreeEnd("budget", cap)
            elif self._new:
                self._judge(self._new[0])
            else:
                self._expand(self._pick())
        return self

    def _cap(self, started: Any = None) -> str | None:
        """The cap that was reached, if any."""
        policy = self.policy
        is_late = (
            started is not None
            and self._clock is not None
            and policy.time_max_s is not None
            and (self._clock() - started).total_seconds() >= policy.time_max_s
        )
        reached = {
            "nodes": not self._new and self.expanded >= policy.nodes_max,
            "calls": self.calls >= policy.calls_max,
            "cost": policy.cost_max is not None and self.cost >= policy.cost_max,
            "failures": self.faults.total() >= _FAILURES_MAX,
            "time": is_late,
            "stopped": self._should_stop is not None and self._should_stop(),
        }
        return next((cap for cap, is_over in reached.items() if is_over), None)

    # -- states ---------------------------------------------------------------------------------------

    def _starts(self) -> list[Child]:
        """The root, and the states the seed suggests. Invalid suggestions are ignored."""
        root = self._read_child(self.problem.root, None)
        assert root is not None
        start, seed = self.problem.start, self.seed
        if start is None or seed is None:
            return [root]
        offered = self._outcome("start", lambda: _listed(settled(lambda: start(seed))))
        read = [] if isinstance(offered, Failed) else [self._read_child(each, None) for each in offered]
        return [root, *(each for each in read if each is not None)]

    def _judge(self, number: int) -> None:
        """Verify and score a new state; after the last sibling, weigh all of them."""
        node = self._tree.nodes[number]
        verdict = self._call("verify", self.problem.verify, number)
        if not isinstance(verdict, Failed):
            verdict = self._read_verdict(verdict)
        if isinstance(verdict, Failed):
            self._fault(verdict.code, f"verify at node {number}: {verdict.said}")
        if verdict == "pass":
            self.end = TreeEnd("solved", node=number)
            return
        node.unknown = isinstance(verdict, Failed) or verdict == "unknown"
        if self.problem.score is not None:
            if (cap := self._cap()) is not None:
                self.end = TreeEnd("budget", cap)
                return
            value = self._call("score", self.problem.score, number)
            if value is not None and not isinstance(value, Failed) and _number(value, 1) is None:
                said = f"score answered a {type(value).__name__} that is no number from 0 to 1"
                value = Failed("tool_output_invalid", said)
            if isinstance(value, Failed):
                self._fault(value.code, f"score at node {number}: {value.said}")
            else:
                node.value = None if value is None else float(value)
        node.is_known = node.unknown or node.value is not None
        self._new.popleft()
        is_deep = node.depth >= self.policy.depth_max
        self.cuts["depth"] += is_deep
        self._tree.mark(number, "left" if is_deep else "open")
        if not self._new:
            self._weigh(node.parent)

    def _weigh(self, parent: int) -> None:
        """Weigh the children of a state against each other, and keep the frontier within its cap."""
        self._tree.weigh(parent)
        self._tree.refresh(parent)
        if self.policy.algo == "beam_guided_tree_v1":
            self._level += self._tree.nodes[parent].children
        surplus = len(self._tree.open) - self.policy.frontier_max
        if surplus > 0:
            kept = set(self._tree.best(self._tree.open, self.policy.frontier_max))
            for number in [number for number in self._tree.open if number not in kept]:
                self._tree.mark(number, "dropped")
                self._tree.refresh(number)
                self._known.discard(self._tree.nodes[number].key)
            self.cuts["frontier"] += surplus
        self.frontier_max = max(self.frontier_max, len(self._tree.open))

    def _pick(self) -> int:
        """The state to expand next."""
        if self.policy.algo != "beam_guided_tree_v1":
            return self._tree.best_by_puct()
        nodes = self._tree.nodes
        self._beam = [number for number in self._beam if nodes[number].status == "open"]
        if not self._beam:
            new = [number for number in self._level if nodes[number].status == "open"]
            self._beam = self._tree.best(new or self._tree.open, self.policy.beam_width)
            self._level = []
        return self._beam[0]

    def _expand(self, number: int) -> None:
        offered = self._call("expand", lambda state: _listed(settled(lambda: self.problem.expand(state))), number)
        if isinstance(offered, Failed):
            self._fault(offered.code, f"expand at node {number}: {offered.said}")
            self.cuts["failed"] += 1
            self._tree.mark(number, "left")
            self._tree.refresh(number)
            return
        self._tree.mark(number, "expanded")
        if len(offered) > _CHILDREN_MAX:
            self.cuts["children"] += 1
        faults = self.faults.total()
        state = self._state(number)
        read = [self._read_child(each, state, f"child {at}: ") for at, each in enumerate(offered[:_CHILDREN_MAX])]
        if self.faults.total() > faults:  # one failure per call, however many children are invalid
            self.faults["tool_output_invalid"] -= self.faults.total() - faults - 1
        self._add(number, [each for each in read if each is not None])

    def _add(self, parent: int, children: Sequence[Child]) -> None:
        """Add new states below a parent; known states are counted and not added again."""
        for child in children:
            key = digest((child.state if child.key is None else child.key).encode()).hex()[:_KEY_HEX]
            if key in self._known:
                self.duplicates += 1
                continue
            self._known.add(key)
            self._new.append(self._tree.add(parent, child.state, key, child.prior))
        self._tree.refresh(parent)

    def _read_child(self, offered: Any, parent: Any, where: str = "") -> Child | None:
        """A state as canonical text with its key and prior; None if invalid. An invalid key or prior is dropped, and
        the state kept without it.
        """
        child = offered if isinstance(offered, Child) else Child(offered)
        try:
            text = state_text(child.state)
        except MunimentError as error:
            self.cuts["refused"] += 1
            self._fault("tool_output_invalid", f"{where}{error}")
            return None
        state, seed = read_canonical(text), self.seed
        prior, key = _number(child.prior, _NUMBER_MAX), child.key if isinstance(child.key, str) else None
        if (prior is None) != (child.prior is None) or (key is None) != (child.key is None):
            self._fault("tool_output_invalid", f"{where}a prior is a number from 0 to {_NUMBER_MAX:g}, a key is text")
        make_key, weigh = self.problem.key, self.problem.weigh
        if make_key is not None and child.key is None:
            made = self._outcome("key", lambda: digest_of(make_key(state)))
            key = made if isinstance(made, str) else None
            if isinstance(made, Failed):
                self._fault("tool_output_invalid", f"{where}{made.said}")
        if weigh is not None and seed is not None and parent is not None:
            weight = self._outcome("weigh", lambda: float(weigh(seed, parent, state)))
            if isinstance(weight, Failed):
                self._fault("tool_output_invalid", f"{where}{weight.said}")
            else:
                prior = _number((1.0 if prior is None else prior) * weight, _NUMBER_MAX)
        return Child(text, prior, key)

    # -- calling --------------------------------------------------------------------------------------

    def _call(self, kind: str, function: Callable[[Any], Any], number: int) -> Any:
        """Call a function of the problem; returns its value or the failure, with count and cost recorded."""
        self.calls += 1
        answer = self._outcome(kind, lambda: function(self._state(number)))
        price = self.problem.cost
        if price is not None:
            cost = self._outcome("cost", lambda: price(kind, self._state(number)))
            given = None if isinstance(cost, Failed) else _number(cost, _NUMBER_MAX)
            if given is None:
                said = cost.said if isinstance(cost, Failed) else "cost answered no number from 0"
                self._fault(cost.code if isinstance(cost, Failed) else "tool_output_invalid", said)
            else:
                self.cost += given
        return answer

    def _outcome(self, name: str, call: Callable[[], Any]) -> Any:
        limit = self.policy.call_timeout_s
        made = outcome_of(call, limit)
        if not made.done():
            return Failed("tool_timeout", f"{name} took more than {limit:g} s")
        error = made.exception()
        if isinstance(error, _Nonsense):
            return Failed("tool_output_invalid", f"{name} answered {error}")
        if error is not None:
            return Failed("tool_failure", f"{name} raised {type(error).__name__}: {error}"[:_SAID_CHARS_MAX])
        return made.result()

    def _read_verdict(self, given: Any) -> Literal["pass", "fail", "unknown"] | Failed:
        if given is None or isinstance(given, bool):
            return "unknown" if given is None else "pass" if given else "fail"
        try:
            plain = given.to_wire() if isinstance(given, VerifierResult) else dict(given)
            result = VerifierResult.from_wire({"schema_version": RULECRAFT_VERSION, **plain})
        except (InvalidRecord, ValueError, TypeError):
            said = f"verify answered {type(given).__name__}, neither a result nor whether it holds"
            return Failed("tool_output_invalid", said)
        if is_pass(result.verdict, result.outcome):
            self.passed = result
            return "pass"
        return "unknown" if result.verdict != "FAIL" and result.outcome == "UNKNOWN" else "fail"

    def _fault(self, code: str, said: str) -> None:
        self.faults[code] += 1
        self.said = self.said or said[:_SAID_CHARS_MAX]

    def _state(self, number: int) -> JsonValue:
        """A copy, as the caller may change it."""
        state: JsonValue = read_canonical(self._tree.nodes[number].text)
        return state

    # -- results --------------------------------------------------------------------------------------

    @property
    def expanded(self) -> int:
        return self._tree.nodes[TOP].n

    @property
    def made(self) -> int:
        """The number of states created."""
        return len(self._tree.nodes) - 1

    @property
    def unknowns(self) -> int:
        """The number of states the verifier could not judge."""
        return sum(node.unknown for node in self._tree.nodes)

    @property
    def is_complete(self) -> bool:
        """Nothing was left out: an unfound solution does not exist."""
        return self.end is not None and self.end.kind == "exhausted" and not +self.cuts and not self.unknowns

    @property
    def best_node(self) -> int | None:
        """The verified state; else a possible solution; else the state with the highest value."""
        if self.end is not None and self.end.node is not None:
            return self.end.node
        known = [
            (node.unknown, node.value or 0.0, -number) for number, node in enumerate(self._tree.nodes) if node.is_known
        ]
        return -max(known)[2] if known else None

    def way(self) -> list[JsonValue]:
        """The states from the start to the best."""
        best = self.best_node
        return [] if best is None else [self._state(each) for each in self._tree.way_to(best)]

    def answer(self) -> str:
        """The text for the path found, or the last state if the problem cannot produce it."""
        way, say = self.way(), self.problem.answer
        text = None if say is None or not way else self._outcome("answer", lambda: say(way))
        if isinstance(text, str):
            return text
        last = way[-1] if way else ""
        return last if isinstance(last, str) else canonical_text(last)

    @property
    def reason_codes(self) -> tuple[str, ...]:
        """The reasons it found nothing; empty if it found a solution."""
        if self.end is None or self.end.kind == "solved":
            return ()
        is_cut = self.end.kind == "budget" or any(self.cuts[name] for name in _CAPS)
        codes = ["search_budget_exhausted" if is_cut else "proof_not_found"]
        return tuple(dict.fromkeys([*codes, *(["prover_incomplete"] if self.unknowns else []), *sorted(self.faults)]))

    @property
    def notes(self) -> str:
        """Figures of the search."""
        assert self.end is not None
        parts = [self.end.kind + (f" ({self.end.cap})" if self.end.cap else "")]
        counts = {"states": self.made, "duplicates": self.duplicates, "calls": self.calls, "unknown": self.unknowns}
        parts += [f"{count} {name}" for name, count in counts.items() if count]
        parts += [f"cost {self.cost:g}"] if self.cost else []
        parts += [f"left out by {name}: {count}" for name, count in sorted(self.cuts.items()) if count]
        parts += [f"{code}: {count}" for code, count in sorted(self.faults.items())]
        return "; ".join(parts)

    def block(self, trace_id: str | None = None) -> TreeSearchBlock:
        """The EventLog's block: `depth_max` and `frontier_max` are the values reached, not the caps."""
        best = self.best_node
        return TreeSearchBlock(
            enabled=True,
            algo=self.policy.algo,
            node_expanded=self.expanded,
            depth_max=max(node.depth for node in self._tree.nodes),
            frontier_max=self.frontier_max,
            best_node_ref=None if best is None else f"{trace_id}:node#{best}" if trace_id else f"node#{best}",
            notes=self.notes,
        )

    def result(self, verifier_id: str) -> VerifierResult:
        """The verifier's result on the solution, or the reason why there is none."""
        if self.passed is not None:
            return self.passed
        is_solved = self.end is not None and self.end.kind == "solved"
        unsolved = ("PARTIAL", "UNKNOWN") if self.unknowns else ("FAIL", "FAIL")
        verdict, outcome = ("PASS", "OK") if is_solved else unsolved
        plain: dict[str, Any] = {
            "schema_version": RULECRAFT_VERSION,
            "verifier_id": verifier_id,
            "verdict": verdict,
            "outcome": outcome,
            "notes": self.notes if self.said is None else f"{self.notes}; first: {self.said}",
        }
        return VerifierResult.from_wire(plain if is_solved else plain | {"reason_codes": list(self.reason_codes)})


def state_text(state: Any) -> Written:
    """A state as its canonical JSON."""
    text = Written(canonical_text(state))
    size = len(text.encode())
    if size > _STATE_BYTES_MAX:
        raise TooLarge(f"a state of {size} bytes is over the limit of {_STATE_BYTES_MAX}", path="$.state")
    return text


def _listed(offered: Any) -> list[Any]:
    """The states returned by a function, up to one more than allowed."""
    if isinstance(offered, str | bytes | Mapping) or not isinstance(offered, Iterable):
        raise _Nonsense(f"{type(offered).__name__}, not a list of states")
    return list(islice(offered, _CHILDREN_MAX + 1))


def _number(given: Any, most: float) -> float | None:
    """A number from 0 to `most`, of any numeric type; None for anything else."""
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    return float(given) if is_number and 0 <= given <= most else None


# == the tree =========================================================================================

TOP = 0
"""The number of the node above all starting states; not a state itself."""
_Status = Literal["new", "open", "expanded", "left", "dropped"]
"""`left`: too deep, or not expandable. `dropped`: removed from a full frontier, and may return."""


@dataclass(slots=True)
class Node:
    """A state, with figures derived from the states below it."""

    parent: int
    key: str
    text: Written
    depth: int
    prior: float | None = None
    value: float | None = None
    status: _Status = "new"
    unknown: bool = False
    is_known: bool = False
    """It was verified or scored."""

    children: list[int] = field(default_factory=list)
    p: float = 1.0
    log_p: float = 0.0
    """Sum over all priors from the start to here."""
    n: int = 0
    """The number of states expanded from here down."""
    q: float = 0.0
    total: float = 0.0
    count: int = 1
    is_live: bool = True


class Tree:
    """The nodes by number, each after its parent.

    A state that was searched to its end without success is worth nothing, however promising it seemed.
    """

    def __init__(self, policy: PuctPolicy) -> None:
        self.policy = policy
        self.nodes: list[Node] = [Node(TOP, "", Written("null"), -1, status="expanded")]
        self.open: dict[int, None] = {}
        """Open nodes by number, in order of arrival."""

    def add(self, parent: int, text: Written, key: str, prior: float | None) -> int:
        number = len(self.nodes)
        self.nodes.append(Node(parent, key, text, self.nodes[parent].depth + 1, prior))
        self.nodes[parent].children.append(number)
        return number

    def mark(self, number: int, status: _Status) -> None:
        self.nodes[number].status = status
        if status == "open":
            self.open[number] = None
        else:
            self.open.pop(number, None)

    def weigh(self, number: int) -> None:
        """Distribute the priors among a node's children: as given, else by the rank of their values."""
        node = self.nodes[number]
        children = [self.nodes[child] for child in node.children]
        given = [child.prior for child in children if child.prior is not None]
        if given:
            usual = fsum(given) / len(given)
            weights = [usual if child.prior is None else child.prior for child in children]
            whole = fsum(weights)
            shares = [weight / whole for weight in weights] if 0 < whole < inf else [1 / len(weights)] * len(weights)
        else:
            shares = rank_priors(ranks_of([child.value for child in children]), self.policy)
        for child, share in zip(children, shares, strict=True):
            child.p = share
            child.log_p = node.log_p + (log(share) if share > 0 else -inf)

    def refresh(self, number: int) -> None:
        """Recompute the value of a node, its children and all ancestors."""
        for child in self.nodes[number].children:
            self._work_out(child)
        while True:
            self._work_out(number)
            if number == TOP:
                return
            number = self.nodes[number].parent

    def _work_out(self, number: int) -> None:
        node = self.nodes[number]
        own = _UNSCORED if node.value is None else node.value
        below = [self.nodes[child] for child in node.children]
        node.is_live = node.status in ("new", "open") or any(child.is_live for child in below)
        node.n = (node.status == "expanded" and number != TOP) + sum(child.n for child in below)
        node.count = 1 + sum(child.count for child in below)
        node.total = own + fsum(child.total for child in below) if node.is_live else 0.0
        if not node.is_live:
            node.q = 0.0
        elif self.policy.q_method == "mean_reward":
            node.q = node.total / node.count
        else:
            node.q = max((child.q for child in below if child.is_live), default=own)

    def best_by_puct(self) -> int:
        """The open state reached from the top by following the highest PUCT scores. Ties: prior, age."""
        number = TOP
        while self.nodes[number].status != "open":
            children = self.nodes[number].children
            total = sum(self.nodes[child].n for child in children)
            number = max(
                (child for child in children if self.nodes[child].is_live),
                key=lambda child: (*self._puct(child, total), -child),
            )
        return number

    def _puct(self, number: int, total: int) -> tuple[float, float]:
        node = self.nodes[number]
        return puct_score(node.q, node.p, total, node.n, self.policy.c), node.p

    def best(self, numbers: Iterable[int], count: int) -> list[int]:
        """The open states of the highest value; ties by the priors of the whole path, then by age."""

        def worth(number: int) -> tuple[float, float, int]:
            node = self.nodes[number]
            return (_UNSCORED if node.value is None else node.value, node.log_p, -number)

        return nlargest(count, numbers, key=worth)

    def way_to(self, number: int) -> list[int]:
        """The states from the start to this one."""
        found = []
        while number != TOP:
            found.append(number)
            number = self.nodes[number].parent
        return found[::-1]
