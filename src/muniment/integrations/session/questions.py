"""What is asked in a list of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muniment.packets.recording import plain_messages
from muniment.store.messages import read_content

__all__ = ["Asked", "asked_of"]

_QUERY_CHARS_MAX = 4_000
"""Of a longer message the end is asked about: what was pasted comes before the question."""


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
