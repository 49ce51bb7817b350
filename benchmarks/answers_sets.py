"""The questions whose answers a model is judged by: three development sets, LoCoMo's known wrong keys put right.

Taken are questions that nothing answers, and those that a phrase answers (`WORDS_MAX`), of kinds whose key is an answer
and no description of one. Wordings are chosen on some histories and judged on the others (`CHOOSING`), never split by
question.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.data import Question, Scope, pooled

__all__ = ["CHOOSING", "SETS", "Asked", "Corrected", "asked_of", "is_choosing", "traps_of"]

SETS = ("locomo", "longmemeval", "beam_100k")
CHOOSING = {
    "locomo": ("conv-26",),
    "longmemeval": ("pool0", "pool2", "pool4"),
    "beam_100k": ("chat2", "chat7", "chat11", "chat17"),
}
"""The histories that wordings are chosen on; the others judge."""
WORDS_MAX = 25
"""Of an answer: a model that is asked for a phrase gives no list of seven events."""
NO_ANSWERS = ("single-session-preference",)
"""Kinds whose key tells what a good answer would be like."""
CORRECTION_WORDS_MAX = 16
_UNCLEAR = ("attribution_error", "ambiguous")
_REMARK = re.compile(r"\s*\([^()]*\)")
_ALSO = re.compile(r"\s+(?:is|are) also acceptable\.?$")


class Corrected(NamedTuple):
    """What became of a question whose key was wrong."""

    scope: str
    id: str
    error: str
    is_left_out: bool


class Asked(NamedTuple):
    """A set's histories with the questions that are asked of them, and what was corrected."""

    scopes: list[Scope]
    corrected: list[Corrected]
    too_long: int
    """Questions left out since their answer is no phrase, or their key no answer."""


def is_choosing(name: str, scope: str) -> bool:
    return scope in CHOOSING[name]


def asked_of(data: Path, name: str) -> Asked:
    """The questions of a set, each with its right key."""
    errors = _corrections(data) if name == "locomo" else {}
    kept: list[Scope] = []
    told: list[Corrected] = []
    too_long = 0
    for scope in pooled(data, name):
        questions = []
        for question in scope.questions:
            error = errors.get((scope.name, question.id))
            if error is not None:
                right = _put_right(scope, question, error)
                told.append(Corrected(scope.name, question.id, error["error"], right is None))
                if right is None:
                    continue
                question = right
            if question.answerable and not _is_phrase(question):
                too_long += 1
                continue
            questions.append(replace(question, answers=_alternatives(question.answers)))
        kept.append(Scope(scope.name, scope.turns, questions))
    return Asked(kept, told, too_long)


def _is_phrase(question: Question) -> bool:
    return (
        bool(question.answers)
        and question.kind not in NO_ANSWERS
        and min(len(answer.split()) for answer in question.answers) <= WORDS_MAX
    )


def _alternatives(answers: tuple[str, ...]) -> tuple[str, ...]:
    """A key that allows a second answer as two."""
    found: list[str] = []
    for answer in answers:
        if _ALSO.search(answer):
            found += [_ALSO.sub("", part) for part in re.split(r"(?<=[a-z0-9])\.\s+", answer)]
        else:
            found.append(answer)
    return tuple(found)


# -- what is wrong in LoCoMo --------------------------------------------------------------------------


def _corrections(data: Path) -> dict[tuple[str, str], dict[str, str]]:
    rows = json.loads((data / "locomo_dev3_corrections.json").read_text("utf-8"))
    return {(row["scope"], f"q{row['qa']}"): row for row in rows}


def _put_right(scope: Scope, question: Question, error: dict[str, str]) -> Question | None:
    """The question with its right key; None where the audit says that the question itself is wrong, or not which
    answer is right."""
    answer = _REMARK.sub("", error["answer"]).strip()
    if error["error"] in _UNCLEAR or ";" in answer or len(answer.split()) > CORRECTION_WORDS_MAX:
        return None
    known = {turn.id for turn in scope.turns}
    gold = frozenset(error["evidence"]) & known
    return replace(question, answers=(answer,), gold=gold or question.gold)


def traps_of(data: Path) -> dict[tuple[str, str], str]:
    """LoCoMo's questions on what another speaker did: the answer that would be right of the other one."""
    samples = json.loads((data / "locomo_dev3.json").read_text("utf-8"))
    return {
        (sample["sample_id"], f"q{place}"): str(row["adversarial_answer"])
        for sample in samples
        for place, row in enumerate(sample["qa"])
        if row.get("adversarial_answer")
    }
