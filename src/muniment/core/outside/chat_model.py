"""A chat model behind OpenAI's `POST /chat/completions`: messages in, the text of its answer out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from muniment.core.outside.openai_server import Failures, OpenAiServer
from muniment.errors import InvalidInput, ModelMalformed, ModelRefused, ModelUnreachable

__all__ = ["MODEL_FAILURES", "ChatModel"]

MODEL_FAILURES = Failures(
    client="a model",
    server="the model's server",
    unreachable=ModelUnreachable,
    refused=ModelRefused,
    malformed=ModelMalformed,
    way_out="check the address, or go without: patterns need no server",
    address_hint="such as http://localhost:8080/v1",
)


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
    ) -> None:
        if not model:
            raise InvalidInput(
                "a model over HTTP needs a name", path="$.model", hint="such as http://localhost:8080/v1#qwen"
            )
        self._server = OpenAiServer(
            base_url,
            "/chat/completions",
            MODEL_FAILURES._replace(way_out="check the address, or go without a model"),
            api_key=api_key,
            timeout_s=timeout_s,
            attempts_max=attempts_max,
            sleep=sleep,
        )
        self.name = model
        self._tokens_max = tokens_max

    def __call__(self, messages: Sequence[dict[str, Any]]) -> str:
        """Its answer; `ModelMalformed` where the server answers something else."""
        asked = {
            "model": self.name,
            "temperature": 0,
            "seed": 0,
            "max_tokens": self._tokens_max,
            "messages": list(messages),
        }
        body = self._server.post(json.dumps(asked).encode())
        try:
            said = json.loads(body)["choices"][0]["message"]["content"]
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as cause:
            raise ModelMalformed("the model's answer is not one of a chat") from cause
        if not isinstance(said, str):
            raise ModelMalformed("the model's answer holds no text")
        return said
