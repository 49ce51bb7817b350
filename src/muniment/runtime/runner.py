"""Run an agent on a task with what was learnt before, have it verified, and learn from it: mode `main`.

runner = mem.runner(agent, verifier, user_id="ana")
done = runner.run("Reach 24 with 3, 8, 3, 8.", intent={"task_family": "countdown"})
done.result.verdict, done.fold.produced

The agent is called with an `AgentTask` and answers text, an `Output`, or an object with `text`, what it used, and
`features` that it tells of itself. The
verifier is called with the `Output` and the task, and answers a `VerifierResult`, its plain form, or whether it passed.
What either raises is an outcome, told in the result; only what stops the program stops the runner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from muniment.errors import InvalidInput, InvalidRecord
from muniment.records.base import RULECRAFT_VERSION
from muniment.records.runs import VerifierResult
from muniment.records.verification import Output, Usage
from muniment.runtime.calling import outcome_of
from muniment.runtime.patches import need_grant
from muniment.runtime.recalling import bucket_given, features_given, intent_given, state_given
from muniment.semantics.buckets import parse_bucket_key

if TYPE_CHECKING:
    from muniment.records.memory import MemoryHint, ReuseSelectMeta, ReuseStateRecord
    from muniment.runtime.folding import Learned
    from muniment.runtime.memory import Memory
    from muniment.runtime.run import Run

__all__ = ["AgentTask", "Done", "Runner"]

_SCOPE = ("user_id", "agent_id", "session_id", "tenant_id", "grants")
_UNJUDGED = ("PARTIAL", "UNKNOWN")
"""What is said where the verifier itself failed: the run counts neither for nor against anything."""
_LEVELS = ("user", "agent", "tenant")
_SETTINGS: dict[str, Any] = {"recall": True, "reuse": False, "level": "user", "verifier_id": "runner"}


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What an agent is handed."""

    task: str
    prompt: str
    """The task, and before it what was recalled."""
    hints: tuple[MemoryHint, ...]
    seed: ReuseStateRecord | None
    run: Run
    """To observe tools with, and to note on."""
    features: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a task."""

    run_id: str
    output: Output
    result: VerifierResult
    learned: Learned

    @property
    def passed(self) -> bool:
        from muniment.semantics.verdicts import is_pass

        return is_pass(self.result.verdict, self.result.outcome)


class Runner:
    """Runs one agent under one verifier. Thread-safe as far as those are."""

    def __init__(
        self,
        memory: Memory,
        agent: Callable[..., Any],
        verifier: Callable[..., Any],
        policy: Mapping[str, Any] | None,
        scope: Mapping[str, Any],
    ) -> None:
        for name, given in (("agent", agent), ("verifier", verifier)):
            if not callable(given):
                raise InvalidInput(f"{name} is a function", path=f"$.{name}")
        unknown = sorted(set(scope) - set(_SCOPE))
        if unknown:
            raise InvalidInput(f"a runner has no {unknown[0]!r:.40}", path=f"$.{unknown[0]}", hint=", ".join(_SCOPE))
        if "user_id" not in scope:
            raise InvalidInput("a runner works for a user", path="$.user_id")
        if not isinstance(policy or {}, Mapping):
            raise InvalidInput("policy is an object of settings", path="$.policy", hint=", ".join(_SETTINGS))
        wrong = sorted(set(policy or {}) - set(_SETTINGS), key=str)
        if wrong:
            raise InvalidInput(f"no setting {wrong[0]!r:.40}", path=f"$.policy.{wrong[0]}", hint=", ".join(_SETTINGS))
        self._memory, self._agent, self._verifier = memory, agent, verifier
        self._settings: dict[str, Any] = _SETTINGS | dict(policy or {})
        for name, usual in _SETTINGS.items():
            if type(self._settings[name]) is not type(usual):
                raise InvalidInput(f"{name} is a {type(usual).__name__}", path=f"$.policy.{name}")
        if self._settings["level"] not in _LEVELS:
            raise InvalidInput("not a level", path="$.policy.level", hint="user, agent or tenant")
        self._scope = dict(scope)

    def run(
        self,
        task: str,
        *,
        intent: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        bucket_key: str | None = None,
        features: Mapping[str, Any] | None = None,
        query: str | None = None,
        run_id: str | None = None,
    ) -> Done:
        """Recall, call the agent, verify, learn, finish. `query` is what is recalled by, where it is not the task."""
        if not isinstance(task, str) or not task.strip():
            raise InvalidInput("a task is text", path="$.task")
        if query is not None and not isinstance(query, str):
            raise InvalidInput("a query is text", path="$.query")
        if bucket_given(bucket_key) is not None:
            parse_bucket_key(cast("str", bucket_key))
        family, features = intent_given(intent).task_family, features_given(features)
        standing = {"mode": "main"} | state_given(state).to_wire()
        run = self._memory.run(**self._scope, run_id=run_id, task_type=family or "generic")
        need_grant(run._desk(), self._settings["level"])  # before the agent works for nothing
        run.observe("user", task)
        handed, reuse = self._hand(run, task, query, intent, standing, bucket_key, features)
        output, told, crash = self._call(handed)
        if output.text:
            run.observe("assistant", output.text)
        result = crash or self._verify(output, task)
        learned = run.learn(
            result,
            intent=intent or {},
            state=standing,
            bucket_key=bucket_key,
            features=dict(features) | told,
            cost=_cost(output.usage),
            reuse=reuse,
            level=self._settings["level"],
        )
        run.finish("OBJECTIVE_ACHIEVED" if result.verdict == "PASS" else "NO_EVIDENCE")
        return Done(run.run_id, output, result, learned)

    def _hand(
        self, run: Run, task: str, query: str | None, intent: Any, state: Any, bucket_key: str | None, features: Any
    ) -> tuple[AgentTask, ReuseSelectMeta | None]:
        hints: tuple[MemoryHint, ...] = ()
        text = ""
        if self._settings["recall"]:
            recalled = run.recall(query or task, intent=intent, state=state, bucket_key=bucket_key, features=features)
            hints = tuple(hint for hint in recalled.hints if (hint.model_extra or {}).get("injected"))
            text = recalled.text
        seed, reuse = self._seed(bucket_key) if self._settings["reuse"] else (None, None)
        prompt = f"What earlier runs taught:\n{text}\n\n{task}" if text else task
        return AgentTask(task, prompt, hints, seed, run, dict(features or {})), reuse

    def _seed(self, bucket_key: str | None) -> tuple[ReuseStateRecord | None, ReuseSelectMeta | None]:
        from muniment.records.memory import ReuseStateRecord

        bank = self._memory.bank(user_id=self._scope["user_id"], tenant_id=self._scope.get("tenant_id", "default"))
        meta, _ = bank.select_seed(bucket_key=bucket_key)
        if meta.selected_state_id is None:
            return None, meta
        return ReuseStateRecord.from_wire(bank.get(meta.selected_state_id).record), meta

    def _call(self, handed: AgentTask) -> tuple[Output, dict[str, Any], VerifierResult | None]:
        """The output, the features the agent tells of itself, and the result where it failed to answer."""
        answer = outcome_of(lambda: self._agent(handed))
        error = answer.exception()
        if error is not None:
            told = f"the agent raised {type(error).__name__}: {error}"
            return Output(text=""), {}, self._failed("tool_failure", told)
        given: Any = answer.result()
        if isinstance(given, Output):
            return given, {}, None
        try:
            plain: dict[str, Any] = {"text": given} if isinstance(given, str) else dict(given)
            features = features_given(plain.pop("features", None))
            features_given({**handed.features, **features})  # both together are told of the run
            return Output.model_validate(plain), features, None
        except (InvalidInput, ValueError, TypeError):
            told = "the agent answered neither text nor an output"
            return Output(text=""), {}, self._failed("tool_output_invalid", told)

    def _verify(self, output: Output, task: str) -> VerifierResult:
        answer = outcome_of(lambda: self._verifier(output, task))
        error = answer.exception()
        if error is not None:
            return self._failed("exec_unavailable", f"the verifier raised {type(error).__name__}: {error}", _UNJUDGED)
        given = answer.result()
        if isinstance(given, VerifierResult):
            return given
        told: Any = given
        if isinstance(given, bool):
            words = {"verdict": "PASS", "outcome": "OK"} if given else {"verdict": "FAIL", "outcome": "FAIL"}
            told = {"verifier_id": self._settings["verifier_id"], **words}
        try:
            return VerifierResult.from_wire({"schema_version": RULECRAFT_VERSION, **dict(told)})
        except (InvalidRecord, ValueError, TypeError):
            return self._failed("exec_unavailable", "the verifier answered no result", _UNJUDGED)

    def _failed(self, code: str, notes: str, told: tuple[str, str] = ("FAIL", "FAIL")) -> VerifierResult:
        return VerifierResult.from_wire(
            {
                "schema_version": RULECRAFT_VERSION,
                "verifier_id": self._settings["verifier_id"],
                "verdict": told[0],
                "outcome": told[1],
                "reason_codes": [code],
                "notes": notes[:500],
            }
        )


def _cost(usage: Usage | None) -> dict[str, Any]:
    """What the agent says it used; the rest is told by the run's entries."""
    known = {} if usage is None else usage.to_wire()
    told = {key: known[key] for key in ("tokens_in", "tokens_out", "tool_calls") if key in known}
    return told | ({"latency_ms": round(known["latency_ms"])} if "latency_ms" in known else {})
