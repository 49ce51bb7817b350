"""A picture of each page of the inspector, over a store with something of everything.

    python tools/screenshots.py shots                            light, wide, English
    python tools/screenshots.py shots --dark --zh --width 390 --only packet

Needs what the browser tests need: Chromium, Playwright, the built page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import muniment

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))


def main() -> int:
    import browser_pages
    import browser_story
    from browser_room import CHROMIUM, FLAGS, Reader, missing, serve
    from playwright.sync_api import sync_playwright

    asked = _asked(list(browser_pages.PAGES))
    if reason := missing():
        print(f"no pictures: {reason}", file=sys.stderr)
        return 1
    asked.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        story = browser_story.tell(Path(folder))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with muniment.open(story) as memory, contextmanager(serve)(memory) as url:
            reader = Reader(browser, url, **_options(asked))
            for name in asked.only or browser_pages.PAGES:
                reader.page.goto(f"{reader.url}/#/{browser_pages.address_of(name, story)[0]}")
                reader.settle()
                target = asked.folder / f"{name}{asked.suffix}.png"
                reader.page.screenshot(path=str(target), full_page=True)
                print(target)
            browser.close()
    return 0


def _asked(pages: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--only", nargs="+", choices=pages, metavar="PAGE", help=", ".join(pages))
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--zh", action="store_true", help="in Chinese")
    parser.add_argument("--width", type=int, default=1280, help="of the window, in pixels")
    parser.add_argument("--suffix", default="", help="at the end of each name")
    return parser.parse_args()


def _options(asked: argparse.Namespace) -> dict[str, Any]:
    return {
        "viewport": {"width": asked.width, "height": 860},
        "color_scheme": "dark" if asked.dark else "light",
        "locale": "zh-CN" if asked.zh else "en-US",
    }


if __name__ == "__main__":
    sys.exit(main())
