"""Report how large the package is, and how far a call walks through it.

    python tools/size.py                    print the tables
    python tools/size.py --lists            and the names behind the counts
    python tools/size.py --json FILE        write the figures
    python tools/size.py --base FILE        print before → after, against figures written earlier

A walk is one call on a SQLite store that has answered such a call before. It counts the distinct functions of the
package that are entered, in all threads, and the modules they stand in. Comprehensions, generator expressions and
lambdas do not count. Other texts take other branches: expect figures to differ by a tenth between two conversations,
and by a few functions between two runs of the same one, as ids are random.
"""

from __future__ import annotations

import argparse
import ast
import json
import platform
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from inspect import CO_OPTIMIZED
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import muniment

if TYPE_CHECKING:
    from starlette.testclient import TestClient

PACKAGE = Path(muniment.__file__).parent
TARGETS = {"observe": 90, "search": 140, "compose": 300, "forget": 150, "finish": 320, "http search": 200}
"""How many functions a walk should enter at most."""
DIALECT = ("What ", "So many", "Of the", "The same")
"""How docstrings begin that do not name their subject."""

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (*FUNCTION, ast.ClassDef, ast.Module)
COUNTED = (*DOCUMENTED, ast.Import, ast.ImportFrom)

Figures = dict[str, Any]


# -- the tree -----------------------------------------------------------------------------------------


class Tree:
    """The modules of a package, parsed."""

    def __init__(self, package: Path = PACKAGE) -> None:
        self.package = package
        self.texts = {_module_name(path, package): path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}
        self.nodes: dict[str, list[ast.AST]] = {}
        """Of each module what is counted: itself, its classes, functions and imports."""
        for name, text in self.texts.items():
            self.nodes[name] = [node for node in ast.walk(ast.parse(text)) if isinstance(node, COUNTED)]

    def count(self) -> Figures:
        functions = [node for node in self._all_nodes() if isinstance(node, FUNCTION)]
        data = [path for path in self.package.rglob("data/**/*") if path.is_file()]
        docs = [ast.get_docstring(node) or "" for node in self._all_nodes() if isinstance(node, DOCUMENTED)]
        return {
            "modules": len(self.texts),
            "lines": sum(map(_line_count, self.texts.values())),
            "lines in functions": sum(map(_lines_in_functions, self.nodes.values())),
            "functions": len(functions),
            "lines per function": round(sum(map(len, map(_lines_of, functions))) / max(1, len(functions)), 1),
            "bytes under data/": sum(path.stat().st_size for path in data),
            "docstrings that begin with What": sum(doc.startswith("What ") for doc in docs),
            "docstrings in dialect": sum(doc.startswith(DIALECT) for doc in docs),
            "class names used more than once": len(self.repeated_classes()),
            "modules with one importer": len(self.single_importers()),
        }

    def rooms(self) -> dict[str, Figures]:
        """Modules and lines by folder of the package; modules beside the folders are its face."""
        rooms: dict[str, Figures] = defaultdict(lambda: {"modules": 0, "lines": 0})
        for path in sorted(self.package.rglob("*.py")):
            first = path.relative_to(self.package).parts[0]
            room = rooms["(face)" if first == path.name else first]
            room["modules"] += 1
            room["lines"] += _line_count(path.read_text("utf-8"))
        return dict(rooms)

    def repeated_classes(self) -> dict[str, int]:
        """Public class names that are defined more than once, the most frequent first."""
        names = [node.name for node in self._all_nodes() if isinstance(node, ast.ClassDef)]
        counts = Counter(name for name in names if not name.startswith("_"))
        return {name: count for name, count in counts.most_common() if count > 1}

    def single_importers(self) -> dict[str, str]:
        """Modules that only one other module imports, with that module. The `__init__` of a folder is none of them."""
        importers: dict[str, set[str]] = defaultdict(set)
        for importer in self.nodes:
            for target in self._imports(importer):
                importers[target].add(importer)
        found = {name: who - {name} for name, who in importers.items() if not self._is_folder(name)}
        return {name: next(iter(who)) for name, who in sorted(found.items()) if len(who) == 1}

    def _all_nodes(self) -> Iterator[ast.AST]:
        return chain.from_iterable(self.nodes.values())

    def _imports(self, importer: str) -> Iterator[str]:
        """The package's modules that a module imports, at its top or inside a function."""
        for node in self.nodes[importer]:
            if isinstance(node, ast.Import):
                yield from (each.name for each in node.names if each.name in self.texts)
            elif isinstance(node, ast.ImportFrom):
                source = self._import_source(importer, node)
                for each in node.names:
                    inner = f"{source}.{each.name}"
                    if inner in self.texts:
                        yield inner
                    elif source in self.texts:
                        yield source

    def _import_source(self, importer: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = importer.split(".")
        parts = parts[: len(parts) - node.level + self._is_folder(importer)]
        return ".".join([*parts, node.module] if node.module else parts)

    def _is_folder(self, module: str) -> bool:
        return self.package.joinpath(*module.split(".")[1:]).is_dir()


def _module_name(path: Path, package: Path) -> str:
    parts = (package.name, *path.relative_to(package).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _line_count(text: str) -> int:
    return len(text.splitlines())


def _lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    return range(function.lineno, (function.end_lineno or function.lineno) + 1)


def _lines_in_functions(nodes: list[ast.AST]) -> int:
    """Lines of functions; those of a function inside another count once."""
    return len({line for node in nodes if isinstance(node, FUNCTION) for line in _lines_of(node)})


# -- the walks ----------------------------------------------------------------------------------------


class Function(NamedTuple):
    """A function by where its code stands, as closures made twice share it."""

    file: str
    line: int
    module: str
    name: str


@contextmanager
def watch(package: Path = PACKAGE) -> Iterator[dict[Function, None]]:
    """Collect the functions below a folder that are entered, in the order of their first entry.

    Follows this thread and all that start inside the block: start servers and pools inside as well.
    """
    entered: dict[Function, None] = {}
    inside = str(package)

    def enter(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_flags & CO_OPTIMIZED or not code.co_filename.startswith(inside):
            return  # code without CO_OPTIMIZED is the body of a module or of a class
        name = code.co_qualname
        if not name.endswith(">"):  # `f.<locals>.<lambda>`, `f.<locals>.<genexpr>`, `f.<locals>.<listcomp>`
            entered.setdefault(Function(code.co_filename, code.co_firstlineno, frame.f_globals["__name__"], name))

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        yield entered
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


Call = Callable[[int], object]
"""A call by its number: 0 warms up, 1 is watched. The two are about different texts."""

TOLD = (
    "I moved to Berlin in May; my sister Eva lives in Hamburg.",
    "I'm allergic to peanuts. Please always answer in German.",
    "Last week we went to the new Italian place with Tom and paid 45 euros.",
    "Who will book the table for Friday?",
)
QUESTIONS = ("Who is Tom?", "Where does Ana live now, and who booked the table?")


def _talk(mem: Any) -> Any:
    """Three sessions of a user, with a fact, a procedure, a hypothesis and a state: most sections of a packet."""
    for number in range(3):
        run = mem.run(user_id="ana", agent_id="support", session_id=f"s{number}")
        events = [run.observe("user", f"{text} ({number})") for text in TOLD]
        run.observe_tool("weather", args={"city": "Berlin"}, content="12 °C", ok=number != 1)
        run.observe("assistant", f"I will book table {number} for Friday.")
        run.remember("user.city", "Berlin", sources=[events[0].id])
        run.patch(goal="book dinner", slots={"city": "Berlin"})
        run.procedure("booking", {"steps": ["ask", "book"]}, priority=1)
        run.insight("hypothesis", "she may be vegetarian", sources=[events[1].id])
    return run


@contextmanager
def observe(mem: Any) -> Iterator[Call]:
    run = _talk(mem)
    yield lambda number: run.observe("user", ("I moved to Rome in June.", "My sister Eva likes tea.")[number])


@contextmanager
def search(mem: Any) -> Iterator[Call]:
    run = _talk(mem)
    yield lambda number: run.search(QUESTIONS[number])


@contextmanager
def compose(mem: Any) -> Iterator[Call]:
    run = _talk(mem)
    yield lambda number: run.compose("planner", query=QUESTIONS[number])


@contextmanager
def forget(mem: Any) -> Iterator[Call]:
    run = _talk(mem)
    events = [run.observe("user", f"I am allergic to nuts, {number}.") for number in range(2)]
    yield lambda number: mem.forget(event=events[number].id)


@contextmanager
def finish(mem: Any) -> Iterator[Call]:
    """Runs of one kind that pass by one way and fail by another; the last two are open, judged and about to end."""

    def work(number: int) -> Any:
        run = mem.run(user_id="ana", agent_id="clerk", session_id=f"order {number}")
        task = f"Find order {100 + number}."
        run.observe("user", task)
        run.learning.recall(task, intent=intent)
        way, content = ("by_name", "nothing") if number % 2 else ("by_number", "found")
        run.observe_tool(way, args={"order": 100 + number}, content=content, ok=not number % 2)
        run.observe("assistant", content)
        return run

    def end(run: Any, *, passed: bool) -> object:
        verdict = {"verdict": "PASS", "outcome": "OK"} if passed else {"verdict": "FAIL", "outcome": "FAIL"}
        return run.finish(verifier_result={"verifier_id": "shop", **verdict}, intent=intent)

    intent = {"domain_tag": "shop", "task_family": "lookup"}
    for number in range(6):
        end(work(number), passed=not number % 2)
    last = [work(number) for number in (7, 8)]
    yield lambda number: end(last[number], passed=bool(number))


@contextmanager
def http_search(mem: Any) -> Iterator[Call]:
    from starlette.testclient import TestClient

    from muniment.surfaces.http.app import create_app

    run = _talk(mem)
    address = f"/v1/tenants/default/users/ana/runs/{run.run_id}/search"
    with TestClient(create_app(mem), base_url="http://localhost") as client:
        yield lambda number: _post(client, address, {"query": QUESTIONS[number]})


def _post(client: TestClient, address: str, body: Mapping[str, Any]) -> None:
    answer = client.post(address, json=body)
    assert answer.status_code == 200, answer.text


WALKS: dict[str, Callable[[Any], AbstractContextManager[Call]]] = {
    "observe": observe,
    "search": search,
    "compose": compose,
    "forget": forget,
    "finish": finish,
    "http search": http_search,
}


def walk(name: str) -> list[Function]:
    """The functions that the second call of a walk enters, in order."""
    with (
        tempfile.TemporaryDirectory() as folder,
        watch() as entered,
        muniment.open(Path(folder) / "walk.db") as mem,
        WALKS[name](mem) as call,
    ):
        call(0)
        entered.clear()
        call(1)
        return list(entered)


def count_walk(name: str) -> Figures:
    functions = walk(name)
    return {"modules": len({each.file for each in functions}), "functions": len(functions), "target": TARGETS[name]}


def count_walks() -> dict[str, Figures]:
    """Take each walk in a process of its own, so that none finds words in the caches that another one filled."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        return dict(zip(WALKS, pool.map(count_walk, WALKS), strict=True))


# -- the report ---------------------------------------------------------------------------------------


def _print_table(title: str, columns: list[str], rows: Mapping[str, Figures], base: Mapping[str, Figures]) -> None:
    print(f"\n{title:34}" + "".join(f"{column:>24}" for column in columns))
    for name in [*rows, *(name for name in base if name not in rows)]:
        cells = [_cell(rows.get(name, {}).get(column), base.get(name, {}).get(column)) for column in columns]
        print(f"{name:34}" + "".join(f"{cell:>24}" for cell in cells))


def _cell(now: float | None, before: float | None) -> str:
    after = "–" if now is None else f"{now:,}"
    return after if before is None or before == now else f"{before:,} → {after}"


def print_report(figures: Figures, base: Figures) -> None:
    for part in ("tree", "rooms", "walks"):
        rows, old = figures[part], base.get(part, {})
        if part == "tree":
            rows, old = ({name: {"count": count} for name, count in each.items()} for each in (rows, old))
        columns = list(dict.fromkeys(column for row in rows.values() for column in row))
        _print_table(part, columns, rows, old)


def measure() -> Figures:
    tree = Tree()
    return {
        "tree": tree.count(),
        "rooms": tree.rooms(),
        "walks": count_walks(),
        "repeated classes": tree.repeated_classes(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--base", type=Path, metavar="FILE", help="figures written earlier, to compare with")
    parser.add_argument("--lists", action="store_true", help="print the names behind the counts")
    parser.add_argument("--walk", choices=WALKS, help="print the functions of one walk, and nothing else")
    options = parser.parse_args()
    if options.walk:
        for each in walk(options.walk):
            print(f"{each.module}.{each.name}")
        return
    figures = measure()
    print_report(figures, json.loads(options.base.read_text("utf-8")) if options.base else {})
    if options.lists:
        for name, count in figures["repeated classes"].items():
            print(f"{name} ×{count}")
        for name, importer in Tree().single_importers().items():
            print(f"{name} ← {importer}")
    if options.json:
        command = "python tools/size.py --json FILE"
        written = {"command": command, "python": platform.python_version(), **figures}
        options.json.write_text(json.dumps(written, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
