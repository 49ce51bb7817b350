"""What prompts cost as input, under the rules by which providers bill what repeats the beginning of an earlier prompt.

rules()                          the rules, from `provider_rules.toml`
prompts_of(requests, count)      how long each request is, and how much of it repeats the one before
bill(rule, prompts)              what that costs
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

__all__ = ["BillingRule", "Charge", "Prompt", "bill", "charge", "prompts_of", "rules"]


class BillingRule(NamedTuple):
    """How one provider bills repeated input. Prices are multiples of that of fresh input."""

    name: str
    models: str
    minimum: int
    """Shorter prefixes are not cached."""
    block: int
    """A prefix counts in whole blocks of so many tokens."""
    write: float
    read: float
    as_of: str


@cache
def rules() -> tuple[BillingRule, ...]:
    table = tomllib.loads(files("muniment.packets").joinpath("provider_rules.toml").read_text("utf-8"))
    return tuple(BillingRule(**each) for each in table["rule"])


class Prompt(NamedTuple):
    """A request, in tokens."""

    tokens: int
    repeated: int
    """How many of them, from the first one on, the request before began with."""


class Charge(NamedTuple):
    """Input tokens by how they are billed, and their price as that of so many fresh tokens."""

    fresh: int = 0
    cached: int = 0
    written: int = 0
    """Put into the cache at a price of its own; where that is the price of fresh input, they count as fresh."""
    price: float = 0.0

    @property
    def tokens(self) -> int:
        return self.fresh + self.cached + self.written


def charge(rule: BillingRule, prompt: Prompt) -> Charge:
    """Bill one request. A cache is assumed to hold until the next request of the conversation."""
    cached = prompt.repeated // rule.block * rule.block
    if cached < rule.minimum:
        cached = 0
    rest = prompt.tokens - cached
    is_written = rule.write != 1.0 and prompt.tokens >= rule.minimum
    price = cached * rule.read + rest * (rule.write if is_written else 1.0)
    return Charge(0 if is_written else rest, cached, rest if is_written else 0, price)


def bill(rule: BillingRule, prompts: Iterable[Prompt]) -> Charge:
    """Bill a conversation."""
    charges = [charge(rule, prompt) for prompt in prompts]
    fresh, cached = sum(each.fresh for each in charges), sum(each.cached for each in charges)
    return Charge(fresh, cached, sum(each.written for each in charges), sum(each.price for each in charges))


def prompts_of(requests: Iterable[Sequence[str]], count: Callable[[str], int]) -> list[Prompt]:
    """Measure requests, each a list of the texts that stand before the model, in order.

    Texts are counted one by one. Of the first that differs from the request before, what both begin with counts too.
    """
    counted: dict[str, int] = {}

    def tokens(text: str) -> int:
        if text not in counted:
            counted[text] = count(text)
        return counted[text]

    found: list[Prompt] = []
    before: Sequence[str] = ()
    for request in requests:
        same = next((at for at, (one, other) in enumerate(zip(before, request, strict=False)) if one != other), None)
        if same is None:
            repeated = sum(map(tokens, request[: min(len(before), len(request))]))
        else:
            alike = _common(before[same], request[same])
            repeated = sum(map(tokens, request[:same])) + (count(alike) if alike else 0)
        found.append(Prompt(sum(map(tokens, request)), repeated))
        before = request
    return found


def _common(one: str, other: str) -> str:
    end = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:end]
