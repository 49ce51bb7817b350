"""The TypeScript client as somebody installs it, and a server in a process of its own that can be killed meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from client_tools import CLIENTS, DOCUMENTS, NODE_TOOLS, need, run

import muniment
from free_ports import free_port
from muniment.surfaces.http._keys import KeyFile

__all__ = ["PACKAGE", "Installed", "Served", "installed", "serving"]

ROOT = Path(__file__).parents[2]
PACKAGE = CLIENTS / "typescript"
SOURCES = ("src", "scripts", "package.json", "tsconfig.json", "README.md")
BUILT = ("openapi.d.ts", "operations.ts")


@dataclass(frozen=True, slots=True)
class Installed:
    """A program's folder that has the package in its `node_modules`, as npm packs it."""

    folder: Path
    files: tuple[str, ...]
    """What was packed."""

    @property
    def package(self) -> Path:
        return self.folder / "node_modules" / "@muniment" / "client"

    def node(self, *arguments: object, **environment: str) -> str:
        return run("node", *arguments, cwd=self.folder, **environment)


def installed(folder: Path) -> Installed:
    """Build and pack the package, away from the checkout, and lay it where a program finds it."""
    need(NODE_TOOLS / "openapi-typescript", NODE_TOOLS / "tsc")
    if shutil.which("npm") is None:
        pytest.skip("CLIENT TESTS SKIPPED: no npm on this machine")
    build, program = folder / "build", folder / "program"
    build.mkdir()
    for name in SOURCES:
        copy = shutil.copytree if (PACKAGE / name).is_dir() else shutil.copy
        copy(PACKAGE / name, build / name)
    for name in BUILT:
        (build / "src" / name).unlink(missing_ok=True)
    (build / "node_modules").symlink_to(PACKAGE / "node_modules")
    shutil.copy(ROOT / "LICENSE", build)
    run("node", "scripts/generate.mjs", DOCUMENTS / "openapi.json", "src", "-", cwd=build)
    run(NODE_TOOLS / "tsc", cwd=build)
    said = run("npm", "pack", "--json", "--ignore-scripts", "--silent", cwd=build, NPM_CONFIG_LOGLEVEL="silent")
    packed = json.loads(said[said.index("[") :])[0]
    package = program / "node_modules" / "@muniment" / "client"
    package.mkdir(parents=True)
    with tarfile.open(build / packed["filename"]) as tar:
        tar.extractall(folder / "unpacked", filter="data")
    shutil.copytree(folder / "unpacked" / "package", package, dirs_exist_ok=True)
    for each in (PACKAGE / "node_modules").iterdir():
        if not each.name.startswith("."):
            (program / "node_modules" / each.name).symlink_to(each)
    (program / "package.json").write_text('{"type": "module", "private": true}', "utf-8")
    return Installed(program, tuple(sorted(each["path"] for each in packed["files"])))


class Served:
    """`muniment serve` over a store of its own: it can be killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        keys = KeyFile(folder / "keys.json", lambda: datetime.now(UTC))
        self.key = keys.create("tests", tenant="default", access="admin").token
        self.slow_key = keys.create("slow", tenant="default", requests_per_minute=1).token
        self._folder, self._port = folder, free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        asked = ["serve", "--db", "store.db", "--port", str(self._port), "--auth", "on"]
        command = [sys.executable, "-m", "muniment", *asked]
        told = os.environ | {"MUNIMENT_KEYS": "keys.json"}
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log, env=told)
        while process.poll() is None and not self._answers():
            time.sleep(0.02)
        assert process.poll() is None, (self._folder / "log").read_text()
        return process

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def restart(self) -> None:
        """As after a loss of power."""
        self.kill()
        self._process = self._started()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@contextmanager
def serving(folder: Path) -> Iterator[dict[str, str]]:
    """What a test in Node is told of the server: its address, keys, and where to ask that it be killed and started."""
    served = Served(folder)

    class Control(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            served.restart()
            self.send_response(204)
            self.end_headers()

        def do_GET(self) -> None:
            """The messages that the library makes of a build."""
            asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            given = {name: asked[name] == "true" for name in ("include_query", "cite", "cache") if name in asked}
            with muniment.open(folder / "store.db", read_only=True) as mem:
                build = mem.replay(asked["build"])
                messages = build.to_openai(**given) if asked["style"] == "openai" else build.to_anthropic(**given)
            body = json.dumps(messages).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    control = ThreadingHTTPServer(("127.0.0.1", 0), Control)
    thread = threading.Thread(target=control.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield {
            "MUNIMENT_URL": served.url,
            "MUNIMENT_KEY": served.key,
            "MUNIMENT_SLOW_KEY": served.slow_key,
            "MUNIMENT_CONTROL": f"http://127.0.0.1:{control.server_address[1]}",
        }
    finally:
        control.shutdown()
        control.server_close()
        thread.join()
        served.kill()
