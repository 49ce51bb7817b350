"""Search a user's space of states within a run (RC-22): guided by priors and scores, decided by a verifier.

problem = TreeProblem(root=[3, 8, 3, 8], expand=moves, score=promise, verify=is_24)
found = search_tree(run, problem, policy={"nodes_max": 500})
found.solved, found.output.text, found.block

Every answer of the problem's functions is kept with the run, many to an entry. After a crash the same call goes on
where they end. An answer that holds a secret is redacted like all that is kept, and is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muniment.contracts.learning import ReuseSelectMeta, ReuseStateRecord
from muniment.contracts.runs import TreeSearchBlock, VerifierResult
from muniment.core.canonical import read_canonical, short_id
from muniment.core.policy import TreePolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.errors import Forgotten, InvalidInput, NotFound
from muniment.learning.projection import trace_id_of
from muniment.rules.tree_calls import ProblemCaller
from muniment.rules.tree_log import TOOL, AnswerLog
from muniment.rules.tree_search.answers import Child, children_of, state_text
from muniment.rules.tree_search.search import TreeSearch
from muniment.verify.outputs import Output, Usage

if TYPE_CHECKING:
    from muniment.core.ports.models import Clock
    from muniment.handles.bank import Bank
    from muniment.handles.run import Run

__all__ = ["Searched", "TreeProblem", "search_tree"]


@dataclass(frozen=True, slots=True)
class TreeProblem:
    """A space of states and how to find the way in it. States are JSON: a tuple comes back as a list."""

    root: Any
    expand: Callable[[Any], Iterable[Any]]
    """The states that follow from a state, or `Child`s: states with priors."""
    verify: Callable[[Any], Any]
    """Whether a state is what is looked for: true, false, None (cannot say), or a verifier's result."""
    score: Callable[[Any], float | None] | None = None
    """How promising a state is, from 0 to 1."""
    key: Callable[[Any], Any] | None = None
    """What states are the same by; without it, equal JSON."""
    answer: Callable[[list[Any]], str] | None = None
    """The text that states, from the start to the last, come to; without it, the last state."""
    start: Callable[[ReuseStateRecord], Iterable[Any]] | None = None
    """States that a seed tells to start from, beside the root."""
    weigh: Callable[[ReuseStateRecord, Any, Any], float] | None = None
    """How much likelier a seed makes a step from a state to another: its prior times this."""
    cost: Callable[[str, Any], float] | None = None
    """What a call ("expand", "score", "verify") of a state cost, asked after each."""

    def __post_init__(self) -> None:
        for name in ("expand", "verify"):
            if not callable(getattr(self, name)):
                raise InvalidInput(f"{name} is a function of a state", path=f"$.problem.{name}")
        for name in ("score", "key", "answer", "start", "weigh", "cost"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise InvalidInput(f"{name} is a function, or left out", path=f"$.problem.{name}")


@dataclass(frozen=True, slots=True)
class Searched:
    """What came of a search."""

    search: TreeSearch
    output: Output
    """The answer that was found; the best there was, where none was."""
    block: TreeSearchBlock
    """For the EventLog."""
    result: VerifierResult
    reuse: ReuseSelectMeta | None
    """Which seed it started from, where it was to choose one."""
    resumed: int
    """Answers that were taken from the run and not asked for again."""

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
    """Search until it is solved, exhausted or over a cap; or go on with a search of this run that was cut off.

    It starts from `seed` too, or from one that PUCT chooses of a `bank`. What the problem's functions raise is told in
    the result; a root that is no JSON is refused. With `should_stop`, a search can be left and gone on with later.
    """
    if not isinstance(problem, TreeProblem):
        raise InvalidInput("wanted a TreeProblem", path="$.problem")
    if seed is not None and not isinstance(seed, ReuseStateRecord):
        raise InvalidInput("a seed is a ReuseStateRecord", path="$.seed")
    chosen = _policy(policy, run._ctx.policy.tree)
    root = read_canonical(state_text(problem.root, chosen.state_bytes_max))
    log = AnswerLog(run, _search_id(root, problem, chosen, seed), chosen)
    begun = log.begun()
    reuse, seed = _seed(begun, seed, bank, bucket_key)
    caller = ProblemCaller(problem, chosen, seed)
    starts = caller.starts() if begun is None else _starts(begun, chosen)
    search = TreeSearch.start(caller.root(), chosen, starts=starts, scored=problem.score is not None)
    if begun is None:
        log.begin(starts, seed, reuse)
    resumed = log.replay(search)
    try:
        _go_on(search, caller, log, _Deadline(run._ctx.clock, chosen, should_stop))
        text = caller.words(search.way())
    finally:
        log.flush()
    if search.end is not None and search.end.cap not in ("time", "stopped"):
        log.finish(search)
    usage = Usage(tool_calls=search.calls, turns=search.expanded)
    block = search.block(trace_id_of(run.run_id))
    result = _result(search, log.passed, verifier_id)
    return Searched(search, Output(text=text, usage=usage), block, result, reuse, resumed)


def _go_on(search: TreeSearch, caller: ProblemCaller, log: AnswerLog, deadline: _Deadline) -> None:
    while (ask := search.next()) is not None:
        cap = deadline.passed()
        if cap is not None:
            search.stop(cap)
            return
        answer = caller.answer(ask)
        search.take(answer)
        log.add(answer)


def _policy(given: TreePolicy | Mapping[str, Any] | None, usual: TreePolicy) -> TreePolicy:
    """The store's policy, but for what is given."""
    if given is None or isinstance(given, TreePolicy):
        return given or usual
    if not isinstance(given, Mapping):
        raise InvalidInput("a policy of tree search is an object", path="$.policy")
    return TreePolicy.from_wire(usual.model_dump(exclude_none=True) | dict(given))


def _search_id(root: Any, problem: TreeProblem, policy: TreePolicy, seed: ReuseStateRecord | None) -> str:
    """The id of a search. It depends on the question alone, so that answers a run already has are found again."""
    has = [getattr(problem, name) is not None for name in ("score", "key", "start", "weigh")]
    return short_id("tree", [root, policy.model_dump(exclude_none=True), has, None if seed is None else seed.state_id])


# -- seeds --------------------------------------------------------------------------------------------


def _seed(
    begun: Mapping[str, Any] | None, seed: ReuseStateRecord | None, bank: Bank | None, bucket_key: str | None
) -> tuple[ReuseSelectMeta | None, ReuseStateRecord | None]:
    """The seed to start from and how it was chosen: as this search did before, where it did."""
    if begun is not None:
        meta, name = begun.get("reuse"), begun.get("seed")
        chosen = None if meta is None else ReuseSelectMeta.from_wire(meta)
        return chosen, seed if seed is not None or bank is None or name is None else _held(bank, name)
    if seed is not None or bank is None:
        return None, seed
    selected, _ = bank.select_seed(bucket_key=bucket_key)
    name = selected.selected_state_id
    return selected, None if name is None else _held(bank, name)


def _held(bank: Bank, state_id: str) -> ReuseStateRecord | None:
    """A seed of the bank; None once it was forgotten: then the search goes on without."""
    try:
        return ReuseStateRecord.from_wire(bank.get(state_id).record)
    except (NotFound, Forgotten):
        return None


def _starts(begun: Mapping[str, Any], policy: TreePolicy) -> tuple[Child, ...]:
    return children_of((Child(*row) for row in begun["starts"]), policy.state_bytes_max).children


# -- how it ends --------------------------------------------------------------------------------------


class _Deadline:
    """When a search is to be left, by the clock or by the caller's will."""

    def __init__(self, clock: Clock, policy: TreePolicy, should_stop: Callable[[], bool] | None) -> None:
        self._clock, self._limit, self._should_stop = clock, policy.time_max_s, should_stop
        self._start = clock()

    def passed(self) -> str | None:
        """The cap that was reached, if one was."""
        if self._limit is not None and (self._clock() - self._start).total_seconds() >= self._limit:
            return "time"
        return "stopped" if self._should_stop is not None and self._should_stop() else None


def _result(search: TreeSearch, said: Mapping[str, Any] | None, verifier_id: str) -> VerifierResult:
    """What the verifier said of what was found; else why nothing was."""
    if said is not None:
        return VerifierResult.from_wire(dict(said))
    is_solved = search.end is not None and search.end.kind == "solved"
    words = ("PASS", "OK") if is_solved else ("PARTIAL", "UNKNOWN") if search.unknowns else ("FAIL", "FAIL")
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "verifier_id": verifier_id,
        "verdict": words[0],
        "outcome": words[1],
        "notes": search.notes if search.said is None else f"{search.notes}; first: {search.said}",
    }
    return VerifierResult.from_wire(plain if is_solved else plain | {"reason_codes": list(search.reason_codes)})
