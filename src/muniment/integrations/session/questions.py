"""What is asked in a list of messages, and which packet a question was given."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from muniment.packets.recording import plain_messages
from muniment.store.messages import read_content

__all__ = ["Asked", "RecentBuilds", "asked_of"]

_QUERY_CHARS_MAX = 4_000
"""Of a longer message the end is asked about: what was pasted comes before the question."""
_RECENT_MAX = 4_096
"""Questions whose packet is known again while tools are asked."""


class Asked(NamedTuple):
    """The last user message of a list that says something: its place, and the text that is asked about."""

    at: int
    text: str


def asked_of(messages: Sequence[Any]) -> Asked | None:
    """What is asked: of Anthropic's user messages, some hold results of tools alone."""
    plain = plain_messages(messages)
    for at in reversed(range(len(plain))):
        if plain[at].get("role") == "user" and (text := read_content(plain[at].get("content"), "$").text):
            return Asked(at, text[-_QUERY_CHARS_MAX:])
    return None


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
