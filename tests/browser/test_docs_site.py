"""The documentation as a site (`make docs`): strict about its links, searchable, and asking nothing of any network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browser_room import ROOT

_LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=\"(https?://[^\"]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="THE SITE IS NOT BUILT: mkdocs-material is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "docs_site.py"), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr  # a link that leads nowhere, or a page that is not listed
    return folder


_GROUND = """isLight => {
    const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)
    return (red + green + blue > 380) === isLight
}"""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(site: Path) -> None:
    (version,) = json.loads((site / "versions.json").read_text("utf-8"))
    home = site / version["version"]
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= {page.relative_to(home) for page in home.rglob("*.html")}
    for page in home.rglob("*.html"):
        assert _LOADED.findall(page.read_text("utf-8")) == [], page.name
    assert f"{version['version']}/index.html" in (site / "index.html").read_text("utf-8")


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_reader_searches_without_a_network(browser: Any, address: str, scheme: Any) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 860})
    page = context.new_page()
    page.set_default_timeout(15_000)
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(request.url.split("/")[2]) if "://" in request.url else None)
    page.goto(f"{address}/")
    page.get_by_role("heading", name="Where to begin").wait_for()
    page.wait_for_function(_GROUND, arg=scheme == "light")  # the page takes it up when its script has run
    page.get_by_placeholder("Search").click()
    page.get_by_placeholder("Search").fill("receipt forget")
    page.locator(".md-search-result__link").first.wait_for()
    page.locator(".md-search-result__link").first.click()
    page.locator("h1").first.wait_for()
    assert hosts == {address.split("/")[2]}
    context.close()
