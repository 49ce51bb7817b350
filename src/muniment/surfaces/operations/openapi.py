"""OpenAPI 3.1, read off the rows and the records: nothing in it is written by hand but how things are named.

The committed file `docs/reference/openapi.json` is `openapi_text()`; a test compares it with the code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from types import NoneType
from typing import Any

import muniment
from muniment.surfaces.operations.problems import MEDIA_TYPE, titled
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.shapes import Components, Listed
from muniment.surfaces.operations.signatures import Parameter
from muniment.surfaces.operations.table import Operation
from muniment.surfaces.operations.wire import wire_shape
from muniment.surfaces.operations.works import Work

__all__ = ["openapi", "openapi_bytes", "openapi_text"]

_LINES = "application/x-ndjson"
_INSTANTS = frozenset({"ts", "now", "at", "since", "until", "valid_from", "valid_to", "expires_at"})
_TEXT: dict[str, Any] = {"type": "string"}
_ABOUT = """Evidence-first memory for agents. Scope is in the path; bodies and answers are the library's own records, as
canonical JSON. Errors are RFC 9457 problems with a stable `code`. Lists come in pages (`limit`, `cursor`, `next`) or
whole, as JSON lines (`Accept: application/x-ndjson`). Long work runs beside the requests: `Prefer: respond-async`. A
caller asks to wait no longer than so many seconds with `Prefer: wait=2`: past them, 504, and nothing was written."""
_COUNT = {
    "type": "integer",
    "minimum": 0,
    "description": "How many the whole list has; with its first page, where it is known without reading them.",
}
_EVENTS = """The same, as it comes: `id` is the position, `data` the JSON. The event `here` says where the stream is,
`changed` that something was committed, `reset` that what was missed cannot be told exactly. Comments keep it open."""
_STATUSES = ("400", "401", "403", "404", "408", "409", "410", "412", "413", "415", "422", "429", "431", "5XX")
_TAGS = {
    "memory": "The store: runs, events, builds, forgetting, moving.",
    "run": "One run of an agent: what happened, what it remembers, searches, composes, claims, learns.",
    "corpus": "Documents of a tenant or a user.",
    "study": "Research runs: perspectives, sources, packs, checks.",
    "bank": "What was learnt from verified runs.",
    "works": "Long work and its progress.",
    "server": "The server itself.",
}


@cache
def openapi_text() -> str:
    """The document as the text of its committed file."""
    return json.dumps(openapi(), ensure_ascii=False, indent=1) + "\n"


@cache
def openapi_bytes() -> bytes:
    return openapi_text().encode()


def openapi() -> dict[str, Any]:
    """The document, as plain data."""
    components: Components = {}
    paths: dict[str, Any] = _server_paths()
    for operation in OPERATIONS:
        for suffix, template in _templates(operation):
            described = _described(operation, suffix, template, components)
            paths.setdefault(template, {})[operation.method.lower()] = described
    wire_shape(Work).schema(components)
    components["Problem"] = _problem()
    return {
        "openapi": "3.1.0",
        "info": {"title": "muniment", "version": muniment.__version__, "description": _ABOUT},
        "security": [{"key": []}],
        "tags": [{"name": name, "description": said} for name, said in _TAGS.items()],
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(components.items())),
            "parameters": _shared_parameters(),
            "responses": {f"Problem{status}": _problem_answer(status) for status in _STATUSES},
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "`muniment store keys create`"}
            },
        },
    }


def _templates(operation: Operation) -> Iterator[tuple[str, str]]:
    for level, template in operation.routes.items():
        yield ("" if len(operation.levels) == 1 and operation.handle != "memory" else f".{level}"), template
    if operation.free_route is not None:
        yield ".free", operation.free_route


def _described(operation: Operation, suffix: str, template: str, components: Components) -> dict[str, Any]:
    summary, _, rest = operation.signature.doc.partition("\n")
    described: dict[str, Any] = {
        "operationId": operation.id + suffix,
        "tags": [operation.handle],
        "summary": summary or operation.id,
        **({"description": rest.strip()} if rest.strip() else {}),
        "x-access": operation.access,
        "parameters": [*_path_parameters(operation, template), *_query(operation, template), *_headers(operation)],
    }
    if operation.takes_body:
        described["requestBody"] = _body(operation, template, components)
    described["responses"] = _answers(operation, components)
    return described


def _path_parameters(operation: Operation, template: str) -> list[dict[str, Any]]:
    return [{"$ref": f"#/components/parameters/path.{name}"} for name in operation.named_in(template)]


def _query(operation: Operation, template: str) -> Iterator[dict[str, Any]]:
    if not operation.takes_body:
        for each in operation.parameters(template):
            if each.name == "limit" and operation.is_listed:
                continue  # the page's
            yield {"name": each.name, "in": "query", "required": each.is_required, "schema": _argument_schema(each, {})}
    shared: tuple[str, ...] = ()
    if operation.is_listed and not operation.takes_body:
        shared += ("limit", "cursor")
    if operation.handle == "run":
        shared += () if "{run_id}" in template else ("run_id",)
        shared += ("agent_id", "session_id", "task_type", "grants", "repair")
    for name in shared:
        yield {"$ref": f"#/components/parameters/query.{name}"}


def _shared_parameters() -> dict[str, Any]:
    """What many operations take, described once."""
    routes = [route for operation in OPERATIONS for _, route in _templates(operation)]
    named = sorted({name for operation in OPERATIONS for route in routes for name in operation.named_in(route)})
    fits = {"type": "string", "minLength": 1, "maxLength": 256}
    paths = {f"path.{name}": {"name": name, "in": "path", "required": True, "schema": fits} for name in named}
    grants = {"type": "array", "items": {"enum": ["agent", "tenant"]}}
    asked: dict[str, tuple[dict[str, Any], str]] = {
        "limit": ({"type": "integer", "minimum": 1, "maximum": 1000}, "How many at most; 100."),
        "cursor": (_TEXT, "`next` of the page before."),
        "run_id": (_TEXT, "The run, where it is to be a certain one."),
        "agent_id": (_TEXT, "The agent of a run that has not started; else it is known."),
        "session_id": (_TEXT, "The session of a run that has not started; else it is known."),
        "task_type": (_TEXT, "What a run that has not started is for."),
        "grants": (grants, "Levels above the user's to write at; takes admin access."),
        "repair": ({"type": "boolean"}, "Take a locked run to put it right; takes admin access."),
    }
    return paths | {
        f"query.{name}": {"name": name, "in": "query", "required": False, "description": said, "schema": schema}
        for name, (schema, said) in asked.items()
    }


def _headers(operation: Operation) -> Iterator[dict[str, Any]]:
    def header(name: str, said: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "in": "header", "required": False, "description": said, "schema": schema}

    if operation.repeats != "safe":
        said = "The same key writes once; the same request under it is answered alike."
        yield header("Idempotency-Key", said, {"type": "string", "pattern": "^[!-~]{1,256}$"})
    if operation.versioned is not None and operation.takes_body:
        said = "The ETag of the version this change is for; 412 where it is no longer that."
        yield header("If-Match", said, {"type": "string", "pattern": '^("[0-9]{1,15}"|\\*)$'})
    if operation.is_watched:
        said = "Where a stream of events broke off; sent again by browsers of themselves. The same as `after`."
        yield header("Last-Event-ID", said, _TEXT)
    if operation.is_long:
        yield header("Prefer", "`respond-async` runs it beside the requests.", {"enum": ["respond-async"]})


def _body(operation: Operation, template: str, components: Components) -> dict[str, Any]:
    if operation.takes == "lines":
        return {"required": True, "content": {_LINES: {"schema": {"type": "string"}}}}
    taken = operation.parameters(template)
    if operation.body is not None:
        (whole,) = (each for each in taken if each.name == operation.body)
        return {"required": True, "content": {"application/json": {"schema": _argument_schema(whole, components)}}}
    extra = operation.signature.extra
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {each.name: _argument_schema(each, components) for each in taken},
        "additionalProperties": False if extra is None else wire_shape(extra).schema(components),
    }
    required = [each.name for each in taken if each.is_required]
    if required:
        schema["required"] = required
    return {"required": bool(required), "content": {"application/json": {"schema": schema}}}


def _argument_schema(parameter: Parameter, components: Components) -> dict[str, Any]:
    """The schema of an argument; None is the same as leaving it out."""
    if parameter.name in _INSTANTS:
        return {"type": ["string", "null"], "description": "A point in time, ISO 8601."}
    return wire_shape(parameter.hint).schema(components)


# -- answers ------------------------------------------------------------------------------------------


def _answers(operation: Operation, components: Components) -> dict[str, Any]:
    returns = operation.signature.returns
    answers: dict[str, Any] = {}
    if returns is NoneType:
        answers["204"] = {"description": "Done."}
    else:
        content = _content(operation, returns, components)
        answers[str(operation.status)] = {
            "description": "Done.",
            "headers": _response_headers(operation),
            "content": content,
        }
    if operation.is_long:
        work = {"application/json": {"schema": wire_shape(Work).schema(components)}}
        location = {"Location": {"description": "Where the operation is.", "schema": _TEXT}}
        answers["202"] = {"description": "Begun.", "headers": location, "content": work}
    if operation.method == "GET":
        answers["304"] = {"description": "As the ETag says, unchanged."}
    return answers | {status: {"$ref": f"#/components/responses/Problem{status}"} for status in _refusals(operation)}


def _content(operation: Operation, returns: Any, components: Components) -> dict[str, Any]:
    if operation.media != "application/json":
        return {operation.media: {"schema": _TEXT}}
    if returns is bytes:
        return {"application/json": {"schema": {"$ref": "#/components/schemas/MemoryPacket"}}}
    shape = operation.shape
    if operation.is_watched:
        events = {"text/event-stream": {"schema": {"type": "string", "description": _EVENTS}}}
        return {"application/json": {"schema": shape.schema(components)}} | events
    if not operation.is_listed:
        return {"application/json": {"schema": shape.schema(components)}}
    assert isinstance(shape, Listed)
    page = {
        "type": "object",
        "required": ["items"],
        "properties": {"items": shape.schema(components), "next": {"type": "string"}, "count": _COUNT},
    }
    content = {"application/json": {"schema": page}}
    return content if operation.takes_body else content | {_LINES: {"schema": _TEXT}}


def _response_headers(operation: Operation) -> dict[str, Any]:
    """The headers of an answer."""
    told = {"X-Request-Id": {"description": "Names the request in logs.", "schema": _TEXT}}
    if operation.versioned is not None:
        told["ETag"] = {"description": "The version.", "schema": _TEXT}
    return told


def _refusals(operation: Operation) -> list[str]:
    """What an operation may answer instead, whatever the reason: each with a code of its own."""
    statuses = {400, 401, 403, 404, 408, 409, 410, 422, 429, 431}
    statuses |= {413, 415} if operation.takes_body else set()
    statuses |= {412} if operation.versioned is not None and operation.takes_body else set()
    return [*map(str, sorted(statuses)), "5XX"]


def _problem() -> dict[str, Any]:
    return {
        "description": "What went wrong (RFC 9457).",
        "type": "object",
        "required": ["type", "title", "status", "detail", "code", "request_id"],
        "properties": {
            "type": _TEXT,
            "title": _TEXT,
            "status": {"type": "integer"},
            "detail": {"type": "string", "description": "What went wrong, in words."},
            "code": {"type": "string", "description": "Stable, the same in the library, the command line and here."},
            "path": {"type": "string", "description": "Where in the request, as a JSONPath."},
            "hint": {"type": "string", "description": "What to do."},
            "details": {"type": "object"},
            "request_id": _TEXT,
        },
    }


def _problem_answer(status: str) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": titled(int(status)) if status.isdigit() else "The server could not.", "content": content}


def _server_paths() -> dict[str, Any]:
    def page(name: str, summary: str, *statuses: int, is_open: bool = True) -> dict[str, Any]:
        content = {"application/json": {"schema": {"type": "object"}}}
        answers: dict[str, Any] = {
            str(status): {"description": titled(status), "content": content} for status in statuses
        }
        if not is_open:
            answers |= {each: {"$ref": f"#/components/responses/Problem{each}"} for each in ("401", "403", "429")}
        described: dict[str, Any] = {"operationId": f"server.{name}", "tags": ["server"], "summary": summary}
        return {"get": described | ({"security": []} if is_open else {}) | {"responses": answers}}

    return {
        "/v1/key": page("key", "What the key that asks is for.", 200, is_open=False),
        "/v1/health": page("health", "Does the process answer?", 200),
        "/v1/ready": page("ready", "Does the store answer?", 200, 503),
        "/v1/openapi.json": page("openapi", "This document.", 200),
    }
