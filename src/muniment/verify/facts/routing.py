"""A second look by a grader: which units deserve one, and where it disagrees. Never changes a verdict (RC-17)."""

from __future__ import annotations

from typing import NamedTuple

from muniment.contracts.run_records import FGFCReport
from muniment.core.ports.grader import Grade, Grader

__all__ = ["SecondLook", "look_again"]

_ENTAILS, _CONTRADICTS = 0.7, 0.3


class SecondLook(NamedTuple):
    """What a grader says of one unit; `disagrees` is the signal to send it to somebody who can decide."""

    unit_id: str
    grader: str
    grade: float
    disagrees: bool


def look_again(report: FGFCReport, grader: Grader) -> tuple[SecondLook, ...]:
    """Grade every unit that has evidence against its quotes."""
    looks: list[SecondLook] = []
    for unit in report.units or ():
        quotes = [one.quote for one in unit.evidence or () if one.quote]
        if not quotes or unit.text is None:
            continue
        given = grader.grade(unit.text, quotes)
        grade = min(1.0, max(0.0, given.score if isinstance(given, Grade) else given))
        supported = unit.verdict == "SUPPORTED"
        disagrees = grade < _CONTRADICTS if supported else grade > _ENTAILS
        looks.append(SecondLook(unit.unit_id or "", grader.name, grade, disagrees))
    return tuple(looks)
