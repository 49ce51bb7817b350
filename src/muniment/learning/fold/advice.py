"""A feature as advice: one imperative line, and the condition under which it was seen, as a predicate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muniment.core.predicates.predicate import equal, predicate_of
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput
from muniment.learning.fold.contrast import Separation
from muniment.learning.fold.features import features_of, group_of, scalar_text
from muniment.learning.stored_memory import IntentParts, RunFacts, Tally

__all__ = ["advice_line", "conditions_of", "intent_conditions", "support_words"]

_CONDITIONS_MAX = 4
_IDENTIFIER = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")

_LINES: Mapping[str, tuple[str, str]] = {
    "own": ("Use {0}", "Avoid {0}"),
    "tool": ("Call {0}", "Do not call {0}"),
    "first": ("Start with {0}", "Do not start with {0}"),
    "order": ("Call {0} right before {1}", "Do not call {1} right after {0}"),
    "args": ("Call {0}", "Do not call {0} with these arguments alone"),
    "arg": ("Call {0}", "Do not call {0}"),
    "error": (
        "Go on after a failed {0}",
        "Check the arguments of {0} before calling it: a failed call is hard to mend",
    ),
    "recovered": ("When {0} fails, correct the call and try again", "Do not rely on a second try of {0}"),
    "repeat": ("Call {0} again while it gives nothing", "Do not repeat the same call of {0}"),
    "steps": ("Plan for {0} steps", "Do not plan for {0} steps"),
}
_WHOLE: Mapping[str, tuple[str, str]] = {
    "check:made": ("Verify the result before finishing", "Finish without a check of its own"),
    "check:none": ("Finish without a check of its own", "Verify the result before finishing"),
    "check:last": ("Make a check the last thing before finishing", "Do not leave the check to the end"),
    "error:left": ("Go on where a call fails", "Do not leave a failed call behind: correct it or go another way"),
}


def advice_line(feature: str, *, helps: bool) -> str | None:
    """What to do, or what to leave; None for a feature that nobody can act on."""
    place = 0 if helps else 1
    if feature in _WHOLE:
        return _WHOLE[feature][place]
    lines = _LINES.get(group_of(feature))
    rest = feature.partition(":")[2]
    if lines is None or not rest:
        return None
    match group_of(feature):
        case "order":
            words = rest.split(">", 1)
        case "arg":
            tool, _, said = rest.partition(".")
            words = [f"{tool} with {said}"]
        case "args":
            tool, _, names = rest.rstrip(")").partition("(")
            words = [f"{tool} with {names.replace(',', ', ')}"]
        case _:
            words = [rest]
    return lines[place].format(*words)


def support_words(with_tally: Tally, without_tally: Tally) -> str:
    """`passed 8 of 9 with it, 2 of 9 without`."""
    return f"passed {with_tally.passes} of {with_tally.n} with it, {without_tally.passes} of {without_tally.n} without"


def intent_conditions(intent: IntentParts) -> list[str]:
    """The kind of work, as far as it is known."""
    known = (("domain_tag", intent.domain_tag), ("task_family", intent.task_family))
    return [text for name, value in known if value is not None and (text := _equals(name, value)) is not None]


def conditions_of(separation: Separation, run: RunFacts, peers: Sequence[RunFacts]) -> list[str]:
    """Where the feature was seen to matter: the intent, and what its telling runs, and not all runs, were given."""
    given = {
        f"given:{name}={scalar_text(value)}": (name, value)
        for one in (*peers, run)
        for name, value in one.given_features.items()
    }
    if not given:
        return intent_conditions(run.intent)
    names = {one.trace_id: {feature.name for feature in features_of(one)} for one in peers}
    telling = [
        names[one.trace_id]
        for one in peers
        if one.passed == separation.helps and separation.feature in names[one.trace_id]
    ]
    shared = set.intersection(*telling) if telling else set()
    everywhere = set.intersection(*names.values()) if names else set()
    wanted = sorted(feature for feature in shared - everywhere if feature in given)[:_CONDITIONS_MAX]
    return [*intent_conditions(run.intent), *(text for feature in wanted if (text := _condition(*given[feature])))]


def _condition(name: str, value: Any) -> str | None:
    """`x_features.size == "large"`; None for a name that no predicate can say, or a number that seldom comes again."""
    if _IDENTIFIER.fullmatch(name) is None or isinstance(value, float):
        return None
    return _equals(f"x_features.{name}", value)


def _equals(path: str, value: str | int | bool) -> str | None:
    """The condition as text; None where it would be refused, such as a value that is too long."""
    try:
        return predicate_of(equal(path, value)).text
    except InvalidInput:
        return None
