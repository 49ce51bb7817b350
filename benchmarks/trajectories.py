"""Does an agent's memory answer questions on what its tools did? Recorded runs, questions keyed by rule.

    python -m benchmarks.trajectories [--data DIR] [--sources tau,coding,alfworld,whowhen] [--each 6]
                                      [--vectors wordllama,minilm] [--misses 10] [--packets 0]
    git worktree add --detach ../before e95b541             the same questions with the library of another checkout,
    PYTHONPATH=../before/src python -m benchmarks.trajectories --vectors "" --file trajectories_before
    python -m benchmarks.trajectories --beside trajectories_before                             and told beside ours

Runs of agents (`benchmarks.trajectory_tracks`) are recorded as a user of the library records them: Chat Completions
messages by `run.record`, calls by `run.observe_tool` with their arguments, each run a session of one user, so that the
others are distractors. The questions are made by rules (`benchmarks.trajectory_questions`), their gold is events.

`ours` is `run.search`; `bm25` ranks the same events as the library tells them (call, arguments and result in one text),
by their words without stop words; `wordllama` and `minilm` by nearness of that text. R@k is the share of gold events
among the first k; `in_512` and `in_1024` that among the events a packet cites, for a responder and for a planner, and
for the others among their best until the budget is full. `interval` is 95 % of a bootstrap over runs of R@5.

The general parts were developed on `tau` and `coding`; `alfworld` and `whowhen` judge them. MiniLM is slow on the long
results of `tau` where there is no GPU: `--vectors wordllama` leaves it out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import muniment
from benchmarks.data import default_data
from benchmarks.embedders import KeptVectors
from benchmarks.harness import RESULTS, report
from benchmarks.recall import mean
from benchmarks.reference import STOP_WORDS, Bm25, words
from benchmarks.trajectory_questions import Key, TrackQuestion, questions_of
from benchmarks.trajectory_tracks import SOURCES, Event, World, worlds_of
from muniment.core.outside.token_counters import load_token_counter
from muniment.memory.tool_results import tell_call

Array = npt.NDArray[np.float64]
DEPTHS = (1, 5, 10)
BUDGETS = (512, 1024)
PURPOSES = ("responder", "planner")
DEPTH = 50
DRAWS = 2_000
SHOWN_CHARS = 200
START = datetime(2031, 3, 3, 9, tzinfo=UTC)
_COUNTER = load_token_counter()


class Told(NamedTuple):
    """An event as every system is given it."""

    key: Key
    id: str
    """Of its entry in the store."""
    text: str


class Clock:
    """A day for each run, a minute for each entry."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now

    def next_day(self) -> None:
        self.now = (self.now + timedelta(days=1)).replace(hour=9, minute=0)


def record(mem: muniment.Memory, clock: Clock, world: World) -> list[Told]:
    """Record every run of a world, a session each."""
    told: list[Told] = []
    for track in world.tracks:
        clock.next_day()
        run = mem.run(user_id="user", session_id=track.name)
        if track.messages:  # a message that only makes calls says nothing
            entries = [each for each in run.record(track.messages) if each.content or each.role == "tool"]
        else:
            entries = [_observe(run, event) for event in track.events]
        told += [
            Told((track.name, event.at), entry.id, _told(event))
            for event, entry in zip(track.events, entries, strict=True)
        ]
    return told


def _observe(run: muniment.Run, event: Event) -> Any:
    if event.tool:
        return run.observe_tool(event.tool, args=event.args, content=event.text, ok=event.ok)
    return run.observe(event.role, event.text, speaker=event.speaker or None)


def _told(event: Event) -> str:
    if not event.tool:
        return f"{event.speaker or event.role}: {event.text}"
    return f"{tell_call({'name': event.tool, 'args': event.args, 'ok': event.ok})} → {event.text}"


# -- systems ------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """What one system found for one question: events best first, and what it puts into each budget."""

    ranked: list[Key]
    held: Mapping[str, frozenset[Key]]


def _plain(text: str) -> list[str]:
    return [word for word in words(text, plain=True) if word not in STOP_WORDS]


class References:
    """BM25 and vectors over the events of a world."""

    def __init__(self, told: Sequence[Told], vectors: Mapping[str, KeptVectors]) -> None:
        self._told = told
        self._bm25 = Bm25([_plain(each.text) for each in told])
        self._vectors = vectors
        self._near = {name: made.of_passages([each.text for each in told]) for name, made in vectors.items()}

    def find(self, question: str) -> Iterator[tuple[str, Found]]:
        yield "bm25", self._best(self._bm25.scores(_plain(question)))
        for name, made in self._vectors.items():
            yield name, self._best((self._near[name] @ made.of_query(question)).astype(np.float64))

    def _best(self, scores: Array) -> Found:
        order = [self._told[place] for place in np.argsort(-scores, kind="stable")[:DEPTH] if scores[place] > 0]
        held: dict[str, frozenset[Key]] = {}
        for budget in BUDGETS:
            spent, taken = 0, []
            for each in order:
                if spent >= budget:
                    break
                spent += _COUNTER.count(f"{each.text}\n")
                taken.append(each.key)
            held |= {f"{purpose}_{budget}": frozenset(taken) for purpose in PURPOSES}
        return Found([each.key for each in order], held)


class Ours:
    def __init__(self, mem: muniment.Memory, told: Sequence[Told], now: datetime) -> None:
        self._run = mem.run(user_id="user", session_id="asking")
        self._keys = {each.id: each.key for each in told}
        self._now = now

    def find(self, question: str) -> Found:
        hits = self._run.search(question, k=DEPTH, now=self._now)
        held = {}
        for purpose in PURPOSES:
            for budget in BUDGETS:
                build = self._run.compose(purpose, query=question, max_tokens=budget, now=self._now)
                cited = [self._keys[each.id] for each in build.packet.citations if each.id in self._keys]
                held[f"{purpose}_{budget}"] = frozenset(cited)
        return Found([self._keys[hit.id] for hit in hits], held)

    def packet(self, question: str, purpose: str, budget: int) -> str:
        return self._run.compose(purpose, query=question, max_tokens=budget, now=self._now).text


# -- measures -----------------------------------------------------------------------------------------


class Answered(NamedTuple):
    source: str
    question: TrackQuestion
    cluster: str
    found: Mapping[str, Found]


def measured(answers: Sequence[Answered], system: str) -> dict[str, Any]:
    """The figures of a system over some questions."""
    row: dict[str, Any] = {"questions": len(answers), "runs": len({each.cluster for each in answers})}
    for depth in DEPTHS:
        row[f"R@{depth}"] = mean(_share(each, each.found[system].ranked[:depth]) for each in answers)
    for budget in BUDGETS:
        for purpose in PURPOSES:
            name = f"{purpose}_{budget}"
            row[name] = mean(_share(each, each.found[system].held[name]) for each in answers)
    row["interval"] = _bootstrap(answers, system)
    return row


def _share(answer: Answered, held: Sequence[Key] | frozenset[Key]) -> float:
    return len(answer.question.gold.intersection(held)) / len(answer.question.gold)


def _bootstrap(answers: Sequence[Answered], system: str, depth: int = 5) -> list[float]:
    groups: dict[str, list[float]] = {}
    for each in answers:
        groups.setdefault(each.cluster, []).append(_share(each, each.found[system].ranked[:depth]))
    sums = np.array([[sum(group), len(group)] for group in groups.values()])
    draws = np.random.default_rng(5).integers(0, len(sums), (DRAWS, len(sums)))
    totals = sums[draws].sum(axis=1)
    low, high = np.quantile(totals[:, 0] / totals[:, 1], (0.025, 0.975))
    return [round(float(low), 4), round(float(high), 4)]


def ask_world(world: World, each_kind: int, vectors: Mapping[str, KeptVectors], shown: int) -> list[Answered]:
    clock = Clock()
    with muniment.open(":memory:", clock=clock) as mem:
        told = record(mem, clock, world)
        clock.next_day()
        ours, references = Ours(mem, told, clock.now), References(told, vectors)
        answers = []
        for question in questions_of(world, each_kind):
            found = {"ours": ours.find(question.text), **dict(references.find(question.text))}
            cluster = question.cluster if world.source == "tau" else f"{world.name} {question.cluster}"
            answers.append(Answered(world.source, question, cluster, found))
        for each in answers[:shown]:
            print(ours.packet(each.question.text, "planner", 512), end="\n\n")
        return answers


def show_misses(answers: Sequence[Answered], count: int) -> None:
    """The questions of a source whose gold is not all among the first five, and what stands there instead."""
    missed = [each for each in answers if _share(each, each.found["ours"].ranked[:5]) < 1]
    for each in missed[:count]:
        print(f"\n[{each.question.kind}] {each.question.text}\n  gold {sorted(each.question.gold)}")
        for system in ("ours", "bm25"):
            print(f"  {system} {each.found[system].ranked[:6]}")


def tables(answers: Sequence[Answered], systems: Sequence[str]) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for source in dict.fromkeys(each.source for each in answers):
        own = [each for each in answers if each.source == source]
        for system in systems:
            rows[f"{source} {system}"] = measured(own, system)
        for kind in sorted({each.question.kind for each in own}):
            some = [each for each in own if each.question.kind == kind]
            for system in ("bm25", "ours"):
                made = measured(some, system)
                rows[f"{source} {kind} {system}"] = {
                    name: made[name] for name in ("questions", "R@1", "R@5", "R@10", "planner_512", "planner_1024")
                }
    return rows


def rows_before(name: str) -> dict[str, dict[str, Any]]:
    """What another checkout found for the same questions, where its result file is named."""
    if not name:
        return {}
    rows = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))["results"]
    return {f"{source} before": rows[f"{source} ours"] for source in SOURCES if f"{source} ours" in rows}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--sources", default=",".join(SOURCES))
    parser.add_argument("--each", type=int, default=6, help="questions of each kind in each world")
    parser.add_argument("--vectors", default="wordllama,minilm")
    parser.add_argument("--misses", type=int, default=0, help="print so many questions of a source that were missed")
    parser.add_argument("--packets", type=int, default=0, help="print so many packets of a world")
    parser.add_argument("--beside", default="", help="the result file of another checkout: its `ours` as `before`")
    parser.add_argument("--file", default="", help="the name of the result file, where it is not this benchmark's own")
    options = parser.parse_args(argv)
    vectors = {name: KeptVectors(name) for name in filter(None, options.vectors.split(","))}
    answers: list[Answered] = []
    for source in options.sources.split(","):
        worlds = worlds_of(source, options.data)
        if not worlds:
            print(f"no data of {source}: not measured")
        own = [each for world in worlds for each in ask_world(world, options.each, vectors, options.packets)]
        show_misses(own, options.misses)
        answers += own
    rows = tables(answers, ["bm25", *vectors, "ours"]) | rows_before(options.beside)
    told = {"each": options.each, "vectors": options.vectors, "beside": options.beside}
    report("trajectories", rows, told, options.file)


if __name__ == "__main__":
    main()
