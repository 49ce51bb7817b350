"""A chat model behind OpenAI's `POST /chat/completions`: messages in, the text of its answer out, and what it took."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from muniment.core.outside.openai_server import Failures, OpenAiServer
from muniment.errors import InvalidInput, ModelMalformed, ModelRefused, ModelUnreachable

__all__ = ["MODEL_FAILURES", "ChatAnswer", "ChatModel"]

MODEL_FAILURES = Failures(
    client="a model",
    server="the model's server",
    unreachable=ModelUnreachable,
    refused=ModelRefused,
    malformed=ModelMalformed,
    way_out="check the address, or go without: patterns need no server",
    address_hint="such as http://localhost:8080/v1",
)


class ChatAnswer(NamedTuple):
    """What a model answered, and what the call took where its server counts."""

    text: str
    is_cut: bool = False
    """Whether it ends where it may be no longer."""
    tokens_in: int | None = None
    tokens_out: int | None = None

    @property
    def usage(self) -> dict[str, int]:
        """The tokens that its server counted."""
        counts = {"tokens_in": self.tokens_in, "tokens_out": self.tokens_out}
        return {name: count for name, count in counts.items() if count is not None}


class ChatModel:
    """One model of one server, asked at temperature 0."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 300.0,
        attempts_max: int = 3,
        tokens_max: int = 256,
        sleep: Callable[[float], None] = time.sleep,
        way_out: str = "check the address, or go without a model",
    ) -> None:
        if not model:
            raise InvalidInput(
                "a model over HTTP needs a name", path="$.model", hint="such as http://localhost:8080/v1#qwen"
            )
        self._server = OpenAiServer(
            base_url,
            "/chat/completions",
            MODEL_FAILURES._replace(way_out=way_out),
            api_key=api_key,
            timeout_s=timeout_s,
            attempts_max=attempts_max,
            sleep=sleep,
        )
        self.name = model
        self._tokens_max = tokens_max

    def __call__(self, messages: Sequence[dict[str, Any]]) -> str:
        """Its answer; `ModelMalformed` where the server answers something else."""
        return self.ask(messages).text

    def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        form: tuple[str, Mapping[str, Any]] | None = None,
        tokens_max: int | None = None,
        attempts_max: int | None = None,
    ) -> ChatAnswer:
        """Its answer and what it took; `form` is a name and the JSON Schema that the answer should be of."""
        asked: dict[str, Any] = {
            "model": self.name,
            "temperature": 0,
            "seed": 0,
            "max_tokens": self._tokens_max if tokens_max is None else min(tokens_max, self._tokens_max),
            "messages": list(messages),
        }
        if form is not None:
            schema = {"name": form[0], "strict": True, "schema": form[1]}
            asked["response_format"] = {"type": "json_schema", "json_schema": schema}
        return _read(self._server.post(json.dumps(asked).encode(), attempts_max=attempts_max))


def _read(body: bytes) -> ChatAnswer:
    try:
        whole = json.loads(body)
        choice = whole["choices"][0]
        said, is_cut, usage = choice["message"]["content"], choice.get("finish_reason") == "length", whole.get("usage")
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as cause:
        raise ModelMalformed("the model's answer is not one of a chat") from cause
    counts = usage if isinstance(usage, Mapping) else {}
    answer = ChatAnswer("", is_cut, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))
    if not isinstance(said, str):
        raise ModelMalformed("the model's answer holds no text", details=answer.usage)
    return answer._replace(text=said)


def _count(given: Any) -> int | None:
    return given if type(given) is int and given >= 0 else None
