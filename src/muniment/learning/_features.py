"""A run as a set of features: short stable strings by which runs are compared.

    tool:search                a tool was called
    first:search               the first tool called
    order:search>book          called right after one another
    arg:book.cabin=economy     an argument that takes few values, and that the task itself did not give
    error:search               a call failed
    own:strategy=greedy        the caller's description of the run
    kept:KEY broken:KEY reason:CODE    from the verifier
    given:size=large intent:family=… state:mode=…     known before the run acts

Of a tool's answer only the success of the call and the class of its error are used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from muniment.core.record import Record
from muniment.core.text.patterns import lazy_pattern
from muniment.learning.records import Feature, RunFacts, StepFacts

__all__ = [
    "VERDICT_GROUPS",
    "error_name",
    "error_shape",
    "features_of",
    "folded_words",
    "group_of",
    "is_asked",
    "is_error",
    "is_plain_path",
    "is_plain_value",
    "read_arguments",
    "scalar_text",
    "steps_with",
    "with_features",
]

VERDICT_GROUPS: Final = frozenset(("kept", "broken", "reason"))
"""Consequences of the outcome, which cannot explain it; excluded from contrasts."""

_FEATURES_MAX = 192
_DETAILS_READ_MAX = 64
_ARGS_MAX = 12
_TEXT_MAX = 48
_NAME_MAX = 96
_SHAPE_WORDS_MAX = 12
_READ_CHARS_MAX = 1_200

_ERROR = re.compile(
    r"Traceback \(most recent|\b[A-Z]\w{0,60}(?:Error|Exception)\b|\bexit ?code:? ?[1-9]|^\W{0,3}(?i:error)\b"
)
_CLASS = lazy_pattern(r"\b[A-Z]\w{0,60}(?:Error|Exception)\b")
_STATUS = lazy_pattern(r"(?i)\b(?:https?(?:/\d(?:\.\d)?)?|status(?: code)?)\W{0,4}([45]\d\d)\b")
_EXIT = lazy_pattern(r"(?i)\bexit(?:ed)?(?: with)?[ _]?(?:code|status)?\W{0,3}([1-9]\d{0,2})\b")
_SPACE = lazy_pattern(r"\s+")
_WORD = lazy_pattern(r"\w[\w'-]*")
_SHAPE_WORD = lazy_pattern(r"[^\W_]+|[#…]")
_QUOTED = lazy_pattern(r"""'[^'\n]{0,200}'|"[^"\n]{0,200}"|`[^`\n]{0,200}`""")
_NUMBERED = lazy_pattern(r"[\w.:/\\-]*\d[\w.:/\\-]*")
_PAIR = lazy_pattern(r"([A-Za-z_][\w.]{0,40})\s*[=:]\s*(\"[^\"]{0,80}\"|'[^']{0,80}'|[^,;\s]{1,80})")
_WHOLE_PAIR = lazy_pattern(r'"([A-Za-z_]\w{0,40})":("(?:[^"\\]|\\.){0,600}"|true|false|-?\d{1,15})(?=[,}])')
_PLAIN_VALUE = lazy_pattern(r"[^\W\d_]{1,18}(?:[ _-][^\W\d_]{1,18})?|\d{1,2}")
"""One or two short words, or a small number: ids, dates and prices do not recur, and longer names can carry advice."""
_PATH_PART = lazy_pattern(r"[^\W\d_]{0,18}(?:[_-][^\W\d_]{1,18})?\d{0,2}")


def features_of(facts: RunFacts) -> tuple[Feature, ...]:
    """All features of the run, by name. Features supplied with the run are trusted."""
    if facts.features:
        return facts.features
    before = sorted(set(_before(facts)))[: _FEATURES_MAX // 2]
    during = sorted(set(_during(facts)) - set(before))[: _FEATURES_MAX - len(before)]
    return (*(Feature(name=name, before=True) for name in before), *(Feature(name=name) for name in during))


def with_features(facts: RunFacts) -> RunFacts:
    """Attach the features to the run, so that they are computed once."""
    return facts if facts.features else facts.model_copy(update={"features": features_of(facts)})


def group_of(name: str) -> str:
    """The part before the first colon."""
    return name.partition(":")[0]


def scalar_text(value: Any) -> str | None:
    """A value as part of a feature name; None unless it is a short text, a number or a boolean."""
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


def is_plain_value(value: str) -> bool:
    """Return whether a value may be shown to a model: one or two short words or a small number, too short for an
    instruction.
    """
    return _PLAIN_VALUE.fullmatch(value) is not None


def is_plain_path(path: str) -> bool:
    """Return whether a file path may be shown to a model: each part is one or two short words."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return bool(parts) and all(_PATH_PART.fullmatch(part.rsplit(".", 1)[0] or part) for part in parts)


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


# -- while it acts ------------------------------------------------------------------------------------


def _during(facts: RunFacts) -> Iterator[str]:
    calls = [step for step in facts.steps if step.kind == "call"]
    tools = [step.action for step in calls]
    yield from _named("tool", tools)
    yield from _named("first", tools[:1])
    yield from _named("order", (f"{one}>{other}" for one, other in pairwise(tools) if one != other))
    yield from _named("error", (step.action for step in calls if is_error(step)))
    asked = folded_words(f"{facts.x_summary} {facts.x_later or ''}")
    for step in calls[:_DETAILS_READ_MAX]:
        yield from _arguments(step, asked)
    yield from _scalars("own", facts.own_features)
    for group, names in (("kept", facts.kept), ("broken", facts.violated), ("reason", facts.reason_codes)):
        yield from _named(group, names)


def _named(group: str, names: Iterable[str]) -> Iterator[str]:
    """Features of a group of names, without names that are too long."""
    return (f"{group}:{name}" for name in names if len(name) <= _NAME_MAX)


def _arguments(step: StepFacts, asked: str = "") -> Iterator[str]:
    """Argument values that are likely to recur and were not given by the task."""
    given = read_arguments(step.detail) if step.detail else {}
    for name in sorted(given)[:_ARGS_MAX]:
        text = scalar_text(given[name])
        if text is not None and is_plain_value(text) and not is_asked(text, asked):
            yield from _named("arg", [f"{step.action}.{name}={text}"])


def folded_words(text: str) -> str:
    """The words of a text, spaced so that other words can be searched in it."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def is_asked(value: str, asked: str) -> bool:
    """Return whether the task itself gave this value; another task gives another, so it is no advice."""
    words = folded_words(value)
    return bool(words.strip()) and words in asked


def steps_with(name: str, steps: Sequence[StepFacts]) -> list[StepFacts]:
    """The calls that give a run this feature; empty for a feature of the whole run."""
    calls = [step for step in steps if step.kind == "call"]
    group, rest = group_of(name), name.partition(":")[2]
    found: list[StepFacts] = []
    for before, step in zip((None, *calls), calls, strict=False):
        is_it = {
            "tool": step.action == rest,
            "error": step.action == rest and is_error(step),
            "first": before is None and step.action == rest,
            "order": before is not None and f"{before.action}>{step.action}" == rest,
            "arg": group == "arg" and name in set(_arguments(step)),
        }
        if is_it.get(group, False):
            found.append(step)
    return found


def read_arguments(line: str) -> dict[str, Any]:
    """Parse the arguments in a line: JSON, or `name=value` pairs; truncated JSON yields its complete pairs."""
    if line.startswith("{"):
        try:
            read = json.loads(line)
        except ValueError:
            read = dict(_whole_pairs(line))
        return {name: value for name, value in read.items() if len(name) <= _TEXT_MAX}
    return {found[1]: found[2].strip("\"'") for found in _PAIR.finditer(line)}


def _whole_pairs(line: str) -> Iterator[tuple[str, Any]]:
    for found in _WHOLE_PAIR.finditer(line):
        try:
            yield found[1], json.loads(found[2])
        except ValueError:  # truncated within an escape
            continue


# -- errors -------------------------------------------------------------------------------------------


def is_error(step: StepFacts) -> bool:
    """Return whether a step failed, or reads like a failure if its success is unknown."""
    if step.ok is not None:
        return not step.ok
    return step.text is not None and _ERROR.search(step.text) is not None


def error_name(step: StepFacts) -> str:
    """`KeyError`, `HTTP 404`, `exit code 2`: class or status of a failed call; empty if it has none."""
    text = (step.text or "")[:_READ_CHARS_MAX]
    if (named := _CLASS.findall(text)) and is_plain_value(" ".join(_split_name(named[-1]))):
        return str(named[-1])
    if (status := _STATUS.search(text)) is not None:
        return f"HTTP {status[1]}"
    return f"exit code {code[1]}" if (code := _EXIT.search(text)) is not None else ""


def _split_name(name: str) -> list[str]:
    """`KeyError` without its suffix, as words: a class name phrased like an instruction has more than two."""
    return re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+", re.sub(r"(?:Error|Exception)$", "", name)) or [
        name
    ]


def error_shape(text: str) -> str:
    """An error without its variable parts: quoted names, numbers, ids, times."""
    line = next((line for line in text[:_READ_CHARS_MAX].splitlines() if line.strip()), "")
    bare = _NUMBERED.sub("#", _QUOTED.sub("…", line.casefold()))
    return " ".join(_SHAPE_WORD.findall(bare)[:_SHAPE_WORDS_MAX])
