"""A coding agent over a small repository: files, tests, errors, edits, and acceptance tests that really run.

A task is a repository of a few generated modules, one of which has a bug. The agent runs the tests and sees what pytest
would print, opens the file, makes one of four changes to the line, runs the tests again, and makes another change if
they still fail. Two or more changes make the tests pass. Which of them the project wants (a default, or an error that
says so …) depends on the error and on the folder, stands nowhere, and is held by acceptance tests that the agent does
not see. They compare what the module does with what it should do; the sources are executed. Half way the project
changes its mind.

A run costs the calls it makes. Some acceptance runs fail for reasons of their own (`FLAKY`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple

from benchmarks.learning.families import Call, Choose, Given, Played, Shares
from benchmarks.learning.reading import Slot

__all__ = ["BUGS", "CHANGES", "PIECES", "Bug", "Code", "make_code", "mended", "outcome_of"]

CHANGES = ("use_default", "raise_error", "convert_type", "shift_index")
FLAKY = 0.08
TRIES = 2
FOLDERS = ("core", "api", "jobs", "views")
WORDS = ("price", "stock", "seat", "quota", "badge", "route", "shift", "grant", "tariff", "lease")


class Bug(NamedTuple):
    """A line that breaks on some input, and what each change makes of it."""

    error: str
    message: str
    line: str
    changed: Mapping[str, str]
    inputs: tuple[tuple[Any, ...], ...]
    """Arguments of the acceptance tests; the first of them is what the visible test calls with."""


_CHECK = "if not ({}):\n        raise ValueError(item)\n    "
BUGS: Mapping[str, Bug] = {
    bug.error: bug
    for bug in (
        Bug(
            "KeyError", "'b'", "value = held[item]",
            {
                "use_default": "value = held.get(item, 0)",
                "raise_error": _CHECK.format("item in held") + "value = held[item]",
                "convert_type": "value = held[str(item)]",
                "shift_index": "value = held[item[:1]]",
            },
            (({"a": 3}, "b"), ({"a": 3}, "a"), ({}, "c")),
        ),
        Bug(
            "TypeError", "unsupported operand type(s) for +: 'int' and 'str'", "value = held + item",
            {
                "use_default": "value = held + (item if isinstance(item, int) else 0)",
                "raise_error": _CHECK.format("isinstance(item, int)") + "value = held + item",
                "convert_type": "value = held + int(item)",
                "shift_index": "value = held + item[-1:]",
            },
            ((4, "3"), (4, 3), (1, "12")),
        ),
        Bug(
            "IndexError", "list index out of range", "value = held[item]",
            {
                "use_default": "value = held[item] if item < len(held) else 0",
                "raise_error": _CHECK.format("item < len(held)") + "value = held[item]",
                "convert_type": "value = held[int(item)]",
                "shift_index": "value = held[item - 1]",
            },
            (([5, 6], 2), ([5, 6], 1), ([7], 1)),
        ),
        Bug(
            "ZeroDivisionError", "division by zero", "value = held / item",
            {
                "use_default": "value = held / item if item else 0",
                "raise_error": _CHECK.format("item") + "value = held / item",
                "convert_type": "value = float(held) / float(item)",
                "shift_index": "value = held / (item + 1)",
            },
            ((6, 0), (6, 3), (0, 0)),
        ),
    )
}  # fmt: skip
"""By the error that the tests show."""
PIECES: Mapping[str, Mapping[str, str]] = {
    "KeyError": {
        "use_default": "held.get(item", "raise_error": "raise ValueError", "convert_type": "held[str(item)]",
        "shift_index": "held[item[:1]]",
    },
    "TypeError": {
        "use_default": "else 0)", "raise_error": "raise ValueError", "convert_type": "held + int(item)",
        "shift_index": "held + item[-1:]",
    },
    "IndexError": {
        "use_default": "else 0", "raise_error": "raise ValueError", "convert_type": "held[int(item)]",
        "shift_index": "held[item - 1]",
    },
    "ZeroDivisionError": {
        "use_default": "if item else 0", "raise_error": "raise ValueError", "convert_type": "float(held)",
        "shift_index": "(item + 1)",
    },
}  # fmt: skip
"""A piece of what each change writes: the agent knows by it which change a line of code is."""


def source_of(name: str, line: str) -> str:
    return f'"""Reads one {name}."""\n\n\ndef read_{name}(held, item):\n    {line}\n    return value\n'


def outcome_of(source: str, name: str, inputs: tuple[Any, ...]) -> str:
    """What the module answers, or the name of what it raises: it is run."""
    space: dict[str, Any] = {}
    exec(compile(source, f"{name}.py", "exec"), space)  # templates of this file
    try:
        return repr(space[f"read_{name}"](*inputs))
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        return type(error).__name__


@cache
def mended(error: str, change: str) -> tuple[bool, tuple[str, ...]]:
    """Do the visible tests pass with the change, and what does it do on the inputs of the acceptance tests?"""
    bug = BUGS[error]
    source = source_of("value", bug.changed[change])
    done = tuple(outcome_of(source, "value", inputs) for inputs in bug.inputs)
    return done[0] != error, done


class Code:
    """The family: which change is right, by error and folder, in A and in B."""

    kind = "code"
    domain = "code"

    def __init__(self, seed: str) -> None:
        random = Random(f"{seed} code")
        self.name = f"{random.choice(WORDS)}-service"
        errors, folders = tuple(random.sample(sorted(BUGS), 2)), tuple(random.sample(FOLDERS, 2))
        self.values: Mapping[str, tuple[str, ...]] = {"error": errors, "folder": folders}
        odds = [1.0] * len(CHANGES)
        also = tuple((words, change) for error in errors for change, words in PIECES[error].items())
        self.slots: tuple[Slot, ...] = (Slot("way", "argument", CHANGES, tuple(odds), also=also),)
        self._passing = {error: [each for each in CHANGES if mended(error, each)[0]] for error in errors}
        self._rights: tuple[dict[tuple[str, str], str], ...] = ({}, {})
        for error in errors:
            for folder in folders:
                first, second = random.sample(self._passing[error], 2)
                self._rights[0][error, folder], self._rights[1][error, folder] = first, second

    def task(self, draws: str) -> Given:
        random = Random(f"{draws} task")
        seen = {name: random.choice(values) for name, values in self.values.items()}
        module = random.choice(WORDS)
        text = f"The tests of {module} fail since commit {random.randrange(16**7):07x}. Mend them."
        return Given(self.name, text, False, seen, {}, draws)

    def leaning(self, slot: Slot, _given: Given, /) -> Sequence[float]:
        return slot.odds

    def right(self, given: Given, segment: int) -> str | None:
        return self._rights[1 if segment == 1 else 0][given.seen["error"], given.seen["folder"]]

    def situations(self) -> Iterator[tuple[float, Given]]:
        for error in self.values["error"]:
            for folder in self.values["folder"]:
                yield 0.25, Given(self.name, "", False, {"error": error, "folder": folder}, {}, "")

    def _accepted(self, given: Given, segment: int, change: str) -> bool:
        error, right = given.seen["error"], self.right(given, segment)
        assert right is not None
        return mended(error, change)[1] == mended(error, right)[1]

    def expected(self, given: Given, segment: int, shares: Shares) -> float:
        """Of the first change that makes the visible tests pass, within the tries: is it the one that is wanted?"""
        error = given.seen["error"]
        wanted = {each: self._accepted(given, segment, each) for each in CHANGES}
        visible = {each: each in self._passing[error] for each in CHANGES}
        rate = 0.0
        odds = dict(zip(CHANGES, shares["way"], strict=True))
        for first, share in odds.items():
            if visible[first]:
                rate += share * wanted[first]
                continue
            rest = {each: odd for each, odd in odds.items() if each != first}
            rate += share * sum(odd * wanted[each] for each, odd in rest.items()) / sum(rest.values())
        return rate * (1 - FLAKY)

    def play(self, given: Given, segment: int, choose: Choose, random: Random) -> Played:
        error, folder = given.seen["error"], given.seen["folder"]
        module = given.text.split()[3]
        path, bug = f"{folder}/{module}.py", BUGS[error]
        line = source_of(module, bug.line).splitlines().index(f"    {bug.line}") + 1
        calls = [
            Call("run_tests", {"path": "tests"}, failing(path, module, line, bug, error), False),
            Call("open_file", {"path": path}, source_of(module, bug.line)),
        ]
        left, change, shown = list(CHANGES), "", error
        for _ in range(TRIES):
            change = choose(self.slots[0], left)
            left.remove(change)
            source = source_of(module, bug.changed[change])
            calls.append(Call("edit_file", {"path": path, "change": change}, _diff(path, bug, change)))
            shown = outcome_of(source, module, bug.inputs[0])
            if shown != error:
                calls.append(Call("run_tests", {"path": "tests"}, f"tests/test_{module}.py ...\n3 passed in 0.04s"))
                break
            calls.append(Call("run_tests", {"path": "tests"}, failing(path, module, line, bug, error), False))
        passed = self._accepted(given, segment, change) and random.random() >= FLAKY
        return Played(tuple(calls), {"way": change}, passed)


def make_code(seed: str) -> Code:
    return Code(seed)


# -- what is printed ----------------------------------------------------------------------------------


def failing(path: str, module: str, line: int, bug: Bug, error: str) -> str:
    """What pytest prints of one failing test."""
    called = ", ".join(map(repr, bug.inputs[0]))
    return (
        f"tests/test_{module}.py ..F\n\n"
        "=================================== FAILURES ===================================\n"
        f"____________________________ test_read_{module}_edge _____________________________\n\n"
        f"    def test_read_{module}_edge():\n>       read_{module}({called})\n\n"
        f"tests/test_{module}.py:14:\n"
        "_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _\n\n"
        f">   {bug.line}\nE   {error}: {bug.message}\n\n{path}:{line}: {error}\n"
        "=========================== short test summary info ============================\n"
        f"FAILED tests/test_{module}.py::test_read_{module}_edge - {error}: {bug.message}\n"
        "1 failed, 2 passed in 0.06s"
    )


def _diff(path: str, bug: Bug, change: str) -> str:
    added = "\n".join(f"+    {each.strip()}" for each in bug.changed[change].splitlines())
    return f"--- a/{path}\n+++ b/{path}\n-    {bug.line}\n{added}"
