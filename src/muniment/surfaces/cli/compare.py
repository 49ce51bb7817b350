"""`muniment compare`: what a kept build would have been under another policy."""

from __future__ import annotations

import click

from muniment.surfaces.cli.diff import show_diff
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.policy_file import read_policy
from muniment.surfaces.settings import load_settings, open_store

__all__ = ["compare"]


@click.command()
@click.argument("build", metavar="BUILD")
@click.option("--policy", "policy_file", required=True, metavar="FILE", help="The other policy: TOML, or JSON.")
@db_option
@tenant_option
@json_option
@handles_errors
def compare(build: str, policy_file: str, db: str | None, tenant: str | None, as_json: bool) -> None:
    """Say what BUILD would have been under another policy, on the same request and candidates. Nothing is kept."""
    from muniment.surfaces.cli.explained import candidates

    settings = load_settings({"db": db, "tenant": tenant})
    policy = read_policy(policy_file)
    with open_store(settings, must_exist=True) as mem:
        found = mem.compare(build, policy, tenant_id=settings.tenant)
        if as_json:
            emit_json(found.to_wire())
            return
        known = candidates(mem.replay(build, tenant_id=settings.tenant))
    show_diff(found, known)
