"""Mutation sample: do the tests of a room notice when one of its functions is changed in one place?

    python tools/mutants.py store rules --sample 20 --seed 7

The tests of the room run once under a profiler that records which test enters which function. Then each sampled mutant
runs in a copy of the sources against the tests that enter its function, the most specific first, until one fails. A
mutant is caught, survives, or is untested where no test enters its function. Survivors are printed as a diff and
written, with all others, to build/mutants.json. The same seed and sources give the same sample.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "muniment"
OUT = ROOT / "build" / "mutants.json"
TESTS = {
    "contracts": ("tests/conformance", "tests/unit/packets"),
    "integrations": ("tests/integrations",),
    "surfaces": ("tests/unit/surfaces", "tests/surfaces", "tests/http"),
    "testing": ("tests/simulator", "tests/contract/test_engines.py"),
}
"""The tests of a room that has no folder of its own in tests/unit."""
TESTS_TRIED = 40
"""How many tests a mutant is tried on: those that enter the fewest functions beside the mutated one."""
RUN_SECONDS_MAX = 300
NO_TESTS = 5
"""The exit code of pytest where it collected nothing."""
_PLUGIN = "mutants"


def main() -> None:
    rooms = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"some of {', '.join(rooms)}; all by default")
    parser.add_argument("--sample", type=int, default=20, help="mutants per room (default 20)")
    parser.add_argument("--seed", default="0", help="another seed draws another sample")
    parser.add_argument("--tests", nargs="+", help="test files or folders, instead of those of the room")
    given = parser.parse_args()
    if unknown := sorted(set(given.rooms) - set(rooms)):
        parser.error(f"no such room: {', '.join(unknown)}")
    found: list[dict[str, Any]] = []
    for room in given.rooms or rooms:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            results = try_room(Path(folder), room, given.tests or tests_of(room), given.sample, given.seed)
        found += results
        counts = Counter(result["outcome"] for result in results)
        print(f"{room}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())), flush=True)
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps({"seed": given.seed, "sample": given.sample, "mutants": found}, indent=1))


def tests_of(room: str) -> tuple[str, ...]:
    return TESTS.get(room) or (f"tests/unit/{room}",)


def try_room(
    folder: Path, room: str, tests: tuple[str, ...] | list[str], count: int, seed: str
) -> list[dict[str, Any]]:
    """Sample the mutants of a room and try each; answers one row per mutant."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    mutants = [each for path in sorted((PACKAGE / room).rglob("*.py")) for each in mutants_of(path)]
    chosen = random.Random(f"{seed} {room}").sample(mutants, min(count, len(mutants)))
    entered = trace(folder, tests)
    breadth = Counter(test for names in entered.values() for test in names)
    results = []
    for mutant in chosen:
        nearest = sorted(entered.get(mutant.function_key, ()), key=lambda test: (breadth[test], test))[:TESTS_TRIED]
        outcome = try_mutant(folder, mutant, nearest) if nearest else "untested"
        if outcome != "caught":
            print(f"{outcome.upper()} {mutant.path}:{mutant.line} in {mutant.function}\n{mutant.diff()}", flush=True)
        results.append({"room": room, "outcome": outcome, "tests": len(nearest), **asdict(mutant)})
    return results


def try_mutant(folder: Path, mutant: Mutant, tests: list[str]) -> str:
    path = folder / mutant.path
    source = path.read_text("utf-8")
    path.write_text(mutant.applied(source), "utf-8")
    try:
        code = run_tests(folder, sorted({test.partition("::")[0] for test in tests}), MUTANT_TESTS=json.dumps(tests))
    finally:
        path.write_text(source, "utf-8")
    return {0: "survived", NO_TESTS: "untested"}.get(code, "caught")


def trace(folder: Path, tests: Sequence[str]) -> dict[str, list[str]]:
    """The ids of the tests that enter each function, by `path:line` of its definition."""
    out = folder / "entered.json"
    if run_tests(folder, list(tests), seconds_max=3600, MUTANT_TRACE=str(out)) != 0:
        sys.exit(f"the tests in {' '.join(tests)} fail without any mutation")
    return json.loads(out.read_text("utf-8"))  # type: ignore[no-any-return]


def run_tests(folder: Path, paths: list[str], *, seconds_max: float = RUN_SECONDS_MAX, **environment: str) -> int:
    """The exit code of pytest over the copied sources; a run without end counts as a failure."""
    search = os.pathsep.join((str(folder / "src"), str(Path(__file__).parent)))
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", _PLUGIN, "-p", "no:cacheprovider", *paths]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": search, **environment},
            capture_output=True,
            timeout=seconds_max,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 1
    return done.returncode


# -- mutants ------------------------------------------------------------------------------------------

_SWAPPED = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Div: "*", ast.Mod: "+",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    path: str
    """From the root of the repository."""
    function: str
    function_line: int
    line: int
    start: int
    end: int
    """Where the replaced text stands, in bytes."""
    was: str
    now: str

    @property
    def function_key(self) -> str:
        return f"{self.path}:{self.function_line}"

    def applied(self, source: str) -> str:
        data = source.encode()
        return (data[: self.start] + self.now.encode() + data[self.end :]).decode()

    def diff(self) -> str:
        return f"  - {' '.join(self.was.split())}\n  + {' '.join(self.now.split())}"


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All places of a module at which one of its functions can be changed."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    name = str(path.relative_to(ROOT))
    for function in _functions(ast.parse(source)):
        first = min(node.lineno for node in (function, *function.decorator_list))
        for node, now in _changes(function):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
            was = source[start:end].decode()
            if was != now:
                yield Mutant(name, function.name, first, node.lineno, start, end, was, now)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not any("overload" in ast.unparse(e) for e in node.decorator_list):
            yield node


def _changes(function: ast.FunctionDef) -> Iterator[tuple[Any, str]]:
    """The nodes of a function's body that can be replaced, each with its replacement, without nested functions."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Raise | ast.JoinedStr):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        waiting.extend(
            child for field, child in _children(node) if field not in ("annotation", "returns", "format_spec")
        )
        yield from _replacements(node)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield field, child


def _replacements(node: ast.AST) -> Iterator[tuple[Any, str]]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _SWAPPED:
            yield node, f"({ast.unparse(left)} {_SWAPPED[type(op)]} {ast.unparse(right)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SWAPPED and not _has_text(node):
            yield node, f"({ast.unparse(left)} {_SWAPPED[type(op)]} {ast.unparse(right)})"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            yield node, f"({word.join(f'({ast.unparse(value)})' for value in values)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.Return(value=ast.AST() as value) if not isinstance(value, ast.Constant):
            yield node, "return None"
        case ast.Constant(value=bool() as value):
            yield node, str(not value)
        case ast.Constant(value=int() as value):
            yield node, f"({value + 1})"
        case ast.Constant(value=str() as value) if value:
            yield node, repr(f"{value}x")
        case ast.Expr(value=ast.Call()):
            yield node, "pass"
        case ast.AugAssign(target=target, value=value):
            yield node, f"{ast.unparse(target)} = {ast.unparse(value)}"
        case ast.Break():
            yield node, "continue"
        case ast.Continue():
            yield node, "break"


def _has_text(node: ast.AST) -> bool:
    return any(isinstance(each, ast.JoinedStr) or _is_text(each) for each in ast.walk(node))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


# -- the plugin that pytest loads ---------------------------------------------------------------------


def pytest_configure(config: Any) -> None:
    if out := os.environ.get("MUTANT_TRACE"):
        config.pluginmanager.register(_Tracer(Path(out)))


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep the tests that the mutant is tried on, in their order."""
    if wanted := os.environ.get("MUTANT_TESTS"):
        order = {test: place for place, test in enumerate(json.loads(wanted))}
        items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])


class _Tracer:
    """Records which functions of the package each test enters."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._seen: set[Any] = set()
        self._entered: dict[str, list[str]] = {}

    def _profile(self, frame: Any, event: str, _argument: Any) -> None:
        if event == "call":
            self._seen.add(frame.f_code)

    def pytest_runtest_logstart(self) -> None:
        self._seen = set()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        for code in self._seen:
            _, package, place = code.co_filename.rpartition("src/muniment/")
            if package:
                self._entered.setdefault(f"{package}{place}:{code.co_firstlineno}", []).append(nodeid)

    def pytest_sessionfinish(self) -> None:
        self._out.write_text(json.dumps(self._entered), "utf-8")


if __name__ == "__main__":
    main()
