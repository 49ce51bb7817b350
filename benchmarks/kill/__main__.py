"""Stop an agent anywhere and resume it from a page: twice done, revoked orders followed, marks of done lost.

python -m benchmarks.kill                 300 stops; writes benchmarks/kill/results.json
python -m benchmarks.kill --stops 20      for a look; writes nothing
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import muniment
from benchmarks.kill._agent import Agent, Outcome, Stopped, Task, Turn, World, go_on
from muniment.core.outside.token_counters import EstimateCounter
from muniment.handles.run import Run

TOKENS = 2048
STOPS = 300
RESULTS = Path(__file__).parent / "results.json"
QUERY = "What is left to do?"


def write_turn(run: Run, turn: Turn) -> None:
    if turn.tool:
        run.observe_tool(turn.tool, args=turn.args, content=turn.text, ok=turn.ok)
    else:
        run.observe(turn.role, turn.text)


def packet(path: Path) -> str:
    with muniment.open(path) as mem:
        return mem.resume("r").run.compose("planner", query=QUERY, max_tokens=TOKENS).text


def last_turns(turns: Iterable[Turn]) -> str:
    """The newest turns that fit, newest first."""
    count = EstimateCounter().count
    kept: list[str] = []
    for turn in reversed(list(turns)):
        if count("\n".join([*kept, turn.line])) > TOKENS:
            break
        kept.append(turn.line)
    return "\n".join(kept)


def stop_once(seed: int) -> tuple[dict[str, Outcome], dict[str, Any]]:
    """One stop: what became of the task with each page."""
    task = Task(seed)
    whole = Agent(World(task), "", lambda _turn: None, stop_at=10**9)
    whole.run()
    stop_at = random.Random(seed).randint(3, whole.moments - 1)
    turns: list[Turn] = []
    world = World(task)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.db")
        with muniment.open(path) as mem:
            run = mem.run(user_id="ana", session_id="s", run_id="r", objective=f"{task.family.act} for everything")

            def record(turn: Turn) -> None:
                write_turn(run, turn)
                turns.append(turn)

            with suppress(Stopped):
                Agent(world, "", record, stop_at=stop_at).run()
        page = packet(path)
    recorded = {item for item in world.done if any(_shows(turn, item) for turn in turns)}
    pages = {
        "ours": (page, True),
        "last turns": (last_turns(turns), True),
        "whole transcript": ("\n".join(turn.line for turn in turns), False),
    }
    found = {
        arm: go_on(task, world, text, recorded, newest_first=newest_first)
        for arm, (text, newest_first) in pages.items()
    }
    count = EstimateCounter().count
    return found, {arm: count(text) for arm, (text, _) in pages.items()}


def _shows(turn: Turn, item: str) -> bool:
    return turn.ok and item in (turn.args or {}).values()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stops", type=int, default=STOPS)
    given = parser.parse_args()
    outcomes: dict[str, list[Outcome]] = {}
    tokens: dict[str, list[int]] = {}
    for seed in range(given.stops):
        found, sizes = stop_once(seed)
        for arm, outcome in found.items():
            outcomes.setdefault(arm, []).append(outcome)
            tokens.setdefault(arm, []).append(sizes[arm])
    table = {
        arm: {
            "ended right": round(sum(each.is_right for each in own) / len(own), 3),
            "done twice": sum(each.doubled for each in own),
            "held and done": sum(each.disobeyed for each in own),
            "marks of done lost": sum(each.lost for each in own),
            "left undone": sum(each.missing for each in own),
            "tokens, mean": round(sum(tokens[arm]) / len(own)),
        }
        for arm, own in outcomes.items()
    }
    for arm, row in table.items():
        print(f"{arm:<18}", "  ".join(f"{name} {value}" for name, value in row.items()))
    if given.stops == STOPS:
        command = "python -m benchmarks.kill"
        RESULTS.write_text(json.dumps({"command": command, "stops": STOPS, "arms": table}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
