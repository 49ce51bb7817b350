"""Letta's agent files (`.af`), in both forms, and lists of archival passages or blocks.

The newer form holds `agents` with their messages, and `blocks`; the older one is a single agent with `core_memory` and
`messages`. A block or a passage is a memory, since the agent wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from muniment.core.canonical import parse_json
from muniment.errors import MunimentError
from muniment.moving.formats.values import (
    Placed,
    id_given,
    instant_in,
    make_memory,
    make_message,
    make_origin,
    make_session,
    mapping_in,
    plain_metadata,
    text_in,
)
from muniment.moving.portable import Found, LeftOut, Read

__all__ = ["read"]

SYSTEM = "letta"
_DEFINITIONS = ("tools", "mcp_servers", "groups", "skills", "tool_rules", "tool_exec_environment_variables", "tags")
_INSIDE = ("heartbeat", "login", "system_alert")
"""Types of packed messages that Letta writes in the user's name."""
_SENDS = "send_message"
_LOCAL = re.compile(r"(?:message|block|agent|passage)-\d+")
"""Ids that are numbered within one file, so they mean something else in the next."""


def read(values: Iterable[Placed], as_of: str) -> Read:
    """Read an agent file key by key, or a list of passages."""
    old: dict[str, str] = {}
    opened = False
    for path, key, value in values:
        said = mapping_in(value)
        if key in ("name", "version") and isinstance(value, str):
            old[key] = value
        elif key == "agents":
            yield from _agent(path, said, as_of)
        elif key == "messages":
            if not opened:
                opened = True
                yield Found("$.messages", make_session(_session_of(old)))
            yield from _message(path, _session_of(old), said, as_of)
        elif key in ("blocks", "core_memory"):
            yield from _block(path, said, as_of)
        elif "text" in said or "value" in said:
            yield from (_block if "label" in said else _passage)(path, said, as_of)
        elif key in _DEFINITIONS:
            yield LeftOut(path, key, "how an agent is built is not what it remembers", is_loss=False)
        elif key in ("files", "sources", "folders"):
            yield LeftOut(path, "file", "a document belongs into a corpus: `muniment corpus add`")
        elif said:
            yield LeftOut(path, key or "value", "how an agent is built is not what it remembers", is_loss=False)


def _session_of(said: Mapping[str, Any]) -> str:
    return id_given(f"letta-{_lasting(said.get('id')) or said.get('name') or 'agent'}", SYSTEM)


def _lasting(given: Any) -> str | None:
    """An id valid across files; None for one numbered within its file."""
    own = text_in(given)
    return None if own is None or _LOCAL.fullmatch(own) else own


def _agent(path: str, said: Mapping[str, Any], as_of: str) -> Read:
    session_id = _session_of(said)
    messages = said.get("messages")
    yield Found(path, make_session(session_id, title=said.get("name")))
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        yield from _message(f"{path}.messages[{index}]", session_id, mapping_in(message), as_of)
    for name in ("memory_blocks", "core_memory"):
        blocks = said.get(name)
        for index, block in enumerate(blocks if isinstance(blocks, list) else ()):
            yield from _block(f"{path}.{name}[{index}]", mapping_in(block), as_of)
    if text_in(said.get("system")):
        yield LeftOut(f"{path}.system", "system", "it instructs the model there, and is nobody's word", is_loss=False)


def _block(path: str, said: Mapping[str, Any], as_of: str) -> Read:
    text, label = text_in(said.get("value")), text_in(said.get("label")) or "block"
    if not text or not text.strip():
        yield LeftOut(path, "block", "it holds no text", is_loss=False)
        return
    origin = _origin(said, _lasting(said.get("id")) or label)
    made = make_memory(
        id=id_given(_lasting(said.get("id")), SYSTEM, label, text), text=text, as_of=as_of, origin=origin,
        speaker=f"memory block {label}"[:200], metadata=plain_metadata(said.get("metadata") or said.get("metadata_")),
    )  # fmt: skip
    yield Found(path, made)


def _passage(path: str, said: Mapping[str, Any], as_of: str) -> Read:
    text = text_in(said.get("text"))
    if said.get("is_deleted") is True:
        yield LeftOut(path, "passage", "it was deleted there", is_loss=False)
    elif not text or not text.strip():
        yield LeftOut(path, "passage", "it holds no text", is_loss=False)
    else:
        made = make_memory(
            id=id_given(_lasting(said.get("id")), SYSTEM, text), text=text, as_of=as_of,
            origin=_origin(said, text_in(said.get("id"))), speaker="archival memory",
            metadata=plain_metadata({"tags": said.get("tags"), **mapping_in(said.get("metadata"))}),
        )  # fmt: skip
        yield Found(path, made)


def _origin(said: Mapping[str, Any], own_id: str | None) -> Any:
    return make_origin(
        SYSTEM, "memory", id=own_id, created_at=instant_in(said.get("created_at")),
        updated_at=instant_in(said.get("updated_at")),
    )  # fmt: skip


# -- messages -----------------------------------------------------------------------------------------


def _message(path: str, session_id: str, said: Mapping[str, Any], as_of: str) -> Read:
    role, ts = said.get("role"), instant_in(said.get("created_at")) or as_of
    text = _content(said)
    own_id = id_given(_lasting(said.get("id")), SYSTEM, session_id, str(role), ts, text)
    if role == "tool":
        yield from _result(path, session_id, own_id, said, text, ts)
        return
    if role not in ("user", "assistant"):
        why = "it instructs the model there, and is nobody's word"
        yield LeftOut(path, "message", why, is_loss=False)
        return
    if role == "user":
        text, why_not = _unpacked(text)
        if why_not is not None:
            yield LeftOut(path, "message", why_not, is_loss=False)
            return
    else:
        text = _sent(said) or text
    if not text.strip():
        yield LeftOut(path, "message", "it holds no text", is_loss=False)
        return
    origin = make_origin(SYSTEM, "message", id=_lasting(said.get("id")), model=text_in(said.get("model")))
    made = make_message(
        id=own_id, session_id=session_id, role=str(role), content=text, ts=ts, origin=origin,
        speaker=text_in(said.get("name")) if role == "user" else None,
    )  # fmt: skip
    yield Found(path, made)


def _content(said: Mapping[str, Any]) -> str:
    content = said.get("content") if "content" in said else said.get("text")
    if isinstance(content, str):
        return text_in(content) or ""
    parts = content if isinstance(content, list) else []
    texts = [text_in(mapping_in(part).get("text")) for part in parts if mapping_in(part).get("type", "text") == "text"]
    return "\n".join(text for text in texts if text)


def _unpacked(text: str) -> tuple[str, str | None]:
    """Unpack a user's words from Letta's wrapper object, or give the reason there are none."""
    if not text.lstrip().startswith("{"):
        return text, None
    try:
        packed = mapping_in(parse_json(text))
    except MunimentError:
        return text, None
    kind, words = packed.get("type"), text_in(packed.get("message"))
    if kind == "user_message" and words is not None:
        return words, None
    return (text, "Letta wrote it in the user's name") if kind in _INSIDE else (text, None)


def _sent(said: Mapping[str, Any]) -> str | None:
    """Text an agent sends with its tool `send_message`."""
    calls = said.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = mapping_in(mapping_in(call).get("function"))
        if function.get("name") == _SENDS:
            try:
                return text_in(mapping_in(parse_json(str(function.get("arguments")))).get("message"))
            except MunimentError:
                return None
    return None


def _result(path: str, session_id: str, own_id: str, said: Mapping[str, Any], text: str, ts: str) -> Read:
    name = text_in(said.get("name")) or "tool"
    if name == _SENDS or not text.strip():
        yield LeftOut(path, "tool_result", "it says only that a message was sent, or nothing", is_loss=False)
        return
    origin = make_origin(SYSTEM, "message", id=_lasting(said.get("id")))
    tool: dict[str, Any] = {"name": name[:256], "ok": True}
    made = make_message(
        id=own_id, session_id=session_id, role="tool", content=text, ts=ts, origin=origin, tool=tool
    )  # fmt: skip
    yield Found(path, made)
