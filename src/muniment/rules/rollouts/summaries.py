"""One attempt in a few lines (RC-20): its answer, its grounds, what it assumed and checked. No chain of thought.

What the agent said of itself is taken where it said it; else what the text marks as such, and what was seen of the run.
A summary is checked before anybody may read it, whoever made it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from muniment.contracts.runs import RolloutSummary, VerifierResult
from muniment.core.canonical import short_id
from muniment.core.record import RULECRAFT_VERSION
from muniment.errors import InvalidRecord, Issue
from muniment.rules.rollouts.best_attempt import score_in
from muniment.rules.rollouts.thoughts import find_thoughts, without_thoughts

__all__ = ["FORMAT", "Attempted", "answer_of", "check_summary", "summarise", "summary_text"]

FORMAT = "rollout_summary_v1"
_TOKENS_MIN, _TOKENS_MAX = 256, 512
_BYTES_MAX = 6 * 1024
_READ_CHARS = 32 * 1024
"""Of a long text its beginning and its end are read."""
_LINE_CHARS = 400
_GROUNDS_MAX, _MORE_MAX = 3, 5
_NOTHING = "(no answer)"
_NO_GROUNDS = "no grounds were given"
_MARK = r"[\s>*_#\-•]*"
_ANSWER = re.compile(
    rf"{_MARK}(?:the\s+)?(?:final\s+)?(?:answer|result|정답|답|答案)(?:\s+is)?[\s*_]*[:：][\s*_]*", re.IGNORECASE
)
_GROUND = re.compile(rf"{_MARK}(?:(?:because|since|reason|grounds?|evidence)\b|근거|因为|理由)", re.IGNORECASE)
_ASSUMED = re.compile(rf"{_MARK}(?:assum(?:e|es|ed|ing|ptions?)\b|가정|假设)", re.IGNORECASE)
_CHECKED = re.compile(rf"{_MARK}(?:(?:check(?:s|ed)?|verified|tested|edge case)\b|검증|检查)", re.IGNORECASE)

Count = Callable[[str], int]


class Attempted(NamedTuple):
    """What is known of an attempt when it is summarised."""

    trace_id: str
    text: str
    result: VerifierResult
    tools: Sequence[str] = ()
    """As they were seen to be called."""
    told: Mapping[str, Any] | None = None
    """What the agent says of itself: answer, key_reasoning, assumptions, checks, confidence."""


def summarise(attempt: Attempted, count: Count, tokens_max: int = _TOKENS_MAX) -> RolloutSummary:
    """The summary of an attempt, within its bound and without a thought in it."""
    own = attempt.told or {}
    text = without_thoughts(_ends(attempt.text))
    lines = [line for line in map(_flat, text.split("\n")) if line]
    answer = _line(own.get("answer")) or answer_of(text) or _NOTHING
    grounds = _lines(own.get("key_reasoning")) or _marked(lines, _GROUND) or _tool_grounds(attempt)
    plain: dict[str, Any] = {
        "schema_version": RULECRAFT_VERSION,
        "summary_id": short_id("sum", [attempt.trace_id, FORMAT]),
        "trace_id": attempt.trace_id,
        "answer": answer,
        "key_reasoning": grounds[:_GROUNDS_MAX] or [_NO_GROUNDS],
        "assumptions": (_lines(own.get("assumptions")) or _marked(lines, _ASSUMED))[:_MORE_MAX],
        "checks": (_lines(own.get("checks")) or _marked(lines, _CHECKED) or _broken(attempt.result))[:_MORE_MAX],
        "verifier_score": score_in(attempt.result),
        "verifier_mirror": {"verdict": attempt.result.verdict, "outcome": attempt.result.outcome},
        "compaction_policy": {"max_tokens": tokens_max, "forbid_cot": True, "format": FORMAT},
    }
    sure = own.get("confidence")
    if isinstance(sure, int | float) and not isinstance(sure, bool) and 0 <= sure <= 1:
        plain["confidence"] = sure
    summary = RolloutSummary.from_wire(_fitted(plain, count, tokens_max))
    check_summary(summary, count)
    return summary


def summary_text(summary: RolloutSummary) -> str:
    """A summary as a synthesis reads it."""
    parts = {"Grounds": summary.key_reasoning, "Assumed": summary.assumptions, "Checks": summary.checks}
    lines = (f"{name}: {'; '.join(each)}" for name, each in parts.items() if each)
    return "\n".join([f"Answer: {summary.answer}", *lines])


def check_summary(summary: RolloutSummary, count: Count) -> None:
    """Refuse a summary that thinks aloud, is over its bound, or does not say that it may not (forbid_cot)."""
    wrong: list[Issue] = []
    policy = summary.compaction_policy
    most = None if policy is None else policy.max_tokens
    if policy is None or not policy.forbid_cot:
        wrong.append(Issue("$.compaction_policy.forbid_cot", "should be true"))
    if most is None or not _TOKENS_MIN <= most <= _TOKENS_MAX:
        wrong.append(Issue("$.compaction_policy.max_tokens", f"should be from {_TOKENS_MIN} to {_TOKENS_MAX}"))
    text = summary_text(summary)
    if count(text) > min(most or _TOKENS_MAX, _TOKENS_MAX):
        wrong.append(Issue("$", f"{count(text)} tokens are over its bound"))
    parts = [("answer", summary.answer), *((name, each) for name in _LISTS for each in getattr(summary, name) or ())]
    wrong += [
        Issue(f"$.{name}", f"reads like thinking: {found}") for name, each in parts for found in find_thoughts(each)
    ]
    if wrong:
        raise InvalidRecord("not a summary that may be read", wrong, hint="results and grounds, no chain of thought")


def answer_of(text: str) -> str:
    """The answer in one line: what is marked as one, else the last line that says something."""
    lines = [line for line in map(_flat, text.split("\n")) if line]
    for number in range(len(lines) - 1, -1, -1):
        found = _ANSWER.match(lines[number])
        if found is not None:
            said = lines[number][found.end() :] or (lines[number + 1] if number + 1 < len(lines) else "")
            if said:
                return said[:_LINE_CHARS]
    return lines[-1][:_LINE_CHARS] if lines else ""


_LISTS = ("key_reasoning", "assumptions", "checks")


def _marked(lines: Iterable[str], mark: re.Pattern[str]) -> list[str]:
    return [line[:_LINE_CHARS] for line in lines if mark.match(line)]


def _tool_grounds(attempt: Attempted) -> list[str]:
    """Grounds that need nobody's word: which tools were called."""
    return [_line(f"called {', '.join(dict.fromkeys(attempt.tools))}")] if attempt.tools else []


def _broken(result: VerifierResult) -> list[str]:
    words = [*(result.violated_constraints or ()), *(result.reason_codes or ())]
    return [_line(f"the verifier held against it: {', '.join(words)}")] if words else []


def _lines(given: Any) -> list[str]:
    found = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else []
    return [line for line in map(_line, found) if line]


def _line(given: Any) -> str:
    """What somebody says in one line, without thinking aloud."""
    return _flat(without_thoughts(_ends(given)))[:_LINE_CHARS] if isinstance(given, str) else ""


def _flat(text: str) -> str:
    return " ".join(text.split())


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _READ_CHARS else f"{text[:_READ_CHARS]}\n{text[-_READ_CHARS:]}"


def _fitted(plain: dict[str, Any], count: Count, tokens_max: int) -> dict[str, Any]:
    """The parts in the order of their worth, as far as they fit; of what does not fit whole, its beginning."""
    kept = plain | {"answer": "", **{name: [] for name in _LISTS}}

    def fits(trial: dict[str, Any]) -> bool:
        text = summary_text(RolloutSummary.from_wire(trial))
        return count(text) <= tokens_max and len(text.encode("utf-8", "surrogatepass")) <= _BYTES_MAX

    def most_of(text: str, put: Callable[[str], dict[str, Any]]) -> str:
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(put(text[:middle])) else (low, middle - 1)
        cut = text[:low]
        return cut if low == len(text) or find_thoughts(cut) == () else ""

    kept["answer"] = most_of(plain["answer"], lambda text: kept | {"answer": text})
    for name in _LISTS:
        for line in plain[name]:
            cut = most_of(line, lambda text, name=name: kept | {name: [*kept[name], text]})  # type: ignore[misc]
            if cut:
                kept[name] = [*kept[name], cut]
    return {key: value for key, value in kept.items() if value or key in ("answer", "key_reasoning", "verifier_score")}
