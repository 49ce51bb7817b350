"""A model that reads texts for us. Optional: everything works without one, and nothing it says is taken on trust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from muniment.memory.facts.candidate_records import Proposal

__all__ = ["Model"]


class Model(Protocol):  # MP-17
    """Proposes facts. Each proposal's quote is checked against the text like anyone else's."""

    @property
    def name(self) -> str:
        """What stands in `proposed_by`."""
        ...

    def propose(self, text: str, role: str, ts: str) -> Sequence[Proposal]:
        """What the text says about its speaker, with the words that say it."""
        ...
