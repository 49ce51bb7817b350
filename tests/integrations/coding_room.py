"""A coding agent's host, played: it reads its configuration, runs the commands that stand there, writes a transcript.

What it does is what Claude Code documents: an event on standard input of `sh -c command`, the answer on standard
output, exit code 2 the only one that blocks. The transcript has the lines that it writes today, one block a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["Host", "git"]


def git(where: Path, *words: str) -> None:
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *names, *words], cwd=where, check=True, capture_output=True)


class Host:
    """One session after another, in whichever repository."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "CLAUDE"))},
            "HOME": str(home),
        }
        self.count = 0

    def command(self, where: Path, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "muniment", *words],
            cwd=where, env=self.env, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def begin(self, where: Path, session: str, source: str = "startup") -> str:
        self.where, self.session = where, session
        folder = self.home / ".claude" / "projects" / str(where).replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        self.transcript = folder / f"{session}.jsonl"
        return self.hook("SessionStart", source=source, model="claude-opus-5")

    def line(self, kind: str, **more: Any) -> None:
        self.count += 1
        entry = {
            "parentUuid": f"u{self.count - 1}", "isSidechain": False, "userType": "external", "cwd": str(self.where),
            "sessionId": self.session, "version": "2.1.240", "gitBranch": "main", "type": kind,
            "uuid": f"u{self.count}",
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }  # fmt: skip
        with self.transcript.open("a") as file:
            file.write(json.dumps({**entry, **more}) + "\n")

    def hook(self, name: str, **more: Any) -> str:
        """Run what the settings name for an event; what the model is told."""
        settings = json.loads((self.home / ".claude" / "settings.json").read_text())
        event = {
            "session_id": self.session, "transcript_path": str(self.transcript), "cwd": str(self.where),
            "permission_mode": "default", "hook_event_name": name, **more,
        }  # fmt: skip
        told = []
        for group in settings["hooks"].get(name, ()):
            for handler in group["hooks"]:
                command = handler["command"] + (" --seconds 120" if "muniment" in handler["command"] else "")
                done = subprocess.run(
                    ["sh", "-c", command],
                    input=json.dumps(event), cwd=self.where, env=self.env, capture_output=True, text=True, check=False,
                )  # fmt: skip
                assert (done.returncode, done.stderr) == (0, ""), (name, done.stderr)
                if done.stdout:
                    told.append(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"])
        assert all(len(each) <= 10_000 for each in told)
        return "\n".join(told)

    # -- what happens in a session --------------------------------------------------------------------

    def prompt(self, text: str) -> str:
        self.prompt_id = f"p-{self.session}-{self.count}"
        told = self.hook("UserPromptSubmit", prompt=text, prompt_id=self.prompt_id)
        self.line("user", message={"role": "user", "content": text})
        if told:
            self.line("attachment", attachment={"type": "hook_additional_context", "content": told})
        return told

    def say(self, text: str) -> None:
        thought = {"type": "thinking", "thinking": "Let me see.", "signature": "x"}
        self.line("assistant", message={"id": f"m{self.count}", "role": "assistant", "content": [thought]})
        block = {"type": "text", "text": text}
        self.line("assistant", message={"id": f"m{self.count}", "role": "assistant", "content": [block]})
        self.last = text

    def tool(self, name: str, given: dict[str, Any], response: Any, shown: str, *, ok: bool = True) -> None:
        call = f"toolu_{self.session}_{self.count}"
        block = {"type": "tool_use", "id": call, "name": name, "input": given}
        self.line("assistant", message={"id": f"m{self.count}", "role": "assistant", "content": [block]})
        told = {"tool_name": name, "tool_input": given, "tool_use_id": call, "prompt_id": self.prompt_id}
        if ok:
            self.hook("PostToolUse", **told, tool_response=response, duration_ms=12)
        else:
            self.hook("PostToolUseFailure", **told, error=shown, is_interrupt=False)
        result = {"type": "tool_result", "tool_use_id": call, "content": shown, **({} if ok else {"is_error": True})}
        self.line("user", message={"role": "user", "content": [result]}, toolUseResult=response)

    def bash(self, command: str, output: str, *, ok: bool = True) -> None:
        given = {"command": command, "description": "Run it"}
        response = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        self.tool("Bash", given, response, output if ok else f"Exit code 1\n{output}", ok=ok)

    def read(self, path: str, content: str) -> None:
        response = {"type": "text", "file": {"filePath": path, "content": content, "numLines": content.count("\n")}}
        numbered = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(content.splitlines(), 1))
        self.tool("Read", {"file_path": path}, response, numbered)

    def edit(self, path: str, old: str, new: str) -> None:
        lines = [f"-{line}" for line in old.splitlines()] + [f"+{line}" for line in new.splitlines()]
        patch = [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": lines}]
        given = {"file_path": path, "old_string": old, "new_string": new}
        response = {"filePath": path, "oldString": old, "newString": new, "structuredPatch": patch}
        self.tool("Edit", given, response, f"The file {path} has been updated.")

    def stop(self) -> None:
        self.hook("Stop", stop_hook_active=False, last_assistant_message=self.last, prompt_id=self.prompt_id)
        self.line("system", subtype="turn_duration", durationMs=4200)

    def compact(self, summary: str) -> str:
        self.hook("PreCompact", trigger="auto", custom_instructions="")
        self.line("system", subtype="compact_boundary", content="Conversation compacted")
        self.line("user", isCompactSummary=True, message={"role": "user", "content": summary})
        self.hook("PostCompact", trigger="auto", compact_summary=summary)
        return self.hook("SessionStart", source="compact")

    def end(self, reason: str = "prompt_input_exit") -> None:
        self.hook("SessionEnd", reason=reason)
