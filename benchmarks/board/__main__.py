"""Whoever takes over a long tool run: does the packet contain what they have to know?

    python -m benchmarks.board                 the runs that the board was developed on
    python -m benchmarks.board --held-out      the others; writes benchmarks/board/results.json with both
    python -m benchmarks.board --show NAME     print the packet of a run and what it misses

The essentials were written with the stories, before any packet was seen. One counts if all its words are on the page
within 300 characters. Arms: ours (a planner's packet of the resumed run), the last turns, and the run's own turns
(what user and agent said) newest first, each filled to the same number of tokens.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import muniment
from benchmarks.board import _developed, _held_out
from benchmarks.board._story import Event, Story, counted_calls, found_in
from muniment.core.outside.token_counters import EstimateCounter

BUDGETS = (512, 1024, 2048)
QUERY = "What is left to do?"
RESULTS = Path(__file__).parent / "results.json"
POLICY = {"compaction": {"event_threshold": 18}}


def record(story: Story, path: Path) -> str:
    """The run in a store, as an agent would have written it."""
    with muniment.open(path, policy=POLICY) as mem:
        run = mem.run(user_id="ana", session_id="s", run_id="r", objective=story.objective, done_definition=story.done)
        for event in story.events:
            if event.tool:
                run.observe_tool(event.tool, args=event.args, content=event.text, ok=event.ok)
            else:
                run.observe(event.role, event.text)
    return "r"


def ours(path: Path, _story: Story, budget: int) -> str:
    with muniment.open(path) as mem:
        return mem.resume("r").run.compose("planner", query=QUERY, max_tokens=budget).text


def last_turns(_path: Path, story: Story, budget: int) -> str:
    return fill(map(line_of, reversed(story.events)), budget)


def own_turns(_path: Path, story: Story, budget: int) -> str:
    return fill((line_of(event) for event in reversed(story.events) if not event.tool), budget)


ARMS: dict[str, Callable[[Path, Story, int], str]] = {"ours": ours, "last turns": last_turns, "own turns": own_turns}


def line_of(event: Event) -> str:
    if not event.tool:
        return f"{event.role}: {event.text}"
    args = ", ".join(f"{key}={value}" for key, value in (event.args or {}).items())
    return f"{event.tool}({args}){'' if event.ok else ' failed'} → {event.text}"


def fill(lines: Iterable[str], budget: int) -> str:
    """The first lines that fit, the last of them first."""
    count = EstimateCounter().count
    kept: list[str] = []
    for line in lines:
        if count("\n".join([line, *kept])) > budget:
            break
        kept.insert(0, line)
    return "\n".join(kept)


def measure(stories: Iterable[Callable[[], Story]]) -> Iterator[dict[str, Any]]:
    for make in stories:
        story = make()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "run.db")
            record(story, path)
            for budget in BUDGETS:
                for name, arm in ARMS.items():
                    text = arm(path, story, budget)
                    missed = [essential for essential in story.essentials if not found_in(text, essential)]
                    held = len(story.essentials) - len(missed)
                    yield {"run": story.name, "calls": counted_calls(story), "tokens": budget, "arm": name,
                           "held": held, "of": len(story.essentials), "missed": missed}  # fmt: skip


def show(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    shares: dict[str, dict[str, float]] = {}
    print(f"{'arm':<12}" + "".join(f"{budget:>14}" for budget in BUDGETS))
    for arm in ARMS:
        cells = []
        for budget in BUDGETS:
            own = [row for row in rows if row["arm"] == arm and row["tokens"] == budget]
            held, of = sum(row["held"] for row in own), sum(row["of"] for row in own)
            shares.setdefault(arm, {})[str(budget)] = round(held / of, 3)
            cells.append(f"{held} of {of} {held / of:.2f}")
        print(f"{arm:<12}" + "".join(f"{cell:>14}" for cell in cells))
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="also the runs that nothing was developed on")
    parser.add_argument("--show", metavar="NAME", help="print the packets of one run and what they miss")
    given = parser.parse_args()
    if given.show:
        for make in (*_developed.STORIES, *_held_out.STORIES):
            if make.__name__ == given.show:
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder, "run.db")
                    record(story := make(), path)
                    for budget in BUDGETS:
                        text = ours(path, story, budget)
                        missed = [each for each in story.essentials if not found_in(text, each)]
                        print(f"== {budget}\n{text}\nmissed: {missed}\n")
        return
    developed = list(measure(_developed.STORIES))
    print("developed on")
    found = {"developed on": show(developed)}
    if given.held_out:
        held_out = list(measure(_held_out.STORIES))
        print("held out")
        found["held out"] = show(held_out)
        text = json.dumps({"command": "python -m benchmarks.board --held-out", "shares": found,
                           "runs": developed + held_out}, indent=1, ensure_ascii=False)  # fmt: skip
        RESULTS.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
