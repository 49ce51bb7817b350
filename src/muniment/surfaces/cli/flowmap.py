"""`muniment flowmap`: where logged runs go wrong and what interventions bring, as a table, a document or a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from muniment.core.policy.flow_map import FlowEstimatorKind
from muniment.errors import InvalidInput
from muniment.surfaces.cli.asking import one_line, when
from muniment.surfaces.cli.learning_desk import bank_options, bucket_given, opened
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.tables import Cell, show_table

if TYPE_CHECKING:
    from muniment.contracts.flow_map import FlowMapSnapshot, Intervention, StageHotspot

__all__ = ["flowmap"]

_SHOWN_MAX = 20


@click.command()
@bank_options
@click.option("--bucket", metavar="KEY", help="One bucket, such as I2|math|clarity_high (default: all).")
@click.option("--since", metavar="TIME", help="Runs logged from then on (ISO 8601).")
@click.option("--until", metavar="TIME", help="Runs logged before then (ISO 8601).")
@click.option("--estimator", type=click.Choice(get_args(FlowEstimatorKind)), help="Counted rates, or a learned field.")
@click.option("--svg", metavar="OUT", help="Draw the map as SVG into this file.")
@click.option("--png", metavar="OUT", help="Draw the map as PNG into this file (needs the extra `plots`).")
@click.option("--suggest", is_flag=True, help="Say what the map would have the router's thresholds be. Nothing is set.")
@json_option
@handles_errors
def flowmap(
    db: str | None,
    tenant: str | None,
    user: str | None,
    agent: str | None,
    bucket: str | None,
    since: str | None,
    until: str | None,
    estimator: FlowEstimatorKind | None,
    svg: str | None,
    png: str | None,
    suggest: bool,
    as_json: bool,
) -> None:
    """Show at which stages and for which reasons the runs of a bank go wrong, worst first, and what helps."""
    key = bucket_given(bucket)
    with opened(db, tenant, user, agent) as found:
        snapshot = found.flow_map(since=since, until=until, bucket_key=key, estimator=estimator)
        suggestions = found.suggest_thresholds(snapshot) if suggest else ()
    drawn = [_write(name, path, draw(snapshot)) for name, path, draw in _pictures(svg, png)]
    if as_json:
        document = snapshot.to_wire()
        emit_json(document | {"suggestions": [each.to_wire() for each in suggestions]} if suggest else document)
        return
    _show(snapshot)
    for each in suggestions:
        click.echo(f"suggestion: {each.threshold} {each.current:g} → {each.suggested:g}: {each.text}")
    if suggest and not suggestions:
        click.echo("suggestion: none; the thresholds are within what the map allows")
    for path in drawn:
        click.echo(f"drawn to {path}")


# -- pictures -----------------------------------------------------------------------------------------


def _pictures(svg: str | None, png: str | None) -> list[tuple[str, str, Callable[[FlowMapSnapshot], bytes]]]:
    wanted = (("svg", svg, _as_svg), ("png", png, _as_png))
    return [(name, path, draw) for name, path, draw in wanted if path is not None]


def _as_svg(snapshot: FlowMapSnapshot) -> bytes:
    from muniment.rules.flowmap.heatmap import to_heatmap_svg

    return to_heatmap_svg(snapshot).encode()


def _as_png(snapshot: FlowMapSnapshot) -> bytes:
    from muniment.rules.outside.plots import to_heatmap_png

    return to_heatmap_png(snapshot)


def _write(name: str, path: str, data: bytes) -> str:
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        message = f"cannot write {one_line(path)}: {error.strerror or error}"
        raise InvalidInput(message, path=f"$.{name}", hint="check the path") from None
    return path


# -- tables -------------------------------------------------------------------------------------------


def _show(snapshot: FlowMapSnapshot) -> None:
    window, kind = snapshot.window, snapshot.estimator.kind if snapshot.estimator is not None else None
    bucket = "all buckets" if snapshot.bucket_key == "*" else snapshot.bucket_key
    over = f"{when(window.start_at)} to {when(window.end_at)}" if window is not None else "all time"
    click.echo(f"{click.style(bucket, bold=True)}, {over}, by {kind}")
    spots = snapshot.risk.stage_hotspots or ()
    if spots:
        show_table(("stage", "risk", "bounds", "logs", "reason"), [_spot_row(each) for each in spots[:_SHOWN_MAX]])
    else:
        click.echo("nothing went wrong in this window")
    if len(spots) > _SHOWN_MAX:
        click.echo(f"  and {len(spots) - _SHOWN_MAX} more (--json)")
    gains = snapshot.opportunity.interventions or ()
    if gains:
        click.echo()
        heads = ("intervention", "gain", "bounds", "cost", "runs", "against")
        show_table(heads, [_gain_row(each) for each in gains])
    for note in (snapshot.notes or "").split("; "):
        click.echo(click.style(f"  {note}", fg="bright_black"))


def _spot_row(spot: StageHotspot) -> list[Cell]:
    extra, rate = spot.__pydantic_extra__ or {}, spot.risk_rate or 0.0
    thin = " (thin)" if extra.get("thin") else ""
    return [
        spot.stage or "–",
        (f"{rate:.1%}", "red" if rate >= 0.2 else "yellow" if rate >= 0.05 else "white"),
        f"{extra['lower']:.1%} to {extra['upper']:.1%}",
        f"{extra['risky_n']} of {spot.support_n}{thin}",
        spot.reason_code or "(all)",
    ]


def _gain_row(each: Intervention) -> list[Cell]:
    extra, gain = each.__pydantic_extra__ or {}, each.gain_pass or 0.0
    lower, upper = float(str(extra["lower"])), float(str(extra["upper"]))
    return [
        each.intervention or "–",
        (f"{100 * gain:+.1f} pt", "green" if lower > 0 else "red" if upper < 0 else "white"),
        f"{100 * lower:+.1f} to {100 * upper:+.1f}",
        f"{each.delta_cost:+.4g}",
        str(each.support_n),
        f"{extra['base_n']} runs in {extra['strata_n']} strata{' (thin)' if extra.get('thin') else ''}",
    ]
