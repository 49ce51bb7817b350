"""Words that try to give orders: does a text from outside address the model and tell it what to do (LG-08)?

By how orders are usually worded (`order_forms`), and by what they are made of (`order_weights`, learned); in plain
letters or disguised (`disguises`). A flag to look at, not a verdict: what is flagged is kept, not quoted to a model.
"""

from __future__ import annotations

import re

from muniment.core.text.patterns import lazy_pattern
from muniment.store.ledger.disguises import HIDDEN_WORDS, readings_of
from muniment.store.ledger.order_forms import FORMS
from muniment.store.ledger.order_weights import order_weight

__all__ = ["has_form", "is_worded_as_orders", "reads_like_instructions"]

_ORDERS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (tuple(hints.split()), lazy_pattern(f"(?mx){pattern}")) for hints, pattern in FORMS
)


def reads_like_instructions(text: str) -> bool:
    """Does the text address the model and tell it what to do? A flag to look at, not a verdict."""
    return any(has_form(reading) or order_weight(reading) > 0 for reading in readings_of(text))


def is_worded_as_orders(text: str) -> bool:
    """Is it worded as injections usually are? For what is an instruction by its nature, such as a rule for an agent."""
    return any(map(has_form, readings_of(text)))


def has_form(text: str) -> bool:
    """Is an order worded in one of the usual ways? Of one reading of a text, in lower case and plain letters."""
    return any(
        any(hint in text for hint in hints) and pattern.search(text) is not None for hints, pattern in _ORDERS
    ) or any(word in text for word in HIDDEN_WORDS)
