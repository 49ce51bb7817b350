"""The questions of an eval: the user, the question and the expected result. Pure.

    {"question": "Where does Ana live?", "user_id": "ana", "answers": ["Berlin"],
     "evidence": ["I moved to Berlin in May."], "stale": ["I live in Hamburg."], "not_told": ["Hamburg"]}
    {"question": "What is her dog called?", "user_id": "ana", "answerable": false}

A piece of evidence is the id of an event, or words that occur in one. Errors name the place of the question; no
question is asked until the whole file has been read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import StringConstraints

from muniment.core.canonical import canonical_text, digest_of
from muniment.core.instants import parse_instant
from muniment.core.record import Absent, Items, Record
from muniment.core.scope import IdText
from muniment.errors import InvalidInput, MunimentError

_TEXT_CHARS_MAX = 16_000
_HINT = 'such as {"question": "Where does Ana live?", "user_id": "ana", "answers": ["Berlin"]}'
Text = Annotated[str, StringConstraints(min_length=1, max_length=_TEXT_CHARS_MAX, pattern=r"\S")]


class EvalQuestion(Record):
    """One question of an eval. Its user may be given by the caller instead."""

    id: Absent[IdText] = None
    """Identifies the question across runs; by default derived from the question."""
    question: Text
    asked_at: Absent[str] = None
    """When it is asked (ISO 8601); by default the time of the user's last turn."""
    user_id: Absent[IdText] = None
    agent_id: Absent[IdText] = None
    session_id: Absent[IdText] = None
    """The session it is asked in; by default an empty one."""
    answers: Items[Text] = ()
    """Texts of which any one answers it."""
    evidence: Items[Text] = ()
    """Required evidence: ids of events, or words that occur in one."""
    stale: Items[Text] = ()
    """Events, or words of them, that once answered it and are outdated."""
    not_told: Items[Text] = ()
    """Texts that must not be shown: an outdated value, or another person's words."""
    answerable: bool = True
    """False if nothing in memory answers it, which should be noticed."""
    note: Absent[str] = None
    """Note for editors of the file."""

    @property
    def name(self) -> str:
        """Id of the question."""
        if self.id is not None:
            return self.id
        return f"q_{digest_of([self.question, self.user_id, self.session_id, self.asked_at])[:10]}"

    @property
    def expected(self) -> dict[str, Any]:
        """The expectations as written."""
        fields = ("answers", "evidence", "stale", "not_told")
        said: dict[str, Any] = {name: list(getattr(self, name)) for name in fields if getattr(self, name)}
        return said if self.answerable else said | {"answerable": False}


class Placed(NamedTuple):
    """A parsed value and its place: `questions.jsonl:3`."""

    where: str
    data: Any


def read_questions(documents: Iterable[Placed]) -> list[EvalQuestion]:
    """Read the questions of a file: one per document, or lists of them. Raises for the first invalid one."""
    questions: list[EvalQuestion] = []
    places: dict[str, str] = {}
    for where, data in documents:
        many = isinstance(data, list)
        for index, each in enumerate(data if many else [data]):
            question = read_question(each, where, f"$[{index}]" if many else "$")
            here = f"{where}[{index}]" if many else where
            if question.name in places:
                raise InvalidInput(
                    f"{here}: the question {question.name!r:.80} stands at {places[question.name]} already",
                    path="$.id",
                    hint="give each an id of its own",
                )
            places[question.name] = here
            questions.append(question)
    if not questions:
        raise InvalidInput("there is no question", path="$.questions", hint=_HINT)
    return questions


def read_question(data: Any, where: str = "", path: str = "$") -> EvalQuestion:
    """Read one question; `where` prefixes error messages, `path` is its place in its document."""
    before = f"{where}: " if where else ""
    if isinstance(data, EvalQuestion):
        return data
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{before}a question is an object, not {type(data).__name__}", path=path, hint=_HINT)
    question = EvalQuestion.of_given(dict(data), f"{before}not a question", path=path, hint=_hint(data))
    try:
        _check(question)
    except MunimentError as error:
        error.message, error.path = f"{before}{error.message}", f"{path}{(error.path or '$')[1:]}"
        raise
    return question


def _hint(data: Mapping[str, Any]) -> str:
    known = EvalQuestion.model_fields
    unknown = [name for name in data if name not in known]
    one = next((name for name in ("answers", "evidence", "stale", "not_told") if isinstance(data.get(name), str)), None)
    if one is not None:
        return f'{one} is a list: "{one}": ["…"]'
    return f"a question has {', '.join(known)}" if unknown else _HINT


def _check(question: EvalQuestion) -> None:
    """Check rules that involve several fields."""
    if question.asked_at is not None:
        parse_instant(question.asked_at, path="$.asked_at")
    if not question.expected:
        raise InvalidInput(
            "nothing is expected of this question",
            path="$",
            hint='say what: "answers", "evidence", "not_told", or "answerable": false',
        )
    told = [name for name in ("answers", "evidence", "stale") if getattr(question, name)]
    if not question.answerable and told:
        raise InvalidInput(
            f"a question that nothing answers has no {told[0]}",
            path=f"$.{told[0]}",
            hint='leave it out, or leave "answerable" out',
        )
    if question.stale and not question.evidence:
        raise InvalidInput(
            "stale is what the evidence took the place of, and there is none",
            path="$.stale",
            hint='give "evidence" too, or say "not_told"',
        )


# -- a first file, from facts --------------------------------------------------------------------------

_UNANSWERED_MAX = 3
"""Unanswerable questions generated per user."""
_OWN = "user"


class KnownValue(NamedTuple):
    """A current or former value of a key, and the events it rests on."""

    key: str
    value: Any
    sources: tuple[str, ...]
    is_current: bool

    @property
    def text(self) -> str:
        return self.value if isinstance(self.value, str) else canonical_text(self.value)


def first_questions(known: Mapping[str, Sequence[KnownValue]]) -> Iterator[dict[str, Any]]:
    """Generate questions from what is known of each user, in the order of their ids and keys."""
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
