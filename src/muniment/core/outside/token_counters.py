"""Token counters by name. None uses the network; a vocabulary is loaded when the first text is counted.

    auto          the first of the next three that is installed and needs no download, else the estimate
    splintr       o200k_base from the wheel of `splintr-rs`: the one the extra `tokens` installs
    bpe_openai    o200k_base from the wheel of `bpe-openai`
    tiktoken      o200k_base, only where its cache holds the vocabulary already
    estimate_v1   no package: `core.text.tokens`, an estimate that errs upward

The first three agree on every text, so their counters have one name: that of the vocabulary.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path

from muniment.core.outside.system import not_installed
from muniment.core.ports.models import TokenCounter
from muniment.core.text.tokens import ESTIMATE_NAME, estimate_tokens, tokens_of_weight, weigh
from muniment.errors import InvalidInput

__all__ = ["COUNTER_NAMES", "EstimateCounter", "ExactCounter", "load_token_counter"]

VOCABULARY = "o200k_base"
_PACKAGES = ("splintr", "bpe_openai", "tiktoken")
"""In order of preference: by load time, then by speed."""

COUNTER_NAMES = ("auto", *_PACKAGES, ESTIMATE_NAME)
"""Names that `load_token_counter` accepts."""

_TIKTOKEN_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""The name under which tiktoken keeps o200k_base in its cache."""
_TIKTOKEN_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


class EstimateCounter:
    """The estimate of `core.text.tokens`, with its margin."""

    name = ESTIMATE_NAME
    is_exact = False
    weighs_lines = True

    def count(self, text: str) -> int:
        return estimate_tokens(text)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [estimate_tokens(text) for text in texts]

    def weigh_many(self, texts: Sequence[str]) -> list[int]:
        return [weigh(text) for text in texts]

    def tokens_of_weight(self, weight: int) -> int:
        return tokens_of_weight(weight)


class ExactCounter:
    """Counts with the vocabulary itself; special tokens spelled out in a text are plain text."""

    name = VOCABULARY
    is_exact = True
    adds_lines = True
    """o200k_base splits a text before it merges: no part goes past a line break and on into what such a line starts
    with, and one to three digits are a part, and a token, by themselves.
    """

    def __init__(self, package: str) -> None:
        self.package = package

    @cached_property
    def _encode(self) -> Callable[[str], Sequence[int]]:
        return _load(self.package)

    def count(self, text: str) -> int:
        try:
            return len(self._encode(text))
        except UnicodeEncodeError:  # a lone surrogate has no bytes: count a writer's replacement
            return len(self._encode(text.encode("utf-8", "replace").decode("utf-8")))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]


def load_token_counter(name: str = "auto") -> TokenCounter:
    """Return the counter of this name; `auto` always finds one."""
    if name == ESTIMATE_NAME:
        return EstimateCounter()
    if name == "auto":
        found = next((package for package in _PACKAGES if _is_here(package)), None)
        return ExactCounter(found) if found else EstimateCounter()
    if name not in _PACKAGES:
        raise InvalidInput(f"no token counter is called {name[:80]!r}", hint=f"one of {', '.join(COUNTER_NAMES)}")
    if not _is_here(name):
        what = "tiktoken's cached vocabulary" if name == "tiktoken" and _is_installed(name) else f"the package {name}"
        raise not_installed(f"{what} is not here", "tokens")
    return ExactCounter(name)


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _is_here(package: str) -> bool:
    return _is_installed(package) and (package != "tiktoken" or _tiktoken_is_cached())


def _tiktoken_is_cached() -> bool:
    """Return whether tiktoken has its whole vocabulary cached: it downloads missing or damaged files."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "":
        return False  # tiktoken: caching is disabled
    path = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache") / _TIKTOKEN_FILE
    return path.is_file() and sha256(path.read_bytes()).hexdigest() == _TIKTOKEN_SHA256


@cache
def _load(package: str) -> Callable[[str], Sequence[int]]:
    """Load once in a process: every store counts with it, from any thread."""
    module = importlib.import_module(package)
    find = module.Tokenizer.from_pretrained if package == "splintr" else module.get_encoding
    encode: Callable[[str], Sequence[int]] = find(VOCABULARY).encode_ordinary
    return encode
