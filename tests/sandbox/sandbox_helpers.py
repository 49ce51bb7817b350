"""What tests of the sandbox share: what a session is opened with, what is still running, how root steps down."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path

from muniment.verify.sandbox._mounts import find_tools
from muniment.verify.sandbox.bubblewrap import BubblewrapSession

__all__ = ["NOBODY", "Opener", "as_ordinary_user", "left_running"]

NOBODY = 65534

Opener = Callable[..., BubblewrapSession]


def as_ordinary_user(command: list[str], needed: list[Path]) -> list[str]:
    """The command line that drops to `nobody` for good, with folders closed to others opened around what is needed.

    Root's Python may lie where nobody else can look.
    """
    made = [find_tools().bwrap, "--dev-bind", "/", "/"]
    covered: set[Path] = set()
    for path in [Path(sys.base_prefix).resolve(), Path(sys.prefix), *needed]:
        shut = [parent for parent in reversed(path.parents) if not parent.stat().st_mode & stat.S_IXOTH]
        if shut:
            if shut[0] not in covered:
                made += ["--perms", "0755", "--tmpfs", str(shut[0])]
                covered.add(shut[0])
            for parent in reversed(path.parents):
                if parent.is_relative_to(shut[0]) and parent != shut[0]:
                    made += ["--perms", "0755", "--dir", str(parent)]
            made += ["--ro-bind", str(path), str(path)]
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", "--"]
    return [*made, "--", *drop, *command]


def left_running(token: str) -> list[str]:
    """Processes of this machine whose command line holds the token."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if token.encode() in line:
            found.append(f"{path.parent.name}: {line!r}")
    return found
