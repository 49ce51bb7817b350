"""Which turns may tell of the one who asks: those of the user, in their own voice, that this packet may quote.

The same for what is stated, what takes it back and what puts it right. What a packet may not quote takes nothing away
from it either. Reads no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from muniment.core.instants import parse_instant
from muniment.core.policy import Policy
from muniment.core.scope import Trust
from muniment.core.text.analyzer import term_hash
from muniment.memory.extraction.speakers import is_nameless, why_unheard
from muniment.memory.recall.index import ONLY_ASKS, QUESTION, ROLES, Ints, StoredIndex
from muniment.memory.turn_reading import LiveTurn
from muniment.packets.cued_turns import CuedTurns
from muniment.packets.cues import AskedCues
from muniment.packets.pool import ComposeRequest, FactCandidate
from muniment.store.ledger import INSTRUCTION_LIKE

__all__ = ["Gate"]

_USER = ROLES.index("user")
_QUESTION = term_hash(QUESTION)


class Gate:
    """Asked of ordinals before turns are read, and of turns."""

    def __init__(
        self, request: ComposeRequest, policy: Policy, index: StoredIndex, cued: CuedTurns, names: Sequence[str]
    ) -> None:
        """`names` are those that the user is known to go by."""
        self._user_id, self._index, self._names = request.scope.user_id, index, names
        self._said_by = int(parse_instant(request.now).timestamp())
        self._within, self._cues = cued.within, AskedCues(request.cues)
        questions, counts = index.postings(_QUESTION)
        self._only_asking = questions[counts >= ONLY_ASKS]
        self._excluded = frozenset(request.exclude or ())
        self._barred: tuple[Trust, ...] = getattr(policy.compose, f"barred_trust_{request.purpose}")
        self._quotes_instructions = policy.compose.quote_instruction_like

    def lets_in(self, ordinals: Ints) -> npt.NDArray[np.bool_]:
        """Turn by turn: said by a user by now, more than a question, and where the cues let a packet look."""
        index = self._index
        is_fit: npt.NDArray[np.bool_] = (index.role[ordinals] == _USER) & (index.ts[ordinals] <= self._said_by)
        is_fit &= ~np.isin(ordinals, self._only_asking)
        return is_fit if self._within is None else is_fit & self._within[ordinals]

    def lets_tell(self, ordinal: int, turn: LiveTurn) -> bool:
        """May the turn be quoted, as what the user said themselves?"""
        return (
            turn.kind == "message"
            and turn.role == "user"
            and turn.id not in self._excluded
            and turn.trust not in self._barred
            and (self._quotes_instructions or INSTRUCTION_LIKE not in turn.read.turn.flags)
            and self._cues.bars(turn.ts) is None
            and self._hears(ordinal)
        )

    def lets_tell_fact(self, known: FactCandidate) -> bool:
        """May what a fact rests on be quoted, as far as that is known?"""
        return known.trust not in self._barred and self._excluded.isdisjoint(known.fact.sources)

    def _hears(self, ordinal: int) -> bool:
        speaker = self._index.speakers[int(self._index.speaker[ordinal])]
        if is_nameless(speaker):
            return True
        return why_unheard(speaker, self._user_id, self._names, partial(self._voices, ordinal)) is None

    def _voices(self, ordinal: int) -> frozenset[str | None]:
        index = self._index
        begin, end = index.session_span(int(index.session[ordinal]))
        numbers = np.unique(index.speaker[begin:end][index.role[begin:end] == _USER]).tolist()
        names = [index.speakers[number] for number in numbers]
        return frozenset(None if is_nameless(name) else name for name in names)
