"""Write docs/requirements.md: every clause of docs/requirements.toml, each with the tests that name it.

A test names a clause by `@pytest.mark.req("MP-12")` or by the id in its docstring; a module's docstring names clauses
for the whole file. `--check` writes nothing, and fails where the page is stale, where a clause has no test and is not
said to be missing, and where a test names a clause that does not exist.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "DATA",
    "PAGE",
    "ROOT",
    "Chapter",
    "Naming",
    "Requirements",
    "faults",
    "named_in",
    "named_in_tests",
    "page",
    "read",
]

ROOT = Path(__file__).parent.parent
DATA, PAGE, TESTS = ROOT / "docs" / "requirements.toml", ROOT / "docs" / "requirements.md", ROOT / "tests"
UNFINISHED = "TM"
"""The one chapter whose clauses may stand there unproven."""

_CLAUSE = r"\b(X|LG|MP|RC|CS|RP|MV|BL|UK|TM)-(\d\d)\b"
_NAMED = re.compile(rf"{_CLAUSE}(?:\s*(?:…|–|to)\s*\1-(\d\d)\b)?")

ABOUT = """
What muniment has to do, clause by clause, in our own words, each with the tests that prove it. Four contracts are
behind it: MemoryPacket v1 (`MP`), Rulecraft v0.5.15 (`RC`), the compaction snapshot (`CS`), and the router and
summary-pack schemas of research runs (`RP`). What all of them share is `X`, the ground they stand on `LG`, how memory
moves in and out `MV`, how much of it is loaded at once `BL`, what processes do beside the daily work `UK`, and what
they come to together, before a model, `TM`.

A comment in the source such as `# MP-12` cites a clause of this page. Nothing that a user reads does.
[Contributing](../CONTRIBUTING.md) says how a test names a clause."""


@dataclass(frozen=True)
class Chapter:
    """One group of clauses, in order."""

    id: str
    title: str
    about: str
    settled_here: frozenset[str]
    clauses: Mapping[str, str]


@dataclass(frozen=True)
class Requirements:
    """The data file: chapters, and what is said to be missing."""

    chapters: tuple[Chapter, ...]
    still_missing: Mapping[str, str]
    not_built: frozenset[str]

    @property
    def clauses(self) -> dict[str, str]:
        return {id: text for chapter in self.chapters for id, text in chapter.clauses.items()}


@dataclass(frozen=True, order=True)
class Naming:
    """A test that names a clause; without a name, its whole file does."""

    clause: str
    path: str
    test: str = ""


def read(text: str) -> Requirements:
    data = tomllib.loads(text)
    chapters = (
        Chapter(each["id"], each["title"], each["about"], frozenset(each["settled_here"]), each["clauses"])
        for each in data["chapters"]
    )
    return Requirements(tuple(chapters), data["still_missing"], frozenset(data["not_built"]))


# -- who names what -----------------------------------------------------------------------------------


def named_in_tests(folder: Path = TESTS) -> list[Naming]:
    files = sorted(folder.rglob("test_*.py"))
    return sorted({each for file in files for each in named_in(file.read_text("utf-8"), _path(file))})


def _path(file: Path) -> str:
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else file.as_posix()


def named_in(source: str, path: str) -> Iterator[Naming]:
    """What one file of tests names."""
    tree = ast.parse(source)
    for clause in _ids(ast.get_docstring(tree)):
        yield Naming(clause, path)
    yield from _in_body(tree.body, path, "")


def _in_body(body: Iterable[ast.stmt], path: str, owner: str) -> Iterator[Naming]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{owner}{node.name}"
            said = [ast.get_docstring(node), *(mark for each in node.decorator_list for mark in _marks(each))]
            yield from (Naming(clause, path, name) for text in said for clause in _ids(text))
            if isinstance(node, ast.ClassDef):
                yield from _in_body(node.body, path, f"{name}::")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.args:
            # A mark put on a test that was written elsewhere: pytest.mark.req("X-09")(EngineContract.test_…)
            marked = ast.unparse(node.value.args[0]).replace(".", "::")
            yield from (Naming(clause, path, marked) for mark in _marks(node.value.func) for clause in _ids(mark))
        else:  # pytestmark = …, of the file or the class
            name = owner.removesuffix("::")
            yield from (Naming(clause, path, name) for mark in _marks(node) for clause in _ids(mark))


def _marks(node: ast.AST) -> Iterator[str]:
    """The arguments of every `pytest.mark.req(…)` in it."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and ast.unparse(each.func).endswith("mark.req"):
            yield ", ".join(ast.unparse(argument) for argument in each.args)


def _ids(text: str | None) -> Iterator[str]:
    """The clauses a text names; `MP-06 … MP-08` names three."""
    for match in _NAMED.finditer(text or ""):
        chapter, first, last = match.groups()
        for number in range(int(first), int(last or first) + 1):
            yield f"{chapter}-{number:02}"


# -- what is wrong ------------------------------------------------------------------------------------


def faults(requirements: Requirements, named: Iterable[Naming], written: str) -> list[str]:
    """All that keeps the page from being true, in words."""
    named, clauses = list(named), requirements.clauses
    proven = {each.clause for each in named}
    found = [
        f"{each.path} {each.test} names {each.clause}: no such clause" for each in named if each.clause not in clauses
    ]
    for clause in clauses:
        if clause in requirements.not_built and not clause.startswith(f"{UNFINISHED}-"):
            found.append(f"{clause} is listed as not built: only clauses of {UNFINISHED} may be")
        if clause in requirements.not_built and clause in proven:
            found.append(f"{clause} is listed as not built, and a test names it: say what is still missing, or nothing")
        if clause not in requirements.not_built and clause not in proven:
            found.append(f"no test names {clause}")
        if clause in requirements.not_built and clause in requirements.still_missing:
            found.append(f"{clause} is both not built and built in part")
    listed = requirements.not_built | requirements.still_missing.keys()
    listed |= {clause for chapter in requirements.chapters for clause in chapter.settled_here}
    found += [f"{clause} is listed, and is no clause" for clause in sorted(listed - clauses.keys())]
    for chapter in requirements.chapters:
        numbers = [f"{chapter.id}-{number:02}" for number in range(1, len(chapter.clauses) + 1)]
        if list(chapter.clauses) != numbers:
            found.append(f"the clauses of {chapter.id} are not numbered in order")
    if not found and page(requirements, named) != written:
        found.append("docs/requirements.md is not what docs/requirements.toml and the tests say: `make generate`")
    return found


# -- the page -----------------------------------------------------------------------------------------


def page(requirements: Requirements, named: Iterable[Naming]) -> str:
    by_clause: dict[str, dict[str, list[str]]] = {}
    for each in sorted(named):
        by_clause.setdefault(each.clause, {}).setdefault(each.path, []).append(each.test)
    lines = ["<!-- Generated by tools/make_requirements.py: do not edit. -->\n", "# Requirements", ABOUT, ""]
    lines += _overview(requirements)
    for chapter in requirements.chapters:
        lines += [f"## {chapter.id} · {chapter.title}\n", f"{chapter.about}\n"]
        for clause, text in chapter.clauses.items():
            lines += [f"### {clause}\n", f"{text.strip()}\n"]
            if clause in chapter.settled_here:
                lines.append("*Settled here: the contracts leave it open, or part of it.*\n")
            if clause in requirements.not_built:
                lines.append("**Not built yet.**\n")
            if clause in requirements.still_missing:
                lines.append(f"**Built in part.** {requirements.still_missing[clause]}\n")
            lines += _proofs(by_clause.get(clause, {}))
    return "\n".join(lines).rstrip() + "\n"


def _overview(requirements: Requirements) -> Iterator[str]:
    yield "| | chapter | clauses | built in part | not built yet |"
    yield "|---|---|---|---|---|"
    for chapter in requirements.chapters:
        partly = [clause for clause in chapter.clauses if clause in requirements.still_missing]
        missing = [clause for clause in chapter.clauses if clause in requirements.not_built]
        cells = ", ".join(map(_link, partly)), ", ".join(map(_link, missing))
        yield f"| {chapter.id} | {chapter.title} | {len(chapter.clauses)} | {cells[0]} | {cells[1]} |"
    yield ""


def _link(clause: str) -> str:
    return f"[{clause}](#{clause.lower()})"


def _proofs(files: Mapping[str, list[str]]) -> Iterator[str]:
    if not files:
        return
    tests = sum(len([test for test in each if test]) for each in files.values())
    counted = f"{tests} test{'s' * (tests != 1)} in " if tests else ""
    yield f"<details><summary>{counted}{len(files)} file{'s' * (len(files) != 1)}</summary>\n"
    for path, names in files.items():
        told = ", ".join(f"`{name.rpartition('::')[2]}`" for name in names if name)
        yield f"- [{path.removeprefix('tests/')}](../{path}){f': {told}' if told else ''}"
    yield "\n</details>\n"


def main(arguments: list[str]) -> int:
    requirements, named = read(DATA.read_text("utf-8")), named_in_tests()
    if "--check" not in arguments:
        PAGE.write_text(page(requirements, named), "utf-8")
    found = faults(requirements, named, PAGE.read_text("utf-8"))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
