"""What turns text into vectors. Vectors are compared only when they come from embedders of one identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder"]


class Embedder(Protocol):
    """Text in, unit vectors out; the same text gives the same bits, whatever is embedded beside it."""

    @property
    def identity(self) -> str:
        """Name, version, dimension and digest of the weights: two embedders of one identity agree, others never mix."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector; 0 means that there are no vectors at all."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row a text, of length 1; a text with nothing to embed in it gives a row of zeros."""
        ...
