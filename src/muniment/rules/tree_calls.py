"""The functions of a tree problem, called so that whatever they do is an answer to the search.

What raises, hangs or answers nonsense is `Failed`, with a reason code and in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.runs import VerifierResult
from muniment.core.canonical import digest_of, read_canonical
from muniment.core.outside.calling import caught, outcome_of, settled
from muniment.core.record import RULECRAFT_VERSION
from muniment.errors import InvalidRecord, MunimentError
from muniment.rules.tree_search.answers import (
    NUMBER_MAX,
    SAID_CHARS_MAX,
    Answer,
    Ask,
    Child,
    Expanded,
    Failed,
    Scored,
    Verified,
    children_of,
    number_within,
    state_text,
)
from muniment.verify.results import is_pass

if TYPE_CHECKING:
    from concurrent.futures import Future

    from muniment.contracts.learning import ReuseStateRecord
    from muniment.core.policy import TreePolicy
    from muniment.rules.tree_searching import TreeProblem

__all__ = ["ProblemCaller"]

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
