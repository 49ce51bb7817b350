"""Turn the pieces of a trace into turns of a session, find their user, and keep the new ones. Pure except for
`load_talk`, which reads the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from muniment.core.canonical import digest_of, short_id
from muniment.core.instants import format_instant
from muniment.core.listing import list_query
from muniment.core.matching import common_stretches, erased_places
from muniment.core.scope import ID_MAX_BYTES, ID_MAX_CHARS, is_reserved
from muniment.packets.page import PAGE_SIGN
from muniment.store.reading import content_of, list_entries
from muniment.store.secrets import redact_value
from muniment.traces.dialects import (
    EVENT_NAMES,
    Called,
    Conversation,
    Kind,
    Returned,
    Said,
    Told,
    ToolRun,
    about_of,
    kind_of,
    read_conversation,
    read_events,
    read_tool,
)
from muniment.traces.otlp import Export, Log, Span

if TYPE_CHECKING:
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = [
    "NOBODY",
    "OWN_SCOPE",
    "SESSION_ATTRIBUTES",
    "USER_ATTRIBUTES",
    "Evaluation",
    "KnownSession",
    "KnownTurn",
    "Lineage",
    "Marks",
    "Named",
    "Pending",
    "Place",
    "Sent",
    "TracedTalk",
    "Turn",
    "Unit",
    "Units",
    "about_turn",
    "id_text",
    "instant_of",
    "load_talk",
    "prompts_of",
    "turns_of",
    "units_of",
]


# -- turns -----------------------------------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_NS = 253_402_300_799_000_000_000
_BEHIND_PACKET = "\n---\n"
"""The separator that integrations put between a packet and the question after it."""


class Turn(NamedTuple):
    """An event, and whether it is the piece's answer or part of its input."""

    event: dict[str, Any]
    is_answer: bool


def instant_of(time_ns: int) -> str:
    """A span's time in the ledger's format; empty if it has none."""
    if not 0 < time_ns <= _LATEST_NS:
        return ""
    return format_instant(_EPOCH + timedelta(microseconds=time_ns // 1_000))


def prompts_of(unit: Unit) -> list[str]:
    """The caller's own instructions. Our packets are left out, since builds already store them."""
    texts = dict.fromkeys(text for text in unit.conversation.system if text.strip())
    return [text for text in texts if PAGE_SIGN not in text]


def turns_of(unit: Unit, calls: dict[str, Called]) -> list[Turn]:
    """The events of a piece, in order; `calls` holds the session's calls so far and is extended with new ones."""
    if unit.tool is not None:
        tool = unit.tool
        result = Returned(tool.id, tool.name, tool.text or "", tool.ok)
        made = calls.get(tool.id) if tool.id else None
        args = tool.args or (made.args if made is not None else None)
        return [Turn(_result(result, Called(tool.id, tool.name, args)), is_answer=True)]
    found = [Turn(event, False) for said in unit.conversation.inputs for event in _events(said, calls)]
    return found + [Turn(event, True) for said in unit.conversation.outputs for event in _events(said, calls)]


def _events(said: Said, calls: dict[str, Called]) -> Iterator[dict[str, Any]]:
    for call in said.calls:
        calls[call.id] = call
    text = _own_words(said.text)
    metadata: dict[str, Any] = {"parts": said.parts} if said.parts else {}
    if said.calls:
        metadata["tool_calls"] = [_told(call) for call in said.calls]
    if text.strip() or said.parts:
        event: dict[str, Any] = {"role": said.role if said.role != "tool" else "assistant", "content": text}
        if said.speaker:
            event["speaker"] = said.speaker
        yield event | ({"metadata": metadata} if metadata else {})
    elif said.calls:
        yield {"role": "system", "content": "", "metadata": metadata | {"event": "tool_calls"}}
    for result in said.results:
        yield _result(result, calls.get(result.id))


def _told(call: Called) -> dict[str, Any]:
    return {"id": call.id, "name": call.name} | ({"args": call.args} if call.args else {})


def _result(result: Returned, call: Called | None) -> dict[str, Any]:
    name = (call.name if call is not None else "") or result.name or "tool"
    tool: dict[str, Any] = {"name": name, "ok": result.ok}
    if result.id:
        tool["call_id"] = result.id
    if call is not None and call.args:
        tool["args"] = call.args
    return {"role": "tool", "content": result.text, "tool": tool}


def _own_words(text: str) -> str:
    """A turn's own words, without one of our packets before or after them: builds already store those."""
    at = text.find(PAGE_SIGN)
    if at < 0:
        return text
    _, between, behind = text[at:].rpartition(_BEHIND_PACKET)
    return "\n".join(part for part in (text[:at].strip(), behind.strip() if between else "") if part)


def about_turn(unit: Unit, *, is_answer: bool) -> Mapping[str, Any]:
    """Metadata of a turn: its trace, and the model that produced it with its token counts."""
    where = {"trace_id": unit.trace_id, "span_id": unit.key}
    return {key: value for key, value in where.items() if value} | (dict(unit.about) if is_answer else {})


# -- pieces of a trace -----------------------------------------------------------------------------------

# A model call, a tool result or an agent's run. Log records of one span form one piece, with the span's own content if
# it is in the same export.

OWN_SCOPE = "muniment"
"""Instrumentation scope of our own spans: memory does not record itself."""
EVALUATION = "gen_ai.evaluation.result"
_ORDER: Mapping[Kind, int] = {"model": 0, "tool": 0, "agent": 1, "other": 2}


Sent = Literal["spans", "logs"]


class Unit(NamedTuple):
    """One piece. `key` is its span; `attributes` and `resource` identify its user."""

    trace_id: str
    key: str
    kind: Kind
    start_ns: int
    end_ns: int
    conversation: Conversation
    tool: ToolRun | None
    about: Mapping[str, Any]
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    records: int
    """Number of spans or logs it was made of."""
    signal: Sent = "spans"


class Evaluation(NamedTuple):
    """A judge's evaluation of an answer."""

    trace_id: str
    key: str
    time_ns: int
    metadata: Mapping[str, Any]
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    signal: Sent = "spans"
    records: int = 1


class Units(NamedTuple):
    """The pieces of an export in order of time, and the spans and logs that yield none."""

    units: list[Unit]
    evaluations: list[Evaluation]
    left_out: dict[str, int]
    """Skipped spans and logs, counted by reason."""


def units_of(export: Export) -> Units:
    """Read every span and every log."""
    found = Units([], [], {})
    spans = {span.span_id: span for span in export.spans}
    for span in export.spans:
        _add_span(span, found)
    _add_logs(export.logs, spans, found)
    found.units.sort(key=lambda unit: (_ORDER[unit.kind], unit.start_ns, unit.end_ns))
    return found


def _leave_out(found: Units, why: str, count: int = 1) -> None:
    found.left_out[why] = found.left_out.get(why, 0) + count


def _add_span(span: Span, found: Units) -> None:
    for event in span.events:
        if event.name == EVALUATION:
            found.evaluations.append(_evaluation(event.attributes, event.time_ns, span, span.attributes))
    kind = kind_of(span)
    if _is_own(span.scope):
        _leave_out(found, "our_own")
        return
    if kind == "other":
        _leave_out(found, "no_conversation")
        return
    tool = read_tool(span) if kind == "tool" else None
    conversation = read_conversation(span) if kind != "tool" else Conversation()
    if not conversation.inputs and not conversation.outputs and (tool is None or tool.text is None):
        _leave_out(found, "without_content")
        return
    about, attributes = about_of(span.attributes), span.attributes
    times = (span.start_ns, max(span.start_ns, span.end_ns))
    unit = Unit(span.trace_id, span.span_id, kind, *times, conversation, tool, about, attributes, span.resource, 1)
    found.units.append(unit)


def _is_own(scope: str) -> bool:
    return scope == OWN_SCOPE or scope.startswith(f"{OWN_SCOPE}.")


def _add_logs(logs: Iterable[Log], spans: Mapping[str, Span], found: Units) -> None:
    grouped: dict[tuple[str, str], list[Log]] = {}
    for number, log in enumerate(logs):
        if log.name == EVALUATION:
            found.evaluations.append(_evaluation(_held(log), log.time_ns, log, log.attributes))
        elif log.name not in EVENT_NAMES or _is_own(log.scope):
            _leave_out(found, "no_conversation" if log.name not in EVENT_NAMES else "our_own")
        else:
            grouped.setdefault((log.trace_id, log.span_id or f"log{number}"), []).append(log)
    for (trace_id, key), events in grouped.items():
        conversation = read_events(Told(log.name, _held(log)) for log in events)
        span, first = spans.get(key), events[0]
        if not conversation or all(each.is_empty for each in (*conversation.inputs, *conversation.outputs)):
            _leave_out(found, "without_content", len(events))
            continue
        times = (min(log.time_ns for log in events), max(log.time_ns for log in events))
        if span is not None:
            times = (span.start_ns, max(span.start_ns, span.end_ns))
        attributes = {**(span.attributes if span is not None else {}), **first.attributes}
        about, resource, count = about_of(attributes), first.resource, len(events)
        found.units.append(
            Unit(trace_id, key, "model", *times, conversation, None, about, attributes, resource, count, "logs")
        )


def _held(log: Log) -> Mapping[str, Any]:
    """Content of an event: its attributes, and its body if that is an object."""
    return {**log.attributes, **log.body} if isinstance(log.body, Mapping) else {**log.attributes, "content": log.body}


def _evaluation(held: Mapping[str, Any], time_ns: int, at: Span | Log, attributes: Mapping[str, Any]) -> Evaluation:
    names = ("name", "score.value", "score.label", "explanation")
    told = {name.replace(".", "_"): held.get(f"gen_ai.evaluation.{name}") for name in names}
    told["response_id"] = held.get("gen_ai.response.id")
    plain = {name: value for name, value in told.items() if isinstance(value, str | int | float)}
    signal: Sent = "spans" if isinstance(at, Span) else "logs"
    return Evaluation(at.trace_id, at.span_id, time_ns, plain, attributes, at.resource, signal)


# -- whose a piece is ------------------------------------------------------------------------------------

USER_ATTRIBUTES = (
    "user.id",
    "enduser.id",
    "langfuse.user.id",
    "traceloop.association.properties.user_id",
    "ai.telemetry.metadata.userId",
)
"""Attributes in which emitters name the user, unless others are configured."""
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
"""Placeholder for a name that no user can have."""
_AGENT_ATTRIBUTES = ("gen_ai.agent.name", "agent_name", "agent.name", "gen_ai.agent.id", "ai.telemetry.functionId")
_SERVICE = "service.name"
_NO_SERVICE = "unknown_service"


class Named(NamedTuple):
    """The known owner and session of a piece; empty fields are unknown."""

    user: str
    session: str
    agent: str
    service: str
    """Service name of the agent's process."""
    caller: str
    """The agent that called this one, if the trace shows one."""


class Lineage:
    """The parent spans of an export, and the names each span inherits. Cycles of parents are ignored."""

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
        """Names from the piece itself, then the spans above it, then its trace if that has only one, then its
        resource.
        """
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
                return NOBODY  # an invalid user name is not the same as a missing one
        return ""

    def _only(self, kind: str, trace_id: str) -> str:
        values = self._in_trace[kind].get(trace_id, set())
        return next(iter(values)) if len(values) == 1 else ""

    def _above(self, kind: str, key: str) -> str:
        """The nearest value above a span; cached for every span on the way, so that no path is walked twice."""
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
        """The other agent whose run contains this one."""
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
    """A value as an id: unchanged if valid, hashed if too long, empty if it cannot be one."""
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


# -- which messages are new ------------------------------------------------------------------------------

# Every model call repeats the conversation before it. Messages are compared by role and content, without secrets (which
# the ledger redacts) and surrounding white space (which some emitters add); results by the id of their call, since the
# tool's own span and the next model call write them differently.

_WINDOW = 2_000
"""The most turns a piece is compared with, if its messages are often repeated."""


class KnownTurn(NamedTuple):
    """A turn of the session in the form used for comparison."""

    mark: str
    """Empty if the turn was forgotten."""
    role: str
    ts: str
    agent: str


class Marks:
    """Cached comparison marks of messages, as each piece repeats the same ones."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, tuple[str, ...]], str] = {}

    def of(self, role: str, content: str, call_id: str, call_ids: Sequence[str], *, is_recorded: bool = False) -> str:
        """Mark a message; recorded text has already lost its secrets."""
        if role == "tool" and call_id:
            return digest_of(["result", call_id])
        text = content.strip()
        key = (role, text, tuple(call_ids))
        if key not in self._known:
            said = text if is_recorded else redact_value(text, Counter())
            self._known[key] = digest_of([role, said, *call_ids])
        return self._known[key]

    def of_event(self, event: Mapping[str, Any]) -> str:
        """Mark an event in the form `observe_many` takes."""
        calls = (event.get("metadata") or {}).get("tool_calls") or ()
        tool = event.get("tool") or {}
        return self.of(event["role"], event["content"], tool.get("call_id") or "", [call["id"] for call in calls])


class KnownSession:
    """The turns of a session: stored ones, and those about to be written."""

    def __init__(self, turns: Iterable[KnownTurn] = ()) -> None:
        self.turns: list[KnownTurn] = []
        self._places: dict[str, list[int]] = {}
        self._has_forgotten = False
        self.is_cut = False
        """True if the session has earlier turns that were not read."""
        self.add(turns)

    def add(self, turns: Iterable[KnownTurn]) -> None:
        for turn in turns:
            if turn.mark:
                self._places.setdefault(turn.mark, [len(self.turns)])[1:] = [len(self.turns)]  # first and last
            else:
                self._has_forgotten = True
            self.turns.append(turn)

    def __contains__(self, mark: str) -> bool:
        return mark in self._places

    def new_places(
        self, marks: Sequence[str], roles: Sequence[str], ts: str, agent: str, *, is_answered: bool
    ) -> list[int]:
        """Indices of a piece's messages that are new. `roles` names the speaker of each; the piece began at `ts`. A
        piece without an answer of its own may be partial, with the rest still to come.
        """
        start, end = self._window(marks)
        found = {
            place + step: start + at + step
            for at, place, size in common_stretches(self._held(start, end), marks)
            for step in range(size)
        }
        is_one_turn = roles[:1] == ["user"] and "user" not in roles[1:]
        if is_answered and is_one_turn and 0 in found and self._went_on(found, ts, agent):
            return list(range(len(marks)))  # that turn was over: the same words were repeated
        known = found.keys() | self._erased(found, roles, start, end)
        if self.is_cut and found:  # messages the piece repeats from before the first turn that was read
            known |= set(range(min(found)))
        return [place for place in range(len(marks)) if place not in known]

    def _window(self, marks: Sequence[str]) -> tuple[int, int]:
        """The range of turns in which to look for a piece."""
        most = _WINDOW + len(marks)
        if self._has_forgotten:
            return max(0, len(self.turns) - most), len(self.turns)
        places = [self._places[mark] for mark in marks if mark in self._places]
        if not places:
            return 0, 0
        end = max(each[-1] for each in places) + 1
        return max(min(each[0] for each in places), end - most), end

    def _held(self, start: int, end: int) -> list[str]:
        return [self.turns[number].mark or f"forgotten {number}" for number in range(start, end)]

    def _erased(self, found: Mapping[int, int], roles: Sequence[str], start: int, end: int) -> set[int]:
        """Messages in the place of forgotten turns."""
        if not self._has_forgotten:
            return set()
        gone = {number: self.turns[number].role for number in range(start, end) if not self.turns[number].mark}
        return erased_places(found, roles, gone, (start, end))

    def _went_on(self, found: Mapping[int, int], ts: str, agent: str) -> bool:
        """True if, before the piece began, the conversation had moved on with turns that the piece lacks."""
        matched = set(found.values())
        for number in range(found[0] + 1, min(len(self.turns), found[0] + _WINDOW)):
            turn = self.turns[number]
            if turn.agent == agent and turn.ts < ts and number not in matched:
                return True
        return False


# -- the session as it stands ----------------------------------------------------------------------------

_KNOWN_MAX = 4_000
"""How many of a session's latest entries a trace is compared with."""


class Place(NamedTuple):
    """The run that an event goes to."""

    agent: str
    run_id: str


class Pending(NamedTuple):
    """An event to be written."""

    place: Place
    event: dict[str, Any]
    signal: Sent


@dataclass
class TracedTalk:
    """The known state of a session, and the events to be written to it."""

    user: str
    session: str
    known: KnownSession = field(default_factory=KnownSession)
    calls: dict[str, Called] = field(default_factory=dict)
    prompts: set[str] = field(default_factory=set)
    pending: list[Pending] = field(default_factory=list)
    seq: int = 0
    """Sequence number of the session's last known entry."""

    def write(self, place: Place, event: dict[str, Any], ts: str, signal: Sent) -> None:
        self.pending.append(Pending(place, event | ({"ts": ts} if ts else {}), signal))


def load_talk(ctx: Context, tenant_id: str, user: str, sessions: Iterable[str], marks: Marks) -> TracedTalk:
    """Load the last of these sessions, with the turns of the others."""
    names = list(sessions)
    talk = TracedTalk(user, names[-1])
    asked = list_query(order="desc", limit=_KNOWN_MAX)
    for name in names:
        entries = list(list_entries(ctx, tenant_id, user, name, None, asked))
        talk.known.is_cut |= len(entries) >= _KNOWN_MAX
        talk.seq = entries[0].seq if entries else 0
        for entry in reversed(entries):
            _know(ctx, talk, entry, marks)
    return talk


def _know(ctx: Context, talk: TracedTalk, entry: LedgerEntry, marks: Marks) -> None:
    agent = entry.scope.agent_id
    if entry.is_forgotten:
        if entry.kind in ("message", "tool_result", "system"):  # a call's arguments are in a system event
            talk.known.add([KnownTurn("", entry.role, entry.ts, agent)])
        return
    if entry.kind not in ("message", "tool_result") and entry.metadata.get("event") != "tool_calls":
        if entry.kind == "system" and isinstance(entry.metadata.get("otel"), Mapping):
            talk.prompts.add(digest_of(_content(ctx, entry)))
        return
    made = entry.metadata.get("tool_calls")
    calls = [_called(call) for call in made if isinstance(call, Mapping)] if isinstance(made, list | tuple) else []
    talk.calls |= {call.id: call for call in calls}
    tool = entry.body.tool if entry.body is not None else None
    call_id = (tool.call_id if tool is not None else None) or ""
    mark = marks.of(entry.role, _content(ctx, entry), call_id, [call.id for call in calls], is_recorded=True)
    talk.known.add([KnownTurn(mark, entry.role, entry.ts, agent)])


def _called(call: Mapping[str, Any]) -> Called:
    args = call.get("args")
    return Called(str(call.get("id")), str(call.get("name")), dict(args) if isinstance(args, Mapping) else None)


def _content(ctx: Context, entry: LedgerEntry) -> str:
    if entry.content is not None:
        return entry.content
    return content_of(ctx, entry.scope.tenant_id, entry.id, entry.scope.user_id)
