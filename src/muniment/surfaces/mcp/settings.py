"""Settings of an MCP server beyond the store and the user: a model cannot change any of them.

    MUNIMENT_MCP_SESSION, MUNIMENT_MCP_RUN, MUNIMENT_MCP_TASK_TYPE, MUNIMENT_MCP_LEVEL, MUNIMENT_MCP_TRUST,
    MUNIMENT_MCP_FORGET, MUNIMENT_MCP_WRITES, MUNIMENT_MCP_PROFILE

or the same names in the `[mcp]` table of `muniment.toml`; arguments take precedence, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from muniment.errors import InvalidInput
from muniment.surfaces.settings import settle_table

__all__ = ["CHOICES", "McpSettings", "load_mcp_settings"]

CHOICES: Mapping[str, tuple[str, ...]] = {
    "level": ("user", "agent", "tenant"),
    "trust": ("user", "assistant"),
    "forget": ("on", "off"),
    "writes": ("on", "off"),
    "profile": ("lean", "full"),
}


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The defaults suit one agent of one user."""

    session: str = ""
    """The session it writes to; by default a new one for each start."""
    run: str = ""
    """The run it continues; by default a new one for each start. Over stdio only."""
    task_type: str = "generic"
    """The purpose of its runs."""
    level: str = "user"  # MP-08
    """The level at which `remember` writes: the user, all users of the agent, or all of the tenant (a grant)."""
    trust: str = "assistant"  # LG-08
    """The highest trust of recorded words. A model's report of the user's words has the model's trust; use `user` if
    the host itself, not a model, reports the conversation.
    """
    forget: str = "on"
    """Whether to offer the tool `forget`."""
    writes: str = "on"
    """off offers only tools that read (`search_memory`, `why`), and resources."""
    profile: str = "lean"
    """The tools offered: six, described in few tokens, or all of them with every argument and output schemas."""


def load_mcp_settings(given: Mapping[str, str | None], environ: Mapping[str, str] | None = None) -> McpSettings:
    """Settle every setting; `given` are arguments, None if not given."""
    names = (each.name for each in fields(McpSettings))
    chosen = settle_table("mcp", "MUNIMENT_MCP_", names, given, environ)
    for name, found in chosen.items():
        if not isinstance(found, str):
            raise InvalidInput(f"the setting {name!r} should be text", path=f"$.mcp.{name}")
        if found not in CHOICES.get(name, (found,)):
            raise InvalidInput(f"{name} is one of {', '.join(CHOICES[name])}", path=f"$.mcp.{name}")
    return McpSettings(**chosen)
