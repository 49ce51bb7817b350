"""A separation as advice: one sentence a colleague would write, and the condition under which it holds.

The sentence says where (a file), when (what a tool answered, what was asked) and what to do. "Do not" is kept for what
no passing run did where it was compared; what solutions may need is never forbidden, and what nobody can act on has no
sentence. Conditions that can be told before a run acts stand in predicates too; the others in the words alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from muniment.core.predicates import equal, predicate_of
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput
from muniment.learning.fold.contrast import Separation
from muniment.learning.fold.corrections import MEND, MENDED, RETRIED, mend_parts
from muniment.learning.fold.edits import EDIT, edit_parts
from muniment.learning.fold.features import MET, features_of, group_of, is_check, scalar_text
from muniment.learning.fold.plain_names import is_plain_path, is_plain_value
from muniment.learning.fold.results import condition_words, error_words, is_error_condition
from muniment.learning.stored_memory import IntentParts, RunFacts

__all__ = [
    "Advice",
    "advice_of",
    "conditions_of",
    "got_past",
    "intent_conditions",
    "named_beside",
    "newest_with",
    "shared_error",
    "sources_of",
    "support_words",
]

_CONDITIONS_MAX = 4
_MOST = 0.5
_TWICE = 2
_ASKED_CHARS = 64
_IDENTIFIER = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")

_DO: Mapping[str, str] = {
    "own": "Use {0}",
    "tool": "Call {0}",
    "first": "Start with {0}",
    "order": "Call {0} right before {1}",
    "args": "Give {0} the arguments {1}",
    "arg": "Call {0} with {1}",
    "then": "Call {0} next",
    "recovered": "Correct the call and try again",
}
_LEAVE: Mapping[str, str] = {
    "own": "Avoid {0}",
    "tool": "Do not call {0}",
    "first": "Do not start with {0}",
    "order": "Do not call {1} right after {0}",
    "args": "Do not call {0} with {1} alone",
    "arg": "Do not call {0} with {1}",
    "then": "Do not call {0} next",
    "error": "Check what {0} is given before calling it",
    "repeat": "Change the call instead of repeating it",
}
_HARMLESS = ("own", "error", "repeat")
"""Groups whose warning forbids no action: a caller's own setting, a call that goes wrong, a call made over and over."""
_WHOLE: Mapping[tuple[str, bool], str] = {
    ("check:made", True): "Verify the result{0} before finishing",
    ("check:none", False): "Verify the result{0} before finishing",
    ("check:last", True): "Make a check{0} the last thing before finishing",
    ("error:left", False): "Correct a call that failed, or go another way, before finishing",
}


class Advice(NamedTuple):
    """What to do, where and when."""

    does: str
    place: str = ""
    when: str = ""
    passing: str = ""
    """What the runs that passed did instead, in a sentence of its own."""
    told_by: tuple[str, ...] = ()
    """For each thing that is told, the newest run that has it, by its trace. They are named as sources, so that no word
    outlives those who brought it."""

    @property
    def line(self) -> str:
        """`In src/cart.py, when test_total fails with KeyError, write …`."""
        when = self.when.removesuffix(f" {self.place[0].lower()}{self.place[1:]}") if self.place else self.when
        parts = [part for part in (self.place, when and f"when {when}", self.does) if part]
        said = ", ".join([parts[0], *(f"{part[0].lower()}{part[1:]}" for part in parts[1:])])
        return f"{said[0].upper()}{said[1:]}"


def support_words(separation: Separation) -> str:
    """`passed 8 of 9 with it, 2 of 9 without`: of the runs that were compared with their likes."""
    mine, other = separation.with_tally, separation.without_tally
    verb = "mended" if separation.feature.startswith(MEND) else "passed"
    said = f"{verb} {mine.passes} of {mine.n} with it, {other.passes} of {other.n} without"
    return f"{said}, on the same tasks" if separation.strata > 1 else said


def advice_of(
    separation: Separation, runs: Sequence[RunFacts], quote: Callable[[str, int], str] = lambda text, _: text
) -> Advice | None:
    """The separation as advice; None where nobody could act on it, or would be kept from what a solution may need.

    `quote` says somebody's words within so many signs, or nothing where they may not be quoted.
    """
    group = group_of(separation.feature)
    if separation.is_before or (not separation.helps and separation.is_needed and not _is_harmless(separation)):
        return None
    compared = [run for run in runs if run.trace_id in separation.compared]
    made = {"edit": _edit, "mend": _mend}.get(group)
    found = _plain(separation, compared) if made is None else made(separation)
    if found is None:
        return None
    telling = [run for run in runs if run.passed == separation.helps]  # conditions are what these share
    own = (*newest_with([separation.feature], compared), *newest_with([separation.feature], telling))
    found = found._replace(told_by=tuple(dict.fromkeys((*own, *found.told_by))))
    if group == "mend":
        return found
    shared = found.when or _met_by_all(separation, compared, runs)
    if separation.only_task is None or (shared and group == "edit"):
        return found._replace(when=shared)
    asked = quote(separation.only_task, _ASKED_CHARS)
    asking = [run.trace_id for run in compared if run.x_summary == separation.only_task][-1:]
    return found._replace(when=f'asked "{asked}"', told_by=(*found.told_by, *asking)) if asked else None


def _is_harmless(separation: Separation) -> bool:
    return group_of(separation.feature) in _HARMLESS or (separation.feature, False) in _WHOLE


def _plain(separation: Separation, compared: Sequence[RunFacts]) -> Advice | None:
    feature, helps = separation.feature, separation.helps
    if (whole := _WHOLE.get((feature, helps))) is not None:
        tool, checking = _checking_tool(compared)
        return Advice(whole.format(tool), told_by=checking)
    group, rest = group_of(feature), feature.partition(":")[2]
    line = (_DO if helps else _LEAVE).get(group)
    if line is None or not rest or feature == "error:left":
        return None
    if group == "arg" and not is_plain_value(rest.partition("=")[2]):
        return None
    words, when = _words(group, rest)
    who: tuple[str, ...] = ()
    if group == "error":
        usual, who = _usual_error(rest, separation, compared)
        when, line = "", line + usual
    found = Advice(line.format(*words), when=when, told_by=who)
    if helps:
        return found
    passing, others = _instead(separation, compared)
    return found._replace(passing=passing, told_by=(*who, *others))


def _words(group: str, rest: str) -> tuple[list[str], str]:
    """What fills the line, and the condition that the feature brings."""
    match group:
        case "order":
            return rest.split(">", 1), ""
        case "arg":
            tool, _, said = rest.partition("=")
            tool, _, name = tool.rpartition(".")
            return [tool, f"{name}={said}"], ""
        case "args":
            tool, _, names = rest.rstrip(")").partition("(")
            return [tool, names.replace(",", ", ")], ""
        case "then":
            condition, _, tool = rest.rpartition(">")
            return [tool], condition_words(condition)
        case "recovered":
            return [rest], f"{rest} fails"
        case "repeat":
            return [rest], f"{rest} answers the same again"
        case _:
            return [rest], ""


def _mend(separation: Separation) -> Advice | None:
    """What was done about a call that failed. What did not mend it is no advice: something else was wrong as well."""
    return _mending(separation.feature.removeprefix(MEND)) if separation.helps else None


def _mending(rest: str) -> Advice | None:
    condition, what = mend_parts(rest)
    when = condition_words(condition)
    if what.startswith(EDIT):
        path, line, name = edit_parts(what.removeprefix(EDIT))
        if not is_plain_path(path):
            return None
        does = f"write `{line}`" if line else f"use {name}()" if name else ""
        return Advice(does, f"In {path}", when) if does else Advice(f"Change {path} and try again", when=when)
    group, rest = group_of(what), what.partition(":")[2]
    return Advice(f"Change {rest} and try again" if group == "arg" else f"Call {rest} and try again", when=when)


def _edit(separation: Separation) -> Advice | None:
    path, line, name = edit_parts(separation.feature.removeprefix(EDIT))
    if not is_plain_path(path):
        return None
    if separation.helps:
        does = f"write `{line}`" if line else f"use {name}()" if name else ""
        return Advice(does, f"In {path}") if does else Advice(f"Make the change in {path}")
    does = f"do not write `{line}`" if line else f"do not use {name}()" if name else ""
    return Advice(does, f"In {path}") if does else Advice(f"Do not change {path}")


# -- what stands around it ----------------------------------------------------------------------------


def _names(run: RunFacts) -> set[str]:
    return {feature.name for feature in features_of(run)}


def newest_with(features: Collection[str], runs: Sequence[RunFacts]) -> tuple[str, ...]:
    """The newest of these runs that has one of the features, by its trace; nothing where none has."""
    found = (run.trace_id for run in reversed(runs) if not _names(run).isdisjoint(features))
    return tuple(islice(found, 1))


def _met_by_all(separation: Separation, compared: Sequence[RunFacts], runs: Sequence[RunFacts]) -> str:
    """What all comparable runs met, whatever they did about it: an error, or an answer that not every run gets."""
    met = [{name for name in _names(run) if name.startswith(MET)} for run in compared]
    shared = set.intersection(*met) if met else set()
    if not shared:
        return ""
    others = [_names(run) for run in runs if run.trace_id not in separation.compared]
    wanted = [
        name.removeprefix(MET)
        for name in shared
        if is_error_condition(name) or any(name not in theirs for theirs in others)
    ]
    own = group_of(separation.feature) + ":" + separation.feature.partition(":")[2]
    fitting = [name for name in wanted if not own.startswith(f"error:{name.partition('!')[0]}")]
    if not fitting:
        return ""
    rarity = Counter(name for theirs in others for name in theirs if name.startswith(MET))
    best = min(fitting, key=lambda name: (not is_error_condition(name), rarity[f"{MET}{name}"], -len(name), name))
    return condition_words(best)


def _usual_error(tool: str, separation: Separation, compared: Sequence[RunFacts]) -> tuple[str, tuple[str, ...]]:
    """`, it fails with ValueError`: what most of its failing calls end in, and a run in which one did."""
    having = [names for run in compared if separation.feature in (names := _names(run))]
    met = [name for names in having for name in names if name.startswith(f"{MET}{tool}!")]
    errors = Counter(said for name in met if (said := error_words(name.removeprefix(MET))))
    usual = [(count, len(said), said) for said, count in errors.items() if count > _MOST * len(having)]
    if not usual:
        return "", ()
    said = max(usual)[2]
    who = newest_with({name for name in met if error_words(name.removeprefix(MET)) == said}, compared)
    return f", it fails with {said}".replace("{", "{{").replace("}", "}}"), who


def _checking_tool(compared: Sequence[RunFacts]) -> tuple[str, tuple[str, ...]]:
    """` with run_tests`: the tool that most passing runs check by, and one of these runs."""
    passed = [run for run in compared if run.passed]
    passing = [_names(run) for run in passed]
    tools = Counter(name for names in passing for name in names if name.startswith("tool:") and is_check(name[5:]))
    usual = [(count, tool) for tool, count in sorted(tools.items()) if count > _MOST * len(passing)]
    if not usual:
        return "", ()
    tool = max(usual)[1]
    return f" with {tool.removeprefix('tool:')}", newest_with([tool], passed)


def _instead(separation: Separation, compared: Sequence[RunFacts]) -> tuple[str, tuple[str, ...]]:
    """What most of those did that left it and passed: `Those that passed started with search`; and one of them."""
    group, rest = group_of(separation.feature), separation.feature.partition(":")[2]
    slot = {
        "own": f"own:{rest.partition('=')[0]}=",
        "first": "first:",
        "arg": f"arg:{rest.partition('=')[0]}=",
        "then": f"then:{rest.rpartition('>')[0]}>",
    }.get(group)
    if slot is None:
        return "", ()
    passed = [run for run in compared if run.passed and separation.feature not in _names(run)]
    passing = [_names(run) for run in passed]
    others = Counter(name for names in passing for name in names if name.startswith(slot))
    usual = [(count, name) for name, count in sorted(others.items()) if count > _MOST * len(passing)]
    if not usual:
        return "", ()
    most = max(usual)[1]
    said = most.removeprefix(slot)
    verb = {
        "own": f"used {rest.partition('=')[0]}={said}",
        "first": f"started with {said}",
        "arg": f"gave {rest.partition('=')[0].rpartition('.')[2]}={said}",
        "then": f"called {said}",
    }[group]
    return f"Those that passed {verb}", newest_with([most], passed)


def sources_of(named: Sequence[str], told_by: Sequence[str], run: RunFacts, runs: Sequence[RunFacts]) -> list[str]:
    """The runs that a lesson names: these, those that its words are taken from, and one of the bucket it is kept in."""
    found = list(dict.fromkeys((*named, *told_by)))
    is_known = any(one.bucket_key == run.bucket_key for one in runs if one.trace_id in found)
    return found if found and is_known else list(dict.fromkeys((*found, run.trace_id)))


def named_beside(features: Sequence[str], sources: Collection[str], runs: Sequence[RunFacts], most: int) -> list[str]:
    """Of the features that stand in nearly the same runs, those that a run has which is named."""
    known = set().union(*(_names(run) for run in runs if run.trace_id in sources))
    return [feature for feature in features if feature in known][:most]


def shared_error(failing: Sequence[RunFacts]) -> str | None:
    """The error that most of these runs met, as closely as it can be named."""
    met = Counter(name for run in failing for name in _names(run) if name.startswith(MET) and is_error_condition(name))
    shared = [(len(name), name.removeprefix(MET)) for name, count in met.items() if count > _MOST * len(failing)]
    return max(shared)[1] if shared else None


def got_past(error: str, runs: Sequence[RunFacts]) -> tuple[str, tuple[str, ...]]:
    """How runs got past an error: `When book fails with …, change amount and try again: 3 of 4 got past it, …`; and one
    of these runs.
    """
    tried = [names for run in runs if f"{RETRIED}{error}" in (names := _names(run))]
    past = [names for names in tried if f"{MENDED}{error}" in names]
    made = Counter(name for names in past for name in names if name.startswith(f"{MEND}{error}>"))
    usual = [
        (count, "+" in name, name) for name, count in made.items() if count >= _TWICE and count > _MOST * len(past)
    ]
    if not usual:
        return "", ()
    count, _, name = max(usual)
    mending = _mending(name.removeprefix(MEND))
    if mending is None:
        return "", ()
    said = f"{len(past)} of {len(tried)} that tried again got past it, {count} of them so"
    return f"{mending.line}: {said}", newest_with([name], runs)


# -- as predicates ------------------------------------------------------------------------------------


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
    names = {one.trace_id: _names(one) for one in peers}
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
