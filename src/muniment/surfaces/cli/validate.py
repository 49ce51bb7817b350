"""`muniment validate`: does each document fit its contract, and with `--semantic`, does it hold?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from muniment.errors import InvalidInput, Issue
from muniment.surfaces.cli.documents import LINE_SUFFIXES, Document, read_documents
from muniment.surfaces.cli.output import EXIT_FAILED, EXIT_USAGE, emit_json, fail, handles_errors

__all__ = ["validate"]


@click.command()
@click.option("--kind", required=True, metavar="KIND", help="The contract, such as MemoryPacket (`schema list`).")
@click.option("--semantic", is_flag=True, help="Also check the binding runtime rules.")
@click.option("--strict", is_flag=True, help="Also warn of keys the contract does not know.")
@click.option("--json", "as_json", is_flag=True, help="One JSON line for each document.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@handles_errors
def validate(kind: str, semantic: bool, strict: bool, as_json: bool, files: tuple[str, ...]) -> None:
    """Check documents against the contract KIND.

    FILE is JSON, or JSON lines (by its suffix, or when it holds a document a line); `-` is stdin. Exit code 0 if
    every document is valid, 1 if one is not, 2 if a file cannot be read.
    """
    from muniment.contracts.kinds import check_kind

    check_kind(kind)
    reader = _Reader(files, as_json)
    findings = _judged(kind, reader.documents(), semantic, strict)
    if semantic and kind == "CompactionSnapshot":
        findings = _with_run_invariants(findings)
    valid = True
    for index, (finding, _) in enumerate(findings):
        valid = valid and not finding["errors"]
        _show({"index": index, "valid": not finding["errors"], **finding}, as_json)
    sys.exit(EXIT_USAGE if reader.unreadable else 0 if valid else EXIT_FAILED)


class _Reader:
    """The documents of all files in order; a file that cannot be read is told of and skipped."""

    def __init__(self, files: tuple[str, ...], as_json: bool) -> None:
        self.files = files
        self.as_json = as_json
        self.unreadable = False

    def documents(self) -> Iterator[Document]:
        for name in self.files:
            try:
                yield from read_documents(name)
            except InvalidInput as error:
                fail(error, self.as_json)
                self.unreadable = True


_Finding = tuple[dict[str, Any], Any]  # what is shown; the data, where it fits its shape


def _judged(kind: str, documents: Iterator[Document], semantic: bool, strict: bool) -> Iterator[_Finding]:
    from muniment.contracts.semantics import check_semantics
    from muniment.contracts.validation import unknown_keys
    from muniment.contracts.validation import validate as validate_data

    for document in documents:
        data, warnings = document.data, []
        if document.error is not None:
            message = document.error.message
            errors = [Issue(document.error.path or "$", message, document.error.code)]
        else:
            errors = validate_data(kind, data)
            if strict:
                warnings = unknown_keys(kind, data)
        fits = not errors
        if fits and semantic:
            errors = check_semantics(kind, data)
        finding: dict[str, Any] = {"file": document.file, "line": document.line, "errors": _plain(errors)}
        if strict:
            finding["warnings"] = _plain(warnings)
        yield finding, data if fits else None


def _plain(issues: list[Issue]) -> list[dict[str, str]]:
    return [{"path": issue.path, "message": issue.message} for issue in issues]


def _with_run_invariants(findings: Iterator[_Finding]) -> Iterator[_Finding]:
    """CS-05 needs every snapshot of a run, so findings are held, but not the documents."""
    from muniment.contracts.semantics import RunInvariants

    invariants, held = RunInvariants(), []
    for index, (finding, data) in enumerate(findings):
        if data is not None:
            invariants.add(index, data)
        held.append(finding)
    broken = invariants.issues()
    for index, finding in enumerate(held):
        finding["errors"] += _plain(broken.get(index, []))
        yield finding, None


def _show(finding: dict[str, Any], as_json: bool) -> None:
    if as_json:
        emit_json(finding)
        return
    where = "stdin" if finding["file"] == "-" else finding["file"]
    if finding["line"] > 1 or where.endswith(LINE_SUFFIXES):
        where += f":{finding['line']}"
    click.echo(f"{where}: {'valid' if finding['valid'] else 'invalid'}")
    for error in finding["errors"]:
        click.echo(f"  {error['path']}: {error['message']}")
    for warning in finding.get("warnings", ()):
        click.echo(f"  warning: {warning['path']}: {warning['message']}")
