"""Who writes lessons: any server that speaks OpenAI's chat, any function that chats, or an object of the caller's.

It is the client that facts are extracted with. One call asks once more where the answer is no list of lessons, within
the time that the whole of it may take; what fails is raised as a `ModelFailure`, with what was spent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast, get_args

from muniment.core.outside.calling import caught, outcome_of, settled
from muniment.core.outside.http import ChatModel
from muniment.core.policy import WritingPolicy
from muniment.core.ports.models import TokenCounter
from muniment.errors import (
    InvalidInput,
    ModelFailure,
    ModelMalformed,
    ModelRefused,
    ModelUnreachable,
    MunimentError,
)
from muniment.learning.proposals.prompts import answer_schema, messages_of, read_answer
from muniment.learning.proposals.records import Advice, LessonAnswer, LessonProposal, LessonQuestion, LessonWriter
from muniment.memory.outside.models import load_chat

__all__ = ["Asked", "ask_writer", "lesson_writer"]

_ASKING_TOKENS = 16
"""What the frame of a chat adds to its messages, or a little more."""
_PROPOSALS_MAX = 64
_USUAL = WritingPolicy.model_construct()
_HINT = "such as http://localhost:8080/v1#qwen, or a function of messages that answers in text"


class Asked(NamedTuple):
    """What came of asking, and what it took. Without an answer there is an error."""

    answer: LessonAnswer | None
    error: ModelFailure | None
    calls: int
    tokens_in: int
    tokens_out: int
    is_estimated: bool


def lesson_writer(given: Any, policy: WritingPolicy = _USUAL) -> LessonWriter | None:
    """What a caller gave as the writer of lessons; None for nobody. Nothing is contacted before it is asked."""
    if given is None:
        return None
    if isinstance(given, str):
        chat = load_chat(
            given,
            "$.lessons",
            timeout_s=policy.timeout_s,
            attempts_max=policy.attempts_max,
            tokens_max=policy.answer_tokens_max,
        )
        return _Served(chat)
    looked_at = caught(lambda: _writer_of(given))
    if looked_at.exception() is None and (writer := looked_at.result()) is not None:
        return cast("LessonWriter", writer)
    raise InvalidInput(
        "who writes lessons is an address, a function of messages, or able to write", path="$.lessons", hint=_HINT
    )


def _writer_of(given: Any) -> LessonWriter | None:
    if callable(getattr(given, "write", None)) and isinstance(getattr(given, "name", None), str):
        return cast("LessonWriter", given)
    return _Chat(given) if callable(given) else None


class _Served:
    """A model of a server."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.name = chat.name

    def write(self, question: LessonQuestion, tokens_max: int, /) -> LessonAnswer:
        form = "lessons", answer_schema(question)
        said = self._chat.ask(messages_of(question), form=form, tokens_max=tokens_max)
        try:
            answer = read_answer(said.text, question)
        except ModelMalformed as error:  # what it took is told all the same
            error.details |= said.usage
            raise
        return answer._replace(tokens_in=said.tokens_in, tokens_out=said.tokens_out)


class _Chat:
    """A function of the messages of a chat that answers in text, sync or async, of whatever client."""

    def __init__(self, chat: Callable[[list[dict[str, str]]], Any]) -> None:
        self._chat = chat
        self.name: str = getattr(chat, "name", None) or getattr(chat, "__name__", None) or type(chat).__name__

    def write(self, question: LessonQuestion, _tokens_max: int, /) -> LessonAnswer:
        said = settled(lambda: self._chat(messages_of(question)))
        if not isinstance(said, str):
            raise ModelMalformed("the model's function answers no text")
        return read_answer(said, question)


def ask_writer(writer: LessonWriter, question: LessonQuestion, policy: WritingPolicy, counter: TokenCounter) -> Asked:
    """Ask, once more where the answer cannot be read. Whatever goes wrong is told, and nothing is raised for it."""
    measure = sum(counter.count_many([message["content"] for message in messages_of(question)])) + _ASKING_TOKENS
    calls = tokens_in = tokens_out = 0
    is_estimated = False
    while True:
        outcome = outcome_of(lambda: writer.write(question, policy.answer_tokens_max), policy.timeout_s)
        error = _failure(outcome.exception(), writer) if outcome.done() else _late(policy.timeout_s)
        answer = outcome.result() if error is None else None
        if answer is not None and not _is_answer(answer):
            answer, error = None, ModelMalformed("who writes lessons answers no LessonAnswer")
        calls += 1
        took = (answer.tokens_in, answer.tokens_out) if answer is not None else _spent(error)
        said = 0 if answer is None else counter.count(answer.said)
        tokens_in += measure if took[0] is None else took[0]
        tokens_out += said if took[1] is None else took[1]
        is_estimated = is_estimated or None in took
        if not isinstance(error, ModelMalformed) or calls >= policy.attempts_max:
            kept = answer if answer is None else answer._replace(proposals=answer.proposals[:_PROPOSALS_MAX])
            return Asked(kept, error, calls, tokens_in, tokens_out, is_estimated)


def _is_answer(given: Any) -> bool:
    """Whether it is an answer as it should be in all its parts: who writes may be a class of the caller's."""
    if not isinstance(given, LessonAnswer) or not isinstance(given.proposals, tuple):
        return False
    figures = given.malformed, given.tokens_in or 0, given.tokens_out or 0
    are_counts = all(type(each) is int and each >= 0 for each in figures)
    return are_counts and isinstance(given.said, str) and all(map(_is_proposal, given.proposals))


def _is_proposal(given: Any) -> bool:
    if not isinstance(given, LessonProposal) or not isinstance(given.event_ids, tuple):
        return False
    texts = given.text, given.when, *given.event_ids
    return all(isinstance(each, str) for each in texts) and given.advice in get_args(Advice)


def _failure(error: BaseException | None, writer: LessonWriter) -> ModelFailure | None:
    if error is None or isinstance(error, ModelFailure):
        return error
    if isinstance(error, MunimentError):
        return ModelRefused(f"{writer.name} refused: {error.message:.200}")
    return ModelUnreachable(f"{writer.name} raised {type(error).__name__}")


def _late(timeout_s: float) -> ModelFailure:
    return ModelUnreachable(f"no answer after {timeout_s:g} s", details={"is_late": True})


def _spent(error: ModelFailure | None) -> tuple[int | None, int | None]:
    told = {} if error is None else error.details or {}
    found = [told.get(name) for name in ("tokens_in", "tokens_out")]
    asked, said = (each if type(each) is int else None for each in found)
    return asked, said
