"""A session service of Google's ADK: sessions, their events and their state, in the ledger.

The state of a session is its initial state plus the changes of its events. State of the user (`user:`) or the app
(`app:`) is stored separately, value by value; state of an invocation (`temp:`) is not stored. Deleting a session ends
it: it is no longer shown, but its messages stay evidence. With `erase=True` it is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import short_id
from muniment.errors import NotFound
from muniment.integrations.google_adk.events import LIVE, SessionName, Sessions, event_of, lines_of
from muniment.integrations.keyed_documents import KeyedDocuments, Put, put_all
from muniment.integrations.packages import missing
from muniment.integrations.transcript import Line, Transcript

try:
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.platform import time as platform_time
    from google.adk.platform import uuid as platform_uuid
    from google.adk.sessions.base_session_service import (
        BaseSessionService,
        GetSessionConfig,
        ListSessionsResponse,
    )
    from google.adk.sessions.session import Session
    from google.adk.sessions.state import State
    from pydantic_core import to_jsonable_python
except ModuleNotFoundError as error:
    raise missing("google-adk", "google-adk", error) from error

if TYPE_CHECKING:
    from muniment.aio import AsyncMemory
    from muniment.handles.memory import Memory

__all__ = ["MunimentSessionService"]

_VALUES = "google_adk_state"
_SHARED = (State.APP_PREFIX, State.USER_PREFIX)


class MunimentSessionService(BaseSessionService):
    """Sessions in a muniment store. Two services on one store see the same sessions."""

    def __init__(self, mem: Memory | AsyncMemory, *, tenant_id: str | None = None, erase: bool = False) -> None:
        self._sessions = Sessions.of(mem, tenant_id)
        self._erase = erase

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        chosen = session_id.strip() if session_id else ""
        name = SessionName(app_name, user_id, chosen or platform_uuid.new_uuid())
        return await asyncio.to_thread(self._create, name, state or {}, platform_time.get_time())

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        name = SessionName(app_name, user_id, session_id.strip())
        session = await asyncio.to_thread(self._read, name)
        if session is not None and config is not None:
            if config.num_recent_events is not None:
                session.events = session.events[-config.num_recent_events :] if config.num_recent_events else []
            if config.after_timestamp is not None:
                session.events = _since(session.events, config.after_timestamp)
        return session

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        return ListSessionsResponse(sessions=await asyncio.to_thread(self._list, app_name, user_id))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        await asyncio.to_thread(self._delete, SessionName(app_name, user_id, session_id.strip()))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._values, app_name, user_id)

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.partial:
            return event
        name = SessionName(session.app_name, session.user_id, session.id)
        LIVE.set(name)
        if any(each == event for each in session.events if each.id == event.id):  # passed again
            return event
        await asyncio.to_thread(self._append, name, event)
        appended = await super().append_event(session, event)
        session.last_update_time = event.timestamp
        return appended

    # -- in a thread --------------------------------------------------------------------------------------------

    def _create(self, name: SessionName, state: Mapping[str, Any], now: float) -> Session:
        transcript = self._sessions.latest(name)
        if _begun(transcript) is not None:
            raise AlreadyExistsError(f"Session with id {name.session_id} already exists.")
        plain = to_jsonable_python(dict(state), fallback=str)
        own = {key: value for key, value in plain.items() if not key.startswith((*_SHARED, State.TEMP_PREFIX))}
        transcript.append([Line({"state": own, "created": now})])
        self._keep(name, plain)
        return Session(
            app_name=name.app_name,
            user_id=name.user_id,
            id=name.session_id,
            state=own | self._shared(name.app_name, name.user_id),
            last_update_time=now,
        )

    def _read(self, name: SessionName) -> Session | None:
        begun = _begun(self._sessions.latest(name))
        if begun is None:
            return None
        first, *rest = begun
        events = [event_of(item) for item in rest]
        state = dict(first["state"])
        for event in events:
            state |= {key: value for key, value in event.actions.state_delta.items() if not key.startswith(_SHARED)}
        return Session(
            app_name=name.app_name,
            user_id=name.user_id,
            id=name.session_id,
            state=state | self._shared(name.app_name, name.user_id),
            events=events,
            last_update_time=events[-1].timestamp if events else first["created"],
        )

    def _list(self, app_name: str, user_id: str | None) -> list[Session]:
        runs = self._sessions.mem.runs(user_id=user_id, tenant_id=self._sessions.tenant(app_name))
        scopes = [run.scope for run in runs if run.scope.agent_id == app_name and not run.is_finished]
        names = dict.fromkeys(SessionName(app_name, scope.user_id, scope.session_id) for scope in scopes)
        found = [session for name in names if (session := self._read(name)) is not None]
        bare = [session.model_copy(update={"events": []}) for session in found]
        return sorted(bare, key=lambda each: (each.last_update_time, each.user_id, each.id))

    def _delete(self, name: SessionName) -> None:
        transcript = self._sessions.latest(name)
        if _begun(transcript) is None:
            return
        if not self._erase:
            transcript.run.finish("HUMAN_REQUESTED")
            return
        try:
            transcript.memory.forget_session()
        except NotFound:  # another service erased it meanwhile
            return

    def _append(self, name: SessionName, event: Event) -> None:
        transcript = self._sessions.latest(name)
        if transcript.run.state() is None:
            raise SessionNotFoundError(f"Session {name.session_id} not found.")
        (line,) = lines_of([event])
        transcript.append([line])
        self._keep(name, line.item["event"]["actions"]["state_delta"])

    # -- what sessions share --------------------------------------------------------------------------------------

    def _documents(self, app_name: str, user_id: str | None) -> KeyedDocuments:
        corpus, tenant = short_id(_VALUES, app_name), self._sessions.tenant(app_name)
        return KeyedDocuments(self._sessions.mem, corpus, user_id=user_id, tenant_id=tenant)

    def _keep(self, name: SessionName, delta: Mapping[str, Any]) -> None:
        places = {State.APP_PREFIX: None, State.USER_PREFIX: name.user_id}
        puts = []
        for prefix, user_id in places.items():
            shared = {key.removeprefix(prefix): value for key, value in delta.items() if key.startswith(prefix)}
            if shared:
                documents = self._documents(name.app_name, user_id)
                puts += [Put(documents, key, {"value": value}, key) for key, value in shared.items()]
        put_all(puts)

    def _values(self, app_name: str, user_id: str | None) -> dict[str, Any]:
        return {kept.key: kept.value["value"] for kept in self._documents(app_name, user_id).all()}

    def _shared(self, app_name: str, user_id: str) -> dict[str, Any]:
        app = {f"{State.APP_PREFIX}{key}": value for key, value in self._values(app_name, None).items()}
        return app | {f"{State.USER_PREFIX}{key}": value for key, value in self._values(app_name, user_id).items()}


def _begun(transcript: Transcript) -> list[dict[str, Any]] | None:
    """Items of a session since its creation; None if it was never created."""
    items = transcript.items()
    at = next((at for at, item in enumerate(items) if "created" in item), None)
    return None if at is None else [items[at], *(item for item in items[at + 1 :] if "event" in item)]


def _since(events: list[Event], moment: float) -> list[Event]:
    """The latest events, back to the first one not before a time."""
    before = [at for at, event in enumerate(events) if event.timestamp < moment]
    return events[before[-1] + 1 :] if before else events
