"""A run's purpose and progress, for its packets: pinned at its start, patched since, and recorded in its log.

Everything is read from the store, never from a snapshot's text, so it is the same before and after a compaction, after
`resume` and in another process (TM-02). Nothing here decides what fits; that is `compose.state`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.packet import OpenLoop, WorkingState
from muniment.core.canonical import canonical_text
from muniment.core.ports.rows import by_ids, texts
from muniment.core.ports.schema import ENTRIES, ITEMS
from muniment.errors import InvalidRecord
from muniment.memory.working_state import read_state
from muniment.packets.page import (
    BOARD,
    CLAIMS,
    CONFLICTS,
    DONE,
    FAILURES,
    HELD_OUT,
    HINTS,
    MERGED_WITH,
    NEXT_ACTIONS,
    OBJECTIVE,
)
from muniment.packets.pool import NotGathered, RunBasis
from muniment.runs.board import (
    AskedQuestion,
    Listed,
    RunCalls,
    board_of,
    failures_met,
    open_conflicts,
    open_questions,
    pinned_by,
    planned_actions,
    read_calls,
    verified_claims,
)
from muniment.store.items import latest_of_run

if TYPE_CHECKING:
    from muniment.core.policy import ComposePolicy
    from muniment.core.ports.engine import Reader
    from muniment.core.scope import Scope
    from muniment.memory.evidence import Wanted

__all__ = [
    "OPEN_LOOPS",
    "GatheredRun",
    "gather_run",
    "task_of",
]

OPEN_LOOPS = "open_loops"
"""The state key under which a caller may patch open questions."""
_HINT_KEYS = ("memory_id", "source", "score", "reason", "summary", "evidence_ids")
_MERGED_MAX = 8
"""The number of runs named in an explanation when one line covers several."""
_EVIDENCE = ("evidence_id", "side_a", "side_b")
"""Keys of a patched part that name events."""


class GatheredRun(NamedTuple):
    """The run's part of a pool."""

    state: WorkingState | None
    loops: tuple[OpenLoop, ...]
    basis: RunBasis | None
    not_gathered: tuple[NotGathered, ...]
    """The number of further items of each part of the run."""
    on_board: frozenset[str]
    """The events covered by a line of the run's board."""


class Task(NamedTuple):
    """A run's purpose."""

    objective: str
    done_definition: Any
    constraints: dict[str, Any]


def gather_run(
    reader: Reader,
    scope: Scope,
    wanted: Wanted,
    policy: ComposePolicy,
    opening: Mapping[str, Any] | None = None,
    is_meant: Callable[[str], bool] | None = None,
    *,
    has_board: bool = True,
) -> GatheredRun:
    """The run's current state. `opening` is the start data of a run that has not written yet.

    Without `has_board`, calls and orders are omitted. `is_meant` says whether a claim, call or message of a moment is
    requested.
    """
    patched = read_state(reader, scope)
    known: dict[str, Any] = {} if patched is None else patched.to_wire()
    named = _named_events(reader, scope, known)
    loops, rest = _patched_loops(known.pop(OPEN_LOOPS, None), named)
    if rest:
        known[OPEN_LOOPS] = rest
    task = _task(reader, scope, opening)
    _put_task(known, task)
    calls = read_calls(reader, scope, is_meant)
    board = board_of(calls if has_board else RunCalls([], [], {}))
    log = _read_log(reader, scope, wanted, policy, is_meant, calls, has_board=bool(board.shown))
    log.listed[BOARD] = board
    for name, found in log.listed.items():
        own = _with_patched(found.shown, known.pop(name, None), named)
        known |= {name: own} if own else {}
    known |= {part: values for part, values in ((CLAIMS, log.claims), (HINTS, log.hints)) if values}
    state = WorkingState.from_wire({"state_version": 0} | known) if known else None
    counts = {name: (len(found.shown), found.beyond) for name, found in log.listed.items()}
    counts |= {CLAIMS: (len(log.claims), log.claims_beyond), "questions": (len(log.asked), log.asked_beyond)}
    is_told = bool(task.objective or task.done_definition or task.constraints)
    sources = {id_ for found in log.listed.values() for id_ in found.sources} | {each.item_id for each in log.asked}
    basis = RunBasis(
        sources=tuple(sorted(sources | ({scope.run_id} if is_told else set()))),
        trust={str(each.loop.evidence_id): each.trust for each in log.asked},
        **({"outdated": calls.outdated} if calls.outdated else {}),
    )
    questions = _distinct((*(each.loop for each in log.asked), *loops))
    not_gathered = tuple(
        NotGathered.of(name, gathered + beyond, gathered, {"count_limit": beyond})
        for name, (gathered, beyond) in counts.items()
        if beyond
    )
    on_board = frozenset(board.sources)
    return GatheredRun(state, questions, basis if basis.sources or calls.outdated else None, not_gathered, on_board)


# -- the run's log --------------------------------------------------------------------------------------


class _Log(NamedTuple):
    """The information in a run's log."""

    listed: dict[str, Listed]
    """By part of the state."""
    claims: list[dict[str, Any]]
    claims_beyond: int
    hints: list[dict[str, Any]]
    asked: list[AskedQuestion]
    asked_beyond: int


_LOGGED = ("claim", "conflict", "failure", "next_actions", "question", "recall")
"""The kinds of items in a log."""
_NONE = Listed([], 0, ())


def _read_log(
    reader: Reader,
    scope: Scope,
    wanted: Wanted,
    policy: ComposePolicy,
    is_meant: Callable[[str], bool] | None,
    calls: RunCalls,
    *,
    has_board: bool,
) -> _Log:
    """Read the log; most runs that only talk have none of these items, so check that first."""
    if not texts(reader, ITEMS, "id", (("kind", "in", _LOGGED), ("run_id", "=", scope.run_id)), limit=1):
        return _Log({NEXT_ACTIONS: _NONE, CONFLICTS: _NONE, FAILURES: _NONE}, [], 0, [], [], 0)
    claims, claims_beyond = verified_claims(reader, scope, wanted, policy.claims_max, is_meant)
    listed = {
        NEXT_ACTIONS: planned_actions(reader, scope),
        CONFLICTS: open_conflicts(reader, scope, policy.conflicts_max),
        FAILURES: failures_met(reader, scope, policy.failures_max, calls, has_board=has_board),
    }
    asked, asked_beyond = open_questions(reader, scope, policy.questions_max)
    return _Log(listed, claims, claims_beyond, _recalled_hints(reader, scope), asked, asked_beyond)


# -- the run's purpose ----------------------------------------------------------------------------------


def _task(reader: Reader, scope: Scope, opening: Mapping[str, Any] | None) -> Task:
    run = pinned_by(reader, scope)
    if run is not None:
        return task_of(run.objective, run.done_definition)
    said = opening or {}
    return task_of(said.get("objective"), said.get("done_definition"))


def task_of(objective: Any, done_definition: Any) -> Task:
    """The pinned task, with the constraints of its done definition separated: they bind every step."""
    constraints: dict[str, Any] = {}
    if isinstance(done_definition, Mapping):
        held = done_definition.get("constraints")
        if isinstance(held, Mapping):
            constraints = {str(key): value for key, value in held.items() if value not in (None, "")}
        elif isinstance(held, list | tuple):
            constraints = {f"task {at}": value for at, value in enumerate(held, 1) if value not in (None, "")}
        elif held:
            constraints = {"task": held}
        done_definition = {key: value for key, value in done_definition.items() if key != "constraints"}
    said = objective if isinstance(objective, str) and objective.strip() else ""
    is_empty = isinstance(done_definition, str) and not done_definition.strip()
    return Task(said, None if is_empty else done_definition or None, constraints)


def _put_task(known: dict[str, Any], task: Task) -> None:
    """Add the task to the patched state. Pinned values never change (CS-05); patched ones are not lost by that."""
    if task.objective:
        patched = known.pop(OBJECTIVE, None)
        if patched is not None and patched != task.objective:
            name = "patched_objective" if known.get("goal") or not isinstance(patched, str) else "goal"
            known[name] = patched
        if known.get("goal") in (None, "", task.objective):
            known["goal"] = task.objective
        else:
            known[OBJECTIVE] = task.objective
    if task.done_definition:
        patched = known.pop(DONE, None)
        if patched is not None and patched != task.done_definition:
            known["patched_done_definition"] = patched
        known[DONE] = task.done_definition
    if task.constraints:
        held = dict(known.get("constraints") or {})
        for key, value in task.constraints.items():
            held[key if held.get(key, value) == value else f"{key} (task)"] = value
        known["constraints"] = held


# -- the caller's patches -------------------------------------------------------------------------------


class _Named(NamedTuple):
    id: str
    user_id: str
    receipt_id: str | None


def _named_events(reader: Reader, scope: Scope, known: Mapping[str, Any]) -> frozenset[str]:
    """The existing events named in patched parts, so that every citation can be resolved."""
    parts = [part for name in (OPEN_LOOPS, NEXT_ACTIONS, CONFLICTS, FAILURES) for part in _elements(known.get(name))]
    named = [
        id_
        for part in parts
        if isinstance(part, Mapping)
        for key in _EVIDENCE
        for id_ in _elements(part.get(key))
        if isinstance(id_, str)
    ]
    if not named:
        return frozenset()
    rows = by_ids(reader, ENTRIES, sorted(set(named)), into=_Named)
    return frozenset(row.id for row in rows if row.user_id == scope.user_id and row.receipt_id is None)


def _elements(given: Any) -> Sequence[Any]:
    if given is None:
        return ()
    return given if isinstance(given, list | tuple) else (given,)


def _patched_loops(given: Any, named: frozenset[str]) -> tuple[list[OpenLoop], list[Any]]:
    """Patched open questions in packet form, and the invalid rest."""
    loops: list[OpenLoop] = []
    rest: list[Any] = []
    for each in _elements(given):
        loop = _loop_of(each, named)
        if loop is None:
            rest.append(each)
        else:
            loops.append(loop)
    return loops, rest


def _loop_of(given: Any, named: frozenset[str]) -> OpenLoop | None:
    if isinstance(given, str):
        return OpenLoop(question=given, status="open") if given.strip() else None
    if not isinstance(given, Mapping):
        return None
    plain = {"status": "open"} | {key: value for key, value in given.items() if value is not None}
    if plain.get("evidence_id") not in named:
        plain.pop("evidence_id", None)
    try:
        loop = OpenLoop.from_wire(plain)
    except InvalidRecord:
        return None
    return loop if loop.question.strip() else None


def _with_patched(shown: list[dict[str, Any]], given: Any, named: frozenset[str]) -> list[Any]:
    """The logged elements, then patched ones under the same name with other words."""
    held = {_words(each) for each in shown}
    patched = [_resolved(each, named) for each in _elements(given)]
    return [*shown, *(each for each in patched if _words(each) not in held)]


def _words(element: Any) -> str:
    """The words of an element, for detecting repetition."""
    if isinstance(element, Mapping):
        said = [element.get(key) for key in ("action", "description", "why")]
        element = next((each for each in said if isinstance(each, str)), element)
    return element.strip() if isinstance(element, str) else canonical_text(element)


def _resolved(element: Any, named: frozenset[str]) -> Any:
    """An element without references to missing events."""
    if not isinstance(element, Mapping):
        return element
    kept = {key: value for key, value in element.items() if key not in _EVIDENCE}
    for key in _EVIDENCE:
        held = element.get(key)
        ids = [id_ for id_ in _elements(held) if id_ in named] if isinstance(held, str | list | tuple) else []
        if ids:
            kept[key] = ids if key != "evidence_id" else ids[0]
    return kept


def _distinct(loops: Iterable[OpenLoop]) -> tuple[OpenLoop, ...]:
    """Deduplicate questions, keeping the first."""
    found: dict[str, OpenLoop] = {}
    for loop in loops:
        found.setdefault(" ".join(loop.question.casefold().split()), loop)
    return tuple(found.values())


def _recalled_hints(reader: Reader, scope: Scope) -> list[dict[str, Any]]:
    """The hints last recalled from learned memory within the injection budget, best first; then, by id alone, those
    merged into the line of another, and the lessons held out of the run.
    """
    held = latest_of_run(reader, "recall", scope.user_id, scope.run_id)
    if held is None:
        return []
    told = held.plain()
    shown = [hint for hint in told["response"]["items"] if hint.get("injected")]
    hints = [{key: hint[key] for key in _HINT_KEYS if hint.get(key) is not None} for hint in shown]
    merged = [
        {"memory_id": memory_id, MERGED_WITH: hint["memory_id"]}
        for hint in shown
        for memory_id in hint.get("alike_ids", ())[:_MERGED_MAX]
    ]
    left = (arm["memory_id"] for arm in told.get("arms", ()) if arm["arm"] == HELD_OUT)
    return [*hints, *merged, *({"memory_id": memory_id, HELD_OUT: True} for memory_id in left)]
