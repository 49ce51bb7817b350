"""`check sandbox`: run a command walled off, and say what it met."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from muniment.errors import InvalidInput, SandboxFailure
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.documents import read_documents
from muniment.surfaces.cli.output import fail
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.terminal import echo

if TYPE_CHECKING:
    from muniment.contracts.runs import SandboxPolicy
    from muniment.verify.sandbox.port import Observation

__all__ = ["EXIT_KILLED", "EXIT_NO_SANDBOX", "EXIT_TIMEOUT", "run"]

EXIT_TIMEOUT, EXIT_NO_SANDBOX, EXIT_KILLED = 124, 125, 137
"""Exit codes, as timeout(1), container runners and shells have them."""

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


def _run(
    call: Call,
    command: Annotated[tuple[str, ...], Word(metavar="-- COMMAND…")],
    *,
    policy: Annotated[str | None, Word("A SandboxPolicy as JSON; the options below go first.", metavar="FILE")] = None,
    network: Annotated[Literal["off", "allowlist", "on"] | None, Word("The network (default: off).")] = None,
    allow: Annotated[tuple[str, ...], Word("May be reached; means --network allowlist.", metavar="HOST:PORT")] = (),
    wall: Annotated[float | None, Word("Seconds it may take (default: 60).", metavar="S")] = None,
    cpu: Annotated[float | None, Word("Seconds of CPU all its processes may take (default: 60).", metavar="S")] = None,
    mem: Annotated[int | None, Word("Memory of all its processes (default: 512).", metavar="MB")] = None,
    disk: Annotated[int | None, Word("What it may write (default: 256).", metavar="MB")] = None,
    processes: Annotated[int | None, Word("Processes and threads (default: 64).", metavar="N")] = None,
    output: Annotated[int | None, Word("What it may print (default: 1048576).", metavar="BYTES")] = None,
    files: Annotated[tuple[str, ...], Word("A file or folder to put into its scratch.", "file", metavar="PATH")] = (),
    image: Annotated[
        str | None, Word("An unpacked root file system to run in (default: programs of this one).", metavar="DIR")
    ] = None,
) -> Observation:
    from muniment.core.outside.system import SystemIds
    from muniment.verify.sandbox import load_sandbox

    caps = {
        "wall_ms": _milliseconds(wall),
        "cpu_ms": _milliseconds(cpu),
        "mem_mb": mem,
        "disk_mb": disk,
        "processes": processes,
        "output_bytes": output,
    }
    asked = _policy(policy, network, allow, image, {name: most for name, most in caps.items() if most is not None})
    line = command[0] if len(command) == 1 else shlex.join(command)
    images = {} if image is None else {image: Path(image)}
    try:
        with load_sandbox(images=images).open(asked, _read(files), trace_id=SystemIds().new("trc")) as session:
            return session.execute_bash(line)
    except SandboxFailure as error:
        fail(error, call.as_json)
        sys.exit(EXIT_NO_SANDBOX)


def _policy(
    named: str | None, network: str | None, allow: tuple[str, ...], image: str | None, caps: dict[str, int]
) -> SandboxPolicy:
    from muniment.contracts.runs import SandboxPolicy
    from muniment.core.record import RULECRAFT_VERSION

    wire: dict[str, Any] = {"schema_version": RULECRAFT_VERSION} if named is None else _policy_of(named)
    if allow:
        wire |= {"network": "allowlist", "allowlist": list(allow)}
    if network is not None:
        wire["network"] = network
    if image is not None:
        wire["image_id"] = image
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


def _document(call: Call) -> dict[str, Any]:
    seen: Observation = call.answer
    return {
        "ok": seen.ok,
        "exit_code": seen.exit_code,
        "error_class": seen.error_class,
        "capped": list(seen.capped),
        "stdout": seen.stdout,
        "stderr": seen.stderr,
        "usage": {name: getattr(seen.usage, name) for name in seen.usage.__slots__},
        "trace": seen.trace.to_wire(),
    }


def _show(call: Call) -> Iterator[str]:
    seen: Observation = call.answer
    echo(seen.stdout, nl=False)
    echo(seen.stderr, nl=False, err=True)
    for cap in seen.capped:
        echo(f"sandbox: {_WORDS[cap]}", err=True)
    if seen.error_class in ("sandbox_denied", "exec_unavailable"):
        echo(f"sandbox: the command was not run [{seen.error_class}]", err=True)
    return iter(())


def _exit_code(call: Call) -> int:
    seen: Observation = call.answer
    if seen.exit_code is not None and seen.error_class in (None, "exit_nonzero"):
        return seen.exit_code
    if seen.error_class == "sandbox_timeout":
        return EXIT_TIMEOUT
    return EXIT_KILLED if seen.error_class == "cap_exceeded" else EXIT_NO_SANDBOX


run = Command(
    "",
    _show,
    function=_run,
    on="sandbox",
    document=_document,
    code=_exit_code,
    about="No network, no files of this machine, limits on everything, an empty scratch folder. One argument is a "
    "line of bash; several are a program and its arguments. The exit code is the command's, 124 if it was stopped at "
    "a time limit, 137 at another, 125 if there is no sandbox: then nothing was run.",
)
