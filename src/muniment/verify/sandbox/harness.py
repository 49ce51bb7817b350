"""Layer 3 of verification: run a command or a pytest suite on an output, in a sandbox, and let it decide (RC-17).

The output and the harness's own files lie in the same scratch, the harness's on top: an output cannot replace a
test by a file of its name. Each run has a scratch of its own. What cannot run is UNKNOWN with the reason, never FAIL.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from muniment.contracts.run_records import SandboxBlock
from muniment.contracts.sandbox import SandboxActionTrace, SandboxPolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.vocabulary import Outcome
from muniment.errors import InvalidInput, SandboxFailure
from muniment.verify.sandbox.bubblewrap import BubblewrapSandbox
from muniment.verify.sandbox.judging import Attempt, HarnessKind, attempt_of, judge
from muniment.verify.sandbox.port import Observation, Sandbox
from muniment.verify.sandbox.traces import sandbox_block
from muniment.verify.sandbox.trees import PYTEST, PYTEST_IF_THERE

__all__ = ["Harness", "HarnessResult", "check_files", "run_harness"]

RUNS_MAX = 20


@dataclass(frozen=True, slots=True)
class Harness:
    """How an output is put to the test: a command line, or arguments of pytest; `runs` times over."""

    command: str | None = None
    pytest: tuple[str, ...] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    policy: SandboxPolicy = field(default_factory=lambda: SandboxPolicy(schema_version=RULECRAFT_VERSION))
    runs: int = 1

    def __post_init__(self) -> None:
        if (self.command is None) == (self.pytest is None):
            raise InvalidInput("a harness is a command or a pytest suite, one of them", path="$.command")
        if self.command is not None and not isinstance(self.command, str):
            raise InvalidInput("a command is a line of bash", path="$.command")
        if isinstance(self.pytest, str) or not all(isinstance(each, str) for each in self.pytest or ()):
            raise InvalidInput("pytest is a list of arguments", path="$.pytest", hint="wrap a single one in a list")
        if not isinstance(self.runs, int) or not 1 <= self.runs <= RUNS_MAX:
            raise InvalidInput(f"runs is a number from 1 to {RUNS_MAX}", path="$.runs")
        check_files(self.files)

    @property
    def kind(self) -> HarnessKind:
        return "command" if self.pytest is None else "pytest"

    @property
    def line(self) -> str:
        """What bash is given."""
        if self.command is not None:
            return self.command
        fixed = ["python3", "-m", "pytest", "-q", "-rN", "--color=no", "-p", "no:cacheprovider"]
        # Plugins that happen to be installed are not part of the test; one that is, is named with -p.
        return f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {shlex.join([*fixed, *(self.pytest or ())])}"


def check_files(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Files by their path in the scratch; raises `InvalidInput` where they are something else."""
    if not isinstance(files, Mapping) or not all(
        isinstance(name, str) and isinstance(data, bytes) for name, data in files.items()
    ):
        raise InvalidInput("files are bytes by their names", path="$.files", hint="{'solution.py': b'…'}")
    return files


@dataclass(frozen=True, slots=True)
class HarnessResult:
    """What execution said. `message` tells why nothing could be run."""

    outcome: Outcome
    reason_codes: tuple[str, ...]
    seen: tuple[Observation, ...]
    traces: tuple[SandboxActionTrace, ...]
    sandbox: SandboxBlock
    message: str | None = None


def run_harness(
    harness: Harness, output: Mapping[str, bytes], *, trace_id: str, sandbox: Sandbox | None = None
) -> HarnessResult:
    """Run it; stops early where a run shows that none can decide."""
    where = sandbox or _default_sandbox(harness.kind)
    attempts: list[Attempt] = []
    seen: list[Observation] = []
    message: str | None = None
    for _ in range(harness.runs):
        try:
            with where.open(harness.policy, {**output, **harness.files}, trace_id=trace_id) as session:
                seen.append(session.execute_bash(harness.line))
        except SandboxFailure as error:
            message = f"{error.message} ({error.hint})"
            attempts.append(Attempt("UNKNOWN", error.code))
            break
        attempts.append(attempt_of(seen[-1], harness.kind))
        if attempts[-1].outcome == "UNKNOWN":
            break
    judged = judge(attempts)
    traces = tuple(one.trace for one in seen)
    block = sandbox_block(harness.policy, traces)
    return HarnessResult(judged.outcome, judged.reason_codes, tuple(seen), traces, block, message)


def _default_sandbox(kind: HarnessKind) -> Sandbox:
    if kind == "command":
        return BubblewrapSandbox()
    return BubblewrapSandbox(packages=(*PYTEST, *(name for name in PYTEST_IF_THERE if find_spec(name) is not None)))
