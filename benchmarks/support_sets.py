"""Outputs with known support, from eleven sets: answers with what they cite, and summaries that were edited.

Attribution (six sets): a claim of an answer and the texts it cites, supported, in part, or not. BUMP: a reference and
an edited summary take turns, the second being wrong. SummEdits (four domains): edits that are right and edits that are
not; `original_summary` is never read.
"""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks.reference import words
from benchmarks.verify_facts import DOMAINS, bump, summedits

__all__ = ["ATTRIBUTION", "DOMAINS", "PERMITTED", "SETS", "Case", "bigram_overlap", "read_cases", "unigram_overlap"]

ATTRIBUTION = ("stanford_gensearch", "hagrid", "expertqa", "wice", "lfqa", "attributedqa")
SETS = (*ATTRIBUTION, "bump", *DOMAINS)
PERMITTED = ("hagrid", "stanford_gensearch", "expertqa")
"""Sets whose licence permits shipping what was fitted on them; all others are for measuring only."""


class Case(NamedTuple):
    set: str
    sources: tuple[str, ...]
    output: str
    label: str
    """supported, partial, not"""

    @property
    def good(self) -> bool:
        """Is it supported? What is supported in part is not."""
        return self.label == "supported"


def read_cases(data: Path) -> list[Case]:
    """Every case of every set; those of BUMP in pairs."""
    cases: list[Case] = []
    for name in ATTRIBUTION:
        with gzip.open(data / "attribution" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        cases.extend(Case(name, tuple(row["sources"]), row["claim"], row["label"]) for row in rows)
    edited = (*bump(data), *summedits(data))
    cases.extend(Case(one.set, (one.document,), one.output, "supported" if one.good else "not") for one in edited)
    return cases


def unigram_overlap(case: Case, *, plain: bool = False) -> float:
    """The share of its words that stand anywhere in the sources: as they are, or stems without stop words."""
    held = {word for text in case.sources for word in words(text, plain=plain)}
    own = words(case.output, plain=plain)
    return sum(word in held for word in own) / max(1, len(own))


def bigram_overlap(case: Case, *, plain: bool = False) -> float:
    """The share of its pairs of neighbouring words that are neighbours in a source."""
    held = {pair for text in case.sources for pair in pairwise(words(text, plain=plain))}
    own = list(pairwise(words(case.output, plain=plain)))
    return sum(pair in held for pair in own) / max(1, len(own))
