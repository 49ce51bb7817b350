"""Models by name: `openai:<base_url>#<model>`, or the address alone. Nothing is contacted before something is asked."""

from __future__ import annotations

import os

from muniment.errors import InvalidInput
from muniment.memory.outside.model_http import HttpModel

__all__ = ["load_model"]

_KEY = "OPENAI_API_KEY"
_HINT = "such as openai:http://localhost:8080/v1#qwen, or the address alone"


def load_model(name: str, *, api_key: str | None = None, confidence_max: float = 0.7) -> HttpModel:
    """The model of a setting or an option. The key, where one is needed, is in the environment unless it is given."""
    address = name.removeprefix("openai:")
    base_url, _, model = address.partition("#")
    if not base_url.startswith(("http://", "https://")):
        raise InvalidInput(f"no model is called {name!r:.80}", path="$.model", hint=_HINT)
    key = os.environ.get(_KEY) if api_key is None else api_key
    return HttpModel(base_url, model or "default", api_key=key, confidence_max=confidence_max)
