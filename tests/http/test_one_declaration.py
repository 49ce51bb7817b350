"""An argument added to a method of the library is there on every surface that is made from it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

PROGRAM = Path(__file__).parent / "added_argument.py"


def missing(*asked: str) -> list[str]:
    done = subprocess.run([sys.executable, PROGRAM, *asked], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def test_an_added_argument_is_found_on_every_surface() -> None:
    assert missing() == []


def test_without_it_every_surface_lacks_it() -> None:
    """Else the test above would show little."""
    counts = Counter(each.rpartition(": ")[2] for each in missing("--nothing"))
    assert min(counts[each] for each in ("OpenAPI", "HTTP", "connection", "async face", "command")) > 40, counts
