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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.instants import format_instant, parse_instant
from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import Conflict, InvalidInput, MunimentError
from muniment.store.waiting import forgotten_since
from muniment.surfaces.hosts.events import HookEvent, answer_with, read_event
from muniment.surfaces.hosts.recording import Session, open_session
from muniment.surfaces.hosts.transcripts import Turn, read_transcript

if TYPE_CHECKING:
    from muniment.core.outside.pending import Pending
    from muniment.handles.memory import Memory
    from muniment.packets.builds import Build

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
