"""Memory's part of one model call, before and after it: the same for a wrapped client, the proxy and LiteLLM.

Before: the new messages of the caller's list are recorded, and a packet is composed for its last question. After: the
answer is recorded with that packet. The packet never repeats what the caller sends: if the list holds the whole
session, the packet leaves out the session; if it was cut, the packet may cover the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from muniment.core.canonical import short_id
from muniment.errors import AnswerNotRecorded, MunimentError
from muniment.integrations.session.in_view import SentPackets
from muniment.integrations.session.memory import Failing, SessionMemory
from muniment.integrations.session.recording import record_answer
from muniment.integrations.wrapping.placing import Insertion, Place, inserted
from muniment.packets.render import REMINDER

if TYPE_CHECKING:
    from muniment.core.scope import Scope
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.integrations.wrapping.dialects import Dialect
    from muniment.packets.builds import Build

__all__ = ["Call", "Conversation", "SentPackets", "Telling", "Whose"]

_LOG = logging.getLogger("muniment.wrap")


class Whose(NamedTuple):
    """The user and session of a conversation; without a session one is created by the first call."""

    user_id: str
    session_id: str | None
    agent_id: str
    tenant_id: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its request, and the state for recording its answer."""

    dialect: Dialect
    given: dict[str, Any]
    messages: list[Any]
    build: Build | None = None
    insertions: tuple[Insertion, ...] = ()
    """Packets to insert: those in view, where they were sent, and the new one."""
    goes_on_from: str | None = None
    is_recorded: bool = False
    """True if the ledger holds the caller's list. Without it an answer would be recorded alone."""
    failure: str | None = None
    """Code of the error that kept memory out."""

    @property
    def sent(self) -> dict[str, Any]:
        """The request: the caller's arguments with the packets inserted."""
        sent: dict[str, Any] = self.given
        for insertion in self.insertions:
            sent = inserted(sent, insertion)
        return sent


class Telling(NamedTuple):
    """Settings of packets: their size, their place, and the handling of failures."""

    max_tokens: int | None = None
    cite: bool = False
    place: Place = "question"
    fails_open: bool = True


class Reader(Protocol):
    """Reads the user's messages in the background."""

    def note_loop(self) -> None:
        """Note the running loop, in which the client is called."""
        ...

    def notice(self, scope: Scope, model: str) -> None:
        """Note that the user spoke in this session, and the model of the call."""
        ...


class Conversation:
    """One session of one user, written by a wrapped client. Thread-safe."""

    def __init__(
        self,
        mem: Memory,
        whose: Whose,
        telling: Telling,
        sent: SentPackets | None = None,
        reader: Reader | None = None,
    ) -> None:
        self.mem = mem
        self._reader = reader
        self.whose = whose
        self.last_build: Build | None = None
        self._telling = telling
        self._sent = sent or SentPackets()
        run_id = None if whose.session_id is None else short_id("run", ["wrap", *whose])
        self._session = SessionMemory(
            mem, **whose._asdict(), run_id=run_id, max_tokens=telling.max_tokens, sent=self._sent
        )

    def of_session(self, session_id: str | None) -> Conversation:
        """A conversation of the same user in another session."""
        return Conversation(
            self.mem, self.whose._replace(session_id=session_id), self._telling, self._sent, self._reader
        )

    def note_loop(self) -> None:
        """Note the running loop, in which the client is called."""
        if self._reader is not None:
            self._reader.note_loop()

    def run(self) -> Run:
        """The run of the session, resumed by any client wrapped for that session."""
        return self._session.run

    # -- before -----------------------------------------------------------------------------------------------

    def begin(self, dialect: Dialect, given: Mapping[str, Any]) -> Call:
        """Record new messages, compose, and prepare the request. Fails as configured."""
        messages = dialect.messages(given)
        if messages is None:
            return Call(dialect, dict(given), [])
        lists = {name for name in ("messages", "input") if isinstance(given.get(name), Iterable)}
        bare = {name for name in lists if not isinstance(given[name], list | str)}
        kept = {**given, **dict.fromkeys(bare, messages)}  # an iterator was just consumed, so pass on its messages
        call = Call(dialect, kept, messages, goes_on_from=dialect.goes_on_from(given))
        self.last_build = None
        with self._failing("its messages were not recorded") as failures:
            written = self._session.record_all(messages, goes_on_from=call.goes_on_from)
            call = replace(call, is_recorded=True)
            with self._failing("no packet was composed", failures):
                call = self._with_packets(call, written.left_out)
                self.last_build = call.build
        return replace(call, failure=failures[0]) if failures else call

    def _with_packets(self, call: Call, left_out: dict[str, Any]) -> Call:
        """Add the packet for the question: with those in view, or whole after the system prompt."""
        dialect, given, session = call.dialect, call.given, self._session
        if self._telling.place == "question":

            def holds(at: int) -> bool:
                return dialect.before(given, at, "") is not None

            view = session.composed_in_view(call.messages, left_out, holds)
            if view is not None:
                texts = [(at, self._told(text)) for at, text in view.texts]
                found = tuple(each for at, text in texts if (each := dialect.before(given, at, text)) is not None)
                return replace(call, build=view.build, insertions=found)
        build = session.composed(call.messages, left_out)
        behind = (dialect.behind_prompt(given, self._told(build.text)),) if build.text else ()
        return replace(call, build=build, insertions=behind)

    def _told(self, text: str) -> str:
        """The packet's text, with a reminder to cite if that is wanted and there is something to cite."""
        return f"{text}\n{REMINDER}" if self._telling.cite and "[" in text else text

    # -- after ------------------------------------------------------------------------------------------------

    def keep(self, call: Call, answer: Sequence[Any], *, response: Any = None, is_quiet: bool = False) -> None:
        """Record an answer. If that fails and the wrapper fails closed, `AnswerNotRecorded` carries it; with `is_quiet`
        nothing is raised, since the caller must see the client's own error.
        """
        if not answer or not call.is_recorded:
            return
        try:
            with self._failing("its answer was not recorded", is_quiet=is_quiet):
                self._record_answer(call, list(answer))
        except (MunimentError, OSError) as error:
            raise _not_recorded(answer if response is None else response) from error
        model = call.given.get("model")
        if self._reader is not None and isinstance(model, str):
            self._reader.notice(self.run().scope, model)

    def _record_answer(self, call: Call, answer: list[Any]) -> None:
        record_answer(self.mem, self.run(), call.messages, answer, call.build, goes_on_from=call.goes_on_from)

    def _failing(self, what: str, failures: list[str] | None = None, *, is_quiet: bool = False) -> Failing:
        return Failing(what, is_open=self._telling.fails_open or is_quiet, failures=failures, log=_LOG)


def _not_recorded(answer: Any) -> AnswerNotRecorded:
    error = AnswerNotRecorded("the model answered, and its answer could not be recorded")
    error.answer = answer
    return error
