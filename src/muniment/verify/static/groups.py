"""Constraints made of constraints."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from muniment.core.record import Items
from muniment.errors import TooLarge
from muniment.verify.static.base import Constraint, View, Violation

__all__ = ["AnyOf", "NoneOf"]


class AnyOf(Constraint):
    """At least one of these holds."""

    NAME: ClassVar[str] = "any_of"
    KEY: ClassVar[str] = "FORMAT:ANY_OF"
    SHORT: ClassVar[str | None] = "constraints"

    constraints: Items[Any] = Field(min_length=1)

    def check(self, view: View) -> Violation | None:
        found = [_checked(each, view) for each in self.constraints]
        if None in found:
            return None
        problems = [problem for problem in found if problem is not None]
        message = "; ".join(problem.message for problem in problems)
        return Violation(message, is_decided=all(problem.is_decided for problem in problems))


class NoneOf(Constraint):
    """None of these holds. What nobody recorded or nobody can decide is no proof that it does not."""

    NAME: ClassVar[str] = "none_of"
    KEY: ClassVar[str] = "FORMAT:NONE_OF"
    SHORT: ClassVar[str | None] = "constraints"

    constraints: Items[Any] = Field(min_length=1)

    def check(self, view: View) -> Violation | None:
        open_: Violation | None = None
        for each in self.constraints:
            problem = _checked(each, view)
            if problem is None:
                return Violation(f"{each.NAME} holds, and must not")
            if not problem.is_decided and open_ is None:
                open_ = Violation(f"{each.NAME}: {problem.message}", is_decided=False)
        return open_


def _checked(constraint: Constraint, view: View) -> Violation | None:
    try:
        return constraint.check(view)
    except TooLarge as error:
        return Violation(f"could not be decided: {error.message}", is_decided=False)
