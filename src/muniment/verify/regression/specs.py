"""RegressionTestSpec (RC-19): the eight assertions on an output, and packs of tests made from constraints or a rule.

Pure: an output goes in, a result comes out. Running agents is the runtime's.

A test asserts one of the eight, or `constraints` themselves (`assert: {constraints: [{bullets: {min: 2}}]}`): every
kind of the constraint language can be tested, and none is left out. What is no kind is an error that names it.

| assertion | args |
|---|---|
| json_schema | `schema`, or the schema itself; `fence` |
| regex_present, regex_absent | `pattern`; `ignore_case` |
| tool_called, tool_not_called | `tool` (or `name`); for the first also `min`, `max`, `args` |
| length_lte | `max` (or `value`), `unit`: characters, words, tokens, bytes, lines, sentences |
| exact_match | `text` (or `value`); `strip`, `ignore_case` |
| contains | `text`, `texts` or `value`; `ignore_case` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from muniment.contracts.rules import RegressionTestSpec, RuleRecord, TestAssertion, TestExpectation
from muniment.core.canonical import digest_of
from muniment.core.ports.models import RubricJudge
from muniment.core.record import RULECRAFT_VERSION
from muniment.errors import InvalidInput, InvalidRecord, Issue
from muniment.verify.outputs import Finding, Output
from muniment.verify.static.base import Constraint
from muniment.verify.static.evaluation import evaluate
from muniment.verify.static.groups import AnyOf, NoneOf
from muniment.verify.static.notation import parse_constraints, to_plain

__all__ = ["PACKS", "CaseResult", "CaseStatus", "PackName", "broken", "constraints_of", "grade", "make_packs"]

CaseStatus = Literal["passed", "failed", "error", "timeout", "not_graded"]
PackName = Literal["FORMAT", "TOOL", "BUDGET"]
PACKS: tuple[PackName, ...] = ("FORMAT", "TOOL", "BUDGET")

_Args = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of one test. `ok` says whether it is as expected: a test that must not pass is right to fail."""

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
    """What a test asserts, as constraints; raises `InvalidRecord` for what cannot be read, with its place."""
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
    """One test on one output. A test that asserts nothing is not graded, and never counts as passed."""
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
    """A case that gave no output: a crash, a timeout, a spec that cannot be read. Never ok."""
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
    """The pack that a constraint belongs to: by what it limits, or by whether it is about the answer or its making."""
    if isinstance(constraint, AnyOf | NoneOf):
        packs = {_pack(each) for each in constraint.constraints}
        return packs.pop() if len(packs) == 1 else "FORMAT"
    if constraint.NAME in _BUDGETS:
        return "BUDGET"
    return "TOOL" if constraint.KEY.startswith(("TOOL:", "POLICY:")) else "FORMAT"


def _assertions(constraint: Constraint) -> list[tuple[str, _Args]]:
    """A constraint as some of the eight assertions; empty where they cannot say the whole of it."""
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
    """The fields of a constraint without its key, severity and reason: the test itself says how much it matters."""
    fields: _Args = next(iter(to_plain(constraint).values()))
    return {key: value for key, value in fields.items() if key not in ("key", "severity", "reason")}


def _asserted(constraint: Constraint) -> list[TestAssertion]:
    """What a test of it asserts: some of the eight where they say all of it, else the constraint itself."""
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
    """Tests that can be graded without a judge, by pack; every constraint becomes one, none is left out.

    From constraints, or from a rule: then what it asks is read from the `constraints` key of its `applicability`, where
    a rule may carry them in the constraint language, and from `constraints`. Ids are derived: the same source gives the
    same tests.
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
