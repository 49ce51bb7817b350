"""Asking a model about turns: whatever kind of model it is, with limits, retries, and halving what it cannot answer.

A call that fails in a way that may pass (a timeout, too many requests, an answer that is no list of facts) is made
again after a while, and each attempt counts. Turns that are never answered for are halved, down to the one that it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from muniment.core.outside.calling import outcome_of
from muniment.core.policy import ExtractionPolicy
from muniment.core.ports.models import TokenCounter
from muniment.errors import InvalidInput, ModelFailure, ModelMalformed, ModelRefused, ModelUnreachable, MunimentError
from muniment.memory.extraction.budget import ExtractionBudget, Limit, Spent, answer_room
from muniment.memory.extraction.model import BatchModel, ModelAnswer, SaidTurn, TurnProposal
from muniment.memory.extraction.prompts import messages_of, read_answer
from muniment.memory.outside.models import load_model

__all__ = ["Answered", "Asker", "LimitReached", "batch_model"]

_WAIT_S = 0.5
_WAIT_S_MAX = 30.0
_ASKING_TOKENS = 16
"""What the frame of a chat adds to its messages, or a little more."""


class LimitReached(NamedTuple):
    """A call that was not made: the next one might pass this limit."""

    limit: Limit


class Answered(NamedTuple):
    """What a model says of a batch, and the turns that it could not be brought to answer for."""

    answer: ModelAnswer
    unreadable: tuple[str, ...] = ()


def batch_model(given: Any, policy: ExtractionPolicy, *, api_key: str | None = None) -> BatchModel:
    """What a caller gave as a model, as one that reads several turns in a call."""
    if isinstance(given, str):
        return load_model(given, api_key=api_key, confidence_max=policy.confidence_max)
    if callable(getattr(given, "read", None)) and isinstance(getattr(given, "name", None), str):
        return given  # type: ignore[no-any-return]
    if callable(getattr(given, "propose", None)) and isinstance(getattr(given, "name", None), str):
        return _OneByOne(given)
    if callable(given):
        return _Chat(given, policy)
    raise InvalidInput(
        "a model is an address, a function of messages, or able to read or propose",
        path="$.model",
        hint="such as openai:http://localhost:8080/v1#qwen; see muniment.memory.extraction.model",
    )


class _OneByOne:
    """A model that reads one text at a time, and says itself how sure it is."""

    turns_max = 1
    is_sure_itself = True

    def __init__(self, model: Any) -> None:
        self._model = model
        self.name: str = model.name

    def read(self, turns: Sequence[SaidTurn], _context: Sequence[SaidTurn], _tokens_max: int, /) -> ModelAnswer:
        found = [
            TurnProposal(turn.id, each) for turn in turns for each in self._model.propose(turn.text, turn.role, turn.ts)
        ]
        return ModelAnswer(tuple(found))


class _Chat:
    """A function of the messages of a chat that answers in text, of whatever client."""

    def __init__(self, chat: Callable[[list[dict[str, str]]], Any], policy: ExtractionPolicy) -> None:
        self._chat = chat
        self._confidence_max = policy.confidence_max
        self.name: str = getattr(chat, "name", None) or getattr(chat, "__name__", None) or type(chat).__name__

    def read(self, turns: Sequence[SaidTurn], context: Sequence[SaidTurn], _tokens_max: int, /) -> ModelAnswer:
        outcome = outcome_of(lambda: self._chat(messages_of(turns, context)))
        error = outcome.exception()
        if isinstance(error, MunimentError):
            raise error
        if error is not None:
            raise ModelUnreachable(f"the model's function raised {type(error).__name__}") from error
        said = outcome.result()
        if not isinstance(said, str):
            raise ModelMalformed("the model's function answers no text")
        return read_answer(said, turns, self.name, self._confidence_max)


class Asker:
    """One model under one budget. Not thread-safe: each worker has its own."""

    def __init__(
        self,
        model: BatchModel,
        policy: ExtractionPolicy,
        counter: TokenCounter,
        budget: ExtractionBudget | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._model = model
        self._policy = policy
        self._counter = counter
        self._sleep = sleep
        self.budget = ExtractionBudget() if budget is None else budget
        self.spent = Spent()
        self.is_estimated = False
        """Whether tokens were counted here, since the model's server did not say."""

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def turns_max(self) -> int:
        """Turns of one call."""
        return min(self._policy.batch_turns_max, getattr(self._model, "turns_max", self._policy.batch_turns_max))

    @property
    def is_sure_itself(self) -> bool:
        """Whether the model's own confidence stands, whatever the sentence is like."""
        return getattr(self._model, "is_sure_itself", False) is True

    def room(self, turns: Sequence[SaidTurn], context: Sequence[SaidTurn]) -> int | LimitReached:
        """How long the answer about these turns may be, or the limit that forbids to ask."""
        room = answer_room(self.budget, self.spent, self._measure(turns, context), self._policy.answer_tokens_max)
        return LimitReached(room) if isinstance(room, str) else room

    def ask(self, turns: Sequence[SaidTurn], context: Sequence[SaidTurn]) -> Answered | LimitReached:
        """All that the model says of these turns; where a limit is reached on the way, nothing."""
        asked = self._attempts(turns, context)
        if asked is not None:
            return asked
        if len(turns) == 1:
            return Answered(ModelAnswer(()), (turns[0].id,))
        middle = len(turns) // 2
        first = self.ask(turns[:middle], context)
        if isinstance(first, LimitReached):
            return first
        second = self.ask(turns[middle:], (*context, *turns[:middle]))
        if isinstance(second, LimitReached):
            return second
        both = first.answer, second.answer
        whole = ModelAnswer(
            tuple(each for answer in both for each in answer.proposals), sum(each.malformed for each in both)
        )
        return Answered(whole, first.unreadable + second.unreadable)

    def _attempts(self, turns: Sequence[SaidTurn], context: Sequence[SaidTurn]) -> Answered | LimitReached | None:
        """The answer; None where every attempt came to something that is no list of facts."""
        for attempt in range(1, self._policy.attempts_max + 1):
            room = self.room(turns, context)
            if isinstance(room, LimitReached):
                return room
            is_last = attempt == self._policy.attempts_max
            try:
                answer = self._model.read(turns, context, room)
            except ModelFailure as error:
                self._spend_failed(turns, context, error, room)
                if isinstance(error, ModelRefused) or (is_last and not isinstance(error, ModelMalformed)):
                    raise
                if is_last or error.details.get("is_cut"):  # asked again, it would be cut again
                    return None
                self._sleep(_wait_s(error, attempt))
            else:
                asked = self._measure(turns, context) if answer.tokens_in is None else answer.tokens_in
                said = self._counter.count(answer.said) if answer.tokens_out is None else answer.tokens_out
                self.is_estimated = self.is_estimated or answer.tokens_in is None or answer.tokens_out is None
                self._spend(asked, said)
                return Answered(answer)
        raise AssertionError("attempts_max is at least 1")

    def _spend_failed(
        self, turns: Sequence[SaidTurn], context: Sequence[SaidTurn], error: ModelFailure, room: int
    ) -> None:
        """A call that failed: as its server counts it, else what was asked and, of an unsound answer, all it may be."""
        asked, said = error.details.get("tokens_in"), error.details.get("tokens_out")
        self.is_estimated = self.is_estimated or type(asked) is not int or type(said) is not int
        most = room if isinstance(error, ModelMalformed) else 0
        self._spend(asked if type(asked) is int else self._measure(turns, context), said if type(said) is int else most)

    def _spend(self, asked: int, said: int) -> None:
        calls, turns_read, tokens_in, tokens_out = self.spent
        self.spent = Spent(calls + 1, turns_read, tokens_in + asked, tokens_out + said)

    def count_turns(self, turns: int) -> None:
        """So many turns more were read."""
        self.spent = self.spent._replace(turns=self.spent.turns + turns)

    def _measure(self, turns: Sequence[SaidTurn], context: Sequence[SaidTurn]) -> int:
        texts = [message["content"] for message in messages_of(turns, context)]
        return sum(self._counter.count_many(texts)) + _ASKING_TOKENS


def _wait_s(error: ModelFailure, attempt: int) -> float:
    """Twice as long each time; as long as the server asks for, within reason."""
    asked = error.details.get("retry_after_s")
    wait_s = float(asked) if isinstance(asked, int | float) else _WAIT_S * 2 ** (attempt - 1)
    return min(wait_s, _WAIT_S_MAX)
