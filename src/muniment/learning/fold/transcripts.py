"""What a run did, in few words: to search by, and to tell the next run.

A transcript names the tools a run called with what they were given, the errors they answered, the files that came up,
and the words of its user; each once, in the order of the run, within a fixed size. It never holds a whole message or a
whole result, and of a run without words (above the user's own level) it holds names of tools alone. What is told to a
model holds no words of a tool at all: of an error its class, code or kind and its place (`results`). Pure; the work is
linear in what a fold has read of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from muniment.core.text.analyzer import stop_words
from muniment.core.text.patterns import lazy_pattern
from muniment.learning.fold.blame import blame, is_error, only_looks
from muniment.learning.fold.doing_words import in_order
from muniment.learning.fold.edits import EDIT, TEXTS, edit_parts, edits_in
from muniment.learning.fold.features import read_arguments
from muniment.learning.fold.plain_names import is_plain, is_plain_path, is_plain_value
from muniment.learning.fold.results import error_words, is_error_condition, met
from muniment.learning.fold.wording import Clean
from muniment.learning.hinting.requests import is_closing
from muniment.learning.stored_memory import RunFacts, StepFacts

__all__ = [
    "SAID_CHARS_MAX",
    "WORDING",
    "WORDING_LOOKS_ONCE",
    "asked_later",
    "did_words",
    "doings",
    "ending",
    "said_words",
    "suspicion",
    "tools_of",
    "transcript",
]

WORDING = 3
"""Stands in an episode whose words were written as they are here: without any of a tool's own, and every call told."""
WORDING_LOOKS_ONCE = 2
"""Stands in episodes of earlier versions, which told each tool that only looks once, however often it was called."""
SAID_CHARS_MAX = 400
DID_CHARS_MAX = 700
_READ_CHARS_MAX = 8_000
_STEPS_READ_MAX = 120
_ARGS_MAX, _SHOWN_ARGS_MAX = 6, 3
_VALUE_CHARS_MAX, _ERROR_CHARS_MAX = 40, 90
_ANSWER_WORDS_MAX = 16
"""Of an answer half as many words are told; a written word may be two of those that are looked at."""
_TELLING_MIN = 3
"""A sentence of fewer words is a word of politeness, unless an answer has no other."""
_ADDS_MIN = 3
"""A later message that adds fewer telling words than this says nothing of the task."""
_TEXTS_READ_MAX = 40
_FILES_MAX = 4

_WORD = lazy_pattern(r"\w[\w'-]*")
_JSON_PAIR = lazy_pattern(
    r'"([A-Za-z_][\w.-]{0,40})"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){0,200}"|-?\d[\d.]{0,12}|true|false)'
)
_PAIR = lazy_pattern(r"(?<![\w.])([A-Za-z_][\w.]{0,40})=(\"[^\"]{0,80}\"|'[^']{0,80}'|[^,;\s]{1,80})")
_PLAIN = lazy_pattern(r"[^\W\d_]+(?:[_ -][^\W\d_]+){0,3}|\d{1,2}")
"""A value that is likely to come again: words, small numbers."""
_FILE = lazy_pattern(
    r"(?<![\w./-])(?:[\w.-]{1,60}/){0,8}[\w-]{1,60}\.(?:py|pyi|ipynb|js|jsx|ts|tsx|go|rs|java|kt|rb|php|c|cc|cpp|h|hpp|cs|sh"
    r"|sql|md|rst|txt|json|toml|ya?ml|ini|cfg|csv|html|css|xml|xlsx|pdf)(?![\w/])"
)
_ERROR_NAME = lazy_pattern(r"\b[A-Z]\w{0,60}(?:Error|Exception)\b")
_SPACE = lazy_pattern(r"\s+")
_FIGURE = lazy_pattern(r"\d")
"""A number in an answer is somebody's."""
_SENTENCE_END = lazy_pattern(r"(?<=[.!?])\s")


class _Call(NamedTuple):
    """A call as it is told: its tool, what it was given, and the error it answered, where it did."""

    action: str
    args: tuple[tuple[str, str], ...]
    error: str
    """As the tool worded it: to search by, and never told."""


# -- to search by -------------------------------------------------------------------------------------


def said_words(texts: Iterable[str]) -> str:
    """The telling words of these texts, each once."""
    left = _READ_CHARS_MAX
    small = stop_words("english")
    seen: dict[str, str] = {}
    for text in texts:
        for word in _WORD.findall(text[:left]):
            folded = word.casefold()
            if len(folded) > 1 and folded not in small:
                seen.setdefault(folded, word)
        left -= len(text)
        if left <= 0:
            break
    return _within(seen.values(), " ", SAID_CHARS_MAX)


def asked_later(texts: Sequence[str], chars_max: int) -> str:
    """Of what a user said after the first message, the one that adds most telling words, in one line; or nothing."""
    first, *rest = texts or ("",)
    known, small = {word.casefold() for word in _WORD.findall(first[:_READ_CHARS_MAX])}, stop_words("english")
    best, most = "", _ADDS_MIN - 1
    for text in rest[:_TEXTS_READ_MAX]:
        line = _SPACE.sub(" ", text[: 4 * chars_max]).strip()[:chars_max]
        new = {word.casefold() for word in _WORD.findall(line)} - known - small
        if len(new) > most:
            best, most = line, len(new)
    return best


def did_words(steps: Sequence[StepFacts]) -> list[str]:
    """What the steps did, piece by piece and each once: calls with what they were given, errors, files."""
    calls = [step for step in steps if step.kind == "call"][:_STEPS_READ_MAX]
    pieces: dict[str, None] = {}
    for step in calls:
        told = _told(step)
        given = " ".join(f"{name}={value}" for name, value in told.args[:_ARGS_MAX])
        pieces[f"{told.action} {given}".strip()] = None
        if told.error:
            pieces[f"{told.action} failed: {told.error}"] = None
    files = dict.fromkeys(name for step in calls for name in _files(step))
    return [*pieces, *list(files)[:_FILES_MAX]]


def transcript(run: RunFacts, clean: Clean) -> str:
    """The run as a search reads it; what may not be quoted is left out."""
    said, did = run.said or "", did_words(run.steps)
    if not clean("\n".join((said, *did))):
        said, did = said if clean(said) else "", [piece for piece in did if clean(piece)]
    return "\n".join(part for part in (said, _within(did, "; ", DID_CHARS_MAX)) if part)


def tools_of(steps: Iterable[StepFacts]) -> frozenset[str]:
    return frozenset(step.action for step in steps if step.kind == "call")


# -- to tell ------------------------------------------------------------------------------------------


def doings(run: RunFacts, clean: Clean, *, with_args: bool = True) -> str:
    """`Did: search 2 times, then book (cabin=economy)`: of calls that do more than look, what they were given. Of a run
    that called nothing, the first words of what it answered last but for taking leave, unless they advise or hold a
    figure.
    """
    calls = [step for step in run.steps if step.kind == "call"]
    if not calls:
        said = _answered([step.text for step in reversed(run.steps) if step.text])
        is_fit = is_plain(said, _ANSWER_WORDS_MAX) and _FIGURE.search(said) is None and clean(said)
        return f'Answered: "{said}"' if is_fit else "Called nothing" if run.steps else ""
    shown = _in_order(calls, with_args=with_args)
    if not clean(shown):
        shown = _in_order(calls, with_args=False)
    return f"{'Only looked' if all(only_looks(step.action) for step in calls) else 'Did'}: {shown}"


def ending(run: RunFacts, clean: Clean) -> str:
    """How a run failed, in a clause: after which call, and what that answered. Empty where no call had an error."""
    calls = [step for step in run.steps if step.kind == "call"]
    broken = next((step for step in reversed(calls) if step.text and is_error(step)), None)
    if run.passed or broken is None:
        return ""
    full = f"failed after {_shown(broken)}"
    return full if clean(full) else f"failed after {broken.action}"


def suspicion(run: RunFacts, clean: Clean) -> str:
    """Where a run that failed may have gone wrong, though no call answered an error: a guess, and worded as one."""
    if run.passed or not run.steps:
        return ""
    step = run.steps[blame(run)[0].step]
    full = f"may have gone wrong at {_shown(step)}"
    if step.kind != "call":
        return ""
    return full if clean(full) else f"may have gone wrong at {step.action}"


def _answered(texts: Sequence[str]) -> str:
    """Of answers, the last first, the first sentence that says something; else the first of all."""
    sentences = [each for text in texts for each in _SENTENCE_END.split(_SPACE.sub(" ", text).strip())]
    telling = (each for each in sentences if len(each.split()) >= _TELLING_MIN and not is_closing(each))
    return _first_words(next(telling, sentences[0] if sentences else ""))


def _first_words(sentence: str) -> str:
    """A sentence, or as much of it as is told."""
    line = sentence.replace('"', "'").rstrip(".,;:!?")
    words = line.split(" ")
    return line if len(words) <= _ANSWER_WORDS_MAX // 2 else f"{' '.join(words[: _ANSWER_WORDS_MAX // 2])} …"


def _in_order(calls: Sequence[StepFacts], *, with_args: bool) -> str:
    """All calls one after the other, looks too: a run that looked again before it acted did something else than one
    that did not.
    """
    return in_order([_shown(step) if with_args else step.action for step in calls])


def _shown(step: StepFacts) -> str:
    written = _written(step)
    telling = [
        f"{name}={value}" for name, value in _told(step).args if _is_telling(value) and not (written and name in TEXTS)
    ][:_SHOWN_ARGS_MAX]
    notes = [*(telling if not only_looks(step.action) else ()), *written, *_error_told(step)]
    return f"{step.action} ({'; '.join(notes)})" if notes else step.action


def _written(step: StepFacts) -> list[str]:
    """Of a call that changed a file and held: the line that it put there."""
    if not step.detail or is_error(step):
        return []
    edits = (edit_parts(name.removeprefix(EDIT)) for name in edits_in(read_arguments(step.detail)))
    return [f"wrote `{line}`" for path, line, _ in edits if line and is_plain_path(path)][:1]


def _is_telling(value: str) -> bool:
    if _FILE.fullmatch(value) is not None:
        return is_plain_path(value)
    return _PLAIN.fullmatch(value) is not None and is_plain_value(value)


def _error_told(step: StepFacts) -> list[str]:
    """Of a call that failed: the class, code or kind of its error and where it was raised, never a tool's own words."""
    if not is_error(step) or not step.text:
        return []
    errors = [said for each in met(step) if is_error_condition(each) and (said := error_words(each))]
    return [max(errors, key=len).strip('"') if errors else "an error"]


# -- reading a step -----------------------------------------------------------------------------------


def _told(step: StepFacts) -> _Call:
    return _Call(step.action, tuple(_arguments(step.detail or "")), _error(step))


def _arguments(line: str) -> Iterator[tuple[str, str]]:
    """Names and values in a line of arguments, JSON (whole or cut short) or `name=value`; nested ones too."""
    seen: set[tuple[str, str]] = set()
    for found in (_JSON_PAIR if line.startswith("{") else _PAIR).finditer(line):
        pair = found[1], _SPACE.sub(" ", found[2].strip("\"'")).strip()
        if pair[1] and len(pair[1]) <= _VALUE_CHARS_MAX and pair not in seen:
            seen.add(pair)
            yield pair


def _error(step: StepFacts) -> str:
    """What a call that failed answered, from the error's name on; empty for one that did not."""
    if not is_error(step) or not step.text:
        return ""
    named = [found.start() for found in _ERROR_NAME.finditer(step.text)]
    line = step.text[named[-1] if named else 0 :][: _ERROR_CHARS_MAX + 1]
    if len(line) > _ERROR_CHARS_MAX:
        line = f"{line[: line.rfind(' ')] if ' ' in line else line[:_ERROR_CHARS_MAX]}…"
    return line.rstrip(". ")


def _files(step: StepFacts) -> Iterator[str]:
    for text in (step.detail, step.text):
        yield from (found[0] for found in _FILE.finditer(text or ""))


def _within(parts: Iterable[str], between: str, chars_max: int) -> str:
    """As many of the parts as there is room for, from the first."""
    kept: list[str] = []
    room = chars_max
    for part in parts:
        room -= len(part) + len(between)
        if room < 0:
            break
        kept.append(part)
    return between.join(kept)
