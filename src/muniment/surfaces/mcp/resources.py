"""Resources: packets of builds, narratives of runs, events, facts, sessions; of the caller's user alone.

Builds and narratives are listed in pages, newest first. The others may be very many: they are read by address, found
through completion or `search_memory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_types import ListResourcesResult, ReadResourceResult, Resource, ResourceTemplate, TextResourceContents

from muniment.core.canonical import canonical_text
from muniment.errors import InvalidInput, NotFound
from muniment.packets.builds import Readable, list_readables
from muniment.surfaces.cli.terminal import one_line, when
from muniment.surfaces.mcp.answers import ANSWER_CHARS_MAX, NOTICE
from muniment.surfaces.mcp.uris import TEMPLATES, build_uri, narrative_uri, parts_of

if TYPE_CHECKING:
    from muniment.surfaces.mcp.callers import ToolCaller

__all__ = ["PAGE", "list_resources", "list_templates", "read_resource", "tell_session"]

PAGE = 50
SESSION_TURNS_MAX = 100
TURN_CHARS_MAX = 500
"""The most characters of one turn of a session; the event has all of it."""
NOTICE_KEY = "muniment/notice"


def list_templates() -> list[ResourceTemplate]:
    return [
        ResourceTemplate(name=name, uri_template=uri, mime_type=media, description=said)
        for name, (uri, media, said) in TEMPLATES.items()
    ]


def list_resources(tool_caller: ToolCaller, cursor: str | None) -> ListResourcesResult:
    """List one page of resources."""
    after = None if cursor is None else _place(cursor)
    found = list_readables(tool_caller.memory._ctx, tool_caller.tenant, tool_caller.user, after, PAGE + 1)
    shown = found[:PAGE]
    more = _cursor(shown[-1]) if len(found) > PAGE else None
    return ListResourcesResult(resources=[_resource(each) for each in shown], next_cursor=more)


def _cursor(last: Readable) -> str:
    created_at, id_, sequence = last.place
    return f"{created_at} {sequence} {id_}"


def _place(cursor: str) -> tuple[str, str, int]:
    created_at, _, rest = cursor.partition(" ")
    sequence, _, id_ = rest.partition(" ")
    if not id_ or not sequence.isascii() or not sequence.isdigit() or len(cursor) > 1024 or len(sequence) > 15:
        raise InvalidInput(
            "not a cursor of this list", path="$.cursor", hint="send back `nextCursor` as it was answered"
        )
    return created_at, id_, int(sequence)


def _resource(each: Readable) -> Resource:
    if each.kind == "build":
        request = each.request or {}
        asked = one_line(str(request.get("query", "")), 80)
        title = f"{request.get('purpose')}: {asked}" if asked else f"for a {request.get('purpose')}"
        return Resource(name=each.id, title=title, uri=build_uri(each.id), mime_type="application/json")
    name = f"{each.run_id}#{each.sequence}"
    title = f"Narrative {each.sequence} of the run {each.run_id}"
    return Resource(name=name, title=title, uri=narrative_uri(each.run_id, each.sequence), mime_type="text/markdown")


def read_resource(tool_caller: ToolCaller, uri: str) -> ReadResourceResult:
    match parts_of(uri):
        case ["builds", build_id]:
            return _text(uri, "application/json", tool_caller.build(build_id).packet_bytes.decode())
        case ["events", event_id]:
            return _text(uri, "application/json", _event(tool_caller, event_id))
        case ["facts", fact_id]:
            return _text(uri, "application/json", canonical_text(tool_caller.fact(fact_id)))
        case ["sessions", session_id]:
            return _text(uri, "text/markdown", tell_session(tool_caller, session_id))
        case ["runs", run_id, "narrative"]:
            return _text(uri, "text/markdown", tool_caller.narrative(run_id, None))
        case ["runs", run_id, "narrative", number] if number.isascii() and number.isdigit() and len(number) < 10:
            return _text(uri, "text/markdown", tool_caller.narrative(run_id, int(number)))
        case _:
            raise NotFound(
                f"no resource {uri!r:.120}", path="$.uri", hint="`resources/templates/list` says which there are"
            )


def _event(tool_caller: ToolCaller, event_id: str) -> str:
    """The entry, with its content in place wherever it is stored."""
    entry = tool_caller.run.ledger.get(event_id)
    plain = entry.to_wire()
    if entry.body is not None and entry.body.blob is not None:
        plain["body"] = plain["body"] | {"content": tool_caller.run.ledger.content(event_id)}
    return canonical_text(plain)


def tell_session(tool_caller: ToolCaller, session_id: str) -> str:
    """The latest turns of a session, one per line, within the length of an answer."""
    entries = tool_caller.turns(session_id, SESSION_TURNS_MAX)
    if not entries:
        raise NotFound(f"no session {session_id!r:.80} in this scope", path="$.session_id")
    lines: list[str] = []
    left = ANSWER_CHARS_MAX
    for entry in reversed(entries):
        content = entry.content if entry.content is not None else tool_caller.run.ledger.content(entry.id)
        who = one_line(entry.speaker or entry.role, 60)
        line = f"- {when(entry.ts)} {who}: {one_line(content, TURN_CHARS_MAX)} ({entry.id})"
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    before = len(entries) - len(lines)
    head = [f"({before} earlier turns are left out; `search_memory` finds them)"] if before else []
    return "\n".join([*head, *reversed(lines)])


def _text(uri: str, media: str, text: str) -> ReadResourceResult:
    contents = TextResourceContents(uri=uri, mime_type=media, text=text, _meta={NOTICE_KEY: NOTICE})
    return ReadResourceResult(contents=[contents])
