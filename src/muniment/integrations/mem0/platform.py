# ruff: noqa: ARG002  # signatures are mem0's; whatever is given is refused
"""Features of mem0's hosted platform only: each call exists, and raises an error with the reason and an alternative.
Nothing here touches a store.
"""

from __future__ import annotations

from typing import Any, NoReturn

from muniment.integrations.mem0.exceptions import UnsupportedError
from muniment.integrations.mem0.validation import UNSET

__all__ = ["HostedProject", "PlatformOnly"]

_WEBHOOKS = "follow mem.ledger.changes(user_id=…), which tells what was committed since a position"
_EXPORT = "mem.export(user_id=…) gives everything as JSON lines; get_profile() the facts by their keys"
_PROFILES = "get_profile() has the facts as they stand now: nothing is generated, so there is nothing to wait for"
_PROJECT = (
    "a server's tenants and keys are its walls: `muniment store keys create`; what is kept is the policy's to say"
)


def _refuse(what: str, way_out: str) -> NoReturn:
    raise UnsupportedError(f"{what}: only mem0's hosted platform has them", suggestion=way_out)


class PlatformOnly:
    """Calls of mem0's client that a self-hosted store refuses."""

    def create_memory_export(self, schema: str, **kwargs: Any) -> dict[str, Any]:
        _refuse("exports by a schema", _EXPORT)

    def get_memory_export(self, **kwargs: Any) -> dict[str, Any]:
        _refuse("exports by a schema", _EXPORT)

    def get_summary(self, filters: dict[str, Any] | None = None) -> dict[str, Any]:
        _refuse("summaries of exports", _EXPORT)

    def generate_profile(self, entity_id: str, idempotency_key: str | None = None) -> dict[str, Any]:
        _refuse("jobs that generate profiles", _PROFILES)

    def get_profile_settings(self) -> dict[str, Any]:
        _refuse("settings of profiles", _PROFILES)

    def update_profile_settings(
        self, enabled: bool | None = None, schema: Any = UNSET, custom_instructions: Any = UNSET
    ) -> dict[str, Any]:
        _refuse("settings of profiles", _PROFILES)

    def sample_profiles(self, limit: int | None = None, idempotency_key: str | None = None) -> dict[str, Any]:
        _refuse("jobs that generate profiles", _PROFILES)

    def get_profile_job(self, job_id_or_status_url: str) -> dict[str, Any]:
        _refuse("jobs that generate profiles", _PROFILES)

    def get_project(self, fields: list[str] | None = None) -> dict[str, Any]:
        _refuse("projects", _PROJECT)

    def update_project(
        self,
        options: Any | None = None,
        custom_instructions: str | None = None,
        custom_categories: list[str] | None = None,
        memory_depth: str | None = None,
        usecase_setting: str | None = None,
        multilingual: bool | None = None,
        agent_custom_instructions: str | None = None,
    ) -> dict[str, Any]:
        _refuse("projects", _PROJECT)

    def get_webhooks(self, project_id: str) -> dict[str, Any]:
        _refuse("webhooks", _WEBHOOKS)

    def create_webhook(self, url: str, name: str, project_id: str, event_types: list[str]) -> dict[str, Any]:
        _refuse("webhooks", _WEBHOOKS)

    def update_webhook(
        self, webhook_id: int, name: str | None = None, url: str | None = None, event_types: list[str] | None = None
    ) -> dict[str, Any]:
        _refuse("webhooks", _WEBHOOKS)

    def delete_webhook(self, webhook_id: int) -> dict[str, str]:
        _refuse("webhooks", _WEBHOOKS)

    def chat(self) -> Any:
        raise UnsupportedError(
            "Chat is not implemented yet",
            suggestion="run.compose(…) makes a prompt of what is known, which any model answers",
        )


class HostedProject:
    """`client.project`: organisations, projects and their members."""

    org_id: str | None = None
    project_id: str | None = None
    user_email: str | None = None

    def get(self, fields: list[str] | None = None) -> dict[str, Any]:
        _refuse("projects", _PROJECT)

    def create(self, name: str, description: str | None = None) -> dict[str, Any]:
        _refuse("projects", _PROJECT)

    def update(
        self,
        custom_instructions: str | None = None,
        custom_categories: list[str] | None = None,
        multilingual: bool | None = None,
        decay: bool | None = None,
        agent_custom_instructions: str | None = None,
    ) -> dict[str, Any]:
        _refuse("projects", _PROJECT)

    def delete(self) -> dict[str, Any]:
        _refuse("projects", _PROJECT)

    def get_members(self) -> dict[str, Any]:
        _refuse("members of projects", _PROJECT)

    def add_member(self, email: str, role: str = "READER") -> dict[str, Any]:
        _refuse("members of projects", _PROJECT)

    def update_member(self, email: str, role: str) -> dict[str, Any]:
        _refuse("members of projects", _PROJECT)

    def remove_member(self, email: str) -> dict[str, Any]:
        _refuse("members of projects", _PROJECT)
