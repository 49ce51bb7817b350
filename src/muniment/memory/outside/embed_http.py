"""Embeddings from a server that speaks OpenAI's `POST /embeddings`, with the standard library alone.

Nothing is contacted before the first text is embedded or the dimension is asked for. A server's weights cannot be seen,
so the identity names its address and model in their place, and equal bits for equal texts are the server's to keep.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from muniment.core.outside.http import Failures, OpenAiServer
from muniment.errors import EmbedderMalformed, EmbedderRefused, EmbedderUnreachable, InvalidInput
from muniment.memory.outside.weights import DIGEST_HEX, unit_rows

__all__ = ["HttpEmbedder"]

_VERSION = 1
_TEXT_CHARS_MAX = 32_768
_DIM_MAX = 65_536


_FAILURES = Failures(
    client="an embedder",
    server="the embedding server",
    unreachable=EmbedderUnreachable,
    refused=EmbedderRefused,
    malformed=EmbedderMalformed,
    way_out="check the address, or choose an embedder that needs no server, such as wordllama",
    address_hint="openai:<base_url>#<model>",
)


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
            raise InvalidInput("an embedder over HTTP needs a model's name", hint="openai:<base_url>#<model>")
        self._model = model
        self._batch_texts = max(1, batch_texts)
        self._dim: int | None = None

    @property
    def identity(self) -> str:
        digest = sha256(f"{self._server.url}#{self._model}".encode()).hexdigest()[:DIGEST_HEX]
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
