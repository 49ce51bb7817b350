"""Two processes on one file while one of them forgets: what is acknowledged is seen by both, and kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import muniment

LOOK = """
import sys, muniment
with muniment.open(sys.argv[1]) as mem:
    print(mem.verify().entries)
"""


def look(path: Path) -> int:
    done = subprocess.run([sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.req("LG-06", "LG-07")
def test_a_visitor_that_leaves_after_a_forget_takes_no_log_with_it(tmp_path: Path) -> None:
    """Reading the database file with plain `open()` and closing it drops every lock this process holds on it (POSIX).
    The next visitor then believes it was the last, and deletes the log from under the writer."""
    path = tmp_path / "store.db"
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        mem.forget(event=run.observe("user", "words").id)
        assert look(path) == 2
        assert (tmp_path / "store.db-wal").exists(), "the visitor deleted the log of a store that is in use"
        run.observe("user", "acknowledged")
        assert look(path) == 3
    assert look(path) == 3
