"""Memory for integrations, for one session of one user: record, compose, search, remember, forget.

All access is through the public face, so that a store behind `muniment.connect(…)` works as well as one on disk. Calls
around a model's call (`record`, `compose`, `prepare`) fail as configured: open, with a warning and without memory, or
closed, with the typed error. Explicit requests (`search`, `remember`, `forget`) always raise. It never changes a
message and inserts no packet: the framework's integration decides where it goes.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, cast

from muniment.core.canonical import digest_of
from muniment.core.scope import DEFAULT_TENANT, scope_given
from muniment.errors import Forgotten, InvalidInput, MunimentError, NotFound
from muniment.integrations.live_history import left_out
from muniment.integrations.session.functions import without_echoes
from muniment.integrations.session.in_view import InView, PacketsInView, SentPackets
from muniment.integrations.session.questions import Asked, asked_of
from muniment.integrations.session.recording import Written, event_texts, record_answer, record_list, record_named

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.contracts.packet import Fact
    from muniment.core.record import JsonValue
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.memory._fact_records import Candidate
    from muniment.memory.search import Hit
    from muniment.packets.builds import Build
    from muniment.store.ledger import LedgerEntry, Receipt

__all__ = ["AsyncSessionMemory", "Failing", "SessionMemory", "check_max_tokens", "store_of"]

_LOG = logging.getLogger("muniment.integrations")
_P = ParamSpec("_P")
_T = TypeVar("_T")


def store_of(mem: Memory | AsyncMemory) -> Memory:
    """The sync store: memory's part of an async call runs as one piece of work in a thread."""
    store: Any = getattr(mem, "_sync", mem)
    return cast("Memory", store)


def check_max_tokens(max_tokens: int | None) -> None:
    """Raise now for a limit on which every packet would fail. None uses the policy's."""
    from muniment.packets.builds import TOKENS_MAX, TOKENS_MIN

    if max_tokens is not None and (type(max_tokens) is not int or not TOKENS_MIN <= max_tokens <= TOKENS_MAX):
        raise InvalidInput(
            f"max_tokens should be a whole number from {TOKENS_MIN} to {TOKENS_MAX}", path="$.max_tokens"
        )


class Failing:
    """Open: log a warning without content and continue. Closed: raise the error. Yields the error codes."""

    def __init__(
        self, what: str, *, is_open: bool, failures: list[str] | None = None, log: logging.Logger = _LOG
    ) -> None:
        self._what = what
        self._is_open = is_open
        self._failures = [] if failures is None else failures
        self._log = log

    def __enter__(self) -> list[str]:
        return self._failures

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if not self._is_open or not isinstance(error, MunimentError | OSError):
            return False
        code = error.code if isinstance(error, MunimentError) else type(error).__name__
        self._failures.append(code)
        self._log.warning("a call went on without memory: %s (%s)", self._what, code)
        return True


class SessionMemory:
    """One session of one user for a framework's agent. Thread-safe.

    Messages are in the form of an API: Chat Completions, Responses or Anthropic's. All handles on one session share its
    state; without a `session_id` it is a new one.
    """

    def __init__(
        self,
        mem: Memory | AsyncMemory,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str = "agent",
        tenant_id: str = DEFAULT_TENANT,
        run_id: str | None = None,
        max_tokens: int | None = None,
        on_error: Literal["open", "closed"] = "open",
        sent: SentPackets | None = None,
    ) -> None:
        """Takes `run_id` for integrations that resume the same run, and `sent` for those whose handles live for one
        call, so that sent packets are known from one to the next.
        """
        if on_error not in ("open", "closed"):
            raise InvalidInput("on_error should be 'open' or 'closed'", path="$.on_error")
        if max_tokens is not None:
            check_max_tokens(max_tokens)
        named = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id, "tenant_id": tenant_id}
        self._names: dict[str, Any] = {**named, "run_id": run_id}
        given = {key: value for key, value in self._names.items() if value is not None}
        scope_given({"session_id": "unsaid", "run_id": "unsaid", **given})  # report invalid names now
        self.mem = store_of(mem)
        self._max_tokens = max_tokens
        self._is_open = on_error == "open"
        self._sent = sent or SentPackets()
        self._run: Run | None = None
        self._lock = threading.Lock()

    @property
    def run(self) -> Run:
        """The underlying run, with `extract`, `verify` and everything else this class leaves out."""
        with self._lock:
            if self._run is None:
                self._run = self.mem.run(**self._names)
            return self._run

    @property
    def aio(self) -> AsyncSessionMemory:
        """An async handle on this session."""
        return AsyncSessionMemory(self)

    # -- around a model's call ----------------------------------------------------------------------------------

    def prepare(self, messages: Sequence[Any]) -> Build | None:
        """Before a model call: record the new messages of the list, and compose for its last question, leaving out
        anything in the list itself. Returns None if memory failed and the failure is open; a build with an empty
        text if memory holds nothing else.
        """
        with Failing("its messages were not recorded", is_open=self._is_open):
            written = self.record_all(without_echoes(messages))
            with Failing("no packet was composed", is_open=self._is_open):
                return self.composed(messages, written.left_out)
        return None

    def record(
        self,
        messages: Sequence[Any],
        *,
        answer: Sequence[Any] = (),
        ids: Sequence[str] | None = None,
        build: Build | str | None = None,
    ) -> list[LedgerEntry]:
        """Record messages, each once, and return what was written.

        Without `ids`, the list is the conversation as the framework holds it: whole, cut in front, summarised or
        edited; `answer` is the model's answer to it, if the list does not contain it, and `build` the packet of that
        answer. With `ids`, these messages are new, and one passed before under its id is not written again. Use one of
        the two ways per session: neither looks for messages written by the other.
        """
        with Failing("messages were not recorded", is_open=self._is_open):
            if ids is None and not answer:
                return self.record_all(without_echoes(messages), build).entries
            said = without_echoes([*messages, *answer])
            if ids is not None:
                return record_named(self.mem, self.run, said, ids, build)
            return record_answer(self.mem, self.run, said[: len(messages)], said[len(messages) :], build)
        return []

    def compose(self, sent: Sequence[Any] = (), *, query: str | None = None) -> Build | None:
        """Compose a packet that leaves out what the framework sends itself: messages, or plain texts.

        It is for `query`, or for the user's last question in the messages; if only tools were called since that
        question, its packet is reused. Parts of the session that are no longer sent may be included.
        """
        texts = [each for each in sent if isinstance(each, str)]
        messages = [each for each in sent if not isinstance(each, str)]
        with Failing("no packet was composed", is_open=self._is_open):
            left = left_out(self.mem, self.run, [*texts, *event_texts(messages)])
            return self.composed(messages, left, query)
        return None

    def record_all(
        self, messages: Sequence[Any], build: Build | str | None = None, *, goes_on_from: str | None = None
    ) -> Written:
        """Record the new messages of a list and return them, with what its packet leaves out. Raises on failure."""
        return record_list(self.mem, self.run, messages, build, goes_on_from=goes_on_from)

    def composed(self, messages: Sequence[Any], left: dict[str, Any], query: str | None = None) -> Build:
        """The packet for the question, or the existing one if only tools were called since. Raises on failure."""
        run, asked = self.run, asked_of(messages) or Asked(len(messages) - 1, "")
        text = asked.text if query is None else query
        key = (run.scope.tenant_id, run.scope.user_id, run.scope.run_id, str(asked.at), digest_of(text))
        known = self._sent.find(key) if asked.at < len(messages) - 1 else None
        if known is not None:
            with suppress(Forgotten, NotFound):
                return self.mem.replay(known.build_id, tenant_id=run.scope.tenant_id)
        build = run.compose("responder", query=text, max_tokens=self._max_tokens, **left)
        self._sent.keep(key, build)
        return build

    def composed_in_view(
        self, messages: Sequence[Any], left: dict[str, Any], holds: Callable[[int], bool]
    ) -> InView | None:
        """The packet for the question, given the packets that stay in the list where they were sent, with the messages
        they precede. None if the list has no question in words; `holds` returns whether a packet can be put before a
        message. Raises on failure.
        """
        return PacketsInView(self.mem, self.run, self._sent, self._max_tokens).compose(messages, left, holds)

    # -- what is asked for in words -----------------------------------------------------------------------------

    def search(self, query: str, *, k: int = 10, min_score: float | None = None) -> list[Hit]:
        """Search the user's sessions and current facts, best first, with ids and scores."""
        return self.run.search(query, k=k, min_score=min_score)

    def remember(self, key: str, value: JsonValue, *, sources: Iterable[str] = (), quote: str | None = None) -> Fact:
        """Assert a fact on evidence: the events that state it, and a quote from one of them."""
        return self.run.remember(key, value, sources=sources, quote=quote)

    def propose(self, key: str, value: JsonValue, *, sources: Iterable[str], quote: str | None = None) -> Candidate:
        """Propose a fact for a model: policy decides whether it is accepted, waits or is declined."""
        return self.run.propose(key, value, sources=sources, quote=quote)

    def forget(self, id: str) -> Receipt:
        """Erase one event or fact of this user, by the id of a hit, with everything derived from it."""
        scope = self.run.scope
        try:
            return self.mem.forget(event=id, user_id=scope.user_id, tenant_id=scope.tenant_id)
        except NotFound:
            return self.mem.forget(fact=id, user_id=scope.user_id, tenant_id=scope.tenant_id)

    def forget_session(self) -> Receipt:
        """Erase everything of this session, with everything derived from it."""
        scope = self.run.scope
        return self.mem.forget(session=scope.session_id, user_id=scope.user_id, tenant_id=scope.tenant_id)

    def forget_user(self) -> Receipt:
        """Erase everything of this user, in all sessions."""
        return self.mem.forget(user_id=self.run.scope.user_id, tenant_id=self.run.scope.tenant_id)


def _awaited(
    method: Callable[Concatenate[SessionMemory, _P], _T],
) -> Callable[Concatenate[AsyncSessionMemory, _P], Awaitable[_T]]:
    @wraps(method)
    async def call(self: AsyncSessionMemory, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.to_thread(method, self.sync, *args, **kwargs)

    return call


class AsyncSessionMemory:
    """`SessionMemory` with `await`: each call runs its sync counterpart in a thread."""

    def __init__(self, sync: SessionMemory) -> None:
        self.sync = sync

    prepare = _awaited(SessionMemory.prepare)
    record = _awaited(SessionMemory.record)
    compose = _awaited(SessionMemory.compose)
    record_all = _awaited(SessionMemory.record_all)
    composed = _awaited(SessionMemory.composed)
    composed_in_view = _awaited(SessionMemory.composed_in_view)
    search = _awaited(SessionMemory.search)
    remember = _awaited(SessionMemory.remember)
    propose = _awaited(SessionMemory.propose)
    forget = _awaited(SessionMemory.forget)
    forget_session = _awaited(SessionMemory.forget_session)
    forget_user = _awaited(SessionMemory.forget_user)
