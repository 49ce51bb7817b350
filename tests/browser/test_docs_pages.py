"""The pages at `/docs` in a real browser: light, dark and narrow, axe finds nothing wrong, and a search finds."""

from __future__ import annotations

from typing import Any

import pytest
from browser_room import Reader

LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "narrow": {"viewport": {"width": 390, "height": 844}},
}
PAGES = {
    "light": ("docs", "docs/packets", "docs/schemas/LedgerEntry"),
    "dark": ("docs/core",),
    "narrow": ("docs", "docs/schemas/LedgerEntry"),
}


@pytest.mark.soak
@pytest.mark.parametrize("look", LOOKS)
def test_the_pages_are_accessible(browser: Any, url: str, look: str) -> None:
    reader = Reader(browser, url, **LOOKS[look])
    hosts: set[str] = set()
    reader.page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    for address in PAGES[look]:
        reader.page.goto(f"{url}/{address}")
        reader.page.locator("h1").wait_for()
        reader.shoot(f"{address.replace('/', '_')}_{look}")
        assert reader.axe() == []
        width = reader.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width[0] <= width[1], f"{address} is wider than the window"
        reader.check_inert()
    assert hosts == {url.split("/")[2]}
    assert reader.complaints == []
    reader.context.close()


def test_a_search_leads_to_an_operation(reader: Reader) -> None:
    reader.page.goto(f"{reader.url}/docs")
    reader.page.get_by_role("searchbox").fill("forget")
    reader.page.get_by_role("button", name="Find").click()
    reader.page.get_by_role("link", name="forget", exact=True).click()
    assert reader.page.url.endswith("/docs/core#forget")
    assert reader.page.locator("article#forget:target").count() == 1
    reader.page.get_by_text("What it answers").first.click()
    assert reader.complaints == []
