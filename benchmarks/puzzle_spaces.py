"""The puzzles of `benchmarks.puzzles` as spaces of states: what follows, how promising a state looks, when it is right.

A score is told by what any solver would look at before it knows the puzzle: how far what is at hand lies from what is
wanted. Of numbers these are the numbers themselves and, unless `bare`, all of them added up or multiplied: of the last
two that is as much as to try two of the six steps that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import prod
from random import Random
from typing import Any

from benchmarks.puzzles import _MOVES, _OPERATIONS, Grid, Numbers, Puzzle, Strings, _value
from muniment.contracts.learning import ReuseStateRecord
from muniment.rules.tree_search import TreeProblem

__all__ = ["space_of"]

TOLD = 4.0
"""How much likelier a step is taken to be that stands in the answer of a run that passed."""


def space_of(puzzle: Puzzle, draws: str, *, bare: bool = False) -> TreeProblem:
    """The space of a puzzle. Whichever way it is searched, what follows from a state comes in the same drawn order."""
    match puzzle:
        case Numbers():
            problem = _numbers(puzzle, bare=bare)
        case Strings():
            problem = _strings(puzzle)
        case Grid():
            problem = _grid(puzzle)
        case _:
            raise TypeError(type(puzzle).__name__)

    def expand(state: Any) -> list[Any]:
        offered = list(problem.expand(state))
        Random(f"{draws} {state}").shuffle(offered)
        return offered

    return replace(problem, expand=expand)


# -- numbers: a state is what is left, each with how it was made --------------------------------------


def _numbers(puzzle: Numbers, *, bare: bool) -> TreeProblem:
    def expand(state: Any) -> Iterator[Any]:
        for (i, (one, *a)), (j, (other, *b)) in combinations(enumerate(state), 2):
            rest = [each for place, each in enumerate(state) if place not in (i, j)]
            left, right = Fraction(*a), Fraction(*b)
            for x, y, p, q in ((left, right, one, other), (right, left, other, one)):
                for sign in "+-*/" if x is left else "-/":
                    if sign != "/" or y:
                        made = _value(x, sign, y)
                        yield [*rest, [f"{p} {q} {sign}", made.numerator, made.denominator]]

    def score(state: Any) -> float:
        """How near a number, their sum or their product lies to the target, relative to it; 0 once all are used up."""
        values = [Fraction(top, bottom) for _, top, bottom in state]
        looked_at = values if bare else [*values, sum(values, Fraction(0)), prod(values, start=Fraction(1))]
        return max(_near(value, puzzle.target) for value in looked_at) if len(values) > 1 else 0.0

    def weigh(seed: ReuseStateRecord, _state: Any, child: Any) -> float:
        return TOLD if child[-1][0][-1] in (seed.seed_prompt or "").split() else 1.0

    return TreeProblem(
        root=[[str(number), number, 1] for number in puzzle.numbers],
        expand=expand,
        score=score,
        verify=lambda state: len(state) == 1 and puzzle.solves(state[0][0]),
        key=lambda state: sorted([top, bottom] for _, top, bottom in state),
        answer=lambda way: str(way[-1][0][0]),
        weigh=weigh,
    )


def _near(value: Fraction, target: int) -> float:
    return float(1 / (1 + abs(target - value) / target))


# -- strings: a state is the operations so far --------------------------------------------------------


def _strings(puzzle: Strings) -> TreeProblem:
    targets = [two for _, two in puzzle.pairs]

    def expand(state: Any) -> Iterator[Any]:
        if len(state["did"]) < puzzle.length:
            for name, operation in _OPERATIONS.items():
                yield {"did": [*state["did"], name], "words": [operation(word) for word in state["words"]]}

    def score(state: Any) -> float:
        """How alike the words are to those that are wanted; 0 once all steps are done."""
        is_done = len(state["did"]) == puzzle.length
        return 0.0 if is_done else sum(map(_alike, state["words"], targets)) / len(targets)

    def weigh(seed: ReuseStateRecord, _state: Any, child: Any) -> float:
        return TOLD if child["did"][-1] in (seed.seed_prompt or "").split() else 1.0

    return TreeProblem(
        root={"did": [], "words": [one for one, _ in puzzle.pairs]},
        expand=expand,
        score=score,
        verify=lambda state: puzzle.solves(" ".join(state["did"])),
        key=lambda state: [len(state["did"]), state["words"]],
        answer=lambda way: " ".join(way[-1]["did"]),
        weigh=weigh,
    )


def _alike(word: str, target: str) -> float:
    """The mean of: as long, the same letters, at the same places, repeated in the same pattern."""
    longest = max(len(word), len(target), 1)
    shared = sum((Counter(word) & Counter(target)).values())
    placed = sum(a == b for a, b in zip(word, target, strict=False))
    pattern = sum(a == b for a, b in zip(_pattern(word), _pattern(target), strict=False))
    return (min(len(word), len(target)) + shared + placed + pattern) / (4 * longest)


def _pattern(word: str) -> list[int]:
    return [word.index(letter) for letter in word]


# -- grids: a state is a cell, and whether one has the key --------------------------------------------


def _grid(puzzle: Grid) -> TreeProblem:
    start, goal, lock = puzzle.find("s"), puzzle.find("g"), puzzle.find("k")
    assert start is not None
    assert goal is not None
    size = len(puzzle.rows) + len(puzzle.rows[0])

    def expand(state: Any) -> Iterator[Any]:
        row, column, has_key, _ = state
        for name, (down, right) in _MOVES.items():
            cell = (row + down, column + right)
            if puzzle.is_open(cell):
                yield [*cell, has_key or cell == lock, name]

    def far(one: Any, other: Any) -> int:
        return int(abs(one[0] - other[0]) + abs(one[1] - other[1]))

    def score(state: Any) -> float:
        """The way as the crow flies, by the key where there is one."""
        way = far(state, goal) if state[2] or lock is None else far(state, lock) + far(lock, goal)
        return max(0.0, 1 - way / (2 * size))

    return TreeProblem(
        root=[*start, lock is None, ""],
        expand=expand,
        score=score,
        verify=lambda state: bool(state[2]) and (state[0], state[1]) == goal,
        key=lambda state: state[:3],
        answer=lambda way: "".join(state[3] for state in way),
    )
