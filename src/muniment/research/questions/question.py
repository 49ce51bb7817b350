"""From a question to what it asks: language, kinds of answer, parts, topics, names, time, dispute. No model."""

from __future__ import annotations

from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.script import Written, written_in
from muniment.errors import InvalidInput
from muniment.research.questions.grammar import Grammar
from muniment.research.questions.phrases import Part, clip, once, tidy
from muniment.research.questions.words import CONTROVERSY, SETS, Domain, Kind, domains_of, kind_of, times_of

__all__ = ["QuestionAnalysis", "analyse"]

_PARTS_MAX = 12
_TOPICS_MAX = 24
_WORD = lazy_pattern(r"\w")
_SURROGATE = lazy_pattern("[\ud800-\udfff]")


class QuestionAnalysis(NamedTuple):
    """What a question asks, as far as its form tells."""

    language: Written
    """`zh`, or `en` for all other languages."""
    subject: str
    """What it is about, in its own words."""
    kinds: tuple[Kind, ...]
    """What kind of answer is asked for, first named first."""
    parts: tuple[Part, ...]
    """The things asked, in order; at least one."""
    topics: tuple[str, ...]
    """Dimensions and aspects that it enumerates."""
    entities: tuple[str, ...]
    compared: tuple[str, ...]
    """Things set side by side."""
    open_set: bool
    """It speaks of a set that somebody has to draw the line of: the top ten, the major firms."""
    time: tuple[str, ...]
    """Stretches of time, as written."""
    controversy: bool
    constraints: tuple[str, ...]
    """What it says about the answer's form and sources."""
    domains: tuple[Domain, ...]
    complexity: int
    """How many strands it has beyond a plain question: each asks for one more perspective."""


def analyse(question: str) -> QuestionAnalysis:
    """Read a question. Raises `InvalidInput` where there is none."""
    if not _WORD.search(question):
        raise InvalidInput(
            "the question is empty", path="$.question", hint="ask something: a sentence or two in any language"
        )
    if _SURROGATE.search(question):
        raise InvalidInput(
            "the question holds lone surrogates", path="$.question", hint="pass text that can be written as UTF-8"
        )
    language = written_in(question)
    grammar = Grammar(language)
    parts = grammar.parts_in(question)[:_PARTS_MAX] or (_whole(question, language),)
    topics = once([topic for part in parts for topic in part.topics], _TOPICS_MAX)
    compared = grammar.compared_in(question)
    subject = grammar.subject_in(question, parts) or parts[0].text
    time = times_of(question, language)
    controversy = CONTROVERSY[language].search(question) is not None
    strands = (
        min(len(parts) - 1, 3)
        + (len(topics) >= 3)
        + (len(topics) >= 6)
        + min(max(len(compared) - 1, 0), 2)
        + controversy
        + bool(time)
    )
    return QuestionAnalysis(
        language=language,
        subject=subject,
        kinds=tuple(dict.fromkeys(part.kind for part in parts)),
        parts=parts,
        topics=topics,
        entities=grammar.names_in(question),
        compared=compared,
        open_set=SETS[language].search(f"{subject} {parts[0].text}") is not None,
        time=time,
        controversy=controversy,
        constraints=grammar.demands_in(question),
        domains=domains_of(question),
        complexity=strands,
    )


def _whole(question: str, language: Written) -> Part:
    """The whole question as one part, where no part of it can be told from the rest."""
    text = tidy(question)
    return Part(clip(text, {"en": 160, "zh": 60}[language], language) or text[:60], kind_of(question, language))
