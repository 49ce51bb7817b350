"""The stage of a session: a mount namespace with the sandbox's root and its sized scratch, held by one `cat`.

It lives as long as we hold its input open: if this process dies, however it dies, the stage and all files in it go.
"""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from muniment.errors import SandboxDenied
from muniment.verify.sandbox.arguments import SCRATCH, STEP_DOWN
from muniment.verify.sandbox.finding import REFUSED_HINT
from muniment.verify.sandbox.scratch import Scratch, empty
from muniment.verify.sandbox.watching import children

__all__ = ["Stage"]

_START_SECONDS = 20.0


class Stage:
    """A stage that stands; raises `SandboxDenied` where the system does not let it be built."""

    def __init__(self, arguments: Sequence[str], *, is_root: bool) -> None:
        try:
            self._holder = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                bufsize=0,
            )
        except OSError as error:
            raise SandboxDenied(f"bubblewrap cannot be run: {error}", hint=REFUSED_HINT) from None
        try:
            self._await()
            (self.pid,) = children(self._holder.pid)
            self.scratch = self._open_scratch(is_root)
        except (OSError, ValueError):
            raise self._refusal() from None

    def _await(self) -> None:
        """`cat` answers when everything is mounted."""
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.write(b".")
        ready, _, _ = select.select([self._holder.stdout], [], [], _START_SECONDS)
        if not ready or self._holder.stdout.read(1) != b".":
            raise OSError("the stage did not come up")

    def _open_scratch(self, is_root: bool) -> Scratch:
        base = f"/proc/{self.pid}/root{SCRATCH}"
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        self._folders = tuple(os.open(f"{base}/{name}", flags) for name in ("tmp", "shm"))
        work = os.open(f"{base}/work", flags)
        owner = (STEP_DOWN, STEP_DOWN) if is_root else None
        if owner is not None:
            for folder in (work, *self._folders):
                os.fchown(folder, *owner)
        return Scratch(work, owner)

    def _refusal(self) -> SandboxDenied:
        self._holder.kill()
        _, said = self._holder.communicate()
        last = said.decode("utf-8", "replace").strip() or "bubblewrap ended without a word"
        return SandboxDenied(f"the system refuses the sandbox: {last}", hint=REFUSED_HINT)

    def sweep(self) -> None:
        """Empty what does not outlive an action: /tmp and /dev/shm."""
        for folder in self._folders:
            empty(folder)

    def close(self) -> None:
        self.scratch.close()
        for folder in self._folders:
            os.close(folder)
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait()
        for pipe in (self._holder.stdout, self._holder.stderr):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
