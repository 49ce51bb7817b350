"""`validate` and `schema …`: check documents against their contracts, and show the contracts' JSON Schemas."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from muniment.errors import InvalidInput, Issue
from muniment.surfaces.cli._command import EXIT_FAILED, EXIT_USAGE, Call, Command, OptionSpec, emit_json, report_error
from muniment.surfaces.cli._reading import LINE_SUFFIXES, Document, read_documents
from muniment.surfaces.cli.terminal import echo

__all__ = ["export_schemas", "list_kinds", "show_schema", "validate"]


# -- validate -----------------------------------------------------------------------------------------


def _validate(
    call: Call,
    files: Annotated[tuple[str, ...], OptionSpec(metavar="FILE...")],
    *,
    kind: Annotated[str, OptionSpec("The contract, such as MemoryPacket (`schema list`).", metavar="KIND")],
    semantic: Annotated[bool, OptionSpec("Also check the binding runtime rules.")] = False,
    strict: Annotated[bool, OptionSpec("Also warn of keys the contract does not know.")] = False,
) -> None:
    from muniment.contracts.kinds import check_kind

    check_kind(kind)
    reader = _Reader(files, call.as_json)
    findings = _judged(kind, reader.documents(), semantic, strict)
    if semantic and kind == "CompactionSnapshot":
        findings = _with_run_invariants(findings)
    valid = True
    for index, (finding, _) in enumerate(findings):
        valid = valid and not finding["errors"]
        _show({"index": index, "valid": not finding["errors"], **finding}, call.as_json)
    sys.exit(EXIT_USAGE if reader.unreadable else 0 if valid else EXIT_FAILED)


validate = Command(
    function=_validate,
    prints=True,
    on="nothing",
    about="FILE is JSON, or JSON lines (by its suffix, or when it holds a document a line); `-` is stdin. Exit code 0 "
    "if every document is valid, 1 if one is not, 2 if a file cannot be read. With --json, one line for each "
    "document.",
)


class _Reader:
    """Reads the documents of all files in order; a file that cannot be read is reported and skipped."""

    def __init__(self, files: tuple[str, ...], as_json: bool) -> None:
        self.files = files
        self.as_json = as_json
        self.unreadable = False

    def documents(self) -> Iterator[Document]:
        for name in self.files:
            try:
                yield from read_documents(name)
            except InvalidInput as error:
                report_error(error, self.as_json)
                self.unreadable = True


_Finding = tuple[dict[str, Any], Any]  # the fields shown; the data, if it fits its shape


def _judged(kind: str, documents: Iterator[Document], semantic: bool, strict: bool) -> Iterator[_Finding]:
    from muniment.contracts.schemas import unknown_keys
    from muniment.contracts.schemas import validate as validate_data
    from muniment.contracts.semantics import check_semantics

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
        finding: dict[str, Any] = {"file": document.file, "line": document.line, "errors": _issue_fields(errors)}
        if strict:
            finding["warnings"] = _issue_fields(warnings)
        yield finding, data if fits else None


def _issue_fields(issues: list[Issue]) -> list[dict[str, str]]:
    """The path and the message of each issue."""
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
        finding["errors"] += _issue_fields(broken.get(index, []))
        yield finding, None


def _show(finding: dict[str, Any], as_json: bool) -> None:
    if as_json:
        emit_json(finding)
        return
    where = "stdin" if finding["file"] == "-" else finding["file"]
    if finding["line"] > 1 or where.endswith(LINE_SUFFIXES):
        where += f":{finding['line']}"
    echo(f"{where}: {'valid' if finding['valid'] else 'invalid'}")
    for error in finding["errors"]:
        echo(f"  {error['path']}: {error['message']}")
    for warning in finding.get("warnings", ()):
        echo(f"  warning: {warning['path']}: {warning['message']}")


# -- schemas ------------------------------------------------------------------------------------------


def _kinds(_: Call) -> dict[str, str]:
    from muniment.contracts.kinds import ALL_KINDS, document_of

    return {kind: document_of(kind) for kind in ALL_KINDS}


list_kinds = Command(
    "",
    lambda call: [f"{kind:<26}{document}" for kind, document in call.answer.items()],
    function=_kinds,
    on="nothing",
    document=lambda call: ({"kind": kind, "document": document} for kind, document in call.answer.items()),
)


def _schema(_: Call, kind: str) -> str:
    from muniment.contracts.schemas import schema_text

    return schema_text(kind)


def _schema_document(call: Call) -> Any:
    from muniment.contracts.schemas import schema_of

    return schema_of(call.typed["kind"])


show_schema = Command(
    "", lambda call: [call.answer.removesuffix("\n")], function=_schema, on="nothing", document=_schema_document
)


def _export(_: Call, directory: Annotated[str, OptionSpec(metavar="DIRECTORY")]) -> dict[str, Path]:
    from muniment.contracts.kinds import ALL_KINDS
    from muniment.contracts.schemas import schema_text

    made = {kind: Path(directory) / f"{kind}.json" for kind in ALL_KINDS}
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
        for kind, file in made.items():
            file.write_text(schema_text(kind), encoding="utf-8", newline="\n")
    except OSError as error:
        raise InvalidInput(
            f"cannot write to {directory}: {error.strerror or error}", path="$.directory", hint="check the path"
        ) from None
    return made


export_schemas = Command(
    "",
    lambda call: [f"{len(call.answer)} schemas in {call.typed['directory']}"],
    function=_export,
    on="nothing",
    document=lambda call: ({"kind": kind, "file": str(file)} for kind, file in call.answer.items()),
)
