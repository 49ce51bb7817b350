"""The session of a request that names none: that of an answer which it contains or continues, known while the process
lives and separate for each user; or else one named after the list's first question.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from muniment.integrations.proxy.callers import answer_marks, list_marks
from muniment.integrations.wrapping.conversation import Call, Conversation, Whose

__all__ = ["KnownSessions"]

_COUNT_MAX = 65_536


class KnownSessions:
    """Sessions by the marks of their answers (`callers.list_marks`). Thread-safe."""

    def __init__(self, count_max: int = _COUNT_MAX) -> None:
        self._held: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        self._count_max = count_max
        self._lock = threading.Lock()

    def placed(self, whose: Whose, messages: Sequence[Any], goes_on_from: str | None) -> Whose:
        """Return the same user with a session."""
        if whose.session_id is not None:
            return whose
        marks, beginning = list_marks(messages)
        if goes_on_from:
            marks.insert(0, _response(goes_on_from))
        known = self.find(whose.tenant_id, whose.user_id, marks)
        return whose._replace(session_id=known or beginning)

    def note(self, conversation: Conversation, call: Call, answer: Sequence[Any], response_id: str = "") -> None:
        """Remember that an answer was given in this session."""
        marks = answer_marks(call.messages, answer)
        if response_id:
            marks.append(_response(response_id))
        scope = conversation.run().scope
        self.keep(scope.tenant_id, scope.user_id, marks, scope.session_id)

    def find(self, tenant_id: str, user_id: str, marks: Sequence[str]) -> str | None:
        """The session of the first known mark."""
        with self._lock:
            return next((self._held[key] for mark in marks if (key := (tenant_id, user_id, mark)) in self._held), None)

    def keep(self, tenant_id: str, user_id: str, marks: Iterable[str], session_id: str) -> None:
        with self._lock:
            for mark in marks:
                self._held[tenant_id, user_id, mark] = session_id
                self._held.move_to_end((tenant_id, user_id, mark))
            while len(self._held) > self._count_max:
                self._held.popitem(last=False)


def _response(response_id: str) -> str:
    return f"response:{response_id}"
