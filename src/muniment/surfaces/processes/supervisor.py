"""`muniment serve --workers N`: one socket, N processes that take requests from it, and one that supervises them.

The socket is bound once, here, and stays open: while a worker restarts, the others take its requests. Workers stop at
SIGTERM, and by themselves if this process is gone. No request data passes through here.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from types import FrameType

from muniment.errors import InvalidInput
from muniment.surfaces.http.logs import LOGGER
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.processes.worker import READY
from muniment.surfaces.settings import Settings

__all__ = ["DIRECTORY", "NUMBER", "Supervisor", "bind", "url_of"]

DIRECTORY, NUMBER = "MUNIMENT_WORKERS_DIR", "MUNIMENT_WORKER"
"""Environment variables of a worker: a folder that all workers of the server share while it runs, and the worker's
number, from 0.
"""
BACKLOG = 2048
_POLL_S = 0.05
_WAIT_S, _WAIT_MAX_S = 0.5, 30.0
"""Seconds before an ended worker is restarted, doubled each time it lived for less than `_LIVES_S`."""
_LIVES_S = 10.0
_TOLD = (0, -signal.SIGTERM, -signal.SIGINT)
"""Exit codes of a worker that was stopped deliberately."""


def bind(settings: ServerSettings) -> socket.socket:
    """Bind the socket on which all workers listen."""
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise InvalidInput(
            f"nothing can listen on {settings.host}:{settings.port}: {error.strerror or error}",
            path="$.port",
            hint="is another server there? name another port, or 0 for any that is free",
        ) from None


def url_of(settings: ServerSettings, listening: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host.strip("[]") else settings.host
    return f"{'https' if settings.tls_cert else 'http'}://{host}:{listening.getsockname()[1]}"


@dataclass(slots=True)
class _Worker:
    """One worker slot, whichever process fills it."""

    number: int
    process: subprocess.Popen[bytes] | None = None
    is_ready: bool = False
    started_s: float = 0.0
    starts_at_s: float = 0.0
    short_lives: int = field(default=0)


class Supervisor:
    """Starts and restarts the workers, until it is stopped."""

    def __init__(self, store: Settings, settings: ServerSettings, listening: socket.socket) -> None:
        self._told = json.dumps({"store": asdict(store), "server": asdict(settings)}).encode() + b"\n"
        self._listening = listening
        self._workers = [_Worker(number) for number in range(settings.workers)]
        self._signals = 0
        self._was_ready = False
        self._code = 0

    def run(self, announce: Callable[[], None]) -> int:
        """Serve; `announce` is called once, when the first worker accepts requests. Returns the exit code: 0 if all
        workers ended as ordered, 1 if one did not, or none could start.
        """
        held = {each: signal.signal(each, self._note) for each in (signal.SIGTERM, signal.SIGINT)}
        held[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._pass_on)
        folder = tempfile.mkdtemp(prefix="muniment-workers-")
        try:
            self._look_after(folder, announce)
        finally:
            self._end()
            shutil.rmtree(folder, ignore_errors=True)
            for each, handler in held.items():
                signal.signal(each, handler)
        return self._code

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        """Have each worker read its certificate again."""
        for worker in self._workers:
            if worker.is_ready and worker.process is not None and worker.process.poll() is None:
                worker.process.send_signal(number)

    def _look_after(self, folder: str, announce: Callable[[], None]) -> None:
        while not self._signals:
            for worker in self._workers:
                if worker.process is None:
                    if time.monotonic() >= worker.starts_at_s:
                        self._start(worker, folder)
                elif worker.process.poll() is not None:
                    if not self._was_ready:
                        LOGGER.error("the workers cannot start", extra={"said": {"code": worker.process.returncode}})
                        self._code = 1
                        return
                    self._start_later(worker)
                elif not worker.is_ready and _has_said_ready(worker.process):
                    worker.is_ready = True
                    if not self._was_ready:
                        self._was_ready = True
                        announce()
            time.sleep(_POLL_S)

    def _start(self, worker: _Worker, folder: str) -> None:
        number = self._listening.fileno()
        # A module in the current directory must not shadow ours, unless it already did here.
        flags = [] if sys.path[0] in ("", os.getcwd()) else ["-P"]
        process = subprocess.Popen(
            [sys.executable, *flags, "-m", "muniment.surfaces.processes.worker", str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(number,),
            process_group=0,  # Ctrl-C reaches only this process, which stops the workers
            env={**os.environ, DIRECTORY: folder, NUMBER: str(worker.number)},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        try:
            process.stdin.write(self._told)
            process.stdin.flush()
        except BrokenPipeError:
            LOGGER.error("a worker ended at once", extra={"said": {"worker": worker.number, "pid": process.pid}})
        worker.process, worker.is_ready, worker.started_s = process, False, time.monotonic()
        LOGGER.info("worker started", extra={"said": {"worker": worker.number, "pid": process.pid}})

    def _start_later(self, worker: _Worker) -> None:
        assert worker.process is not None
        now = time.monotonic()
        worker.short_lives = worker.short_lives + 1 if now - worker.started_s < _LIVES_S else 0
        wait_s = min(_WAIT_MAX_S, _WAIT_S * 2**worker.short_lives)
        said = {"worker": worker.number, "pid": worker.process.pid, "code": worker.process.returncode}
        LOGGER.error("worker ended", extra={"said": said | {"starts_again_in_s": wait_s}})
        _close_pipes(worker.process)
        worker.process, worker.starts_at_s = None, now + wait_s

    def _end(self) -> None:
        """Stop all workers and wait for them; a second signal hurries them."""
        running = [(worker, worker.process) for worker in self._workers if worker.process is not None]
        for _, process in running:
            if process.poll() is None:
                process.terminate()
        told = self._signals
        while any(process.poll() is None for _, process in running):
            if self._signals > told:
                told = self._signals
                for _, process in running:
                    process.send_signal(signal.SIGINT)
            time.sleep(_POLL_S)
        for worker, process in running:
            _close_pipes(process)
            if process.returncode not in _TOLD:
                self._code = 1
            said = {"worker": worker.number, "pid": process.pid, "code": process.returncode}
            LOGGER.info("worker stopped", extra={"said": said})


def _has_said_ready(process: subprocess.Popen[bytes]) -> bool:
    assert process.stdout is not None
    try:
        return os.read(process.stdout.fileno(), len(READY)) == READY
    except BlockingIOError:
        return False


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
