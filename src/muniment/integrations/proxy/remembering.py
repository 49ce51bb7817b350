"""Memory's part of a request: its user, its new messages, its packet, and its answer.

It waits for the store, so it is called in threads. `integrations.wrapping.conversation` decides about messages and
packets, as for a wrapped client.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from muniment.core.canonical import parse_json
from muniment.errors import InvalidInput, InvalidJson, MunimentError, UnsupportedMedia
from muniment.integrations.proxy.callers import Allowed, Defaults, caller_of
from muniment.integrations.proxy.sessions import KnownSessions
from muniment.integrations.proxy.spans import spliced
from muniment.integrations.wrapping.conversation import Call, Conversation, SentPackets, Telling, Whose

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.integrations.proxy.settings import ProxySettings
    from muniment.integrations.proxy.tee import Answer
    from muniment.integrations.wrapping.dialects import Dialect

__all__ = ["Begun", "Remembering"]

LOGGER = logging.getLogger("muniment.proxy")


@dataclass(frozen=True, slots=True)
class Begun:
    """A request to send on, and the state for recording its answer."""

    content: bytes
    conversation: Conversation | None = None
    call: Call | None = None
    failure: str = ""
    """Error code of the failure that kept memory out."""

    def told(self) -> list[tuple[bytes, bytes]]:
        """Headers that inform the caller about memory."""
        said: dict[str, str] = {}
        if self.call is not None and self.call.build is not None:
            said["muniment-build"] = self.call.build.id
        if self.conversation is not None and self.call is not None and self.call.is_recorded:
            scope = self.conversation.run().scope
            said |= {"muniment-run": scope.run_id, "muniment-session": scope.session_id}
        if self.failure:
            said["muniment-error"] = self.failure
        return [(name.encode(), value.encode()) for name, value in said.items() if value.isascii()]


class Remembering:
    """One store behind a proxy. Thread-safe."""

    def __init__(self, mem: Memory, settings: ProxySettings, defaults: Defaults) -> None:
        self._mem = mem
        self._settings = settings
        self._defaults = defaults
        place = cast('Literal["question", "system"]', settings.place)
        self._fails_open = settings.on_error == "open"
        self._telling = Telling(settings.max_tokens or None, place=place, fails_open=self._fails_open)
        self._sent = SentPackets()
        self._sessions = KnownSessions()

    def begin(self, dialect: Dialect, headers: Mapping[str, str], allowed: Allowed, body: bytes) -> Begun:
        """Record new messages and insert the packet. Raises errors that the caller should get in place of an answer."""
        if headers.get("content-encoding", "identity").lower() != "identity":
            return self._without(body, UnsupportedMedia("an encoded body is not read here", hint="send it as it is"))
        try:
            given = parse_json(body)
        except InvalidJson as error:
            if not self._fails_open or not _is_object(body):  # an unreadable request is not passed on
                raise
            return Begun(body, failure=error.code)
        if not isinstance(given, dict):
            raise InvalidInput(
                "a request should be an object", path="$", hint='such as {"model": "…", "messages": […]}'
            )
        whose = caller_of(headers, given, allowed, self._defaults)
        if whose is None:
            if self._settings.missing_user == "refuse":
                raise InvalidInput(
                    "whose memory this is, is not said",
                    path="$.headers.muniment-user",
                    hint="send the header muniment-user, or start the proxy with --missing-user pass",
                )
            return Begun(body)
        try:
            messages = dialect.messages(given)
            if messages is None:
                return Begun(body)
            whose = self._sessions.placed(whose, messages, dialect.goes_on_from(given))
        except InvalidInput as error:
            return self._without(body, _within(error, given))
        return self._told(body, dialect, given, whose)

    def _told(self, body: bytes, dialect: Dialect, given: dict[str, Any], whose: Whose) -> Begun:
        conversation = Conversation(self._mem, whose, self._telling, self._sent)
        try:
            call = conversation.begin(dialect, given)
        except InvalidInput as error:
            raise _within(error, given) from None
        text = body.decode()
        for insertion in call.insertions:
            text = spliced(text, insertion)
        return Begun(text.encode() if call.insertions else body, conversation, call, call.failure or "")

    def _without(self, body: bytes, error: MunimentError) -> Begun:
        """Continue without memory, or raise."""
        if not self._fails_open:
            raise error
        return Begun(body, failure=error.code)

    # -- after ------------------------------------------------------------------------------------------------

    def keep(self, begun: Begun, answer: Answer) -> None:
        """Record an answer. A failure is logged: the answer is sent anyway, and the caller's next list brings
        it again.
        """
        conversation, call = begun.conversation, begun.call
        if conversation is None or call is None or not call.is_recorded:
            return
        if answer.lost:
            LOGGER.warning("an answer was not recorded", extra={"said": {"reason": answer.lost}})
            return
        messages = answer.messages()
        conversation.keep(call, messages, is_quiet=True)
        self._sessions.note(conversation, call, messages, answer.response_id)


def _is_object(body: bytes) -> bool:
    """True if a lenient JSON parser, as most are, reads it as an object."""
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False


def _within(error: InvalidInput, given: Mapping[str, Any]) -> MunimentError:
    """Convert the place of an error to one in the request as sent."""
    is_of_list = (error.path or "").startswith("$[")
    return error.within("$.input" if "input" in given else "$.messages") if is_of_list else error
