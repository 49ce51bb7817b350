"""One bucket of an S3-compatible server, asked with the standard library alone.

Every attempt has a deadline, down to the single byte; what may pass (no answer, one that is cut off, 408, 429, 5xx) is
tried again a few times. Requests may therefore come twice: all that are made here can. Redirects are refused, since
they would carry a signature elsewhere, and proxies of the environment are not asked.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http.client import HTTPException
from typing import NamedTuple
from urllib.parse import urlsplit
from xml.etree import ElementTree

from muniment.core.outside.http_client import ask, in_time, look_up, read_body
from muniment.core.outside.s3_signing import Credentials, encoded, query_of, signed
from muniment.errors import ObjectsRefused, ObjectsUnavailable

__all__ = ["Answer", "Place", "S3Server", "parsed"]

_ANSWER_BYTES_MAX = 512 * 1024 * 1024
_SEND_BYTES_A_SECOND = 512 * 1024
"""A slower connection than this is no connection."""
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_PASSING_CODES = frozenset({"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable"})


class Place(NamedTuple):
    """Which bucket, where, and how long it is waited for."""

    bucket: str
    prefix: str
    """"" or what ends in a slash."""
    endpoint: str | None
    region: str
    timeout_s: float
    attempts_max: int

    @property
    def base(self) -> str:
        """Where the keys of the bucket begin: in the path of an endpoint of one's own, else below the bucket's name."""
        if self.endpoint is not None:
            return f"{self.endpoint}/{encoded(self.bucket)}"
        return f"https://{self.bucket}.s3.{self.region}.amazonaws.com"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """By names in lower case."""
    body: bytes
    code: str = ""
    """What the server calls the error, of an answer that is one."""


class S3Server:
    """Sends signed requests to one bucket. Thread-safe: nothing is kept between two of them."""

    def __init__(
        self, place: Place, credentials: Callable[[], Credentials], sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.place = place
        self._credentials = credentials
        self._sleep = sleep
        self._tls = ssl.create_default_context() if place.base.startswith("https:") else None

    def ask(
        self,
        method: str,
        key: str = "",
        asked: Mapping[str, str] | None = None,
        body: bytes = b"",
        allowed: tuple[int, ...] = (),
    ) -> Answer:
        """What the server answers: a success, or one of the `allowed` refusals; everything else is a typed error."""
        reason = ""
        for attempt in range(self.place.attempts_max):
            if attempt:
                self._sleep(min(0.2 * 2 ** (attempt - 1), 5.0))
            try:
                answer = self._once(method, key, asked or {}, body)
            except (OSError, HTTPException) as error:
                reason = str(error) or type(error).__name__
                continue
            if answer.status in _PASSING or answer.code in _PASSING_CODES:
                reason = f"HTTP status {answer.status} {answer.code}".strip()
                continue
            if 200 <= answer.status < 300 or (answer.status in allowed and answer.code != "NoSuchBucket"):
                return answer
            raise self._refusal(answer)
        raise self.unavailable(reason)

    def unavailable(self, reason: str) -> ObjectsUnavailable:
        times = self.place.attempts_max
        return ObjectsUnavailable(
            f"the object store did not do its part in {times} attempt{'s' if times > 1 else ''}: {reason:.200}",
            path="$.objects",
            details={"bucket": self.place.bucket, "attempts": times},
        )

    def _once(self, method: str, key: str, asked: Mapping[str, str], body: bytes) -> Answer:
        deadline_s = time.monotonic() + self.place.timeout_s + len(body) / _SEND_BYTES_A_SECOND
        target = urlsplit(self.place.base)
        path = f"{target.path}/{encoded(key, '/')}"
        query = query_of(asked)
        sent = signed(
            method,
            target.netloc,
            path,
            query,
            {"Content-Length": str(len(body))} if method == "PUT" else {},
            body,
            self._credentials(),
            self.place.region,
            datetime.now(UTC),
        )
        port = target.port or (80 if self._tls is None else 443)
        host = target.hostname or ""
        addresses = in_time(lambda: look_up(host, port), deadline_s)
        url = f"{target.scheme}://{target.netloc}{path}{'?' if query else ''}{query}"
        with ask(method, url, addresses, sent, deadline_s, self._tls, body or None) as answer:
            told = {name.lower(): value for name, value in answer.getheaders()}
            read = b"" if method == "HEAD" else read_body(answer, _ANSWER_BYTES_MAX, deadline_s)
            code = _code_of(read) if answer.status >= 300 else ""
            return Answer(answer.status, told, read, code)

    def _refusal(self, answer: Answer) -> ObjectsRefused:
        hints = {
            "NoSuchBucket": "make the bucket, or correct its name",
            "RequestTimeTooSkewed": "set the clock of this machine right",
            "SignatureDoesNotMatch": "check the secret key and the region",
            "InvalidAccessKeyId": "check AWS_ACCESS_KEY_ID",
            "PermanentRedirect": "name the bucket's own region: ?region=…",
            "AuthorizationHeaderMalformed": "name the bucket's own region: ?region=…",
        }
        return ObjectsRefused(
            f"the object store refused with HTTP status {answer.status} {answer.code}".rstrip(),
            path="$.objects",
            hint=hints.get(answer.code),
            details={"bucket": self.place.bucket, "http_status": answer.status, "answer": answer.code},
        )


def parsed(body: bytes) -> ElementTree.Element:
    """The document of an answer, without the namespace in the names of its elements; raises `HTTPException`."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        raise HTTPException("the answer is no XML") from None
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    return root


def _code_of(body: bytes) -> str:
    """What an error is called; what else its document says is not repeated."""
    try:
        found = parsed(body).findtext("Code") or ""
    except HTTPException:
        return ""
    return found if found.isascii() and found.isalnum() and len(found) <= 64 else ""
