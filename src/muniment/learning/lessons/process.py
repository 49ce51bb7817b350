"""A Gaussian process over a few ways of doing something: what is expected of each, the doubt about it, and a draw.

Whoever asks says how alike ways are (covariances) and what was seen of them; here is only the arithmetic. Pure; the
same for the same numbers, and a draw is the same for a way and a run for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.canonical import digest
from muniment.core.stats import normal_quantile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float64]

__all__ = ["Posterior", "draws_of", "log_evidence", "posterior_of"]

_JITTER = 1e-6


class Posterior(NamedTuple):
    """Of some ways, beside what is usual."""

    expected: Matrix
    doubt: Matrix
    """The root of the covariance of what is not known: it makes draws of normal ones."""


def posterior_of(seen: Matrix, rates: Matrix, across: Matrix, own: Matrix) -> Posterior:
    """What is known of ways after what was seen.

    `seen` is the covariance of what was seen with its noise, `rates` what was seen, `across` the covariance of each way
    (a row) with what was seen, `own` that of the ways among each other.
    """
    import numpy as np

    solved = np.linalg.solve(seen, np.column_stack([rates, across.T]))
    left = own - across @ solved[:, 1:]
    root = np.linalg.cholesky((left + left.T) / 2 + _JITTER * np.eye(len(own)))
    return Posterior(across @ solved[:, 0], root.astype(np.float64))


def log_evidence(seen: Matrix, rates: Matrix) -> float:
    """How likely it was to see this, as a logarithm: of two accounts of the same, the better one has more."""
    import numpy as np

    root = np.linalg.cholesky(seen + _JITTER * np.eye(len(seen)))
    white = np.linalg.solve(root, rates)
    return float(-0.5 * white @ white - np.log(np.diag(root)).sum())


def draws_of(names: Sequence[str], run_id: str) -> Matrix:
    """Normal draws: the same for a name and a run for ever."""
    import numpy as np

    drawn = [digest(f"way\n{name}\n{run_id}".encode("utf-8", "surrogatepass")) for name in names]
    return np.array([normal_quantile((int.from_bytes(each[:6], "big") + 0.5) / 2**48) for each in drawn])
