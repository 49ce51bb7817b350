"""Embedders: found by name, called in batches, with every answer checked.

An embedder has an `identity`, a `dim`, and embeds queries (`embed_queries`) and passages (`embed_passages`), which many
models read under different prefixes. One with only `embed(texts)` treats both alike.

Names are entry points of the group `muniment.embedders`; ours are registered like those of any other package:

    e5-small                     English, 384 numbers a text, from the hub's cache or a folder
    multilingual-e5-small        a hundred languages, the same
    onnx:<folder>                any sentence model in ONNX, with its tokenizer.json
    openai:<base_url>#<model>    any server that speaks OpenAI's embeddings

The part before the colon names the entry point: a function from the text after the colon (`""` without one) to an
embedder. "none" is no embedder.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from muniment.core.limits import checkpoint
from muniment.core.ports.rows import chunked
from muniment.errors import EmbedderMalformed, InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EMBEDDERS_GROUP", "CheckedEmbedder", "check_embedder", "load_embedder"]

EMBEDDERS_GROUP = "muniment.embedders"
IDENTITY_CHARS_MAX, DIM_MAX = 256, 65_536
BATCH_TEXTS = 64
"""Texts per call of an embedder."""
_LOGGER = logging.getLogger("muniment.embedding")


def load_embedder(name: str) -> CheckedEmbedder | None:
    """Load the embedder of this name; None for "none"."""
    if name == "none":
        return None
    from importlib.metadata import entry_points  # costs a tenth of the start-up time of a command without an embedder

    kind, _, rest = name.partition(":")
    found = [each for each in entry_points(group=EMBEDDERS_GROUP) if each.name == kind]
    if not found:
        known = sorted({each.name for each in entry_points(group=EMBEDDERS_GROUP)})
        raise InvalidInput(
            f"no embedder is called {name[:80]!r}", path="$.embedder", hint=f"installed are none, {', '.join(known)}"
        )
    return CheckedEmbedder(found[0].load()(rest))


def check_embedder(given: Any) -> CheckedEmbedder | None:
    """Check an embedder given as an object or a name; None if it makes no vectors."""
    if isinstance(given, str):
        given = load_embedder(given)
    if given is None or isinstance(given, CheckedEmbedder):
        return given
    sides = ("embed_queries", "embed_passages")
    needs = ("identity", "dim", *(sides if not hasattr(given, "embed") else ()))
    if lacks := [need for need in needs if not hasattr(given, need)]:
        raise InvalidInput(
            f"embedder lacks {', '.join(lacks)}", path="$.embedder", hint="docs/guides/library.md says what"
        )
    checked = CheckedEmbedder(given)
    return checked if checked.identity and given.dim != 0 and checked.dim else None


class CheckedEmbedder:
    """An embedder as the store uses it: it returns a unit vector of its dimension for each text, or raises.

    A blank text has a row of zeros. Vectors are bound to `identity`: those of different identities are never compared.
    """

    def __init__(self, given: Any) -> None:
        self._given = given
        self._has_warned = False

    @cached_property
    def identity(self) -> str:
        """Name, version, dimension and digest of the weights. A server is asked for its dimension."""
        identity = self._given.identity
        if not isinstance(identity, str) or not 0 < len(identity) <= IDENTITY_CHARS_MAX or not identity.isprintable():
            raise InvalidInput(
                f"an embedder's identity is a line of 1 to {IDENTITY_CHARS_MAX} characters", path="$.embedder.identity"
            )
        return identity

    @cached_property
    def dim(self) -> int:
        """Length of a vector."""
        dim = self._given.dim
        if type(dim) is not int or not 0 < dim <= DIM_MAX:
            raise InvalidInput(f"an embedder's dim is from 1 to {DIM_MAX}", path="$.embedder.dim")
        return dim

    @property
    def truncated(self) -> int:
        """The number of texts it truncated to the model's limit; 0 if it does not count them."""
        return int(getattr(self._given, "truncated", 0))

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per query text."""
        return self._embed(getattr(self._given, "embed_queries", None) or self._given.embed, texts)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per passage text."""
        return self._embed(getattr(self._given, "embed_passages", None) or self._given.embed, texts)

    def _embed(self, embed: Callable[[list[str]], Any], texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        full = [place for place, text in enumerate(texts) if text.strip()]
        rows = np.zeros((len(texts), self.dim), np.float64)
        for places in chunked(full, BATCH_TEXTS):
            checkpoint()
            clean = [texts[place].encode("utf-8", "replace").decode("utf-8") for place in places]
            rows[list(places)] = self._checked(embed(clean), len(clean))
        if self.truncated and not self._has_warned:
            self._has_warned = True
            _LOGGER.warning("%s reads the beginning of long texts; their ends are found by words", self.identity)
        return unit_rows(rows)

    def _checked(self, answer: Any, count: int) -> NDArray[np.float64]:
        import numpy as np

        try:
            rows = np.asarray(answer, np.float64)
        except (ValueError, TypeError) as cause:
            raise EmbedderMalformed("the embedder's answer is not a table of numbers") from cause
        if rows.shape != (count, self.dim):
            raise EmbedderMalformed(
                f"the embedder answered {count} texts with a table of shape {rows.shape}, not {(count, self.dim)}"
            )
        if not np.isfinite(rows).all():
            raise EmbedderMalformed("the embedder gave a vector with something that is not a number")
        if self._given.identity != self.identity:
            raise EmbedderMalformed(f"the embedder has become another one: {str(self._given.identity)[:80]!r}")
        return rows


def unit_rows(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    """Rows scaled to length 1, in double precision until the last step; rows of zeros stay zeros."""
    import numpy as np

    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    lengths[lengths == 0.0] = 1.0
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit
