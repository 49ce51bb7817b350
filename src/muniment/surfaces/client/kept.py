"""What is kept under names, over a connection: the values of a store and the threads of a saver."""

from __future__ import annotations

from typing import Any

from muniment.handles.thread_space import ThreadSpace
from muniment.handles.value_space import ValueSpace
from muniment.surfaces.client.connection import Ask, Connection
from muniment.surfaces.client.deriving import derived
from muniment.surfaces.operations.rows import find_operation
from muniment.surfaces.operations.table import Handle, Level

__all__ = ["RemoteThreadSpace", "RemoteValueSpace"]


class _RemoteSpace:
    """A connection, whose names they are, and what else says which."""

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


@derived("values")
class RemoteValueSpace(_RemoteSpace, ValueSpace):
    """Values over a connection. See `muniment.Memory.store.values`."""


@derived("threads")
class RemoteThreadSpace(_RemoteSpace, ThreadSpace):
    """Threads over a connection. See `muniment.Memory.store.threads`."""
