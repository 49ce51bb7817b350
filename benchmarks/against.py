"""Compose, search and observe on this checkout against another one, in CPU time and by turns.

    git worktree add --detach ../before 326179a
    python -m benchmarks.against --against ../before               a made conversation
    python -m benchmarks.against --against ../before --set locomo  one of the shared sets instead

Each side is a process of its own with the `src` of its checkout, a store of its own and the same turns in it; never do
both work at once, and the order alternates. A `ratio` is the median of what this checkout took ÷ the median of what the
other took: 1 is as fast, lower is faster. `mean_ratio` is that of the means: what is done once in a while counts there.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.compose import NOW, WARM, Talk, events_of
from benchmarks.harness import report

ROOT = Path(__file__).resolve().parent.parent
WORKS = (
    "compose responder 512",
    "compose responder 1024",
    "compose responder 2048",
    "compose planner 1024",
    "compose tool 1024",
    "compose responder 1024 unasked",
    "compose planner 1024 unasked",
    "search",
    "observe 1",
    "observe 100",
)
TOLD = 1_000


def made_job(turns: int, asked: int) -> dict[str, Any]:
    """A made conversation and questions about it."""
    talk = Talk(seed=7)
    sessions = list(talk.sessions(turns + TOLD))
    said = [turn for session in sessions for turn in session]
    step = max(1, turns // asked)
    questions = [talk.question(turn) for turn in said[: asked * step : step]]
    held = [(f"s{number}", events_of(session)) for number, session in enumerate(talk.sessions(turns))]
    return {"now": NOW, "sessions": held, "questions": questions, "told": events_of(said[turns:])}


def shared_job(folder: Path, name: str, turns: int, asked: int) -> dict[str, Any]:
    """The first turns of a shared set, session by session, and its questions."""
    scopes = data.pooled(folder, name)
    sessions: dict[str, list[dict[str, Any]]] = {}
    told: list[dict[str, Any]] = []
    for turn in (turn for scope in scopes for turn in scope.turns):
        event = {"role": turn.role, "speaker": turn.speaker, "ts": turn.said_at.isoformat(), "content": turn.text}
        if turns > 0:
            sessions.setdefault(turn.session, []).append(event)
            turns -= 1
        elif len(told) < TOLD:
            told.append(event)
    questions = [question.text for scope in scopes for question in scope.questions][:asked]
    last = max(event["ts"] for events in sessions.values() for event in events)
    every = [event for events in sessions.values() for event in events]
    return {"now": last, "sessions": list(sessions.items()), "questions": questions, "told": told or every[:TOLD]}


class Process:
    """A side, and the lines that go to it and come back."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.package: str = self._answer()["package"]

    def seconds(self, work: str, at: int) -> float:
        assert self._process.stdin is not None
        print(json.dumps({"work": work, "at": at}), file=self._process.stdin, flush=True)
        return float(self._answer()["seconds"])

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@contextmanager
def side(checkout: Path, job: Path, folder: Path) -> Iterator[Process]:
    """A process with the package of a checkout; `folder` is for its store."""
    folder.mkdir()
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout / "src"), str(ROOT)))}
    command = [sys.executable, "-m", "benchmarks.against_side", str(job), str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=settings, cwd=ROOT) as process:
        begun = Process(process)
        if not Path(begun.package).is_relative_to(checkout):
            raise SystemExit(f"the package of {checkout} was not taken, but {begun.package}")
        yield begun


def compared(ours: Process, theirs: Process, work: str, rounds: int) -> dict[str, Any]:
    """The two take turns, each begins every other time."""
    mine: list[float] = []
    other: list[float] = []
    for at in range(WARM + rounds):
        for process, times in ((ours, mine), (theirs, other))[:: 1 if at % 2 else -1]:
            times.append(process.seconds(work, at))
    mine, other = mine[WARM:], other[WARM:]
    return {
        "ms": statistics.median(mine) * 1e3,
        "other_ms": statistics.median(other) * 1e3,
        "ratio": statistics.median(mine) / statistics.median(other),
        "mean_ratio": statistics.fmean(mine) / statistics.fmean(other),
    }


def measure(against: Path, job: dict[str, Any], rounds: int, works: Sequence[str]) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="muniment-against-") as folder, ExitStack() as stack:
        given = Path(folder) / "job.json"
        given.write_text(json.dumps(job))
        ours = stack.enter_context(side(ROOT, given, Path(folder) / "ours"))
        theirs = stack.enter_context(side(against.resolve(), given, Path(folder) / "theirs"))
        return {work: compared(ours, theirs, work, rounds) for work in works}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--against", type=Path, required=True, help="the other checkout")
    parser.add_argument("--set", choices=data.POOL, help="a shared set instead of a made conversation")
    parser.add_argument("--data", type=Path, default=data.default_data())
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--only", default="", help="works whose names begin so")
    asked = parser.parse_args()
    count = asked.rounds + WARM
    job = made_job(asked.turns, count) if asked.set is None else shared_job(asked.data, asked.set, asked.turns, count)
    works = [work for work in WORKS if work.startswith(asked.only)]
    rows = measure(asked.against, job, asked.rounds, works)
    commit = subprocess.run(
        ["git", "-C", str(asked.against), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    told = {"against": commit, "set": asked.set, "turns": asked.turns, "rounds": asked.rounds}
    report("against", rows, told, f"against_{asked.set}" if asked.set else "")


if __name__ == "__main__":
    main()
