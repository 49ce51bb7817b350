"""`muniment claims`: what a run claims, and the bytes each claim rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from muniment.errors import MunimentError
from muniment.runs.records import CLAIM_STATUSES
from muniment.surfaces.cli.asking import one_line
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.run import run_named
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.contracts.evidence import EvidencePointer
    from muniment.handles.run import Run
    from muniment.runs.records import ClaimStatus, RunClaim

__all__ = ["claims"]

COLOURS = {"verified": "green", "candidate": "yellow", "retracted": "red"}


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--status", type=click.Choice(CLAIM_STATUSES), help="Only claims of this status.")
@db_option
@tenant_option
@json_option
@handles_errors
def claims(run_id: str, status: ClaimStatus | None, db: str | None, tenant: str | None, as_json: bool) -> None:
    """List what RUN claims, in the order it was claimed, each with the words that its evidence points to."""
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        run = run_named(mem, run_id, settings.tenant)
        found = [(claim, [_quote(run, ref) for ref in claim.evidence_refs]) for claim in run.log.claims(status)]
    if as_json:
        emit_json(
            {"run_id": run_id, "claims": [claim.to_wire() | {"quotes": quotes} for claim, quotes in found]},
        )
        return
    for claim, quotes in found:
        _show(claim, quotes)
    if not found:
        click.echo(f"{run_id} has made no {f'{status} ' if status else ''}claims")


def _quote(run: Run, ref: EvidencePointer) -> dict[str, Any]:
    """The words at a pointer as they are stored now, or why they cannot be had."""
    from muniment.runs.citing import pointer_to

    try:
        return {"evidence_id": ref.evidence_id, "text": run.ledger.resolve(pointer_to(ref)).text}
    except MunimentError as error:
        return {"evidence_id": ref.evidence_id, "error": error.to_dict()}


def _show(claim: RunClaim, quotes: list[dict[str, Any]]) -> None:
    from muniment.contracts.evidence_text import place_text

    click.echo(f"{click.style(claim.status, fg=COLOURS[claim.status])}  {one_line(claim.statement, 300)}")
    click.echo(f"    {claim.claim_id}")
    if claim.depends_on:
        click.echo(f"    rests on {', '.join(claim.depends_on)}")
    if claim.reason:
        click.echo(f"    because: {one_line(claim.reason, 300)}")
    for ref, quote in zip(claim.evidence_refs, quotes, strict=True):
        said = f"“{one_line(quote['text'], 200)}”" if "text" in quote else f"not to be had: {quote['error']['message']}"
        click.echo(f"    [{place_text(ref)}] {said}")
    if not quotes:
        click.echo("    no evidence")
