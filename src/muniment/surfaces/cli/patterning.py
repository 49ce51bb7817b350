"""`muniment patterning`: data weights from a measured response, tried before they are applied. Offline."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.asking import one_line
from muniment.surfaces.cli.documents import read_one
from muniment.surfaces.cli.options import json_option, now_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.cli.tables import Cell, show_table

if TYPE_CHECKING:
    from muniment.contracts.patterning import PatterningPlan
    from muniment.core.policy.patterning import PatterningPolicy
    from muniment.rules.patterning.records import PatterningMeasurements

__all__ = ["patterning"]

F = TypeVar("F", bound=Callable[..., Any])

_COLOURS = {
    "planned": "yellow",
    "refused": "red",
    "replayed": "yellow",
    "canaried": "yellow",
    "applied": "green",
    "rolled_back": "red",
    "failed": "red",
}

out_option = click.option("--out", metavar="FILE", help="Also write the plan here, as JSON.")
seed_option = click.option("--seed", type=int, default=0, show_default=True, help="The first seed.")
repeats_option = click.option(
    "--repeats", type=click.IntRange(1), metavar="N", help="Seeds an evaluation (default: 1)."
)


@click.group()
def patterning() -> None:
    """Find weights of a data mixture that bring a wanted change, and try them before they are applied. Offline."""


def policy_options(command: F) -> F:
    for option in (
        click.option("--epsilon", type=float, metavar="SHARE", help="Of the data that is moved (default: 0.05)."),
        repeats_option,
        click.option("--difference", type=click.Choice(["central", "one_sided"]), help="How χ is measured."),
        click.option("--ridge", "ridge_share", type=float, help="At least, of the largest squared singular value."),
        click.option("--condition-max", type=float, help="A χ that is worse is ill-conditioned (default: 100)."),
        click.option("--step-max", type=float, metavar="SHARE", help="No weight moves by more (default: 0.25)."),
        click.option("--ill-conditioned", type=click.Choice(["refuse", "plan"]), help="Refuse, or plan and say so."),
    ):
        command = option(command)
    return command


@patterning.command()
@click.argument("file", metavar="FILE")
@click.option("--call", metavar="MODULE:FUNCTION", help="Train and evaluate: (weights by probe, seed) → values.")
@seed_option
@policy_options
@now_option
@out_option
@json_option
@handles_errors
def plan(
    file: str, call: str | None, seed: int, now: str | None, out: str | None, as_json: bool, **numbers: Any
) -> None:
    """Make a plan from the measurements in FILE (`-` is stdin).

    FILE is a JSON object: base_dataset, probes, observables, base_weights, and either evaluations (probe_id, step,
    seed, values; without a probe the base) or a response (chi, base, errors). With --call FILE needs neither: the
    function is called for the base and one or two steps of each probe.
    """
    from muniment.rules.patterning.planning import make_plan
    from muniment.rules.patterning.records import PatterningMeasurements
    from muniment.rules.patterning_measuring import measure_response
    from muniment.surfaces.cli.functions import load_function

    measured = PatterningMeasurements.from_wire(read_one(file, "$.file"))
    policy = _policy(numbers)
    if call is not None:
        _check_unmeasured(measured)
        measured = measure_response(
            load_function(call, "call"),
            probes=measured.probes,
            observables=measured.observables,
            base_weights=measured.base_weights,
            base_dataset=measured.base_dataset,
            seed=seed,
            policy=policy,
        )
    made = make_plan(measured, policy, generated_at=_instant(now))
    _answer(made, out, as_json)


@patterning.command("try")
@click.argument("file", metavar="PLAN")
@click.option("--replay", metavar="MODULE:FUNCTION", help="Evaluate on earlier tasks. First, for a new plan.")
@click.option("--canary", metavar="MODULE:FUNCTION", help="Evaluate on a canary. Applied, if both hold.")
@seed_option
@repeats_option
@out_option
@json_option
@handles_errors
def try_(
    file: str,
    replay: str | None,
    canary: str | None,
    seed: int,
    repeats: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Take a PLAN on: replay, then canary, then applied. What regresses is rolled back, and the exit code is 1."""
    from muniment.contracts.patterning import PatterningPlan
    from muniment.rules.patterning.stages import stage_of
    from muniment.rules.patterning_measuring import validate_plan
    from muniment.surfaces.cli.functions import load_function

    if replay is None and canary is None:
        raise InvalidInput("nothing to try it by", path="$.replay", hint="give --replay, --canary or both")
    tried = validate_plan(
        PatterningPlan.from_wire(read_one(file, "$.file")),
        replay=None if replay is None else load_function(replay, "replay"),
        canary=None if canary is None else load_function(canary, "canary"),
        seed=seed,
        policy=_policy({"repeats": repeats}),
    )
    _answer(tried, out, as_json)
    if stage_of(tried) in ("rolled_back", "failed"):
        sys.exit(EXIT_FAILED)


@patterning.command()
@click.argument("file", metavar="PLAN")
@click.option("--reason", required=True, metavar="TEXT", help="Why.")
@out_option
@json_option
@handles_errors
def rollback(file: str, reason: str, out: str | None, as_json: bool) -> None:
    """Take a PLAN back: the base weights are in force again."""
    from muniment.contracts.patterning import PatterningPlan
    from muniment.rules.patterning.stages import rolled_back

    _answer(rolled_back(PatterningPlan.from_wire(read_one(file, "$.file")), reason), out, as_json)


@patterning.command()
@click.argument("file", metavar="PLAN")
@json_option
@handles_errors
def show(file: str, as_json: bool) -> None:
    """Show a PLAN: weights, predicted changes, where it stands."""
    from muniment.contracts.patterning import PatterningPlan

    _answer(PatterningPlan.from_wire(read_one(file, "$.file")), None, as_json)


# -- in and out ---------------------------------------------------------------------------------------


def _policy(numbers: Mapping[str, Any]) -> PatterningPolicy:
    from muniment.core.policy.patterning import PatterningPolicy

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


def _answer(made: PatterningPlan, out: str | None, as_json: bool) -> None:
    if out is not None:
        try:
            Path(out).write_bytes(made.to_bytes() + b"\n")
        except OSError as error:
            raise InvalidInput(
                f"cannot write {out}: {error.strerror or error}", path="$.out", hint="check the path"
            ) from None
    if as_json:
        emit_json(made.to_wire())
    else:
        _show(made)


def _show(made: PatterningPlan) -> None:
    from muniment.rules.patterning.stages import base_weights, planned_weights, stage_of

    stage, chi = stage_of(made), made.chi_estimation
    name, standing = click.style(one_line(made.patterning_id), bold=True), click.style(stage, fg=_COLOURS[stage])
    click.echo(f"{name}  {standing}, of {one_line(made.base_dataset)}")
    condition = "infinite" if chi.condition_number is None else f"{chi.condition_number:.3g}"
    click.echo(f"χ by {chi.method}, condition number {condition}, ridge {chi.regularizer or 0:.3g}")
    if chi.notes:
        click.echo(one_line(chi.notes, 400))
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
    show_table(("probe", "base", "weight", "change", "is"), rows)
    _show_changes(made)
    results = made.validation.results
    for name in ("replay", "canary", "rollback"):
        told = _part(results, name)
        if told:
            said = "held" if told.get("held") is True else "; ".join(map(str, told.get("reasons") or ()))
            click.echo(f"{name}: {one_line(said, 400)}")
    if made.notes:
        click.echo(one_line(made.notes, 400))


def _show_changes(made: PatterningPlan) -> None:
    results = made.validation.results
    rows: list[list[Cell]] = []
    for observable in made.observables:
        told = _part(_part(results, "predicted"), observable.obs_id)
        seen = [_part(_part(_part(results, name), "changes"), observable.obs_id) for name in ("replay", "canary")]
        rows.append(
            [
                observable.obs_id,
                _figure(told, "base", ".4g"),
                "stay" if told.get("target") is None else _figure(told, "target"),
                _figure(told, "change"),
                "not known" if told.get("lower") is None else f"{_figure(told, 'lower')} to {_figure(told, 'upper')}",
                ", ".join(_figure(each, "change") for each in seen),
            ]
        )
    show_table(("observable", "base", "asked", "predicted", "95 %", "seen in replay, canary"), rows)


def _part(of: Any, name: str) -> Mapping[str, Any]:
    """A part of what a plan tells of its trials; empty where a hand-made plan tells none."""
    found = of.get(name) if isinstance(of, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _figure(of: Mapping[str, Any], name: str, shape: str = "+.4g") -> str:
    value = of.get(name)
    return format(value, shape) if isinstance(value, int | float) else "–"
