"""Puzzles that can be checked, and ways to try them: numbers, string programs, small grids.

A family says how its puzzles are made. A strategy is one way to make a try; which one suits a family is written nowhere
but in how the puzzles are made. Everything is drawn from a `Random` that is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Protocol

__all__ = ["FAMILIES", "STRATEGIES", "Puzzle", "make_puzzle", "read_puzzle"]


class Puzzle(Protocol):
    """A puzzle as its text tells it."""

    @property
    def domain(self) -> str: ...

    @property
    def text(self) -> str: ...

    def attempt(self, strategy: str, random: Random) -> str:
        """One try, as an answer."""

    def solves(self, answer: str) -> bool: ...


# -- numbers ------------------------------------------------------------------------------------------

_STEPS: Mapping[str, str] = {"adding": "+-", "multiplying": "**+", "dividing": "//*+", "anything": "+-*/"}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Reach a target with every number once."""

    numbers: tuple[int, ...]
    target: int
    domain: str = "numbers"

    @property
    def text(self) -> str:
        return f"numbers: reach {self.target} with {' '.join(map(str, self.numbers))}, each once"

    def attempt(self, strategy: str, random: Random) -> str:
        return _combine(self.numbers, _STEPS[strategy], random)[0]

    def solves(self, answer: str) -> bool:
        values: list[tuple[Fraction, tuple[int, ...]]] = []
        for word in answer.split():  # an expression in postfix
            if word in "+-*/":
                if len(values) < 2:
                    return False
                (right, used), (left, others) = values.pop(), values.pop()
                if word == "/" and not right:
                    return False
                values.append((_value(left, word, right), (*others, *used)))
            elif word.isdecimal():
                values.append((Fraction(int(word)), (int(word),)))
            else:
                return False
        return len(values) == 1 and values[0][0] == self.target and sorted(values[0][1]) == sorted(self.numbers)


def _value(left: Fraction, sign: str, right: Fraction) -> Fraction:
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return left / right


def _combine(numbers: tuple[int, ...], signs: str, random: Random) -> tuple[str, Fraction]:
    """Two of the numbers at a time, by one of the signs, until one is left: in postfix, with its value."""
    left = [(str(number), Fraction(number)) for number in numbers]
    while len(left) > 1:
        random.shuffle(left)
        (one, a), (other, b) = left.pop(), left.pop()
        sign = random.choice(signs)
        if sign == "/" and (not b or (a / b).denominator != 1):
            sign = "*" if "*" in signs else "+"
        left.append((f"{one} {other} {sign}", _value(a, sign, b)))
    return left[0]


def _numbers(strategy: str, count: int) -> Callable[[Random], Puzzle]:
    """Puzzles whose target was reached by such steps, and lies far from what the other steps reach."""

    def make(random: Random) -> Puzzle:
        while True:
            numbers = tuple(random.randint(2, 25) for _ in range(count))
            answer, target = _combine(numbers, _STEPS[strategy], random)
            known = {"adding": "*" not in answer and "/" not in answer, "dividing": "/" in answer}
            if target.denominator == 1 and 0 < target < 100_000 and known.get(strategy, answer.count("*") >= count - 2):
                return Numbers(numbers, int(target))

    return make


# -- programs on strings ------------------------------------------------------------------------------

_VOWELS = "aeiou"
_OPERATIONS: Mapping[str, Callable[[str], str]] = {
    "reverse": lambda text: text[::-1],
    "rotate": lambda text: text[1:] + text[:1],
    "sort": lambda text: "".join(sorted(text)),
    "swap": lambda text: text[len(text) // 2 :] + text[: len(text) // 2],
    "shift": lambda text: "".join(chr((ord(each) - 96) % 26 + 97) for each in text),
    "mirror": lambda text: "".join(chr(219 - ord(each)) for each in text),
    "vowels": lambda text: "".join("z" if each in _VOWELS else each for each in text),
    "evens": lambda text: "".join("q" if place % 2 else each for place, each in enumerate(text)),
    "double": lambda text: "".join(each * 2 for each in text),
    "behead": lambda text: text[1:],
    "curtail": lambda text: text[:-1],
    "repeat": lambda text: text + text,
}
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "ordering": ("reverse", "rotate", "sort", "swap"),
    "lettering": ("shift", "mirror", "vowels", "evens"),
    "sizing": ("double", "behead", "curtail", "repeat"),
    "everything": tuple(_OPERATIONS),
}


@dataclass(frozen=True, slots=True)
class Strings:
    """Find operations that turn each word into its other."""

    pairs: tuple[tuple[str, str], ...]
    length: int
    domain: str = "strings"

    @property
    def text(self) -> str:
        return f"strings: {self.length} steps that turn " + ", ".join(f"{one} into {two}" for one, two in self.pairs)

    def attempt(self, strategy: str, random: Random) -> str:
        return " ".join(random.choices(_GROUPS[strategy], k=self.length))

    def solves(self, answer: str) -> bool:
        names = answer.split()
        if len(names) != self.length or not set(names) <= _OPERATIONS.keys():
            return False
        return all(_apply(names, one) == two for one, two in self.pairs)


def _apply(names: list[str], text: str) -> str:
    for name in names:
        text = _OPERATIONS[name](text)
    return text


def _strings(strategy: str) -> Callable[[Random], Puzzle]:
    def make(random: Random) -> Puzzle:
        while True:
            names = random.choices(_GROUPS[strategy], k=2)
            words = ["".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(3)]
            pairs = tuple((word, _apply(names, word)) for word in words)
            if all(one != two for one, two in pairs):
                return Strings(pairs, 2)

    return make


# -- grids --------------------------------------------------------------------------------------------

_MOVES = {"u": (-1, 0), "d": (1, 0), "l": (0, -1), "r": (0, 1)}
_WAYS = ("heading", "hugging", "fetching", "wandering")
_WALK = 48
_STRAY = 0.15
"""How often a walk takes a step of its own will."""
Cell = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Grid:
    """Walk from s to g around walls; with a key k, only by way of it."""

    rows: tuple[str, ...]
    domain: str = "grid"

    @property
    def text(self) -> str:
        return "grid: walk from s to g (k first, where there is one) in " + "/".join(self.rows)

    def find(self, mark: str) -> Cell | None:
        return next(((r, row.index(mark)) for r, row in enumerate(self.rows) if mark in row), None)

    def is_open(self, cell: Cell) -> bool:
        row, column = cell
        return 0 <= row < len(self.rows) and 0 <= column < len(self.rows[0]) and self.rows[row][column] != "#"

    def attempt(self, strategy: str, random: Random) -> str:
        return _walk(self, strategy, random)

    def solves(self, answer: str) -> bool:
        at, key = self.find("s"), self.find("k")
        has_key = key is None
        for letter in answer:
            step = _MOVES.get(letter)
            if at is None or step is None:
                return False
            at = (at[0] + step[0], at[1] + step[1])
            if not self.is_open(at):
                return False
            has_key = has_key or at == key
            if has_key and at == self.find("g"):
                return True
        return False


def _walk(grid: Grid, strategy: str, random: Random) -> str:
    start, goal, key = grid.find("s"), grid.find("g"), grid.find("k")
    assert start is not None
    assert goal is not None
    at, facing, path = start, "r", ""
    towards = key if strategy == "fetching" and key is not None else goal
    while len(path) < _WALK:
        ways = [name for name, (r, c) in _MOVES.items() if grid.is_open((at[0] + r, at[1] + c))]
        if not ways:  # walled in: nobody solves it
            break
        if strategy == "wandering" or random.random() < _STRAY:
            facing = random.choice(ways)
        elif strategy == "hugging":
            facing = _by_the_wall(facing, ways)
        else:
            facing = min(ways, key=lambda name: (_far(at, name, towards), name))
        at = (at[0] + _MOVES[facing][0], at[1] + _MOVES[facing][1])
        path += facing
        if at == towards and towards != goal:
            towards = goal
        elif at == goal and (key is None or strategy != "fetching"):
            break
    return path


def _by_the_wall(facing: str, ways: list[str]) -> str:
    """Right if it can, else straight on, else left, else back."""
    turns = "urdl"
    at = turns.index(facing)
    return next(name for name in (turns[(at + turn) % 4] for turn in (1, 0, 3, 2)) if name in ways)


def _far(at: Cell, name: str, towards: Cell) -> int:
    row, column = at[0] + _MOVES[name][0], at[1] + _MOVES[name][1]
    return abs(row - towards[0]) + abs(column - towards[1])


def _open_field(random: Random) -> Puzzle:
    return _grid(random, walls=random.randint(2, 5))


def _locked(random: Random) -> Puzzle:
    return _grid(random, walls=random.randint(2, 5), marks="sgk")


def _grid(random: Random, *, walls: int, marks: str = "sg") -> Puzzle:
    cells = [(row, column) for row in range(7) for column in range(7)]
    chosen = random.sample(cells, walls + len(marks))
    drawn = dict(zip(chosen, marks + "#" * walls, strict=True))
    return Grid(tuple("".join(drawn.get((row, column), ".") for column in range(7)) for row in range(7)))


def _corridors(random: Random) -> Puzzle:
    """Walls from side to side with a gap at alternate ends: what lies nearest is a dead end."""
    rows = [["." for _ in range(7)] for _ in range(7)]
    end = random.choice((0, 6))
    for row in (1, 3, 5):
        rows[row] = ["#"] * 7
        rows[row][end] = "."
        end = 6 - end
    rows[0][end if random.random() < 0.5 else 3] = "s"
    rows[6][random.choice((1, 3, 5))] = "g"
    return Grid(tuple("".join(row) for row in rows))


# -- families -----------------------------------------------------------------------------------------

STRATEGIES: Mapping[str, tuple[str, ...]] = {"numbers": tuple(_STEPS), "strings": tuple(_GROUPS), "grid": _WAYS}
FAMILIES: Mapping[str, Callable[[Random], Puzzle]] = {
    "numbers/sums": _numbers("adding", 4),
    "numbers/products": _numbers("multiplying", 4),
    "strings/orders": _strings("ordering"),
    "strings/letters": _strings("lettering"),
    "grid/fields": _open_field,
    "grid/corridors": _corridors,
    "numbers/quotients": _numbers("dividing", 4),
    "strings/sizes": _strings("sizing"),
    "grid/locked": _locked,
}


def make_puzzle(family: str, random: Random) -> Puzzle:
    return FAMILIES[family](random)


def read_puzzle(text: str) -> Puzzle:
    """A puzzle from its text: what an agent does that is handed one."""
    domain, _, rest = text.partition(": ")
    match domain:
        case "numbers":
            words = rest.replace(",", "").split()
            return Numbers(tuple(int(word) for word in words[3:-2]), int(words[1]))
        case "strings":
            pairs = tuple(tuple(pair.split(" into ", 1)) for pair in rest.partition("turn ")[2].split(", "))
            return Strings(pairs, int(rest.split()[0]))  # type: ignore[arg-type]
        case _:
            return Grid(tuple(rest.rsplit(" ", 1)[1].split("/")))
