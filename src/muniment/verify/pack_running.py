"""Run a pack: each case as often as it says, on an agent or on given outputs; and hold it against the last run.

A case's pass rate has Wilson's bounds. With `least` the lower bound must reach it, else every answer must pass. Against
a run before, a case is worse that was good then and is not now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from muniment.core.canonical import canonical_bytes
from muniment.core.ports.models import Judgement
from muniment.core.record import Items, OpenRecord
from muniment.core.stats import wilson_bounds
from muniment.verify.grading import GradingSession, grading_of
from muniment.verify.regression.junit import JUnitCase, to_junit
from muniment.verify.regression.pack_file import Pack
from muniment.verify.regression.specs import CaseResult, constraints_of
from muniment.verify.regression_running import Agent, run_regression
from muniment.verify.static.evaluation import check_answerable

__all__ = ["PackDiff", "PackReport", "PackResult", "compare_packs", "read_pack_report", "run_pack"]

FORMAT = 1
_DIGITS = 4


class PackResult(NamedTuple):
    """What came of one case."""

    id: str
    answers: tuple[CaseResult, ...]
    least: float | None

    @property
    def passed(self) -> int:
        return sum(each.ok for each in self.answers)

    @property
    def bounds(self) -> tuple[float, float]:
        """Where the pass rate lies, at 95 %."""
        return tuple(wilson_bounds(self.passed, len(self.answers)))  # type: ignore[return-value]

    @property
    def ok(self) -> bool:
        return self.passed == len(self.answers) if self.least is None else self.bounds[0] >= self.least

    @property
    def words(self) -> str:
        """Why answers did not pass, each reason once."""
        return "; ".join(dict.fromkeys(f"{each.status}: {each.message}" for each in self.answers if not each.ok))

    def to_dict(self) -> dict[str, Any]:
        lower, upper = self.bounds
        return {
            "id": self.id,
            "ok": self.ok,
            "passed": self.passed,
            "answers": len(self.answers),
            "lower": round(lower, _DIGITS),
            "upper": round(upper, _DIGITS),
            "violated_constraints": sorted({f.key for each in self.answers for f in each.findings if not f.ok}),
            "problems": self.words,
        }


@dataclass(frozen=True, slots=True)
class PackReport:
    """The results of a pack, in the order of its cases, and what a grader said."""

    name: str
    results: tuple[PackResult, ...]
    judgements: tuple[Judgement, ...] = ()

    @property
    def ok(self) -> bool:
        return all(each.ok for each in self.results)

    def to_dict(self) -> dict[str, Any]:
        return {
            "pack": FORMAT,
            "name": self.name,
            "ok": self.ok,
            "cases": [each.to_dict() for each in self.results],
            "judgements": [each.to_dict() for each in self.judgements],
        }

    def to_json(self) -> bytes:
        """Canonical JSON: the same results give the same bytes."""
        return canonical_bytes(self.to_dict()) + b"\n"

    def to_junit(self, since: PackDiff | None = None) -> bytes:
        """A case fails that is not good; against a run before, one that was, and others are told as skipped."""
        return to_junit(self.name, [_junit_case(each, since) for each in self.results])


def _junit_case(result: PackResult, since: PackDiff | None) -> JUnitCase:
    status: Literal["passed", "failed", "skipped"] = "passed" if result.ok else "failed"
    if status == "failed" and since is not None and result.id not in since.worse:
        status = "skipped"
    lower, upper = result.bounds
    rate = f"{result.passed} of {len(result.answers)} passed ({lower:.2f} to {upper:.2f})"
    return JUnitCase("pack", result.id, status, "" if status == "passed" else f"{rate}; {result.words}")


def run_pack(
    pack: Pack,
    agent: Agent | Mapping[str, Sequence[Any]],
    *,
    repeats: int | None = None,
    grader: Any = None,
    executor: Executor | None = None,
    timeout_s: float | None = None,
) -> PackReport:
    """Every case on the agent, which is called with its test (`prompt`, `test_id`, and `vars` as an extra field).

    Or on outputs that are there already: for each case's id a list of them, one for each time that it was asked.
    """
    grading = grading_of(grader)
    session = None if grading is None else GradingSession(grading)
    for case in pack.cases if session is None else ():
        check_answerable(constraints_of(case.spec), f"$.cases.{case.id}.constraints")
    if isinstance(agent, Mapping):
        outputs = {
            f"{case.id}#{number}": output
            for case in pack.cases
            for number, output in enumerate(agent.get(case.id, ()), 1)
        }
        times = [max(1, len(agent.get(case.id, ()))) for case in pack.cases]
    else:
        times = [repeats or pack.repeats] * len(pack.cases)
    specs = [
        case.spec.model_copy(update={"test_id": f"{case.id}#{number}"})
        for case, often in zip(pack.cases, times, strict=True)
        for number in range(1, often + 1)
    ]
    ran = run_regression(
        specs,
        outputs if isinstance(agent, Mapping) else agent,
        executor=executor,
        timeout_s=timeout_s,
        name=pack.name,
        grader=session,
    )
    rest = iter(ran.results)
    results = [
        PackResult(case.id, tuple(next(rest) for _ in range(often)), pack.least)
        for case, often in zip(pack.cases, times, strict=True)
    ]
    return PackReport(pack.name, tuple(results), () if session is None else tuple(session.judgements))


# -- a run before -------------------------------------------------------------------------------------


class _KeptCase(OpenRecord):
    id: str
    ok: bool
    passed: int
    answers: int


class KeptPack(OpenRecord):
    """What is read of the JSON of a run before."""

    pack: Literal[1]
    cases: Items[_KeptCase]


def read_pack_report(data: Any, where: str) -> KeptPack:
    return KeptPack.of_given(data, f"{where} is not the report of a pack of format {FORMAT}", hint="what --save wrote")


class PackDiff(NamedTuple):
    """What changed since the run before, by the ids of cases."""

    worse: tuple[str, ...]
    better: tuple[str, ...]
    added: tuple[str, ...]
    gone: tuple[str, ...]


def compare_packs(report: PackReport, before: KeptPack) -> PackDiff:
    kept = {case.id: case.ok for case in before.cases}
    ids = [each.id for each in report.results]
    return PackDiff(
        tuple(each.id for each in report.results if kept.get(each.id) is True and not each.ok),
        tuple(each.id for each in report.results if kept.get(each.id) is False and each.ok),
        tuple(id_ for id_ in ids if id_ not in kept),
        tuple(id_ for id_ in kept if id_ not in set(ids)),
    )
