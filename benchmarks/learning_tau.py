"""What worked, recalled for real runs that failed: 25 airline tasks, four runs each (`taubench_*`).

    python -m benchmarks.learning_tau [--data DIR] [--embedders wordllama,minilm]

Every run goes in through the library: messages and tool results observed, the reward as the verifier's result. A
task's family is the set of its gold actions' names, which no key and no text holds: a run's intent is the domain and
the tools it called. For each failing run, the runs of all other tasks are in the bank, and it recalls by what it shows
itself: its user's words and the tools it has called. A hint is right that comes from a passing run of the same family.

Beside it, over the very same episodes: keyword search (SQLite's FTS5, bm25) and vector search, each also over whole
transcripts, each with and without the names of the tools in the query; the best of these is the one to beat. Failing
runs with no passing run of their family in another task are left out, since nothing right could come. `family` is the
exact set; `changing` the set without actions that only look, which is coarser and has more runs to ask for.

The shipped weights of recall were learnt from these very tasks, among others. So `recall` is what the library found,
put in order by weights that were learnt from all other families (`benchmarks.learn_recall_weights`); beside it stand
weights that were learnt from other sets alone, and those that are shipped. `passed first, then overlap of tools` is a
rule of three lines that anybody would write. The same is asked of two further sets (`benchmarks.recall_sets`), and of
the airline's tasks that need an action and that need none apart (`by_need`).
"""

from __future__ import annotations

import argparse
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import muniment
from benchmarks import data as sets
from benchmarks.embedders import KeptVectors
from benchmarks.embedders import load as load_vectors
from benchmarks.harness import RESULTS, report
from benchmarks.learn_blame import CHANGING
from benchmarks.reference import words

Array = npt.NDArray[np.float64]

TOP = 5
POOL = 200
"""Candidates whose parts are kept, for learning weights."""
DRAWS = 10_000
FAMILIES = ("family", "changing")


@dataclass(frozen=True, slots=True)
class Trial:
    """A run as it was recorded."""

    name: str
    task: int
    passed: bool
    family: frozenset[str]
    changing: frozenset[str]
    asked: str
    """The user's words."""
    tools: tuple[str, ...]
    events: tuple[dict[str, Any], ...]
    domain: str = "airline"

    @property
    def transcript(self) -> str:
        return "\n".join(event["content"] for event in self.events)


@dataclass(frozen=True, slots=True)
class Asked:
    """A failing run's question to a bank without its own task, and what came."""

    trial: Trial
    bank: tuple[Trial, ...]
    texts: tuple[str, ...]
    """The episode of each run of the bank, as a model reads it."""
    hints: tuple[tuple[int, Mapping[str, float]], ...]
    """Places in the bank with the parts of their scores, best first."""
    mixed: tuple[int, ...] = ()
    """The first five of all that is kept, as a run gets them; -1 for a tactic, which comes from many runs."""

    def right(self, kind: str) -> npt.NDArray[np.bool_]:
        """Which runs of the bank passed and are of the family that is asked for."""
        wanted = getattr(self.trial, kind)
        return np.array([one.passed and getattr(one, kind) == wanted for one in self.bank])


def load(data: Path) -> list[Trial]:
    rows = json.loads((data / "taubench_gpt4o_airline_tasks0-24.json").read_text("utf-8"))
    return [_trial(row) for row in sorted(rows, key=lambda row: (row["trial"], row["task_id"]))]


def _trial(row: Mapping[str, Any]) -> Trial:
    named = frozenset(action["name"] for action in row["info"]["task"]["actions"])
    events = tuple(_events(row["traj"]))
    return Trial(
        name=f"{row['task_id']}:{row['trial']}",
        task=row["task_id"],
        passed=row["reward"] == 1,
        family=named,
        changing=named & frozenset(CHANGING),
        asked="\n".join(event["content"] for event in events if event["role"] == "user"),
        tools=tuple(dict.fromkeys(event["tool"]["name"] for event in events if event["role"] == "tool")),
        events=events,
    )


def _events(turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was said and what tools answered; the system's prompt is the same everywhere and left out."""
    called: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    for turn in turns:
        called |= {call["id"]: json.loads(call["function"]["arguments"]) for call in turn.get("tool_calls") or ()}
        content = turn["content"] or ""
        if turn["role"] == "tool":
            tool = {"name": turn["name"], "args": called[turn["tool_call_id"]], "ok": not content.startswith("Error")}
            events.append({"role": "tool", "content": content, "tool": tool})
        elif turn["role"] in ("user", "assistant") and content:
            events.append({"role": turn["role"], "content": content})
    return events


# -- through the library ------------------------------------------------------------------------------


def ingest(mem: muniment.Memory, trial: Trial) -> str:
    """The run, observed and learnt from; answers the id of its episode."""
    run = mem.run(user_id="airline", agent_id="agent")
    run.observe_many(trial.events)
    result = {
        "verifier_id": "reward",
        "verdict": "PASS" if trial.passed else "FAIL",
        "outcome": "OK" if trial.passed else "FAIL",
    }
    run.finish(verifier_result=result, intent=intent_of(trial), state={"mode": "main"})
    folded = mem.bank(user_id="airline").event_logs(limit=1)[0].memory_fold
    (episode,) = () if folded is None else folded.produced_reasoning_ids or ()
    return episode


def intent_of(trial: Trial) -> dict[str, Any]:
    return {"domain_tag": trial.domain, "required_tools": list(trial.tools)}


def ask_all(trials: Sequence[Trial], embedder: str = "none", folds: int | None = None) -> list[Asked]:
    """Each task's failing runs, asked of a bank of all other tasks; in `folds`, of the tasks of all other folds."""
    found: list[Asked] = []
    tasks = sorted({trial.task for trial in trials if not trial.passed})
    groups = [{task} for task in tasks] if folds is None else [set(tasks[place::folds]) for place in range(folds)]
    for group in groups:
        bank = tuple(trial for trial in trials if trial.task not in group)
        failing = [trial for trial in trials if trial.task in group and not trial.passed]
        failing = [trial for trial in failing if any(_askable(trial, bank, kind) for kind in FAMILIES)]
        if failing:
            found += _ask(failing, bank, embedder)
    return found


def _askable(trial: Trial, bank: Sequence[Trial], kind: str) -> bool:
    return any(one.passed and getattr(one, kind) == getattr(trial, kind) for one in bank)


def _ask(failing: Sequence[Trial], bank: tuple[Trial, ...], embedder: str) -> list[Asked]:
    with muniment.open(":memory:", embedder=embedder) as mem:
        places = {ingest(mem, trial): place for place, trial in enumerate(bank)}
        kept = {memory.id: memory for memory in mem.bank(user_id="airline").records(kind="reasoning")}
        texts = tuple(str(kept[id_].record["summary"]) for id_ in places)
        found = []
        for trial in failing:
            run = mem.run(user_id="airline", agent_id="agent")
            recalled = run.learning.recall(
                query_of(trial), intent=intent_of(trial), state={"mode": "main"}, sources=["ReasoningBank"], top_k=POOL
            )
            hints = tuple((places[hint.memory_id], dict((hint.model_extra or {})["parts"])) for hint in recalled.hints)
            usual = run.learning.recall(query_of(trial), intent=intent_of(trial), state={"mode": "main"}, top_k=TOP)
            mixed = tuple(places.get(hint.memory_id, -1) for hint in usual.hints)
            found.append(Asked(trial, bank, texts, hints, mixed))
        return found


def query_of(trial: Trial) -> str:
    return trial.asked


# -- what it is measured against ----------------------------------------------------------------------


def by_keywords(documents: Sequence[str], query: str) -> list[int]:
    """SQLite's own full-text search: any of the words, by bm25."""
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE VIRTUAL TABLE turns USING fts5(text, tokenize='porter unicode61')")
        db.executemany("INSERT INTO turns(rowid, text) VALUES (?, ?)", enumerate(documents))
        asked = " OR ".join(f'"{word}"' for word in dict.fromkeys(words(query, plain=True)))
        rows = db.execute("SELECT rowid FROM turns WHERE turns MATCH ? ORDER BY bm25(turns), rowid", (asked,))
        return [int(row[0]) for row in rows]


def nearest(name: str) -> Callable[[Sequence[str], str], list[int]]:
    """Nearest by cosine."""
    vectors = KeptVectors(name)

    def search(documents: Sequence[str], query: str) -> list[int]:
        scores = vectors.of_passages(documents) @ vectors.of_query(query)
        return [int(place) for place in np.argsort(-scores, kind="stable")]

    return search


def by_tools(one: Asked) -> list[int]:
    """The three-line rule: passed first, then overlap of tools."""
    ours = set(one.trial.tools)
    overlap = [len(ours & set(trial.tools)) / len({*ours, *trial.tools} or {""}) for trial in one.bank]
    return sorted(range(len(one.bank)), key=lambda place: (not one.bank[place].passed, -overlap[place]))


def references(asked: Sequence[Asked], embedders: Sequence[str]) -> dict[str, list[list[int]]]:
    """For each way to search, the order of the bank for each question."""
    searches: dict[str, Callable[[Sequence[str], str], list[int]]] = {"keywords": by_keywords}
    searches |= {name: nearest(name) for name in embedders}
    found: dict[str, list[list[int]]] = {"passed first, then overlap of tools": [by_tools(one) for one in asked]}
    for name, search in searches.items():
        for shown in ("episodes", "transcripts"):
            for tools in (False, True):
                key = f"{name} over {shown}{', tools in the query' if tools else ''}"
                found[key] = [_search(search, one, shown, tools=tools) for one in asked]
    return found


def _search(search: Callable[[Sequence[str], str], list[int]], one: Asked, shown: str, *, tools: bool) -> list[int]:
    documents = one.texts if shown == "episodes" else [trial.transcript for trial in one.bank]
    return search(documents, "\n".join([one.trial.asked, *(one.trial.tools if tools else ())]))


# -- figures ------------------------------------------------------------------------------------------


def shares(asked: Sequence[Asked], orders: Sequence[Sequence[int]], kind: str) -> Array:
    """For each question, the share of right ones among the first five; nan where nothing right is there."""
    found = []
    for one, order in zip(asked, orders, strict=True):
        right = np.append(one.right(kind), False)
        found.append(float(right[list(order[:TOP])].sum()) / TOP if right.any() else np.nan)
    return np.array(found)


def interval(values: Array, tasks: npt.NDArray[np.int_]) -> tuple[float, float]:
    """The middle 95 % over resampled tasks: runs of one task are no independent witnesses."""
    groups = [values[tasks == task] for task in np.unique(tasks)]
    sums, sizes = np.array([group.sum() for group in groups]), np.array([len(group) for group in groups])
    drawn = np.random.default_rng(0).integers(0, len(groups), (DRAWS, len(groups)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), [0.025, 0.975])
    return float(low), float(high)


def compare(
    asked: Sequence[Asked], ours: Sequence[Sequence[int]], others: Mapping[str, Sequence[Sequence[int]]], kind: str
) -> dict[str, dict[str, Any]]:
    """Ours, every other way, and what ours is ahead of each by, with an interval over tasks."""
    mine = shares(asked, ours, kind)
    known = ~np.isnan(mine)
    tasks = np.array([one.trial.task for one in asked])[known]
    mine = mine[known]
    best = np.array([min(TOP, int(one.right(kind).sum())) / TOP for one in asked])[known]
    chance = np.array([float(one.right(kind).mean()) for one in asked])[known]
    rows: dict[str, dict[str, Any]] = {
        f"{kind}: recall": _row(mine, tasks) | {"runs": len(mine), "tasks": len(np.unique(tasks))},
        f"{kind}: by chance": {"share": float(chance.mean())},
        f"{kind}: the most there is": {"share": float(best.mean())},
    }
    numbers = {family: number for number, family in enumerate(dict.fromkeys(one.trial.family for one in asked))}
    families = np.array([numbers[one.trial.family] for one in asked])[known]
    for name, orders in others.items():
        theirs = shares(asked, orders, kind)[known]
        low, high = interval(mine - theirs, tasks)
        ahead = {"ahead": float((mine - theirs).mean()), "ahead_low": low, "ahead_high": high}
        low, high = interval(mine - theirs, families)
        ahead |= {"ahead_low_over_families": low, "ahead_high_over_families": high}
        rows[f"{kind}: {name}"] = _row(theirs, tasks) | ahead
    return rows


def _row(values: Array, tasks: npt.NDArray[np.int_]) -> dict[str, Any]:
    low, high = interval(values, tasks)
    return {"share": float(values.mean()), "low": low, "high": high}


def measure(data: Path, embedders: Sequence[str]) -> dict[str, dict[str, Any]]:
    from benchmarks.learn_recall_weights import Learner, choices, held_out_orders, write
    from benchmarks.recall_sets import SETS, ask_set

    asked = {name: ask_set(name, data) for name in SETS}
    learner = Learner([one for name in SETS for one in choices(asked[name], name)])
    write(learner)
    rows: dict[str, dict[str, Any]] = {}
    for name in SETS:
        orders = held_out_orders(learner, asked[name], name)
        others: dict[str, Sequence[Sequence[int]]] = {
            **references(asked[name], embedders),
            **{key: order for key, order in orders.items() if key != "recall"},
            "recall, weights as shipped": [[place for place, _ in one.hints] for one in asked[name]],
            "recall, as shipped, tactics among the hints": [one.mixed for one in asked[name]],
        }
        for kind in FAMILIES if name == "airline" else FAMILIES[:1]:
            found = compare(asked[name], orders["recall"], others, kind)
            rows |= found if name == "airline" else {f"{name}, {key}": row for key, row in found.items()}
        if name == "airline":
            rows |= by_need(asked[name], orders["recall"], others)
    return rows


def by_need(
    asked: Sequence[Asked], ours: Sequence[Sequence[int]], others: Mapping[str, Sequence[Sequence[int]]]
) -> dict[str, dict[str, Any]]:
    """The airline's tasks that need an action and those that need none, apart: of the passing runs a third did nothing,
    so that whoever recalls the same runs whatever is asked does well where nothing is to be done.
    """
    rows: dict[str, dict[str, Any]] = {}
    for title, needs in (("an action is needed", True), ("no action is needed", False)):
        places = [place for place, one in enumerate(asked) if bool(one.trial.family) is needs]
        chosen = {name: [orders[place] for place in places] for name, orders in others.items()}
        found = compare([asked[place] for place in places], [ours[place] for place in places], chosen, "family")
        rows |= {f"{title}, {key}": row for key, row in found.items()}
    return rows


def plot(rows: Mapping[str, Mapping[str, Any]], path: Path, kind: str = "family") -> None:
    """The share of right hints by every way to search, with the middle 95 % over tasks."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    shown = {key.partition(": ")[2]: row for key, row in rows.items() if key.startswith(f"{kind}: ") and "low" in row}
    names = sorted(shown, key=lambda name: shown[name]["share"])
    values = np.array([shown[name]["share"] for name in names])
    ends = np.array([[shown[name][end] for name in names] for end in ("low", "high")])
    figure, axes = plt.subplots(figsize=(9, 5))
    colours = ["tab:blue" if name.startswith("recall") else "0.65" for name in names]
    axes.barh(names, values, xerr=np.abs(ends - values), color=colours, ecolor="0.3", capsize=2)
    axes.axvline(rows[f"{kind}: by chance"]["share"], color="0.3", linestyle=":", linewidth=1)
    axes.set_xlabel("share of the first five that come from passing runs of the family (dotted: by chance)")
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--embedders", default="wordllama,minilm")
    given = parser.parse_args(argv)
    embedders = [name for name in given.embedders.split(",") if name]
    for name in embedders:
        load_vectors(name)  # one that is missing is told before anything is measured
    rows = measure(given.data, embedders)
    plot(rows, RESULTS / "learning_tau.png")
    report("learning_tau", rows, {"embedders": embedders, "top": TOP, "draws": DRAWS})


if __name__ == "__main__":
    main()
