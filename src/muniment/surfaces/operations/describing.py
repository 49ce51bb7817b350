"""One operation in the OpenAPI document: its arguments, bodies, answers and headers.

All of it is read off the operation's row, the method's own signature and docstring, and the records that check the
arguments. The texts written here describe only the behaviour of the wire, common to all.
"""

from __future__ import annotations

import importlib
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from types import NoneType
from typing import Any, Union, get_args, get_origin

from pydantic.errors import PydanticInvalidForJsonSchema

from muniment.core.listing import PAGE_MAX, PAGE_SIZE
from muniment.core.policy import Policy
from muniment.core.record import Record
from muniment.core.scope import ID_MAX_CHARS
from muniment.surfaces.operations.naming import CORE, schema_name, tag_of
from muniment.surfaces.operations.problem_answers import refusals_of
from muniment.surfaces.operations.shapes import REF, Components, Listed, generated, wire_shape
from muniment.surfaces.operations.signatures import Parameter, hints_of
from muniment.surfaces.operations.table import Operation
from muniment.surfaces.operations.works import Work

__all__ = ["KEY_PATTERN", "described", "path_parameters", "shared_headers", "shared_parameters"]

KEY_PATTERN = "^[!-~]{1,256}$"
"""The pattern of an Idempotency-Key."""
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
    """Describe an operation at one of its addresses. `components` and `lists` collect the schemas it refers to."""
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
    """The paragraphs of a docstring, one per line."""
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
    """The path parameters."""
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
    """Parameters common to many operations, described once."""
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
    """The schema of an argument; null means omitted, and is not shown."""
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
    """The default of an argument, in words: generators treat a property with a default as always present."""
    default = parameter.default
    if parameter.is_required or not isinstance(default, str | int | float) or default == "":
        return ""
    return f" `{str(default).lower() if isinstance(default, bool) else default}` unless given."


def _is_open(hint: Any) -> bool:
    """True for points in time, which are annotated as anything, or as text and a date."""
    return hint is Any or datetime in get_args(hint)


def _sent(hint: Any) -> Any:
    """The type of an argument on the wire: items named by id are sent as their ids."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    choices = get_args(hint)
    kept = [each for each in choices if not (str in choices and isinstance(each, type) and is_dataclass(each))]
    kept = [each for each in kept if each is not Policy]  # for a policy, only the differences from the default are sent
    return Union[tuple(kept)]  # noqa: UP007 - built from a tuple


# -- answers ------------------------------------------------------------------------------------------


def has_etag(operation: Operation) -> bool:
    """True if its answers have an ETag: of a version, or of their bytes."""
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
    """The schema of a list's answer: `LedgerEntryPage`, or `LedgerEntryList` if it is returned whole."""
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


# -- constraints on arguments, from the records that check them -------------------------------------------


_FROM_ZERO = "muniment.core.record:Count"
_FROM_ONE = "muniment.core.requests:FromOne"
_ID = "muniment.core.scope:IdText"
_PART = {"start": _FROM_ZERO, "length": _FROM_ZERO}
_SEARCH = {"k": "muniment.memory.search:HitCount", "min_score": "muniment.core.record:Confidence"}
_SEQUENCE = {"sequence": _FROM_ONE}
_EVENT = "muniment.store.ledger:EntryDraft"
_FACT = "muniment.memory.facts:FactRequest"
_BANK = "muniment.handles.bank:BankQuery"
_CORPUS = "muniment.memory.corpus:CorpusQuery"
_SELECTION = "muniment.rules.selection:SelectionRequest"
_SIGNED = "muniment.rules.promotion:SignedRequest"
_RUN = {"agent_id": _ID, "session_id": _ID, "run_id": _ID}

_CHECKED_BY: Mapping[str, str | Mapping[str, str]] = {
    "memory.run": _RUN,
    "memory.verify": {"entries_max": _FROM_ONE},
    "memory.snapshot": _SEQUENCE,
    "memory.check_snapshot": _SEQUENCE,
    "memory.narrative": _SEQUENCE,
    "memory.preview": "muniment.packets.builds:BuildRequest",
    "memory.preview.window_turns": "muniment.packets.compare:WindowTurns",
    "memory.content": _PART,
    "memory.ingest_otel": "muniment.handles.tracing:IngestRequest",
    "run.content": _PART,
    "run.observe": _EVENT,
    "run.observe_tool": _EVENT,
    "run.remember": _FACT,
    "run.propose": _FACT,
    "run.insight": "muniment.contracts.packet:InsightItem",
    "run.search": _SEARCH,
    "run.search.within": "muniment.memory.search:Within",
    "corpus.search": _SEARCH,
    "run.compose": "muniment.packets.builds:KeyedRequest",
    "run.compose.cues": "muniment.contracts.packet:Cues",
    "run.select_rules": _SELECTION,
    "run.step": "muniment.runs.steps:StepRequest",
    "run.claim": "muniment.runs.claims:ClaimRequest",
    "corpus.add": "muniment.memory._chunking:SourceRequest",
    "corpus.get": _CORPUS,
    "bank.records": _BANK,
    "bank.add_lesson": "muniment.learning.lesson_adding:LessonRequest",
    "rulebook.select": _SELECTION,
    "rulebook.canary": "muniment.rules.promotion:TrialRequest",
    "rulebook.promote": _SIGNED,
    "rulebook.retire": _SIGNED,
    "rulebook.rollback": "muniment.rules.promotion:RollbackRequest",
}
"""By operation: the record that checks its arguments, or the type of an argument that is checked by hand. By operation
and argument: the record that an object is converted to.
"""

_TELLING = frozenset(
    {"enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern",
     "format", "minItems", "maxItems", "$ref"}
)  # fmt: skip


def bound_schema(operation_id: str, name: str, components: Components) -> dict[str, Any] | None:
    """The schema of an argument's constraints beyond its type; None if there are none."""
    hint = _hint(operation_id, name)
    if hint is None or hint in (str, int, float, bool):
        return None
    try:
        made = without_null(generated(hint, components))
    except PydanticInvalidForJsonSchema:  # an argument read by a function has no schema of its own
        return None
    inner = made.get("items", {}) if made.get("type") == "array" else {}
    return made if _TELLING & (made.keys() | inner.keys()) else None


def _hint(operation_id: str, name: str) -> Any:
    own = _CHECKED_BY.get(f"{operation_id}.{name}")
    if isinstance(own, str):
        return _named(own)
    checked_by = _CHECKED_BY.get(operation_id)
    if checked_by is None:
        return None
    if not isinstance(checked_by, str):
        return _named(checked_by[name]) if name in checked_by else None
    record = _named(checked_by)
    assert issubclass(record, Record)
    return hints_of(record).get(name)


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without null, where null means omitted."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        kept = [kind for kind in kinds if kind != "null"]
        return schema | {"type": kept[0] if len(kept) == 1 else kept}
    choices = schema.get("anyOf")
    if not choices:
        return schema
    left = [each for each in choices if each.get("type") != "null"]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return left[0] | rest if len(left) == 1 else rest | {"anyOf": left}


# -- descriptions of arguments ----------------------------------------------------------------------------


_WORDS: Mapping[str, str] = {
    "accept": "Whether it becomes a fact.",
    "action": "What was done, as the agent has it.",
    "actions": "What is to be done next, in order.",
    "act": "Whether to act on what is found, or only to report it.",
    "after": "The position after which to go on, as it was answered.",
    "agent_id": "The agent.",
    "agent_types": "Which kinds of agent take part.",
    "allow_types": "Which types of rules may be chosen.",
    "answer": "What a model answered, with its marks.",
    "applicability": "When it applies.",
    "args": "What the tool was called with; it is found by it.",
    "bucket_key": "Its bucket, such as `I2|math|clarity_high`.",
    "bucket_keys": "The buckets to try it in alone.",
    "basis": "The store as the build saw it, as far as that can be had, or as it stands now.",
    "budget": "What may be spent.",
    "budgets": "What the run may use, by name.",
    "build": "Of an answer: the id of the build it was given. Its marks are resolved and kept with it.",
    "builds": "The ids of builds that were used.",
    "call_id": "The id under which the model made the call.",
    "category": "What kind of failure it is.",
    "claims": "The ids of claims that it is about.",
    "confidence": "How sure, from 0 to 1.",
    "constraints": "Checks of form, as records or as YAML; of a working state, what the work is bound by.",
    "content": "The words themselves, unchanged: they are what facts, claims and answers cite.",
    "cues": "Tags, entities, keywords or a time range to prefer.",
    "data": "The spans and logs: an object of OTLP's JSON, a list of those, or their text.",
    "decisions": "What was decided.",
    "default_user_id": "Whose it is where a span does not say.",
    "depends_on": "Ids of what it rests on; when one of them falls, it falls.",
    "description": "What it is about, in words.",
    "document_id": "The document.",
    "document_ids": "The documents.",
    "documents": "Texts to hold it against; or documents to add, each with its text.",
    "done_definition": "When the run is done.",
    "draft": "The draft.",
    "dry_run": "Only say what would be done.",
    "embedder": "The name of an embedder of the caller's, whose vectors are given.",
    "entities": "People, places and things it is about.",
    "entries_max": "Stop behind so many entries; the report says where to go on.",
    "event": "The id of an event.",
    "event_ids": "The ids of the events to look at.",
    "evidence": "Pointers to what it rests on.",
    "exclude": "Ids of events that are not to stand in it: what you send yourself.",
    "exclude_session": "Leave out what was said in this session.",
    "expected_revision": "Only if it is at this revision; else nothing is done.",
    "expected_version": "Only if it is at this version; else nothing is done.",
    "fact": "The id of a fact.",
    "fields": "Which fields the texts are of; all of a value unless given.",
    "filter": "Fields, and what they must equal or how they must compare: `$gt`, `$gte`, `$lt`, `$lte`, `$ne`.",
    "features": "What is known of the task, by name.",
    "force": "Also where nothing asks for it yet.",
    "goal": "What the work is for.",
    "grants": "Levels above the user's to write at; takes admin access.",
    "holder": "The user whose a thread is; who names one is shown no other's.",
    "id": "An id of your own; one that exists is refused.",
    "idempotency_key": "The same key writes once; the header does the same.",
    "in_view": "Ids of builds that the model still has before it, oldest first: the text says only what they do not.",
    "include_all": "Also what is no longer in force.",
    "intent": "What kind of work it is.",
    "is_preference": "Whether it is what the user prefers.",
    "k": "How many at most.",
    "keep": "Whether to keep that it was asked for.",
    "key": "What it is about, such as `user.city`. A new value for a key supersedes the old one or disputes it.",
    "kind": "Of this kind alone.",
    "length": "How many characters at most.",
    "level": "Into whose bank it goes.",
    "limits": "What it may use.",
    "looked_max": "How many of the newest builds and answers are looked through.",
    "matches": "How namespaces begin or end; `*` is any label.",
    "max_depth": "How many labels of a namespace are told at most.",
    "max_rules": "How many at most.",
    "max_tokens": "The budget of the text in tokens; the policy's unless given.",
    "media_type": "How the text is to be read.",
    "messages": "The messages of the whole session, as an API has them: Chat Completions, Responses or Anthropic.",
    "metadata": "Anything else, kept with it.",
    "min_score": "Leave out what is less likely evidence than this.",
    "mode": "How thoroughly.",
    "name": "The name of the tool.",
    "names": "Names of values: a namespace and a key each.",
    "namespace": "The labels that it stands below.",
    "notes": "Anything a reader should know.",
    "objective": "What the run is for.",
    "ok": "Whether the tool did what it was asked.",
    "offset": "How many to leave out first.",
    "output": "What was made.",
    "per_section": "A budget in tokens for a section, by its name.",
    "perspective_id": "The perspective.",
    "plan": "The plan.",
    "pointer": "An event id, or a place in an event, in a chunk of a document, or in a source.",
    "policy": "`default` for the store's own, or an object of what differs from it.",
    "priority": "Which of several comes first: the higher.",
    "prompt_profile": "For which prompt.",
    "purpose": "Who reads it: a `responder` is told only what is known, a `planner` and a `tool` more.",
    "query": "The question or task at hand.",
    "question": "The question.",
    "quick": "Look at a sample.",
    "quote": "The decisive words; they must stand in a source, verbatim.",
    "reason": "Why.",
    "removed": "Names under which nothing is to stand any more; history stays.",
    "repair": "Take a locked run to put it right.",
    "resolution": "How it was settled.",
    "resume": "Where to go on, as an earlier report says.",
    "revision": "Which revision; the newest unless given.",
    "risks": "What may go wrong.",
    "role": "Whose words these are.",
    "run_id": "An id of your own for the run; one that exists is taken up again.",
    "scope_level": "Whom it holds for; above the user takes a grant.",
    "sections": "The sections.",
    "sequence": "Which snapshot; the latest unless given.",
    "session": "The id of a session.",
    "session_id": "The session; runs of one session are one conversation.",
    "share": "With which share of the runs it is tried.",
    "signed_by": "Who answers for it.",
    "slots": "Values by name; they merge, and a null takes a name away.",
    "source": "Where it comes from.",
    "sources": "Ids of the events that say so.",
    "speaker": "The speaker's name, where several share a role.",
    "start": "From which character on.",
    "state": "The state.",
    "statement": "It, in one sentence.",
    "status": "Its status.",
    "step": "The number of the step.",
    "stop_reason": "Why it ends.",
    "tags": "Short labels.",
    "task_type": "What kind of task it is.",
    "tests_suggested": "How it could be tested.",
    "text": "The words.",
    "title": "Its title.",
    "to": "The revision to go back to.",
    "tokens": "How many tokens it took.",
    "tool_evidence": "What tools showed.",
    "top_k": "How many at most.",
    "trigger": "What gave rise to it.",
    "trust": "Lowers what the words count for: `external` for pages, files and mail of others.",
    "ttl": "How long it holds.",
    "type": "Its type.",
    "type_": "Its type.",
    "validation_state": "How far it was tested.",
    "value": "The value: text, a number, or any JSON.",
    "vector": "What the query comes to by the caller's embedder.",
    "verifier_result": "What a verifier said of it.",
    "where": "Where it happened.",
    "window_turns": "How many of the last turns stand as they are.",
    "why": "Why it happened.",
    "within": "Where to look: conditions on events that hold together.",
}
"""Descriptions by argument name."""

_TIMES: Mapping[str, str] = {
    "at": "The point in time that is asked about, ISO 8601.",
    "end": "Before then, ISO 8601.",
    "expires_at": "When it ends, ISO 8601, or with the run: `run_end`.",
    "now": "The moment it is asked at, against which “last week” is read, ISO 8601; later turns are not hidden.",
    "since": "From then on, ISO 8601.",
    "start": "From then on, ISO 8601.",
    "ts": "When it happened, ISO 8601; now unless given.",
    "until": "Before then, ISO 8601.",
    "valid_from": "Since when it holds, ISO 8601.",
    "valid_to": "Until when it holds, ISO 8601.",
}

_HERE: Mapping[str, str] = {
    "values.put.values": "What is put, each under its name, with the texts or vectors that searches compare.",
    "values.fill.values": "Texts or vectors of values that a search told as unread.",
    "values.search.limit": "How many at most; 10 unless given.",
    "values.sweep.erase": "Forget what has expired, so that no history of it stays.",
    "values.search.query": "What is looked for; what changed last comes first where nothing is.",
    "values.history.key": "The key of the value.",
    "threads.put.checkpoint": "The checkpoint, its parts as a serializer made them.",
    "threads.put_writes.writes": "What the task wrote, in order.",
    "threads.put_writes.replaces": "Whether it takes the place of what the task wrote before under the same numbers.",
    "threads.put_writes.namespace": "The namespace of the checkpoint.",
    "threads.put_writes.thread_id": "The thread.",
    "threads.put_writes.checkpoint_id": "The checkpoint after which it was written.",
    "threads.get.namespace": "The namespace of the checkpoint.",
    "threads.get.thread_id": "The thread.",
    "threads.get.checkpoint_id": "The checkpoint; the last one unless given.",
    "threads.checkpoints.thread_id": "The thread; all of them unless given.",
    "threads.checkpoints.namespace": "A namespace of the thread; all of them unless given.",
    "threads.checkpoints.checkpoint_id": "Of this id alone.",
    "threads.checkpoints.before": "Of a lower id alone.",
    "threads.checkpoints.limit": "How many at most; 100 unless given.",
    "threads.checkpoints.after": "Where to go on: `more` of the page before.",
    "threads.copy.thread_id": "The thread that is copied.",
    "threads.copy.to": "The thread that it is copied to.",
    "threads.forget.thread_id": "The thread.",
    "threads.forget.keep": "Checkpoints of it that stay: written anew, before the rest is forgotten.",
    "memory.run.start": "Write the entry that says the run started; else it is only looked at.",
    "memory.why.text": "Some words that were told.",
    "memory.forget.event": "The id of an event to erase, with all that was derived from it.",
    "memory.forget.fact": "The id of a fact to erase.",
    "memory.forget.session": "The id of a session to erase.",
    "memory.verify.resume": "Where to go on, as the report before said.",
    "run.facts.key": "Only facts of this key.",
    "run.verify.documents": "Texts to hold its facts against.",
    "run.verify.event": "The id under which the output was observed.",
    "run.step.event": "Which event of the step machine it is, such as `ACT_DONE`.",
    "study.supply.sources": "What was read, each with its address and text.",
    "study.ingest.sources": "What was read, each with its address and text.",
}
"""Descriptions by operation and argument, where the name alone would say too little."""


def words_of(operation_id: str, name: str, *, is_time: bool = False) -> str:
    """The description of an argument; empty if its name is enough."""
    own = _HERE.get(f"{operation_id}.{name}")
    return own or (_TIMES.get(name, "") if is_time else _WORDS.get(name, ""))
