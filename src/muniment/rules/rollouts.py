"""Attempts at one task (RC-20): planned, made, judged, repaired and synthesised; each is a run with its own log.

A plan is a ladder of rungs, derived from a mode or a router. After each wave `next_step` decides how to continue. The
answer is the best attempt; a synthesis never replaces a confirmed pass. Learning from the attempts happens at the end,
in order, so that the same attempts leave the same records whichever finished first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast

from pydantic import Field

from muniment.contracts.runs import ExperimentBlock, PolicySignals, RunCost, VerifierResult
from muniment.core.outside.calling import outcome_of
from muniment.core.policy import RoutePolicy
from muniment.core.record import Absent, Integer, Record
from muniment.core.scope import Level, RunMode
from muniment.core.stats import Tally, wilson_bounds
from muniment.errors import LearningFailed, MunimentError, RunFinished
from muniment.learning.projection import trace_id_of
from muniment.learning.records import PlannedRung, RunBlocks, RunLessons, TaskBlock, TriedAttempt
from muniment.memory.patches import need_grant
from muniment.rules._attempts import Answered, call_agents
from muniment.rules._records import Tier
from muniment.rules._summaries import (
    Attempted,
    RankedAttempt,
    Selection,
    best_of,
    draw_config,
    is_confirmed,
    needs_repair,
    read_talk,
    repair_prompt,
    replaces,
    select_summaries,
    sot_prompt,
    summarise,
    synthesis_inputs,
    synthesis_prompt,
    way_of,
    without_thoughts,
)
from muniment.rules.routing import Verdict, hold_back, is_dead_rate
from muniment.verify.judging import failure, judged
from muniment.verify.outputs import Output, ToolCall, Usage
from muniment.verify.results import UNRUN, is_pass, says_nothing

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from muniment.contracts.learning import ReuseSelectMeta
    from muniment.contracts.runs import RolloutSummary, RunConfig, SynthInputs, TreeSearchBlock
    from muniment.core.policy import RolloutPolicy, TreePolicy
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.learning.folding import Learned
    from muniment.learning.records import IntentParts
    from muniment.rules._attempts import AgentTask
    from muniment.rules._records import RouteDecision, RouteRequest
    from muniment.rules.tree_search import Searched, TreeProblem
    from muniment.store.ledger import StopReason

    Router = Callable[[RouteRequest], RouteDecision]
    HandTask = Callable[..., tuple[AgentTask, ReuseSelectMeta | None]]

_REPAIRED_CHARS_MAX = 8_000
"""Characters of an answer shown to a repair."""
_UNSEEN = "tool-claim-unseen"
_UNSEEN_FEATURE = "claimed_tools_unseen"
_FEATURES_MAX = 64

Kind = Literal["attempt", "repair", "synth"]
Action = Literal["attempt", "repair", "synth", "stop", "escalate"]
Positive = Annotated[Integer, Field(ge=1)]


# == the ladder =======================================================================================


class Caps(Record):
    """Limits on all attempts at a task together. Absent means unlimited."""

    tokens_max: Absent[Positive] = None
    tool_calls_max: Absent[Positive] = None
    latency_ms_max: Absent[Positive] = None
    """Summed over the attempts, even if they ran in parallel."""
    attempts_max: Absent[Positive] = None
    """Repairs and the synthesis count as attempts."""

    @property
    def on_cost(self) -> bool:
        """A cap depends on figures known only after an attempt, so attempts run one by one."""
        return any(limit is not None for limit in (self.tokens_max, self.tool_calls_max, self.latency_ms_max))


class Spent(NamedTuple):
    """Summed cost of attempts."""

    attempts: int = 0
    tokens: int = 0
    tool_calls: int = 0
    latency_ms: int = 0

    def add(self, cost: RunCost) -> Spent:
        tokens = (cost.tokens_in or 0) + (cost.tokens_out or 0)
        return Spent(
            self.attempts + 1,
            self.tokens + tokens,
            self.tool_calls + (cost.tool_calls or 0),
            self.latency_ms + (cost.latency_ms or 0),
        )


class MadeAttempt(NamedTuple):
    """A finished attempt, with the fields that decide the next step."""

    result: VerifierResult
    kind: Kind = "attempt"


class Step(NamedTuple):
    """The next step, with the reason as a stable code and in words."""

    action: Action
    code: str
    words: str
    mode: RunMode = "main"
    k: int = 0
    tier: Tier | None = None


class Plan(NamedTuple):
    """The limits of a task."""

    rungs: tuple[PlannedRung, ...]
    impact: Level = "med"
    early: bool = True
    """A confirmed pass ends it; false if attempts are made for comparison."""
    synth: bool = False
    repairs: int = 0
    hopeless: bool = False
    """Earlier runs of the kind almost never passed."""
    one_by_one: bool = False
    """An early pass saves the rest of a rung."""
    decision: RouteDecision | None = None

    @property
    def whole(self) -> tuple[PlannedRung, ...]:
        """All rungs tried if nothing passes, including the synthesis; caps and repairs are not considered."""
        if not self.rungs:
            return (PlannedRung(mode="main", tier="hot", k=1),)
        is_joined = self.synth and sum(rung.k for rung in self.rungs) > 1
        return (*self.rungs, PlannedRung(mode="synth", tier="full", k=1)) if is_joined else self.rungs


def plan_mode(
    mode: str, policy: RoutePolicy, impact: Level = "med", k: int | None = None, known: Tally | None = None
) -> Plan:
    """Plan the ladder of a mode. In a bucket known to be easy or hopeless, a task is tried once."""
    if mode in ("main", "sot", "tree"):
        return Plan((PlannedRung(mode=cast("RunMode", mode), k=1),), impact)
    if mode == "matts":  # made for comparison, so none is left out
        rungs = (PlannedRung(mode="matts", tier="probe", k=k or policy.k_probe),)
        return Plan(rungs, impact, early=False, repairs=policy.repairs_max)
    if known is not None and k is None and (_is_easy(known, policy) or is_dead_rate(known)):
        plain = (PlannedRung(mode="main", k=1),)
        return Plan(plain, impact, repairs=policy.repairs_max, hopeless=is_dead_rate(known))
    totals: list[tuple[int, RunMode, Tier | None]] = [(1, "main", None)] if mode == "auto" else []
    full = policy.k_full_max if impact == "high" else policy.k_full_min
    totals += [(k, "kroll", "probe")] if k else [(min(policy.k_probe, full), "kroll", "probe"), (full, "kroll", "full")]
    ladder: list[PlannedRung] = []
    before = 0
    for total, rung_mode, tier in totals:
        if total > before:
            named: dict[str, Any] = {} if tier is None else {"tier": tier}
            ladder.append(PlannedRung(mode=rung_mode, k=total - before, **named))
        before = max(before, total)
    early = mode != "kroll" or k is None
    return Plan(tuple(ladder), impact, early=early, synth=mode != "kroll", repairs=policy.repairs_max)


def plan_route(decision: RouteDecision, *, is_parallel: bool) -> Plan:
    """Plan the ladder of a routing decision. If that would try nothing, the task is still tried once: an answer was
    requested.
    """
    rungs = tuple(PlannedRung(mode=each.mode, tier=each.tier, k=each.k) for each in decision.rungs if each.k)
    return Plan(
        rungs,
        decision.impact,
        synth=decision.synth,
        repairs=decision.repairs_left,
        one_by_one=not is_parallel,
        decision=decision,
    )


def next_step(plan: Plan, made: Sequence[MadeAttempt], spent: Spent, caps: Caps, policy: RoutePolicy) -> Step:
    """Decide how to continue after the attempts so far."""
    count = sum(each.kind == "attempt" for each in made)
    passed = any(is_pass(each.result.verdict, each.result.outcome) for each in made)
    if plan.early and any(is_confirmed(each.result) for each in made):
        return Step("stop", "confirmed", "an attempt passed, and its outcome is confirmed")
    if any(each.kind == "synth" for each in made):
        return Step("stop", "synthesised", "the synthesis was verified")
    if made and not plan.rungs:
        return _no_ladder(plan)
    repairs = sum(each.kind == "repair" for each in made)
    is_broken = any(each.kind == "attempt" and needs_repair(each.result) for each in made)
    if is_broken and not passed and repairs < plan.repairs:
        words = "it failed by its form: that is repaired before anything is tried anew"
        return _cut(Step("repair", "form", words, k=1), plan, count, spent, caps, policy)
    if made and (held := _held_back(plan, made[-1].result)) is not None:
        return held
    if plan.hopeless and count and not passed:
        return Step("escalate", "deadzone", "runs of this kind hardly ever pass: decompose the task, or escalate")
    step = _climb(plan, count)
    if step is None and not passed and is_dead_rate(Tally(0, count)):
        return Step("escalate", "deadzone", f"{count} attempts, and no more would do: decompose the task, or escalate")
    if step is None and plan.synth and count > 1:
        step = Step("synth", "synth", "none is confirmed: they are put together", "synth", 1, "full")
    if step is not None:
        return _cut(step, plan, count, spent, caps, policy)
    if plan.decision is not None and not passed and plan.impact != "low":
        return Step("escalate", "ladder_ended", f"none of {count} attempts passed: decompose the task, or escalate")
    return Step("stop", "done", "all attempts were made")


def _climb(plan: Plan, count: int) -> Step | None:
    """The next attempts on the ladder; None at its top."""
    if not plan.rungs:
        return Step("attempt", "main", "an answer was asked for", "main", 1, "hot")
    before = 0
    for rung in plan.rungs:
        left = before + rung.k - count
        if left > 0:
            k = 1 if plan.one_by_one else left
            words = f"attempt {count + 1}" if k == 1 else f"attempts {count + 1} to {count + k}"
            return Step("attempt", rung.mode, words, rung.mode, k, cast("Tier | None", rung.tier))
        before += rung.k
    return None


def _no_ladder(plan: Plan) -> Step:
    assert plan.decision is not None
    reason = plan.decision.reasons[0]
    return Step("escalate" if plan.decision.action == "escalate" else "stop", reason.code, reason.words)


def _held_back(plan: Plan, last: VerifierResult) -> Step | None:
    """Stop a routed task if another attempt would show nothing new."""
    decision = plan.decision
    if decision is None:
        return None
    codes, violated = tuple(last.reason_codes or ()), tuple(last.violated_constraints or ())
    seen = Verdict(last.verdict, last.outcome, codes, violated)
    held = hold_back(seen, plan.impact, recurs=decision.recurs, repairs_left=0)
    if held is not None:
        return Step("stop", held.code, held.words)
    if is_pass(last.verdict, last.outcome) and plan.impact != "high" and not decision.can_confirm:
        return Step("stop", "never_confirmed", "it passed, and no pass of this bucket was ever confirmed")
    return None


def _cut(step: Step, plan: Plan, count: int, spent: Spent, caps: Caps, policy: RoutePolicy) -> Step:
    """Restrict a step to the caps. An attempt's cost is known only afterwards, so under a cost cap they run one by one;
    for high impact, those of the probe run at any cost.
    """
    k = step.k if caps.attempts_max is None else min(step.k, caps.attempts_max - spent.attempts)
    if k > 0 and caps.on_cost:
        is_kept = step.action == "attempt" and plan.impact == "high" and count < policy.k_probe
        k = int(is_kept or _fits(spent, caps))
    if k > 0:
        return step._replace(k=k)
    return Step("stop", "capped", f"after {spent.attempts} attempts nothing is left for this: {step.words}")


def _fits(spent: Spent, caps: Caps) -> bool:
    """Return whether another attempt like the previous ones fits."""
    limits = (
        (spent.tokens, caps.tokens_max),
        (spent.tool_calls, caps.tool_calls_max),
        (spent.latency_ms, caps.latency_ms_max),
    )
    tried = spent.attempts
    return all(limit is None or not tried or used + used / tried <= limit for used, limit in limits)


def _is_easy(known: Tally, policy: RoutePolicy) -> bool:
    return known.n >= policy.thin_n and wilson_bounds(known.passes, known.n).lower >= policy.easy_rate


# == results ==========================================================================================

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
    """Set if there were several."""
    lessons: RunLessons = _NO_LESSONS
    """The lessons it used, those held out, and those that resulted."""

    @property
    def passed(self) -> bool:
        return is_pass(self.result.verdict, self.result.outcome)


@dataclass(frozen=True, slots=True)
class Done:
    """The best attempt at a task, and all others."""

    run_id: str
    output: Output
    result: VerifierResult
    learned: Learned
    attempts: tuple[Attempt, ...] = ()
    steps: tuple[Step, ...] = ()
    """Every step with its reason; the last says why it ended."""
    spent: Spent = _NOTHING
    decision: RouteDecision | None = None
    """The router's decision, if there was one."""
    lessons: RunLessons = _NO_LESSONS
    """For the best attempt: the lessons it used, those held out, and those that resulted."""

    @property
    def passed(self) -> bool:
        return is_pass(self.result.verdict, self.result.outcome)

    @property
    def escalate(self) -> bool:
        """More attempts would not help: decompose the task or hand it on."""
        return bool(self.steps) and self.steps[-1].action == "escalate"


# == attempts in progress =============================================================================


@dataclass(slots=True)
class PendingAttempt:
    """An attempt in progress."""

    run: Run
    task: AgentTask
    reuse: ReuseSelectMeta | None
    number: int
    kind: Kind = "attempt"
    tier: Tier | None = None
    parents: tuple[str, ...] = ()
    output: Output = field(default_factory=lambda: Output(text=""))
    result: VerifierResult | None = None
    attempted: Attempted | None = None
    """The material for a summary."""
    is_over: bool = False
    """The run was already ended."""
    features: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    code: str | None = None
    signals: dict[str, Any] | None = None
    inputs: SynthInputs | None = None
    tree: TreeSearchBlock | None = None
    cost: RunCost = field(default_factory=RunCost)
    """For the caps: counted if the agent does not report it."""

    @property
    def trace_id(self) -> str:
        return trace_id_of(self.run.run_id)

    @property
    def judged(self) -> VerifierResult:
        assert self.result is not None
        return self.result

    @property
    def figure(self) -> float:
        """The cost of the attempt as one figure: tokens, else tool calls."""
        spent = Spent().add(self.cost)
        return float(spent.tokens or spent.tool_calls)

    def observe_answer(self) -> bool:
        """Write the answer into the run; returns False if the agent has ended it."""
        try:
            self.run.observe("assistant", self.output.text)
        except RunFinished:
            self.is_over = True
            return False
        return True

    def finish(self, stop_reason: StopReason) -> None:
        """End the run without learning from it."""
        with suppress(RunFinished):  # the agent may have ended it first
            self.run.finish(stop_reason)
        self.is_over = True


class Rollout:
    """The attempts at one task."""

    def __init__(
        self,
        runner: AttemptRunner,
        plan: Plan,
        caps: Caps,
        policy: RoutePolicy,
        *,
        run_id: str | None,
        seed: str | None,
        tools: Sequence[str],
    ) -> None:
        self._runner, self._plan, self._caps, self._policy = runner, plan, caps, policy
        self._run_id, self._seed, self._tools = run_id, seed, tools
        self._attempts: list[PendingAttempt] = []
        self._selection: Selection | None = None
        self._synthesis: PendingAttempt | None = None
        self._summaries: dict[str, RolloutSummary] = {}

    def run(self) -> Done:
        steps: list[Step] = []
        while True:
            made = [MadeAttempt(each.judged, each.kind) for each in self._attempts]
            step = next_step(self._plan, made, self._spent(), self._caps, self._policy)
            steps.append(step)
            if step.action in ("stop", "escalate"):
                return self._end(steps)
            wave = self._wave(step)
            self._call(wave)
            if all(each.code == UNRUN for each in wave):
                return self._end([*steps, Step("stop", UNRUN, "the executor runs nothing any more")])

    def _spent(self) -> Spent:
        spent = Spent()
        for each in self._attempts:
            spent = spent.add(each.cost)
        return spent

    def _wave(self, step: Step) -> list[PendingAttempt]:
        if step.action == "repair":
            return [self._repair()]
        if step.action == "synth":
            return [self._synthesise()]
        return [self._attempt(step, offset) for offset in range(step.k)]

    # -- the three kinds of attempt -------------------------------------------------------------------

    def _begin(self, mode: RunMode, tier: Tier | None, kind: Kind, offset: int = 0) -> PendingAttempt:
        number = len(self._attempts) + offset
        run_id = None if self._run_id is None else self._run_id if number == 0 else f"{self._run_id}-{number + 1}"
        run, task, reuse = self._runner.begin(run_id, mode, tier)
        if number == 0 and self._seed is None:
            self._seed = run.run_id
        return PendingAttempt(run, replace(task, mode=mode, attempt=number, tier=tier), reuse, number, kind, tier)

    def _attempt(self, step: Step, offset: int) -> PendingAttempt:
        attempt = self._begin(step.mode, step.tier, "attempt", offset)
        policy, task = self._runner.policy, attempt.task
        if step.mode in ("kroll", "matts"):
            assert self._seed is not None
            cfg = draw_config(step.mode, self._seed, attempt.number, policy, self._tools)
            way = way_of(cfg)
            task = replace(task, cfg=cfg, prompt=f"{task.prompt}\n\n{way}" if way else task.prompt)
        if step.mode == "sot":
            task = replace(task, prompt=sot_prompt(task.prompt, policy.sot_turns_max))
        attempt.task = task
        return attempt

    def _repair(self) -> PendingAttempt:
        """Repeat the best attempt that failed by its form, showing the constraints it broke."""
        repaired = self._best([each for each in self._attempts if needs_repair(each.judged)])
        attempt = self._begin(repaired.task.mode, repaired.tier, "repair")
        answer = without_thoughts(repaired.output.text)[:_REPAIRED_CHARS_MAX]
        prompt = repair_prompt(attempt.task.prompt, repaired.judged, answer)
        attempt.task = replace(attempt.task, cfg=repaired.task.cfg, prompt=prompt)
        attempt.parents = (repaired.trace_id,)
        return attempt

    def _synthesise(self) -> PendingAttempt:
        """Make the synthesis, using only the summaries of the other attempts."""
        self._selection = selection = self._select()
        attempt = self._begin("synth", "full", "synth")
        prompt = synthesis_prompt(attempt.task.prompt, selection.chosen, self._runner.count)
        attempt.task = replace(attempt.task, prompt=prompt, summaries=selection.chosen)
        attempt.inputs = synthesis_inputs(selection.chosen)
        attempt.parents = tuple(each.trace_id for each in selection.chosen)
        self._synthesis = attempt
        return attempt

    # -- calling and judging --------------------------------------------------------------------------

    def _call(self, attempts: Sequence[PendingAttempt]) -> None:
        runner = self._runner
        if attempts[0].task.mode == "tree":
            self._search(attempts[0])
            return
        answers = call_agents(
            runner.agent,
            [each.task for each in attempts],
            executor=runner.executor,
            timeout_s=runner.timeout_s,
            output_bytes_max=runner.policy.output_bytes_max,
        )
        fault = next((each.fault for each in answers if each.fault is not None), None)
        if fault is not None:
            for each in (*self._attempts, *attempts):
                each.finish("NO_EVIDENCE")
            raise fault
        for each, answered in zip(attempts, answers, strict=True):
            self._settle(each, answered)
            self._attempts.append(each)

    def _settle(self, attempt: PendingAttempt, answered: Answered) -> None:
        """Write an answer into its run, and judge it."""
        runner = self._runner
        attempt.output, attempt.features, attempt.code = answered.output, dict(answered.features), answered.code
        words = answered.words
        if answered.events:
            refused = _observe_events(attempt.run, answered.events)
            if refused is not None and attempt.code is None:
                attempt.code, words = "tool_output_invalid", refused
        if attempt.task.mode == "sot" and attempt.code is None:
            talk = read_talk(attempt.output.text)
            attempt.output, attempt.signals = attempt.output.model_copy(update={"text": talk.answer}), talk.signals
        self._check_tools(attempt)
        if attempt.code == "tool_timeout":  # later actions of the agent are not part of the run
            attempt.finish("BUDGET_EXCEEDED")
        elif attempt.output.text and not attempt.observe_answer():
            attempt.code, words = "tool_output_invalid", "the agent ended its run itself"
        attempt.result = runner.judge(attempt.output) if attempt.code is None else runner.failed(attempt.code, words)
        tools = [each.name for each in attempt.output.tool_calls or ()]
        attempt.attempted = Attempted(attempt.trace_id, attempt.output.text, attempt.judged, tools, answered.summary)
        attempt.cost = self._cost(attempt, answered.latency_ms)

    def _search(self, attempt: PendingAttempt) -> None:
        """Run a tree search instead of calling the agent; a solution is judged like any answer."""
        found = self._runner.search(attempt.run, attempt.task)
        if isinstance(found, str):
            attempt.code, attempt.result = "tool_failure", self._runner.failed("tool_failure", found)
        else:
            attempt.output, attempt.tree, attempt.reuse = found.output, found.block, attempt.reuse or found.reuse
            if attempt.output.text:
                attempt.observe_answer()
            attempt.result = self._runner.judge(attempt.output) if found.solved else found.result
        attempt.attempted = Attempted(attempt.trace_id, attempt.output.text, attempt.judged)
        attempt.cost = self._cost(attempt, 0)
        self._attempts.append(attempt)

    def _check_tools(self, attempt: PendingAttempt) -> None:
        """Count the observed tool calls; other calls that the agent claims are tagged."""
        seen = [
            ToolCall(name=entry.tool.name, args=entry.tool.args or {}, ok=entry.tool.ok)
            for entry in attempt.run.ledger.entries()
            if entry.kind == "tool_result" and entry.tool is not None
        ]
        if not seen and not self._runner.watched:
            return
        claimed = Counter(each.name for each in attempt.output.tool_calls or ())
        unseen = (claimed - Counter(each.name for each in seen)).total()
        attempt.output = attempt.output.model_copy(update={"tool_calls": tuple(seen)})
        if unseen:
            attempt.tags = (_UNSEEN,)
            if len({**attempt.task.features, **attempt.features}) < _FEATURES_MAX:
                attempt.features = {_UNSEEN_FEATURE: unseen} | attempt.features

    def _cost(self, attempt: PendingAttempt, latency_ms: int) -> RunCost:
        count, usage = self._runner.count, attempt.output.usage
        said = {} if usage is None else usage.to_wire()
        calls = len(attempt.output.tool_calls or ())
        return RunCost(
            tokens_in=said.get("tokens_in", count(attempt.task.prompt)),
            tokens_out=said.get("tokens_out", count(attempt.output.text)),
            tool_calls=max(said.get("tool_calls", 0), calls),
            latency_ms=round(said.get("latency_ms", latency_ms)),
        )

    # -- the end --------------------------------------------------------------------------------------

    def _end(self, steps: Sequence[Step]) -> Done:
        best = self._best_of_all()
        alone = len(self._attempts) == 1
        if not alone and self._selection is None:
            self._selection = self._select()
        failed, attempts = 0, []
        errors: list[LearningFailed] = []
        for each in self._attempts:
            blocks = self._blocks(each, failed)
            failed += not is_pass(each.judged.verdict, each.judged.outcome)
            try:
                learned = self._runner.learn(each, blocks)
            except LearningFailed as error:  # raised after learning from all others and ending them
                errors.append(error)
                continue
            attempts.append(_attempt_of(each, learned, None if alone else self._summary(each)))
        if errors:
            raise errors[0]
        chosen = attempts[best.number]
        return Done(
            chosen.run_id,
            chosen.output,
            chosen.result,
            chosen.learned,
            tuple(attempts),
            tuple(steps),
            self._spent(),
            self._plan.decision,
            chosen.lessons,
        )

    def _best(self, attempts: Sequence[PendingAttempt]) -> PendingAttempt:
        if len(attempts) == 1:
            return attempts[0]
        return attempts[best_of([RankedAttempt(e.judged, self._summary(e).answer, e.figure) for e in attempts])]

    def _best_of_all(self) -> PendingAttempt:
        """The best attempt, or the synthesis if it may replace it."""
        best = self._best([each for each in self._attempts if each is not self._synthesis])
        made = self._synthesis
        return made if made is not None and replaces(made.judged, best.judged) else best

    def _select(self) -> Selection:
        return select_summaries([self._summary(each) for each in self._attempts], self._runner.policy)

    def _summary(self, attempt: PendingAttempt) -> RolloutSummary:
        if attempt.trace_id not in self._summaries:
            assert attempt.attempted is not None
            made = summarise(attempt.attempted, self._runner.count, self._runner.policy.summary_tokens_max)
            self._summaries[attempt.trace_id] = made
        return self._summaries[attempt.trace_id]

    def _blocks(self, attempt: PendingAttempt, failed: int) -> RunBlocks:
        """The blocks of the attempt's log that are not derived from its entries; unused ones are absent."""
        policy, decision, planned = self._runner.policy, self._plan.decision, self._plan.whole
        fields: dict[str, Any] = {"mode": attempt.task.mode, "flow_tags": attempt.tags}
        if len(self._attempts) > 1 or sum(rung.k for rung in planned) > 1:
            block: dict[str, Any] = {"task_id": self._attempts[0].trace_id, "number": attempt.number}
            if attempt.number == 0:
                block |= {"rungs": planned, "attempts": tuple(map(_tried, self._attempts))}
            fields["task"] = TaskBlock(**block)
        if attempt.task.mode == "sot":
            fields |= {"sot_profile": "sot_mini_v1", "sot_max_turns": policy.sot_turns_max}
        optional: dict[str, Any] = {
            "sot_signals": attempt.signals,
            "synth_inputs": attempt.inputs,
            "tree_search": attempt.tree,
            "policy_signals": None if decision is None else PolicySignals(risk_score=1 - decision.pass_rate),
        }
        if len(self._attempts) > 1:
            fields["attempt"] = failed + 1
            optional |= {
                "rollout_summary": self._summary(attempt),
                "rollout_select": None if self._selection is None else self._selection.block,
                "experiment": self._experiment(attempt),
            }
        return RunBlocks.model_validate(fields | {name: block for name, block in optional.items() if block is not None})

    def _experiment(self, attempt: PendingAttempt) -> ExperimentBlock:
        """The group of attempts it belongs to, and its inputs."""
        fields: dict[str, Any] = {
            "kind": "execution_eval",
            "population_id": self._attempts[0].trace_id,
            "exec_ok": attempt.code is None,
        }
        if attempt.code is not None:
            fields["exec_failure_class"] = attempt.code
        if attempt.parents:
            fields |= {"parent_ids": list(attempt.parents), "mutation_ops": [attempt.kind]}
        return ExperimentBlock.from_wire(fields)


def _attempt_of(attempt: PendingAttempt, learned: Learned, summary: RolloutSummary | None) -> Attempt:
    return Attempt(
        attempt.run.run_id,
        attempt.number,
        attempt.kind,
        attempt.task.mode,
        attempt.task.cfg,
        attempt.output,
        attempt.judged,
        learned,
        summary,
        attempt.run.learning.lessons(),
    )


def _tried(attempt: PendingAttempt) -> TriedAttempt:
    """A one-line record of an attempt. If its verifier failed, it says nothing about passing."""
    result = attempt.judged
    fields: dict[str, Any] = {"mode": attempt.task.mode, "cost": attempt.figure}
    fields |= {} if attempt.tier is None else {"tier": attempt.tier}
    if not says_nothing(result.verdict, result.outcome, result.reason_codes):
        fields["passed"] = is_pass(result.verdict, result.outcome)
    return TriedAttempt(**fields)


def _observe_events(run: Run, events: Sequence[Any]) -> str | None:
    """Write observations made elsewhere into the run; returns an error message if they are refused."""
    try:
        run.observe_many(events)
    except MunimentError as error:
        return f"what the agent observed cannot be written: {error}"
    return None


# == making attempts ==================================================================================


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """A task with its arguments, validated."""

    task: str
    query: str | None
    intent: Mapping[str, Any] | IntentParts | None
    family: str | None
    state: Mapping[str, Any]
    bucket_key: str | None
    features: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AttemptRunner:
    """The shared parts of all attempts at a task: begins, judges and ends each run, and learns from it."""

    memory: Memory
    scope: Mapping[str, Any]
    agent: Callable[..., Any]
    verifier: Callable[..., Any]
    hand: HandTask
    asked: TaskRequest
    policy: RolloutPolicy
    executor: Executor | None = None
    timeout_s: float | None = None
    watched: bool = False
    """Every tool call of the agent is observed: an unobserved call was not made."""
    level: Any = "user"
    verifier_id: str = "runner"
    lessons: Any = None
    """A lesson writer that replaces the store's."""
    tree: TreeProblem | Callable[[AgentTask], TreeProblem] | None = None
    tree_policy: TreePolicy | Mapping[str, Any] | None = None

    def begin(
        self, run_id: str | None, mode: RunMode, tier: Tier | None
    ) -> tuple[Run, AgentTask, ReuseSelectMeta | None]:
        """Begin the run of an attempt and write the task into it; returns the run and the agent's input."""
        asked = self.asked
        run = self.memory.run(**self.scope, run_id=run_id, task_type=asked.family or "generic")
        need_grant(run._writer(), self.level)  # fail before the agent does useless work
        run.observe("user", asked.task)
        state = self.state(mode, tier)
        task, reuse = self.hand(run, asked.task, asked.query, asked.intent, state, asked.bucket_key, asked.features)
        return run, task, reuse

    def state(self, mode: RunMode, tier: Tier | None) -> dict[str, Any]:
        """The run's state: the attempt's conditions, with the caller's own first."""
        return {"mode": mode} | ({} if tier is None else {"budget_tier": tier}) | dict(self.asked.state)

    def judge(self, output: Output) -> VerifierResult:
        """Judge an output; if the verifier fails, the result is unknown."""
        return judged(self.verifier, output, self.asked.task, self.verifier_id, self.timeout_s)

    def failed(self, code: str, words: str) -> VerifierResult:
        """The result of an attempt that produced nothing to judge."""
        return failure(self.verifier_id, code, words)

    def count(self, text: str) -> int:
        return self.memory._ctx.counter.count(text)

    def search(self, run: Run, task: AgentTask) -> Searched | str:
        """Run the search of mode `tree` instead of the agent; returns a message if there is nothing to search."""
        from muniment.rules.tree_search import TreeProblem, search_tree

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

    def learn(self, attempt: PendingAttempt, blocks: RunBlocks) -> Learned:
        """Learn from an attempt's run, and end it even if learning fails."""
        asked = self.asked
        try:
            return attempt.run.learning.learn(
                attempt.judged,
                intent=asked.intent or {},
                state=self.state(attempt.task.mode, attempt.tier),
                bucket_key=asked.bucket_key,
                features=dict(asked.features) | attempt.features,
                cost=_reported_cost(attempt.output.usage),
                cfg=attempt.task.cfg,
                reuse=attempt.reuse,
                blocks=blocks,
                level=self.level,
                lessons=self.lessons,
            )
        finally:
            if not attempt.is_over:
                attempt.run.finish("OBJECTIVE_ACHIEVED" if attempt.judged.verdict == "PASS" else "NO_EVIDENCE")


def _reported_cost(usage: Usage | None) -> dict[str, Any]:
    """The usage reported by the agent; the rest is counted from the run's entries."""
    known = {} if usage is None else usage.to_wire()
    counted = {key: known[key] for key in ("tokens_in", "tokens_out", "tool_calls") if key in known}
    return counted | ({"latency_ms": round(known["latency_ms"])} if "latency_ms" in known else {})
