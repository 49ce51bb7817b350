"""Looking at cited addresses (RP-03): what answers mean, what is never asked, and servers that mean no good.

The only servers here are on loopback.
"""

from __future__ import annotations

import gzip
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.outside.http import Address, is_public
from muniment.errors import InvalidInput
from muniment.research import url_check
from muniment.research.url_check import Looked, UrlChecker, read_text
from products import for_each

Answer = bytes | Iterable[bytes]
PAGE = b"<html><head><title>Rain &amp; snow</title></head><body><p>It rained in March.</p></body></html>"


class Server:
    """Answers each request with the bytes that `answers` gives for its path, and remembers what it was asked."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[str] = []
        self.answers: dict[str, Answer | Callable[[], Answer]] = {}
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):  # the client gave up, as some tests want
                    outer.serve(self)

        class Threads(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

            def get_request(self) -> tuple[Any, Any]:
                plain, peer = super().get_request()
                return (tls.wrap_socket(plain, server_side=True) if tls else plain), peer

            def handle_error(self, *_args: Any) -> None:
                pass

        self.tcp = Threads(("127.0.0.1", 0), Handler)
        self.port = self.tcp.server_address[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.tcp.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def serve(self, handler: socketserver.StreamRequestHandler) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = handler.rfile.readline()
            if not line:
                return
            head += line
        self.requests.append(head.decode())
        given = self.answers.get(head.split(b" ")[1].decode(), says(404))
        answer = given() if callable(given) else given
        for part in [answer] if isinstance(answer, bytes) else answer:
            handler.wfile.write(part)
            handler.wfile.flush()

    def close(self) -> None:
        self.tcp.shutdown()
        self.tcp.server_close()
        self.thread.join()

    @property
    def paths(self) -> list[str]:
        return [request.split(" ")[1] for request in self.requests]


def says(status: int, body: bytes = b"", content_type: str | None = "text/html", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Words", f"Content-Length: {len(body)}"]
    lines += [f"Content-Type: {content_type}"] if content_type is not None else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def checker(**options: Any) -> UrlChecker:
    return UrlChecker(**{"timeout_s": 60.0, "allow_private": True, "host_delay_s": 0.0, **options})


def look(server: Server, answer: Answer | Callable[[], Answer], **options: Any) -> Looked:
    server.answers["/a"] = answer
    return checker(**options).check(f"{server.url}/a")


# -- what an answer means ---------------------------------------------------------------------------------


@pytest.mark.req("RP-03")
def test_a_page_that_answers_is_valid_with_its_text(server: Server) -> None:
    assert look(server, says(200, PAGE)) == Looked(
        "valid", "it answered", 200, None, PAGE.decode(), "text/html", "Rain & snow"
    )


@pytest.mark.req("RP-03")
@pytest.mark.parametrize(
    ("status", "meant"),
    [(401, "paywalled"), (402, "paywalled"), (403, "blocked"), (451, "blocked"), (404, "invalid"), (410, "invalid")]
    + [(code, "unchecked") for code in (202, 204, 300, 304, 400, 405, 408, 418, 429, 500, 502, 503, 504, 599, 999)],
)
def test_what_a_status_means(server: Server, status: int, meant: str) -> None:
    looked = look(server, says(status, PAGE))
    assert (looked.status, looked.http_status, looked.text) == (meant, status, None)
    assert str(status) in looked.reason


@pytest.mark.req("RP-03")
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/pdf", b"%PDF-1.7 ..."),
        ("image/png", b"\x89PNG\x00"),
        ("application/octet-stream", b"words"),
        ("text/plain", b"%PDF-1.7 words"),
        ("text/plain", b"words\x00words"),
        ("text/plain", b" \n "),
        ("text/html", b"<html><script>run()</script></html>"),
        ("text/html", b""),
        (None, b"\x00\x01"),
        ("nonsense", b"words"),
    ],
)
def test_an_answer_without_text_is_valid_without_text(server: Server, content_type: str | None, body: bytes) -> None:
    looked = look(server, says(200, body, content_type))
    assert (looked.status, looked.text, looked.title) == ("valid", None, None)
    assert looked.media_type == content_type


@pytest.mark.parametrize(
    ("content_type", "body", "kind", "text"),
    [
        ("text/plain", b"It rained.", "text/plain", "It rained."),
        ("TEXT/Markdown; charset=utf-8", b"# Rain", "text/markdown", "# Rain"),
        ("application/json", b'{"a":1}', "text/plain", '{"a":1}'),
        ("application/rss+xml", b"<a>b</a>", "text/plain", "<a>b</a>"),
        ("application/xhtml+xml", b"<p>Rain</p>", "text/html", "<p>Rain</p>"),
        (None, b"<!DOCTYPE html><p>Rain", "text/html", "<!DOCTYPE html><p>Rain"),
        (None, b"Rain", "text/plain", "Rain"),
        ("text/plain; charset=ISO-8859-1", b"caf\xe9 \x93x\x94", "text/plain", "café \u201cx\u201d"),
        ("text/plain; charset=gb2312", "下雨".encode("gb18030"), "text/plain", "下雨"),
        ('text/plain; charset="shift_jis"', "雨".encode("cp932"), "text/plain", "雨"),
        ("text/plain; charset=utf-16", "rain".encode("utf-16"), "text/plain", "rain"),
        ("text/plain; charset=latin-1", b"\xef\xbb\xbfcaf\xc3\xa9", "text/plain", "café"),
        ("text/plain; charset=nonsense", "café".encode(), "text/plain", "café"),
        ("text/plain; charset=punycode", b"caf-dma", "text/plain", "caf-dma"),
        ("text/plain; charset=unicode_escape", b"\\ud800", "text/plain", "\\ud800"),
        ("text/plain; charset=rot13", b"rain", "text/plain", "rain"),
        ("text/plain; charset=utf-8", b"caf\xe9", "text/plain", "caf\ufffd"),
        ("text/plain", b"caf\xe9", "text/plain", "café"),
        (
            "text/html",
            b'<meta charset="koi8-r"><p>' + "дождь".encode("koi8-r"),
            "text/html",
            '<meta charset="koi8-r"><p>дождь',
        ),
    ],
)
def test_text_is_read_as_what_it_is(
    server: Server, content_type: str | None, body: bytes, kind: str, text: str
) -> None:
    looked = look(server, says(200, body, content_type))
    assert (looked.status, looked.media_type, looked.text) == ("valid", kind, text)


def test_a_page_that_says_it_is_not_free_is_paywalled(server: Server) -> None:
    script = b'<script type="application/ld+json">{"isAccessibleForFree" : "False"}</script>'
    assert look(server, says(200, script + PAGE)).status == "paywalled"
    assert look(server, says(200, script.replace(b"False", b"True") + PAGE)).status == "valid"


def test_what_is_no_address_is_invalid_and_never_asked(server: Server) -> None:
    for url in ("", "nonsense", "ftp://127.0.0.1/a", "file:///etc/passwd", "http://a..b", "http://127.1/"):
        assert checker().check(url).status == "invalid"


def test_the_address_is_asked_for_as_it_is_written_without_credentials(server: Server) -> None:
    path = "/a/b/?z=1&a=%C3%BC&utm_source=x"
    server.answers[path] = says(200, PAGE)
    url = f"http://user:secret@127.0.0.1:{server.port}/a/./b/?z=1&a=ü&utm_source=x#part"
    assert checker(user_agent="looker").check(url).status == "valid"
    (request,) = server.requests
    head = dict(line.split(": ", 1) for line in request.split("\r\n")[1:] if line)
    assert request.startswith(f"GET {path} HTTP/1.1\r\n")
    assert head["Host"] == f"127.0.0.1:{server.port}"
    assert head["User-Agent"] == "looker"
    assert not {"Authorization", "Cookie", "Referer"} & set(head)
    assert "secret" not in request


def test_a_user_agent_is_one_line() -> None:
    with pytest.raises(InvalidInput):
        UrlChecker(user_agent="a\r\nX: y")


# -- redirects --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", ["/b", "b", "{url}/b", "//{host}/b", "/b#part", "?x", "/c%20d é", "/c d é"])
def test_redirects_are_followed(server: Server, status: int, location: str) -> None:
    where = location.format(url=server.url, host=f"127.0.0.1:{server.port}")
    server.answers |= dict.fromkeys(("/b", "/a?x", "/c%20d%20%C3%A9"), says(200, PAGE))
    moved = says(status).replace(b"Content-Type: text/html", b"Location: " + where.encode())
    looked = look(server, moved)
    assert (looked.status, looked.http_status) == ("valid", 200)
    assert looked.final_url == server.url + server.paths[-1]


def test_redirects_end(server: Server) -> None:
    for at in range(8):
        server.answers[f"/{at}"] = says(302, Location=f"/{at + 1}")
    server.answers["/7"] = says(200, PAGE)
    assert checker(redirects_max=5).check(f"{server.url}/2").status == "valid"
    looked = checker(redirects_max=5).check(f"{server.url}/1")
    assert (looked.status, looked.http_status) == ("unchecked", 302)
    assert "5" in looked.reason
    assert look(server, says(302, Location="/a")).status == "unchecked"


@pytest.mark.parametrize(
    "location",
    ["", "javascript:alert(1)", "file:///etc/passwd", "http://", "http://[::1", "http://a b/", "ftp://e.org"],
)
def test_redirects_to_what_is_no_web_address_are_not_followed(server: Server, location: str) -> None:
    looked = look(server, says(302, Location=location))
    assert (looked.status, looked.http_status) == ("unchecked", 302)


@pytest.mark.parametrize("path", ["/login", "/users/sign_in?next=/a", "/Login.aspx", "/sso/start", "/oauth2/authorize"])
def test_a_redirect_to_a_login_is_no_page(server: Server, path: str) -> None:
    server.answers[path] = says(200, PAGE)
    looked = look(server, says(302, Location=path))
    assert (looked.status, looked.final_url) == ("blocked", server.url + path)
    assert server.paths == ["/a"]


def test_a_page_about_logging_in_is_a_page(server: Server) -> None:
    server.answers |= {"/docs/login": says(301, Location="/docs/login/"), "/docs/login/": says(200, PAGE)}
    assert checker().check(f"{server.url}/docs/login").status == "valid"
    server.answers["/logins"] = says(200, PAGE)
    assert look(server, says(301, Location="/logins")).status == "valid"


# -- what is never asked ----------------------------------------------------------------------------------


INSIDE = ["127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"]
INSIDE += ["224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1", "::1", "::"]
INSIDE += ["fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1"]
INSIDE += ["::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:c0a8:101::1", "::127.0.0.1"]
INSIDE += ["2001:0:4136:e378:8000:63bf:3fff:fdd2", "64:ff9b:1::1"]


@for_each("address", INSIDE)
def test_addresses_inside_are_not_public(address: str) -> None:
    assert not is_public(address)


@for_each("address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_addresses_out_in_the_open_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "name.test", "mixed.test"])
def test_hosts_inside_are_not_asked(server: Server, host: str) -> None:
    server.answers["/"] = says(200, PAGE)

    def resolve(name: str, port: int) -> list[Address]:
        inside = [Address(socket.AF_INET, ("127.0.0.1", port))]
        return [Address(socket.AF_INET, ("93.184.216.34", port)), *inside] if name == "mixed.test" else inside

    looked = checker(allow_private=False, resolve=resolve).check(f"http://{host}:{server.port}/")
    assert looked.status == "unchecked"
    assert "allow_private" in looked.reason
    assert looked.http_status is None
    assert server.requests == []


def test_hosts_inside_are_not_asked_with_the_system_looking_up(server: Server) -> None:
    server.answers["/"] = says(200, PAGE)
    for host in ("127.0.0.1", "localhost", "0.0.0.0"):
        assert "allow_private" in checker(allow_private=False).check(f"http://{host}:{server.port}/").reason
    assert server.requests == []


def resolver(server: Server, asked: list[str], **hosts: str) -> Callable[[str, int], list[Address]]:
    def resolve(name: str, _port: int) -> list[Address]:
        asked.append(name)
        return [Address(socket.AF_INET, (hosts[name.partition(".")[0]], server.port))]

    return resolve


def test_each_hop_is_looked_up_once_and_guarded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_check, "is_public", lambda address: address == "127.0.0.1")
    server.answers |= {"/a": says(302, Location="http://two.test/b"), "/b": says(302, Location="http://inside.test/c")}
    server.answers["/c"] = says(200, PAGE)
    asked: list[str] = []
    resolve = resolver(server, asked, one="127.0.0.1", two="127.0.0.1", inside="127.0.0.2")
    looked = checker(allow_private=False, resolve=resolve).check("http://one.test/a")
    assert (looked.status, "allow_private" in looked.reason) == ("unchecked", True)
    assert asked == ["one.test", "two.test", "inside.test"]
    assert server.paths == ["/a", "/b"]
    assert "Host: one.test\r\n" in server.requests[0]


def test_the_connection_goes_to_the_address_that_was_looked_at(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that answers differently the second time (DNS rebinding) gets no second time."""
    monkeypatch.setattr(url_check, "is_public", lambda address: address == "127.0.0.1")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: pytest.fail("looked up again"))
    server.answers["/a"] = says(200, PAGE)
    turns = iter(["127.0.0.1", "127.0.0.2"])

    def resolve(_name: str, _port: int) -> list[Address]:
        return [Address(socket.AF_INET, (next(turns), server.port))]

    assert checker(allow_private=False, resolve=resolve).check("http://name.test/a").status == "valid"


def test_no_proxy_is_used(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert look(server, says(200, PAGE)).status == "valid"


# -- servers that mean no good ----------------------------------------------------------------------------


def drip(part: bytes, first: bytes = b"") -> Iterator[bytes]:
    yield first
    for _ in range(1_000):
        time.sleep(0.02)
        yield part


@pytest.mark.soak
@pytest.mark.parametrize(
    "answer",
    [
        lambda: drip(b"H"),
        lambda: drip(b"x", b"HTTP/1.1 200 "),
        lambda: drip(b"X-A: b\r\n", b"HTTP/1.1 200 OK\r\n"),
        lambda: drip(b"HTTP/1.1 100 Continue\r\n\r\n"),
        lambda: drip(b"x", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"),
        lambda: drip(
            b"1\r\nx\r\n", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        ),
        lambda: drip(b""),
    ],
)
def test_a_server_that_drips_is_left_at_the_deadline(server: Server, answer: Callable[[], Answer]) -> None:
    looked = look(server, answer, timeout_s=0.3)
    assert (looked.status, looked.reason) == ("unchecked", "no whole answer within 0.3 seconds")


def test_redirects_share_one_deadline(server: Server) -> None:
    def slow() -> Iterator[bytes]:
        time.sleep(0.2)
        yield says(302, Location="/a")

    looked = look(server, slow, timeout_s=0.5, redirects_max=100)
    assert "0.5 seconds" in looked.reason
    assert len(server.requests) <= 3


def test_a_look_up_that_hangs_is_left_at_the_deadline() -> None:
    hang = threading.Event()

    def resolve(_name: str, _port: int) -> list[Address]:
        hang.wait(30)
        return []

    looked = checker(resolve=resolve, timeout_s=0.2).check("http://name.test/")
    hang.set()
    assert (looked.status, looked.reason) == ("unchecked", "no whole answer within 0.2 seconds")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 -200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.0\r\n",
        b"\x16\x03\x01\x02\x00",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 " + b"2" * 100_000,
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nwords",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nwords",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nwords",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n" + b"9" * 100_000,
        says(200, b"no gzip", Content_Encoding="gzip"),
        says(200, gzip.compress(PAGE)[:-20], Content_Encoding="gzip"),
        says(200, b"no deflate", Content_Encoding="deflate"),
    ],
)
def test_broken_answers_leave_it_unchecked(server: Server, answer: bytes) -> None:
    looked = look(server, answer)
    assert looked.status == "unchecked"
    assert looked.reason in ("its answer is broken", "it could not be reached")


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: nonsense\r\n",
        b"Content-Length: " + b"9" * 5_000 + b"\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Type: \xff\xfe;;;charset==\r\n",
        b"Content-Encoding: br\r\n",
        b"Content-Encoding: gzip, gzip\r\n",
        b": nameless\r\n",
        b"no colon\r\n",
        b" folded\r\n",
        b"Content-Type: =?utf-8?b?////?=\r\n",
        b"Content-Type\x00: text/html\r\n",
    ],
)
def test_junk_in_headers_is_no_error(server: Server, head: bytes) -> None:
    looked = look(server, b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + PAGE)
    assert looked.status in ("valid", "unchecked")


@settings(deadline=None, max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.booleans())
def test_no_answer_raises(server: Server, junk: bytes, started: bool) -> None:
    answer = b"HTTP/1.1 200 OK\r\n" + junk if started else junk
    assert look(server, answer).status in ("valid", "unchecked", "paywalled")


def test_large_pages_are_not_kept(server: Server) -> None:
    whole = look(server, says(200, b"x" * 1_000, "text/plain"), bytes_max=1_000)
    assert (whole.status, len(whole.text or "")) == ("valid", 1_000)
    said = look(server, says(200, b"x" * 1_001, "text/plain"), bytes_max=1_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    unsaid = look(server, lambda: iter([head, *[b"x" * 1_000] * 100]), bytes_max=1_000)
    for looked in (said, unsaid):
        assert (looked.status, looked.text) == ("valid", None)
        assert "too large" in looked.reason


def test_a_page_that_says_it_is_too_large_is_not_waited_for(server: Server) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000000\r\n\r\n"
    looked = look(server, lambda: drip(b"x", head))
    assert (looked.status, "too large" in looked.reason) == ("valid", True)


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "raw"])
def test_compressed_pages_are_read_and_bombs_are_not(server: Server, coding: str) -> None:
    def pack(data: bytes) -> bytes:
        if coding == "raw":
            packer = zlib.compressobj(wbits=-15)
            return packer.compress(data) + packer.flush()
        return zlib.compress(data) if coding == "deflate" else gzip.compress(data)

    name = "deflate" if coding == "raw" else coding
    assert look(server, says(200, pack(PAGE), Content_Encoding=name)).text == PAGE.decode()
    bomb = pack(bytes(50_000_000))
    looked = look(server, says(200, bomb, Content_Encoding=name), bytes_max=1_000_000)
    assert (looked.status, looked.text) == ("valid", None)
    assert "too large" in looked.reason


def test_a_body_that_is_not_read_is_not_waited_for(server: Server) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 1000000\r\n\r\n"
    assert look(server, lambda: drip(b"x", head)).status == "valid"


@given(
    st.binary(max_size=300), st.sampled_from(["", "text/html", "text/plain; charset=utf-16", "text/html; charset=big5"])
)
def test_what_is_read_can_be_stored(data: bytes, content_type: str) -> None:
    page = read_text(data, content_type)
    if page is not None:
        assert page.text.strip()
        assert "\x00" not in page.text
        page.text.encode()


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        assert checker().check(f"http://127.0.0.1:{taken.getsockname()[1]}/") == Looked(
            "unchecked", "it could not be reached"
        )


def test_an_unknown_host_is_unchecked() -> None:
    def resolve(_name: str, _port: int) -> list[Address]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert checker(resolve=resolve).check("http://name.test/") == Looked("unchecked", "its host was not found")
    assert checker(resolve=lambda *_: []).check("http://name.test/").status == "unchecked"


def test_a_second_address_is_tried(server: Server) -> None:
    server.answers["/a"] = says(200, PAGE)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        places = [Address(socket.AF_INET, taken.getsockname()), Address(socket.AF_INET, ("127.0.0.1", server.port))]
        assert checker(resolve=lambda *_: places).check("http://name.test/a").status == "valid"


# -- many -------------------------------------------------------------------------------------------------


def test_many_are_looked_at_in_order_and_each_once(server: Server) -> None:
    for at in range(20):
        server.answers[f"/{at}"] = says(200, f"page {at}".encode(), "text/plain")
    urls = [f"{server.url}/{at}" for at in (*range(20), 3, 3)]
    assert [looked.text for looked in checker(workers=6).check_many(urls)] == [
        f"page {at}" for at in (*range(20), 3, 3)
    ]
    assert sorted(server.paths) == sorted(f"/{at}" for at in range(20))
    assert checker().check_many([]) == []


def test_no_more_are_asked_at_once_than_there_are_workers(server: Server) -> None:
    busy, most, lock = 0, 0, threading.Lock()

    def answer() -> Answer:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        time.sleep(0.02)
        with lock:
            busy -= 1
        return says(200, PAGE)

    server.answers |= {f"/{at}": answer for at in range(12)}
    checker(workers=3).check_many(f"{server.url}/{at}" for at in range(12))
    assert most <= 3


def test_one_host_is_asked_with_pauses(server: Server) -> None:
    pauses: list[float] = []
    slow = checker(workers=1, host_delay_s=30.0, sleep=pauses.append)
    slow.check_many([f"{server.url}/{at}" for at in range(3)])
    assert len(pauses) == 2
    assert 0 < pauses[0] <= 30 < pauses[1] <= 60
    slow.check(f"http://localhost:{server.port}/")
    assert len(pauses) == 2


# -- TLS --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate of the test's server")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    made = subprocess.run(
        (
            f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=name.test "
            f"-addext subjectAltName=DNS:name.test -keyout {path} -out {path.with_name('cert.pem')}"
        ).split(),
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("this openssl makes no certificate")
    path.write_bytes(path.read_bytes() + path.with_name("cert.pem").read_bytes())
    return path


def test_certificates_are_checked_against_the_name(certificate: Path) -> None:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=str(certificate.with_name("cert.pem")))
    server = Server(serving)
    try:
        server.answers["/a"] = says(200, PAGE)
        resolve = resolver(server, [], name="127.0.0.1", other="127.0.0.1")
        assert checker(resolve=resolve, tls=trusting).check("https://name.test/a").status == "valid"
        assert "Host: name.test\r\n" in server.requests[0]
        refused = Looked("unchecked", "its certificate does not hold")
        assert checker(resolve=resolve, tls=trusting).check("https://other.test/a") == refused
        assert checker(resolve=resolve).check("https://name.test/a") == refused
        assert len(server.requests) == 1
    finally:
        server.close()


def test_a_server_without_tls_is_unchecked(server: Server) -> None:
    server.answers["/a"] = says(200, PAGE)
    looked = checker(timeout_s=0.5).check(f"https://127.0.0.1:{server.port}/a")
    assert (looked.status, looked.http_status) == ("unchecked", None)
