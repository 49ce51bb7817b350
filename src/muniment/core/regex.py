"""User-written regular expressions, searched in time linear in the text.

The syntax is Python's without features that defeat linear search: back references, look-around, possessive and atomic
groups, conditionals. Where the worst that backtracking could do is small, `re` searches; otherwise the pattern runs as
an automaton built as the text is read. Both find the same; the automaton reports the earliest end of a match. Limits
are counted in steps, not in seconds: the same pattern and text give the same answer on every machine. Why no library
does this is in `docs/decisions/0014-linear-patterns.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from muniment.core.limits import checkpoint, remembered
from muniment.errors import InvalidInput, TooLarge

__all__ = ["PROGRAM_MAX", "STEPS_MAX", "Pattern", "compile_pattern"]

PROGRAM_MAX = 2000
"""Instructions of a pattern once its counted repeats are written out."""
STEPS_MAX = 3_000_000
"""Steps of an automaton over one text."""

_BACKTRACKING_MAX = 1_000_000.0
_STATES_MAX = 2000
_SYMBOLS_MAX = 4096
_MATCH = -1

# Neighbours of a place between two characters.
_EDGE, _WORD, _LINE, _LAST_LINE, _OTHER = range(5)


@remembered(512)
def compile_pattern(source: str, ignore_case: bool = False) -> Pattern:
    """Compile a pattern; raises `InvalidInput` for one that is invalid or not linear."""
    tree = parse_pattern(source, ignore_case)
    try:
        compiled = re.compile(source, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError) as error:
        raise InvalidInput(f"not a regular expression: {error}", path="$") from None
    return Pattern(tree, compiled)


class Pattern:
    """A compiled pattern. `search` returns the end of a match, or None where there is none."""

    def __init__(self, tree: Node, compiled: re.Pattern[str]) -> None:
        self._tree = tree
        self._compiled = compiled
        self._automaton = _Automaton(_Program(tree))

    def search(self, text: str) -> int | None:
        work, _ = _worst(self._tree, len(text) + 1)
        if work * (len(text) + 1) <= _BACKTRACKING_MAX:
            found = self._compiled.search(text)
            return None if found is None else found.end()
        return self._automaton.search(text)


def _worst(node: Node, length: int) -> tuple[float, float]:
    """Return the most steps backtracking could take from one place, and the most ways it could continue from there."""
    if isinstance(node, Sequence):
        work, ways = 1.0, 1.0
        for item in node.items:
            more, branches = _worst(item, length)
            work += ways * more
            ways *= branches
        return work, ways
    if isinstance(node, Alternatives):
        worst = [_worst(item, length) for item in node.items]
        return sum(work for work, _ in worst) + 1, sum(ways for _, ways in worst)
    if isinstance(node, Repeat):
        work, ways = _worst(node.item, length)
        most = length if node.most is None else min(node.most, length)
        if ways == 1:
            return most * work + 1, float(max(1, most - node.least + 1))
        if most > 64 or ways**most > 1e12:
            return 1e18, 1e18
        return work * sum(ways**turn for turn in range(most + 1)), sum(ways**turn for turn in range(most + 1))
    return 1.0, 1.0


# -- the program --------------------------------------------------------------------------------------


class _Step(NamedTuple):
    """An instruction: consume a character of `atom`, pass an `anchor`, or continue at each of `to`."""

    to: tuple[int, ...]
    atom: int | None = None
    anchor: str | None = None


class _Program:
    """A pattern as instructions, last to first, so that each knows where it continues."""

    def __init__(self, tree: Node) -> None:
        self.steps: list[_Step] = []
        self.atoms: list[re.Pattern[str]] = []
        self._atom_numbers: dict[Atom, int] = {}
        self.start = self._build(tree, _MATCH)

    def _add(self, step: _Step) -> int:
        if len(self.steps) >= PROGRAM_MAX:
            raise InvalidInput("the pattern is too large", path="$", hint="repeat less, or split it into several")
        self.steps.append(step)
        return len(self.steps) - 1

    def _build(self, node: Node, to: int) -> int:
        if isinstance(node, Sequence):
            for item in reversed(node.items):
                to = self._build(item, to)
            return to
        if isinstance(node, Alternatives):
            return self._add(_Step(tuple(self._build(item, to) for item in node.items)))
        if isinstance(node, Anchor):
            return self._add(_Step((to,), anchor=node.kind))
        if isinstance(node, Atom):
            number = self._atom_numbers.setdefault(node, len(self.atoms))
            if number == len(self.atoms):
                self.atoms.append(re.compile(node.source, node.flags))
            return self._add(_Step((to,), atom=number))
        return self._repeat(node, to)

    def _repeat(self, node: Repeat, to: int) -> int:
        if node.most is None:
            loop = self._add(_Step(()))
            self.steps[loop] = _Step((self._build(node.item, loop), to))
            to = loop
        else:
            end = to
            for _ in range(node.most - node.least):
                to = self._add(_Step((self._build(node.item, to), end)))
        for _ in range(node.least):
            to = self._build(node.item, to)
        return to


# -- the automaton ------------------------------------------------------------------------------------


class _State(NamedTuple):
    """The program's position before a character, and the kind of character before that."""

    at: frozenset[int]
    before: int


_UNKNOWN = _State(frozenset((_MATCH,)), _EDGE)


class _Automaton:
    """Runs a program over a text, caching transitions by state and character.

    The cache affects speed alone, and is cleared when it grows. Threads may share it: each entry is written whole, and
    always the same.
    """

    def __init__(self, program: _Program) -> None:
        self.program = program
        self.symbols: dict[str, tuple[int, int]] = {}
        self.moves: dict[tuple[_State, tuple[int, int]], _State | None] = {}

    def search(self, text: str) -> int | None:
        state: _State | None = _State(frozenset(), _EDGE)
        steps, last, moves = 0, len(text) - 1, self.moves
        for at, char in enumerate(text):
            assert state is not None
            symbol = self.symbols.get(char) or self._symbol(char)
            if at == last and char == "\n":
                symbol = (symbol[0], _LAST_LINE)
            key = (state, symbol)
            known = moves.get(key, _UNKNOWN)
            if known is not _UNKNOWN:
                state = known
            else:
                checkpoint()
                state, cost = self._move(state, symbol)
                steps += cost
                if steps > STEPS_MAX:
                    raise TooLarge("the pattern takes too many steps on this text", hint="a simpler pattern")
                if len(moves) >= _STATES_MAX:
                    moves = self.moves = {}
                moves[key] = state
            if state is None:
                return at
        assert state is not None
        return len(text) if self._move(state, (0, _EDGE))[0] is None else None

    def _symbol(self, char: str) -> tuple[int, int]:
        """Return the atoms that match this character, as bits, and its kind as a neighbour."""
        mask = sum(1 << number for number, atom in enumerate(self.program.atoms) if atom.match(char))
        kind = _LINE if char == "\n" else _WORD if char.isalnum() or char == "_" else _OTHER
        if len(self.symbols) >= _SYMBOLS_MAX:
            self.symbols = {}
        self.symbols[char] = (mask, kind)
        return mask, kind

    def _move(self, state: _State, symbol: tuple[int, int]) -> tuple[_State | None, int]:
        """Return the state after a character, None once there is a match, and the cost of computing it."""
        mask, after = symbol
        seen: set[int] = set()
        todo = [self.program.start, *state.at]
        reached: set[int] = set()
        while todo:
            number = todo.pop()
            if number == _MATCH:
                return None, len(seen) + 1
            if number in seen:
                continue
            seen.add(number)
            step = self.program.steps[number]
            if step.atom is not None:
                if mask >> step.atom & 1:
                    reached.add(step.to[0])
            elif step.anchor is None or _holds(step.anchor, state.before, after):
                todo.extend(step.to)
        before = _LINE if after == _LAST_LINE else after
        return _State(frozenset(reached), before), len(seen) + 1


_BEFORE = {"start": (_EDGE,), "line_start": (_EDGE, _LINE)}
_AFTER = {"end": (_EDGE,), "end_or_last_line": (_EDGE, _LAST_LINE), "line_end": (_EDGE, _LINE, _LAST_LINE)}
"""Neighbours that an anchor requires before its place, or after it."""


def _holds(anchor: str, before: int, after: int) -> bool:
    if anchor in _BEFORE or anchor in _AFTER:
        return before in _BEFORE.get(anchor, (before,)) and after in _AFTER.get(anchor, (after,))
    is_edge = (before == _WORD) != (after == _WORD)
    if anchor == "word_edge":
        return is_edge
    return not is_edge and not before == after == _EDGE  # an empty text has neither, as `re` has it


# -- the structure of a pattern -----------------------------------------------------------------------

# Groups, alternatives, repeats and anchors alone. What a single character, escape or class takes is left to `re`, from
# the very words of the pattern.

PATTERN_CHARS_MAX = 1000
DEPTH_MAX = 30
REPEAT_MAX = 1000

_COUNTED = re.compile(r"\{(\d*)(,?)(\d*)\}")
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|N\{[^}]*\}|.)", re.DOTALL)
_GROUP = re.compile(r"\((?:\?(?:P<(\w+)>|([ims]*)(?:-([ims]+))?:))?")
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_SET_SYNTAX = re.compile(r"\[|--|&&|~~|\|\|")
_FLAG_BITS = {"i": re.IGNORECASE.value, "m": re.MULTILINE.value, "s": re.DOTALL.value}


@dataclass(frozen=True, slots=True)
class Atom:
    """Matches one character: its source in the pattern, and its flags."""

    source: str
    flags: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """Matches a position, without a character."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    item: Node
    least: int
    most: int | None


Node = Atom | Anchor | Sequence | Alternatives | Repeat


def parse_pattern(source: str, ignore_case: bool = False) -> Node:
    """Parse a pattern; raises `InvalidInput` for one that is invalid or cannot be searched in linear time."""
    if len(source) > PATTERN_CHARS_MAX:
        raise TooLarge(f"a pattern of more than {PATTERN_CHARS_MAX} characters", path="$", hint="split it into several")
    flags = re.IGNORECASE.value if ignore_case else 0
    parser = _Parser(source)
    found = _FLAGS.match(source)
    if found is not None:
        flags |= sum(_FLAG_BITS[letter] for letter in set(found[1]))
        parser.at = found.end()
    node = parser.alternatives(flags, 0)
    if parser.at < len(source):
        raise parser.wrong("an unbalanced parenthesis")
    return node


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0

    def wrong(self, what: str, hint: str | None = None) -> InvalidInput:
        return InvalidInput(f"not a regular expression we search: {what} at {self.at}", path="$", hint=hint)

    def peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def alternatives(self, flags: int, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise self.wrong(f"groups nested deeper than {DEPTH_MAX}")
        items = [self.sequence(flags, depth)]
        while self.peek() == "|":
            self.at += 1
            items.append(self.sequence(flags, depth))
        return items[0] if len(items) == 1 else Alternatives(tuple(items))

    def sequence(self, flags: int, depth: int) -> Node:
        items: list[Node] = []
        while (char := self.peek()) and char not in "|)":
            items.append(self.repeated(self.item(char, flags, depth)))
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def item(self, char: str, flags: int, depth: int) -> Node:
        if char == "(":
            return self.group(flags, depth)
        if char == "[":
            return Atom(self.character_class(), flags)
        if char == "\\":
            return self.escape(flags)
        if char in "*+?":
            raise self.wrong("nothing to repeat")
        self.at += 1
        if char == "^":
            return Anchor("line_start" if flags & re.MULTILINE else "start")
        if char == "$":
            return Anchor("line_end" if flags & re.MULTILINE else "end_or_last_line")
        return Atom(char if char == "." else re.escape(char), flags)

    def group(self, flags: int, depth: int) -> Node:
        found = _GROUP.match(self.source, self.at)
        if found is None or (found[0] == "(" and self.source.startswith("(?", self.at)):
            hint = "say it as two constraints, one present and one absent: look-around and the like are not linear"
            raise self.wrong("a group of a kind that is not searched", hint)
        for letter in found[2] or "":
            flags |= _FLAG_BITS[letter]
        for letter in found[3] or "":
            flags &= ~_FLAG_BITS[letter]
        self.at = found.end()
        node = self.alternatives(flags, depth + 1)
        if self.peek() != ")":
            raise self.wrong("a group that does not end")
        self.at += 1
        return Sequence((node,)) if isinstance(node, Anchor) else node  # an anchor in a group may be repeated

    def character_class(self) -> str:
        start = self.at
        self.at += 2 if self.source.startswith("[^", start) else 1
        first = self.at
        while (char := self.peek()) != "]" or self.at == first:
            if not char:
                raise self.wrong("a class that does not end")
            if _SET_SYNTAX.match(self.source, self.at):
                raise self.wrong("a class with signs that will mean something else one day", "escape it with \\")
            self.at += len(self._escaped()) if char == "\\" else 1
        self.at += 1
        return self.source[start : self.at]

    def escape(self, flags: int) -> Node:
        taken = self._escaped()
        if taken[1].isdigit():
            raise self.wrong("a back reference", "write the text again: back references are not linear")
        self.at += len(taken)
        anchors = {"A": "start", "Z": "end", "b": "word_edge", "B": "no_word_edge"}
        if taken[1] in anchors:
            return Anchor(anchors[taken[1]])
        return Atom(taken, flags)

    def _escaped(self) -> str:
        found = _ESCAPE.match(self.source, self.at)
        if found is None:
            raise self.wrong("an escape of nothing")
        return found[0]

    def repeated(self, node: Node) -> Node:
        least, most = self.count()
        if (least, most) == (1, 1):
            return node
        if isinstance(node, Anchor):
            raise self.wrong("a repeated anchor")
        if self.peek() == "?":
            self.at += 1  # lazy or not, it matches the same texts
        if self.peek() == "+":
            raise self.wrong("a possessive repeat", "leave out the last +")
        if self.peek() in ("*", "?") or self.count() != (1, 1):
            raise self.wrong("a repeat of a repeat")
        return Repeat(node, least, most)

    def count(self) -> tuple[int, int | None]:
        char = self.peek()
        if char and char in "*+?":
            self.at += 1
            return (1 if char == "+" else 0), (1 if char == "?" else None)
        found = _COUNTED.match(self.source, self.at) if char == "{" else None
        if found is None or not (found[1] or found[3]):
            return 1, 1
        self.at = found.end()
        least = int(found[1] or 0)
        most = (int(found[3]) if found[3] else None) if found[2] else least
        if max(least, most or 0) > REPEAT_MAX:
            raise self.wrong(f"a repeat of more than {REPEAT_MAX}")
        if most is not None and most < least:
            raise self.wrong("a repeat that ends before it begins")
        return least, most
