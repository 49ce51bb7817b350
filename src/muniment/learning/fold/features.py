"""A run as a bag of features: short stable strings, prefixed so that they can be grouped and told apart.

tool:search                a tool was called
first:search               the first tool called
order:search>book          called right after one another
steps:6-10                 how many things it did
args:book(cabin,user)      which arguments a call had
arg:book.cabin=economy     an argument that takes few values
check:made, check:last     something was verified; it was the last thing done but one
error:search               a call failed;  recovered:search  and held when called again;  error:left  it never did
repeat:search              the same call three times in a row
edit:src/cart.py+LINE      what a call put into a file (`edits`)
met:get_order.state=open   what a tool answered (`results`)
then:get_order.state=open>refund    which call came right after that
mend:ERROR>edit:src/x.py   what was changed before a failed call was made again (`corrections`)
about:DIGEST               what the request and the first calls are about (`strata`)
own:strategy=greedy        what the caller said of how it ran
kept:KEY broken:KEY reason:CODE    what the verifier said
given:size=large intent:family=… state:mode=…     known before the run acts
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise, zip_longest
from typing import Any, Final

from muniment.core.record import Record
from muniment.core.text.patterns import lazy_pattern
from muniment.learning.fold.blame import is_error
from muniment.learning.fold.corrections import MEND, MENDED, RETRIED, corrections_of, mend_parts
from muniment.learning.fold.edits import edits_in
from muniment.learning.fold.plain_names import is_plain_value
from muniment.learning.fold.results import met
from muniment.learning.fold.strata import about
from muniment.learning.stored_memory import Feature, RunFacts, StepFacts

__all__ = [
    "MET",
    "UNASKED_GROUPS",
    "VERDICT_GROUPS",
    "condition_of",
    "features_of",
    "folded_words",
    "group_of",
    "is_asked",
    "is_check",
    "outcome_of",
    "read_arguments",
    "scalar_text",
    "steps_with",
    "telling",
    "with_features",
]

VERDICT_GROUPS: Final = frozenset(("kept", "broken", "reason"))
"""What the verifier said. It follows from the outcome, so it explains none: no contrast is drawn by it."""
UNASKED_GROUPS: Final = VERDICT_GROUPS | {"met", "about", "steps", "retried", "mended"}
"""Features by which no contrast is drawn: nobody can do them, or leave them."""
MET: Final = "met:"

_STEP_BANDS = (0, 1, 2, 5, 10, 20, 50, 100, 200)
_LOOP = 3
_TELLING = (
    "own",
    "edit",
    "then",
    "first",
    "arg",
    "tool",
    "order",
    "check",
    "args",
    "repeat",
    "error",
    "recovered",
    "steps",
)
_CUT_LAST = (
    "own",
    "edit",
    "check",
    "first",
    "tool",
    "steps",
    "error",
    "recovered",
    "repeat",
    "broken",
    "kept",
    "reason",
    "about",
)
_FEATURES_MAX = 192
_DETAILS_READ_MAX = 64
_ARGS_MAX = 12
_ABOUT_CALLS = 3
_EDITS_MAX = 32
_TEXT_MAX = 48
_NAME_MAX = 96
_FULL_NAME_MAX = 160

_CHECK = lazy_pattern(
    r"(?i)(?:^|[^a-z])(?:verif(?:y|ied|ies|ication)|validat(?:e|ed|ion)|check(?:s|ed|ing)?|tests?|tested|pytest|lint"
    r"|assert(?:s|ed)?|review(?:ed)?|confirm(?:s|ed)?|dry[_ -]?run|recount|compare)(?![a-z])"
)
_SPACE = lazy_pattern(r"\s+")
_WORD = lazy_pattern(r"\w[\w'-]*")
_PAIR = lazy_pattern(r"([A-Za-z_][\w.]{0,40})\s*[=:]\s*(\"[^\"]{0,80}\"|'[^']{0,80}'|[^,;\s]{1,80})")
_WHOLE_PAIR = lazy_pattern(r'"([A-Za-z_]\w{0,40})":("(?:[^"\\]|\\.){0,600}"|true|false|-?\d{1,15})(?=[,}])')
_PLAIN_VALUE = lazy_pattern(r"[^\W\d_]+(?:[_ -][^\W\d_]+){0,3}|\d{1,2}")
"""Values that are likely to come again: words, small numbers. Ids, dates and prices are not."""


def features_of(facts: RunFacts) -> tuple[Feature, ...]:
    """What is true of the run, by name. A run that brings its features is taken at its word."""
    if facts.features:
        return facts.features
    before = sorted({*_before(facts), *_about(facts)})
    during = sorted(set(_during(facts)) - set(before))
    if len(before) + len(during) > _FEATURES_MAX:
        before = sorted(sorted(before, key=_cut_rank)[: _FEATURES_MAX // 2])
        during = sorted(sorted(during, key=_cut_rank)[: _FEATURES_MAX - len(before)])
    return (*(Feature(name=name, before=True) for name in before), *(Feature(name=name) for name in during))


def telling(name: str) -> int:
    """Of features that say the same, the one that tells most what to do has the lowest number."""
    group = group_of(name)
    place = _TELLING.index(group) if group in _TELLING else len(_TELLING)
    path_alone = 1 if group in ("edit", "mend") and "+" not in name else 0
    return 2 * place + path_alone


def _cut_rank(name: str) -> tuple[bool, str]:
    """Pairs of tools and arguments are many: they go first."""
    return group_of(name) not in _CUT_LAST, name


def with_features(facts: RunFacts) -> RunFacts:
    """The run with its features, so that they are read once."""
    return facts if facts.features else facts.model_copy(update={"features": features_of(facts)})


def group_of(name: str) -> str:
    """What stands before the first colon."""
    return name.partition(":")[0]


def scalar_text(value: Any) -> str | None:
    """A value as it stands in a feature; None for what is no short text, number or boolean."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**15 else f"{value:.2e}"
    if isinstance(value, float):
        return f"{value:.2g}"
    if isinstance(value, str):
        plain = _SPACE.sub(" ", value).strip()
        return plain if 0 < len(plain) <= _TEXT_MAX else None
    return None


# -- before the run acts ------------------------------------------------------------------------------


def _before(facts: RunFacts) -> Iterator[str]:
    yield from _scalars("given", facts.given_features)
    yield from _parts("intent", facts.intent)
    yield from _parts("state", facts.state)


def _parts(group: str, parts: Record) -> Iterator[str]:
    for name, value in parts:
        if isinstance(value, tuple):
            yield from (f"{group}:{name}={item}" for item in value if len(item) <= _TEXT_MAX)
        elif value is not None:
            yield from _scalars(group, {name: value})


def _scalars(group: str, values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if (text := scalar_text(value)) is not None and len(name) <= _TEXT_MAX:
            yield f"{group}:{name}={text}"


def _about(facts: RunFacts) -> Iterator[str]:
    """What it works on: the request, and what the first calls were given."""
    calls = [step for step in facts.steps if step.kind == "call"]
    yield from about([facts.x_summary, *(step.detail or "" for step in calls[:_ABOUT_CALLS])])


# -- while it acts ------------------------------------------------------------------------------------


def _during(facts: RunFacts) -> Iterator[str]:
    own = [step for step in facts.steps if step.kind in ("call", "say")]
    calls = [step for step in own if step.kind == "call"]
    yield f"steps:{_band(len(own))}"
    yield from _order_of([step.action for step in calls])
    yield from _checks(own)
    yield from _errors(calls)
    yield from _repeats(calls)
    asked = folded_words(f"{facts.x_summary} {facts.x_later or ''}")
    for step in calls[:_DETAILS_READ_MAX]:
        yield from _arguments(step, asked)
    yield from islice((name for step in calls if not is_error(step) for name in _edits(step)), _EDITS_MAX)
    yield from islice(_group_names(corrections_of(calls[:_DETAILS_READ_MAX], read_arguments)), _EDITS_MAX)
    yield from _met(calls[:_DETAILS_READ_MAX])
    yield from _scalars("own", facts.own_features)
    for group, names in (("kept", facts.kept), ("broken", facts.violated), ("reason", facts.reason_codes)):
        yield from _group_features(group, names)


def _band(count: int) -> str:
    """`3-5` and the like: how many, roughly."""
    low = 0
    for high in _STEP_BANDS:
        if count <= high:
            return str(high) if low == high else f"{low}-{high}"
        low = high + 1
    return f"{low}+"


def _group_features(group: str, names: Iterable[str]) -> Iterator[str]:
    """The features of a group of names; names that are too long are left out."""
    return (f"{group}:{name}" for name in names if len(name) <= _NAME_MAX)


def _order_of(tools: Sequence[str]) -> Iterator[str]:
    yield from _group_features("tool", tools)
    yield from _group_features("first", tools[:1])
    yield from _group_features("order", (f"{one}>{other}" for one, other in pairwise(tools) if one != other))


def _checks(own: Sequence[StepFacts]) -> Iterator[str]:
    """A step that verifies: by the name of its tool, or by what it says."""
    made = [is_check(step.action if step.kind == "call" else step.text or "") for step in own]
    yield f"check:{'made' if any(made) else 'none'}"
    if any(made[-2:]):
        yield "check:last"


def is_check(words: str) -> bool:
    """Does a tool's name, or what was said, speak of verifying?"""
    return _CHECK.search(words) is not None


def _errors(calls: Sequence[StepFacts]) -> Iterator[str]:
    """Calls that went wrong. A check that fails tells of the work and not of the call, and is none."""
    failing: set[str] = set()
    for step in calls:
        if is_check(step.action):
            continue
        if is_error(step):
            failing.add(step.action)
            yield from _group_features("error", [step.action])
        elif step.action in failing:
            failing.discard(step.action)
            yield from _group_features("recovered", [step.action])
    if failing:
        yield "error:left"


def _repeats(calls: Sequence[StepFacts]) -> Iterator[str]:
    streak, last = 0, None
    for step in calls:
        streak, last = (streak + 1, last) if (step.action, step.detail) == last else (1, (step.action, step.detail))
        if streak == _LOOP:
            yield from _group_features("repeat", [step.action])


def folded_words(text: str) -> str:
    """The words of a text, spaced so that those of another can be looked for in it."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def is_asked(value: str, asked: str) -> bool:
    """Did the task itself give this value? Another task gives another, so it advises nothing."""
    words = folded_words(value)
    return bool(words.strip()) and words in asked


def _arguments(step: StepFacts, asked: str = "") -> Iterator[str]:
    """Which arguments the call had, and those values that are likely to come again and that the task did not give."""
    given = read_arguments(step.detail) if step.detail else {}
    names = sorted(given)[:_ARGS_MAX]
    if names:
        yield from _group_features("args", [f"{step.action}({','.join(names)})"])
    for name in names:
        text = scalar_text(given[name])
        is_told = isinstance(given[name], bool) or (text and _PLAIN_VALUE.fullmatch(text) and is_plain_value(text))
        if text is not None and is_told and not is_asked(text, asked):
            yield from _group_features("arg", [f"{step.action}.{name}={text}"])


def _edits(step: StepFacts) -> Iterator[str]:
    yield from _group_names(edits_in(read_arguments(step.detail)) if step.detail else ())


def _met(calls: Sequence[StepFacts]) -> Iterator[str]:
    """What the tools answered, and which call came right after each answer."""
    for step, after in zip_longest(calls, calls[1:]):
        for condition in _group_names(met(step)):
            yield f"{MET}{condition}"
            if after is not None and ">" not in after.action:
                yield from _group_names([f"then:{condition}>{after.action}"])


def _group_names(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if len(name) <= _FULL_NAME_MAX)


def condition_of(name: str) -> str | None:
    """The feature without which a run could not have this one: the answer it follows, the failed call it mends."""
    if name.startswith(MEND):
        return f"{RETRIED}{mend_parts(name.removeprefix(MEND))[0]}"
    if name.startswith("then:"):
        return f"{MET}{name.removeprefix('then:').rpartition('>')[0]}"
    return None


def outcome_of(name: str) -> str | None:
    """The feature that says whether it went well: of what mends a call, that the call held; None: that the run did."""
    return f"{MENDED}{mend_parts(name.removeprefix(MEND))[0]}" if name.startswith(MEND) else None


def steps_with(name: str, steps: Sequence[StepFacts]) -> list[StepFacts]:
    """The calls by which a run has this feature; nothing for one that is of the run as a whole."""
    calls = [step for step in steps if step.kind == "call"]
    group, rest = group_of(name), name.partition(":")[2]
    found: list[StepFacts] = []
    for before, step in zip((None, *calls), calls, strict=False):
        is_it = {
            "tool": step.action == rest,
            "error": step.action == rest and is_error(step),
            "first": before is None and step.action == rest,
            "order": before is not None and f"{before.action}>{step.action}" == rest,
            "arg": group in ("arg", "args") and name in set(_arguments(step)),
            "edit": group == "edit" and name in set(_edits(step)),
            "then": group == "then" and before is not None and name in set(_met((before, step))),
        }
        if is_it.get("arg" if group == "args" else group, False):
            found.append(step)
    return found


def _whole_pairs(line: str) -> Iterator[tuple[str, Any]]:
    for found in _WHOLE_PAIR.finditer(line):
        try:
            yield found[1], json.loads(found[2])
        except ValueError:  # it was cut within a sign of its own
            continue


def read_arguments(line: str) -> dict[str, Any]:
    """The arguments in a line: JSON, or `name=value` pairs; of JSON that was cut, the pairs that are whole."""
    if line.startswith("{"):
        try:
            read = json.loads(line)
        except ValueError:
            read = dict(_whole_pairs(line))
        return {name: value for name, value in read.items() if len(name) <= _TEXT_MAX}
    return {found[1]: found[2].strip("\"'") for found in _PAIR.finditer(line)}
