"""Models by name: `openai:<base_url>#<model>`, or the address alone. Nothing is contacted before something is asked."""

from __future__ import annotations

import os
from typing import Any

from muniment.core.outside.http import ChatModel
from muniment.errors import InvalidInput
from muniment.memory.outside.model_http import HttpModel

__all__ = ["load_chat", "load_model", "named_model"]

_KEY = "OPENAI_API_KEY"
_HINT = "such as openai:http://localhost:8080/v1#qwen, or the address alone"


def load_model(name: str, *, api_key: str | None = None, confidence_max: float = 0.7) -> HttpModel:
    """The model of a setting or an option. The key, where one is needed, is in the environment unless it is given."""
    base_url, model = named_model(name, "$.model")
    return HttpModel(base_url, model, api_key=_key(api_key), confidence_max=confidence_max)


def load_chat(name: str, path: str, **options: Any) -> ChatModel:
    """The same as a model that is asked in messages; `options` are those of a `ChatModel`."""
    base_url, model = named_model(name, path)
    return ChatModel(base_url, model, api_key=_key(None), **options)


def named_model(name: str, path: str) -> tuple[str, str]:
    """The address and the name that a setting holds; an error that says where, if it holds none."""
    base_url, _, model = name.removeprefix("openai:").partition("#")
    if not base_url.startswith(("http://", "https://")):
        raise InvalidInput(f"no model is called {name!r:.80}", path=path, hint=_HINT)
    return base_url, model or "default"


def _key(given: str | None) -> str | None:
    return os.environ.get(_KEY) if given is None else given
