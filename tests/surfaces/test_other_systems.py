"""On a system without what Linux and macOS share: the core works, and what cannot says so.

What Windows lacks is taken away from a process here. That is no Windows, and docs/installing.md says so.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from without_packages import called_without

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "uvloop")
NAMES = (
    "fork", "pread", "pwrite", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "geteuid", "getuid", "killpg",
    "memfd_create", "fchmod", "fchown", "chown", "getpgid", "setsid", "sysconf", "SIGHUP", "SIGKILL", "SIGUSR1",
    "setitimer",
)  # fmt: skip
"""Of `os` and `signal`, which Windows has not."""

WSL = "on Windows, run it in WSL"


@pytest.mark.soak
def test_the_core_keeps_and_finds(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "I moved to Berlin in May."}]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(each) + "\n" for each in said), "utf-8")
    calls = [
        ["ingest", "said.jsonl", "--user", "ana", "--db", "a.db"],
        ["search", "where does she live", "--user", "ana", "--db", "a.db"],
        ["verify", "--db", "a.db"],
        ["store", "backup", "copy.db", "--db", "a.db"],
        ["forget", "--user", "ana", "--db", "a.db", "--yes"],
        ["store", "scrub", "--db", "a.db"],
    ]
    answers = called_without(MODULES, calls, tmp_path, os_names=NAMES)
    assert [(said.code, said.raised) for said in answers] == [(0, None)] * len(calls), answers
    assert "Berlin" in answers[1].stdout
    assert b"Berlin" not in (tmp_path / "a.db").read_bytes()


def test_what_needs_another_system_says_so(tmp_path: Path) -> None:
    calls = [
        ["serve", "--port", "0", "--auth", "auto"],
        ["serve", "--port", "0", "--auth", "auto", "--workers", "2"],
        ["proxy", "--upstream", "http://127.0.0.1:9"],
        ["store", "keys", "list"],
        ["research", "init", "Do ferries sail in winter?", "--user", "ana", "--db", "a.db"],
        ["check", "sandbox", "--", "true"],
    ]
    for words, said in zip(calls, called_without(MODULES, calls, tmp_path, os_names=NAMES), strict=True):
        assert said.code == 1, (words, said)
        assert said.raised is None, (words, said.raised)
        assert said.stderr.startswith("error[missing_dependency]: this runs on Linux and macOS"), (words, said.stderr)
        assert WSL in said.stderr


def test_the_doctor_comes_all_the_same(tmp_path: Path) -> None:
    (said,) = called_without(MODULES, [["doctor", "--json"]], tmp_path, os_names=NAMES)
    found = json.loads(said.stdout)
    assert (said.code, found["problems"]) == (0, [])
    assert WSL in found["sandbox"]["error"]["hint"]
