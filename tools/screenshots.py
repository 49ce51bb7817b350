"""A picture of each page of the inspector, over a store with something of everything.

    python tools/screenshots.py shots                            light, wide, English
    python tools/screenshots.py shots --dark --zh --width 390 --only packet
    python tools/screenshots.py docs/pictures --readme           the picture of the README, light and dark

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
    if asked.readme:
        return _shoot_readme(asked.folder)
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


def _shoot_readme(folder: Path) -> int:
    """The conversation page over a story of a few sessions: the prompt, a line of it, and the words it rests on."""
    from browser_room import CHROMIUM, FLAGS, Reader, serve
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as room, sync_playwright() as playwright:
        story = Path(room) / "agent.db"
        run_id, build_id = _tell_readme(story)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        with muniment.open(story) as memory, contextmanager(serve)(memory) as url:
            for name, scheme in (("inspector", "light"), ("inspector-dark", "dark")):
                reader = Reader(browser, url, viewport={"width": 1280, "height": 700}, color_scheme=scheme)
                reader.page.goto(f"{reader.url}/#/default/ana/answer/{run_id}?at={build_id}")
                reader.settle()
                reader.page.get_by_text("- user.allergy: nuts").first.click()
                reader.settle()
                target = folder / f"{name}.png"
                reader.page.screenshot(path=str(target))
                print(target)
        browser.close()
    return 0


def _tell_readme(story: Path) -> tuple[str, str]:
    """Three sessions of one user, then the run and the packet that answer a question."""
    said = {
        "spring": ("I moved to Berlin in May. I am allergic to nuts.", "Noted."),
        "summer": ("My sister Mia lives in Hamburg. We both like Thai food.", "Good to know."),
        "autumn": ("I moved to Leipzig last week, and I am vegetarian now.", "Welcome to Leipzig!"),
    }
    days = {"spring": "2026-06-02", "summer": "2026-08-14", "autumn": "2026-11-09"}
    with muniment.open(story) as memory:
        for session, (words, answer) in said.items():
            run = memory.run(user_id="ana", agent_id="concierge", session_id=session)
            run.observe("user", words, ts=f"{days[session]}T18:00:00Z")
            run.observe("assistant", answer, ts=f"{days[session]}T18:00:09Z")
            run.extract()
            run.finish("OBJECTIVE_ACHIEVED")
        run = memory.run(user_id="ana", agent_id="concierge", session_id="today")
        query = "Where could I eat tonight?"
        run.observe("user", query, ts="2026-11-17T18:30:00Z")
        places = "Lotus: Thai, vegetarian menu, no nuts. Grill 21: steaks."
        run.observe_tool("find_places", args={"city": "Leipzig"}, content=places, ts="2026-11-17T18:30:02Z")
        build = run.compose("responder", query=query, max_tokens=512, now="2026-11-17T18:30:03Z")
        run.observe("assistant", "Lotus: vegetarian, and no nuts [1].", build=build, ts="2026-11-17T18:30:05Z")
        return run.run_id, build.id


def _asked(pages: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--only", nargs="+", choices=pages, metavar="PAGE", help=", ".join(pages))
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--zh", action="store_true", help="in Chinese")
    parser.add_argument("--width", type=int, default=1280, help="of the window, in pixels")
    parser.add_argument("--readme", action="store_true", help="the picture of the README alone")
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
