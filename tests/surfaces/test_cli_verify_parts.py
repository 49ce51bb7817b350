"""`muniment verify` a part at a time: what was not walked is not said to hold, and going on ends with all of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_room import Commands, in_folder

import muniment

verify = Commands("verify")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = in_folder(tmp_path, monkeypatch)
    with muniment.open(folder / "muniment.db") as mem:
        for user in ("ana", "bob", "zoe"):
            mem.run(user_id=user, session_id="s1").observe("user", f"I am {user}.")
    return folder


def test_a_part_says_what_it_walked_and_the_rest_follows(store: Path) -> None:
    told = verify.text("--entries-max", "1")
    parts = 1
    while (found := re.search(r"--resume (\S+)", told)) is not None:
        assert "every chain that was walked holds" in told
        told = verify.text("--entries-max", "1", "--resume", found[1])
        parts += 1
    assert parts >= 3
    assert told.endswith("every chain holds\n")
    assert verify.text().endswith("every chain holds\n")


def test_a_sample_says_only_what_it_walked(store: Path) -> None:
    assert verify.text("--quick").endswith("every chain that was walked holds\n")


@pytest.mark.parametrize("args", [("--resume", "garbage"), ("--entries-max", "0"), ("--entries-max", "x")])
def test_what_makes_no_sense_is_refused(store: Path, args: tuple[str, str]) -> None:
    result = verify.call(*args)
    assert result.exit_code == 2
    assert "error[invalid_input]" in result.stderr
