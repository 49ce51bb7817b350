"""The wrapped client: the caller's own, with a memory for its model calls. Everything else is the client's."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Self

from muniment.core.outside.calling import settled
from muniment.core.scope import DEFAULT_TENANT, scope_given
from muniment.errors import InvalidInput
from muniment.integrations.session.memory import store_of
from muniment.integrations.wrapping.conversation import Call, Conversation, Telling, Whose
from muniment.integrations.wrapping.dialects import DIALECTS, PLACES_ASKED, Dialect
from muniment.integrations.wrapping.placing import PLACES
from muniment.integrations.wrapping.streams import Following, follow

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.core.scope import Scope
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.packets.builds import Build

__all__ = ["WrappedClient", "wrap"]

_ASKING = ("create", "parse")
_COPYING = ("with_options", "copy")


def wrap(
    client: Any,
    mem: Memory | AsyncMemory,
    *,
    user_id: str,
    session_id: str | None = None,
    agent_id: str = "agent",
    tenant_id: str = DEFAULT_TENANT,
    max_tokens: int | None = None,
    cite: bool = False,
    place: Literal["question", "system"] = "question",
    on_error: Literal["open", "closed"] = "open",
    extract: bool = False,
) -> WrappedClient:
    """Wrap a client with a memory: OpenAI's, Anthropic's, or any that has the same calls, sync or async.

    One wrapped client is one conversation.

    `chat.completions.create`, `responses.create` and `messages.create` (also `parse`, `stream` and `stream=True`)
    record the new messages of the list, insert packets, send, and record the answer. They return the client's own
    answer; its `muniment_build_id` names the build. Everything else is the client's own.

    The first question gets a packet of at most `max_tokens`, which stays before that question in every later call. A
    later question gets a packet of new memories, of at most a quarter of that. So a provider's cache keeps the whole
    prompt. `place="system"` instead puts a whole packet after the system prompt in every call.

    With `extract` the client's own model, the one in the latest call, proposes facts from the user's messages, in the
    background and checked against the text (`mem.store.extracted` reports the cost).

    `on_error="open"`: if memory fails, a warning is logged and the call goes on without it. `"closed"`: the error is
    raised before anything is sent; if only the answer could not be recorded, `AnswerNotRecorded` carries it.
    """
    dialects, is_async = _kind(client)
    if on_error not in ("open", "closed"):
        raise InvalidInput("on_error should be 'open' or 'closed'", path="$.on_error")
    whose = Whose(user_id, session_id, agent_id, tenant_id)
    given = {key: value for key, value in whose._asdict().items() if value is not None}
    scope_given({"session_id": "unsaid", **given, "run_id": "unsaid"})  # report invalid names now
    store = store_of(mem)
    if store is not mem and not is_async:
        raise InvalidInput("a sync client takes a sync store", path="$.mem", hint="muniment.open(…), not muniment.aio")
    if place not in PLACES:
        raise InvalidInput("place should be 'question' or 'system'", path="$.place")
    telling = Telling(max_tokens, cite, place, fails_open=on_error == "open")
    conversation = Conversation(store, whose, telling, reader=_Reader(client, store) if extract else None)
    return WrappedClient(client, conversation, dialects, is_async=is_async, lift=getattr(mem, "_lift", _as_is))


def _as_is(run: Run) -> Run:
    return run


class _Reader:
    """Extracts facts with the client's own model, in the background. An async client is awaited in the loop of its
    latest call, where its connections belong.
    """

    def __init__(self, client: Any, mem: Memory) -> None:
        from muniment.memory._extract_model import load_turn_model

        if not mem._is_near:
            raise InvalidInput(
                "a model reads in the process that has the store open",
                path="$.extract",
                hint="a server reads in its upkeep, with the model of its own settings",
            )
        load_turn_model(client, mem.policy.memory.extraction)  # report an unsuitable client now
        self._client = client
        self._mem = mem
        self._loop: asyncio.AbstractEventLoop | None = None

    def note_loop(self) -> None:
        """Note the loop in which the client is called."""
        self._loop = asyncio.get_running_loop()

    def notice(self, scope: Scope, model: str) -> None:
        """Note that the user spoke in this session, and the model of the call."""
        from muniment.memory._extract_model import load_turn_model

        policy = self._mem.policy.memory.extraction
        reader = load_turn_model((self._client, model), policy, settle=self._settle)
        self._mem._start_background().notice(scope, reader)

    def _settle(self, call: Callable[[], Any]) -> Any:
        loop = self._loop
        if loop is None or loop.is_closed():
            return settled(call)
        answer = call()
        return (
            asyncio.run_coroutine_threadsafe(_finish(answer), loop).result() if inspect.isawaitable(answer) else answer
        )


async def _finish(answer: Awaitable[Any]) -> Any:
    return await answer


def _kind(client: Any) -> tuple[Mapping[tuple[str, ...], Dialect], bool]:
    """The model calls of a client, and whether they are awaited. Both packages' clients are recognised by class,
    without importing anything; any other by its attributes.
    """
    if isinstance(client, WrappedClient):
        raise InvalidInput(
            "this client has a memory already", path="$.client", hint="client.for_session(…) for another"
        )
    names = [(cls.__module__.partition(".")[0], cls.__name__) for cls in type(client).__mro__]
    for package in DIALECTS:
        for name, is_async in (("SyncAPIClient", False), ("AsyncAPIClient", True)):
            if (package, name) in names:
                return DIALECTS[package], is_async
    asking = {place: _call_at(client, (*place, "create")) for place in PLACES_ASKED}
    found = {place: call for place, call in asking.items() if call is not None}
    if not found:
        raise InvalidInput(
            f"a {type(client).__name__:.60} cannot be wrapped: it has no chat.completions.create, responses.create or "
            "messages.create",
            path="$.client",
            hint="wrap OpenAI, Anthropic or a client with their calls; else run.record and run.compose do it by hand",
        )
    return {place: PLACES_ASKED[place] for place in found}, any(map(_is_awaited, found.values()))


def _call_at(client: Any, path: tuple[str, ...]) -> Callable[..., Any] | None:
    held = client
    for name in path:
        held = getattr(held, name, None)
    return held if callable(held) else None


def _is_awaited(call: Callable[..., Any]) -> bool:
    """True if a call is a coroutine function, also if decorated or a callable object."""
    return any(map(inspect.iscoroutinefunction, (call, inspect.unwrap(call), type(call).__call__)))


class _Place:
    """A path on the client, such as `chat.completions`; attributes that are not wrapped are the client's own."""

    def __init__(self, held: Any, path: tuple[str, ...], root: WrappedClient) -> None:
        self._held = held
        self._path = path
        self._root = root

    def __getattr__(self, name: str) -> Any:
        return self._root._at(getattr(self._held, name), (*self._path, name))

    def __repr__(self) -> str:
        return f"<wrapped {self._held!r}>"


class WrappedClient:
    """A client with a memory, made by `muniment.wrap`."""

    def __init__(
        self,
        client: Any,
        conversation: Conversation,
        dialects: Mapping[tuple[str, ...], Dialect],
        *,
        is_async: bool,
        lift: Callable[[Run], Any],
    ) -> None:
        """`lift` makes an async handle of a run, if the caller's store is async."""
        self._client = client
        self._conversation = conversation
        self._dialects = dialects
        self._is_async = is_async
        self._lift = lift

    @property
    def last_build(self) -> Build | None:
        """The last call's packet; None if it went without memory. For concurrent calls, use the `muniment_build_id` of
        each answer.
        """
        return self._conversation.last_build

    @property
    def run(self) -> Any:
        """The run of this conversation: `client.run.remember(…)`, `client.run.extract()`."""
        return self._lift(self._conversation.run())

    def for_session(self, session_id: str | None = None) -> WrappedClient:
        """A handle for the same client and user in another session; without an id, in a new one."""
        return self._copied(self._client, self._conversation.of_session(session_id))

    def _copied(self, client: Any, conversation: Conversation) -> WrappedClient:
        return WrappedClient(client, conversation, self._dialects, is_async=self._is_async, lift=self._lift)

    # -- the client's own ---------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        held = getattr(self._client, name)
        if name in _COPYING:
            return lambda *args, **kwargs: self._copied(held(*args, **kwargs), self._conversation)
        return self._at(held, (name,))

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            setattr(self._client, name, value)

    def __repr__(self) -> str:
        return f"<wrapped {self._client!r}>"

    def __enter__(self) -> Self:
        self._client.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._client.__exit__(*error)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._client.__aexit__(*error)

    def _at(self, held: Any, path: tuple[str, ...]) -> Any:
        """The attribute at a path: a wrapped call, a prefix of one, or the client's own."""
        dialect = self._dialects.get(path[:-1])
        if dialect is not None and path[-1] in _ASKING:
            return (self._asking_async if self._is_async else self._asking)(held, dialect)
        if dialect is not None and path[-1] == "stream":
            manager = _AsyncManager if self._is_async else _Manager
            return lambda **given: manager(held, self._conversation, dialect, given)
        is_on_the_way = any(path == place[: len(path)] for place in self._dialects)
        return _Place(held, path, self) if is_on_the_way else held

    # -- calls ----------------------------------------------------------------------------------------------------

    def _asking(self, ask: Callable[..., Any], dialect: Dialect) -> Callable[..., Any]:
        def call(**given: Any) -> Any:
            begun = self._conversation.begin(dialect, given)
            answer = ask(**begun.sent)
            if inspect.isawaitable(answer):  # a client that does not declare it
                return self._awaited(answer, dialect, begun)
            if given.get("stream"):
                following = Following(self._conversation, begun, outlives_loops=False)
                return _named(follow(answer, following, is_async=hasattr(answer, "__aiter__")), begun)
            self._conversation.keep(begun, dialect.answer(answer), response=_named(answer, begun))
            return answer

        return call

    def _asking_async(self, ask: Callable[..., Any], dialect: Dialect) -> Callable[..., Any]:
        async def call(**given: Any) -> Any:
            self._conversation.note_loop()
            begun = await asyncio.to_thread(self._conversation.begin, dialect, given)
            return await self._awaited(ask(**begun.sent), dialect, begun)

        return call

    async def _awaited(self, asked: Awaitable[Any], dialect: Dialect, begun: Call) -> Any:
        answer = await asked if inspect.isawaitable(asked) else asked
        if begun.given.get("stream"):
            following = Following(self._conversation, begun, outlives_loops=False)
            return _named(follow(answer, following, is_async=hasattr(answer, "__aiter__")), begun)
        said = dialect.answer(answer)
        await asyncio.to_thread(self._conversation.keep, begun, said, response=_named(answer, begun))
        return answer


class _Manager:
    """`with client….stream(…) as stream:`; the call begins with the block."""

    def __init__(
        self, ask: Callable[..., Any], conversation: Conversation, dialect: Dialect, given: dict[str, Any]
    ) -> None:
        self._ask = ask
        self._conversation = conversation
        self._dialect = dialect
        self._given = given

    def __enter__(self) -> Any:
        begun = self._conversation.begin(self._dialect, self._given)
        self._manager = self._ask(**begun.sent)
        self._following = Following(self._conversation, begun, outlives_loops=True)
        return _named(follow(self._manager.__enter__(), self._following, is_async=False), begun)

    def __exit__(self, *error: Any) -> Any:
        answered = self._manager.__exit__(*error)
        self._following.end(is_quiet=True)
        return answered


class _AsyncManager(_Manager):
    async def __aenter__(self) -> Any:
        self._conversation.note_loop()
        begun = await asyncio.to_thread(self._conversation.begin, self._dialect, self._given)
        self._manager = self._ask(**begun.sent)
        self._following = Following(self._conversation, begun, outlives_loops=True)
        return _named(follow(await self._manager.__aenter__(), self._following, is_async=True), begun)

    async def __aexit__(self, *error: Any) -> Any:
        answered = await self._manager.__aexit__(*error)
        await self._following.end_async(is_quiet=True)
        return answered


def _named(answer: Any, call: Call) -> Any:
    """Set the build's id on the answer, if it can hold one."""
    if call.build is not None:
        with suppress(AttributeError, TypeError, ValueError):
            answer.muniment_build_id = call.build.id
    return answer
