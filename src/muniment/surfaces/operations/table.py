"""One row for each operation: its route, its method, its access.

A row names a method of the library; arguments, answer, description and schemas are read off that method's own
signature. Path parameters are the arguments of the same name; `tenant_id`, `user_id` and the handle's names precede the
row's own path (`BASES`). The other arguments are the query of a GET and the JSON body of everything else.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from muniment.surfaces.operations.signatures import Parameter, Signature, signature_of

if TYPE_CHECKING:
    from muniment.surfaces.operations.shapes import Shape

__all__ = [
    "BASES",
    "HANDLES",
    "SUBHANDLES",
    "Access",
    "Handle",
    "Level",
    "Operation",
    "class_at",
    "owner_name",
    "owner_named",
    "row",
]

Handle = Literal["memory", "run", "corpus", "study", "bank", "rulebook", "values", "threads", "works"]
Level = Literal["store", "tenant", "user", "agent"]
Access = Literal["read", "write", "admin"]


class _Classes(Mapping[str, type]):
    """Classes by name, imported on first use: a caller of one operation does not load the rest."""

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes

    def __getitem__(self, name: str) -> type:
        module, _, cls = self._homes[name].partition(":")
        return cast("type", getattr(importlib.import_module(module), cls))

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


HANDLES: Mapping[str, type] = _Classes(
    {
        "memory": "muniment.handles.memory:Memory",
        "run": "muniment.handles.run:Run",
        "corpus": "muniment.memory.corpus:Corpus",
        "study": "muniment.handles.study:Study",
        "bank": "muniment.handles.bank:Bank",
        "rulebook": "muniment.handles.rulebook:Rulebook",
        "values": "muniment.handles.value_space:ValueSpace",
        "threads": "muniment.handles.thread_space:ThreadSpace",
        "works": "muniment.surfaces.operations.works:Works",
    }
)
SUBHANDLES: Mapping[str, type] = _Classes(
    {
        "memory.ledger": "muniment.handles.memory_ledger:MemoryLedger",
        "memory.log": "muniment.handles.memory_log:MemoryLog",
        "memory.learning": "muniment.handles.memory_learning:MemoryLearning",
        "memory.store": "muniment.handles.memory_store:MemoryStore",
        "run.log": "muniment.handles.run_log:RunLogHandle",
        "run.memory": "muniment.handles.run_memory:RunMemory",
        "run.learning": "muniment.handles.run_learning:RunLearning",
        "run.ledger": "muniment.handles.run_ledger:RunLedger",
    }
)
"""The sub-handles, by their place. They do not exist over the wire: their operations have the handle's names and
addresses.
"""


def class_at(place: str) -> type:
    """The class of a handle ("run") or of a sub-handle ("run.log")."""
    return SUBHANDLES[place] if place in SUBHANDLES else HANDLES[place]


_TENANT = "/v1/tenants/{tenant_id}"
_USER = _TENANT + "/users/{user_id}"

BASES: Mapping[tuple[Handle, Level], str] = {
    ("memory", "store"): "/v1",
    ("memory", "tenant"): _TENANT,
    ("memory", "agent"): _TENANT + "/agents/{agent_id}",
    ("memory", "user"): _USER,
    ("run", "user"): _USER + "/runs/{run_id}",
    ("corpus", "tenant"): _TENANT + "/corpora/{corpus_id}",
    ("corpus", "user"): _USER + "/corpora/{corpus_id}",
    ("study", "user"): _USER + "/research/{run_id}",
    **dict.fromkeys((("bank", level) for level in ("tenant", "agent", "user")), _TENANT + "/banks/{owner}"),
    **dict.fromkeys((("rulebook", level) for level in ("tenant", "agent", "user")), _TENANT + "/rulebooks/{owner}"),
    ("values", "tenant"): _TENANT + "/values/{space}",
    ("values", "user"): _USER + "/values/{space}",
    ("threads", "tenant"): _TENANT + "/threads/{space}",
    ("threads", "user"): _USER + "/threads/{space}",
    ("works", "store"): "/v1/operations",
    ("works", "tenant"): _TENANT + "/operations",
    ("works", "user"): _USER + "/operations",
}
"""The base path of a handle's operations, by level. An `{owner}` names its level itself."""


def owner_name(user_id: str | None, agent_id: str | None) -> str:
    """The owner of a bank or a rulebook, as in addresses: `user:ana`, `agent:solver` or `tenant`."""
    if user_id is not None:
        return f"user:{user_id}"
    return "tenant" if agent_id is None else f"agent:{agent_id}"


def owner_named(name: str) -> tuple[Level, dict[str, str]] | None:
    """The level of an owner, and its id under the library's parameter name; None if the name is invalid."""
    kind, _, owner = name.partition(":")
    if kind == "user" and owner:
        return "user", {"user_id": owner}
    if kind == "agent" and owner:
        return "agent", {"agent_id": owner}
    return ("tenant", {}) if name == "tenant" else None


_NAMED = re.compile(r"{(\w+)}")


@cache
def _named_in(route: str) -> tuple[str, ...]:
    return tuple(_NAMED.findall(route))


@dataclass(frozen=True)
class Operation:
    """An operation available over the wire."""

    handle: Handle
    call: str
    """The method of the handle's class, or of its sub-handle's."""
    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str
    """The path below the base of its handle."""
    access: Access
    levels: tuple[Level, ...]
    status: int = 200
    media: str = "application/json"
    """The media type of the answer; text is sent unchanged."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Arguments that are not sent over the wire, and why."""
    owned: Mapping[str, str] = field(default_factory=dict)
    """Path parameter → the kind of item it names, which must be the user's if the path names one."""
    repeats: Literal["safe", "ledger", "guarded"] = "safe"
    """The role of an Idempotency-Key: not needed, an argument of the method, or guarded in the transaction."""
    versioned: str | None = None
    """The subject of the ETag's version: a path parameter, or "state"."""
    is_long: bool = False
    """True if it may run as long work with progress (Prefer: respond-async)."""
    is_listed: bool = False
    """True if it returns a list: for a GET in pages by cursor, or whole as JSON lines."""
    is_watched: bool = False
    """True if it also answers with server-sent events (Accept: text/event-stream), each when there is something new."""
    without_run: str | None = None
    """The path at the user's level that needs no run; None if there is none."""
    body: str | None = None
    """The argument that is the whole body, if that is no object of arguments."""
    takes: Literal["json", "lines"] = "json"
    """The type of the body: JSON, or lines that are passed on as a file."""
    parts: tuple[str, ...] = ()
    """Names for the parts of an answer that is a tuple in the library."""
    function: Callable[..., Any] | None = None
    """The function called instead of a method, such as one for a part of an answer."""
    subhandle: str | None = None
    """The sub-handle that has the method: `log`, for `run.log.claim`."""
    makes_folder: bool = False
    """True if it creates files in a folder, its argument `directory`, which the server chooses and no caller names."""
    wire_name: str | None = None
    """The name over the wire, if it differs from the method's."""

    @cached_property
    def id(self) -> str:
        return f"{self.handle}.{self.wire_name or self.call}"

    @cached_property
    def place(self) -> str:
        """The method's place in the library: a name in `HANDLES` or `SUBHANDLES`."""
        return self.handle if self.subhandle is None else f"{self.handle}.{self.subhandle}"

    @property
    def _method(self) -> Callable[..., Any]:
        if self.function is not None:
            return self.function
        member: Any = getattr(class_at(self.place), self.call)
        return cast("Callable[..., Any]", member.fget if isinstance(member, property) else member)

    @property
    def target(self) -> Callable[..., Any]:
        """The function to call, with the handle first, whichever sub-handle has the method."""
        method, subhandle = self._method, self.subhandle
        if subhandle is None:
            return method
        return lambda handle, *args, **named: method(getattr(handle, subhandle), *args, **named)

    @cached_property
    def signature(self) -> Signature:
        return signature_of(self._method)

    @cached_property
    def takes_names(self) -> frozenset[str]:
        """The names of its arguments."""
        return frozenset(each.name for each in self.signature.parameters)

    @cached_property
    def shape(self) -> Shape:
        """The wire form of the answer."""
        from muniment.surfaces.operations.shapes import named_row, wire_shape

        returns = self.signature.returns
        return named_row(self.parts, returns) if self.parts else wire_shape(returns)

    @cached_property
    def routes(self) -> dict[Level, str]:
        """The full paths by level."""
        own = f"/{self.path}" if self.path else ""
        return {level: BASES[self.handle, level] + own for level in self.levels}

    @cached_property
    def free_route(self) -> str | None:
        """The path without a run."""
        return None if self.without_run is None else f"{_USER}/{self.without_run}"

    def named_in(self, route: str) -> tuple[str, ...]:
        """The parameters of a path, in order."""
        return _named_in(route)

    def parameters(self, route: str) -> tuple[Parameter, ...]:
        """The arguments in the query or the body at this path."""
        known = self._parameters.get(route)
        if known is None:
            taken = {*self.named_in(route), "tenant_id", "user_id", *self.left_out}
            known = tuple(each for each in self.signature.parameters if each.name not in taken)
            self._parameters[route] = known
        return known

    @cached_property
    def _parameters(self) -> dict[str, tuple[Parameter, ...]]:
        """A cache of the arguments by path."""
        return {}

    @property
    def is_paged(self) -> bool:
        """True if it returns a `Listing`."""
        return self.is_listed and not self.takes_body

    @cached_property
    def takes_body(self) -> bool:
        return self.method in ("POST", "PATCH")


def row(place: str, call: str, asked: str, access: Access, *levels: Level, **more: Any) -> Operation:
    """Define an operation. `place` is a handle or sub-handle ("run.log"); `asked` is the HTTP method and the path
    ("POST events").
    """
    handle, _, subhandle = place.partition(".")
    method, _, path = asked.partition(" ")
    more |= {"subhandle": subhandle or None}
    return Operation(handle, call, method, path, access, levels or ("user",), **more)  # type: ignore[arg-type]
