"""What every command shares: one way to write results and one way to fail.

Results go to stdout, errors to stderr with their code. With `--json` both are canonical JSON, one document a line.
"""

from __future__ import annotations

from typing import Any

from muniment.errors import InvalidInput, MunimentError, UnknownKind
from muniment.surfaces.cli.terminal import echo

__all__ = ["EXIT_FAILED", "EXIT_USAGE", "Unreadable", "emit_json", "fail"]

EXIT_FAILED = 1
EXIT_USAGE = 2


class Unreadable(Exception):
    """An error of whatever kind that means that the question cannot be read: it ends with `EXIT_USAGE`."""

    def __init__(self, error: MunimentError) -> None:
        super().__init__(str(error))
        self.error = error


def emit_json(value: Any) -> None:
    """One canonical JSON line on stdout."""
    from muniment.core.canonical import canonical_text

    echo(canonical_text(value))


def fail(error: MunimentError, as_json: bool) -> int:
    """Show an error on stderr; returns the exit code that goes with it."""
    if as_json:
        from muniment.core.canonical import canonical_text

        echo(canonical_text(error.to_dict()), err=True)
    else:
        echo(f"error[{error.code}]: {MunimentError.__str__(error)}", err=True)
        for issue in error.details.get("issues", ()):  # all of them, a line for each
            echo(f"  {issue['path']}: {issue['message']}", err=True)
        for reason in error.details.get("reasons", ()):
            if reason not in error.message:
                echo(f"  {reason}", err=True)
        if error.hint:
            echo(f"hint: {error.hint}", err=True)
    return EXIT_USAGE if type(error) in (InvalidInput, UnknownKind) else EXIT_FAILED
