"""Plays a page of the documentation: its `python` and `sh` blocks, in order, as a reader would paste them.

A `text` or `json` block straight after one of them is what it prints. `…` there stands for any part of a line, and
alone on a line for any number of lines; any day and time stands for any other. All Python of a page shares one
namespace, all shell one bash, both one folder. The port 8765 of a page is played on a free one.
Blocks of any other language are not run.

    python tests/docs/page_player.py PAGE             play it in the present folder; exit code 1 where it is not true
    python tests/docs/page_player.py PAGE --write     the same, and fill empty output blocks with what was printed
"""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parent.parent))  # it is run by itself too

from free_ports import free_port

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHOWN = re.compile(r"\s*^```(text|json)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PORT = "8765"
MUNIMENT = "PLAYED_MUNIMENT"
"""The variable that names what is run for `muniment`, where that is not a process which loads by itself."""
_WHEN = re.compile(
    r"\b20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)?)?|\b\d\d? [A-Z][a-z]{2,8} 20\d\d\b"
)
"""Days and times: one is as good as another, whenever the page is played."""
_MASKS = (
    (re.compile(r"\bmun_[0-9a-f]{12}_[\w-]{43}"), "mun_…"),
    (re.compile(r"\b([a-z]{2,5}_)[0-9A-Za-z]{12,}\b"), r"\1…"),
    (re.compile(r"\b[0-9a-f]{40,}\b"), "…"),
)


class Block(NamedTuple):
    language: str
    body: str
    line: int
    shown: str | None
    """What it prints, as the page says; None where the page says nothing."""
    shown_at: int
    """Where that stands in the page."""


def blocks_of(page: str) -> list[Block]:
    """The blocks that are run."""
    found = []
    for match in _BLOCK.finditer(page):
        language, body = match.groups()
        if language not in ("python", "sh"):
            continue
        after = _SHOWN.match(page, match.end())
        shown, at = (after[2], after.start(2)) if after else (None, 0)
        found.append(Block(language, body, page.count("\n", 0, match.start(2)) + 1, shown, at))
    return found


def is_shown(shown: str, printed: str) -> bool:
    """Did it print what the page says?"""
    pattern = ""
    shown, printed = (_WHEN.sub("2026-01-01", text.strip("\n")) for text in (shown, printed))
    for line in shown.splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            known = re.sub("… {2,}", "… ", line.rstrip()).split("…")  # the columns of a table
            pattern += ".*".join(re.escape(part) for part in known) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed + "\n") is not None


class Shell:
    """One bash for the page, with `muniment` and `python` as they are here. What fails ends it."""

    _MARK = "-- played --"

    def __init__(self, folder: Path, port: str) -> None:
        names = folder / ".bin"
        names.mkdir(exist_ok=True)
        python = shlex.quote(sys.executable)
        for name, line in (("muniment", os.environ.get(MUNIMENT, f"{python} -m muniment")), ("python", python)):
            (names / name).write_text(f'#!/bin/sh\nexec {line} "$@"\n', "utf-8")
            (names / name).chmod(0o755)
        self._folder = folder
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=os.environ
            | {"PATH": f"{names}{os.pathsep}{os.environ['PATH']}", "MUNIMENT_PORT": port, "COLUMNS": "120"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def play(self, body: str, where: str) -> str:
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        script = self._folder / ".bin" / "block.sh"
        script.write_text(body, "utf-8")
        self._bash.stdin.write(
            f"set -euo pipefail\nsource {shlex.quote(str(script))} </dev/null\nset +eu\nprintf '\\n{self._MARK}\\n'\n"
        )
        self._bash.stdin.flush()
        printed = []
        for line in self._bash.stdout:
            if line.rstrip() == self._MARK:
                return "".join(printed)
            printed.append(line)
        raise RuntimeError(f"a command of {where} failed; printed was:\n{''.join(printed)}")

    def close(self) -> None:
        """What the page left running goes with it."""
        os.killpg(self._bash.pid, signal.SIGKILL)
        with self._bash:
            self._bash.wait()


class Player:
    """Plays blocks one after the other, and knows what each printed."""

    def __init__(self, folder: Path) -> None:
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._folder = folder
        self._shell: Shell | None = None
        self._port = str(free_port())

    def play(self, page: str, block: Block) -> str:
        body = block.body.replace(_PORT, self._port)
        if block.language == "sh":
            self._shell = self._shell or Shell(self._folder, self._port)
            return self._shell.play(body, f"{page}:{block.line}").replace(self._port, _PORT)
        code = compile("\n" * (block.line - 1) + body, page, "exec")
        with redirect_stdout(io.StringIO()) as out:
            exec(code, self._names)
        return out.getvalue().replace(self._port, _PORT)

    def close(self) -> None:
        if self._shell is not None:
            self._shell.close()


def masked(printed: str) -> str:
    for pattern, instead in _MASKS:
        printed = pattern.sub(instead, printed)
    return printed.strip("\n") + "\n"


def play_page(path: Path, *, write: bool = False) -> list[str]:
    """What is not true of a page."""
    page = path.read_text("utf-8")
    wrong, filled = [], page
    player = Player(Path.cwd())
    try:
        for block in blocks_of(page):
            printed = player.play(path.name, block)
            if block.shown is None:
                continue
            if write and not block.shown.strip():
                at = block.shown_at + len(filled) - len(page)
                filled = filled[:at] + masked(printed) + filled[at:]
            elif not is_shown(block.shown, printed):
                wrong.append(f"{path.name}:{block.line} printed:\n{printed}\n-- the page says:\n{block.shown}")
    finally:
        player.close()
        if write:
            path.write_text(filled, "utf-8")
    return wrong


if __name__ == "__main__":
    found = play_page(Path(sys.argv[1]).resolve(), write="--write" in sys.argv[2:])
    sys.exit("\n".join(found) or None)
