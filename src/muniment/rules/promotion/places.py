"""Where rules apply, compared: one place within another, apart from it, or cut out of it.

A place is the set of conditions that must all hold: domain, family, buckets and predicates alike, as parts of one
conjunction. What is said here of two places holds by their parts; where that shows nothing, nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from muniment.contracts.rules import RuleApplicability, RuleRecord
from muniment.core.predicates.building import conjunction, denied, equal, one_of
from muniment.core.predicates.contradictions import contradiction
from muniment.core.predicates.nodes import Call, Compare, Field, Junction, Listing, Node, Not, Value, joined, walk
from muniment.core.predicates.predicate import Predicate, all_hold, parse, predicate_of
from muniment.core.predicates.printing import print_tree
from muniment.errors import InvalidInput

__all__ = ["Place", "applies", "are_apart", "can_hold", "conditions_of", "cut_from", "is_within", "place_of"]

Place = frozenset[Node]
_BRANCHES_MAX = 2000
_FLIPPED: Mapping[str, Any] = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def place_of(where: RuleApplicability) -> Place:
    """Its conditions; raises `InvalidInput` for a predicate that does not parse."""
    parts: list[Node] = []
    if where.domain_tag is not None:
        parts.append(equal("domain_tag", where.domain_tag))
    if where.task_family is not None:
        parts.append(equal("task_family", where.task_family))
    if where.bucket_keys:
        parts.append(one_of("bucket_key", where.bucket_keys))
    for number, text in enumerate(where.predicates or ()):
        parts += parse(text, path=f"$.applicability.predicates[{number}]").conjuncts
    return frozenset(joined("&&", parts))


def conditions_of(rule: RuleRecord) -> tuple[Predicate, ...]:
    """What must hold of a run for the rule to apply, ready to be asked."""
    return tuple(predicate_of(part) for part in sorted(place_of(rule.applicability), key=print_tree))


def applies(rule: RuleRecord, features: Mapping[str, Any]) -> bool:
    """Does the rule apply to a run of these features? What is not known to hold does not."""
    return bool(all_hold(conditions_of(rule), features))


def is_within(inner: Place, outer: Place) -> bool:
    """Does every run of the one place stand in the other, as far as their parts show it?"""
    return all(part in inner or any(_implies(known, part) for known in inner) for part in outer)


def are_apart(one: Place, other: Place) -> bool:
    """Can no run stand in both?"""
    return not can_hold(one | other)


def can_hold(place: Place) -> bool:
    """False where the parts contradict each other, whichever branch of an alternative is taken.

    Where there are more branches than it looks at, it claims nothing: they may hold.
    """
    return _can_hold((), tuple(sorted(place, key=print_tree)), iter(range(_BRANCHES_MAX)))


def _can_hold(taken: tuple[Node, ...], waiting: tuple[Node, ...], steps: Iterator[int]) -> bool:
    """Whether what was taken stands together with some branch of what waits."""
    if next(steps, None) is None:
        return True
    parts = joined("&&", waiting)
    taken = (*taken, *(part for part in parts if not isinstance(part, Junction)))
    if _clash(taken):
        return False
    branching = [part for part in parts if isinstance(part, Junction)]
    if not branching:
        return True
    first, *rest = branching
    return any(_can_hold(taken, (option, *rest), steps) for option in first.parts)


def cut_from(where: RuleApplicability, inner: Place) -> RuleApplicability:
    """`where` without `inner`: one predicate more, which says that a part of `inner` does not hold, or is not known.

    Raises `InvalidInput` where nothing of `inner` lies outside `where` to be told by, or nothing would be left.
    """
    outer = place_of(where)
    telling = sorted((part for part in inner if not is_within(outer, frozenset((part,)))), key=print_tree)
    if not telling:
        raise InvalidInput("nothing tells the two places apart", hint="give the exception a condition of its own")
    options = tuple(dict.fromkeys(option for part in telling for option in _unless(part)))
    cut = predicate_of(Junction("||", joined("||", options)) if len(options) > 1 else options[0])
    place = outer | frozenset(cut.conjuncts)
    if not can_hold(place):
        raise InvalidInput("nothing is left of the wider place", hint="the exception covers all of it")
    if not are_apart(place, inner):
        raise InvalidInput("the two places cannot be shown to exclude each other", hint=f"tried {cut.text}"[:200])
    return where.model_copy(update={"predicates": (*(where.predicates or ()), cut.text)})


def _implies(known: Node, part: Node) -> bool:
    """Of one feature's allowed values: fewer imply more."""
    mine, theirs = _allowed(known), _allowed(part)
    return mine is not None and theirs is not None and mine[0] == theirs[0] and mine[1] <= theirs[1]


def _allowed(part: Node) -> tuple[Field, frozenset[Value]] | None:
    match part:
        case Compare("==", Field() as field, Value() as value):
            return field, frozenset((value,))
        case Compare("in", Field() as field, Listing(items)):
            return field, frozenset(items)
    return None


def _clash(parts: Iterable[Node]) -> bool:
    """A contradiction about a feature, a condition beside its denial, or one that reads what is said to be absent."""
    known = set(parts)
    if contradiction(conjunction(known)) is not None:
        return True
    absent = {part.operand.args[0] for part in known if isinstance(part, Not) and _asks_presence(part.operand)}
    return any(
        (isinstance(part, Not) and part.operand in known)
        or (_needs_presence(part) and not absent.isdisjoint(walk(part)))
        for part in known
    )


def _asks_presence(part: Node) -> TypeGuard[Call]:
    return isinstance(part, Call) and part.name == "has"


def _needs_presence(part: Node) -> bool:
    """Is it unknown, and so not true, where a feature that it reads is not there?"""
    inner = part.operand if isinstance(part, Not) else part
    return isinstance(inner, Compare | Call) and not _asks_presence(inner) and Value(None) not in walk(inner)


def _unless(part: Node) -> list[Node]:
    """Alternatives of which one is true wherever `part` is not: it is false, or what it reads is not there."""
    fields = dict.fromkeys(node for node in walk(part) if isinstance(node, Field)) if _needs_presence(part) else {}
    absent: list[Node] = [denied(Call("has", (field,))) for field in fields]
    match part:
        case Compare(op, left, right) if op in _FLIPPED:
            return [*absent, Compare(_FLIPPED[op], left, right)]
        case Compare("in", Field() as field, Listing(items)):
            return [*absent, _all([Compare("!=", field, item) for item in items])]
        case Not(operand):
            return [*absent, operand]
        case Junction("||", parts):
            return [_all([_any(_unless(each)) for each in parts])]
    return [*absent, denied(part)]


def _all(parts: list[Node]) -> Node:
    return Junction("&&", joined("&&", parts)) if len(parts) > 1 else parts[0]


def _any(parts: list[Node]) -> Node:
    return Junction("||", joined("||", parts)) if len(parts) > 1 else parts[0]
