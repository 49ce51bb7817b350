"""Plays a framework's page in this process, where the framework is loaded already."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "docs"))

from page_player import blocks_of, is_shown  # noqa: E402


def play_page(name: str) -> None:
    """Run the blocks of a page, in the present folder; each prints what stands behind it."""
    page = ROOT / "docs" / "guides" / "frameworks" / name
    space: dict[str, Any] = {"__name__": "page"}
    blocks = [block for block in blocks_of(page.read_text("utf-8")) if block.language == "python"]
    assert blocks, f"{name} has a program"
    for block in blocks:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.body, str(page), "exec"), space)
        assert is_shown(block.shown or "", printed.getvalue()), printed.getvalue()
