"""One action from start to end: started, held until its limits are set, watched, and killed whole when it is over.

The action is held by bubblewrap until its init is in its control group and under its resource limits. Its output
is read here and no further than its cap. When the command ends, or meets a cap, the init of its process
namespace is killed, and the kernel kills everything else in it.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from muniment.core.outside.posix import resource
from muniment.verify.sandbox.arguments import Descriptors
from muniment.verify.sandbox.caps import MB, Limits, limit_script, resource_limits
from muniment.verify.sandbox.cgroups import Group, open_group
from muniment.verify.sandbox.port import Cap, Usage
from muniment.verify.sandbox.watching import Watch

__all__ = ["NO_WIRES", "Finished", "Wires", "run_action"]

_TICK_SECONDS = 0.02
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Wires:
    """Descriptors that an action is handed beside its output, under the numbers they have here.

    The action is ended as soon as there is something to read at `until`, or its other end is closed.
    """

    passed: tuple[int, ...] = ()
    until: int | None = None


NO_WIRES = Wires()


@dataclass(frozen=True, slots=True)
class Finished:
    """How it ended. `exit_code` is None where the command was not run or did not end by itself."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    capped: tuple[Cap, ...]
    usage: Usage
    started: bool


@dataclass(slots=True)
class _Action:
    """What is known of a running action."""

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
    """By whoever started it."""
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
    """Run it under these limits; `in_use` tells bytes and files of the scratch. Raises OSError if it cannot start.

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
                action.kill()  # the command is over: so is all that it left running
            if not part:
                selector.unregister(key.fd)
        _check(action)


def _release(action: _Action, block: int) -> None:
    """Put the waiting init under its limits, then let it go on; one that cannot be limited is not let go."""
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
    """Look at what nobody else stops: time, memory, files."""
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
        action.capped.setdefault("processes")  # so does forking


def _look_at_scratch(action: _Action) -> bool:
    """Note a full scratch, where writing fails by itself; are there too many files?"""
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
        selector.select()  # readable when it, and with it every process of its namespace, is gone
        selector.close()
        os.close(action.init)
    if action.group is not None:
        action.cpu_ms = max(action.cpu_ms, action.group.cpu_ms() or 0)
        if action.group.was_out_of_memory():
            action.capped.setdefault("memory")
        if action.group.was_out_of_processes():
            action.capped.setdefault("processes")
    if action.cpu_ms >= action.limits.cpu_ms:
        action.capped.setdefault("cpu")
    if _look_at_scratch(action):
        action.capped.setdefault("files")


def _status(text: bytes) -> dict[str, int]:
    """What `--json-status-fd` has said so far: whole lines, each a JSON object."""
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
