"""A rule tried on an agent: its tests for the gate, and earlier tasks with it and without for replay (RC-18, RC-19).

The agent is the one that a runner is given: a callable of an `AgentTask`. Here its `run` takes down what it observes:
the tools it notes there are the tools of its answer, as in a runner. What the agent does wrong is a result. Nothing is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from muniment.contracts.rules import RegressionTestSpec, RuleRecord
from muniment.core.predicates import all_hold
from muniment.core.record import Number
from muniment.core.requests import Expect, Request, checked, within
from muniment.rules.attempts import AgentTask, Answered, RunNotes, call_agents, noted_calls
from muniment.rules.promotion.clashes import Clash, find_clashes
from muniment.rules.promotion.consolidation import applies, conditions_of
from muniment.rules.promotion.examples import Example, bad_outputs, is_form, is_vacuous
from muniment.rules.promotion.gate import outcome_of
from muniment.rules.promotion.records import TestOutcome
from muniment.rules.promotion.task_tests import TaskAsked, asks_verifier, outcome_of_task, task_key
from muniment.rules.promotion.tests import is_micro
from muniment.rules.promotion.trials import ReplayPair
from muniment.rules.rulebook.candidates import rule_line
from muniment.verify.outputs import Output, ToolCall, read_output
from muniment.verify.regression import CaseResult, broken, grade
from muniment.verify.results import UNRUN, is_pass, is_unjudged, judged, taught_by

if TYPE_CHECKING:
    from muniment.rules.judged_runs import Examples

__all__ = ["Calls", "Judge", "Trial", "Tried", "fitting_tasks", "replay_pairs", "try_tests"]

Agent = Callable[[AgentTask], Any]
_OUTPUT_BYTES_MAX = 1024 * 1024
_SECONDS_MAX = 1_000_000


class TryingRequest(Request):
    """Who answers when a rule is tried, where, and for how long."""

    agent: Annotated[Callable[..., Any], Expect("an agent is a function")]
    executor: Annotated[Executor | None, Expect("executor is one of concurrent.futures")]
    timeout_s: Annotated[Number, within("a time is seconds", above=0, at_most=_SECONDS_MAX)]


@dataclass(slots=True)
class Calls:
    """How often an agent was called."""

    made: int = 0


class Judge(NamedTuple):
    """The caller's verifier, and which judges may teach."""

    verifier: Callable[..., Any]
    judges: Collection[str]
    timeout_s: float | None = None

    def passed(self, answered: Answered, task: str) -> bool | None:
        """Whether an answer passed; what crashed or hung did not. None where nobody could say."""
        if answered.code == UNRUN:
            return None
        return False if answered.code is not None else self.says(answered.output, task)

    def says(self, output: Output, task: str) -> bool | None:
        result = taught_by(judged(self.verifier, output, task, "replay", self.timeout_s), self.judges).result
        return None if is_unjudged(result) else is_pass(result.verdict, result.outcome)

    def can_fail(self, rule: RuleRecord, task: str, failed: Iterable[Output] = ()) -> bool:
        """Does it refuse a bad answer to the task: nothing, noise, the rule said aloud, or what failed before?"""
        return any(self.says(output, task) is False for output in (*bad_outputs(rule, ())[:3], *failed))


class Trial(NamedTuple):
    """On what and how a rule is tried."""

    agent: Agent
    executor: Executor | None
    timeout_s: float
    tries: int = 1
    """How often each test is asked: most of the answers must pass. Agents draw lots."""
    calls: Calls | None = None
    """Counts the calls of the agent, where somebody wants to know."""
    notes_tools: bool = False
    """Earlier runs of the bank noted tools: an answer beside which none was noted called none."""

    def check(self) -> Trial:
        """Check that a rule can be tried with these arguments; answers the trial itself."""
        checked(TryingRequest, agent=self.agent, executor=self.executor, timeout_s=self.timeout_s)
        return self

    def answers(self, prompts: Sequence[tuple[str, str]]) -> list[Answered]:
        """What the agent answers to each task under its prompt."""
        first = 0 if self.calls is None else self.calls.made
        tasks = [
            AgentTask(task=task, prompt=prompt, hints=(), seed=None, run=RunNotes(f"trial_{first + number}"))
            for number, (task, prompt) in enumerate(prompts)
        ]
        if self.calls is not None:
            self.calls.made += len(tasks)
        answers = call_agents(
            self.agent,
            tasks,
            executor=self.executor,
            timeout_s=self.timeout_s,
            output_bytes_max=_OUTPUT_BYTES_MAX,
        )
        return [self._with_tools(answered) for answered in answers]

    def _with_tools(self, answered: Answered) -> Answered:
        """What was noted of tools counts, as in a runner; else what the answer says itself."""
        noted = noted_calls(answered.events)
        if not noted and (answered.output.tool_calls is not None or not self.notes_tools):
            return answered
        calls = tuple(ToolCall.from_wire(each) for each in noted)
        return answered._replace(output=answered.output.model_copy(update={"tool_calls": calls}))


class Tried(NamedTuple):
    """What came of a rule's tests."""

    outcomes: tuple[TestOutcome, ...]
    clashes: tuple[Clash, ...]


def try_tests(
    rule: RuleRecord,
    specs: Sequence[RegressionTestSpec],
    trial: Trial | Mapping[str, Any],
    examples: Examples,
    known: Sequence[Example],
    judge: Judge | None = None,
) -> Tried:
    """Every test on the agent, or on outputs given by test id; `known` are runs whose bad answers a test refuses."""
    by_task = {one.x_ref: one for one in known}
    asserting = [spec for spec in specs if judge is None or not asks_verifier(spec)]
    prompts = [_prompt(rule, spec, by_task.get(spec.x_ref), examples) for spec in asserting]
    results = _given(asserting, trial) if isinstance(trial, Mapping) else _asked_results(asserting, prompts, trial)
    bad, inside = bad_outputs(rule, known), fitting_runs(rule, known)
    outcomes = {
        spec.test_id: outcome_of(
            spec,
            result,
            vacuous=is_vacuous(spec, grade, bad),
            is_form=is_micro(spec) and is_form(spec, grade, inside),
        )
        for spec, result in zip(asserting, results, strict=True)
    }
    if judge is not None and isinstance(trial, Trial):
        tasks = [spec for spec in specs if asks_verifier(spec)]
        asked = [_prompt(rule, spec, by_task.get(spec.x_ref), examples) for spec in tasks]
        outcomes |= _judged_tasks(rule, tasks, asked, trial, judge)
    return Tried(tuple(outcomes[spec.test_id] for spec in specs), find_clashes(specs, grade))


def _judged_tasks(
    rule: RuleRecord,
    specs: Sequence[RegressionTestSpec],
    prompts: Sequence[tuple[str, str] | None],
    trial: Trial,
    judge: Judge,
) -> dict[str, TestOutcome]:
    """Tasks asked until one answer passes; where none does with the rule, without it too, to tell why.

    A task that the rule does not apply to is not asked: what comes of it is not the rule's doing.
    """
    wanted = list(dict.fromkeys(each for each in prompts if each is not None and each[1] != each[0]))
    mine = _until_passed(wanted, trial, judge)
    bare = {each: (each[0], each[0]) for each in wanted if not mine[each].passes}
    other = _until_passed(list(bare.values()), trial, judge)
    outcomes = {}
    for spec, prompt in zip(specs, prompts, strict=True):
        if prompt is None:
            asked, vacuous = TaskAsked(0, 0, problem="the task that it asks was forgotten"), False
        elif prompt not in mine:
            asked, vacuous = TaskAsked(0, 0, applies=False), False
        else:
            asked = mine[prompt]
            vacuous = not judge.can_fail(rule, prompt[0])
            if prompt in bare:
                without = other[bare[prompt]]
                asked = asked._replace(without_passes=without.passes, without_asked=without.asked)
        outcomes[spec.test_id] = outcome_of_task(spec, asked, vacuous=vacuous)
    return outcomes


def _until_passed(prompts: Sequence[tuple[str, str]], trial: Trial, judge: Judge) -> dict[tuple[str, str], TaskAsked]:
    """Every task once, then those that did not pass again, `tries` times at most."""
    found = {each: TaskAsked(0, 0) for each in prompts}
    for _ in range(trial.tries):
        again = [each for each in prompts if not found[each].passes]
        for each, answered in zip(again, trial.answers(again), strict=True):
            passed = judge.passed(answered, each[0])
            words = "the verifier could not say" if passed is None and not answered.words else answered.words
            done = found[each]
            found[each] = done._replace(passes=done.passes + (passed is True), asked=done.asked + 1, problem=words)
    return found


def _prompt(
    rule: RuleRecord, spec: RegressionTestSpec, example: Example | None, examples: Examples
) -> tuple[str, str] | None:
    """The task and what the agent is shown: the rule stands before it wherever it applies. None without a task."""
    task = spec.prompt if spec.prompt is not None else example.prompt if example is not None else None
    if task is None:
        task = examples.asked(spec.x_ref)
    if task is None:
        return None
    stands = spec.kind != "boundary" if example is None else applies(rule, example.features)
    return task, _with_rule(rule, task) if stands else task


def _with_rule(rule: RuleRecord, task: str) -> str:
    return f"{rule_line(rule.body)}\n{task}"


def _asked_results(
    specs: Sequence[RegressionTestSpec], prompts: Sequence[tuple[str, str] | None], trial: Trial
) -> list[CaseResult]:
    """One answer for each task that is shown in one way: its tests are asked of the same answer."""
    wanted = list(dict.fromkeys(each for each in prompts if each is not None))
    answered = trial.answers([each for each in wanted for _ in range(trial.tries)])
    answers = {each: answered[trial.tries * at : trial.tries * (at + 1)] for at, each in enumerate(wanted)}
    results = []
    for spec, prompt in zip(specs, prompts, strict=True):
        if prompt is None:
            results.append(broken(spec, "error", "the task that it asks was forgotten"))
            continue
        results.append(_most([_result(spec, each) for each in answers[prompt]]))
    return results


def _result(spec: RegressionTestSpec, answered: Answered) -> CaseResult:
    if answered.code is None:
        return grade(spec, answered.output)
    return broken(spec, "timeout" if answered.code == "tool_timeout" else "error", answered.words)


def _most(results: Sequence[CaseResult]) -> CaseResult:
    """What most of the answers came to; a tie is no pass."""
    good = [result for result in results if result.ok]
    if 2 * len(good) > len(results):
        return good[0]
    worst = next(result for result in results if not result.ok)
    message = f"{len(good)} of {len(results)} answers passed; {worst.message}" if len(results) > 1 else worst.message
    return replace(worst, message=message)


def _given(specs: Sequence[RegressionTestSpec], outputs: Mapping[str, Any]) -> list[CaseResult]:
    results = []
    for spec in specs:
        found = outputs.get(spec.test_id)
        if found is None:
            results.append(broken(spec, "error", "no output was given"))
        else:
            results.append(grade(spec, read_output(found, f"$.agent.{spec.test_id}")))
    return results


# -- replay -------------------------------------------------------------------------------------------


def replay_pairs(
    rule: RuleRecord,
    known: Iterable[Example],
    trial: Trial,
    judge: Judge,
    *,
    most: int,
) -> tuple[ReplayPair, ...]:
    """Each task `tries` times with the rule and as often without, in turn. Answers on which the verifier could not
    speak say nothing, and neither do those beside them; nor does a task of which none are left.
    """
    tasks = fitting_tasks(rule, known)[:most]
    asked = [one for one in tasks for _ in range(trial.tries)]
    answers = iter(
        trial.answers([(one.prompt, prompt) for one in asked for prompt in (_with_rule(rule, one.prompt), one.prompt)])
    )
    pairs: dict[str, ReplayPair] = {}
    for one, mine, other in zip(asked, answers, answers, strict=True):
        passed = [judge.passed(answered, one.prompt) for answered in (mine, other)]
        if passed[0] is not None and passed[1] is not None:
            _, with_passed, without_passed, times = pairs.get(one.trace_id, ReplayPair(one.trace_id, 0, 0, 0))
            pairs[one.trace_id] = ReplayPair(
                one.trace_id, with_passed + passed[0], without_passed + passed[1], times + 1
            )
    return tuple(pairs.values())


def fitting_runs(rule: RuleRecord, known: Iterable[Example]) -> list[Example]:
    """The runs that a rule would have applied to."""
    conditions = conditions_of(rule)
    return [one for one in known if all_hold(conditions, one.features)]


def fitting_tasks(rule: RuleRecord, known: Iterable[Example]) -> list[Example]:
    """The tasks that a rule applies to, each once, the newest run of it; newest first, as they come."""
    fitting = {task_key(one.prompt): one for one in reversed(fitting_runs(rule, known))}
    return list(reversed(fitting.values()))
