"""`muniment export` and `muniment import`: a scope as JSON lines, out of one store and into another."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from muniment.errors import InvalidInput, StorageFull
from muniment.surfaces.cli.options import db_option, json_option, scope_options
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.progress import Advance, progress_bar
from muniment.surfaces.settings import load_settings, open_store

__all__ = ["export_", "import_", "write_file"]


@click.command("export")
@click.argument("out", default="-", metavar="[OUT]")
@db_option
@scope_options
@json_option
@handles_errors
def export_(out: str, db: str | None, tenant: str | None, user: str | None, session: str | None, as_json: bool) -> None:
    """Write everything in a scope to OUT as JSON lines (default: standard output).

    A file appears under its name only when it is complete.
    """
    settings = load_settings({"db": db, "tenant": tenant})
    if session and not user:
        raise InvalidInput("a session is named within a user", path="$.user", hint="give --user as well")
    with open_store(settings, must_exist=True) as mem:
        lines = mem.export(tenant_id=settings.tenant, user_id=user, session_id=session)
        if out == "-":
            stream = sys.stdout.buffer
            for line in lines:
                stream.write(line)
            return
        with progress_bar("exporting", None, quiet=as_json) as advance:
            count = write_file(Path(out), _ticking(lines, advance))
    if as_json:
        emit_json({"file": out, "lines": count})
    else:
        click.echo(f"{count} lines in {out}")


def _ticking(lines: Iterator[bytes], advance: Advance) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        if number % 1000 == 0:
            advance(1000)
        yield line


def write_file(path: Path, lines: Iterator[bytes]) -> int:
    """Write beside the target, then rename: no half dump is ever called by its name."""
    part = path.with_name(path.name + ".part")
    count = 0
    try:
        with part.open("wb") as file:
            for line in lines:
                file.write(line)
                count += 1
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        kind = StorageFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else InvalidInput
        raise kind(f"cannot write {path}: {error.strerror or error}", path="$.out") from None
    finally:
        part.unlink(missing_ok=True)
    return count


@click.command("import")
@click.argument("file", metavar="FILE")
@db_option
@json_option
@handles_errors
def import_(file: str, db: str | None, as_json: bool) -> None:
    """Read a dump into a store (`-` is standard input).

    The whole dump is checked, chains included, before anything is written. Running it again continues where an
    interrupted import stopped.
    """
    from muniment.handles.derived import check_dump

    settings = load_settings({"db": db})
    with tempfile.TemporaryDirectory(prefix="muniment-") as scratch:
        if file == "-":
            file = str(Path(scratch) / "dump")
            with Path(file).open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        dump = check_dump(file)
        with open_store(settings) as mem, progress_bar("importing", dump.rows, quiet=as_json) as advance:
            report = mem.import_(dump, progress=advance)
    if as_json:
        emit_json(report.to_wire())
        return
    written, skipped = sum(report.written.values()), sum(report.skipped.values())
    click.echo(f"{written} rows written, {skipped} were there already (tenant {report.tenant_id})")
