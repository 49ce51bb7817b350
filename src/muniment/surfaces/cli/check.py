"""`muniment check`: a constraint file against outputs, with an exit code for CI."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.errors import InvalidInput, MunimentError
from muniment.surfaces.cli.documents import LINE_SUFFIXES, read_documents, read_text
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import EXIT_FAILED, EXIT_USAGE, emit_json, fail, handles_errors

if TYPE_CHECKING:
    from muniment.contracts.run_records import VerifierResult
    from muniment.verify.outputs import Finding, Output
    from muniment.verify.regression.junit import JUnitCase
    from muniment.verify.static.notation import ConstraintSet

__all__ = ["check", "read_constraint_file"]


@click.command()
@click.argument("constraints", metavar="CONSTRAINTS")
@click.argument("outputs", nargs=-1, required=True, metavar="OUTPUT...")
@click.option("--junit", type=click.Path(dir_okay=False), metavar="FILE", help="Also write JUnit XML.")
@json_option
@handles_errors
def check(constraints: str, outputs: tuple[str, ...], junit: str | None, as_json: bool) -> None:
    """Check OUTPUTs against the constraint file CONSTRAINTS (YAML).

    An OUTPUT is a text file, or JSON lines of outputs (`.jsonl`, `.ndjson`): each line a string, or an object with
    `text` and what is known of the run (`tool_calls`, `usage`, `policy_events`, `marks`, `memory_hints`, `prompt`).
    `-` is stdin, read as one text. Exit code 0 if everything holds, 1 if a constraint is violated, 2 if something
    cannot be read.
    """
    from muniment.verify.composition import compose_result
    from muniment.verify.regression.junit import to_junit
    from muniment.verify.static.evaluation import evaluate

    if (constraints, *outputs).count("-") > 1:
        raise InvalidInput("stdin can be read once", path="$.outputs", hint="give all but one of them as files")
    asked = read_constraint_file(constraints, as_json=as_json)
    held, readable = True, True
    cases: list[JUnitCase] = []
    for where, item in _outputs(outputs):
        if isinstance(item, MunimentError):
            if not as_json:
                click.echo(f"{where}: cannot be read", err=True)
            fail(item, as_json)
            cases += _unreadable(where, item)
            readable = False
            continue
        findings = evaluate(item, asked.constraints)
        result = compose_result(findings, registry=asked.registry)
        held = held and all(finding.ok for finding in findings)
        cases += _junit_cases(where, findings)
        _show(where, item, result, findings, as_json)
    if junit is not None:
        _write(junit, to_junit(f"check {constraints}", cases))
    if not cases:
        raise InvalidInput("there is no output to check", path="$.outputs", hint="a file of JSON lines is empty")
    sys.exit(EXIT_USAGE if not readable else 0 if held else EXIT_FAILED)


def read_constraint_file(name: str, *, as_json: bool) -> ConstraintSet:
    """The constraints of a file; without them the program ends, since no constraints are not violated ones."""
    from muniment.verify.static.notation import read_constraints

    try:
        return read_constraints(read_text(name))
    except MunimentError as error:
        fail(error, as_json)
        sys.exit(EXIT_USAGE)


def _write(name: str, data: bytes) -> None:
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        message = f"cannot write {name}: {error.strerror or error}"
        raise InvalidInput(message, path="$.junit", hint="check the path") from None


def _outputs(names: tuple[str, ...]) -> Iterator[tuple[str, Output | MunimentError]]:
    """Each output and where it stood, or why there is none."""
    from muniment.verify.outputs import Output

    for name in names:
        try:
            if not name.endswith(LINE_SUFFIXES):
                yield name, Output.from_wire({"text": read_text(name)})
                continue
            for document in read_documents(name):
                yield f"{name}:{document.line}", document.error or _output(document.data)
        except MunimentError as error:
            yield name, error


def _output(data: Any) -> Output | MunimentError:
    from muniment.verify.outputs import Output

    try:
        return Output.from_wire({"text": data} if isinstance(data, str) else data)
    except MunimentError as error:
        return error


def _show(where: str, output: Output, result: VerifierResult, findings: list[Finding], as_json: bool) -> None:
    violated = [finding for finding in findings if not finding.ok]
    if as_json:
        shown = {
            "output": where,
            **({"id": output.id} if output.id is not None else {}),
            "ok": not violated,
            "result": result.to_wire(),
            "findings": [_finding(finding) for finding in findings],
        }
        emit_json(shown)
        return
    click.echo(f"{where}: {'holds' if not violated else result.verdict}")
    for finding in violated:
        mild = " (minor)" if finding.severity == "minor" else ""
        click.echo(f"  {finding.key}{mild}: {finding.message}")


def _finding(finding: Finding) -> dict[str, Any]:
    shape: dict[str, Any] = {"constraint": finding.constraint, "key": finding.key, "ok": finding.ok}
    if not finding.ok:
        shape |= {"message": finding.message, "severity": finding.severity, "reason": finding.reason}
    if finding.where is not None:
        shape["where"] = list(finding.where)
    return shape


def _junit_cases(where: str, findings: list[Finding]) -> list[JUnitCase]:
    from muniment.verify.regression.junit import JUnitCase

    return [
        JUnitCase(where, f"{number}. {each.key}", "passed" if each.ok else "failed", each.message)
        for number, each in enumerate(findings, 1)
    ]


def _unreadable(where: str, error: MunimentError) -> list[JUnitCase]:
    from muniment.verify.regression.junit import JUnitCase

    return [JUnitCase(where, "read", "error", str(error))]
