"""Episodes: a run's request, outcome, actions and last error, stored as fields and rendered on recall.

A step keeps the tool's name and the arguments that are likely to recur. An argument given by the task itself
(`region=us`, when the user asked for us) is kept as `region as asked`, because another task asks for another. The last
error is the tool's own text: quoted with its source, cut to one line, and withheld if it reads like instructions. Runs
learned above the user's level have no texts, so their steps are names alone. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from muniment.core.record import JsonObject
from muniment.core.text.analyzer import stop_words
from muniment.core.text.patterns import lazy_pattern
from muniment.learning._features import folded_words, is_asked, is_error, is_plain_path, is_plain_value
from muniment.learning.records import RunFacts, StepFacts, StoredMemory
from muniment.store.injection import reads_like_instructions

__all__ = [
    "ASKED_CHARS",
    "Clean",
    "Count",
    "Episode",
    "EpisodeStep",
    "Writer",
    "asked_later",
    "did_words",
    "episode_fields",
    "episode_of",
    "passed_of",
    "read_episode",
    "render_steps",
    "said_words",
    "steps_told",
    "transcript",
]

Count = Callable[[str], int]
"""Counts the tokens of a text."""
Clean = Callable[[str], bool]
"""Returns whether a text is free of secrets, and of attempts to instruct its reader."""

ASKED_CHARS = 110
"""Characters of the request shown by an episode: several episodes must fit into a prompt."""
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
_CUT = " … "

_WORD = lazy_pattern(r"\w[\w'-]*")
_JSON_PAIR = lazy_pattern(
    r'"([A-Za-z_][\w.-]{0,40})"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){0,200}"|-?\d[\d.]{0,12}|true|false)'
)
_PAIR = lazy_pattern(r"(?<![\w.])([A-Za-z_][\w.]{0,40})=(\"[^\"]{0,80}\"|'[^']{0,80}'|[^,;\s]{1,80})")
_SETTING = lazy_pattern(r"[A-Za-z]{0,3}\d{1,4}")
"""`200`, `v2`, `d40`: settings are shown as they are, but not used in contrasts."""
_FILE = lazy_pattern(
    r"(?<![\w./-])(?:[\w.-]{1,60}/){0,8}[\w-]{1,60}\.(?:py|pyi|ipynb|js|jsx|ts|tsx|go|rs|java|kt|rb|php|c|cc|cpp|h|hpp|cs|sh"
    r"|sql|md|rst|txt|json|toml|ya?ml|ini|cfg|csv|html|css|xml|xlsx|pdf)(?![\w/])"
)
_ERROR_NAME = lazy_pattern(r"\b[A-Z]\w{0,60}(?:Error|Exception)\b")
_SPACE = lazy_pattern(r"\s+")
_ENDS = "?!…？！。"
"""Sentence endings other than a full stop."""
_DIGIT = lazy_pattern(r"\d")


class EpisodeStep(NamedTuple):
    """A call of a run: its tool, the reusable arguments, and whether it failed."""

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
    """Steps in the middle are left out, so the sequence cannot be followed as it is."""
    error: tuple[str, str]
    """The last error's tool and text; empty if there was none."""
    answer: str
    """The first words of the answer, for a run without calls."""

    @property
    def did(self) -> str:
        if not self.steps:
            return f'Answered: "{self.answer}"' if self.answer else "Called nothing"
        return f"Did: {render_steps(self.steps, is_cut=self.is_cut)}"

    @property
    def ending(self) -> str:
        """The error that ended a failing run, or that a passing run overcame, as a sentence; empty if none."""
        tool, said = self.error
        if not tool:
            return ""
        answered = f'{tool} answered "{said}"' if said else f"{tool} failed"
        return f"It got past an error: {answered}." if self.outcome == "passed" else f"At the end {answered}."

    @property
    def text(self) -> str:
        """The episode as one line of a prompt."""
        asked = self.request if self.request[-1:] in ("…", "?", "!") else f"{self.request}."
        ended = {"passed": "Passed", "failed": "Failed"}.get(self.outcome, "Not judged yet")
        ended = f"{ended}: {', '.join(self.reasons)}" if self.reasons else ended
        return " ".join(part for part in (f"Asked: {asked}", f"{ended}.", f"{self.did}.", self.ending) if part)


class Writer(NamedTuple):
    """Writes one line within a token budget, leaving out texts that may not be quoted."""

    count: Count
    tokens_max: int
    clean: Clean

    def quote(self, text: str | None, chars_max: int) -> str:
        """Quote a text on one line, cut between words; empty if it may not be quoted."""
        line = _SPACE.sub(" ", text or "").strip()
        if not line or not self.clean(line):
            return ""
        if len(line) <= chars_max:
            return line.rstrip(".")
        cut = line[:chars_max]
        return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"

    def join(self, sentences: Sequence[str]) -> str:
        """Join the sentences that fit, the first at least in part; later ones are dropped first."""
        kept = [sentence if sentence[-1] in _ENDS else f"{sentence}." for sentence in sentences if sentence]
        while len(kept) > 1 and self.count(" ".join(kept)) > self.tokens_max:
            kept.pop()
        text = " ".join(kept)
        chars = len(text)
        while chars and self.count(text) > self.tokens_max:
            chars = chars * 3 // 4
            text = f"{text[:chars].rstrip('…')}…"
        return text


# -- from a run ---------------------------------------------------------------------------------------


def episode_fields(run: RunFacts, clean: Clean, request: str) -> JsonObject:
    """The fields of a run's episode; `request` is the quoted task, or empty if it may not be quoted."""
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
    if (error := _last_error(calls, clean)) is not None:
        fields["error"] = dict(zip(("tool", "said"), error, strict=True))
    if not calls and (answer := _answer([step.text for step in reversed(run.steps) if step.text], clean)):
        fields["answer"] = answer
    return fields


def steps_told(run: RunFacts, clean: Clean) -> tuple[list[EpisodeStep], bool]:
    """The calls of a run as stored, and whether some in the middle are left out."""
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
    given = []
    for name, value in _arguments(step.detail or ""):
        if is_asked(value, asked):
            given.append(f"{name} as asked")
        elif _is_telling(value):
            given.append(f"{name}={value}")
    return EpisodeStep(step.action, tuple(given[:_SHOWN_ARGS_MAX]), failed)


def _is_telling(value: str) -> bool:
    if _FILE.fullmatch(value) is not None:
        return is_plain_path(value)
    return is_plain_value(value) or _SETTING.fullmatch(value) is not None


def _step_wire(step: EpisodeStep) -> JsonObject:
    said: JsonObject = {"tool": step.tool}
    if step.given:
        said["given"] = list(step.given)
    return said | {"failed": True} if step.failed else said


def _last_error(calls: Sequence[StepFacts], clean: Clean) -> tuple[str, str] | None:
    """The tool of the last failed call, and its quotable answer; None if every call succeeded."""
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
    """The first words of the last answer; empty if it contains a number, which is specific to the task."""
    line = _SPACE.sub(" ", texts[0]).strip().replace('"', "'") if texts else ""
    words = line.split(" ")
    said = " ".join(words[:_ANSWER_WORDS_MAX]).rstrip(".,;:!?")
    said = f"{said} …" if len(words) > _ANSWER_WORDS_MAX else said
    return "" if _DIGIT.search(said) or not clean(said) else said


# -- from a record ------------------------------------------------------------------------------------


def episode_of(memory: StoredMemory) -> Episode | None:
    """The fields of an episode; None for another kind, and for episodes of earlier versions, which store a sentence."""
    return read_episode(memory.record) if memory.kind == "reasoning" else None


def read_episode(record: Mapping[str, Any]) -> Episode | None:
    steps, outcome = record.get("steps"), record.get("outcome")
    if not isinstance(steps, list | tuple) or not isinstance(outcome, str):
        return None
    error = record.get("error")
    named = (error.get("tool"), error.get("said")) if isinstance(error, Mapping) else ("", "")
    return Episode(
        request=str(record.get("request") or "not quoted"),
        outcome=outcome,
        reasons=_texts(record.get("reasons")),
        steps=tuple(_step(each) for each in steps if isinstance(each, Mapping)),
        is_cut=record.get("cut") is True,
        error=(str(named[0] or ""), str(named[1] or "")),
        answer=str(record.get("answer") or ""),
    )


def _step(kept: Mapping[str, Any]) -> EpisodeStep:
    return EpisodeStep(str(kept.get("tool") or ""), _texts(kept.get("given")), kept.get("failed") is True)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


def passed_of(memory: StoredMemory) -> bool | None:
    """Return whether the episode's run passed; its `pass_p_hat` includes later runs once it was used."""
    tags, rate = memory.record.get("tags"), memory.record.get("pass_p_hat")
    for word in ("pass", "fail"):
        if isinstance(tags, list | tuple) and word in tags:
            return word == "pass"
    return rate >= _HALF if not memory.with_tally.n and isinstance(rate, int | float) else None


# -- rendering ----------------------------------------------------------------------------------------


def render_steps(steps: Sequence[EpisodeStep], *, is_cut: bool = False) -> str:
    """`get_user, then (get_order, then ship) 3 times, then report`; if there are many parts, the first and the last."""
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
    """The length and count of the repetition starting here that covers the most steps."""
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


# -- search text --------------------------------------------------------------------------------------


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
    """The later user message that adds most content words, in one line; may be empty."""
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
    """Distinct words for the actions of the steps: calls with their arguments, errors, files."""
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
    """The text of a run for search, without parts that may not be quoted."""
    said, did = run.said or "", did_words(run.steps)
    if not clean("\n".join((said, *did))):
        said, did = said if clean(said) else "", [piece for piece in did if clean(piece)]
    return "\n".join(part for part in (said, _within(did, "; ", DID_CHARS_MAX)) if part)


def _arguments(line: str) -> Iterator[tuple[str, str]]:
    """Names and values in a line of arguments: JSON (possibly truncated or nested) or `name=value`."""
    seen: set[tuple[str, str]] = set()
    for found in (_JSON_PAIR if line.startswith("{") else _PAIR).finditer(line):
        pair = found[1], _SPACE.sub(" ", found[2].strip("\"'")).strip()
        if pair[1] and len(pair[1]) <= _VALUE_CHARS_MAX and pair not in seen:
            seen.add(pair)
            yield pair


def _files(text: str | None) -> Iterator[str]:
    return (found[0] for found in _FILE.finditer(text or ""))


def _within(parts: Iterable[str], between: str, chars_max: int) -> str:
    """The leading parts that fit."""
    kept: list[str] = []
    room = chars_max
    for part in parts:
        room -= len(part) + len(between)
        if room < 0:
            break
        kept.append(part)
    return between.join(kept)
