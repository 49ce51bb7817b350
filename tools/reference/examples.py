"""The examples of the Python API: docs/reference/examples/*.py, played from top to bottom, and shown method by method.

A line `# -- run.observe` begins the example of that method. The examples of a file are one program, in one folder; each
shows what stands below its line. Lines that begin with `# →` are what it prints. It shows nothing that is not played.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["FILES", "Example", "examples", "play", "read", "shown"]

ROOT = Path(__file__).parent.parent.parent
FILES = sorted((ROOT / "docs" / "reference" / "examples").glob("*.py"))
PRINTS = "# → "
_BEGINS = re.compile(r"^# -- ([\w.]+)\n", re.MULTILINE)


class Example(NamedTuple):
    name: str
    code: str
    printed: str
    line: int


def read(file: Path) -> list[Example]:
    """The examples of a file, in their order."""
    text = file.read_text("utf-8")
    found = list(_BEGINS.finditer(text))
    ends = [*(each.start() for each in found[1:]), len(text)]
    made = []
    for begins, end in zip(found, ends, strict=True):
        lines = text[begins.end() : end].strip("\n").splitlines()
        code = "\n".join(line for line in lines if not line.startswith(PRINTS)).rstrip()
        printed = "\n".join(line[len(PRINTS) :] for line in lines if line.startswith(PRINTS))
        made.append(Example(begins[1], code, printed, text.count("\n", 0, begins.end())))
    return made


def examples() -> dict[str, str]:
    """What is shown of each method, by its name in the reference."""
    return {each.name: shown(each) for file in FILES for each in read(file)}


def play(file: Path) -> Iterator[tuple[Example, str]]:
    """Each example of a file with what it prints, played in a folder of its own."""
    space: dict[str, Any] = {"__name__": "examples"}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        try:
            for each in read(file):
                printed = io.StringIO()
                with redirect_stdout(printed):
                    exec(compile("\n" * each.line + each.code, str(file), "exec"), space)
                yield each, printed.getvalue().rstrip("\n")
        finally:
            if "mem" in space:
                space["mem"].close()


def shown(example: Example) -> str:
    """The lines of an example, and what they print."""
    said = [f"{PRINTS}{line}".rstrip() for line in example.printed.splitlines()]
    return "\n".join([example.code, *said])
