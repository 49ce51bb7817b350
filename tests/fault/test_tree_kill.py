"""A tree search whose process is killed goes on in another, and comes to the same (RC-22)."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deployments import FreshStore, on
from warm_commands import captured

pytestmark = pytest.mark.req("RC-22")

SCRIPT = Path(__file__).with_name("kill_searcher.py")
CHECKPOINT = 8


def found(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.soak
@pytest.mark.slow
@on("sqlite")
def test_killed_again_and_again_it_comes_to_the_same(
    fresh_store: FreshStore, tmp_path: Path, warm_place: str | None
) -> None:
    def search(target: str, *number: int) -> subprocess.CompletedProcess[str]:
        return captured(warm_place, SCRIPT, target, *map(str, number))

    way, block, _, calls = found(search(str(tmp_path / "whole.db")))
    with fresh_store() as store:
        for number in (1, 9, 30, 17):
            assert search(store.target, number).returncode == -signal.SIGKILL
        killed_way, killed_block, resumed, rest = found(search(store.target))
        assert (killed_way, killed_block) == (way, block)
        assert resumed + rest == calls
        assert resumed >= (9 - 1 + 30 - 1 + 17 - 1) - 3 * CHECKPOINT  # each kill costs less than a checkpoint
        assert found(search(store.target))[2:] == [calls, 0]
