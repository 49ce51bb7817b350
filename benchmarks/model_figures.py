"""The figures of the tool puzzles: pass rates and costs by arm, in the first and the second half of the rounds.

Intervals are 95 % of a bootstrap over desks. A lesson is judged by what it says of the hidden tool or grade.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.learning.arms import lesson_text, stage_of
from benchmarks.learning.figures import share_interval
from benchmarks.learning.reading import Slot, concerns, read_text
from benchmarks.model_puzzles import Desk

__all__ = ["judged_lesson", "lesson_counts", "outcome_rows"]

QUOTED = 10


def outcome_rows(outcomes: Sequence[Mapping[str, Any]], arms: Sequence[str]) -> dict[str, dict[str, Any]]:
    rounds = sorted({row["round"] for row in outcomes})
    middle = len(rounds) // 2
    rows: dict[str, dict[str, Any]] = {}
    parts: list[tuple[str, list[int]]] = [("first half", rounds[:middle]), ("second half", rounds[middle:])]
    kinds = sorted({row["kind"] for row in outcomes})
    for title, wanted in parts:
        held = [row for row in outcomes if row["round"] in wanted]
        for arm in arms if held else ():
            rows[f"{title}: {arm}"] = _figures(held, arm)
        for kind in kinds if held else ():
            for arm in arms:
                rows[f"{title}, {kind}: {arm}"] = _figures([row for row in held if row["kind"] == kind], arm)
    return rows


def _figures(outcomes: Sequence[Mapping[str, Any]], arm: str) -> dict[str, Any]:
    desks = sorted({row["desk"] for row in outcomes})

    def sums(name: str, of: str = arm) -> list[float]:
        return [float(sum(row[name] for row in outcomes if row["desk"] == d and row["arm"] == of)) for d in desks]

    counts = [float(sum(row["desk"] == d and row["arm"] == arm for row in outcomes)) for d in desks]
    passes = sums("passed")
    shown: dict[str, Any] = {"runs": int(sum(counts))}
    gain = [a - b for a, b in zip(passes, sums("passed", "none"), strict=True)]
    first_gain = [a - b for a, b in zip(sums("first"), sums("first", "none"), strict=True)]
    figures = {
        "pass_rate": (passes, counts),
        "over_none": (gain, counts),
        "first_call_right": (sums("first"), counts),
        "first_over_none": (first_gain, counts),
        "calls_per_pass": (sums("calls"), passes),
        "tokens_per_pass": (sums("tokens"), passes),
        "answers_read": (sums("is_read"), counts),
    }
    for name, (top, bottom) in figures.items():
        if not sum(bottom):
            continue
        whole, low, high = share_interval(top, bottom)
        shown |= {name: round(whole, 4), f"{name}_low": round(low, 4), f"{name}_high": round(high, 4)}
    return shown


def judged_lesson(desk: Desk, text: str) -> str:
    """`right` where it says something for what is hidden, or against what is not; `wrong` the other way round."""
    options = desk.grades if desk.kind == "grade" else desk.tools
    said = read_text(text, (Slot("way", "tool", tuple(options), (1.0,) * len(options)),))
    forms = [form for form in desk.rights if concerns(text, {"form": desk.forms}, {"form": form} if form else {})]
    rights = {desk.rights[form] for form in forms}
    signs = {(each.option in rights) == (each.log_odds > 0) for each in said} if rights else set()
    return "idle" if not signs else "mixed" if len(signs) == 2 else "right" if True in signs else "wrong"


def lesson_counts(arm: str, held: Sequence[tuple[Desk, Any]]) -> dict[str, dict[str, Any]]:
    """How many lessons an arm has, where they stand, what they are; and some of them as they are."""
    judged = []
    for desk, memory in held:
        origin = (memory.record.get("lesson") or {}).get("origin", "contrast")
        text = lesson_text(memory.record)
        judged.append((judged_lesson(desk, text), stage_of(memory), str(origin), text, desk))
    counts: dict[str, Any] = {"made": len(judged)}
    for of in ("right", "wrong", "mixed", "idle"):
        counts[of] = sum(each[0] == of for each in judged)
        counts[f"active_{of}"] = sum(each[0] == of and each[1] == "active" for each in judged)
    for origin in sorted({each[2] for each in judged}):
        counts[f"by_{origin}"] = sum(each[2] == origin for each in judged)
    rows: dict[str, dict[str, Any]] = {f"{arm}: lessons at the end": counts}
    for number, (worth, stage, origin, text, desk) in enumerate(judged[:: max(1, len(judged) // QUOTED)][:QUOTED]):
        rows[f"{arm}: lesson {number + 1}"] = {
            "text": text, "stage": stage, "origin": origin, "worth": worth, "kind": desk.kind,
            "hidden": dict(desk.rights),
        }  # fmt: skip
    return rows
