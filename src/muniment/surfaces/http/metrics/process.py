"""What the system says of this process: its CPU time, memory, open files, and when it began."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from muniment.core.outside.posix import resource

__all__ = ["STARTED_S", "ProcessState", "process_state"]

STARTED_S = time.time()
"""When this was loaded, which is when the server was."""
_PROC = Path("/proc/self")


class ProcessState(NamedTuple):
    cpu_s: float
    memory_bytes: int
    open_files: int


def process_state() -> ProcessState:
    """As it stands. Where there is no /proc, memory is the most that it ever was, and open files are not known (0)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = used.ru_utime + used.ru_stime
    if not _PROC.is_dir():
        return ProcessState(cpu_s, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024), 0)
    pages = int((_PROC / "statm").read_text().split()[1])
    return ProcessState(cpu_s, pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(_PROC / "fd")))
