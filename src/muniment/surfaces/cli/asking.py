"""What the commands that recall share: whose memory, text from an argument or standard input, text on one line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from muniment.errors import InvalidInput
from muniment.surfaces.settings import Settings, load_settings

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run

__all__ = ["SESSION", "a_run", "counted", "one_line", "settings_of_user", "text_given", "when"]

SESSION = "cli"
"""The session a command asks from, unless it is told another: one that holds nothing, so all others are earlier."""


def settings_of_user(db: str | None, tenant: str | None, user: str | None, agent: str | None = None) -> Settings:
    """The settings of a command that reads one user's memory."""
    settings = load_settings({"db": db, "tenant": tenant, "user": user, "agent": agent})
    if not settings.user:
        raise InvalidInput("whose memory is not said", path="$.user", hint="give --user, or set MUNIMENT_USER")
    return settings


def a_run(mem: Memory, settings: Settings) -> Run:
    """A run to read with; it writes nothing."""
    return mem.run(
        user_id=settings.user, agent_id=settings.agent, session_id=SESSION, run_id=SESSION, tenant_id=settings.tenant
    )


def text_given(argument: str) -> str:
    """The argument, or standard input where it is `-`: for texts that a command line cannot hold."""
    if argument != "-":
        return argument
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        said = f"standard input is not UTF-8: {error.reason} at byte {error.start}"
        raise InvalidInput(said, hint="convert it, for example with iconv -t UTF-8") from None


def one_line(text: str, limit: int = 160) -> str:
    """The text for a terminal: on one line, without control characters, cut where it is long."""
    shown = "".join(char if char.isprintable() else " " for char in text[: 4 * limit])
    shown = " ".join(shown.split())
    return shown if len(shown) <= limit and len(text) <= 4 * limit else shown[: limit - 1].rstrip() + "…"


def counted(count: int, noun: str) -> str:
    """So many of something, in words: `1 event`, `2 events`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def when(ts: str | None) -> str:
    """The minute of a time stamp; only the day where nothing more was said."""
    if not ts:
        return "undated"
    day, minute = ts[:10], ts[11:16]
    return day if minute in ("", "00:00") else f"{day} {minute}"
