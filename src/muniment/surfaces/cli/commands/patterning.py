"""`learn patterning …`: data weights from a measured response, tried before they are applied. Offline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.reading import function_given, object_given, write_bytes
from muniment.surfaces.cli.terminal import Cell, coloured, one_line, strong, table

if TYPE_CHECKING:
    from muniment.contracts.rules import PatterningPlan
    from muniment.core.policy import PatterningPolicy
    from muniment.rules.patterning import PatterningMeasurements

__all__ = ["plan", "rollback", "show", "try_"]

_STAGES = {
    "planned": "yellow",
    "refused": "red",
    "replayed": "yellow",
    "canaried": "yellow",
    "applied": "green",
    "rolled_back": "red",
    "failed": "red",
}
_OUT = {"out": Word("Also write the plan here, as JSON.", metavar="FILE")}
_PLAN = Word(metavar="PLAN", read=object_given("$.file"))
_SEED = Word("The first seed.")
_REPEATS = Word("Seeds an evaluation (default: 1).", metavar="N", type=click.IntRange(1))


def _called(option: str, text: str) -> Word:
    return Word(text, metavar="MODULE:FUNCTION", read=function_given(option))


def _plan(
    _: Call,
    file: Annotated[Any, Word(metavar="FILE", read=object_given("$.file"))],
    *,
    call: Annotated[
        Callable[..., Any] | None, _called("call", "Train and evaluate: (weights by probe, seed) → values.")
    ] = None,
    seed: Annotated[int, _SEED] = 0,
    epsilon: Annotated[float | None, Word("Of the data that is moved (default: 0.05).", metavar="SHARE")] = None,
    repeats: Annotated[int | None, _REPEATS] = None,
    difference: Annotated[Literal["central", "one_sided"] | None, Word("How χ is measured.")] = None,
    ridge_share: Annotated[float | None, Word("At least, of the largest squared singular value.", "ridge")] = None,
    condition_max: Annotated[float | None, Word("A χ that is worse is ill-conditioned (default: 100).")] = None,
    step_max: Annotated[float | None, Word("No weight moves by more (default: 0.25).", metavar="SHARE")] = None,
    ill_conditioned: Annotated[Literal["refuse", "plan"] | None, Word("Refuse, or plan and say so.")] = None,
    now: str | None = None,
) -> PatterningPlan:
    from muniment.rules.patterning import PatterningMeasurements, make_plan, measure_response

    measured = PatterningMeasurements.from_wire(file)
    policy = _policy(
        epsilon=epsilon,
        repeats=repeats,
        difference=difference,
        ridge_share=ridge_share,
        condition_max=condition_max,
        step_max=step_max,
        ill_conditioned=ill_conditioned,
    )
    if call is not None:
        _check_unmeasured(measured)
        measured = measure_response(
            call,
            probes=measured.probes,
            observables=measured.observables,
            base_weights=measured.base_weights,
            base_dataset=measured.base_dataset,
            seed=seed,
            policy=policy,
        )
    return make_plan(measured, policy, generated_at=_instant(now))


def _policy(**numbers: Any) -> PatterningPolicy:
    from muniment.core.policy import PatterningPolicy

    return PatterningPolicy.from_wire({name: value for name, value in numbers.items() if value is not None})


def _check_unmeasured(measured: PatterningMeasurements) -> None:
    if measured.evaluations or measured.response is not None:
        raise InvalidInput(
            "FILE holds measurements already", path="$.call", hint="leave --call out, or take them out of the file"
        )


def _instant(now: str | None) -> str:
    from muniment.core.instants import format_instant, parse_instant
    from muniment.core.outside.system import system_clock

    return format_instant(system_clock() if now is None else parse_instant(now, path="$.now"))


def _check_try(call: Call) -> None:
    if "replay" not in call.typed and "canary" not in call.typed:
        raise InvalidInput("nothing to try it by", path="$.replay", hint="give --replay, --canary or both")


def _try(
    _: Call,
    file: Annotated[Any, _PLAN],
    *,
    replay: Annotated[
        Callable[..., Any] | None, _called("replay", "Evaluate on earlier tasks. First, for a new plan.")
    ] = None,
    canary: Annotated[
        Callable[..., Any] | None, _called("canary", "Evaluate on a canary. Applied, if both hold.")
    ] = None,
    seed: Annotated[int, _SEED] = 0,
    repeats: Annotated[int | None, _REPEATS] = None,
) -> PatterningPlan:
    from muniment.contracts.rules import PatterningPlan
    from muniment.rules.patterning import validate_plan

    made = PatterningPlan.from_wire(file)
    return validate_plan(made, replay=replay, canary=canary, seed=seed, policy=_policy(repeats=repeats))


def _rollback(_: Call, file: Annotated[Any, _PLAN], *, reason: str) -> PatterningPlan:
    from muniment.contracts.rules import PatterningPlan
    from muniment.rules.patterning import rolled_back

    return rolled_back(PatterningPlan.from_wire(file), reason)


def _read(_: Call, file: Annotated[Any, _PLAN]) -> PatterningPlan:
    from muniment.contracts.rules import PatterningPlan

    return PatterningPlan.from_wire(file)


def _is_in_force(made: PatterningPlan) -> bool:
    from muniment.rules.patterning import stage_of

    return stage_of(made) not in ("rolled_back", "failed")


# -- for the eye --------------------------------------------------------------------------------------


def _written(call: Call) -> PatterningPlan:
    made: PatterningPlan = call.answer
    if "out" in call.typed:
        write_bytes(call.typed["out"], made.to_bytes() + b"\n", "$.out")
    return made


def _show(call: Call) -> Iterator[str]:
    from muniment.rules.patterning import base_weights, planned_weights, stage_of

    made = _written(call)
    chi = made.chi_estimation
    name, stage = strong(one_line(made.patterning_id)), coloured(stage_of(made), _STAGES)
    yield f"{name}  {stage}, of {one_line(made.base_dataset)}"
    condition = "infinite" if chi.condition_number is None else f"{chi.condition_number:.3g}"
    yield f"χ by {chi.method}, condition number {condition}, ridge {chi.regularizer or 0:.3g}"
    if chi.notes:
        yield one_line(chi.notes, 400)
    base, planned = base_weights(made), planned_weights(made)
    rows: list[list[Cell]] = [
        [
            probe.probe_id,
            f"{base[probe.probe_id]:.4f}",
            f"{planned[probe.probe_id]:.4f}",
            f"{planned[probe.probe_id] - base[probe.probe_id]:+.4f}",
            probe.description or probe.slice_query or "",
        ]
        for probe in made.probes
    ]
    yield from table(("probe", "base", "weight", "change", "is"), rows)
    yield from _change_lines(made)
    for name in ("replay", "canary", "rollback"):
        result = _part(made.validation.results, name)
        if result:
            said = "held" if result.get("held") is True else "; ".join(map(str, result.get("reasons") or ()))
            yield f"{name}: {one_line(said, 400)}"
    if made.notes:
        yield one_line(made.notes, 400)


def _change_lines(made: PatterningPlan) -> Iterator[str]:
    results = made.validation.results
    rows: list[list[Cell]] = []
    for observable in made.observables:
        predicted = _part(_part(results, "predicted"), observable.obs_id)
        seen = [_part(_part(_part(results, name), "changes"), observable.obs_id) for name in ("replay", "canary")]
        rows.append(
            [
                observable.obs_id,
                _figure(predicted, "base", ".4g"),
                "stay" if predicted.get("target") is None else _figure(predicted, "target"),
                _figure(predicted, "change"),
                "not known"
                if predicted.get("lower") is None
                else f"{_figure(predicted, 'lower')} to {_figure(predicted, 'upper')}",
                ", ".join(_figure(each, "change") for each in seen),
            ]
        )
    return table(("observable", "base", "asked", "predicted", "95 %", "seen in replay, canary"), rows)


def _part(of: Any, name: str) -> Mapping[str, Any]:
    """A part of what a plan tells of its trials; empty where a hand-made plan tells none."""
    found = of.get(name) if isinstance(of, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _figure(of: Mapping[str, Any], name: str, shape: str = "+.4g") -> str:
    value = of.get(name)
    return format(value, shape) if isinstance(value, int | float) else "–"


def _command(function: Callable[..., PatterningPlan], about: str = "", **more: Any) -> Command:
    """A command on a plan in a file, which may be written to another."""
    return Command(
        "", _show, function=function, on="nothing", document=lambda call: _written(call).to_wire(), about=about, **more
    )


plan = _command(
    _plan,
    "FILE (`-` is stdin) is a JSON object: base_dataset, probes, observables, base_weights, and either evaluations "
    "(probe_id, step, seed, values; without a probe the base) or a response (chi, base, errors). With --call FILE "
    "needs neither: the function is called for the base and one or two steps of each probe.",
    more=_OUT,
)
try_ = _command(
    _try, "What regresses is rolled back, and the exit code is 1.", check=_check_try, holds=_is_in_force, more=_OUT
)
rollback = _command(_rollback, more=_OUT)
show = _command(_read)
