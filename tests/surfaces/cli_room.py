"""Commands called in this process as somebody would type them, and stores that were filled once for many tests."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from muniment.surfaces.cli.main import cli

__all__ = ["Commands", "copied", "in_folder"]


def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder to work in, with no setting of the machine that the tests run on."""
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith("MUNIMENT_") and name != "MUNIMENT_TEST_POSTGRES":
            monkeypatch.delenv(name)
    return folder


def copied(store: Path, folder: Path) -> Path:
    """A copy of a store that was filled once, for a test that may change it."""
    for file in store.parent.glob(f"{store.name}*"):
        shutil.copy(file, folder / file.name)
    return folder / store.name


class Commands:
    """Commands below the words that come first, such as `learn bank`."""

    def __init__(self, *before: str) -> None:
        self.before = before

    def call(self, *args: str, stdin: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(cli, [*self.before, *args], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    def text(self, *args: str, code: int = 0, stdin: str | None = None) -> str:
        result = self.call(*args, stdin=stdin)
        assert (result.exit_code, result.stderr) == (code, ""), result.output
        return result.stdout

    def document(self, *args: str, code: int = 0, stdin: str | None = None) -> Any:
        """The one JSON document that a command prints."""
        (line,) = self.text(*args, "--json", code=code, stdin=stdin).splitlines()
        return json.loads(line)

    def failure(self, *args: str, code: int = 1, stdin: str | bytes | None = None) -> dict[str, Any]:
        """The one JSON document that a failing command writes to stderr; in text, the same in words."""
        result = self.call(*args, "--json", stdin=stdin)
        assert (result.exit_code, result.stdout) == (code, ""), result.output
        (line,) = result.stderr.splitlines()
        error: dict[str, Any] = json.loads(line)
        assert error.keys() <= {"code", "message", "path", "hint", "details"}
        shown = self.call(*args, stdin=stdin)
        assert (shown.exit_code, shown.stdout) == (code, ""), shown.output
        assert shown.stderr.startswith(f"error[{error['code']}]: {error['message']}")
        assert f"hint: {error.get('hint', '')}" in f"{shown.stderr}hint: "
        hint = error.get("hint", "").replace("mem.resume(", "")  # to put a run right takes the library
        assert not any(part in hint for part in ("mem.", "book.")), "said for who types commands"
        return error
