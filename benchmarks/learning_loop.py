"""A loop that learns: puzzles, a solver that knows nothing but what it is told, and memory in between.

    python -m benchmarks.learning_loop             ten seeds
    python -m benchmarks.learning_loop --quick     two seeds, for a look

The solver (`Solver`) draws one of its domain's strategies and tries by it until the puzzle is solved or its budget is
spent; a try costs one. It has no idea which strategy suits which family. What it is told shifts the odds: strategies
advised or warned of, and those of runs that passed or failed (`benchmarks.learning.reading`). Every run goes through
`mem.runner`, which recalls, has the answer checked, and learns. Beside it the same solver with the same puzzles and the
same draws, told nothing. Cost per pass: all tries, divided by the puzzles that were solved.

`learning`: the first runs of six families. `seen`: new puzzles of these families afterwards. `unseen`: puzzles of three
families nobody has met, the family named in the intent, and not named. `shuffled`: the puzzles of `seen`, told what was
learnt of another family. `poisoned`: a fifth of the tactics turned into their opposite, by a plan, with the figures
swapped to match; the same puzzles also go to a copy of the memory that was left alone.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import muniment
from benchmarks.harness import RESULTS, report
from benchmarks.learning.arms import stage_of
from benchmarks.learning.reading import EXAMPLE, Slot, read_text
from benchmarks.puzzles import FAMILIES, STRATEGIES, Puzzle, make_puzzle, read_puzzle
from muniment.contracts.learning import MemoryHint
from muniment.handles.runner import AgentTask
from muniment.verify.results import bucket_key

Array = npt.NDArray[np.float64]

SEEN = tuple(FAMILIES)[:6]
UNSEEN = tuple(FAMILIES)[6:]
BUDGET: Mapping[str, int] = {"numbers": 60, "strings": 40, "grid": 30}
TOLD, HINTED = 4.0, 1.5
"""What a piece of advice multiplies the odds of a strategy by, and what an example does."""
OPEN_MIND = 0.05
"""The share of draws in which the solver does as it likes."""
POISONED = 0.2
RECOVERY = 50
DRAWS = 10_000


# -- the solver ---------------------------------------------------------------------------------------


class Solver:
    """Draws a strategy by odds that only what it is told can shift, and tries by it."""

    def __init__(self, name: str) -> None:
        self._random = Random(name)

    def __call__(self, task: AgentTask) -> dict[str, Any]:
        told = [hint.summary or "" for hint in task.hints]
        told += [] if task.seed is None else [task.seed.seed_summary or ""]
        answer, strategy, tries, solved = self.solve(read_puzzle(task.task), told)
        task.run.observe_tool(strategy, content=f"{tries} tries", args={"tries": tries}, ok=solved)
        return {"text": answer, "features": {"strategy": strategy}, "usage": {"tool_calls": tries}}

    def solve(self, puzzle: Puzzle, told: Iterable[str]) -> tuple[str, str, int, bool]:
        """The answer, the strategy, the tries it took, and whether it came out."""
        names = STRATEGIES[puzzle.domain]
        drawn = self._random.random()
        odds = [1.0] * len(names) if self._random.random() < OPEN_MIND else odds_of(names, told)
        strategy, tries, answer = pick(names, odds, drawn), 0, ""
        for tries in range(1, BUDGET[puzzle.domain] + 1):
            answer = puzzle.attempt(strategy, self._random)
            if puzzle.solves(answer):
                return answer, strategy, tries, True
        return answer, strategy, tries, False


def odds_of(names: Sequence[str], told: Iterable[str]) -> list[float]:
    """How likely each strategy is after what was told; all alike if nothing was."""
    logs = dict.fromkeys(names, 0.0)
    slot = Slot("strategy", "argument", tuple(names), (1.0,) * len(names))
    for text in told:
        for said in read_text(text, (slot,)):
            by = HINTED if abs(said.log_odds) <= math.log(EXAMPLE) else TOLD
            logs[said.option] += math.copysign(math.log(by), said.log_odds)
    return [math.exp(logs[name]) for name in names]


def pick(names: Sequence[str], odds: Sequence[float], drawn: float) -> str:
    """The one that a draw from 0 to 1 falls on."""
    reached = 0.0
    for name, odd in zip(names, odds, strict=True):
        reached += odd / sum(odds)
        if drawn < reached:
            return name
    return names[-1]


def verify(output: Any, task: str) -> bool:
    return read_puzzle(task).solves(output.text)


# -- one seed -----------------------------------------------------------------------------------------


class Given(NamedTuple):
    """A puzzle of a family, and the name by which the solver's draws are made: the same in every arm."""

    family: str
    text: str
    draws: str


class Outcome(NamedTuple):
    cost: int
    passed: bool


@dataclass
class Trace:
    """What came of the puzzles of one phase, arm by arm."""

    arms: dict[str, list[Outcome]] = field(default_factory=dict)


def puzzles(seed: int, phase: str, families: Sequence[str], count: int) -> list[Given]:
    """So many puzzles, the families taking turns in a drawn order."""
    random = Random(f"{seed} {phase}")
    found: list[Given] = []
    while len(found) < count:
        for family in random.sample(families, len(families)):
            found.append(Given(family, make_puzzle(family, random).text, f"{seed} {phase} {len(found)}"))
    return found[:count]


def intent_of(family: str) -> dict[str, str]:
    domain, _, _ = family.partition("/")
    return {"domain_tag": domain, "task_family": family}


def run_with(mem: muniment.Memory, given: Sequence[Given]) -> list[Outcome]:
    """Through the runner: recalled, solved, checked, learnt from."""
    found = []
    for one in given:
        runner = mem.runner(Solver(one.draws), verify, {"reuse": True}, user_id="loop")
        done = runner.run(
            one.text,
            intent=intent_of(one.family),
            bucket_key=bucket_key("low", one.family.replace("/", "-"), "high"),
        )
        found.append(Outcome(done.learned.event_log.cost.tool_calls or 0, done.passed))  # type: ignore[union-attr]
    return found


def run_told(given: Sequence[Given], told: Callable[[Given], Sequence[str]]) -> list[Outcome]:
    """The solver alone, with what it is told; nothing is learnt."""
    found = []
    for one in given:
        answer, _, tries, _ = Solver(one.draws).solve(read_puzzle(one.text), told(one))
        found.append(Outcome(tries, read_puzzle(one.text).solves(answer)))
    return found


def look(mem: muniment.Memory, text: str, intent: Mapping[str, str]) -> list[str]:
    """What would be recalled, without a trace of it."""
    run = mem.run(user_id="loop", agent_id="look")
    recalled = run.learning.recall(text, intent=intent, state={"mode": "main"}, keep=False)
    return [hint.summary or "" for hint in recalled.hints if _is_injected(hint)]


def _is_injected(hint: MemoryHint) -> bool:
    return bool((hint.model_extra or {}).get("injected"))


def _nothing(_given: Given) -> Sequence[str]:
    return ()


def play(seed: int, sizes: Mapping[str, int]) -> tuple[dict[str, Trace], dict[str, Any]]:
    """All phases of one seed."""
    traces: dict[str, Trace] = {}
    given = {
        "learning": puzzles(seed, "learning", SEEN, sizes["learning"]),
        "seen": puzzles(seed, "seen", SEEN, sizes["seen"]),
        "unseen": puzzles(seed, "unseen", UNSEEN, sizes["unseen"]),
        "poisoned": puzzles(seed, "poisoned", SEEN, sizes["poisoned"]),
    }
    with muniment.open(":memory:", embedder="none") as mem:
        for phase, those in given.items():
            traces[phase] = Trace({"without": run_told(those, _nothing)})
        traces["learning"].arms["with"] = run_with(mem, given["learning"])
        other = _others()
        traces["seen"].arms["shuffled"] = run_told(
            given["seen"], lambda one: look(mem, one.text, intent_of(other[one.family]))
        )
        traces["unseen"].arms["with"] = run_told(
            given["unseen"], lambda one: look(mem, one.text, intent_of(one.family))
        )
        traces["unseen"].arms["unnamed"] = run_told(
            given["unseen"], lambda one: look(mem, one.text, {"domain_tag": one.family.partition("/")[0]})
        )
        traces["seen"].arms["with"] = run_with(mem, given["seen"])
        with muniment.open(":memory:", embedder="none") as twin:
            twin.import_(lambda: mem.export(user_id="loop"))
            traces["poisoned"].arms["left alone"] = run_with(twin, given["poisoned"])
        turned = poison(mem, Random(f"{seed} poison"))
        traces["poisoned"].arms["with"] = run_with(mem, given["poisoned"])
        bank = mem.bank(user_id="loop")
        gone = sum(stage_of(bank.get(id_)) in ("suspended", "retired") for id_ in turned)
    return traces, {"poisoned": len(turned), "retired": gone}


def _others() -> dict[str, str]:
    """For each family another one, of its own domain where there is one: advice that can do harm."""
    pairs = list(zip(SEEN[::2], SEEN[1::2], strict=True))
    return {one: two for pair in pairs for one, two in (pair, pair[::-1])}


# -- poison -------------------------------------------------------------------------------------------


def poison(mem: muniment.Memory, random: Random) -> list[str]:
    """Turn a fifth of the tactics into their opposite; answers their ids."""
    bank = mem.bank(user_id="loop")
    tactics = sorted(bank.records(kind="tactic"), key=lambda memory: memory.id)
    chosen = random.sample(tactics, max(1, round(POISONED * len(tactics)))) if tactics else []
    actions = [
        {"op": "WRITE", "target_store": "ReuseBuffer", "payload": turned_about(memory.record)} for memory in chosen
    ]
    if actions:
        bank.apply(bank.plan(actions).plan_id)
    return [memory.id for memory in chosen]


def turned_about(record: Mapping[str, Any]) -> dict[str, Any]:
    """A tactic that says the opposite of what was learnt, figures and all."""
    learnt = dict(record["learnt"])
    learnt |= {"advice": "avoid" if learnt["advice"] == "do" else "do"}
    learnt |= {"with": record["learnt"]["without"], "without": record["learnt"]["with"]}
    text = f"{'Use' if learnt['advice'] == 'do' else 'Avoid'} {learnt['feature'].partition(':')[2]}"
    known = {key: value for key, value in record.items() if key not in ("metrics", "last_used_at")}
    return known | {"summary": text, "injection": {"mode": "inline", "content": text}, "learnt": learnt}


# -- figures ------------------------------------------------------------------------------------------


def cost_per_pass(outcomes: Iterable[Outcome]) -> float:
    listed = list(outcomes)
    return sum(one.cost for one in listed) / max(1, sum(one.passed for one in listed))


def ratio(seeds: Sequence[tuple[Sequence[Outcome], Sequence[Outcome]]]) -> dict[str, float]:
    """Cost per pass of the one over that of the other, all seeds together; the interval is over seeds."""
    sums = np.array(
        [[f(side) for side in pair for f in (_cost, _passes)] for pair in seeds], np.float64
    )  # cost, passes, cost, passes

    def of(rows: Array) -> Array:
        total = rows.sum(axis=-2)
        return np.asarray((total[..., 0] / total[..., 1]) / (total[..., 2] / total[..., 3]))

    drawn = np.random.default_rng(0).integers(0, len(seeds), (DRAWS, len(seeds)))
    low, high = np.quantile(of(sums[drawn]), [0.025, 0.975])
    total = sums.sum(axis=0)
    return {
        "ratio": float(of(sums)),
        "low": float(low),
        "high": float(high),
        "cost_per_pass": float(total[0] / total[1]),
        "reference": float(total[2] / total[3]),
        "pass_rate": float(total[1]) / sum(len(pair[0]) for pair in seeds),
    }


def _cost(outcomes: Sequence[Outcome]) -> float:
    return float(sum(one.cost for one in outcomes))


def _passes(outcomes: Sequence[Outcome]) -> float:
    return float(sum(one.passed for one in outcomes))


def figures(played: Sequence[tuple[dict[str, Trace], dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    def against(phase: str, arm: str, reference: str = "without", part: slice = slice(None)) -> dict[str, float]:
        return ratio([(traces[phase].arms[arm][part], traces[phase].arms[reference][part]) for traces, _ in played])

    early, late = slice(0, RECOVERY), slice(RECOVERY, None)
    poisoned = sum(told["poisoned"] for _, told in played)
    retired = sum(told["retired"] for _, told in played)
    return {
        "learning, with memory": against("learning", "with"),
        "seen families, with memory": against("seen", "with"),
        "seen families, shuffled hints": against("seen", "shuffled"),
        "unseen families, with memory": against("unseen", "with"),
        "unseen families, not named": against("unseen", "unnamed"),
        f"poisoned, first {RECOVERY} runs, against left alone": against("poisoned", "with", "left alone", early),
        f"poisoned, runs after {RECOVERY}, against left alone": against("poisoned", "with", "left alone", late),
        f"poisoned, runs after {RECOVERY}, against without": against("poisoned", "with", "without", late),
        "tactics": {"poisoned": poisoned, "retired_of_these": retired, "share": retired / max(1, poisoned)},
    }


def plot(played: Sequence[tuple[dict[str, Trace], dict[str, Any]]], path: Path, window: int = 12) -> None:
    """Cost per pass over runs, in windows, all seeds together, with the middle 95 % over seeds."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.5))
    lines = {"without memory": "without", "with memory": "with", "with memory, left alone": "left alone"}
    colours = {"without memory": "0.45", "with memory": "tab:blue", "with memory, left alone": "tab:green"}
    phases = ("learning", "seen", "poisoned")
    for label, arm in lines.items():
        start = 0
        for phase in phases:
            size = len(played[0][0][phase].arms["without"])
            if arm in played[0][0][phase].arms:
                places, middle, low, high = _windows([traces[phase].arms[arm] for traces, _ in played], window)
                known = label if phase == ("poisoned" if arm == "left alone" else "learning") else None
                axes.plot(places + start, middle, color=colours[label], label=known)
                axes.fill_between(places + start, low, high, color=colours[label], alpha=0.15, linewidth=0)
            start += size
    edge = 0
    for phase, words in zip(phases, ("learning", "new puzzles", "a fifth of the tactics poisoned"), strict=True):
        axes.axvline(edge, color="0.8", linewidth=1)
        axes.text(edge + 2, 0.98 * axes.get_ylim()[1], words, va="top", fontsize=8)
        edge += len(played[0][0][phase].arms["without"])
    axes.set_xlabel("runs")
    axes.set_ylabel(f"tries per solved puzzle (windows of {window} runs)")
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower left", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def _windows(seeds: Sequence[Sequence[Outcome]], window: int) -> tuple[Array, Array, Array, Array]:
    starts = range(0, len(seeds[0]) - window + 1, window)
    cost = np.array([[_cost(one[at : at + window]) for at in starts] for one in seeds])
    passes = np.array([[_passes(one[at : at + window]) for at in starts] for one in seeds])
    drawn = np.random.default_rng(0).integers(0, len(seeds), (2_000, len(seeds)))
    spread = cost[drawn].sum(axis=1) / np.maximum(passes[drawn].sum(axis=1), 1)
    low, high = np.quantile(spread, [0.025, 0.975], axis=0)
    middle = cost.sum(axis=0) / np.maximum(passes.sum(axis=0), 1)
    return np.array([at + window / 2 for at in starts]), middle, low, high


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two seeds and fewer runs, for a look")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args(argv)
    seeds = 2 if given.quick else given.seeds
    sizes = {"learning": 120, "seen": 60, "unseen": 48, "poisoned": 2 * RECOVERY}
    played = []
    for seed in range(seeds):
        played.append(play(seed, sizes))
        print(f"{seed + 1} of {seeds} seeds", file=sys.stderr, flush=True)
    plot(played, RESULTS / "learning_loop.png")
    report("learning_loop", figures(played), {"seeds": seeds, "quick": given.quick} | sizes)


if __name__ == "__main__":
    main()
