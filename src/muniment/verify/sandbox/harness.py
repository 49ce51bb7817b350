"""Layer 3 of verification: run a command or a pytest suite on an output in a sandbox, and let the result decide.

A result that the code under test could have forged is no verdict. A suite is judged from outside, by a process that
nothing of the output ever enters: two sandboxes, joined by pipes. The judge has the suite and no file of the output;
the code has its own files and none of the suite; only calls and plain values pass between them. Test results arrive
over a third pipe, which the code does not have, under a nonce that it does not know.

Code that is right by its plain values passes. A suite that needs more of the code (an instance of its classes, a
callback, a patch) is UNKNOWN, unless the harness asks for the code's own process, and then the result says so. A suite
that cannot run is UNKNOWN with the reason, never FAIL.
"""

from __future__ import annotations

import ast
import json
import os
import re
import secrets
import shlex
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, cast, get_args

from muniment.contracts.runs import SandboxActionTrace, SandboxBlock, SandboxPolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import JudgeKind, Outcome
from muniment.errors import InvalidInput, SandboxFailure, SandboxUnavailable
from muniment.verify.sandbox.port import (
    WORKDIR,
    Observation,
    Sandbox,
    SandboxSession,
    WiredSession,
    Wires,
    load_sandbox,
)
from muniment.verify.sandbox.traces import sandbox_block

PYTEST = ("_pytest", "iniconfig", "packaging", "pluggy", "pytest")
PYTEST_IF_THERE = ("exceptiongroup", "py", "pygments", "tomli", "typing_extensions")
"""Dependencies of pytest, by import name; they vary between versions."""

RUNS_MAX = 20

SuiteJudge = Literal["external_process", "in_process"]


@dataclass(frozen=True, slots=True)
class Harness:
    """How an output is tested: a command line, or arguments of pytest; repeated `runs` times.

    `judge` applies to suites: `external_process` keeps the code out of the judging process; `in_process` runs both in
    one, for suites that need more of the code than its plain values. The code can forge that, so such a pass teaches
    nothing unless the policy allows it. A command is always of that sort.
    """

    command: str | None = None
    pytest: tuple[str, ...] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    policy: SandboxPolicy = field(default_factory=lambda: SandboxPolicy(schema_version=RULECRAFT_VERSION))
    runs: int = 1
    judge: SuiteJudge = "external_process"

    def __post_init__(self) -> None:
        if (self.command is None) == (self.pytest is None):
            raise InvalidInput("a harness is a command or a pytest suite, one of them", path="$.command")
        if self.command is not None and not isinstance(self.command, str):
            raise InvalidInput("a command is a line of bash", path="$.command")
        if isinstance(self.pytest, str) or not all(isinstance(each, str) for each in self.pytest or ()):
            raise InvalidInput("pytest is a list of arguments", path="$.pytest", hint="wrap a single one in a list")
        if not isinstance(self.runs, int) or not 1 <= self.runs <= RUNS_MAX:
            raise InvalidInput(f"runs is a number from 1 to {RUNS_MAX}", path="$.runs")
        if self.judge not in get_args(SuiteJudge):
            raise InvalidInput(
                f"{self.judge!r:.40} is no judge", path="$.judge", hint=" or ".join(get_args(SuiteJudge))
            )
        check_files(self.files)

    @property
    def kind(self) -> HarnessKind:
        return "command" if self.pytest is None else "pytest"

    @property
    def judge_kind(self) -> JudgeKind:
        """The kind of judge that decides a run."""
        return "command" if self.pytest is None else self.judge


def check_files(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Check files by their path in the scratch; raise `InvalidInput` for anything else."""
    if not isinstance(files, Mapping) or not all(
        isinstance(name, str) and isinstance(data, bytes) for name, data in files.items()
    ):
        raise InvalidInput("files are bytes by their names", path="$.files", hint="{'solution.py': b'…'}")
    return files


@dataclass(frozen=True, slots=True)
class HarnessResult:
    """The outcome of execution, and the kind of judge. `message` says why nothing could be run or judged."""

    outcome: Outcome
    reason_codes: tuple[str, ...]
    seen: tuple[Observation, ...]
    traces: tuple[SandboxActionTrace, ...]
    sandbox: SandboxBlock
    judge: JudgeKind
    message: str | None = None


def run_harness(
    harness: Harness, output: Mapping[str, bytes], *, trace_id: str, sandbox: Sandbox | None = None
) -> HarnessResult:
    """Run the harness; stop early once a run shows that none can decide."""
    where = sandbox or _default_sandbox(harness.kind)
    attempts: list[Attempt] = []
    seen: list[Observation] = []
    for _ in range(harness.runs):
        try:
            attempts.append(_attempt(harness, output, trace_id, where, seen))
        except SandboxFailure as error:
            attempts.append(Attempt("UNKNOWN", error.code, f"{error.message} ({error.hint})"))
        if attempts[-1].outcome == "UNKNOWN":
            break
    judged = decide(attempts)
    traces = tuple(one.trace for one in seen)
    return HarnessResult(
        outcome=judged.outcome,
        reason_codes=judged.reason_codes,
        seen=tuple(seen),
        traces=traces,
        sandbox=sandbox_block(harness.policy, traces),
        judge=harness.judge_kind,
        message=judged.message,
    )


def _attempt(
    harness: Harness, output: Mapping[str, bytes], trace_id: str, where: Sandbox, seen: list[Observation]
) -> Attempt:
    """Do one run with the requested judge, appending observations to `seen`."""
    if harness.command is not None:
        with where.open(harness.policy, {**output, **harness.files}, trace_id=trace_id) as session:
            seen.append(session.execute_bash(harness.command))
        return attempt_of(seen[-1])
    taken = shadowed(output, harness.files)
    if taken:
        said = f"not judged: the output has modules of names that the suite takes from elsewhere: {', '.join(taken)}"
        return Attempt("UNKNOWN", "exec_unavailable", said)
    suite = Suite(harness.pytest or (), harness.files, output, harness.policy, where, trace_id)
    if harness.judge == "in_process":
        return _attempt_in(run_suite_in_process(suite, None), seen)
    heard = run_suite_isolated(suite)
    attempt = _attempt_in(heard, seen)
    if attempt.outcome != "FAIL":
        return attempt
    expected = None if heard.report is None else heard.report.expected
    return confirm_failure(_attempt_in(run_suite_in_process(suite, expected), seen))


def _attempt_in(heard: SuiteRun, seen: list[Observation]) -> Attempt:
    seen += [one for one in (heard.counted, heard.code, heard.judge) if one is not None]
    return suite_attempt(heard.judge, heard.code, heard.report)


def _default_sandbox(kind: HarnessKind) -> Sandbox:
    if kind == "command":
        return load_sandbox()
    return load_sandbox(packages=(*PYTEST, *(name for name in PYTEST_IF_THERE if find_spec(name) is not None)))


# -- the two sandboxes of a suite ----------------------------------------------------------------------

REPORT_BYTES_MAX = 4 << 20
_FOLDER = ".muniment"
_JUDGE, _CODE = ("judge.py", "wire.py"), ("serve.py", "wire.py")
_INSIDE = Path(__file__).parent / "inside"
_BOOT = (
    "import os, sys; sys.path[:0] = sys.argv[2:3] + [p for p in os.environ.pop('PYTHONPATH', '').split(':') if p]; "
    "__import__(sys.argv[1]).main(sys.argv[3:])"
)
"""Starts one of our scripts in a Python that loads nothing from its folder, user or environment."""


class SuiteRun(NamedTuple):
    """One run of a suite: the judge's observation, that of the code if separate, and the test report."""

    judge: Observation
    code: Observation | None
    report: SuiteReport | None
    counted: Observation | None = None
    """The sandbox in which the tests were counted, if it was a separate one."""


def _joined(session: SandboxSession) -> WiredSession:
    if not callable(getattr(session, "execute_wired", None)):
        raise SandboxUnavailable("this sandbox cannot be joined to a judge", hint="BubblewrapSandbox can")
    return cast("WiredSession", session)


class Suite(NamedTuple):
    """A suite, the code it tests, and the sandbox."""

    args: Sequence[str]
    files: Mapping[str, bytes]
    output: Mapping[str, bytes]
    policy: SandboxPolicy
    sandbox: Sandbox
    trace_id: str


def run_suite_isolated(suite: Suite) -> SuiteRun:
    """Run the suite in one sandbox and the code in another."""
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
        return SuiteRun(told, seen[0] if seen else None, report)
    finally:
        held.close(*held.open)


def run_suite_in_process(suite: Suite, expected: Sequence[str] | None) -> SuiteRun:
    """Run suite and code in one process, which the code can tamper with. `expected`: the tests as counted without the
    code.
    """
    if expected is None:
        counted = _alone(suite, {"mode": "collect", "args": list(suite.args)}, suite.files)
        if counted.report is None or counted.report.expected is None:
            return counted
        heard = _inside(suite, counted.report.expected)
        return heard._replace(counted=counted.judge)
    return _inside(suite, expected)


def _inside(suite: Suite, expected: Sequence[str]) -> SuiteRun:
    job = {"mode": "inside", "args": list(suite.args), "expected": list(expected)}
    return _alone(suite, job, {**beside_suite(suite.output), **suite.files})


def _alone(suite: Suite, job: Mapping[str, object], files: Mapping[str, bytes]) -> SuiteRun:
    nonce = secrets.token_hex(16)
    held = _Pipes()
    try:
        with suite.sandbox.open(
            suite.policy, _with(_JUDGE, files, {**job, "nonce": nonce}), trace_id=suite.trace_id
        ) as session:
            told, report = _ask(_joined(session), suite, held, nonce, ())
        return SuiteRun(told, None, report)
    finally:
        held.close(*held.open)


def _modules(suite: Suite) -> list[str]:
    return list(module_names(suite.output, suite.files))


def _with(scripts: Sequence[str], files: Mapping[str, bytes], job: Mapping[str, object] | None) -> dict[str, bytes]:
    """Files of a scratch, with our scripts over them."""
    made = {path: data for path, data in files.items() if not path.startswith(f"{_FOLDER}/")}
    made |= {f"{_FOLDER}/{name}": (_INSIDE / name).read_bytes() for name in scripts}
    return made if job is None else made | {f"{_FOLDER}/job.json": json.dumps(job).encode()}


def _ask(
    session: WiredSession, suite: Suite, held: _Pipes, nonce: str, wires: tuple[int, ...]
) -> tuple[Observation, SuiteReport | None]:
    """Run the judge while reading its report, up to a maximum size."""
    source, sink = held.pipe()
    data = bytearray()
    reader = threading.Thread(target=_read_pipe, args=(source, data))
    reader.start()
    line = _line(suite, "judge", f"{_FOLDER}/job.json", sink, *wires)
    try:
        told = session.execute_wired(line, Wires((sink, *wires)))
    finally:
        held.close(sink)
        reader.join()
    return told, read_report(bytes(data), nonce) if len(data) <= REPORT_BYTES_MAX else None


def _read_pipe(source: int, data: bytearray) -> None:
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
    """Path inside of a scratch path."""
    workdir = suite.policy.workdir or WORKDIR
    return workdir if path == "." else f"{workdir}/{path}"


class _Pipes:
    """Our descriptors, each closed once by the first thread done with it."""

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


# -- which files go where ------------------------------------------------------------------------------

_PYTEST_OWN = frozenset(
    {"_pytest", "colorama", "exceptiongroup", "iniconfig", "packaging", "pluggy", "py", "pygments", "tomli"}
)
_ASSERTING = frozenset(
    {"assertpy", "ddt", "deepdiff", "dirty_equals", "expects", "hamcrest", "hypothesis", "inline_snapshot",
     "jsonschema", "mock", "nose", "numpy", "pandas", "parameterized", "polars", "schemathesis", "scipy",
     "snapshottest", "sure", "syrupy", "testfixtures", "testtools", "torch", "unittest2", "xarray"}
)  # fmt: skip
"""Assertion libraries: an output that brings its own could decide what its tests find."""
_RUN_BY_NAME = frozenset({"conftest", "sitecustomize", "usercustomize"})
_SETTINGS = frozenset(
    {"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"}
)


def _is_run_by_name(path: str) -> bool:
    """True if Python or pytest would load it by its name: settings, plugins, start-up code, compiled files."""
    parts = PurePosixPath(path).parts
    stems = {part.split(".")[0] for part in parts}
    return (
        parts[-1].lower() in _SETTINGS
        or PurePosixPath(path).suffix in (".pth", ".pyc", ".pyo")
        or "__pycache__" in parts
        or any(part.endswith((".dist-info", ".egg-info")) for part in parts)
        or not stems.isdisjoint(_RUN_BY_NAME)
        or any(_is_pytest_own(stem) for stem in (parts[0].split(".")[0], parts[-1].split(".")[0]))
    )


def _is_pytest_own(name: str) -> bool:
    return name.startswith("pytest") or name in _PYTEST_OWN


def beside_suite(output: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files of an output that may share a folder with the suite."""
    return {path: data for path, data in output.items() if not _is_run_by_name(path)}


def roots_of(suite: Iterable[str]) -> tuple[str, ...]:
    """Folders in which modules are looked up: the scratch itself, and those of test files, as in pytest."""
    folders = {str(PurePosixPath(path).parent) for path in suite if path.endswith(".py")}
    return (".", *sorted(folders - {"."}))


def module_names(output: Iterable[str], suite: Iterable[str]) -> tuple[str, ...]:
    """Modules of an output, as a test would import them, except those the suite brings itself."""
    given = list(suite)
    roots = roots_of(given)
    own = {name for path in given for name in _names_of(path, roots)}
    found = {name for path in output for name in _names_of(path, roots)}
    tops = {name for name in found if "." not in name and not _is_taken(name)}
    return tuple(sorted(name for name in found - own if name.split(".")[0] in tops))


def _is_taken(name: str) -> bool:
    return name in sys.stdlib_module_names or name in _RUN_BY_NAME or _is_pytest_own(name)


def _names_of(path: str, roots: Iterable[str]) -> set[str]:
    found: set[str] = set()
    if not path.endswith(".py"):
        return found
    for root in roots:
        pure = PurePosixPath(path)
        if root != "." and not pure.is_relative_to(root):
            continue
        parts = pure.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if all(part.isidentifier() for part in parts):
            found |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return found


def shadowed(output: Iterable[str], suite: Mapping[str, bytes]) -> tuple[str, ...]:
    """Modules that the output also has and the suite imports from Python or asserts with: which one it means is
    unknown.
    """
    roots, known = roots_of(suite), sys.stdlib_module_names | _ASSERTING
    mine = {name for path in output for name in _names_of(path, roots) if name in known}
    return tuple(sorted(mine & {name for data in suite.values() for name in _imported(data)})) if mine else ()


def _imported(data: bytes) -> set[str]:
    """The top-level modules that a file imports; none if it is not valid Python."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


# -- what an attempt means -----------------------------------------------------------------------------

HarnessKind = Literal["command", "pytest"]

_CANNOT_RUN = (126, 127)  # a shell's codes for a program that is missing or not executable
_NOT_STARTED = re.compile(r"^ModuleNotFoundError: No module named 'pytest'", re.MULTILINE)
_ENDED = (1, 2)  # pytest: tests failed; something could not be collected
_DECIDED = ("passed", "skipped")
MESSAGE_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run: pass, fail, or undecided for a reason."""

    outcome: Outcome
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of execution; `reason_codes` is empty for OK alone."""

    outcome: Outcome
    reason_codes: tuple[str, ...] = ()
    message: str | None = None


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The content of the judge's pipe."""

    expected: tuple[str, ...] | None
    """The tests as counted without the output; None if they cannot be counted."""
    collected: tuple[str, ...] = ()
    results: Mapping[str, str] | None = None
    """passed, failed or skipped, by test id; None if nothing was run."""
    doubts: tuple[str, ...] = ()
    exit_code: int | None = None


def read_report(data: bytes, nonce: str) -> SuiteReport | None:
    """Parse the report; None if it is invalid or has another nonce."""
    try:
        said = json.loads(data)
        if not isinstance(said, dict) or said.get("nonce") != nonce:
            return None
        results = said.get("results")
        return SuiteReport(
            expected=None if said["expected"] is None else tuple(map(str, said["expected"])),
            collected=tuple(map(str, said.get("collected", ()))),
            results=None if results is None else {str(name): str(word) for name, word in results.items()},
            doubts=tuple(map(str, said.get("doubts", ()))),
            exit_code=said.get("exit"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def attempt_of(seen: Observation) -> Attempt:
    """Read one run of a command."""
    stopped = _stopped(seen)
    if stopped is not None:
        return stopped
    return Attempt("OK") if seen.exit_code == 0 else Attempt("FAIL", "test_fail")


def _stopped(seen: Observation) -> Attempt | None:
    """Explain a run that was cut off, refused, or had nothing to run."""
    if seen.error_class in ("sandbox_timeout", "sandbox_denied", "exec_unavailable"):
        return Attempt("UNKNOWN", seen.error_class)
    if seen.error_class in ("cap_exceeded", "action_refused", "invalid_action") or seen.exit_code is None:
        return Attempt("UNKNOWN", "sandbox_denied")
    return Attempt("UNKNOWN", "exec_unavailable") if seen.exit_code in _CANNOT_RUN else None


def suite_attempt(seen: Observation, code: Observation | None, report: SuiteReport | None) -> Attempt:
    """Read one run of a suite from the judge's sandbox, that of the code if separate, and the report."""
    if code is not None and code.error_class in ("sandbox_timeout", "sandbox_denied", "exec_unavailable"):
        return Attempt("UNKNOWN", code.error_class)
    if code is not None and code.error_class in ("cap_exceeded", "action_refused", "invalid_action"):
        return Attempt("UNKNOWN", "sandbox_denied")
    stopped = _stopped(seen)
    if stopped is not None:
        return stopped
    if report is None:
        is_missing = seen.exit_code == 1 and _NOT_STARTED.search(seen.stderr) is not None
        if seen.exit_code == 0 or is_missing:  # code in the same process can exit early, even with 0
            return Attempt("UNKNOWN", "exec_unavailable")
        return Attempt("FAIL", "test_fail")
    return _reported(report)


def _reported(report: SuiteReport) -> Attempt:
    if report.expected is None:
        return _undecided("the tests cannot be counted without the output")
    results = report.results or {}
    has_failed = "failed" in results.values() or report.exit_code in _ENDED
    if has_failed:
        return Attempt("FAIL", "test_fail")
    if report.doubts:
        return _undecided("; ".join(report.doubts))
    if report.exit_code != 0 or not report.expected:  # internal error, usage error, no tests
        return Attempt("UNKNOWN", "exec_unavailable")
    is_whole = report.collected == report.expected and set(results) == set(report.expected)
    if not is_whole:
        return _undecided("the tests are not those that the suite has without the output")
    if set(results.values()) - set(_DECIDED) or "passed" not in results.values():
        return Attempt("UNKNOWN", "exec_unavailable")
    return Attempt("OK")


def _undecided(why: str) -> Attempt:
    return Attempt("UNKNOWN", "exec_unavailable", f"not judged: {why}"[:MESSAGE_CHARS_MAX])


def confirm_failure(inside: Attempt) -> Attempt:
    """Confirm a failure seen from outside by a run in one process with its tests: it counts if that run failed too.

    A pass only in one process was either forged or needs more of the code than its plain values; which one is unknown.
    """
    if inside.outcome != "OK":
        return inside
    return _undecided("it passes only where the code shares a process with its tests")


def decide(attempts: Sequence[Attempt]) -> Judgement:
    """Combine all attempts: one that could not run leaves the result open, and so do two that disagree."""
    if not attempts:
        return Judgement("UNKNOWN", ("exec_unavailable",))
    reasons = [attempt.reason for attempt in attempts if attempt.reason and attempt.outcome == "UNKNOWN"]
    message = next((attempt.message for attempt in attempts if attempt.message), None)
    if len({attempt.outcome for attempt in attempts}) > 1:
        return Judgement("UNKNOWN", tuple(dict.fromkeys([*reasons, "env_nondeterminism"])), message)
    first = attempts[0]
    if first.outcome == "UNKNOWN":
        return Judgement("UNKNOWN", tuple(dict.fromkeys(reasons)), message)
    return Judgement(first.outcome, () if first.reason is None else (first.reason,))
