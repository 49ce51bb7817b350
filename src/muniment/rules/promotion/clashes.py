"""Tests of one task that no answer can pass together: one that must hold a text, and one that must not.

It sees a text, an exact answer or a tool that one test wants and another does not let stand. What it finds is a
contradiction; what it does not find may still be one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from muniment.contracts.rules import RegressionTestSpec
from muniment.rules.promotion.examples import Grade
from muniment.rules.promotion.tests import task_of
from muniment.verify.outputs import Output

__all__ = ["Clash", "find_clashes"]

_ON_TEXT = frozenset(("json_schema", "regex_present", "regex_absent", "length_lte", "exact_match", "contains"))
_REFUSING = frozenset(("regex_absent", "length_lte"))
_ON_TOOLS = frozenset(("tool_called", "tool_not_called"))


class Clash(NamedTuple):
    """Two tests of one task, and why no answer passes both."""

    one: str
    other: str
    why: str


def find_clashes(specs: Iterable[RegressionTestSpec], grade: Grade) -> tuple[Clash, ...]:
    """Every pair that contradicts each other, in the order of the tests."""
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
    """Whether what the one wants, in whatever setting, is what the other does not let pass."""
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
