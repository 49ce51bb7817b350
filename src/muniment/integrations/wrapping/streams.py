"""Observe a client's own stream: its events are assembled, and recorded when it ends.

The caller holds the client's own object. Its class is replaced by a subclass that listens, so that every way to read it
(a loop, `next`, `text_stream`, `get_final_message()`) is observed, and nothing private of the client is touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from muniment.integrations.wrapping.answers import AnswerReader
    from muniment.integrations.wrapping.conversation import Call, Conversation

__all__ = ["Following", "follow"]

_NAME = "_muniment_following"


class Following:
    """Observes one stream, recorded once, when it ends, is interrupted or abandoned."""

    def __init__(self, conversation: Conversation, call: Call, *, outlives_loops: bool) -> None:
        """`outlives_loops` is true for a helper that can be read on after a loop was left, until its `with` ends."""
        self._conversation = conversation
        self._call = call
        self._reader: AnswerReader = call.dialect.reader()
        self.outlives_loops = outlives_loops
        self._is_kept = False

    def take(self, event: Any) -> None:
        self._reader.take(event)

    def end(self, *, is_quiet: bool = False) -> None:
        """Record what came: the stream ended (or, quietly, was interrupted or abandoned)."""
        if not self._is_kept:
            self._is_kept = True
            self._conversation.keep(self._call, self._reader.messages(), is_quiet=is_quiet)

    async def end_async(self, *, is_quiet: bool = False) -> None:
        if not self._is_kept:
            await asyncio.to_thread(self.end, is_quiet=is_quiet)

    def __enter__(self) -> None:
        """Enter one step of the stream; if it yields no event, the stream has ended or was interrupted."""

    def __exit__(self, stopped: type[BaseException] | None, *_: object) -> None:
        if stopped is not None:
            self.end(is_quiet=not issubclass(stopped, StopIteration))

    async def __aenter__(self) -> None:
        """Enter one step of an async stream."""

    async def __aexit__(self, stopped: type[BaseException] | None, *_: object) -> None:
        if stopped is not None:
            await self.end_async(is_quiet=not issubclass(stopped, StopAsyncIteration))


def follow(stream: Any, following: Following, *, is_async: bool) -> Any:
    """Observe the stream from here on; if its class cannot be replaced, as for a generator, return an object that
    passes its events on.
    """
    cls: Any = type(stream)
    try:
        setattr(stream, _NAME, following)
        stream.__class__ = _followed_async(cls) if is_async else _followed(cls)
    except (TypeError, AttributeError, ValueError):
        return _AsyncEvents(stream, following) if is_async else _Events(stream, following)
    return stream


class _Handing:
    """A stream proxy that passes everything on except the events."""

    def __init__(self, stream: Any, following: Following) -> None:
        self._stream = stream
        self._following = following

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Events(_Handing):
    def __init__(self, stream: Any, following: Following) -> None:
        super().__init__(stream, following)
        self._events = iter(stream)

    def __iter__(self) -> Iterator[Any]:
        return _read(self._events, self._following)

    def __next__(self) -> Any:
        with self._following:
            event = next(self._events)
        self._following.take(event)
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if hasattr(self._stream, "close"):
            self._stream.close()
        self._following.end(is_quiet=True)


class _AsyncEvents(_Handing):
    def __init__(self, stream: Any, following: Following) -> None:
        super().__init__(stream, following)
        self._events = aiter(stream)

    def __aiter__(self) -> AsyncIterator[Any]:
        return _read_async(self._events, self._following)

    async def __anext__(self) -> Any:
        async with self._following:
            event = await anext(self._events)
        self._following.take(event)
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        closing = getattr(self._stream, "close", None) or getattr(self._stream, "aclose", None)
        if closing is not None:
            await closing()
        await self._following.end_async(is_quiet=True)


def _read(events: Iterator[Any], following: Following) -> Iterator[Any]:
    is_read = False
    try:
        for event in events:
            following.take(event)
            yield event
        is_read = True
    except GeneratorExit:  # the caller left the loop
        is_read = following.outlives_loops
        raise
    finally:
        if not is_read:
            following.end(is_quiet=True)
    following.end()


async def _read_async(events: AsyncIterator[Any], following: Following) -> AsyncIterator[Any]:
    is_read = False
    try:
        async for event in events:
            following.take(event)
            yield event
        is_read = True
    except GeneratorExit:
        is_read = following.outlives_loops
        raise
    finally:
        if not is_read:
            await following.end_async(is_quiet=True)
    await following.end_async()


class _Own:
    """The events of a stream that is its own iterator, by its own class."""

    def __init__(self, stream: Any, cls: Any) -> None:
        self._stream = stream
        self._cls = cls

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self._cls.__next__(self._stream)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await self._cls.__anext__(self._stream)


@lru_cache(maxsize=64)
def _followed(cls: type) -> type:
    def iterate(self: Any) -> Iterator[Any]:
        events = cls.__iter__(self)  # type: ignore[attr-defined]
        return _read(_Own(self, cls) if events is self else events, getattr(self, _NAME))

    def step(self: Any) -> Any:
        following: Following = getattr(self, _NAME)
        with following:
            event = cls.__next__(self)  # type: ignore[attr-defined]
        following.take(event)
        return event

    def close(self: Any) -> None:
        cls.close(self)  # type: ignore[attr-defined]
        getattr(self, _NAME).end(is_quiet=True)

    return _subclass(cls, __iter__=iterate, __next__=step, close=close)


@lru_cache(maxsize=64)
def _followed_async(cls: type) -> type:
    def iterate(self: Any) -> AsyncIterator[Any]:
        events = cls.__aiter__(self)  # type: ignore[attr-defined]
        return _read_async(_Own(self, cls) if events is self else events, getattr(self, _NAME))

    async def step(self: Any) -> Any:
        following: Following = getattr(self, _NAME)
        async with following:
            event = await cls.__anext__(self)  # type: ignore[attr-defined]
        following.take(event)
        return event

    async def close(self: Any) -> None:
        await cls.close(self)  # type: ignore[attr-defined]
        await getattr(self, _NAME).end_async(is_quiet=True)

    return _subclass(cls, __aiter__=iterate, __anext__=step, close=close)


def _subclass(cls: type, **methods: Any) -> type:
    return type(cls.__name__, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__, **methods})
