"""`muniment scrub`: rebuild the store's files without what was forgotten."""

from __future__ import annotations

import sys

import click

from muniment.surfaces.cli.options import db_option, json_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.settings import load_settings, open_store

__all__ = ["scrub"]


@click.command()
@db_option
@json_option
@handles_errors
def scrub(db: str | None, as_json: bool) -> None:
    """Rebuild the store's files without what forgets have emptied, and settle their receipts; exit 1 where something
    is left to do. Needs to have the store to itself for a while: see docs/guides/privacy.md.
    """
    settings = load_settings({"db": db})
    with open_store(settings, must_exist=True) as mem:
        done = mem.store.scrub()
    if as_json:
        emit_json(done.to_wire())
    else:
        click.echo(f"the store's files: {done.note}")
        click.echo(f"{done.receipts} receipts had waited for it" if not done.due else "something is left: scrub again")
    if done.due:
        sys.exit(EXIT_FAILED)
