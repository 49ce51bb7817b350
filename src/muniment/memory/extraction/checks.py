"""What a model proposes is looked at here before anything is made of it: turn, key, quote, value, person. Pure.

A proposal that does not hold is rejected, with the reason. One that holds may still be doubtful: then it is believed
less, and waits for somebody.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from muniment.core.policy import ExtractionPolicy
from muniment.memory.extraction.borne import bears, folded, words_in
from muniment.memory.extraction.model import SaidTurn, TurnProposal
from muniment.memory.extraction.negations import clause_around, is_denied, is_of_speaker, is_question, is_supposed

__all__ = ["REASONS", "Checked", "Rejection", "check_proposal"]

Rejection = Literal[
    "malformed", "unknown_turn", "too_many", "key", "quote", "value", "question", "denied", "person", "forgotten",
    "contradiction",
]  # fmt: skip
REASONS: Mapping[Rejection, str] = {
    "malformed": "it is no proposal of the form that was asked for",
    "unknown_turn": "it names a turn that the model was not given to read",
    "too_many": "more was proposed from one turn than a turn says",
    "key": "its key is none that a model may propose for",
    "quote": "its quote does not stand in its source",
    "value": "the quoted words do not bear the value",
    "question": "the quoted words are part of a question",
    "denied": "the clause that the quote stands in denies it",
    "person": "nobody of that name is spoken of",
    "forgotten": "its source was forgotten meanwhile",
    "contradiction": "it contradicts an active fact of higher trust",
}
_KEY = re.compile(r"(?:user|person\.[^\W_][\w-]{0,59})(?:\.[^\W\d_][\w-]{0,59}){1,3}")
_DENYING = frozenset(("dislikes", "avoids", "allergy", "allergies", "intolerance"))
"""Attributes that are stated by denying something: `I don't eat pork`."""


class Checked(NamedTuple):
    """What came of a proposal: why it is rejected, or what it rests on and what speaks against believing it."""

    proposed: TurnProposal
    rejection: Rejection | None
    sources: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def check_proposal(
    proposed: TurnProposal,
    turns: Mapping[str, SaidTurn],
    shown: Sequence[SaidTurn],
    policy: ExtractionPolicy,
) -> Checked:
    """Does a proposal hold against the turns that were read? Only those are evidence for it.

    `shown` is all that the model saw, in the order it was said: what came before a turn says who is meant in it.
    """
    turn, proposal = turns.get(proposed.event_id), proposed.proposal
    if turn is None:
        return Checked(proposed, "unknown_turn")
    if not _is_allowed(proposal.key, policy):
        return Checked(proposed, "key")
    at = turn.text.find(proposal.quote)
    if at < 0:
        return Checked(proposed, "quote", (turn.id,))
    if not _is_plain(proposal.value):
        return Checked(proposed, "value")
    if not bears(proposal.quote, proposal.value, proposal.key, turn.ts):
        return Checked(proposed, "value", (turn.id,))
    clause, sentence = clause_around(turn.text, at, at + len(proposal.quote))
    if is_question(sentence):
        return Checked(proposed, "question", (turn.id,))
    attribute = proposal.key.rpartition(".")[2]
    if proposal.value is not False and attribute not in _DENYING and is_denied(clause):
        return Checked(proposed, "denied", (turn.id,))
    is_of_user = proposal.key.startswith("user.")
    sources = (turn.id,) if is_of_user else _sources_of_person(proposal.key, turn, shown)
    if sources is None:
        return Checked(proposed, "person", (turn.id,))
    doubts = [
        *(("the sentence supposes",) if is_supposed(sentence) else ()),
        *(("the sentence does not speak of the speaker",) if is_of_user and not is_of_speaker(sentence) else ()),
        *(("the quote is the bare value",) if _is_bare(proposal.quote, proposal.value) else ()),
    ]
    return Checked(proposed, None, sources, tuple(doubts))


def _is_allowed(key: str, policy: ExtractionPolicy) -> bool:
    if _KEY.fullmatch(key) is None or key != key.casefold():
        return False
    is_named = any(fnmatchcase(key, pattern) for pattern in policy.keys)
    return is_named and not any(fnmatchcase(key, pattern) for pattern in policy.keys_refused)


def _sources_of_person(key: str, turn: SaidTurn, shown: Sequence[SaidTurn]) -> tuple[str, ...] | None:
    """The turn, if it names the person; else also the last turn before it that does, which is evidence then too."""
    name = key.split(".")[1]
    if _names(turn.text, name):
        return (turn.id,)
    naming = [before.id for before in shown if before.place < turn.place and _names(before.text, name)]
    return (turn.id, naming[-1]) if naming else None


def _names(text: str, name: str) -> bool:
    """All words of a name stand in the text: `kim_lee` is named by "Kim Lee"."""
    said = folded(text)
    held = set(words_in(said))
    parts = [part for part in re.split(r"[_-]", folded(name)) if part]
    return bool(parts) and all(part in held or (not part.isascii() and part in said) for part in parts)


def _is_plain(value: object) -> bool:
    """A text, a number, yes or no; or a few of them."""
    if isinstance(value, list | tuple):
        return all(isinstance(each, str | int | float) for each in value)
    return isinstance(value, str | int | float)


def _is_bare(quote: str, value: object) -> bool:
    return isinstance(value, str) and len(words_in(folded(quote))) <= len(words_in(folded(value)))
