"""A control group for one action, where this process may make one: memory, processes and CPU counted by the kernel.

Both versions of control groups. Where none can be made, `open_group` gives None: resource limits and the watcher
hold the caps then. Groups that a killed process left behind are cleared away by the next.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from muniment.verify.sandbox.caps import MB, Limits

__all__ = ["Group", "open_group"]

_PREFIX = "muniment-"
_SYSTEM = Path("/sys/fs/cgroup")
_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class Group:
    """The folders of one group, and the files that tell what became of it."""

    folders: tuple[Path, ...]
    oom: Path
    forks: Path
    cpu: Path | None

    def add(self, pid: int) -> None:
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(f"{pid}\n")

    def cpu_ms(self) -> int | None:
        """CPU time of everything that ever ran in it."""
        if self.cpu is None:
            return None
        text = self.cpu.read_text()
        if self.cpu.name == "cpu.stat":
            return int(_table(text)["usage_usec"]) // 1000
        return int(text) // 1_000_000

    def was_out_of_memory(self) -> bool:
        return int(_table(self.oom.read_text()).get("oom_kill", "0")) > 0

    def was_out_of_processes(self) -> bool:
        return int(_table(self.forks.read_text()).get("max", "0")) > 0

    def remove(self) -> None:
        for folder in self.folders:
            with suppress(OSError):  # still busy: the next to open one clears it away
                folder.rmdir()


def _table(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition(" ") for line in text.splitlines())}


def open_group(limits: Limits, system: Path = _SYSTEM, own: str | None = None) -> Group | None:
    """A group under these limits, or None. `own` is the text of /proc/self/cgroup."""
    try:
        member = _membership(Path("/proc/self/cgroup").read_text() if own is None else own)
        return _open_first(limits, system, member) or _open_second(limits, system, member)
    except OSError:
        return None


def _membership(text: str) -> dict[str, str]:
    """Controller → path of the group this process is in; version 2 is under the empty name."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            found[name] = path
    return found


def _open_first(limits: Limits, system: Path, member: Mapping[str, str]) -> Group | None:
    """Version 1: a hierarchy for each controller."""
    if "memory" not in member or "pids" not in member:
        return None
    made: list[Path] = []
    try:
        names = (name for name in ("memory", "pids", "cpuacct") if name in member)
        made.extend(_make(system / name / member[name].lstrip("/")) for name in names)
        memory, pids = made[0], made[1]
        (memory / "memory.limit_in_bytes").write_text(str(_memory_bytes(limits)))
        (pids / "pids.max").write_text(str(_tasks(limits)))
        with suppress(OSError):  # only where swap is counted
            (memory / "memory.memsw.limit_in_bytes").write_text(str(_memory_bytes(limits)))
    except OSError:
        _unmake(made)
        return None
    cpu = made[2] / "cpuacct.usage" if len(made) > 2 else None
    return Group(tuple(made), memory / "memory.oom_control", pids / "pids.events", cpu)


def _open_second(limits: Limits, system: Path, member: Mapping[str, str]) -> Group | None:
    """Version 2: below our own group where its controllers are handed down, else, for root, at the top."""
    for parent in (system / member.get("", "/").lstrip("/"), system):
        made: list[Path] = []
        try:
            folder = _make(parent)
            made.append(folder)
            (folder / "memory.max").write_text(str(_memory_bytes(limits)))
            (folder / "pids.max").write_text(str(_tasks(limits)))
            with suppress(OSError):
                (folder / "memory.swap.max").write_text("0")
        except OSError:
            _unmake(made)
            continue
        return Group((folder,), folder / "memory.events", folder / "pids.events", folder / "cpu.stat")
    return None


def _make(parent: Path) -> Path:
    for left in parent.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            with suppress(OSError):
                left.rmdir()
    folder = parent / f"{_PREFIX}{os.getpid()}-{next(_counter)}"
    folder.mkdir()
    return folder


def _unmake(made: list[Path]) -> None:
    for folder in made:
        with suppress(OSError):
            folder.rmdir()


def _memory_bytes(limits: Limits) -> int:
    """Files of the scratch are memory too, and charged to who wrote them."""
    return (limits.mem_mb + limits.disk_mb + 16) * MB


def _tasks(limits: Limits) -> int:
    return limits.processes + 1
