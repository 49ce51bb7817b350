"""Conditions over a run's features, as text: parsed and type-checked when written, total and bounded when evaluated.

No eval, no attribute access, no loops, no clock: a predicate says true, false or unknown of plain data, the same
everywhere. It holds only where it is true.

    parse('run.mode == "main" && tools.subset_of(["search", "read"]) && cost.tool_calls <= 3')
    parse("needs_json")     # a tag alone: "needs_json" in tags

The syntax is CEL's where both have a thing; there are no macros, no regular expressions and no own functions.
"""

from muniment.core.predicates.predicate import Predicate, all_hold, parse
from muniment.core.predicates.schema import RUN_FEATURES

__all__ = ["RUN_FEATURES", "Predicate", "all_hold", "parse"]
