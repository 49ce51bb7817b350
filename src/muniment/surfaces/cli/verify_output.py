"""`muniment verify-output`: one output against constraints, documents and a command in a sandbox."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from muniment.surfaces.cli.check import read_constraint_file
from muniment.surfaces.cli.documents import read_text
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors

if TYPE_CHECKING:
    from muniment.contracts.run_records import VerifierResult
    from muniment.verify.sandbox.harness import Harness

__all__ = ["verify_output"]

EXIT_UNDECIDED = 3
"""It was to be run, and execution did not decide: no sandbox, a timeout, runs that differ."""


@click.command("verify-output")
@click.argument("output", metavar="OUTPUT")
@click.option("--constraints", metavar="FILE", help="Checks of form, in YAML.")
@click.option("--document", "documents", multiple=True, metavar="FILE", help="What its facts are checked against.")
@click.option("--command", metavar="LINE", help="Run this in a sandbox, with OUTPUT there as output.txt.")
@click.option("--pytest", "suite", multiple=True, metavar="FILE", help="Run these tests on OUTPUT in a sandbox.")
@click.option("--as", "name", metavar="NAME", default="output.txt", help="What OUTPUT is called in the sandbox.")
@click.option("--runs", default=1, metavar="N", help="Run it so often; runs that differ decide nothing.")
@click.option("--run", "run_id", metavar="RUN", help="Keep the result with this run (needs --db).")
@db_option
@tenant_option
@json_option
@handles_errors
def verify_output(
    output: str,
    constraints: str | None,
    documents: tuple[str, ...],
    command: str | None,
    suite: tuple[str, ...],
    name: str,
    runs: int,
    run_id: str | None,
    db: str | None,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Verify the text file OUTPUT (`-` is stdin).

    Exit code 0 if it passes, 1 if not, 2 if something cannot be read, 3 if it was to be run and that decided nothing.
    """
    from muniment.core.policy.policy import Policy
    from muniment.verify import verifying
    from muniment.verify.facts import SourceText
    from muniment.verify.verdicts import is_pass

    given = verifying.output_of(read_text(output))
    asked = None if constraints is None else read_constraint_file(constraints, as_json=as_json)
    texts = [SourceText(path, read_text(path)) for path in documents] or None
    harness = _harness(command, suite, runs)
    files = {name: given.text.encode()}
    if run_id is None:
        result = verifying.verify_output(
            given, constraints=asked, documents=texts, harness=harness, policy=Policy(), files=files
        ).result
    else:
        from muniment.surfaces.settings import load_settings, open_store

        settings = load_settings({"db": db, "tenant": tenant})
        with open_store(settings, must_exist=True) as mem:
            run = mem.resume(run_id, tenant_id=settings.tenant).run
            result = run.verify(given, constraints=asked, documents=texts, harness=harness, files=files)
    _show(result, as_json=as_json)
    if harness is not None and result.outcome == "UNKNOWN" and result.verdict != "FAIL":
        sys.exit(EXIT_UNDECIDED)
    sys.exit(0 if is_pass(result.verdict, result.outcome) else EXIT_FAILED)


def _harness(command: str | None, suite: tuple[str, ...], runs: int) -> Harness | None:
    if command is None and not suite:
        return None
    from muniment.verify.sandbox.harness import Harness

    tests = {Path(path).name: read_text(path).encode() for path in suite}
    return Harness(command=command, pytest=tuple(tests) if suite else None, files=tests, runs=runs)


def _show(result: VerifierResult, *, as_json: bool) -> None:
    if as_json:
        emit_json(result.to_wire())
    else:
        click.echo(f"{result.verdict}, outcome {result.outcome}, score {result.score:g}")
        for key in result.violated_constraints or ():
            click.echo(f"  violated: {key}")
        for code in result.reason_codes or ():
            click.echo(f"  reason:   {code}")
        for line in (result.notes or "").split("; ") if result.notes else ():
            click.echo(f"  {line}")
