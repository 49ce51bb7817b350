"""Patterning over a function of the caller's that trains and evaluates (RC-24): measured, solved, then tried.

Offline: no run, no ledger and no store is touched, and nothing that a run loads imports this. What comes back is a
document. A function that crashes, hangs on an executor or answers nonsense is a typed error that names the evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future
from functools import partial
from typing import Any, NamedTuple, Protocol

from muniment.contracts.rules import PatterningObservable, PatterningPlan, PatterningProbe
from muniment.contracts.runs import EventLog
from muniment.core.outside.calling import outcome_of
from muniment.core.policy import PatterningPolicy
from muniment.errors import EvaluationFailed, InvalidInput
from muniment.rules.patterning.levers import moved, named, planned_steps, read_levers
from muniment.rules.patterning.observables import check_observables, read_values
from muniment.rules.patterning.planning import make_plan
from muniment.rules.patterning.rates import read_rates, row_of_log
from muniment.rules.patterning.records import PatterningEvaluation, PatterningMeasurements
from muniment.rules.patterning.stages import (
    Trial,
    applied,
    canaried,
    check_stage,
    judge_evaluations,
    planned_weights,
    replayed,
    stage_of,
)
from muniment.rules.patterning.stages import (
    base_weights as base_weights_of,
)

__all__ = ["TrainAndEvaluate", "measure_response", "observe_logs", "run_patterning", "validate_plan"]


class TrainAndEvaluate(Protocol):
    """Train on data mixed by these weights (they add up to 1), with this seed; answer each observable's value."""

    def __call__(self, weights: Mapping[str, float], seed: int, /) -> Mapping[str, float]: ...


class _Measurement(NamedTuple):
    """One measurement to be made: under these weights, with this seed."""

    label: str
    weights: dict[str, float]
    seed: int


def run_patterning(
    train_and_evaluate: TrainAndEvaluate,
    *,
    probes: Sequence[PatterningProbe | Mapping[str, Any]],
    observables: Sequence[PatterningObservable | Mapping[str, Any]],
    base_weights: Mapping[str, float],
    base_dataset: str,
    seed: int,
    generated_at: str,
    policy: PatterningPolicy | None = None,
    executor: Executor | None = None,
    replay: TrainAndEvaluate | None = None,
    canary: TrainAndEvaluate | None = None,
    patterning_id: str | None = None,
) -> PatterningPlan:
    """Measure χ near the base weights, solve for what the observables ask, and try the plan.

    With `replay` the plan is replayed (evaluated on earlier tasks), with `canary` too it is tried and, where both hold,
    applied. Without them it stays a proposal; `validate_plan` takes it on later.
    """
    numbers = policy or PatterningPolicy()
    measured = measure_response(
        train_and_evaluate,
        probes=probes,
        observables=observables,
        base_weights=base_weights,
        base_dataset=base_dataset,
        seed=seed,
        policy=numbers,
        executor=executor,
    )
    plan = make_plan(measured, numbers, generated_at=generated_at, patterning_id=patterning_id)
    if replay is None and canary is None:
        return plan
    return validate_plan(plan, replay=replay, canary=canary, seed=seed, policy=numbers, executor=executor)


def measure_response(
    train_and_evaluate: TrainAndEvaluate,
    *,
    probes: Sequence[PatterningProbe | Mapping[str, Any]],
    observables: Sequence[PatterningObservable | Mapping[str, Any]],
    base_weights: Mapping[str, float],
    base_dataset: str,
    seed: int,
    policy: PatterningPolicy,
    executor: Executor | None = None,
) -> PatterningMeasurements:
    """Evaluate the base and a step or two for each probe, `repeats` times with seeds from `seed` on."""
    asked = PatterningMeasurements.from_wire(
        {
            "base_dataset": base_dataset,
            "probes": [_wire(each) for each in probes],
            "observables": [_wire(each) for each in observables],
            "base_weights": dict(base_weights),
        }
    )
    check_observables(asked.observables)
    levers = read_levers(asked.probes, asked.base_weights, policy)
    planned = [(step, seed + again) for again in range(policy.repeats) for step in planned_steps(levers, policy)]
    questions = [
        _Measurement(
            "the base" if step.probe is None else f"{levers.ids[step.probe]} {step.size:+g}",
            named(levers, moved(levers, step)),
            its_seed,
        )
        for step, its_seed in planned
    ]
    answers = _evaluate(train_and_evaluate, questions, asked.observables, policy, executor)
    evaluations = [
        PatterningEvaluation(
            probe_id=None if step.probe is None else levers.ids[step.probe],
            step=step.size,
            seed=its_seed,
            values=values,
        )
        for (step, its_seed), values in zip(planned, answers, strict=True)
    ]
    return asked.model_copy(update={"evaluations": tuple(evaluations)})


def validate_plan(
    plan: PatterningPlan,
    *,
    replay: TrainAndEvaluate | None = None,
    canary: TrainAndEvaluate | None = None,
    seed: int,
    policy: PatterningPolicy | None = None,
    executor: Executor | None = None,
) -> PatterningPlan:
    """Take a plan on: replay, then canary, then applied. What regresses is rolled back and goes no further."""
    numbers = policy or PatterningPolicy()

    def tried(judge: TrainAndEvaluate) -> Trial:
        return _compare(plan, judge, seed, numbers, executor)

    check_stage(
        plan, "replayed" if replay is None else "planned", "tried in a canary" if replay is None else "replayed"
    )
    if replay is not None:
        plan = replayed(plan, tried(replay))
    if canary is not None and stage_of(plan) not in ("rolled_back", "failed"):
        plan = canaried(plan, tried(canary))
    return applied(plan) if stage_of(plan) == "canaried" else plan


def observe_logs(
    logs: Iterable[EventLog], observables: Sequence[PatterningObservable | Mapping[str, Any]]
) -> dict[str, float]:
    """The observables as the logs of runs show them, such as `mem.bank(...).event_logs()`."""
    read = [each if isinstance(each, PatterningObservable) else PatterningObservable.from_wire(each)
            for each in observables]  # fmt: skip
    return read_rates(map(row_of_log, logs), read)


def _wire(given: PatterningProbe | PatterningObservable | Mapping[str, Any]) -> Any:
    return given.to_wire() if isinstance(given, PatterningProbe | PatterningObservable) else given


def _compare(
    plan: PatterningPlan, judge: TrainAndEvaluate, seed: int, policy: PatterningPolicy, executor: Executor | None
) -> Trial:
    seeds = [seed + again for again in range(policy.repeats)]
    questions = [_Measurement("the base", base_weights_of(plan), each) for each in seeds]
    questions += [_Measurement("the plan", planned_weights(plan), each) for each in seeds]
    answers = _evaluate(judge, questions, plan.observables, policy, executor)
    return judge_evaluations(plan, answers[: len(seeds)], answers[len(seeds) :], policy)


# -- calling ------------------------------------------------------------------------------------------


def _evaluate(
    judge: TrainAndEvaluate,
    questions: Sequence[_Measurement],
    observables: Sequence[PatterningObservable],
    policy: PatterningPolicy,
    executor: Executor | None,
) -> list[dict[str, float]]:
    """The answers in order. The first that fails stops the rest."""
    if executor is None:
        return [
            _read(outcome_of(partial(judge, dict(asked.weights), asked.seed)), asked, observables, policy)
            for asked in questions
        ]
    futures: list[Future[Mapping[str, float]]] = []
    try:
        futures.extend(_submitted(executor, judge, asked) for asked in questions)
        return [_read(future, asked, observables, policy) for future, asked in zip(futures, questions, strict=True)]
    finally:
        for future in futures:
            future.cancel()


def _submitted(executor: Executor, judge: TrainAndEvaluate, asked: _Measurement) -> Future[Mapping[str, float]]:
    try:
        return executor.submit(judge, dict(asked.weights), asked.seed)
    except RuntimeError as error:  # shut down, or its workers died
        raise EvaluationFailed(f"{_where(asked)}: the executor takes no work: {error}") from error


def _read(
    future: Future[Any], asked: _Measurement, observables: Sequence[PatterningObservable], policy: PatterningPolicy
) -> dict[str, float]:
    where = _where(asked)
    limit = None if policy.evaluation_timeout_s is None else float(policy.evaluation_timeout_s)
    try:
        error = future.exception(limit)
    except CancelledError:
        raise EvaluationFailed(f"{where}: the executor dropped it") from None
    except TimeoutError:
        raise EvaluationFailed(f"{where}: no answer within {limit:g} s") from None
    if error is not None:
        if not isinstance(error, Exception):
            raise error
        raise EvaluationFailed(
            f"{where}: {type(error).__name__}: {error!s:.200}", details={"weights": asked.weights, "seed": asked.seed}
        ) from error
    try:
        values = read_values(future.result(), observables, where)
    except InvalidInput as problem:
        raise EvaluationFailed(problem.message, hint=problem.hint, details={"seed": asked.seed}) from None
    return {each.obs_id: float(value) for each, value in zip(observables, values, strict=True)}


def _where(asked: _Measurement) -> str:
    return f"evaluating {asked.label} with seed {asked.seed}"
