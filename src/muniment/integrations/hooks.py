"""A command for the hooks of coding agents: an event as JSON comes in, what to tell the agent goes out.

    python -m muniment.integrations.hooks --db agent.db --user ana

    SessionStart         composes a planner's packet from earlier sessions
    UserPromptSubmit     composes for the prompt, then records it
    PostToolUse, PostToolUseFailure      records the tool's result
    Stop, SubagentStop   records the agent's last message

Other events are passed over. What is told goes out as `hookSpecificOutput.additionalContext`. A hook must not stop an
agent: a failure is one line on standard error and exit code 1, which agents show and go on; never 2, which blocks.
What has an id is written once, however often its hook runs. Store, tenant and user come from arguments, else from
muniment's settings.
"""

from __future__ import annotations

import argparse
import getpass
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from muniment.core.canonical import canonical_text, short_id
from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import InvalidInput, InvalidJson, MunimentError
from muniment.integrations.messages import content_text, once_key
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run

__all__ = ["handle", "main"]

_AGENT = "coding-agent"
_INPUT_BYTES_MAX = 16 * 1024 * 1024
_RESULT_CHARS_MAX = 20_000
_TRANSCRIPT_BYTES = 1024 * 1024
"""How much of a transcript's end is read for the last message."""


def handle(
    mem: Memory,
    event: Mapping[str, Any],
    *,
    user_id: str,
    agent_id: str = _AGENT,
    tenant_id: str = DEFAULT_TENANT,
    max_tokens: int = 1024,
) -> dict[str, Any]:
    """One event of a hook; what to print for the agent, empty where there is nothing to say."""
    name = event.get("hook_event_name")
    session = event.get("session_id")
    if not isinstance(name, str) or not isinstance(session, str) or not session:
        raise InvalidInput("a hook's event has a hook_event_name and a session_id", path="$")
    run = mem.run(
        user_id=user_id,
        agent_id=agent_id,
        session_id=session,
        run_id=short_id("run", ["hooks", tenant_id, user_id, session]),
        tenant_id=tenant_id,
    )
    if name == "SessionStart":
        project = Path(str(event.get("cwd", ""))).name
        build = run.compose("planner", query=project, max_tokens=max_tokens)
        return _context_output(name, build.text)
    if name == "UserPromptSubmit":
        prompt = str(event.get("prompt", ""))
        text = run.compose("responder", query=prompt, max_tokens=max_tokens).text
        if prompt.strip():
            key = once_key(session, _id(event, "prompt_id"), _count(run), prompt)
            run.observe("user", prompt, idempotency_key=key)
        return _context_output(name, text)
    if name in ("PostToolUse", "PostToolUseFailure"):
        _record_tool(run, event, session, ok=name == "PostToolUse")
    elif name in ("Stop", "SubagentStop"):
        _record_answer(run, event, session)
    return {}


def _context_output(name: str, text: str) -> dict[str, Any]:
    """The answer of a hook that adds a text to the context; empty where there is no text."""
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}} if text else {}


def _id(event: Mapping[str, Any], name: str) -> str | None:
    value = event.get(name)
    return value if isinstance(value, str) and value else None


def _count(run: Run) -> int:
    return sum(1 for _ in run.ledger.entries())


def _record_tool(run: Run, event: Mapping[str, Any], session: str, *, ok: bool) -> None:
    given = event.get("tool_input")
    answer = event.get("tool_response", event.get("error", ""))
    text = answer if isinstance(answer, str) else canonical_text(answer)
    run.observe_tool(
        str(event.get("tool_name") or "tool"),
        args=given if isinstance(given, Mapping) else None,
        content=text[:_RESULT_CHARS_MAX],
        ok=ok and not (isinstance(answer, Mapping) and answer.get("is_error") is True),
        idempotency_key=once_key(session, _id(event, "tool_use_id"), _count(run), [given, text]),
        metadata={"cut_from_chars": len(text)} if len(text) > _RESULT_CHARS_MAX else None,
    )


def _record_answer(run: Run, event: Mapping[str, Any], session: str) -> None:
    said = _id(event, "last_assistant_message")
    message_id, text = (None, said) if said is not None else _last_message(_id(event, "transcript_path"))
    if text:
        key = once_key(session, message_id or _id(event, "prompt_id"), _count(run), text)
        run.observe("assistant", text, idempotency_key=key)


def _last_message(path: str | None) -> tuple[str | None, str]:
    """The agent's last message that says something, from the end of a transcript of JSON lines; and its id."""
    for line in reversed(_tail(path)):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        message = entry.get("message") if isinstance(entry, dict) and entry.get("type") == "assistant" else None
        text = content_text(message.get("content", "")) if isinstance(message, dict) else ""
        if text:
            return _id(entry, "uuid"), text
    return None, ""


def _tail(path: str | None) -> list[bytes]:
    if path is None:
        return []
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TRANSCRIPT_BYTES))
            return file.read().splitlines()
    except OSError as error:
        said = f"the transcript cannot be read: {error.strerror or error}"
        raise InvalidInput(said, path="$.transcript_path") from None


def _read_event(source: IO[bytes]) -> dict[str, Any]:
    data = source.read(_INPUT_BYTES_MAX + 1)
    if len(data) > _INPUT_BYTES_MAX:
        raise InvalidInput(f"the event is over {_INPUT_BYTES_MAX} bytes", path="$")
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"the event is not JSON: {error}") from None
    if not isinstance(event, dict):
        raise InvalidJson("the event should be a JSON object")
    return event


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m muniment.integrations.hooks", description="Observe and compose.")
    for name in ("db", "tenant", "user", "agent"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--max-tokens", type=int, default=1024)
    given = parser.parse_args(arguments)
    try:
        event = _read_event(sys.stdin.buffer)
        settings = load_settings({name: getattr(given, name) for name in ("db", "tenant", "user", "agent")})
        with open_store(settings) as mem:
            answer = handle(
                mem,
                event,
                user_id=settings.user or getpass.getuser(),
                agent_id=given.agent or _AGENT,
                tenant_id=settings.tenant,
                max_tokens=given.max_tokens,
            )
    except MunimentError as error:
        print(f"error[{error.code}]: {error}", file=sys.stderr)
        return 1
    if answer:
        print(json.dumps(answer, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
