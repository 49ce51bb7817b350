"""What one call of a model does with memory: before it is sent, and once the answer is there. Through a wrapped client,
the proxy or LiteLLM, it is the same.

Before: what of the caller's list is new is recorded, and a packet is composed for its last question. After: the answer
is recorded with that packet. What the caller sends is never told twice: of a list that holds the whole session nothing
of the session stands in the packet; of one that was cut, what was cut may.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import digest_of, short_id
from muniment.errors import (
    AnswerNotRecorded,
    Forgotten,
    IdempotencyMismatch,
    InvalidInput,
    MessagesDiffer,
    MunimentError,
    NotFound,
)
from muniment.integrations.wrapping.alignment import Aligned, align, ends_with, missing_calls, recorded
from muniment.integrations.wrapping.placing import Asked, Insertion, Place, asked_of, inserted
from muniment.packets.recording import plain_messages
from muniment.store.ledger.messages import MessageEvent, read_messages

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.integrations.wrapping.dialects import Dialect
    from muniment.packets.builds import Build

__all__ = ["Call", "Conversation", "RecentBuilds", "Telling", "Whose"]

_LOG = logging.getLogger("muniment.wrap")
_OTHERWISE = (MessagesDiffer, IdempotencyMismatch, InvalidInput)
"""What says that a list does not go on from what was recorded: it was edited; another call took the place meanwhile; or
it was cut, so that a result stands without its call.
"""
_RECENT_MAX = 4_096
"""Questions whose packet is known again while tools are asked."""


class Whose(NamedTuple):
    """Whose conversation it is; without a session one is minted with the first call."""

    user_id: str
    session_id: str | None
    agent_id: str
    tenant_id: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call: what is sent, and what its answer is recorded with."""

    dialect: Dialect
    given: dict[str, Any]
    messages: list[Any]
    build: Build | None = None
    insertion: Insertion | None = None
    """Where the packet goes; None where there is none."""
    goes_on_from: str | None = None
    is_recorded: bool = False
    """Does the ledger hold the caller's list? Without it an answer would stand there alone."""
    failure: str | None = None
    """The code of the error without which it would not go on without memory."""

    @property
    def sent(self) -> dict[str, Any]:
        """What is sent: what the caller gave, with the packet in its place."""
        sent: dict[str, Any] = self.given if self.insertion is None else inserted(self.given, self.insertion)
        return sent


class Telling(NamedTuple):
    """How a packet is told: how long it may be, where it stands, and what happens where there can be none."""

    max_tokens: int | None = None
    cite: bool = False
    place: Place = "system"
    fails_open: bool = True


class RecentBuilds:
    """Which build a question was given. While tools are asked, a question is sent again and again with more behind it:
    it keeps its packet, so that a provider's cache keeps all that stood before. Thread-safe.
    """

    def __init__(self, count_max: int = _RECENT_MAX) -> None:
        self._held: OrderedDict[tuple[str, ...], str] = OrderedDict()
        self._count_max = count_max
        self._lock = threading.Lock()

    def find(self, key: tuple[str, ...]) -> str | None:
        with self._lock:
            return self._held.get(key)

    def keep(self, key: tuple[str, ...], build_id: str) -> None:
        with self._lock:
            self._held[key] = build_id
            self._held.move_to_end(key)
            while len(self._held) > self._count_max:
                self._held.popitem(last=False)


class Conversation:
    """One session of one user, as a wrapped client writes it. Thread-safe."""

    def __init__(self, mem: Memory, whose: Whose, telling: Telling, recent: RecentBuilds | None = None) -> None:
        self.mem = mem
        self.whose = whose
        self.last_build: Build | None = None
        self._telling = telling
        self._recent = recent or RecentBuilds()
        self._run: Run | None = None
        self._lock = threading.Lock()

    def of_session(self, session_id: str | None) -> Conversation:
        """The same user's, in another session."""
        return Conversation(self.mem, self.whose._replace(session_id=session_id), self._telling, self._recent)

    def run(self) -> Run:
        """The run that writes it: one for each session, taken up again by whoever wraps a client for that session."""
        with self._lock:
            if self._run is None:
                whose = self.whose
                run_id = None if whose.session_id is None else short_id("run", ["wrap", *whose])
                self._run = self.mem.run(**whose._asdict(), run_id=run_id)
            return self._run

    # -- before -----------------------------------------------------------------------------------------------

    def begin(self, dialect: Dialect, given: Mapping[str, Any]) -> Call:
        """Record what is new, compose, and say what is to be sent. Fails as the wrapper was told to."""
        messages = dialect.messages(given)
        if messages is None:
            return Call(dialect, dict(given), [])
        lists = {name for name in ("messages", "input") if isinstance(given.get(name), Iterable)}
        bare = {name for name in lists if not isinstance(given[name], list | str)}
        kept = {**given, **dict.fromkeys(bare, messages)}  # an iterator was read just now, and can be no more
        call = Call(dialect, kept, messages, goes_on_from=dialect.goes_on_from(given))
        self.last_build = None
        with self._failing("its messages were not recorded") as failures:
            run = self.run()
            left_out = self._record(run, call)
            call = replace(call, is_recorded=True)
            with self._failing("no packet was composed", failures):
                build = self._composed(run, messages, left_out)
                place = self._telling.place
                found = dialect.insertion(kept, build, place, cite=self._telling.cite)
                call = replace(call, build=build, insertion=found)
                self.last_build = build
        return replace(call, failure=failures[0]) if failures else call

    def _composed(self, run: Run, messages: list[Any], left_out: Mapping[str, Any]) -> Build:
        """The packet for what is asked; the one that the question was given, where only tools were asked since."""
        asked = asked_of(messages) or Asked(len(messages) - 1, "")
        scope = run.scope
        key = (scope.tenant_id, scope.user_id, scope.run_id, str(asked.at), digest_of(asked.text))
        known = self._recent.find(key) if asked.at < len(messages) - 1 else None
        if known is not None:
            with suppress(Forgotten, NotFound):
                return self.mem.replay(known, tenant_id=scope.tenant_id)
        build = run.compose("responder", query=asked.text, max_tokens=self._telling.max_tokens, **left_out)
        self._recent.keep(key, build.id)
        return build

    def _record(self, run: Run, call: Call) -> dict[str, Any]:
        """Write what is new of the list; what the packet is to leave out, since the caller sends it."""
        if call.goes_on_from is None:
            try:
                run.record(call.messages)
            except _OTHERWISE:
                pass
            else:
                return {"exclude_session": True}
        aligned, written = self._record_new(run, call, call.messages, ())
        if call.goes_on_from is not None:  # the server adds what it holds, which is the whole session
            return {"exclude_session": True}
        return {"exclude": [*aligned.known_ids, *written]}

    # -- after ------------------------------------------------------------------------------------------------

    def keep(self, call: Call, answer: Sequence[Any], *, response: Any = None, is_quiet: bool = False) -> None:
        """Record an answer. Where that fails and the wrapper fails closed, `AnswerNotRecorded` carries it; with
        `is_quiet` nothing is raised, since the client's own error is what the caller must see.
        """
        if not answer or not call.is_recorded:
            return
        try:
            with self._failing("its answer was not recorded", is_quiet=is_quiet):
                self._record_answer(self.run(), call, list(answer))
        except (MunimentError, OSError) as error:
            raise _not_recorded(answer if response is None else response) from error

    def _record_answer(self, run: Run, call: Call, answer: list[Any]) -> None:
        if call.goes_on_from is None:
            try:
                run.record([*call.messages, *answer], build=call.build)
            except _OTHERWISE:  # asked again, or after an edit
                pass
            else:
                return
        self._record_new(run, call, call.messages, answer)

    # -- a list that does not begin with what was recorded ----------------------------------------------------------

    def _record_new(
        self, run: Run, call: Call, messages: Sequence[Any], answer: Sequence[Any]
    ) -> tuple[Aligned, list[str]]:
        """Write what the session does not hold yet; with an answer, that alone. What is known, and the ids written."""
        scope = run.scope
        entries = self.mem.ledger.entries(user_id=scope.user_id, session_id=scope.session_id, tenant_id=scope.tenant_id)
        known = recorded(entries, run.ledger.content)
        plain = plain_messages([*messages, *answer])
        before = missing_calls(known, plain)
        events = read_messages([*before, *plain])
        if answer:
            first = len(before) + len(messages)
            said = [each for each in events if each.at >= first]
            asked = [each for each in events if each.at < first and not each.is_prompt][-1:]
            new = Aligned([], [] if ends_with(known, [*asked, *said]) else said)  # asked once more, answered the same
        elif call.goes_on_from is not None:
            sent = [each for each in events if each.at >= len(before)]
            new = Aligned([], [] if ends_with(known, sent) else sent)  # sent again after a failure
        else:
            new = align(known, [each for each in events if each.at >= len(before)])
        prompts = [plain[each.at - len(before)] for each in events if each.at >= len(before) and each.is_prompt]
        if prompts:
            run.record(prompts)
        turns = [each for each in new.new if not each.is_prompt]
        after = call.goes_on_from or (known[-1].id if known else None)
        drafts = _answer_drafts(turns, call.build) if answer else _drafts(turns, after, events)
        return new, [entry.id for entry in run.observe_many(drafts)]

    # -- failing ------------------------------------------------------------------------------------------------

    @contextmanager
    def _failing(self, what: str, failures: list[str] | None = None, *, is_quiet: bool = False) -> Iterator[list[str]]:
        """Open: a warning without content, and the call goes on. Closed: the error. `failures` are its codes."""
        found = [] if failures is None else failures
        try:
            yield found
        except (MunimentError, OSError) as error:
            if not (self._telling.fails_open or is_quiet):
                raise
            code = error.code if isinstance(error, MunimentError) else type(error).__name__
            found.append(code)
            _LOG.warning("a call went on without memory: %s (%s)", what, code)


def _drafts(turns: Sequence[MessageEvent], after: str | None, events: Sequence[MessageEvent]) -> list[dict[str, Any]]:
    """Events to write. The same list sent twice side by side is written once: the key is what leads to each event."""
    drafts = []
    for turn in turns:
        led_by = [after, *(each.event for each in events if each.at <= turn.at), turn.event]
        drafts.append({**turn.event, "idempotency_key": f"wrap:{digest_of(led_by)[:40]}"})
    return drafts


def _answer_drafts(turns: Sequence[MessageEvent], build: Build | None) -> list[dict[str, Any]]:
    """The events of an answer, the last that says something with the build it was given."""
    drafts = [dict(turn.event) for turn in turns]
    said = [draft for draft in drafts if draft["role"] == "assistant"]
    if said and build is not None:
        said[-1]["build"] = build
    return drafts


def _not_recorded(answer: Any) -> AnswerNotRecorded:
    error = AnswerNotRecorded("the model answered, and its answer could not be recorded")
    error.answer = answer
    return error
