"""Answers of Zep's and Graphiti's clients, as JSON: threads with messages, and the graph's edges, nodes and episodes.

An edge is a fact in their words with the time it is held to be true; here it is a memory with that window. Values are
recognised by their fields, so that a file may hold one list of them or an object of lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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

_ROLES = {
    "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "system": "system",
    "tool": "tool", "function": "tool",
}  # fmt: skip
_OWNERS = ("group_id", "graph_id", "graph_uuid", "user_id", "user_uuid")


def read(values: Iterable[Placed], as_of: str, source_user: str | None) -> Read:
    """Threads, messages, edges, nodes and episodes, in the order of the file."""
    said_already: set[str] = set()
    opened: set[str] = set()
    for path, key, value in values:
        said = mapping_in(value)
        other = _other_owner(said, source_user)
        if other is not None:
            yield LeftOut(path, "value", f"it is of {other!r:.80}", is_loss=False)
        elif isinstance(said.get("messages"), list):
            yield from _thread(path, said, as_of, said_already)
        elif "fact" in said:
            yield from _edge(path, said, as_of)
        elif "summary" in said:
            yield from _summary(path, said, as_of)
        elif "content" in said and ("source" in said or "source_description" in said or key == "episodes"):
            yield from _episode(path, said, as_of, said_already)
        elif "content" in said and ("role" in said or "role_type" in said):
            session_id = _session_of(said)
            if session_id not in opened:
                opened.add(session_id)
                yield Found(path, make_session(session_id))
            yield from _message(path, session_id, said, as_of, said_already)
        elif said and key not in ("user", "threads", "sessions", "total_count", "row_count"):
            yield LeftOut(path, key or "value", "it holds no words of anybody's", is_loss=False)


def _other_owner(said: Mapping[str, Any], source_user: str | None) -> str | None:
    if source_user is None:
        return None
    named = [owner for name in _OWNERS if (owner := text_in(said.get(name)))]
    return None if not named or source_user in named else named[0]


def _uuid(said: Mapping[str, Any]) -> str | None:
    return text_in(said.get("uuid")) or text_in(said.get("uuid_")) or text_in(said.get("id"))


def _system(said: Mapping[str, Any]) -> str:
    return "graphiti" if "group_id" in said else "zep"


def _session_of(said: Mapping[str, Any]) -> str:
    named = (said.get(name) for name in ("thread_id", "session_id", "thread_uuid", "uuid", "uuid_", "group_id"))
    is_message = "content" in said
    given = said.get("thread_uuid") or said.get("session_id") if is_message else next(filter(None, named), None)
    return id_given(given or "zep", "zep")


def _thread(path: str, said: Mapping[str, Any], as_of: str, said_already: set[str]) -> Read:
    session_id = _session_of(said)
    yield Found(path, make_session(session_id, started_at=said.get("created_at")))
    for index, message in enumerate(said["messages"]):
        yield from _message(f"{path}.messages[{index}]", session_id, mapping_in(message), as_of, said_already)
    facts = said.get("facts")
    for index, fact in enumerate(facts if isinstance(facts, list) else ()):
        held = {"fact": fact} if isinstance(fact, str) else mapping_in(fact)
        yield from _edge(f"{path}.facts[{index}]", held, as_of)


def _message(path: str, session_id: str, said: Mapping[str, Any], as_of: str, said_already: set[str]) -> Read:
    text = text_in(said.get("content"))
    typed = text_in(said.get("role_type"))
    role = _ROLES.get(typed or str(said.get("role")))
    if not text or not text.strip():
        yield LeftOut(path, "message", "it holds no text", is_loss=False)
    elif role is None:
        yield LeftOut(path, "message", f"its role {(typed or str(said.get('role')))[:40]!r} is not known")
    elif role == "system":
        yield LeftOut(path, "message", "it instructs the model there, and is nobody's word", is_loss=False)
    else:
        said_already.add(text)
        name = text_in(said.get("name")) or (text_in(said.get("role")) if typed else None)
        origin = make_origin("zep", "message", id=_uuid(said), created_at=instant_in(said.get("created_at")))
        made = make_message(
            id=id_given(_uuid(said), "zep", session_id, text), session_id=session_id, role=role, content=text,
            ts=instant_in(said.get("reference_time")) or instant_in(said.get("created_at")) or as_of, origin=origin,
            speaker=name if role == "user" and name not in (None, "", "user") else None,
            metadata=plain_metadata(said.get("metadata")),
            tool={"name": (name or "tool")[:256], "ok": True} if role == "tool" else None,
        )  # fmt: skip
        yield Found(path, made)


def _edge(path: str, said: Mapping[str, Any], as_of: str) -> Read:
    text = text_in(said.get("fact"))
    if not text or not text.strip():
        yield LeftOut(path, "fact", "it holds no text", is_loss=False)
        return
    since = instant_in(said.get("valid_at"))
    ends = instant_in(said.get("invalid_at")) or instant_in(said.get("expired_at"))
    origin = make_origin(
        _system(said), "memory", id=_uuid(said), created_at=instant_in(said.get("created_at")), valid_from=since,
        valid_to=ends if ends is None or since is None or since <= ends else since,
    )  # fmt: skip
    names = {"relation": said.get("name"), "from": said.get("source_node_name"), "to": said.get("target_node_name")}
    made = make_memory(
        id=id_given(_uuid(said), _system(said), text), text=text, as_of=as_of, origin=origin, speaker="fact",
        metadata=plain_metadata(names | {"attributes": said.get("attributes")}),
    )  # fmt: skip
    yield Found(path, made)


def _summary(path: str, said: Mapping[str, Any], as_of: str) -> Read:
    """A model-written summary of a node, a community or a thread."""
    text = text_in(said.get("summary"))
    if not text or not text.strip():
        yield LeftOut(path, "summary", "it holds no text", is_loss=False)
        return
    name = text_in(said.get("name"))
    origin = make_origin(_system(said), "memory", id=_uuid(said), created_at=instant_in(said.get("created_at")))
    made = make_memory(
        id=id_given(_uuid(said), _system(said), text), text=text, as_of=as_of, origin=origin,
        speaker=f"summary of {name}"[:200] if name else "summary",
    )  # fmt: skip
    yield Found(path, made)


def _episode(path: str, said: Mapping[str, Any], as_of: str, said_already: set[str]) -> Read:
    """Text given to the graph to read; one that is also a message is not carried twice."""
    text = text_in(said.get("content"))
    if not text or not text.strip():
        yield LeftOut(path, "episode", "it holds no text", is_loss=False)
        return
    bare = text.partition(": ")[2]
    if text in said_already or bare in said_already:
        yield LeftOut(path, "episode", "it stands among the messages", is_loss=False)
        return
    when = instant_in(said.get("valid_at")) or instant_in(said.get("reference_time"))
    origin = make_origin(_system(said), "memory", id=_uuid(said), created_at=when or instant_in(said.get("created_at")))
    kind = text_in(said.get("source")) or "text"
    made = make_memory(
        id=id_given(_uuid(said), _system(said), text), text=text, as_of=as_of, origin=origin,
        speaker=f"episode ({kind})"[:80], metadata=plain_metadata({"source": said.get("source_description")}),
    )  # fmt: skip
    yield Found(path, made)
