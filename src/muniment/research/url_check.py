"""Look up cited addresses: whether there is a page, and its text. Used only by callers that are given a checker.

Results use the terms of citations. A page that answered is valid, with its text if readable; 401 and 402 are paywalled,
403 and 451 blocked, 404 and 410 invalid. If the look-up was impossible (no answer, too slow, too busy, broken, out of
bounds) the address stays unchecked, with the reason; a look-up never raises.

By default private addresses are not contacted: at every hop the host is resolved once, and the connection goes to
exactly the address that was checked. No cookie, name or password is ever sent.
"""

from __future__ import annotations

import codecs
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from http.client import HTTPException, HTTPResponse
from typing import Literal, NamedTuple
from urllib.parse import urljoin, urlsplit

from muniment.core.outside.http import Address, BodyTooLarge, get, in_time, is_public, look_up, read_body
from muniment.errors import InvalidInput
from muniment.memory._chunking import read_page
from muniment.research.records import CitationStatus
from muniment.research.urls import fetchable_url

_USER_AGENT = "muniment (looks once at each page that is cited)"
_ACCEPT = "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,*/*;q=0.5"
_ANSWERED = frozenset({200, 203})
_MOVED = frozenset({301, 302, 303, 307, 308})
_MEANS: dict[int, CitationStatus] = {
    401: "paywalled",
    402: "paywalled",
    403: "blocked",
    451: "blocked",
    404: "invalid",
    410: "invalid",
}
_LOGIN = re.compile(r"(?i)/(?:log[-_]?in|sign[-_]?in|sso|servicelogin|oauth2?|authorize)(?:\.[a-z]+)?(?:/|$)")
_PORTS = {"http": 80, "https": 443}


class Looked(NamedTuple):
    """The result of looking up an address."""

    status: CitationStatus
    reason: str
    http_status: int | None = None
    final_url: str | None = None
    """The target of redirects, if any."""
    text: str | None = None
    """As served: of an HTML page, its source."""
    media_type: str | None = None
    """With a text: text/html, text/markdown or text/plain, depending on how to read it. Without: as served."""
    title: str | None = None


class _NotPublic(Exception):
    """Internal: a host on a private network."""


class _Answer(NamedTuple):
    status: int
    location: str
    content_type: str
    page: PageText | None
    too_large: bool = False


class UrlChecker:
    """Looks up addresses, a few at a time, and each host no more often than its delay allows.

    `timeout_s` covers a whole look-up: names, connections, redirects, the last byte of the page. `allow_private`
    permits private addresses, for pages of one's own network.
    """

    def __init__(
        self,
        *,
        timeout_s: float = 10.0,
        bytes_max: int = 4 * 1024 * 1024,
        redirects_max: int = 5,
        workers: int = 4,
        host_delay_s: float = 1.0,
        allow_private: bool = False,
        user_agent: str = _USER_AGENT,
        tls: ssl.SSLContext | None = None,
        resolve: Callable[[str, int], Sequence[Address]] = look_up,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if not user_agent.isascii() or not user_agent.isprintable():
            raise InvalidInput("a user agent is a line of ASCII", path="$.user_agent")
        self._timeout_s = timeout_s
        self._bytes_max = bytes_max
        self._redirects_max = redirects_max
        self._workers = max(1, workers)
        self._allow_private = allow_private
        self._headers = {"User-Agent": user_agent, "Accept": _ACCEPT, "Accept-Encoding": "gzip, deflate"}
        self._given_tls = tls
        self._resolve = resolve
        self._pace = _Pace(host_delay_s, sleep)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or ssl.create_default_context()

    def check_many(self, urls: Iterable[str]) -> list[Looked]:
        """`check` for each, in order; duplicates are looked up once."""
        wanted = list(urls)
        distinct = list(dict.fromkeys(wanted))
        with ThreadPoolExecutor(self._workers, thread_name_prefix="muniment-look") as pool:
            looked = dict(zip(distinct, pool.map(self.check, distinct), strict=True))
        return [looked[url] for url in wanted]

    def check(self, url: str) -> Looked:
        """Look up one address."""
        try:
            target = fetchable_url(url)
        except InvalidInput as refused:
            return Looked("invalid", refused.message)
        self._pace.wait(urlsplit(target).netloc)
        try:
            return self._follow(target, time.monotonic() + self._timeout_s)
        except (OSError, HTTPException, zlib.error, _NotPublic) as error:
            return Looked("unchecked", self._reason(error))

    def _follow(self, first: str, deadline_s: float) -> Looked:
        target = first
        for _ in range(self._redirects_max + 1):
            answer = self._ask(target, deadline_s)
            final = target if target != first else None
            if answer.status not in _MOVED:
                return _judged(answer, final)
            try:
                target = _next(target, answer.location)
            except InvalidInput:
                return Looked("unchecked", "it leads to something that is no web address", answer.status, final)
            if _LOGIN.search(urlsplit(target).path) and not _LOGIN.search(urlsplit(first).path):
                return Looked("blocked", "it leads to a page to log in", answer.status, target)
        return Looked("unchecked", f"it leads on more than {self._redirects_max} times", answer.status, target)

    def _ask(self, target: str, deadline_s: float) -> _Answer:
        place = urlsplit(target)
        host, port = place.hostname or "", place.port or _PORTS[place.scheme]
        addresses = in_time(lambda: self._resolve(host, port), deadline_s)
        if not self._allow_private and not all(is_public(address.ip) for address in addresses):
            raise _NotPublic
        tls = self._tls if place.scheme == "https" else None
        with get(target, addresses, self._headers, deadline_s, tls) as answer:
            return self._read(answer, deadline_s)

    def _read(self, answer: HTTPResponse, deadline_s: float) -> _Answer:
        """The head, and the body if it is readable text."""
        content_type = answer.headers.get("Content-Type") or ""
        head = _Answer(answer.status, answer.headers.get("Location") or "", content_type, None)
        coding = (answer.headers.get("Content-Encoding") or "").strip().lower()
        readable = not content_type.strip() or kind_of(media_type_of(content_type)) is not None
        if answer.status not in _ANSWERED or not readable or coding not in CODINGS:
            return head
        try:
            if (answer.length or 0) > self._bytes_max:
                return head._replace(too_large=True)
            body = inflate(read_body(answer, self._bytes_max, deadline_s), coding, self._bytes_max)
        except BodyTooLarge:
            return head._replace(too_large=True)
        return head._replace(page=read_text(body, content_type))

    def _reason(self, error: Exception) -> str:
        """The reason a look-up failed. System messages differ between systems, and are not included."""
        match error:
            case _NotPublic():
                return "its host is not out in the open, so it was not asked (allow_private)"
            case TimeoutError():
                return f"no whole answer within {self._timeout_s:g} seconds"
            case socket.gaierror():
                return "its host was not found"
            case ssl.SSLCertVerificationError():
                return "its certificate does not hold"
            case ssl.SSLError():
                return "no secure connection could be made"
            case OSError():
                return "it could not be reached"
            case _:
                return "its answer is broken"


def _next(target: str, location: str) -> str:
    """The target of a redirect. Servers may put unescaped UTF-8 and spaces into it."""
    if not location.strip():
        raise InvalidInput("a redirect to nowhere")
    with suppress(UnicodeDecodeError):
        location = location.encode("latin-1").decode()
    try:
        return fetchable_url(urljoin(target, location.strip().replace(" ", "%20")))
    except ValueError:
        raise InvalidInput("a redirect to something that is no address") from None


def _judged(answer: _Answer, final: str | None) -> Looked:
    media_type = media_type_of(answer.content_type) or None
    if answer.status not in _ANSWERED:
        return Looked(_MEANS.get(answer.status, "unchecked"), f"HTTP status {answer.status}", answer.status, final)
    page = answer.page
    if page is None:
        why = "too large to be read" if answer.too_large else "without text that can be read"
        return Looked("valid", f"it answered, {why}", answer.status, final, media_type=media_type)
    status: CitationStatus = "valid" if page.free else "paywalled"
    reason = "it answered" if page.free else "it answered, and says that it is not free to read"
    return Looked(status, reason, answer.status, final, page.text, page.kind, page.title)


class _Pace:
    """Serialises requests to a host, with a delay."""

    def __init__(self, delay_s: float, sleep: Callable[[float], None]) -> None:
        self._delay_s = delay_s
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_at: dict[str, float] = {}

    def wait(self, host: str) -> None:
        with self._lock:
            now = time.monotonic()
            at = max(now, self._free_at.get(host, now))
            self._free_at[host] = at + self._delay_s
        if at > now:
            self._sleep(at - now)


# -- the text of an answer -----------------------------------------------------------------------------

Kind = Literal["text/html", "text/markdown", "text/plain"]

CODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
"""Content codings that `inflate` knows."""
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_MARKDOWN = frozenset({"text/markdown", "text/x-markdown"})
_PLAIN = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml)")
_LOOKS_LIKE_HTML = re.compile(rb"(?i)\s*+(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype html|html|head|body)\b", re.DOTALL)
_HEAD_BYTES = 1024
_CHARSET = re.compile(r"(?i)charset\s*=\s*[\"']?([a-z0-9_-]{1,40})")
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_READ_AS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
"""Names that browsers treat as a superset of the named encoding."""
_CODECS = re.compile(
    r"utf-8|utf-16-[lb]e|iso8859-\d+|cp125\d|cp866|cp874|cp932|cp949|koi8-[ru]|gb18030|big5|euc_jp|iso2022_jp"
)
"""Encodings of web pages; Python knows more, some of them not text encodings and some slow."""
_NOT_FREE = re.compile(r"(?i)\"isAccessibleForFree\"\s*:\s*\"?false\b")


class PageText(NamedTuple):
    text: str
    kind: Kind
    title: str | None
    free: bool
    """False if the page's own metadata (schema.org) says that it is not free to read."""


def media_type_of(header: str) -> str:
    """The media type of a Content-Type header, in lower case and without parameters; "" if absent."""
    return header.partition(";")[0].strip().lower()


def kind_of(media_type: str) -> Kind | None:
    """The way to read this media type; None if it is unsupported."""
    if media_type in _HTML:
        return "text/html"
    if media_type in _MARKDOWN:
        return "text/markdown"
    return "text/plain" if _PLAIN.fullmatch(media_type) else None


def inflate(data: bytes, coding: str, bytes_max: int) -> bytes:
    """Undo a content coding, up to a size limit, as small answers can expand enormously. Raises `zlib.error` for bad
    data.
    """
    if coding in ("", "identity"):
        return data
    try:
        return _inflate(data, zlib.MAX_WBITS | 32, bytes_max)
    except zlib.error:
        if coding != "deflate":
            raise
        return _inflate(data, -zlib.MAX_WBITS, bytes_max)  # raw deflate, which some servers send under this name


def _inflate(data: bytes, window: int, bytes_max: int) -> bytes:
    inflater = zlib.decompressobj(window)
    made = inflater.decompress(data, bytes_max + 1)
    if len(made) > bytes_max:
        raise BodyTooLarge(f"the page is over {bytes_max} bytes")
    if not inflater.eof:
        raise zlib.error("it breaks off")
    return made


def read_text(data: bytes, content_type: str) -> PageText | None:
    """The text of a page, None if it has none. An HTML page is kept as its source."""
    kind = kind_of(media_type_of(content_type))
    if not content_type.strip():
        kind = "text/html" if _LOOKS_LIKE_HTML.match(data[:_HEAD_BYTES]) else "text/plain"
    if kind is None or data.startswith(b"%PDF-"):
        return None
    text = _decode(data, content_type, kind)
    if "\x00" in text or not text.strip():
        return None
    if kind != "text/html":
        return PageText(text, kind, None, free=True)
    page = read_page(text)
    return PageText(text, kind, page.title or None, _NOT_FREE.search(text) is None) if page.text.strip() else None


def _decode(data: bytes, content_type: str, kind: Kind) -> str:
    """Decode a page by byte order mark, header or its own declaration, else as UTF-8 or the most common encoding."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    head = data[:_HEAD_BYTES].decode("ascii", "replace") if kind == "text/html" else ""
    for said in (content_type, head):
        found = _CHARSET.search(said)
        codec = _codec(found[1]) if found else None
        if codec is not None:
            return data.decode(codec, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _codec(label: str) -> str | None:
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return None
    name = _READ_AS.get(name, name)
    return name if _CODECS.fullmatch(name) else None
