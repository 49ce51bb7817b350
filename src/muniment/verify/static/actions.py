"""Constraints on how an output was made: tools, budgets, policy, memory. What nobody watched does not hold."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from muniment.core.canonical import canonical_text
from muniment.core.record import Absent, Count, Items, JsonObject, NonEmpty, Number
from muniment.core.text.tokens import estimate_tokens
from muniment.errors import InvalidInput
from muniment.verify.outputs import PolicyEvent, ToolCall
from muniment.verify.static.base import Bounds, Constraint, View, Violation, error_line
from muniment.verify.static.json_schema import Schema, read_schema
from muniment.verify.taxonomy import detail_of

__all__ = [
    "Budget",
    "Files",
    "HintLength",
    "Hints",
    "Network",
    "ToolArguments",
    "ToolBudget",
    "ToolCalled",
    "ToolNotCalled",
    "ToolOrder",
    "ToolsAllowed",
    "ToolsOk",
]

_NOT_WATCHED = Violation("tool calls were not recorded", is_decided=False)
_NO_EVENTS = Violation("what the run did outside was not recorded", is_decided=False)
_NO_HINTS = Violation("recalled hints were not recorded", is_decided=False)


# -- tools --------------------------------------------------------------------------------------------


class _OfCalls(Constraint):
    """A constraint on the calls of tools, where these were recorded."""

    def default_key(self) -> str:
        tool: str | None = getattr(self, "tool", None)
        return self.KEY if tool is None else f"{self.KEY}:{detail_of(tool)}"

    def check(self, view: View) -> Violation | None:
        calls = view.output.tool_calls
        return _NOT_WATCHED if calls is None else self.check_calls(calls)

    @abstractmethod
    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None: ...


class ToolCalled(_OfCalls, Bounds):
    """A tool is called: at least once, unless bounds say otherwise."""

    NAME: ClassVar[str] = "tool_called"
    KEY: ClassVar[str] = "TOOL:CALL_REQUIRED"
    REASON: ClassVar[str] = "tool_misroute"
    SHORT: ClassVar[str | None] = "tool"
    NEEDS_BOUND: ClassVar[bool] = False

    tool: NonEmpty
    ok: Absent[bool] = None

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        count = sum(1 for call in calls if call.name == self.tool and self.ok in (None, call.ok))
        if self.limits == (0, None):
            return None if count else Violation(f"{self.tool!r} was not called")
        return self.outside(count, f"calls of {self.tool!r}")


class ToolNotCalled(_OfCalls):
    """A tool is not called."""

    NAME: ClassVar[str] = "tool_not_called"
    KEY: ClassVar[str] = "TOOL:CALL_FORBIDDEN"
    REASON: ClassVar[str] = "tool_misroute"
    SHORT: ClassVar[str | None] = "tool"

    tool: NonEmpty

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        count = sum(1 for call in calls if call.name == self.tool)
        return Violation(f"{self.tool!r} was called {count} times") if count else None


class ToolsAllowed(_OfCalls):
    """Only these tools are called."""

    NAME: ClassVar[str] = "tools_allowed"
    KEY: ClassVar[str] = "TOOL:ALLOWED"
    REASON: ClassVar[str] = "tool_misroute"
    SHORT: ClassVar[str | None] = "tools"

    tools: Items[NonEmpty]

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        others = [call.name for call in calls if call.name not in self.tools]
        return Violation(f"{others[0]!r} is not among the allowed tools") if others else None


class ToolOrder(_OfCalls):
    """These tools are called in this order, others between them or, with `strict`, none."""

    NAME: ClassVar[str] = "tool_order"
    KEY: ClassVar[str] = "TOOL:ORDER"
    REASON: ClassVar[str] = "tool_misroute"
    SHORT: ClassVar[str | None] = "tools"

    tools: Items[NonEmpty] = Field(min_length=1)
    strict: bool = False

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        names = [call.name for call in calls]
        if self.strict:
            return None if names == list(self.tools) else Violation(f"the calls were {', '.join(names) or 'none'}")
        rest = iter(names)
        missing = [tool for tool in self.tools if tool not in rest]
        return Violation(f"{missing[0]!r} was not called in its turn") if missing else None


class ToolArguments(_OfCalls):
    """Every call of a tool has these arguments (`equals`), and fits a JSON Schema; `any` asks it of one call only."""

    NAME: ClassVar[str] = "tool_arguments"
    KEY: ClassVar[str] = "TOOL:ARGUMENTS"
    REASON: ClassVar[str] = "tool_output_invalid"

    tool: NonEmpty
    equals: Absent[JsonObject] = None
    schema_: Absent[JsonObject] = Field(default=None, alias="schema")
    any: bool = False

    @model_validator(mode="after")
    def _check_asked(self) -> Self:
        if self.equals is None and self.schema_ is None:
            raise ValueError("say what the arguments equal, or their schema")
        try:
            read_schema(self.schema_ or {})
        except InvalidInput as error:
            raise ValueError(error_line(error)) from None
        return self

    @cached_property
    def _schema(self) -> Schema:
        return read_schema(self.schema_ or {})

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        problems = [self._problem(call) for call in calls if call.name == self.tool]
        if self.any:
            return None if None in problems else Violation(f"no call of {self.tool!r} has the wanted arguments")
        wrong = next((problem for problem in problems if problem is not None), None)
        return None if wrong is None else Violation(f"{self.tool!r}: {wrong}")

    def _problem(self, call: ToolCall) -> str | None:
        for name, value in (self.equals or {}).items():
            if name not in call.args or canonical_text(call.args[name]) != canonical_text(value):
                return f"the argument {name!r} is not {canonical_text(value)[:60]}"
        issues = self._schema.issues(call.args)
        return f"{issues[0].path}: {issues[0].message}" if issues else None


class ToolsOk(_OfCalls):
    """No call failed; `tool` asks it of one tool only."""

    NAME: ClassVar[str] = "tools_ok"
    KEY: ClassVar[str] = "TOOL:RESULT_OK"
    REASON: ClassVar[str] = "tool_failure"
    SHORT: ClassVar[str | None] = "tool"

    tool: Absent[NonEmpty] = None

    def check_calls(self, calls: Sequence[ToolCall]) -> Violation | None:
        asked = [call for call in calls if self.tool in (None, call.name)]
        failed = [call.name for call in asked if call.ok is False]
        if failed:
            return Violation(f"{failed[0]!r} failed")
        untold = [call.name for call in asked if call.ok is None]
        return Violation(f"nobody said whether {untold[0]!r} worked", is_decided=False) if untold else None


class ToolBudget(Bounds):
    """How many tools are called, all together."""

    NAME: ClassVar[str] = "tool_calls"
    KEY: ClassVar[str] = "TOOL:BUDGET"
    REASON: ClassVar[str] = "search_budget_exhausted"

    def check(self, view: View) -> Violation | None:
        calls, usage = view.output.tool_calls, view.output.usage
        counted = None if usage is None else usage.tool_calls
        if calls is None and counted is None:
            return _NOT_WATCHED
        return self.outside(max(len(calls or ()), counted or 0), "tool calls")


# -- budgets and policy -------------------------------------------------------------------------------


class Budget(Constraint):
    """At most so much of one thing that the run used."""

    NAME: ClassVar[str] = "budget"
    KEY: ClassVar[str] = "POLICY:BUDGET"
    REASON: ClassVar[str] = "search_budget_exhausted"

    of: Literal["tokens_in", "tokens_out", "tokens", "latency_ms", "turns", "attempts", "cost_usd"]
    max: Number

    def default_key(self) -> str:
        return f"{self.KEY}:{self.of}"

    def check(self, view: View) -> Violation | None:
        usage = view.output.usage
        names = ("tokens_in", "tokens_out") if self.of == "tokens" else (self.of,)
        figures: list[Any] = [getattr(usage, name, None) for name in names]
        if None in figures:
            return Violation(f"{self.of} was not measured", is_decided=False)
        used = sum(figures)
        return Violation(f"{used} {self.of}, at most {self.max} allowed") if used > self.max else None


class Network(Constraint):
    """No network at all, or only the hosts that are listed (and their subdomains)."""

    NAME: ClassVar[str] = "network"
    KEY: ClassVar[str] = "POLICY:NO_NETWORK"
    SHORT: ClassVar[str | None] = "allow"

    allow: Items[NonEmpty] = ()

    def default_key(self) -> str:
        return "POLICY:NETWORK_ALLOWLIST" if self.allow else self.KEY

    def check(self, view: View) -> Violation | None:
        events = view.output.policy_events
        if events is None:
            return _NO_EVENTS
        for event in events:
            if event.kind == "network" and not self._allows(event):
                return Violation(f"reached out to {event.target[:80]!r}")
        return None

    def _allows(self, event: PolicyEvent) -> bool:
        target = event.target if "//" in event.target else f"//{event.target}"
        try:
            host = (urlsplit(target).hostname or "").rstrip(".")
        except ValueError:
            return False
        return any(host == name or host.endswith(f".{name}") for name in map(str.lower, self.allow))


class Files(Constraint):
    """Files are read, or written, under these paths only; none are, where no path is listed."""

    NAME: ClassVar[str] = "files"
    KEY: ClassVar[str] = "POLICY:FILES_WRITTEN"

    access: Literal["read", "write"]
    under: Items[NonEmpty] = ()

    def default_key(self) -> str:
        return "POLICY:FILES_READ" if self.access == "read" else self.KEY

    def check(self, view: View) -> Violation | None:
        events = view.output.policy_events
        if events is None:
            return _NO_EVENTS
        for event in events:
            if event.kind == f"file_{self.access}" and not any(_is_under(event.target, root) for root in self.under):
                return Violation(f"{self.access} of {event.target[:80]!r}")
        return None


def _is_under(path: str, root: str) -> bool:
    """Whether a path, `..` resolved by its letters alone, is a folder or lies in it."""
    here, above = PurePosixPath(normpath(path)), PurePosixPath(normpath(root))
    if here.is_absolute() or above.is_absolute():
        return PurePosixPath("/", *here.parts[1:]).is_relative_to(PurePosixPath("/", *above.parts[1:])) and (
            here.is_absolute() == above.is_absolute()
        )
    ups, root_ups = here.parts.count(".."), above.parts.count("..")
    return ups <= root_ups if root_ups == len(above.parts) else here.is_relative_to(above)


# -- memory -------------------------------------------------------------------------------------------


class HintLength(Constraint):  # RC-09
    """No recalled hint is longer than so many tokens, by estimate."""

    NAME: ClassVar[str] = "hint_length"
    KEY: ClassVar[str] = "MEMORY:HINT_LENGTH"
    REASON: ClassVar[str] = "memory_overinject"
    SHORT: ClassVar[str | None] = "max"

    max: Count = 120

    def check(self, view: View) -> Violation | None:
        hints = view.output.memory_hints
        if hints is None:
            return _NO_HINTS
        for hint in hints:
            if (tokens := estimate_tokens(hint.summary or "")) > self.max:
                return Violation(f"the hint {hint.memory_id!r} has {tokens} tokens, at most {self.max} allowed")
        return None


class Hints(Constraint):
    """All recalled hints together have no more than so many tokens, by estimate, and are no more than `count_max`."""

    NAME: ClassVar[str] = "hints"
    KEY: ClassVar[str] = "MEMORY:HINT_TOTAL"
    REASON: ClassVar[str] = "memory_overinject"

    tokens_max: Count = 256
    count_max: Absent[Count] = None

    def check(self, view: View) -> Violation | None:
        hints = view.output.memory_hints
        if hints is None:
            return _NO_HINTS
        if self.count_max is not None and len(hints) > self.count_max:
            return Violation(f"{len(hints)} hints, at most {self.count_max} allowed")
        tokens = sum(estimate_tokens(hint.summary or "") for hint in hints)
        if tokens <= self.tokens_max:
            return None
        return Violation(f"{tokens} tokens of hints, at most {self.tokens_max} allowed")
