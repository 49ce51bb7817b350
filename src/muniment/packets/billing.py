"""Input cost of prompts, under providers' billing rules for prefixes repeated from an earlier prompt.

rules()                          the rules, from `provider_rules.toml`
prompts_of(requests, count)      the length of each request, and of its prefix shared with the one before
bill(rule, prompts)              their cost
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.canonical import canonical_text
from muniment.core.listing import list_query
from muniment.core.record import Count, Items, Number, Record
from muniment.store.items import latest
from muniment.store.lists.entries import list_placed
from muniment.store.reading import content_of

if TYPE_CHECKING:
    from muniment.store.context import Context
    from muniment.store.ledger import LedgerEntry

__all__ = [
    "BillingRule",
    "Charge",
    "Prompt",
    "RuleBill",
    "RunBill",
    "bill",
    "bill_run",
    "charge",
    "prompts_of",
    "rules",
]


class BillingRule(NamedTuple):
    """A provider's rule for repeated input. Prices are multiples of the price of fresh input."""

    name: str
    models: str
    minimum: int
    """Shorter prefixes are not cached."""
    block: int
    """A prefix counts in whole blocks of this many tokens."""
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
    """The length of the prefix shared with the previous request."""


class Charge(NamedTuple):
    """Input tokens by billing class, and their price in fresh tokens."""

    fresh: int = 0
    cached: int = 0
    written: int = 0
    """Written to the cache at a separate price; if that equals the fresh price, they count as fresh."""
    price: float = 0.0

    @property
    def tokens(self) -> int:
        return self.fresh + self.cached + self.written


def charge(rule: BillingRule, prompt: Prompt) -> Charge:
    """Bill one request. A cache is assumed to last until the next request of the conversation."""
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
    """Measure requests, each a list of its input texts in order.

    Texts are counted one by one. In the first text that differs from the previous request, the common prefix counts
    too.
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


# -- a recorded conversation ---------------------------------------------------------------------------


class ChargedTokens(Record):
    """Input tokens of a conversation by billing class, and their price in fresh tokens."""

    fresh: Count
    cached: Count
    written: Count
    price: Number


class RuleBill(Record):
    """The cost of a conversation under one provider's rule, and its cost without memory."""

    rule: str
    models: str
    as_of: str
    with_memory: ChargedTokens
    without_memory: ChargedTokens
    ratio: Number


class RunBill(Record):
    """The input of a recorded conversation. Tokens are counted text by text; a provider adds some for each."""

    run_id: str
    session_id: str
    requests: Count
    tokens: Count
    """Over all requests."""
    tokens_without_memory: Count
    forgotten_packets: Count
    """Packets erased since, whose tokens are no longer known."""
    rules: Items[RuleBill]


def bill_run(ctx: Context, tenant_id: str, run_id: str) -> RunBill:
    """Bill the conversation of a run's session, request by request, as sent."""
    from muniment.runs.snapshots import get_run

    scope = get_run(ctx, tenant_id, run_id).scope
    listed = list_placed(ctx, tenant_id, scope.user_id, scope.session_id, None, list_query())
    entries = [placed.value for placed in listed if placed.value is not None]
    recorded = _recorded_requests(ctx, tenant_id, entries)
    count = ctx.counter.count
    told, bare = prompts_of(recorded.with_memory, count), prompts_of(recorded.without_memory, count)
    made = []
    for rule in rules():
        mine, plain = bill(rule, told), bill(rule, bare)
        ratio = mine.price / plain.price if plain.price else 1.0
        made.append(
            RuleBill(
                rule=rule.name,
                models=rule.models,
                as_of=rule.as_of,
                with_memory=ChargedTokens(**mine._asdict()),
                without_memory=ChargedTokens(**plain._asdict()),
                ratio=round(ratio, 3),
            )
        )
    return RunBill(
        run_id=run_id,
        session_id=scope.session_id,
        requests=len(told),
        tokens=sum(each.tokens for each in told),
        tokens_without_memory=sum(each.tokens for each in bare),
        forgotten_packets=recorded.forgotten,
        rules=tuple(made),
    )


class _Recorded(NamedTuple):
    with_memory: list[list[str]]
    without_memory: list[list[str]]
    forgotten: int


class _SentBuild(NamedTuple):
    text: str
    in_view: tuple[str, ...] | None


def _recorded_requests(ctx: Context, tenant_id: str, entries: Sequence[LedgerEntry]) -> _Recorded:
    """The requests behind a session's answers: the model's input each time, text by text.

    An answer names its build; the tool calls before it used the same one.
    """
    prompts = [_text(ctx, tenant_id, each) for each in entries if _is_prompt(each)]
    turns = [each for each in entries if _is_turn(each)]
    texts = [_text(ctx, tenant_id, each) for each in turns]
    builds: dict[str, _SentBuild | None] = {}
    asked_at: dict[str, int] = {}
    with_memory, without_memory = [], []
    for at, entry in enumerate(turns):
        if not _is_answer(entry) or at == 0 or _is_answer(turns[at - 1]):
            continue
        bare = [*prompts, *texts[:at]]
        without_memory.append(bare)
        build_id = _build_of(turns, at)
        if build_id is not None and build_id not in builds:
            builds[build_id] = _sent_build(ctx, tenant_id, build_id)
            asked_at[build_id] = max((place for place in range(at) if turns[place].role == "user"), default=0)
        build = None if build_id is None else builds[build_id]
        if build is None or build_id is None:
            with_memory.append(bare)
        elif build.in_view is None:
            with_memory.append([*prompts, *([build.text] if build.text else ()), *texts[:at]])
        else:
            view = [id_ for id_ in (*build.in_view, build_id) if id_ in asked_at]
            before = {asked_at[id_]: sent.text for id_ in view if (sent := builds[id_]) is not None and sent.text}
            shown = [(before[place], texts[place]) if place in before else (texts[place],) for place in range(at)]
            with_memory.append([*prompts, *chain.from_iterable(shown)])
    return _Recorded(with_memory, without_memory, sum(build is None for build in builds.values()))


def _sent_build(ctx: Context, tenant_id: str, build_id: str) -> _SentBuild | None:
    item = ctx.engine.read(tenant_id, lambda reader: latest(reader, build_id))
    if item is None or item.body is None:
        return None
    body = item.plain()
    in_view = body["request"].get("in_view")
    return _SentBuild(body["text"], None if in_view is None else tuple(in_view))


def _build_of(turns: Sequence[LedgerEntry], at: int) -> str | None:
    """The build of the answer that begins here, or that these calls led to."""
    for entry in turns[at:]:
        if entry.cited is not None:
            return entry.cited.build_id
        if entry.role == "user":
            return None
    return None


def _is_prompt(entry: LedgerEntry) -> bool:
    return entry.kind == "message" and entry.role == "system" and "event" not in entry.metadata


def _is_answer(entry: LedgerEntry) -> bool:
    return entry.role == "assistant" or entry.metadata.get("event") == "tool_calls"


def _is_turn(entry: LedgerEntry) -> bool:
    is_said = entry.kind in ("message", "tool_result") and not _is_prompt(entry)
    return is_said or entry.metadata.get("event") in ("tool_calls", "message_item")


def _text(ctx: Context, tenant_id: str, entry: LedgerEntry) -> str:
    if entry.is_forgotten:
        return ""
    said = entry.content if entry.content is not None else content_of(ctx, tenant_id, entry.id)
    calls = entry.metadata.get("tool_calls")
    return f"{said}{canonical_text(list(calls))}" if isinstance(calls, list | tuple) and calls else said
