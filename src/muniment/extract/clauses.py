"""Grammars of clauses: languages whose sentences are read clause by clause, each by a table of rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from muniment.extract.sentences import Sentence
from muniment.records.candidate import Proposal

__all__ = ["Grammar", "Rule"]


class Rule(NamedTuple):
    """A clause of this form says this of its speaker."""

    name: str
    pattern: re.Pattern[str]
    key: str
    value: Callable[[re.Match[str]], Any]
    confidence: float
    negates: bool = False


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

    def propose(self, sentence: Sentence) -> Iterator[Proposal]:
        """What a sentence says of its speaker. A doubtful word anywhere in it silences the whole."""
        if sentence.is_question or sentence.is_quoting or self.doubtful.search(sentence.text):
            return
        for clause in self.clause.split(sentence.text):
            yield from self._read(clause, denies=self.negation.search(clause) is not None)

    def _read(self, clause: str, *, denies: bool) -> Iterator[Proposal]:
        for rule in self.rules:
            match = rule.pattern.match(clause)
            value = rule.value(match) if match is not None and denies == rule.negates else None
            if value is not None:
                yield self._proposal(rule.key, value, clause, rule.confidence, rule.name)
                break
        relation = self.relation.match(clause)
        if relation is not None and not denies:
            yield self._proposal(f"user.{self.kin[relation['kin']]}", relation["value"], clause, 0.9, "relation")

    def _proposal(self, key: str, value: Any, quote: str, confidence: float, name: str) -> Proposal:
        return Proposal(key=key, value=value, quote=quote, confidence=confidence, why=f"{self.language}: {name}")
