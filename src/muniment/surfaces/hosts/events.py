"""What the hosts' hooks say, in one shape: Claude Code, Codex, Cursor and Gemini CLI.

Each host has names of its own for the same moments. They do not clash, so the name of an event tells what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from muniment.errors import InvalidInput
from muniment.surfaces.hosts.tool_results import read_result, short_arguments

__all__ = ["HookEvent", "Moment", "answer_with", "read_event", "without_context"]

Moment = Literal["start", "prompt", "tool", "answer", "before_compaction", "after_compaction", "end"]

_MOMENTS: Mapping[str, Moment] = {
    # Claude Code and Codex
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "PostToolUseFailure": "tool",
    "Stop": "answer",
    "SubagentStop": "answer",
    "PreCompact": "before_compaction",
    "PostCompact": "after_compaction",
    "SessionEnd": "end",
    # Gemini CLI
    "BeforeAgent": "prompt",
    "AfterTool": "tool",
    "AfterAgent": "answer",
    "PreCompress": "before_compaction",
    # Cursor
    "sessionStart": "start",
    "beforeSubmitPrompt": "prompt",
    "postToolUse": "tool",
    "postToolUseFailure": "tool",
    "afterAgentResponse": "answer",
    "preCompact": "before_compaction",
    "sessionEnd": "end",
}
_FAILURES = ("PostToolUseFailure", "postToolUseFailure")
_CONTEXT = re.compile(r"\A\s*<hook_context>.*?</hook_context>\s*", re.DOTALL)
"""How Gemini CLI puts what a hook told before the words of the user."""


class HookEvent(NamedTuple):
    """One moment of a session."""

    moment: Moment
    name: str
    """The host's own name of it."""
    session: str
    cwd: str = ""
    transcript: str | None = None
    source: str = "startup"
    """Of a start: startup, resume, clear, compact or fork."""
    text: str = ""
    """The prompt, the agent's message, the tool's result or the host's own summary."""
    id: str | None = None
    """The id of the prompt or of the tool's call."""
    tool: str = ""
    arguments: Mapping[str, Any] | None = None
    ok: bool = True
    speaker: str | None = None
    """The kind of a subagent, where one speaks."""
    lost_told: bool = False
    """Of a session that is resumed: whether the host no longer has what hooks told it before."""


def read_event(event: Mapping[str, Any]) -> HookEvent | None:
    """An event of a hook; None for one that is passed over."""
    name = event.get("hook_event_name")
    session = _text(event, "session_id") or _text(event, "conversation_id")
    if not isinstance(name, str) or session is None:
        raise InvalidInput("a hook's event has a hook_event_name and a session_id", path="$")
    moment = _MOMENTS.get(name)
    if moment is None or _is_hosts_own(event):
        return None
    known = HookEvent(
        moment,
        name,
        session[:200],
        cwd=_directory(event),
        transcript=_text(event, "transcript_path"),
        source=_text(event, "source") or "startup",
        speaker=_text(event, "agent_type") if _text(event, "agent_id") else None,
        # Gemini CLI, whose events have a time, leaves the first message out of what it resumes, and the packet with it
        lost_told=event.get("source") == "resume" and "timestamp" in event,
    )
    if moment == "prompt":
        return known._replace(text=without_context(_text(event, "prompt") or ""), id=_text(event, "prompt_id"))
    if moment == "tool":
        return _tool(known, event)
    if moment == "answer":
        said = next((found for key in _ANSWERS if (found := _text(event, key)) is not None), "")
        return known._replace(text=said, id=_text(event, "prompt_id"))
    if moment == "after_compaction":
        return known._replace(text=_text(event, "compact_summary") or "")
    return known


def _is_hosts_own(event: Mapping[str, Any]) -> bool:
    """What only looks like a moment of the session. Claude Code sums up in a subagent that has no kind, and Gemini CLI
    says "auto" before every request to its model, whether or not it compresses then.
    """
    is_unkind = event.get("hook_event_name") == "SubagentStop" and event.get("agent_type") == ""
    return is_unkind or (event.get("hook_event_name") == "PreCompress" and event.get("trigger") == "auto")


def without_context(text: str) -> str:
    """The user's words, without what a hook put before them."""
    return _CONTEXT.sub("", text)


_ANSWERS = ("last_assistant_message", "prompt_response", "text")


def _text(event: Mapping[str, Any], name: str) -> str | None:
    value = event.get(name)
    return value if isinstance(value, str) and value else None


def _directory(event: Mapping[str, Any]) -> str:
    """Where the session works; Cursor names the folders of its workspace, the first of which is meant."""
    roots = event.get("workspace_roots")
    named = roots[0] if isinstance(roots, list) and roots and isinstance(roots[0], str) else ""
    return named or _text(event, "cwd") or ""


def _tool(known: HookEvent, event: Mapping[str, Any]) -> HookEvent:
    given = _parsed(event.get("tool_input"))
    answer = event.get("tool_response", event.get("tool_output", event.get("error", event.get("error_message", ""))))
    answer = _parsed(answer) if known.name.startswith("post") else answer
    text, ok = read_result(answer)
    return known._replace(
        text=text,
        id=_text(event, "tool_use_id"),
        tool=_text(event, "tool_name") or "tool",
        arguments=short_arguments(given, known.cwd) if isinstance(given, Mapping) else None,
        ok=known.name not in _FAILURES and ok,
    )


def _parsed(value: Any) -> Any:
    """Cursor hands some objects over as JSON in a text."""
    if not isinstance(value, str) or value[:1] not in "{[":
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def answer_with(name: str, text: str) -> dict[str, Any]:
    """What a hook prints so that its host puts a text before the model; empty where there is no text."""
    if name == "beforeSubmitPrompt":
        return {"continue": True, "additional_context": text} if text else {"continue": True}
    if not text:
        return {}
    if name == "sessionStart":
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
