"""Episodes: what a run was asked, how it ended, what it did and which error it met, kept as fields and rendered last.

A step keeps the tool's name and the arguments that are likely to come again. An argument that the task itself gave
(`region=us`, where the user asked for us) is kept as `region as asked`: another task asks for another. The error that
ended a failing run is a tool's own text: it is quoted with its speaker, cut to one line, and withheld where it reads
like orders. Runs learnt above the user's level have no texts, so their steps are names alone. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from muniment.core.canonical import digest_of
from muniment.core.record import JsonObject
from muniment.core.text.analyzer import stop_words
from muniment.core.text.patterns import lazy_pattern
from muniment.learning.fold.blame import is_error, only_looks
from muniment.learning.fold.edits import EDIT, TEXTS, edit_parts, edits_in
from muniment.learning.fold.features import folded_words, is_asked, read_arguments
from muniment.learning.fold.plain_names import is_plain_path, is_plain_value
from muniment.learning.fold.wording import Clean
from muniment.learning.stored_memory import RunFacts, StepFacts, StoredMemory
from muniment.store.injection import reads_like_instructions

__all__ = [
    "ASKED_CHARS",
    "Episode",
    "EpisodeStep",
    "asked_later",
    "did_words",
    "episode_fields",
    "episode_of",
    "last_error",
    "passed_of",
    "read_episode",
    "render_steps",
    "said_words",
    "steps_told",
    "task_form",
    "tools_of",
    "tools_told",
    "transcript",
]

ASKED_CHARS = 110
"""Characters of the request that an episode shows: several have to fit into a prompt with what was done."""
SAID_CHARS_MAX, DID_CHARS_MAX = 400, 700
_READ_CHARS_MAX = 8_000
_STEPS_READ_MAX, _STEPS_KEPT_MAX = 120, 24
_ARGS_MAX, _SHOWN_ARGS_MAX = 6, 3
_VALUE_CHARS_MAX, _ERROR_CHARS_MAX = 40, 90
_ANSWER_WORDS_MAX = 8
_ADDS_MIN, _TEXTS_READ_MAX, _FILES_MAX = 3, 40, 4
_PARTS_MAX, _FIRST, _LAST = 7, 2, 3
_STRETCH_MAX = 4
_HALF = 0.5
_TAG = "tool:"
_CUT = " … "

_WORD = lazy_pattern(r"\w[\w'-]*")
_PLAIN_WORD = lazy_pattern(r"[^\W\d_]+")
_JSON_PAIR = lazy_pattern(
    r'"([A-Za-z_][\w.-]{0,40})"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){0,200}"|-?\d[\d.]{0,12}|true|false)'
)
_PAIR = lazy_pattern(r"(?<![\w.])([A-Za-z_][\w.]{0,40})=(\"[^\"]{0,80}\"|'[^']{0,80}'|[^,;\s]{1,80})")
_PLAIN = lazy_pattern(r"[^\W\d_]+(?:[_ -][^\W\d_]+){0,3}|\d{1,2}")
"""Values that are likely to come again: words and small numbers."""
_FILE = lazy_pattern(
    r"(?<![\w./-])(?:[\w.-]{1,60}/){0,8}[\w-]{1,60}\.(?:py|pyi|ipynb|js|jsx|ts|tsx|go|rs|java|kt|rb|php|c|cc|cpp|h|hpp|cs|sh"
    r"|sql|md|rst|txt|json|toml|ya?ml|ini|cfg|csv|html|css|xml|xlsx|pdf)(?![\w/])"
)
_ERROR_NAME = lazy_pattern(r"\b[A-Z]\w{0,60}(?:Error|Exception)\b")
_SPACE = lazy_pattern(r"\s+")
_DIGIT = lazy_pattern(r"\d")


class EpisodeStep(NamedTuple):
    """A call of a run: its tool, the arguments worth repeating, and whether it failed."""

    tool: str
    given: tuple[str, ...] = ()
    failed: bool = False

    @property
    def text(self) -> str:
        notes = [*self.given, *(["failed"] if self.failed else [])]
        return f"{self.tool} ({'; '.join(notes)})" if notes else self.tool


class Episode(NamedTuple):
    """An episode read back from its record."""

    request: str
    outcome: str
    """passed, failed, unjudged"""
    reasons: tuple[str, ...]
    steps: tuple[EpisodeStep, ...]
    is_cut: bool
    """Steps in the middle are left out: half a way is another way."""
    error: tuple[str, str]
    """The tool that ended a failing run with an error, and its words; empty where there is none."""
    answer: str
    """The first words of the answer of a run that called nothing."""
    task: str
    """The same for requests that differ in numbers, case and spacing alone."""
    given: Mapping[str, Any]
    """What the caller knew of the task before the run acted."""

    @property
    def did(self) -> str:
        if not self.steps:
            return f'Answered: "{self.answer}"' if self.answer else "Called nothing"
        verb = "Only looked" if all(only_looks(step.tool) for step in self.steps) else "Did"
        return f"{verb}: {render_steps(self.steps, is_cut=self.is_cut)}"

    @property
    def ending(self) -> str:
        """How a failing run ended, as a sentence; empty where no call answered an error."""
        tool, said = self.error
        if not tool or self.outcome != "failed":
            return ""
        return f'It failed after {tool}, which answered "{said}".' if said else f"It failed after {tool}."

    @property
    def text(self) -> str:
        """The episode as one line of a prompt."""
        asked = self.request if self.request[-1:] in ("…", "?", "!") else f"{self.request}."
        ended = {"passed": "Passed", "failed": "Failed"}.get(self.outcome, "Not judged yet")
        ended = f"{ended}: {', '.join(self.reasons)}" if self.reasons else ended
        return " ".join(part for part in (f"Asked: {asked}", f"{ended}.", f"{self.did}.", self.ending) if part)

    @property
    def way(self) -> tuple[EpisodeStep, ...]:
        """The steps in order, each once where it came again at once; empty where some are left out."""
        if self.is_cut:
            return ()
        return tuple(step for before, step in pairwise((None, *self.steps)) if step is not None and step != before)


# -- from a run ---------------------------------------------------------------------------------------


def episode_fields(run: RunFacts, clean: Clean, request: str) -> JsonObject:
    """The fields of a run's episode; `request` is the quoted task, or empty where it may not be quoted."""
    calls = [step for step in run.steps if step.kind == "call"]
    steps, is_cut = steps_told(run, clean)
    outcome = "unjudged" if run.verdict is None else "passed" if run.passed else "failed"
    fields: dict[str, Any] = {
        "request": request or "not quoted",
        "outcome": outcome,
        "steps": [_step_wire(step) for step in steps],
    }
    if outcome != "unjudged" and (reasons := [*run.violated[:3], *run.reason_codes[:3]]):
        fields["reasons"] = reasons
    if is_cut:
        fields["cut"] = True
    if outcome == "failed" and (error := last_error(calls, clean)) is not None:
        fields["error"] = dict(zip(("tool", "said"), error, strict=True))
    if not calls and (answer := _answer([step.text for step in reversed(run.steps) if step.text], clean)):
        fields["answer"] = answer
    if run.asked_form is not None:  # what is learnt above the user has no form, and holds nobody's words
        fields["task"] = run.asked_form
        if given := {name: value for name, value in run.given_features.items() if _is_short(value)}:
            fields["given"] = given
    return fields


def steps_told(run: RunFacts, clean: Clean) -> tuple[list[EpisodeStep], bool]:
    """The calls of a run as they are kept, and whether some in the middle are left out."""
    calls = [step for step in run.steps if step.kind == "call"]
    is_cut = len(calls) > _STEPS_KEPT_MAX
    kept = [*calls[: _STEPS_KEPT_MAX // 2], *calls[-(_STEPS_KEPT_MAX // 2) :]] if is_cut else calls
    asked = folded_words(f"{run.x_summary} {run.x_later or ''}")
    steps = [_told(step, asked) for step in kept]
    if not clean("\n".join(step.text for step in steps)):
        steps = [step if clean(step.text) else step._replace(given=()) for step in steps]
    return steps, is_cut


def _told(step: StepFacts, asked: str) -> EpisodeStep:
    failed = is_error(step)
    if only_looks(step.action):
        return EpisodeStep(step.action, (), failed)
    written = [] if failed or not step.detail else _written(step.detail)
    given = []
    for name, value in _arguments(step.detail or ""):
        if name in TEXTS and written:
            continue
        if is_asked(value, asked):
            given.append(f"{name} as asked")
        elif _is_telling(value):
            given.append(f"{name}={value}")
    return EpisodeStep(step.action, (*given[:_SHOWN_ARGS_MAX], *written), failed)


def _written(detail: str) -> list[str]:
    """The first line that a call put into a file."""
    edits = (edit_parts(name.removeprefix(EDIT)) for name in edits_in(read_arguments(detail)))
    return [f"wrote `{line}`" for path, line, _ in edits if line and is_plain_path(path)][:1]


def _is_telling(value: str) -> bool:
    if _FILE.fullmatch(value) is not None:
        return is_plain_path(value)
    return _PLAIN.fullmatch(value) is not None and is_plain_value(value)


def _is_short(value: Any) -> bool:
    return isinstance(value, bool | int) or (isinstance(value, str) and len(value) <= _VALUE_CHARS_MAX)


def _step_wire(step: EpisodeStep) -> JsonObject:
    said: JsonObject = {"tool": step.tool}
    if step.given:
        said["given"] = list(step.given)
    return said | {"failed": True} if step.failed else said


def last_error(calls: Sequence[StepFacts], clean: Clean) -> tuple[str, str] | None:
    """The tool of the last call that failed, and its answer as it may be quoted; None where every call held."""
    broken = next((step for step in reversed(calls) if is_error(step) and (step.text or step.ok is False)), None)
    if broken is None:
        return None
    said = _error_line(broken).replace('"', "'")
    return broken.action, said if said and clean(said) and not reads_like_instructions(said) else ""


def _error_line(step: StepFacts) -> str:
    """The answer of a failed call from the error's name on, in one line."""
    text = step.text or ""
    named = [found.start() for found in _ERROR_NAME.finditer(text)]
    line = text[named[-1] if named else 0 :][: _ERROR_CHARS_MAX + 1]
    if len(line) > _ERROR_CHARS_MAX:
        line = f"{line[: line.rfind(' ')] if ' ' in line else line[:_ERROR_CHARS_MAX]}…"
    return _SPACE.sub(" ", line).strip().rstrip(". ")


def _answer(texts: Sequence[str], clean: Clean) -> str:
    """The first words of the last answer; nothing where it holds a number, which is somebody's."""
    line = _SPACE.sub(" ", texts[0]).strip().replace('"', "'") if texts else ""
    words = line.split(" ")
    said = " ".join(words[:_ANSWER_WORDS_MAX]).rstrip(".,;:!?")
    said = f"{said} …" if len(words) > _ANSWER_WORDS_MAX else said
    return "" if _DIGIT.search(said) or not clean(said) else said


def task_form(request: str) -> str | None:
    """A digest of the words of a request without its numbers; None where nothing is left."""
    words = _PLAIN_WORD.findall(request.casefold())
    return digest_of(words)[:16] if words else None


# -- from a record ------------------------------------------------------------------------------------


def episode_of(memory: StoredMemory) -> Episode | None:
    """The fields of an episode; None for another kind, and for episodes of earlier versions, which keep a sentence."""
    return read_episode(memory.record) if memory.kind == "reasoning" else None


def read_episode(record: Mapping[str, Any]) -> Episode | None:
    steps, outcome = record.get("steps"), record.get("outcome")
    if not isinstance(steps, list | tuple) or not isinstance(outcome, str):
        return None
    error, given = record.get("error"), record.get("given")
    named = (error.get("tool"), error.get("said")) if isinstance(error, Mapping) else ("", "")
    return Episode(
        request=str(record.get("request") or "not quoted"),
        outcome=outcome,
        reasons=_texts(record.get("reasons")),
        steps=tuple(_step(each) for each in steps if isinstance(each, Mapping)),
        is_cut=record.get("cut") is True,
        error=(str(named[0] or ""), str(named[1] or "")),
        answer=str(record.get("answer") or ""),
        task=str(record.get("task") or ""),
        given=given if isinstance(given, Mapping) else {},
    )


def _step(kept: Mapping[str, Any]) -> EpisodeStep:
    return EpisodeStep(str(kept.get("tool") or ""), _texts(kept.get("given")), kept.get("failed") is True)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


def passed_of(memory: StoredMemory) -> bool | None:
    """Whether the run of an episode passed; its `pass_p_hat` counts later runs once it was used."""
    tags, rate = memory.record.get("tags"), memory.record.get("pass_p_hat")
    for word in ("pass", "fail"):
        if isinstance(tags, list | tuple) and word in tags:
            return word == "pass"
    return rate >= _HALF if not memory.with_tally.n and isinstance(rate, int | float) else None


def tools_told(memory: StoredMemory) -> frozenset[str]:
    """The tools that an episode's run called."""
    tags = memory.record.get("tags")
    named = tags if isinstance(tags, list | tuple) else ()
    return frozenset(tag[len(_TAG) :] for tag in named if isinstance(tag, str) and tag.startswith(_TAG))


# -- rendering ----------------------------------------------------------------------------------------


def render_steps(steps: Sequence[EpisodeStep], *, is_cut: bool = False) -> str:
    """`get_user, then (get_order, then ship) 3 times, then report`; of many parts the first and the last."""
    texts = [step.text for step in steps]
    parts: list[str] = []
    at = 0
    while at < len(texts):
        length, times = _repeated(texts, at)
        shown = ", then ".join(texts[at : at + length])
        parts.append(shown if times == 1 else f"{shown if length == 1 else f'({shown})'} {times} times")
        at += length * times
    if len(parts) <= _PARTS_MAX and not is_cut:
        return ", then ".join(parts)
    return f"{', then '.join(parts[:_FIRST])}{_CUT}{', then '.join(parts[-_LAST:])}"


def _repeated(texts: Sequence[str], at: int) -> tuple[int, int]:
    """How many steps from here on repeat together, and how often: the stretch that covers most."""
    best = 1, _times(texts, at, 1)
    for length in range(2, _STRETCH_MAX + 1):
        times = _times(texts, at, length)
        is_plain = all(one != other for one, other in pairwise(texts[at : at + length]))
        if times > 1 and is_plain and length * times > best[0] * best[1]:
            best = length, times
    return best


def _times(texts: Sequence[str], at: int, length: int) -> int:
    block, times = texts[at : at + length], 1
    while texts[at + times * length : at + (times + 1) * length] == block:
        times += 1
    return times


# -- to search by -------------------------------------------------------------------------------------


def said_words(texts: Iterable[str]) -> str:
    """The content words of these texts, each once."""
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
    """The later message of a user that adds most content words, in one line; or nothing."""
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
    """What the steps did, piece by piece and each once: calls with their arguments, errors, files."""
    calls = [step for step in steps if step.kind == "call"][:_STEPS_READ_MAX]
    pieces: dict[str, None] = {}
    for step in calls:
        given = " ".join(f"{name}={value}" for name, value in list(_arguments(step.detail or ""))[:_ARGS_MAX])
        pieces[f"{step.action} {given}".strip()] = None
        if is_error(step) and step.text:
            pieces[f"{step.action} failed: {_error_line(step)}"] = None
    files = dict.fromkeys(name for step in calls for text in (step.detail, step.text) for name in _files(text))
    return [*pieces, *list(files)[:_FILES_MAX]]


def transcript(run: RunFacts, clean: Clean) -> str:
    """The run as a search reads it; parts that may not be quoted are left out."""
    said, did = run.said or "", did_words(run.steps)
    if not clean("\n".join((said, *did))):
        said, did = said if clean(said) else "", [piece for piece in did if clean(piece)]
    return "\n".join(part for part in (said, _within(did, "; ", DID_CHARS_MAX)) if part)


def tools_of(steps: Iterable[StepFacts]) -> frozenset[str]:
    """The tools that these steps called."""
    return frozenset(step.action for step in steps if step.kind == "call")


def _arguments(line: str) -> Iterator[tuple[str, str]]:
    """Names and values in a line of arguments, JSON (whole or cut short) or `name=value`; nested ones too."""
    seen: set[tuple[str, str]] = set()
    for found in (_JSON_PAIR if line.startswith("{") else _PAIR).finditer(line):
        pair = found[1], _SPACE.sub(" ", found[2].strip("\"'")).strip()
        if pair[1] and len(pair[1]) <= _VALUE_CHARS_MAX and pair not in seen:
            seen.add(pair)
            yield pair


def _files(text: str | None) -> Iterator[str]:
    return (found[0] for found in _FILE.finditer(text or ""))


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
