"""`muniment` commands out of a process that has everything loaded.

A page of the documentation types dozens of commands, and each would spend a second on loading. Here one process loads,
and every command is a fork of it: a process of its own with its own folder, environment and streams. What serves until
it is told to stop is started as everywhere.

    python tests/warm_commands.py SOCKET            the process that has loaded; it ends when its input does
    python tests/warm_commands.py SOCKET -- ARGS    a command
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["command_line", "warm_commands"]

_LASTING = ("serve", "mcp")
"""Commands that are signalled: they are not forks."""
_CODE = struct.Struct("!i")
_KILLED = 137


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


def ask(place: str, arguments: list[str]) -> int:
    """Run a command there with the streams, folder and environment of this process; answers its exit code."""
    if arguments[:1] and arguments[0] in _LASTING:
        os.execv(sys.executable, [sys.executable, "-m", "muniment", *arguments])
    asked = json.dumps({"arguments": arguments, "folder": os.getcwd(), "environ": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(place)
        socket.send_fds(wire, [_CODE.pack(len(asked))], [0, 1, 2])
        wire.sendall(asked)
        code = wire.recv(_CODE.size, socket.MSG_WAITALL)
    return int(_CODE.unpack(code)[0]) if len(code) == _CODE.size else _KILLED


def answer(place: str) -> None:
    """Load, then fork for every command that is asked for."""
    _load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen(64)
        print("loaded", flush=True)
        while True:
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
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for at, each in enumerate(streams):
        os.dup2(each, at)
        os.close(each)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    os.chdir(asked["folder"])
    sys.path[0] = asked["folder"]  # as `python -m` has it
    _settle(asked["environ"])
    sys.argv = ["muniment", *asked["arguments"]]
    code = _KILLED
    try:
        from muniment.surfaces.cli.main import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        wire.sendall(_CODE.pack(code))
        os._exit(code & 0xFF)


def _settle(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)


if __name__ == "__main__":
    if sys.argv[2:3] == ["--"]:
        sys.exit(ask(sys.argv[1], sys.argv[3:]))
    answer(sys.argv[1])
