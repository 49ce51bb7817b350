"""A rule tried on an agent: its tests for the gate, and earlier tasks with it and without for replay (RC-18, RC-19).

The agent is the one that a runner is given: a callable of an `AgentTask`. Here its `run` takes down what it observes
and forgets it. What the agent does wrong is a result. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from muniment.contracts.rules import RegressionTestSpec, RuleRecord
from muniment.core.record import Number
from muniment.core.requests import Expect, Request, checked, within
from muniment.rules.attempts import AgentTask, Answered, RunNotes, call_agents
from muniment.rules.promotion.clashes import Clash, find_clashes
from muniment.rules.promotion.consolidation import applies
from muniment.rules.promotion.examples import Example, bad_outputs, is_vacuous
from muniment.rules.promotion.gate import outcome_of
from muniment.rules.promotion.records import TestOutcome
from muniment.rules.promotion.trials import ReplayPair
from muniment.rules.rulebook.candidates import rule_line
from muniment.verify.judges import taught_by
from muniment.verify.judging import is_unjudged, judged
from muniment.verify.regression.specs import CaseResult, broken, grade
from muniment.verify.static.given_outputs import read_output
from muniment.verify.verdicts import UNRUN, is_pass

if TYPE_CHECKING:
    from muniment.rules.judged_runs import Examples

__all__ = ["Trial", "Tried", "replay_pairs", "try_tests"]

Agent = Callable[[AgentTask], Any]
_OUTPUT_BYTES_MAX = 1024 * 1024
_SECONDS_MAX = 1_000_000


class TryingRequest(Request):
    """Who answers when a rule is tried, where, and for how long."""

    agent: Annotated[Callable[..., Any], Expect("an agent is a function")]
    executor: Annotated[Executor | None, Expect("executor is one of concurrent.futures")]
    timeout_s: Annotated[Number, within("a time is seconds", above=0, at_most=_SECONDS_MAX)]


class Trial(NamedTuple):
    """On what and how a rule is tried."""

    agent: Agent
    executor: Executor | None
    timeout_s: float
    tries: int = 1
    """How often each test is asked: most of the answers must pass. Agents draw lots."""

    def check(self) -> Trial:
        """Check that a rule can be tried with these arguments; answers the trial itself."""
        checked(TryingRequest, agent=self.agent, executor=self.executor, timeout_s=self.timeout_s)
        return self

    def answers(self, prompts: Sequence[tuple[str, str]]) -> list[Answered]:
        """What the agent answers to each task under its prompt."""
        tasks = [
            AgentTask(task=task, prompt=prompt, hints=(), seed=None, run=RunNotes(f"trial_{number}"))
            for number, (task, prompt) in enumerate(prompts)
        ]
        return call_agents(
            self.agent,
            tasks,
            executor=self.executor,
            timeout_s=self.timeout_s,
            output_bytes_max=_OUTPUT_BYTES_MAX,
        )


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
) -> Tried:
    """Every test on the agent, or on outputs given by test id; `known` are runs whose bad answers a test refuses."""
    by_task = {one.x_ref: one for one in known}
    prompts = [_prompt(rule, spec, by_task.get(spec.x_ref), examples) for spec in specs]
    results = _given(specs, trial) if isinstance(trial, Mapping) else _asked_results(specs, prompts, trial)
    bad = bad_outputs(rule, known)
    outcomes = [
        outcome_of(spec, result, vacuous=is_vacuous(spec, grade, bad))
        for spec, result in zip(specs, results, strict=True)
    ]
    return Tried(tuple(outcomes), find_clashes(specs, grade))


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
    verifier: Callable[..., Any],
    *,
    most: int,
    judges: Collection[str],
) -> tuple[ReplayPair, ...]:
    """Each task once with the rule and once without. A task on which the verifier could not speak says nothing."""
    fitting = {one.prompt: one for one in reversed(list(known)) if applies(rule, one.features)}
    tasks = list(reversed(fitting.values()))[:most]  # each task once, the newest run of it
    answers = iter(
        trial.answers([(one.prompt, prompt) for one in tasks for prompt in (_with_rule(rule, one.prompt), one.prompt)])
    )
    pairs = []
    for one, mine, other in zip(tasks, answers, answers, strict=False):
        passed = [_passed(answered, verifier, one.prompt, judges) for answered in (mine, other)]
        if passed[0] is not None and passed[1] is not None:
            pairs.append(ReplayPair(one.trace_id, passed[0], passed[1]))
    return tuple(pairs)


def _passed(answered: Answered, verifier: Callable[..., Any], task: str, judges: Collection[str]) -> bool | None:
    """Whether an answer passed; what crashed or hung did not. None where nobody could say."""
    if answered.code == UNRUN:
        return None
    if answered.code is not None:
        return False
    result = taught_by(judged(verifier, answered.output, task, "replay"), judges).result
    return None if is_unjudged(result) else is_pass(result.verdict, result.outcome)
