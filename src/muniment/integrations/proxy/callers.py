"""The user and session of a request: from the key, the headers, and the request itself. Pure.

The user is, in this order: the key's user; the header `muniment-user`; `metadata.user_id`; `safety_identifier`; `user`;
the proxy's default user. A key for one user never serves another, whatever the request says. The session is: the header
`muniment-session`; `metadata.session_id`; the session in Anthropic's `metadata.user_id`, if a client writes one there;
`client_metadata.session_id`; the `conversation` of Responses; the session of the answer that the request continues; or
else it is recognised by the beginning of the list.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from muniment.core.canonical import digest_of, parse_json, short_id
from muniment.core.scope import scope_given
from muniment.errors import Forbidden, MunimentError
from muniment.integrations.wrapping.conversation import Whose
from muniment.packets.recording import plain_messages
from muniment.store.messages import read_content

__all__ = ["Allowed", "Defaults", "answer_marks", "caller_of", "list_marks"]

_BETWEEN = "_session_"
_MARKS_MAX = 8
"""How many of a list's last answers are looked up among known ones."""


class Allowed(NamedTuple):
    """Permissions of a request's key."""

    tenant: str = "*"
    user: str | None = None


class Defaults(NamedTuple):
    """Defaults for requests that do not name them."""

    tenant: str
    user: str
    agent: str


class _Said(NamedTuple):
    user: str = ""
    session: str = ""


def caller_of(
    headers: Mapping[str, str], given: Mapping[str, Any], allowed: Allowed, defaults: Defaults
) -> Whose | None:
    """The user and session of a request, the session None if not named; None if no user is named. Raises `Forbidden` if
    the key is another user's, `InvalidRecord` if a name is invalid.
    """
    tenant = headers.get("muniment-tenant", "") or (defaults.tenant if allowed.tenant == "*" else allowed.tenant)
    if allowed.tenant not in ("*", tenant):
        raise Forbidden("the key is for another tenant", path="$.headers.muniment-tenant")
    said = _said(given)
    named = headers.get("muniment-user", "")
    if allowed.user is not None and named not in ("", allowed.user):
        raise Forbidden("the key is for another user", path="$.headers.muniment-user")
    user = allowed.user or named or said.user or defaults.user
    if not user:
        return None
    session = headers.get("muniment-session", "") or said.session or None
    whose = Whose(user, session, headers.get("muniment-agent", "") or defaults.agent, tenant)
    scope_given({**whose._asdict(), "session_id": session or "unsaid", "run_id": "unsaid"})
    return whose


def _said(given: Mapping[str, Any]) -> _Said:
    """Names given in the request body."""
    held = given.get("metadata")
    metadata: Mapping[str, Any] = held if isinstance(held, Mapping) else {}
    own = _split(_text(metadata.get("user_id")))
    user = own.user or _text(given.get("safety_identifier")) or _text(given.get("user"))
    conversation = given.get("conversation")
    named = conversation.get("id") if isinstance(conversation, Mapping) else conversation
    of_client = given.get("client_metadata")  # Codex names its session there, in every request
    thread = _text(of_client.get("session_id")) if isinstance(of_client, Mapping) else ""
    return _Said(user, _text(metadata.get("session_id")) or own.session or thread or _text(named))


def _split(user_id: str) -> _Said:
    """Split a user id that includes the client's session, as coding agents write it: `…_session_…`, or an object as
    text.
    """
    if user_id.startswith("{"):
        try:
            told = parse_json(user_id)
        except MunimentError:
            return _Said(user_id)
        session = _text(told.get("session_id"))
        rest = sorted((name, value) for name, value in told.items() if name != "session_id" and _text(value))
        return _Said(short_id("user", [list(each) for each in rest]), session) if session and rest else _Said(user_id)
    user, between, session = user_id.rpartition(_BETWEEN)
    return _Said(user, session) if between and user and session else _Said(user_id)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# -- sessions that nobody names -------------------------------------------------------------------------


def list_marks(messages: Sequence[Any]) -> tuple[list[str], str]:
    """Marks that identify a list: those of its last answers, newest first, and that of its beginning."""
    first = asked = ""
    marks: deque[str] = deque(maxlen=_MARKS_MAX)
    for message in plain_messages(messages):
        text = _content(message)
        if message.get("role") == "user" and text:
            asked = text
            first = first or text
        elif message.get("role") == "assistant" or message.get("type") == "function_call":
            marks.extend(_marks(message, text, asked))
    return list(reversed(marks)), short_id("ses", ["proxy", first])


def answer_marks(messages: Sequence[Any], answer: Sequence[Any]) -> list[str]:
    """The marks by which a later list that contains this answer is recognised."""
    return list_marks([*messages, *answer])[0]


def _marks(message: Mapping[str, Any], text: str, asked: str) -> list[str]:
    """Marks of one answer: its calls, or else its words, with the question, since both reappear."""
    found = [_text(message.get("call_id"))] if message.get("type") == "function_call" else []
    for name in ("tool_calls", "content"):
        held = message.get(name)
        parts = held if isinstance(held, list | tuple) else ()
        found += [_text(part.get("id")) for part in parts if isinstance(part, Mapping) and _is_call(part)]
    called = [["call", id_, asked] for id_ in found if id_]
    return [digest_of(each) for each in called or ([["said", text, asked]] if text else [])]


def _is_call(part: Mapping[str, Any]) -> bool:
    return part.get("type") in ("function", "custom", "tool_use")


def _content(message: Mapping[str, Any]) -> str:
    try:
        return read_content(message.get("content"), "$").text
    except MunimentError:
        return ""
