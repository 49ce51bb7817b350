"""Grammars of clauses: languages whose sentences are read clause by clause, each by a table of rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from muniment.memory.extraction.sentences import Sentence
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["Grammar", "Rule", "constant"]


class Rule(NamedTuple):
    """A clause of this form says this of its speaker."""

    name: str
    pattern: re.Pattern[str]
    key: Callable[[re.Match[str]], str]
    value: Callable[[re.Match[str]], Any]
    confidence: float
    negates: bool = False


def constant(key: str) -> Callable[[re.Match[str]], str]:
    """A function that answers this key, whatever was matched."""
    return lambda _match: key


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language: what makes a sentence doubtful, how it falls into clauses, what denies one, and the rules."""

    language: str
    doubtful: re.Pattern[str]
    clause: re.Pattern[str]
    negation: re.Pattern[str]
    rules: tuple[Rule, ...]
    relation: re.Pattern[str]
    kin: Mapping[str, str]
    opening: tuple[Rule, ...] = ()
    """Rules for the first sentence of a message alone."""

    def propose(self, sentence: Sentence) -> Iterator[Proposal]:
        """What a sentence says of its speaker. A doubtful word anywhere in it silences the whole."""
        if sentence.is_question or sentence.is_quoting or self.doubtful.search(sentence.text):
            return
        rules = self.rules + self.opening if sentence.is_first else self.rules
        for clause in self.clause.split(sentence.text):
            yield from self._read(clause, rules, denies=self.negation.search(clause) is not None)

    def _read(self, clause: str, rules: tuple[Rule, ...], *, denies: bool) -> Iterator[Proposal]:
        for rule in rules:
            match = rule.pattern.match(clause)
            value = rule.value(match) if match is not None and denies == rule.negates else None
            if match is not None and value is not None:
                yield self._proposal(rule.key(match), value, clause, rule.confidence, rule.name)
                break
        relation = self.relation.match(clause)
        if relation is not None and not denies:
            yield self._proposal(f"user.{self.kin[relation['kin']]}", relation["value"], clause, 0.9, "relation")

    def _proposal(self, key: str, value: Any, quote: str, confidence: float, name: str) -> Proposal:
        return Proposal(key=key, value=value, quote=quote, confidence=confidence, why=f"{self.language}: {name}")
