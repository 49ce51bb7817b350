"""What a lesson warns of: the calls and values that its warning clauses name, and whether a run did just that. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

from muniment.learning.proposals.names import names_in, stands_in
from muniment.learning.proposals.records import Advice, LessonProposal, ShownRun
from muniment.learning.quoted_words import folded

__all__ = ["Warned", "advice_of", "forbidden_in"]

_WARNS = re.compile(
    r"\b(?:do not|don['’]t|never|avoid|stop|skip|refrain from|must not|should not|shouldn['’]t|mustn['’]t|no need to"
    r"|instead of|rather than|without)\b",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"\b(?:fails?|failed|breaks?|broke|does not (?:help|work)|doesn['’]t (?:help|work)|is wrong|leads to|causes?"
    r"|makes? it worse|wastes?)\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[.;:,—–](?=\s|$)|\s(?:but|instead|then|use|call|rather)\s", re.IGNORECASE)
_TAIL = re.compile(r"\b(before|after|until|unless|if|when|while|again|twice|more than|with)\b", re.IGNORECASE)
_OPEN_TAILS = frozenset({"until", "unless", "if", "when", "while", "again", "twice", "more than"})
"""What makes a warning one of some cases only, which no run that passed speaks against."""
_SINCE = "2000-01-01"


class Warned(NamedTuple):
    """One thing that is warned of: the names of one call, or of two calls in an order."""

    names: tuple[str, ...]
    order: Literal["before", "after"] | None = None
    then: tuple[str, ...] = ()
    """What it is warned of before, or after."""

    def is_done_in(self, run: ShownRun) -> bool:
        """Is there one call of the run that has all these names; and, where an order is warned of, in that order?"""
        first = self._places(run, self.names)
        if self.order is None:
            return bool(first)
        other = self._places(run, self.then)
        if not first or not other:
            return False
        return first[0] < other[0] if self.order == "before" else first[-1] > other[0]

    @staticmethod
    def _places(run: ShownRun, names: tuple[str, ...]) -> list[int]:
        return [
            place
            for place, event in enumerate(run.events)
            if event.tool is not None and all(stands_in(name, f"{event.tool}\n{event.args}", _SINCE) for name in names)
        ]


def advice_of(text: str, said: Advice = "do") -> Advice:
    """Whether a sentence warns of something: it begins by it, or is said to and has words for it.

    Small models call most of what they say "avoid"; a sentence that only tells what to do is none the less for it.
    """
    first = _WARNS.search(text)
    if first is not None and not text[: first.start()].strip(" ,:"):
        return "avoid"
    return "avoid" if said == "avoid" and (first is not None or _FAILS.search(text)) else "do"


def forbidden_in(proposal: LessonProposal, tools: Collection[str]) -> Iterator[Warned]:
    """What a lesson warns of. One that says of something that it fails warns of all that it names."""
    text = proposal.text
    starts = [match.end() for match in _WARNS.finditer(text)]
    if not starts and advice_of(text, proposal.advice) == "avoid":
        starts = [0]
    for start in starts:
        end = _CLAUSE_END.search(text, start + 1)
        warned = _warned(text[start : len(text) if end is None else end.start()], tools)
        if warned is not None:
            yield warned


def _warned(clause: str, tools: Collection[str]) -> Warned | None:
    tail = _TAIL.search(clause)
    word = None if tail is None else tail.group(1).casefold()
    if tail is None or word == "with":
        names = _named(clause, tools)
        return Warned(names) if names else None
    names, then = _named(clause[: tail.start()], tools), _named(clause[tail.end() :], tools)
    if not names or word in _OPEN_TAILS:
        return None
    if not then:
        return None
    return Warned(names, "before" if word == "before" else "after", then)


def _named(clause: str, tools: Collection[str]) -> tuple[str, ...]:
    """The names in a clause; a tool's name is one, however plain a word it is."""
    words = set(re.findall(r"[\w.-]+", folded(clause)))
    plain = [tool for tool in sorted(tools) if folded(tool) in words]
    return tuple(dict.fromkeys([*plain, *names_in(f". {clause}")]))
