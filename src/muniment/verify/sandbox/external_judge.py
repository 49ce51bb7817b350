"""A suite judged by a process that nothing of the output ever enters: two sandboxes, joined by pipes.

The judge has the suite and no file of the output; the code has its own files and none of the suite. Each is a
sandbox of its own: another process namespace, another file system. Between them go questions and plain values. What
came of the tests reaches us over a third pipe, which the code does not have, under a nonce that it is not told.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol, cast

from muniment.contracts.runs import SandboxPolicy
from muniment.errors import SandboxUnavailable
from muniment.verify.sandbox.bubblewrap import WORKDIR
from muniment.verify.sandbox.judging import SuiteReport, read_report
from muniment.verify.sandbox.port import Observation, Sandbox, SandboxSession
from muniment.verify.sandbox.running import Wires
from muniment.verify.sandbox.suite_files import beside_suite, module_names, roots_of
from muniment.verify.sandbox.trees import INSIDE

__all__ = ["Heard", "Suite", "hear_inside", "hear_outside"]

REPORT_BYTES_MAX = 4 << 20
_FOLDER = ".muniment"
_JUDGE, _CODE = ("finders.py", "judge.py", "nearness.py", "remote.py", "stubs.py", "wire.py"), ("serve.py", "wire.py")
_BOOT = (
    "import os, sys; sys.path[:0] = sys.argv[2:3] + [p for p in os.environ.pop('PYTHONPATH', '').split(':') if p]; "
    "__import__(sys.argv[1]).main(sys.argv[3:])"
)
"""Starts a script of ours in a Python that takes nothing from its folder, its user or its environment."""


class Heard(NamedTuple):
    """One sitting: what the judge's sandbox said, that of the code where it has one, and the report of the tests."""

    judge: Observation
    code: Observation | None
    report: SuiteReport | None
    counted: Observation | None = None
    """The sandbox in which the tests were counted, where that was another one."""


class WiredSession(SandboxSession, Protocol):
    """A session whose actions can be handed descriptors."""

    def execute_wired(self, command: str, wires: Wires) -> Observation: ...


def _joined(session: SandboxSession) -> WiredSession:
    if not callable(getattr(session, "execute_wired", None)):
        raise SandboxUnavailable("this sandbox cannot be joined to a judge", hint="BubblewrapSandbox can")
    return cast("WiredSession", session)


class Suite(NamedTuple):
    """What is put to the test by what, where."""

    args: Sequence[str]
    files: Mapping[str, bytes]
    output: Mapping[str, bytes]
    policy: SandboxPolicy
    sandbox: Sandbox
    trace_id: str


def hear_outside(suite: Suite) -> Heard:
    """The suite in one sandbox, the code in another."""
    nonce = secrets.token_hex(16)
    job = {"nonce": nonce, "mode": "outside", "args": list(suite.args), "modules": _modules(suite)}
    held = _Pipes()
    try:
        asks, says, stop = held.pipe(), held.pipe(), held.pipe()
        with (
            suite.sandbox.open(suite.policy, _with(_JUDGE, suite.files, job), trace_id=suite.trace_id) as judge,
            suite.sandbox.open(suite.policy, _with(_CODE, suite.output, None), trace_id=suite.trace_id) as code,
        ):
            judging, coding = _joined(judge), _joined(code)
            seen: list[Observation] = []
            served = threading.Thread(
                target=lambda: seen.append(_serve(coding, suite, held, asks[0], says[1], stop[0]))
            )
            served.start()
            try:
                told, report = _ask(judging, suite, held, nonce, (says[0], asks[1]))
            finally:
                held.close(asks[1], says[0], stop[1])
                served.join()
        return Heard(told, seen[0] if seen else None, report)
    finally:
        held.close(*held.open)


def hear_inside(suite: Suite, expected: Sequence[str] | None) -> Heard:
    """Suite and code in one process, which the code can change. `expected`: the tests as they are without the code."""
    if expected is None:
        counted = _alone(suite, {"mode": "collect", "args": list(suite.args)}, suite.files)
        if counted.report is None or counted.report.expected is None:
            return counted
        heard = _inside(suite, counted.report.expected)
        return heard._replace(counted=counted.judge)
    return _inside(suite, expected)


def _inside(suite: Suite, expected: Sequence[str]) -> Heard:
    job = {"mode": "inside", "args": list(suite.args), "expected": list(expected)}
    return _alone(suite, job, {**beside_suite(suite.output), **suite.files})


def _alone(suite: Suite, job: Mapping[str, object], files: Mapping[str, bytes]) -> Heard:
    nonce = secrets.token_hex(16)
    held = _Pipes()
    try:
        with suite.sandbox.open(
            suite.policy, _with(_JUDGE, files, {**job, "nonce": nonce}), trace_id=suite.trace_id
        ) as session:
            told, report = _ask(_joined(session), suite, held, nonce, ())
        return Heard(told, None, report)
    finally:
        held.close(*held.open)


def _modules(suite: Suite) -> list[str]:
    return list(module_names(suite.output, suite.files))


def _with(scripts: Sequence[str], files: Mapping[str, bytes], job: Mapping[str, object] | None) -> dict[str, bytes]:
    """Files of a scratch, with ours on top of them."""
    made = {path: data for path, data in files.items() if not path.startswith(f"{_FOLDER}/")}
    made |= {f"{_FOLDER}/{name}": (INSIDE / name).read_bytes() for name in scripts}
    return made if job is None else made | {f"{_FOLDER}/job.json": json.dumps(job).encode()}


def _ask(
    session: WiredSession, suite: Suite, held: _Pipes, nonce: str, wires: tuple[int, ...]
) -> tuple[Observation, SuiteReport | None]:
    """Let the judge sit; what it reports is read while it does, and no further than so many bytes."""
    source, sink = held.pipe()
    data = bytearray()
    reader = threading.Thread(target=_read, args=(source, data))
    reader.start()
    line = _line(suite, "judge", f"{_FOLDER}/job.json", sink, *wires)
    try:
        told = session.execute_wired(line, Wires((sink, *wires)))
    finally:
        held.close(sink)
        reader.join()
    return told, read_report(bytes(data), nonce) if len(data) <= REPORT_BYTES_MAX else None


def _read(source: int, data: bytearray) -> None:
    while part := os.read(source, 1 << 16):
        if len(data) <= REPORT_BYTES_MAX:
            data += part


def _serve(session: WiredSession, suite: Suite, held: _Pipes, source: int, sink: int, stop: int) -> Observation:
    line = _line(suite, "serve", source, sink, *(_place(suite, root) for root in roots_of(suite.files)))
    try:
        return session.execute_wired(line, Wires((source, sink), stop))
    finally:
        held.close(source, sink)


def _line(suite: Suite, script: str, *given: str | int) -> str:
    return shlex.join(["python3", "-I", "-B", "-c", _BOOT, script, _place(suite, _FOLDER), *map(str, given)])


def _place(suite: Suite, path: str) -> str:
    """Where a path of the scratch lies inside."""
    workdir = suite.policy.workdir or WORKDIR
    return workdir if path == "." else f"{workdir}/{path}"


class _Pipes:
    """Descriptors of ours that are closed once, by whichever thread is done with them."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self._lock = threading.Lock()

    def pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        with self._lock:
            self.open.update(ends)
        return ends

    def close(self, *ends: int) -> None:
        with self._lock:
            mine = [end for end in ends if end in self.open]
            self.open.difference_update(mine)
        for end in mine:
            with suppress(OSError):
                os.close(end)
