"""Comparing a draft with the rules of its bank (RC-18): merge it into one, split it off as an exception, or add it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeGuard

from muniment.contracts.rules import DistillDraft, RuleApplicability, RuleRecord
from muniment.core.predicate_nodes import (
    Call,
    Compare,
    Field,
    Junction,
    Listing,
    Node,
    Not,
    Value,
    joined,
    print_tree,
    walk,
)
from muniment.core.predicates import (
    Predicate,
    all_hold,
    conjunction,
    contradiction,
    denied,
    equal,
    one_of,
    parse,
    predicate_of,
)
from muniment.core.record import RULECRAFT_VERSION, JsonObject
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import cosine, turns, words_of
from muniment.errors import InvalidInput
from muniment.learning.records import StoredMemory

# == stances ==========================================================================================================

_NOTHING: frozenset[str] = frozenset()
_DENIAL = lazy_pattern(r"(?i)^(?:please\s+)?(?:do\s+not|don['’]t|never|avoid|must\s+not|should\s+not|no\s+longer)\s+")
_FILLER = lazy_pattern(r"(?i)^(?:please\s+|always\s+|you\s+(?:must|should)\s+|must\s+|should\s+)+")
_SENTENCE_END = lazy_pattern(r"(?<=[^.\s])[.:;!?](?:\s|$)|\n")
_SAME_VERB: Mapping[str, str] = {"calling": "call", "use": "call", "using": "call", "invoke": "call", "run": "call"}
_JOINTS = frozenset(
    ("before", "after", "right", "with", "first", "when", "if", "for", "on", "again", "and", "then", "while", "until")
)
"""Words that can follow the action and introduce when or how it is done."""


class Stance(NamedTuple):
    """The things a rule wants and avoids, by name; and its exclusive choices, by name and value."""

    wants: frozenset[str] = _NOTHING
    shuns: frozenset[str] = _NOTHING
    choice: tuple[str, str] | None = None


def feature_of(rule: RuleRecord) -> str | None:
    """The feature that a rule was drafted from, if any."""
    found = (rule.evidence.model_extra or {}).get("feature")
    return found if isinstance(found, str) and ":" in found else None


def tool_of(feature: str) -> str | None:
    """The tool whose call a feature is about; for an order, the one called first."""
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
    """Derive the stance of a rule from its feature, or else from its opening words."""
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
    """Return whether one wants what the other avoids, or they make different exclusive choices."""
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
    """Normalise the wording of calls: all verbs of calling become one, and `Avoid X` avoids the call of X."""
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


# == consolidation ====================================================================================================

Place = frozenset[Node]
_BRANCHES_MAX = 2000
_FLIPPED: Mapping[str, Any] = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def place_of(where: RuleApplicability) -> Place:
    """The conditions under which a rule applies. Raises `InvalidInput` for a predicate that does not parse."""
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
    """The conditions a run must meet for the rule to apply, parsed."""
    return tuple(predicate_of(part) for part in sorted(place_of(rule.applicability), key=print_tree))


def applies(rule: RuleRecord, features: Mapping[str, Any]) -> bool:
    """Return whether the rule applies to a run with these features. Unknown conditions do not hold."""
    return bool(all_hold(conditions_of(rule), features))


def is_within(inner: Place, outer: Place) -> bool:
    """Return whether every run in `inner` is also in `outer`, as far as their parts show it."""
    return all(part in inner or any(_implies(known, part) for known in inner) for part in outer)


def are_apart(one: Place, other: Place) -> bool:
    """Return whether no run can be in both."""
    return not can_hold(one | other)


def can_hold(place: Place) -> bool:
    """Return false if the parts contradict each other in every branch of an alternative.

    Beyond the number of branches it examines, it assumes that they may hold.
    """
    return _can_hold((), tuple(sorted(place, key=print_tree)), iter(range(_BRANCHES_MAX)))


def _can_hold(taken: tuple[Node, ...], waiting: tuple[Node, ...], steps: Iterator[int]) -> bool:
    """Return whether the parts taken are consistent with some branch of the waiting ones."""
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
    """Return `where` without `inner`: adds a predicate requiring that a part of `inner` is false or unknown.

    Raises `InvalidInput` if `inner` has no part that distinguishes it from `where`, or if nothing would be left.
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
    """Return whether one set of allowed values implies another: fewer values imply more."""
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
    """Find a contradiction: about a feature, between a condition and its negation, or in reading a feature required to
    be absent.
    """
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
    """Return whether the part is unknown, and so not true, if a feature it reads is missing."""
    inner = part.operand if isinstance(part, Not) else part
    return isinstance(inner, Compare | Call) and not _asks_presence(inner) and Value(None) not in walk(inner)


def _unless(part: Node) -> list[Node]:
    """Alternatives of which one is true whenever `part` is not: it is false, or a feature it reads is missing."""
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


_KEPT = ("feature", "also", "cluster_id", "violated", "reason_codes", "with", "without", "difference", "doubt")
"""The parts of a draft's evidence that a rule keeps, besides its traces."""
_TRACES_MAX = 64


class Cut(NamedTuple):
    """An existing rule, narrowed so that it no longer conflicts with the newcomer. `record` is the result, not yet
    written.
    """

    rule_id: str
    record: RuleRecord
    is_active: bool
    """The rule is active: its cut goes through the gate and takes effect when the exception is promoted."""


class Consolidated(NamedTuple):
    """The outcome for a draft. `record` is the rule to write: the newcomer, or with `merged` the rule it was merged
    into.
    """

    kind: Literal["new", "merged", "split", "refused"]
    reasons: tuple[str, ...]
    record: RuleRecord | None = None
    into: str | None = None
    """With `merged`: the rule that now has its evidence."""
    restarts: bool = False
    """With `merged`: the rule's wording or place changed, so it starts again as a draft."""
    cuts: tuple[Cut, ...] = ()


class _Known(NamedTuple):
    memory: StoredMemory
    rule: RuleRecord
    place: Place

    @property
    def is_active(self) -> bool:
        return "active" in (self.memory.status, self.memory.stage, self.rule.status)


def rule_of(draft: DistillDraft, rule_id: str, now: str) -> RuleRecord:
    """Turn the draft into a temporary rule without tests. Raises `InvalidInput` for a draft that proposes no rule."""
    proposed = draft.proposed_rule
    if proposed.type is None or not (proposed.body or "").strip():
        raise InvalidInput(
            f"the draft {draft.draft_id!r} proposes no rule", path="$.proposed_rule", hint="type and body"
        )
    named = draft.evidence.get("trace_ids")
    traces = [each for each in named if isinstance(each, str)] if isinstance(named, list | tuple) else []
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "rule_id": rule_id,
        "version": "1",
        "type": proposed.type,
        "status": "temporary",
        "body": proposed.body,
        "applicability": proposed.applicability or {},
        "priority": {"guardrail_first": proposed.type == "GuardrailRule"},
        "evidence": {
            **{name: draft.evidence[name] for name in _KEPT if name in draft.evidence},
            "trace_ids": _once(traces, draft.source_trace_ids)[:_TRACES_MAX],
            "draft_ids": [draft.draft_id],
        },
        "tests": {"regression_tests": [], "counterexample_tests": []},
        "metrics": {},
        "lifecycle": {"created_at": now, "updated_at": now},
    }
    if proposed.title is not None:
        plain["title"] = proposed.title
    rule = RuleRecord.from_wire(plain)
    if not can_hold(place_of(rule.applicability)):
        raise InvalidInput("its conditions contradict each other", path="$.proposed_rule.applicability.predicates")
    return rule


def consolidate(
    rule: RuleRecord, existing: Sequence[StoredMemory], *, near_duplicate: float = 0.95, now: str
) -> Consolidated:
    """Compare the newcomer with the live rules of its bank; others in `existing` are skipped."""
    place = place_of(rule.applicability)
    known = [
        _Known(memory, record, place_of(record.applicability))
        for memory in sorted(existing, key=lambda one: (one.status != "active", one.created_at, one.id))
        if memory.kind == "rule" and memory.layer != "user" and memory.status in ("temporary", "active", "pinned")
        for record in (RuleRecord.from_wire(memory.record),)
        if record.rule_id != rule.rule_id
    ]
    alike = [one for one in known if _same_advice(rule, one.rule, near_duplicate)]
    covering = next((one for one in alike if is_within(place, one.place)), None)
    if covering is not None:
        reason = f"says what {covering.rule.rule_id} says, where that applies: its evidence goes to it"
        return Consolidated("merged", (reason,), united(covering.rule, rule, now), covering.rule.rule_id)
    opposed = [one for one in known if are_opposed(rule, one.rule) and not are_apart(place, one.place)]
    if opposed:
        return _split(rule, opposed, now)
    for one in alike:
        wider = None if one.is_active or one.memory.stage == "canary" else _widened(one, rule, place)
        if wider is not None and not _meets_opposed(wider, one, known):
            record = _restated(united(one.rule, rule, now), wider, now)
            reason = f"says what {one.rule.rule_id} says, in a larger place, which that takes and starts again"
            return Consolidated("merged", (reason,), record, one.rule.rule_id, restarts=True)
    beside = [f"says what {one.rule.rule_id} says, in another place" for one in alike]
    return Consolidated("new", tuple(beside) or ("nothing like it is there",), rule)


def united(rule: RuleRecord, other: RuleRecord, now: str) -> RuleRecord:
    """Return the rule with the evidence and tests of both. Its wording, version and status are unchanged."""
    mine, theirs = rule.evidence.to_wire(), other.evidence.to_wire()
    evidence: JsonObject = {**theirs, **mine}
    for name in ("trace_ids", "verifier_ids", "regression_ids", "draft_ids", "also", "violated", "reason_codes"):
        if name in evidence:
            evidence[name] = [*_once(_texts(mine.get(name)), _texts(theirs.get(name)))[-_TRACES_MAX:]]
    wire = rule.to_wire()
    tests = {
        name: list(_once(wire["tests"][name], getattr(other.tests, name)))
        for name in ("regression_tests", "counterexample_tests")
    }
    lifecycle = {**wire.get("lifecycle", {}), "updated_at": now}
    return RuleRecord.from_wire(
        {**wire, "evidence": evidence, "tests": {**wire["tests"], **tests}, "lifecycle": lifecycle}
    )


def next_version(version: str) -> str:
    """Increment the last number: `1` → `2`, `1.4` → `1.5`; a version without a number gets one."""
    found = re.search(r"(\d+)(?!.*\d)", version)
    return f"{version}.1" if found is None else f"{version[: found.start()]}{int(found[1]) + 1}{version[found.end() :]}"


# -- the same advice ----------------------------------------------------------------------------------


def _same_advice(one: RuleRecord, other: RuleRecord, near_duplicate: float) -> bool:
    """Return whether two rules give the same advice: same type, and drafted from the same feature or nearly the same
    words, with none that reverses the meaning.
    """
    if one.type != other.type:
        return False
    basis = _basis(one)
    if basis is not None and basis == _basis(other):
        return True
    mine, theirs = words_of(f"{one.title or ''}\n{one.body}"), words_of(f"{other.title or ''}\n{other.body}")
    return cosine(mine, theirs) >= near_duplicate and not any(map(turns, set(mine) ^ set(theirs)))


def _basis(rule: RuleRecord) -> tuple[str, str] | None:
    feature = feature_of(rule)
    if feature is not None:
        return "feature", feature
    cluster = (rule.evidence.model_extra or {}).get("cluster_id")
    return ("cluster", cluster) if isinstance(cluster, str) else None


def _widened(known: _Known, rule: RuleRecord, place: Place) -> RuleApplicability | None:
    """The place where both rules apply, if it can be expressed: the newcomer's, or the same with the buckets
    of both.
    """
    if is_within(known.place, place):
        return rule.applicability
    mine, theirs = known.rule.applicability, rule.applicability
    if not mine.bucket_keys or not theirs.bucket_keys:
        return None
    bare, other = (place_of(one.model_copy(update={"bucket_keys": ()})) for one in (mine, theirs))
    if not (is_within(bare, other) and is_within(other, bare)):
        return None
    return mine.model_copy(update={"bucket_keys": _once(mine.bucket_keys, theirs.bucket_keys)})


def _meets_opposed(where: RuleApplicability, one: _Known, known: Sequence[_Known]) -> bool:
    place = place_of(where)
    return any(are_opposed(one.rule, other.rule) and not are_apart(place, other.place) for other in known)


# -- the opposite -------------------------------------------------------------------------------------


def _split(rule: RuleRecord, opposed: Sequence[_Known], now: str) -> Consolidated:
    """Make the narrower rule the exception. A newcomer within another rule cuts it; otherwise the newcomer
    gives way.
    """
    where, reasons = rule.applicability, []
    cuts: list[Cut] = []
    whole = place_of(where)
    inner = {one.rule.rule_id: is_within(whole, one.place) for one in opposed}
    for one in opposed:
        if inner[one.rule.rule_id] and is_within(one.place, whole):
            reason = f"{one.rule.rule_id} advises the opposite in the same place, and nothing tells the two apart"
            return Consolidated("refused", (reason,))
    for one in sorted(opposed, key=lambda one: inner[one.rule.rule_id]):  # give way first: cuts depend on what is left
        name, place = one.rule.rule_id, place_of(where)
        try:
            if inner[name]:
                cut = cut_from(one.rule.applicability, place)
                cuts.append(Cut(name, _restated(one.rule, cut, now), one.is_active))
                reasons.append(f"an exception to {name}, which no longer applies where this does")
            elif not are_apart(place, one.place):
                where = cut_from(where, one.place)
                reasons.append(f"gives way to {name}, which advises the opposite where both would apply")
        except InvalidInput as error:
            reason = f"{name} advises the opposite, and the two cannot be kept apart: {error.message}"
            return Consolidated("refused", (reason,))
    wire = {**rule.to_wire(), "applicability": where.to_wire()}
    if cuts:
        wire["exception_to"] = [cut.rule_id for cut in cuts]
    return Consolidated("split", tuple(reasons), RuleRecord.from_wire(wire), cuts=tuple(cuts))


def _restated(rule: RuleRecord, where: RuleApplicability, now: str) -> RuleRecord:
    """The next version of a rule, in another place: temporary, with its metrics reset, because its meaning changed."""
    wire = rule.to_wire()
    return RuleRecord.from_wire(
        {
            **wire,
            "version": next_version(rule.version),
            "status": "temporary",
            "applicability": where.to_wire(),
            "metrics": {},
            "lifecycle": {**wire.get("lifecycle", {}), "updated_at": now},
        }
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


def _once(*several: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for one in several for each in one))
