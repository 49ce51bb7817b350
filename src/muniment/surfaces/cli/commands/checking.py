"""`check` and `check verify-output`: outputs held against constraints, documents and a run in a sandbox, for CI."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from muniment.errors import InvalidInput, MunimentError
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.documents import LINE_SUFFIXES, read_documents, read_text
from muniment.surfaces.cli.output import EXIT_FAILED, EXIT_USAGE, emit_json, fail
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.reading import constraints_given, write_bytes

if TYPE_CHECKING:
    from muniment.contracts.run_records import VerifierResult
    from muniment.verify.outputs import Finding, Output
    from muniment.verify.regression.junit import JUnitCase
    from muniment.verify.sandbox.harness import Harness
    from muniment.verify.static.notation import ConstraintSet

__all__ = ["EXIT_UNDECIDED", "check", "verify_output"]

EXIT_UNDECIDED = 3
"""The exit code where something was to be run and execution did not decide: no sandbox, a timeout, runs that differ."""


# -- constraints --------------------------------------------------------------------------------------


def _check(
    call: Call,
    constraints: str,
    outputs: Annotated[tuple[str, ...], Word(metavar="OUTPUT...")],
    *,
    junit: Annotated[str | None, Word("Also write JUnit XML.", metavar="FILE")] = None,
) -> None:
    from muniment.verify.composition import compose_result
    from muniment.verify.regression.junit import to_junit
    from muniment.verify.static.evaluation import evaluate

    if (constraints, *outputs).count("-") > 1:
        raise InvalidInput("stdin can be read once", path="$.outputs", hint="give all but one of them as files")
    asked = constraints_given(constraints)
    held, readable = True, True
    cases: list[JUnitCase] = []
    for where, item in _outputs(outputs):
        if isinstance(item, MunimentError):
            if not call.as_json:
                click.echo(f"{where}: cannot be read", err=True)
            fail(item, call.as_json)
            cases += _unreadable(where, item)
            readable = False
            continue
        findings = evaluate(item, asked.constraints)
        result = compose_result(findings, registry=asked.registry)
        held = held and all(finding.ok for finding in findings)
        cases += _junit_cases(where, findings)
        _show(where, item, result, findings, call.as_json)
    if junit is not None:
        write_bytes(junit, to_junit(f"check {constraints}", cases), "$.junit")
    if not cases:
        raise InvalidInput("there is no output to check", path="$.outputs", hint="a file of JSON lines is empty")
    sys.exit(EXIT_USAGE if not readable else 0 if held else EXIT_FAILED)


check = Command(
    function=_check,
    on="nothing",
    about="An OUTPUT is a text file, or JSON lines of outputs (`.jsonl`, `.ndjson`): each line a string, or an object "
    "with `text` and what is known of the run (`tool_calls`, `usage`, `policy_events`, `marks`, `memory_hints`, "
    "`prompt`). `-` is stdin, read as one text. Exit code 0 if everything holds, 1 if a constraint is violated, 2 if "
    "something cannot be read.",
)


def _outputs(names: tuple[str, ...]) -> Iterator[tuple[str, Output | MunimentError]]:
    """Each output and where it stood, or why there is none."""
    for name in names:
        try:
            if not name.endswith(LINE_SUFFIXES):
                yield name, _output(read_text(name))
                continue
            for document in read_documents(name):
                yield f"{name}:{document.line}", document.error or _output(document.data)
        except MunimentError as error:
            yield name, error


def _output(data: Any) -> Output | MunimentError:
    from muniment.verify.static.given_outputs import read_output

    try:
        return read_output(data, "$")
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


# -- one output, in every way -------------------------------------------------------------------------


def _verify_output(
    call: Call,
    output: str,
    *,
    constraints: Annotated[
        ConstraintSet | None, Word("Checks of form, in YAML.", metavar="FILE", read=constraints_given)
    ] = None,
    documents: Annotated[tuple[str, ...], Word("What its facts are checked against.", "document", metavar="FILE")] = (),
    command: Annotated[
        str | None, Word("Run this in a sandbox, with OUTPUT there as output.txt.", metavar="LINE")
    ] = None,
    suite: Annotated[tuple[str, ...], Word("Run these tests on OUTPUT in a sandbox.", "pytest", metavar="FILE")] = (),
    name: Annotated[str, Word("What OUTPUT is called in the sandbox.", "as", metavar="NAME")] = "output.txt",
    runs: Annotated[int, Word("Run it so often; runs that differ decide nothing.", metavar="N")] = 1,
    run_id: Annotated[str | None, Word("Keep the result with this run (needs --db).")] = None,
) -> VerifierResult:
    from muniment.core.policy.policy import Policy
    from muniment.surfaces.settings import open_store
    from muniment.verify import verifying
    from muniment.verify.facts import SourceText
    from muniment.verify.static.given_outputs import read_output

    given = read_output(read_text(output))
    asked: dict[str, Any] = {
        "constraints": constraints,
        "documents": [SourceText(path, read_text(path)) for path in documents] or None,
        "harness": _harness(command, suite, runs),
        "files": {name: given.text.encode()},
    }
    if run_id is None:
        return verifying.verify_output(given, policy=Policy(), **asked).result
    with open_store(call.settings, must_exist=True) as mem:
        return mem.resume(run_id, tenant_id=call.tenant).run.verify(given, **asked)


def _harness(command: str | None, suite: tuple[str, ...], runs: int) -> Harness | None:
    if command is None and not suite:
        return None
    from muniment.verify.sandbox.harness import Harness

    tests = {Path(path).name: read_text(path).encode() for path in suite}
    return Harness(command=command, pytest=tuple(tests) if suite else None, files=tests, runs=runs)


def _show_result(call: Call) -> Iterator[str]:
    result: VerifierResult = call.answer
    yield f"{result.verdict}, outcome {result.outcome}, score {result.score:g}"
    for key in result.violated_constraints or ():
        yield f"  violated: {key}"
    for code in result.reason_codes or ():
        yield f"  reason:   {code}"
    for line in (result.notes or "").split("; ") if result.notes else ():
        yield f"  {line}"


def _code(call: Call) -> int:
    from muniment.verify.verdicts import is_pass

    result: VerifierResult = call.answer
    was_run = "command" in call.typed or "suite" in call.typed
    if was_run and result.outcome == "UNKNOWN" and result.verdict != "FAIL":
        return EXIT_UNDECIDED
    return 0 if is_pass(result.verdict, result.outcome) else EXIT_FAILED


verify_output = Command(
    "run.verify",
    _show_result,
    function=_verify_output,
    on="store or nothing",
    calls=("memory.resume",),
    document=lambda call: call.answer.to_wire(),
    code=_code,
    about="OUTPUT is a text file; `-` is stdin. Exit code 0 if it passes, 1 if not, 2 if something cannot be read, 3 "
    "if it was to be run and that decided nothing.",
)
