"""Looking at the processes of an action from outside: how many, how much memory, how much CPU.

From the init of the namespace downwards: whatever loses its parent becomes a child of that init, so its tree is
all there is.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["Sample", "Watch", "can_watch", "children"]

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Sample(NamedTuple):
    processes: int
    memory_kb: int
    cpu_ms: int


def can_watch() -> bool:
    """Does this kernel list the children of a process?"""
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


class Watch:
    """Sums over the tree below one process; remembers the CPU time of those that are gone."""

    def __init__(self, init_pid: int, mem_kb_max: int) -> None:
        self._init = init_pid
        self._mem_kb_max = mem_kb_max
        self._spent: dict[tuple[int, str], int] = {}

    def sample(self) -> Sample:
        pids = _tree(self._init)
        reaped = 0
        for pid in pids:
            with suppress(OSError, IndexError):  # gone since
                # After the name, which may hold anything, fields 3 onwards: 14 to 17 are times, 22 is the start.
                part = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
                self._spent[pid, part[19]] = int(part[11]) + int(part[12])
                reaped += sum(map(int, part[11:15]))
        ticks = max(reaped, sum(self._spent.values()))
        return Sample(len(pids) - 1, self._memory_kb(pids), ticks * 1000 // _TICKS_A_SECOND)

    def _memory_kb(self, pids: list[int]) -> int:
        """Pages that processes share after a fork count once where it matters, that is near the cap."""
        plain = sum(_lines_kb(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:", "VmSwap:")) or 0 for pid in pids)
        if plain <= self._mem_kb_max:
            return plain
        total = 0
        for pid in pids:
            shared_out = _lines_kb(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:", "SwapPss:"))
            if shared_out is None:  # it may hide this, but not its status
                shared_out = _lines_kb(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:", "VmSwap:")) or 0
            total += shared_out
        return total


def _tree(init_pid: int) -> list[int]:
    found, waiting = [init_pid], [init_pid]
    while waiting:
        below = children(waiting.pop())
        found += below
        waiting += below
    return found


def children(pid: int) -> list[int]:
    """The children of all threads of a process; none if it is gone."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                found += [int(child) for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()]
    return found


def _lines_kb(path: str, names: tuple[str, ...]) -> int | None:
    """The sum of the named lines, such as `RssAnon:  120 kB`; None where the file cannot be read."""
    try:
        text = Path(path).read_text(errors="replace")
    except OSError:
        return None
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(names))
