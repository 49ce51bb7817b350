"""A real browser before a real server: Debian's Chromium, a port of this machine, the store of `browser_story`.

What is missing is said loudly: these tests are skipped where there is no Chromium, no Playwright or no built page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser_story
import pytest
from browser_room import CHROMIUM, FLAGS, Reader, missing, serve

import muniment


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return browser_story.tell(tmp_path_factory.mktemp("story"))


@pytest.fixture(scope="session")
def url(story: Path) -> Iterator[str]:
    """The address of a server over the story, with no key asked."""
    if reason := missing():
        pytest.skip(f"BROWSER TESTS SKIPPED: {reason}")
    with muniment.open(story) as memory:
        yield from serve(memory)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if reason := missing():
        pytest.skip(f"BROWSER TESTS SKIPPED: {reason}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def reader(browser: Any, url: str) -> Iterator[Reader]:
    reader = Reader(browser, url)
    yield reader
    reader.context.close()
