"""One address of a server that speaks OpenAI's HTTP, with the standard library alone.

Nothing is contacted before something is posted. Each attempt has a deadline; what may pass (a timeout, 429, 5xx) is
tried again a few times; everything else is a typed error at once. Redirects are refused: they would carry the key away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from muniment.core.outside.http_client import BodyTooLarge, read_body
from muniment.errors import InvalidInput, MunimentError

__all__ = ["Failures", "OpenAiServer"]

_ANSWER_BYTES_MAX = 64 * 1024 * 1024
_RETRY_AFTER_S_MAX = 10.0
_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class Failures(NamedTuple):
    """What goes wrong, in the words and types of whom it is for."""

    client: str
    """What calls the server, such as "an embedder"."""
    server: str
    """What the server is called, such as "the embedding server"."""
    unreachable: type[MunimentError]
    refused: type[MunimentError]
    malformed: type[MunimentError]
    way_out: str
    """What to do when it cannot be reached."""
    address_hint: str


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_options: Any) -> None:
        return None


class OpenAiServer:
    """Posts JSON to one path below a base address."""

    def __init__(
        self,
        base_url: str,
        path: str,
        failures: Failures,
        *,
        api_key: str | None,
        timeout_s: float,
        attempts_max: int,
        sleep: Callable[[float], None],
    ) -> None:
        self.url = f"{_checked_url(base_url, failures)}{path}"
        self._failures = failures
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._attempts_max = max(1, attempts_max)
        self._sleep = sleep
        self._opener: OpenerDirector = build_opener(_NoRedirects)

    def post(self, body: bytes, *, attempts_max: int | None = None) -> bytes:
        """What the server answers; `attempts_max` where it is to be other than for the rest."""
        attempts = self._attempts_max if attempts_max is None else max(1, attempts_max)
        asked_s: float | None = None
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        reason = ""
        for attempt in range(attempts):
            wait_s = 0.25 * 2**attempt
            try:
                request = Request(self.url, data=body, headers=headers, method="POST")
                with self._opener.open(request, timeout=self._timeout_s) as answer:
                    return self._read(answer, time.monotonic() + self._timeout_s)
            except HTTPError as error:
                with error:
                    if error.code not in _RETRY_STATUS:
                        raise self._refusal(error) from error
                    reason = f"HTTP status {error.code}"
                    asked_s = _retry_after(error)
                    wait_s = wait_s if asked_s is None else asked_s
            except URLError as error:
                reason = str(error.reason)
            except (OSError, HTTPException) as error:
                reason = str(error) or type(error).__name__
            if attempt + 1 < attempts:
                self._sleep(wait_s)
        waits = {} if asked_s is None else {"retry_after_s": asked_s}
        raise self._failures.unreachable(
            f"{self._failures.server} did not answer in {attempts} attempt{'s' if attempts > 1 else ''}: {reason}",
            hint=self._failures.way_out,
            details={"url": self.url, "attempts": attempts, **waits},
        )

    def _read(self, answer: HTTPResponse, deadline_s: float) -> bytes:
        try:
            return read_body(answer, _ANSWER_BYTES_MAX, deadline_s)
        except BodyTooLarge as error:
            said = f"{self._failures.server}'s answer is over {_ANSWER_BYTES_MAX} bytes"
            raise self._failures.malformed(said) from error

    def _refusal(self, error: HTTPError) -> MunimentError:
        """What the server says is shown in part: it may repeat the text, never the key."""
        try:
            said = error.read(2_000).decode("utf-8", "replace")
        except (OSError, HTTPException):
            said = ""
        hint = "check the API key" if error.code in (401, 403) else "check the model's name and the address"
        return self._failures.refused(
            f"{self._failures.server} refused with HTTP status {error.code}",
            hint=hint,
            details={"http_status": error.code, "answer": said[:500]},
        )


def _checked_url(base_url: str, failures: Failures) -> str:
    try:
        parts = urlsplit(base_url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise InvalidInput(f"{failures.client} over HTTP needs an http or https address", hint=failures.address_hint)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            f"the address of {failures.client} carries no password, query or fragment: give the key apart"
        )
    return base_url.rstrip("/")


def _retry_after(error: HTTPError) -> float | None:
    """The seconds that the server asks for, within reason; dates are not read."""
    asked = (error.headers.get("Retry-After") or "").strip()
    return min(float(asked), _RETRY_AFTER_S_MAX) if asked.isascii() and asked.isdigit() else None
