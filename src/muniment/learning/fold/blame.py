"""Where a failing run went wrong, without a model: the steps in the order in which they deserve a look.

Each step has a few signals, each from 0 to 1, and the weights make of them one score. Weights are learned by
`benchmarks/learn_blame.py` from failures whose deciding step people had marked. It points at steps and proves nothing:
a draft names them as evidence, and whoever promotes it looks there first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import exp
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.learning.stored_memory import RunFacts, StepFacts
from muniment.verify.taxonomy import detail_of

__all__ = ["WEIGHTS", "Blame", "Signals", "blame", "is_error", "only_looks", "signals_of"]

_FEW_WORDS = 8
_OFTEN = 3
_NAMED = 3.0
"""What it weighs that the verifier itself names the step's tool. Not learned: no marked failure has a verifier."""

_ERROR = re.compile(
    r"Traceback \(most recent|\b[A-Z]\w{0,60}(?:Error|Exception)\b|\b(?:exit ?code:? ?[1-9]|execution failed)"
    r"|(?i:\berror\b|\bunknown language\b|\bnot found\b|\btimed? ?out\b)|错误|失败|오류|실패"
)
_GUESS = re.compile(
    r"\b(?:assum(?:e|es|ed|ing|ption|ptions)|presum(?:e|es|ed|ably|ing)|hypothetical(?:ly)?|suppos(?:e|ed|edly|ing)"
    r"|guess(?:es|ed|ing)?|likely|probably|perhaps|might|may be|seems?|appears?|estimated?|approximate(?:ly)?"
    r"|typical(?:ly)?|common knowledge|based on (?:my|our|general|common|known)|simulat(?:e|es|ed|ing|ion)|sample"
    r"|placeholder|example|path[_/]to|dummy|mock)\b|可能|大概|也许|假设|应该是|아마|것 같|추정|가정",
    re.IGNORECASE,
)
_LACK = re.compile(
    r"\b(?:unable|cannot|can't|could not|couldn't|unfortunately|not (?:available|accessible|feasible|provided|possible)"
    r"|do(?:es)? not (?:have|contain|provide)|don't have|without (?:direct )?access|manual(?:ly)?|missing"
    r"|lack(?:s|ing)?|fail(?:s|ed|ure)?|issue|incorrect)\b|无法|找不到|没有找到|없습니다|찾을 수 없|불가능",
    re.IGNORECASE,
)
_CODE = "```"
_READS = lazy_pattern(
    r"(?i)(?:get|search|list|read|find|look|lookup|fetch|query|show|view|describe|count|calc(?:ulate)?|think|browse|open"
    r"|retrieve|check|select|inspect|stat|ls|cat|grep)(?![a-z])"
)
"""Tools that only look: a run goes wrong by what it does with the answer."""
_NAME = lazy_pattern(r"\d[\d,.]*\d|\d|[A-Z][\w'-]+")
_WORD = lazy_pattern(r"\w+")


class Signals(NamedTuple):
    """What is noticed of one step; as weights, what each counts."""

    came_back: float
    """Not the agent's own: a tool's answer, the user's words."""
    acts: float
    """It writes code, or calls a tool that does more than look."""
    acts_first: float
    """It is the first that does: what starts wrong stays wrong."""
    failed: float
    """What came of it was an error."""
    guess: float
    """Words of assumption."""
    lack: float
    """It admits that something is missing or did not work."""
    new: float
    """The share of its names and numbers that nothing before it holds: claims from nowhere."""
    says_little: float


WEIGHTS = Signals(
    came_back=-1.0, acts=0.5, acts_first=0.8, failed=0.45, guess=0.65, lack=1.2, new=0.95, says_little=-0.95
)
"""`benchmarks/learn_blame.py`: held out, the first step named is the marked one in 44 of 100 failures; a step drawn by
chance in 12, the last in 1, the best place in 29."""


class Blame(NamedTuple):
    """A step, the share of the blame that falls on it, and the signals that raised it."""

    step: int
    evidence_id: str
    score: float
    why: tuple[str, ...]


def blame(run: RunFacts) -> list[Blame]:
    """Every step of the run, the most suspect first; ties by the earlier step. Nothing for a run without steps."""
    found = signals_of(run.steps, run.x_summary)
    named = _named_by_constraint(run)
    scores = [
        sum(weight * value for weight, value in zip(WEIGHTS, signals, strict=True)) + _NAMED * is_named
        for signals, is_named in zip(found, named, strict=True)
    ]
    total = sum(map(exp, scores))
    blames = [
        Blame(place, step.evidence_id, exp(score) / total, _reasons(signals, is_named))
        for place, (step, score, signals, is_named) in enumerate(zip(run.steps, scores, found, named, strict=True))
    ]
    return sorted(blames, key=lambda one: (-one.score, one.step))


def is_error(step: StepFacts) -> bool:
    """Whether a step is known to have failed; or, where nothing is known, reads like a failure."""
    if step.ok is not None:
        return not step.ok
    return any(_ERROR.search(text) is not None for text in (step.text, step.detail) if text)


def only_looks(tool: str) -> bool:
    """Whether a tool, by its name, reads and changes nothing."""
    return _READS.match(tool) is not None


def signals_of(steps: Sequence[StepFacts], task: str = "") -> list[Signals]:
    """The signals of each step, in order."""
    seen = set(_NAME.findall(task))
    has_acted = False
    found = []
    for place, step in enumerate(steps):
        is_own = step.kind in ("call", "say")
        said = _own_words(step)
        acts = not only_looks(step.action) if step.kind == "call" else is_own and _CODE in said
        names = set(_NAME.findall(said))
        found.append(
            Signals(
                came_back=float(not is_own),
                acts=float(acts),
                acts_first=float(acts and not has_acted),
                failed=float(is_own and _came_to_nothing(steps, place)),
                guess=_often(_GUESS, said) if is_own else 0.0,
                lack=_often(_LACK, said) if is_own else 0.0,
                new=len(names - seen) / max(_OFTEN, len(names)) if is_own else 0.0,
                says_little=float(step.kind != "call" and len(_WORD.findall(said)) < _FEW_WORDS),
            )
        )
        seen |= names if step.kind != "call" else names.union(_NAME.findall(step.text or ""))
        has_acted = has_acted or acts
    return found


def _own_words(step: StepFacts) -> str:
    """What the agent itself put there: of a call its arguments, and not what came back."""
    return (step.detail if step.kind == "call" else step.text) or ""


def _came_to_nothing(steps: Sequence[StepFacts], place: int) -> bool:
    """The step failed, or an answer that came back to it did."""
    if steps[place].kind == "call" and is_error(steps[place]):
        return True
    for step in steps[place + 1 :]:
        if step.kind != "answer":
            return False
        if is_error(step):
            return True
    return False


def _often(pattern: re.Pattern[str], text: str) -> float:
    return min(_OFTEN, len(pattern.findall(text))) / _OFTEN


def _named_by_constraint(run: RunFacts) -> list[bool]:
    """Whether a broken constraint names the step's tool, such as TOOL:CALL_FORBIDDEN:delete_user."""
    details = {key.split(":", 2)[2] for key in run.violated if key.startswith("TOOL:") and key.count(":") > 1}
    return [step.kind == "call" and bool(details) and detail_of(step.action) in details for step in run.steps]


def _reasons(signals: Signals, is_named: bool) -> tuple[str, ...]:
    """What spoke against the step, the weightiest first."""
    parts = [
        (weight * value, name)
        for weight, value, name in zip(WEIGHTS, signals, Signals._fields, strict=True)
        if weight * value > 0
    ]
    names = [name for _, name in sorted(parts, key=lambda part: (-part[0], part[1]))]
    return ("named_by_verifier", *names) if is_named else tuple(names)
