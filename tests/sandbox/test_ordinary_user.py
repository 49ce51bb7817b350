"""When root runs the tests, the attacks once more as an ordinary user, under a soak the tools and the harness too; else
they ran as one already."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sandbox_helpers import as_ordinary_user

from effort import SOAK

HERE = Path(__file__).parent


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RC-25")
def test_all_of_it_as_an_ordinary_user(bwrap: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("optional: this is an ordinary user already")
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    tests += [str(HERE / name) for name in ("test_attacks.py", *(("test_tools.py", "test_harness.py") if SOAK else ()))]
    command = as_ordinary_user(tests, [HERE])
    done = subprocess.run(
        command, cwd=HERE.parent.parent, capture_output=True, text=True, check=False, env={**os.environ, "HOME": "/tmp"}
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "NO SANDBOX" not in done.stdout
    assert " passed" in done.stdout
