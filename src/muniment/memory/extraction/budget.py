"""What reading by a model may cost, and what it has cost so far. Pure.

A limit is looked at before a call: where the next one might pass it, no call is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from muniment.core.record import Absent, Count, Numeric, Record
from muniment.errors import InvalidInput

__all__ = ["ExtractionBudget", "Limit", "Spent", "answer_room", "budget_given", "cost_usd"]

Limit = Literal["calls", "turns", "tokens", "tokens_in", "tokens_out", "usd"]
Money = Annotated[float, Numeric(minimum=0)]
_ANSWER_TOKENS_MIN = 64
"""With less room than this an answer is cut off, and the call is for nothing."""
_MILLION = 1_000_000
_HINT = 'a number of calls, or limits by name: {"calls": 20, "tokens": 50000}'


class ExtractionBudget(Record):
    """Limits of one call of `extract_pending`: each that is given holds."""

    calls: Absent[Count] = None
    """Calls of the model, those that are made again after a failure too."""
    turns: Absent[Count] = None
    """Turns that are read."""
    tokens: Absent[Count] = None
    """Tokens of questions and answers together."""
    tokens_in: Absent[Count] = None
    """Tokens of what the model is asked."""
    tokens_out: Absent[Count] = None
    """Tokens of what it answers."""
    usd: Absent[Money] = None
    """Money; needs the prices."""
    usd_per_million_in: Absent[Money] = None
    """What a million tokens of questions cost."""
    usd_per_million_out: Absent[Money] = None
    """What a million tokens of answers cost."""


class Spent(NamedTuple):
    """What was used so far."""

    calls: int = 0
    turns: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


def budget_given(given: Any) -> ExtractionBudget:
    """What a caller gave as a budget: nothing, a number of calls, or limits by name."""
    if given is None:
        return ExtractionBudget()
    if isinstance(given, ExtractionBudget):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        given = {"calls": given}
    if not isinstance(given, Mapping):
        raise InvalidInput("a budget is a number of calls, or limits by name", path="$.budget", hint=_HINT)
    budget = ExtractionBudget.of_given(dict(given), "not a valid budget", path="$.budget", hint=_HINT)
    if budget.usd is not None and budget.usd_per_million_in is None and budget.usd_per_million_out is None:
        raise InvalidInput(
            "a limit of money needs prices",
            path="$.budget.usd",
            hint="give usd_per_million_in and usd_per_million_out too",
        )
    return budget


def cost_usd(budget: ExtractionBudget, tokens_in: int, tokens_out: int) -> float | None:
    """What so many tokens cost; None where no prices are known."""
    if budget.usd_per_million_in is None and budget.usd_per_million_out is None:
        return None
    dear = tokens_in * (budget.usd_per_million_in or 0.0) + tokens_out * (budget.usd_per_million_out or 0.0)
    return dear / _MILLION


def answer_room(budget: ExtractionBudget, spent: Spent, asked: int, wanted: int) -> int | Limit:
    """How long the answer to a call of `asked` tokens may be, at most `wanted`; or the limit that forbids the call."""
    if budget.calls is not None and spent.calls >= budget.calls:
        return "calls"
    if budget.turns is not None and spent.turns >= budget.turns:
        return "turns"
    if budget.tokens_in is not None and spent.tokens_in + asked > budget.tokens_in:
        return "tokens_in"
    rooms: list[tuple[float, Limit]] = []
    if budget.tokens_out is not None:
        rooms.append((budget.tokens_out - spent.tokens_out, "tokens_out"))
    if budget.tokens is not None:
        rooms.append((budget.tokens - spent.tokens_in - spent.tokens_out - asked, "tokens"))
    if budget.usd is not None:
        left = budget.usd - (cost_usd(budget, spent.tokens_in + asked, spent.tokens_out) or 0.0)
        price = budget.usd_per_million_out or 0.0
        rooms.append((wanted if left >= 0 and price == 0 else left * _MILLION / (price or 1.0), "usd"))
    least, limit = min(rooms, default=(float(wanted), "calls"))
    room = min(wanted, int(least))
    return limit if room < min(wanted, _ANSWER_TOKENS_MIN) else room
