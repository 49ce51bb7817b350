"""ChatGPT's data export: conversations as trees whose last branch is current, and the memories it keeps.

Follows the publicly documented shape of `conversations.json`; no package makes it. A conversation is read along the
branch that ends in its `current_node`; other branches are reported as left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muniment.moving.formats.values import (
    Placed,
    id_given,
    instant_in,
    listed_memories,
    make_memory,
    make_message,
    make_origin,
    make_session,
    mapping_in,
    text_in,
)
from muniment.moving.portable import Found, LeftOut, Read

__all__ = ["read"]

SYSTEM = "chatgpt"
_CONTEXT = ("user_editable_context", "model_editable_context")
_THINKING = ("thoughts", "reasoning_recap")
_ACCOUNT = ("user", "message_feedback", "shared_conversations", "model_comparisons")


def read(values: Iterable[Placed], as_of: str) -> Read:
    """The conversations of an export, one value each, and lists of memories."""
    for path, key, value in values:
        said = mapping_in(value)
        if isinstance(said.get("mapping"), Mapping):
            yield from _conversation(path, said, as_of)
        elif key in ("memories", "results", "data") or "memory" in said or "content" in said:
            yield from _memory(path, said, as_of)
        else:
            yield LeftOut(path, "value", "neither a conversation nor a memory", is_loss=bool(said))


def _memory(path: str, said: Mapping[str, Any], as_of: str) -> Read:
    text = text_in(said.get("content")) or text_in(said.get("memory"))
    if not text or not text.strip():
        yield LeftOut(path, "memory", "it holds no text", is_loss=False)
        return
    created = instant_in(said.get("created_timestamp") or said.get("created_at"))
    origin = make_origin(
        SYSTEM,
        "memory",
        id=text_in(said.get("id")),
        created_at=created,
        updated_at=instant_in(said.get("updated_at")),
    )
    yield Found(path, make_memory(id=id_given(said.get("id"), SYSTEM, text), text=text, as_of=as_of, origin=origin))


def _conversation(path: str, said: Mapping[str, Any], as_of: str) -> Read:
    mapping = said["mapping"]
    session_id = id_given(said.get("conversation_id") or said.get("id"), SYSTEM, str(sorted(mapping))[:4000])
    started = instant_in(said.get("create_time"))
    yield Found(path, make_session(session_id, title=said.get("title"), started_at=said.get("create_time")))
    taken = _branch(mapping, said.get("current_node"))
    before = started or as_of
    for node_id in taken:
        message = mapping_in(mapping_in(mapping.get(node_id)).get("message"))
        here = f"{path}.mapping[{node_id!r}]"
        if not message:
            continue
        ts = instant_in(message.get("create_time")) or before
        before = ts
        yield from _message(here, session_id, node_id, message, ts)
    for node_id in mapping.keys() - set(taken):
        message = mapping_in(mapping_in(mapping[node_id]).get("message"))
        if message and _text(mapping_in(message.get("content"))).strip():
            why = "it stands on a branch of the conversation that was not gone on with"
            yield LeftOut(f"{path}.mapping[{node_id!r}]", "message", why)


def _branch(mapping: Mapping[str, Any], current: Any) -> list[str]:
    """The nodes from the root to the current one, or to the last leaf if none is current."""
    if current not in mapping:
        leaves = [name for name, node in mapping.items() if not mapping_in(node).get("children")]
        current = leaves[-1] if leaves else None
    found: dict[str, None] = {}
    while isinstance(current, str) and current in mapping and current not in found:
        found[current] = None
        current = mapping_in(mapping[current]).get("parent")
    return list(reversed(found))


def _message(path: str, session_id: str, node_id: str, message: Mapping[str, Any], ts: str) -> Read:
    content = mapping_in(message.get("content"))
    author = mapping_in(message.get("author"))
    role, kind = author.get("role"), content.get("content_type")
    if kind in _CONTEXT:
        yield from _context(path, content, node_id, ts)
        return
    yield from _parts_left(path, content)
    text = _text(content)
    if not text.strip():
        yield LeftOut(path, "message", "it holds no text", is_loss=False)
        return
    if role not in ("user", "assistant", "tool"):
        yield LeftOut(path, "message", "it instructs the model there, and is nobody's word", is_loss=False)
        return
    if kind in _THINKING:
        yield LeftOut(path, "reasoning", "what a model thought is no part of the conversation", is_loss=False)
        return
    metadata = mapping_in(message.get("metadata"))
    origin = make_origin(
        SYSTEM, "message", id=text_in(message.get("id")) or text_in(node_id), model=text_in(metadata.get("model_slug"))
    )
    recipient = message.get("recipient")
    said: dict[str, Any] = {"recipient": recipient} if isinstance(recipient, str) and recipient != "all" else {}
    said |= {"content_type": kind} if isinstance(kind, str) and kind not in ("text", "multimodal_text") else {}
    made = make_message(
        id=id_given(message.get("id") or node_id, SYSTEM, session_id),
        session_id=session_id,
        role=role,
        content=text,
        ts=ts,
        origin=origin,
        metadata=said or None,
        tool={"name": text_in(author.get("name")) or "tool", "ok": True} if role == "tool" else None,
    )
    yield Found(path, made)


def _context(path: str, content: Mapping[str, Any], node_id: str, ts: str) -> Read:
    """Read the user's custom instructions and ChatGPT's saved memories from a conversation."""
    for name in ("user_profile", "user_instructions"):
        text = text_in(content.get(name))
        if text and text.strip():
            origin = make_origin(SYSTEM, "memory", id=f"{node_id}.{name}", created_at=ts)
            made = make_memory(
                id=id_given(None, SYSTEM, name, text),
                text=text,
                as_of=ts,
                origin=origin,
                speaker=name.replace("_", " "),
            )
            yield Found(f"{path}.message.content.{name}", made)
    listed = text_in(content.get("model_set_context"))
    if listed:
        yield from listed_memories(listed, SYSTEM, ts, f"{path}.message.content.model_set_context")


def _text(content: Mapping[str, Any]) -> str:
    """The text of a message's content, of any kind."""
    parts = content.get("parts")
    if isinstance(parts, list):
        return "\n".join(text for part in parts if (text := _part_text(part)))
    for name in ("text", "result", "content"):
        if (held := text_in(content.get(name))) is not None:
            return held
    return ""


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return text_in(part) or ""
    said = mapping_in(part)
    return text_in(said.get("text")) or "" if said.get("content_type") == "audio_transcription" else ""


def _parts_left(path: str, content: Mapping[str, Any]) -> Iterator[LeftOut]:
    parts = content.get("parts")
    for index, part in enumerate(parts if isinstance(parts, list) else ()):
        if isinstance(part, Mapping) and not _part_text(part):
            kind = part.get("content_type")
            shown = kind if isinstance(kind, str) else "part"
            yield LeftOut(f"{path}.message.content.parts[{index}]", shown[:60], "pictures, sound and files stay there")
