"""Run an agent on a task with what was learnt before, have it verified, learn from it: once, or as often as it takes.

runner = mem.runner(agent, verifier, user_id="ana")
done = runner.run("Reach 24 with 3, 8, 3, 8.", intent={"task_family": "countdown"})
done.result.verdict, done.learned.fold.produced
runner.run("Reach 24 with 1, 5, 5, 5.", "auto").attempts

The agent is called with an `AgentTask` and answers text, an `Output`, or an object with `text`, what it used,
`features` that it tells of itself, and a `summary` of its attempt; it may be a coroutine function. The verifier is
called with the `Output` and the task, and answers a `VerifierResult`, its plain form, or whether it passed. What either
raises is an outcome, told in the result; only what stops the program stops the runner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from muniment.core.numbers import whole
from muniment.core.policy.rollouts import RolloutPolicy
from muniment.core.policy.routing import RoutePolicy
from muniment.core.record import Record
from muniment.core.vocabulary import RunMode
from muniment.errors import InvalidInput, InvalidRecord
from muniment.learning.recalling import bucket_given, features_given, intent_given, state_given
from muniment.rules.attempt_records import Attempt, Done
from muniment.rules.attempt_runs import Bench, TaskAsked
from muniment.rules.attempts import AgentTask, RunNotes
from muniment.rules.effort import goal_plan, routed_plan
from muniment.rules.rollout_running import Rollout
from muniment.rules.rollouts.budget import Caps, Known, goal_of
from muniment.rules.routing.records import RouteDecision, RouteRequest
from muniment.verify.buckets import parse_bucket_key

if TYPE_CHECKING:
    from muniment.contracts.learned_memory import MemoryHint, ReuseSelectMeta, ReuseStateRecord
    from muniment.core.vocabulary import Level
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.rules.effort import Plan, Router
    from muniment.rules.tree_searching import TreeProblem

__all__ = ["MODES", "AgentTask", "Attempt", "Done", "RunNotes", "Runner"]

R = TypeVar("R", bound=Record)
MODES: tuple[str, ...] = (*get_args(RunMode), "auto")
"""`auto` goes as far as it takes: one attempt, a repair, a probe, more, a synthesis; or as a router says."""
_SCOPE = ("user_id", "agent_id", "session_id", "tenant_id", "grants")
_LEVELS = ("user", "agent", "tenant")
_K_MAX = 64
_SECONDS_MAX = 10**9
_BESIDE_RULES = ("ReasoningBank", "ReuseBuffer")
_SETTINGS: dict[str, Any] = {
    "recall": True,
    "rules": True,
    "reuse": False,
    "watched": False,
    "level": "user",
    "verifier_id": "runner",
    "mode": "main",
    "timeout_s": None,
    "rollout": None,
    "route": None,
    "tree": None,
}


class Runner:
    """Runs one agent under one verifier. Thread-safe as far as those are."""

    def __init__(
        self,
        memory: Memory,
        agent: Callable[..., Any],
        verifier: Callable[..., Any],
        policy: Mapping[str, Any] | None,
        scope: Mapping[str, Any],
        executor: Executor | None = None,
        router: Router | Literal[True] | None = None,
    ) -> None:
        for name, given in (("agent", agent), ("verifier", verifier)):
            if not callable(given):
                raise InvalidInput(f"{name} is a function", path=f"$.{name}")
        if router not in (None, True) and not callable(router):
            raise InvalidInput("router is a function of a RouteRequest, or True", path="$.router")
        if executor is not None and not isinstance(executor, Executor):
            raise InvalidInput("executor is one of concurrent.futures", path="$.executor")
        unknown = sorted(set(scope) - set(_SCOPE))
        if unknown:
            raise InvalidInput(f"a runner has no {unknown[0]!r:.40}", path=f"$.{unknown[0]}", hint=", ".join(_SCOPE))
        if "user_id" not in scope:
            raise InvalidInput("a runner works for a user", path="$.user_id")
        self._memory, self._agent, self._verifier = memory, agent, verifier
        self._executor, self._router = executor, router
        self._settings = _settings(policy)
        own, route = self._settings["rollout"], self._settings["route"]
        self._policy = memory.policy.rollout if own is None else _record(own, RolloutPolicy, "$.policy.rollout")
        self._limits = memory.policy.route if route is None else _record(route, RoutePolicy, "$.policy.route")
        self._scope = dict(scope)

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
        """Recall, call the agent, verify, learn, finish: once in `main`, or as the mode has it.

        `main` and `sot` make one attempt, `kroll` several plain and `matts` several contrasting ones, `synth` puts them
        together, `tree` searches `tree`, `auto` goes as far as it takes; without a mode, the router decides, if there
        is one. `k` is how many attempts to make at once. `caps` is what all may cost; `known`, of earlier runs of the
        bucket, how many passed of how many. `seed` makes attempts differ in the same way again. `query` is what is
        recalled by, where it is not the task; `run_id` names the first attempt.
        """
        asked = self._task_asked(task, query, intent, state, bucket_key, features)
        chosen = mode if mode is not None else "auto" if self._router is not None else self._settings["mode"]
        if chosen not in MODES:
            raise InvalidInput(f"{chosen!r:.40} is not a mode", path="$.mode", hint=", ".join(MODES))
        _check_tree(tree, chosen)
        _check_texts(query=query, run_id=run_id, seed=seed)
        most = Caps() if caps is None else _record(caps, Caps, "$.caps")
        settings = self._settings
        bench = Bench(
            self._memory,
            self._scope,
            self._agent,
            self._verifier,
            self._hand,
            asked,
            self._policy,
            executor=self._executor,
            timeout_s=_seconds(timeout_s, "$.timeout_s") if timeout_s is not None else settings["timeout_s"],
            watched=settings["watched"],
            level=settings["level"],
            verifier_id=settings["verifier_id"],
            tree=tree,
            tree_policy=settings["tree"],
        )
        tools = intent_given(intent).required_tools or state_given(state).tool_availability or ()
        plan = self._plan(chosen, bucket_key, _attempts(k), most, _known(known))
        return Rollout(bench, plan, run_id=run_id, seed=seed, tools=tools).run()

    def _task_asked(self, task: Any, query: Any, intent: Any, state: Any, bucket_key: Any, features: Any) -> TaskAsked:
        """Check the arguments of a task and put them together."""
        if not isinstance(task, str) or not task.strip():
            raise InvalidInput("a task is text", path="$.task")
        if bucket_given(bucket_key) is not None:
            parse_bucket_key(bucket_key)
        family = intent_given(intent).task_family
        said = features_given(features)
        return TaskAsked(task, query, intent, family, state_given(state).to_wire(), bucket_key, said)

    def _plan(self, mode: str, bucket_key: str | None, k: int | None, caps: Caps, known: Known | None) -> Plan:
        impact: Level = "med" if bucket_key is None else parse_bucket_key(bucket_key).impact
        if mode != "auto" or self._router is None:
            return goal_plan(goal_of(mode, self._limits, impact, k, known), caps, self._limits)
        is_parallel = self._executor is not None and not caps.on_cost
        told = {"impact": impact, "is_parallel": is_parallel, "bucket_key": bucket_key, "cost_max": caps.tokens_max}
        request = RouteRequest.from_wire({name: value for name, value in told.items() if value is not None})
        decision = self._route(request) if self._router is True else self._router(request)
        if not isinstance(decision, RouteDecision):
            raise InvalidInput("a router answers a RouteDecision", path="$.router")
        return routed_plan(decision, caps, self._limits, is_parallel=is_parallel)

    def _route(self, request: RouteRequest) -> RouteDecision:
        """Ask the router how to try the task, by the runs of the bank that this runner learns into."""
        level, scope = self._settings["level"], self._scope
        named = {} if level == "tenant" else {f"{level}_id": scope.get(f"{level}_id", "agent")}
        return self._memory.learning.route(request, tenant_id=scope.get("tenant_id", "default"), **named)

    def _hand(
        self, run: Run, task: str, query: str | None, intent: Any, state: Any, bucket_key: str | None, features: Any
    ) -> tuple[AgentTask, ReuseSelectMeta | None]:
        hints: tuple[MemoryHint, ...] = ()
        text = rules = ""
        known = {"intent": intent, "state": state, "bucket_key": bucket_key, "features": features}
        if self._settings["rules"]:
            rules = run.learning.select_rules(**known).text
        if self._settings["recall"]:
            sources = _BESIDE_RULES if self._settings["rules"] else None  # a rule comes through its own door
            recalled = run.learning.recall(query or task, sources=sources, **known)
            hints = tuple(hint for hint in recalled.hints if (hint.model_extra or {}).get("injected"))
            text = recalled.text
        seed, reuse = self._seed(bucket_key) if self._settings["reuse"] else (None, None)
        parts = (rules, f"What earlier runs taught:\n{text}" if text else "", task)
        prompt = "\n\n".join(part for part in parts if part)
        return AgentTask(task, prompt, hints, seed, run, dict(features or {}), rules=rules), reuse

    def _seed(self, bucket_key: str | None) -> tuple[ReuseStateRecord | None, ReuseSelectMeta | None]:
        from muniment.contracts.learned_memory import ReuseStateRecord

        bank = self._memory.bank(user_id=self._scope["user_id"], tenant_id=self._scope.get("tenant_id", "default"))
        meta, _ = bank.select_seed(bucket_key=bucket_key)
        if meta.selected_state_id is None:
            return None, meta
        return ReuseStateRecord.from_wire(bank.get(meta.selected_state_id).record), meta


# -- what callers give --------------------------------------------------------------------------------


def _settings(policy: Any) -> dict[str, Any]:
    if not isinstance(policy or {}, Mapping):
        raise InvalidInput("policy is an object of settings", path="$.policy", hint=", ".join(_SETTINGS))
    wrong = sorted(set(policy or {}) - set(_SETTINGS), key=str)
    if wrong:
        raise InvalidInput(f"no setting {wrong[0]!r:.40}", path=f"$.policy.{wrong[0]}", hint=", ".join(_SETTINGS))
    settings: dict[str, Any] = _SETTINGS | dict(policy or {})
    for name, usual in _SETTINGS.items():
        if usual is not None and type(settings[name]) is not type(usual):
            raise InvalidInput(f"{name} is a {type(usual).__name__}", path=f"$.policy.{name}")
    if settings["level"] not in _LEVELS:
        raise InvalidInput("not a level", path="$.policy.level", hint="user, agent or tenant")
    if settings["mode"] not in MODES:
        raise InvalidInput("not a mode", path="$.policy.mode", hint=", ".join(MODES))
    if settings["timeout_s"] is not None:
        settings["timeout_s"] = _seconds(settings["timeout_s"], "$.policy.timeout_s")
    return settings


def _record(given: Any, kind: type[R], path: str) -> R:
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(f"wanted an object with {', '.join(kind.model_fields)}", path=path)
    try:
        return kind.from_wire(dict(given))
    except InvalidRecord as error:
        raise error.within(path) from None


def _check_tree(tree: Any, mode: str) -> None:
    if tree is None and mode != "tree":
        return
    from muniment.rules.tree_searching import TreeProblem

    is_one = isinstance(tree, TreeProblem) or callable(tree)
    if not is_one or mode != "tree":
        hint = "mode='tree', tree=TreeProblem(root, expand, verify), or a function that makes one"
        raise InvalidInput("tree is the problem that mode tree searches", path="$.tree", hint=hint)


def _seconds(given: Any, path: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= _SECONDS_MAX:
        raise InvalidInput(f"a time is seconds, more than 0 and at most {_SECONDS_MAX}", path=path)
    return float(given)


def _attempts(k: Any) -> int | None:
    k = whole(k)
    if k is None or (type(k) is int and 1 <= k <= _K_MAX):
        return k
    raise InvalidInput(f"k is how many attempts to make, from 1 to {_K_MAX}", path="$.k")


def _known(given: Any) -> Known | None:
    if given is None:
        return None
    match given:
        case (int(passes), int(n)) if 0 <= passes <= n and not isinstance(passes, bool) and not isinstance(n, bool):
            return Known(passes, n)
    raise InvalidInput("known is how many earlier runs passed, and of how many", path="$.known", hint="(3, 10)")


def _check_texts(**given: Any) -> None:
    for name, value in given.items():
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{name} is text", path=f"$.{name}")
