"""`muniment route`: how to try a task, and why. `muniment observe-rates`: what the logs say, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_args

import click

from muniment.core.vocabulary import Level, Outcome, Verdict
from muniment.rules.routing.records import Pressure
from muniment.surfaces.cli.asking import one_line, when
from muniment.surfaces.cli.learning_desk import (
    bank_options,
    bucket_given,
    bucket_option,
    check_named,
    in_words_of_commands,
    parts_given,
)
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.run import many
from muniment.surfaces.cli.tables import Cell, show_table
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.rules.routing.records import Expected, Observables, Rate, RateReport, RouteDecision, RouteReason, Rung

__all__ = ["observe_rates", "route"]

_ACTIONS = {"run": "green", "repair": "yellow", "stop": "cyan", "escalate": "red"}
_RATES = {
    "pass_rate": "passed",
    "confirmed_rate": "confirmed",
    "unknown_rate": "outcome unknown",
    "exec_unavailable_rate": "not executed",
    "l1_violation_rate": "broke a constraint",
    "insufficient_evidence_rate": "not shown",
    "overinject_rate": "told too much",
}


@click.command()
@bank_options
@bucket_option
@click.option(
    "--intent", "intents", multiple=True, metavar="NAME=VALUE", help="A part of its intent, such as family=booking."
)
@click.option("--impact", type=click.Choice(get_args(Level)), help="What hangs on it (default: the bucket's, or med).")
@click.option("--verdict", type=click.Choice(get_args(Verdict)), help="Of an attempt that was made.")
@click.option("--outcome", type=click.Choice(get_args(Outcome)), help="Of that attempt.")
@click.option("--code", "codes", multiple=True, metavar="CODE", help="A reason code of that attempt; repeatable.")
@click.option("--violated", multiple=True, metavar="KEY", help="A constraint that it broke; repeatable.")
@click.option("--repairs", type=click.IntRange(0), default=0, metavar="N", help="Repairs that were tried already.")
@click.option("--cluster", metavar="ID", help="The cluster of its failure.")
@click.option("--rules-changed", is_flag=True, help="Its rules have just changed.")
@click.option("--pressure", type=click.Choice(get_args(Pressure)), default="none", help="How scarce money is.")
@click.option("--cost-max", type=click.FloatRange(0), metavar="COST", help="What the task may still cost.")
@click.option("--parallel", is_flag=True, help="Attempts of one tier start at once.")
@json_option
@handles_errors
def route(db: str | None, tenant: str | None, user: str | None, agent: str | None, as_json: bool, **given: Any) -> None:
    """Say how to try a task: tier, mode, how many attempts, how far to go; why; and what would be cheaper.

    It goes by how the runs of its bucket fared that the bank has logged. Nothing is run and nothing is written.
    """
    asked = _asked(given)
    with _opened(db, tenant, user, agent) as (mem, whose):
        decision = mem.learning.route(**whose, **asked)
    if as_json:
        emit_json(decision.to_wire())
    else:
        _show_decision(decision)


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """The options under the names of the request; what was not said is left out."""
    asked = {
        "bucket_key": bucket_given(given["bucket"]),
        "intent": parts_given(given["intents"], "intent"),
        "impact": given["impact"],
        "verdict": given["verdict"],
        "outcome": given["outcome"],
        "reason_codes": given["codes"],
        "violated": given["violated"],
        "repairs": given["repairs"],
        "cluster_id": given["cluster"],
        "rules_changed": given["rules_changed"],
        "pressure": given["pressure"],
        "cost_max": given["cost_max"],
        "is_parallel": given["parallel"],
    }
    return {name: value for name, value in asked.items() if value is not None}


@contextmanager
def _opened(
    db: str | None, tenant: str | None, user: str | None, agent: str | None
) -> Iterator[tuple[Memory, dict[str, Any]]]:
    """The store, and whose bank was named."""
    check_named(user, agent)
    settings = load_settings({"db": db, "tenant": tenant})
    with in_words_of_commands(), open_store(settings, must_exist=True) as mem:
        yield mem, {"user_id": user, "agent_id": agent, "tenant_id": settings.tenant}


def _show_decision(decision: RouteDecision) -> None:
    action = click.style(decision.action, fg=_ACTIONS[decision.action], bold=True)
    click.echo(f"{action}  {_ladder(decision.rungs) or 'nothing'}{', then synthesis' if decision.synth else ''}")
    if decision.rungs:
        click.echo(f"expected: {_expectation(decision.expected)}")
    if decision.runs_missing:
        click.echo(f"missing: {many(decision.runs_missing, 'judged run')}")
    if decision.cheaper is not None:
        click.echo(f"cheaper: {decision.cheaper.words}; {_expectation(decision.cheaper.expected)}")
    click.echo()
    _show_reasons(decision.reasons)


def _ladder(rungs: Sequence[Rung]) -> str:
    """`1 hot (main), then 3 probe (kroll)`."""
    return ", then ".join(f"{rung.k} {rung.tier} ({rung.mode})" for rung in rungs)


def _expectation(expected: Expected) -> str:
    per_pass = "" if expected.cost_per_pass is None else f", {_figure(expected.cost_per_pass)} a pass"
    costs = f"{_figure(expected.cost)} a task{per_pass}, at most {_figure(expected.cost_max)}"
    return f"{expected.pass_rate:.1%} pass at {costs}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _show_reasons(reasons: Sequence[RouteReason]) -> None:
    show_table(("code", "because"), [[each.code, each.words] for each in reasons])


# -- rates --------------------------------------------------------------------------------------------


@click.command("observe-rates")
@bank_options
@bucket_option
@click.option("--since", metavar="TIME", help="Runs learnt from then on (ISO 8601).")
@click.option("--until", metavar="TIME", help="Runs learnt before then (ISO 8601).")
@json_option
@handles_errors
def observe_rates(
    db: str | None,
    tenant: str | None,
    user: str | None,
    agent: str | None,
    bucket: str | None,
    since: str | None,
    until: str | None,
    as_json: bool,
) -> None:
    """Measure how often outcomes stay unknown, nothing could be executed, constraints break and failures recur.

    Each rate with its bounds; what that asks for stands below: a sandbox before a grader.
    """
    key = bucket_given(bucket)
    with _opened(db, tenant, user, agent) as (mem, whose):
        report = mem.learning.observe_rates(**whose, bucket_key=key, since=since, until=until)
    if as_json:
        emit_json(report.to_wire())
    else:
        _show_report(report)


def _show_report(report: RateReport) -> None:
    seen = report.observables
    over = " to ".join((when(seen.start) if seen.start else "the first", when(seen.end) if seen.end else "now"))
    click.echo(f"{many(seen.n, 'judged run')} of {seen.bucket_key or 'all buckets'}, {over}\n")
    rows = [[name, *_rate_cells(getattr(seen, field))] for field, name in _RATES.items()]
    show_table(("rate", "", "95 % bounds", "runs"), rows)
    if len(report.buckets) > 1:
        click.echo()
        _show_buckets(report.buckets)
    if seen.cluster_recurrence:
        click.echo()
        _show_clusters(seen)
    click.echo()
    show_table(("advice", "because"), [[each.code, each.words] for each in report.advice])


def _rate_cells(rate: Rate) -> list[Cell]:
    counted = f"{rate.count} of {rate.n}"
    if rate.rate is None or rate.lower is None or rate.upper is None:
        return [("unknown", "bright_black"), f"{rate.runs_missing} more runs", counted]
    return [f"{rate.rate:.1%}", f"{rate.lower:.1%} to {rate.upper:.1%}", counted]


def _show_buckets(buckets: Sequence[Observables]) -> None:
    rows: list[list[Cell]] = [
        [
            str(each.n),
            *(_brief(getattr(each, field)) for field in _RATES),
            one_line(each.bucket_key or "(no bucket)"),
        ]
        for each in buckets
    ]
    show_table(("runs", *_RATES.values(), "bucket"), rows)


def _brief(rate: Rate) -> str:
    return "–" if rate.rate is None else f"{rate.rate:.0%}"


def _show_clusters(seen: Observables) -> None:
    rows: list[list[Cell]] = [
        [str(each.count), f"{each.share:.0%}", ("yes", "red") if each.recurs else "no", each.cluster_id]
        for each in seen.cluster_recurrence
    ]
    show_table(("times", "share", "recurs", "failure cluster"), rows)
