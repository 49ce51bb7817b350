"""Run regression tests (RC-19) on any agent, over any executor, and say what came of them.

An agent is a callable of a spec that gives an output of any shape that `read_output` takes; or the outputs are there
already, by test id. What an agent does wrong is a result, not an exception: a crash, a timeout, something that is no
output. Results stand in the order of the specs, whatever order they finished in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Any

from muniment.contracts.rules import RegressionTestSpec
from muniment.core.canonical import canonical_bytes
from muniment.core.outside.calling import submitted, wait_for
from muniment.core.ports.models import RubricJudge
from muniment.errors import InvalidInput
from muniment.verify.outputs import Output, Usage
from muniment.verify.regression.junit import JUnitCase, to_junit
from muniment.verify.regression.specs import CaseResult, CaseStatus, broken, grade
from muniment.verify.static.given_outputs import read_output

__all__ = ["Agent", "RegressionReport", "run_regression"]

Agent = Callable[[RegressionTestSpec], Any]

_JUNIT: Mapping[CaseStatus, Any] = {
    "passed": "passed",
    "failed": "failed",
    "error": "error",
    "timeout": "error",
    "not_graded": "skipped",
}


@dataclass(frozen=True, slots=True)
class RegressionReport:
    """The results of a run, in the order of its specs."""

    name: str
    results: tuple[CaseResult, ...]

    @property
    def ok(self) -> bool:
        """Is every graded test as expected, and was at least one graded?"""
        graded = [result for result in self.results if result.status != "not_graded"]
        return bool(graded) and all(result.ok for result in graded)

    def counts(self) -> dict[str, int]:
        return {status: sum(result.status == status for result in self.results) for status in _JUNIT}

    def to_json(self, *, timings: bool = False) -> bytes:
        """Canonical JSON. Without timings, the same results give the same bytes."""
        rows = [result.to_dict() for result in self.results]
        for row in rows if not timings else ():
            row.pop("duration_ms", None)
        return canonical_bytes({"name": self.name, "ok": self.ok, "counts": self.counts(), "results": rows})

    def to_junit(self, *, timings: bool = False) -> bytes:
        return to_junit(self.name, [_junit_case(result, timings) for result in self.results])


def _junit_case(result: CaseResult, timings: bool) -> JUnitCase:
    seconds = result.duration_ms / 1000 if timings and result.duration_ms is not None else None
    message = f"{result.status}: {result.message}" if result.status == "timeout" else result.message
    return JUnitCase(f"{result.test_type}.{result.severity}", result.test_id, _JUNIT[result.status], message, seconds)


def run_regression(
    specs: Iterable[RegressionTestSpec],
    agent: Agent | Mapping[str, Any],
    *,
    executor: Executor | None = None,
    timeout_s: float | None = None,
    name: str = "regression",
    grader: RubricJudge | None = None,
) -> RegressionReport:
    """Every spec on the agent, or on the outputs that are given by test id.

    Without an executor the cases run one after another in a thread of their own. A thread cannot be stopped: a case
    that runs past `timeout_s` is told of as a timeout and left behind. Give a process pool for agents that hang.
    `grader` answers rubrics. How long the agent took is the output's latency, where the output does not say itself.
    """
    asked = tuple(specs)
    if isinstance(agent, Mapping):
        return RegressionReport(name, tuple(_given(spec, agent, grader) for spec in asked))
    own = ThreadPoolExecutor(1, "regression") if executor is None else None
    try:
        used = executor if executor is not None else own
        assert used is not None
        futures = [submitted(used, _work, agent, spec) for spec in asked]
        late = wait_for(futures, timeout_s)
    finally:
        if own is not None:
            own.shutdown(wait=False, cancel_futures=True)
    results = [
        broken(spec, "timeout", late[number].words) if number in late else _finished(spec, futures[number], grader)
        for number, spec in enumerate(asked)
    ]
    return RegressionReport(name, tuple(results))


def _work(agent: Agent, spec: RegressionTestSpec) -> tuple[Any, float]:
    """What runs on the executor; on a process pool, in another process."""
    start = monotonic()
    answer = agent(spec)
    return answer, (monotonic() - start) * 1000


def _finished(spec: RegressionTestSpec, future: Future[Any], grader: RubricJudge | None) -> CaseResult:
    if future.cancelled():
        return broken(spec, "error", "cancelled before it ran")
    error = future.exception()
    if error is not None:
        return broken(spec, "error", _utf8_text(f"{type(error).__name__}: {error}"[:1000]))
    answer, duration_ms = future.result()
    return _graded(spec, answer, duration_ms, grader)


def _utf8_text(text: str) -> str:
    """Text that UTF-8 can hold: what an agent says of its crash may be anything."""
    return text.encode("utf-8", "backslashreplace").decode()


def _given(spec: RegressionTestSpec, outputs: Mapping[str, Any], grader: RubricJudge | None) -> CaseResult:
    if spec.test_id not in outputs:
        return broken(spec, "error", "no output was given")
    return _graded(spec, outputs[spec.test_id], None, grader)


def _graded(spec: RegressionTestSpec, answer: Any, duration_ms: float | None, grader: RubricJudge | None) -> CaseResult:
    try:
        return grade(spec, _timed(read_output(answer), duration_ms), duration_ms, grader)
    except InvalidInput as error:
        return broken(spec, "error", str(error), duration_ms)


def _timed(output: Output, duration_ms: float | None) -> Output:
    """The output with how long it took, where it does not say so itself."""
    if duration_ms is None or (output.usage is not None and output.usage.latency_ms is not None):
        return output
    used = {} if output.usage is None else output.usage.to_wire()
    return output.model_copy(update={"usage": Usage.from_wire(used | {"latency_ms": duration_ms})})
