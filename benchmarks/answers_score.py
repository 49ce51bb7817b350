"""How good an answer is, without a judge: what `muniment eval` measures of it, and what the bench of answers adds.

- `f1`, `contains`, `declined`: as `muniment.verify.answers` has them, with days that another day names resolved
  (`answer_dates`), the best of the keys where there are several. `declined` is meant for questions that nothing
  answers, and counted beside those that something does.
- `f1_plain`: LoCoMo's F1, of stems with neither dates nor numbers in one form.
- `trapped`: it gives what another speaker did.
- `cites`: a mark of the page stands in it; `literal`: the letter of an example; `unknown`: a number that is on no line;
  `right`: one of the lines that it cites is gold; `cited_recall`: the share of gold that is cited.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from benchmarks.answer_dates import in_dates
from muniment.core.text.analyzer import porter_stem
from muniment.core.text.sentences import MARK
from muniment.verify.answers import best_f1, contains_any, f1_of, judge_citations, token_f1, was_declined

__all__ = ["Score", "plain_f1", "score"]

_ARTICLES = frozenset(("a", "an", "the", "and"))
_TRAPPED = 0.5
"""The F1 with a trap's answer from which on it was given."""
_LITERAL = re.compile(r"\[(?:n|number|mark|x|#|source|line)\]", re.IGNORECASE)
_stem = lru_cache(maxsize=1 << 15)(porter_stem)


class Score(NamedTuple):
    """What is measured of one answer."""

    f1: float
    f1_plain: float
    contains: bool
    declined: bool
    trapped: bool
    cites: bool
    literal: bool
    unknown: bool
    right: bool
    cited_recall: float


def score(answer: str, keys: Sequence[str], *, gold: frozenset[str], marks: Mapping[str, str], trap: str = "") -> Score:
    """An answer against its keys; `marks` are those of the page, by turn id."""
    cited = judge_citations(answer, marks, gold)
    dated, dated_keys, dated_trap = in_dates(answer), [in_dates(key) for key in keys], in_dates(trap)
    return Score(
        best_f1(dated, dated_keys),
        max((plain_f1(answer, key) for key in keys), default=0.0),
        contains_any(dated, dated_keys),
        was_declined(answer),
        bool(trap) and (contains_any(dated, [dated_trap]) or token_f1(dated, dated_trap) >= _TRAPPED),
        cited.known,
        bool(_LITERAL.search(answer)),
        cited.unknown,
        cited.right,
        cited.recall,
    )


def plain_f1(answer: str, key: str) -> float:
    """F1 of what stands there but for signs, articles and marks, as LoCoMo's own evaluation has it."""
    return f1_of(_plain(answer), _plain(key))


def _plain(text: str) -> list[str]:
    return [_stem(word) for word in re.sub(r"[^\w\s]", "", MARK.sub("", text).lower()).split() if word not in _ARTICLES]
