"""A walk through the core with a client that openapi-python-client generated: run by its own Python, at an address."""

from __future__ import annotations

import sys

from muniment_client import Client
from muniment_client.api.core import compose, facts, forget, observe, remember, resolve, search, why
from muniment_client.models import (
    Build,
    ComposeArguments,
    ComposeArgumentsPurpose,
    EventSpan,
    Fact,
    FactPage,
    ForgetArguments,
    HitList,
    LedgerEntry,
    ObserveArguments,
    ObserveArgumentsRole,
    Problem,
    Receipt,
    RememberArguments,
    ResolveArguments,
    Resolved,
    SearchArguments,
    TellingList,
    WhyArguments,
)

ANA = ("default", "ana")


def main(url: str) -> None:
    with Client(base_url=url) as client:
        said = observe.sync(
            *ANA,
            "r1",
            client=client,
            body=ObserveArguments(role=ObserveArgumentsRole.USER, content="I moved to Berlin in May."),
            idempotency_key="turn-1",
        )
        assert isinstance(said, LedgerEntry), said
        assert said.ts.tzinfo is not None, "a point in time is one"
        known = remember.sync(
            *ANA, "r1", client=client, body=RememberArguments(key="user.city", value="Berlin", sources=[said.id])
        )
        assert isinstance(known, Fact)
        assert known.value == "Berlin"
        found = search.sync(*ANA, client=client, body=SearchArguments(query="Where do I live?", k=5))
        assert isinstance(found, HitList)
        assert said.id in [hit.id for hit in found.items]
        asked = ComposeArguments(purpose=ComposeArgumentsPurpose.RESPONDER, query="Where do I live?", max_tokens=512)
        build = compose.sync(*ANA, "r1", client=client, body=asked, idempotency_key="prompt-1")
        assert isinstance(build, Build), build
        assert "Berlin" in build.text
        again = compose.sync(*ANA, "r1", client=client, body=asked, idempotency_key="prompt-1")
        assert isinstance(again, Build)
        assert again.to_dict() == build.to_dict()
        told = why.sync(*ANA, client=client, body=WhyArguments(text="Berlin"))
        assert isinstance(told, TellingList)
        assert build.id in [each.build_id for each in told.items]
        pointer = EventSpan(namespace="event", event_id=said.id, quote="Berlin")
        place = resolve.sync(*ANA, client=client, body=ResolveArguments(pointer=pointer))
        assert isinstance(place, Resolved)
        assert place.text == "Berlin"
        receipt = forget.sync(*ANA, client=client, body=ForgetArguments(event=said.id))
        assert isinstance(receipt, Receipt)
        left = facts.sync(*ANA, client=client)
        assert isinstance(left, FactPage)
        assert left.items == []
        refused = compose.sync_detailed(
            *ANA,
            "r1",
            client=client,
            body=ComposeArguments(purpose=ComposeArgumentsPurpose.PLANNER, max_tokens=255),
        )
        assert isinstance(refused.parsed, Problem)
        assert (refused.status_code, refused.parsed.code, refused.parsed.path) == (422, "invalid_input", "$.max_tokens")
    print("walked")


if __name__ == "__main__":
    main(sys.argv[1])
