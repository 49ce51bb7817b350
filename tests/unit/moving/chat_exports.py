"""Data exports of ChatGPT and Claude, written by their publicly documented shapes: no package makes them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

DAY = 1_700_000_000


def node(name: str, parent: str | None, children: list[str], role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    content = more.pop("content", None) or {"content_type": "text", "parts": list(parts)}
    message = {
        "id": f"msg-{name}",
        "author": {"role": role, "name": more.pop("author", None), "metadata": {}},
        "create_time": more.pop("at", DAY),
        "content": content,
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": more.pop("metadata", {}),
        "recipient": more.pop("recipient", "all"),
    }
    return {"id": name, "message": message, "parent": parent, "children": children}


def chatgpt_conversation(number: int = 1) -> dict[str, Any]:
    """A conversation with a branch that was left, a picture, code, a tool, hidden and editable context."""
    listed = "1. [2024-05-01]. User lives in Oslo.\n\n2. [2024-06-03]. User is allergic to shellfish."
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["system"]},
        node("system", "root", ["profile"], "system", "", metadata={"is_visually_hidden_from_conversation": True}),
        node(
            "profile", "system", ["memory"], "user",
            content={"content_type": "user_editable_context", "user_profile": "I'm a nurse.", "user_instructions": ""},
        ),
        node(
            "memory", "profile", ["ask"], "system",
            content={"content_type": "model_editable_context", "model_set_context": listed},
        ),
        node("ask", "memory", ["old-answer", "answer"], "user", "Which fjord is near me?", at=DAY + 10),
        node("old-answer", "ask", [], "assistant", "Which country are you in?", at=DAY + 11),
        node(
            "answer", "ask", ["picture"], "assistant", "The Oslofjord.", at=DAY + 12.5,
            metadata={"model_slug": "gpt-4o"},
        ),
        node(
            "picture", "answer", ["code"], "user", at=DAY + 20,
            content={
                "content_type": "multimodal_text",
                "parts": [
                    {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}, "What boat is this?",
                ],
            },
        ),
        node(
            "code", "picture", ["output"], "assistant", at=DAY + 21, recipient="python",
            content={"content_type": "code", "language": "python", "text": "look(image)"},
        ),
        node(
            "output", "code", ["last"], "tool", at=DAY + 22, author="python",
            content={"content_type": "execution_output", "text": "a sloop"},
        ),
        node("last", "output", [], "assistant", "It is a sloop.", at=DAY + 23),
    ]  # fmt: skip
    return {
        "id": f"conv-{number}",
        "conversation_id": f"conv-{number}",
        "title": "Fjords",
        "create_time": DAY,
        "update_time": DAY + 23,
        "mapping": {each["id"]: each for each in nodes},
        "current_node": "last",
    }


def claude_conversation() -> dict[str, Any]:
    def message(name: str, sender: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "uuid": name,
            "text": "",
            "content": list(blocks),
            "sender": sender,
            "created_at": "2025-02-01T10:00:00.000000Z",
            "updated_at": "2025-02-01T10:00:00.000000Z",
            "attachments": more.get("attachments", []),
            "files": more.get("files", []),
        }

    def text(words: str) -> dict[str, Any]:
        return {"type": "text", "text": words, "citations": []}

    return {
        "uuid": "c-1",
        "name": "A garden",
        "summary": "The user plans a garden in Bergen.",
        "created_at": "2025-02-01T09:59:00.000000Z",
        "updated_at": "2025-02-01T10:05:00.000000Z",
        "account": {"uuid": "acct"},
        "chat_messages": [
            message(
                "cm-1", "human", text("I live in Bergen. What grows here?"),
                attachments=[{"file_name": "soil.txt", "file_size": 9, "extracted_content": "pH 5.2"}],
                files=[{"file_name": "garden.png"}],
            ),
            message(
                "cm-2", "assistant", {"type": "thinking", "thinking": "rain"},
                {"type": "tool_use", "id": "tu-1", "name": "web_search", "input": {"query": "Bergen soil"}},
                {"type": "tool_result", "tool_use_id": "tu-1", "name": "web_search", "content": [text("acid")]},
                text("Rhododendron."),
            ),
        ],
    }  # fmt: skip


CLAUDE_MEMORIES = [
    {
        "conversations_memory": "**Work context**\n\nUser works at Equinor.\n\n**Personal**\n\nLikes rain.",
        "project_memories": {"p-1": "Planning a garden."},
        "account_uuid": "acct",
    }
]
CLAUDE_PROJECTS = [
    {
        "uuid": "p-1",
        "name": "Garden",
        "description": "What to plant.",
        "prompt_template": "Answer in metric units.",
        "docs": [{"uuid": "d-1", "filename": "plan.md", "content": "beds"}],
        "created_at": "2025-01-01T00:00:00Z",
    }
]
CLAUDE_USERS = [{"uuid": "acct", "full_name": "Ana", "email_address": "ana@example.com"}]


def write_zip(path: Path, members: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(name, value if isinstance(value, str | bytes) else json.dumps(value))
    return path


def chatgpt_zip(path: Path, conversations: list[dict[str, Any]] | None = None) -> Path:
    held = [chatgpt_conversation()] if conversations is None else conversations
    return write_zip(
        path, {"conversations.json": held, "user.json": {"id": "u", "email": "a@example.com"}, "chat.html": "<html>"}
    )


def claude_zip(path: Path) -> Path:
    return write_zip(
        path,
        {
            "conversations.json": [claude_conversation()],
            "memories.json": CLAUDE_MEMORIES,
            "projects.json": CLAUDE_PROJECTS,
            "users.json": CLAUDE_USERS,
        },
    )
