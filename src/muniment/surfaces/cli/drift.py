"""`muniment drift`: how well long runs keep to their way, and whether snapshots should be more or less frequent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.run import many
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.runs.drift import DriftReport

__all__ = ["drift"]


@click.command()
@click.option("--user", metavar="ID", help="Runs of one user (default: of all).")
@click.option("--run", "run_id", metavar="ID", help="One run.")
@click.option("--since", metavar="TIME", help="What was recorded from then on (ISO 8601).")
@click.option("--until", metavar="TIME", help="What was recorded before then (ISO 8601).")
@db_option
@tenant_option
@json_option
@handles_errors
def drift(
    user: str | None,
    run_id: str | None,
    since: str | None,
    until: str | None,
    db: str | None,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Measure loops, stalls, forgotten constraints, coverage and cost, and say whether the thresholds should move."""
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        report = mem.log.drift(user_id=user, run_id=run_id, since=since, until=until, tenant_id=settings.tenant)
    if as_json:
        emit_json(report.to_wire())
        return
    seen = {"run": report.runs, "step": report.steps, "action": report.actions, "snapshot": report.snapshots}
    click.echo(", ".join(many(count, noun) for noun, count in seen.items()))
    for label, text in _lines(report):
        click.echo(f"{label + ':':<22} {text}")
    for reason in report.reasons:
        click.echo(f"  {reason}")


def _lines(report: DriftReport) -> Iterator[tuple[str, str]]:
    yield "loops", f"{report.loops}{_rate(report.loop_rate, 'an action')}"
    yield "stalls", f"{report.stalls}{_rate(report.stall_rate, 'a step')}"
    yield "forgotten constraints", f"{report.constraints_forgotten}{_rate(report.forgotten_rate, 'a step')}"
    yield "where they began", f"{report.early} early, {report.late} late between two snapshots"
    yield "verified claims", f"{report.verified} of {report.verified + report.candidates} that stand"
    yield "chunks cited", f"{report.chunks_cited} of {report.chunks_seen} seen"
    cost = report.tokens_per_verified_claim
    yield "tokens", f"{report.tokens}{f', {cost:.0f} a verified claim' if cost is not None else ''}"
    now = f"at {report.event_threshold} counted events or {report.step_fallback} steps"
    yield "snapshots", f"{_ADVICE[report.advice]}: {now}"


def _rate(rate: float | None, unit: str) -> str:
    return "" if rate is None else f" ({rate:.3f} {unit})"


_ADVICE = {
    "keep": "keep the thresholds",
    "lower": "lower the thresholds, snapshot sooner",
    "raise": "raise the thresholds, snapshot later",
    "not enough steps": "too few steps to advise; they stay",
}
