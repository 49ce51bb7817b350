"""The inspector before a real browser: how long somebody waits, as a store grows.

    python -m benchmarks.inspector                           users of 1,000 and of 100,000 events
    python -m benchmarks.inspector --events 1000 --events 5000

Milliseconds by the page's own clock, the median of so many rounds. `told` is from the click on *Who was told this?*,
with an answer pasted on the start page, to the lines of prompts that say it; `evidence` from the click on one of those
lines to the words that it rests on; `both` is the two together, all that stands between an answer and its evidence.
`start` is from the address of the start page to its list of users, `talk` from the address of a turn in the midst of
the longest run to that turn in its conversation. The first size is what the others are held against: `ratio` is `both`
÷ that of the first. Needs what the browser tests need: Chromium, Playwright, the built page.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import muniment
from benchmarks.harness import report
from muniment.handles.memory import Memory

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))

EVENTS = (1_000, 100_000)
ROUNDS = 5
AT_ONCE = 2_000
BUILD_EVERY = 200
"""Of so many events one is followed by a packet."""
ANSWER = "Kim lives in Lisbon [1], by the sea. The harbour is closed [77]."


class Store(NamedTuple):
    middle: str
    """A turn in the midst of the long run."""
    builds: int


def fill(mem: Memory, events: int) -> Store:
    """Half of the events in one run, half in runs of twenty; packets between them; and an answer to ask for."""
    long = mem.run(user_id="big", session_id="long", run_id="run_long")
    written: list[str] = []
    builds = 0
    for first in range(0, events // 2, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, events // 2))
        said = [{"role": "user", "content": f"Message {each} tells of gate {each % 31}."} for each in numbers]
        written += [entry.id for entry in long.observe_many(said)]
    old = mem.run(user_id="kim", session_id="old", run_id="kim_2023")
    old.observe("user", "I moved to Lisbon in the spring.", ts="2023-05-04T10:00:00Z", speaker="Kim")
    build = old.compose("responder", query="Where does Kim live?", max_tokens=400)
    old.observe("assistant", ANSWER, ts="2023-05-04T10:07:00Z", build=build)
    for number, first in enumerate(range(events // 2, events, 20)):
        user_id = f"user{number % 97:02}"
        run = mem.run(user_id=user_id, session_id=f"s{number}", run_id=f"run_{number}")
        run.observe_many([{"role": "user", "content": f"Note {first + at} of a walk."} for at in range(20)])
        if first % BUILD_EVERY == 0:
            run.compose("responder", query=f"Which walk was {first}?", max_tokens=400)
            builds += 1
    return Store(written[len(written) // 2], builds + 1)


def _since(page: Any, begun: float) -> float:
    return float(page.evaluate("performance.timeOrigin + performance.now()")) - begun


def _now(page: Any) -> float:
    return float(page.evaluate("performance.timeOrigin + performance.now()"))


def measure(reader: Any, url: str, store: Store) -> dict[str, float]:
    """One round."""
    page = reader.page
    page.goto("about:blank")
    begun = time.time() * 1000
    page.goto(f"{url}/#/default")
    page.get_by_role("region", name="Users").get_by_role("link").first.wait_for()
    start = time.time() * 1000 - begun
    reader.settle()
    page.get_by_role("textbox", name="Paste an answer").fill(ANSWER)
    begun = _now(page)
    page.get_by_role("button", name="Who was told this?").click()
    line = page.locator(".told-line a", has_text="I moved to Lisbon in the spring.").first
    line.wait_for()
    told = _since(page, begun)
    begun = _now(page)
    line.click()
    page.get_by_role("region", name="Evidence").locator("mark", has_text="I moved to Lisbon").wait_for()
    evidence = _since(page, begun)
    begun = _now(page)
    page.evaluate(f"location.hash = '#/default/big/answer/run_long?at={store.middle}'")
    page.locator(f"#t-{store.middle}.here").wait_for()
    talk = _since(page, begun)
    return {"start": start, "told": told, "evidence": evidence, "both": told + evidence, "talk": talk}


def main() -> int:
    from browser_room import CHROMIUM, FLAGS, Reader, missing, serve  # type: ignore[import-not-found]
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, action="append", help="how many events a store has")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    if reason := missing():
        print(f"nothing measured: {reason}", file=sys.stderr)
        return 1
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for events in asked.events or EVENTS:
            with muniment.open(Path(folder) / f"{events}.db") as mem, contextmanager(serve)(mem) as url:
                store = fill(mem, events)
                reader = Reader(browser, url)
                reader.page.set_default_timeout(60_000)
                rounds = [measure(reader, url, store) for _ in range(asked.rounds + 1)][1:]
                reader.context.close()
            row: dict[str, Any] = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
            rows[f"{events} events"] = {"builds": store.builds, **row}
        browser.close()
    base = next(iter(rows.values()))["both"]
    for row in rows.values():
        row["ratio"] = row["both"] / base
    report("inspector", rows, {"events": asked.events or EVENTS, "rounds": asked.rounds})
    return 0


if __name__ == "__main__":
    sys.exit(main())
