"""Tests of a rule (RC-18, RC-19), generated without a model from judged runs. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple, Protocol

from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
from muniment.core.canonical import digest_of, short_id
from muniment.core.policy import GatePolicy
from muniment.core.predicates import all_hold
from muniment.core.record import RULECRAFT_VERSION
from muniment.rules._consolidate import conditions_of, feature_of, tool_of
from muniment.rules._records import TestOutcome
from muniment.verify.outputs import Output

# == examples =========================================================================================================

_GARBAGE = "lorem 0 ] { <x> qwzx"
_LEAK_WORDS, _LEAK_CHARS = 8, 120
_LONG = 2_000
"""Lines of garbage exceeding any length limit: more than any answer has."""


class Example(NamedTuple):
    """A judged run: its task, output and verdict."""

    trace_id: str
    x_ref: str
    prompt: str
    output: Output
    passed: bool
    violated: tuple[str, ...] = ()
    reason_codes: tuple[str, ...] = ()
    cluster_id: str | None = None
    features: Mapping[str, Any] = {}
    """The features that predicates are evaluated on."""
    packs: tuple[RegressionTestSpec, ...] = ()
    """The run's own constraints as tests, tagged with their keys."""


class Graded(Protocol):
    """The result of a test on an output. A protocol for `verify.regression.specs.CaseResult`."""

    @property
    def ok(self) -> bool: ...
    @property
    def status(self) -> str: ...
    @property
    def message(self) -> str: ...


Grade = Callable[[RegressionTestSpec, Output], Graded]


def leak_of(rule: RuleRecord) -> str:
    """The first words of a rule, by which an answer that recites it is recognised."""
    return " ".join(rule.body.split()[:_LEAK_WORDS])[:_LEAK_CHARS].strip()


def bad_outputs(rule: RuleRecord, examples: Sequence[Example]) -> tuple[Output, ...]:
    """Outputs that a test should refuse: empty, noise, the rule recited, outputs of failing runs; last, endless noise
    that calls every known tool. Most tests fail before they reach that one.
    """
    tools = sorted({call.name for one in examples for call in one.output.tool_calls or ()})
    short = ("", _GARBAGE, f"{rule.title or ''}\n{rule.body}")
    long = {"text": f"{_GARBAGE}\n" * _LONG, "tool_calls": [{"name": name} for name in tools] * 3}
    return (
        *(Output.from_wire({"text": text, "tool_calls": []}) for text in short),
        *(one.output for one in examples if not one.passed),
        Output.from_wire(long),
    )


def is_vacuous(spec: RegressionTestSpec, grade: Grade, bad: Iterable[Output]) -> bool:
    """Return whether the test passes on every bad output, and so shows nothing."""
    return all(grade(spec, output).ok for output in bad)


def is_form(spec: RegressionTestSpec, grade: Grade, examples: Iterable[Example]) -> bool:
    """Return whether every failed answer passes it too: then it checks form, and does not show whether a rule helps."""
    failed = [one for one in examples if not one.passed]
    return bool(failed) and all(grade(spec, one.output).ok for one in failed)


# == tests ============================================================================================================

PACK_NAMES = frozenset(("FORMAT", "TOOL", "BUDGET"))
TASK_PACK = "TASK"
"""The pack of tests that are earlier tasks, judged by the caller's verifier."""
_MICRO_TAGS = PACK_NAMES | {TASK_PACK}
_MICRO_MAX = 12
_OF_ANY_TASK = ("tool_called", "tool_not_called", "json_schema")
"""Assertions that are independent of the task; assertions on the words of an answer are not."""

_Assertion = tuple[str, dict[str, Any]]
_Kind = Literal["regression", "cluster", "boundary"]


class MadeTests(NamedTuple):
    """The tests, and the reasons for those that could not be made."""

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
    """Make tests from `failing` and `passing` runs, the rule's own sources first; `packs` are further
    micro-regressions.

    The first test of each kind gets the id that the draft promised. The same runs give the same tests.
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
    """Return the rule with exactly these tests."""
    named: dict[str, list[str]] = {"regression": [], "counterexample": []}
    for spec in specs:
        named[spec.test_type].append(spec.test_id)
    wire = rule.to_wire()
    tests = {f"{name}_tests": list(dict.fromkeys(ids)) for name, ids in named.items()}
    return RuleRecord.from_wire({**wire, "tests": {**wire["tests"], **tests}})


def is_micro(spec: RegressionTestSpec) -> bool:
    """A regression that is part of a pack."""
    return spec.test_type == "regression" and not _MICRO_TAGS.isdisjoint(spec.tags or ())


def task_of(spec: RegressionTestSpec) -> str:
    """The task: tests of one task are applied to one answer."""
    return spec.prompt if spec.prompt is not None else spec.x_ref


def leak_assertion(rule: RuleRecord) -> tuple[str, dict[str, Any]]:
    """An assertion that the first words of a rule do not occur in an answer."""
    words = r"\s+".join(re.escape(word) for word in leak_of(rule).split())
    return "regex_absent", {"pattern": words, "ignore_case": True}


# -- making -------------------------------------------------------------------------------------------


class _Bench:
    """A rule whose tests are being made, and the outputs they are tried on."""

    def __init__(self, rule: RuleRecord, draft: DistillDraft | None, grade: Grade, bad: Sequence[Output]) -> None:
        self.rule, self.grade, self.bad = rule, grade, bad
        self.refused: list[str] = []
        self._promised: dict[_Kind, list[str]] = {
            "regression": list(draft.tests.regression_tests or ()) if draft is not None else [],
            "cluster": list((draft.tests.counterexample_tests or ())[:1]) if draft is not None else [],
            "boundary": list((draft.tests.counterexample_tests or ())[1:2]) if draft is not None else [],
        }

    def failures(self, examples: Sequence[Example], kind: _Kind, most: int) -> Iterator[RegressionTestSpec]:
        """Yield one test per task: the first assertion that its own output fails."""
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
        """Other tasks that failed similarly: same cluster, shared cause, or failing one of the regressions."""
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
        """Yield tests of what held outside the rule's place, then that the rule is not recited there."""
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
        """Yield the small tests in the packs that can fail, each assertion of a task once."""
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
        """Give the test the next id promised for its kind; it keeps its own if none is left."""
        promised = self._promised[kind]
        return spec.model_copy(update={"test_id": promised.pop(0)}) if promised else spec


# -- assertions ---------------------------------------------------------------------------------------


def _broken(rule: RuleRecord, one: Example) -> Iterator[tuple[str, _Assertion]]:
    """Yield what the run broke, by its own tests or by key; then what the rule requires; then everything required of
    the run.
    """
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
    """Yield the opposite of what the rule requires, if the run did that and passed; then the run's own constraints."""
    feature = feature_of(rule)
    if feature is not None and one.output.tool_calls is not None:
        opposite = _feature_assertion(feature, wants=rule.type != "StrategyRule")
        if opposite is not None:
            yield feature, opposite
    yield from _own(one)


def _own(one: Example) -> Iterator[tuple[str, _Assertion]]:
    """Yield the run's own constraints, each with its key."""
    for spec in one.packs:
        if spec.assertion is not None and spec.assertion.type is not None:
            key = next((tag for tag in spec.tags or () if tag not in PACK_NAMES), "constraint")
            yield key, (spec.assertion.type, dict(spec.assertion.args or {}))


def _of_key(key: str) -> _Assertion | None:
    """The assertion implied by a constraint key alone."""
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
    """A feature as one of the eight assertions, if possible: a tool that is called or not."""
    tool, group = tool_of(feature), feature.partition(":")[0]
    if tool is None or group not in ("tool", "first", "order", "args", "arg"):
        return None
    if not wants:
        return ("tool_not_called", {"tool": tool}) if group == "tool" else None
    named, _, value = feature.partition("=")
    if group == "arg" and value:
        return "tool_called", {"tool": tool, "args": {named.rpartition(".")[2]: value}}
    return "tool_called", {"tool": tool}


# == task tests =======================================================================================================

HELD_OUT = "held_out"
"""Tag of tests generated here; they may be regenerated from other tasks."""
_ASKS = {"verifier": "passes"}
_REFUSED_MAX = 10
"""Stop after this many tasks of a kind whose verifier accepts bad answers: a verifier may be expensive."""


class TaskAsked(NamedTuple):
    """Counts of asking and passing a task: with the rule, and without it if no answer with it passed."""

    passes: int
    asked: int
    without_passes: int = 0
    without_asked: int = 0
    problem: str = ""
    """The problem of the last answer."""
    applies: bool = True
    """The rule applies to the task; otherwise the task is not asked."""


def asks_verifier(spec: RegressionTestSpec) -> bool:
    """Return whether the caller's verifier judges the answer."""
    extra = None if spec.assertion is None else spec.assertion.model_extra
    return extra is not None and extra.get("verifier") == _ASKS["verifier"]


def task_key(prompt: str) -> str:
    """A task with its whitespace normalised."""
    return " ".join(prompt.split()).casefold()


def held_out(examples: Iterable[Example], sources: Collection[str]) -> list[Example]:
    """Runs of tasks other than those a rule was learned from, in the given order."""
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
    """Make tests from `examples`, held out and newest first; `spent` are tasks of failed tests, used last.

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
    """A readable description of where a rule applies."""
    where = rule.applicability
    if where.task_family:
        return f"the family {where.task_family}"
    return f"the domain {where.domain_tag}" if where.domain_tag else "the kind it is for"


_Taken = tuple[Example, str]


class _Maker:
    """A rule whose tests are being made; each task is used once."""

    def __init__(self, rule: RuleRecord, can_fail: Callable[[Example], bool], spent: Collection[str]) -> None:
        self.rule, self.can_fail = rule, can_fail
        self.refused: list[str] = []
        self._taken: set[str] = set()
        self._spent = {task_key(prompt) for prompt in spent}

    def tasks(self, examples: Sequence[Example], *, passed: bool) -> list[Example]:
        """The first passing (or failing) run of each task; spent tasks come last."""
        runs: dict[str, Example] = {}
        for one in examples:
            if one.passed == passed:
                runs.setdefault(task_key(one.prompt), one)
        return sorted(runs.values(), key=self.is_spent)

    def is_spent(self, one: Example) -> bool:
        return task_key(one.prompt) in self._spent

    def alike(self, failing: Sequence[Example], regressions: Sequence[_Taken]) -> list[Example]:
        """Put those with the same failure first, if the failure is known."""
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
    """Judge a task: it passes if one of its answers did, or if the rule does not apply to it."""
    ok = asked.passes > 0 or not asked.applies
    message = _failure_message(asked) if not ok else "" if asked.applies else "the rule does not stand before it"
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


def _failure_message(asked: TaskAsked) -> str:
    if not asked.asked:
        return asked.problem
    without = ""
    if asked.without_asked:
        of = f"{asked.without_passes} of {asked.without_asked} without it"
        without = f"; {of}" if asked.without_passes else f"; nor did any of {asked.without_asked} without it"
    problem = f"; {asked.problem}" if asked.problem else ""
    return f"none of {asked.asked} answers passed with the rule{without}{problem}"


# == clashes ==========================================================================================================

_ON_TEXT = frozenset(("json_schema", "regex_present", "regex_absent", "length_lte", "exact_match", "contains"))
_REFUSING = frozenset(("regex_absent", "length_lte"))
_ON_TOOLS = frozenset(("tool_called", "tool_not_called"))


class Clash(NamedTuple):
    """Two tests of one task that no answer can both pass, and the reason."""

    one: str
    other: str
    why: str


def find_clashes(specs: Iterable[RegressionTestSpec], grade: Grade) -> tuple[Clash, ...]:
    """Find every contradicting pair, in the order of the tests."""
    tasks: dict[str, list[RegressionTestSpec]] = defaultdict(list)
    for spec in specs:
        if spec.assertion is not None and spec.assertion.type is not None:
            tasks[task_of(spec)].append(spec)
    return tuple(clash for asked in tasks.values() for clash in _of_task(asked, grade))


def _of_task(specs: Sequence[RegressionTestSpec], grade: Grade) -> Iterator[Clash]:
    for one, other in combinations(specs, 2):
        why = _why(one, other, grade) or _why(other, one, grade)
        if why is not None:
            yield Clash(one.test_id, other.test_id, why)


def _why(wanting: RegressionTestSpec, other: RegressionTestSpec, grade: Grade) -> str | None:
    """Explain why an output wanted by the one, in any setting, fails the other; None if it does not."""
    type_, args = _type(wanting), _args(wanting)
    if not _must(wanting):
        return None
    if type_ == "exact_match" and _type(other) in _ON_TEXT:
        texts = [_text(args, "text", "value", "expected")]
    elif type_ == "contains" and _refuses_text(other):
        wanted = _text(args, "texts", "text", "value", "substring")
        texts = [wanted, f"x {wanted} x", f"\n{wanted}\n"]
    elif type_ == "tool_called" and _type(other) in _ON_TOOLS and _must(other) == (_type(other) == "tool_not_called"):
        tool = _text(args, "tool", "name", "tool_name", "value")
        if tool != _text(_args(other), "tool", "name", "tool_name", "value"):
            return None
        called = Output.from_wire({"text": "", "tool_calls": [{"name": tool, "args": args.get("args") or {}}]})
        return None if grade(other, called).ok else f"{tool} must be called and must not"
    else:
        return None
    if any(grade(other, Output.from_wire({"text": text, "tool_calls": []})).ok for text in texts):
        return None
    return f"{texts[0][:60]!r} must stand and must not"


def _refuses_text(spec: RegressionTestSpec) -> bool:
    return _type(spec) in _REFUSING if _must(spec) else _type(spec) in ("contains", "regex_present")


def _must(spec: RegressionTestSpec) -> bool:
    return spec.expected is None or spec.expected.must_pass


def _type(spec: RegressionTestSpec) -> str | None:
    return spec.assertion.type if spec.assertion is not None else None


def _args(spec: RegressionTestSpec) -> dict[str, Any]:
    return dict(spec.assertion.args or {}) if spec.assertion is not None else {}


def _text(args: dict[str, Any], *names: str) -> str:
    found = next((args[name] for name in names if name in args), "")
    return " ".join(map(str, found)) if isinstance(found, list | tuple) else str(found)
