"""A model that says whether evidence entails a claim. Off by default; what it says routes work and decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["Grader"]


class Grader(Protocol):
    """An NLI model, or an LLM asked to be one."""

    @property
    def name(self) -> str:
        """What stands beside its grades."""
        ...

    def grade(self, claim: str, evidence: Sequence[str]) -> float:
        """From 0, the evidence contradicts the claim, to 1, it entails it; 0.5 where it cannot tell."""
        ...
