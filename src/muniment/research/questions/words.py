"""What shows the kind of an answer, a field, a stretch of time, a dispute: the words of `data/question_words.txt`."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, cast

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.script import Written
from muniment.core.text.word_lists import WordList, forms_in

__all__ = ["CONTROVERSY", "SETS", "TIMES", "Domain", "Kind", "domains_of", "kind_of", "times_of"]

Kind = Literal["comparison", "quantity", "ranking", "forecast", "why", "evaluation", "how", "definition", "survey"]
"""What kind of answer is asked for."""
Domain = Literal[
    "software", "health", "law", "finance", "science", "industry", "education", "culture", "society", "life"
]
"""The field a question is from, as far as it decides where its sources are."""

_WORDS = WordList(__package__, "question_words.txt")
_TIMES_MAX = 8


def _shows(section: str) -> re.Pattern[str]:
    """Any of the forms of a section."""
    return lazy_pattern(lambda: "(?ai)" + _WORDS.either(section))


def _named_forms(section: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The entries of a section: names and what shows them."""
    return tuple((name, re.compile("(?ai)" + "|".join(forms_in(forms)))) for name, forms in _WORDS.pairs(section))


@cache
def _kinds(language: Written) -> tuple[tuple[Kind, re.Pattern[str]], ...]:
    """The kinds of answer, in the order in which they decide; what shows none of them is a survey."""
    return cast("tuple[tuple[Kind, re.Pattern[str]], ...]", _named_forms(f"kinds {language}"))


@cache
def _domains() -> tuple[tuple[Domain, re.Pattern[str]], ...]:
    return cast("tuple[tuple[Domain, re.Pattern[str]], ...]", _named_forms("domains"))


TIMES: dict[Written, re.Pattern[str]] = {"en": _shows("times en"), "zh": _shows("times zh")}
"""Stretches of time, as they are written."""
CONTROVERSY: dict[Written, re.Pattern[str]] = {"en": _shows("controversy en"), "zh": _shows("controversy zh")}
SETS: dict[Written, re.Pattern[str]] = {"en": _shows("sets en"), "zh": _shows("sets zh")}
"""Sets that somebody has to draw the line of: the top ten, the major firms."""


def kind_of(text: str, language: Written) -> Kind:
    """The kind of answer that a question, or a part of one, asks for."""
    return next((kind for kind, shows in _kinds(language) if shows.search(text)), "survey")


def domains_of(text: str) -> tuple[Domain, ...]:
    """The field of which most is said, and one of which much is said; as in the table where two have the same."""
    counts = {domain: len(pattern.findall(text)) for domain, pattern in _domains()}
    ranked = sorted((domain for domain, count in counts.items() if count), key=lambda domain: -counts[domain])
    return tuple(
        domain for domain in ranked[:2] if domain == ranked[0] or counts[domain] >= max(2, counts[ranked[0]] / 2)
    )


def times_of(text: str, language: Written) -> tuple[str, ...]:
    """The stretches of time that are named, each once, as written."""
    return tuple(dict.fromkeys(" ".join(found[0].split()) for found in TIMES[language].finditer(text)))[:_TIMES_MAX]
