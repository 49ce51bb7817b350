"""`muniment serve` as a process: it starts, ends in order when told to, and loses nothing when it is killed."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import muniment
from free_ports import free_port
from muniment.errors import MunimentError, StorageFailure

TALK = {"role": "user", "content": "x"}


@contextmanager
def serving(folder: Path, *arguments: str, port: int | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and its address once it is ready."""
    number = port or free_port()
    command = [
        sys.executable,
        "-m",
        "muniment",
        "serve",
        "--auth",
        "auto",
        "--db",
        str(folder / "store.db"),
        "--port",
        str(number),
    ]
    with (folder / "log").open("a") as log:
        process = subprocess.Popen([*command, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=log, text=True)
        url = f"http://127.0.0.1:{number}"
        try:
            while process.poll() is None and not _is_ready(number):
                time.sleep(0.02)
            assert process.poll() is None, (folder / "log").read_text()
            yield process, url
        finally:
            process.kill()
            process.wait()


def _is_ready(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1):
            return True
    except OSError:
        return False


@pytest.mark.soak
def test_it_ends_in_order_and_requests_under_way_are_answered(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, url):
        with ThreadPoolExecutor(4) as pool:
            path = f"{url}/v1/tenants/default/users/ana/runs/r1/events/batch"
            assert httpx2.post(path, json=[TALK] * 400, timeout=60).status_code == 201
            asked = [pool.submit(httpx2.post, path, json=[TALK] * 400, timeout=60) for _ in range(4)]
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            answers = [each.result() for each in asked if each.exception() is None]
        assert process.wait(60) in (0, -signal.SIGTERM)
    with muniment.open(tmp_path / "store.db") as mem:
        kept = sum(entry.kind == "message" for entry in mem.ledger.entries(user_id="ana"))
        assert kept >= 400 + 400 * sum(answer.status_code == 201 for answer in answers)
        assert kept % 400 == 0
        assert mem.verify().ok
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert any(line["message"] == "request" for line in lines)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("LG-06")
def test_a_killed_server_has_kept_all_it_acknowledged(tmp_path: Path) -> None:
    """Killed in the middle of writes and started again: each acknowledged write is there, each key wrote once."""
    acknowledged: list[str] = []
    port = free_port()
    for round_ in range(2):
        with (
            serving(tmp_path, port=port) as (process, url),
            httpx2.Client(base_url=url, timeout=60) as client,
            ThreadPoolExecutor(4) as pool,
        ):

            def write(n: int, client: httpx2.Client = client, round_: int = round_) -> str | None:
                key = f"{round_}-{n}"
                try:
                    answer = client.post(
                        "/v1/tenants/default/users/ana/runs/r1/events",
                        json=TALK | {"content": key},
                        headers={"Idempotency-Key": key},
                    )
                except httpx2.TransportError:
                    return None
                assert answer.status_code == 201, answer.text
                return key

            jobs = [pool.submit(write, n) for n in range(120)]
            while sum(job.done() for job in jobs) < 40:
                time.sleep(0.005)
            process.kill()
            acknowledged += [key for job in jobs if (key := job.result()) is not None]
    with serving(tmp_path, port=port) as (_, url), muniment.connect(url) as mem:
        kept = [entry.content for entry in mem.ledger.entries(user_id="ana") if entry.kind == "message"]
        assert set(acknowledged) <= set(kept)
        assert len(acknowledged) >= 2 * 30
        assert len(kept) == len(set(kept))
        assert mem.verify().ok
        run = mem.run(user_id="ana", session_id="r1", run_id="r1")
        again = run.observe("user", acknowledged[0], idempotency_key=acknowledged[0])
        assert again.content == acknowledged[0]
        assert len(list(mem.ledger.entries(user_id="ana"))) == len(kept) + 1


@pytest.mark.soak
def test_a_connection_that_breaks_says_that_the_outcome_is_unknown(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, url):
        mem = muniment.connect(url)
        run = mem.run(user_id="ana")
        run.observe("user", "x")
        process.kill()
        process.wait()
        with pytest.raises(StorageFailure):
            run.observe("user", "y")
        mem.close()


@pytest.mark.soak
def test_slow_bodies_are_given_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[server]\nbody_seconds_max = 1\n")
    monkeypatch.setenv("MUNIMENT_CONFIG", str(own))
    with serving(tmp_path) as (_, url):
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), 10) as slow:
            path = "/v1/tenants/default/users/ana/search"
            head = (f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", "Content-Length: 50")
            slow.sendall("\r\n".join((*head, "", "")).encode() + b'{"query": ')
            slow.settimeout(60)
            answer = slow.recv(4096)
        assert b"408" in answer.split(b"\r\n")[0]
        assert httpx2.get(f"{url}/v1/ready").status_code == 200


def test_it_does_not_start_with_a_wrong_port_or_certificate(tmp_path: Path) -> None:
    def refused(*arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "muniment", "serve", "--auth", "auto", "--json", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        shape: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
        return shape

    assert refused("--port", "99999")["path"] == "$.port"
    assert refused("--tls-cert", "nothing.pem")["code"] == "invalid_input"


def test_the_first_start_makes_a_key_and_prints_a_link_with_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "muniment", "serve", "--port", str(port := free_port())]
    url = f"http://127.0.0.1:{port}"

    def start() -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while process.poll() is None and not _is_ready(port):
            time.sleep(0.02)
        return process, url

    def stop(process: subprocess.Popen[str]) -> str:
        process.terminate()
        assert process.stdout is not None
        said = process.stdout.read()
        process.stdout.close()
        process.wait()
        return said

    process, _ = start()
    asked = f"{url}/v1/tenants/default/users/ana/runs"
    without, page = httpx2.get(asked).status_code, httpx2.get(f"{url}/").status_code
    first = stop(process)
    token = next(line for line in first.splitlines() if line.startswith("open")).partition("#key=")[2]
    assert (without, page) == (401, 200)
    assert f"{url}/#key={token}" in first
    assert (tmp_path / "muniment.keys.json").stat().st_mode & 0o777 == 0o600
    assert token.rpartition("_")[2] not in (tmp_path / "muniment.keys.json").read_text()
    process, _ = start()
    try:
        assert httpx2.get(asked, headers={"Authorization": f"Bearer {token}"}).status_code == 200
        with muniment.connect(url, key=token) as mem:
            assert mem.run(user_id="ana").observe("user", "x").seq == 2
    finally:
        second = stop(process)
    assert "#key=" not in second, "a key is shown once"


@pytest.mark.soak
def test_tls_by_flags(tmp_path: Path) -> None:
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=tmp_path, capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip("openssl made no certificate")
    with serving(tmp_path, "--tls-cert", "cert.pem", "--tls-key", "key.pem") as (_, url):
        port = url.rpartition(":")[2]
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        client = httpx2.Client(base_url=f"https://localhost:{port}", verify=context)
        with muniment.connect(f"https://localhost:{port}", http=client) as mem:
            assert mem.run(user_id="ana").observe("user", "x").seq == 2
        with pytest.raises(MunimentError):
            muniment.connect(f"http://localhost:{port}")
