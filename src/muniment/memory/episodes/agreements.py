"""What was settled in a conversation: constraints on the agent, commitments, decisions; and what ends one of them.

A pure reading of one turn, sentence by sentence. It looks for the forms in which people settle things with whom they
speak to, and lets everything else be: what somebody else does, what was only said so, what is asked. A constraint says
to the agent what it must or must not do, a decision names what was chosen, a commitment names an act. Constraints and
decisions are the user's alone: an assistant explains and drafts with the same words. In doubt something that was
settled stands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from muniment.core.limits import remembered
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import sentence_spans
from muniment.memory.episodes.agreement_forms import has_form, plain_sentence, strength_of

__all__ = ["AGREEMENT_KINDS", "Agreement", "AgreementKind", "agreements_in", "ends_agreement"]

AgreementKind = Literal["constraint", "commitment", "decision", "end"]
AGREEMENT_KINDS: tuple[AgreementKind, ...] = ("constraint", "commitment", "decision", "end")
"""`end` is what may end one of the others: something is allowed again, or was done."""

TEXT_CHARS_MAX = 8_000
"""Characters of a turn that are looked at: as many as may be quoted."""
SENTENCE_CHARS_MAX = 300
"""A longer sentence settles nothing that could stand on a line."""
_SHARE_MIN = 0.6
"""How much of what was settled must be named again by what ends it."""
_BEYOND_DOUBT = 3
"""The strength of a form that is not weighed against others."""
_DAYS = frozenset(
    analyze("Monday Tuesday Wednesday Thursday Friday Saturday Sunday today tomorrow tonight week month noon")
)


_ONESELF = re.compile(r"\b(?:me|my)\b|我|저|제 |나에게")


class Agreement(NamedTuple):
    """A sentence that settles something: where it stands in the text of its turn, and how strongly it says so."""

    kind: AgreementKind
    start: int
    end: int
    strength: int


def agreements_in(role: str, text: str, spans: Sequence[tuple[int, int]] | None = None) -> list[Agreement]:
    """The sentences of a turn that settle something, one kind each, in their order.

    `spans` is where the sentences of the text stand, where that is known.
    """
    if role not in ("user", "assistant"):
        return []
    found: list[Agreement] = []
    text = text[:TEXT_CHARS_MAX]
    for start, end in sentence_spans(text) if spans is None else spans:
        if end - start <= SENTENCE_CHARS_MAX and (read := _read(role, text[start:end])) is not None:
            found.append(Agreement(read[0], start, end, read[1]))
    return found


def ends_agreement(kind: str, role: str, said: str, later_role: str, later: str) -> bool:
    """Does a later `end` end this? A constraint only by its user's leave, for what it names; a commitment when it is
    said to have been kept. A decision stands beside the one that came after it."""
    words, named, plain = _terms(said), _terms(later), plain_sentence(later)
    if kind == "constraint":
        is_lifted = later_role == role == "user" and has_form("permitted", plain)
        return is_lifted and _names(words, named) and _is_of_oneself(said) == _is_of_oneself(later)
    if kind == "commitment":
        return has_form("done", plain) and _names(words - _DAYS, named)
    return False


@remembered(8192)
def _read(role: str, sentence: str) -> tuple[AgreementKind, int] | None:
    """The kind and strength of one sentence. What binds comes first, then what was decided, then what was promised."""
    plain = plain_sentence(sentence)
    if plain.rstrip("\"')」』").endswith(("?", "？")):
        return None
    is_leave = role == "user" and has_form("permitted", plain) and not has_form("not for good", plain)
    if is_leave:
        return "end", 1
    strength = strength_of("constraint", plain) if role == "user" else 0
    if strength == _BEYOND_DOUBT or (strength and not has_form("momentary", plain)):
        return "constraint", strength
    if role == "user" and (strength := strength_of("decision", plain)) and _is_own_word(role, plain):
        return "decision", strength
    if (strength := strength_of("commitment", plain)) and _is_own_word(role, plain):
        return "commitment", strength
    if has_form("done", plain) and not has_form("not done", plain):
        return "end", 1
    return None


def _is_own_word(role: str, plain: str) -> bool:
    """Is it said as it stands, on no condition, and not as an example?"""
    return not has_form("conditional", plain) and (role == "user" or not has_form("not said so", plain))


@remembered(8192)
def _terms(sentence: str) -> frozenset[str]:
    """What a sentence is about. Of Chinese and Korean the pairs of signs, since single ones are everywhere."""
    terms = frozenset(analyze(sentence))
    pairs = frozenset(term for term in terms if term.isascii() or len(term.lstrip("^")) > 1)
    return pairs or terms


def _names(words: frozenset[str], named: frozenset[str]) -> bool:
    if not words:
        return False
    shared = len(words & named)
    return shared >= min(2, len(words)) and shared >= _SHARE_MIN * len(words)


def _is_of_oneself(sentence: str) -> bool:
    """Does it name the one who speaks?"""
    return _ONESELF.search(plain_sentence(sentence)) is not None
