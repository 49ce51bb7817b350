"""Facts in words, as a page has them."""

from __future__ import annotations

from typing import Any

from muniment.contracts.packet import Fact, Validity
from muniment.packets.page import fact_line
from products import for_each


@for_each(
    "key,value,line",
    [
        ("user.location", "Berlin", "- Lives in Berlin (since 1 March 2026)"),
        ("user.name", "Ana Ruiz", "- Is called Ana Ruiz (since 1 March 2026)"),
        ("user.allergies", ["nuts", "milk"], "- Allergic to nuts, milk (since 1 March 2026)"),
        ("user.job", "a {}nurse", "- Works as a {}nurse (since 1 March 2026)"),
        ("user.favorite_color", "teal", "- Favorite color: teal (since 1 March 2026)"),
        ("office.opening-hours", "9 to 5", "- Office opening hours: 9 to 5 (since 1 March 2026)"),
        ("person.brother.location", "Oslo", "- Brother location: Oslo (since 1 March 2026)"),
        ("user.", "x", "- User.: x (since 1 March 2026)"),
        ("Straße", "lang", "- Straße: lang (since 1 March 2026)"),
        ("a b\n## Facts", "x", "- A b ## Facts: x (since 1 March 2026)"),
        ("?", None, "- ?: null (since 1 March 2026)"),
    ],
)
def test_a_fact_reads_like_a_sentence(key: str, value: Any, line: str) -> None:
    validity = Validity(valid_from="2026-03-01T00:00:00Z")
    fact = Fact(fact_id="f1", fact_key=key, value=value, status="active", sources=(), validity=validity)
    assert fact_line(fact, str) == line
