"""Hooks of coding agents: the command as an agent runs it, a whole conversation, and what it does with nonsense."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.errors import InvalidInput
from muniment.integrations.hooks import handle


def hook(path: Path, event: Any, *more: str) -> subprocess.CompletedProcess[str]:
    text = event if isinstance(event, str) else json.dumps(event)
    command = [sys.executable, "-m", "muniment.integrations.hooks", "--db", str(path / "a.db"), "--user", "ana"]
    command += ["--seconds", "120", *more]
    env = {**os.environ, "MUNIMENT_HOME": str(path / "home")}
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=path, env=env)


def told(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def event(name: str, session: str = "s1", **more: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": session, "cwd": "/projects/garden", **more}


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


def said(mem: muniment.Memory, session: str = "s1") -> list[tuple[str, str | None]]:
    entries = mem.ledger.entries(user_id="ana", session_id=session)
    return [(entry.role, entry.content) for entry in entries if entry.kind != "system"]


def test_a_conversation_through_the_command(tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    lines = [
        {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "which linter do we use?"}},
        {"type": "assistant", "uuid": "u2", "message": {"content": [{"type": "text", "text": "We use ruff here."}]}},
        {"type": "assistant", "uuid": "u3", "message": {"content": [{"type": "tool_use", "name": "Bash"}]}},
    ]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"torn')
    for step in (
        event("UserPromptSubmit", prompt="We deploy with the harbour script on Fridays."),
        event("PostToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_response={"stdout": "a.py"}),
        event("Stop", transcript_path=str(transcript)),
        event("PreCompact", trigger="auto"),
    ):
        done = hook(tmp_path, step, "--repository", "none")
        assert (done.returncode, done.stderr) == (0, "")
    with muniment.open(tmp_path / "a.db") as mem:
        assert said(mem) == [
            ("user", "We deploy with the harbour script on Fridays."),
            ("user", "which linter do we use?"),
            ("assistant", "We use ruff here."),
            ("tool", "a.py"),
        ]
    done = hook(tmp_path, event("UserPromptSubmit", "s2", prompt="How do we deploy?"), "--repository", "none")
    answer = json.loads(done.stdout)
    assert answer["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert "harbour script" in told(answer)


def test_a_prompt_is_not_told_to_itself(mem: muniment.Memory) -> None:
    answer = handle(mem, event("UserPromptSubmit", prompt="The word is xyzzy."), user_id="ana")
    assert "The word is xyzzy." not in told(answer)
    assert said(mem) == [("user", "The word is xyzzy.")]


def test_a_new_session_is_told_what_earlier_ones_held(mem: muniment.Memory) -> None:
    handle(mem, event("UserPromptSubmit", prompt="In the garden project we use tabs."), user_id="ana")
    assert "we use tabs" in told(handle(mem, event("SessionStart", "s2", source="startup"), user_id="ana"))
    assert "we use tabs" not in told(handle(mem, event("SessionStart", "s3", source="startup"), user_id="ben"))


def test_events_with_ids_are_written_once(mem: muniment.Memory, tmp_path: Path) -> None:
    steps = [
        event("UserPromptSubmit", prompt="hello", prompt_id="p1"),
        event("PostToolUse", tool_name="Read", tool_input={}, tool_response="text", tool_use_id="t1"),
        event("Stop", last_assistant_message="done", prompt_id="p1"),
    ]
    for step in steps + steps:
        handle(mem, step, user_id="ana")
    assert said(mem) == [("user", "hello"), ("tool", "text"), ("assistant", "done")]


def test_failures_of_tools_are_failures(mem: muniment.Memory) -> None:
    handle(mem, event("PostToolUseFailure", tool_name="Bash", tool_input={}, error="exit 1"), user_id="ana")
    handle(mem, event("PostToolUse", tool_name="Bash", tool_response={"is_error": True}), user_id="ana")
    tools = [entry.tool for entry in mem.ledger.entries(user_id="ana") if entry.tool is not None]
    assert [tool.ok for tool in tools] == [False, False]


def test_a_long_result_is_cut_and_says_so(mem: muniment.Memory) -> None:
    handle(mem, event("PostToolUse", tool_name="Bash", tool_response="x" * 50_000), user_id="ana")
    entry = next(each for each in mem.ledger.entries(user_id="ana") if each.tool is not None)
    assert len(mem.ledger.content(entry.id)) == 20_000
    assert entry.metadata["cut_from_chars"] == 50_000


@pytest.mark.parametrize("bad", ["", "nonsense", "[]", "{}", '{"hook_event_name": "Stop"}', "[" * 5000])
def test_nonsense_is_an_error_that_does_not_block(tmp_path: Path, bad: str) -> None:
    done = hook(tmp_path, bad)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error[")
    assert "Traceback" not in done.stderr


def test_a_transcript_that_is_not_there(mem: muniment.Memory) -> None:
    with pytest.raises(InvalidInput, match="transcript"):
        handle(mem, event("Stop", transcript_path="/nowhere/at/all"), user_id="ana")
    assert handle(mem, event("Stop"), user_id="ana") == {}
