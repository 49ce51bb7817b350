"""Why was my agent told this? From a text back to the builds that injected it and the events it came from."""

from __future__ import annotations

from muniment.core.record import Items, Record
from muniment.errors import InvalidInput
from muniment.packets.builds import list_builds
from muniment.store.context import Context

__all__ = ["Telling", "trace_text"]

BUILDS_MAX = 1000
"""How many builds back it looks."""


class Telling(Record):
    """A build whose text held the words that were asked for."""

    build_id: str
    purpose: str
    at: str
    policy_id: str
    query: str
    line: str
    """The line of the prompt it stood on."""
    evidence_ids: Items[str]
    """The events whose own words these are, as far as the build knew them."""


def trace_text(ctx: Context, tenant_id: str, text: str, user_id: str | None) -> list[Telling]:
    """Builds that told a model this text, newest first."""
    wanted = " ".join(text.split()) if isinstance(text, str) else ""
    if not wanted:
        raise InvalidInput("say which text", path="$.text")
    found: list[Telling] = []
    for item in list_builds(ctx, tenant_id, user_id, BUILDS_MAX):
        body = item.plain()
        line = next((line for line in body["text"].splitlines() if wanted.casefold() in line.casefold()), None)
        if line is None:
            continue
        request, pool = body["request"], body["pool"]
        turns = [hit["turn"] for hit in pool["hits"]] + list(pool["window"])
        sources = [turn["id"] for turn in turns if wanted.casefold() in " ".join(turn["text"].split()).casefold()]
        for fact in pool["facts"]:
            if wanted.casefold() in str(fact["fact"]["value"]).casefold():
                sources += fact["fact"]["sources"]
        found.append(
            Telling(
                build_id=item.id,
                purpose=request["purpose"],
                at=request["now"],
                policy_id=request["policy_id"],
                query=request["query"],
                line=line.strip(),
                evidence_ids=tuple(dict.fromkeys(sources)),
            )
        )
    return found
