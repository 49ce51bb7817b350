"""The hosts' transcripts of a session, read as turns: Claude Code's JSON lines and Codex's rollouts.

Neither format is promised to stay as it is. A line that is not understood is passed over, a line that was torn too;
what is read are messages and tools' results, with the ids that the host gave them. Thoughts, titles, attachments and
what the host itself put into the conversation are no turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from muniment.errors import InvalidInput
from muniment.surfaces.hosts.tool_results import read_result, short_arguments

__all__ = ["Transcript", "Turn", "read_lines", "read_transcript"]

_BYTES_MAX = 16 * 1024 * 1024
"""How much of a transcript's end is read."""
_NOT_SAID = (
    "<command-name>", "<command-message>", "<local-command", "<system-reminder>", "<task-notification>", "Caveat:",
    "<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "# AGENTS.md instructions",
    "[Request interrupted",
)  # fmt: skip
"""How texts begin that a host puts where the user's would stand."""
_SNAPSHOT = "<state_snapshot>"
_HOSTS_OWN = "<synthetic>"
"""The model that Claude Code names for what it says itself."""


class Turn(NamedTuple):
    """A message or a tool's result."""

    role: Literal["user", "assistant", "tool"]
    text: str
    at: str | None = None
    call: str | None = None
    """The id of the call that a result belongs to."""
    tool: str = ""
    arguments: Mapping[str, Any] | None = None
    ok: bool = True


class Transcript(NamedTuple):
    """What a host wrote down of a session."""

    turns: list[Turn]
    compactions: int
    """How often the host let go of what was said until then."""


def read_transcript(path: str) -> Transcript:
    """The turns of a transcript, in order."""
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
    """Claude Code writes a boundary, Codex what is left, Gemini CLI its messages anew with a snapshot in front."""
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
    whole = entry.get("toolUseResult") if len(blocks) == 1 else None  # what a hook is told, lines of a patch and all
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
    """A tool of an MCP server stands in a namespace of that server."""
    space, name = item.get("namespace"), item.get("name")
    return f"{space}.{name}" if isinstance(space, str) and isinstance(name, str) else name


def _arguments(given: Any) -> Mapping[str, Any]:
    try:
        read = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        read = given
    return read if isinstance(read, Mapping) else {"input": read}


def _output(given: Any) -> tuple[str, bool]:
    """The text of a result and whether it worked; older versions wrap both into JSON in a text."""
    read = _arguments(given) if isinstance(given, str) and given.startswith("{") else given
    text, ok = read_result(read)
    if not isinstance(read, Mapping):
        return text, ok
    about = read.get("metadata")
    code = about.get("exit_code") if isinstance(about, Mapping) else None
    return text, ok and read.get("success") is not False and code in (None, 0)
