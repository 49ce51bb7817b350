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

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import Conflict, InvalidInput, MunimentError
from muniment.surfaces.hosts.events import HookEvent, answer_with, read_event
from muniment.surfaces.hosts.recording import COMPACTING, SUMMED_UP, Session, open_session
from muniment.surfaces.hosts.transcripts import read_transcript

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.packets.builds import Build
    from muniment.surfaces.hosts.pending import Pending

__all__ = ["AGENT", "CHARS_MAX", "Listener", "handle", "write_pending"]

AGENT = "coding-agent"
CHARS_MAX = 9_500
"""Claude Code, Codex and Cursor put at most 10,000 characters of a hook before the model, and the rest into a file."""
_ASKED_MAX = 8
"""Of the last session, so many prompts are asked for when the next one starts: what the user wanted is told first."""
_ASKED_CHARS_MAX = 240
_LOOKED_AT_MAX = 200


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
        told = _told_for_prompt(session, said, who)
        _record_prompt(mem, session, said, who)
        return answer_with(said.name, told)
    if said.moment == "tool":
        _record_result(session, said, key=str(len(session.entries)))
    elif said.moment == "answer":
        _record_answer(mem, session, said, who)
    elif said.moment == "before_compaction":
        _read_on(mem, session, said, who)
        _snapshot(session, said)
    elif said.moment == "after_compaction" and said.text.strip():
        session.run.observe("system", said.text, metadata={"event": SUMMED_UP})
    elif said.moment == "end":
        _end(mem, session, said, who)
    return {}


def _session(mem: Memory, session_id: str, who: Listener) -> Session:
    return open_session(mem, session_id, user_id=who.user_id, agent_id=who.agent_id, tenant_id=who.tenant_id)


# -- what is told -------------------------------------------------------------------------------------


def _told_at_start(mem: Memory, session: Session, said: HookEvent, who: Listener) -> str:
    if said.source == "compact":
        prompts = [entry.content for entry in session.entries if entry.role == "user" and entry.kind == "message"]
        return _composed(session, who, "planner", query=(prompts[-1] if prompts else None) or "")
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


def _told_for_prompt(session: Session, said: HookEvent, who: Listener) -> str:
    if not said.text.strip():
        return ""
    return _composed(session, who, "responder", query=said.text, **session.in_window())


def _composed(session: Session, who: Listener, purpose: str, **asked: Any) -> str:
    """The text of a packet that keeps within the host's limit; empty where memory has nothing."""
    tokens = who.max_tokens
    while tokens:
        build: Build = session.run.compose(purpose, max_tokens=tokens, **asked)
        if not build.found:
            return ""
        if len(build.text) <= CHARS_MAX:
            session.tell(build.marks.values())
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


def _record_prompt(mem: Memory, session: Session, said: HookEvent, who: Listener) -> None:
    """The prompt, behind what came before it: a turn that was interrupted has told nothing at its end."""
    known = len(session.entries)
    with suppress(InvalidInput):  # of a session that begins there may be no transcript yet
        _read_on(mem, session, said, who)
    if not session.ends_with(said.text, since=known):
        session.prompt(said.text, said.id)


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
        if said.transcript is not None:
            session.turns(read_transcript(said.transcript))
    finally:
        write_pending(mem, who)


def _snapshot(session: Session, said: HookEvent) -> None:
    """Keep the run as it stands, and mark what the host will no longer have."""
    if not session.entries:
        return
    session.run.log.compact()
    session.run.observe("system", "", metadata={"event": COMPACTING, "host_event": said.name})


def _end(mem: Memory, session: Session, said: HookEvent, who: Listener) -> None:
    with suppress(InvalidInput):  # a host may have taken the transcript away by now; the session ends all the same
        _read_on(mem, session, said, who)
    state = session.run.state()
    if state is None:
        return
    session.run.finish("HUMAN_REQUESTED")


def write_pending(mem: Memory, who: Listener) -> None:
    """Write what waited. Each is taken away once it is written; what cannot be written stays, and the first reason is
    raised when the rest is done.
    """
    sessions: dict[tuple[str, str], Session] = {}
    failed: list[MunimentError] = []
    for each in who.pending:
        try:
            said = read_event(each.event)
            if said is not None:
                place = (each.tenant, said.session)
                if place not in sessions:
                    sessions[place] = _session(mem, said.session, who._replace(tenant_id=each.tenant))
                if said.moment == "end":
                    _end(mem, sessions.pop(place), said, who._replace(pending=()))
                else:
                    at = datetime.fromtimestamp(each.at_ns / 1e9, UTC)
                    _record_result(sessions[place], said, key=each.key, ts=at)
        except Conflict:
            continue  # another hook ended the run meanwhile; the next one writes it, into a run that is open
        except MunimentError as error:
            failed.append(error)
            continue
        each.done()
    if failed:
        raise failed[0]
