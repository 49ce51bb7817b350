"""A tree search whose process is killed goes on in another, and comes to the same (RC-22)."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from warm_commands import captured

pytestmark = pytest.mark.req("RC-22")

SCRIPT = Path(__file__).with_name("kill_searcher.py")
CHECKPOINT = 8


def found(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_killed_again_and_again_it_comes_to_the_same(tmp_path: Path, warm_place: str | None) -> None:
    def search(path: Path, *number: int) -> subprocess.CompletedProcess[str]:
        return captured(warm_place, SCRIPT, str(path), *map(str, number))

    way, block, _, calls = found(search(tmp_path / "whole.db"))
    path = tmp_path / "killed.db"
    for number in (1, 9, 30, 17):
        assert search(path, number).returncode == -signal.SIGKILL
    killed_way, killed_block, resumed, rest = found(search(path))
    assert (killed_way, killed_block) == (way, block)
    assert resumed + rest == calls
    assert resumed >= (9 - 1 + 30 - 1 + 17 - 1) - 3 * CHECKPOINT  # each kill costs less than a checkpoint
    assert found(search(path))[2:] == [calls, 0]
