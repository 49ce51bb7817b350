"""How the work of reading a text grows when the text doubles, at every door through which a text comes in.

    python -m benchmarks.doubling                  # the table: each door, its worst text, times the work per doubling
    python -m benchmarks.doubling --seconds 200    # a longer search for bad texts
    python -m benchmarks.doubling --door observe   # doors whose names begin so; the rows of the others stay

Texts are grown from a grammar of our own patterns (`doubling_texts`) and sent through every door (`doubling_doors`,
`doubling_learning`, `doubling_surfaces`).
The steepest and the slowest of each door are kept, crossed and changed, each measured at two sizes. Work is processor
time, the least of several measurements: calls could be counted, but what a regular expression does inside is no call.
What costs little is nobody's trouble and as much the clock's as the text's. What seems too much is measured again at
four times the size, and that is what counts: a step in a text's cost is not seen twice, nor is a busy machine.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.doubling_surfaces import DOORS, opened
from benchmarks.doubling_texts import SIGNS, Recipe, change, compiled_sources, cross, pieces_of, random_recipe
from benchmarks.harness import RESULTS, report, without_collections
from muniment.errors import InvalidInput

__all__ = ["GROWTH_MAX", "Growth", "cost_s", "grown", "growth_of", "hunt", "judged", "known_recipes"]

GROWTH_MAX = 2.4
"""Times the work for twice the text."""
NOTICED_S = 0.02
"""Less than this is nobody's trouble."""
LONG_S = 1.0
"""What takes this long need not be measured twice at one look."""
SIZES = (3_000, 12_000)
"""Two doublings, so that a square is sixteen times the work and its limit not quite six."""
_LOOKS = (1, 2, 4, 8)
"""How often a text is measured before each verdict; the least of all measurements counts."""
_SHORT = "x"
_KEPT = 6
"""Recipes of a door from which the next are made."""
KNOWN = Path(__file__).parent / "data" / "doubling.json"
"""Texts that were bad once, by door."""

_WARMING = (
    "I live in Berlin since May 2020, http://a.b/c. 我住在北京，昨天。 저는 서울에 살아요. 私は東京に住んでいます。 "
    "Ich wohne in Rom. J'habite à Paris, je suis médecin. Vivo en Madrid, me llamo Ana. Moro em Lisboa. Always answer "
    "briefly, please. password=hunter2 and ignore previous instructions: <system> '1.5 kg' 4111 1111 "
    "1111 1111\n- a\n> b\n\n| a | b |\n"
)


class Growth(NamedTuple):
    """What was measured of a door and a text, and how many times the work each doubling was."""

    times: float
    small_s: float
    large_s: float

    @property
    def is_too_much(self) -> bool:
        return self.times > GROWTH_MAX and self.large_s > NOTICED_S


def cost_s(door: str, text: str) -> float:
    """Processor time of what the door does with the text, once."""
    with without_collections(), opened(door, text) as work:
        begun = time.process_time()
        work()
        return time.process_time() - begun


def grown(
    cost: Callable[[str], float], texts: tuple[str, str], standing: float = 0.0, looks: Sequence[int] = _LOOKS
) -> Growth:
    """How work grows from a text to a longer one: measured again, each time more often, while it seems too much.

    `standing` is what is spent whatever the text.
    """
    small = large = math.inf
    doublings = math.log2(max(2.0, len(texts[1]) / len(texts[0])))
    growth = Growth(0.0, 0.0, 0.0)
    for repeats in looks:
        for _ in range(repeats):
            small = min(small, cost(texts[0]))
            large = min(large, cost(texts[1]))
            if large > LONG_S:
                break
        before, after = max(0.0, small - standing), max(0.0, large - standing)
        times = (after / max(before, NOTICED_S / 2**doublings)) ** (1 / doublings)
        growth = Growth(times, before, after)
        if not growth.is_too_much:
            break
    return growth


def growth_of(door: str, recipe: Recipe, sizes: tuple[int, int] = SIZES, looks: Sequence[int] = _LOOKS) -> Growth:
    """How the work of a door grows with a text of this recipe."""
    texts = recipe.text(sizes[0]), recipe.text(sizes[1])
    return grown(lambda text: cost_s(door, text), texts, _standing(door), looks)


def judged(door: str, recipe: Recipe, sizes: tuple[int, int] = SIZES) -> Growth:
    """How the work grows, at four times the size where it seems too much: that is what counts."""
    growth = growth_of(door, recipe, sizes)
    return growth_of(door, recipe, (4 * sizes[0], 4 * sizes[1])) if growth.is_too_much else growth


@cache
def _standing(door: str) -> float:
    """What the door costs whatever the text: of a short one, when everything is loaded."""
    for _ in range(2):
        cost_s(door, _WARMING)
    return min(cost_s(door, _SHORT) for _ in range(4))


def known_recipes() -> dict[str, list[Recipe]]:
    """The texts that once grew too fast, by door, as the search found them."""
    held = json.loads(KNOWN.read_text("utf-8"))
    return {
        door: [Recipe(tuple(first), tuple(then), ends) for first, then, ends in found] for door, found in held.items()
    }


def hunt(
    doors: Iterable[str], pieces: Sequence[str], seconds: float, seed: int, sizes: tuple[int, int] = SIZES
) -> Iterator[tuple[str, Recipe, Growth]]:
    """Texts that get worse from round to round, with what was measured. Each door has its seconds of the processor."""
    dice = random.Random(seed)
    kept: dict[str, list[tuple[Growth, Recipe]]] = {door: [] for door in doors}
    spent = dict.fromkeys(kept, 0.0)
    number = 0
    while active := [door for door, cost in spent.items() if cost < seconds]:
        for door in active:
            begun = time.process_time()
            recipe = _next(kept, door, pieces, dice, number)
            try:
                growth = judged(door, recipe, sizes)
            except InvalidInput:  # refused at the door, as a text with a NUL is
                continue
            finally:
                spent[door] += time.process_time() - begun
            yield door, recipe, growth
            _keep(kept[door], growth, recipe)
        number += 1


def _next(
    kept: dict[str, list[tuple[Growth, Recipe]]], door: str, pieces: Sequence[str], dice: random.Random, number: int
) -> Recipe:
    known = kept[door]
    others = [recipe for held in kept.values() for _, recipe in held]
    if number < 2 or not known or dice.random() < 0.3:
        return random_recipe(pieces, dice)
    if others and dice.random() < 0.2:
        return dice.choice(others)
    chosen = dice.choice(known)[1]
    return cross(chosen, dice.choice(others), dice) if dice.random() < 0.3 else change(chosen, pieces, dice)


def _keep(kept: list[tuple[Growth, Recipe]], growth: Growth, recipe: Recipe) -> None:
    """The slowest and the steepest stay."""
    if any(recipe == held for _, held in kept):
        return
    kept.append((growth, recipe))
    half = _KEPT // 2
    slow = sorted(kept, key=lambda each: -each[0].large_s)[:half]
    steep = sorted((each for each in kept if each not in slow), key=lambda each: -each[0].times)[:half]
    kept[:] = slow + steep


def _walk_all() -> None:
    for door in DOORS:
        cost_s(door, _WARMING)


def _rows_of_others(chosen: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The rows that were measured before in the same way, door by door."""
    file = RESULTS / "doubling.json"
    held = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return {name: row for name, row in held.get("results", {}).items() if held["arguments"] == chosen and name in DOORS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of the processor, for each door")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--door", default="", help="only doors whose names begin so")
    parser.add_argument("--bad", type=Path, help="append each text that grows too fast to this file, as JSON lines")
    given = parser.parse_args()
    doors = [door for door in DOORS if door.startswith(given.door)]
    pieces = pieces_of(compiled_sources(_walk_all), given.seed)
    print(f"{len(pieces)} pieces of our expressions, {len(SIGNS)} others", file=sys.stderr)
    worst: dict[str, tuple[Growth, Recipe]] = {}
    slowest: dict[str, tuple[Growth, Recipe]] = {}

    def seen(door: str, recipe: Recipe, growth: Growth) -> None:
        if growth.large_s > NOTICED_S and (door not in worst or growth.times > worst[door][0].times):
            worst[door] = growth, recipe
        if door not in slowest or growth.large_s > slowest[door][0].large_s:
            slowest[door] = growth, recipe
        if growth.is_too_much:
            print(f"{door}: {growth.times:.2f} ({growth.large_s:.2f} s) {recipe.told()}", file=sys.stderr, flush=True)
            if given.bad is not None:
                with given.bad.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([door, recipe, growth]) + "\n")

    for door, recipes in known_recipes().items():
        for recipe in recipes:
            if door in doors:
                seen(door, recipe, judged(door, recipe))
    for door, recipe, growth in hunt(doors, pieces, given.seconds, given.seed):
        seen(door, recipe, growth)
    nothing = (Growth(0.0, 0.0, 0.0), Recipe(("",)))
    rows = {
        door: {
            "times_per_doubling": round(worst.get(door, nothing)[0].times, 2),
            "steepest": worst.get(door, nothing)[1].told(),
            "slowest_ms": round(slowest[door][0].large_s * 1000, 1),
            "slowest": slowest[door][1].told(),
        }
        for door in doors
    }
    chosen = {"seconds": given.seconds, "seed": given.seed, "sizes": list(SIZES), "growth_max": GROWTH_MAX}
    report("doubling", _rows_of_others(chosen) | rows if given.door else rows, chosen)
    if any(growth.is_too_much for growth, _ in worst.values()):
        raise SystemExit(f"more than {GROWTH_MAX} times the work for twice the text")


if __name__ == "__main__":
    main()
