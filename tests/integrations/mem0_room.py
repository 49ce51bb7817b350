"""mem0 itself without a network, for tests that hold our calls against it; they say so where it is not installed."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.testing.hash_embedder import HashEmbedder

HAS_MEM0 = importlib.util.find_spec("mem0") is not None
needs_mem0 = pytest.mark.skipif(not HAS_MEM0, reason="mem0 is not installed: pip install mem0ai, to compare with it")


class Vectors:
    """mem0's embedder without a network."""

    def embed(self, text: str, _action: str | None = None, **_more: Any) -> list[float]:
        vector: list[float] = HashEmbedder().embed([text])[0].tolist()
        return vector

    def embed_batch(self, texts: list[str], _action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


def real_mem0(path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mem0

        vectors = {"path": str(path / "q"), "embedding_model_dims": HashEmbedder().dim, "collection_name": "t"}
        made = mem0.Memory.from_config(
            {
                "embedder": {"provider": "openai", "config": {"api_key": "none"}},
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "vector_store": {"provider": "qdrant", "config": vectors},
                "history_db_path": str(path / "history.db"),
            }
        )
    made.embedding_model = Vectors()
    return made


@contextmanager
def mem0_itself(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """mem0's own `Memory`, closed afterwards."""
    made = real_mem0(path, monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield made
        made.vector_store.client.close()


def texts(answer: dict[str, Any]) -> list[str]:
    return [each["memory"] for each in answer["results"]]


def mem0_errors() -> tuple[type[Exception], ...]:
    """The root of mem0's own errors, of which few are a `ValueError`; none where it is not installed."""
    if not HAS_MEM0:
        return ()
    from mem0.exceptions import MemoryError as Root

    return (Root,)


needs_client = pytest.mark.skipif(
    importlib.util.find_spec("httpx2") is None or importlib.util.find_spec("starlette") is None,
    reason="no server and client here: pip install 'muniment[server,client]', to serve a store",
)


@contextmanager
def served(path: Path, **settings: Any) -> Iterator[Any]:
    """A connection to a server over a fresh store, in this process."""
    from starlette.testclient import TestClient

    from muniment.surfaces.http.app import create_app
    from muniment.surfaces.http.settings import ServerSettings

    with muniment.open(path / "served.db") as mem:
        app = create_app(mem, ServerSettings(research_dir=str(path), keys=str(path / "keys.json"), **settings))
        with TestClient(app, base_url="http://localhost") as http:
            yield http


class CountingReader:
    """A reader of a store that counts the rows it hands out."""

    def __init__(self, inner: Any, rows: list[Any]) -> None:
        self._inner, self._rows = inner, rows

    def do(self, op: Any) -> Any:
        answer = self._inner.do(op)
        self._rows.extend(answer if isinstance(answer, list) else [answer])
        return answer

    def stream(self, select: Any) -> Iterator[Any]:
        for row in self._inner.stream(select):
            self._rows.append(row)
            yield row


def count_rows(mem: muniment.Memory, rows: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Take down every row that a reader of the store hands out."""
    engine = type(mem._ctx.engine)
    read = engine.read
    monkeypatch.setattr(
        engine, "read", lambda self, tenant, work: read(self, tenant, lambda reader: work(CountingReader(reader, rows)))
    )
