"""One call in which four roles talk (mode `sot`): the prompt, and what is read of the talk without a model.

The talk is not kept. What is kept is the answer after it, and counts: questions answered, changes of view, conflicts,
reconciliations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

__all__ = ["ROLES", "Talk", "read_talk", "sot_prompt"]

ROLES = ("Solver", "Challenger", "Mediator", "Verifier")
_ANSWER = "Answer:"
_ROLE = re.compile(rf"^[ \t>#*_\-\[(]*({'|'.join(ROLES)})\b[^:：\n]{{0,24}}[:：][*_\])]*[ \t]*", re.I | re.M)
_ANSWERED = re.compile(r"^[ \t>#*_]*(?:final\s+)?answer[*_]*\s*[:：][*_]*[ \t]*", re.I | re.M)
_SHIFT = re.compile(
    r"\b(?:on the other hand|alternatively|instead|another (?:way|view|reading)"
    r"|from (?:the|another) (?:point|angle|side)|seen (?:from|otherwise)|what if)\b"
    r"|반면|다른 (?:관점|방법)|另一方面|换个角度",
    re.I,
)
_CONFLICT = re.compile(
    r"\b(?:disagree|wrong|incorrect|mistaken|contradicts?|does(?:n['’]t| not) (?:hold|follow|work)|fails?|flaw"
    r"|counter-?example|not (?:right|true|correct)|violates?|objection)\b|틀렸|모순|不对|错误|矛盾",
    re.I,
)
_RECONCILE = re.compile(
    r"\b(?:agree(?:d|s)?|both (?:are|points|views|hold)|taking both|compromise|reconcile[sd]?|combin(?:e|ing)|settled?"
    r"|resolved?|in common|accept(?:ed|s)?|fair point|so we)\b|동의|합의|종합하면|同意|一致|综合",
    re.I,
)


class Talk(NamedTuple):
    """What is read of an answer in mode `sot`."""

    answer: str
    """What stands after the talk; the whole text where there was no talk."""
    signals: dict[str, Any]


def sot_prompt(prompt: str, turns_max: int) -> str:
    """The task, to be talked through by the four roles."""
    return (
        f"{prompt}\n\nTalk it through in {turns_max} turns at most. "
        "In each turn four roles speak, one short line each:\n"
        "Solver: proposes an answer, or a better one.\n"
        "Challenger: asks what could be wrong with it.\n"
        "Mediator: says what both have in common and what is open.\n"
        "Verifier: checks the proposal against the task.\n"
        f"Then, on a line of its own, write `{_ANSWER}` and after it nothing but the answer."
    )


def read_talk(text: str) -> Talk:
    """The answer and the signals of a talk."""
    starts = list(_ROLE.finditer(text))
    if not starts:
        return Talk(text, _signals([]))
    ends = [found for found in _ANSWERED.finditer(text) if found.start() > starts[0].start()]
    end = ends[-1] if ends else None
    last = len(text) if end is None else end.start()
    spoken = [found for found in starts if found.start() < last]
    bounds = [*(found.start() for found in spoken[1:]), last]
    said = [
        (found[1].capitalize(), text[found.end() : stop].strip()) for found, stop in zip(spoken, bounds, strict=True)
    ]
    answer = text[end.end() :].strip() if end is not None else said[-1][1]
    return Talk(answer, _signals(said))


def _signals(said: Sequence[tuple[str, str]]) -> dict[str, Any]:
    counts = {name: sum(role == name for role, _ in said) for name in ROLES}
    return {
        "qa": _answered(said),
        "shift": sum(len(_SHIFT.findall(text)) for _, text in said),
        "conflict": sum(bool(_CONFLICT.search(text)) for role, text in said if role != "Mediator"),
        "reconcile": sum(bool(_RECONCILE.search(text)) for _, text in said),
        "turns": max(counts.values(), default=0),
        "roles": [name for name in ROLES if counts[name]],
    }


def _answered(said: Sequence[tuple[str, str]]) -> int:
    """Questions that another role spoke after."""
    return sum("?" in text or "？" in text for (role, text), (other, _) in pairwise(said) if role != other)
