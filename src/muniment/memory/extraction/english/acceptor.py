"""Weighs readings: is what was read a lasting fact of the speaker, by all that is seen around it?

A sum of whole weights, one a feature, so that it comes out the same everywhere. They were learned on labelled chats by
`benchmarks/learn_chat_facts.py`. What a rule read is dropped where the sum speaks against it; what no rule reads is
taken where it speaks clearly for it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from muniment.core.text.word_lists import read_data
from muniment.memory.extraction.english.candidates import Candidate, Setting, candidates, rule_features
from muniment.memory.extraction.grammar import USER, Clause, Place, Rule, Talk, Told, Wide
from muniment.memory.extraction.views import View

__all__ = ["accepts", "wide"]

_DIGEST = "450f4ef03341779e090593509606f1b626153ca1d3501aeec5fd31fe41c90594"
BIAS = "bias"
RULE_MIN, WIDE_MIN, SURE_MIN = 0, 200, 250
"""The least sum of what a rule read, of what no rule reads, and of what of that needs nobody's decision, in hundredths
of the logarithm of the odds."""
SURE, UNSURE = 0.8, 0.7
_RULES_ALWAYS = frozenset(("name", "nickname", "relation", "birthday", "allergy", "diet", "medication", "pet"))
"""Rules that are sure by their words alone."""


GOAL = "goal"
"""An aim may be told in words of doubt."""
_UNSURE = re.compile(
    r"\b(?:not|never|no|nor|neither|without|nobody|used to|back when|back then|ago|ex|former|if|unless|wish|as if"
    r"|would you|he|she|they)\b|n't\b"
)
"""Where one of these stands, rules alone read."""


@cache
def _weights() -> dict[str, int]:
    lines = zlib.decompress(read_data(__package__, "acceptor.bin", _DIGEST or None)).decode().split("\n")
    return {name: int(weight) for name, _, weight in (line.rpartition(" ") for line in lines)}


def weigh(features: Iterable[str]) -> int:
    """The sum of the weights of what is seen, each once."""
    weights = _weights()
    return weights[BIAS] + sum(weights.get(each, 0) for each in set(features))


def accepts(rule: Rule, told: Told, place: Place) -> bool:
    """Does what a rule read hold?"""
    if rule.name in _RULES_ALWAYS:
        return True
    seen = rule_features(rule.name, told.key, place.view, place.clause, place.talk.around, told.start, told.end)
    return weigh(seen) >= RULE_MIN


def wide(view: View, clauses: Sequence[Clause], stop: int, talk: Talk) -> Iterator[Wide]:
    """What no rule reads and the weights speak for, the surest first."""
    sure = [
        clause for clause in clauses if not clause.is_asked and not _UNSURE.search(view.text, clause.start, clause.end)
    ]
    doubtful = frozenset(clause.start for clause in sure if clause.is_doubtful)
    read = candidates(Setting(view, sure, (), stop, talk.around))
    found = [(weigh(each.features), each) for each in read if each.attribute == GOAL or each.clause not in doubtful]
    for weight, each in sorted(
        (pair for pair in found if pair[0] >= WIDE_MIN), key=lambda pair: (-pair[0], pair[1][:3])
    ):
        yield Wide(_told(view, each, SURE if weight >= SURE_MIN else UNSURE), each.quote_start, "reading")


def _told(view: View, each: Candidate, confidence: float) -> Told:
    value = view.verbatim(each.start, each.end).strip()
    return Told(f"{USER}.{each.attribute}", value, each.start, each.end, confidence)
