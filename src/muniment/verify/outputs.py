"""What a verifier looks at and what it finds: one output of an agent, and the findings of static checks."""

from typing import Literal, NamedTuple

from pydantic import Field

from muniment.contracts.learning import MemoryHint
from muniment.core.record import Absent, Count, Items, JsonObject, NonEmpty, Number, Record

__all__ = ["Finding", "Output", "PolicyEvent", "Severity", "ToolCall", "Usage"]

Severity = Literal["fatal", "minor"]
"""A fatal violation fails the verdict, a minor one makes it PARTIAL."""


class ToolCall(Record):
    """One call of a tool, in the order of the run. `ok` is absent where nobody said whether it worked."""

    name: NonEmpty
    args: JsonObject = Field(default_factory=dict)
    ok: Absent[bool] = None


class Usage(Record):
    """What the run used. A figure nobody measured is absent, and a budget over it cannot be said to hold."""

    tokens_in: Absent[Count] = None
    tokens_out: Absent[Count] = None
    tool_calls: Absent[Count] = None
    latency_ms: Absent[Number] = None
    turns: Absent[Count] = None
    attempts: Absent[Count] = None
    cost_usd: Absent[Number] = None


class PolicyEvent(Record):
    """Something the run did, or tried to do, in the outside world."""

    kind: Literal["network", "file_read", "file_write"]
    target: str
    allowed: Absent[bool] = None


class Output(Record):
    """An answer and what is known about how it was made.

    `marks` maps the number of each citation mark that exists to its evidence id, as a build hands them out.
    `tool_calls`, `policy_events` and `memory_hints` are None where nobody watched: then no constraint about them holds.
    """

    text: str
    id: Absent[str] = None
    prompt: Absent[str] = None
    tool_calls: Absent[Items[ToolCall]] = None
    usage: Absent[Usage] = None
    policy_events: Absent[Items[PolicyEvent]] = None
    marks: Absent[dict[str, str]] = None
    memory_hints: Absent[Items[MemoryHint]] = None


class Finding(NamedTuple):
    """One constraint on one output. `where` is a half-open span of characters of the text, where there is one place."""

    key: str
    ok: bool
    message: str = ""
    where: tuple[int, int] | None = None
    severity: Severity = "fatal"
    reason: str = "constraint_violation"
    constraint: str = ""
