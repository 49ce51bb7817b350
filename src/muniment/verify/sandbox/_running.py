"""Run one action: hold it until its limits are set, watch it, and kill all of it when it is over.

Bubblewrap holds the action until its init is in its control group and under its resource limits. Output is read only up
to its cap. When the command ends, or hits a cap, the init of its process namespace is killed, and the kernel kills
everything else in it.
"""

from __future__ import annotations

import itertools
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import NamedTuple

from muniment.contracts.runs import SandboxCaps, SandboxPolicy
from muniment.core.outside.posix import resource
from muniment.errors import InvalidInput
from muniment.verify.sandbox.port import Cap, Usage, Wires

_TICK_SECONDS = 0.02
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Descriptors:
    """File descriptors passed to an action."""

    status: int
    block: int
    seccomp: int


NO_WIRES = Wires()


@dataclass(frozen=True, slots=True)
class Finished:
    """How an action ended. `exit_code` is None if the command was not run or did not end by itself."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    capped: tuple[Cap, ...]
    usage: Usage
    started: bool


@dataclass(slots=True)
class _Action:
    """State of a running action."""

    limits: Limits
    in_use: Callable[[], tuple[int, int]]
    process: subprocess.Popen[bytes]
    group: Group | None
    init: int = -1
    watch: Watch | None = None
    status: bytes = b""
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    capped: dict[Cap, None] = field(default_factory=dict)
    is_cut_off: bool = False
    is_ended: bool = False
    """True if the caller ended it."""
    began: float = field(default_factory=time.monotonic)
    cpu_ms: int = 0
    memory_kb: int = 0
    processes: int = 0
    sampled: float = 0.0

    @property
    def wall_ms(self) -> int:
        return int((time.monotonic() - self.began) * 1000)

    def kill(self, cap: Cap | None = None) -> None:
        if cap is not None:
            self.capped.setdefault(cap)
            self.is_cut_off = True
        if self.init >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.init, signal.SIGKILL)
        else:
            self.process.kill()


def run_action(
    arguments: Callable[[Descriptors, str], Sequence[str]],
    seccomp: bytes,
    limits: Limits,
    in_use: Callable[[], tuple[int, int]],
    wires: Wires = NO_WIRES,
) -> Finished:
    """Run an action under these limits; `in_use` returns bytes and files of the scratch. Raises OSError if it cannot
    start.

    `arguments` makes the command line from the descriptors and the line of bash that sets its resource limits.
    """
    group = open_group(limits)
    program = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    status_read, status_write = os.pipe()
    block_read, block_write = os.pipe()
    ours = [program, status_read, status_write, block_read, block_write]
    try:
        os.write(program, seccomp)
        os.lseek(program, 0, os.SEEK_SET)
        process = subprocess.Popen(
            arguments(Descriptors(status_write, block_read, program), _limit_script(limits, group)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(status_write, block_read, program, *wires.passed),
            env={},
            bufsize=0,
            start_new_session=True,
        )
        for taken in (status_write, block_read):
            os.close(taken)
            ours.remove(taken)
        action = _Action(limits, in_use, process, group)
        try:
            with selectors.DefaultSelector() as selector:
                _follow(action, selector, status_read, block_write, wires.until)
        finally:
            _end(action)
    finally:
        for left in ours:
            os.close(left)
        if group is not None:
            group.remove()
    return _finished(action)


def _limit_script(limits: Limits, group: Group | None) -> str:
    wanted = resource_limits(limits, counted=group is not None)
    return limit_script(wanted, {name: resource.getrlimit(getattr(resource, name))[1] for name in wanted})


def _follow(
    action: _Action, selector: selectors.BaseSelector, status: int, block: int, until: int | None = None
) -> None:
    assert action.process.stdout is not None
    assert action.process.stderr is not None
    sinks = {action.process.stdout.fileno(): action.out, action.process.stderr.fileno(): action.err}
    for source in (*sinks, status):
        os.set_blocking(source, False)
        selector.register(source, selectors.EVENT_READ)
    if until is not None:
        selector.register(until, selectors.EVENT_READ)
    while set(selector.get_map()) - {until}:
        for key, _ in selector.select(_TICK_SECONDS):
            if key.fd == until:
                selector.unregister(until)
                action.is_ended = True
                action.kill()
                continue
            part = os.read(key.fd, _CHUNK)
            if key.fd != status:
                _keep(action, sinks[key.fd], part)
            elif part:
                action.status += part
                if action.init < 0 and b"\n" in action.status:
                    _release(action, block)
            else:
                action.kill()  # kill everything the command left running
            if not part:
                selector.unregister(key.fd)
        _check(action)


def _release(action: _Action, block: int) -> None:
    """Put the waiting init under its limits, then release it; if it cannot be limited, it is not released."""
    pid = int(_status(action.status)["child-pid"])
    try:
        action.init = os.pidfd_open(pid)
        if action.group is not None:
            action.group.add(pid)
        action.watch = Watch(pid, action.limits.mem_mb * 1024)
        os.write(block, b"..")
    except OSError as error:
        action.err += f"the action was not released: {error}\n".encode()
        action.kill()


def _keep(action: _Action, sink: bytearray, part: bytes) -> None:
    room = action.limits.output_bytes - len(action.out) - len(action.err)
    sink += part[: max(0, room)]
    if len(part) > room:
        action.kill("output")


def _check(action: _Action) -> None:
    """Check the limits that nothing else enforces: time, memory, files."""
    limits, now = action.limits, time.monotonic()
    if action.wall_ms >= limits.wall_ms:
        action.kill("wall")
    if action.watch is None or now - action.sampled < _TICK_SECONDS:
        return
    action.sampled = now
    sample = action.watch.sample()
    counted = action.group.cpu_ms() if action.group is not None else None
    action.cpu_ms = max(action.cpu_ms, sample.cpu_ms if counted is None else counted)
    action.memory_kb = max(action.memory_kb, sample.memory_kb)
    action.processes = max(action.processes, sample.processes)
    if action.cpu_ms >= limits.cpu_ms:
        action.kill("cpu")
    if sample.memory_kb > limits.mem_mb * 1024:
        action.kill("memory")
    if _look_at_scratch(action):
        action.kill("files")
    if sample.processes >= limits.processes:
        action.capped.setdefault("processes")  # forking fails by itself


def _look_at_scratch(action: _Action) -> bool:
    """Note a full scratch, where writing fails by itself; return whether there are too many files."""
    used_bytes, used_files = action.in_use()
    if used_bytes >= action.limits.disk_mb * MB:
        action.capped.setdefault("disk")
    return used_files > action.limits.files


def _end(action: _Action) -> None:
    action.kill()
    action.process.wait()
    for pipe in (action.process.stdout, action.process.stderr):
        assert pipe is not None
        pipe.close()
    if action.init >= 0:
        selector = selectors.DefaultSelector()
        selector.register(action.init, selectors.EVENT_READ)
        selector.select()  # readable once it and every process of its namespace are gone
        selector.close()
        os.close(action.init)
    if action.group is not None:
        action.cpu_ms = max(action.cpu_ms, action.group.cpu_ms())
        if action.group.was_out_of_memory():
            action.capped.setdefault("memory")
        if action.group.was_out_of_processes():
            action.capped.setdefault("processes")
    if action.cpu_ms >= action.limits.cpu_ms:
        action.capped.setdefault("cpu")
    if _look_at_scratch(action):
        action.capped.setdefault("files")


def _status(text: bytes) -> dict[str, int]:
    """The `--json-status-fd` output so far: whole lines, each a JSON object."""
    found: dict[str, int] = {}
    for line in text.split(b"\n")[:-1]:
        if line.strip():
            found.update(json.loads(line))
    return found


def _finished(action: _Action) -> Finished:
    exit_code = _status(action.status).get("exit-code")
    return Finished(
        exit_code=None if action.is_cut_off else exit_code,
        stdout=bytes(action.out),
        stderr=bytes(action.err),
        capped=tuple(action.capped),
        usage=Usage(
            wall_ms=action.wall_ms,
            cpu_ms=action.cpu_ms,
            mem_mb_peak=-(-action.memory_kb // 1024),
            processes_peak=action.processes,
        ),
        started=exit_code is not None or action.is_cut_off or action.is_ended,
    )


# -- limits --------------------------------------------------------------------------------------------

MB = 1 << 20
MAPPED_MB_MORE = 2048


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a session: turns, wall and CPU time apply to all of its actions, the rest at any moment."""

    max_turns: int = 100
    wall_ms: int = 60_000
    cpu_ms: int = 60_000
    mem_mb: int = 512
    disk_mb: int = 256
    processes: int = 64
    files: int = 20_000
    output_bytes: int = MB

    def after(self, *, wall_ms: int, cpu_ms: int) -> Limits:
        """The limits left after an action used this much; times never go below zero."""
        return replace(
            self,
            max_turns=self.max_turns - 1,
            wall_ms=max(0, self.wall_ms - wall_ms),
            cpu_ms=max(0, self.cpu_ms - cpu_ms),
        )


DEFAULTS = Limits()


def limits_of(policy: SandboxPolicy) -> Limits:
    """The policy's caps over the defaults; raises `InvalidInput` for a cap that is not a positive integer."""
    caps = policy.caps or SandboxCaps()
    asked = {**{name: getattr(caps, name) for name in SandboxCaps.model_fields}, **(caps.model_extra or {})}
    unknown = sorted(asked.keys() - {field.name for field in fields(Limits)})
    if unknown:
        raise InvalidInput(f"there is no cap {unknown[0]!r}", path=f"$.caps.{unknown[0]}")
    given = {name: value for name, value in asked.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidInput(f"the cap {name!r} is an integer of at least 1", path=f"$.caps.{name}")
    return replace(DEFAULTS, **given)


_FLAGS = {  # ulimit option of bash, and its unit
    "RLIMIT_CORE": ("-c", 1024),
    "RLIMIT_CPU": ("-t", 1),
    "RLIMIT_DATA": ("-d", 1024),
    "RLIMIT_FSIZE": ("-f", 1024),
    "RLIMIT_MEMLOCK": ("-l", 1024),
    "RLIMIT_MSGQUEUE": ("-q", 1),
    "RLIMIT_NOFILE": ("-n", 1),
    "RLIMIT_NPROC": ("-u", 1),
}


def resource_limits(limits: Limits, *, counted: bool) -> dict[str, int]:
    """Limits of each process by RLIMIT name, enforced without a watcher.

    `counted` means that a control group counts memory. Otherwise the watcher, which sums over processes, kills at the
    cap, and a single process's address space is bounded well above it: a failed allocation would look like a fault of
    the program.
    """
    made = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": -(-limits.cpu_ms // 1000) + 1,
        "RLIMIT_FSIZE": limits.disk_mb * MB,
        "RLIMIT_MEMLOCK": 64 << 10,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_NOFILE": 256,
        "RLIMIT_NPROC": limits.processes + 1,  # plus the init of the namespace
    }
    if counted:
        made["RLIMIT_NPROC"] += 8  # so that the group refuses first, as it reports that
    else:
        made["RLIMIT_DATA"] = (limits.mem_mb + MAPPED_MB_MORE) * MB
    return made


def limit_script(wanted: Mapping[str, int], hard: Mapping[str, int]) -> str:
    """A line of bash that lowers its own limits for good and then executes its arguments.

    `hard` are the limits it starts with, negative if there is none. They are set inside because the process count is
    then that of the sandbox's own user namespace.
    """
    parts = []
    for name, value in wanted.items():
        flag, unit = _FLAGS[name]
        ceiling = hard.get(name, -1)
        parts.append(f"{flag} {(value if ceiling < 0 else min(value, ceiling)) // unit}")
    return f'ulimit {" ".join(parts)} && exec "$@"'


# -- control groups ------------------------------------------------------------------------------------

_PREFIX = "muniment-"
_SYSTEM = Path("/sys/fs/cgroup")
_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class Group:
    """The folder of one control group (version 2)."""

    folder: Path

    def add(self, pid: int) -> None:
        (self.folder / "cgroup.procs").write_text(f"{pid}\n")

    def cpu_ms(self) -> int:
        """CPU time of all processes that ever ran in it."""
        return int(self._table("cpu.stat")["usage_usec"]) // 1000

    def was_out_of_memory(self) -> bool:
        return int(self._table("memory.events").get("oom_kill", "0")) > 0

    def was_out_of_processes(self) -> bool:
        return int(self._table("pids.events").get("max", "0")) > 0

    def remove(self) -> None:
        with suppress(OSError):  # still busy: the next group opened removes it
            self.folder.rmdir()

    def _table(self, name: str) -> dict[str, str]:
        rows = (line.partition(" ") for line in (self.folder / name).read_text().splitlines())
        return {key: value for key, _, value in rows}


def open_group(limits: Limits, system: Path = _SYSTEM, own: str | None = None) -> Group | None:
    """Open a group under these limits, or return None. `own` is the text of /proc/self/cgroup."""
    try:
        text = Path("/proc/self/cgroup").read_text() if own is None else own
    except OSError:
        return None
    path = next((line.removeprefix("0::") for line in text.splitlines() if line.startswith("0::")), "/")
    for parent in (system / path.lstrip("/"), system):
        if (parent / "cgroup.controllers").exists():  # otherwise it is not a control group
            with suppress(OSError):
                return _make(parent, limits)
    return None


def _make(parent: Path, limits: Limits) -> Group:
    """Make the group below our own if its controllers are delegated, else, for root, at the top."""
    for left in parent.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            with suppress(OSError):
                left.rmdir()
    folder = parent / f"{_PREFIX}{os.getpid()}-{next(_counter)}"
    folder.mkdir()
    try:
        (folder / "memory.max").write_text(str(_memory_bytes(limits)))
        (folder / "pids.max").write_text(str(_tasks(limits)))
    except OSError:
        folder.rmdir()
        raise
    with suppress(OSError):  # only if swap is counted
        (folder / "memory.swap.max").write_text("0")
    return Group(folder)


def _memory_bytes(limits: Limits) -> int:
    """Memory limit including the scratch, whose files are memory charged to their writer."""
    return (limits.mem_mb + limits.disk_mb + 16) * MB


def _tasks(limits: Limits) -> int:
    return limits.processes + 1


# -- watching ------------------------------------------------------------------------------------------

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Sample(NamedTuple):
    processes: int
    memory_kb: int
    cpu_ms: int


def can_watch() -> bool:
    """True if this kernel lists the children of a process."""
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


class Watch:
    """Sums over the tree below one process; remembers the CPU time of ended ones."""

    def __init__(self, init_pid: int, mem_kb_max: int) -> None:
        self._init = init_pid
        self._mem_kb_max = mem_kb_max
        self._spent: dict[tuple[int, str], int] = {}

    def sample(self) -> Sample:
        pids = _tree(self._init)
        reaped = 0
        for pid in pids:
            with suppress(OSError, IndexError):  # the process ended meanwhile
                # After the name, which may hold anything, come fields 3 onwards: 14 to 17 are times, 22 is the start.
                part = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
                self._spent[pid, part[19]] = int(part[11]) + int(part[12])
                reaped += sum(map(int, part[11:15]))
        ticks = max(reaped, sum(self._spent.values()))
        return Sample(len(pids) - 1, self._memory_kb(pids), ticks * 1000 // _TICKS_A_SECOND)

    def _memory_kb(self, pids: list[int]) -> int:
        """Memory in use, counting pages shared after a fork once when near the cap, where it matters."""
        plain = sum(_lines_kb(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:", "VmSwap:")) or 0 for pid in pids)
        if plain <= self._mem_kb_max:
            return plain
        total = 0
        for pid in pids:
            shared_out = _lines_kb(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:", "SwapPss:"))
            if shared_out is None:  # this file may be unreadable, unlike its status
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
    """The children of all threads of a process; none if it has ended."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError):
                found += [int(child) for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()]
    return found


def _lines_kb(path: str, names: tuple[str, ...]) -> int | None:
    """The sum of the named lines, such as `RssAnon:  120 kB`; None if the file cannot be read."""
    try:
        text = Path(path).read_text(errors="replace")
    except OSError:
        return None
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(names))
