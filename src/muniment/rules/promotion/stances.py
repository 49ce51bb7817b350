"""What a rule wants done and what it wants left, so that two rules can be seen to advise the opposite.

A rule that was drafted from what separates runs names its feature, and its type says for or against. Of any other rule
the first sentence is read: `Call X before Y` against `Do not call X`. What neither shows is no conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from muniment.contracts.rules import RuleRecord
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import words_of

__all__ = ["Stance", "are_opposed", "feature_of", "opening_of", "stance_of", "tool_of"]

_NOTHING: frozenset[str] = frozenset()
_DENIAL = lazy_pattern(r"(?i)^(?:please\s+)?(?:do\s+not|don['’]t|never|avoid|must\s+not|should\s+not|no\s+longer)\s+")
_FILLER = lazy_pattern(r"(?i)^(?:please\s+|always\s+|you\s+(?:must|should)\s+|must\s+|should\s+)+")
_SENTENCE_END = lazy_pattern(r"(?<=[^.\s])[.:;!?](?:\s|$)|\n")
_SAME_VERB: Mapping[str, str] = {"calling": "call", "use": "call", "using": "call", "invoke": "call", "run": "call"}
_JOINTS = frozenset(
    ("before", "after", "right", "with", "first", "when", "if", "for", "on", "again", "and", "then", "while", "until")
)
"""Words that may follow what is done, and tell how or when."""


class Stance(NamedTuple):
    """What is wanted and what is shunned, by name; and choices of which there can be one: its name and what it is."""

    wants: frozenset[str] = _NOTHING
    shuns: frozenset[str] = _NOTHING
    choice: tuple[str, str] | None = None


def feature_of(rule: RuleRecord) -> str | None:
    """The feature that a rule was drafted from, if it was."""
    found = (rule.evidence.model_extra or {}).get("feature")
    return found if isinstance(found, str) and ":" in found else None


def tool_of(feature: str) -> str | None:
    """The tool whose call a feature speaks of; of an order, the one called first."""
    group, _, rest = feature.partition(":")
    match group:
        case "tool" | "first" | "repeat" | "error" | "recovered":
            return rest if feature != "error:left" else None
        case "order":
            return rest.partition(">")[0] or None
        case "args":
            return rest.partition("(")[0] or None
        case "arg":
            return rest.partition("=")[0].rpartition(".")[0] or None
    return None


def stance_of(rule: RuleRecord) -> Stance:
    """The stance of a rule, read off its feature, or else off its opening words."""
    feature = feature_of(rule)
    if feature is not None:
        return _for(feature) if rule.type == "StrategyRule" else _against(feature)
    opening = opening_of(rule)
    denied = _DENIAL.match(opening)
    said = _said(opening[denied.end() :] if denied else _FILLER.sub("", opening))
    if not said:
        return Stance()
    if denied:
        return Stance(shuns=frozenset((f"say:{said}",)))
    words = said.split()
    ends = [place for place, word in enumerate(words) if word in _JOINTS and place > 1]
    return Stance(wants=frozenset(f"say:{' '.join(words[:end])}" for end in (*ends, len(words))))


def are_opposed(one: RuleRecord, other: RuleRecord) -> bool:
    """Does one want what the other shuns, or each choose another of what there can be one of?"""
    mine, theirs = stance_of(one), stance_of(other)
    if not mine.wants.isdisjoint(theirs.shuns) or not mine.shuns.isdisjoint(theirs.wants):
        return True
    if mine.choice is None or theirs.choice is None:
        return False
    return mine.choice[0] == theirs.choice[0] and mine.choice != theirs.choice


def opening_of(rule: RuleRecord) -> str:
    """The title of a rule, or else the first sentence of its body."""
    text = (rule.title or rule.body).strip()
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text


def _said(text: str) -> str:
    """The words, with the verbs of calling as one; `Avoid X` shuns the call of X."""
    words = [_SAME_VERB.get(word, word) for word in words_of(text) if word not in ("the", "a", "an")]
    return " ".join(words if len(words) != 1 else ["call", *words])


def _for(feature: str) -> Stance:
    if feature in _CHECKS:
        return _CHECKS[feature]
    tool, group = tool_of(feature), feature.partition(":")[0]
    called = {feature, f"say:{_said(f'call {tool}')}", f"tool:{tool}"} if tool and group in _CALLING else {feature}
    if group == "order":
        called.add(f"tool:{feature.partition('>')[2]}")
    if feature == "check:last":
        called |= _CHECK
    name, equals, value = feature.partition("=")
    if group == "first":
        return Stance(frozenset(called), choice=("first", tool or ""))
    if group == "steps":
        return Stance(frozenset(called), choice=("steps", feature))
    return Stance(frozenset(called), choice=(name, value) if equals and group in ("own", "arg") else None)


def _against(feature: str) -> Stance:
    if feature in _CHECKS:
        wants, shuns, _ = _CHECKS[feature]
        return Stance(shuns, wants)
    tool = tool_of(feature)
    spoken = {f"say:{_said(f'call {tool}')}"} if tool and feature.startswith("tool:") else set()
    return Stance(shuns=frozenset({feature} | spoken))


_CALLING = ("tool", "first", "order", "args", "arg", "repeat")
_CHECK = frozenset(("check",))
_CHECKS: Mapping[str, Stance] = {
    "check:made": Stance(wants=_CHECK),
    "check:none": Stance(shuns=_CHECK),
}
