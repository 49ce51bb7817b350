"""Somebody before a real browser, and a server to look at: what the browser tests share."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment.surfaces.inspector.pages import is_built

__all__ = ["CHROMIUM", "FLAGS", "Reader", "missing", "serve"]

ROOT = Path(__file__).parents[2]
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SHOTS = os.environ.get("MUNIMENT_SHOTS")
"""A folder for a picture of each page, for whoever wants to look."""


def missing() -> str:
    try:
        import playwright.sync_api  # noqa: F401
        import starlette  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed"
    if not CHROMIUM:
        return "no Chromium on this machine (apt-get install chromium)"
    if not is_built():
        return "the inspector is not built (make inspector)"
    return ""


def serve(memory: Any, **settings: Any) -> Iterator[str]:
    """The address at which the store is served, until it is no longer wanted."""
    from muniment.surfaces.http.serve import make_server
    from muniment.surfaces.http.settings import ServerSettings
    from muniment.surfaces.inspector.app import inspector

    server = make_server(memory, ServerSettings(port=0, **settings), beside={"/": inspector})
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


class Reader:
    """Somebody before the browser; whatever the page complains of is remembered."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.context = browser.new_context(
            **({"viewport": {"width": 1280, "height": 860}, "locale": "en-US"} | options)
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(15_000)
        self.url = url
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("a dialog opened"), dialog.dismiss()))
        self.page.on("console", self._hear)
        self._asking: set[Any] = set()
        self.page.on("request", self._asked)
        for end in ("requestfinished", "requestfailed"):
            self.page.on(end, lambda request: self._asking.discard(request))

    def _hear(self, message: Any) -> None:
        if message.type == "error" or "Content Security Policy" in message.text:
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.endswith("/changes"):  # the stream, which stays open
            self._asking.add(request)

    def settle(self) -> None:
        """Until the page has nothing left to ask."""
        for _ in range(200):
            self.page.wait_for_timeout(60)
            if not self._asking and self.page.locator("main .waiting").count() == 0:
                return
        raise AssertionError(f"the page still asks for {[each.url for each in self._asking]}")

    def go(self, address: str, awaited: str) -> Any:
        """To `#/…`, until a text stands there."""
        self.page.goto(f"{self.url}/#/{address}")
        self.page.get_by_text(awaited).first.wait_for()
        return self.page

    def shoot(self, name: str) -> None:
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)

    def axe(self) -> list[str]:
        """What axe-core finds wrong with the page as it stands."""
        source = ROOT / "inspector" / "node_modules" / "axe-core" / "axe.min.js"
        if not source.is_file():
            pytest.skip("BROWSER TESTS SKIPPED: axe-core is not there (make inspector)")
        self.page.evaluate(source.read_text("utf-8"))
        found = self.page.evaluate("async () => (await axe.run(document)).violations")
        return [
            f"{each['id']}: {each['nodes'][0]['html'][:200]} {json.dumps(each['nodes'][0]['any'])[:200]}"
            for each in found
        ]

    def check_inert(self) -> None:
        """Nothing on the page came from what was stored but text."""
        assert self.page.evaluate("window.pwned") is None
        assert self.page.locator("main script, main img, main iframe, main object").count() == 0
        links = self.page.evaluate("[...document.querySelectorAll('[href]')].map(each => each.getAttribute('href'))")
        assert [each for each in links if each.lower().strip().startswith("javascript:")] == []
        names = self.page.evaluate("[...document.querySelectorAll('*')].flatMap(each => each.getAttributeNames())")
        assert [each for each in names if each.startswith("on")] == []
