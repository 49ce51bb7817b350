"""Constraints on what a text gives away or comes to: personal data, nearness to another text, a rubric by a grader."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from muniment.core.record import Items, NonEmpty
from muniment.verify.evals.answers import best_f1
from muniment.verify.static.base import Constraint, View, Violation
from muniment.verify.static.personal import PERSONAL_KINDS, PersonalKind, find_personal_data

__all__ = ["PersonalDataAbsent", "Rubric", "Similar"]

Share = Annotated[float, Field(ge=0, le=1)]


class PersonalDataAbsent(Constraint):
    """No personal data that has a form of its own: e-mail, phone, card, IBAN, SSN, IP; `allow` names what may stand."""

    NAME: ClassVar[str] = "personal_data"
    KEY: ClassVar[str] = "POLICY:PERSONAL_DATA"
    SHORT: ClassVar[str | None] = "kinds"

    kinds: Items[PersonalKind] = Field(default=PERSONAL_KINDS, min_length=1)
    allow: Items[NonEmpty] = ()

    def check(self, view: View) -> Violation | None:
        for found in find_personal_data(view.text, self.kinds, self.allow):
            return Violation(f"personal data: {found.kind}", (found.start, found.end))
        return None


class Similar(Constraint):
    """Near to one of these texts: the F1 of their tokens, by stems, numbers and dates, is at least `least`."""

    NAME: ClassVar[str] = "similar"
    KEY: ClassVar[str] = "CONTENT:SIMILAR"
    SHORT: ClassVar[str | None] = "to"

    to: Items[NonEmpty] = Field(min_length=1)
    least: Share = 0.7

    def check(self, view: View) -> Violation | None:
        near = best_f1(view.text, self.to)
        return None if near >= self.least else Violation(f"similarity {near:.2f}, at least {self.least:g} wanted")


class Rubric(Constraint):
    """A grader says that this is so of the answer, with a score of at least `least`."""

    NAME: ClassVar[str] = "rubric"
    KEY: ClassVar[str] = "CONTENT:RUBRIC"
    SHORT: ClassVar[str | None] = "ask"
    NEEDS_GRADER: ClassVar[bool] = True

    ask: Annotated[str, Field(min_length=1, max_length=4000)]
    least: Share = 0.5

    def check(self, view: View) -> Violation | None:
        if view.grader is None:
            return Violation("no grader was given", is_decided=False)
        judged = view.grader.judge_rubric(self.ask, view.text, view.output.prompt)
        if judged.score is None:
            return Violation(f"the grader did not decide: {judged.why}", is_decided=False)
        if judged.score >= self.least:
            return None
        return Violation(f"the grader gave {judged.score:.2f}, at least {self.least:g} wanted: {self.ask[:80]}")
