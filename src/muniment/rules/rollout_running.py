"""Attempts at one task, wave by wave (RC-20): made, judged, mended, put together; each a run with a log of its own.

What comes next is decided after each wave, by the policy or by a router. The answer is the attempt that stands, and a
synthesis never takes the place of a confirmed pass. Attempts are learnt from at the end, in their order, so that the
same attempts leave the same records whichever was done first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from muniment.contracts.runs import ExperimentBlock, RunCost
from muniment.errors import LearningFailed, MunimentError, RunFinished
from muniment.learning.run_blocks import RunBlocks, TaskBlock, TriedAttempt
from muniment.rules.attempt_records import Done, Trial, attempt_of
from muniment.rules.attempts import Answered, call_agents
from muniment.rules.effort import has_own_tier, signals_of
from muniment.rules.rollouts.best_attempt import Stood, best_of, replaces
from muniment.rules.rollouts.budget import Made, Spent, Step
from muniment.rules.rollouts.jitter import draw_config, way_of
from muniment.rules.rollouts.selection import Selection, select_summaries
from muniment.rules.rollouts.sot import read_talk, sot_prompt
from muniment.rules.rollouts.summaries import Attempted, summarise
from muniment.rules.rollouts.synthesis import needs_repair, repair_prompt, synthesis_inputs, synthesis_prompt
from muniment.rules.rollouts.thoughts import without_thoughts
from muniment.verify.outputs import ToolCall
from muniment.verify.results import UNRUN, is_pass, says_nothing

if TYPE_CHECKING:
    from muniment.contracts.runs import RolloutSummary
    from muniment.core.scope import RunMode
    from muniment.handles.run import Run
    from muniment.rules.attempt_records import Kind
    from muniment.rules.attempt_runs import Bench
    from muniment.rules.effort import Plan
    from muniment.rules.routing.records import Tier
    from muniment.store.ledger import StopReason

__all__ = ["Rollout"]

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
