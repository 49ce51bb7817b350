"""OpenAPI 3.1, read off the rows and the records: only the behaviour of the wire is written by hand.

The committed file `docs/reference/openapi.json` is `openapi_text()`; a test compares it with the code.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import muniment
from muniment.surfaces.operations.describing import described, path_parameters, shared_headers, shared_parameters
from muniment.surfaces.operations.naming import TAGS, addresses, operation_name
from muniment.surfaces.operations.problem_answers import problem_responses, problem_schema
from muniment.surfaces.operations.problems import titled
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.shapes import Components, wire_shape
from muniment.surfaces.operations.works import Work

__all__ = ["EXAMPLES", "core_bytes", "core_openapi", "core_text", "openapi", "openapi_bytes", "openapi_text"]

_ABOUT = """Evidence-first memory for agents: what happened is recorded, what is told to a model is composed from it,
and every line of that can be traced back to what was said.

**Start with the operations tagged `core`.** The rest is there by the room whose work it is.

- Scope is in the path; bodies and answers are the library's own records, as canonical JSON.
- Errors are RFC 9457 problems with a stable `code`, a `hint`, and the `path` of what was wrong.
- Lists come in pages: `limit` says how long, and where an answer has `next`, that is the `cursor` of the page after.
  With `Accept: application/x-ndjson` a list is answered whole, an item a line.
- Where sending a request twice would write twice, it takes an `Idempotency-Key`, under which it is carried out once.
- Answers to `GET`, pages of lists too, have an `ETag`; with it as `If-None-Match`, what has not changed is answered
  304, without a body. Streams have none.
- `429` and a server that is closing say in `Retry-After` when to ask again.
- Long work runs beside the requests with `Prefer: respond-async`: 202, and its progress at `Location`.
- To wait no longer than so many seconds `Prefer: wait=2`; past them, 504, and nothing was written."""
_SERVERS = [
    {"url": "/", "description": "The server that answers this document."},
    {
        "url": "http://{host}:{port}",
        "description": "A server of `muniment serve`.",
        "variables": {
            "host": {"default": "127.0.0.1", "description": "Where it listens."},
            "port": {"default": "8765", "description": "Its port."},
        },
    },
]
_KEY = "A key made by `muniment store keys create`. A server that only its own machine can reach asks for none."


@cache
def openapi_text() -> str:
    """The text of the document's committed file."""
    return json.dumps(openapi(), ensure_ascii=False, indent=1) + "\n"


@cache
def openapi_bytes() -> bytes:
    return openapi_text().encode()


@cache
def core_text() -> str:
    """The text of the committed file of the core document."""
    return json.dumps(core_openapi(), ensure_ascii=False, indent=1) + "\n"


@cache
def core_bytes() -> bytes:
    return core_text().encode()


def core_openapi() -> dict[str, Any]:
    """The core document: the operations an agent needs, and the components they refer to."""
    whole = openapi()
    paths = {
        path: {method: told for method, told in item.items() if told["tags"] == ["core"]}
        for path, item in whole["paths"].items()
    }
    kept = {path: item for path, item in paths.items() if item}
    parts = whole["components"]
    wanted = _referred(kept, parts)
    components = {
        kind: {name: part for name, part in held.items() if (kind, name) in wanted or kind == "securitySchemes"}
        for kind, held in parts.items()
    }
    tags = [each for each in whole["tags"] if each["name"] == "core"]
    return whole | {"tags": tags, "paths": kept, "components": components}


def _referred(node: Any, parts: dict[str, Any]) -> set[tuple[str, str]]:
    """The components that something refers to, directly or indirectly."""
    found: set[tuple[str, str]] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.values()
            _, _, where = str(each.get("$ref", "")).partition("#/components/")
            kind, _, name = where.partition("/")
            if name and (kind, name) not in found:
                found.add((kind, name))
                waiting.append(parts[kind][name])
    return found


def openapi() -> dict[str, Any]:
    """The document, as plain data."""
    components: Components = {}
    lists: dict[str, Any] = {}
    paths: dict[str, Any] = _server_paths()
    places = {(operation.id, template) for operation in OPERATIONS for _, template in addresses(operation)}
    levels = Counter(id_ for id_, _ in places)
    for operation in OPERATIONS:
        for where, template in addresses(operation):
            name = operation_name(operation, where, levels)
            told = with_examples(described(operation, where, name, template, components, lists))
            paths.setdefault(template, {})[operation.method.lower()] = told
    wire_shape(Work).schema(components)
    names = (name for each in OPERATIONS for _, route in addresses(each) for name in each.named_in(route))
    components["Problem"] = problem_schema()
    taken = components.keys() & lists.keys()
    if taken:
        raise TypeError(f"a list is named as a record is: {sorted(taken)}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "muniment",
            "version": muniment.__version__,
            "summary": "Evidence-first memory for agents.",
            "description": _ABOUT,
            "contact": {"name": "The muniment project"},
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": _SERVERS,
        "security": [{"key": []}],
        "tags": [{"name": name, "description": said} for name, said in TAGS.items()],
        "paths": dict(sorted(paths.items(), key=_core_first)),
        "components": {
            "schemas": dict(sorted((components | lists).items())),
            "parameters": path_parameters(names) | shared_parameters(),
            "headers": shared_headers(),
            "responses": problem_responses(),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": _KEY}},
        },
    }


def _core_first(path: tuple[str, dict[str, Any]]) -> tuple[int, str]:
    """Order paths by section, and addresses within a section."""
    order = list(TAGS)
    return min(order.index(each["tags"][0]) for each in path[1].values()), path[0]


# -- server pages -------------------------------------------------------------------------------------


def _server_paths() -> dict[str, Any]:
    status = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
    ready = status | {"properties": {"status": {"type": "string"}, "reason": {"type": "string"}}}
    key = {"type": "object", "description": "The key's id, tenant, user and access.", "additionalProperties": True}
    document = {"type": "object", "description": "An OpenAPI document.", "additionalProperties": True}
    return {
        "/v1/key": _page("key", "What the key that asks is for.", key, 200, is_open=False),
        "/v1/health": _page("health", "Does the process answer?", status, 200),
        "/v1/ready": _page("ready", "Does the store answer?", ready, 200, 503),
        "/v1/traces": _receiver("traces", "Spans", "ExportTraceServiceRequest"),
        "/v1/logs": _receiver("logs", "Log records", "ExportLogsServiceRequest"),
        "/v1/metrics": _receiver("metrics", "Metrics, which are taken and not kept,", "ExportMetricsServiceRequest"),
        "/v1/openapi.json": _page("openapi", "This document.", document, 200),
        "/v1/openapi-core.json": _page("openapi_core", "Of this document, the core alone.", document, 200),
    }


def _receiver(name: str, what: str, message: str) -> dict[str, Any]:
    """An OTLP address, used by exporters. Only its JSON is described: client generators do not know protobuf, and
    senders of that have an exporter.
    """
    sent = {"type": "object", "description": f"`{message}` of OTLP.", "additionalProperties": True}
    partial = {"type": "object", "additionalProperties": True}
    answered = {"type": "object", "properties": {"partialSuccess": partial}}
    status = {"type": "object", "description": "A `google.rpc.Status`.", "additionalProperties": True}
    kinds, taken, refused = ({"application/json": {"schema": each}} for each in (sent, answered, status))
    answers: dict[str, Any] = {"200": {"description": titled(200), "content": taken}}
    for code in (400, 401, 403, 413, 415, 429, 503, 504):
        answers[str(code)] = {"description": titled(code), "content": refused}
    summary = f"{what} of an exporter of OpenTelemetry."
    whose = (
        "Protobuf is taken as well, and answered in kind. The header `muniment-user` says whose it is, where neither "
        "the key nor the spans do."
    )
    told = {
        "operationId": f"server_{name}",
        "tags": ["server"],
        "summary": summary,
        "description": f"{summary} {whose}",
    }
    return {"post": told | {"requestBody": {"required": True, "content": kinds}, "responses": answers}}


def _page(name: str, summary: str, schema: dict[str, Any], *statuses: int, is_open: bool = True) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    answers: dict[str, Any] = {str(status): {"description": titled(status), "content": content} for status in statuses}
    refused = ("400", "403") if is_open else ("400", "401", "403", "429")
    answers |= {each: {"$ref": f"#/components/responses/Problem{each}"} for each in refused}
    told: dict[str, Any] = {
        "operationId": f"server_{name}",
        "tags": ["server"],
        "summary": summary,
        "description": summary + (" It takes no key." if is_open else ""),
    }
    return {"get": told | ({"security": []} if is_open else {}) | {"responses": answers}}


# -- examples of the core, from a real server -------------------------------------------------------------


EXAMPLES = files("muniment.surfaces.operations").joinpath("data/examples.json")


class Example(NamedTuple):
    """One request with its response."""

    method: str
    path: str
    params: dict[str, Any]
    headers: dict[str, str]
    body: Any
    status: int
    answer: Any


@cache
def _told() -> dict[str, Any]:
    held: dict[str, Any] = json.loads(EXAMPLES.read_text("utf-8"))["examples"] if EXAMPLES.is_file() else {}
    return held


def example_of(name: str) -> Example | None:
    """The example of an operation, by its name in the document."""
    told = _told().get(name)
    if told is None:
        return None
    asked = told["request"]
    params, headers = asked.get("params", {}), asked.get("headers", {})
    return Example(asked["method"], asked["path"], params, headers, asked.get("body"), told["status"], told["answer"])


def with_examples(told: dict[str, Any]) -> dict[str, Any]:
    """Add the example to an operation of the document, if it has one."""
    example = example_of(told["operationId"])
    if example is None:
        return told
    made = dict(told)
    if example.body is not None:
        made["requestBody"] = _shown(told["requestBody"], example.body)
    answered = str(example.status)
    made["responses"] = {
        status: _shown(answer, example.answer) if status == answered else answer
        for status, answer in told["responses"].items()
    }
    return made


def _shown(part: dict[str, Any], value: Any) -> dict[str, Any]:
    """A body or an answer with an example of its JSON."""
    shown = part["content"]["application/json"] | {"examples": {"story": {"value": value}}}
    return part | {"content": part["content"] | {"application/json": shown}}
