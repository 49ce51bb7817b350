"""Models by name: `openai:<base_url>#<model>`, or the address alone. Connects only on the first call."""

from __future__ import annotations

import os
from typing import Any

from muniment.core.outside.http import ChatModel
from muniment.errors import InvalidInput

__all__ = ["load_chat", "named_model"]

_KEY = "OPENAI_API_KEY"
_HINT = "such as openai:http://localhost:8080/v1#qwen, or the address alone"


def load_chat(name: str, path: str, *, api_key: str | None = None, **options: Any) -> ChatModel:
    """Load the chat model of a setting. The key comes from the environment unless given."""
    base_url, model = named_model(name, path)
    key = os.environ.get(_KEY) if api_key is None else api_key
    return ChatModel(base_url, model, api_key=key, **options)


def named_model(name: str, path: str) -> tuple[str, str]:
    """Split a setting into address and model name; the error for an invalid one names its path."""
    base_url, _, model = name.removeprefix("openai:").partition("#")
    if not base_url.startswith(("http://", "https://")):
        raise InvalidInput(f"no model is called {name!r:.80}", path=path, hint=_HINT)
    return base_url, model or "default"
