"""The habits of the house, as tests: sizes, prose, nothing of one machine, nothing left for later."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))


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
        text = path.read_text("utf-8")
        if path.match("integrations/mem0/exceptions.py"):  # its refusals are what mem0 raises, and what callers catch
            text = text.replace("ValueError, NotImplemented" + "Error)", "")
        found = words.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found[0] if found else ''}"


NO_TEXT = frozenset(
    ("day", "end", "handle", "kind", "language", "letter", "level", "members", "module_name", "name", "names",
     "package", "parts", "route", "section", "sign", "ts")
)  # fmt: skip
"""What functions call a `str` that no user wrote, or that is a time."""


@pytest.mark.req("LG-07")
def test_what_is_remembered_of_texts_is_emptied_by_a_forget() -> None:
    """A function that takes a text remembers by `core.limits.remembered`: its own cache would outlive a forget."""
    wrong: list[str] = []
    texts_of = {path.relative_to(ROOT): path.read_text("utf-8") for path in SOURCES}
    for path, text in texts_of.items():
        for node in ast.walk(ast.parse(text)) if re.search(r"\b(?:lru_)?cache\b", text) else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(map(_is_cache, node.decorator_list)):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                kept = {each.arg for each in given if each.annotation and "str" in ast.unparse(each.annotation)}
                wrong += [f"{path}: {node.name} keeps {name}" for name in sorted(kept - NO_TEXT)]
    assert not wrong


def _is_cache(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).partition("(")[0] in ("cache", "lru_cache", "functools.cache", "functools.lru_cache")
