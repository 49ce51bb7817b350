"""Tests of a rule, made without a model (RC-18, RC-19): from the runs it was learnt from, and from those it is not for.

- regression: a source run that failed; what it broke, or what told it from those that passed, must now hold
- counterexample, cluster: the same of another run that failed alike
- counterexample, boundary: a run outside the rule's place, which passed: what held there must still hold, what the rule
  asks for must not happen there, and its words must not stand in the answer
- micro-regressions: from packs, one constraint each; those that an answer which failed has broken come first

A test is kept only if it is seen to fail on a bad output, and the regression on the very output of its run. Tests that
ask the caller's verifier are made in `task_tests`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
from muniment.core.canonical import digest_of, short_id
from muniment.core.policy import GatePolicy
from muniment.core.predicates import all_hold
from muniment.core.record import RULECRAFT_VERSION
from muniment.rules.promotion.consolidation import conditions_of
from muniment.rules.promotion.examples import Example, Grade, bad_outputs, is_form, is_vacuous, leak_of
from muniment.rules.promotion.stances import feature_of, tool_of
from muniment.verify.outputs import Output

__all__ = ["PACK_NAMES", "TASK_PACK", "MadeTests", "is_micro", "leak_assertion", "make_tests", "task_of", "with_tests"]

PACK_NAMES = frozenset(("FORMAT", "TOOL", "BUDGET"))
TASK_PACK = "TASK"
"""The pack of small tests that are earlier tasks, judged by the caller's verifier."""
_MICRO_TAGS = PACK_NAMES | {TASK_PACK}
_MICRO_MAX = 12
_OF_ANY_TASK = ("tool_called", "tool_not_called", "json_schema")
"""Assertions that ask the same of every task; the words of an answer are one task's own."""

_Assertion = tuple[str, dict[str, Any]]
_Kind = Literal["regression", "cluster", "boundary"]


class MadeTests(NamedTuple):
    """The tests, and what could not be made and why."""

    specs: tuple[RegressionTestSpec, ...]
    notes: tuple[str, ...] = ()


def make_tests(
    rule: RuleRecord,
    *,
    failing: Sequence[Example],
    passing: Sequence[Example],
    grade: Grade,
    packs: Sequence[RegressionTestSpec] = (),
    draft: DistillDraft | None = None,
    policy: GatePolicy | None = None,
) -> MadeTests:
    """`failing` and `passing` are runs at hand, the rule's own sources first; `packs` more micro-regressions.

    The first test of each kind has the id that the draft promised. The same runs make the same tests.
    """
    wanted = policy or GatePolicy()
    bench = _Bench(rule, draft, grade, bad_outputs(rule, (*failing, *passing)))
    conditions = conditions_of(rule)
    inside = [one for one in failing if not one.passed and all_hold(conditions, one.features)]
    outside = [one for one in passing if one.passed and not all_hold(conditions, one.features)]
    regressions = list(bench.failures(inside, "regression", wanted.regressions_min))
    clusters = list(bench.failures(bench.alike(inside, regressions), "cluster", wanted.cluster_counterexamples_min))
    boundaries = list(bench.boundaries(outside, wanted.boundary_counterexamples_min))
    own = [spec for one in (*inside, *passing) if all_hold(conditions, one.features) for spec in one.packs]
    packed = sorted((*packs, *own), key=lambda spec: is_form(spec, grade, inside))
    micro = list(bench.micros(packed, max(_MICRO_MAX, wanted.micro_min)))
    notes = [
        f"{found} of {needed} {name}: {why}"
        for name, found, needed, why in (
            ("regressions", len(regressions), wanted.regressions_min, "no source run failed in a way a test can say"),
            ("cluster counterexamples", len(clusters), wanted.cluster_counterexamples_min, "no other run failed alike"),
            (
                "boundary counterexamples",
                len(boundaries),
                wanted.boundary_counterexamples_min,
                "no run outside its place is known that passed",
            ),
            ("micro-regressions", len(micro), wanted.micro_min, "too few constraints that can be tested and can fail"),
        )
        if found < needed
    ]
    return MadeTests((*regressions, *clusters, *boundaries, *micro), (*notes, *bench.refused))


def with_tests(rule: RuleRecord, specs: Iterable[RegressionTestSpec]) -> RuleRecord:
    """The rule with these tests by name, and no others."""
    named: dict[str, list[str]] = {"regression": [], "counterexample": []}
    for spec in specs:
        named[spec.test_type].append(spec.test_id)
    wire = rule.to_wire()
    tests = {f"{name}_tests": list(dict.fromkeys(ids)) for name, ids in named.items()}
    return RuleRecord.from_wire({**wire, "tests": {**wire["tests"], **tests}})


def is_micro(spec: RegressionTestSpec) -> bool:
    """A regression that stands in a pack."""
    return spec.test_type == "regression" and not _MICRO_TAGS.isdisjoint(spec.tags or ())


def task_of(spec: RegressionTestSpec) -> str:
    """What is asked: tests of one task are asked of one answer."""
    return spec.prompt if spec.prompt is not None else spec.x_ref


def leak_assertion(rule: RuleRecord) -> tuple[str, dict[str, Any]]:
    """That the first words of a rule do not stand in an answer."""
    words = r"\s+".join(re.escape(word) for word in leak_of(rule).split())
    return "regex_absent", {"pattern": words, "ignore_case": True}


# -- making -------------------------------------------------------------------------------------------


class _Bench:
    """A rule whose tests are made, and what they are tried on."""

    def __init__(self, rule: RuleRecord, draft: DistillDraft | None, grade: Grade, bad: Sequence[Output]) -> None:
        self.rule, self.grade, self.bad = rule, grade, bad
        self.refused: list[str] = []
        self._promised: dict[_Kind, list[str]] = {
            "regression": list(draft.tests.regression_tests or ()) if draft is not None else [],
            "cluster": list((draft.tests.counterexample_tests or ())[:1]) if draft is not None else [],
            "boundary": list((draft.tests.counterexample_tests or ())[1:2]) if draft is not None else [],
        }

    def failures(self, examples: Sequence[Example], kind: _Kind, most: int) -> Iterator[RegressionTestSpec]:
        """One test a task: the first assertion that its own output fails."""
        tasks: set[str] = set()
        for one in examples:
            if len(tasks) == most:
                return
            for key, assertion in _broken(self.rule, one):
                spec = self._spec(kind, one, assertion, (kind, key))
                if task_of(spec) not in tasks and not self.grade(spec, one.output).ok:
                    tasks.add(task_of(spec))
                    yield self._promised_id(kind, spec)
                    break

    def alike(self, failing: Sequence[Example], regressions: Sequence[RegressionTestSpec]) -> list[Example]:
        """Other tasks that failed alike: of one cluster, by a shared cause, or in what the regression asks of any."""
        tasks = {task_of(spec) for spec in regressions}
        first = [one for one in failing if one.prompt in tasks]
        clusters = {(self.rule.evidence.model_extra or {}).get("cluster_id"), *(one.cluster_id for one in first)}
        causes = {each for one in first for each in (*one.violated, *one.reason_codes)}
        common = [spec for spec in regressions if spec.assertion is not None and spec.assertion.type in _OF_ANY_TASK]
        return [
            one
            for one in failing
            if one.prompt not in tasks
            and (
                (one.cluster_id is not None and one.cluster_id in clusters)
                or not causes.isdisjoint((*one.violated, *one.reason_codes))
                or any(not self.grade(spec, one.output).ok for spec in common)
            )
        ]

    def boundaries(self, examples: Sequence[Example], most: int) -> Iterator[RegressionTestSpec]:
        """What held outside the rule's place, and then that the rule is not recited there."""
        found = 0
        for one in examples:
            for key, assertion in _kept(self.rule, one):
                spec = self._spec("boundary", one, assertion, ("boundary", key))
                if found < most and self.grade(spec, one.output).ok and not is_vacuous(spec, self.grade, self.bad):
                    found += 1
                    yield self._promised_id("boundary", spec)
                    break
        for one in examples[:1]:
            spec = self._leak(one)
            if self.grade(spec, one.output).ok and not is_vacuous(spec, self.grade, self.bad):
                yield self._promised_id("boundary", spec)

    def micros(self, packs: Sequence[RegressionTestSpec], most: int) -> Iterator[RegressionTestSpec]:
        """The small tests in the packs that can fail, each assertion of a task once."""
        seen: set[str] = set()
        for spec in packs:
            asked = spec.to_wire().get("assert")
            key = digest_of([task_of(spec), asked])
            if len(seen) == most or key in seen or asked is None or not is_micro(spec):
                continue
            if is_vacuous(spec, self.grade, self.bad):
                self.refused.append(f"{spec.test_id} is vacuous: it passes on every bad output")
                continue
            seen.add(key)
            linked = dict.fromkeys((*(spec.linked_rule_ids or ()), self.rule.rule_id))
            yield spec.model_copy(update={"linked_rule_ids": tuple(linked)})

    def _leak(self, one: Example) -> RegressionTestSpec:
        return self._spec("boundary", one, leak_assertion(self.rule), ("boundary", "format_leak"))

    def _spec(self, kind: _Kind, one: Example, assertion: _Assertion, tags: Sequence[str]) -> RegressionTestSpec:
        type_, args = assertion
        plain: dict[str, Any] = {
            "schema_version": RULECRAFT_VERSION,
            "test_id": short_id("test", [self.rule.rule_id, kind, one.x_ref, one.prompt, type_, args]),
            "test_type": "regression" if kind == "regression" else "counterexample",
            "severity": "critical" if self.rule.type == "GuardrailRule" and kind == "regression" else "normal",
            "x_ref": one.x_ref,
            "prompt": one.prompt,
            "assert": {"type": type_, "args": args},
            "tags": list(tags),
            "expected": {"must_pass": True, "notes": f"from the run {one.trace_id}"},
            "linked_rule_ids": [self.rule.rule_id],
        }
        if kind != "regression":
            plain["kind"] = kind
        return RegressionTestSpec.from_wire(plain)

    def _promised_id(self, kind: _Kind, spec: RegressionTestSpec) -> RegressionTestSpec:
        """The test under the next id that was promised for its kind; under its own where none is left."""
        promised = self._promised[kind]
        return spec.model_copy(update={"test_id": promised.pop(0)}) if promised else spec


# -- what can be asserted -----------------------------------------------------------------------------


def _broken(rule: RuleRecord, one: Example) -> Iterator[tuple[str, _Assertion]]:
    """What the run broke, as its own tests say it or else by the key; what the rule asks; then all it was asked."""
    own = list(_own(one))
    for key in one.violated:
        yield from (each for each in own if each[0] == key)
        if (assertion := _of_key(key)) is not None:
            yield key, assertion
    feature = feature_of(rule)
    if feature is not None and (asked := _feature_assertion(feature, wants=rule.type == "StrategyRule")) is not None:
        yield feature, asked
    yield from own


def _kept(rule: RuleRecord, one: Example) -> Iterator[tuple[str, _Assertion]]:
    """The opposite of what the rule asks, where the run did so and passed; then its own constraints."""
    feature = feature_of(rule)
    if feature is not None and one.output.tool_calls is not None:
        opposite = _feature_assertion(feature, wants=rule.type != "StrategyRule")
        if opposite is not None:
            yield feature, opposite
    yield from _own(one)


def _own(one: Example) -> Iterator[tuple[str, _Assertion]]:
    """The run's own constraints, each with its key."""
    for spec in one.packs:
        if spec.assertion is not None and spec.assertion.type is not None:
            key = next((tag for tag in spec.tags or () if tag not in PACK_NAMES), "constraint")
            yield key, (spec.assertion.type, dict(spec.assertion.args or {}))


def _of_key(key: str) -> _Assertion | None:
    """What a constraint's key says by itself."""
    head, _, rest = key.partition(":")
    name, _, detail = rest.partition(":")
    match head, name:
        case "FORMAT", "JSON_ONLY":
            return "json_schema", {"schema": {}}
        case "FORMAT", "NOT_EMPTY":
            return "regex_present", {"pattern": r"\S"}
        case "TOOL", "CALL_REQUIRED" if detail:
            return "tool_called", {"tool": detail}
        case "TOOL", "CALL_FORBIDDEN" if detail:
            return "tool_not_called", {"tool": detail}
    return None


def _feature_assertion(feature: str, *, wants: bool) -> _Assertion | None:
    """A feature as an assertion, where one of the eight can say it: a tool that is called or not."""
    tool, group = tool_of(feature), feature.partition(":")[0]
    if tool is None or group not in ("tool", "first", "order", "args", "arg"):
        return None
    if not wants:
        return ("tool_not_called", {"tool": tool}) if group == "tool" else None
    named, _, value = feature.partition("=")
    if group == "arg" and value:
        return "tool_called", {"tool": tool, "args": {named.rpartition(".")[2]: value}}
    return "tool_called", {"tool": tool}
