"""`muniment` commands, and scripts that use the library, out of a process that has everything loaded.

A page of the documentation types dozens of commands, a script is killed dozens of times, and each start would spend a
second on loading. Here one process loads, and what is started is a fork of it: a process of its own, with its own
folder, environment and streams. What serves until it is told to stop is started as everywhere.

    python tests/warm_commands.py SOCKET            the process that has loaded; it ends when its input does
    python tests/warm_commands.py SOCKET -- ARGS    a command
"""

from __future__ import annotations

import json
import os
import runpy
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "WarmProcess",
    "captured",
    "command_line",
    "run_script",
    "start_command",
    "start_script",
    "warm_commands",
]

_LASTING = ("serve", "mcp")
"""Commands that are signalled: they are not forks."""
_CODE = struct.Struct("!i")


def command_line(place: str | None) -> str:
    """What a shell is to run for `muniment`; without a place, a process that loads by itself."""
    python = shlex.quote(sys.executable)
    if place is None:
        return f"{python} -m muniment"
    return f"{python} -I -S {shlex.quote(__file__)} {shlex.quote(place)} --"


@contextmanager
def warm_commands() -> Iterator[str | None]:
    """The place to ask for commands at, as long as it is used; None where processes cannot be had by forking."""
    if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "warm")
        process = subprocess.Popen(
            [sys.executable, __file__, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
        )
        with process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"loaded\n"
            try:
                yield place
            finally:
                process.kill()


class WarmProcess:
    """A script that runs in a fork: what `subprocess.Popen` offers to who waits for it or kills it.

    What a signal ended is told as killed, whichever signal it was.
    """

    def __init__(
        self,
        place: str,
        script: str,
        arguments: list[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        streams: tuple[int, int] = (1, 2),
        strict: bool = False,
    ) -> None:
        self.returncode: int | None = None
        environ = dict(os.environ if env is None else env)
        said = {"script": script, "arguments": arguments, "folder": str(cwd or os.getcwd()), "environ": environ}
        asked = json.dumps(said | {"strict": strict}).encode()
        self._wire = socket.socket(socket.AF_UNIX)
        self._wire.connect(place)
        socket.send_fds(self._wire, [_CODE.pack(len(asked))], [0, *streams])
        self._wire.sendall(asked)
        self.pid: int = _CODE.unpack(self._wire.recv(_CODE.size, socket.MSG_WAITALL))[0]

    def poll(self) -> int | None:
        """Its exit code, less than nothing where a signal ended it; None as long as it runs."""
        if self.returncode is None and select.select([self._wire], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._wire], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0.0)
            code = self._wire.recv(_CODE.size, socket.MSG_WAITALL)
            self._wire.close()
            self.returncode = int(_CODE.unpack(code)[0]) if len(code) == _CODE.size else -signal.SIGKILL
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start_script(place: str | None, script: Path, *arguments: str) -> WarmProcess | subprocess.Popen[bytes]:
    """Start a script with the streams, folder and environment of this process."""
    if place is None:
        return subprocess.Popen([sys.executable, str(script), *arguments])
    return WarmProcess(place, str(script), list(arguments))


def start_command(place: str | None, *arguments: str) -> WarmProcess | subprocess.Popen[bytes]:
    """The same for a command of `muniment`; what is killed is the command itself, not a shell around it."""
    if place is None:
        return subprocess.Popen([sys.executable, "-m", "muniment", *arguments])
    return WarmProcess(place, "", list(arguments))


def run_script(place: str | None, script: Path, *arguments: str) -> int:
    """Run a script to its end; answers its exit code, or less than nothing where a signal ended it."""
    return start_script(place, script, *arguments).wait()


def captured(
    place: str | None,
    script: Path,
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    strict: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, and keep what it printed; `strict` makes every warning an error."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        if place is None:
            line = [sys.executable, *(("-W", "error") if strict else ()), str(script), *arguments]
            code = subprocess.run(line, cwd=cwd, env=env, stdout=out, stderr=errors, check=False).returncode
        else:
            streams = (out.fileno(), errors.fileno())
            code = WarmProcess(
                place, str(script), list(arguments), cwd=cwd, env=env, streams=streams, strict=strict
            ).wait()
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess([str(script), *arguments], code, out.read(), errors.read())


def _run_command(place: str, arguments: list[str]) -> int:
    if arguments[:1] and arguments[0] in _LASTING:
        os.execv(sys.executable, [sys.executable, "-m", "muniment", *arguments])
    code = WarmProcess(place, "", arguments).wait()
    return code if code >= 0 else 128 - code


def answer(place: str) -> None:
    """Load, then fork for every command that is asked for."""
    _load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen(64)
        print("loaded", flush=True)
        while sys.stdin.fileno() not in select.select([listening, sys.stdin], [], [])[0]:
            wire, _ = listening.accept()
            with wire:
                head, streams, _, _ = socket.recv_fds(wire, _CODE.size, 3)
                if os.fork() == 0:
                    listening.close()
                    _carry_out(wire, int(_CODE.unpack(head)[0]), streams)
                for each in streams:
                    os.close(each)


def _load() -> None:
    """What commands load, and what they make once when they are first used."""
    import muniment
    import muniment.surfaces.cli.main

    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana", agent_id="a")
        run.observe("user", "I live in Berlin. From now on answer in English.")
        run.extract()
        run.compose("responder", query="Where do I live?", max_tokens=512)


def _carry_out(wire: socket.socket, length: int, streams: list[int]) -> None:
    """The command, in the process that was forked for it."""
    asked = json.loads(wire.recv(length, socket.MSG_WAITALL))
    wire.sendall(_CODE.pack(os.getpid()))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for at, each in enumerate(streams):
        os.dup2(each, at)
        os.close(each)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environ"])
    if asked["strict"]:
        sys.warnoptions.append("error")
        warnings.simplefilter("error")
    code = 1
    try:
        _run(asked["script"], asked["arguments"], asked["folder"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    finally:
        if error := sys.exc_info()[1]:
            sys.excepthook(type(error), error, error.__traceback__)
        sys.stdout.flush()
        sys.stderr.flush()
        wire.sendall(_CODE.pack(code))
        os._exit(code & 0xFF)


def _run(script: str, arguments: list[str], folder: str) -> None:
    """Where it looks for modules first is as `python SCRIPT` and `python -m` have it."""
    sys.argv = [script or "muniment", *arguments]
    sys.path[0] = str(Path(script).parent) if script else folder
    if script:
        runpy.run_path(script, run_name="__main__")
        return
    from muniment.surfaces.cli.main import main

    main()


if __name__ == "__main__":
    if sys.argv[2:3] == ["--"]:
        sys.exit(_run_command(sys.argv[1], sys.argv[3:]))
    answer(sys.argv[1])
