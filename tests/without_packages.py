"""Commands in a process where packages are not installed, or where the system is another one.

The finders are told not to find them, so it costs a process and no environment. `CALLS` runs several command lines one
after the other, as JSON on standard input, and answers for each: exit code, stdout, stderr.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Answer", "called_without"]

CALLS = """
import json, os, signal, sys

told = json.loads(sys.stdin.read())
names = frozenset(told["modules"])

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in names else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

import getpass, selectors, shutil, socket, subprocess, tempfile  # they ask the system by themselves
for module in [each for each in sys.modules if each.partition(".")[0] in names]:
    del sys.modules[module]
sys.meta_path[:] = map(Without, sys.meta_path)
for name in told["os"]:
    for module in (os, signal):
        if hasattr(module, name):
            delattr(module, name)

from click.testing import CliRunner
from muniment.surfaces.cli.main import cli

sys.stdin = open(os.devnull)
for words in told["calls"]:
    done = CliRunner().invoke(cli, words, prog_name="muniment", env=told["env"])
    raised = None if done.exception is None or isinstance(done.exception, SystemExit) else repr(done.exception)
    print(json.dumps([done.exit_code, done.stdout, done.stderr, raised]), flush=True)
"""


class Answer(NamedTuple):
    code: int
    stdout: str
    stderr: str
    raised: str | None
    """What came out of the command as an exception: a traceback for whoever typed it."""


def called_without(
    modules: Iterable[str],
    calls: Sequence[Sequence[str]],
    folder: Path,
    *,
    env: Mapping[str, str] | None = None,
    os_names: Iterable[str] = (),
) -> list[Answer]:
    """What each command answers, in one process, in a folder of its own."""
    told: dict[str, Any] = {"modules": sorted(modules), "calls": calls, "env": dict(env or {}), "os": sorted(os_names)}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    done = subprocess.run(
        [sys.executable, "-c", CALLS],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=clean | {"HOME": str(folder)},
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return [Answer(*json.loads(line)) for line in done.stdout.splitlines()]
