"""Score the result of an arm for a question: measures from 0 to 1, more is better. Pure.

| measure | applies to | 1 means |
|---|---|---|
| recall | questions with evidence | all of it is present; else the share that is |
| told | questions with answers | the text contains one of them word for word (dates and numbers in any form) |
| newest | questions with stale evidence | the evidence is present, and above anything stale |
| clean | questions with `not_told` | the text contains none of it |
| recognised | unanswerable questions | the packet says so |
| offered | answerable questions | the packet does not claim that nothing answers it |
| f1, contains | questions with answers | the model's answer has their tokens; contains one of them |
| answered, declined | answerable questions; the others | the model answered; it said that it does not know |
| cited | questions with evidence | the model's answer cites a piece of it |

The last five need a model. A question passes with an arm if all of its evidence (or, if none is named, an answer) is
present, nothing stale is above it, no `not_told` text is present, and an unanswerable question is recognised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from muniment.verify.answers import best_f1, contains_any, judge_citations, was_declined
from muniment.verify.evals.questions import EvalQuestion

__all__ = ["MEASURES", "MODEL_MEASURES", "Given", "Miss", "Piece", "Wanted", "folded", "judge", "misses_of", "passes"]

MODEL_MEASURES = ("f1", "contains", "answered", "declined", "cited")
MEASURES = ("recall", "told", "newest", "clean", "recognised", "offered", *MODEL_MEASURES)
_PASSING = ("newest", "clean", "recognised")


class Piece(NamedTuple):
    """A piece of evidence as written in the question, and its events."""

    said: str
    event_ids: tuple[str, ...]
    is_quote: bool
    """True if the evidence is given as words of an event, which must occur in the text; false if by event id."""
    text: str = ""
    """Text of an event given by id, for display."""


class Wanted(NamedTuple):
    """The evidence and expectations of a question, looked up in the store."""

    evidence: tuple[Piece, ...] = ()
    stale: tuple[Piece, ...] = ()

    @property
    def event_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(id_ for piece in self.evidence for id_ in piece.event_ids))


class Given(NamedTuple):
    """The result of an arm for one question."""

    text: str
    """The text a model would read."""
    event_ids: tuple[str, ...]
    """The events in the text, from the top down."""
    tokens: int
    found: bool | None = None
    """Whether the arm says that memory has an answer; None if it cannot say."""
    marks: Mapping[str, str] = {}
    omitted: Mapping[str, str] = {}
    """Events that were considered and left out, and why."""
    duration_ms: float = 0.0
    answer: str | None = None
    """The model's answer, if one was asked."""


class Miss(NamedTuple):
    """An unmet expectation, and its known cause."""

    what: Literal["missing", "cut", "untold", "stale", "told", "not_recognised", "refused"]
    said: str = ""
    because: str = ""
    """Why an event was left out of a packet, as named in its explanation."""
    rank: int | None = None
    """Rank in a search; 0 if it is not among the results examined."""
    text: str = ""
    """Text of an event given by id, for display."""


def folded(text: str) -> str:
    """Normalise a text for finding quotes: lower case, with single spaces."""
    return " ".join(text.casefold().split())


def judge(question: EvalQuestion, wanted: Wanted, given: Given) -> dict[str, float]:
    """Return every measure that applies, in the order of `MEASURES`."""
    text = folded(given.text)
    found: dict[str, float] = {}
    if wanted.evidence:
        found["recall"] = sum(_is_given(piece, given, text) for piece in wanted.evidence) / len(wanted.evidence)
    if question.answers:
        found["told"] = float(contains_any(given.text, question.answers))
    if wanted.stale:
        found["newest"] = float(_is_newest(wanted, given))
    if question.not_told:
        found["clean"] = float(not contains_any(given.text, question.not_told))
    if given.found is not None:
        name = "offered" if question.answerable else "recognised"
        found[name] = float(given.found == question.answerable)
    if given.answer is not None:
        found |= _judge_answer(question, wanted, given, given.answer)
    return found


def _is_given(piece: Piece, given: Given, text: str) -> bool:
    if piece.is_quote:
        return folded(piece.said) in text
    return not set(piece.event_ids).isdisjoint(given.event_ids)


def _is_newest(wanted: Wanted, given: Given) -> bool:
    """True if evidence is present, and anything stale is absent or further down."""
    places = {id_: place for place, id_ in enumerate(given.event_ids)}
    fresh = [places[id_] for id_ in wanted.event_ids if id_ in places]
    stale = [places[id_] for id_ in _stale_ids(wanted) if id_ in places]
    return bool(fresh) and (not stale or min(fresh) < min(stale))


def _stale_ids(wanted: Wanted) -> list[str]:
    return [id_ for piece in wanted.stale for id_ in piece.event_ids if id_ not in wanted.event_ids]


def _judge_answer(question: EvalQuestion, wanted: Wanted, given: Given, answer: str) -> dict[str, float]:
    found: dict[str, float] = {}
    if question.answers:
        found |= {"f1": best_f1(answer, question.answers), "contains": float(contains_any(answer, question.answers))}
    declined = was_declined(answer)
    found |= {"answered": float(not declined)} if question.answerable else {"declined": float(declined)}
    if wanted.evidence and given.marks:
        found["cited"] = float(judge_citations(answer, given.marks, wanted.event_ids).right)
    return found


def passes(measures: Mapping[str, float]) -> bool | None:
    """True if every expectation is met; None if nothing expected can be measured for this arm."""
    first = next((name for name in ("recall", "told") if name in measures), None)
    decisive = [name for name in (first, *_PASSING) if name is not None and name in measures]
    return all(measures[name] == 1 for name in decisive) if decisive else None


def misses_of(
    question: EvalQuestion, wanted: Wanted, given: Given, measures: Mapping[str, float], ranks: Mapping[str, int]
) -> Iterator[Miss]:
    """Yield unmet expectations with their causes; `ranks` gives each event's position in a long search."""
    text = folded(given.text)
    for piece in wanted.evidence:
        if not _is_given(piece, given, text):
            yield _missing(piece, given, ranks)
    if not wanted.evidence and measures.get("told") == 0:
        yield Miss("untold", " / ".join(question.answers))
    if wanted.stale and measures.get("newest") == 0 and measures.get("recall"):
        there = set(given.event_ids) - set(wanted.event_ids)
        yield from (
            Miss("stale", piece.said, text=piece.text)
            for piece in wanted.stale
            if not there.isdisjoint(piece.event_ids)
        )
    for each in question.not_told:
        if contains_any(given.text, [each]):
            yield Miss("told", each)
    if measures.get("recognised") == 0:
        yield Miss("not_recognised")
    if measures.get("offered") == 0:
        yield Miss("refused")


def _missing(piece: Piece, given: Given, ranks: Mapping[str, int]) -> Miss:
    if piece.is_quote and not set(piece.event_ids).isdisjoint(given.event_ids):
        return Miss("cut", piece.said)
    rank = min((ranks[id_] for id_ in piece.event_ids if id_ in ranks), default=0)
    because = next((given.omitted[id_] for id_ in piece.event_ids if id_ in given.omitted), "")
    return Miss("missing", piece.said, because, rank, piece.text)
