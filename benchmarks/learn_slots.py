"""Learn which slots of a claim were swapped, and say how that holds on a set that had no part in it.

    python -m benchmarks.learn_slots [--data DIR] [--rows N] [--cost C]

From the developed sets of `benchmarks.verify_swaps`: the slots of claims that their source supports, and the swapped
slots of false claims that `benchmarks.swaps` makes of them. For each group of slots a row of small trees is grown, each
on what those before it left over (gradient boosting of the log-odds; no chance anywhere). Then the limits of the
policy are chosen on sets left out in turn: the sum of true claims lost and `--cost` times the false ones that pass is
least. The trees go to `src/muniment/verify/facts/data/slots.json`, the limits are printed and stand in
`core/policy.py`, the figures of the sets left out go to benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.harness import report
from benchmarks.swaps import claims_of, make_claims, sentences
from benchmarks.verify_swaps import DEVELOPED, supported_rows
from muniment.core.policy import FactCheckPolicy
from muniment.verify.facts import Source, SourceText
from muniment.verify.facts._slots import SLOT_KINDS, Seen, Signs, is_settled, look_at_slots
from muniment.verify.facts._swaps import denial_differs, is_usurped
from muniment.verify.facts.check import judge_units

Array = npt.NDArray[np.float64]
Tree = Any

GROUPS = ("name", "number", "time", "verb", "word")
SENTENCES = 4
SEED = "learn"
ROUNDS, DEPTH, RATE, LEAF_WEIGHT_MIN, SHRINK = 30, 3, 0.2, 15.0, 1.0
CUTS_MAX = 24
GIVEN_WEIGHT = 3.0
"""A claim as somebody wrote it counts so much more than one that was made."""
MADE_WEIGHT = 1.5
"""And a true one in other words so much more than a false one."""
LIMITS = np.arange(-1.0, 4.01, 0.25)
TARGET = Path(__file__).parent.parent / "src" / "muniment" / "verify" / "facts" / "data" / "slots.json"
DECIMALS = 5
COSTS = (2.0, 3.0, 4.0, 6.0)
"""Shown beside each other: what a false claim that passes costs, in true ones that are lost."""


class Slotted(NamedTuple):
    """A slot that was seen: its group, its signs, and was it the one that was swapped?"""

    group: str
    signs: Signs
    swapped: bool


class Example(NamedTuple):
    """A claim with its slots; `doubted`: something else speaks against it already, whatever the slots say."""

    set: str
    kind: str
    true: bool
    slots: tuple[Slotted, ...]
    doubted: bool


def changed(text: str, given: str) -> tuple[int, int]:
    """From where to where a claim differs from the one it was made of."""
    size = min(len(text), len(given))
    start = next((at for at in range(size) if text[at] != given[at]), size)
    back = next((at for at in range(size - start) if text[-1 - at] != given[-1 - at]), size - start)
    return start, max(start + 1, len(text) - back)


def look(name: str, kind: str, text: str, true: bool, span: tuple[int, int], source: Source) -> Example:
    policy = FactCheckPolicy()
    slots: list[Slotted] = []
    doubted = False
    own = {f"{one}_unmatched" for one in SLOT_KINDS} | {"polarity_changed"}
    for judged in judge_units(text, source, policy):
        if judged.exact is not None:
            continue
        doubted |= any(not doubt.quiet and doubt.kind not in own for doubt in judged.doubts)
        doubted |= judged.claim.covered < policy.cover_min
        for seen in look_at_slots(judged.claim, source):
            if seen.slot.kind == "polarity":
                doubted |= denial_differs(seen)
                continue
            if is_settled(seen):
                continue
            doubted |= is_usurped(seen)
            slots.append(_slotted(seen, judged.unit.start, judged.claim.words, span))
    return Example(name, kind, true, tuple(slots), doubted)


def _slotted(seen: Seen, base: int, words: Sequence[Any], span: tuple[int, int]) -> Slotted:
    start, end = base + words[seen.slot.at].start, base + words[seen.slot.end - 1].end
    return Slotted(seen.group, seen.signs, start < span[1] and end > span[0])


def gather(data: Path, name: str, rows_max: int) -> list[Example]:
    rows = supported_rows(data, name)
    rows = Random(f"{SEED}/{name}").sample(rows, min(rows_max, len(rows)))
    found: list[Example] = []
    seen: set[str] = set()
    for row in rows:
        source = Source([SourceText("source", row.source)])
        found.append(look(name, "as it stands", row.claim, True, (0, 0), source))
        for made in make_claims(row.claim, row.source, SEED):
            span = (0, 0) if made.true else changed(made.text, row.claim)
            found.append(look(name, made.kind, made.text, made.true, span, source))
        if row.source in seen:
            continue
        seen.add(row.source)
        given = sentences(row.source)
        for made in claims_of(row.source, SEED, SENTENCES):
            span = (
                (0, 0)
                if made.true
                else min((changed(made.text, one) for one in given), key=lambda one: (one[1] - one[0], one))
            )
            found.append(look(name, made.kind, made.text, made.true, span, source))
    return found


def table(examples: Sequence[Example], group: str) -> tuple[Array, Array, Array]:
    """Signs, 1 where swapped, and weights under which both sorts count alike."""
    rows, swapped, weights = [], [], []
    for one in examples:
        for slot in one.slots:
            if slot.group == group and (one.true or slot.swapped):
                rows.append(slot.signs)
                swapped.append(float(not one.true))
                weights.append(GIVEN_WEIGHT if one.kind == "as it stands" else MADE_WEIGHT if one.true else 1.0)
    signs, hits, heavy = np.array(rows), np.array(swapped), np.array(weights)
    heavy = np.where(hits > 0, heavy * heavy[hits == 0].sum() / heavy[hits > 0].sum(), heavy)
    return signs, hits, heavy * len(heavy) / heavy.sum()


def grow(signs: Array, hits: Array, weights: Array) -> list[Tree]:
    """Trees whose sum is the log-odds of a swap."""
    cuts = [
        np.unique(np.round(np.quantile(column, np.linspace(0, 1, CUTS_MAX + 1)[:-1]), DECIMALS)) for column in signs.T
    ]
    bins = np.stack(
        [np.searchsorted(cut, column, side="left") for cut, column in zip(cuts, signs.T, strict=True)], axis=1
    )
    score = np.zeros(len(hits))
    trees: list[Tree] = []
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-score))
        slope, bend = weights * (hits - chance), weights * chance * (1 - chance)
        tree, step = _node(bins, cuts, slope, bend, weights, np.arange(len(hits)), DEPTH)
        trees.append(tree)
        score += step
    return trees


def _node(
    bins: npt.NDArray[Any],
    cuts: Sequence[Array],
    slope: Array,
    bend: Array,
    weights: Array,
    here: npt.NDArray[Any],
    deep: int,
) -> tuple[Tree, Array]:
    best: tuple[float, int, int] = (1e-6, -1, -1)
    whole = slope[here].sum() ** 2 / (bend[here].sum() + SHRINK)
    for sign in range(bins.shape[1]) if deep else ():
        size = len(cuts[sign]) + 1
        column = bins[here, sign]
        first, second, third = (
            np.cumsum(np.bincount(column, part[here], size))[:-1] for part in (slope, bend, weights)
        )
        heavy = weights[here].sum()
        gains = (
            first**2 / (second + SHRINK)
            + (slope[here].sum() - first) ** 2 / (bend[here].sum() - second + SHRINK)
            - whole
        )
        gains[(third < LEAF_WEIGHT_MIN) | (heavy - third < LEAF_WEIGHT_MIN)] = -1.0
        at = int(gains.argmax()) if len(gains) else 0
        if len(gains) and round(float(gains[at]), 9) > best[0]:
            best = (round(float(gains[at]), 9), sign, at)
    step = np.zeros(len(slope))
    if best[1] < 0:
        value = round(float(RATE * slope[here].sum() / (bend[here].sum() + SHRINK)), DECIMALS)
        step[here] = value
        return value, step
    low = bins[here, best[1]] <= best[2]
    left, one = _node(bins, cuts, slope, bend, weights, here[low], deep - 1)
    right, two = _node(bins, cuts, slope, bend, weights, here[~low], deep - 1)
    return [Signs._fields[best[1]], float(cuts[best[1]][best[2]]), left, right], one + two


def value_of(trees: Sequence[Tree], signs: Signs) -> float:
    total = 0.0
    for tree in trees:
        while not isinstance(tree, float):
            tree = tree[2] if getattr(signs, tree[0]) <= tree[1] else tree[3]
        total += tree
    return total


class Scored(NamedTuple):
    """A claim and the most doubtful slot of each group."""

    example: Example
    most: tuple[float, ...]


def score(examples: Sequence[Example], trees: dict[str, list[Tree]]) -> list[Scored]:
    found = []
    for one in examples:
        most = dict.fromkeys(GROUPS, -99.0)
        for slot in one.slots:
            most[slot.group] = max(most[slot.group], value_of(trees[slot.group], slot.signs))
        found.append(Scored(one, tuple(most.values())))
    return found


class Panel(NamedTuple):
    """Some claims as columns: the most doubtful slot of each group, and what is known of each claim."""

    most: Array
    doubted: npt.NDArray[np.bool_]
    true: npt.NDArray[np.bool_]
    given: npt.NDArray[np.bool_]


def panel_of(scored: Sequence[Scored], name: str) -> Panel:
    """The claims of one set."""
    own = [one for one in scored if one.example.set == name]
    return Panel(
        np.array([one.most for one in own]),
        np.array([one.example.doubted for one in own]),
        np.array([one.example.true for one in own]),
        np.array([one.example.kind == "as it stands" for one in own]),
    )


def rates(panel: Panel, limits: Array) -> dict[str, float]:
    """False ones that pass, and true ones that do not: as given, and as made."""
    passed = ~np.any(panel.most > limits, axis=1) & ~panel.doubted
    made = panel.true & ~panel.given
    return {
        "false": float((~panel.true).sum()),
        "false_supported": float(passed[~panel.true].mean()),
        "given_lost": float(1 - passed[panel.given].mean()),
        "reworded_lost": float(1 - passed[made].mean()) if made.any() else 0.0,
    }


def choose(scored: Sequence[Scored], cost: float) -> Array:
    limits = np.full(len(GROUPS), 1.0)
    panels = [panel_of(scored, name) for name in DEVELOPED]

    def value(tried: Array) -> float:
        rows = [rates(panel, tried) for panel in panels]
        return sum(cost * row["false_supported"] + row["given_lost"] + 0.3 * row["reworded_lost"] for row in rows)

    best = value(limits)
    for _ in range(2):
        for at in range(len(GROUPS)):
            for limit in LIMITS:
                tried = limits.copy()
                tried[at] = limit
                now = value(tried)
                if now < best - 1e-9:
                    best, limits = now, tried
    return limits


def learn(examples: Sequence[Example]) -> dict[str, list[Tree]]:
    return {group: grow(*table(examples, group)) for group in GROUPS}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--cost", type=float, default=3.0)
    options = parser.parse_args(argv)
    with ProcessPoolExecutor(len(DEVELOPED)) as pool:
        each = pool.map(gather, repeat(options.data), DEVELOPED, repeat(options.rows))
        examples = dict(zip(DEVELOPED, each, strict=True))
    left_out = [
        one
        for name in DEVELOPED
        for one in score(
            examples[name], learn([one for other in DEVELOPED if other != name for one in examples[other]])
        )
    ]
    limits = choose(left_out, options.cost)
    trees = learn([one for rows in examples.values() for one in rows])
    TARGET.write_text(
        json.dumps({"from": "benchmarks/learn_slots.py", "trees": trees}, separators=(",", ":")) + "\n", "utf-8"
    )
    found: dict[str, Any] = {}
    for cost in sorted({*COSTS, options.cost}):
        tried = limits if cost == options.cost else choose(left_out, cost)
        for name in DEVELOPED:
            found[f"{name} left out, cost {cost:g}"] = rates(panel_of(left_out, name), tried)
    found["limits"] = {group: float(limit) for group, limit in zip(GROUPS, limits, strict=True)}
    print(json.dumps(found, indent=1))
    report("learn_slots", found, {"rows": options.rows, "cost": options.cost, "seed": SEED}, "learn_slots")


if __name__ == "__main__":
    main()
