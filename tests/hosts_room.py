"""Real coding agents in a fresh home, in front of a model that answers from a script: Claude Code, Codex, Gemini CLI.

`make hosts` puts them into `clients/hosts`. Nothing but this machine is reached: the model is a server of our own, and
what asks elsewhere (updates, telemetry, catalogues) is turned off.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from model_server import Messages, Received, Responses, Server, serving

__all__ = ["HOSTS", "Call", "Model", "RealHost", "a_host", "git_init", "is_installed", "modelling", "settled"]

ROOT = Path(__file__).parents[1]
BIN = ROOT / "clients" / "hosts" / "node_modules" / ".bin"
SUMMARY = "The uploader was looked at, and the user rules were noted."


class Call(NamedTuple):
    """The model asks for a tool."""

    id: str
    tool: str
    given: dict[str, Any]


@dataclass
class Model:
    """What it answers in turn, and what it was asked by the agent itself. What a host asks beside that (titles, whether
    there is something to route) is answered with a word.
    """

    kind: str
    script: list[str | Call] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    is_full: bool = False
    """Whether the answers say that the window is nearly full, so that the host compacts."""
    count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def choose(self, received: Received) -> Any:
        asked = json.loads(received.body) if received.body[:1] == b"{" else {}
        is_asking = any(part in received.path for part in ("/messages", "/responses", "enerateContent"))
        if not is_asking or "count_tokens" in received.path:
            return {"input_tokens": 1, "totalTokens": 1, "data": [], "models": []}
        with self.lock:
            self.count += 1
            number = self.count
            said: str | Call = SUMMARY if _sums_up(asked) else "Yes."
            if len(json.dumps(asked.get("tools", ""))) > 2_000 and said != SUMMARY:
                self.asked.append(asked)
                said = self.script.pop(0) if self.script else "That is all."
        is_stream = asked.get("stream") is True or "stream" in received.path
        return self._answer(said, number, is_stream=is_stream)

    def _answer(self, said: str | Call, number: int, *, is_stream: bool) -> Any:
        if self.kind == "gemini":
            whole = self._of_gemini(said)
            return [whole] if is_stream else whole
        door = Messages() if self.kind == "messages" else Responses()
        if is_stream:
            answer: Any = door.streams(said) if isinstance(said, str) else door.streams_call(*said)
        else:
            answer = door.says(said) if isinstance(said, str) else door.says("", (tuple(said),))
        text = json.dumps(answer).replace('"m1"', f'"msg_{number}"').replace('"r1"', f'"resp_{number}"')
        if isinstance(said, Call) and "." in said.tool:  # Codex has the tools of a server in a namespace
            space, _, name = said.tool.partition(".")
            text = text.replace(f'"name": "{said.tool}"', f'"namespace": "{space}", "name": "{name}"')
        answer = json.loads(text)
        for event in answer if isinstance(answer, list) else ():
            if event["type"] == "response.completed":
                used = 900_000 if self.is_full else 10
                event["response"]["usage"] = {"input_tokens": used, "output_tokens": 1, "total_tokens": used + 1}
        return answer

    def _of_gemini(self, said: str | Call) -> dict[str, Any]:
        part = {"text": said} if isinstance(said, str) else {"functionCall": {"name": said.tool, "args": said.given}}
        if said == SUMMARY:
            part = {"text": f"<state_snapshot>{SUMMARY}</state_snapshot>"}
        content = {"role": "model", "parts": [part]}
        used = {"promptTokenCount": 900_000 if self.is_full else 10, "candidatesTokenCount": 1}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": used}

    def told(self, at: int = -1) -> str:
        """All that stood before the model in one request, but for the tools it has."""
        asked = {name: value for name, value in self.asked[at].items() if name != "tools"}
        return json.dumps(asked, ensure_ascii=False)

    def tools(self, at: int = -1) -> str:
        return json.dumps(self.asked[at].get("tools"))


def _sums_up(asked: Mapping[str, Any]) -> bool:
    text = json.dumps(asked)
    marks = ("create a detailed summary of", "CONTEXT CHECKPOINT COMPACTION", "structured XML <state_snapshot>")
    return any(mark in text for mark in marks)


@contextmanager
def modelling(kind: str) -> Iterator[tuple[Model, Server]]:
    model = Model(kind)
    with serving(model.choose) as server:
        yield model, server


# -- the hosts ----------------------------------------------------------------------------------------------


class RealHost:
    """One coding agent, installed into a home directory of its own."""

    name = ""
    kind = ""
    program = ""
    shell = ""
    """Its tool that runs a command, and what that calls the command."""
    command_name = "command"
    search = ""
    """How it names our tool that searches."""
    config: tuple[str, ...] = ()
    """The file of it that a person has before, below the home directory."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.url = home, url
        kept = ("PATH", "LANG", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {"HOME": str(home), "NO_COLOR": "1", "TERM": "dumb", **self.variables()}

    def variables(self) -> dict[str, str]:
        raise NotImplementedError

    def before(self) -> dict[str, str]:
        """The files of a person who has the host already, by their path."""
        raise NotImplementedError

    def words(self, prompt: str, resume: str | None) -> list[str]:
        raise NotImplementedError

    def session_of(self, output: str) -> str:
        raise NotImplementedError

    def set_up(self) -> None:
        for name, text in self.before().items():
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def muniment(self, where: Path, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "muniment", *words]
        return subprocess.run(command, cwd=where, env=self.env, capture_output=True, text=True, check=False)

    def ask(self, where: Path, prompt: str, resume: str | None = None) -> subprocess.CompletedProcess[str]:
        """One prompt without a screen, until the host is done with it."""
        command = [str(BIN / self.program), *self.words(prompt, resume)]
        return subprocess.run(
            command, cwd=where, env=self.env, capture_output=True, text=True, check=False, timeout=120,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def runs(self, command: str, call: str) -> Call:
        """The model asks for a command."""
        return Call(call, self.shell, {self.command_name: command})


class ClaudeCode(RealHost):
    name, kind, program = "claude-code", "messages", "claude"
    shell, search = "Bash", "mcp__muniment__search_memory"

    def variables(self) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "none", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
        }  # fmt: skip

    def before(self) -> dict[str, str]:
        return {".claude/settings.json": '{\n    "theme": "dark",   "permissions": {"allow": ["Read"]}\n}\n'}

    def words(self, prompt: str, resume: str | None) -> list[str]:
        more = ["--resume", resume] if resume else []
        return ["-p", prompt, "--output-format", "json", "--allowedTools", f"Bash,Read,{self.search}", *more]

    def session_of(self, output: str) -> str:
        return str(json.loads(output)["session_id"])


class Codex(RealHost):
    name, kind, program = "codex", "responses", "codex"
    shell, command_name, search = "exec_command", "cmd", "mcp__muniment.search_memory"

    def variables(self) -> dict[str, str]:
        return {"MODEL_KEY": "none"}

    def before(self) -> dict[str, str]:
        return {
            ".codex/config.toml": f"""# mine
model = "gpt-5"
model_provider = "here"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
plugins = false
apps = false

[model_providers.here]
name = "here"
base_url = "{self.url}/v1"
env_key = "MODEL_KEY"   # none is asked for
wire_api = "responses"
"""
        }

    def words(self, prompt: str, resume: str | None) -> list[str]:
        flags = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox", "--json"]
        return ["exec", *flags, *(["resume", resume] if resume else []), prompt]

    def session_of(self, output: str) -> str:
        return str(json.loads(output.splitlines()[0])["thread_id"])


class GeminiCli(RealHost):
    name, kind, program = "gemini-cli", "gemini", "gemini"
    shell, search = "run_shell_command", "mcp_muniment_search_memory"

    def variables(self) -> dict[str, str]:
        return {
            "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_TELEMETRY_ENABLED": "false",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }  # fmt: skip

    def before(self) -> dict[str, str]:
        return {
            ".gemini/settings.json": """{
  // mine
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "privacy": {"usageStatisticsEnabled": false},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "model": {"name": "gemini-2.5-pro"}
}
"""
        }

    def words(self, prompt: str, resume: str | None) -> list[str]:
        more = ["--resume", "latest"] if resume else []
        return ["-p", prompt, "--approval-mode", "yolo", "--output-format", "json", *more]

    def session_of(self, output: str) -> str:
        return str(json.loads(output[output.index("{") :])["session_id"])


HOSTS: tuple[type[RealHost], ...] = (ClaudeCode, Codex, GeminiCli)


def is_installed(host: type[RealHost]) -> bool:
    return (BIN.parent / ".installed").exists() and (BIN / host.program).exists()


@contextmanager
def a_host(kind: type[RealHost], home: Path) -> Iterator[tuple[RealHost, Model]]:
    with modelling(kind.kind) as (model, server):
        host = kind(home, server.url)
        home.mkdir(parents=True)
        host.set_up()
        yield host, model


def git_init(where: Path) -> Path:
    where.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=where, check=True)
    return where


def settled(home: Path) -> None:
    """Wait until what was put down is written."""
    for _ in range(600):
        if not list((home / ".muniment" / "pending").rglob("*.json")):
            return
        time.sleep(0.05)
    raise AssertionError("what waits was not written")
