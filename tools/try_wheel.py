"""Install a wheel as users do, in clean environments without Node.js, and have each extra do its job there.

    python tools/try_wheel.py WHEEL                                  the core and every extra of muniment's own
    python tools/try_wheel.py WHEEL --extra server --extra mcp       some of them
    python tools/try_wheel.py WHEEL --python python3.13              on another Python

Each extra has an environment of its own. A command finds no other program than those of its environment: no Node.js,
no make. Where `uv` is found it installs, since it is quicker; else pip. Nothing of this clone is used but the wheel.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

__all__ = ["JOBS", "Room"]

SAID = '{"role": "user", "content": "I moved to Berlin in May. I am vegetarian now."}\n'
_SECONDS_MAX = 60


@dataclass
class Room:
    """One environment, and a folder to work in."""

    folder: Path
    wheel: Path
    interpreter: str

    @property
    def bin(self) -> Path:
        return self.folder / "venv" / "bin"

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": str(self.bin), "HOME": str(self.folder)}

    def install(self, extra: str) -> None:
        """Make the environment, with the wheel and one extra; quicker by `uv`, where it is."""
        asked = str(self.wheel) if extra == "core" else f"{self.wheel}[{extra}]"
        uv = os.environ.get("UV") or shutil.which("uv")
        if uv:
            made = [uv, "venv", "--quiet", "--python", self.interpreter, str(self.folder / "venv")]
            filled = [uv, "pip", "install", "--quiet", "--python", str(self.bin / "python"), asked]
        else:
            made = [self.interpreter, "-m", "venv", str(self.folder / "venv")]
            filled = [str(self.bin / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", asked]
        for command in (made, filled):
            subprocess.run(command, check=True)

    def run(self, *words: str, code: int = 0, **env: str) -> str:
        """A command of this environment; what it printed, on stdout and stderr together."""
        done = subprocess.run(
            [str(self.bin / words[0]), *words[1:]], cwd=self.folder, env=self.env | env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_SECONDS_MAX * 3, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}"
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout

    def python(self, script: str, **env: str) -> str:
        return self.run("python", "-c", script, **env)

    @contextmanager
    def started(self, *words: str, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
        """A command that goes on until it is told to stop."""
        command = [str(self.bin / "muniment"), *words]
        process = subprocess.Popen(command, cwd=self.folder, env=self.env, **streams)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(_SECONDS_MAX)

    @contextmanager
    def serving(self, *words: str) -> Iterator[str]:
        """A server of this environment, at a free port, until it is told to stop."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with (
            (self.folder / "server.log").open("wb") as log,
            self.started(*words, "--port", str(port), stdout=log, stderr=log) as process,
        ):
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}"


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server did not begin; see server.log")


def _fetch(url: str, body: object = None, **headers: str) -> str:
    sent = None if body is None else json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = Request(url, sent, {"Content-Type": "application/json", **names})
    with urlopen(asked, timeout=_SECONDS_MAX) as answer:
        return str(answer.read().decode())


# -- the jobs -----------------------------------------------------------------------------------------


def core(room: Room) -> None:
    """The demo, a store, the doctor; and what needs an extra names it."""
    assert shutil.which("node", path=str(room.bin)) is None
    assert room.run("muniment", "demo").startswith("1 · ")
    (room.folder / "said.jsonl").write_text(SAID, "utf-8")
    room.run("muniment", "ingest", "said.jsonl", "--user", "ana", "--db", "a.db")
    assert "Berlin" in room.run("muniment", "search", "where does she live", "--user", "ana", "--db", "a.db")
    found = json.loads(room.run("muniment", "doctor", "--db", "a.db", "--json"))
    assert (found["problems"], found["inspector"]) == ([], {"state": "built"}), found
    assert {each["state"] for each in found["extras"].values()} == {"missing"}, found["extras"]
    lacking = (("server", ["serve"]), ("mcp", ["mcp", "--user", "ana"]), ("proxy", ["proxy", "--upstream", "http://x"]))
    for extra, words in lacking:
        assert f'pip install "muniment[{extra}]"' in room.run("muniment", *words, code=1)
    assert "muniment " in room.run("python", "-m", "muniment", "--version")


def server(room: Room) -> None:
    """The inspector is served whole, and the API answers."""
    with room.serving("serve", "--db", "a.db") as url:
        page = _fetch(url)
        scripts = re.findall(r'(?:src|href)="\./([^"]+\.(?:js|css))"', page)
        assert len(scripts) == 2, page
        assert all(len(_fetch(f"{url}/{name}")) > 10_000 for name in scripts)
        assert json.loads(_fetch(f"{url}/v1/ready")) == {"status": "ready"}
        written = _fetch(f"{url}/v1/tenants/default/users/ana/search", {"query": "Berlin", "k": 1})
        assert "items" in json.loads(written)


def client(room: Room) -> None:
    """It writes to and asks a server that runs in another environment."""
    other = Room(room.folder / "other", room.wheel, room.interpreter)
    other.install("server")
    script = (
        "import muniment, sys\n"
        "with muniment.connect(sys.argv[1]) as there:\n"
        "    run = there.run(user_id='ana', session_id='s1')\n"
        "    run.observe('user', 'I moved to Berlin in May.')\n"
        "    print(run.search('where does she live')[0].text)\n"
    )
    with other.serving("serve", "--db", "a.db") as url:
        assert "Berlin" in room.run("python", "-c", script, url)


def proxy(room: Room) -> None:
    """A model's server is asked through it, and what was said is kept."""

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name that http.server calls
            self.rfile.read(int(self.headers["Content-Length"]))
            message = {"role": "assistant", "content": "Noted."}
            body = json.dumps({"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    model = HTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    upstream = f"http://127.0.0.1:{model.server_port}"
    asked = {"model": "m", "messages": [{"role": "user", "content": "I moved to Berlin in May."}]}
    with room.serving("proxy", "--upstream", upstream, "--db", "p.db") as url:
        assert "Noted." in _fetch(f"{url}/v1/chat/completions", asked, muniment_user="ana")
    model.shutdown()
    assert "Berlin" in room.run("muniment", "search", "Berlin", "--user", "ana", "--db", "p.db")


def mcp(room: Room) -> None:
    """A client over stdio is told the tools."""
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "try", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    with room.started("mcp", "--user", "ana", "--db", "m.db", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        process.stdin.flush()
        told = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
    assert "search_memory" in [tool["name"] for tool in told[1]["result"]["tools"]], told


def postgres(room: Room) -> None:
    """A store in PostgreSQL, where a server is named; else the refusal is the driver's, not that it is missing."""
    url = os.environ.get("MUNIMENT_TEST_POSTGRES")
    if url is None:
        said = room.run("muniment", "store", "tenants", "--db", "postgresql://127.0.0.1:9/x", code=1)
        assert "error[storage_lost]" in said, said
        return
    schema = f"{url}{'&' if '?' in url else '?'}schema=try_wheel_{os.getpid()}"
    (room.folder / "said.jsonl").write_text(SAID, "utf-8")
    room.run("muniment", "ingest", "said.jsonl", "--user", "ana", MUNIMENT_DB=schema)
    assert "Berlin" in room.run("muniment", "search", "Berlin", "--user", "ana", MUNIMENT_DB=schema)


def embed(room: Room) -> None:
    (room.folder / "said.jsonl").write_text(SAID, "utf-8")
    """Weights are downloaded by their user: without them the embedder says how to get them."""
    found = json.loads(room.run("muniment", "doctor", "--json", MUNIMENT_EMBEDDER="e5-small"))["embedder"]
    assert "hf download intfloat/e5-small" in found.get("error", {}).get("hint", "hf download intfloat/e5-small")


def tokens(room: Room) -> None:
    assert json.loads(room.run("muniment", "doctor", "--json"))["tokens"] == {"is_exact": True, "name": "o200k_base"}


def otel(room: Room) -> None:
    room.python(
        "import muniment\n"
        "with muniment.open('o.db', otel=True) as mem:\n    assert mem.run(user_id='ana').search('x') == []\n"
    )


def otlp(room: Room) -> None:
    room.python(
        "from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest as Request\n"
        "from muniment.traces.otlp import read_export\n"
        "request = Request()\n"
        "span = request.resource_spans.add().scope_spans.add().spans.add(trace_id=b't' * 16, span_id=b's' * 8)\n"
        "span.name, span.start_time_unix_nano, span.end_time_unix_nano = 'chat', 1, 2\n"
        "assert len(read_export(request.SerializeToString()).spans) == 1\n"
    )


def sandbox(room: Room) -> None:
    """With bubblewrap from the wheel; nsenter is the system's. Where the system forbids it, that is what is said."""
    tools = room.folder / "system"
    tools.mkdir()
    for name in ("nsenter", "bash", "sh", "true"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    found_state = json.loads(room.run("muniment", "doctor", "--json", PATH=f"{room.bin}:{tools}"))["sandbox"]
    assert found_state["state"] in ("ok", "exec_denied"), found_state


JOBS: dict[str, Callable[[Room], None]] = {
    job.__name__: job for job in (core, server, client, proxy, mcp, postgres, embed, tokens, otel, otlp, sandbox)
}
"""What each extra has to do where it alone is installed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--extra", action="append", choices=list(JOBS))
    parser.add_argument("--python", default=sys.executable)
    told = parser.parse_args()
    failed = []
    for extra in told.extra or JOBS:
        with tempfile.TemporaryDirectory(prefix="muniment-try-") as folder:
            room, began = Room(Path(folder), told.wheel.resolve(), told.python), time.monotonic()
            try:
                room.install(extra)
                installed_s = time.monotonic() - began
                JOBS[extra](room)
            except (AssertionError, OSError, URLError, subprocess.SubprocessError) as error:
                failed.append(extra)
                print(f"{extra:<10} FAILED: {error}")
                continue
            did_s = time.monotonic() - began - installed_s
            print(f"{extra:<10} ok: installed in {installed_s:.1f} s, did its job in {did_s:.1f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
