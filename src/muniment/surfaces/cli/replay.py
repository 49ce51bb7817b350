"""`muniment replay`: a kept build, composed again from what it was made of."""

from __future__ import annotations

import click

from muniment.surfaces.cli.build_output import check_form, form_options, show_build
from muniment.surfaces.cli.options import db_option, tenant_option
from muniment.surfaces.cli.output import handles_errors
from muniment.surfaces.settings import load_settings, open_store

__all__ = ["replay"]


@click.command()
@click.argument("build_id", metavar="ID")
@db_option
@tenant_option
@form_options
@handles_errors
def replay(build_id: str, db: str | None, tenant: str | None, as_text: bool, as_packet: bool, as_json: bool) -> None:
    """Compose the build ID again, whatever was written since: the same bytes, or exit 1 and the reason.

    A build that held what was since forgotten is refused, and the refusal names the receipt.
    """
    check_form(as_text, as_packet, as_json)
    settings = load_settings({"db": db, "tenant": tenant})
    with open_store(settings, must_exist=True) as mem:
        build = mem.replay(build_id, tenant_id=settings.tenant)
    show_build(build, as_packet, as_json)
