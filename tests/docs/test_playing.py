"""A page that is not true is found to be so, and a process out of the loaded one is told how it ended."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from warm_commands import captured, start_script

PLAYER = Path(__file__).parent / "page_player.py"
UNTRUE = {
    "another line is printed": ('```python\nprint("one")\n```\n```text\ntwo\n```\n', "the page says:\ntwo"),
    "it warns": (
        '```python\nimport warnings\nwarnings.warn("old", UserWarning)\n```\n',
        "UserWarning: old",
    ),
    "no such command": ("```sh\nmuniment nothing-of-the-kind\n```\n", "No such command"),
    "it raises": ("```python\nimport muniment\nmuniment.open(7)\n```\n", "Traceback"),
}


@pytest.mark.parametrize("why", UNTRUE)
def test_a_page_that_is_not_true_fails(why: str, tmp_path: Path, warm_place: str | None) -> None:
    body, said = UNTRUE[why]
    (tmp_path / "page.md").write_text(body, "utf-8")
    done = captured(warm_place, PLAYER, str(tmp_path / "page.md"), cwd=tmp_path, strict=True)
    assert done.returncode == 1
    assert said in done.stderr


def test_a_process_of_its_own_says_how_it_ended(tmp_path: Path, warm_place: str | None) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, time\nprint(os.getpid(), os.getcwd(), os.environ['GIVEN'])\nsys.exit(3)\n", "utf-8"
    )
    done = captured(warm_place, script, cwd=tmp_path, env={**os.environ, "GIVEN": "so"})
    pid, folder, given = done.stdout.split()
    assert (done.returncode, folder, given, done.stderr) == (3, str(tmp_path), "so", "")
    assert int(pid) != os.getpid()
    script.write_text("import time\ntime.sleep(600)\n", "utf-8")
    process = start_script(warm_place, script)
    assert process.poll() is None
    process.kill()
    assert (process.wait(60), process.poll()) == (-signal.SIGKILL, -signal.SIGKILL)
