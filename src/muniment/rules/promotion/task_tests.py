"""Tests whose judge is the caller's verifier (RC-18): earlier tasks that the rule was not learnt from.

- regression: an earlier task of the rule's place that failed; with the rule an answer passes
- counterexample, cluster: another that failed, of the same failure where that is known
- counterexample, boundary: a task of the place that passed without the rule, which the rule must not break; where there
  is none, one outside of it, which holds because the rule does not stand before it: nobody is asked, since what an
  agent does there without the rule says nothing of the rule. And the rule's words do not stand in the answer
- micro-regressions: earlier tasks of the place, those that passed first: the rule does not break them

An agent draws lots, so a task is asked until one answer passes, `tries` times at most: these tests say whether it *can*
be done with the rule; how often is what replay asks. A task whose verifier lets a bad answer pass is no test. Nothing
here calls anybody: the verifier's word on bad answers is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from muniment.contracts.rules import RegressionTestSpec, RuleRecord
from muniment.core.canonical import short_id
from muniment.core.policy import GatePolicy
from muniment.core.predicates import all_hold
from muniment.core.record import RULECRAFT_VERSION
from muniment.rules.promotion.consolidation import conditions_of
from muniment.rules.promotion.examples import Example
from muniment.rules.promotion.records import TestOutcome
from muniment.rules.promotion.tests import TASK_PACK, MadeTests, is_micro, leak_assertion

__all__ = [
    "HELD_OUT",
    "TaskAsked",
    "asks_verifier",
    "held_out",
    "make_task_tests",
    "outcome_of_task",
    "place_words",
    "task_key",
]

HELD_OUT = "held_out"
"""The tag of tests that were made here: they may be made anew of other tasks."""
_ASKS = {"verifier": "passes"}
_REFUSED_MAX = 10
"""Tasks of a kind whose verifier lets bad answers pass, before no more are looked at: a verifier may be dear."""


class TaskAsked(NamedTuple):
    """How often a task was asked and passed: with the rule, and without where no answer passed with it."""

    passes: int
    asked: int
    without_passes: int = 0
    without_asked: int = 0
    problem: str = ""
    """What was wrong with the last answer."""
    applies: bool = True
    """Does the rule stand before the task? Outside of its place nobody is asked."""


def asks_verifier(spec: RegressionTestSpec) -> bool:
    """Is it the caller's verifier who says whether the answer passes?"""
    extra = None if spec.assertion is None else spec.assertion.model_extra
    return extra is not None and extra.get("verifier") == _ASKS["verifier"]


def task_key(prompt: str) -> str:
    """A task, however it is spaced."""
    return " ".join(prompt.split()).casefold()


def held_out(examples: Iterable[Example], sources: Collection[str]) -> list[Example]:
    """Runs of other tasks than those of the runs that a rule was learnt from, in the order they come."""
    several = list(examples)
    learnt = {task_key(one.prompt) for one in several if one.trace_id in sources}
    return [one for one in several if task_key(one.prompt) not in learnt]


def make_task_tests(
    rule: RuleRecord,
    examples: Sequence[Example],
    *,
    can_fail: Callable[[Example], bool],
    policy: GatePolicy,
    spent: Collection[str] = (),
) -> MadeTests:
    """`examples` are held out, the newest first; `spent` are tasks of tests that were failed, which come last.

    `can_fail` says whether the verifier refuses a bad answer to the task.
    """
    maker = _Maker(rule, can_fail, spent)
    conditions = conditions_of(rule)
    failing = [one for one in maker.tasks(examples, passed=False) if all_hold(conditions, one.features)]
    passed = maker.tasks(examples, passed=True)
    passing = [one for one in passed if all_hold(conditions, one.features)]
    outside = [one for one in passed if not all_hold(conditions, one.features)]
    regressions = maker.take(failing, "regression", policy.regressions_min)
    others = maker.alike(failing, regressions)
    clusters = maker.take(others, "cluster", policy.cluster_counterexamples_min)
    oldest = passing[::-1]
    oldest.sort(key=maker.is_spent)
    boundaries = maker.take(oldest, "boundary", policy.boundary_counterexamples_min)
    boundaries += maker.take(outside, "boundary", policy.boundary_counterexamples_min - len(boundaries))
    micro = maker.take([*passing, *failing], "micro", policy.micro_min)
    place = place_words(rule)
    found = (
        (regressions, policy.regressions_min, f"{place} that failed without it"),
        (clusters, policy.cluster_counterexamples_min, f"{place} that failed without it, beside the one above"),
        (boundaries, policy.boundary_counterexamples_min, f"{place} or of another kind that passed"),
        (micro, policy.micro_min, f"{place}, whatever came of them"),
    )
    notes = [
        f"needs {needed - len(several)} more earlier {'task' if needed - len(several) == 1 else 'tasks'} of {what}: "
        f"{len(several)} of {needed}, other than those it was learnt from"
        for several, needed, what in found
        if len(several) < needed
    ]
    specs = [spec for several, _, _ in found for spec in maker.specs(several)]
    leaks = [maker.leak(one) for one, _ in boundaries[:1]]
    return MadeTests((*specs, *leaks), (*notes, *maker.refused))


def place_words(rule: RuleRecord) -> str:
    """Where a rule applies, as people say it."""
    where = rule.applicability
    if where.task_family:
        return f"the family {where.task_family}"
    return f"the domain {where.domain_tag}" if where.domain_tag else "the kind it is for"


_Taken = tuple[Example, str]


class _Maker:
    """A rule whose tests are made: each task is taken once."""

    def __init__(self, rule: RuleRecord, can_fail: Callable[[Example], bool], spent: Collection[str]) -> None:
        self.rule, self.can_fail = rule, can_fail
        self.refused: list[str] = []
        self._taken: set[str] = set()
        self._spent = {task_key(prompt) for prompt in spent}

    def tasks(self, examples: Sequence[Example], *, passed: bool) -> list[Example]:
        """Of each task that some run passed, or failed, the first such run; tasks that were spent come last."""
        runs: dict[str, Example] = {}
        for one in examples:
            if one.passed == passed:
                runs.setdefault(task_key(one.prompt), one)
        return sorted(runs.values(), key=self.is_spent)

    def is_spent(self, one: Example) -> bool:
        return task_key(one.prompt) in self._spent

    def alike(self, failing: Sequence[Example], regressions: Sequence[_Taken]) -> list[Example]:
        """Those of the same failure first, as far as anybody said what failed."""
        first = [one for one, _ in regressions]
        clusters = {one.cluster_id for one in first} - {None}
        causes = {each for one in first for each in (*one.violated, *one.reason_codes)}
        return sorted(
            failing,
            key=lambda one: one.cluster_id not in clusters and causes.isdisjoint((*one.violated, *one.reason_codes)),
        )

    def take(self, examples: Iterable[Example], kind: str, most: int) -> list[_Taken]:
        taken: list[_Taken] = []
        asked = 0
        for one in examples:
            if len(taken) >= most or asked == _REFUSED_MAX + most:
                break
            key = task_key(one.prompt)
            if key in self._taken:
                continue
            asked += 1
            if not self.can_fail(one):
                self.refused.append(f"the task of {one.trace_id} is no test: the verifier lets bad answers pass")
                self._taken.add(key)
                continue
            self._taken.add(key)
            taken.append((one, kind))
        return taken

    def specs(self, taken: Iterable[_Taken]) -> list[RegressionTestSpec]:
        return [self._spec(one, kind, dict(_ASKS)) for one, kind in taken]

    def leak(self, one: Example) -> RegressionTestSpec:
        type_, args = leak_assertion(self.rule)
        return self._spec(one, "boundary", {"type": type_, "args": args})

    def _spec(self, one: Example, kind: str, asserted: dict[str, Any]) -> RegressionTestSpec:
        counter = kind in ("cluster", "boundary")
        plain: dict[str, Any] = {
            "schema_version": RULECRAFT_VERSION,
            "test_id": short_id("test", [self.rule.rule_id, kind, one.x_ref, one.prompt, asserted]),
            "test_type": "counterexample" if counter else "regression",
            "severity": "critical" if self.rule.type == "GuardrailRule" and kind == "regression" else "normal",
            "x_ref": one.x_ref,
            "assert": asserted,
            "tags": [kind, HELD_OUT, *([TASK_PACK] if kind == "micro" else [])],
            "expected": {"must_pass": True, "notes": f"the task of {one.trace_id}, which it was not learnt from"},
            "linked_rule_ids": [self.rule.rule_id],
        }
        return RegressionTestSpec.from_wire(plain | ({"kind": kind} if counter else {}))


def outcome_of_task(spec: RegressionTestSpec, asked: TaskAsked, *, vacuous: bool) -> TestOutcome:
    """What came of a task: it passes where one of its answers did, or where the rule does not stand before it."""
    ok = asked.passes > 0 or not asked.applies
    message = _why(asked) if not ok else "" if asked.applies else "the rule does not stand before it"
    plain: dict[str, Any] = {
        "test_id": spec.test_id,
        "test_type": spec.test_type,
        "is_micro": is_micro(spec),
        "status": "passed" if ok else "failed" if asked.asked else "error",
        "ok": ok,
        "vacuous": vacuous,
        "by": "verifier",
        "passes": asked.passes,
        "asked": asked.asked,
        "message": message[:1000],
    }
    return TestOutcome.from_wire(plain | ({} if spec.kind is None else {"kind": spec.kind}))


def _why(asked: TaskAsked) -> str:
    if not asked.asked:
        return asked.problem
    without = ""
    if asked.without_asked:
        of = f"{asked.without_passes} of {asked.without_asked} without it"
        without = f"; {of}" if asked.without_passes else f"; nor did any of {asked.without_asked} without it"
    problem = f"; {asked.problem}" if asked.problem else ""
    return f"none of {asked.asked} answers passed with the rule{without}{problem}"
