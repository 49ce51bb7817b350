"""Find the question in a list of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muniment.packets.recording import plain_messages
from muniment.store.messages import read_content

__all__ = ["Asked", "asked_of"]

_QUERY_CHARS_MAX = 4_000
"""Of a longer message only the end is the query: pasted text comes before the question."""


class Asked(NamedTuple):
    """The last non-empty user message of a list: its index, and the text of the query."""

    at: int
    text: str


def asked_of(messages: Sequence[Any]) -> Asked | None:
    """Find the question, skipping Anthropic's user messages that only hold tool results."""
    plain = plain_messages(messages)
    for at in reversed(range(len(plain))):
        if plain[at].get("role") == "user" and (text := read_content(plain[at].get("content"), "$").text):
            return Asked(at, text[-_QUERY_CHARS_MAX:])
    return None
