"""Several processes of one server, killed in turn under load: `--workers 2` on one SQLite file, and two servers on one
PostgreSQL database. What was acknowledged is there, once; no operation is lost; what one was told, the other knows.

MUNIMENT_KILL_ROUNDS sets the number of kills (a twentieth of it; default 40, so 2).
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

import muniment
from deployments import FreshStore, on
from effort import SOAK
from free_ports import free_port
from muniment.errors import InvalidInput
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.processes.supervisor import bind
from muniment.testing.postgres import PostgresProcess, fresh_schema

ROUNDS = max(2, int(os.environ.get("MUNIMENT_KILL_ROUNDS", "400" if SOAK else "40")) // 20)
CALLERS = 4
ACKNOWLEDGED_MIN = 30
"""Answers between one kill and the next."""
PATH = "/v1/tenants/default/users/ana"


class Process(NamedTuple):
    process: subprocess.Popen[bytes]
    url: str
    log: Path

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.endswith("}")]

    @property
    def workers(self) -> dict[int, int]:
        """The pid of each worker, as the log has it."""
        return {line["worker"]: line["pid"] for line in self.lines if line["message"] == "worker started"}


def until(holds: Callable[[], Any], seconds: float = 90.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.02)
    return found


@contextmanager
def serving(folder: Path, name: str, *arguments: str) -> Iterator[Process]:
    """`muniment serve` in a process of its own, once it has said where it is and answers there."""
    log, out = folder / f"{name}.log", folder / f"{name}.out"
    command = [sys.executable, "-m", "muniment", "serve", "--auth", "auto", "--json", *arguments]
    with log.open("wb") as stderr, out.open("wb") as stdout:
        process = subprocess.Popen(command, cwd=folder, stdout=stdout, stderr=stderr)
    try:
        until(lambda: process.poll() is not None or out.read_text())
        assert process.poll() is None, log.read_text()
        url = json.loads(out.read_text())["url"]
        until(lambda: process.poll() is not None or answers(url, folder))
        yield Process(process, url, log)
        assert len(out.read_text().splitlines()) == 1, "the address is printed once"
    finally:
        process.kill()
        process.wait()


def context_of(folder: Path) -> ssl.SSLContext | bool:
    cert = folder / "cert.pem"
    return ssl.create_default_context(cafile=str(cert)) if cert.exists() else True


def answers(url: str, folder: Path) -> bool:
    try:
        return httpx2.get(f"{url}/v1/ready", verify=context_of(folder)).is_success
    except httpx2.HTTPError:
        return False


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Load:
    """Callers who write without pause, each under keys of their own; where a connection breaks, they ask again."""

    def __init__(self, urls: list[str], folder: Path, headers: dict[str, str]) -> None:
        self._urls, self._verify, self._headers = urls, context_of(folder), headers
        self._is_over = threading.Event()
        self.acknowledged: dict[str, str] = {}
        self.failures: list[str] = []
        self.asked_again = 0
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(CALLERS)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _write(self, caller: int) -> None:
        number = 0
        while not self._is_over.is_set():
            word = f"c{caller}n{number}"
            url = self._urls[number % len(self._urls)]
            try:
                with httpx2.Client(base_url=url, verify=self._verify, headers=self._headers, timeout=60) as client:
                    for _ in range(25):
                        answer = client.post(
                            f"{PATH}/runs/r{caller}/events",
                            json={"role": "user", "content": f"{word} " + "x" * 200},
                            headers={"Idempotency-Key": word},
                        )
                        if answer.status_code not in (200, 201):
                            self.failures.append(answer.text)
                            return
                        self.acknowledged[word] = answer.json()["id"]
                        number += 1
                        word = f"c{caller}n{number}"
                        if self._is_over.is_set():
                            return
            except (httpx2.HTTPError, http.client.HTTPException, OSError):
                self.asked_again += 1
                self._urls = [*self._urls[1:], self._urls[0]]
                time.sleep(0.05)

    def some_more(self) -> None:
        count = len(self.acknowledged) + ACKNOWLEDGED_MIN
        until(lambda: self.failures or len(self.acknowledged) >= count)
        assert not self.failures


def check(mem: muniment.Memory, acknowledged: dict[str, str]) -> None:
    """Each acknowledged write is there under its id, and no key wrote twice."""
    there = {entry.id: entry.content for entry in mem.ledger.entries(user_id="ana") if entry.kind == "message"}
    for word, id_ in acknowledged.items():
        assert (there[id_] or "").partition(" ")[0] == word
    words = Counter((content or "").partition(" ")[0] for content in there.values())
    assert [word for word, count in words.items() if count > 1] == []
    assert mem.verify().ok


def make_certificate(folder: Path) -> bool:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
               "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]  # fmt: skip
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.req("LG-06")
@on("sqlite")
def test_workers_are_killed_under_load(fresh_store: FreshStore, tmp_path: Path) -> None:
    """One socket with TLS, two workers, one store: killed in turn, started again, and ended in order."""
    with fresh_store() as store:
        kill_workers(store.target, tmp_path)


def kill_workers(store: str, tmp_path: Path) -> None:
    tls = ("--tls-cert", "cert.pem", "--tls-key", "key.pem") if make_certificate(tmp_path) else ()
    chance = random.Random(22)
    with serving(tmp_path, "all", "--db", store, "--port", "0", "--workers", "2", *tls) as server:
        until(lambda: len(server.workers) == 2)
        environment = Path(f"/proc/{server.workers[1]}/environ").read_bytes().split(b"\0")
        told = dict(each.decode().partition("=")[::2] for each in environment if each.startswith(b"MUNIMENT_WORKER"))
        folder = Path(told["MUNIMENT_WORKERS_DIR"])
        assert folder.is_dir()
        assert told["MUNIMENT_WORKER"] == "1"
        with Load([server.url], tmp_path, {}) as load:
            for round_ in range(ROUNDS):
                load.some_more()
                number = round_ % 2
                pid = server.workers[number]
                time.sleep(chance.uniform(0, 0.1))
                os.kill(pid, signal.SIGKILL)
                load.some_more()
                until(lambda number=number, pid=pid: server.workers[number] != pid)  # type: ignore[misc]
        assert not load.failures
        assert load.asked_again, "no kill was noticed: the test tests too little"
        workers = server.workers
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        assert not any(map(is_alive, workers.values()))
        assert not folder.exists()
        ended = [line for line in server.lines if line["message"] == "worker ended"]
        assert [line["code"] for line in ended] == [-signal.SIGKILL] * ROUNDS
    with muniment.open(store) as mem:
        check(mem, load.acknowledged)


@pytest.mark.soak
@pytest.mark.slow
def test_workers_end_with_who_started_them_and_a_start_that_fails_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, "all", "--db", "store.db", "--port", "0", "--workers", "2") as server:
        until(lambda: len(server.workers) == 2)
        workers = list(server.workers.values())
        port = server.url.rpartition(":")[2]
        with pytest.raises(InvalidInput, match="nothing can listen"):
            bind(ServerSettings(port=int(port)))
        server.process.kill()
        until(lambda: not any(map(is_alive, workers)))
    (tmp_path / "muniment.toml").write_text('[mcp]\nlevel = "nobody"\n')  # which the workers alone read
    named = ["--config", "muniment.toml"]
    command = [
        sys.executable,
        "-m",
        "muniment",
        *named,
        "serve",
        "--auth",
        "auto",
        "--db",
        "other.db",
        "--port",
        "0",
        "--workers",
        "2",
    ]
    broken = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert (broken.returncode, broken.stdout) == (1, b"")
    assert b"the workers cannot start" in broken.stderr


# -- servers on PostgreSQL ----------------------------------------------------------------------------


def command_of(folder: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "muniment", *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def follow(client: httpx2.Client, path: str, seen: list[str], begun: threading.Event) -> None:
    with client.stream("GET", path, headers={"Accept": "text/event-stream"}, timeout=120) as answer:
        for line in answer.iter_lines():
            seen.append(line)
            begun.set()


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("LG-06")
def test_servers_on_one_database_know_what_the_other_was_told(
    tmp_path: Path, postgres_dsn: str, kept_postgres_schema: str
) -> None:
    db = f"{postgres_dsn}{'&' if '?' in postgres_dsn else '?'}schema={kept_postgres_schema}"
    with muniment.open(db) as mem:
        run = mem.run(user_id="ana", session_id="long")
        run.observe_many([{"role": "user", "content": f"turn{number} of a long talk"} for number in range(2000)])
    make = ("store", "keys", "create", "--tenant", "default", "--db", db)
    token = command_of(tmp_path, *make, "all", "--access", "admin", "--rate", "60000")
    brief = command_of(tmp_path, *make, "few", "--rate", "6")
    assert not (tmp_path / "muniment.keys.json").exists(), "they lie in the store"
    headers = {"Authorization": f"Bearer {token}"}
    common = ("--db", db, "--auth", "on")
    os.environ["MUNIMENT_LEASE_SECONDS"] = "2"
    ports = [str(free_port()), str(free_port())]
    with (
        serving(tmp_path, "a", *common, "--port", ports[0]) as one,
        serving(tmp_path, "b", *common, "--port", ports[1]) as other,
        httpx2.Client(base_url=one.url, headers=headers, timeout=60) as here,
        httpx2.Client(base_url=other.url, headers=headers, timeout=60) as there,
    ):
        del os.environ["MUNIMENT_LEASE_SECONDS"]
        codes = [
            each.get(f"{PATH}/runs", headers={"Authorization": f"Bearer {brief}"}).status_code
            for each in (here, there) * 6
        ]
        assert Counter(codes) == {200: 6, 429: 6}, "one limit for both"
        seen: list[str] = []
        begun = threading.Event()
        watching = threading.Thread(target=follow, args=(there, f"{PATH}/changes", seen, begun))
        watching.start()
        begun.wait(30)
        source = here.post(f"{PATH}/runs/r9/events", json={"role": "user", "content": "I live in Bonn."}).json()["id"]
        until(lambda: any(source in line or "changed" in line for line in seen))
        body, keyed = {"key": "user.city", "value": "Bonn", "sources": [source]}, {"Idempotency-Key": "once"}
        first = here.post(f"{PATH}/runs/r9/facts", json=body, headers=keyed)
        work = here.post("/v1/tenants/default/rebuild", headers={"Prefer": "respond-async"})
        assert (first.status_code, work.status_code) == (201, 202)
        with Load([one.url, other.url], tmp_path, headers) as load:
            one.process.kill()  # with the work under way
            load.some_more()
            for round_ in range(ROUNDS if SOAK else 0):
                with serving(tmp_path, f"a{round_}", *common, "--port", ports[0]) as dies:
                    load.some_more()
                    dies.process.kill()
                    load.some_more()
        assert load.asked_again
        assert there.get(work.headers["location"]).json()["status"] in ("running", "done")
        again = there.post(f"{PATH}/runs/r9/facts", json=body, headers=keyed)
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers["idempotency-replayed"] == "true"
        events = there.get(work.headers["location"] + "/events", timeout=120).text
        assert "event: done" in events
        assert any(line["message"].startswith("a work was taken up") for line in other.lines), "it had ended before"
        command_of(tmp_path, "store", "keys", "revoke", token.split("_")[1], "--db", db)
        until(lambda: there.get(f"{PATH}/runs").status_code == 401, 1.5)
        until(lambda: not watching.is_alive(), 5)
    with muniment.open(db) as mem:
        check(mem, load.acknowledged)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("LG-11")
def test_what_one_worker_wrote_another_reads_from_the_replica(
    tmp_path: Path, pair: tuple[PostgresProcess, PostgresProcess]
) -> None:
    """Each request has a connection of its own, so that either worker answers it; nothing is handed on between them."""
    primary, replica = pair
    with fresh_schema(primary.dsn) as schema:
        target = f"{primary.dsn}?schema={schema}&replica={replica.address}"
        with serving(tmp_path, "all", "--db", target, "--port", "0", "--workers", "2") as server:
            until(lambda: len(server.workers) == 2)
            for number in range(60 if SOAK else 20):
                said = {"role": "user", "content": f"number {number}"}
                answer = httpx2.post(f"{server.url}{PATH}/runs/r1/events", json=said, timeout=60)
                assert answer.status_code == 201, answer.text
                read = httpx2.get(f"{server.url}{PATH}/events/{answer.json()['id']}", timeout=60)
                assert read.status_code == 200, read.text
                assert read.json()["body"]["content"] == f"number {number}"
            assert httpx2.get(f"{server.url}/v1/info", timeout=60).json()["replica"] in ("follows", "behind")
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(60) == 0
