"""What the hosts' hooks say, in one shape: Claude Code, Codex, Cursor and Gemini CLI.

Each host has names of its own for the same moments. They do not clash, so the name of an event tells what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from muniment.errors import InvalidInput

__all__ = ["HookEvent", "Moment", "answer_with", "read_event", "result_text", "short_arguments"]

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
_EXIT_CODE = re.compile(r"Exit code \d{1,3}")
_ARGUMENT_CHARS_MAX = 400
"""What a written file or a patch holds stands in the repository: of an argument its beginning is kept."""
_LINES_OF_PATCH_MAX = 40
_TOLD_ELSEWHERE = ("old_string", "new_string", "edits", "content", "description", "run_in_background", "timeout")


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


def read_event(event: Mapping[str, Any]) -> HookEvent | None:
    """An event of a hook; None for one that is passed over."""
    name = event.get("hook_event_name")
    session = _text(event, "session_id") or _text(event, "conversation_id")
    if not isinstance(name, str) or session is None:
        raise InvalidInput("a hook's event has a hook_event_name and a session_id", path="$")
    moment = _MOMENTS.get(name)
    if moment is None:
        return None
    known = HookEvent(
        moment,
        name,
        session[:200],
        cwd=_directory(event),
        transcript=_text(event, "transcript_path"),
        source=_text(event, "source") or "startup",
        speaker=_text(event, "agent_type") if _text(event, "agent_id") else None,
    )
    if moment == "prompt":
        return known._replace(text=_text(event, "prompt") or "", id=_text(event, "prompt_id"))
    if moment == "tool":
        return _tool(known, event)
    if moment == "answer":
        said = next((found for key in _ANSWERS if (found := _text(event, key)) is not None), "")
        return known._replace(text=said, id=_text(event, "prompt_id"))
    if moment == "after_compaction":
        return known._replace(text=_text(event, "compact_summary") or "")
    return known


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
    failed = isinstance(answer, Mapping) and (answer.get("is_error") is True or bool(answer.get("error")))
    return known._replace(
        text=result_text(answer),
        id=_text(event, "tool_use_id"),
        tool=_text(event, "tool_name") or "tool",
        arguments=short_arguments(given, known.cwd) if isinstance(given, Mapping) else None,
        ok=known.name not in _FAILURES and not failed,
    )


def _parsed(value: Any) -> Any:
    """Cursor hands some objects over as JSON in a text."""
    if not isinstance(value, str) or value[:1] not in "{[":
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def short_arguments(given: Mapping[str, Any], directory: str = "") -> dict[str, Any]:
    """A tool's arguments: of long texts their beginning, of paths what stands below the directory. What a changed file
    held and holds is told by the result, and what a command is for by the command.
    """
    below = f"{directory.rstrip('/')}/" if directory else ""
    kept = {str(name): value for name, value in given.items() if name not in _TOLD_ELSEWHERE}
    plain = {name: value.removeprefix(below) if isinstance(value, str) else value for name, value in kept.items()}
    return {name: _short(value) for name, value in plain.items()}


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _ARGUMENT_CHARS_MAX:
        return f"{value[:_ARGUMENT_CHARS_MAX]}… ({len(value)} characters)"
    if isinstance(value, list | Mapping):
        text = json.dumps(value, ensure_ascii=False, default=str)
        return value if len(text) <= _ARGUMENT_CHARS_MAX else _short(text)
    return value


def result_text(answer: Any) -> str:
    """What a tool answered, as its reader sees it: output of a command, text of a file, lines of a patch. That a
    command failed is told beside it, so a first line that says so is left out where there is more.
    """
    if isinstance(answer, str):
        first, _, rest = answer.partition("\n")
        return rest if rest.strip() and _EXIT_CODE.fullmatch(first) else answer
    if isinstance(answer, list):
        return "\n".join(filter(None, map(result_text, answer)))
    if not isinstance(answer, Mapping):
        return "" if answer is None else json.dumps(answer)
    if "stdout" in answer or "stderr" in answer:
        return "\n".join(str(part) for key in ("stdout", "stderr") if (part := answer.get(key)))
    file = answer.get("file")
    if isinstance(file, Mapping) and isinstance(file.get("content"), str):
        return str(file["content"])
    if isinstance(answer.get("structuredPatch"), list):
        return _patch_text(answer)
    for key in ("text", "llmContent", "output", "content"):
        if isinstance(answer.get(key), str | list):
            return result_text(answer[key])
    return json.dumps(answer, ensure_ascii=False, sort_keys=True, default=str)


def _patch_text(answer: Mapping[str, Any]) -> str:
    hunks = [hunk for hunk in answer["structuredPatch"] if isinstance(hunk, Mapping)]
    lines = [str(line) for hunk in hunks for line in hunk.get("lines", ()) if str(line)[:1] in ("+", "-")]
    more = [f"… and {len(lines) - _LINES_OF_PATCH_MAX} lines"] if len(lines) > _LINES_OF_PATCH_MAX else []
    if not lines:
        return "created" if answer.get("type") == "create" else "changed"
    return "\n".join([*lines[:_LINES_OF_PATCH_MAX], *more])


def answer_with(name: str, text: str) -> dict[str, Any]:
    """What a hook prints so that its host puts a text before the model; empty where there is no text."""
    if name == "beforeSubmitPrompt":
        return {"continue": True, "additional_context": text} if text else {"continue": True}
    if not text:
        return {}
    if name == "sessionStart":
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
