"""What is wrong with where a rule applies: predicates that say nothing, contradict each other, or can never be true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from muniment.contracts.rules import RuleApplicability
from muniment.core.canonical import child_path
from muniment.core.predicate_nodes import Compare, Junction, Node, Not, Truth
from muniment.core.predicates import Predicate, contradiction, parse
from muniment.errors import InvalidInput
from muniment.learning.keys import name_key
from muniment.rules.promotion.records import LintFinding
from muniment.rules.rulebook.candidates import PREDICATES
from muniment.rules.rulebook.findings import finding
from muniment.verify.results import parse_bucket_key

__all__ = ["condition_findings"]

_BUCKETS = "$.applicability.bucket_keys"
_NAMES = ("domain_tag", "task_family")
"""Compared in any case where a rule names them, and as they are in a predicate."""
_AFTER = (
    "cost.",
    "verifier.",
    "experiment.reward.",
    "experiment.exec_",
    "rollout_select.",
    "tree_search.node_expanded",
    "tree_search.depth_max",
    "memory_fold.",
    "praxis.",
    "memory_recall.",
    "sandbox.turns",
    "sandbox.actions_n",
    "sandbox.files_",
    "sandbox.external_fetch_n",
    "sandbox.exec_fail_n",
)
_AFTER_NAMES = frozenset({"tools", "selected_rule_ids", "failure_cluster_id", "reason_codes", "violated_constraints"})
_OPPOSITE: dict[str, Any] = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


_READ_BESIDE = frozenset({"constraints"})
"""What others read of an applicability: micro-regressions are made from its constraints."""


def condition_findings(where: RuleApplicability, predicates_max: int) -> Iterator[LintFinding]:
    """Predicates, bucket keys, and how wide they leave the rule."""
    texts = where.predicates or ()
    if len(texts) > predicates_max:
        yield finding("too_many_predicates", PREDICATES, f"{len(texts)}, at most {predicates_max}")
    parsed: list[tuple[str, Predicate]] = []
    for place, text in enumerate(texts[:predicates_max]):
        path = child_path(PREDICATES, place)
        try:
            parsed.append((path, parse(text, path=path)))
        except InvalidInput as error:
            yield finding("predicate_invalid", path, error.message)
    for path, predicate in parsed:
        yield from _of_one(path, predicate)
    yield from _together([predicate for _, predicate in parsed])
    yield from _against_place(where, parsed)
    is_narrowed = any(not _always_holds(predicate) for _, predicate in parsed)
    if not (where.domain_tag or where.task_family or where.bucket_keys or is_narrowed):
        yield finding("applies_to_all", "$.applicability")
    for name in sorted((where.model_extra or {}).keys() - _READ_BESIDE):
        yield finding("unknown_condition", child_path("$.applicability", name), repr(name[:60]))


def _of_one(path: str, predicate: Predicate) -> Iterator[LintFinding]:
    about = contradiction(predicate)
    if about is not None or _is_constant(predicate, Truth.FALSE):
        yield finding("never_holds", path, predicate.text)
    elif _always_holds(predicate):
        yield finding("always_holds", path, predicate.text)
    late = [name for name in predicate.fields if name.startswith(_AFTER) or name in _AFTER_NAMES]
    if late:
        yield finding("unknown_before_run", path, ", ".join(late))


def _together(predicates: Sequence[Predicate]) -> Iterator[LintFinding]:
    """What is wrong with conditions of which each may hold, and all together cannot."""
    if any(contradiction(predicate) is not None for predicate in predicates):
        return
    parts = tuple(dict.fromkeys(part for predicate in predicates for part in predicate.conjuncts))
    if len(parts) > 1 and (about := contradiction(Predicate(Junction("&&", parts), predicates[0].schema))) is not None:
        yield finding("predicates_contradict", PREDICATES, f"about {about}")


def _against_place(where: RuleApplicability, parsed: Sequence[tuple[str, Predicate]]) -> Iterator[LintFinding]:
    """Is a part of a predicate false of every run that the domain, the family and the buckets leave?"""
    known = {"domain_tag": where.domain_tag, "task_family": where.task_family}
    base = {name: value for name, value in known.items() if value}
    places: dict[str | None, dict[str, Any]] = {}
    for index, key in enumerate(where.bucket_keys or ()):
        try:
            bucket = parse_bucket_key(key)
        except InvalidInput as error:
            yield finding("bucket_key_invalid", child_path(_BUCKETS, index), error.message)
            continue
        if where.domain_tag and name_key(where.domain_tag) != name_key(bucket.domain):
            yield finding("bucket_never_applies", child_path(_BUCKETS, index), f"not of the domain {where.domain_tag}")
        places[key] = {"bucket_key": key, "impact_level": bucket.impact, "user_clarity": bucket.clarity, **base}
    if not places:
        places[None] = base
    for path, predicate in parsed:
        if contradiction(predicate) is not None:
            continue
        shut = [place for place, features in places.items() if _is_shut(predicate, features)]
        if len(shut) == len(places):
            yield finding("never_applies", path, predicate.text)
        else:
            yield from (finding("bucket_never_applies", _BUCKETS, f"{place}: {predicate.text}") for place in shut)


def _is_shut(predicate: Predicate, features: dict[str, Any]) -> bool:
    """Only of parts all of whose features are known: what is missing here may be there in a run."""
    parts = [Predicate(node, predicate.schema) for node in predicate.conjuncts]
    known = [part for part in parts if part.fields and features.keys() >= set(part.fields)]
    folded = features | {name: features[name].casefold() for name in _NAMES if name in features}
    return all(any(part.holds(each) is Truth.FALSE for part in known) for each in (features, folded))


def _always_holds(predicate: Predicate) -> bool:
    return all(_part_always_holds(Predicate(node, predicate.schema)) for node in predicate.conjuncts)


def _part_always_holds(part: Predicate) -> bool:
    """True whatever the run, or of alternatives that leave nothing out: their opposites contradict each other."""
    if _is_constant(part, Truth.TRUE):
        return True
    if not isinstance(part.tree, Junction) or part.tree.op != "||":
        return False
    opposites = tuple(map(_opposite, part.tree.parts))
    return contradiction(Predicate(Junction("&&", opposites), part.schema)) is not None


def _is_constant(predicate: Predicate, truth: Truth) -> bool:
    return not predicate.fields and predicate.holds({}) is truth


def _opposite(node: Node) -> Node:
    if isinstance(node, Compare) and node.op in _OPPOSITE:
        return Compare(_OPPOSITE[node.op], node.left, node.right)
    return node.operand if isinstance(node, Not) else Not(node)
