"""Anthropic's memory tool on a muniment store: `/memories` is a user's own corpus, every edit a revision of a document.

    files = MemoryFiles(mem, user_id="ana")                    # the commands alone; needs no package
    files.run({"command": "view", "path": "/memories"})
    tool = MunimentMemoryTool(mem, user_id="ana")              # for client.beta.messages.run_tools(tools=[tool])

The answers match the SDK's own file-system tool word for word, except for directory sizes. There is no file system
here: a path is a name in the store, and none leads out of `/memories` or to another user.

Extra, for the tool: `muniment[anthropic]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muniment.integrations.anthropic.files import MemoryFiles

if TYPE_CHECKING:
    from muniment.integrations.anthropic.tool import AsyncMunimentMemoryTool, MunimentMemoryTool

__all__ = ["AsyncMunimentMemoryTool", "MemoryFiles", "MunimentMemoryTool"]


def __getattr__(name: str) -> Any:
    if name in ("AsyncMunimentMemoryTool", "MunimentMemoryTool"):
        from muniment.integrations.anthropic import tool

        return getattr(tool, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
