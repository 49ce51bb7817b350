"""`muniment snapshot`: a run's snapshot shown, taken, or checked again against the store."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.asking import one_line, when
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.cli.run import many
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.contracts.snapshot import CompactionSnapshot, SnapshotValidation
    from muniment.handles.memory import Memory

__all__ = ["sequence_option", "snapshot"]

sequence_option = click.option(
    "--sequence", type=click.IntRange(1), metavar="N", help="Which snapshot (default: the latest)."
)


@click.command()
@click.argument("run_id", metavar="RUN")
@sequence_option
@click.option("--take", is_flag=True, help="Take one now, whether or not it is due.")
@click.option("--check", is_flag=True, help="Check it again from the stored bytes and a replay of the ledger.")
@db_option
@tenant_option
@json_option
@handles_errors
def snapshot(
    run_id: str, sequence: int | None, take: bool, check: bool, db: str | None, tenant: str | None, as_json: bool
) -> None:
    """Show the latest snapshot of RUN; with --json exactly the document of the contract.

    --check prints the validation instead, and exits 1 where the snapshot does not hold.
    """
    if take and sequence is not None:
        raise InvalidInput("--take makes the next snapshot, --sequence names one that exists", hint="give one of them")
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        if take:
            found = _take(mem, run_id, settings.tenant)
        else:
            found = mem.log.snapshot(run_id, sequence, tenant_id=settings.tenant)
        if check:
            _show_check(found, mem.log.check_snapshot(run_id, found.sequence, tenant_id=settings.tenant), as_json)
            return
    if as_json:
        emit_json(found.to_wire())
    else:
        _show(found)


def _take(mem: Memory, run_id: str, tenant: str) -> CompactionSnapshot:
    taken = mem.resume(run_id, tenant_id=tenant).run.log.compact()
    return taken if taken is not None else mem.log.snapshot(run_id, tenant_id=tenant)


def _show(found: CompactionSnapshot) -> None:
    state, coverage, counts = found.state, found.state.source_coverage, found.counts
    statuses = Counter(claim.status for claim in state.claims)
    claims = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    lines = {
        "objective": one_line(found.objective) or "none given",
        "since the last": f"{many(counts.steps_since_last_compaction, 'step')}, "
        f"{many(counts.counted_events_since_last_compaction, 'counted event')}",
        "claims": claims or "none",
        "conflicts": str(len(state.conflicts)),
        "failures": str(len(state.failures)),
        "questions": str(len(state.open_questions)),
        "coverage": f"{many(len(coverage.source_ids_seen), 'source')}; chunks: {len(coverage.chunk_ids_seen)} seen, "
        f"{len(coverage.chunk_ids_cited)} cited",
        "validation": f"{found.validation.status}, {len(found.validation.checks)} checks",
    }
    click.echo(
        f"{click.style(found.snapshot_id, bold=True)}  "
        f"snapshot {found.sequence} of {found.run_id}, {when(found.created_at)}"
    )
    for label, text in lines.items():
        click.echo(f"{label + ':':<15} {text}")
    click.echo(f"in words: muniment narrative {found.run_id} --sequence {found.sequence}; the document: --json")


def _show_check(found: CompactionSnapshot, validation: SnapshotValidation, as_json: bool) -> None:
    if as_json:
        emit_json(validation.to_wire())
    else:
        for check in validation.checks:
            sign = "holds " if check.status == "PASS" else "BROKEN"
            click.echo(f"{sign}  {check.name}: {one_line(check.message, 300)}")
        ends = "holds" if validation.status == "PASS" else "does not hold"
        click.echo(f"snapshot {found.sequence} of {found.run_id} {ends}")
    if validation.status != "PASS":
        sys.exit(EXIT_FAILED)
