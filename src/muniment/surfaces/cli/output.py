"""What every command shares: one way to write results and one way to fail.

Results go to stdout, errors to stderr with their code. With `--json` both are canonical JSON, one document a line.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import click

from muniment.errors import InvalidInput, MunimentError, UnknownKind

__all__ = ["EXIT_FAILED", "EXIT_USAGE", "emit_json", "fail", "handles_errors"]

P = ParamSpec("P")
R = TypeVar("R")

EXIT_FAILED = 1
EXIT_USAGE = 2


def emit_json(value: Any) -> None:
    """One canonical JSON line on stdout."""
    from muniment.core.canonical import canonical_text

    click.echo(canonical_text(value))


def fail(error: MunimentError, as_json: bool) -> int:
    """Show an error on stderr; returns the exit code that goes with it."""
    if as_json:
        from muniment.core.canonical import canonical_text

        click.echo(canonical_text(error.to_dict()), err=True)
    else:
        click.echo(f"error[{error.code}]: {MunimentError.__str__(error)}", err=True)
        for issue in error.details.get("issues", ()):  # all of them, a line for each
            click.echo(f"  {issue['path']}: {issue['message']}", err=True)
        for reason in error.details.get("reasons", ()):
            if reason not in error.message:
                click.echo(f"  {reason}", err=True)
        if error.hint:
            click.echo(f"hint: {error.hint}", err=True)
    return EXIT_USAGE if type(error) in (InvalidInput, UnknownKind) else EXIT_FAILED


def handles_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn a `MunimentError` of a command into `fail` and its exit code; `as_json` is the command's `--json`."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except MunimentError as error:
            sys.exit(fail(error, bool(kwargs.get("as_json"))))

    return wrapped
