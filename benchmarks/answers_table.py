"""Answers put together: a row for each model, set and arm, with intervals of the difference to our packet of 512.

Intervals are 95 % of a bootstrap over questions, drawn in pairs: the same questions in both arms. The mean over the
sets counts each set the same.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.answers_prompts import Prompt
from benchmarks.answers_score import Score, score
from benchmarks.answers_sets import asked_of, is_choosing, traps_of
from benchmarks.data import Question

__all__ = ["MEAN", "Answer", "Answered", "answered", "kept_of", "read_answers", "rows_of"]

MEAN = "mean of the sets"
REFERENCE = "ours 512"
"""The arm that every other one is compared with."""
DRAWS, SEED = 2_000, 11
HALVES = ("judging", "choosing")
_WORDING = "wording "


class Answer(NamedTuple):
    """What a model said to a prompt."""

    text: str
    prompt_tokens: int
    seconds: float


class Answered(NamedTuple):
    """A question in one arm, and what came of it."""

    set: str
    scope: str
    question: Question
    arm: str
    is_choosing: bool
    prompt: Prompt
    answer: Answer
    score: Score


def read_answers(paths: Iterable[Path]) -> dict[str, dict[str, Answer]]:
    """By model, then by the prompt's key."""
    found: dict[str, dict[str, Answer]] = {}
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue  # the last line of a run that was cut short
                found.setdefault(row["model"], {})[row["key"]] = Answer(
                    row["answer"], row["prompt_tokens"], row["seconds"]
                )
    return found


def answered(data: Path, prompts: Sequence[Prompt], answers: Mapping[str, Answer]) -> list[Answered]:
    """Every prompt that has an answer, scored."""
    questions: dict[tuple[str, str, str], Question] = {}
    traps: dict[tuple[str, str], str] = {}
    for name in sorted({prompt.set for prompt in prompts}):
        for scope in asked_of(data, name).scopes:
            questions |= {(name, scope.name, question.id): question for question in scope.questions}
        if name == "locomo":
            traps = traps_of(data)
    rows = []
    for prompt in prompts:
        answer = answers.get(prompt.key)
        question = questions.get((prompt.set, prompt.scope, prompt.question))
        if answer is None or question is None:
            continue
        trap = traps.get((prompt.scope, prompt.question), "") if prompt.set == "locomo" else ""
        measured = score(answer.text, question.answers, gold=question.gold, marks=prompt.marks, trap=trap)
        choosing = is_choosing(prompt.set, prompt.scope)
        rows.append(Answered(prompt.set, prompt.scope, question, prompt.arm, choosing, prompt, answer, measured))
    return rows


def rows_of(rows: Sequence[Answered], half: str) -> dict[str, dict[str, Any]]:
    """`set, arm` → its figures, for one model and one half of the histories; then the mean of the sets by arm."""
    taken = [row for row in rows if half == "all" or row.is_choosing is (half == "choosing")]
    by_arm: dict[str, dict[str, list[Answered]]] = {}
    for row in taken:
        by_arm.setdefault(row.arm, {}).setdefault(row.set, []).append(row)
    sets = sorted({row.set for row in taken})
    reference = by_arm.get(REFERENCE, {})
    table: dict[str, dict[str, Any]] = {}
    for arm, held in by_arm.items():
        for name in sets:
            if name in held:
                table[f"{name}, {arm}"] = _row(held[name], reference.get(name, ()))
        if len(held) == len(sets) > 1:
            table[f"{MEAN}, {arm}"] = _mean([table[f"{name}, {arm}"] for name in sets])
    return table


def _row(rows: Sequence[Answered], reference: Sequence[Answered]) -> dict[str, Any]:
    able = [row for row in rows if row.question.answerable]
    unable = [row for row in rows if not row.question.answerable]
    told: dict[str, Any] = {"questions": len(able), "unanswerable": len(unable)}
    if able:
        told |= {
            "prompt_tokens": round(statistics.fmean(row.answer.prompt_tokens for row in able)),
            "gold_in": _share(_gold_in(row) for row in able),
            "f1": _share(row.score.f1 for row in able),
            "f1_plain": _share(row.score.f1_plain for row in able),
            "contains": _share(row.score.contains for row in able),
            "answerable_declined": _share(row.score.declined for row in able),
            "seconds": round(statistics.fmean(row.answer.seconds for row in able), 4),
        }
        if any(row.score.cites or row.score.literal for row in able) or "citing" in rows[0].arm:
            told |= _citations(able)
        kinds = sorted({row.question.kind for row in able})
        told["f1_by_kind"] = {
            kind: [sum(row.question.kind == kind for row in able), _of_kind(able, kind)] for kind in kinds
        }
        if reference and rows[0].arm != REFERENCE:
            told |= _against(able, reference)
    if unable:
        told["unanswerable_declined"] = _share(row.score.declined for row in unable)
        told["trapped"] = _share(row.score.trapped for row in unable)
        told["told_not_found"] = _share(not row.prompt.found for row in unable)
    return told


def _citations(able: Sequence[Answered]) -> dict[str, Any]:
    citing = [row for row in able if row.score.cites]
    return {
        "cites": _share(row.score.cites for row in able),
        "literal": _share(row.score.literal for row in able),
        "unknown_marks": _share(row.score.unknown for row in able),
        "right_of_citing": _share(row.score.right for row in citing) if citing else 0.0,
        "right_where_gold_is_in": _share(row.score.right for row in citing if _gold_in(row) > 0) if citing else 0.0,
        "cited_recall": _share(row.score.cited_recall for row in able),
    }


def _share(values: Iterable[float]) -> float:
    held = [float(value) for value in values]
    return round(statistics.fmean(held), 4) if held else 0.0


def _gold_in(row: Answered) -> float:
    gold = row.question.gold
    return len(gold.intersection(row.prompt.told)) / len(gold) if gold else 0.0


def _of_kind(rows: Sequence[Answered], kind: str) -> float:
    return _share(row.score.f1 for row in rows if row.question.kind == kind)


def _against(rows: Sequence[Answered], reference: Sequence[Answered]) -> dict[str, Any]:
    """Ours less this arm, over the questions that both answer."""
    theirs = {(row.scope, row.question.id): row.score.f1 for row in rows}
    pairs = [
        row.score.f1 - theirs[row.scope, row.question.id]
        for row in reference
        if (row.scope, row.question.id) in theirs and row.question.answerable
    ]
    if not pairs:
        return {}
    low, high = interval(pairs)
    return {"ours_512_less_this": round(statistics.fmean(pairs), 4), "interval": [low, high]}


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % of the means when the values are drawn anew."""
    held = np.asarray(values)
    draws = np.random.default_rng(SEED).integers(0, len(held), (DRAWS, len(held)))
    low, high = np.quantile(held[draws].mean(axis=1), (0.025, 0.975))
    return round(float(low), 4), round(float(high), 4)


_MEANT = (
    "prompt_tokens", "gold_in", "f1", "f1_plain", "contains", "answerable_declined", "unanswerable_declined", "trapped",
    "cites", "right_of_citing", "cited_recall",
)  # fmt: skip


def _mean(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        name: round(statistics.fmean(row[name] for row in rows), 4)
        for name in _MEANT
        if all(name in row for row in rows)
    }


# -- what is written down -----------------------------------------------------------------------------

_OF_AN_ARM = (
    "questions", "unanswerable", "prompt_tokens", "gold_in", "f1", "f1_plain", "answerable_declined",
    "unanswerable_declined", "trapped", "cites", "right_of_citing", "ours_512_less_this", "interval",
)  # fmt: skip
_OF_A_WORDING = ("f1", "f1_plain", "answerable_declined", "unanswerable_declined", "cites", "right_of_citing")


def kept_of(table: Mapping[str, Mapping[str, Any]], half: str, *, is_main: bool) -> dict[str, dict[str, Any]]:
    """What the pages tell of a model's table: its arms set by set on the judging half, else a row for each arm or
    wording with the means of the sets and the F1 of each. Of a model that has no more than a veto, its mean F1.
    """
    arms: dict[str, dict[str, Mapping[str, Any]]] = {}
    for name, row in table.items():
        held, _, arm = name.partition(", ")
        arms.setdefault(arm, {})[held] = row
    kept: dict[str, dict[str, Any]] = {}
    for arm, rows in arms.items():
        if is_main and half == "judging" and not arm.startswith(_WORDING):
            kept |= {f"{name}, {arm}": _some(row, _OF_AN_ARM) for name, row in rows.items()}
        elif is_main:
            sets = {name: row for name, row in rows.items() if name != MEAN}
            f1s = {name: row["f1"] for name, row in sets.items() if "f1" in row}
            asked = sum(row["questions"] for row in sets.values())
            kept[arm] = {"questions": asked, **f1s, **_some(rows.get(MEAN, {}), _OF_A_WORDING)}
        elif MEAN in rows:
            kept[arm] = _some(rows[MEAN], ("f1",))
    return kept


def _some(row: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    return {field: row[field] for field in fields if field in row}
