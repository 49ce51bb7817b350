"""mem0's argument checks, with its messages and in its order: ids, queries, limits, dates, messages."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from muniment.core.instants import parse_instant
from muniment.errors import InvalidInput
from muniment.integrations.mem0.exceptions import UnsupportedError, ValidationError
from muniment.integrations.messages import content_text
from muniment.memory._index import FIELDS_KEY

__all__ = [
    "ENTITIES",
    "OWN",
    "PROCEDURAL",
    "UNSET",
    "DefaultThreshold",
    "check_memory_type",
    "check_search_params",
    "checked_query",
    "entity_id",
    "entity_ids",
    "expiration_day",
    "logger",
    "messages_given",
    "moment_given",
    "own_metadata",
    "refuse_top_level",
]

logger = logging.getLogger("muniment.integrations.mem0")

ENTITIES = ("user_id", "agent_id", "run_id")
PROCEDURAL = "procedural_memory"
OWN = "mem0"
"""Metadata key for internal fields: the replaced event, the expiry."""
UNSET: Any = object()
_IDENTITY = (*ENTITIES, "actor_id")
_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_SILENT_ROLES = ("system", "developer")


class DefaultThreshold(float):
    """mem0's default for `threshold`, distinguishable from the same number given by a caller, as its scale
    is not ours.
    """


def refuse_top_level(given: Mapping[str, Any], method: str, entities: Iterable[str] = ENTITIES) -> None:
    """Refuse ids outside the filters, and any other unknown argument."""
    named = set(entities) & set(given)
    if named:
        raise ValidationError(
            f"Top-level entity parameters {named} are not supported in {method}(). "
            "Use filters={'user_id': '...'} instead.",
            path=f"$.{min(named)}",
        )
    if given:
        name = min(given)
        hint = "it is top_k since mem0 2.0" if name == "limit" else "mem0 would pass over it without a word"
        raise ValidationError(f"{method}() takes no {name!r}", suggestion=hint, path=f"$.{name}")


def entity_id(value: Any, name: str) -> str | None:
    """An id without surrounding spaces; None if none was given."""
    if value is None:
        return None
    trimmed = str(value).strip()
    if not trimmed:
        raise ValidationError(
            f"Invalid {name}: cannot be empty or whitespace-only. Provide a valid identifier.", path=f"$.{name}"
        )
    if any(each.isspace() for each in trimmed):
        raise ValidationError(
            f"Invalid {name}: cannot contain whitespace. Provide a valid identifier without spaces.", path=f"$.{name}"
        )
    return trimmed


def entity_ids(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the given ids among these, validated."""
    found = {name: entity_id(given.get(name), name) for name in ENTITIES}
    return {name: value for name, value in found.items() if value is not None}


def check_search_params(threshold: Any = None, top_k: Any = None) -> None:
    if threshold is not None:
        if not isinstance(threshold, int | float):
            raise ValidationError("threshold must be a valid number", path="$.threshold")
        if not 0 <= threshold <= 1:  # false for NaN too
            raise ValidationError(
                f"Invalid threshold: {threshold}. Must be between 0 and 1 (inclusive).", path="$.threshold"
            )
    if top_k is not None:
        if not isinstance(top_k, int) or isinstance(top_k, bool):
            raise ValidationError("top_k must be a valid integer", path="$.top_k")
        if top_k < 0:
            raise ValidationError(f"Invalid top_k: {top_k}. Must be a non-negative integer.", path="$.top_k")


def checked_query(query: Any) -> str:
    if not isinstance(query, str):
        raise ValidationError("Invalid query: must be a non-empty string.", path="$.query")
    trimmed = query.strip()
    if not trimmed:
        raise ValidationError("Invalid query: cannot be empty or whitespace-only.", path="$.query")
    return trimmed


def expiration_day(value: Any) -> str | None:
    """The last day on which something is shown, as `YYYY-MM-DD`."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, str):
        raise ValidationError("expiration_date must be a date string in YYYY-MM-DD format.", path="$.expiration_date")
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise ValidationError(
            "expiration_date must be a valid date in YYYY-MM-DD format.", path="$.expiration_date"
        ) from None


def check_memory_type(memory_type: Any, agent_id: str | None, prompt: Any) -> None:
    """Refuse memory types other than mem0's own, and those that a model would have to write."""
    if memory_type is not None and memory_type != PROCEDURAL:
        raise ValidationError(
            f"Invalid 'memory_type'. Please pass {PROCEDURAL} to create procedural memories.",
            "VALIDATION_002",
            {"provided_type": str(memory_type), "valid_type": PROCEDURAL},
            f"Use '{PROCEDURAL}' to create procedural memories.",
            path="$.memory_type",
        )
    if memory_type == PROCEDURAL and agent_id is not None:
        raise UnsupportedError(
            "a procedural memory is a summary that a model writes; here nothing rewrites what was said",
            suggestion="write the procedure down yourself: mem.run(user_id=…).procedure(task_type, {…})",
            path="$.memory_type",
        )
    if prompt is not None:
        raise UnsupportedError(
            "a prompt says what a model is to extract, and nothing here is asked with it",
            suggestion="give Memory(mem, model=…) a model that proposes what you want, or leave the prompt out",
            path="$.prompt",
        )


def messages_given(messages: Any) -> list[dict[str, Any]]:
    """Role, content and speaker of each message in mem0's forms."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, dict):
        messages = [messages]
    elif not isinstance(messages, list):
        raise ValidationError(
            "messages must be str, dict, or list[dict]",
            "VALIDATION_003",
            {"provided_type": type(messages).__name__, "valid_types": ["str", "dict", "list[dict]"]},
            "Convert your input to a string, dictionary, or list of dictionaries.",
            path="$.messages",
        )
    return [kept for number, each in enumerate(messages) if (kept := _kept(each, number)) is not None]


def _kept(message: Any, number: int) -> dict[str, Any] | None:
    if not isinstance(message, dict) or message.get("role") is None or message.get("content") is None:
        logger.warning("add(): skipping message %d, which has no role or no content", number)
        return None
    role, content = message["role"], content_text(message["content"])
    if role in _SILENT_ROLES:
        return None
    if role not in _ROLES:
        logger.warning("add(): skipping message %d, whose role is none of %s", number, ", ".join(_ROLES))
        return None
    if not content:
        logger.warning("add(): skipping message %d, which has no text", number)
        return None
    return {"role": _ROLES[role], "content": content, "speaker": message.get("name") or None}


def own_metadata(metadata: Any, method: str, present: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The caller's metadata without the fields that hold ids; a changed id is ignored with a warning, as in mem0."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise ValidationError("metadata must be a dict", path="$.metadata")
    for name in (OWN, FIELDS_KEY):
        if name in metadata:
            raise ValidationError(f"metadata may not have the key {name!r}, which is kept", path="$.metadata")
    kept = {}
    for name, value in metadata.items():
        if name not in _IDENTITY:
            kept[name] = value
        elif value != (present or {}).get(name):
            logger.warning("%s: ignoring metadata['%s'] - identity fields cannot be set through metadata", method, name)
    return kept


def moment_given(value: Any, path: str) -> datetime:
    """A time in one of mem0's forms: ISO 8601, a datetime, or seconds since 1970."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return parse_instant(datetime.fromtimestamp(value, UTC), path=path)
    try:
        return parse_instant(value, path=path)
    except InvalidInput as error:
        raise ValidationError(error.message, suggestion=error.hint, path=path) from None
