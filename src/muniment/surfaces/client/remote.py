"""The library's handles over a connection: the same classes, methods and signatures, derived from the rows.

Methods that the library builds on its own methods (`corpus.add_file`, `study.collect`, `mem.runner` …) are inherited
unchanged.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote

from muniment.core.listing import Listing, list_items
from muniment.core.scope import DEFAULT_TENANT, Scope
from muniment.errors import Forbidden, InvalidInput
from muniment.handles.bank import Bank
from muniment.handles.memory import Memory
from muniment.handles.rulebook import Rulebook
from muniment.handles.run import Run
from muniment.handles.study import Study
from muniment.memory.corpus import Corpus
from muniment.runs.snapshots import Resumed
from muniment.surfaces.client.connection import Ask, Connection
from muniment.surfaces.client.proxies import check_progress, derived, sub_handle
from muniment.surfaces.operations.handles import ResumedRef, RunRef, SentBuild, StudyRef
from muniment.surfaces.operations.rows import find_operation
from muniment.surfaces.operations.table import Handle, Level, Operation, owner_name

if TYPE_CHECKING:
    from muniment.core.policy import Policy
    from muniment.core.ports.engine import EngineInfo
    from muniment.memory.documents import CorpusDocument
    from muniment.memory.search import Hit

__all__ = ["RemoteBank", "RemoteCorpus", "RemoteMemory", "RemoteRulebook", "RemoteRun", "RemoteStudy"]


_QUERY_CHARS_MAX = 6000
"""Proxies accept addresses of 8 KiB, including the path."""


class _Remote:
    """The parts that all remote handles share: a connection, and the place of their operations."""

    _connection: Connection

    def _level(self) -> str:
        raise TypeError("each handle says")

    def _names(self) -> dict[str, Any]:
        raise TypeError("each handle says")

    def _context(self) -> dict[str, Any]:
        return {}

    def _asking(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Ask:
        operation = find_operation(handle, name, self._level())
        if operation is None:
            raise Forbidden(f"{name} is not for this level", hint="a user's connection reaches the user's own alone")
        template = operation.routes[cast("Any", self._level())]
        names = self._names()
        in_path = operation.named_in(template)
        names |= {each: arguments.pop(each) for each in list(arguments) if each in in_path}
        return Ask(operation, template, names, _sendable(operation, arguments), self._context())

    def _ask(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Any:
        return self._lift(self._connection.ask(self._asking(handle, name, arguments)))

    def _lift(self, answer: Any) -> Any:
        """Replace references in an answer by handles of this connection."""
        return _lifted(self._connection, answer)


def _sendable(operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    for name, why in operation.left_out.items():
        if arguments.pop(name, None) is not None:
            raise InvalidInput(f"{name} cannot be given over a connection", path=f"$.{name}", hint=why)
    return arguments


def _lifted(connection: Connection, answer: Any) -> Any:
    match answer:
        case RunRef():
            return RemoteRun(connection, answer)
        case StudyRef():
            return RemoteStudy(connection, answer)
        case ResumedRef():
            told = _ResumedState(answer.log, answer.snapshot, answer.tail, answer.rejected)
            return Resumed(RemoteRun(connection, answer.run), cast("Any", told))
        case SentBuild():
            object.__setattr__(answer, "_fetch", functools.cache(lambda: _inputs_of(connection, answer)))
    return answer


class _Home:
    """The part of a store's context that a client has: its own token counter, and the policy and description of the
    store, each requested once.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @functools.cached_property
    def counter(self) -> Any:
        from muniment.core.outside.token_counters import load_token_counter

        return load_token_counter()

    @functools.cached_property
    def info(self) -> Any:
        return self._ask("info")

    @functools.cached_property
    def policy(self) -> Any:
        return self._ask("policy")

    def _ask(self, name: str) -> Any:
        operation = find_operation("memory", name, "store")
        assert operation is not None
        return self._connection.ask(Ask(operation, operation.routes["store"], {}, {}))


class _ResumedState(NamedTuple):
    """The state that a resumed run has read."""

    log: Any
    snapshot: Any
    tail: int
    rejected: tuple[Any, ...]


def _inputs_of(connection: Connection, build: SentBuild) -> Any:
    operation = find_operation("memory", "build_inputs", "user")
    assert operation is not None
    scope = build.request.scope
    names = {"tenant_id": scope.tenant_id, "user_id": scope.user_id, "build_id": build.id}
    return connection.ask(Ask(operation, operation.routes["user"], names, {}))


# -- handles ------------------------------------------------------------------------------------------


@derived("run")
class RemoteRun(_Remote, Run):
    """A run's handle over a connection. See `muniment.Run`."""

    def __init__(self, connection: Connection, ref: RunRef, opening: Mapping[str, Any] | None = None) -> None:
        self._connection = connection
        self._scope = ref.scope
        self._task_type = ref.task_type
        self._grants = frozenset(ref.grants)
        self._repairs = ref.repair
        self._unsaid = dict(opening or {})
        """The run's opening, until its first write has sent it."""
        self._saying = threading.Lock()

    def _level(self) -> str:
        return "user"

    def _names(self) -> dict[str, Any]:
        return {"tenant_id": self._scope.tenant_id, "user_id": self._scope.user_id, "run_id": self._scope.run_id}

    def _context(self) -> dict[str, Any]:
        scope = self._scope
        context: dict[str, Any] = {"agent_id": scope.agent_id, "session_id": scope.session_id}
        if self._task_type != "generic":
            context["task_type"] = self._task_type
        return context | {"grants": sorted(self._grants)} | ({"repair": True} if self._repairs else {})

    def _ask(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Any:
        ask = self._asking(handle, name, arguments)
        if self._unsaid and ask.operation.access != "read" and name not in _STARTING_NOTHING:
            self._start()
        return self._lift(self._connection.ask(ask))

    def _start(self) -> None:
        """Send the run's opening before its first write."""
        with self._saying:
            if not self._unsaid:
                return
            operation = find_operation("memory", "run", "user")
            assert operation is not None
            scope = self._scope
            said = self._unsaid | {
                "agent_id": scope.agent_id,
                "session_id": scope.session_id,
                "run_id": scope.run_id,
                "task_type": self._task_type,
            }
            self._connection.ask(Ask(operation, operation.routes["user"], self._names(), said))
            self._unsaid = {}

    def _writer(self) -> Any:
        """The part of a writer needed to check grants."""
        return SimpleNamespace(grants=self._grants)

    log = sub_handle("run.log")
    memory = sub_handle("run.memory")
    learning = sub_handle("run.learning")
    ledger = sub_handle("run.ledger")


def _no_id(index: int) -> str:
    raise InvalidInput("wanted a non-empty string", path=f"$.document_ids[{index}]")


def _portions(names: Sequence[str]) -> Iterator[list[str]]:
    """Split the names into batches short enough for an address."""
    portion: list[str] = []
    chars = 0
    for name in names:
        needs = len(quote(name, safe="")) + len("&document_ids=")
        if portion and chars + needs > _QUERY_CHARS_MAX:
            yield portion
            portion, chars = [], 0
        portion.append(name)
        chars += needs
    if portion:
        yield portion


@derived("corpus")
class RemoteCorpus(_Remote, Corpus):
    """A corpus' handle over a connection. See `muniment.Memory.corpus`."""

    def __init__(self, connection: Connection, corpus_id: str, tenant_id: str, user_id: str | None) -> None:
        super().__init__(cast("Any", _Home(connection)), corpus_id, tenant_id, user_id)
        self._connection = connection
        self._user_id = user_id

    def _level(self) -> str:
        return "tenant" if self._user_id is None else "user"

    def _names(self) -> dict[str, Any]:
        corpus_scope = self._corpus_scope
        return {"tenant_id": corpus_scope.tenant_id, "user_id": self._user_id, "corpus_id": corpus_scope.corpus_id}

    @staticmethod
    def _add_many(added: Sequence[tuple[Corpus, Mapping[str, Any]]]) -> None:
        """Add all in one request, at the user's own address if all are one user's."""
        corpora = [cast("RemoteCorpus", corpus) for corpus, _ in added]
        names = [each._names() for each in corpora]
        first = names[0]
        level: Level = "user" if {at["user_id"] for at in names} == {first["user_id"]} != {None} else "tenant"
        operation = find_operation("memory", "add_documents", level)
        assert operation is not None
        documents = [
            dict(given) | {"corpus_id": at["corpus_id"]} | ({} if at["user_id"] is None else {"user_id": at["user_id"]})
            for at, (_, given) in zip(names, added, strict=True)
        ]
        corpora[0]._connection.ask(Ask(operation, operation.routes[level], first, {"documents": documents}))

    def _newest(self, document_ids: Sequence[str]) -> dict[str, CorpusDocument]:
        return {each.document_id: each for each in self.documents(document_ids=document_ids)}

    def documents(
        self,
        *,
        include_all: bool = False,
        document_ids: Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[CorpusDocument]:
        """See `Corpus.documents`: an address holds a limited number of ids, and cannot name an empty list."""
        asked = {"include_all": include_all, "limit": limit, "cursor": cursor}
        if document_ids is None:
            return cast("Listing[CorpusDocument]", self._ask("corpus", "documents", asked))
        if isinstance(document_ids, str) or not isinstance(document_ids, Sequence):
            raise InvalidInput("document_ids should be a list of ids", path="$.document_ids")
        names = [name if isinstance(name, str) else _no_id(index) for index, name in enumerate(document_ids)]
        found: list[CorpusDocument] = []
        for portion in _portions(list(dict.fromkeys(names))):
            found += self._ask("corpus", "documents", {"include_all": include_all, "document_ids": portion})
        found.sort(key=lambda each: (each.document_id, each.revision))
        return list_items("documents", found, limit, cursor)

    def _documents_of(self, hits: Sequence[Hit]) -> dict[str, CorpusDocument]:
        chunks = {hit.session_id or "": hit.id for hit in hits}
        names = {session_id: self.chunk(chunk_id).document_id for session_id, chunk_id in chunks.items()}
        newest = self._newest(list(names.values()))
        return {session_id: newest[name] for session_id, name in names.items() if name in newest}

    def _standing(self) -> list[CorpusDocument]:
        return list(self.documents())


class _Owned(_Remote):
    """A handle of a user, an agent or, without either, the tenant."""

    _owners: dict[str, str | None]

    def _level(self) -> str:
        return next((level for level in ("user", "agent") if self._owners[f"{level}_id"] is not None), "tenant")

    def _names(self) -> dict[str, Any]:
        owners = self._owners
        return {"tenant_id": owners["tenant_id"], "owner": owner_name(owners["user_id"], owners["agent_id"])}


@derived("bank")
class RemoteBank(_Owned, Bank):
    """A bank's handle over a connection. See `muniment.Memory.bank`."""

    def __init__(
        self, connection: Connection, scope: Scope, owner: str, user_id: str | None, agent_id: str | None
    ) -> None:
        super().__init__(cast("Any", _Home(connection)), scope, owner)
        self._connection = connection
        self._owners = {"tenant_id": scope.tenant_id, "user_id": user_id, "agent_id": agent_id}


@derived("rulebook")
class RemoteRulebook(_Owned, Rulebook):
    """A rulebook's handle over a connection. See `muniment.Memory.rulebook`."""

    def __init__(self, connection: Connection, book: Rulebook, user_id: str | None, agent_id: str | None) -> None:
        self._book = book._book
        self._connection = connection
        self._owners = {"tenant_id": book._book.tenant_id, "user_id": user_id, "agent_id": agent_id}


@derived("study")
class RemoteStudy(_Remote, Study):
    """A research run's handle over a connection. See `muniment.Memory.research`."""

    def __init__(self, connection: Connection, ref: StudyRef) -> None:
        self._connection = connection
        self._run = RemoteRun(connection, ref.run)
        self._place = Path(ref.directory)

    @property
    def directory(self) -> Path:
        """The directory of its files, on the server's machine."""
        return self._place

    def _level(self) -> str:
        return "user"

    def _names(self) -> dict[str, Any]:
        scope = self._run.scope
        return {"tenant_id": scope.tenant_id, "user_id": scope.user_id, "run_id": scope.run_id}

    def _view(self) -> Any:
        """The part of a view that `collect` reads."""
        return SimpleNamespace(manifest=self.manifest(), perspectives=self.perspectives())


# -- the store ----------------------------------------------------------------------------------------


@derived("memory")
class RemoteMemory(_Remote, Memory):
    """A store over a connection. See `muniment.Memory` and `muniment.connect`."""

    _is_near = False

    def __init__(self, connection: Connection, url: str, key: Mapping[str, str]) -> None:
        """`key` is the server's description of it: if it is for one user, all requests use that user's address."""
        self._home = _Home(connection)
        super().__init__(cast("Any", self._home))
        self._connection = connection
        self._url = url
        self._user_id = key.get("user")
        self._tenant_id = None if key["tenant"] == "*" else key["tenant"]

    def __repr__(self) -> str:
        return f"<Memory at {self._url}>"

    @property
    def info(self) -> EngineInfo:
        """The server's engine, its location and its durability, as first requested."""
        info: EngineInfo = self._home.info
        return info

    @property
    def policy(self) -> Policy:
        """The server's policy, as first requested."""
        policy: Policy = self._home.policy
        return policy

    ledger = sub_handle("memory.ledger")
    log = sub_handle("memory.log")
    learning = sub_handle("memory.learning")
    store = sub_handle("memory.store")

    def _ask(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Any:
        progress = arguments.pop("progress", None)
        check_progress(progress)
        ask = self._located(handle, name, arguments)
        answer = self._connection.ask(ask) if progress is None else self._connection.work(ask, progress)
        return self._lift(answer)

    def _located(self, handle: Handle, name: str, arguments: dict[str, Any]) -> Ask:
        """The request at the narrowest address that the arguments, or the key, name."""
        usual = self._tenant_id if name in ("verify", "tenants") else DEFAULT_TENANT
        tenant_id = arguments.pop("tenant_id", usual)
        user_id = arguments.pop("user_id", None)
        user_id = self._user_id if user_id is None else user_id
        names: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id}
        wanted = "store" if tenant_id is None else "tenant" if user_id is None else "user"
        for level in (wanted, "store", "tenant", "user"):
            operation = find_operation(handle, name, level)
            if operation is not None:
                template = operation.routes[cast("Any", level)]
                break
        free = find_operation("run", name, "user")
        if wanted == "user" and free is not None and free.free_route is not None and level != "user":
            operation, template = free, free.free_route
        assert operation is not None
        in_path = operation.named_in(template)
        names |= {each: arguments.pop(each) for each in list(arguments) if each in in_path}
        return Ask(operation, template, names, _sendable(operation, arguments))

    def run(self, **given: Any) -> Run:
        bound = inspect.signature(Memory.run).bind(self, **given).arguments
        said = {name: value for name, value in bound.items() if name != "self"}
        ref = self._connection.ask(self._located("memory", "run", dict(said) | {"start": False}))
        opening = {name: said[name] for name in _PINNED if said.get(name) is not None}
        return RemoteRun(self._connection, ref, opening)

    def corpus(self, corpus_id: str, *, tenant_id: str = DEFAULT_TENANT, user_id: str | None = None) -> Corpus:
        return RemoteCorpus(self._connection, corpus_id, tenant_id, user_id)

    def bank(self, *, user_id: str | None = None, agent_id: str | None = None, tenant_id: str = DEFAULT_TENANT) -> Bank:
        made = super().bank(user_id=user_id, agent_id=agent_id, tenant_id=tenant_id)
        return RemoteBank(self._connection, made._scope, made._owner, user_id, agent_id)

    def rulebook(
        self, *, user_id: str | None = None, agent_id: str | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> Rulebook:
        made = super().rulebook(user_id=user_id, agent_id=agent_id, tenant_id=tenant_id)
        return RemoteRulebook(self._connection, made, user_id, agent_id)

    def forget(self, **given: Any) -> Any:
        said = {name: value for name, value in given.items() if value is not None}
        if set(said) - {"tenant_id"} == {"tenant"}:
            if said.get("tenant_id") not in (None, DEFAULT_TENANT, said["tenant"]):
                raise InvalidInput("tenant and tenant_id name two tenants", path="$.tenant", hint="give tenant alone")
            return self._ask("memory", "forget_tenant", {"tenant_id": said["tenant"]})
        return self._ask("memory", "forget", dict(inspect.signature(Memory.forget).bind(self, **given).kwargs))

    def import_(self, source: Any, *, progress: Callable[[int], None] | None = None) -> Any:
        from muniment.handles.derived import check_dump
        from muniment.store.dumps import Dump

        dump = source if isinstance(source, Dump) else check_dump(source)  # faults are raised locally
        check_progress(progress)
        ask = self._located("memory", "import_", {"tenant_id": dump.tenant_id})
        return self._connection.upload(ask, dump.open(), progress)

    def open_research(
        self, run_id: str, *, directory: str | PathLike[str] | None = None, tenant_id: str = DEFAULT_TENANT
    ) -> Study:
        if directory is not None:
            raise InvalidInput("directory cannot be given over a connection", path="$.directory")
        user_id = self.log.run_state(run_id, tenant_id=tenant_id).scope.user_id
        study: Study = self._ask(
            "memory", "open_research", {"run_id": run_id, "tenant_id": tenant_id, "user_id": user_id}
        )
        return study

    def close(self) -> None:
        """Close the connection. Everything acknowledged is kept by the server."""
        self._connection.close()


_PINNED = ("objective", "done_definition", "budgets")
_STARTING_NOTHING = ("compose", "compact", "unlock")
"""Operations on a run that has not started, which do not start it."""
