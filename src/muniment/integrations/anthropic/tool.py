"""The SDK's memory tool over `MemoryFiles`, for `client.beta.messages.run_tools`, with and without `await`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import MunimentError
from muniment.integrations.anthropic.files import MemoryFiles
from muniment.integrations.packages import missing

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand as Create,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818DeleteCommand as Delete,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818InsertCommand as Insert,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818RenameCommand as Rename,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818StrReplaceCommand as StrReplace,
    )
    from anthropic.types.beta import (
        BetaMemoryTool20250818ViewCommand as View,
    )
except ModuleNotFoundError as error:
    raise missing("anthropic", "anthropic", error) from error

if TYPE_CHECKING:
    from muniment.handles.memory import Memory

__all__ = ["AsyncMunimentMemoryTool", "MunimentMemoryTool"]


def _answer_of(command: Callable[..., str], *given: Any) -> str:
    """Run a command, raising a refusal as the error that the SDK shows to the model."""
    try:
        return command(*given)
    except MunimentError as error:
        raise ToolError(error.message) from error


class MunimentMemoryTool(BetaAbstractMemoryTool):
    """One user's `/memories`. `files` also offers search and history, for which the tool has no command."""

    def __init__(
        self, mem: Memory, *, user_id: str, erase: bool = False, tenant_id: str = DEFAULT_TENANT, **tool: Any
    ) -> None:
        super().__init__(**tool)
        self.files = MemoryFiles(mem, user_id=user_id, erase=erase, tenant_id=tenant_id)

    def view(self, command: View) -> str:
        return _answer_of(self.files.view, command.path, command.view_range)

    def create(self, command: Create) -> str:
        return _answer_of(self.files.create, command.path, command.file_text)

    def str_replace(self, command: StrReplace) -> str:
        return _answer_of(self.files.str_replace, command.path, command.old_str, command.new_str)

    def insert(self, command: Insert) -> str:
        return _answer_of(self.files.insert, command.path, command.insert_line, command.insert_text)

    def delete(self, command: Delete) -> str:
        return _answer_of(self.files.delete, command.path)

    def rename(self, command: Rename) -> str:
        return _answer_of(self.files.rename, command.old_path, command.new_path)

    def clear_all_memory(self) -> str:
        return _answer_of(self.files.clear)


class AsyncMunimentMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic`, with each command in a worker thread."""

    def __init__(
        self, mem: Memory, *, user_id: str, erase: bool = False, tenant_id: str = DEFAULT_TENANT, **tool: Any
    ) -> None:
        super().__init__(**tool)
        self._sync = MunimentMemoryTool(mem, user_id=user_id, erase=erase, tenant_id=tenant_id)
        self.files = self._sync.files

    async def view(self, command: View) -> str:
        return await asyncio.to_thread(self._sync.view, command)

    async def create(self, command: Create) -> str:
        return await asyncio.to_thread(self._sync.create, command)

    async def str_replace(self, command: StrReplace) -> str:
        return await asyncio.to_thread(self._sync.str_replace, command)

    async def insert(self, command: Insert) -> str:
        return await asyncio.to_thread(self._sync.insert, command)

    async def delete(self, command: Delete) -> str:
        return await asyncio.to_thread(self._sync.delete, command)

    async def rename(self, command: Rename) -> str:
        return await asyncio.to_thread(self._sync.rename, command)

    async def clear_all_memory(self) -> str:
        return await asyncio.to_thread(self._sync.clear_all_memory)
