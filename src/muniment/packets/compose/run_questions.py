"""Questions about the work at hand, or the talk itself: "what next?", "what did we decide?", "what did I just say?".

They name nothing that could be looked up; the lines that every packet of a run has answer them. What is left of a
question without such words is its *subject*. Words are those of `data/run_questions.txt`. Pure.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from muniment.core.text.analyzer import analyze
from muniment.core.text.word_lists import WordList, forms_in

__all__ = ["RunQuestion", "read_question"]

_WORDS = WordList(__package__, "run_questions.txt")
_ANSWERS: dict[str, frozenset[str]] = {
    "ahead": frozenset(("plan", "next_actions", "goal", "objective", "done_definition", "loops")),
    "failed": frozenset(("failures", "conflicts", "risks", "failed_tools")),
    "settled": frozenset(("decisions", "constraints", "settled")),
    "task": frozenset(("goal", "objective", "done_definition", "constraints")),
    "open": frozenset(("loops", "conflicts")),
    "talk": frozenset(("summary", "settled", "window", "tools", "failed_tools")),
}
"""Which lines answer each kind of question; one of a kind that is not here is answered by any of them."""
_ANY = frozenset((*frozenset().union(*_ANSWERS.values()), "claims", "tool_evidence", "slots", "extra"))
_KINDS = (*_ANSWERS, "status")
_CHARS_MAX = 2_000
"""A longer question names more than the work at hand."""


class RunQuestion(NamedTuple):
    """What a question asks of the work at hand, and what else it names."""

    subject: str
    """The question without the words that ask of the work; what it names has terms, or it names nothing."""
    answered_by: frozenset[str]
    """The kinds of lines that answer it, where it names nothing else."""

    @property
    def has_subject(self) -> bool:
        return bool(analyze(self.subject))


def read_question(query: str) -> RunQuestion:
    """The question, read word by word. "What is left to do on the parser?" has the parser as its subject."""
    if len(query) > _CHARS_MAX:
        return RunQuestion(query, frozenset())
    kinds: set[str] = set()

    def noted(found: re.Match[str]) -> str:
        kinds.add(found.lastgroup or "")
        return " "

    subject = _pattern().sub(noted, query.casefold())
    asked = [_ANSWERS.get(kind, _ANY) for kind in _KINDS if kind in kinds]
    return RunQuestion(subject, frozenset().union(*asked) if asked else _ANY)


@cache
def _pattern() -> re.Pattern[str]:
    """The forms of every kind, each kind a group of its own; the longer of two that begin alike comes first."""
    groups = []
    for kind in (*_KINDS, "asking"):
        forms = sorted(
            (each for entry in _WORDS.entries(kind) for each in forms_in(entry)), key=lambda form: -len(form)
        )
        english = "|".join(_unnamed(form) for form in forms if form.isascii() or "’" in form)
        others = "|".join(_unnamed(form) for form in forms if not (form.isascii() or "’" in form))
        groups.append(rf"(?P<{kind}>(?<!\w)(?:{english})(?!\w)|{others})")
    return re.compile("|".join(groups))


def _unnamed(form: str) -> str:
    """A form whose groups have no number: which kind matched is told by the outer one."""
    return form.replace("(", "(?:")
