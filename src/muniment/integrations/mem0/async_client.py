"""`AsyncMemoryClient`: the calls of `MemoryClient` with `await`, derived from it. Each runs in a worker thread."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

from muniment.integrations.mem0.async_memory import awaiting
from muniment.integrations.mem0.client import MemoryClient
from muniment.integrations.mem0.platform import HostedProject

__all__ = ["AsyncMemoryClient"]


class AsyncHostedProject:
    """`HostedProject` with `await`."""

    org_id = project_id = user_email = None

    def __init__(self) -> None:
        self._sync = HostedProject()

    get = awaiting(HostedProject.get)
    create = awaiting(HostedProject.create)
    update = awaiting(HostedProject.update)
    delete = awaiting(HostedProject.delete)
    get_members = awaiting(HostedProject.get_members)
    add_member = awaiting(HostedProject.add_member)
    update_member = awaiting(HostedProject.update_member)
    remove_member = awaiting(HostedProject.remove_member)


class AsyncMemoryClient:
    """mem0's `AsyncMemoryClient`. It takes the arguments of `MemoryClient`."""

    def __init__(self, api_key: str | None = None, host: str | None = None, client: Any | None = None) -> None:
        self._sync = MemoryClient(api_key, host, client)
        self.api_key, self.host = self._sync.api_key, host
        self.project = AsyncHostedProject()

    add = awaiting(MemoryClient.add)
    get = awaiting(MemoryClient.get)
    get_all = awaiting(MemoryClient.get_all)
    search = awaiting(MemoryClient.search)
    update = awaiting(MemoryClient.update)
    delete = awaiting(MemoryClient.delete)
    delete_all = awaiting(MemoryClient.delete_all)
    history = awaiting(MemoryClient.history)
    users = awaiting(MemoryClient.users)
    delete_users = awaiting(MemoryClient.delete_users)
    reset = awaiting(MemoryClient.reset)
    batch_update = awaiting(MemoryClient.batch_update)
    batch_delete = awaiting(MemoryClient.batch_delete)
    feedback = awaiting(MemoryClient.feedback)
    get_profile = awaiting(MemoryClient.get_profile)
    create_memory_export = awaiting(MemoryClient.create_memory_export)
    get_memory_export = awaiting(MemoryClient.get_memory_export)
    get_summary = awaiting(MemoryClient.get_summary)
    generate_profile = awaiting(MemoryClient.generate_profile)
    get_profile_settings = awaiting(MemoryClient.get_profile_settings)
    update_profile_settings = awaiting(MemoryClient.update_profile_settings)
    sample_profiles = awaiting(MemoryClient.sample_profiles)
    get_profile_job = awaiting(MemoryClient.get_profile_job)
    get_project = awaiting(MemoryClient.get_project)
    update_project = awaiting(MemoryClient.update_project)
    get_webhooks = awaiting(MemoryClient.get_webhooks)
    create_webhook = awaiting(MemoryClient.create_webhook)
    update_webhook = awaiting(MemoryClient.update_webhook)
    delete_webhook = awaiting(MemoryClient.delete_webhook)
    chat = awaiting(MemoryClient.chat)

    def close(self) -> None:
        """See `MemoryClient.close`."""
        self._sync.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)
