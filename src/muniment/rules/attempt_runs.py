"""Where the attempts at one task are made: each begun as a run, judged, learnt from, ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muniment.contracts.runs import VerifierResult
from muniment.core.outside.calling import outcome_of
from muniment.errors import LearningFailed
from muniment.memory.patches import need_grant
from muniment.verify.outputs import Output, Usage
from muniment.verify.results import failure, judged

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from muniment.contracts.learning import ReuseSelectMeta
    from muniment.core.policy import RolloutPolicy, TreePolicy
    from muniment.core.scope import RunMode
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.learning.folding import Learned
    from muniment.learning.run_blocks import RunBlocks
    from muniment.learning.stored_memory import IntentParts
    from muniment.rules.attempt_records import Trial
    from muniment.rules.attempts import AgentTask
    from muniment.rules.routing.records import Tier
    from muniment.rules.tree_searching import Searched, TreeProblem

    Hand = Callable[..., tuple[AgentTask, ReuseSelectMeta | None]]

__all__ = ["Bench", "TaskAsked"]


@dataclass(frozen=True, slots=True)
class TaskAsked:
    """A task as it was asked, checked."""

    task: str
    query: str | None
    intent: Mapping[str, Any] | IntentParts | None
    family: str | None
    state: Mapping[str, Any]
    bucket_key: str | None
    features: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """What every attempt at a task has in common."""

    memory: Memory
    scope: Mapping[str, Any]
    agent: Callable[..., Any]
    verifier: Callable[..., Any]
    hand: Hand
    asked: TaskAsked
    policy: RolloutPolicy
    executor: Executor | None = None
    timeout_s: float | None = None
    watched: bool = False
    """Every tool call of the agent is observed: one that was not seen was not made."""
    level: Any = "user"
    verifier_id: str = "runner"
    lessons: Any = None
    """Who writes lessons of its runs, where it is another than the store's."""
    tree: TreeProblem | Callable[[AgentTask], TreeProblem] | None = None
    tree_policy: TreePolicy | Mapping[str, Any] | None = None

    def begin(
        self, run_id: str | None, mode: RunMode, tier: Tier | None
    ) -> tuple[Run, AgentTask, ReuseSelectMeta | None]:
        """A run for an attempt, with the task told to it, and what its agent is handed."""
        asked = self.asked
        run = self.memory.run(**self.scope, run_id=run_id, task_type=asked.family or "generic")
        need_grant(run._writer(), self.level)  # before the agent works for nothing
        run.observe("user", asked.task)
        state = self.state(mode, tier)
        task, reuse = self.hand(run, asked.task, asked.query, asked.intent, state, asked.bucket_key, asked.features)
        return run, task, reuse

    def state(self, mode: RunMode, tier: Tier | None) -> dict[str, Any]:
        """Under which conditions an attempt runs; what the caller says of it comes first."""
        return {"mode": mode} | ({} if tier is None else {"budget_tier": tier}) | dict(self.asked.state)

    def judge(self, output: Output) -> VerifierResult:
        """What the verifier says; where it fails at that, nothing is known."""
        return judged(self.verifier, output, self.asked.task, self.verifier_id, self.timeout_s)

    def failed(self, code: str, words: str) -> VerifierResult:
        """What is said of an attempt that there is nothing to judge of."""
        return failure(self.verifier_id, code, words)

    def search(self, run: Run, task: AgentTask) -> Searched | str:
        """The search of mode `tree`, in place of an agent's attempt; in words, why there is nothing to search."""
        from muniment.rules.tree_searching import TreeProblem, search_tree

        problem = self.tree
        if not isinstance(problem, TreeProblem):
            assert problem is not None
            make = problem
            made = outcome_of(lambda: make(task), self.timeout_s)
            error = made.exception() if made.done() else TimeoutError()
            if error is not None:
                return f"the problem could not be made: {type(error).__name__}: {error}"
            problem = made.result()
        if not isinstance(problem, TreeProblem):
            return "what was made is no TreeProblem"
        return search_tree(
            run,
            problem,
            policy=self.tree_policy,
            seed=task.seed,
            bucket_key=self.asked.bucket_key,
            verifier_id=self.verifier_id,
        )

    def learn(self, trial: Trial, blocks: RunBlocks) -> Learned:
        """Learn from an attempt's run, and end it; one that cannot be learnt from has ended all the same."""
        try:
            learned = self._fold(trial, blocks)
        except LearningFailed:
            self._end(trial)
            raise
        self._end(trial)
        return learned

    def _end(self, trial: Trial) -> None:
        if not trial.is_over:
            trial.run.finish("OBJECTIVE_ACHIEVED" if trial.judged.verdict == "PASS" else "NO_EVIDENCE")

    def _fold(self, trial: Trial, blocks: RunBlocks) -> Learned:
        asked = self.asked
        return trial.run.learning.learn(
            trial.judged,
            intent=asked.intent or {},
            state=self.state(trial.task.mode, trial.tier),
            bucket_key=asked.bucket_key,
            features=dict(asked.features) | trial.features,
            cost=_cost(trial.output.usage),
            cfg=trial.task.cfg,
            reuse=trial.reuse,
            blocks=blocks,
            level=self.level,
            lessons=self.lessons,
        )

    def count(self, text: str) -> int:
        return self.memory._ctx.counter.count(text)


def _cost(usage: Usage | None) -> dict[str, Any]:
    """What the agent says it used; the rest is told by the run's entries."""
    known = {} if usage is None else usage.to_wire()
    counted = {key: known[key] for key in ("tokens_in", "tokens_out", "tool_calls") if key in known}
    return counted | ({"latency_ms": round(known["latency_ms"])} if "latency_ms" in known else {})
