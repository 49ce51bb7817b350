"""The definition of a tool: its name, arguments, answer, audience and description."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from muniment.core.record import Record
from muniment.surfaces.mcp.schemas import lean_schema, schema_of

if TYPE_CHECKING:
    from muniment.surfaces.mcp.callers import ToolCaller

__all__ = ["Answered", "Tool"]


class Answered(NamedTuple):
    """An answer: a record, and its short text."""

    record: Record
    text: str


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    title: str
    description: str
    takes: type[Record]
    answers: type[Record]
    call: Callable[[ToolCaller, Any], Answered]
    shown: tuple[str, ...] = ()
    """The arguments described in the lean profile; the others are accepted there too. A tool without any is only in the
    full profile.
    """
    access: Literal["read", "write"] = "write"
    destroys: bool = False
    is_idempotent: bool = False

    def is_offered(self, tool_caller: ToolCaller) -> bool:
        if tool_caller.settings.profile == "lean" and not self.shown:
            return False
        if self.destroys and tool_caller.settings.forget == "off":
            return False
        return self.access == "read" or tool_caller.writes

    def input_schema(self, profile: str) -> dict[str, Any]:
        return lean_schema(self.takes, self.shown) if profile == "lean" else schema_of(self.takes)

    def output_schema(self, profile: str) -> dict[str, Any] | None:
        """The schema, in the full profile only, where programs read answers by it: a model reads the answer itself, and
        would pay for the schema with every request.
        """
        return None if profile == "lean" else schema_of(self.answers)
