"""What a hook records and what it tells the agent.

    start               what earlier sessions of the repository left; after a compaction, what the session itself did
    prompt              what memory has for the prompt, if anything; then the prompt is recorded
    tool                its result is recorded
    answer              the transcript is recorded as far as it goes, and the agent's last message
    before compaction   the transcript, and a snapshot of the run
    after compaction    the host's own summary is kept for later sessions
    end                 the transcript, the host's summary, and the end of the run

What the host has in its window is not told again. What is told keeps within the host's limit, and where memory has
nothing for a prompt nothing is told.

Events and transcripts become entries, each once, however often a hook runs. A tool's result is known by the id of its
call. A message has no id that a hook and a transcript share, so it is known by its words and by how often they were
said before in the session: the second "go on" is another message than the first.
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
"""Claude Code, Codex and Cursor put at most 10,000 characters of a hook before the model, and the rest into a file."""
_ASKED_MAX = 8
"""Of the last session, so many prompts are asked for when the next one starts: what the user wanted is told first."""
_ASKED_CHARS_MAX = 240
_LOOKED_AT_MAX = 200
_NO_TRANSCRIPT = "preCompact"
"""Cursor's: what it names as a transcript tells of no compaction."""


class Listener(NamedTuple):
    """Who is listened to and told: whose memory it is, and how much of it is told at once."""

    user_id: str
    agent_id: str = AGENT
    tenant_id: str = DEFAULT_TENANT
    max_tokens: int = 1024
    personal_tenant: str | None = None
    """Where the user keeps what may be told in every repository; None where nothing is."""
    pending: Iterable[Pending] = ()
    """What waits to be written, of any session."""


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
    """One event of a hook; what to print for the agent, empty where there is nothing to say.

    `pending` are events that waited; they are written behind what the transcript tells, since it tells it in order.
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


# -- what is told -------------------------------------------------------------------------------------


def _told_at_start(mem: Memory, session: Session, said: HookEvent, who: Listener) -> str:
    if said.source == "compact":
        with suppress(InvalidInput):  # what the hook says is enough
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
    """What the user said last in the newest session but this one, in their own words."""
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
    """What memory has for a prompt. The prompt is recorded behind what came before it (a turn that was interrupted has
    told nothing at its end), and before anything is composed: where that takes too long, the prompt is kept.
    """
    known = len(session.entries)
    with suppress(InvalidInput):  # of a session that begins there may be no transcript yet
        _read_on(mem, session, said, who)
    if not said.text.strip():
        return ""
    if not session.ends_with(said.text, since=known):
        session.prompt(said.text, said.id)
    return _composed(session, who, "responder", query=said.text, **session.in_window())


def _composed(session: Session, who: Listener, purpose: str, **asked: Any) -> str:
    """The text of a packet that keeps within the host's limit; empty where memory has nothing."""
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
    """What the user wants kept to everywhere: preferences that were put down outside of every repository."""
    if who.personal_tenant is None or who.personal_tenant == who.tenant_id:
        return ""
    run = mem.run(user_id=who.user_id, agent_id=who.agent_id, session_id=session_id, tenant_id=who.personal_tenant)
    held = run.compose("planner", max_tokens=max(who.max_tokens // 4, 64)).packet.long_term.preferences or ()
    lines = [f"- {fact.fact_key}: {fact.value}" for fact in held]
    return "\n".join([f"## What {who.user_id} prefers, in every project", *lines, ""]) if lines else ""


# -- what is recorded ---------------------------------------------------------------------------------


def _record_result(session: Session, said: HookEvent, *, key: str, ts: Any = None) -> None:
    session.result(said.tool, said.text, arguments=said.arguments, ok=said.ok, call=said.id, key=key, ts=ts)


def _record_answer(mem: Memory, session: Session, said: HookEvent, who: Listener) -> None:
    if said.speaker is not None:  # a subagent's: the session's own transcript tells nothing of it
        session.answer(said.text, said.id, said.speaker)
        return
    try:
        _read_on(mem, session, said, who)
    finally:
        session.answer(said.text, said.id)


def _read_on(mem: Memory, session: Session, said: HookEvent, who: Listener) -> None:
    """What the transcript has and memory has not, then what waited. A transcript that cannot be read is an error, and
    what waited is written all the same.
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
    """Which turns of a transcript were forgotten. One without a time was, where anything of its session was."""
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
    """Keep the run as it stands, and mark what the host is about to let go. Whether it does is told afterwards, by its
    transcript at the latest; a host that has none is taken at its word.
    """
    if not session.entries:
        return
    if session.run.state() is not None:  # a session that was taken up again, and has said nothing yet, has no run
        session.run.log.compact()
    session.announce(said.name)
    if said.transcript is None or said.name == _NO_TRANSCRIPT:
        session.let_go(said.name)


def _end(mem: Memory, session: Session, said: HookEvent, who: Listener) -> None:
    with suppress(InvalidInput):  # a host may have taken the transcript away by now; the session ends all the same
        _read_on(mem, session, said, who)
    _finish(session)


def _finish(session: Session) -> None:
    if session.run.state() is not None:
        session.run.finish("HUMAN_REQUESTED")


Place = tuple[str, str, str]
"""A session: its tenant, its user, its name."""


def write_pending(mem: Memory, who: Listener, known: Mapping[Place, Session] | None = None) -> None:
    """Write what waited, of each session behind what its transcript tells, since that has it in order. Each is taken
    away once it is written; what is no event is set aside; what the store cannot take now stays, and the first reason
    is raised when the rest is done.
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
                with suppress(InvalidInput):  # a host may have taken the transcript away by now
                    _read_transcript(mem, sessions[place], transcripts[place])
            _write_one(sessions, place, each, said)
        except Conflict:
            continue  # another hook ended the run meanwhile; the next one writes it, into a run that is open
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
    """Those that were not forgotten after they were put down; the others are taken away."""
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
    """The event that waited, and whose it is; nothing where it is none, or one that is passed over."""
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


# -- recording ----------------------------------------------------------------------------------------

ANNOUNCED = "host.compaction_announced"
"""The event that says: the host is about to let go of what was said; it may find that it need not."""
COMPACTING = "host.compacting"
"""The event that says: from here on the host no longer has what was said before."""
LOST = "host.lost_told"
"""The event that says: the host has the session, and no longer what hooks told it."""
TOLD = "host.told"
"""The event that names what was put before the model."""
SUMMED_UP = "host.summed_up"
"""The event that holds the host's own summary of what it let go."""
RESULT_CHARS_MAX = 20_000
_OWN_TOOLS = "muniment"
"""What a tool of ours answered is memory already."""
_READERS = ("Read", "NotebookRead", "read_file", "read_many_files", "view")
"""What a file held stands in the repository and changes there: of reading it is kept that it was read."""
_KEY = "host_key"


class Session:
    """One session of a host: the run it is written in, and what of it is known."""

    def __init__(self, run: Run, entries: list[LedgerEntry]) -> None:
        self.run = run
        self.entries = entries
        self._keys = {str(entry.metadata[_KEY]) for entry in entries if _KEY in entry.metadata}
        self._said = Counter(key.rpartition(":")[0] for key in self._keys if not key.startswith("tool:"))
        self.has_read = False
        """Whether the host's transcript was read."""
        self._read: Counter[str] = Counter()
        self._prompts = {str(entry.metadata["prompt_id"]) for entry in entries if "prompt_id" in entry.metadata}

    # -- what is told by hooks ------------------------------------------------------------------------

    def prompt(self, text: str, prompt_id: str | None) -> None:
        """What the user says now: said again it is another message, unless it has the id of one that is known."""
        if not text.strip() or prompt_id in self._prompts:
            return
        about = {} if prompt_id is None else {"prompt_id": prompt_id}
        self._message("user", text, self._said[_words_key("user", text)], about)

    def answer(self, text: str, prompt_id: str | None, speaker: str | None = None) -> None:
        """The agent's last message, which a transcript may have told already."""
        if not text.strip() or self._is_last(text) or (speaker is None and self._read[_words_key("assistant", text)]):
            return
        if prompt_id and any(each.metadata.get("answers") == prompt_id and _is(each, text) for each in self.entries):
            return
        about = {} if prompt_id is None else {"answers": prompt_id}
        self._message("assistant", text, self._said[_words_key("assistant", text)], about, speaker=speaker)

    def _is_last(self, text: str) -> bool:
        """Whether the newest message of the session is this answer: then it was told before."""
        messages = [entry for entry in self.entries if entry.kind == "message"]
        return bool(messages) and messages[-1].role == "assistant" and _is(messages[-1], text)

    def ends_with(self, text: str, *, since: int) -> bool:
        """Whether the transcript, read just now, was quicker than the hook: its last message is this prompt."""
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
        """A tool's result, under the id of its call, else under a key of the caller's."""
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

    # -- what a transcript tells ----------------------------------------------------------------------

    def turns(self, turns: Sequence[Turn], forgotten: Callable[[Turn], bool] = lambda _: False) -> None:
        """What of a transcript is not known yet, in its order, without what was forgotten."""
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
        with suppress(IdempotencyMismatch):  # another hook wrote the same at the same time, with another time beside it
            self.entries.append(write())
        self._keys.add(known)

    def _key(self, known: str) -> str:
        return short_id("host", [self.run.scope.session_id, known])

    # -- what the host still has ----------------------------------------------------------------------

    def announce(self, host_event: str) -> None:
        """A compaction is to come."""
        self._note({"event": ANNOUNCED, "host_event": host_event})

    def let_go(self, host_event: str) -> None:
        """The host has let go of what was said until now. Hosts tell it in several ways: one mark for each time."""
        last = next((event for event in reversed(self._events()) if event in (ANNOUNCED, COMPACTING)), None)
        if last != COMPACTING:
            self._note({"event": COMPACTING, "host_event": host_event})

    def lose_told(self) -> None:
        """The host has no longer what hooks told it; what was said in the session it has."""
        self._note({"event": LOST})

    def let_go_of(self, compactions: int) -> None:
        """The same, where a transcript tells of more than hooks did."""
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
        """What stands in the host's window and need not be told again, as arguments of `compose`: the session, or what
        came in it since the host let go of the rest; and what it was told since then, of earlier sessions and of facts
        as they stood. A fact that says something else by now is told.
        """
        events = self._events()
        since, lost = (len(events) - events[::-1].index(name) if name in events else 0 for name in (COMPACTING, LOST))
        told = [each for entry in self.entries[max(since, lost) :] for each in _ids(entry.metadata.get("told"))]
        if not since:
            return {"exclude_session": True, "exclude": told}
        return {"exclude": [*told, *(entry.id for entry in self.entries[since:])]}

    def tell(self, names: Iterable[str]) -> None:
        """Keep what the host was told (events, and facts as they stood), so that it is not told twice."""
        self._note({"event": TOLD, "told": sorted(set(names))})


def _ids(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, Sequence) else []


def _words_key(role: str, text: str) -> str:
    return f"{role}:{digest_of(text.strip())[:24]}"


def _is(entry: LedgerEntry, text: str) -> bool:
    return str(entry.metadata.get(_KEY, "")).startswith(_words_key(entry.role, text))


def open_session(mem: Memory, session_id: str, *, user_id: str, agent_id: str, tenant_id: str) -> Session:
    """The session's run: that which is open, else a further one, since a session that ended may be taken up again."""
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
