"""Proxies of the library's handles: each public method requests the operation of its name from a server.

They are made from the table of operations, with the signatures of the library's own methods. A method without an
operation is refused with the table's reason, or is made of other methods and inherited unchanged.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import Forbidden, InvalidInput
from muniment.handles.memory_store import MemoryStore
from muniment.surfaces.client.connection import Ask, Connection
from muniment.surfaces.operations.rows import LOCAL, OPERATIONS, REFUSED, find_operation
from muniment.surfaces.operations.table import Handle, Level, class_at

if TYPE_CHECKING:
    from muniment.handles.thread_space import ThreadSpace
    from muniment.handles.value_space import ValueSpace

__all__ = ["Asks", "RemoteMemoryStore", "check_progress", "derived", "proxy_class", "sub_handle"]


class Asks(Protocol):
    """The interface that derived methods need of their class."""

    def _ask(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Any:
        """Request an operation and return its answer."""


def derived(place: str) -> Callable[[type], type]:
    """Class decorator: request every method at this place that has a row from the server, unless the class has its
    own.
    """

    def fill(cls: type) -> type:
        for operation in OPERATIONS:
            if operation.place != place or operation.call in vars(cls):
                continue
            member = inspect.getattr_static(class_at(place), operation.call, None)
            name = operation.id.partition(".")[2]
            if isinstance(member, property):
                setattr(cls, operation.call, property(_reading(operation.handle, name), doc=member.__doc__))
            elif member is not None:
                setattr(cls, operation.call, _asking(operation.handle, name, member))
        for name in REFUSED:
            holder, _, call = name.rpartition(".")
            if holder == place:
                setattr(cls, call, _refusing(call, LOCAL[name], inspect.getattr_static(class_at(place), call)))
        return cls

    return fill


def _refusing(call: str, why: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def refuse(*_given: Any, **_named: Any) -> Any:
        raise Forbidden(f"{call} works where the store is, not over a connection", hint=why)

    return refuse


def _reading(handle: Handle, name: str) -> Callable[[Asks], Any]:
    return lambda self: self._ask(handle, name, {})


def _asking(handle: Handle, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(method)
    extra = next((each.name for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD), None)

    @functools.wraps(method)
    def ask(self: Asks, *args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        given.pop("self")
        if extra is not None:
            given |= given.pop(extra, {})
        return self._ask(handle, name, given)

    return ask


# -- handles of a run or a store -----------------------------------------------------------------------


def sub_handle(place: str) -> Any:
    """A property of a proxy: the handle at this place ("run.log"), over the same connection."""
    made: Any = functools.cached_property(lambda holder: proxy_class(place)(holder))
    return made


@functools.cache
def proxy_class(handle: str) -> type:
    """The proxy of the handle at a place, derived from the library's class."""
    if handle == "memory.store":
        return RemoteMemoryStore
    library = class_at(handle)
    base = _Space if handle in ("values", "threads") else _Held
    made = type(f"Remote{library.__name__}", (base, library), {"__doc__": f"`{library.__name__}` over a connection."})
    return derived(handle)(made)


class _Held:
    def __init__(self, holder: Any) -> None:
        self._holder = holder

    def _ask(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Any:
        return self._holder._ask(handle, name, arguments)


class _Space:
    """Named storage: a connection, the owner of the names, and other selectors."""

    def __init__(
        self, connection: Connection, name: str, tenant_id: str, user_id: str | None, context: dict[str, Any]
    ) -> None:
        self._connection = connection
        self._names = {"tenant_id": tenant_id, "user_id": user_id, "space": name}
        self._context = context

    def _ask(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Any:
        level: Level = "tenant" if self._names["user_id"] is None else "user"
        operation = find_operation(handle, name, level)
        assert operation is not None
        return self._connection.ask(Ask(operation, operation.routes[level], self._names, arguments, self._context))


def _space(place: str, *given: Any) -> Any:
    return proxy_class(place)(*given)


@derived("memory.store")
class RemoteMemoryStore(_Held, MemoryStore):
    """A store as a whole over a connection. See `muniment.Memory.store`."""

    @property
    def extracted(self) -> None:
        """None: nothing is read in the background over a connection."""
        return None

    def values(
        self, name: str, *, user_at: int | None = None, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> ValueSpace:
        holder = self._holder._user_id if user_id is None else user_id
        context = {} if user_at is None else {"user_at": user_at}
        made: ValueSpace = _space("values", self._holder._connection, name, tenant_id, holder, context)
        return made

    def threads(self, name: str, *, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT) -> ThreadSpace:
        holder = self._holder._user_id if user_id is None else user_id
        made: ThreadSpace = _space("threads", self._holder._connection, name, tenant_id, holder, {})
        return made

    def import_memory(
        self,
        source: Any,
        *,
        user_id: str | None = None,
        agent_id: str = "agent",
        dry_run: bool = False,
        progress: Callable[[int], None] | None = None,
        tenant_id: str = DEFAULT_TENANT,
    ) -> Any:
        from muniment.moving.sources import portable_lines

        check_progress(progress)
        if agent_id != "agent":
            raise InvalidInput("agent_id cannot be given over a connection", path="$.agent_id")
        named, opened = portable_lines(source)  # faults are raised locally
        if dry_run:
            raise InvalidInput("dry_run cannot be given over a connection", path="$.dry_run")
        place = {"tenant_id": tenant_id, "user_id": user_id or named}
        return self._holder._connection.upload(
            self._holder._located("memory", "import_memory", place), opened(), progress
        )


def check_progress(progress: Any) -> None:
    """Raise unless the progress argument is a function or None."""
    if progress is not None and not callable(progress):
        raise InvalidInput("progress should be a function", path="$.progress")
