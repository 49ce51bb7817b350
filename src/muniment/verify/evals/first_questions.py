"""A first file of questions, made from what a store knows of its users as facts. Pure.

Each is a start, to be asked as people would ask it: a fact has a value and evidence, so that the question has an
answer, and older values of the same key make it one about what changed. What another user said and this one never did
makes a question that nothing answers, and a value that must not be told. Turns that no fact was made of give none: a
question that quotes its own answer measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_text

__all__ = ["KnownValue", "first_questions"]

_UNANSWERED_MAX = 3
"""Questions that nothing answers, for one user."""
_OWN = "user"


class KnownValue(NamedTuple):
    """A value that is or was known under a key, and the events it rests on."""

    key: str
    value: Any
    sources: tuple[str, ...]
    is_current: bool

    @property
    def text(self) -> str:
        return self.value if isinstance(self.value, str) else canonical_text(self.value)


def first_questions(known: Mapping[str, Sequence[KnownValue]]) -> Iterator[dict[str, Any]]:
    """Questions by what is known of each user, in the order of their ids and keys."""
    current = {
        user: {each.key: each for each in values if each.is_current and each.sources and each.text.strip()}
        for user, values in sorted(known.items())
    }
    for user, by_key in current.items():
        for key in sorted(by_key):
            yield _answered(user, by_key[key], [each for each in known[user] if each.key == key])
        held = {each.key for each in known[user]}
        others = {key: each for other, theirs in current.items() if other != user for key, each in theirs.items()}
        for key in sorted(others.keys() - held)[:_UNANSWERED_MAX]:
            yield _unanswered(user, others[key])


def _answered(user: str, value: KnownValue, all_of_key: Sequence[KnownValue]) -> dict[str, Any]:
    question = {
        "question": _ask(value.key),
        "user_id": user,
        "answers": [value.text],
        "evidence": list(value.sources),
    }
    older = [each for each in all_of_key if not each.is_current and each.text != value.text]
    stale = dict.fromkeys(id_ for each in older for id_ in each.sources if id_ not in value.sources)
    if stale:
        question["stale"] = list(stale)
    return question | {"note": f"from the fact {value.key}: ask it as {user} would"}


def _unanswered(user: str, value: KnownValue) -> dict[str, Any]:
    return {
        "question": _ask(value.key),
        "user_id": user,
        "answerable": False,
        "not_told": [value.text],
        "note": f"another user's {value.key}: check that {user} never said it",
    }


def _ask(key: str) -> str:
    parts = [part.replace("_", " ").replace("-", " ") for part in key.split(".") if part]
    named = parts[1:] if parts[0] == _OWN and len(parts) > 1 else parts
    return f"What is my {'’s '.join(named)}?"
