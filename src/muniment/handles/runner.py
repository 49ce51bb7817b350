"""Run an agent on a task with earlier lessons, verify its output, learn from it: once, or over several attempts.

    runner = mem.runner(agent, verifier, user_id="ana")
    done = runner.run("Reach 24 with 3, 8, 3, 8.", intent={"task_family": "countdown"})
    done.result.verdict, done.learned.fold.produced
    runner.run("Reach 24 with 1, 5, 5, 5.", "auto").attempts

The agent is called with an `AgentTask` and returns text, an `Output`, or an object with `text`, its usage, `features`
it reports, and a `summary` of its attempt; it may be a coroutine function. The verifier is called with the `Output` and
the task, and returns a `VerifierResult`, its plain form, or whether it passed. An exception from either is an outcome,
recorded in the result; only what stops the program stops the runner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args

from muniment.core.policy import RolloutPolicy, RoutePolicy
from muniment.core.record import Items, Record
from muniment.core.requests import ByRule, Expect, FromOne, Request, checked, one_of
from muniment.core.scope import RunMode
from muniment.core.stats import Tally
from muniment.errors import InvalidInput, InvalidRecord
from muniment.learning.lesson_asking import lesson_writer
from muniment.learning.recalling import bucket_given, features_given, intent_given, state_given
from muniment.rules._attempts import AgentTask, RunNotes
from muniment.rules._records import RouteDecision, RouteRequest
from muniment.rules.rollouts import (
    Attempt,
    AttemptRunner,
    Caps,
    Done,
    Rollout,
    TaskRequest,
    plan_mode,
    plan_route,
)
from muniment.verify.results import parse_bucket_key

if TYPE_CHECKING:
    from muniment.contracts.learning import MemoryHint, ReuseSelectMeta, ReuseStateRecord
    from muniment.core.scope import Level
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.rules.rollouts import Plan, Router
    from muniment.rules.tree_search import TreeProblem

__all__ = ["MODES", "AgentTask", "Attempt", "Done", "RunNotes", "Runner"]

R = TypeVar("R", bound=Record)
MODES: tuple[str, ...] = (*get_args(RunMode), "auto")
"""`auto` escalates as needed: one attempt, a repair, a probe, more, a synthesis; or as a router decides."""
_SCOPE = ("user_id", "agent_id", "session_id", "tenant_id", "grants")
_K_MAX = 64
_SECONDS_MAX = 10**9
_BESIDE_RULES = ("ReasoningBank", "ReuseBuffer")


# -- arguments ----------------------------------------------------------------------------------------


def _as(kind: type[R]) -> ByRule:
    """A record, or its plain form."""
    return ByRule(lambda given, path: None if given is None else _record(given, kind, path))


def _record(given: Any, kind: type[R], path: str) -> R:
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(f"wanted an object with {', '.join(kind.model_fields)}", path=path)
    try:
        return kind.from_wire(dict(given))
    except InvalidRecord as error:
        raise error.within(path) from None


_Text = Annotated[str | None, Expect("{name} is text")]
_Switch = Annotated[bool, Expect("{name} is a bool")]
_Name = Annotated[str, Expect("{name} is a str")]
_Seconds = Annotated[
    float | None,
    Expect(f"a time is seconds, more than 0 and at most {_SECONDS_MAX}", lambda given: 0 < given <= _SECONDS_MAX),
]
_Tally = Annotated[
    Items[int] | None,
    Expect(
        "known is how many earlier runs passed, and of how many",
        lambda given: len(given) == 2 and 0 <= given[0] <= given[1],
        hint="(3, 10)",
    ),
]


class RunnerSettings(Request):
    """A runner's settings: the `policy` it is given."""

    recall: _Switch = True
    rules: _Switch = True
    reuse: _Switch = False
    watched: _Switch = False
    level: Annotated[_Name, one_of(("user", "agent", "tenant"), "not a level", hint="user, agent or tenant")] = "user"
    verifier_id: _Name = "runner"
    mode: Annotated[_Name, one_of(MODES, "not a mode", hint=", ".join(MODES))] = "main"
    timeout_s: _Seconds = None
    rollout: Annotated[RolloutPolicy | None, _as(RolloutPolicy)] = None
    route: Annotated[RoutePolicy | None, _as(RoutePolicy)] = None
    tree: Any = None


class RunnerRequest(Request):
    """The arguments of `Memory.runner`."""

    agent: Annotated[Callable[..., Any], Expect("{name} is a function")]
    verifier: Annotated[Callable[..., Any], Expect("{name} is a function")]
    router: Annotated[
        Callable[..., Any] | Literal[True] | None, Expect("router is a function of a RouteRequest, or True")
    ]
    executor: Annotated[Executor | None, Expect("executor is one of concurrent.futures")]


class RolloutRequest(Request):
    """The arguments of one task, apart from those that learning reads."""

    task: Annotated[str, Expect("a task is text", str.strip)]
    mode: Annotated[str, one_of(MODES, "{given!r:.40} is not a mode", hint=", ".join(MODES))]
    query: _Text
    run_id: _Text
    seed: _Text
    caps: Annotated[Caps | None, _as(Caps)]
    timeout_s: _Seconds
    k: Annotated[
        FromOne | None,
        Expect(f"k is how many attempts to make, from 1 to {_K_MAX}", lambda given: given <= _K_MAX),
    ]
    known: _Tally


def _settings(policy: Any) -> RunnerSettings:
    known = RunnerSettings.model_fields
    if not isinstance(policy or {}, Mapping):
        raise InvalidInput("policy is an object of settings", path="$.policy", hint=", ".join(known))
    wrong = sorted(set(policy or {}) - set(known), key=str)
    if wrong:
        raise InvalidInput(f"no setting {wrong[0]!r:.40}", path=f"$.policy.{wrong[0]}", hint=", ".join(known))
    try:
        return checked(RunnerSettings, **(policy or {}))
    except InvalidInput as error:
        raise error.within("$.policy") from None


# -- the runner ---------------------------------------------------------------------------------------


class Runner:
    """Runs one agent under one verifier. As thread-safe as those are."""

    def __init__(
        self,
        memory: Memory,
        agent: Callable[..., Any],
        verifier: Callable[..., Any],
        policy: Mapping[str, Any] | None,
        scope: Mapping[str, Any],
        executor: Executor | None = None,
        router: Router | Literal[True] | None = None,
        lessons: Any = None,
    ) -> None:
        checked(RunnerRequest, agent=agent, verifier=verifier, router=router, executor=executor)
        unknown = sorted(set(scope) - set(_SCOPE))
        if unknown:
            raise InvalidInput(f"a runner has no {unknown[0]!r:.40}", path=f"$.{unknown[0]}", hint=", ".join(_SCOPE))
        if "user_id" not in scope:
            raise InvalidInput("a runner works for a user", path="$.user_id")
        self._memory, self._agent, self._verifier = memory, agent, verifier
        self._executor, self._router = executor, router
        self._settings = settings = _settings(policy)
        self._policy = memory.policy.rollout if settings.rollout is None else settings.rollout
        self._limits = memory.policy.route if settings.route is None else settings.route
        self._scope = dict(scope)
        self._lessons = lesson_writer(lessons, memory.policy.learn.writing)

    def run(
        self,
        task: str,
        mode: str | None = None,
        *,
        intent: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        bucket_key: str | None = None,
        features: Mapping[str, Any] | None = None,
        query: str | None = None,
        run_id: str | None = None,
        k: int | None = None,
        caps: Caps | Mapping[str, Any] | None = None,
        known: tuple[int, int] | None = None,
        seed: str | None = None,
        timeout_s: float | None = None,
        tree: TreeProblem | Callable[[AgentTask], TreeProblem] | None = None,
    ) -> Done:
        """Recall, call the agent, verify, learn, finish: once in `main`, or as the mode requires.

        `main` and `sot` make one attempt, `kroll` several plain and `matts` several contrasting ones, `synth` combines
        them, `tree` searches `tree`, `auto` escalates as needed; without a mode, the router decides, if there is one.
        `k` is how many attempts to make at once. `caps` limits their total cost; `known` gives, for earlier runs of the
        bucket, how many passed of how many. `seed` makes the differences between attempts reproducible. `query` is the
        text to recall by, if not the task; `run_id` names the first attempt.
        """
        settings = self._settings
        chosen = mode if mode is not None else "auto" if self._router is not None else settings.mode
        named = {"query": query, "run_id": run_id, "seed": seed}
        bounds = {"k": k, "caps": caps, "known": known, "timeout_s": timeout_s}
        given = checked(RolloutRequest, task=task, mode=chosen, **named, **bounds)
        asked = self._task(task, query, intent, state, bucket_key, features)
        _check_tree(tree, chosen)
        attempts = AttemptRunner(
            self._memory,
            self._scope,
            self._agent,
            self._verifier,
            self._hand,
            asked,
            self._policy,
            executor=self._executor,
            timeout_s=settings.timeout_s if given.timeout_s is None else given.timeout_s,
            watched=settings.watched,
            level=settings.level,
            lessons=self._lessons,
            verifier_id=settings.verifier_id,
            tree=tree,
            tree_policy=settings.tree,
        )
        tools = intent_given(intent).required_tools or state_given(state).tool_availability or ()
        known_runs = None if given.known is None else Tally(*given.known)
        limits = given.caps or Caps()
        plan = self._plan(chosen, bucket_key, given.k, limits, known_runs)
        return Rollout(attempts, plan, limits, self._limits, run_id=run_id, seed=seed, tools=tools).run()

    def _task(self, task: Any, query: Any, intent: Any, state: Any, bucket_key: Any, features: Any) -> TaskRequest:
        """Check the arguments of a task and combine them."""
        if bucket_given(bucket_key) is not None:
            parse_bucket_key(bucket_key)
        family = intent_given(intent).task_family
        said = features_given(features)
        return TaskRequest(task, query, intent, family, state_given(state).to_wire(), bucket_key, said)

    def _plan(self, mode: str, bucket_key: str | None, k: int | None, caps: Caps, known: Tally | None) -> Plan:
        impact: Level = "med" if bucket_key is None else parse_bucket_key(bucket_key).impact
        if mode != "auto" or self._router is None:
            return plan_mode(mode, self._limits, impact, k, known)
        given = {"impact": impact, "bucket_key": bucket_key, "cost_max": caps.tokens_max}
        request = RouteRequest.from_wire({name: value for name, value in given.items() if value is not None})
        decision = self._route(request) if self._router is True else self._router(request)
        if not isinstance(decision, RouteDecision):
            raise InvalidInput("a router answers a RouteDecision", path="$.router")
        return plan_route(decision, is_parallel=self._executor is not None and not caps.on_cost)

    def _route(self, request: RouteRequest) -> RouteDecision:
        """Ask the router how to try the task, based on the runs of the bank that this runner learns into."""
        level, scope = self._settings.level, self._scope
        named = {} if level == "tenant" else {f"{level}_id": scope.get(f"{level}_id", "agent")}
        return self._memory.learning.route(request, tenant_id=scope.get("tenant_id", "default"), **named)

    def _hand(
        self, run: Run, task: str, query: str | None, intent: Any, state: Any, bucket_key: str | None, features: Any
    ) -> tuple[AgentTask, ReuseSelectMeta | None]:
        hints: tuple[MemoryHint, ...] = ()
        text = rules = ""
        known = {"intent": intent, "state": state, "bucket_key": bucket_key, "features": features}
        if self._settings.rules:
            rules = run.learning.select_rules(**known).text
        if self._settings.recall:
            sources = _BESIDE_RULES if self._settings.rules else None  # rules are handled separately
            recalled = run.learning.recall(query or task, sources=sources, **known)
            hints = tuple(hint for hint in recalled.hints if (hint.model_extra or {}).get("injected"))
            text = recalled.text
        seed, reuse = self._seed(bucket_key) if self._settings.reuse else (None, None)
        parts = (rules, f"What earlier runs taught:\n{text}" if text else "", task)
        prompt = "\n\n".join(part for part in parts if part)
        return AgentTask(task, prompt, hints, seed, run, dict(features or {}), rules=rules), reuse

    def _seed(self, bucket_key: str | None) -> tuple[ReuseStateRecord | None, ReuseSelectMeta | None]:
        from muniment.contracts.learning import ReuseStateRecord

        bank = self._memory.bank(user_id=self._scope["user_id"], tenant_id=self._scope.get("tenant_id", "default"))
        meta, _ = bank.select_seed(bucket_key=bucket_key)
        if meta.selected_state_id is None:
            return None, meta
        return ReuseStateRecord.from_wire(bank.get(meta.selected_state_id).record), meta


def _check_tree(tree: Any, mode: str) -> None:
    if tree is None and mode != "tree":
        return
    from muniment.rules.tree_search import TreeProblem

    is_one = isinstance(tree, TreeProblem) or callable(tree)
    if not is_one or mode != "tree":
        hint = "mode='tree', tree=TreeProblem(root, expand, verify), or a function that makes one"
        raise InvalidInput("tree is the problem that mode tree searches", path="$.tree", hint=hint)
