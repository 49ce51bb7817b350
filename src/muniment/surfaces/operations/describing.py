"""One operation as the OpenAPI document has it: its arguments, bodies, answers and headers.

All of it is read off the operation's row, the method's own signature and words, and the records that check what is
given. What is said here in words is how the wire behaves, the same for all.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from dataclasses import is_dataclass
from datetime import datetime
from types import NoneType
from typing import Any, Union, get_args, get_origin

from muniment.core.listing import PAGE_MAX, PAGE_SIZE
from muniment.core.policy import Policy
from muniment.core.scope import ID_MAX_CHARS
from muniment.surfaces.operations.argument_words import words_of
from muniment.surfaces.operations.bounds import bound_schema, without_null
from muniment.surfaces.operations.naming import CORE, schema_name, tag_of
from muniment.surfaces.operations.problem_answers import refusals_of
from muniment.surfaces.operations.shapes import REF, Components, Listed
from muniment.surfaces.operations.signatures import Parameter
from muniment.surfaces.operations.table import Operation
from muniment.surfaces.operations.wire import wire_shape
from muniment.surfaces.operations.works import Work

__all__ = ["KEY_PATTERN", "described", "path_parameters", "shared_headers", "shared_parameters"]

KEY_PATTERN = "^[!-~]{1,256}$"
"""What an Idempotency-Key may be."""
_LINES = "application/x-ndjson"
_COUNT = {
    "type": "integer",
    "minimum": 0,
    "description": "How many the whole list has; with its first page, where it is known without reading them.",
}
_INSTANTS = frozenset({"ts", "now", "at", "since", "until", "valid_from", "valid_to", "expires_at", "start", "end"})
_TEXT: dict[str, Any] = {"type": "string"}
_MOMENT = {"type": "string", "format": "date-time"}
_EVENTS = """The same, as it comes: `id` is the position, `data` the JSON. The event `here` says where the stream is,
`changed` that something was committed, `reset` that what was missed cannot be told exactly. Comments keep it open."""
_SENTENCE = re.compile(r"[.?!](?= |$)")
_SUMMARY_CHARS_MAX = 140


def described(
    operation: Operation, where: str, name: str, template: str, components: Components, lists: dict[str, Any]
) -> dict[str, Any]:
    """An operation at one of its addresses. `components` and `lists` are filled with what it refers to."""
    words = _paragraphs(operation.signature.doc) or [operation.id]
    told: dict[str, Any] = {
        "operationId": name,
        "tags": [tag_of(operation, where)],
        "summary": _first_sentence(words[0]),
        "description": "\n\n".join(words),
        "x-access": operation.access,
        "x-method": operation.id,
        "parameters": [
            *({"$ref": f"#/components/parameters/path.{each}"} for each in operation.named_in(template)),
            *_query(operation, template, components),
            *_headers(operation),
        ],
    }
    if operation.takes_body:
        told["requestBody"] = _body(operation, where, template, components)
    told["responses"] = _answers(operation, components, lists)
    return told


def _paragraphs(doc: str) -> list[str]:
    """The words of a method, a paragraph a line."""
    return [" ".join(part.split()) for part in doc.split("\n\n") if part.strip()]


def _first_sentence(words: str) -> str:
    found = _SENTENCE.search(words)
    sentence = words if found is None else words[: found.end()]
    return sentence if len(sentence) <= _SUMMARY_CHARS_MAX else f"{sentence[:_SUMMARY_CHARS_MAX].rpartition(' ')[0]} …"


# -- arguments ----------------------------------------------------------------------------------------


def _query(operation: Operation, template: str, components: Components) -> Iterator[dict[str, Any]]:
    if not operation.takes_body:
        for each in operation.parameters(template):
            if each.name in ("limit", "cursor") and operation.is_paged:
                continue  # described once, for all lists
            schema = _argument_schema(operation, each, components)
            is_time = schema.get("format") == "date-time"
            words = words_of(operation.id, each.name, is_time=is_time)
            yield {
                "name": each.name,
                "in": "query",
                "required": each.is_required,
                **({"description": words} if words else {}),
                "schema": schema,
            }
    shared: tuple[str, ...] = ()
    if operation.is_paged:
        shared += ("limit", "cursor")
    if operation.handle == "run":
        shared += () if "{run_id}" in template else ("run_id",)
        shared += ("agent_id", "session_id", "task_type", "grants", "repair")
    if operation.handle == "values":
        shared += ("user_at",)
    for name in shared:
        yield {"$ref": f"#/components/parameters/query.{name}"}


def path_parameters(names: Iterator[str]) -> dict[str, Any]:
    """The parts of addresses that are names."""
    fits = {"type": "string", "minLength": 1, "maxLength": ID_MAX_CHARS}
    return {
        f"path.{name}": {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"{_PATH_WORDS.get(name) or name.removesuffix('_id').replace('_', ' ').capitalize()}.",
            "schema": _OWNER if name == "owner" else fits,
        }
        for name in sorted(set(names))
    }


_OWNER = {"type": "string", "pattern": f"^((user|agent):.{{1,{ID_MAX_CHARS}}}|tenant)$"}
_PATH_WORDS = {
    "tenant_id": "The tenant; `default` where there is only one",
    "user_id": "The user whose memory it is: a name that you choose",
    "run_id": "The run: a name that you choose, or one that was answered",
    "agent_id": "The agent",
    "a": "The build to compare",
    "b": "The build to compare it with",
    "event_id": "An event by its id, which is its evidence id",
    "build_id": "A build by its id, as `compose` answers it",
    "corpus_id": "The corpus of documents",
    "owner": "Whose it is: `user:` or `agent:` and an id, or `tenant`; changes above a user take admin access",
    "space": "The name of a store of values, or of a saver of threads: one that you choose",
}


def shared_parameters() -> dict[str, Any]:
    """What many operations take, described once."""
    name = {"type": "string", "minLength": 1, "maxLength": ID_MAX_CHARS}
    grants = {"type": "array", "items": {"type": "string", "enum": ["agent", "tenant"]}}
    count = {"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE_SIZE}
    asked: dict[str, tuple[dict[str, Any], str]] = {
        "limit": (count, "How many items a page holds at most."),
        "cursor": (_TEXT, "Where to go on: `next` of the page before, as it was answered."),
        "run_id": (name, "The run, where it is to be a certain one."),
        "agent_id": (name, "The agent of a run that has not started; else it is known."),
        "session_id": (name, "The session of a run that has not started; else it is known."),
        "task_type": (_TEXT, "What a run that has not started is for."),
        "grants": (grants, "Levels above the user's to write at; takes admin access."),
        "user_at": (
            {"type": "integer", "minimum": 0},
            "Which label of a namespace names the user whose a value is; it tells apart names of one space.",
        ),
        "repair": ({"type": "boolean"}, "Take a locked run to put it right; takes admin access."),
    }
    return {
        f"query.{each}": {"name": each, "in": "query", "required": False, "description": said, "schema": schema}
        for each, (schema, said) in asked.items()
    } | {f"header.{each['name']}": each for each in _HEADERS}


def _header(name: str, said: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "description": said, "schema": schema}


_HEADERS = (
    _header(
        "Idempotency-Key",
        "A name of your own for this request. Sent again under it, the request is carried out once and answered alike; "
        "another request under it is an `idempotency_mismatch`. What was forgotten is not answered again.",
        {"type": "string", "pattern": KEY_PATTERN},
    ),
    _header(
        "If-Match",
        "The ETag of the version that this change is for; 412 where it is no longer that.",
        {"type": "string", "pattern": '^("[0-9]{1,15}"|\\*)$'},
    ),
    _header("If-None-Match", "ETags of answers that you have; 304 where it would be one of them.", _TEXT),
    _header(
        "Last-Event-ID",
        "Where a stream of events broke off; sent again by browsers of themselves. The same as `after`.",
        _TEXT,
    ),
    _header("Prefer", "`respond-async` runs it beside the requests.", {"type": "string", "enum": ["respond-async"]}),
)


def _headers(operation: Operation) -> Iterator[dict[str, Any]]:
    wanted = {
        "Idempotency-Key": operation.repeats != "safe",
        "If-Match": operation.versioned is not None and operation.takes_body,
        "If-None-Match": has_etag(operation) and operation.method == "GET",
        "Last-Event-ID": operation.is_watched,
        "Prefer": operation.is_long,
    }
    for name, is_wanted in wanted.items():
        if is_wanted:
            yield {"$ref": f"#/components/parameters/header.{name}"}


def _body(operation: Operation, where: str, template: str, components: Components) -> dict[str, Any]:
    if operation.takes == "lines":
        lines = {"schema": {"type": "string", "format": "binary"}}
        return {"required": True, "content": {_LINES: lines, "application/octet-stream": lines}}
    taken = operation.parameters(template)
    if operation.body is not None:
        (whole,) = (each for each in taken if each.name == operation.body)
        schema = _argument_schema(operation, whole, components)
        return {"required": True, "content": {"application/json": {"schema": schema}}}
    if not taken and operation.signature.extra is None:
        closed = {"type": "object", "additionalProperties": False, "description": "It takes no arguments."}
        return {"required": False, "content": {"application/json": {"schema": closed}}}
    schema = _arguments(operation, taken, components)
    name = schema_name(operation.id)
    if components.setdefault(name, schema) != schema:  # at another level, with fewer of them in the address
        name = name.removesuffix("Arguments") + where.replace("_", " ").title().replace(" ", "") + "Arguments"
        components[name] = schema
    content = {"application/json": {"schema": {"$ref": REF.format(model=name)}}}
    return {"required": "required" in schema, "content": content}


def _arguments(operation: Operation, taken: tuple[Parameter, ...], components: Components) -> dict[str, Any]:
    extra = operation.signature.extra
    named = next((name for (each, _), name in CORE.items() if each == operation.id), operation.id)
    schema: dict[str, Any] = {
        "description": f"What `{named}` takes.",
        "type": "object",
        "properties": {each.name: _argument_schema(operation, each, components) for each in taken},
        "additionalProperties": False if extra is None else wire_shape(extra).schema(components) or True,
    }
    required = [each.name for each in taken if each.is_required]
    return schema | ({"required": required} if required else {})


def _argument_schema(operation: Operation, parameter: Parameter, components: Components) -> dict[str, Any]:
    """The schema of an argument; null is the same as leaving it out, and is not told."""
    bound = bound_schema(operation.id, parameter.name, components)
    is_time = parameter.name in _INSTANTS and _is_open(parameter.hint)
    if is_time:
        bound = dict(_MOMENT)
    if parameter.name == "expires_at":
        bound = {"anyOf": [_MOMENT, {"type": "string", "enum": ["run_end"]}]}
    schema = bound if bound is not None else without_null(wire_shape(_sent(parameter.hint)).schema(components))
    if not operation.takes_body or "$ref" in schema:
        return schema
    words = words_of(operation.id, parameter.name, is_time=is_time) + _unless_given(parameter)
    return schema | ({"description": words.strip()} if words else {})


def _unless_given(parameter: Parameter) -> str:
    """What an argument is where it is left out, in words: to generators, what has a default is always there."""
    default = parameter.default
    if parameter.is_required or not isinstance(default, str | int | float) or default == "":
        return ""
    return f" `{str(default).lower() if isinstance(default, bool) else default}` unless given."


def _is_open(hint: Any) -> bool:
    """Points in time are annotated as anything, or as text and a date."""
    return hint is Any or datetime in get_args(hint)


def _sent(hint: Any) -> Any:
    """The type of an argument as it is sent: what is named by its id is sent as its id."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    choices = get_args(hint)
    kept = [each for each in choices if not (str in choices and isinstance(each, type) and is_dataclass(each))]
    kept = [each for each in kept if each is not Policy]  # of a policy, what differs from the default is sent
    return Union[tuple(kept)]  # noqa: UP007 - built from a tuple


# -- answers ------------------------------------------------------------------------------------------


def has_etag(operation: Operation) -> bool:
    """Whether its answers have an ETag: of a version, or of their bytes."""
    if operation.versioned is not None:
        return True
    return operation.method == "GET" and operation.media not in (_LINES, "text/event-stream")


def _answers(operation: Operation, components: Components, lists: dict[str, Any]) -> dict[str, Any]:
    returns = operation.signature.returns
    answers: dict[str, Any] = {}
    if returns is NoneType:
        answers["204"] = {"description": "Done.", "headers": _response_headers(operation)}
    else:
        answers[str(operation.status)] = {
            "description": "A page of the list." if operation.is_listed and not operation.takes_body else "Done.",
            "headers": _response_headers(operation),
            "content": _content(operation, returns, components, lists),
        }
    if operation.is_long:
        work = {"application/json": {"schema": wire_shape(Work).schema(components)}}
        location = {"Location": {"$ref": "#/components/headers/Location"}}
        answers["202"] = {"description": "Begun.", "headers": location, "content": work}
    if has_etag(operation) and operation.method == "GET":
        headers = {"ETag": {"$ref": "#/components/headers/ETag"}}
        answers["304"] = {"description": "What you have is what it would be.", "headers": headers}
    return answers | {each: {"$ref": f"#/components/responses/Problem{each}"} for each in refusals_of(operation)}


def _content(operation: Operation, returns: Any, components: Components, lists: dict[str, Any]) -> dict[str, Any]:
    if operation.media != "application/json":
        kind = {"format": "binary"} if operation.media == _LINES else {}
        return {operation.media: {"schema": _TEXT | kind}}
    if returns is bytes:
        return {"application/json": {"schema": {"$ref": "#/components/schemas/MemoryPacket"}}}
    shape = operation.shape
    if operation.is_watched:
        events = {"text/event-stream": {"schema": {"type": "string", "description": _EVENTS}}}
        return {"application/json": {"schema": shape.schema(components)}} | events
    if not operation.is_listed:
        return {"application/json": {"schema": shape.schema(components)}}
    assert isinstance(shape, Listed)
    content = {"application/json": {"schema": _page(operation, shape.schema(components), lists)}}
    return content if operation.takes_body else content | {_LINES: {"schema": _TEXT | {"format": "binary"}}}


def _page(operation: Operation, listed: dict[str, Any], lists: dict[str, Any]) -> dict[str, Any]:
    """What a list is answered in: `LedgerEntryPage`, or `LedgerEntryList` where all of it is answered."""
    inner = listed["items"]
    named = inner["$ref"].rpartition("/")[2] if "$ref" in inner else schema_name(operation.id)[: -len("Arguments")]
    if operation.takes_body:
        kind, said, more = "List", "All that was found.", {}
    else:
        said = "A part of a list. Where `next` stands, there is more: ask again with it as `cursor`."
        kind, more = "Page", {"next": _TEXT | {"description": "The `cursor` of the next page."}, "count": _COUNT}
    made = {
        "description": said,
        "type": "object",
        "additionalProperties": False,
        "required": ["items"],
        "properties": {"items": listed, **more},
    }
    name = f"{named}{kind}"
    if lists.setdefault(name, made) != made:
        raise TypeError(f"two lists are named {name}")
    return {"$ref": REF.format(model=name)}


def shared_headers() -> dict[str, Any]:
    """The headers of answers."""
    told = {
        "X-Request-Id": "Names the request in the server's log.",
        "ETag": "Which answer this is: the version of what was asked for, or a hash of the answer's bytes.",
        "Location": "Where the operation is.",
        "Idempotency-Replayed": "`true` where the answer is the one that the same request was given before.",
        "Retry-After": "After how many seconds to ask again.",
        "WWW-Authenticate": "How to say who asks.",
    }
    schemas = {"Retry-After": {"type": "integer", "minimum": 0}}
    return {name: {"description": said, "schema": schemas.get(name, _TEXT)} for name, said in told.items()}


def _response_headers(operation: Operation) -> dict[str, Any]:
    names = ["X-Request-Id"]
    names += ["ETag"] if has_etag(operation) else []
    names += ["Idempotency-Replayed"] if operation.repeats == "guarded" else []
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
