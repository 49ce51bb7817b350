"""The public face with `await`: derived from the sync classes, never written twice.

    async with await muniment.aio.open("agent.db") as mem:
        run = await mem.run(user_id="ana")
        said = await run.observe("user", "I moved to Berlin in May.")
        async for entry in run.ledger.entries(): ...

`muniment.aio.connect(url)` is the same over HTTP. Each call runs its sync twin in one of the store's worker threads, of
which there are at most `THREADS`; iterators, runners and calls with a coroutine function have a thread each. Properties
that ask the store (`ASKED`) are awaited too: `await book.revision`. Handles of a run or a store have twins too: `await
run.log.claim(…)`. A coroutine function passed as an argument, such as an agent or a verifier, runs on the caller's
loop, with async handles.

A cancelled caller continues at once; the call itself ends in its thread, all of it or nothing, and closing the store
waits for it. Signatures are those of the sync classes (`aio.pyi` is generated from them and a test keeps it so).
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import importlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Generic, TypeVar

from muniment.core.listing import Listing, Page
from muniment.core.outside.calling import ThreadEach
from muniment.errors import Closed
from muniment.handles import memory as _memory
from muniment.handles.bank import Bank
from muniment.handles.memory_learning import MemoryLearning
from muniment.handles.memory_ledger import MemoryLedger
from muniment.handles.memory_log import MemoryLog
from muniment.handles.memory_store import MemoryStore
from muniment.handles.rulebook import Rulebook
from muniment.handles.run import Run
from muniment.handles.run_learning import RunLearning
from muniment.handles.run_ledger import RunLedger
from muniment.handles.run_log import RunLogHandle
from muniment.handles.run_memory import RunMemory
from muniment.handles.runner import Runner
from muniment.handles.study import Study
from muniment.handles.thread_space import ThreadSpace
from muniment.handles.value_space import ValueSpace
from muniment.memory.corpus import Corpus

__all__ = [
    "AsyncBank",
    "AsyncCorpus",
    "AsyncListing",
    "AsyncMemory",
    "AsyncMemoryLearning",
    "AsyncMemoryLedger",
    "AsyncMemoryLog",
    "AsyncMemoryStore",
    "AsyncRulebook",
    "AsyncRun",
    "AsyncRunLearning",
    "AsyncRunLedger",
    "AsyncRunLogHandle",
    "AsyncRunMemory",
    "AsyncRunner",
    "AsyncStudy",
    "AsyncThreadSpace",
    "AsyncValueSpace",
    "connect",  # noqa: F822  # found by __getattr__
    "open",
]

THREADS = 32
"""Calls of one store that run at once; more wait."""
ASKED = frozenset({"revision"})
"""Properties that query the store; the others return what their handle holds."""
_DONE = object()
ItemT = TypeVar("ItemT")


# -- calling ------------------------------------------------------------------------------------------


class _Threads(ThreadPoolExecutor):
    """The worker threads of a store. None of them ever waits for the loop, so that waiting for them cannot deadlock."""

    def __init__(self) -> None:
        super().__init__(THREADS, thread_name_prefix="muniment-aio")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:  # shut down
            raise Closed("the store has been closed") from None


async def _run_in(executor: Executor, call: Callable[[], Any], context: contextvars.Context | None = None) -> Any:
    """Run a call in a thread, under the context variables of the caller."""
    context = contextvars.copy_context() if context is None else context
    return await asyncio.get_running_loop().run_in_executor(executor, context.run, call)


def _awaiting(name: str, method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(method)
    async def call(self: _Twin, *args: Any, **kwargs: Any) -> Any:
        waits = self._waits or any(map(inspect.iscoroutinefunction, (*args, *kwargs.values())))
        given = [self._called_on_loop(each) for each in args]
        named = {key: self._called_on_loop(each) for key, each in kwargs.items()}
        twin = functools.partial(getattr(self._sync, name), *given, **named)
        return self._lift(await _run_in(ThreadEach() if waits else self._threads, twin))

    return call


def _iterating(name: str, method: Callable[..., Iterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    @functools.wraps(method)
    def iterate(self: _Twin, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        return _iterate(functools.partial(getattr(self._sync, name), *args, **kwargs))

    return iterate


async def _iterate(begin: Callable[[], Iterator[Any]]) -> AsyncIterator[Any]:
    """Iterate over an iterator that is created and read in a separate thread."""
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="muniment-iter")
    items = _Items(begin)
    context = contextvars.copy_context()
    is_waited_for = True
    try:
        while (item := await _run_in(thread, items.next, context)) is not _DONE:
            yield item
    except asyncio.CancelledError:
        is_waited_for = False
        raise
    finally:
        closing = thread.submit(context.run, items.close)  # runs after the calls in progress
        thread.shutdown(wait=False)
        if is_waited_for:
            await asyncio.wrap_future(closing)


class AsyncListing(Generic[ItemT]):
    """A list of the store: `await` returns all of it, `async for` reads page after page, `page()` is the first."""

    def __init__(self, ask: Callable[[], Listing[ItemT]], threads: Executor) -> None:
        self._ask = ask
        self._threads = threads

    def __await__(self) -> Generator[Any, None, list[ItemT]]:
        return _run_in(self._threads, lambda: list(self._ask())).__await__()

    def __aiter__(self) -> AsyncIterator[ItemT]:
        return _iterate(lambda: iter(self._ask()))

    async def page(self) -> Page[ItemT]:
        """Return the first page: at most `limit` items, or as many as fit in one page."""
        first: Page[ItemT] = await _run_in(self._threads, lambda: self._ask().page())
        return first


def _listing(name: str, method: Callable[..., Listing[Any]]) -> Callable[..., AsyncListing[Any]]:
    @functools.wraps(method)
    def ask(self: _Twin, *args: Any, **kwargs: Any) -> AsyncListing[Any]:
        return AsyncListing(functools.partial(getattr(self._sync, name), *args, **kwargs), self._threads)

    return ask


class _Items:
    """An iterator that is created, continued and closed in one thread."""

    def __init__(self, begin: Callable[[], Iterator[Any]]) -> None:
        self._begin = begin
        self._items: Iterator[Any] | None = None

    def next(self) -> Any:
        if self._items is None:
            self._items = self._begin()
        return next(self._items, _DONE)

    def close(self) -> None:
        close = getattr(self._items, "close", None)
        if close is not None:
            close()


def _telling(name: str, doc: str | None) -> property:
    return property(lambda self: self._lift(getattr(self._sync, name)), doc=doc)


def _asking(name: str, doc: str | None) -> property:
    async def ask(self: _Twin) -> Any:
        return self._lift(await _run_in(self._threads, functools.partial(getattr, self._sync, name)))

    return property(ask, doc=doc)


# -- handles ------------------------------------------------------------------------------------------


def _derive(sync: type, doc: str) -> Callable[[type], type]:
    """Class decorator: add an async twin of each public method and property of `sync` that the class itself lacks."""

    def fill(cls: type) -> type:
        members = {name: member for base in reversed(sync.__mro__[:-1]) for name, member in vars(base).items()}
        for name, member in members.items():
            if name.startswith("_") or name in vars(cls):
                continue
            if isinstance(member, property | functools.cached_property):
                setattr(cls, name, (_asking if name in ASKED else _telling)(name, member.__doc__))
            elif inspect.isfunction(member):
                kind = str(member.__annotations__.get("return", "")).partition("[")[0]
                derive = {"Iterator": _iterating, "Listing": _listing}.get(kind, _awaiting)
                setattr(cls, name, derive(name, member))
        cls.__doc__ = doc
        return cls

    return fill


class _Twin:
    _waits = False
    """True if calls may wait for the caller's coroutines."""

    def __init__(self, sync: Any, threads: _Threads) -> None:
        self._sync = sync
        self._threads = threads

    def __repr__(self) -> str:
        return f"<async {self._sync!r}>"

    def _lift(self, value: Any) -> Any:
        """Replace sync handles in a result by async ones."""
        twin = _twin_of(type(value))
        if twin is not None:
            return twin(value, self._threads)
        held = getattr(value, "run", None)
        return replace(value, run=AsyncRun(held, self._threads)) if isinstance(held, Run) else value

    def _called_on_loop(self, given: Any) -> Any:
        """Wrap a coroutine function so that another thread can call and wait for it; anything else is returned
        unchanged.
        """
        if not inspect.iscoroutinefunction(given):
            return given
        loop = asyncio.get_running_loop()

        @functools.wraps(given)
        def call(*args: Any, **kwargs: Any) -> Any:
            running = asyncio.run_coroutine_threadsafe(given(*map(self._lift, args), **kwargs), loop)
            try:
                return running.result()
            except CancelledError:  # the loop ends: that is no outcome of the function's
                raise asyncio.CancelledError from None

        return call


@_derive(Run, "A run's handle, with `await`. See `muniment.Run`.")
class AsyncRun(_Twin):
    pass


@_derive(RunLogHandle, "A run's log, with `await`. See `muniment.Run.log`.")
class AsyncRunLogHandle(_Twin):
    pass


@_derive(RunMemory, "What becomes of what a run wrote, with `await`. See `muniment.Run.memory`.")
class AsyncRunMemory(_Twin):
    pass


@_derive(RunLearning, "What a run learns and has learnt, with `await`. See `muniment.Run.learning`.")
class AsyncRunLearning(_Twin):
    pass


@_derive(RunLedger, "The ledger as a run sees it, with `await`. See `muniment.Run.ledger`.")
class AsyncRunLedger(_Twin):
    pass


@_derive(Corpus, "A corpus' handle, with `await`. See `muniment.Memory.corpus`.")
class AsyncCorpus(_Twin):
    pass


@_derive(Study, "A research run's handle, with `await`. See `muniment.Memory.research`.")
class AsyncStudy(_Twin):
    pass


@_derive(Bank, "A bank's handle, with `await`. See `muniment.Memory.bank`.")
class AsyncBank(_Twin):
    pass


@_derive(Rulebook, "A rulebook's handle, with `await`. See `muniment.Memory.rulebook`.")
class AsyncRulebook(_Twin):
    pass


@_derive(ValueSpace, "Values under names, with `await`. See `muniment.Memory.store.values`.")
class AsyncValueSpace(_Twin):
    pass


@_derive(ThreadSpace, "Threads of a graph, with `await`. See `muniment.Memory.store.threads`.")
class AsyncThreadSpace(_Twin):
    pass


@_derive(Runner, "Something that runs an agent on tasks, with `await`. See `muniment.Memory.runner`.")
class AsyncRunner(_Twin):
    _waits = True


@_derive(MemoryLedger, "The ledger of a store, with `await`. See `muniment.Memory.ledger`.")
class AsyncMemoryLedger(_Twin):
    pass


@_derive(MemoryLog, "The logs of runs, with `await`. See `muniment.Memory.log`.")
class AsyncMemoryLog(_Twin):
    pass


@_derive(MemoryLearning, "What verified runs taught, with `await`. See `muniment.Memory.learning`.")
class AsyncMemoryLearning(_Twin):
    pass


@_derive(MemoryStore, "A store as a whole, with `await`. See `muniment.Memory.store`.")
class AsyncMemoryStore(_Twin):
    pass


@_derive(_memory.Memory, "A store, with `await`. See `muniment.Memory`.")
class AsyncMemory(_Twin):
    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    @functools.wraps(_memory.Memory.close)
    async def close(self) -> None:
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        self._threads.shutdown(wait=True)
        self._sync.close()


_TWINS: dict[type, type[_Twin]] = {
    Run: AsyncRun,
    RunLogHandle: AsyncRunLogHandle,
    RunMemory: AsyncRunMemory,
    RunLearning: AsyncRunLearning,
    RunLedger: AsyncRunLedger,
    Corpus: AsyncCorpus,
    Study: AsyncStudy,
    Bank: AsyncBank,
    Rulebook: AsyncRulebook,
    ValueSpace: AsyncValueSpace,
    ThreadSpace: AsyncThreadSpace,
    Runner: AsyncRunner,
    MemoryLedger: AsyncMemoryLedger,
    MemoryLog: AsyncMemoryLog,
    MemoryLearning: AsyncMemoryLearning,
    MemoryStore: AsyncMemoryStore,
    _memory.Memory: AsyncMemory,
}


@functools.cache
def _twin_of(kind: type) -> type[_Twin] | None:
    return next((_TWINS[base] for base in kind.__mro__ if base in _TWINS), None)


# -- opening ------------------------------------------------------------------------------------------


@functools.wraps(_memory.open)
async def open(*args: Any, **kwargs: Any) -> AsyncMemory:
    return await opened(functools.partial(_memory.open, *args, **kwargs))


async def opened(make: Callable[[], _memory.Memory]) -> AsyncMemory:
    """Return the async twin of a store that `make` opens; it is closed again if the caller was cancelled."""
    threads = _Threads()
    making = threads.submit(_ready, make)
    try:
        return AsyncMemory(await asyncio.wrap_future(making), threads)
    except asyncio.CancelledError:
        threads.submit(lambda: making.result().close())
        raise


def _ready(make: Callable[[], _memory.Memory]) -> _memory.Memory:
    """Read a store's properties once: a remote one caches them from then on."""
    with ExitStack() as unless_ready:
        memory = make()
        unless_ready.callback(memory.close)
        _ = memory.info, memory.policy
        unless_ready.pop_all()
    return memory


def __getattr__(name: str) -> Any:
    if name == "connect":  # a surface, which is in a layer above
        return importlib.import_module("muniment.surfaces.client.connecting").connect_async
    raise AttributeError(f"module 'muniment.aio' has no attribute {name!r}")
