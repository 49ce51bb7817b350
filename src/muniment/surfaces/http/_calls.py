"""From an address to an answer: the operation, its access check, arguments, handle and conditions; then the call
itself, in a worker thread, and its answer in bytes.

Addresses are split into segments before decoding, so that an id may hold a slash (`docs%2Fsetup.md`) and no id can
reach into another part of the path. Conditions are checked in the transaction of the write they are for: If-Match, and
Idempotency-Key (LG-06). A request with one gets its own context: the same store, caches and policy, but an engine that
checks the condition first in the first transaction that writes. Paths on the server's machine are shown only to those
who administer the server.
"""

from __future__ import annotations

import copy
import os
import re
import types
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union, cast, get_args, get_origin
from urllib.parse import unquote_to_bytes

from muniment.core.canonical import canonical_bytes, digest, digest_of, salted_digest
from muniment.core.listing import PAGE_MAX, PAGE_SIZE, Listing, Page
from muniment.core.ports.engine import Engine, EngineInfo, Lock, Reader, Transaction
from muniment.core.ports.models import Ids
from muniment.core.ports.rows import get
from muniment.core.ports.schema import ENTRIES, IDEMPOTENCY_KEYS, IdempotencyKeyRow
from muniment.core.record import Record
from muniment.core.scope import UserScope, is_reserved, scope_given, scope_of
from muniment.errors import (
    Conflict,
    Forbidden,
    Forgotten,
    IdempotencyMismatch,
    InvalidInput,
    InvalidRecord,
    MunimentError,
    NotFound,
    StaleState,
    UnknownRoute,
    WrongMethod,
)
from muniment.handles.bank import Bank
from muniment.handles.memory import Memory, granted
from muniment.handles.run import Run
from muniment.handles.study import Study, StudyStatus
from muniment.store.append import put_keys
from muniment.store.context import Context
from muniment.store.items import Item, latest
from muniment.store.reading import check_own
from muniment.store.tombstones import forgotten, load_entry
from muniment.surfaces.operations.shapes import Listed
from muniment.surfaces.operations.table import Level, Operation, owner_named
from muniment.surfaces.operations.works import Works

if TYPE_CHECKING:
    from muniment.surfaces.http._guard import Caller

__all__ = [
    "LINES",
    "RUN_CONTEXT",
    "THE_STORE",
    "VALUES_CONTEXT",
    "AdmittedRequest",
    "Answer",
    "KeyedRequest",
    "MatchedRoute",
    "Repeated",
    "Route",
    "Router",
    "Versioned",
    "body_arguments",
    "carry_out",
    "check_access",
    "check_grants",
    "guarded",
    "hide_places",
    "key_hash",
    "match_version",
    "name_run",
    "open_handle",
    "place_study",
    "places_of",
    "plain_result",
    "problem_line",
    "query_arguments",
    "routes_of",
    "sees",
    "segments_of",
    "tell_study",
    "versioned_id",
]

JSON, LINES = "application/json", "application/x-ndjson"
_CHUNK_BYTES = 1 << 16


class AdmittedRequest(NamedTuple):
    """A request that was read and admitted."""

    found: MatchedRoute
    own: Mapping[str, Any]
    """The method's arguments."""
    run: Mapping[str, Any]
    """The run's context from the query."""
    wants_lines: bool
    request: KeyedRequest | None
    """The request's idempotency key, if it must be guarded."""
    version: int | None
    """The version given in If-Match."""
    research_dir: Path
    is_told_places: bool = True
    """True if the caller may see where the store and its files are."""


class Answer(NamedTuple):
    status: int
    media: str
    body: bytes | Iterator[bytes] | AsyncIterator[bytes]
    etag: str | None = None


def carry_out(
    memory: Memory, works: Works, asked: AdmittedRequest, progress: Callable[[int], None] | None = None
) -> Answer:
    """Carry out a request and encode its answer; a stream has begun when this returns."""
    operation, found = asked.found.route.operation, asked.found
    if operation.is_paged and not asked.wants_lines and (asked.own.get("limit") or 0) > PAGE_MAX:
        raise InvalidInput(
            f"limit is a whole number from 1 to {PAGE_MAX}", path="$.limit", hint=f"leave it out for {PAGE_SIZE}"
        )
    opened = _opened(memory, works, asked)
    etag = None if operation.takes_body else _etag(opened, found)  # before the answer: an outdated one fails safe
    result = _call(opened, asked, progress)
    return _answer(asked, result, _etag(opened, found) if operation.takes_body else etag)


def plain_result(memory: Memory, works: Works, asked: AdmittedRequest, progress: Callable[[int], None]) -> Any:
    """The answer as plain data, for work whose result is fetched later."""
    return _encoded(asked, _call(_opened(memory, works, asked), asked, progress))


class _Opened(NamedTuple):
    """The handle a request is carried out on."""

    memory: Memory
    handle: Any
    versioned: Versioned | None
    """The item whose version is the operation's ETag."""


def _opened(memory: Memory, works: Works, asked: AdmittedRequest) -> _Opened:
    found = asked.found
    operation = found.route.operation
    if operation.handle == "works":
        return _Opened(memory, works, None)
    versioned = None
    if operation.versioned is not None:
        versioned = Versioned(versioned_id(found), lambda item: sees(handle, found, item))
    if asked.request is not None or asked.version is not None:
        memory = Memory(guarded(memory._ctx, asked.request, versioned, asked.version))
    handle = open_handle(memory, found, asked.run)
    return _Opened(memory, handle, versioned)


def _etag(opened: _Opened, found: MatchedRoute) -> str | None:
    """The version of the operation's subject as an ETag; None if it has none."""
    versioned = opened.versioned
    if versioned is None:
        return None
    return f'"{opened.memory._ctx.engine.read(found.names["tenant_id"], versioned.version)}"'


def _call(opened: _Opened, asked: AdmittedRequest, progress: Callable[[int], None] | None) -> Any:
    memory, handle, found = opened.memory, opened.handle, asked.found
    operation, names = found.route.operation, found.names
    if isinstance(getattr(type(handle), operation.call, None), property):
        held = getattr(handle, operation.call)
        is_hidden = isinstance(held, EngineInfo) and not asked.is_told_places
        return held._replace(location=THE_STORE) if is_hidden else held
    taken = operation.takes_names
    arguments = dict(asked.own) | {name: names[name] for name in names if name in taken}
    if progress is not None and "progress" in taken:
        arguments["progress"] = progress
    if operation.makes_folder:
        place_study(memory, found, arguments, asked.research_dir)
    return operation.target(handle, **arguments)


# -- answers ------------------------------------------------------------------------------------------


def _answer(asked: AdmittedRequest, result: Any, etag: str | None) -> Answer:
    operation = asked.found.route.operation
    returns = operation.signature.returns
    if operation.media == LINES:
        return Answer(operation.status, LINES, _started(iter(result)))
    if operation.media != JSON:
        return _hashed(Answer(operation.status, f"{operation.media}; charset=utf-8", str(result).encode(), etag))
    if returns is type(None):
        return Answer(204, JSON, b"")
    if isinstance(result, bytes):
        return _hashed(Answer(operation.status, JSON, result, etag))
    if operation.is_listed:
        return _list(asked, result)
    body = canonical_bytes(_encoded(asked, result))
    answer = Answer(operation.status, JSON, body, etag)
    return answer if operation.takes_body else _hashed(answer)


def _encoded(asked: AdmittedRequest, result: Any) -> Any:
    plain = asked.found.route.operation.shape.encode(result)
    return plain if asked.is_told_places else tell_study(result, plain, asked.research_dir)


def _list(asked: AdmittedRequest, result: Iterable[Any]) -> Answer:
    operation, found = asked.found.route.operation, asked.found
    inner = _listed(found).inner
    if asked.wants_lines:
        lines = (canonical_bytes(inner.encode(each)) + b"\n" for each in result)
        return Answer(operation.status, LINES, _started(lines))
    page = result.page() if isinstance(result, Listing) else Page(list(result), None)
    answer = _page(operation.status, page._replace(items=[inner.encode(each) for each in page.items]))
    return answer if operation.takes_body else _hashed(answer)


def _listed(found: MatchedRoute) -> Listed:
    shape = found.route.operation.shape
    assert isinstance(shape, Listed)
    return shape


def _page(status: int, page: Page[Any]) -> Answer:
    told = {"items": page.items, "next": page.next, "count": page.total}
    return Answer(status, JSON, canonical_bytes({name: each for name, each in told.items() if each is not None}))


def _hashed(answer: Answer) -> Answer:
    """The answer with an ETag of its bytes, if it has none of a version."""
    if answer.etag is not None or not isinstance(answer.body, bytes):
        return answer
    return answer._replace(etag=f'"{sha256(answer.body).hexdigest()[:32]}"')


def _started(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Fetch a stream's first line, so that early failures are reported as errors."""
    first = next(lines, b"")
    return _chunked(chain((first,), lines))


def _chunked(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Group lines into chunks. An error midway is the last line: `{"problem": …}`."""
    held: list[bytes] = []
    size = 0
    try:
        for line in lines:
            held.append(line)
            size += len(line)
            if size >= _CHUNK_BYTES:
                yield b"".join(held)
                held, size = [], 0
    except MunimentError as error:
        held.append(problem_line(error))
    if held:
        yield b"".join(held)


def problem_line(error: MunimentError) -> bytes:
    return canonical_bytes({"problem": error.to_dict() | {"status": error.status}}) + b"\n"


def match_version(header: str | None, found: MatchedRoute) -> int | None:
    """The version given in If-Match; None if it names none, or any."""
    if header is None:
        return None
    operation = found.route.operation
    if operation.versioned is None or not operation.takes_body:
        raise InvalidInput("If-Match is not taken here", path="$", hint="it goes with a change of what has a version")
    if header.strip() == "*":
        return None
    named = header.strip().removeprefix('"').removesuffix('"')
    if header.strip() != f'"{named}"' or not named.isascii() or not named.isdigit() or len(named) > 15:
        raise InvalidInput("If-Match should be the ETag that was answered", path="$", hint='such as "3"')
    return int(named)


# -- arguments ----------------------------------------------------------------------------------------


RUN_CONTEXT: Mapping[str, Any] = {
    "agent_id": str,
    "session_id": str,
    "task_type": str,
    "grants": list[str],
    "repair": bool,
}
"""Query arguments for the scope of a run that has not started yet, and for its handle's permissions."""
VALUES_CONTEXT: Mapping[str, Any] = {"user_at": int}
"""Query argument for the index of the namespace label that names a value's user."""
_SEQUENCES = (list, tuple, Iterable, Sequence)


@cache
def _kinds_of(route: Route) -> Mapping[str, tuple[str, Any]]:
    """The allowed query names: the part of the request each belongs to, and its type."""
    operation = route.operation
    known: dict[str, Mapping[str, Any]] = {}
    if not operation.takes_body:
        known["own"] = {each.name: each.hint for each in operation.parameters(route.template)}
    if operation.handle == "run":
        known["run"] = dict(RUN_CONTEXT) | ({} if route.names_run else {"run_id": str})
    if operation.handle == "values":
        known["run"] = VALUES_CONTEXT
    return {name: (part, hint) for part, names in known.items() for name, hint in names.items()}


@cache
def _records_of(route: Route) -> Mapping[str, type[Record] | None]:
    """The allowed body names, and the record that each object is converted to."""
    return {each.name: _record_of(each.hint) for each in route.operation.parameters(route.template)}


@cache
def _required_of(route: Route) -> tuple[str, ...]:
    parameters = route.operation.parameters(route.template)
    return tuple(each.name for each in parameters if each.is_required and each.name != route.operation.body)


def query_arguments(route: Route, pairs: Sequence[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """Read the query's arguments, under `own` and `run`; unknown and repeated names are refused."""
    kinds = _kinds_of(route)
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in kinds:
            hint = f"there are {', '.join(sorted(kinds))}" if kinds else "it takes none"
            raise InvalidInput(f"no parameter {name!r:.40} here", path=f"$.{name:.40}", hint=hint)
        given.setdefault(name, []).append(value)
    found: dict[str, dict[str, Any]] = {"own": {}, "run": {}}
    for name, values in given.items():
        part, hint = kinds[name]
        found[part][name] = _read(name, hint, values)
    if not route.operation.takes_body:
        _check_required(route, found["own"])
    return found


def body_arguments(route: Route, body: Any) -> dict[str, Any]:
    """Read the body's arguments: an object whose keys are arguments, or one argument as a whole."""
    operation = route.operation
    if operation.body is not None:
        return {operation.body: body}
    if not isinstance(body, dict):
        raise InvalidInput("the body should be a JSON object", path="$")
    records = _records_of(route)
    for name in body:
        if name in records:
            continue
        if name in operation.left_out:
            raise InvalidInput(f"{name} is not taken here", path=f"$.{name}", hint=operation.left_out[name])
        is_free = operation.signature.extra is not None and name not in operation.named_in(route.template)
        if not is_free or name in ("tenant_id", "user_id", "self"):
            raise InvalidInput(
                f"an unknown key {name!r:.40}", path=f"$.{name:.40}", hint=f"there are {', '.join(sorted(records))}"
            )
    _check_required(route, body)
    return {name: _as_record(name, records.get(name), value) for name, value in body.items()}


def _record_of(hint: Any) -> type[Record] | None:
    """The record that a method requires where it would not accept a plain object."""
    kinds = _alternatives(hint)
    if any(get_origin(each) in (dict, Mapping) or each is Any for each in kinds):
        return None
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, Record)), None)


def _as_record(name: str, record: type[Record] | None, value: Any) -> Any:
    if record is None or not isinstance(value, dict):
        return value
    try:
        return record.from_wire(value)
    except InvalidRecord as error:
        raise error.within(f"$.{name}") from None


def _check_required(route: Route, given: Mapping[str, Any]) -> None:
    for name in _required_of(route):
        if name not in given:
            raise InvalidInput(f"{name} is missing", path=f"$.{name}")


def _read(name: str, hint: Any, values: list[str]) -> Any:
    kinds = [each for each in _alternatives(hint) if each is not types.NoneType]
    kind = kinds[0] if kinds else str
    if get_origin(kind) in _SEQUENCES:
        return values
    if len(values) > 1:
        raise InvalidInput(f"{name} stands twice", path=f"$.{name}")
    (value,) = values
    if bool in kinds:
        if value not in ("true", "false"):
            raise InvalidInput(f"{name} should be true or false", path=f"$.{name}")
        return value == "true"
    if int in kinds:
        if not value.removeprefix("-").isascii() or not value.removeprefix("-").isdigit() or len(value) > 18:
            raise InvalidInput(f"{name} should be a whole number", path=f"$.{name}")
        return int(value)
    return value


def _alternatives(hint: Any) -> Sequence[Any]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


# -- handles ------------------------------------------------------------------------------------------


_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ANY_USER = "u"
"""Placeholder for the user if an address names only a tenant: a name that is always valid."""


def open_handle(memory: Memory, found: MatchedRoute, context: Mapping[str, Any]) -> Any:
    """Open the operation's handle; `context` is the run's context from the query."""
    names, tenant_id = found.names, found.names.get("tenant_id", "")
    _check_names(names)
    _check_owned(memory, found)
    match found.route.operation.handle:
        case "memory":
            return memory
        case "run":
            return _open_run(memory, found, context)
        case "corpus":
            return memory.corpus(names["corpus_id"], tenant_id=tenant_id, user_id=names.get("user_id"))
        case "bank":
            return memory.bank(user_id=names.get("user_id"), agent_id=names.get("agent_id"), tenant_id=tenant_id)
        case "rulebook":
            return memory.rulebook(user_id=names.get("user_id"), agent_id=names.get("agent_id"), tenant_id=tenant_id)
        case "values":
            user_at = context.get("user_at")
            return memory.store.values(
                names["space"], user_at=user_at, user_id=names.get("user_id"), tenant_id=tenant_id
            )
        case "threads":
            return memory.store.threads(names["space"], user_id=names.get("user_id"), tenant_id=tenant_id)
        case "study":
            check_own(memory._ctx, tenant_id, names["user_id"], "run", names["run_id"], "$.run_id")
            return memory.open_research(names["run_id"], tenant_id=tenant_id)


def name_run(found: MatchedRoute, own: Mapping[str, Any], context: dict[str, Any]) -> None:
    """Derive the run id of a request without one from its idempotency key, so that a retry gets the same run."""
    key = own.get("idempotency_key")
    if isinstance(key, str) and found.route.operation.handle == "run" and not found.route.names_run:
        context.setdefault("run_id", f"run_{digest_of(['muniment.keyed_run.v1', found.names['user_id'], key])[:32]}")


def _open_run(memory: Memory, found: MatchedRoute, context: Mapping[str, Any]) -> Run:
    """Open the named run in its current state or, if it has not started, with the query's context."""
    names, said = found.names, dict(context)
    repair = said.pop("repair", False)
    scope: dict[str, Any] = {"tenant_id": names["tenant_id"], "user_id": names["user_id"]}
    if not found.route.names_run:
        return memory.run(**scope, **said)
    run_id, starts = names["run_id"], found.route.operation.access != "read"
    if "agent_id" not in said and "session_id" not in said:
        item = _as_it_stands(memory, scope, run_id, starts=starts)
        if item is not None:
            return _taken_up(memory, scope, item, said, repair=repair)
    elif not starts:
        return _only_read(memory, scope, run_id, said, repair=repair)
    run = memory.run(**scope, run_id=run_id, **({"session_id": run_id} | said))
    if not repair:
        return run
    return Run(memory._ctx, run.scope, run._task_type, None, None, run._grants, repairs=True)


def _as_it_stands(memory: Memory, scope: Mapping[str, str], run_id: str, *, starts: bool) -> Item | None:
    """The stored run; None if there is none, and a write starts it, in a new session.

    If the id is another user's, a write is refused like any other id taken in the tenant.
    """
    item = _own_run(memory, scope, run_id)
    if item is None and not starts:
        raise NotFound(
            f"no run {run_id!r:.80} in this scope",
            path="$.run_id",
            hint="POST …/runs starts one; or name agent_id and session_id in the query",
        )
    return item


def _own_run(memory: Memory, scope: Mapping[str, str], run_id: str) -> Item | None:
    item = memory._ctx.engine.read(scope["tenant_id"], lambda reader: latest(reader, run_id))
    return None if item is None or item.kind != "run" or item.user_id != scope["user_id"] else item


def _only_read(memory: Memory, owner: Mapping[str, Any], run_id: str, said: Mapping[str, Any], *, repair: bool) -> Run:
    """The handle of a run that is only read, under the session and agent of the query. It does not claim the id: if the
    user has no such run, it has not started, even if another user has one (LG-02).
    """
    run = memory.run(**owner, **({"session_id": run_id} | dict(said)))
    scope = scope_given({**run.scope.to_wire(), "run_id": run_id})
    item = _own_run(memory, owner, run_id)
    return Run(
        memory._ctx, scope, run._task_type, None, None, run._grants,
        repairs=bool(repair), found=item, is_new=item is None,
    )  # fmt: skip


def _taken_up(memory: Memory, owner: Mapping[str, str], item: Item, said: Mapping[str, Any], *, repair: bool) -> Run:
    """The handle of an existing run, from the state already read."""
    scope = scope_of({**owner, "agent_id": item.agent_id, "session_id": item.session_id, "run_id": item.id})
    known = "generic" if item.body is None else item.plain().get("task_type", "generic")
    grants = granted(said.get("grants", ()))
    return Run(memory._ctx, scope, said.get("task_type", known), None, None, grants, repairs=bool(repair), found=item)


def _check_names(names: Mapping[str, str]) -> None:
    """Check the address's owner: names valid for a tenant and a user, and neither all tenants nor a corpus or bank."""
    if "tenant_id" not in names:
        return
    owner = {"tenant_id": names["tenant_id"], "user_id": names.get("user_id", _ANY_USER)}
    scope = UserScope.of_given(owner, "not a valid scope")
    if scope.tenant_id == "*" or is_reserved(scope.user_id):
        raise InvalidInput("that is not the name of a tenant or a user", path="$")


def _check_owned(memory: Memory, found: MatchedRoute) -> None:
    """Check that the items named in a user's path belong to that user."""
    names = found.names
    if "user_id" not in names:
        return
    for name, kind in found.route.operation.owned.items():
        check_own(memory._ctx, names["tenant_id"], names["user_id"], kind, names[name], f"$.{name}")


def versioned_id(found: MatchedRoute) -> str:
    """The id of the item whose version is the operation's ETag."""
    from muniment.memory.working_state import state_id

    named = found.route.operation.versioned
    return state_id(found.names["run_id"]) if named == "state" else found.names[str(named)]


_VERSIONED = {"fact_id": "fact", "plan_id": "plan", "state": "working_state"}
"""The kind of the item whose version is the ETag, by the name of the operation's parameter."""


def sees(handle: Any, found: MatchedRoute, item: Item) -> bool:
    """True if the caller may see this item. For a run: the user's own, or inherited; for a bank: its own."""
    if item.kind != _VERSIONED[str(found.route.operation.versioned)]:
        return False
    if isinstance(handle, Bank):
        return item.user_id == handle._owner
    scope = handle.scope
    return item.user_id == scope.user_id or (item.user_id is None and item.agent_id in (None, scope.agent_id))


def place_study(memory: Memory, found: MatchedRoute, arguments: dict[str, Any], root: Path) -> None:
    """Put a research run's files under the server's own root, separated by tenant; callers name no folder."""
    run_id = arguments.get("run_id") or memory._ctx.ids.new("run")
    if not isinstance(run_id, str) or not _FOLDER.fullmatch(run_id):
        raise InvalidInput("the run's id cannot name a folder", path="$.run_id", hint="letters, digits, '-', '_', '.'")
    tenant = digest_of(found.names["tenant_id"])[:16]
    arguments |= {"run_id": run_id, "directory": root / tenant / run_id}


# -- conditions ---------------------------------------------------------------------------------------


T = TypeVar("T")


class Repeated(Conflict):
    """Raised if the same request was carried out before; `details.event_id` is its entry."""

    usual_hint = "it was done; read what stands now: its answer is no longer kept"


class KeyedRequest(NamedTuple):
    """A request with an idempotency key, and its owner."""

    tenant_id: str
    user_id: str
    key: str
    said: bytes
    """The request's content, to detect a different request under the same key."""


def key_hash(request: KeyedRequest) -> bytes:
    """The hash of an idempotency key, as the ledger has it: `observe` and other operations share one key space."""
    return digest(canonical_bytes(["muniment.idempotency.v1", request.tenant_id, request.user_id, request.key]))


class Versioned(NamedTuple):
    """The subject of an ETag or If-Match: an item, as far as the caller may see it."""

    item_id: str
    sees: Callable[[Item], bool]

    def version(self, reader: Reader) -> int:
        """The number of the item's newest version; 0 if there is none, or if it is another user's (X-09)."""
        item = latest(reader, self.item_id)
        return 0 if item is None or not self.sees(item) else item.version


def guarded(ctx: Context, request: KeyedRequest | None, versioned: Versioned | None, wanted: int | None) -> Context:
    """The context that a request is carried out in; the store's own if there is no condition."""
    if request is None and wanted is None:
        return ctx
    for name in ("counter", "derived"):
        getattr(ctx, name)  # made once, by the permanent context
    own = copy.copy(ctx)
    noted = _NotedIds(ctx.ids)
    own.ids = noted
    first, last = _first(request, versioned, wanted), _last(request, noted)
    own.engine = cast("Engine", _GuardedEngine(ctx.engine, first, _next_of(versioned, wanted), last))
    return own


def _first(
    request: KeyedRequest | None, versioned: Versioned | None, wanted: int | None
) -> Callable[[Transaction], None]:
    def check(tx: Transaction) -> None:
        if request is not None:
            _check_key(tx, request)
        if versioned is not None and wanted is not None:
            tx.do(Lock(("if_match", versioned.item_id)))  # requests that name a version go one at a time
            _must_be(tx, versioned, (wanted,))

    return check


def _next_of(versioned: Versioned | None, wanted: int | None) -> Callable[[Transaction], None]:
    """Check that the written version is the expected one: requests without a version take no lock and may have come
    between.
    """

    def check(tx: Transaction) -> None:
        if versioned is not None and wanted is not None:
            _must_be(tx, versioned, (wanted, wanted + 1))

    return check


def _must_be(tx: Transaction, versioned: Versioned, versions: tuple[int, ...]) -> None:
    current = versioned.version(tx)
    if current not in versions:
        words = f"it is at version {current}, not {versions[0]}"
        raise StaleState(words, details={"id": versioned.item_id, "current_version": current})


def _check_key(tx: Transaction, request: KeyedRequest) -> None:
    named = key_hash(request)
    tx.do(Lock(("idempotency", request.user_id, named.hex())))
    key = get(tx, IDEMPOTENCY_KEYS, (request.user_id, named))
    if key is None:
        return
    entry_id = key.entry_id
    entry_row = get(tx, ENTRIES, (entry_id,))
    said = "what this idempotency key wrote was forgotten"
    if entry_row is None:
        raise Forgotten(said, details={"id": entry_id, "receipt_id": None})
    entry = load_entry(tx, request.tenant_id, entry_row)
    if entry.is_forgotten:
        raise forgotten(entry, said)
    if key.request_hash != salted_digest(entry_row.salt or b"", request.said):
        raise IdempotencyMismatch("this idempotency key was used for another request", details={"id": entry_id})
    raise Repeated("this was done before under the same idempotency key", details={"event_id": entry_id})


def _last(request: KeyedRequest | None, noted: _NotedIds) -> Callable[[Transaction], bool]:
    """Store the key with the first event written; returns whether there was one."""

    def remember(tx: Transaction) -> bool:
        if request is None:
            return True
        for entry_id in noted.events:
            row = get(tx, ENTRIES, (entry_id,))
            if row is not None:
                said = salted_digest(row.salt or b"", request.said)
                put_keys(tx, [IdempotencyKeyRow(request.user_id, key_hash(request), entry_id, said)])
                return True
        return False

    return remember


class _NotedIds:
    """The store's ids; event ids are recorded as they are minted."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self.events: list[str] = []

    def new(self, prefix: str) -> str:
        made = self._ids.new(prefix)
        if prefix == "evt":
            self.events.append(made)
        return made

    def salts(self, count: int) -> list[bytes]:
        return self._ids.salts(count)


class _GuardedEngine:
    """An engine whose first writing transaction begins with `first` and ends with `then`. `last` ends that one and
    later ones until it is satisfied.
    """

    def __init__(
        self,
        engine: Engine,
        first: Callable[[Transaction], None],
        then: Callable[[Transaction], None],
        last: Callable[[Transaction], bool],
    ) -> None:
        self._engine, self._first, self._then, self._last = engine, first, then, last
        self._is_checked = self._is_kept = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def write(self, tenant_id: str, work: Callable[[Transaction], T]) -> T:
        def held(tx: Transaction) -> tuple[T, bool]:
            if not self._is_checked:
                self._first(tx)
            answer = work(tx)
            if not self._is_checked:
                self._then(tx)
            return answer, self._is_kept or self._last(tx)

        answer, self._is_kept = self._engine.write(tenant_id, held)
        self._is_checked = True
        return answer


# -- local paths --------------------------------------------------------------------------------------


THE_STORE = "the store"
"""The replacement for local paths shown to unprivileged callers."""


def places_of(location: str, research_dir: Path) -> tuple[tuple[str, str], ...]:
    """The paths to hide, each with its replacement."""
    folders = dict.fromkeys(f"{folder}{os.sep}" for folder in (research_dir.absolute(), research_dir))
    found = [(folder, "") for folder in folders if len(folder) > len(os.sep)]
    return ((location, THE_STORE), *found) if os.sep in location else tuple(found)


def hide_places(told: Any, places: Sequence[tuple[str, str]]) -> Any:
    """Replace these paths in plain data."""
    if isinstance(told, dict):
        return {name: hide_places(value, places) for name, value in told.items()}
    if isinstance(told, list | tuple):
        return [hide_places(value, places) for value in told]
    if isinstance(told, str):
        for place, name in places:
            told = told.replace(place, name)
    return told


def tell_study(result: Any, plain: Any, research_dir: Path) -> Any:
    """Show a research run, or its state, with its folder below the server's own; anything else is unchanged."""
    if not isinstance(result, Study | StudyStatus):
        return plain
    return {**plain, "directory": hide_places(plain["directory"], places_of("", research_dir))}


# -- routes -------------------------------------------------------------------------------------------


SEGMENTS_MAX = 32


@dataclass(frozen=True, eq=False)
class Route:
    """One address of an operation. Made once, so that derived values can be cached by it."""

    operation: Operation
    level: Level
    template: str

    @cached_property
    def names_run(self) -> bool:
        return "{run_id}" in self.template


class MatchedRoute(NamedTuple):
    route: Route
    names: Mapping[str, str]
    """The path's parameters, decoded."""


@dataclass
class _Node:
    literals: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    named: tuple[str, ...] = ()
    """The parameters on the path to this node."""
    routes: dict[str, dict[Level, Route]] = field(default_factory=dict)
    """By method and, if the address names an owner, by the owner's level."""

    def route_of(self, method: str, names: dict[str, str]) -> Route | None:
        """The route of a method for these names, to which the owner's id is added."""
        routes = self.routes.get(method)
        if routes is None:
            return None
        if "owner" not in names:
            return next(iter(routes.values()))
        found = owner_named(names["owner"])
        if found is None:
            raise InvalidInput("an owner is user:ID, agent:ID or tenant", path="$.owner")
        level, ids = found
        names |= ids
        return routes.get(level)


def routes_of(operations: Iterable[Operation]) -> Iterator[Route]:
    """Every address of every operation."""
    for operation in operations:
        for level, template in operation.routes.items():
            yield Route(operation, level, template)
        if operation.free_route is not None:
            yield Route(operation, "user", operation.free_route)


def segments_of(raw_path: bytes) -> tuple[str, ...]:
    """Split a path as sent, and decode its segments."""
    parts = raw_path.split(b"/")[1:]
    if len(parts) > SEGMENTS_MAX:
        raise UnknownRoute("the path has too many parts")
    try:
        return tuple(unquote_to_bytes(part).decode() for part in parts)
    except UnicodeDecodeError:
        raise InvalidInput("the path is not percent-encoded UTF-8", path="$") from None


class Router:
    """A tree of path segments; literal segments take precedence over parameters."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            node = self._root
            for part in route.template.split("/")[1:]:
                if part.startswith("{"):
                    node.parameter = node.parameter or _Node()
                    node = node.parameter
                else:
                    node = node.literals.setdefault(part, _Node())
            node.named = route.operation.named_in(route.template)
            node.routes.setdefault(route.operation.method, {})[route.level] = route

    def find(self, method: str, segments: tuple[str, ...]) -> MatchedRoute:
        """Find the route and its parameters; raises if there is none, or none with this method."""
        allowed: set[str] = set()
        for node, values in _matches(self._root, segments, ()):
            asked = "GET" if method == "HEAD" else method
            names = dict(zip(node.named, values, strict=True))
            route = node.route_of(asked, names)
            if route is not None:
                return MatchedRoute(route, names)
            allowed |= node.routes.keys()
        if allowed:
            allowed |= {"HEAD"} if "GET" in allowed else set()
            raise WrongMethod(f"{method:.20} is not taken there", details={"allowed": sorted(allowed)})
        raise UnknownRoute("nothing answers at that address")


def _matches(node: _Node, rest: tuple[str, ...], values: tuple[str, ...]) -> Iterator[tuple[_Node, tuple[str, ...]]]:
    if not rest:
        if node.routes:
            yield node, values
        return
    part, others = rest[0], rest[1:]
    if part in node.literals:
        yield from _matches(node.literals[part], others, values)
    if node.parameter is not None and part:
        yield from _matches(node.parameter, others, (*values, part))


# -- access -------------------------------------------------------------------------------------------


def check_access(caller: Caller, found: MatchedRoute) -> None:
    """Check that the caller may make this request at this address, without revealing what exists there (LG-02)."""
    operation, names = found.route.operation, found.names
    tenant = names.get("tenant_id")
    is_for_all = found.route.level == "store" and operation.call in ("info", "policy")
    if not is_for_all and caller.tenant not in ("*", tenant):
        raise Forbidden("this key is for another tenant", hint="use a key of that tenant")
    if not is_for_all and caller.user is not None and names.get("user_id") != caller.user:
        raise Forbidden("this key is for one user", hint="ask below /v1/tenants/…/users/ of that user")
    if not caller.may(operation.access):
        raise Forbidden(
            f"this takes {operation.access} access",
            hint="`muniment store keys create --access` makes a key that has it",
        )


def check_grants(caller: Caller, arguments: Mapping[str, Any]) -> None:
    """Check that only an administrator grants levels above the user's, or repairs a run (MP-08)."""
    if (arguments.get("grants") or arguments.get("repair")) and (caller.user is not None or not caller.may("admin")):
        raise Forbidden("grants and repairs take a key with admin access to the tenant", path="$.grants")
