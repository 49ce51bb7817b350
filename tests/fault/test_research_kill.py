"""A research run killed by SIGKILL at its moments: the next process goes on and ends with the same files (RP-07).

MUNIMENT_SOAK sets how many moments are tried: by default one in thirty-two, and with `make soak` all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deployments import FreshStore, on

RUNNER = Path(__file__).parent / "kill_research.py"
STRIDE = 1 if int(os.environ.get("MUNIMENT_SOAK", "40")) > 40 else 32
LEAST = 270 // STRIDE


def kills(*arguments: str) -> int:
    """What the runner asserts is on stderr."""
    done = subprocess.run([sys.executable, str(RUNNER), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: int = json.loads(done.stdout.splitlines()[-1])["kills"]
    return found


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
@pytest.mark.req("RP-07", "LG-06")
def test_killed_at_each_moment_of_each_call_and_done_again(tmp_path: Path) -> None:
    assert kills("every", str(tmp_path / "store.db"), str(tmp_path), str(STRIDE)) >= LEAST


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(24 * 3600)
@pytest.mark.req("RP-07", "LG-06")
@on("postgres")
def test_killed_again_and_again(fresh_store: FreshStore, tmp_path: Path) -> None:
    """Where a call was killed at one moment, the next process is killed at a later one, while it puts things right."""
    stride = STRIDE + 3
    with fresh_store() as store:
        assert kills("again", store.target, str(tmp_path), str(stride)) >= 200 // stride
