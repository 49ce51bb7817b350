"""`muniment reuse`: the buffer of seeds and tactics, and which seed to start from."""

from __future__ import annotations

import click

from muniment.surfaces.cli.bank import show_records
from muniment.surfaces.cli.learning_desk import bank_options, bucket_given, bucket_option, opened, told, whose
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.run import many
from muniment.surfaces.cli.tables import Cell, show_table

__all__ = ["reuse"]


@click.group()
def reuse() -> None:
    """Seeds that passed, and tactics: listed, and a seed chosen to start from."""


@reuse.command("list")
@bank_options
@json_option
@handles_errors
def list_(db: str | None, tenant: str | None, user: str | None, agent: str | None, as_json: bool) -> None:
    """List the seeds and the tactics of a bank, apart; with --json, the ReuseBuffer of the contract."""
    with opened(db, tenant, user, agent) as bank:
        if as_json:
            emit_json(bank.reuse_buffer().to_wire())
            return
        where = whose(bank)
        for noun, held in (("seed", bank.records(kind="seed")), ("tactic", bank.records(kind="tactic"))):
            click.echo(click.style(many(len(held), noun), bold=True) if held else f"no {noun}s in {where}")
            if held:
                show_records(held)


@reuse.command()
@bank_options
@bucket_option
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only seeds with this tag; repeatable.")
@json_option
@handles_errors
def select(
    db: str | None,
    tenant: str | None,
    user: str | None,
    agent: str | None,
    bucket: str | None,
    tags: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say which seed PUCT would start from, with every term of every seed. Nothing is counted by asking."""
    with opened(db, tenant, user, agent) as bank:
        meta, terms = bank.select_seed(bucket_key=bucket_given(bucket), tags=tags)
        says = {each.id: told(each) for each in bank.records(kind="seed")}
        where = whose(bank)
    if as_json:
        emit_json({"select": meta.to_wire(), "terms": [term._asdict() for term in terms]})
        return
    if not terms:
        click.echo(f"no seed {'fits ' if bucket or tags else ''}in {where}")
        return
    rows: list[list[Cell]] = [
        [
            ("→", "green") if term.state_id == meta.selected_state_id else "",
            term.state_id,
            f"{term.score:.3f}",
            f"{term.q:.3f}",
            f"{term.p:.3f}",
            str(term.n),
            str(term.rank),
            says[term.state_id],
        ]
        for term in terms
    ]
    total = meta.puct.T_total if meta.puct is not None else 0
    click.echo(f"{meta.policy}, {total} starts in all")
    show_table(("", "seed", "score", "Q", "P", "N", "rank", "says"), rows)
