"""What a check of a claim against its sources says.

The fact checker is another room's: whoever orders the steps hands it in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from muniment.research.run_records import Support

__all__ = ["Judge", "Judgement"]


class Judgement(NamedTuple):
    """One claim against one source."""

    support: Support
    """`supported`, `refuted`, `not_supported`, or `unchecked` where the source holds no text."""
    confidence: int
    """0 to 100."""
    reason: str
    evidence_id: str | None = None
    """The chunk that bears it best."""
    quote: str | None = None


Judge = Callable[[str, Sequence[str]], Mapping[str, Judgement]]
"""(claim, cids) → cid → judgement; for cids that the run knows and may cite."""
