"""`muniment sandbox`: run a command walled off, and say what it met."""

from __future__ import annotations

import shlex
import sys
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.errors import InvalidInput, SandboxFailure
from muniment.surfaces.cli.documents import read_documents
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import emit_json, fail, handles_errors

if TYPE_CHECKING:
    from muniment.contracts.sandbox import SandboxPolicy
    from muniment.verify.sandbox.port import Observation

__all__ = ["sandbox"]

EXIT_TIMEOUT, EXIT_NO_SANDBOX, EXIT_KILLED = 124, 125, 137
"""As timeout(1), container runners and shells have them."""

_WORDS = {
    "turns": "no turns were left",
    "wall": "it was stopped at its wall time",
    "cpu": "it was stopped at its CPU time",
    "memory": "it was stopped at its memory cap",
    "processes": "it could not start more processes",
    "disk": "the scratch was full",
    "files": "it was stopped at its cap on files",
    "output": "it was stopped at its cap on output",
}


@click.group()
def sandbox() -> None:
    """Run something in a sandbox: no network, no files of this machine, limits on everything."""


@sandbox.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND…")
@click.option("--policy", "policy_file", metavar="FILE", help="A SandboxPolicy as JSON; the options below go first.")
@click.option("--network", type=click.Choice(["off", "allowlist", "on"]), help="The network (default: off).")
@click.option("--allow", multiple=True, metavar="HOST:PORT", help="May be reached; means --network allowlist.")
@click.option("--wall", type=float, metavar="S", help="Seconds it may take (default: 60).")
@click.option("--cpu", type=float, metavar="S", help="Seconds of CPU all its processes may take (default: 60).")
@click.option("--mem", type=int, metavar="MB", help="Memory of all its processes (default: 512).")
@click.option("--disk", type=int, metavar="MB", help="What it may write (default: 256).")
@click.option("--processes", type=int, metavar="N", help="Processes and threads (default: 64).")
@click.option("--output", "output_bytes", type=int, metavar="BYTES", help="What it may print (default: 1048576).")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file or folder to put into its scratch.")
@click.option("--image", metavar="DIR", help="An unpacked root file system to run in (default: programs of this one).")
@json_option
@handles_errors
def run(command: tuple[str, ...], files: tuple[str, ...], image: str | None, as_json: bool, **given: Any) -> None:
    """Run COMMAND in a sandbox with an empty scratch folder.

    One argument is a line of bash; several are a program and its arguments. The exit code is the command's, 124 if
    it was stopped at a time limit, 137 at another, 125 if there is no sandbox: then nothing was run.
    """
    from muniment.core.outside.system import SystemIds
    from muniment.verify.sandbox import BubblewrapSandbox

    policy = _policy(given, image)
    line = command[0] if len(command) == 1 else shlex.join(command)
    images = {} if image is None else {image: Path(image)}
    try:
        with BubblewrapSandbox(images=images).open(policy, _read(files), trace_id=SystemIds().new("trc")) as session:
            seen = session.execute_bash(line)
    except SandboxFailure as error:
        fail(error, as_json)
        sys.exit(EXIT_NO_SANDBOX)
    _show(seen, as_json)
    sys.exit(_exit_code(seen))


def _policy(given: dict[str, Any], image: str | None) -> SandboxPolicy:
    from muniment.contracts.sandbox import SandboxPolicy
    from muniment.core.record import RULECRAFT_VERSION

    named = given["policy_file"]
    wire: dict[str, Any] = {"schema_version": RULECRAFT_VERSION} if named is None else _policy_of(named)
    if given["allow"]:
        wire |= {"network": "allowlist", "allowlist": list(given["allow"])}
    if given["network"] is not None:
        wire["network"] = given["network"]
    if image is not None:
        wire["image_id"] = image
    asked = {
        "wall_ms": _milliseconds(given["wall"]),
        "cpu_ms": _milliseconds(given["cpu"]),
        "mem_mb": given["mem"],
        "disk_mb": given["disk"],
        "processes": given["processes"],
        "output_bytes": given["output_bytes"],
    }
    caps = {name: value for name, value in asked.items() if value is not None}
    if caps and isinstance(wire.get("caps", {}), dict):  # anything else is refused with the policy
        wire["caps"] = {**wire.get("caps", {}), **caps}
    return SandboxPolicy.from_wire(wire)


def _policy_of(name: str) -> dict[str, Any]:
    document = next(read_documents(name), None)
    if document is None or document.error is not None or not isinstance(document.data, dict):
        said = document.error.message if document is not None and document.error is not None else "not a JSON object"
        raise InvalidInput(f"{name} is no policy: {said}")
    return document.data


def _milliseconds(seconds: float | None) -> int | None:
    if seconds is not None and not isfinite(seconds):
        raise InvalidInput(f"{seconds} is no number of seconds", path="$.caps")
    return None if seconds is None else round(seconds * 1000)


def _read(names: tuple[str, ...]) -> dict[str, bytes]:
    """Files by their path in the scratch: a file by its name, a folder by its own name and what is in it."""
    found: dict[str, bytes] = {}
    for name in names:
        base = Path(name).resolve()
        if not base.is_dir() and not base.is_file():
            raise InvalidInput(f"{name} is neither a file nor a folder", path="$.file", hint="check the path")
        for path in sorted(base.rglob("*")) if base.is_dir() else [base]:
            if path.is_file() and not path.is_symlink():
                found[str(path.relative_to(base.parent))] = path.read_bytes()
    return found


def _show(seen: Observation, as_json: bool) -> None:
    if as_json:
        emit_json(
            {
                "ok": seen.ok,
                "exit_code": seen.exit_code,
                "error_class": seen.error_class,
                "capped": list(seen.capped),
                "stdout": seen.stdout,
                "stderr": seen.stderr,
                "usage": {name: getattr(seen.usage, name) for name in seen.usage.__slots__},
                "trace": seen.trace.to_wire(),
            }
        )
        return
    click.echo(seen.stdout, nl=False)
    click.echo(seen.stderr, nl=False, err=True)
    for cap in seen.capped:
        click.echo(f"sandbox: {_WORDS[cap]}", err=True)
    if seen.error_class in ("sandbox_denied", "exec_unavailable"):
        click.echo(f"sandbox: the command was not run [{seen.error_class}]", err=True)


def _exit_code(seen: Observation) -> int:
    if seen.exit_code is not None and seen.error_class in (None, "exit_nonzero"):
        return seen.exit_code
    if seen.error_class == "sandbox_timeout":
        return EXIT_TIMEOUT
    return EXIT_KILLED if seen.error_class == "cap_exceeded" else EXIT_NO_SANDBOX
