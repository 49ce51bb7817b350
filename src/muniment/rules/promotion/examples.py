"""What tests are made from: runs that were judged, and the outputs that a test worth having must not let pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from muniment.contracts.rules import RegressionTestSpec, RuleRecord
from muniment.verify.outputs import Output

__all__ = ["Example", "Grade", "Graded", "bad_outputs", "is_form", "is_vacuous", "leak_of"]

_GARBAGE = "lorem 0 ] { <x> qwzx"
_LEAK_WORDS, _LEAK_CHARS = 8, 120
_LONG = 2_000
"""Lines of the garbage that no length lets pass: more than any answer has."""


class Example(NamedTuple):
    """A judged run: its task, what it gave, and what was said of it."""

    trace_id: str
    x_ref: str
    prompt: str
    output: Output
    passed: bool
    violated: tuple[str, ...] = ()
    reason_codes: tuple[str, ...] = ()
    cluster_id: str | None = None
    features: Mapping[str, Any] = {}
    """What predicates may ask of it."""
    packs: tuple[RegressionTestSpec, ...] = ()
    """The run's own constraints as tests, tagged with their keys."""


class Graded(Protocol):
    """What came of a test on an output: `verify.regression.specs.CaseResult`, by its shape."""

    @property
    def ok(self) -> bool: ...
    @property
    def status(self) -> str: ...
    @property
    def message(self) -> str: ...


Grade = Callable[[RegressionTestSpec, Output], Graded]


def leak_of(rule: RuleRecord) -> str:
    """The first words of a rule, by which it is known in an answer that should not recite it."""
    return " ".join(rule.body.split()[:_LEAK_WORDS])[:_LEAK_CHARS].strip()


def bad_outputs(rule: RuleRecord, examples: Sequence[Example]) -> tuple[Output, ...]:
    """Nothing, noise, the rule itself said aloud, what the failing runs gave; then noise without end that calls every
    tool seen. The long one stands last: most tests fail before it."""
    tools = sorted({call.name for one in examples for call in one.output.tool_calls or ()})
    short = ("", _GARBAGE, f"{rule.title or ''}\n{rule.body}")
    long = {"text": f"{_GARBAGE}\n" * _LONG, "tool_calls": [{"name": name} for name in tools] * 3}
    return (
        *(Output.from_wire({"text": text, "tool_calls": []}) for text in short),
        *(one.output for one in examples if not one.passed),
        Output.from_wire(long),
    )


def is_vacuous(spec: RegressionTestSpec, grade: Grade, bad: Iterable[Output]) -> bool:
    """Does it pass on every bad output alike? Then it passes whatever is given, and says nothing."""
    return all(grade(spec, output).ok for output in bad)


def is_form(spec: RegressionTestSpec, grade: Grade, examples: Iterable[Example]) -> bool:
    """Does every answer that failed keep it too? Then it asks for a form, and tells nothing of whether a rule helps."""
    failed = [one for one in examples if not one.passed]
    return bool(failed) and all(grade(spec, one.output).ok for one in failed)
