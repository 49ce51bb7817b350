"""`muniment schema`: the JSON Schemas of the kinds, listed, shown, exported."""

from __future__ import annotations

from pathlib import Path

import click

from muniment.surfaces.cli.output import emit_json, handles_errors

__all__ = ["schema"]

_AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document or JSON lines.")


@click.group()
def schema() -> None:
    """List, show or export the JSON Schemas (draft 2020-12) of the kinds."""


@schema.command("list")
@_AS_JSON
@handles_errors
def list_(as_json: bool) -> None:
    """List every kind with the document it comes from."""
    from muniment.contracts.kinds import KINDS, document_of

    for kind in KINDS:
        if as_json:
            emit_json({"kind": kind, "document": document_of(kind)})
        else:
            click.echo(f"{kind:<26}{document_of(kind)}")


@schema.command()
@click.argument("kind")
@_AS_JSON
@handles_errors
def show(kind: str, as_json: bool) -> None:
    """Print the JSON Schema of KIND; with --json, on one line."""
    from muniment.contracts.schemas import schema_of, schema_text

    if as_json:
        emit_json(schema_of(kind))
    else:
        click.echo(schema_text(kind), nl=False)


@schema.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False, writable=True))
@_AS_JSON
@handles_errors
def export(directory: Path, as_json: bool) -> None:
    """Write one file for each kind into DIRECTORY, which is made if need be."""
    from muniment.contracts.kinds import KINDS
    from muniment.contracts.schemas import schema_text

    try:
        directory.mkdir(parents=True, exist_ok=True)
        for kind in KINDS:
            (directory / f"{kind}.json").write_text(schema_text(kind), encoding="utf-8", newline="\n")
            if as_json:
                emit_json({"kind": kind, "file": str(directory / f"{kind}.json")})
    except OSError as error:
        raise click.ClickException(f"cannot write to {directory}: {error.strerror or error}") from None
    if not as_json:
        click.echo(f"{len(KINDS)} schemas in {directory}")
