"""What a server says while it runs: how much a key may still ask, whether requests get through, which certificate."""

from __future__ import annotations

import re
import signal
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from http_support import ANA, Serve, bearer
from test_http_process import serving

import muniment
from muniment.errors import StorageLost
from muniment.surfaces.http import app as gateway
from muniment.surfaces.http._keys import KeyFile
from muniment.surfaces.http.lanes.running import Lanes
from muniment.surfaces.processes.rates import RateLimits

_RATE = re.compile(r'"(key|address)";r=(\d+);t=(\d+)')
_POLICY = re.compile(r'"(key|address)";q=(\d+);w=(\d+)')

# -- how much is left ---------------------------------------------------------------------------------


def rate_of(headers: Any) -> tuple[str, int, int]:
    found = _RATE.fullmatch(headers["ratelimit"])
    assert found
    return found[1], int(found[2]), int(found[3])


def test_every_answer_to_a_key_says_what_is_left(serve: Serve, keys: KeyFile) -> None:
    client = serve(auth="on")
    token = keys.create("k", tenant="default", requests_per_minute=3).token
    answers = [client.get(f"{ANA}/facts", headers=bearer(token)) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert [rate_of(answer.headers)[1] for answer in answers] == [2, 1, 0, 0, 0]
    for answer in answers:
        assert _POLICY.fullmatch(answer.headers["ratelimit-policy"])
        assert answer.headers["ratelimit-policy"] == '"key";q=3;w=60'
    assert rate_of(answers[0].headers)[2] == 20, "a third of the minute until all are there again"
    assert rate_of(answers[3].headers)[2] == int(answers[3].headers["retry-after"])
    refused = client.get("/v1/tenants/globex/users", headers=bearer(keys.create("o", tenant="default").token))
    assert refused.status_code == 403
    assert rate_of(refused.headers)[1] == 5999, "what is refused for another reason was counted too"


def test_who_guesses_is_told_of_the_limit_of_addresses(serve: Serve, keys: KeyFile) -> None:
    keys.create("k", tenant="default")
    client = serve(auth="on", guesses_per_minute=2)
    answers = [client.get("/v1/info", headers=bearer("no")) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [401, 401, 429]
    assert [rate_of(answer.headers)[:2] for answer in answers] == [("address", 1), ("address", 0), ("address", 0)]


def test_nobody_is_counted_where_no_key_is_asked_for(client: Any) -> None:
    for path in ("/v1/health", "/v1/info", f"{ANA}/facts"):
        assert "ratelimit" not in client.get(path).headers


def test_what_is_left_is_never_more_than_the_quota_nor_less_than_nothing() -> None:
    now_s = 0.0
    rates = RateLimits(lambda: now_s)
    left = [rates.take("k", 60) for _ in range(60)]
    assert left == [float(number) for number in range(59, -1, -1)]
    now_s = 1e9
    assert rates.take("k", 60) == 59


# -- ready --------------------------------------------------------------------------------------------


def test_a_server_whose_requests_wait_is_alive_and_not_ready(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    client, held, begun = serve(threads=1, ready_wait_seconds_max=1), threading.Event(), threading.Event()
    now_s = 100.0
    app: Any = client.app
    lanes: Lanes = app.state.lanes
    monkeypatch.setattr(lanes, "_clock_s", lambda: now_s)

    def slow(*arguments: Any) -> Any:
        begun.set()
        held.wait(30)
        return real(*arguments)

    real = gateway.carry_out
    monkeypatch.setattr(gateway, "carry_out", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(client.get, f"{ANA}/facts")
        assert begun.wait(30)
        second = pool.submit(client.get, f"{ANA}/facts")
        while lanes.snapshot()["quick"].waiting != 1:
            time.sleep(0.001)
        assert client.get("/v1/ready").json() == {"status": "ready"}
        now_s += 1.5
        not_ready = client.get("/v1/ready")
        assert (not_ready.status_code, not_ready.json()["reason"]) == (503, "requests_wait")
        assert client.get("/v1/health").json() == {"status": "ok"}
        assert 'muniment_http_queue_oldest_seconds{lane="quick"} 1.5' in client.get("/metrics").text
        held.set()
        assert {first.result().status_code, second.result().status_code} == {200}
    assert client.get("/v1/ready").status_code == 200
    assert lanes.snapshot()["quick"][:2] == (0, 0.0)


def test_a_store_that_is_silent_or_lost_is_not_ready(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "STORE_SECONDS_MAX", 0.05)
    held = threading.Event()
    with muniment.open() as mem:
        client, engine = serve(mem), mem._ctx.engine
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(engine, "tenants", lambda *_: held.wait(30) and [])
            answer = client.get("/v1/ready")
            assert (answer.status_code, answer.json()["reason"]) == (503, "store_silent")
            assert client.get("/v1/health").status_code == 200
            held.set()

        def lost(*_: Any) -> list[str]:
            raise StorageLost("gone")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(engine, "tenants", lost)
            monkeypatch.setattr(gateway, "STORE_SECONDS_MAX", 5.0)
            assert client.get("/v1/ready").json()["reason"] == "storage_lost"
        assert client.get("/v1/ready").status_code == 200


# -- TLS ----------------------------------------------------------------------------------------------


def make_certificate(folder: Path, name: str) -> None:
    """A certificate whose common name tells it from others, and its key."""
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip("openssl made no certificate")


def shown(port: int) -> bytes:
    """The certificate that a new connection is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as wrapped,
    ):
        found = wrapped.getpeercert(binary_form=True)
        assert found is not None
        return found


def pem_of(folder: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert((folder / "cert.pem").read_text())


def wait_for(folder: Path, words: str) -> None:
    deadline = time.monotonic() + 120
    while words not in (folder / "log").read_text():
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.01)


@pytest.mark.soak
def test_a_certificate_is_read_again_at_sighup_and_a_wrong_one_is_not_taken(tmp_path: Path) -> None:
    make_certificate(tmp_path, "first")
    with serving(tmp_path, "--tls-cert", "cert.pem", "--tls-key", "key.pem") as (process, url):
        port = int(url.rpartition(":")[2])
        first = pem_of(tmp_path)
        assert shown(port) == first
        make_certificate(tmp_path, "second")
        assert shown(port) == first, "until it is told"
        process.send_signal(signal.SIGHUP)
        wait_for(tmp_path, "the certificate was read again")
        second = pem_of(tmp_path)
        assert shown(port) == second != first
        (tmp_path / "cert.pem").write_text("no certificate")
        process.send_signal(signal.SIGHUP)
        wait_for(tmp_path, "the certificate was not read again")
        assert shown(port) == second
        assert process.poll() is None


@pytest.mark.soak
def test_sighup_without_tls_ends_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        process.send_signal(signal.SIGHUP)
        wait_for(tmp_path, "there is no certificate")
        assert process.poll() is None
