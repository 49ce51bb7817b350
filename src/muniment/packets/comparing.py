"""Two builds side by side: what the second has that the first has not, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from muniment.core.record import Count, Items, Record
from muniment.packets.builds import Build
from muniment.packets.explain import selected_name
from muniment.packets.fates import Fates
from muniment.packets.page.aligned import LinePair, align
from muniment.packets.page.page_lines import PageLine, page_lines

__all__ = ["BuildDiff", "Changed", "SectionDiff", "diff_builds"]

_NOT_ASKED = frozenset(("marks",))
"""What a request has from the session, not from who asked."""
_RULE_GIVEN = "it was selected for the run"
_RULE_NOT_GIVEN = "it was not selected for the run"


class Changed(Record):
    """One thing that stands in one packet and not, or not so, in the other."""

    what: str
    """added, removed or changed"""
    item: str
    why: str


class SectionDiff(Record):
    """A section's share of the budget in both, and what was used of it."""

    section: str
    used_a: Count
    used_b: Count
    cap_a: Count
    cap_b: Count


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
    tokens_max_a: int
    tokens_max_b: int
    sections: Items[SectionDiff]
    lines: Items[LinePair]
    """Both texts, line beside line by what they tell of, in the order of the second."""


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
        tokens_max_a=a.packet.budget_report.max_tokens,
        tokens_max_b=b.packet.budget_report.max_tokens,
        sections=tuple(_sections(a, b)),
        lines=tuple(_lines(a, b, why_no_rule)),
    )


def _sections(a: Build, b: Build) -> Iterator[SectionDiff]:
    caps = [each.packet.meta.budget.per_section.to_wire() for each in (a, b)]
    used = [each.packet.budget_report.section_usage for each in (a, b)]
    for section in caps[0]:
        yield SectionDiff(
            section=section,
            used_a=used[0].get(section, 0),
            used_b=used[1].get(section, 0),
            cap_a=caps[0][section],
            cap_b=caps[1][section],
        )


def _lines(a: Build, b: Build, why_no_rule: Callable[[str], str | None]) -> Iterator[LinePair]:
    """The lines of both, with a reason wherever one of them has not what the other has."""
    left, right = Fates(a), Fates(b)
    for pair in align(_page_lines(a), _page_lines(b), a.marks, b.marks):
        item = pair.item
        if item is None or pair.what not in ("added", "removed"):
            yield pair
            continue
        if item.startswith("rule:"):
            why = _RULE_GIVEN if pair.what == "added" else _why_no_rule(b, item[len("rule:") :], why_no_rule)
            yield pair.model_copy(update={"why": why})
            continue
        there, missing = (right, left) if pair.what == "added" else (left, right)
        reason, by = missing.of(item, there.since(item))
        chosen = right.chosen_by(item) if pair.what == "added" else None
        known = {"reason": reason, "by": by or _successor(b, item, reason), "why": chosen}
        yield pair.model_copy(update={name: value for name, value in known.items() if value is not None})


def _page_lines(build: Build) -> list[PageLine]:
    return page_lines(build.packet, build.text, build.marks, sorted(_rules(build), key=_given_order(build)))


def _given_order(build: Build) -> Callable[[str], int]:
    return (build.rules.rule_ids if build.rules is not None else ()).index


_REPLACED = ("deprecated", "superseded", "overridden")


def _successor(build: Build, item: str, reason: str) -> str | None:
    """The fact of the same key that a packet tells in the place of one that no longer stands."""
    kind, _, fact_id = item.partition(":")
    if kind != "fact" or reason not in _REPLACED:
        return None
    key = next((each.fact.fact_key for each in build.pool.facts if each.fact.fact_id == fact_id), None)
    held = (fact for fact in build.packet.long_term.facts if fact.fact_key == key and fact.fact_id != fact_id)
    return next((f"fact:{fact.fact_id}" for fact in held), None)


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
    lines = build.packet.explain.selected
    return next((line for line in lines if _is_named(selected_name(line), name)), "it was not a candidate before")


def _why_not(build: Build, name: str) -> str:
    omitted = (item for item in build.packet.explain.omitted if _is_named(item.item, name))
    return next((item.reason for item in omitted), "it is no candidate any more")


def _is_named(candidate: str, name: str) -> bool:
    """Does the explanation mean this? What was said may be a candidate of several kinds, a state has parts."""
    id_ = name.partition(":")[2]
    named = candidate.partition(":")[2]
    return named.partition("#")[0] == id_ or (candidate.startswith("state:") and named.startswith(f"{id_}."))


def _request_differences(a: Build, b: Build) -> list[str]:
    left, right = a.request.to_wire(), b.request.to_wire()
    names = sorted(name for name in (left.keys() | right.keys()) - _NOT_ASKED if left.get(name) != right.get(name))
    return [*names, *(["policy"] if a.policy.digest != b.policy.digest else [])]
