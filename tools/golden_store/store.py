"""The store that is being written: one memory whose clock and ids repeat, and a note of every build."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from os import PathLike
from typing import Any

import muniment
from muniment.core.outside.system import CountingIds, TickingClock

__all__ = ["GoldenStore", "build_digests", "digest", "open_repeatable"]

TOKENS = "estimate_v1"
"""The counter that needs no package, so that packets come out the same on every machine."""


def digest(data: bytes | str) -> str:
    """SHA-256 in hex."""
    return sha256(data.encode() if isinstance(data, str) else data).hexdigest()


class RepeatableIds(CountingIds):
    """Ids of the form that `SystemIds` gives, by their number."""

    def new(self, prefix: str) -> str:
        return f"{prefix}_{self._next():032x}"


def open_repeatable(target: str | PathLike[str], *, clock: TickingClock, ids: str, **more: Any) -> muniment.Memory:
    """A memory that does the same each time: its clock ticks by the second, its ids are counted under a name."""
    return muniment.open(target, clock=clock, ids=RepeatableIds(ids), tokens=TOKENS, **more)


def build_digests(build: Any) -> dict[str, Any]:
    """What a build came to: its packet, its text, and what they cost."""
    return {
        "packet_sha256": digest(build.packet_bytes),
        "text_sha256": digest(build.text),
        "tokens": build.tokens,
    }


class GoldenStore:
    """A memory, the clock that it reads, and what was built on the way."""

    def __init__(self, mem: muniment.Memory, clock: TickingClock, is_small: bool = False) -> None:
        self.is_small = is_small
        self.mem = mem
        self.clock = clock
        self.builds: list[dict[str, Any]] = []

    def go_to(self, moment: str) -> None:
        """Set the clock, so that what follows happens on another day."""
        self.clock.set(datetime.fromisoformat(moment))

    def compose(self, run: muniment.Run, purpose: str, **asked: Any) -> Any:
        """Compose a packet and note what it came to."""
        build = run.compose(purpose, **asked)
        self.builds.append({"id": build.id, "tenant_id": run.scope.tenant_id} | build_digests(build))
        return build
