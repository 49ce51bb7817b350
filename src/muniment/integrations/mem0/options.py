"""Options of mem0's client, under mem0's names, merged with the keywords of a call.

Anything with a `model_dump` is accepted as options, including mem0's own classes. An unknown keyword is refused by
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from muniment.integrations.mem0.exceptions import UnsupportedError, ValidationError

__all__ = [
    "AddMemoryOptions",
    "DeleteAllMemoryOptions",
    "GetAllMemoryOptions",
    "ProjectUpdateOptions",
    "SearchMemoryOptions",
    "UpdateMemoryOptions",
    "options_given",
]


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AddMemoryOptions(_Options):
    filters: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    infer: bool | None = None
    custom_categories: list[dict[str, Any]] | None = None
    custom_instructions: str | None = None
    agent_custom_instructions: str | None = None
    timestamp: int | None = None
    expiration_date: str | None = None
    structured_data_schema: dict[str, Any] | None = None


class SearchMemoryOptions(_Options):
    filters: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    top_k: int | None = None
    rerank: bool | None = None
    threshold: float | None = None
    fields: list[str] | None = None
    categories: list[str] | None = None
    show_expired: bool | None = None
    reference_date: str | int | None = None
    latest_only: bool | None = None
    keyword_search: bool | None = None


class GetAllMemoryOptions(_Options):
    filters: dict[str, Any] | None = None
    page: int | None = None
    page_size: int | None = None
    start_date: str | None = None
    end_date: str | None = None
    categories: list[str] | None = None
    show_expired: bool | None = None
    latest_only: bool | None = None


class DeleteAllMemoryOptions(_Options):
    filters: dict[str, Any] | None = None


class UpdateMemoryOptions(_Options):
    text: str | None = None
    metadata: dict[str, Any] | None = None
    timestamp: int | float | str | None = None
    expiration_date: str | None = None


class ProjectUpdateOptions(_Options):
    custom_instructions: str | None = None
    agent_custom_instructions: str | None = None
    custom_categories: list[dict[str, Any]] | None = None
    memory_depth: str | None = None
    usecase_setting: Any | None = None
    multilingual: bool | None = None


_MODEL = "it tells a model what to make of what was said, and nothing here is asked with it"
_UNSUPPORTED = {
    "custom_categories": _MODEL,
    "custom_instructions": _MODEL,
    "agent_custom_instructions": _MODEL,
    "structured_data_schema": _MODEL,
    "includes": _MODEL,
    "excludes": _MODEL,
    "enable_graph": "there is no graph memory",
    "immutable": "an update is always a new event; the old one stays evidence",
    "org_id": "there are no organisations: a server's tenants and keys are its walls",
    "project_id": "there are no projects: a server's tenants and keys are its walls",
}
"""Options that change the meaning of a call and are not supported."""
_NEEDLESS = frozenset(("version", "api_version", "output_format", "async_mode"))
"""Options of older mem0 versions, and others without effect here."""


def options_given(method: str, options: Any, given: Mapping[str, Any], taken: frozenset[str]) -> dict[str, Any]:
    """Options and keywords of a call merged, without those that are None."""
    if options is not None and not hasattr(options, "model_dump"):
        raise ValidationError(f"options of {method}() should be an Options object of mem0's", path="$.options")
    told = {} if options is None else options.model_dump(exclude_unset=True)
    found = {key: value for key, value in {**told, **given}.items() if value is not None or key == "expiration_date"}
    for name in found:
        if name in _UNSUPPORTED and found[name] is not False:
            raise UnsupportedError(f"{name} is not heeded: {_UNSUPPORTED[name]}", path=f"$.{name}")
        if name not in taken and name not in _NEEDLESS and name not in _UNSUPPORTED:
            raise ValidationError(f"{method}() takes no {name!r}", path=f"$.{name}")
    return {key: value for key, value in found.items() if key in taken}
