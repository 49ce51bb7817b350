"""Supported model and embedder providers of mem0, with their addresses. Nothing is contacted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from muniment.integrations.mem0.environment import variable
from muniment.integrations.mem0.exceptions import ConfigurationError

__all__ = ["embedder_of", "model_of"]


class _Server(NamedTuple):
    """A provider with OpenAI's API: the setting and variable of its address, and the default address."""

    setting: str
    variable: str | None
    address: str
    key: str | None
    """Environment variable of its key; None if it takes none."""
    model: str | None = None


_OPENAI = _Server("openai_base_url", "OPENAI_BASE_URL", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5-mini")
_OLLAMA = _Server("ollama_base_url", None, "http://localhost:11434", None)
_LM_STUDIO = _Server("lmstudio_base_url", None, "http://localhost:1234/v1", None)
_TOGETHER = _Server("together_base_url", None, "https://api.together.xyz/v1", "TOGETHER_API_KEY")

_MODELS = {
    "openai": _OPENAI,
    "openai_structured": _OPENAI,
    "vllm": _Server("vllm_base_url", "VLLM_BASE_URL", "http://localhost:8000/v1", None),
    "lmstudio": _LM_STUDIO,
    "ollama": _OLLAMA,
    "deepseek": _Server("deepseek_base_url", "DEEPSEEK_API_BASE", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "groq": _Server("groq_base_url", None, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "together": _TOGETHER,
    "xai": _Server("xai_base_url", "XAI_API_BASE", "https://api.x.ai/v1", "XAI_API_KEY"),
}
_OTHER_MODELS = frozenset(
    ("anthropic", "aws_bedrock", "litellm", "azure_openai", "azure_openai_structured", "gemini", "minimax", "sarvam",
     "langchain")
)  # fmt: skip
_EMBEDDERS = {
    "openai": _OPENAI._replace(model="text-embedding-3-small"),
    "ollama": _OLLAMA._replace(model="nomic-embed-text"),
    "lmstudio": _LM_STUDIO,
    "together": _TOGETHER,
}
_OTHER_EMBEDDERS = frozenset(
    ("huggingface", "azure_openai", "gemini", "vertexai", "langchain", "aws_bedrock", "fastembed")
)
_OWN_EMBEDDERS = ("e5-small", "multilingual-e5-small", "hash", "none")
_HUB_MODELS = {f"intfloat/{name}": name for name in ("e5-small", "multilingual-e5-small")}
_TAKEN = frozenset(("model", "api_key"))


def model_of(provider: str, settings: Mapping[str, Any], passed: list[str]) -> Any:
    """The model that proposes facts; None if only patterns do, which is noted in `passed`."""
    server = _MODELS.get(provider)
    if server is None:
        if provider not in _OTHER_MODELS:
            raise ConfigurationError(f"Unsupported LLM provider: {provider}", path="$.llm.provider")
        passed.append(f"llm.provider {provider} (facts are found by rule; any model: Memory(mem, model=…))")
        return None
    from muniment.core.policy import ExtractionPolicy
    from muniment.memory._extract_model import load_turn_model

    passed += [f"llm.config.{name}" for name in sorted(set(settings) - _TAKEN - {server.setting, "max_tokens"})]
    name = settings.get("model") or server.model
    if not name:
        raise ConfigurationError(f"{provider} needs the name of a model", path="$.llm.config.model")
    tokens = settings.get("max_tokens")
    limits: dict[str, Any] = {} if tokens is None else {"answer_tokens_max": int(tokens)}
    key = _key(server, settings, "llm", provider)
    address = f"{_address(server, settings)}#{name}"
    return load_turn_model(address, ExtractionPolicy(**limits), api_key=key or "")


def embedder_of(provider: str, settings: Mapping[str, Any], passed: list[str]) -> Any:
    """The embedder; None if search is by words, which is noted in `passed`."""
    from muniment.memory.embedding import load_embedder

    if provider in _OWN_EMBEDDERS:
        return load_embedder(provider)
    name = str(settings.get("model") or "")
    server = _EMBEDDERS.get(provider)
    if server is None:
        if provider not in _OTHER_EMBEDDERS:
            raise ConfigurationError(f"Unsupported embedding provider: {provider}", path="$.embedder.provider")
        if name in _HUB_MODELS:
            return load_embedder(_HUB_MODELS[name])
        passed.append(f"embedder.provider {provider} (search is by words; ours: e5-small, or any server)")
        return None
    from muniment.memory.outside.openai_embedder import OpenAiEmbedder

    unused = set(settings) - _TAKEN - {server.setting, "embedding_dims"}
    passed += [f"embedder.config.{each}" for each in sorted(unused)]
    name = name or server.model or ""
    if not name:
        raise ConfigurationError(f"{provider} needs the name of a model", path="$.embedder.config.model")
    return OpenAiEmbedder(_address(server, settings), name, api_key=_key(server, settings, "embedder", provider))


def _address(server: _Server, settings: Mapping[str, Any]) -> str:
    told = settings.get(server.setting) or variable(server.variable)
    address = str(told or server.address).rstrip("/")
    speaks_below = server.setting == _OLLAMA.setting and not address.endswith("/v1")
    return f"{address}/v1" if speaks_below else address


def _key(server: _Server, settings: Mapping[str, Any], section: str, provider: str) -> str | None:
    """The key; required for a provider's own address."""
    found = settings.get("api_key") or variable(server.key)
    if not found and server.key and _address(server, settings) == server.address.rstrip("/"):
        raise ConfigurationError(
            f"{provider} takes a key, and none was given",
            suggestion=f"{section}.config.api_key, or {server.key}; without the section no model is asked",
            path=f"$.{section}.config.api_key",
        )
    return None if not found else str(found)
