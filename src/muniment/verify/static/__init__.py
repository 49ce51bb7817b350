"""L1, the static layer: a constraint language, and what it finds in an output. No model, no clock, no outside world."""

from __future__ import annotations

from muniment.verify.static import constraints
from muniment.verify.static.evaluation import evaluate
from muniment.verify.static.notation import ConstraintSet, parse_constraints, read_constraints

__all__ = ["ConstraintSet", "constraints", "evaluate", "parse_constraints", "read_constraints"]
