"""Attempts at one task (RC-20): planned, made, judged, repaired, put together; each a run with a log of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field

from muniment.contracts.runs import ExperimentBlock, PolicySignals, RunCost, VerifierResult
from muniment.core.outside.calling import outcome_of
from muniment.core.policy import RoutePolicy
from muniment.core.record import Absent, Integer, Record
from muniment.core.scope import Level, RunMode
from muniment.core.stats import wilson_bounds
from muniment.errors import LearningFailed, MunimentError, RunFinished
from muniment.learning.lessons.records import RunLessons
from muniment.learning.projection import trace_id_of
from muniment.learning.run_blocks import PlannedRung, RunBlocks, TaskBlock, TriedAttempt
from muniment.memory.patches import need_grant
from muniment.rules._attempts import Answered, call_agents
from muniment.rules._records import Tier
from muniment.rules._summaries import (
    Attempted,
    Selection,
    Stood,
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
from muniment.verify.judging import failure, judged
from muniment.verify.outputs import Output, ToolCall, Usage
from muniment.verify.verdicts import UNRUN, is_pass, says_nothing

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from muniment.contracts.learning import ReuseSelectMeta
    from muniment.contracts.runs import RolloutSummary, RunConfig, SynthInputs, TreeSearchBlock
    from muniment.core.policy import RolloutPolicy, TreePolicy
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.learning.folding import Learned
    from muniment.learning.stored_memory import IntentParts
    from muniment.rules._attempts import AgentTask
    from muniment.rules._records import NextStep, RouteDecision, RouteRequest
    from muniment.rules.routing import RouteAttempt
    from muniment.rules.tree_search import Searched, TreeProblem
    from muniment.store.ledger import StopReason

    Router = Callable[[RouteRequest], RouteDecision]

    Hand = Callable[..., tuple[AgentTask, ReuseSelectMeta | None]]


# == budget ===========================================================================================================

Positive = Annotated[Integer, Field(ge=1)]
Action = Literal["attempt", "repair", "synth", "stop", "escalate"]


class Caps(Record):
    """What all attempts at a task together may take. What is absent is not capped."""

    tokens_max: Absent[Positive] = None
    tool_calls_max: Absent[Positive] = None
    latency_ms_max: Absent[Positive] = None
    """Of the attempts added up, whether or not they ran side by side."""
    attempts_max: Absent[Positive] = None
    """Repairs and the synthesis are attempts too."""

    @property
    def on_cost(self) -> bool:
        """Is anything capped that is only known when an attempt is over? Then one is made after the other."""
        return any(limit is not None for limit in (self.tokens_max, self.tool_calls_max, self.latency_ms_max))


class Spent(NamedTuple):
    """What attempts took."""

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


class Known(NamedTuple):
    """How earlier runs of the same bucket fared."""

    passes: int
    n: int


class Wave(NamedTuple):
    """Attempts of one mode; `total` is how many there are to be when it is over, with those of the waves before."""

    mode: RunMode
    total: int
    tier: Tier = "hot"


class Goal(NamedTuple):
    """How far a task may be taken."""

    waves: tuple[Wave, ...]
    impact: Level = "med"
    early: bool = True
    """A confirmed pass ends it; not where attempts are made to be compared."""
    synth: bool = False
    repairs: int = 0
    hopeless: bool = False
    """Earlier runs of the kind all but never passed."""


class Made(NamedTuple):
    """What was tried so far."""

    attempts: Sequence[VerifierResult] = ()
    repairs: Sequence[VerifierResult] = ()
    has_synth: bool = False
    spent: Spent = Spent()


class Step(NamedTuple):
    """What comes next, and why: as a stable code, and in words."""

    action: Action
    code: str
    words: str
    mode: RunMode = "main"
    k: int = 0
    tier: Tier = "hot"


def goal_of(
    mode: str, policy: RoutePolicy, impact: Level = "med", k: int | None = None, known: Known | None = None
) -> Goal:
    """How far a mode goes; of what is known of the bucket, an easy or a hopeless one is tried once."""
    if mode in ("main", "sot", "tree"):
        return Goal((Wave(mode, 1),), impact)  # type: ignore[arg-type]
    if mode == "matts":  # made to be compared, so none is left out
        return Goal((Wave("matts", k or policy.k_probe, "probe"),), impact, early=False, repairs=policy.repairs_max)
    zone = None if known is None else _zone(known, policy)
    if zone is not None and k is None:
        return Goal((Wave("main", 1),), impact, repairs=policy.repairs_max, hopeless=zone == "deadzone")
    full = policy.k_full_max if impact == "high" else policy.k_full_min
    probe = Wave("kroll", min(policy.k_probe, full), "probe")
    waves = (probe, Wave("kroll", full, "full")) if k is None else (Wave("kroll", k, "probe"),)
    if mode == "auto":
        waves = (Wave("main", 1), *waves)
    return Goal(waves, impact, early=mode != "kroll" or k is None, synth=mode != "kroll", repairs=policy.repairs_max)


def next_step(goal: Goal, made: Made, caps: Caps, policy: RoutePolicy) -> Step:
    """What to do after the attempts so far."""
    results = [*made.attempts, *made.repairs]
    count = len(made.attempts)
    if goal.early and any(map(is_confirmed, results)):
        return Step("stop", "confirmed", "an attempt passed, and its outcome is confirmed")
    if made.has_synth:
        return Step("stop", "synthesised", "the synthesis was verified")
    wave = next((each for each in goal.waves if each.total > count), None)
    is_between = count in {each.total for each in goal.waves}
    passed = any(is_pass(each.verdict, each.outcome) for each in results)
    if is_between and not passed and len(made.repairs) < goal.repairs and any(map(needs_repair, made.attempts)):
        words = "it failed by its form: that is mended before anything is tried anew"
        return cut_step(Step("repair", "form", words, k=1), made, goal, caps, policy)
    if goal.hopeless and count and not passed:
        return Step("escalate", "deadzone", "runs of this kind all but never pass: decompose the task, or escalate")
    passes = sum(is_pass(each.verdict, each.outcome) for each in made.attempts)
    if _zone(Known(passes, count), policy) == "deadzone":
        return Step("escalate", "deadzone", f"{count} attempts, and no more would do: decompose the task, or escalate")
    if wave is not None:
        words = f"attempts {count + 1} to {wave.total}"
        step = Step("attempt", wave.mode, words, wave.mode, wave.total - count, wave.tier)
        return cut_step(step, made, goal, caps, policy)
    if goal.synth and count > 1:
        step = Step("synth", "synth", "none is confirmed: they are put together", "synth", 1, "full")
        return cut_step(step, made, goal, caps, policy)
    return Step("stop", "done", "all attempts were made")


def cut_step(step: Step, made: Made, goal: Goal, caps: Caps, policy: RoutePolicy) -> Step:
    """A step as far as its cost allows. What an attempt takes is known when it is over, so under a cap on cost they are
    made one by one; those of the probe are made at any cost where the impact is high."""
    spent, k = made.spent, step.k
    if caps.attempts_max is not None:
        k = min(k, caps.attempts_max - spent.attempts)
    if k > 0 and caps.on_cost:
        is_kept = step.action == "attempt" and goal.impact == "high" and len(made.attempts) < policy.k_probe
        k = int(is_kept or _fits(spent, caps))
    if k > 0:
        return step._replace(k=k)
    return Step("stop", "capped", f"after {spent.attempts} attempts nothing is left for this: {step.words}")


def _zone(known: Known, policy: RoutePolicy) -> Literal["easy", "deadzone"] | None:
    """The zone of a bucket, or of the attempts at one task, read as a router reads it."""
    if known.n < policy.deadzone_k:
        return None
    bounds = wilson_bounds(known.passes, known.n)
    is_dead = bounds.lower < policy.deadzone_rate and bounds.upper < policy.deadzone_upper
    return "deadzone" if is_dead else "easy" if bounds.lower >= policy.easy_rate else None


def _fits(spent: Spent, caps: Caps) -> bool:
    """Is there room for one more like those before it?"""
    limits = (
        (spent.tokens, caps.tokens_max),
        (spent.tool_calls, caps.tool_calls_max),
        (spent.latency_ms, caps.latency_ms_max),
    )
    return all(limit is None or _one_more(used, spent.attempts) <= limit for used, limit in limits)


def _one_more(used: int, attempts: int) -> float:
    return used + used / attempts if attempts else 0.0


# == effort ===========================================================================================================


class Plan(NamedTuple):
    """What comes next, asked after each wave of attempts."""

    next: Callable[[Sequence[Trial], Made], Step]
    rungs: tuple[PlannedRung, ...]
    """What would be tried one after another if nothing passed; caps and repairs are not foreseen."""
    decision: RouteDecision | None = None


def goal_plan(goal: Goal, caps: Caps, policy: RoutePolicy) -> Plan:
    return Plan(lambda _trials, made: next_step(goal, made, caps, policy), _goal_rungs(goal))


def has_own_tier(mode: str, decision: RouteDecision | None) -> bool:
    """Is an attempt of this mode told with a tier? A single one is, where a router chose it."""
    return decision is not None or mode not in ("main", "sot", "tree")


def _goal_rungs(goal: Goal) -> tuple[PlannedRung, ...]:
    rungs, before = [], 0
    for wave in goal.waves:
        tier = {"tier": wave.tier} if has_own_tier(wave.mode, None) else {}
        if wave.total > before:
            rungs.append(PlannedRung(mode=wave.mode, k=wave.total - before, **tier))
        before = max(before, wave.total)
    return (*rungs, *_SYNTHESIS) if goal.synth and before > 1 else tuple(rungs)


def _routed_rungs(decision: RouteDecision) -> tuple[PlannedRung, ...]:
    rungs = tuple(PlannedRung(mode=each.mode, tier=each.tier, k=each.k) for each in decision.rungs if each.k)
    if not rungs:
        return (PlannedRung(mode="main", tier="hot", k=1),)
    return (*rungs, *_SYNTHESIS) if decision.synth and sum(each.k for each in rungs) > 1 else rungs


_SYNTHESIS = (PlannedRung(mode="synth", tier="full", k=1),)


def routed_plan(decision: RouteDecision, caps: Caps, policy: RoutePolicy, *, is_parallel: bool) -> Plan:
    """Up the ladder that a router chose. Where it would try nothing the task is tried once: an answer was asked for."""
    from muniment.rules.routing import next_step as climb

    goal = Goal((), decision.impact)

    def after(trials: Sequence[Trial], made: Made) -> Step:
        if not trials and not decision.rungs:
            return Step("attempt", decision.reasons[0].code, decision.reasons[0].words, "main", 1)
        step = _step_of(climb(decision, [_climbed(each) for each in trials]), decision, trials, is_parallel)
        return step if step.action in ("stop", "escalate") else cut_step(step, made, goal, caps, policy)

    return Plan(after, _routed_rungs(decision), decision)


def signals_of(decision: RouteDecision) -> PolicySignals:
    """What the router saw: the risk of failing, what its choice wins over the next cheaper, and that for its price."""
    cheaper = decision.cheaper
    won, paid = (0.0, 0.0) if cheaper is None else (cheaper.pass_rate_lost, cheaper.cost_saved)
    return PolicySignals(
        risk_score=1 - decision.expected.pass_rate, opp_score=won, efficiency=won / paid if paid > 0 else None
    )


def _climbed(trial: Trial) -> RouteAttempt:
    from muniment.rules.routing import RouteAttempt

    result = trial.judged
    return RouteAttempt(
        result.verdict,
        result.outcome,
        trial.tier or "hot",
        trial.kind,
        tuple(result.reason_codes or ()),
        tuple(result.violated_constraints or ()),
        trial.figure,
    )


def _step_of(advised: NextStep, decision: RouteDecision, trials: Sequence[Trial], is_parallel: bool) -> Step:
    code, words = advised.reason.code, advised.reason.words
    if advised.action in ("stop", "escalate", "repair"):
        return Step(advised.action, code, words, advised.mode or "main", int(advised.action == "repair"))
    if advised.action == "synth":
        return Step("synth", code, words, "synth", 1, "full")
    rung = next(each for each in decision.rungs if each.tier == advised.action)
    made = sum(each.kind == "attempt" and each.tier == rung.tier for each in trials)
    return Step("attempt", code, words, rung.mode, rung.k - made if is_parallel else 1, rung.tier)


# == attempt records ==================================================================================================

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


# == rollout running ==================================================================================================

_MENDED_CHARS_MAX = 8_000
"""Of an answer that is to be mended."""
_UNSEEN = "tool-claim-unseen"
_UNSEEN_FEATURE = "claimed_tools_unseen"
_FEATURES_MAX = 64


class Rollout:
    """The attempts at one task."""

    def __init__(self, bench: Bench, plan: Plan, *, run_id: str | None, seed: str | None, tools: Sequence[str]) -> None:
        self._bench, self._plan = bench, plan
        self._run_id, self._seed, self._tools = run_id, seed, tools
        self._trials: list[Trial] = []
        self._selection: Selection | None = None
        self._synthesis: Trial | None = None
        self._summaries: dict[str, RolloutSummary] = {}

    def run(self) -> Done:
        steps: list[Step] = []
        while True:
            step = self._plan.next(self._trials, self._made())
            steps.append(step)
            if step.action in ("stop", "escalate"):
                return self._end(steps)
            wave = self._wave(step)
            self._call(wave)
            if all(trial.code == UNRUN for trial in wave):
                return self._end([*steps, Step("stop", UNRUN, "the executor runs nothing any more")])

    def _wave(self, step: Step) -> list[Trial]:
        if step.action == "repair":
            return [self._repair()]
        if step.action == "synth":
            return [self._synthesise()]
        return [self._attempt(step, offset) for offset in range(step.k)]

    def _made(self) -> Made:
        spent = Spent()
        for trial in self._trials:
            spent = spent.add(trial.cost)
        by_kind = {kind: [each.judged for each in self._trials if each.kind == kind] for kind in ("attempt", "repair")}
        return Made(by_kind["attempt"], by_kind["repair"], self._synthesis is not None, spent)

    # -- the three kinds of attempt -------------------------------------------------------------------

    def _begin(self, mode: RunMode, tier: Tier | None, kind: Kind, offset: int = 0) -> Trial:
        number = len(self._trials) + offset
        run_id = None if self._run_id is None else self._run_id if number == 0 else f"{self._run_id}-{number + 1}"
        run, task, reuse = self._bench.begin(run_id, mode, tier)
        if number == 0 and self._seed is None:
            self._seed = run.run_id
        return Trial(run, replace(task, mode=mode, attempt=number, tier=tier), reuse, number, kind, tier)

    def _attempt(self, step: Step, offset: int) -> Trial:
        tier = step.tier if has_own_tier(step.mode, self._plan.decision) else None
        trial = self._begin(step.mode, tier, "attempt", offset)
        policy, task = self._bench.policy, trial.task
        if step.mode in ("kroll", "matts"):
            assert self._seed is not None
            cfg = draw_config(step.mode, self._seed, trial.number, policy, self._tools)
            way = way_of(cfg)
            task = replace(task, cfg=cfg, prompt=f"{task.prompt}\n\n{way}" if way else task.prompt)
        if step.mode == "sot":
            task = replace(task, prompt=sot_prompt(task.prompt, policy.sot_turns_max))
        trial.task = task
        return trial

    def _repair(self) -> Trial:
        """The best of those that failed by their form, once more."""
        broken = [each for each in self._trials if needs_repair(each.judged)]
        mended = self._best(broken or self._trials[-1:])  # a router of the caller's own may see it otherwise
        trial = self._begin(mended.task.mode, mended.tier, "repair")
        answer = without_thoughts(mended.output.text)[:_MENDED_CHARS_MAX]
        prompt = repair_prompt(trial.task.prompt, mended.judged, answer)
        trial.task, trial.parents = replace(trial.task, cfg=mended.task.cfg, prompt=prompt), (mended.trace_id,)
        return trial

    def _synthesise(self) -> Trial:
        """Make the synthesis, from the summaries of the other attempts and nothing else of them."""
        self._selection = selection = self._select()
        trial = self._begin("synth", "full", "synth")
        prompt = synthesis_prompt(trial.task.prompt, selection.chosen, self._bench.count)
        trial.task = replace(trial.task, prompt=prompt, summaries=selection.chosen)
        trial.inputs = synthesis_inputs(selection.chosen)
        trial.parents = tuple(each.trace_id for each in selection.chosen)
        self._synthesis = trial
        return trial

    # -- calling and judging --------------------------------------------------------------------------

    def _call(self, trials: Sequence[Trial]) -> None:
        bench = self._bench
        if trials[0].task.mode == "tree":
            self._search(trials[0])
            return
        answers = call_agents(
            bench.agent,
            [trial.task for trial in trials],
            executor=bench.executor,
            timeout_s=bench.timeout_s,
            output_bytes_max=bench.policy.output_bytes_max,
        )
        fault = next((each.fault for each in answers if each.fault is not None), None)
        if fault is not None:
            for trial in (*self._trials, *trials):
                _finish(trial, "NO_EVIDENCE")
            raise fault
        for trial, answered in zip(trials, answers, strict=True):
            self._settle(trial, answered)
            self._trials.append(trial)

    def _settle(self, trial: Trial, answered: Answered) -> None:
        """What came of an attempt, told to its run and judged."""
        bench = self._bench
        trial.output, trial.features, trial.code = answered.output, dict(answered.features), answered.code
        words = answered.words
        if answered.events:
            refused = _tell_events(trial.run, answered.events)
            if refused is not None and trial.code is None:
                trial.code, words = "tool_output_invalid", refused
        if trial.task.mode == "sot" and trial.code is None:
            talk = read_talk(trial.output.text)
            trial.output, trial.signals = trial.output.model_copy(update={"text": talk.answer}), talk.signals
        self._watch(trial)
        if trial.code == "tool_timeout":  # what it still does is no part of the run
            _finish(trial, "BUDGET_EXCEEDED")
        elif trial.output.text and not _tell(trial):
            trial.code, words = "tool_output_invalid", "the agent ended its run itself"
        trial.result = bench.judge(trial.output) if trial.code is None else bench.failed(trial.code, words)
        tools = [each.name for each in trial.output.tool_calls or ()]
        trial.told = Attempted(trial.trace_id, trial.output.text, trial.judged, tools, answered.summary)
        trial.cost = self._cost(trial, answered.latency_ms)

    def _search(self, trial: Trial) -> None:
        """A tree search in place of a call; what it found is judged like any answer, what it did not find is told."""
        found = self._bench.search(trial.run, trial.task)
        if isinstance(found, str):
            trial.code, trial.result = "tool_failure", self._bench.failed("tool_failure", found)
        else:
            trial.output, trial.tree, trial.reuse = found.output, found.block, trial.reuse or found.reuse
            if trial.output.text:
                _tell(trial)
            trial.result = self._bench.judge(trial.output) if found.solved else found.result
        trial.told = Attempted(trial.trace_id, trial.output.text, trial.judged)
        trial.cost = self._cost(trial, 0)
        self._trials.append(trial)

    def _watch(self, trial: Trial) -> None:
        """What was seen of tools counts; what an agent claims beyond it is told of the run."""
        seen = [
            ToolCall(name=entry.tool.name, args=entry.tool.args or {}, ok=entry.tool.ok)
            for entry in trial.run.ledger.entries()
            if entry.kind == "tool_result" and entry.tool is not None
        ]
        if not seen and not self._bench.watched:
            return
        claimed = Counter(each.name for each in trial.output.tool_calls or ())
        unseen = (claimed - Counter(each.name for each in seen)).total()
        trial.output = trial.output.model_copy(update={"tool_calls": tuple(seen)})
        if unseen:
            trial.tags = (_UNSEEN,)
            if len({**trial.task.features, **trial.features}) < _FEATURES_MAX:
                trial.features = {_UNSEEN_FEATURE: unseen} | trial.features

    def _cost(self, trial: Trial, latency_ms: int) -> RunCost:
        count, usage = self._bench.count, trial.output.usage
        said = {} if usage is None else usage.to_wire()
        calls = len(trial.output.tool_calls or ())
        return RunCost(
            tokens_in=said.get("tokens_in", count(trial.task.prompt)),
            tokens_out=said.get("tokens_out", count(trial.output.text)),
            tool_calls=max(said.get("tool_calls", 0), calls),
            latency_ms=round(said.get("latency_ms", latency_ms)),
        )

    # -- the end --------------------------------------------------------------------------------------

    def _end(self, steps: Sequence[Step]) -> Done:
        stands = self._standing()
        alone = len(self._trials) == 1
        if not alone and self._selection is None:
            self._selection = self._select()
        failed, attempts = 0, []
        unlearnt: list[LearningFailed] = []
        for trial in self._trials:
            blocks = self._blocks(trial, failed)
            failed += not is_pass(trial.judged.verdict, trial.judged.outcome)
            try:
                learned = self._bench.learn(trial, blocks)
            except LearningFailed as error:  # the others are learnt from, and all have ended, before it is told
                unlearnt.append(error)
                continue
            attempts.append(attempt_of(trial, learned, None if alone else self._summary(trial)))
        if unlearnt:
            raise unlearnt[0]
        chosen = attempts[stands.number]
        return Done(
            chosen.run_id,
            chosen.output,
            chosen.result,
            chosen.learned,
            tuple(attempts),
            tuple(steps),
            self._made().spent,
            self._plan.decision,
            chosen.lessons,
        )

    def _best(self, trials: Sequence[Trial]) -> Trial:
        if len(trials) == 1:
            return trials[0]
        stood = [Stood(each.judged, self._summary(each).answer, each.figure) for each in trials]
        return trials[best_of(stood)]

    def _select(self) -> Selection:
        return select_summaries([self._summary(each) for each in self._trials], self._bench.policy)

    def _summary(self, trial: Trial) -> RolloutSummary:
        if trial.trace_id not in self._summaries:
            assert trial.told is not None
            made = summarise(trial.told, self._bench.count, self._bench.policy.summary_tokens_max)
            self._summaries[trial.trace_id] = made
        return self._summaries[trial.trace_id]

    def _standing(self) -> Trial:
        """The attempt that stands; the synthesis where it may take its place."""
        others = [each for each in self._trials if each is not self._synthesis]
        stands = self._best(others)
        made = self._synthesis
        return made if made is not None and replaces(made.judged, stands.judged) else stands

    def _blocks(self, trial: Trial, failed: int) -> RunBlocks:
        """What the attempt's log tells beside its entries; what it did not use is not there."""
        policy = self._bench.policy
        fields: dict[str, Any] = {"mode": trial.task.mode, "flow_tags": trial.tags}
        if len(self._trials) > 1 or sum(rung.k for rung in self._plan.rungs) > 1:
            fields["task"] = self._task(trial)
        if trial.task.mode == "sot":
            fields |= {"sot_profile": policy.sot_profile, "sot_max_turns": policy.sot_turns_max}
        optional: dict[str, Any] = {
            "sot_signals": trial.signals,
            "synth_inputs": trial.inputs,
            "tree_search": trial.tree,
            "policy_signals": None if self._plan.decision is None else signals_of(self._plan.decision),
        }
        if len(self._trials) > 1:
            fields["attempt"] = failed + 1
            selection = self._selection
            optional |= {
                "rollout_summary": self._summary(trial),
                "rollout_select": None if selection is None else selection.block,
                "experiment": self._experiment(trial),
            }
        return RunBlocks.model_validate(fields | {name: block for name, block in optional.items() if block is not None})

    def _task(self, trial: Trial) -> TaskBlock:
        """The task as a whole, with its first attempt; of the others, that they belong to it."""
        fields: dict[str, Any] = {"task_id": self._trials[0].trace_id, "number": trial.number}
        if trial.number == 0:
            fields |= {"rungs": self._plan.rungs, "attempts": tuple(map(_tried, self._trials))}
        return TaskBlock(**fields)

    def _experiment(self, trial: Trial) -> ExperimentBlock:
        """Which attempts it belongs with, and what it was made from."""
        fields: dict[str, Any] = {
            "kind": "execution_eval",
            "population_id": self._trials[0].trace_id,
            "exec_ok": trial.code is None,
        }
        if trial.code is not None:
            fields["exec_failure_class"] = trial.code
        if trial.parents:
            fields |= {"parent_ids": list(trial.parents), "mutation_ops": [trial.kind]}
        return ExperimentBlock.from_wire(fields)


def _tried(trial: Trial) -> TriedAttempt:
    """An attempt in a line. Where its verifier could not do its work, nothing is said of its passing."""
    result = trial.judged
    fields: dict[str, Any] = {"mode": trial.task.mode, "cost": trial.figure}
    fields |= {} if trial.tier is None else {"tier": trial.tier}
    if not says_nothing(result.verdict, result.outcome, result.reason_codes):
        fields["passed"] = is_pass(result.verdict, result.outcome)
    return TriedAttempt(**fields)


def _tell_events(run: Run, events: Sequence[Any]) -> str | None:
    """Tell a run what its agent observed elsewhere; what is wrong with it, where it cannot be told."""
    try:
        run.observe_many(events)
    except MunimentError as error:
        return f"what the agent observed cannot be told: {error}"
    return None


def _tell(trial: Trial) -> bool:
    """Tell the run what was answered; not where the agent has ended it."""
    try:
        trial.run.observe("assistant", trial.output.text)
    except RunFinished:
        trial.is_over = True
        return False
    return True


def _finish(trial: Trial, stop_reason: StopReason) -> None:
    """End a run without learning from it."""
    with suppress(RunFinished):  # the agent may have been first
        trial.run.finish(stop_reason)
    trial.is_over = True


# == attempt runs =====================================================================================================


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
