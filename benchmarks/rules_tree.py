"""How many states a guided search expands against a uniform one, to the same pass rate (RC-22).

    python -m benchmarks.rules_tree             ten seeds
    python -m benchmarks.rules_tree --quick     two seeds, for a look

Every puzzle of the families of `benchmarks.puzzles`, and of the same string programs with three steps, is searched in
each way until it is solved or nothing is left. Uniform search is breadth-first, or expands a drawn state of those that
wait; both look at a state when it is made, never twice at the same, and are not charged for states that lead nowhere.
What follows from a state comes in one drawn order for all. Ratios are of states expanded in all, against the better of
the two uniform ways; intervals are over seeds. `c` and the beam's width were chosen on other seeds (100 to 115). `bare`
is with scores of numbers that look at no sums and products. `made_ratio` is of states that were looked at: each of them
is verified and, in a guided search, scored. Unsolvable grids are among the puzzles: nobody solves them.

Seeds of the ReuseBuffer are tried by runs that learn: a puzzle's search starts with a seed that PUCT chooses of its
family, and steps that stand in the seed's answer are taken to be likelier. Each is set beside the same search of the
same puzzle without a seed; once guided by scores, and once by priors alone.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any, NamedTuple

import numpy as np

import muniment
from benchmarks import harness
from benchmarks.puzzle_spaces import space_of
from benchmarks.puzzles import _GROUPS, FAMILIES, Puzzle, Strings, _apply, make_puzzle
from muniment.core.canonical import canonical_text
from muniment.core.policy import TreePolicy
from muniment.rules.tree_search import TREE_PUCT, TreeProblem, TreeSearch, search_tree
from muniment.verify.results import bucket_key

LONG = {
    "strings/orders, 3 steps": "ordering",
    "strings/letters, 3 steps": "lettering",
    "strings/sizes, 3 steps": "sizing",
}
CAPS = {"nodes_max": 100_000, "calls_max": 10_000_000, "frontier_max": 1_000_000}
PUCT = TreePolicy.model_validate(CAPS)
BEAM = TreePolicy.model_validate({**CAPS, "algo": "beam_guided_tree_v1"})
FEW = 16
"""States within which a look is taken at who has passed."""
DRAWS = 10_000


class Tried(NamedTuple):
    nodes: int
    """States that were expanded."""
    made: int
    """States that were looked at."""
    passed: bool


# -- puzzles ------------------------------------------------------------------------------------------


def make(family: str, random: Random) -> Puzzle:
    if family not in LONG:
        return make_puzzle(family, random)
    while True:
        names = random.choices(_GROUPS[LONG[family]], k=3)
        words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(3)]
        pairs = tuple((word, _apply(names, word)) for word in words)
        if all(one != two for one, two in pairs):
            return Strings(pairs, 3)


def problems(seed: int, family: str, size: int, *, bare: bool = False) -> list[TreeProblem]:
    random = Random(f"{seed} {family}")
    return [space_of(make(family, random), f"{seed} {family} {place}", bare=bare) for place in range(size)]


# -- searching ----------------------------------------------------------------------------------------


def uniform(problem: TreeProblem, random: Random | None) -> Tried:
    """Breadth-first, or any state of those that wait."""
    waiting, known = deque([problem.root]), {key_of(problem, problem.root)}
    nodes = 0
    while waiting:
        if random is not None:
            waiting.rotate(-random.randrange(len(waiting)))
        children = list(problem.expand(waiting.popleft()))
        nodes += bool(children)
        for child in children:
            key = key_of(problem, child)
            if key not in known:
                known.add(key)
                waiting.append(child)
                if problem.verify(child):
                    return Tried(nodes, len(known), True)
    return Tried(nodes, len(known), False)


def guided(problem: TreeProblem, policy: TreePolicy) -> Tried:
    search = TreeSearch(problem, policy).run()
    assert search.end is not None
    return Tried(search.expanded, search.made, search.end.kind == "solved")


def key_of(problem: TreeProblem, state: Any) -> str:
    assert problem.key is not None
    return canonical_text(problem.key(state))


# -- with seeds ---------------------------------------------------------------------------------------


def with_seeds(seed: int, family: str, size: int, lessons: int, *, scored: bool) -> tuple[list[Tried], list[Tried]]:
    """The same puzzles with what earlier runs of the family left in the bank, and without."""
    tried: list[Tried] = []
    bare: list[Tried] = []
    bucket = bucket_key("low", family.split(",")[0].replace("/", "-"), "high")
    with muniment.open(":memory:", embedder="none") as mem:
        bank = mem.bank(user_id="tree")
        for place, whole in enumerate(problems(seed, family, lessons + size)):
            problem = whole if scored else replace(whole, score=None)
            run = mem.run(user_id="tree", task_type="puzzle")
            run.observe("user", f"{family} {place}")
            found = search_tree(run, problem, policy=PUCT, bank=bank, bucket_key=bucket)
            run.observe("assistant", found.output.text)
            run.learning.learn(found.result, bucket_key=bucket, reuse=found.reuse)
            run.finish()
            if place >= lessons:
                tried.append(Tried(found.search.expanded, found.search.made, found.solved))
                bare.append(guided(problem, PUCT))
    return tried, bare


# -- figures ------------------------------------------------------------------------------------------


def ratio(ours: Sequence[Sequence[Tried]], theirs: Sequence[Sequence[Tried]]) -> dict[str, float]:
    """States expanded by one over those by the other, all seeds together; the interval is over seeds."""
    sums = np.array([[sum(t.nodes for t in each) for each in pair] for pair in zip(ours, theirs, strict=True)], float)
    drawn = sums[np.random.default_rng(0).integers(0, len(sums), (DRAWS, len(sums)))].sum(axis=1)
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [0.025, 0.975])
    whole = sums.sum(axis=0)
    size = sum(map(len, ours))
    return {
        "ratio": float(whole[0] / whole[1]),
        "low": float(low),
        "high": float(high),
        "nodes": float(whole[0] / size),
        "reference": float(whole[1] / size),
        "made_ratio": made(ours) / made(theirs),
        "pass_rate": share(ours),
        "reference_pass_rate": share(theirs),
        f"within_{FEW}": share(ours, FEW),
        f"reference_within_{FEW}": share(theirs, FEW),
    }


def made(tried: Sequence[Sequence[Tried]]) -> int:
    return sum(each.made for seed in tried for each in seed)


def share(tried: Sequence[Sequence[Tried]], most: float = float("inf")) -> float:
    flat = [each for seed in tried for each in seed]
    return sum(each.passed and each.nodes <= most for each in flat) / len(flat)


WAYS: dict[str, Callable[[TreeProblem, str], Tried]] = {
    "breadth-first": lambda problem, _draws: uniform(problem, None),
    "random": lambda problem, draws: uniform(problem, Random(draws)),
    "puct": lambda problem, _draws: guided(problem, PUCT),
    "beam": lambda problem, _draws: guided(problem, BEAM),
    "puct, bare": lambda problem, _draws: guided(problem, PUCT),
    "beam, bare": lambda problem, _draws: guided(problem, BEAM),
}


def play(seeds: int, size: int) -> dict[str, dict[str, list[list[Tried]]]]:
    """Family → way → seed → puzzles."""
    played: dict[str, dict[str, list[list[Tried]]]] = {}
    for family in (*FAMILIES, *LONG):
        played[family] = {way: [] for way in WAYS}
        for seed in range(seeds):
            given = problems(seed, family, size)
            bare = problems(seed, family, size, bare=True)
            for way, search in WAYS.items():
                tried = bare if way.endswith("bare") else given
                played[family][way].append([search(each, f"{seed} {place}") for place, each in enumerate(tried)])
    return played


def better_uniform(ways: dict[str, list[list[Tried]]]) -> list[list[Tried]]:
    """Of the two uniform ways the one that expands less, all seeds together."""
    return min(ways["breadth-first"], ways["random"], key=lambda tried: sum(t.nodes for seed in tried for t in seed))


def together(played: dict[str, Any], families: Sequence[str], pick: Callable[[Any], list[list[Tried]]]) -> Any:
    """Seed by seed, the puzzles of all these families."""
    by_family = [pick(played[family]) for family in families]
    return [[tried for family in by_family for tried in family[seed]] for seed in range(len(by_family[0]))]


def figures(played: dict[str, Any]) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    groups = {"the nine families": list(FAMILIES), "with the longer programs": list(played)}
    for way in ("puct", "beam", "puct, bare", "beam, bare"):
        for name, families in groups.items():
            ours = together(played, families, lambda ways, way=way: ways[way])  # type: ignore[misc]
            rows[f"{way}, {name}"] = ratio(ours, together(played, families, better_uniform))
    for way in ("puct", "beam"):
        rows |= {f"{way}, {family}": ratio(ways[way], better_uniform(ways)) for family, ways in played.items()}
    return rows


def seed_figures(seeds: int, size: int, lessons: int) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for scored, domain in product((True, False), ("numbers", "strings")):
        ours: list[list[Tried]] = [[] for _ in range(seeds)]
        theirs: list[list[Tried]] = [[] for _ in range(seeds)]
        for family, seed in product((*FAMILIES, *LONG), range(seeds)):
            if family.startswith(domain):
                tried, without = with_seeds(seed, family, size, lessons, scored=scored)
                ours[seed] += tried
                theirs[seed] += without
        rows[f"seeds, {domain}, {'scores too' if scored else 'priors alone'}"] = ratio(ours, theirs)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two seeds")
    quick = parser.parse_args().quick
    seeds, size, lessons = (2, 4, 4) if quick else (10, 12, 8)
    rows = figures(play(seeds, size)) | seed_figures(seeds, size // 2, lessons)
    policy = {"c": TREE_PUCT.c, "q_method": TREE_PUCT.q_method, "beam_width": BEAM.beam_width}
    harness.report("rules_tree", rows, {"seeds": seeds, "puzzles": size, "lessons": lessons, **policy})


if __name__ == "__main__":
    main()
