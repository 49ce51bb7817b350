"""Pack files: a constraint file with cases, each a prompt with variables and what must hold of its answer. Pure.

constraints:                            # of every case
  - personal_data
repeats: 5                              # each case is asked so often
least: 0.5                              # and the lower bound of its pass rate must reach this
cases:
  - id: refund
    prompt: "Where is my order {{order}}?"
    vars: {order: 1234}
    constraints:
      - contains: "{{order}}"
  - id: greeting
    prompt: "{{hello}}"
    data: [{hello: Hi}, {hello: Hallo}]  # a case for each row; or the name of a file of JSON lines
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from muniment.contracts.rules import RegressionTestSpec
from muniment.core.canonical import canonical_text
from muniment.core.record import RULECRAFT_VERSION, Absent, Items, JsonObject, NonEmpty, Record
from muniment.errors import InvalidRecord, Issue
from muniment.verify.static.notation import parse_constraints
from muniment.verify.yaml import parse_yaml

__all__ = ["CASES_MAX", "Pack", "PackCase", "is_pack", "parse_pack", "read_pack"]

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
    """One case: what is asked, and the test of the answer."""

    id: str
    spec: RegressionTestSpec


class Pack(NamedTuple):
    """The cases of a file, in order."""

    name: str
    cases: tuple[PackCase, ...]
    repeats: int
    least: float | None
    """The lower bound of the pass rate that a case must reach; every answer must pass where there is none."""


def is_pack(data: Any) -> bool:
    """Is this a file of cases, and not of constraints alone?"""
    return isinstance(data, Mapping) and "cases" in data


def read_pack(text: str, rows: Rows | None = None) -> Pack:
    return parse_pack(parse_yaml(text), rows)


def parse_pack(data: Any, rows: Rows | None = None) -> Pack:
    """Plain data to cases; raises `InvalidRecord` with everything that is wrong. `rows` reads a file of data."""
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
            made = _made(id_, case, variables, file, path, issues)
            if made is not None:
                found[id_] = made
    if issues:
        known = dict.fromkeys(issues)  # what holds for every case is wrong once
        raise InvalidRecord("not a pack file", list(known), hint="each issue names its path")
    if len(found) > CASES_MAX:
        raise InvalidRecord("not a pack file", [Issue("$.cases", f"more than {CASES_MAX} cases", "too_many")])
    return Pack(file.name or "pack", tuple(found.values()), file.repeats, file.least)


def _variables(case: _Case, path: str, rows: Rows | None, issues: list[Issue]) -> list[tuple[str, dict[str, Any]]]:
    """The variables of a case; of each row, where it has data."""
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


def _made(
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
    """Where a constraint stands in the file: among those of every case, or in its own."""
    found = _NUMBERED.match(path)
    if found is None or int(found[1]) < shared:
        return path
    return f"{case}.constraints[{int(found[1]) - shared}]{path[found.end() :]}"


class _Filler:
    """Puts variables into texts; one that nobody gave is an issue at its place."""

    def __init__(self, variables: Mapping[str, Any], issues: list[Issue]) -> None:
        self._variables = variables
        self._issues = issues

    def constraint(self, given: Any, path: str, registered: Mapping[str, Any]) -> Any:
        """A constraint with its variables: a number stays one where the kind takes it, else it is text."""
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
        """A text with its variables; one that is a variable and nothing else is its value, be it a number or a list."""
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
