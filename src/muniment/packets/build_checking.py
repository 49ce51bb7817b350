"""Whether a kept build is what it says of itself: whose it is, what it was made from, which bytes it came to. Pure."""

from __future__ import annotations

from typing import Any

from muniment.core.canonical import canonical_bytes, digest
from muniment.errors import MunimentError
from muniment.store.items import Item

__all__ = ["build_fault"]

_OWNERS = ("user_id", "agent_id", "session_id", "run_id")


def build_fault(item: Item, sources: frozenset[str]) -> str | None:
    """What is wrong with a build, whose stored sources these are; None where it holds."""
    try:
        body = item.plain()
        request, pool = body["request"], body["pool"]
        scope = request["scope"]
        moved = [name for name in _OWNERS if scope[name] != getattr(item, name)]
        named = _named(pool)
    except (KeyError, TypeError, AttributeError):
        return "its body is not that of a build"
    except MunimentError as error:
        return error.message
    if moved:
        return f"{', '.join(moved)} not as its request says"
    name = body.get("key", {}).get("name")  # of a build that was made under an idempotency key
    if (item.status, item.trust, item.name, item.created_at) != ("composed", "external", name, request.get("now")):
        return "status, trust, name or time are not those of a build"
    if "packet" in body and digest(canonical_bytes(body["packet"])).hex() != body.get("packet_hash"):
        return "its packet is not what it came to"
    missing = sorted(named - sources)
    return f"its link to {missing[0]} is missing" if missing else None


def _named(pool: dict[str, Any]) -> set[str]:
    """The turns and facts that the pool quotes."""
    turns = [*(hit["turn"] for hit in pool.get("hits", ())), *pool.get("window", ())]
    named = {turn if isinstance(turn, str) else turn["id"] for turn in turns}
    return named | {fact["fact"]["fact_id"] for fact in pool.get("facts", ())}
