"""Two builds side by side: what the second has that the first has not, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muniment.core.record import Items, Record
from muniment.packets.builds import Build

__all__ = ["BuildDiff", "Changed", "diff_builds"]

_RULE_GIVEN = "it was selected for the run"
_RULE_NOT_GIVEN = "it was not selected for the run"


class Changed(Record):
    """One thing that stands in one packet and not, or not so, in the other."""

    what: str
    """added, removed or changed"""
    item: str
    why: str


class BuildDiff(Record):
    """What changed between two builds, and why."""

    a: str
    b: str
    is_same: bool
    request: Items[str]
    """What differs in what was asked."""
    changes: Items[Changed]
    tokens_a: int
    tokens_b: int


def diff_builds(a: Build, b: Build, why_no_rule: Callable[[str], str | None] = lambda _: None) -> BuildDiff:
    """What changed from `a` to `b`, each with the reason the explanations give.

    Rules stand before the packet and are no part of it: `why_no_rule` says what became of one, by its id, where that is
    known.
    """
    left, right = _items(a), _items(b)
    changes = [Changed(what="removed", item=name, why=_why_not(b, name)) for name in left.keys() - right.keys()]
    changes += [Changed(what="added", item=name, why=_why(b, name)) for name in right.keys() - left.keys()]
    changes += [
        Changed(what="changed", item=name, why="it stands there differently")
        for name in left.keys() & right.keys()
        if left[name] != right[name]
    ]
    given, given_later = _rules(a), _rules(b)
    changes += [
        Changed(what="removed", item=f"rule:{id_}", why=_why_no_rule(b, id_, why_no_rule))
        for id_ in given - given_later
    ]
    changes += [Changed(what="added", item=f"rule:{id_}", why=_RULE_GIVEN) for id_ in given_later - given]
    return BuildDiff(
        a=a.id,
        b=b.id,
        is_same=a.packet_bytes == b.packet_bytes,
        request=tuple(_request_differences(a, b)),
        changes=tuple(sorted(changes, key=lambda change: (change.what, change.item))),
        tokens_a=a.tokens,
        tokens_b=b.tokens,
    )


def _items(build: Build) -> dict[str, Any]:
    """Everything in a packet that can come and go, by a name that is the same in every build."""
    packet = build.packet.to_wire()
    short, long = packet["short_term"], packet["long_term"]
    items: dict[str, Any] = {f"state:{key}": value for key, value in short["working_state"].items()}
    for kind, quotes in (("quote", short.get("key_quotes", ())), ("turn", short.get("conversation_window", ()))):
        for quote in quotes:  # a long result is quoted by several stretches
            items.setdefault(f"{kind}:{quote['evidence_id']}", []).append(quote)
    items |= {f"loop:{loop['question']}": loop for loop in short.get("open_loops", ())}
    items |= {f"tool:{tool['ref']}": tool for tool in short.get("last_tool_evidence", ())}
    items |= {f"fact:{fact['fact_id']}": fact for fact in long["facts"]}
    items |= {f"procedure:{each['procedure_id']}": each for each in long["procedures"]}
    items |= {f"episode:{each['episode_id']}": each for each in long["episodes"]}
    for name in ("hypotheses", "strategy_sketches", "patterns"):
        items |= {f"insight:{each['id']}": each for each in packet["insight"][name]}
    if short["rolling_summary"]:
        items["summary"] = short["rolling_summary"]
    return items


def _rules(build: Build) -> frozenset[str]:
    """The rules that stand in its text."""
    return frozenset() if build.rules is None or build.rules.omitted is not None else frozenset(build.rules.rule_ids)


def _why_no_rule(build: Build, rule_id: str, told: Callable[[str], str | None]) -> str:
    if build.rules is not None and build.rules.omitted is not None and rule_id in build.rules.rule_ids:
        return build.rules.omitted
    return told(rule_id) or _RULE_NOT_GIVEN


def _why(build: Build, name: str) -> str:
    key = name.split(":", 1)[-1]
    return next((line for line in build.packet.explain.selected if key in line), "it was not a candidate before")


def _why_not(build: Build, name: str) -> str:
    key = name.split(":", 1)[-1]
    omitted = (item for item in build.packet.explain.omitted if key in item.item)
    return next((item.reason for item in omitted), "it is no candidate any more")


def _request_differences(a: Build, b: Build) -> list[str]:
    left, right = a.request.to_wire(), b.request.to_wire()
    names = sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
    return [*names, *(["policy"] if a.policy.digest != b.policy.digest else [])]
