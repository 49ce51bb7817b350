"""Whose a piece of a trace is: the user, the conversation and the agent that its span names, or a span above it.

Pure. Who may write for whom is not decided here: a user that a caller is bound to comes before all that a span says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from muniment.core.canonical import short_id
from muniment.core.owners import is_reserved
from muniment.core.scope import ID_MAX_BYTES, ID_MAX_CHARS
from muniment.traces.dialects.spans import kind_of
from muniment.traces.otlp.spans import Span

__all__ = ["NOBODY", "SESSION_ATTRIBUTES", "USER_ATTRIBUTES", "Lineage", "Named", "id_text"]

USER_ATTRIBUTES = (
    "user.id",
    "enduser.id",
    "langfuse.user.id",
    "traceloop.association.properties.user_id",
    "ai.telemetry.metadata.userId",
)
"""What emitters call the user, unless other names are given."""
SESSION_ATTRIBUTES = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.conversation_id",
    "traceloop.association.properties.thread_id",
    "ai.telemetry.metadata.sessionId",
    "gcp.vertex.agent.session_id",
)
NOBODY = "\x00"
"""Stands for a user whose name no user can have."""
_AGENT_ATTRIBUTES = ("gen_ai.agent.name", "agent_name", "agent.name", "gen_ai.agent.id", "ai.telemetry.functionId")
_SERVICE = "service.name"
_NO_SERVICE = "unknown_service"


class Named(NamedTuple):
    """What is known of where a piece belongs; empty where nobody says."""

    user: str
    session: str
    agent: str
    service: str
    """What the process is called that the agent runs in."""
    caller: str
    """The agent that called this one, where a trace shows that it was called by one."""


class Lineage:
    """The spans of an export by their parents, and what each inherits. A circle of parents is no lineage."""

    def __init__(self, spans: Iterable[Span], user_attributes: Sequence[str]) -> None:
        self._spans = {span.span_id: span for span in spans}
        self._names = {"user": tuple(user_attributes), "session": SESSION_ATTRIBUTES, "agent": _AGENT_ATTRIBUTES}
        self._inherited: dict[str, dict[str, str]] = {"user": {}, "session": {}, "agent": {}}
        self._in_trace: dict[str, dict[str, set[str]]] = {"user": {}, "session": {}}
        for span in self._spans.values():
            for kind, values in self._in_trace.items():
                if own := self._own(kind, span.attributes):
                    values.setdefault(span.trace_id, set()).add(own)
        self._callers: dict[tuple[str, str], str] = {}

    def named(self, trace_id: str, key: str, attributes: Mapping[str, Any], resource: Mapping[str, Any]) -> Named:
        """By the piece itself, then by the spans above it, then by the only one of its trace, then by its resource."""
        found = {}
        for kind in ("user", "session"):
            found[kind] = (
                self._own(kind, attributes)
                or self._above(kind, key)
                or self._only(kind, trace_id)
                or self._own(kind, resource)
            )
        agent = self._own("agent", attributes) or self._above("agent", key)
        service = id_text(resource.get(_SERVICE))
        service = "" if service.startswith(_NO_SERVICE) else service
        return Named(found["user"], found["session"], agent, service, self._caller(key, agent) if agent else "")

    def _own(self, kind: str, held: Mapping[str, Any]) -> str:
        for name in self._names[kind]:
            value = held.get(name)
            if text := id_text(value):
                return text
            if kind == "user" and isinstance(value, str) and value.strip():
                return NOBODY  # a name that no user can have is not the same as no name
        return ""

    def _only(self, kind: str, trace_id: str) -> str:
        values = self._in_trace[kind].get(trace_id, set())
        return next(iter(values)) if len(values) == 1 else ""

    def _above(self, kind: str, key: str) -> str:
        """What the nearest span above says; kept for every span on the way, so that no way is walked twice."""
        known, way, found = self._inherited[kind], list[str](), ""
        seen: set[str] = set()
        while key in self._spans and key not in seen:
            if key in known:
                found = known[key]
                break
            seen.add(key)
            way.append(key)
            found = self._own(kind, self._spans[key].attributes)
            if found:
                break
            key = self._spans[key].parent_id
        known |= dict.fromkeys(way, found)
        return found

    def _caller(self, key: str, agent: str) -> str:
        """The name of another agent in whose run this one's stands."""
        known, way, found = self._callers, list[tuple[str, str]](), ""
        seen: set[str] = set()
        while key in self._spans and key not in seen:
            if (key, agent) in known:
                found = known[key, agent]
                break
            seen.add(key)
            way.append((key, agent))
            span = self._spans[key]
            own = self._own("agent", span.attributes)
            if own and own != agent and kind_of(span) == "agent":
                found = own
                break
            key = span.parent_id
        known |= dict.fromkeys(way, found)
        return found


def id_text(value: Any) -> str:
    """A value as an id: itself where it can be one, a hash of it where it is too long; empty where it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        return ""
    text = value.strip()
    if not text.isprintable() or is_reserved(text):
        return ""
    if len(text) > ID_MAX_CHARS or len(text.encode("utf-8", "surrogatepass")) > ID_MAX_BYTES:
        return short_id("id", text)
    return text
