"""The habits of the house, as tests: sizes, prose, nothing of one machine, every requirement named."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
REQUIREMENTS = ROOT.parent / "shared" / "REQUIREMENTS.md"

BUILT = ("X", "LG", "MP", "CS", "RP")
"""Chapters of the requirements that are wholly built: each of their clauses is proven by some test."""


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: the files of the project are not known")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_are_small_and_say_what_they_hold(path: Path) -> None:
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module's docstring says what the room holds"
    assert len(text.splitlines()) <= 600
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 70, f"{node.name} is long"
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "everything"
            assert caught not in ("everything", "Exception", "BaseException"), f"line {node.lineno} catches {caught}"


def test_nothing_names_this_machine_or_a_registry() -> None:
    folders, index = "|".join(("work", "farm", "root", "home")), "|".join(("index" + "-url", "/sim" + "ple/"))
    registries = "|".join(("py" + r"pi\.org", r"registry\." + "npmjs"))
    machine = re.compile(rf"(?<![\w.])/({folders})/|{index}|{registries}")
    for path in tracked():
        if path.stat().st_size < 2_000_000:
            found = machine.search(path.read_text("utf-8", errors="replace"))
            assert found is None, f"{path.relative_to(ROOT)}: {found[0] if found else ''}"


def test_nothing_is_left_for_later() -> None:
    words = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error", "for " + "now")))
    for path in SOURCES:
        found = words.search(path.read_text("utf-8"))
        assert found is None, f"{path.relative_to(ROOT)}: {found[0] if found else ''}"


def test_every_clause_of_a_built_chapter_is_proven() -> None:
    if not REQUIREMENTS.exists():
        pytest.skip("../shared/REQUIREMENTS.md is not here: coverage of the clauses was not checked")
    clauses = re.findall(r"^- ([A-Z]{1,2}-\d\d)", REQUIREMENTS.read_text("utf-8"), re.MULTILINE)
    named: set[str] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for marker in re.findall(r"mark\.req\(([^)]*)\)", path.read_text("utf-8")):
            named.update(re.findall(r"[A-Z]{1,2}-\d\d", marker))
    missing = [clause for clause in clauses if clause.split("-")[0] in BUILT and clause not in named]
    assert not missing, f"no test names {', '.join(missing)}"
    assert named <= set(clauses), f"tests name clauses that do not exist: {sorted(named - set(clauses))}"
