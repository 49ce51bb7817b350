"""Recording by hooks, and the text they give the agent.

    start               earlier sessions of the repository; after a compaction, the session's own work
    prompt              matches in memory for the prompt, if any; then the prompt is recorded
    tool                its result is recorded
    answer              the transcript so far is recorded, and the agent's last message
    before compaction   the transcript, and a snapshot of the run
    after compaction    the host's own summary is kept for later sessions
    end                 the transcript, the host's summary, and the end of the run

Text still in the host's window is not given again. The text keeps within the host's limit, and is empty if memory has
nothing for a prompt.

Events and transcripts become entries, each once, however often a hook runs. A tool's result is identified by the id of
its call. Messages have no id shared by hooks and transcripts, so they are identified by their words and how often these
occurred before in the session: the second "go on" is a different message from the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import digest_of, short_id
from muniment.core.instants import format_instant, parse_instant
from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import Conflict, IdempotencyMismatch, InvalidInput, MunimentError
from muniment.store.waiting import forgotten_since
from muniment.surfaces.hosts.events import HookEvent, Turn, answer_with, read_event, read_transcript

if TYPE_CHECKING:
    from muniment.core.outside.pending import Pending
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.packets.builds import Build
    from muniment.store.ledger import LedgerEntry

__all__ = ["AGENT", "CHARS_MAX", "Listener", "handle", "write_pending"]

AGENT = "coding-agent"
CHARS_MAX = 9_500
"""Claude Code, Codex and Cursor show the model at most 10,000 characters of a hook, and put the rest into a file."""
_ASKED_MAX = 8
"""The number of the last session's prompts requested when the next one starts: the user's wishes come first."""
_ASKED_CHARS_MAX = 240
_LOOKED_AT_MAX = 200
_NO_TRANSCRIPT = "preCompact"
"""A Cursor event whose transcript does not show compactions."""


class Listener(NamedTuple):
    """The owner of the memory, and the limits of the text given at once."""

    user_id: str
    agent_id: str = AGENT
    tenant_id: str = DEFAULT_TENANT
    max_tokens: int = 1024
    personal_tenant: str | None = None
    """The tenant with the user's memory for every repository; None if there is none."""
    pending: Iterable[Pending] = ()
    """The queued events, of any session."""


def handle(
    mem: Memory,
    event: Mapping[str, Any],
    *,
    user_id: str,
    agent_id: str = AGENT,
    tenant_id: str = DEFAULT_TENANT,
    max_tokens: int = 1024,
    personal_tenant: str | None = None,
    pending: Iterable[Pending] = (),
) -> dict[str, Any]:
    """Handle one event of a hook; return the output for the agent, empty if there is none.

    `pending` are queued events; they are written after the transcript's, which are in order.
    """
    said = read_event(event)
    if said is None:
        return {}
    who = Listener(user_id, agent_id, tenant_id, max_tokens, personal_tenant, pending)
    if said.moment == "start":
        write_pending(mem, who)
    session = _session(mem, said.session, who)
    if said.moment == "start":
        return answer_with(said.name, _told_at_start(mem, session, said, who))
    if said.moment == "prompt":
        return answer_with(said.name, _told_and_recorded(mem, session, said, who))
    if said.moment == "tool":
        _record_result(session, said, key=str(len(session.entries)))
    elif said.moment == "answer":
        _record_answer(mem, session, said, who)
    elif said.moment == "before_compaction":
        _read_on(mem, session, said, who)
        _snapshot(session, said)
    elif said.moment == "after_compaction":
        session.let_go(said.name)
        if said.text.strip():
            session.summed_up(said.text)
    elif said.moment == "end":
        _end(mem, session, said, who)
    return {}


def _session(mem: Memory, session_id: str, who: Listener) -> Session:
    return open_session(mem, session_id, user_id=who.user_id, agent_id=who.agent_id, tenant_id=who.tenant_id)


# -- text for the agent -------------------------------------------------------------------------------


def _told_at_start(mem: Memory, session: Session, said: HookEvent, who: Listener) -> str:
    if said.source == "compact":
        with suppress(InvalidInput):  # the hook's own text is enough
            _read_transcript(mem, session, said)
        session.let_go(said.name)
        prompts = [entry.content for entry in session.entries if entry.role == "user" and entry.kind == "message"]
        asked = (prompts[-1] if prompts else None) or ""
        return _composed(session, who, "planner", query=asked, **session.in_window())
    if said.lost_told:
        session.lose_told()
    about_user = _personal(mem, said.session, who)
    left = _composed(session, who, "planner", query=_asked_last(mem, said.session, who), **session.in_window())
    return "\n".join(filter(None, (about_user, left)))


def _asked_last(mem: Memory, session_id: str, who: Listener) -> str:
    """The user's last messages in the newest other session, in their own words."""
    newest: list[str] = []
    found = ""
    entries = mem.ledger.entries(
        user_id=who.user_id, tenant_id=who.tenant_id, order="desc", kind="message", limit=_LOOKED_AT_MAX
    )
    for entry in entries:
        if entry.role != "user" or entry.scope.session_id == session_id or not entry.content:
            continue
        found = found or entry.scope.session_id
        if entry.scope.session_id == found and len(newest) < _ASKED_MAX:
            newest.append(entry.content[:_ASKED_CHARS_MAX])
    return "\n".join(reversed(newest))


def _told_and_recorded(mem: Memory, session: Session, said: HookEvent, who: Listener) -> str:
    """The matches in memory for a prompt. The prompt is recorded after everything before it (an interrupted turn sends
    no final event), and before anything is composed: if that takes too long, the prompt is kept.
    """
    known = len(session.entries)
    with suppress(InvalidInput):  # a new session may have no transcript yet
        _read_on(mem, session, said, who)
    if not said.text.strip():
        return ""
    if not session.ends_with(said.text, since=known):
        session.prompt(said.text, said.id)
    return _composed(session, who, "responder", query=said.text, **session.in_window())


def _composed(session: Session, who: Listener, purpose: str, **asked: Any) -> str:
    """The text of a packet within the host's limit; empty if memory has nothing."""
    tokens = who.max_tokens
    while tokens:
        build: Build = session.run.compose(purpose, max_tokens=tokens, **asked)
        if not build.found:
            return ""
        if len(build.text) <= CHARS_MAX:
            session.tell((*build.marks.values(), *build.fact_versions))
            return build.text
        tokens //= 2
    return ""


def _personal(mem: Memory, session_id: str, who: Listener) -> str:
    """The user's general preferences: those recorded outside of every repository."""
    if who.personal_tenant is None or who.personal_tenant == who.tenant_id:
        return ""
    run = mem.run(user_id=who.user_id, agent_id=who.agent_id, session_id=session_id, tenant_id=who.personal_tenant)
    held = run.compose("planner", max_tokens=max(who.max_tokens // 4, 64)).packet.long_term.preferences or ()
    lines = [f"- {fact.fact_key}: {fact.value}" for fact in held]
    return "\n".join([f"## What {who.user_id} prefers, in every project", *lines, ""]) if lines else ""


# -- recording ----------------------------------------------------------------------------------------


def _record_result(session: Session, said: HookEvent, *, key: str, ts: Any = None) -> None:
    session.result(said.tool, said.text, arguments=said.arguments, ok=said.ok, call=said.id, key=key, ts=ts)


def _record_answer(mem: Memory, session: Session, said: HookEvent, who: Listener) -> None:
    if said.speaker is not None:  # a subagent's, which the session's own transcript omits
        session.answer(said.text, said.id, said.speaker)
        return
    try:
        _read_on(mem, session, said, who)
    finally:
        session.answer(said.text, said.id)


def _read_on(mem: Memory, session: Session, said: HookEvent, who: Listener) -> None:
    """Record new turns of the transcript, then queued events. An unreadable transcript is an error, and queued events
    are written all the same.
    """
    try:
        _read_transcript(mem, session, said)
    finally:
        write_pending(mem, who, {_place(said, who): session})


def _read_transcript(mem: Memory, session: Session, said: HookEvent) -> None:
    if said.transcript is not None:
        told = read_transcript(said.transcript)
        session.turns(told.turns, _forgotten_turns(mem, session, told.turns))
        session.let_go_of(told.compactions)


def _forgotten_turns(mem: Memory, session: Session, turns: Iterable[Turn]) -> Callable[[Turn], bool]:
    """Return a test for forgotten turns of a transcript. A turn without a time counts as forgotten if anything of its
    session was.
    """
    scope = session.run.scope
    times = {turn.at: _instant(turn.at) for turn in turns}
    known = [at for at in times.values() if at is not None]
    gone = forgotten_since(mem._ctx, scope.tenant_id, min(known)) if known else []
    is_cut = any(entry.is_forgotten for entry in session.entries)

    def is_forgotten(turn: Turn) -> bool:
        at = times[turn.at]
        return is_cut if at is None else any(each.has(scope.user_id, scope.session_id, at) for each in gone)

    return is_forgotten


def _instant(value: str | None) -> str | None:
    try:
        return None if value is None else format_instant(parse_instant(value))
    except InvalidInput:
        return None


def _snapshot(session: Session, said: HookEvent) -> None:
    """Snapshot the run, and mark that the host may drop the conversation. Its transcript shows later whether it did; a
    host without one is assumed to have done so.
    """
    if not session.entries:
        return
    if session.run.state() is not None:  # a resumed session that has recorded nothing yet has no run
        session.run.log.compact()
    session.announce(said.name)
    if said.transcript is None or said.name == _NO_TRANSCRIPT:
        session.let_go(said.name)


def _end(mem: Memory, session: Session, said: HookEvent, who: Listener) -> None:
    with suppress(InvalidInput):  # the host may have deleted the transcript by now; the session still ends
        _read_on(mem, session, said, who)
    _finish(session)


def _finish(session: Session) -> None:
    if session.run.state() is not None:
        session.run.finish("HUMAN_REQUESTED")


Place = tuple[str, str, str]
"""A session: its tenant, its user, its name."""


def write_pending(mem: Memory, who: Listener, known: Mapping[Place, Session] | None = None) -> None:
    """Write queued events, those of each session after its transcript's, which are in order. Each is removed once
    written; invalid ones are set aside; those the store cannot take now stay, and the first error is raised after the
    rest is done.
    """
    sessions = dict(known or {})
    failed: list[MunimentError] = []
    read = _not_forgotten(mem, [one for each in who.pending for one in _read_pending(each, who)])
    transcripts = {_place(said, whose): said for _, said, whose in read if said.transcript is not None}
    for each, said, whose in read:
        try:
            place = _place(said, whose)
            if place not in sessions:
                sessions[place] = _session(mem, said.session, whose)
            if place in transcripts and not sessions[place].has_read:
                with suppress(InvalidInput):  # the host may have deleted the transcript by now
                    _read_transcript(mem, sessions[place], transcripts[place])
            _write_one(sessions, place, each, said)
        except Conflict:
            continue  # another hook ended the run meanwhile; the next one writes it, into an open run
        except InvalidInput:
            each.set_aside()
        except MunimentError as error:
            failed.append(error)
        else:
            each.done()
    if failed:
        raise failed[0]


def _place(said: HookEvent, whose: Listener) -> Place:
    return whose.tenant_id, whose.user_id, said.session


_Read = tuple["Pending", HookEvent, Listener]


def _not_forgotten(mem: Memory, read: list[_Read]) -> list[_Read]:
    """Keep the events that were not forgotten since they were queued; the others are deleted."""
    since: dict[str, str] = {}
    for each, _, whose in read:
        at = _put_at(each)
        since[whose.tenant_id] = min(at, since.get(whose.tenant_id, at))
    gone = {tenant_id: forgotten_since(mem._ctx, tenant_id, at) for tenant_id, at in since.items()}
    left: list[_Read] = []
    for each, said, whose in read:
        if any(scope.has(whose.user_id, said.session, _put_at(each)) for scope in gone[whose.tenant_id]):
            each.done()
        else:
            left.append((each, said, whose))
    return left


def _put_at(each: Pending) -> str:
    return format_instant(datetime.fromtimestamp(each.at_ns / 1e9, UTC))


def _read_pending(each: Pending, who: Listener) -> Iterator[_Read]:
    """Read a queued event and its owner; yields nothing if it is invalid or skipped."""
    try:
        said = read_event(each.event)
    except InvalidInput:
        each.set_aside()
        return
    if said is None:
        each.done()
        return
    user, agent = each.user or who.user_id, each.agent or who.agent_id
    yield each, said, who._replace(user_id=user, agent_id=agent, tenant_id=each.tenant)


def _write_one(sessions: dict[Place, Session], place: Place, each: Pending, said: HookEvent) -> None:
    if said.moment == "end":
        _finish(sessions.pop(place))
    elif said.moment == "answer":
        sessions[place].answer(said.text, said.id, said.speaker)
    elif said.moment == "tool":
        _record_result(sessions[place], said, key=each.key, ts=datetime.fromtimestamp(each.at_ns / 1e9, UTC))


# -- sessions -----------------------------------------------------------------------------------------

ANNOUNCED = "host.compaction_announced"
"""The event for an announced compaction, which the host may still cancel."""
COMPACTING = "host.compacting"
"""The event for a compaction: the host no longer has the earlier conversation."""
LOST = "host.lost_told"
"""The event for a host that has the session, but no longer the texts of hooks."""
TOLD = "host.told"
"""The event that names what was shown to the model."""
SUMMED_UP = "host.summed_up"
"""The event with the host's own summary of the dropped conversation."""
RESULT_CHARS_MAX = 20_000
_OWN_TOOLS = "muniment"
"""Results of our own tools come from memory already."""
_READERS = ("Read", "NotebookRead", "read_file", "read_many_files", "view")
"""Tools that read files: only the fact of reading is kept, since the content is in the repository and changes there."""
_KEY = "host_key"


class Session:
    """One session of a host: its run, and the messages already recorded."""

    def __init__(self, run: Run, entries: list[LedgerEntry]) -> None:
        self.run = run
        self.entries = entries
        self._keys = {str(entry.metadata[_KEY]) for entry in entries if _KEY in entry.metadata}
        self._said = Counter(key.rpartition(":")[0] for key in self._keys if not key.startswith("tool:"))
        self.has_read = False
        """True once the host's transcript was read."""
        self._read: Counter[str] = Counter()
        self._prompts = {str(entry.metadata["prompt_id"]) for entry in entries if "prompt_id" in entry.metadata}

    # -- from hooks -----------------------------------------------------------------------------------

    def prompt(self, text: str, prompt_id: str | None) -> None:
        """Record the user's prompt: repeated words are a new message, unless it has a recorded id."""
        if not text.strip() or prompt_id in self._prompts:
            return
        about = {} if prompt_id is None else {"prompt_id": prompt_id}
        self._message("user", text, self._said[_words_key("user", text)], about)

    def answer(self, text: str, prompt_id: str | None, speaker: str | None = None) -> None:
        """Record the agent's last message, unless the transcript already had it."""
        if not text.strip() or self._is_last(text) or (speaker is None and self._read[_words_key("assistant", text)]):
            return
        if prompt_id and any(each.metadata.get("answers") == prompt_id and _is(each, text) for each in self.entries):
            return
        about = {} if prompt_id is None else {"answers": prompt_id}
        self._message("assistant", text, self._said[_words_key("assistant", text)], about, speaker=speaker)

    def _is_last(self, text: str) -> bool:
        """True if this answer is the session's newest message, and so already recorded."""
        messages = [entry for entry in self.entries if entry.kind == "message"]
        return bool(messages) and messages[-1].role == "assistant" and _is(messages[-1], text)

    def ends_with(self, text: str, *, since: int) -> bool:
        """True if the transcript, read just now, already ends with this prompt."""
        messages = [entry for entry in self.entries[since:] if entry.kind == "message"]
        return bool(messages) and messages[-1].role == "user" and _is(messages[-1], text)

    def result(
        self,
        tool: str,
        text: str,
        *,
        arguments: Mapping[str, Any] | None,
        ok: bool,
        call: str | None,
        key: str,
        ts: Any = None,
    ) -> None:
        """Record a tool's result, under the id of its call, else under the caller's key."""
        known = f"tool:{call or key}"
        if known in self._keys or _OWN_TOOLS in tool:
            return
        if ok and tool in _READERS:
            text = f"{len(text.splitlines())} lines"
        about: dict[str, Any] = {_KEY: known}
        if len(text) > RESULT_CHARS_MAX:
            about["cut_from_chars"] = len(text)
        self._keep(
            lambda: self.run.observe_tool(
                tool[:200], args=arguments, content=text[:RESULT_CHARS_MAX], ok=ok, call_id=call, ts=ts,
                idempotency_key=self._key(known), metadata=about,
            ),
            known,
        )  # fmt: skip

    # -- from transcripts -----------------------------------------------------------------------------

    def turns(self, turns: Sequence[Turn], forgotten: Callable[[Turn], bool] = lambda _: False) -> None:
        """Record the new turns of a transcript, in order, without forgotten ones."""
        met: Counter[str] = Counter()
        for turn in turns:
            if forgotten(turn):
                continue
            if turn.role == "tool":
                self.result(
                    turn.tool, turn.text, arguments=turn.arguments, ok=turn.ok, call=turn.call, key="", ts=turn.at
                )
                continue
            place = _words_key(turn.role, turn.text)
            if met[place] >= self._said[place]:
                self._message(turn.role, turn.text, met[place], {}, ts=turn.at)
            met[place] += 1
        self._read, self.has_read = met, True

    # -- writing --------------------------------------------------------------------------------------

    def _message(
        self,
        role: str,
        text: str,
        before: int,
        about: Mapping[str, Any],
        *,
        ts: Any = None,
        speaker: str | None = None,
    ) -> None:
        place = _words_key(role, text)
        known = f"{place}:{before}"
        metadata = {_KEY: known, **about}
        self._keep(
            lambda: self.run.observe(
                role, text, ts=ts, speaker=speaker, metadata=metadata, idempotency_key=self._key(known)
            ),
            known,
        )
        self._said[place] += 1
        self._prompts.update(str(about[name]) for name in ("prompt_id",) if name in about)

    def _keep(self, write: Callable[[], LedgerEntry], known: str) -> None:
        with suppress(IdempotencyMismatch):  # another hook wrote the same concurrently, with another time
            self.entries.append(write())
        self._keys.add(known)

    def _key(self, known: str) -> str:
        return short_id("host", [self.run.scope.session_id, known])

    # -- the host's window ----------------------------------------------------------------------------

    def announce(self, host_event: str) -> None:
        """Record that a compaction is about to happen."""
        self._note({"event": ANNOUNCED, "host_event": host_event})

    def let_go(self, host_event: str) -> None:
        """Record that the host dropped the earlier conversation. Hosts report it in several ways: one mark each
        time.
        """
        last = next((event for event in reversed(self._events()) if event in (ANNOUNCED, COMPACTING)), None)
        if last != COMPACTING:
            self._note({"event": COMPACTING, "host_event": host_event})

    def lose_told(self) -> None:
        """Record that the host lost the texts of hooks, but not the session itself."""
        self._note({"event": LOST})

    def let_go_of(self, compactions: int) -> None:
        """Record compactions that a transcript shows and hooks did not report."""
        if compactions > self._events().count(COMPACTING):
            self._note({"event": COMPACTING, "host_event": "transcript"})

    def summed_up(self, summary: str) -> None:
        """Keep the host's own summary, for later sessions."""
        self.entries.append(self.run.observe("system", summary, metadata={"event": SUMMED_UP}))

    def _events(self) -> list[Any]:
        return [entry.metadata.get("event") for entry in self.entries]

    def _note(self, metadata: Mapping[str, Any]) -> None:
        self.entries.append(self.run.observe("system", "", metadata=dict(metadata)))

    def in_window(self) -> dict[str, Any]:
        """The content of the host's window, as arguments of `compose`: the session, or its part since the last
        compaction, and the events and fact versions shown since then. Changed facts are shown again.
        """
        events = self._events()
        since, lost = (len(events) - events[::-1].index(name) if name in events else 0 for name in (COMPACTING, LOST))
        told = [each for entry in self.entries[max(since, lost) :] for each in _ids(entry.metadata.get("told"))]
        if not since:
            return {"exclude_session": True, "exclude": told}
        return {"exclude": [*told, *(entry.id for entry in self.entries[since:])]}

    def tell(self, names: Iterable[str]) -> None:
        """Record what the host was shown (events and fact versions), so that it is not shown twice."""
        self._note({"event": TOLD, "told": sorted(set(names))})


def _ids(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, Sequence) else []


def _words_key(role: str, text: str) -> str:
    return f"{role}:{digest_of(text.strip())[:24]}"


def _is(entry: LedgerEntry, text: str) -> bool:
    return str(entry.metadata.get(_KEY, "")).startswith(_words_key(entry.role, text))


def open_session(mem: Memory, session_id: str, *, user_id: str, agent_id: str, tenant_id: str) -> Session:
    """Return the session's open run, else a new one, since a session that ended may be resumed."""
    names: dict[str, Any] = {"user_id": user_id, "agent_id": agent_id, "session_id": session_id, "tenant_id": tenant_id}
    parts: list[Any] = ["hooks", tenant_id, user_id, session_id]
    number = 0
    while True:
        run = mem.run(run_id=short_id("run", parts if number == 0 else [*parts, number]), **names)
        state = run.state()
        if state is None or (state.stop_reason is None and not state.is_locked):
            break
        number += 1
    entries = mem.ledger.entries(user_id=user_id, session_id=session_id, tenant_id=tenant_id)
    return Session(run, list(entries))
