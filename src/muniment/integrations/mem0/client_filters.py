"""Arguments of mem0's client calls, and the filter that several of them combine to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.integrations.mem0.exceptions import ValidationError

__all__ = ["ADDED", "ENTITY_NAMES", "LISTED", "SEARCHED", "UPDATED", "asked_filters"]

ENTITY_NAMES = ("user_id", "agent_id", "app_id", "run_id")
ADDED = frozenset((*ENTITY_NAMES, "filters", "metadata", "infer", "timestamp", "expiration_date"))
SEARCHED = frozenset(
    ("filters", "metadata", "top_k", "rerank", "threshold", "fields", "categories", "show_expired", "reference_date",
     "latest_only", "keyword_search")
)  # fmt: skip
"""`rerank`, `latest_only` and `keyword_search` have no effect: results are always ranked by words, and only the latest
version of a memory is shown.
"""
LISTED = frozenset(
    ("filters", "page", "page_size", "start_date", "end_date", "categories", "show_expired", "latest_only")
)
UPDATED = frozenset(("text", "metadata", "timestamp", "expiration_date"))


def asked_filters(given: Mapping[str, Any]) -> dict[str, Any]:
    """The filters of a call, combined with its other options about memories."""
    filters = given.get("filters") or {}
    if not isinstance(filters, Mapping):
        raise ValidationError(f"filters must be a dict, got {type(filters).__name__}", path="$.filters")
    more: list[dict[str, Any]] = [dict(filters)]
    if given.get("metadata"):
        more.append({"metadata": given["metadata"]})
    if given.get("categories"):
        more.append({"categories": {"in": list(given["categories"])}})
    for name, operator in (("start_date", "gte"), ("end_date", "lte")):
        if given.get(name) is not None:
            more.append({"created_at": {operator: given[name]}})
    return more[0] if len(more) == 1 else {"AND": more}
