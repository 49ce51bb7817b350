"""Rendered text as the messages of the two common wire forms: the context, then the question."""

from __future__ import annotations

from typing import Any

from muniment.packets.rendering import Rendered

__all__ = ["to_anthropic", "to_openai"]


def to_openai(rendered: Rendered) -> list[dict[str, Any]]:
    """A system message with the context, and the question as the last user message. What is empty is left out."""
    messages = [{"role": "system", "content": rendered.text}] if rendered.text else []
    if rendered.query:
        messages.append({"role": "user", "content": rendered.query})
    return messages


def to_anthropic(rendered: Rendered) -> list[dict[str, Any]]:
    """One user message: the context as its first block, the question as its last. (`system` is not a role there.)"""
    blocks = [{"type": "text", "text": text} for text in (rendered.text, rendered.query) if text]
    return [{"role": "user", "content": blocks}] if blocks else []
