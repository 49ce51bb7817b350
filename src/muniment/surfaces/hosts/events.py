"""Events of hooks, results of tools, and transcripts of sessions, in one shape for all hosts.

Claude Code, Codex, Cursor and Gemini CLI each name the same moments differently. The names do not clash, so an event's
name is enough. Hosts wrap the output of a command in lines of their own; only the output is kept, and whether the
command failed. Transcripts are Claude Code's JSON lines and Codex's rollouts. Neither format is stable, so a line that
is unknown or truncated is skipped. Thoughts, titles, attachments and messages inserted by the host are not turns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from muniment.errors import InvalidInput

__all__ = [
    "HookEvent",
    "Moment",
    "Transcript",
    "Turn",
    "answer_with",
    "read_event",
    "read_lines",
    "read_result",
    "read_transcript",
    "without_context",
]

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
"""A hook's text as Gemini CLI puts it before the user's words."""


class HookEvent(NamedTuple):
    """One moment of a session."""

    moment: Moment
    name: str
    """The host's own event name."""
    session: str
    cwd: str = ""
    transcript: str | None = None
    source: str = "startup"
    """For a start: startup, resume, clear, compact or fork."""
    text: str = ""
    """The prompt, the agent's message, the tool's result or the host's own summary."""
    id: str | None = None
    """The id of the prompt or of the tool's call."""
    tool: str = ""
    arguments: Mapping[str, Any] | None = None
    ok: bool = True
    speaker: str | None = None
    """The kind of the subagent, if one speaks."""
    lost_told: bool = False
    """For a resumed session: true if the host no longer has the earlier texts of hooks."""


def read_event(event: Mapping[str, Any]) -> HookEvent | None:
    """Read an event of a hook; None for one to skip."""
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
    """True for events that are not part of the session. Claude Code summarizes in a subagent without a kind, and Gemini
    CLI sends "auto" before every request to its model, whether or not it compresses then.
    """
    is_unkind = event.get("hook_event_name") == "SubagentStop" and event.get("agent_type") == ""
    return is_unkind or (event.get("hook_event_name") == "PreCompress" and event.get("trigger") == "auto")


def without_context(text: str) -> str:
    """The user's words, without the text a hook put before them."""
    return _CONTEXT.sub("", text)


_ANSWERS = ("last_assistant_message", "prompt_response", "text")


def _text(event: Mapping[str, Any], name: str) -> str | None:
    value = event.get(name)
    return value if isinstance(value, str) and value else None


def _directory(event: Mapping[str, Any]) -> str:
    """The session's working directory; for Cursor, the first folder of its workspace."""
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
    """Parse the objects that Cursor passes as JSON text."""
    if not isinstance(value, str) or value[:1] not in "{[":
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def answer_with(name: str, text: str) -> dict[str, Any]:
    """The output with which a hook has its host show a text to the model; empty for an empty text."""
    if name == "beforeSubmitPrompt":
        return {"continue": True, "additional_context": text} if text else {"continue": True}
    if not text:
        return {}
    if name == "sessionStart":
        return {"additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


# -- tools --------------------------------------------------------------------------------------------

_EXIT_CODE = re.compile(r"Exit code \d{1,3}")
_OF_CODEX = re.compile(
    r"(?:(?:Chunk ID|Wall time|Original token count|Total output lines): [^\n]*\n"
    r"|(?:Process exited with code|Exit code:) (?P<code>-?\d{1,10})\n"
    r"|Process running with session ID [^\n]*\n)+Output:\n"
)
_OF_GEMINI = re.compile(r"<untrusted_context>\n(?P<told>.*)\n</untrusted_context>", re.DOTALL)
_GEMINI_HEAD = re.compile(r"(?:Command: [^\n]*\n)?(?:Directory: [^\n]*\n)?(?:Output|Stdout): ")
_GEMINI_TAIL = re.compile(
    r"(?:\nError: \(none\))?(?:\nExit Code: (?P<code>[^\n]*))?(?:\nSignal: (?P<signal>[^\n]*))?"
    r"(?:\nBackground PIDs: [^\n]*)?(?:\nProcess Group PGID: [^\n]*)?\Z"
)
_NOTHING = ("(none)", "(empty)", "0", None)
_ARGUMENT_CHARS_MAX = 400
"""The contents of written files and patches are in the repository: only the beginning of an argument is kept."""
_LINES_OF_PATCH_MAX = 40
_TOLD_ELSEWHERE = ("old_string", "new_string", "edits", "content", "description", "run_in_background", "timeout")


# -- arguments ----------------------------------------------------------------------------------------


def short_arguments(given: Mapping[str, Any], directory: str = "") -> dict[str, Any]:
    """Shorten a tool's arguments: long texts to their beginning, paths to the part below the directory. The result
    shows the content of a changed file, and the command its own purpose.
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


# -- results ------------------------------------------------------------------------------------------


def read_result(answer: Any) -> tuple[str, bool]:
    """The readable text of a tool's result (output of a command, text of a file, lines of a patch), and whether it
    succeeded, as far as the result shows.
    """
    failed = isinstance(answer, Mapping) and (answer.get("is_error") is True or bool(answer.get("error")))
    text = _answer_text(answer).rstrip("\n")
    if (of_codex := _OF_CODEX.match(text)) is not None:
        return text[of_codex.end() :], not failed and of_codex["code"] in (None, "0")
    if (of_gemini := _OF_GEMINI.fullmatch(text.strip())) is not None:
        told, ok = _without_process(of_gemini["told"])
        return told, ok and not failed
    return text, not failed


def _without_process(told: str) -> tuple[str, bool]:
    """The output of a command, without the lines about its process; and whether it succeeded."""
    about = _GEMINI_TAIL.search(told)
    assert about is not None, "the end of a text is always found"
    printed = _GEMINI_HEAD.sub("", told[: about.start()], count=1)
    ok = about["code"] in _NOTHING and about["signal"] in _NOTHING
    return "" if printed in _NOTHING[:2] else printed, ok


def _answer_text(answer: Any) -> str:
    """The text of a result, without a first line that only reports failure, which is recorded separately."""
    if isinstance(answer, str):
        first, _, rest = answer.partition("\n")
        return rest if rest.strip() and _EXIT_CODE.fullmatch(first) else answer
    if isinstance(answer, list):
        return "\n".join(filter(None, map(_answer_text, answer)))
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
            return _answer_text(answer[key])
    return json.dumps(answer, ensure_ascii=False, sort_keys=True, default=str)


def _patch_text(answer: Mapping[str, Any]) -> str:
    hunks = [hunk for hunk in answer["structuredPatch"] if isinstance(hunk, Mapping)]
    lines = [str(line) for hunk in hunks for line in hunk.get("lines", ()) if str(line)[:1] in ("+", "-")]
    more = [f"… and {len(lines) - _LINES_OF_PATCH_MAX} lines"] if len(lines) > _LINES_OF_PATCH_MAX else []
    if not lines:
        return "created" if answer.get("type") == "create" else "changed"
    return "\n".join([*lines[:_LINES_OF_PATCH_MAX], *more])


# -- transcripts --------------------------------------------------------------------------------------

_BYTES_MAX = 16 * 1024 * 1024
"""The bytes read from a transcript's end."""
_NOT_SAID = (
    "<command-name>", "<command-message>", "<local-command", "<system-reminder>", "<task-notification>", "Caveat:",
    "<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "# AGENTS.md instructions",
    "[Request interrupted",
)  # fmt: skip
"""Beginnings of texts that a host inserts in place of the user's."""
_SNAPSHOT = "<state_snapshot>"
_HOSTS_OWN = "<synthetic>"
"""The model that Claude Code names for its own messages."""


class Turn(NamedTuple):
    """A message or a tool's result."""

    role: Literal["user", "assistant", "tool"]
    text: str
    at: str | None = None
    call: str | None = None
    """The id of the call that the result belongs to."""
    tool: str = ""
    arguments: Mapping[str, Any] | None = None
    ok: bool = True


class Transcript(NamedTuple):
    """A host's record of a session."""

    turns: list[Turn]
    compactions: int
    """The number of times the host dropped the earlier conversation."""


def read_transcript(path: str) -> Transcript:
    """Read the turns of a transcript, in order."""
    try:
        with Path(path).expanduser().open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _BYTES_MAX))
            data = file.read(_BYTES_MAX)
    except OSError as error:
        said = f"the transcript cannot be read: {error.strerror or error}"
        raise InvalidInput(said, path="$.transcript_path") from None
    return read_lines(data.splitlines())


def read_lines(lines: Iterable[bytes | str]) -> Transcript:
    entries = list(_entries(lines))
    return Transcript(list(_turns(entries)), sum(map(_is_compaction, entries)))


def _entries(lines: Iterable[bytes | str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry


def _is_compaction(entry: Mapping[str, Any]) -> bool:
    """True if the entry marks a compaction: Claude Code writes a boundary, Codex the remainder, Gemini CLI its messages
    anew with a snapshot in front.
    """
    anew = entry.get("$set")
    if isinstance(anew, Mapping):
        return _SNAPSHOT in json.dumps(anew.get("messages"))
    return entry.get("type") == "compacted" or entry.get("subtype") == "compact_boundary"


def _turns(entries: Iterable[Mapping[str, Any]]) -> Iterator[Turn]:
    calls: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for entry in entries:
        at = entry.get("timestamp")
        turns = _of_rollout(entry, calls) if isinstance(entry.get("payload"), dict) else _of_claude(entry, calls)
        for turn in turns:
            if turn.role == "tool" or (turn.text.strip() and not turn.text.lstrip().startswith(_NOT_SAID)):
                yield turn._replace(at=at if isinstance(at, str) else None)


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


# -- Claude Code --------------------------------------------------------------------------------------


def _of_claude(entry: Mapping[str, Any], calls: dict[str, tuple[str, Mapping[str, Any]]]) -> Iterator[Turn]:
    message = entry.get("message")
    role = entry.get("type")
    put_in = entry.get("isMeta") or entry.get("isSidechain") or entry.get("isCompactSummary")
    if role not in ("user", "assistant") or not isinstance(message, Mapping) or put_in:
        return
    if message.get("model") == _HOSTS_OWN:
        return
    blocks = _blocks(message.get("content"))
    whole = entry.get("toolUseResult") if len(blocks) == 1 else None  # the result as hooks get it, including patches
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            yield Turn(role, block["text"])
        elif kind == "tool_use":
            _keep_call(calls, block.get("id"), block.get("name"), block.get("input"), entry.get("cwd"))
        elif kind == "tool_result":
            ok = block.get("is_error") is not True
            told = whole if ok and isinstance(whole, Mapping) else block.get("content")
            yield from _result(calls, block.get("tool_use_id"), *read_result(told), ok)


def _keep_call(
    calls: dict[str, tuple[str, Mapping[str, Any]]], call: Any, name: Any, given: Any, directory: Any = None
) -> None:
    if isinstance(call, str) and isinstance(name, str):
        below = directory if isinstance(directory, str) else ""
        calls[call] = (name, short_arguments(given, below) if isinstance(given, Mapping) else {})


def _result(calls: Mapping[str, tuple[str, Mapping[str, Any]]], call: Any, text: str, *worked: bool) -> Iterator[Turn]:
    if isinstance(call, str) and call in calls:
        name, arguments = calls[call]
        yield Turn("tool", text, call=call, tool=name, arguments=arguments, ok=all(worked))


# -- Codex --------------------------------------------------------------------------------------------


def _of_rollout(entry: Mapping[str, Any], calls: dict[str, tuple[str, Mapping[str, Any]]]) -> Iterator[Turn]:
    item = entry["payload"]
    kind, call = item.get("type"), item.get("call_id")
    about = entry.get("metadata")
    if entry.get("type") != "response_item" or (isinstance(about, Mapping) and about.get("compaction_output") is True):
        return
    if kind == "message" and item.get("role") in ("user", "assistant"):
        texts = [block.get("text") for block in _blocks(item.get("content"))]
        for text in texts:
            if isinstance(text, str):
                yield Turn(item["role"], text)
    elif kind in ("function_call", "custom_tool_call"):
        _keep_call(calls, call, _tool_name(item), _arguments(item.get("arguments", item.get("input"))))
    elif kind == "local_shell_call":
        _keep_call(calls, call, "shell", item.get("action"))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        text, ok = _output(item.get("output"))
        yield from _result(calls, call, text, ok)


def _tool_name(item: Mapping[str, Any]) -> Any:
    """The tool's name, with its MCP server's as a namespace."""
    space, name = item.get("namespace"), item.get("name")
    return f"{space}.{name}" if isinstance(space, str) and isinstance(name, str) else name


def _arguments(given: Any) -> Mapping[str, Any]:
    try:
        read = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        read = given
    return read if isinstance(read, Mapping) else {"input": read}


def _output(given: Any) -> tuple[str, bool]:
    """The text of a result and whether it succeeded; older versions wrap both into JSON in a text."""
    read = _arguments(given) if isinstance(given, str) and given.startswith("{") else given
    text, ok = read_result(read)
    if not isinstance(read, Mapping):
        return text, ok
    about = read.get("metadata")
    code = about.get("exit_code") if isinstance(about, Mapping) else None
    return text, ok and read.get("success") is not False and code in (None, 0)
