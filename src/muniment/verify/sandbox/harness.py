"""Layer 3 of verification: run a command or a pytest suite on an output, in a sandbox, and let it decide (RC-17).

What the code under test could have said itself is not a verdict. A suite is judged from outside: it runs in one
sandbox, the code in another, and only plain values go between them (`external_judge`). What cannot be judged so is
UNKNOWN, unless the harness asks for the code's own process, and then the result says so. Each run has scratches of
its own. What cannot run is UNKNOWN with the reason, never FAIL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Literal, get_args

from muniment.contracts.runs import SandboxActionTrace, SandboxBlock, SandboxPolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import JudgeKind, Outcome
from muniment.errors import InvalidInput, SandboxFailure
from muniment.verify.sandbox.bubblewrap import BubblewrapSandbox
from muniment.verify.sandbox.external_judge import Heard, Suite, hear_inside, hear_outside
from muniment.verify.sandbox.judging import Attempt, HarnessKind, attempt_of, both_ways, judge, suite_attempt
from muniment.verify.sandbox.port import Observation, Sandbox
from muniment.verify.sandbox.suite_files import shadowed
from muniment.verify.sandbox.traces import sandbox_block
from muniment.verify.sandbox.trees import PYTEST, PYTEST_IF_THERE

__all__ = ["Harness", "HarnessResult", "SuiteJudge", "check_files", "run_harness"]

RUNS_MAX = 20

SuiteJudge = Literal["external_process", "in_process"]


@dataclass(frozen=True, slots=True)
class Harness:
    """How an output is put to the test: a command line, or arguments of pytest; `runs` times over.

    `judge` is for a suite: `external_process` keeps the code out of the process that judges it; `in_process` runs both
    in one, for suites that need more of the code than its plain values. The code can forge that, and what passed so
    teaches nothing unless the policy says it may. A command is always of that sort.
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
        """By which kind of judge a run passes."""
        return "command" if self.pytest is None else self.judge


def check_files(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Files by their path in the scratch; raises `InvalidInput` where they are something else."""
    if not isinstance(files, Mapping) or not all(
        isinstance(name, str) and isinstance(data, bytes) for name, data in files.items()
    ):
        raise InvalidInput("files are bytes by their names", path="$.files", hint="{'solution.py': b'…'}")
    return files


@dataclass(frozen=True, slots=True)
class HarnessResult:
    """What execution said, and by which kind of judge. `message` tells why nothing could be run, or be judged."""

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
    """Run it; stops early where a run shows that none can decide."""
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
    judged = judge(attempts)
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
    """One run, by the judge that the harness asks for; what was seen is added to `seen`."""
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
        return _read(hear_inside(suite, None), seen)
    heard = hear_outside(suite)
    attempt = _read(heard, seen)
    if attempt.outcome != "FAIL":
        return attempt
    expected = None if heard.report is None else heard.report.expected
    return both_ways(_read(hear_inside(suite, expected), seen))


def _read(heard: Heard, seen: list[Observation]) -> Attempt:
    seen += [one for one in (heard.counted, heard.code, heard.judge) if one is not None]
    return suite_attempt(heard.judge, heard.code, heard.report)


def _default_sandbox(kind: HarnessKind) -> Sandbox:
    if kind == "command":
        return BubblewrapSandbox()
    return BubblewrapSandbox(packages=(*PYTEST, *(name for name in PYTEST_IF_THERE if find_spec(name) is not None)))
