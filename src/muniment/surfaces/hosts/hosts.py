"""The configuration files of each host: hooks if it has them, the MCP server everywhere.

A host is a row. An installation is a list of edits: a member of an object or a table, or further elements of lists.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from muniment.surfaces.hosts.hook_command import DEFAULT_DB

__all__ = ["HOSTS", "Edit", "Host", "Scope", "Setup", "is_our_hook", "is_our_server"]

Scope = Literal["user", "project"]
SERVER = "muniment"
_QUICK, _SLOW = 10, 30
"""The host's timeouts for a hook, in seconds; the hook itself ends earlier."""
_CODEX_END = 3
"""Codex allows no more time at the end of a session, and warns about longer timeouts."""
_PYTHON = (sys.executable, "-P", "-m")
"""A host runs it in the repository, whose files must not be imported in place of our modules."""


class Setup(NamedTuple):
    """An installation's target user or project, and how a repository's memory is separated."""

    scope: Scope
    directory: Path
    """The project, used only with `project`."""
    home: Path
    environ: Mapping[str, str]
    db: str | None = None
    user: str | None = None
    repository: str = "checkout"
    branches: str = "any"
    personal: bool = False
    max_tokens: int | None = None

    def hook(self, host: str, *, slow: bool = False) -> str:
        """The command of a hook. In shared files it is found by its name, and a missing command stops nothing."""
        named = {"--db": self.db, "--user": self.user, "--branches": self.branches if self.branches != "any" else None}
        named["--repository"] = None if self.repository == "checkout" else self.repository
        named |= {"--personal": "on" if self.personal else None, "--seconds": "25" if slow else None}
        named["--max-tokens"] = None if self.max_tokens is None else str(self.max_tokens)
        more = [word for option, value in named.items() if value is not None for word in (option, value)]
        if self.scope == "project":
            command = _joined(["muniment", "hook", "--host", host, *more])
            return f"command -v muniment >/dev/null 2>&1 || exit 0; {command}"
        return _joined([*_PYTHON, "muniment.integrations.hooks", "--host", host, *more])

    def server(self) -> list[str]:
        """The command of the MCP server."""
        start = ["muniment"] if self.scope == "project" else [*_PYTHON, "muniment"]
        user = [] if self.user is None else ["--user", self.user]
        return [*start, "mcp", "--db", self.db or DEFAULT_DB, *user]

    def variables(self, directory: str | None = None) -> dict[str, str]:
        """The repository settings for the MCP server."""
        said = {"MUNIMENT_REPOSITORY": self.repository}
        if self.branches != "any":
            said["MUNIMENT_BRANCHES"] = self.branches
        return said if directory is None else {**said, "MUNIMENT_DIRECTORY": directory}


def _joined(words: list[str]) -> str:
    if os.name == "nt":
        from subprocess import list2cmdline

        return list2cmdline(words)
    return shlex.join(words)


class Edit(NamedTuple):
    """The changes to one file."""

    path: Path
    server_at: tuple[str, ...] = ()
    """The path of the MCP server's entry; empty if it is in another file."""
    server: Mapping[str, Any] | None = None
    hooks_at: tuple[str, ...] = ()
    hooks: Mapping[str, Mapping[str, Any]] | None = None
    """The elements added to each event's list."""
    needs: tuple[tuple[str, Any], ...] = ()
    """Members that the file must have, with any value."""


class Host(NamedTuple):
    """A coding agent."""

    name: str
    title: str
    edits: Callable[[Setup], list[Edit]]
    scopes: tuple[Scope, ...] = ("user", "project")
    note: str = ""
    """Remaining steps, or other advice."""


def is_our_server(value: Any) -> bool:
    """True if a server's entry starts muniment."""
    if not isinstance(value, Mapping):
        return False
    command = value.get("command")
    words = [*(command if isinstance(command, list) else [command]), *(value.get("args") or ())]
    said = [str(word) for word in words]
    return "mcp" in said and any(word == "muniment" or word.endswith(("/muniment", "\\muniment.exe")) for word in said)


def is_our_hook(value: Any) -> bool:
    """True if an entry of an event's list is entirely ours."""
    if not isinstance(value, Mapping):
        return False
    inner = value.get("hooks")
    commands = [each.get("command") for each in inner if isinstance(each, Mapping)] if isinstance(inner, list) else []
    commands = commands or [value.get("command")]
    return all("muniment.integrations.hooks" in str(each) or "muniment hook" in str(each) for each in commands)


# -- hooks --------------------------------------------------------------------------------------------

_EVENTS: Mapping[str, bool] = {
    "SessionStart": False,
    "UserPromptSubmit": False,
    "PostToolUse": False,
    "PostToolUseFailure": False,
    "PreCompact": True,
    "PostCompact": True,
    "Stop": False,
    "SubagentStop": False,
    "SessionEnd": False,
}
"""The events of Claude Code, and whether each may take longer."""
_NOT_IN_CODEX = ("PostToolUseFailure",)
_OF_GEMINI = {
    "SessionStart": False, "BeforeAgent": False, "AfterTool": False, "AfterAgent": False, "PreCompress": True,
    "SessionEnd": False,
}  # fmt: skip
_OF_CURSOR = {
    "sessionStart": False, "beforeSubmitPrompt": False, "postToolUse": False, "postToolUseFailure": False,
    "afterAgentResponse": False, "preCompact": True, "sessionEnd": False,
}  # fmt: skip


def _group(handler: Mapping[str, Any]) -> dict[str, Any]:
    return {"hooks": [{"type": "command", **handler}]}


def _claude_hooks(setup: Setup, host: str = "claude-code") -> dict[str, Mapping[str, Any]]:
    events = {name: slow for name, slow in _EVENTS.items() if host == "claude-code" or name not in _NOT_IN_CODEX}
    hooks: dict[str, Mapping[str, Any]] = {}
    for name, slow in events.items():
        most = _CODEX_END if host == "codex" and name == "SessionEnd" else _QUICK
        hooks[name] = _group({"command": setup.hook(host, slow=slow), "timeout": _SLOW if slow else most})
    return hooks


def _gemini_hooks(setup: Setup) -> dict[str, Mapping[str, Any]]:
    hooks: dict[str, Mapping[str, Any]] = {}
    for name, slow in _OF_GEMINI.items():
        ms = 1000 * (_SLOW if slow else _QUICK)
        hooks[name] = _group({"name": "muniment", "command": setup.hook("gemini-cli", slow=slow), "timeout": ms})
    # "auto" comes before every request to the model, whether or not it compresses then
    return {**hooks, "PreCompress": {"matcher": "manual", **hooks["PreCompress"]}}


def _cursor_hooks(setup: Setup) -> dict[str, Mapping[str, Any]]:
    return {
        name: {"command": setup.hook("cursor", slow=slow), "timeout": _SLOW if slow else _QUICK}
        for name, slow in _OF_CURSOR.items()
    }


# -- servers ------------------------------------------------------------------------------------------


def _server(setup: Setup, directory: str | None = None, **more: Any) -> dict[str, Any]:
    command, *arguments = setup.server()
    return {**more, "command": command, "args": arguments, "env": setup.variables(directory)}


def _config(setup: Setup, *parts: str) -> Path:
    """A path below the user's configuration folder."""
    named = setup.environ.get("XDG_CONFIG_HOME")
    return Path(named or setup.home / ".config").joinpath(*parts)


def _claude_code(setup: Setup) -> list[Edit]:
    if setup.scope == "project":
        settings, servers = setup.directory / ".claude" / "settings.json", setup.directory / ".mcp.json"
    else:
        named = setup.environ.get("CLAUDE_CONFIG_DIR")
        settings = Path(named or setup.home / ".claude") / "settings.json"
        servers = Path(named or setup.home) / ".claude.json"
    return [
        Edit(settings, hooks_at=("hooks",), hooks=_claude_hooks(setup)),
        Edit(servers, ("mcpServers", SERVER), _server(setup, type="stdio")),
    ]


def _codex(setup: Setup) -> list[Edit]:
    named = setup.environ.get("CODEX_HOME")
    folder = setup.directory / ".codex" if setup.scope == "project" else Path(named or setup.home / ".codex")
    return [
        Edit(folder / "hooks.json", hooks_at=("hooks",), hooks=_claude_hooks(setup, "codex")),
        Edit(folder / "config.toml", ("mcp_servers", SERVER), _server(setup)),
    ]


def _cursor(setup: Setup) -> list[Edit]:
    folder = (setup.directory if setup.scope == "project" else setup.home) / ".cursor"
    where = "${workspaceFolder}" if setup.scope == "project" else None  # for a user it would be the home directory
    return [
        Edit(folder / "hooks.json", hooks_at=("hooks",), hooks=_cursor_hooks(setup), needs=(("version", 1),)),
        Edit(folder / "mcp.json", ("mcpServers", SERVER), _server(setup, where)),
    ]


def _gemini(setup: Setup) -> list[Edit]:
    folder = (setup.directory if setup.scope == "project" else setup.home) / ".gemini"
    return [
        Edit(folder / "settings.json", ("mcpServers", SERVER), _server(setup), ("hooks",), _gemini_hooks(setup)),
    ]


def _opencode(setup: Setup) -> list[Edit]:
    folder = setup.directory if setup.scope == "project" else _config(setup, "opencode")
    with_comments = folder / "opencode.jsonc"
    path = with_comments if with_comments.exists() else folder / "opencode.json"
    entry = {"type": "local", "command": setup.server(), "environment": setup.variables(), "enabled": True}
    return [Edit(path, ("mcp", SERVER), entry)]


def _vscode(setup: Setup) -> list[Edit]:
    if setup.scope == "project":
        path = setup.directory / ".vscode" / "mcp.json"
    elif sys.platform == "darwin":
        path = setup.home / "Library" / "Application Support" / "Code" / "User" / "mcp.json"
    elif os.name == "nt":
        path = Path(setup.environ.get("APPDATA") or setup.home / "AppData" / "Roaming") / "Code" / "User" / "mcp.json"
    else:
        path = _config(setup, "Code", "User", "mcp.json")
    return [Edit(path, ("servers", SERVER), _server(setup, "${workspaceFolder}", type="stdio"))]


def _zed(setup: Setup) -> list[Edit]:
    project = setup.directory / ".zed" / "settings.json"
    path = project if setup.scope == "project" else _config(setup, "zed", "settings.json")
    return [Edit(path, ("context_servers", SERVER), _server(setup))]


def _windsurf(setup: Setup) -> list[Edit]:
    path = setup.home / ".codeium" / "windsurf" / "mcp_config.json"
    alone = setup._replace(repository="none", branches="any")
    return [Edit(path, ("mcpServers", SERVER), _server(alone))]


_SERVER_ALONE = "It has the MCP server and no hooks: nothing is recorded unless the agent does."
_ALL_HOSTS = (
    Host("claude-code", "Claude Code", _claude_code, note="Sessions that run take it up when they are started anew."),
    Host("codex", "Codex", _codex, note="Codex runs hooks that you have trusted: type /hooks there and look at them."),
    Host("cursor", "Cursor", _cursor, note="Cursor takes it up by itself; open a new chat."),
    Host("gemini-cli", "Gemini CLI", _gemini),
    Host("opencode", "opencode", _opencode, note=_SERVER_ALONE),
    Host("vscode", "Visual Studio Code", _vscode, note=_SERVER_ALONE),
    Host("zed", "Zed", _zed, note=_SERVER_ALONE),
    Host(
        "windsurf",
        "Windsurf",
        _windsurf,
        ("user",),
        f"{_SERVER_ALONE} It does not say in which project it works, so one memory serves all of them; what other "
        "hosts record of a repository is not in it.",
    ),
)
HOSTS: Mapping[str, Host] = {host.name: host for host in _ALL_HOSTS}
"""The hosts by name, in display order."""
