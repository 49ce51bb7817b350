"""The handles that stand on a run or a store, over a connection: each asks as the handle does that it stands on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import Forbidden, InvalidInput
from muniment.handles.memory_learning import MemoryLearning
from muniment.handles.memory_ledger import MemoryLedger
from muniment.handles.memory_log import MemoryLog
from muniment.handles.memory_store import MemoryStore
from muniment.handles.run_learning import RunLearning
from muniment.handles.run_ledger import RunLedger
from muniment.handles.run_log import RunLogHandle
from muniment.handles.run_memory import RunMemory
from muniment.handles.upkeep.records import kinds_given, lease_given
from muniment.surfaces.client.deriving import derived
from muniment.surfaces.client.kept import RemoteThreadSpace, RemoteValueSpace
from muniment.surfaces.operations.rows import LOCAL

if TYPE_CHECKING:
    from muniment.handles.bank import Bank
    from muniment.handles.thread_space import ThreadSpace
    from muniment.handles.upkeep.records import UpkeepKind, UpkeepReport
    from muniment.handles.value_space import ValueSpace
    from muniment.surfaces.client.remote import RemoteMemory, RemoteRun
    from muniment.surfaces.operations.handles import BankRef
    from muniment.surfaces.operations.table import Handle

__all__ = [
    "RemoteMemoryLearning",
    "RemoteMemoryLedger",
    "RemoteMemoryLog",
    "RemoteMemoryStore",
    "RemoteRunLearning",
    "RemoteRunLedger",
    "RemoteRunLog",
    "RemoteRunMemory",
    "check_progress",
]


class _OfRun:
    def __init__(self, run: RemoteRun) -> None:
        self._run = run

    def _ask(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Any:
        return self._run._ask(handle, name, arguments)


class _OfMemory:
    def __init__(self, memory: RemoteMemory) -> None:
        self._memory = memory

    def _ask(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Any:
        return self._memory._ask(handle, name, arguments)


@derived("run.log")
class RemoteRunLog(_OfRun, RunLogHandle):
    """A run's log over a connection. See `muniment.Run.log`."""


@derived("run.memory")
class RemoteRunMemory(_OfRun, RunMemory):
    """What becomes of what a run wrote, over a connection. See `muniment.Run.memory`."""


@derived("run.learning")
class RemoteRunLearning(_OfRun, RunLearning):
    """What a run learns and has learnt, over a connection. See `muniment.Run.learning`."""


@derived("run.ledger")
class RemoteRunLedger(_OfRun, RunLedger):
    """The ledger as a run sees it, over a connection. See `muniment.Run.ledger`."""


@derived("memory.ledger")
class RemoteMemoryLedger(_OfMemory, MemoryLedger):
    """The ledger of a store over a connection. See `muniment.Memory.ledger`."""


@derived("memory.log")
class RemoteMemoryLog(_OfMemory, MemoryLog):
    """The logs of runs over a connection. See `muniment.Memory.log`."""


@derived("memory.learning")
class RemoteMemoryLearning(_OfMemory, MemoryLearning):
    """What verified runs taught, over a connection. See `muniment.Memory.learning`."""

    def bank_of(self, record_id: str, *, tenant_id: str = DEFAULT_TENANT) -> Bank:
        ref: BankRef = self._ask("memory", "bank_of", {"record_id": record_id, "tenant_id": tenant_id})
        return self._memory.bank(user_id=ref.user_id, agent_id=ref.agent_id, tenant_id=tenant_id)


@derived("memory.store")
class RemoteMemoryStore(_OfMemory, MemoryStore):
    """A store as a whole over a connection. See `muniment.Memory.store`."""

    @property
    def extracted(self) -> None:
        """None: nothing is read in the background over a connection."""
        return None

    def evaluate(self, *_: Any, **__: Any) -> Any:
        """Not over a connection: the model is the caller's, the memory is the store's."""
        raise Forbidden("an eval runs where the store is", hint=LOCAL["memory.store.evaluate"])

    def load(self, *_: Any, **__: Any) -> Any:
        """Not over a connection: it needs a disk on which all of them are put in order first."""
        raise Forbidden("events are loaded in bulk where the store is", hint=LOCAL["memory.store.load"])

    def values(
        self, name: str, *, user_at: int | None = None, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> ValueSpace:
        holder = self._memory._user_id if user_id is None else user_id
        context = {} if user_at is None else {"user_at": user_at}
        return RemoteValueSpace(self._memory._connection, name, tenant_id, holder, context)

    def threads(self, name: str, *, user_id: str | None = None, tenant_id: str = DEFAULT_TENANT) -> ThreadSpace:
        holder = self._memory._user_id if user_id is None else user_id
        return RemoteThreadSpace(self._memory._connection, name, tenant_id, holder, {})

    def import_from(self, *_: Any, **__: Any) -> Any:
        """Not over a connection: the files are the caller's."""
        raise Forbidden("files of another system are read where the store is", hint=LOCAL["memory.store.import_from"])

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
        named, opened = portable_lines(source)  # what is wrong with it is said at home
        asked = "check_memory" if dry_run else "import_memory"
        place = {"tenant_id": tenant_id, "user_id": user_id or named}
        return self._memory._connection.upload(self._memory._located("memory", asked, place), opened(), progress)

    def export_memory(self, *, user_id: str, tenant_id: str = DEFAULT_TENANT) -> Iterator[bytes]:
        given = {"tenant_id": tenant_id, "user_id": user_id}
        return self._memory._connection.lines(self._memory._located("memory", "export_memory", given))

    def index(self, *, tenant_id: str = DEFAULT_TENANT, progress: Callable[[int], None] | None = None) -> int:
        return self._brought(tenant_id, "index", progress)

    def reembed(self, *, tenant_id: str = DEFAULT_TENANT, progress: Callable[[int], None] | None = None) -> int:
        return self._brought(tenant_id, "reembed", progress)

    def upkeep(
        self,
        *,
        kinds: Iterable[UpkeepKind] = ("index", "scrub"),
        lease_seconds: float = 10.0,
        tenant_id: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> UpkeepReport:
        check_progress(progress)
        connection = self._memory._connection
        given = {"tenant_id": tenant_id, "kinds": list(kinds_given(kinds)), "lease_seconds": lease_given(lease_seconds)}
        ask = self._memory._located("memory", "upkeep", given)
        done: UpkeepReport = connection.ask(ask) if progress is None else connection.work(ask, progress)
        return done

    def _brought(self, tenant_id: str, name: str, progress: Callable[[int], None] | None) -> int:
        """How many turns the server has brought along; with `progress` it tells of it meanwhile."""
        check_progress(progress)
        connection = self._memory._connection
        ask = self._memory._located("memory", name, {"tenant_id": tenant_id})
        done: int = connection.ask(ask) if progress is None else connection.work(ask, progress)
        return done


def check_progress(progress: Any) -> None:
    """What is to be told of progress is a function, or nothing."""
    if progress is not None and not callable(progress):
        raise InvalidInput("progress should be a function", path="$.progress")
