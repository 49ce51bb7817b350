"""One attempt at a task while it is made, and what is told of it and of the task when all is done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from muniment.contracts.runs import RunCost, VerifierResult
from muniment.learning.lessons.records import RunLessons
from muniment.learning.projection import trace_id_of
from muniment.rules.rollouts.budget import Spent, Step
from muniment.verify.outputs import Output
from muniment.verify.results import is_pass

if TYPE_CHECKING:
    from muniment.contracts.learning import ReuseSelectMeta
    from muniment.contracts.runs import RolloutSummary, RunConfig, SynthInputs, TreeSearchBlock
    from muniment.core.scope import RunMode
    from muniment.handles.run import Run
    from muniment.learning.folding import Learned
    from muniment.rules.attempts import AgentTask
    from muniment.rules.rollouts.summaries import Attempted
    from muniment.rules.routing.records import RouteDecision, Tier

__all__ = ["Attempt", "Done", "Kind", "Trial", "attempt_of"]

Kind = Literal["attempt", "repair", "synth"]
_NOTHING = Spent()
_NO_LESSONS = RunLessons()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One of the attempts at a task."""

    run_id: str
    number: int
    kind: Kind
    mode: RunMode
    cfg: RunConfig | None
    output: Output
    result: VerifierResult
    learned: Learned
    summary: RolloutSummary | None = None
    """Where there were several."""
    lessons: RunLessons = _NO_LESSONS
    """Which lessons it had, which were held out of it, which came of it."""

    @property
    def passed(self) -> bool:
        return is_pass(self.result.verdict, self.result.outcome)


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a task: the attempt that stands, and all there were."""

    run_id: str
    output: Output
    result: VerifierResult
    learned: Learned
    attempts: tuple[Attempt, ...] = ()
    steps: tuple[Step, ...] = ()
    """What was done one after the other, and why; the last says why it ended."""
    spent: Spent = _NOTHING
    decision: RouteDecision | None = None
    """The router's, where there was one."""
    lessons: RunLessons = _NO_LESSONS
    """Of the attempt that stands: which lessons it had, which were held out of it, which came of it."""

    @property
    def passed(self) -> bool:
        return is_pass(self.result.verdict, self.result.outcome)

    @property
    def escalate(self) -> bool:
        """More attempts would not do: the task is to be decomposed, or handed on."""
        return bool(self.steps) and self.steps[-1].action == "escalate"


@dataclass(slots=True)
class Trial:
    """An attempt while it is made."""

    run: Run
    task: AgentTask
    reuse: ReuseSelectMeta | None
    number: int
    kind: Kind = "attempt"
    tier: Tier | None = None
    parents: tuple[str, ...] = ()
    output: Output = field(default_factory=lambda: Output(text=""))
    result: VerifierResult | None = None
    told: Attempted | None = None
    """What a summary is made from."""
    is_over: bool = False
    """The run was ended already."""
    features: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    code: str | None = None
    signals: dict[str, Any] | None = None
    inputs: SynthInputs | None = None
    tree: TreeSearchBlock | None = None
    cost: RunCost = field(default_factory=RunCost)
    """For the caps: counted where the agent does not say."""

    @property
    def trace_id(self) -> str:
        return trace_id_of(self.run.run_id)

    @property
    def judged(self) -> VerifierResult:
        assert self.result is not None
        return self.result

    @property
    def figure(self) -> float:
        """The cost of the attempt in one figure: tokens, else tool calls."""
        spent = Spent().add(self.cost)
        return float(spent.tokens or spent.tool_calls)


def attempt_of(trial: Trial, learned: Learned, summary: RolloutSummary | None) -> Attempt:
    return Attempt(
        trial.run.run_id,
        trial.number,
        trial.kind,
        trial.task.mode,
        trial.task.cfg,
        trial.output,
        trial.judged,
        learned,
        summary,
        trial.run.learning.lessons(),
    )
