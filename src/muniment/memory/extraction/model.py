"""Models that read texts for us. Optional: everything works without one, and nothing they say is taken on trust.

A model may be given as its address (`openai:http://localhost:8080/v1#qwen`), as a function of the messages of a chat
that answers in text, or as an object of one of the two kinds below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from muniment.memory.facts.candidate_records import Proposal

__all__ = ["BatchModel", "Model", "ModelAnswer", "SaidTurn", "TurnProposal"]


class SaidTurn(NamedTuple):
    """A turn as a model is given it: whole, with the id that proposals name."""

    id: str
    role: str
    speaker: str | None
    ts: str
    text: str
    place: int = 0
    """Its number among the entries of its session: turns and context stand in this order."""


class TurnProposal(NamedTuple):
    """What one of the turns seems to say."""

    event_id: str
    proposal: Proposal


class ModelAnswer(NamedTuple):
    """What came of one call: proposals, how many more were none, and the tokens, where the model's server counts."""

    proposals: tuple[TurnProposal, ...]
    malformed: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    said: str = ""
    """The answer itself, to be counted where its server does not count."""


class Model(Protocol):  # MP-17
    """Proposes facts from one text. Each proposal's quote is checked against the text like anyone else's."""

    @property
    def name(self) -> str:
        """What stands in `proposed_by`."""
        ...

    def propose(self, text: str, role: str, ts: str) -> Sequence[Proposal]:
        """What the text says about its speaker, with the words that say it."""
        ...


class BatchModel(Protocol):
    """Reads several turns in one call. Raises a `ModelFailure` where the call fails."""

    @property
    def name(self) -> str:
        """What stands in `proposed_by`."""
        ...

    def read(self, turns: Sequence[SaidTurn], context: Sequence[SaidTurn], tokens_max: int, /) -> ModelAnswer:
        """What the turns say, in an answer of so many tokens; `context` is what else was said, and is not read."""
        ...
