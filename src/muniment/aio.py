"""The same face with `await`: derived from the sync classes, never written twice.

    async with await muniment.aio.open("agent.db") as mem:
        run = await mem.run(user_id="ana")
        said = await run.observe("user", "I moved to Berlin in May.")
        async for entry in run.entries(): ...

Each call runs its sync twin in a worker thread; an iterator keeps one thread of its own. A coroutine function that is
handed in, as an agent or a verifier, runs on the loop it was handed in on, with async handles. Signatures are those of
the sync classes (`aio.pyi` is generated from them and a test keeps it so).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from muniment.runtime import memory as _memory
from muniment.runtime.corpora import Corpus
from muniment.runtime.learning import Bank
from muniment.runtime.rulebooks import Rulebook
from muniment.runtime.run import Run
from muniment.runtime.runner import Runner
from muniment.runtime.studies import Study

__all__ = ["AsyncBank", "AsyncCorpus", "AsyncMemory", "AsyncRulebook", "AsyncRun", "AsyncRunner", "AsyncStudy", "open"]

_DONE = object()


def _awaiting(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(method)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        given = [_called_on(loop, each) for each in args]
        named = {name: _called_on(loop, each) for name, each in kwargs.items()}
        return _lift(await asyncio.to_thread(method, self._sync, *given, **named))

    return call


def _called_on(loop: asyncio.AbstractEventLoop, given: Any) -> Any:
    """A coroutine function as one that a worker thread can call and wait for; anything else as it is."""
    if not inspect.iscoroutinefunction(given):
        return given

    @functools.wraps(given)
    def call(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(given(*map(_lift, args), **kwargs), loop).result()

    return call


def _iterating(method: Callable[..., Iterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
    @functools.wraps(method)
    async def iterate(self: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="muniment-iter") as thread:
            items = await loop.run_in_executor(thread, functools.partial(method, self._sync, *args, **kwargs))
            try:
                while (item := await loop.run_in_executor(thread, next, items, _DONE)) is not _DONE:
                    yield item
            finally:
                close = getattr(items, "close", None)
                if close is not None:
                    await loop.run_in_executor(thread, close)

    return iterate


def _reading(name: str) -> property:
    return property(lambda self: _lift(getattr(self._sync, name)))


def _derive(sync: type, doc: str) -> Callable[[type], type]:
    """Class decorator: give the class an async twin of every public method and property of `sync`."""

    def fill(cls: type) -> type:
        members = {name: member for base in reversed(sync.__mro__[:-1]) for name, member in vars(base).items()}
        for name, member in members.items():
            if name.startswith("_"):
                continue
            if isinstance(member, property):
                setattr(cls, name, _reading(name))
            elif inspect.isfunction(member):
                is_iterator = str(member.__annotations__.get("return", "")).startswith("Iterator")
                setattr(cls, name, _iterating(member) if is_iterator else _awaiting(member))
        cls.__doc__ = doc
        return cls

    return fill


class _Twin:
    def __init__(self, sync: Any) -> None:
        self._sync = sync

    def __repr__(self) -> str:
        return f"<async {self._sync!r}>"


@_derive(Run, "A run's handle, with `await`. See `muniment.Run`.")
class AsyncRun(_Twin):
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


@_derive(Runner, "Something that runs an agent on tasks, with `await`. See `muniment.Memory.runner`.")
class AsyncRunner(_Twin):
    pass


@_derive(_memory.Memory, "A store, with `await`. See `muniment.Memory`.")
class AsyncMemory(_Twin):
    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await asyncio.to_thread(self._sync.close)


_TWINS: dict[type, type[_Twin]] = {
    Run: AsyncRun,
    Corpus: AsyncCorpus,
    Study: AsyncStudy,
    Bank: AsyncBank,
    Rulebook: AsyncRulebook,
    Runner: AsyncRunner,
    _memory.Memory: AsyncMemory,
}


def _lift(value: Any) -> Any:
    """What the sync twin answered, with async handles in place of sync ones."""
    twin = _TWINS.get(type(value))
    if twin is not None:
        return twin(value)
    held = getattr(value, "run", None)
    return replace(value, run=AsyncRun(held)) if isinstance(held, Run) else value


@functools.wraps(_memory.open)
async def open(*args: Any, **kwargs: Any) -> AsyncMemory:
    lifted: AsyncMemory = _lift(await asyncio.to_thread(_memory.open, *args, **kwargs))
    return lifted
