"""`muniment keys`: make, list, rotate and revoke the API keys of a server."""

from __future__ import annotations

from typing import Any, Literal

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.tables import show_table

__all__ = ["keys"]


def _file_option(command: Any) -> Any:
    return click.option("--keys", "file", metavar="FILE", help="The file of keys (default: muniment.keys.json).")(
        command
    )


def _open(file: str | None) -> Any:
    from muniment.core.outside.system import system_clock
    from muniment.surfaces.http.keys import KeyFile
    from muniment.surfaces.http.settings import load_server_settings

    return KeyFile(load_server_settings({"keys": file}).keys, system_clock)


@click.group()
def keys() -> None:
    """API keys: who may ask a server for what. Kept as hashes; a token is shown once."""


@keys.command()
@click.argument("name")
@click.option("--tenant", required=True, metavar="ID", help="The tenant it is for; '*' for all.")
@click.option("--user", metavar="ID", help="The one user it is for.")
@click.option(
    "--access",
    type=click.Choice(["read", "write", "admin"]),
    default="write",
    show_default=True,
    help="What it may do; each includes the one before.",
)
@click.option("--expires", metavar="TIME", help="How long it holds, such as 90d or 12h.")
@click.option("--rate", type=click.IntRange(1), metavar="N", help="Requests a minute.")
@click.option("--body-max", type=click.IntRange(1), metavar="BYTES", help="The largest body it may send.")
@_file_option
@json_option
@handles_errors
def create(
    name: str,
    tenant: str,
    user: str | None,
    access: Literal["read", "write", "admin"],
    expires: str | None,
    rate: int | None,
    body_max: int | None,
    file: str | None,
    as_json: bool,
) -> None:
    """Make a key and show its token, once."""
    from muniment.surfaces.http.keys import lifetime

    if tenant == "*" and user is not None:
        raise InvalidInput("a user is one of a tenant's", path="$.user", hint="name the tenant too")
    made = _open(file).create(
        name,
        tenant=tenant,
        user=user,
        access=access,
        lasts=None if expires is None else lifetime(expires, "$.expires"),
        requests_per_minute=rate,
        body_bytes_max=body_max,
    )
    _show_made(made, as_json)


@keys.command("list")
@_file_option
@json_option
@handles_errors
def list_(file: str | None, as_json: bool) -> None:
    """Who has keys."""
    found = _open(file).list()
    if as_json:
        for key in found:
            emit_json(key.shown())
        return
    rows = [
        (key.key_id, key.tenant, key.user or "-", key.access, key.expires_at or "-", _standing(key), key.name)
        for key in found
    ]
    show_table(("key", "tenant", "user", "access", "expires", "standing", "name"), rows)


@keys.command()
@click.argument("key_id")
@click.option("--overlap", default="24h", show_default=True, metavar="TIME", help="How long the old token still holds.")
@_file_option
@json_option
@handles_errors
def rotate(key_id: str, overlap: str, file: str | None, as_json: bool) -> None:
    """Give a key a new token; the old one holds a little longer."""
    from muniment.surfaces.http.keys import lifetime

    _show_made(_open(file).rotate(key_id, lifetime(overlap, "$.overlap")), as_json)


@keys.command()
@click.argument("key_id")
@_file_option
@json_option
@handles_errors
def revoke(key_id: str, file: str | None, as_json: bool) -> None:
    """End a key at once."""
    key = _open(file).revoke(key_id)
    if as_json:
        emit_json(key.shown())
    else:
        click.echo(f"the key {key.key_id} ({key.name}) holds no longer")


def _show_made(made: Any, as_json: bool) -> None:
    if as_json:
        emit_json({"key": made.key.shown(), "token": made.token})
        return
    click.echo(made.token)
    click.echo(f"key {made.key.key_id}: keep the token, it is not shown again", err=True)


def _standing(key: Any) -> tuple[str, str]:
    return ("revoked", "red") if key.revoked_at is not None else ("holds", "green")
