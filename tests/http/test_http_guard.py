"""One guard on every listener, asked over raw sockets: API, streams, OTLP, MCP, inspector, metrics and proxy."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import muniment
from muniment.core.outside.system import system_clock
from muniment.integrations.proxy.callers import Defaults
from muniment.integrations.proxy.serving import make_proxy
from muniment.integrations.proxy.settings import ProxySettings
from muniment.surfaces.http._keys import KeyFile
from muniment.surfaces.http.serve import make_server
from muniment.surfaces.http.settings import ServerSettings
from muniment.surfaces.processes.worker import beside
from muniment.surfaces.settings import load_settings

LIMITS = {
    "body_bytes_max": 4000,
    "bodies_bytes_max": 6000,
    "body_seconds_max": 1,
    "requests_per_minute": 600,
    "guesses_per_minute": 12,
}
ANA = "/v1/tenants/acme/users/ana"
JSON = "application/json"


class Listener(NamedTuple):
    """A place where requests come in."""

    method: str
    path: str
    media: str = JSON
    port: str = "server"
    key_header: str = "Authorization"
    needs_key: bool = True
    takes_body: bool = True


LISTENERS = {
    "api": Listener("POST", f"{ANA}/search"),
    "dump": Listener("POST", f"{ANA}/portable", "application/x-ndjson"),
    "stream": Listener("GET", f"{ANA}/changes", takes_body=False),
    "otlp": Listener("POST", "/v1/traces"),
    "mcp": Listener("POST", "/mcp"),
    "document": Listener("GET", "/v1/openapi.json", takes_body=False),
    "core document": Listener("GET", "/v1/openapi-core.json", takes_body=False),
    "inspector": Listener("GET", "/", needs_key=False, takes_body=False),
    "health": Listener("GET", "/v1/health", needs_key=False, takes_body=False),
    "metrics": Listener("GET", "/metrics", takes_body=False),
    "proxy": Listener("POST", "/v1/chat/completions", port="proxy", key_header="muniment-key"),
    "proxy, passed": Listener("GET", "/v1/models", port="proxy", key_header="muniment-key", takes_body=False),
}
KEYED = {name: each for name, each in LISTENERS.items() if each.needs_key}
WITH_BODIES = {name: each for name, each in LISTENERS.items() if each.takes_body}


class Upstream(http.server.BaseHTTPRequestHandler):
    """A server of models that answers everything alike."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b'{"choices":[]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


class Served(NamedTuple):
    ports: dict[str, int]
    keys: KeyFile

    def token(self, **more: Any) -> str:
        return self.keys.create("k", **{"tenant": "acme", "user": "ana"} | more).token

    @contextmanager
    def connected(self, listener: Listener) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.ports[listener.port]), 20) as connection:
            yield connection

    def ask(self, listener: Listener, *headers: str, token: str = "", body: bytes = b"") -> tuple[int, str]:
        """The status, and the head in lower case."""
        with self.connected(listener) as connection:
            connection.sendall(head_of(listener, *headers, token=token, length=len(body)) + body * listener.takes_body)
            return answer_on(connection)


def head_of(listener: Listener, *headers: str, token: str = "", length: int | None = None) -> bytes:
    lines = [f"{listener.method} {listener.path} HTTP/1.1", f"Content-Type: {listener.media}", *headers]
    if not any(each.lower().startswith("host:") for each in headers):
        lines.append("Host: localhost")
    if token:
        lines.append(f"{listener.key_header}: {'' if listener.port == 'proxy' else 'Bearer '}{token}")
    if length is not None and listener.takes_body:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


def answer_on(connection: socket.socket) -> tuple[int, str]:
    read = b""
    while b"\r\n\r\n" not in read:
        part = connection.recv(4096)
        if not part:
            break
        read += part
    head = read.partition(b"\r\n\r\n")[0].decode("latin-1").lower()
    return int(head.split(" ")[1]) if head else 0, head


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("guard")
    with ExitStack() as stack:
        keys = KeyFile(folder / "keys.json", system_clock)
        keys.create("first", tenant="acme")
        mem = stack.enter_context(muniment.open(folder / "store.db"))
        upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        stack.callback(upstream.server_close)
        stack.callback(upstream.shutdown)
        ports: dict[str, int] = {}
        settings = ServerSettings(
            port=0, auth="on", keys=str(keys.path), research_dir=str(folder / "research"), metrics="key", **LIMITS
        )
        store = load_settings({"db": str(folder / "store.db")}, {})
        server = make_server(mem, settings, **beside(mem, store, settings))
        address = f"http://127.0.0.1:{upstream.server_address[1]}"
        proxied = ProxySettings(upstream=address, port=0, auth="on", keys=str(keys.path), **LIMITS)
        proxy = make_proxy(mem, proxied, Defaults("acme", "", "agent"))
        for name, each in {"server": server, "proxy": proxy}.items():
            thread = threading.Thread(target=each.run, daemon=True)
            thread.start()
            while not each.started:
                assert thread.is_alive()
            ports[name] = each.servers[0].sockets[0].getsockname()[1]
            stack.callback(thread.join, 20)
            stack.callback(setattr, each, "should_exit", True)
        yield Served(ports, keys)


def each_of(listeners: dict[str, Listener], wrong: Callable[[str, Listener], object]) -> dict[str, object]:
    """What is wrong with each listener, where something is."""
    return {name: found for name, each in listeners.items() if (found := wrong(name, each))}


def test_a_key_is_asked_for(served: Served) -> None:
    def wrong(_: str, each: Listener) -> object:
        other = served.token(tenant="other", user="bob") if each.path.startswith("/v1/tenants") else ""
        status, _ = served.ask(each, token=other, body=b"{}")
        return 0 if status == (403 if other else 401) else status

    assert each_of(KEYED, wrong) == {}
    assert each_of({"inspector": LISTENERS["inspector"]}, lambda _, each: served.ask(each)[0] != 200) == {}


def test_two_hosts_and_two_keys_are_refused(served: Served) -> None:
    token = served.token()
    second = ("Authorization: Bearer x", "muniment-key: x")

    def wrong(_: str, each: Listener) -> object:
        hosts, _ = served.ask(each, "Host: localhost", "Host: evil.example", token=token)
        keys, _ = served.ask(each, second[each.port == "proxy"], token=token)
        return 0 if hosts == 400 and (keys in (400, 422) or not each.needs_key) else (hosts, keys)

    assert each_of(LISTENERS, wrong) == {}


@pytest.mark.parametrize("header", ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"])
def test_pages_of_other_sites_are_refused(served: Served, header: str) -> None:
    token = served.token()
    assert each_of(LISTENERS, lambda _, each: served.ask(each, header, token=token, body=b"{}")[0] != 403) == {}


def test_a_page_may_be_opened_by_a_link(served: Served) -> None:
    link = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")
    assert served.ask(LISTENERS["inspector"], *link)[0] == 200
    assert served.ask(LISTENERS["api"], *link, token=served.token(), body=b"{}")[0] == 403


def test_a_large_body_is_refused_by_its_length_and_in_chunks(served: Served) -> None:
    token = served.token(access="read")

    def wrong(_: str, each: Listener) -> object:
        key = token if each.path.endswith("/search") else served.token(body_bytes_max=4000)
        told, _ = served.ask(each, token=key, body=b"x" * 4001)
        with served.connected(each) as connection:
            connection.sendall(head_of(each, "Transfer-Encoding: chunked", token=key))
            connection.sendall(b"".join(b"1000\r\n" + b"x" * 4096 + b"\r\n" for _ in range(2)))
            chunked, _ = answer_on(connection)
        return 0 if (told, chunked) == (413, 413) else (told, chunked)

    assert each_of(WITH_BODIES, wrong) == {}


def test_a_key_with_a_limit_of_its_own_is_held_to_it(served: Served) -> None:
    token = served.token(body_bytes_max=100)

    def wrong(_: str, each: Listener) -> object:
        return served.ask(each, token=token, body=b"x" * 101)[0] not in (413, 200 if each.port == "proxy" else 413)

    assert each_of(WITH_BODIES, wrong) == {}


def test_a_body_that_does_not_come_is_given_up(served: Served) -> None:
    token = served.token()

    def wrong(_: str, each: Listener) -> object:
        with served.connected(each) as connection:
            connection.sendall(head_of(each, token=token, length=100) + b"{")
            status, _ = answer_on(connection)
        return 0 if status == 408 else status

    assert each_of(WITH_BODIES, wrong) == {}


def test_bodies_that_are_held_are_bounded_together(served: Served) -> None:
    """Two connections hold half of what there is; one key may hold no more, and another still can."""

    def wrong(_: str, each: Listener) -> object:
        own, other = served.token(), served.token()
        with served.connected(each) as first, served.connected(each) as second, served.connected(each) as third:
            first.sendall(head_of(each, token=own, length=3000) + b"x" * 2500)
            assert_waiting(first)
            second.sendall(head_of(each, token=own, length=3000) + b"x" * 2500)
            same, head = answer_on(second)
            third.sendall(head_of(each, token=other, length=2600) + b"x" * 2600)
            another, _ = answer_on(third)
        return 0 if same == 503 and "retry-after" in head and another not in (0, 503) else (same, another)

    in_memory = {name: each for name, each in WITH_BODIES.items() if name != "dump"}
    assert each_of(in_memory, wrong) == {}


def assert_waiting(connection: socket.socket) -> None:
    """No answer comes at once: the body was taken, and more of it is waited for."""
    connection.settimeout(0.3)
    with pytest.raises(TimeoutError):
        connection.recv(1)
    connection.settimeout(20)


def test_a_key_is_held_to_its_rate(served: Served) -> None:
    def wrong(_: str, each: Listener) -> object:
        token = served.token(requests_per_minute=3)
        told = [served.ask(each, token=token, body=b"{}") for _ in range(4)]
        statuses = [status for status, _ in told]
        return 0 if statuses.index(429) == 3 and "retry-after: " in told[3][1] else statuses

    assert each_of(KEYED, wrong) == {}


def test_guesses_are_limited_on_every_listener(tmp_path: Path, served: Served) -> None:
    guess = "mun_000000000000_" + "A" * 43
    for port in ("server", "proxy"):
        of_port = {name: each for name, each in KEYED.items() if each.port == port}
        for _ in range(-(-13 // len(of_port))):
            for each in of_port.values():
                served.ask(each, token=guess, body=b"{}")

        def wrong(_: str, each: Listener) -> object:
            return served.ask(each, token=guess, body=b"{}")[0] != 429

        assert each_of(of_port, wrong) == {}


def test_every_answer_of_ours_names_its_request(served: Served) -> None:
    def wrong(_: str, each: Listener) -> object:
        _, head = served.ask(each, "X-Request-Id: mine-1", body=b"{}")
        return "x-request-id: mine-1" not in head

    assert each_of(LISTENERS, wrong) == {}


def test_readiness_is_not_held_up_by_the_document(served: Served) -> None:
    """The document takes seconds of the processor: it is made once, beside the event loop."""
    token, ready = served.token(), LISTENERS["health"]._replace(path="/v1/ready")
    with ExitStack() as stack:
        for _ in range(4):
            connection = stack.enter_context(served.connected(LISTENERS["document"]))
            connection.sendall(head_of(LISTENERS["document"], token=token))
        assert served.ask(ready)[0] == 200
    assert served.ask(LISTENERS["document"], token=token)[0] == 200
