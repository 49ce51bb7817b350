"""Regression tests of an agent's outputs (RC-19): eight assertions, packs of tests, and a runner.

A test asserts one of the eight, or `constraints` themselves (`assert: {constraints: [{bullets: {min: 2}}]}`): every
kind of constraint can be tested. An unknown kind is an error that names it.

| assertion | args |
|---|---|
| json_schema | `schema`, or the schema itself; `fence` |
| regex_present, regex_absent | `pattern`; `ignore_case` |
| tool_called, tool_not_called | `tool` (or `name`); for the first also `min`, `max`, `args` |
| length_lte | `max` (or `value`), `unit`: characters, words, tokens, bytes, lines, sentences |
| exact_match | `text` (or `value`); `strip`, `ignore_case` |
| contains | `text`, `texts` or `value`; `ignore_case` |

An agent is a callable from a spec to an output of any shape that `read_output` takes; or outputs are given directly. An
agent's failure (a crash, a timeout, an invalid output) is a result, not an exception.

A pack file is a constraint file with cases, each a prompt with variables and the constraints on its answer:

    constraints:                            # shared by every case
      - personal_data
    repeats: 5                              # each case is repeated this often
    least: 0.5                              # and the lower bound of its pass rate (Wilson) must reach this
    cases:
      - id: refund
        prompt: "Where is my order {{order}}?"
        vars: {order: 1234}
        constraints:
          - contains: "{{order}}"
      - id: greeting
        prompt: "{{hello}}"
        data: [{hello: Hi}, {hello: Hallo}]  # a case for each row; or the name of a file of JSON lines

Compared with an earlier run, a case is worse if it was good then and is not now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from muniment.contracts.rules import RegressionTestSpec, RuleRecord, TestAssertion, TestExpectation
from muniment.core.canonical import canonical_bytes, canonical_text, digest_of
from muniment.core.outside.calling import submitted, wait_for
from muniment.core.ports.models import Judgement, RubricJudge
from muniment.core.record import RULECRAFT_VERSION, Absent, Items, JsonObject, NonEmpty, OpenRecord, Record
from muniment.core.stats import wilson_bounds
from muniment.errors import InvalidInput, InvalidRecord, Issue
from muniment.verify._constraint import Constraint
from muniment.verify.constraint_files import parse_constraints, parse_yaml, to_plain
from muniment.verify.constraints import AnyOf, NoneOf, check_answerable, evaluate
from muniment.verify.graders import GradingSession, grading_of
from muniment.verify.junit import JUnitCase, to_junit
from muniment.verify.outputs import Finding, Output, Usage, read_output

CaseStatus = Literal["passed", "failed", "error", "timeout", "not_graded"]
PackName = Literal["FORMAT", "TOOL", "BUDGET"]
PACKS: tuple[PackName, ...] = ("FORMAT", "TOOL", "BUDGET")

_Args = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one test. `ok` says whether it is as expected: a test that must not pass is ok when it fails."""

    test_id: str
    status: CaseStatus
    ok: bool
    message: str = ""
    findings: tuple[Finding, ...] = ()
    duration_ms: float | None = None
    severity: str = "normal"
    test_type: str = "regression"

    def to_dict(self) -> dict[str, Any]:
        shape: dict[str, Any] = {
            "test_id": self.test_id,
            "test_type": self.test_type,
            "severity": self.severity,
            "status": self.status,
            "ok": self.ok,
        }
        if self.message:
            shape["message"] = self.message
        if self.duration_ms is not None:
            shape["duration_ms"] = self.duration_ms
        violated = sorted({finding.key for finding in self.findings if not finding.ok})
        if violated:
            shape["violated_constraints"] = violated
        return shape


# -- assertions ---------------------------------------------------------------------------------------


def constraints_of(spec: RegressionTestSpec) -> tuple[Constraint, ...]:
    """A test's assertions as constraints; raises `InvalidRecord` with the place of an error."""
    asserted = spec.assertion
    if asserted is None:
        return ()
    direct = {name: value for name, value in (asserted.model_extra or {}).items() if name in _DIRECT}
    found = _read(spec, direct, lambda path: f"$.assert{path[1:]}") if direct else ()
    if asserted.type is None:
        return found
    args = dict(asserted.args or {})
    try:
        plain = _ASSERTIONS[asserted.type](args)
    except KeyError as error:
        issue = Issue("$.assert.args", f"{asserted.type} wants {error.args[0]!r}")
        raise InvalidRecord(_UNREADABLE.format(spec.test_id), [issue]) from None
    return (*_read(spec, plain, lambda path: f"$.assert.args{path.partition(']')[2]}"), *found)


_DIRECT = ("constraints", "register")
_UNREADABLE = "the test {!r} cannot be read"


def _read(spec: RegressionTestSpec, plain: Any, path_of: Callable[[str], str]) -> tuple[Constraint, ...]:
    try:
        return parse_constraints(plain).constraints
    except InvalidRecord as error:
        issues = [Issue(path_of(each.path), each.message, each.code) for each in error.issues]
        raise InvalidRecord(_UNREADABLE.format(spec.test_id), issues, hint=error.hint) from None


def _first(args: _Args, *names: str) -> Any:
    for name in names:
        if name in args:
            return args.pop(name)
    raise KeyError(names[0])


def _json_schema(args: _Args) -> list[Any]:
    return [{"json_schema": args if "schema" in args else {"schema": args}}]


def _regex(name: str) -> Callable[[_Args], list[Any]]:
    return lambda args: [{name: {"pattern": _first(args, "pattern", "regex", "value"), **args}}]


def _tool_called(args: _Args) -> list[Any]:
    tool = _first(args, "tool", "name", "tool_name", "value")
    wanted = args.pop("args", None)
    made: list[Any] = [{"tool_called": {"tool": tool, **args}}]
    if wanted is not None:
        made.append({"tool_arguments": {"tool": tool, "equals": wanted, "any": True}})
    return made


def _tool_not_called(args: _Args) -> list[Any]:
    return [{"tool_not_called": {"tool": _first(args, "tool", "name", "tool_name", "value"), **args}}]


def _length(args: _Args) -> list[Any]:
    most = _first(args, "max", "value", "length", "n")
    unit = args.pop("unit", "characters")
    if unit in ("words", "lines", "sentences"):
        return [{unit: {"max": most, **args}}]
    return [{"length": {"max": most, "unit": {"chars": "characters"}.get(unit, unit), **args}}]


def _exact(args: _Args) -> list[Any]:
    return [{"exact_match": {"text": _first(args, "text", "value", "expected"), **args}}]


def _contains(args: _Args) -> list[Any]:
    texts = _first(args, "texts", "text", "value", "substring")
    return [{"contains": {"texts": texts if isinstance(texts, list) else [texts], **args}}]


_ASSERTIONS: Mapping[str, Callable[[_Args], list[Any]]] = {
    "json_schema": _json_schema,
    "regex_present": _regex("regex_present"),
    "regex_absent": _regex("regex_absent"),
    "tool_called": _tool_called,
    "tool_not_called": _tool_not_called,
    "length_lte": _length,
    "exact_match": _exact,
    "contains": _contains,
}


def grade(
    spec: RegressionTestSpec,
    output: Output,
    duration_ms: float | None = None,
    grader: RubricJudge | None = None,
) -> CaseResult:
    """Grade one output. A test without assertions is not graded, and never counts as passed."""
    constraints = constraints_of(spec)
    expected = spec.expected is None or spec.expected.must_pass
    if not constraints:
        message = "the test asserts nothing that can be graded without a judge"
        return _result(spec, "not_graded", False, message, (), duration_ms)
    findings = tuple(evaluate(output, constraints, grader, "$.assert.constraints"))
    held = all(finding.ok for finding in findings)
    message = "; ".join(finding.message for finding in findings if not finding.ok)
    if held and not expected:
        message = "it holds, and must not"
    return _result(spec, "passed" if held == expected else "failed", held == expected, message, findings, duration_ms)


def _result(
    spec: RegressionTestSpec,
    status: CaseStatus,
    ok: bool,
    message: str,
    findings: tuple[Finding, ...],
    duration_ms: float | None,
) -> CaseResult:
    severity = spec.severity or "normal"
    return CaseResult(spec.test_id, status, ok, message, findings, duration_ms, severity, spec.test_type)


def broken(spec: RegressionTestSpec, status: CaseStatus, message: str, duration_ms: float | None = None) -> CaseResult:
    """A case without an output: a crash, a timeout, an invalid spec. Never ok."""
    return _result(spec, status, False, message, (), duration_ms)


# -- packs --------------------------------------------------------------------------------------------

_FORMAT_ASSERTIONS: Mapping[str, Callable[[dict[str, Any]], list[tuple[str, _Args]]]] = {
    "json_only": lambda given: [("json_schema", {"schema": {}, "fence": given.get("fence", False)})],
    "json_schema": lambda given: [("json_schema", {"schema": given["schema"], "fence": given.get("fence", False)})],
    "regex_present": lambda given: [("regex_present", given)],
    "regex_absent": lambda given: [("regex_absent", given)],
    "exact_match": lambda given: [("exact_match", given)],
    "contains": lambda given: [("contains", given)],
}


_BUDGETS = frozenset({"length", "words", "lines", "sentences", "tool_calls", "budget", "hint_length", "hints"})


def _pack(constraint: Constraint) -> PackName:
    """The pack of a constraint, by the resource it limits or by whether it concerns the answer or its making."""
    if isinstance(constraint, AnyOf | NoneOf):
        packs = {_pack(each) for each in constraint.constraints}
        return packs.pop() if len(packs) == 1 else "FORMAT"
    if constraint.NAME in _BUDGETS:
        return "BUDGET"
    return "TOOL" if constraint.KEY.startswith(("TOOL:", "POLICY:")) else "FORMAT"


def _assertions(constraint: Constraint) -> list[tuple[str, _Args]]:
    """Express a constraint with the eight assertions; empty if they cannot express all of it."""
    name = constraint.NAME
    given = _bare(constraint)
    if name in _FORMAT_ASSERTIONS:
        return _FORMAT_ASSERTIONS[name](given)
    if name == "title":
        return [("regex_present", {"pattern": "<<[^\\n]+>>"})]
    if name in ("tool_called", "tool_not_called"):
        return [(name, given)]
    if name in ("length", "words", "lines", "sentences"):
        least, most = constraint.limits  # type: ignore[attr-defined]
        unit = given.get("unit", "characters") if name == "length" else name
        return [] if most is None or least > 0 else [("length_lte", {"max": most, "unit": unit})]
    return []


def _bare(constraint: Constraint) -> _Args:
    """Fields of a constraint without key, severity and reason, as the test has its own severity."""
    fields: _Args = next(iter(to_plain(constraint).values()))
    return {key: value for key, value in fields.items() if key not in ("key", "severity", "reason")}


def _asserted(constraint: Constraint) -> list[TestAssertion]:
    """Test assertions of a constraint: some of the eight if they express all of it, else the constraint itself."""
    said = _assertions(constraint)
    if said:
        return [TestAssertion(type=kind, args=args) for kind, args in said]  # type: ignore[arg-type]
    return [TestAssertion.from_wire({"constraints": [{constraint.NAME: _bare(constraint)}]})]


def make_packs(
    source: RuleRecord | Sequence[Constraint],
    constraints: Sequence[Constraint] = (),
    *,
    x_ref: str,
    prompt: str | None = None,
    packs: Iterable[PackName] = PACKS,
) -> dict[PackName, tuple[RegressionTestSpec, ...]]:
    """Make tests that need no judge, by pack; every constraint becomes one.

    The constraints of a rule are read from its `constraints`, and from the `constraints` key of its `applicability`,
    where a rule may carry them in the constraint language. Ids are derived: the same source gives the same tests.
    """
    rule = source if isinstance(source, RuleRecord) else None
    asked = [*(_of_rule(rule) if rule is not None else ()), *constraints]
    if not isinstance(source, RuleRecord):
        asked = [*source, *asked]
    wanted = set(packs)
    if unknown := wanted - set(PACKS):
        raise InvalidInput(f"no pack is called {min(unknown)!r}", hint=", ".join(PACKS))
    made: dict[PackName, dict[str, RegressionTestSpec]] = {pack: {} for pack in PACKS if pack in wanted}
    for constraint in asked:
        pack = _pack(constraint)
        for asserted in _asserted(constraint) if pack in made else ():
            spec = _spec(pack, asserted, constraint, rule, x_ref, prompt)
            made[pack].setdefault(spec.test_id, spec)
    return {pack: tuple(specs.values()) for pack, specs in made.items()}


def _of_rule(rule: RuleRecord) -> tuple[Constraint, ...]:
    given = (rule.applicability.model_extra or {}).get("constraints")
    try:
        return () if given is None else parse_constraints(given).constraints
    except InvalidRecord as error:
        issues = [
            Issue(f"$.applicability.constraints{each.path[1:]}", each.message, each.code) for each in error.issues
        ]
        raise InvalidRecord(f"the rule {rule.rule_id!r} cannot be tested", issues, hint=error.hint) from None


def _spec(
    pack: PackName,
    asserted: TestAssertion,
    constraint: Constraint,
    rule: RuleRecord | None,
    x_ref: str,
    prompt: str | None,
) -> RegressionTestSpec:
    rule_id = rule.rule_id if rule is not None else None
    said = asserted.to_wire()
    name = digest_of([pack, said.get("type"), said.get("args", said), x_ref, prompt, rule_id])[:16]
    fields: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "test_id": f"micro_{pack.lower()}_{name}",
        "test_type": "regression",
        "severity": "critical" if constraint.severity == "fatal" else "normal",
        "x_ref": x_ref,
        "assertion": asserted,
        "tags": (pack, constraint.violated_key),
        "expected": TestExpectation(must_pass=True),
    }
    if prompt is not None:
        fields["prompt"] = prompt
    if rule_id is not None:
        fields["linked_rule_ids"] = (rule_id,)
    return RegressionTestSpec(**fields)


# -- running tests -------------------------------------------------------------------------------------

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
        """True if every graded test is as expected, and at least one was graded."""
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
    """Run every spec on the agent, or on outputs given by test id.

    Without an executor the cases run one after another in their own thread. A thread cannot be stopped: a case that
    runs past `timeout_s` is reported as a timeout and abandoned. Give a process pool for agents that hang. `grader`
    answers rubrics. The measured duration is the output's latency, unless the output gives one.
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
    """The work done on the executor, possibly in another process."""
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
    """Text that UTF-8 can encode: an agent's crash message may be anything."""
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
    """The output with its measured latency, unless it gives one."""
    if duration_ms is None or (output.usage is not None and output.usage.latency_ms is not None):
        return output
    used = {} if output.usage is None else output.usage.to_wire()
    return output.model_copy(update={"usage": Usage.from_wire(used | {"latency_ms": duration_ms})})


# -- pack files ----------------------------------------------------------------------------------------

CASES_MAX = 10_000
_VARIABLE = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]{0,63}) *\}\}")

Rows = Callable[[str], Sequence[Any]]


class _Case(Record):
    id: NonEmpty
    prompt: Absent[str] = None
    vars: Absent[JsonObject] = None
    data: Absent[Any] = None
    constraints: Absent[Any] = None


class _PackFile(Record):
    cases: Items[_Case] = Field(min_length=1, max_length=CASES_MAX)
    name: Absent[str] = None
    constraints: Absent[Any] = None
    register_: Absent[Any] = Field(default=None, alias="register")
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    least: Absent[Annotated[float, Field(ge=0, lt=1)]] = None


class PackCase(NamedTuple):
    """One case: its prompt, and the test of the answer."""

    id: str
    spec: RegressionTestSpec


class Pack(NamedTuple):
    """The cases of a file, in order."""

    name: str
    cases: tuple[PackCase, ...]
    repeats: int
    least: float | None
    """Minimum for the lower bound of a case's pass rate; if None, every answer must pass."""


def is_pack(data: Any) -> bool:
    """True for a file of cases, rather than of constraints alone."""
    return isinstance(data, Mapping) and "cases" in data


def read_pack(text: str, rows: Rows | None = None) -> Pack:
    return parse_pack(parse_yaml(text), rows)


def parse_pack(data: Any, rows: Rows | None = None) -> Pack:
    """Convert plain data to cases; raise `InvalidRecord` listing every error. `rows` reads a data file."""
    file = _PackFile.of_given(data, "not a pack file", hint="cases have id, prompt, vars, data and constraints")
    issues: list[Issue] = []
    found: dict[str, PackCase] = {}
    for index, case in enumerate(file.cases):
        path = f"$.cases[{index}]"
        for suffix, variables in _variables(case, path, rows, issues):
            id_ = f"{case.id}{suffix}"
            if id_ in found:
                issues.append(Issue(f"{path}.id", f"two cases are called {id_!r:.80}", "duplicate"))
                continue
            made = _made_case(id_, case, variables, file, path, issues)
            if made is not None:
                found[id_] = made
    if issues:
        known = dict.fromkeys(issues)  # report an error in the shared constraints once
        raise InvalidRecord("not a pack file", list(known), hint="each issue names its path")
    if len(found) > CASES_MAX:
        raise InvalidRecord("not a pack file", [Issue("$.cases", f"more than {CASES_MAX} cases", "too_many")])
    return Pack(file.name or "pack", tuple(found.values()), file.repeats, file.least)


def _variables(case: _Case, path: str, rows: Rows | None, issues: list[Issue]) -> list[tuple[str, dict[str, Any]]]:
    """The variables of a case, one set per row if it has data."""
    own = dict(case.vars or {})
    if case.data is None:
        return [("", own)]
    given = case.data
    if isinstance(given, str) and rows is not None:
        given = rows(given)
    if not isinstance(given, list | tuple) or not given or not all(isinstance(row, Mapping) for row in given):
        issues.append(Issue(f"{path}.data", "wanted a list of objects, or a file of JSON lines", "invalid"))
        return []
    return [(f"[{number}]", {**own, **row}) for number, row in enumerate(given, 1)]


def _made_case(
    id_: str, case: _Case, variables: Mapping[str, Any], file: _PackFile, path: str, issues: list[Issue]
) -> PackCase | None:
    before = len(issues)
    filled = _Filler(variables, issues)
    prompt = None if case.prompt is None else str(filled.text(case.prompt, f"{path}.prompt", whole=False))
    shared = _listed(file.constraints, "$.constraints", issues)
    own = _listed(case.constraints, f"{path}.constraints", issues)
    registered: dict[str, Any] = {} if file.register_ is None else {"register": file.register_}
    asked = [
        filled.constraint(each, f"{where}[{index}]", registered)
        for where, several in (("$.constraints", shared), (f"{path}.constraints", own))
        for index, each in enumerate(several)
    ]
    if len(issues) > before:
        return None
    if not asked:
        issues.append(Issue(path, f"the case {id_!r:.80} has no constraint", "invalid"))
        return None
    plain = {"constraints": asked, **registered}
    try:
        parse_constraints(plain)
    except InvalidRecord as error:
        issues += [Issue(_place(each.path, len(shared), path), each.message, each.code) for each in error.issues]
        return None
    fields: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "test_id": id_,
        "test_type": "regression",
        "x_ref": id_,
        "assert": plain,
        "expected": {"must_pass": True},
        "vars": dict(variables),
    }
    if prompt is not None:
        fields["prompt"] = prompt
    return PackCase(id_, RegressionTestSpec.from_wire(fields))


def _listed(given: Any, path: str, issues: list[Issue]) -> list[Any]:
    if given is None or isinstance(given, list | tuple):
        return list(given or ())
    issues.append(Issue(path, "wanted a list of constraints", "invalid"))
    return []


_NUMBERED = re.compile(r"\$\.constraints\[(\d+)\]")


def _place(path: str, shared: int, case: str) -> str:
    """Place of a constraint in the file: among the shared ones, or in its case."""
    found = _NUMBERED.match(path)
    if found is None or int(found[1]) < shared:
        return path
    return f"{case}.constraints[{int(found[1]) - shared}]{path[found.end() :]}"


class _Filler:
    """Substitutes variables into texts; an undefined one is an issue at its place."""

    def __init__(self, variables: Mapping[str, Any], issues: list[Issue]) -> None:
        self._variables = variables
        self._issues = issues

    def constraint(self, given: Any, path: str, registered: Mapping[str, Any]) -> Any:
        """Substitute into a constraint: a number stays one if the kind takes it, else it becomes text."""
        known = len(self._issues)
        filled = self.value(given, path)
        if filled == given or len(self._issues) > known or _is_read(filled, registered):
            return filled
        as_text = self.value(given, path, whole=False)
        return as_text if _is_read(as_text, registered) else filled

    def value(self, given: Any, path: str, *, whole: bool = True) -> Any:
        if isinstance(given, str):
            return self.text(given, path, whole=whole)
        if isinstance(given, Mapping):
            return {key: self.value(each, f"{path}.{key}", whole=whole) for key, each in given.items()}
        if isinstance(given, list | tuple):
            return [self.value(each, f"{path}[{index}]", whole=whole) for index, each in enumerate(given)]
        return given

    def text(self, given: str, path: str, *, whole: bool = True) -> Any:
        """Substitute into a text; one that consists of a single variable becomes its value, even a number or a list."""
        alone = _VARIABLE.fullmatch(given.strip()) if whole else None
        if alone is not None:
            return self._named(alone[1], path)
        return _VARIABLE.sub(lambda found: _shown(self._named(found[1], path)), given)

    def _named(self, name: str, path: str) -> Any:
        if name not in self._variables:
            known = ", ".join(self._variables) or "none"
            self._issues.append(Issue(path, f"no variable is called {name!r}; there are {known}", "unknown_variable"))
            return ""
        return self._variables[name]


def _is_read(constraint: Any, registered: Mapping[str, Any]) -> bool:
    try:
        parse_constraints({"constraints": [constraint], **registered})
    except InvalidRecord:
        return False
    return True


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else canonical_text(value)


# -- running packs -------------------------------------------------------------------------------------

FORMAT = 1
_DIGITS = 4


class PackResult(NamedTuple):
    """The result of one case."""

    id: str
    answers: tuple[CaseResult, ...]
    least: float | None

    @property
    def passed(self) -> int:
        return sum(each.ok for each in self.answers)

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % confidence interval of the pass rate."""
        return tuple(wilson_bounds(self.passed, len(self.answers)))  # type: ignore[return-value]

    @property
    def ok(self) -> bool:
        return self.passed == len(self.answers) if self.least is None else self.bounds[0] >= self.least

    @property
    def words(self) -> str:
        """Reasons that answers failed, each once."""
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
    """The results of a pack, in the order of its cases, and the grader's judgements."""

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
        """JUnit XML. A case fails if it is not good; compared with an earlier run, only if it was good then, and others
        are skipped.
        """
        return to_junit(self.name, [_pack_junit_case(each, since) for each in self.results])


def _pack_junit_case(result: PackResult, since: PackDiff | None) -> JUnitCase:
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
    """Run every case on the agent, which is called with its test (`prompt`, `test_id`, and `vars` as an extra field).

    Alternatively, `agent` maps each case's id to a list of existing outputs, one per repetition.
    """
    session = None if grader is None else GradingSession(grading_of(grader))
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
    """The parts of an earlier run's JSON that are compared."""

    pack: Literal[1]
    cases: Items[_KeptCase]


def read_pack_report(data: Any, where: str) -> KeptPack:
    return KeptPack.of_given(data, f"{where} is not the report of a pack of format {FORMAT}", hint="what --save wrote")


class PackDiff(NamedTuple):
    """Changes since an earlier run, by case id."""

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
