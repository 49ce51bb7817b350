"""Claude's data export: conversations with blocks and attachments, projects, and the memory it keeps of its user.

Follows the publicly documented shape of `conversations.json`, `projects.json` and `memories.json`; no package makes
them.
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
    text_in,
)
from muniment.moving.portable import Found, LeftOut, Read

__all__ = ["read"]

SYSTEM = "claude"
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def read(values: Iterable[Placed], as_of: str) -> Read:
    """Conversations, projects and memories, one value each."""
    for path, key, value in values:
        said = mapping_in(value)
        if isinstance(said.get("chat_messages"), list):
            yield from _conversation(path, said, as_of)
        elif "conversations_memory" in said or "project_memories" in said:
            yield from _memories(path, said, as_of)
        elif key in ("conversations_memory", "project_memories"):
            yield from _memories(path.removesuffix(f".{key}"), {key: value}, as_of)
        elif "prompt_template" in said or "docs" in said:
            yield from _project(path, said, as_of)
        elif "email_address" in said or "full_name" in said or key in ("account_uuid", "memory_files"):
            yield LeftOut(path, "account", "it says who has the account, not what was said", is_loss=False)
        else:
            yield LeftOut(path, "value", "neither a conversation, a project nor a memory", is_loss=bool(said))


def _conversation(path: str, said: Mapping[str, Any], as_of: str) -> Read:
    session_id = id_given(said.get("uuid"), SYSTEM, path)
    yield Found(path, make_session(session_id, title=said.get("name"), started_at=said.get("created_at")))
    before = instant_in(said.get("created_at")) or as_of
    for index, given in enumerate(said["chat_messages"]):
        here, message = f"{path}.chat_messages[{index}]", mapping_in(given)
        before = instant_in(message.get("created_at")) or before
        yield from _message(here, session_id, index, message, before)
    summary = text_in(said.get("summary"))
    if summary and summary.strip():
        yield from _note(f"{path}.summary", summary, f"{session_id}.summary", "summary", said, as_of)


def _message(path: str, session_id: str, index: int, message: Mapping[str, Any], ts: str) -> Read:
    role = _ROLES.get(str(message.get("sender")))
    blocks = message.get("content") if isinstance(message.get("content"), list) else []
    assert isinstance(blocks, list)
    texts = [text for block in blocks if _kind(block) == "text" and (text := text_in(mapping_in(block).get("text")))]
    text = "\n\n".join(texts) or text_in(message.get("text")) or ""
    yield from _files_left(path, message)
    own_id = id_given(message.get("uuid"), SYSTEM, session_id, str(index))
    if role is None:
        yield LeftOut(path, "message", "its sender is neither human nor assistant")
        return
    if text.strip():
        origin = make_origin(SYSTEM, "message", id=text_in(message.get("uuid")), model=text_in(message.get("model")))
        yield Found(
            path,
            make_message(id=own_id, session_id=session_id, role=role, content=text, ts=ts, origin=origin),
        )
    elif not blocks:
        yield LeftOut(path, "message", "it holds no text", is_loss=False)
    yield from _results(path, session_id, own_id, blocks, ts)
    for at, given in enumerate(message.get("attachments") or ()):
        attached = mapping_in(given)
        held = text_in(attached.get("extracted_content"))
        if held and held.strip():
            origin = make_origin(SYSTEM, "message", id=f"{own_id}.attachments.{at}")
            name = text_in(attached.get("file_name")) or "attachment"
            made = make_message(
                id=id_given(f"{own_id}~{at}", SYSTEM), session_id=session_id, role="tool", content=held, ts=ts,
                origin=origin, tool={"name": "attachment", "ok": True, "args": {"file_name": name}},
            )  # fmt: skip
            yield Found(f"{path}.attachments[{at}]", made)


def _results(path: str, session_id: str, own_id: str, blocks: list[Any], ts: str) -> Read:
    """Tool calls and their results, joined by call id."""
    calls: dict[Any, Mapping[str, Any]] = {}
    for at, given in enumerate(blocks):
        block, here = mapping_in(given), f"{path}.content[{at}]"
        kind = _kind(given)
        if kind == "tool_use":
            calls[block.get("id")] = block
        elif kind == "tool_result":
            text = _block_text(block.get("content"))
            call = calls.get(block.get("tool_use_id"), {})
            if not text.strip():
                yield LeftOut(here, "tool_result", "it holds no text", is_loss=False)
                continue
            args = call.get("input")
            tool: dict[str, Any] = {
                "name": text_in(block.get("name")) or text_in(call.get("name")) or "tool",
                "ok": block.get("is_error") is not True,
            }
            if isinstance(args, dict):
                tool["args"] = args
            origin = make_origin(SYSTEM, "message", id=f"{own_id}.content.{at}")
            made = make_message(
                id=id_given(f"{own_id}~c{at}", SYSTEM), session_id=session_id, role="tool", content=text, ts=ts,
                origin=origin, tool=tool,
            )  # fmt: skip
            yield Found(here, made)
        elif kind == "thinking":
            why = "what a model thought is no part of the conversation"
            yield LeftOut(here, "reasoning", why, is_loss=False)
        elif kind not in ("text", "token_budget"):
            yield LeftOut(here, kind, "there is no place for such a block")


def _kind(block: Any) -> str:
    kind = mapping_in(block).get("type")
    return kind[:60] if isinstance(kind, str) else "block"


def _block_text(content: Any) -> str:
    if isinstance(content, str):
        return text_in(content) or ""
    parts = content if isinstance(content, list) else []
    return "\n".join(text for part in parts if (text := text_in(mapping_in(part).get("text"))))


def _files_left(path: str, message: Mapping[str, Any]) -> Read:
    for name in ("attachments", "files", "files_v2"):
        given = message.get(name)
        for at, each in enumerate(given if isinstance(given, list) else ()):
            if not text_in(mapping_in(each).get("extracted_content")):
                yield LeftOut(f"{path}.{name}[{at}]", "file", "pictures, sound and files stay there")


def _project(path: str, said: Mapping[str, Any], as_of: str) -> Read:
    project_id = id_given(said.get("uuid"), SYSTEM, path)
    name = text_in(said.get("name")) or "project"
    for part in ("description", "prompt_template"):
        text = text_in(said.get(part))
        if text and text.strip():
            spoken = f"project {name}" if part == "description" else f"instructions of project {name}"
            yield from _note(f"{path}.{part}", text, f"{project_id}.{part}", spoken, said, as_of)
    docs = said.get("docs")
    for at, _ in enumerate(docs if isinstance(docs, list) else ()):
        yield LeftOut(f"{path}.docs[{at}]", "document", "a document belongs into a corpus: `muniment corpus add`")


def _memories(path: str, said: Mapping[str, Any], as_of: str) -> Read:
    """Split the free text of the memory into one note per paragraph, under its heading."""
    whole = text_in(said.get("conversations_memory"))
    if whole:
        yield from _paragraphs(f"{path}.conversations_memory", whole, "memory", as_of)
    for project, text in mapping_in(said.get("project_memories")).items():
        held = text_in(text)
        if held:
            yield from _paragraphs(f"{path}.project_memories[{project!r}]", held, f"memory of project {project}", as_of)


def _paragraphs(path: str, text: str, speaker: str, as_of: str) -> Read:
    heading = ""
    for number, paragraph in enumerate(part.strip() for part in text.split("\n\n")):
        bare = paragraph.strip("#* \n")
        if not bare:
            continue
        if "\n" not in paragraph and (paragraph.startswith("#") or paragraph == f"**{bare}**"):
            heading = bare
            continue
        under = f"{speaker}, {heading}" if heading else speaker
        origin = make_origin(SYSTEM, "memory")
        made = make_memory(
            id=id_given(None, SYSTEM, speaker, heading, paragraph), text=paragraph, as_of=as_of, origin=origin,
            speaker=under[:200],
        )  # fmt: skip
        yield Found(f"{path}[{number}]", made)


def _note(path: str, text: str, note_id: str, speaker: str, said: Mapping[str, Any], as_of: str) -> Read:
    origin = make_origin(
        SYSTEM, "memory", id=note_id, created_at=instant_in(said.get("created_at")),
        updated_at=instant_in(said.get("updated_at")),
    )  # fmt: skip
    made = make_memory(id=id_given(note_id, SYSTEM), text=text, as_of=as_of, origin=origin, speaker=speaker[:200])
    yield Found(path, made)
