"""Embeddings from a server that speaks OpenAI's `POST /embeddings`, with the standard library alone.

Nothing is contacted before the first text is embedded or the dimension is asked for. Each attempt has a deadline; what
may pass (a timeout, 429, 5xx) is tried again a few times; everything else is a typed error at once. Redirects are
refused: they would carry the key elsewhere. A server's weights cannot be seen, so the identity names its address and
model in their place, and equal bits for equal texts are the server's to keep.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from http.client import HTTPException, HTTPResponse
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

import numpy as np
from numpy.typing import NDArray

from muniment.adapters.embed_files import DIGEST_HEX, unit_rows
from muniment.adapters.http_client import BodyTooLarge, read_body
from muniment.errors import EmbedderMalformed, EmbedderRefused, EmbedderUnreachable, InvalidInput

__all__ = ["HttpEmbedder"]

_VERSION = 1
_TEXT_CHARS_MAX = 32_768
_ANSWER_BYTES_MAX = 64 * 1024 * 1024
_RETRY_AFTER_S_MAX = 10.0
_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_DIM_MAX = 65_536


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_options: Any) -> None:
        return None


class HttpEmbedder:
    """One model of one OpenAI-compatible server."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        attempts_max: int = 3,
        batch_texts: int = 64,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = f"{_checked_url(base_url)}/embeddings"
        if not model:
            raise InvalidInput("an embedder over HTTP needs a model's name", hint="openai:<base_url>#<model>")
        self._model = model
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._attempts_max = max(1, attempts_max)
        self._batch_texts = max(1, batch_texts)
        self._sleep = sleep
        self._dim: int | None = None
        self._opener: OpenerDirector = build_opener(_NoRedirects)

    @property
    def identity(self) -> str:
        digest = sha256(f"{self._url}#{self._model}".encode()).hexdigest()[:DIGEST_HEX]
        return f"openai:{self._model}@{_VERSION}-{self.dim}-{digest}"

    @property
    def dim(self) -> int:
        """Learned from the first answer; asks for one where there was none yet."""
        if self._dim is None:
            self._ask(["dimension"])
        assert self._dim is not None
        return self._dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        full = [row for row, text in enumerate(texts) if text.strip()]
        rows: list[list[float]] = []
        for at in range(0, len(full), self._batch_texts):
            rows += self._ask([texts[row][:_TEXT_CHARS_MAX] for row in full[at : at + self._batch_texts]])
        sums = np.zeros((len(texts), self.dim), dtype=np.float64)
        if full:
            sums[full] = np.asarray(rows, dtype=np.float64)
        return unit_rows(sums)

    def _ask(self, texts: list[str]) -> list[list[float]]:
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        body = json.dumps({"model": self._model, "input": clean, "encoding_format": "float"}).encode()
        rows = _vectors(self._post(body), len(texts))
        dims = {len(row) for row in rows} | ({self._dim} if self._dim is not None else set())
        if len(dims) != 1:
            raise EmbedderMalformed(
                "the embedding server gave vectors of different lengths", details={"dims": sorted(dims)}
            )
        self._dim = len(rows[0])
        return rows

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        reason = ""
        for attempt in range(self._attempts_max):
            wait_s = 0.25 * 2**attempt
            try:
                request = Request(self._url, data=body, headers=headers, method="POST")
                with self._opener.open(request, timeout=self._timeout_s) as answer:
                    return _read(answer, time.monotonic() + self._timeout_s)
            except HTTPError as error:
                with error:
                    if error.code not in _RETRY_STATUS:
                        raise _refusal(error) from error
                    reason = f"HTTP status {error.code}"
                    wait_s = _retry_after(error, wait_s)
            except URLError as error:
                reason = str(error.reason)
            except (OSError, HTTPException) as error:
                reason = str(error) or type(error).__name__
            if attempt + 1 < self._attempts_max:
                self._sleep(wait_s)
        raise EmbedderUnreachable(
            f"the embedding server did not answer in {self._attempts_max} attempts: {reason}",
            hint="check the address, or choose an embedder that needs no server, such as wordllama",
            details={"url": self._url, "attempts": self._attempts_max},
        )


def _checked_url(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise InvalidInput("an embedder over HTTP needs an http or https address", hint="openai:<base_url>#<model>")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput("the address of an embedder carries no password, query or fragment: give the key apart")
    return base_url.rstrip("/")


def _read(answer: HTTPResponse, deadline_s: float) -> bytes:
    try:
        return read_body(answer, _ANSWER_BYTES_MAX, deadline_s)
    except BodyTooLarge as error:
        raise EmbedderMalformed(f"the embedding server's answer is over {_ANSWER_BYTES_MAX} bytes") from error


def _retry_after(error: HTTPError, otherwise_s: float) -> float:
    """The seconds that the server asks for, within reason; dates are not read."""
    asked = (error.headers.get("Retry-After") or "").strip()
    return min(float(asked), _RETRY_AFTER_S_MAX) if asked.isascii() and asked.isdigit() else otherwise_s


def _refusal(error: HTTPError) -> EmbedderRefused:
    """What the server says is shown in part: it may repeat the text, never the key."""
    try:
        said = error.read(2_000).decode("utf-8", "replace")
    except (OSError, HTTPException):
        said = ""
    hint = "check the API key" if error.code in (401, 403) else "check the model's name and the address"
    return EmbedderRefused(
        f"the embedding server refused with HTTP status {error.code}",
        hint=hint,
        details={"http_status": error.code, "answer": said[:500]},
    )


def _vectors(body: bytes, count: int) -> list[list[float]]:
    """The vectors in the order of the texts; each index once, every number finite."""
    try:
        entries = json.loads(body)["data"]
        placed = {entry["index"]: entry["embedding"] for entry in entries}
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        raise EmbedderMalformed("the embedding server's answer is not a list of embeddings") from cause
    if len(entries) != count or any(at not in placed for at in range(count)):
        raise EmbedderMalformed("the embedding server did not answer every text once", details={"texts": count})
    rows = [placed[at] for at in range(count)]
    for row in rows:
        if not isinstance(row, list) or not 0 < len(row) <= _DIM_MAX:
            raise EmbedderMalformed("the embedding server gave something that is not a vector")
        if not all(type(value) in (int, float) and math.isfinite(value) and abs(value) < 1e18 for value in row):
            raise EmbedderMalformed("the embedding server gave a vector with something that is not a number")
    return rows
