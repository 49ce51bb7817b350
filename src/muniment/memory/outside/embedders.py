"""Embedders by name. Loading one touches no network; its package is looked for only when it is named.

    none                        no vectors: recall is lexical alone
    hash                        hashed n-grams, for tests
    wordllama                   the default: token vectors from a wheel, 256-d
    minilm                      all-MiniLM-L6-v2 from a wheel, 384-d
    openai:<base_url>#<model>   any server that speaks OpenAI's embeddings

Vectors of different identities are never compared; who stores them stores the identity beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muniment.core.outside.system import not_installed
from muniment.core.ports.models import Embedder
from muniment.errors import InvalidInput, MissingDependency

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EMBEDDER_NAMES", "NoEmbedder", "load_embedder"]

EMBEDDER_NAMES = ("none", "hash", "wordllama", "minilm", "openai:<base_url>#<model>")
"""What `load_embedder` understands."""


class NoEmbedder:
    """Stands for the wish to have no vectors: dimension 0, and rows with nothing in them."""

    identity = "none"
    dim = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        try:
            import numpy
        except ModuleNotFoundError as error:
            raise _without_numpy(error) from error
        return numpy.zeros((len(texts), 0), dtype=numpy.float32)


def load_embedder(name: str, *, api_key: str | None = None) -> Embedder:
    """The embedder of this name; `api_key` goes to a server and is used for nothing else."""
    if name == "none":
        return NoEmbedder()
    try:
        return _load(name, api_key)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "numpy":
            raise
        raise _without_numpy(error) from error


def _load(name: str, api_key: str | None) -> Embedder:
    kind, _, rest = name.partition(":")
    if name == "hash":
        from muniment.memory.outside.embed_hashed import HashEmbedder

        return HashEmbedder()
    if name == "wordllama":
        from muniment.memory.outside.embed_wordllama import WordLlamaEmbedder

        return WordLlamaEmbedder.load()
    if name == "minilm":
        from muniment.memory.outside.embed_minilm import MiniLmEmbedder

        return MiniLmEmbedder.load()
    if kind == "openai":
        from muniment.memory.outside.embed_http import HttpEmbedder

        base_url, _, model = rest.partition("#")
        return HttpEmbedder(base_url, model, api_key=api_key)
    raise InvalidInput(f"no embedder is called {name[:80]!r}", hint=f"one of {', '.join(EMBEDDER_NAMES)}")


def _without_numpy(error: ModuleNotFoundError) -> MissingDependency:
    return not_installed(f"vectors need {error.name or 'numpy'}", "vectors")
