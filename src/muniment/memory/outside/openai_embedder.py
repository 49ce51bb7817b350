"""Embeddings from a server that speaks OpenAI's `POST /embeddings`, using only the standard library.

The server is contacted only when the first text is embedded or the dimension is requested. A server's weights cannot be
inspected, so the identity names its address and model instead, and returning equal bits for equal texts is up to the
server. Queries and passages are sent unchanged: prefixes are for the server to add.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from muniment.core.outside.http import Failures, OpenAiServer
from muniment.errors import EmbedderMalformed, EmbedderRefused, EmbedderUnreachable, InvalidInput

__all__ = ["OpenAiEmbedder", "load_server"]

DIGEST_HEX = 16
"""Hex digits of a SHA-256 that an identity carries."""
_VERSION = 1
_TEXT_CHARS_MAX = 32_768
_DIM_MAX = 65_536


_FAILURES = Failures(
    client="an embedder",
    server="the embedding server",
    unreachable=EmbedderUnreachable,
    refused=EmbedderRefused,
    malformed=EmbedderMalformed,
    way_out="check the address, or choose an embedder that needs no server, such as e5-small",
    address_hint="openai:<base_url>#<model>",
)


def load_server(rest: str) -> OpenAiEmbedder:
    """Load the embedder of `<base_url>#<model>`. Its key comes from the environment."""
    base_url, _, model = rest.partition("#")
    return OpenAiEmbedder(base_url, model, api_key=os.environ.get("OPENAI_API_KEY"))


class OpenAiEmbedder:
    """A model on an OpenAI-compatible server."""

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
        self._server = OpenAiServer(
            base_url,
            "/embeddings",
            _FAILURES,
            api_key=api_key,
            timeout_s=timeout_s,
            attempts_max=attempts_max,
            sleep=sleep,
        )
        if not model:
            raise InvalidInput(
                "an embedder over HTTP needs a model's name", path="$.embedder", hint="openai:<base_url>#<model>"
            )
        self._model = model
        self._batch_texts = max(1, batch_texts)
        self._dim: int | None = None

    @property
    def identity(self) -> str:
        digest = sha256(f"{self._server.url}#{self._model}".encode()).hexdigest()[:DIGEST_HEX]
        return f"openai:{self._model}@{_VERSION}-{self.dim}-{digest}"

    @property
    def dim(self) -> int:
        """Learned from the first answer; makes a request if there was none yet."""
        if self._dim is None:
            self._ask(["dimension"])
        assert self._dim is not None
        return self._dim

    def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        rows: list[list[float]] = []
        for at in range(0, len(texts), self._batch_texts):
            rows += self._ask([text[:_TEXT_CHARS_MAX] for text in texts[at : at + self._batch_texts]])
        return np.array(rows, np.float64).reshape(len(texts), self.dim)

    def _ask(self, texts: list[str]) -> list[list[float]]:
        body = json.dumps({"model": self._model, "input": texts, "encoding_format": "float"}).encode()
        rows = _vectors(self._server.post(body), len(texts))
        dims = {len(row) for row in rows} | ({self._dim} if self._dim is not None else set())
        if len(dims) != 1:
            raise EmbedderMalformed(
                "the embedding server gave vectors of different lengths", details={"dims": sorted(dims)}
            )
        self._dim = len(rows[0])
        return rows


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
