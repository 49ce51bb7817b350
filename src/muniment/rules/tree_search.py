"""Guided search of a space of states within a run (RC-22): PUCT or a beam, within caps."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import islice
from math import fsum, inf, log
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from muniment.contracts.learning import ReuseSelectMeta, ReuseStateRecord
from muniment.contracts.runs import TreeSearchBlock, VerifierResult
from muniment.core.canonical import Written, canonical_text, digest, digest_of, read_canonical, short_id
from muniment.core.outside.calling import caught, outcome_of, settled
from muniment.core.policy import PuctPolicy, TreePolicy
from muniment.core.record import (
    RULECRAFT_VERSION,
    Absent,
    Confidence,
    Count,
    Items,
    JsonObject,
    JsonValue,
    NonEmpty,
    Number,
    Record,
)
from muniment.errors import Forgotten, InvalidInput, InvalidRecord, Issue, MunimentError, NotFound, TooLarge
from muniment.learning.projection import trace_id_of
from muniment.learning.reuse.puct import puct_score, rank_priors, ranks_of
from muniment.verify.outputs import Output, Usage
from muniment.verify.results import is_pass

if TYPE_CHECKING:
    from concurrent.futures import Future

    from muniment.core.ports.models import Clock
    from muniment.handles.bank import Bank
    from muniment.handles.run import Run
    from muniment.store.ledger import LedgerEntry


# == answers ==========================================================================================================

SAID_CHARS_MAX = 300
NUMBER_MAX = 1e100
AskKind = Literal["expand", "score", "verify"]


class Ask(NamedTuple):
    """What the search wants to know next: one call of one function."""

    kind: AskKind
    node: int
    state: JsonValue
    """A copy: the caller may do with it what it likes."""
    depth: int


class Child(NamedTuple):
    """A state that follows from another, and how likely it leads on, where that is known. States are JSON."""

    state: Any
    prior: float | None = None
    key: str | None = None
    """Equal keys are the same state; without one, equal JSON is."""


class Expanded(NamedTuple):
    """The states that follow, none where it is a dead end."""

    children: tuple[Child, ...]
    more: bool = False
    """There were more than may be taken."""
    refused: int = 0
    """Offered, and no states."""
    odd: int = 0
    """States whose prior or key is nonsense: kept without it."""
    said: str | None = None
    """What was wrong with the first of those."""
    cost: float = 0.0


class Scored(NamedTuple):
    """How promising a state is, from 0 to 1; None where nobody can say."""

    value: float | None
    cost: float = 0.0


class Verified(NamedTuple):
    """Whether a state is what is looked for."""

    verdict: Literal["pass", "fail", "unknown"]
    cost: float = 0.0
    result: JsonObject | None = None
    """What the verifier said, where it said more; the search does not read it."""


class Failed(NamedTuple):
    """The call came to nothing: it raised, hung or answered nonsense."""

    code: str
    """A reason code: tool_failure, tool_timeout, tool_output_invalid."""
    said: str
    cost: float = 0.0


Answer = Expanded | Scored | Verified | Failed


def children_of(offered: Iterable[Any], state_bytes_max: int, *, more: bool = False, cost: float = 0.0) -> Expanded:
    """What an expand function offered: `Child`s or bare states. What is no state is counted, the rest is kept."""
    found: list[Child] = []
    wrong: list[str] = []
    refused = 0
    for index, each in enumerate(offered):
        child = each if isinstance(each, Child) else Child(each)
        try:
            text = state_text(child.state, state_bytes_max)
        except MunimentError as error:
            refused += 1
            wrong.append(f"child {index}: {error}")
            continue
        prior, key = number_within(child.prior, NUMBER_MAX), child.key if isinstance(child.key, str) else None
        found.append(Child(text, prior, key))
        if (prior is None) != (child.prior is None) or (key is None) != (child.key is None):
            wrong.append(f"child {index}: a prior is a number from 0 to {NUMBER_MAX:g}, a key is text")
    said = wrong[0][:SAID_CHARS_MAX] if wrong else None
    return Expanded(tuple(found), more, refused, len(wrong) - refused, said, cost)


def state_text(state: Any, state_bytes_max: int) -> Written:
    """A state as its canonical JSON, which is what a search keeps."""
    text = Written(canonical_text(state))
    size = len(text.encode())
    if size > state_bytes_max:
        raise TooLarge(f"a state of {size} bytes is over the limit of {state_bytes_max}", path="$.state")
    return text


def number_within(given: Any, most: float) -> float | None:
    """A number from 0 to `most`, of whatever kind; None for anything else."""
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    return float(given) if is_number and 0 <= given <= most else None


# -- as plain data ------------------------------------------------------------------------------------


def answer_wire(answer: Answer) -> list[Any]:
    """An answer in one row, for `canonical_text`."""
    match answer:
        case Expanded(children):
            return ["expanded", [list(child) for child in children], *answer[1:]]
        case Scored():
            return ["scored", *answer]
        case Verified():
            return ["verified", *answer]
        case Failed():
            return ["failed", *answer]


def read_answer(row: Any, state_bytes_max: int) -> Answer:
    """The answer that a row was made of."""
    match row:
        case ["expanded", list(children), bool(more), int(refused), int(odd), str() | None as said, cost]:
            if all(isinstance(child, list) and len(child) == 3 for child in children):
                read = children_of((Child(*child) for child in children), state_bytes_max, more=more, cost=_cost(cost))
                return read._replace(refused=refused + read.refused, odd=odd + read.odd, said=said or read.said)
        case ["scored", int() | float() | None as value, cost]:
            return Scored(None if value is None else float(value), _cost(cost))
        case ["verified", "pass" | "fail" | "unknown" as verdict, cost, dict() | None as result]:
            return Verified(verdict, _cost(cost), result)
        case ["failed", str(code), str(said), cost]:
            return Failed(code, said, _cost(cost))
    raise InvalidInput(f"{row!r:.60} is no answer to a search", path="$.answer")


def _cost(cost: Any) -> float:
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        return float(cost)
    raise InvalidInput("a cost is a number", path="$.answer.cost")


# == tree calls =======================================================================================================

_INVALID = "tool_output_invalid"


class _Offered(NamedTuple):
    """What an expand function offered, as far as it may."""

    children: list[Child]
    more: bool
    wrong: str | None


class ProblemCaller:
    """Answers what a search asks for by a problem's functions."""

    def __init__(self, problem: TreeProblem, policy: TreePolicy, seed: ReuseStateRecord | None) -> None:
        self._problem, self._policy, self._seed = problem, policy, seed

    def answer(self, ask: Ask) -> Answer:
        """One call of one function, and what it cost."""
        score = self._problem.score
        calls = {"expand": self._expand, "score": score or _no_score, "verify": self._problem.verify}
        given = self._outcome(ask.kind, lambda: calls[ask.kind](ask.state))
        answer: Answer = given if isinstance(given, Failed) else _READ[ask.kind](given, self._policy)
        cost = self._cost(ask)
        if isinstance(cost, Failed):  # what was found is not lost for it
            return answer if answer[0] == "pass" else cost
        return answer._replace(cost=cost)

    def starts(self) -> tuple[Child, ...]:
        """The states that the seed tells to start from. A seed that tells none, or nonsense, tells none."""
        start, seed = self._problem.start, self._seed
        if start is None or seed is None:
            return ()
        given = self._outcome("start", lambda: self._take(start(seed), None))
        if isinstance(given, Failed):
            return ()
        return children_of(given.children, self._policy.state_bytes_max).children

    def root(self) -> Child:
        """The root with its key."""
        root = self._problem.root
        given = self._outcome("key", lambda: self._child(root, None)[0])
        return Child(root) if isinstance(given, Failed) else given

    def words(self, way: list[Any]) -> str:
        """The answer that a way of states comes to; where the problem cannot say it, the last state."""
        from muniment.core.canonical import canonical_text

        say = self._problem.answer
        answer = None if say is None or not way else self._outcome("answer", lambda: say(way))
        if isinstance(answer, str):
            return answer
        last = way[-1] if way else ""
        return last if isinstance(last, str) else canonical_text(last)

    # -- within ---------------------------------------------------------------------------------------

    def _outcome(self, name: str, call: Callable[[], Any]) -> Any:
        """What a function answers, or how it failed."""
        limit = self._policy.call_timeout_s
        answer = outcome_of(call, limit)
        if not answer.done():
            return Failed("tool_timeout", f"{name} took more than {limit:g} s")
        error = answer.exception()
        if isinstance(error, _Nonsense):
            return Failed(_INVALID, f"{name} answered {error}")
        if error is not None:
            return Failed("tool_failure", _words(name, error))
        return answer.result()

    def _expand(self, state: Any) -> _Offered:
        return self._take(settled(lambda: self._problem.expand(state)), state)

    def _take(self, offered: Any, state: Any) -> _Offered:
        """Read the children that a problem offered, as many as are allowed, each with its key and its prior."""
        if isinstance(offered, str | bytes | Mapping) or not isinstance(offered, Iterable):
            raise _Nonsense(f"{type(offered).__name__}, not a list of states")
        most = self._policy.children_max
        taken = list(islice(offered, most + 1))
        read = [self._child(each, state) for each in taken[:most]]
        return _Offered([child for child, _ in read], len(taken) > most, next((said for _, said in read if said), None))

    def _child(self, each: Any, parent: Any) -> tuple[Child, str | None]:
        """A state with its key and its prior; what was wrong with either is said, and it goes without."""
        child = each if isinstance(each, Child) else Child(each)
        try:
            state = read_canonical(state_text(child.state, self._policy.state_bytes_max))
        except MunimentError:
            return child, None  # `children_of` says what is wrong with it
        key, seed, weigh = self._problem.key, self._seed, self._problem.weigh
        said: list[str] = []
        if key is not None and child.key is None:
            made = caught(lambda: digest_of(key(state)))
            said += _trouble("key", made)
            child = child if made.exception() else child._replace(key=made.result())
        if weigh is not None and seed is not None and parent is not None:
            made = caught(lambda: float(weigh(seed, parent, state)))
            said += _trouble("weigh", made)
            weight = 1.0 if made.exception() else made.result()
            prior = 1.0 if child.prior is None else number_within(child.prior, NUMBER_MAX)
            child = child if prior is None else child._replace(prior=prior * weight)
        return child, said[0] if said else None

    def _cost(self, ask: Ask) -> float | Failed:
        price = self._problem.cost
        if price is None:
            return 0.0
        given = self._outcome("cost", lambda: price(ask.kind, ask.state))
        if isinstance(given, Failed):
            return given
        cost = number_within(given, NUMBER_MAX)
        return Failed(_INVALID, "cost answered no number from 0") if cost is None else cost


def _no_score(_state: Any) -> None:
    """What scores states where nothing does."""


class _Nonsense(Exception):
    """An answer that is of no use. Its message says what it is."""


def _trouble(name: str, made: Future[Any]) -> list[str]:
    error = made.exception()
    return [] if error is None else [_words(name, error)]


def _words(name: str, error: BaseException) -> str:
    return f"{name} raised {type(error).__name__}: {error}"[:SAID_CHARS_MAX]


# -- what functions answer ----------------------------------------------------------------------------


def _read_offered(given: _Offered, policy: TreePolicy) -> Expanded:
    read = children_of(given.children, policy.state_bytes_max, more=given.more)
    return read if given.wrong is None else read._replace(odd=read.odd + 1, said=read.said or given.wrong)


def _read_score(given: Any, _policy: TreePolicy) -> Scored | Failed:
    if given is None:
        return Scored(None)
    value = number_within(given, 1)
    if value is None:
        return Failed(_INVALID, f"score answered a {type(given).__name__} that is no number from 0 to 1")
    return Scored(value)


def _read_verdict(given: Any, _policy: TreePolicy) -> Verified | Failed:
    if given is None or isinstance(given, bool):
        return Verified("unknown" if given is None else "pass" if given else "fail")
    try:
        plain = given.to_wire() if isinstance(given, VerifierResult) else dict(given)
        result = VerifierResult.from_wire({"schema_version": RULECRAFT_VERSION, **plain})
    except (InvalidRecord, ValueError, TypeError):
        return Failed(_INVALID, f"verify answered {type(given).__name__}, neither a result nor whether it holds")
    if is_pass(result.verdict, result.outcome):
        return Verified("pass", result=result.to_wire())
    may_be = result.verdict != "FAIL" and result.outcome == "UNKNOWN"
    return Verified("unknown" if may_be else "fail")


_READ: Mapping[str, Callable[[Any, TreePolicy], Answer]] = {
    "expand": _read_offered,
    "score": _read_score,
    "verify": _read_verdict,
}


# == tree log =========================================================================================================

TOOL = "tree_search"
_CHUNK_CHARS = 256 * 1024


class AnswerLog:
    """One search, as its run's entries tell it."""

    def __init__(self, run: Run, search_id: str, policy: TreePolicy) -> None:
        self._run, self._id, self._policy = run, search_id, policy
        own = [
            entry
            for entry in run.ledger.entries()
            if entry.kind == "step" and _search_fields(entry).get("id") == search_id
        ]
        self._first = next((entry for entry in own if "begun" not in _search_fields(entry)), None)
        self._begun = None if self._first is None else self._read(self._first)
        self._as = None if self._first is None else self._first.id
        self._rest = [entry for entry in own if _search_fields(entry).get("begun") == self._as]
        self._is_finished = any(_search_fields(entry).get("ended") for entry in self._rest)
        self._count = 0
        self._pending: list[Written] = []
        self._since = run._ctx.clock()
        self.passed: dict[str, Any] | None = None
        """What the verifier said of the state that was found, where it said more than that it holds."""

    def begun(self) -> dict[str, Any] | None:
        """What the search was begun with, where it was."""
        return self._begun if isinstance(self._begun, dict) else None

    def begin(self, starts: Iterable[Child], seed: ReuseStateRecord | None, reuse: ReuseSelectMeta | None) -> None:
        held = {
            "starts": [list(child) for child in starts],
            "seed": None if seed is None else seed.state_id,  # by name: a seed that is forgotten is gone from here too
            "reuse": None if reuse is None else reuse.to_wire(),
        }
        self._as = self._write(canonical_text(held), {}).id
        self._rest, self._is_finished = [], False

    def replay(self, search: TreeSearch) -> int:
        """Tell a search all that is known; answers how much that was."""
        for entry in self._rest:
            rows = self._read(entry) if _search_fields(entry).get("from") == self._count else None
            for row in rows if isinstance(rows, list) else ():
                try:
                    answer = read_answer(row, search.policy.state_bytes_max)
                    search.take(answer)
                except MunimentError:  # not an answer to this search: what follows it is none either
                    break
                self._count += 1
                self._note(answer)
        return self._count

    def add(self, answer: Answer) -> None:
        self._note(answer)
        self._pending.append(Written(canonical_text(answer_wire(answer))))
        waited = (self._run._ctx.clock() - self._since).total_seconds()
        many = len(self._pending) >= self._policy.checkpoint_answers or sum(map(len, self._pending)) > _CHUNK_CHARS
        if many or waited >= self._policy.checkpoint_s:
            self.flush()

    def flush(self) -> None:
        """Write what was not yet written."""
        if self._pending:
            self._write(canonical_text(self._pending), {"begun": self._as, "from": self._count})
            self._count += len(self._pending)
            self._pending = []
        self._since = self._run._ctx.clock()

    def finish(self, search: TreeSearch) -> None:
        """Tell the run, once, that the search is over."""
        if self._is_finished:
            return
        fields = {"id": self._id, "begun": self._as, "ended": True}
        action = {"tool": TOOL, "args": {"algo": search.policy.algo, "search": self._id}}
        self._run.log.step("ACT_DONE", search.notes, action=action, metadata={TOOL: fields})

    def _note(self, answer: Answer) -> None:
        if isinstance(answer, Verified) and answer.result is not None:
            self.passed = answer.result

    def _write(self, content: str, fields: dict[str, Any]) -> LedgerEntry:
        fields = {"id": self._id, "digest": digest_of(content), **fields}
        return self._run.log.step("ACT_TREE", content, metadata={TOOL: fields})

    def _read(self, entry: LedgerEntry) -> Any:
        """What an entry held, where it still does."""
        if entry.body is None:
            return None
        content = self._run.ledger.content(entry.id)
        return read_canonical(content) if digest_of(content) == _search_fields(entry).get("digest") else None


def _search_fields(entry: LedgerEntry) -> dict[str, Any]:
    """What an entry says of a search; empty where it says nothing."""
    fields = entry.metadata.get(TOOL)
    return fields if isinstance(fields, dict) else {}


# == records ==========================================================================================================

TreeNodeStatus = Literal["verify", "score", "open", "expanded", "left", "dropped"]
"""To be verified, to be scored, waiting, expanded; left alone, being too deep or because it cannot be expanded; dropped
from a full frontier, and welcome again."""


class TreeNodeRecord(Record):
    """One state of the tree. Its number is its place in the list; the first stands for all starting states."""

    parent: Absent[Count] = None
    key: str
    state: JsonValue = None
    prior: Absent[Number] = None
    """As it was given, not yet weighed against its siblings."""
    value: Absent[Confidence] = None
    status: TreeNodeStatus
    unknown: Absent[Literal[True]] = None
    """The verifier could not say."""


class TreeEnd(Record):
    """Why a search is over."""

    kind: Literal["solved", "exhausted", "budget"]
    cap: Absent[Literal["nodes", "calls", "cost", "failures", "time", "stopped"]] = None
    node: Absent[Count] = None
    """The state that was verified."""


class TreeSearchRecord(Record):
    """All that the rest of a search depends on."""

    schema_version: Literal["tree_search.v1"] = "tree_search.v1"
    policy: TreePolicy
    scored: bool
    nodes: Items[TreeNodeRecord]
    beam: Items[Count] = ()
    level: Items[Count] = ()
    calls: Count = 0
    cost: Number = 0
    frontier_max: Count = 0
    duplicates: Count = 0
    cuts: dict[NonEmpty, Count]
    """What was left out, by why."""
    faults: dict[NonEmpty, Count]
    """Calls that failed, by reason code."""
    said: Absent[str] = None
    """What went wrong first, in words."""
    end: Absent[TreeEnd] = None


# == nodes ============================================================================================================

TOP = 0
"""The number of the node above all starting states. It is no state."""
UNSCORED = 0.5
"""The value of a state that nobody scored: neither good nor bad."""
_LIVE: tuple[TreeNodeStatus, ...] = ("verify", "score", "open")


@dataclass(slots=True)
class Node:
    """A state. What stands below the line is worked out from the rest."""

    parent: int
    key: str
    text: Written
    depth: int
    prior: float | None = None
    value: float | None = None
    status: TreeNodeStatus = "verify"
    unknown: bool = False

    children: list[int] = field(default_factory=list)
    p: float = 1.0
    log_p: float = 0.0
    """Of all priors from the start to here."""
    n: int = 0
    """How many states were expanded from here down."""
    q: float = 0.0
    total: float = 0.0
    count: int = 1
    is_live: bool = True

    @property
    def is_known(self) -> bool:
        """Somebody had something to say of it."""
        return self.unknown or self.value is not None


class Tree:
    """The nodes by number, each after its parent."""

    def __init__(self, policy: PuctPolicy) -> None:
        self.policy = policy
        self.nodes: list[Node] = [Node(TOP, "", Written("null"), -1, status="expanded")]
        self.open: dict[int, None] = {}
        """The nodes that wait to be expanded, by number, in the order in which they came."""

    def add(self, parent: int, text: Written, key: str, prior: float | None) -> int:
        number = len(self.nodes)
        self.nodes.append(Node(parent, key, text, self.nodes[parent].depth + 1, prior))
        self.nodes[parent].children.append(number)
        return number

    def mark(self, number: int, status: TreeNodeStatus) -> None:
        self.nodes[number].status = status
        if status == "open":
            self.open[number] = None
        else:
            self.open.pop(number, None)

    # -- what follows ---------------------------------------------------------------------------------

    def weigh(self, number: int) -> None:
        """Share the priors of a node's children out among them: those given, else by the rank of their values."""
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
        """Work out anew what a node, its children and all above it are worth."""
        for child in self.nodes[number].children:
            self._work_out(child)
        while True:
            self._work_out(number)
            if number == TOP:
                return
            number = self.nodes[number].parent

    def refresh_all(self) -> None:
        for number, node in enumerate(self.nodes):
            if node.children:
                self.weigh(number)
        for number in reversed(range(len(self.nodes))):
            self._work_out(number)

    def _work_out(self, number: int) -> None:
        node = self.nodes[number]
        own = UNSCORED if node.value is None else node.value
        below = [self.nodes[child] for child in node.children]
        node.is_live = node.status in _LIVE or any(child.is_live for child in below)
        node.n = (node.status == "expanded" and number != TOP) + sum(child.n for child in below)
        node.count = 1 + sum(child.count for child in below)
        node.total = own + fsum(child.total for child in below) if node.is_live else 0.0
        if not node.is_live:
            node.q = 0.0
        elif self.policy.q_method == "mean_reward":
            node.q = node.total / node.count
        else:
            node.q = max((child.q for child in below if child.is_live), default=own)

    # -- choosing -------------------------------------------------------------------------------------

    def best_by_puct(self) -> int:
        """The waiting state that is reached from the top by children of the highest PUCT score. Ties: prior, age."""
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

    def worth(self, number: int) -> tuple[float, float, int]:
        """The key that compares waiting states across the tree: value, then priors of the whole way, then age."""
        node = self.nodes[number]
        return (UNSCORED if node.value is None else node.value, node.log_p, -number)

    def best(self, numbers: Iterable[int], count: int) -> list[int]:
        return nlargest(count, numbers, key=self.worth)

    def way_to(self, number: int) -> list[int]:
        """The states from the start to this one."""
        found = []
        while number != TOP:
            found.append(number)
            number = self.nodes[number].parent
        return found[::-1]


# == search ===========================================================================================================

_KEY_HEX = 32
_CAPS = ("depth", "frontier", "children")
"""Cuts that a wider policy would not make."""
_WANTED = {"expand": Expanded, "score": Scored, "verify": Verified}


class TreeSearch:
    """One search and where it stands. Not thread-safe: one caller steps it."""

    def __init__(self, policy: TreePolicy, *, scored: bool) -> None:
        self.policy = policy
        self.scored = scored
        """Is there a function that scores states?"""
        self.end: TreeEnd | None = None
        self.calls = 0
        self.cost = 0.0
        self.duplicates = 0
        self.frontier_max = 0
        self.cuts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.said: str | None = None
        self._tree = Tree(policy.puct)
        self._known: set[str] = set()
        self._unjudged: deque[int] = deque()
        """New states, all of one parent, in the order in which they were told."""
        self._beam: list[int] = []
        self._level: list[int] = []
        self._chosen: int | None = None

    @classmethod
    def start(cls, root: Any, policy: TreePolicy, *, starts: Iterable[Any] = (), scored: bool = True) -> Self:
        """A search from `root` and, beside it, from other states (`Child`s or bare ones), such as a seed tells."""
        search = cls(policy, scored=scored)
        first = root if isinstance(root, Child) else Child(root)
        state_text(first.state, policy.state_bytes_max)  # a root that is no state is refused, and not searched from
        search._take(TOP, children_of([first, *starts], policy.state_bytes_max, more=False))
        search._look_up()
        return search

    # -- stepping -------------------------------------------------------------------------------------

    def next(self) -> Ask | None:
        """What the search wants to know; None once it is over. Asking twice changes nothing."""
        if self.end is not None:
            return None
        number = self._unjudged[0] if self._unjudged else self._pick()
        node = self._tree.nodes[number]
        kind = "expand" if node.status == "open" else node.status
        return Ask(kind, number, read_canonical(node.text), node.depth)  # type: ignore[arg-type]

    def take(self, answer: Answer) -> None:
        """Take the answer to what `next` asks for."""
        ask = self.next()
        if ask is None:
            raise InvalidInput("the search is over", path="$.answer", hint="`end` says how")
        if not isinstance(answer, _WANTED[ask.kind] | Failed):
            raise InvalidInput(f"the search asked to {ask.kind}, and was told {type(answer).__name__}", path="$.answer")
        if not 0 <= answer.cost <= NUMBER_MAX:
            raise InvalidInput(f"a cost is a number from 0 to {NUMBER_MAX:g}", path="$.answer.cost")
        if isinstance(answer, Scored) and not 0 <= (answer.value or 0) <= 1:
            raise InvalidInput("a value lies from 0 to 1", path="$.answer.value")
        if isinstance(answer, Failed) and not answer.code:
            raise InvalidInput("what failed has a reason code", path="$.answer.code")
        if isinstance(answer, Expanded):
            answer = self._checked(answer)
        self.calls += 1
        self.cost += answer.cost
        self._chosen = None
        match answer:
            case Expanded():
                self._tree.mark(ask.node, "expanded")
                self._take(ask.node, answer)
            case Scored(value):
                self._tree.nodes[ask.node].value = value
                self._judged(ask.node)
            case Verified(verdict):
                self._verified(ask.node, verdict)
            case Failed(code, said):
                self._failed(ask, code, said)
        self._look_up()

    def stop(self, cap: str = "stopped") -> None:
        """Give up, with what there is: the caller's time is up (`time`), or it wants no more."""
        if self.end is None:
            self.end = TreeEnd.from_wire({"kind": "budget", "cap": cap})

    # -- what answers do ------------------------------------------------------------------------------

    def _checked(self, offered: Expanded) -> Expanded:
        """The states as canonical text; those that are none are counted."""
        read = children_of(offered.children, self.policy.state_bytes_max, more=offered.more, cost=offered.cost)
        return read._replace(
            refused=offered.refused + read.refused, odd=offered.odd + read.odd, said=offered.said or read.said
        )

    def _take(self, parent: int, offered: Expanded) -> None:
        """New states below a parent; those that are known already are counted and not made again."""
        allowed = self.policy.children_max
        children = offered.children[:allowed] if parent != TOP else offered.children
        if offered.more or len(children) < len(offered.children):
            self.cuts["children"] += 1
        if offered.refused:
            self.cuts["refused"] += offered.refused
        if offered.refused or offered.odd:
            self._fault("tool_output_invalid", offered.said or "what was offered is no state")
        for child in children:
            key = digest((child.state if child.key is None else child.key).encode()).hex()[:_KEY_HEX]
            if key in self._known:
                self.duplicates += 1
                continue
            self._known.add(key)
            self._unjudged.append(self._tree.add(parent, child.state, key, child.prior))
        self._tree.refresh(parent)

    def _verified(self, number: int, verdict: str) -> None:
        if verdict == "pass":
            self.end = TreeEnd(kind="solved", node=number)
            return
        self._tree.nodes[number].unknown = verdict == "unknown"
        if self.scored:
            self._tree.mark(number, "score")
        else:
            self._judged(number)

    def _failed(self, ask: Ask, code: str, said: str) -> None:
        self._fault(code, f"{ask.kind} at node {ask.node}: {said}")
        if ask.kind == "verify":
            self._verified(ask.node, "unknown")
        elif ask.kind == "score":
            self._judged(ask.node)
        else:
            self.cuts["failed"] += 1
            self._tree.mark(ask.node, "left")
            self._tree.refresh(ask.node)

    def _fault(self, code: str, said: str) -> None:
        self.faults[code] += 1
        self.said = self.said or said[:SAID_CHARS_MAX]

    def _judged(self, number: int) -> None:
        """A new state is known for what it is; with the last of its siblings, all of them are weighed."""
        node = self._tree.nodes[number]
        is_deep = node.depth >= self.policy.depth_max
        if is_deep:
            self.cuts["depth"] += 1
        self._tree.mark(number, "left" if is_deep else "open")
        self._unjudged.popleft()
        if self._unjudged:
            return
        self._tree.weigh(node.parent)
        self._tree.refresh(node.parent)
        if self.policy.algo == "beam_guided_tree_v1":
            self._level += self._tree.nodes[node.parent].children
        self._drop()
        self.frontier_max = max(self.frontier_max, len(self._tree.open))

    def _drop(self) -> None:
        """Keep the frontier within its cap."""
        surplus = len(self._tree.open) - self.policy.frontier_max
        if surplus <= 0:
            return
        kept = set(self._tree.best(self._tree.open, self.policy.frontier_max))
        for number in [number for number in self._tree.open if number not in kept]:
            self._tree.mark(number, "dropped")
            self._tree.refresh(number)
            self._known.discard(self._tree.nodes[number].key)
        self.cuts["frontier"] += surplus

    def _look_up(self) -> None:
        """Is it over?"""
        policy = self.policy
        if self.end is not None:
            return
        if not self._unjudged and not self._tree.open:
            self.end = TreeEnd(kind="exhausted")
            return
        over = {
            "nodes": not self._unjudged and self.expanded >= policy.nodes_max,
            "calls": self.calls >= policy.calls_max,
            "cost": policy.cost_max is not None and self.cost >= policy.cost_max,
            "failures": self.faults.total() >= policy.failures_max,
        }
        for cap, is_over in over.items():
            if is_over:
                self.stop(cap)

    def _pick(self) -> int:
        """The state to expand next."""
        if self._chosen is None:
            is_beam = self.policy.algo == "beam_guided_tree_v1"
            self._chosen = self._next_of_beam() if is_beam else self._tree.best_by_puct()
        return self._chosen

    def _next_of_beam(self) -> int:
        nodes = self._tree.nodes
        self._beam = [number for number in self._beam if nodes[number].status == "open"]
        if not self._beam:
            new = [number for number in self._level if nodes[number].status == "open"]
            self._beam = self._tree.best(new or self._tree.open, self.policy.beam_width)
            self._level = []
        return self._beam[0]

    # -- looking --------------------------------------------------------------------------------------

    @property
    def expanded(self) -> int:
        return self._tree.nodes[TOP].n

    @property
    def made(self) -> int:
        """How many states were looked at."""
        return len(self._tree.nodes) - 1

    @property
    def depth(self) -> int:
        """How deep the deepest of them lies."""
        return max(node.depth for node in self._tree.nodes)

    @property
    def unknowns(self) -> int:
        """How many the verifier could not judge."""
        return sum(node.unknown for node in self._tree.nodes)

    @property
    def is_complete(self) -> bool:
        """Nothing was left out: what was not found is not there."""
        return self.end is not None and self.end.kind == "exhausted" and not +self.cuts and not self.unknowns

    @property
    def best_node(self) -> int | None:
        """The state that was verified; else one that may be right; else that of the highest value."""
        if self.end is not None and self.end.node is not None:
            return self.end.node
        known = [
            (node.unknown, node.value or 0.0, -number) for number, node in enumerate(self._tree.nodes) if node.is_known
        ]
        return -max(known)[2] if known else None

    def way(self, node: int | None = None) -> list[JsonValue]:
        """The states from the start to a node, or to the best."""
        number = self.best_node if node is None else node
        if number is None or not 0 < number < len(self._tree.nodes):
            return []
        return [read_canonical(self._tree.nodes[each].text) for each in self._tree.way_to(number)]

    @property
    def reason_codes(self) -> tuple[str, ...]:
        """Why it found nothing; none where it did, or goes on."""
        if self.end is None or self.end.kind == "solved":
            return ()
        is_cut = self.end.kind == "budget" or any(self.cuts[name] for name in _CAPS)
        codes = ["search_budget_exhausted" if is_cut else "proof_not_found"]
        return tuple(dict.fromkeys([*codes, *(["prover_incomplete"] if self.unknowns else []), *sorted(self.faults)]))

    @property
    def notes(self) -> str:
        """How it went, in figures alone: what functions said stands in `said`."""
        cap = "" if self.end is None or self.end.cap is None else f" ({self.end.cap})"
        parts = ["going on" if self.end is None else f"{self.end.kind}{cap}"]
        counts = {"states": self.made, "duplicates": self.duplicates, "calls": self.calls, "unknown": self.unknowns}
        parts += [f"{count} {name}" for name, count in counts.items() if count]
        parts += [f"cost {self.cost:g}"] if self.cost else []
        parts += [f"left out by {name}: {count}" for name, count in sorted(self.cuts.items()) if count]
        parts += [f"{code}: {count}" for code, count in sorted(self.faults.items())]
        return "; ".join(parts)

    def block(self, trace_id: str | None = None) -> TreeSearchBlock:
        """The search as an EventLog tells it: `depth_max` and `frontier_max` are what was reached, not the caps."""
        best = self.best_node
        return TreeSearchBlock(
            enabled=True,
            algo=self.policy.algo,
            node_expanded=self.expanded,
            depth_max=self.depth,
            frontier_max=self.frontier_max,
            best_node_ref=None if best is None else f"{trace_id}:node#{best}" if trace_id else f"node#{best}",
            notes=self.notes,
        )

    # -- written down ---------------------------------------------------------------------------------

    def to_wire(self) -> dict[str, Any]:
        """All that the rest of the search depends on, as JSON."""
        fields: dict[str, Any] = {
            "policy": self.policy.model_dump(exclude_none=True),  # all of it: what is usual may change
            "scored": self.scored,
            "nodes": [_record_of(node) for node in self._tree.nodes[1:]],
            "beam": self._beam,
            "level": self._level,
            "calls": self.calls,
            "cost": self.cost,
            "frontier_max": self.frontier_max,
            "duplicates": self.duplicates,
            "cuts": dict(self.cuts),
            "faults": dict(self.faults),
        }
        if self.said is not None:
            fields["said"] = self.said
        if self.end is not None:
            fields["end"] = self.end.to_wire()
        return TreeSearchRecord.from_wire(fields).to_wire()

    @classmethod
    def from_wire(cls, plain: Any) -> Self:
        """A search that was written down, to go on with."""
        record = TreeSearchRecord.from_wire(plain)
        search = cls(record.policy, scored=record.scored)
        for place, each in enumerate(record.nodes):
            search._read_node(each, f"$.nodes[{place}]")
        search._check(record)
        search._tree.refresh_all()
        search._beam, search._level = list(record.beam), list(record.level)
        search.calls, search.cost = record.calls, float(record.cost)
        search.frontier_max, search.duplicates = record.frontier_max, record.duplicates
        search.cuts, search.faults = Counter(record.cuts), Counter(record.faults)
        search.said, search.end = record.said, record.end
        return search

    def _read_node(self, each: TreeNodeRecord, path: str) -> None:
        number = len(self._tree.nodes)
        parent = 0 if each.parent is None else each.parent
        if parent >= number or self._tree.nodes[parent].status != "expanded":
            raise InvalidRecord("not a search", [Issue(path, "its parent comes later, or was not expanded")])
        if each.status != "dropped" and each.key in self._known:
            raise InvalidRecord("not a search", [Issue(path, "its key is that of another state")])
        text = state_text(each.state, self.policy.state_bytes_max)
        self._tree.add(parent, text, each.key, None if each.prior is None else float(each.prior))
        node = self._tree.nodes[number]
        node.value = None if each.value is None else float(each.value)
        node.unknown = bool(each.unknown)
        self._tree.mark(number, each.status)
        if each.status != "dropped":
            self._known.add(each.key)
        if each.status in ("verify", "score"):
            self._unjudged.append(number)

    def _check(self, record: TreeSearchRecord) -> None:
        """What the parts say of each other."""
        count = len(self._tree.nodes)
        solved = () if record.end is None or record.end.node is None else (record.end.node,)
        numbers = (*record.beam, *record.level, *solved)
        if any(not 0 < number < count for number in numbers):
            raise InvalidRecord("not a search", [Issue("$.beam", "names a state that is not there")])
        if len({self._tree.nodes[number].parent for number in self._unjudged}) > 1:
            raise InvalidRecord("not a search", [Issue("$.nodes", "states of several parents are not judged")])
        if record.end is None and not self._unjudged and not self._tree.open:
            raise InvalidRecord("not a search", [Issue("$.end", "nothing is left, and it has not ended")])
        if record.end is not None and (record.end.kind == "solved") != bool(solved):
            raise InvalidRecord("not a search", [Issue("$.end.node", "a state is named by what is solved alone")])


def _record_of(node: Node) -> dict[str, Any]:
    fields: dict[str, Any] = {"key": node.key, "state": read_canonical(node.text), "status": node.status}
    if node.parent != TOP:
        fields["parent"] = node.parent
    for name in ("prior", "value"):
        if getattr(node, name) is not None:
            fields[name] = getattr(node, name)
    if node.unknown:
        fields["unknown"] = True
    return fields


# == tree searching ===================================================================================================


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
