"""Local sentence models in ONNX, from a folder or the hub's cache. Nothing is ever downloaded.

Each text runs alone, in single precision: a vector does not depend on the texts embedded with it, and models exported
for one text at a time work too. An identity names the weights and the tokenizer, by their SHA-256.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.outside.system import install_command, require
from muniment.errors import IntegrityFailure, InvalidInput, MissingDependency

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OnnxEmbedder", "load_e5_small", "load_folder", "load_multilingual_e5_small"]

DIGEST_HEX = 16
"""Hex digits of a SHA-256 that an identity carries."""
TEXT_CHARS_MAX = 8_192
"""More characters than any model here reads: it bounds the tokenizer's work."""
_VERSION = 1
"""Version of the method; raise it when the same weights would give other vectors."""
_THREADS_MAX = 4


class Reading(NamedTuple):
    """A model's settings for reading texts."""

    query: str
    """The prefix of a query."""
    passage: str
    """The prefix of a passage."""
    takes_first: bool
    """True to use the vector of the first token, False for the mean of all."""
    tokens_max: int


class HubModel(NamedTuple):
    """A model of the hub whose weights are pinned."""

    repository: str
    weights: str
    """Their path in the repository."""
    pins: frozenset[tuple[str, ...]]
    """The accepted SHA-256 digests of the weights, with those of an export's external data file, if any."""
    reading: Reading


_E5 = Reading("query: ", "passage: ", takes_first=False, tokens_max=256)
"""These models take 512 tokens. A turn's content is mostly in its beginning, and the cost grows with the length."""
E5_SMALL = HubModel(
    "intfloat/e5-small",
    "model.onnx",
    frozenset(
        (
            ("96ec59525cd3b8ede24f5517c89188354c46f347d60fb9566b0dd4ea9dfcda0c",),
            (  # another export of the same weights, for one text at a time; the published figures were measured with it
                "bf25cebd9898ac2913fe7b517124a0b499cfc01850e3b6bff4e691e24556ae9d",
                "e35d844db522a4507b944c9c21b95ff3406ddbbe90aae1d0d5077049912ae35a",
            ),
        )
    ),
    _E5,
)
MULTILINGUAL_E5_SMALL = HubModel(
    "intfloat/multilingual-e5-small",
    "onnx/model.onnx",
    frozenset((("ca456c06b3a9505ddfd9131408916dd79290368331e7d76bb621f1cba6bc8665",),)),
    _E5,
)


def load_e5_small(rest: str) -> OnnxEmbedder:
    """Load `e5-small`: English, 384 numbers a text."""
    return _load_named("e5-small", E5_SMALL, rest)


def load_multilingual_e5_small(rest: str) -> OnnxEmbedder:
    """Load `multilingual-e5-small`: a hundred languages, 384 numbers a text."""
    return _load_named("multilingual-e5-small", MULTILINGUAL_E5_SMALL, rest)


def load_folder(rest: str) -> OnnxEmbedder:
    """Load a model from a folder, configured by its sentence-transformers files."""
    if not rest:
        raise InvalidInput("an ONNX model is named by its folder", path="$.embedder", hint="onnx:<folder>")
    folder = Path(rest).expanduser()
    weights = next((folder / name for name in ("model.onnx", "onnx/model.onnx") if (folder / name).is_file()), None)
    if weights is None or not (folder / "tokenizer.json").is_file():
        raise MissingDependency(
            f"{folder} does not hold model.onnx and tokenizer.json", hint="both come with a model of the hub"
        )
    require("embed", "a model on this machine needs onnxruntime and tokenizers")
    return OnnxEmbedder(folder.name or "onnx", weights, folder / "tokenizer.json", _read_reading(folder))


def _load_named(name: str, model: HubModel, rest: str) -> OnnxEmbedder:
    if rest:
        raise InvalidInput(
            f"nothing follows the name {name}", path="$.embedder", hint="onnx:<folder> loads a model of your own"
        )
    own = Path.home() / ".muniment" / "models" / name
    files = f"{model.weights} tokenizer.json"
    command = f"hf download {model.repository} {files}"
    for folder in (own, *_snapshots(model.repository)):
        weights, tokenizer = folder / model.weights, folder / "tokenizer.json"
        if folder == own and not weights.is_file():
            weights = own / "model.onnx"
        if weights.is_file() and tokenizer.is_file():
            require("embed", f"{name} needs onnxruntime and tokenizers")
            if (digests := digests_of(weights)) not in model.pins:
                raise IntegrityFailure(
                    f"{weights} does not hold the weights of {name}",
                    hint=f"{command}; or onnx:{folder} to use these",
                    details={"sha256": list(digests)},
                )
            return OnnxEmbedder(name, weights, tokenizer, model.reading)
    raise MissingDependency(
        f"the weights of {name} are not on this machine",
        hint=f"{install_command('embed')} huggingface_hub && {command}; on a machine without a network put model.onnx "
        f"and tokenizer.json of huggingface.co/{model.repository} into {own}",
    )


def _snapshots(repository: str) -> list[Path]:
    """The cached versions of a repository, the one of its main branch first."""
    home = Path(os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()
    held = cache / f"models--{repository.replace('/', '--')}"
    main = held / "refs" / "main"
    first = main.read_text("utf-8").strip() if main.is_file() else ""
    found = [each for each in (held / "snapshots").glob("*") if each.is_dir()]
    return sorted(found, key=lambda each: (each.name != first, each.name))


def _read_reading(folder: Path) -> Reading:
    """Read a model's settings from its folder; the default is the mean over at most 512 tokens."""
    pooling = _read_json(folder / "1_Pooling" / "config.json")
    prompts = _read_json(folder / "config_sentence_transformers.json").get("prompts") or {}
    sizes = _read_json(folder / "sentence_bert_config.json")
    return Reading(
        str(prompts.get("query") or ""),
        str(prompts.get("passage") or prompts.get("document") or ""),
        takes_first=pooling.get("pooling_mode_cls_token") is True,
        tokens_max=int(sizes.get("max_seq_length") or 512),
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_bytes())) if path.is_file() else {}
    except (ValueError, TypeError) as cause:
        raise IntegrityFailure(f"{path} is not a JSON object") from cause


class OnnxEmbedder:
    """A local ONNX model. Thread-safe."""

    def __init__(self, name: str, weights: Path, tokenizer: Path, reading: Reading) -> None:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as failures
        from tokenizers import Tokenizer

        self._name, self._reading = name, reading
        self._weights, self._tokenizer_file = weights, tokenizer
        if "model" not in _read_json(tokenizer):
            raise IntegrityFailure(f"{tokenizer} is not a tokenizer")
        self._tokenizer: Any = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(reading.tokens_max)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, min(_THREADS_MAX, (os.cpu_count() or 1) // 2))
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        except (failures.Fail, failures.InvalidArgument, failures.InvalidGraph, failures.InvalidProtobuf) as cause:
            raise IntegrityFailure(f"{weights} cannot be read as ONNX") from cause
        self._inputs = [each.name for each in self._session.get_inputs()]
        self.truncated = 0

    @cached_property
    def identity(self) -> str:
        parts = [*digests_of(self._weights), _sha256_of(self._tokenizer_file), *map(str, self._reading)]
        digest = sha256("\n".join(parts).encode()).hexdigest()[:DIGEST_HEX]
        return f"{self._name}@{_VERSION}-{self.dim}-{digest}"

    @cached_property
    def dim(self) -> int:
        return len(self._vector("dimension"))

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return self._embed(self._reading.query, texts)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return self._embed(self._reading.passage, texts)

    def _embed(self, prefix: str, texts: Sequence[str]) -> NDArray[np.float64]:
        import numpy as np

        return np.array([self._vector(prefix + text[:TEXT_CHARS_MAX]) for text in texts]).reshape(len(texts), -1)

    def _vector(self, text: str) -> NDArray[np.float64]:
        """The vector of a text: the mean or first of its token vectors, or the model's own pooled output."""
        import numpy as np

        read = self._tokenizer.encode(text)
        self.truncated += len(read.overflowing) > 0
        ids = np.array([read.ids], np.int64)
        fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, {name: fed[name] for name in self._inputs})[0]
        if states.ndim == 2:
            return np.asarray(states[0], np.float64)
        made = states[0, 0] if self._reading.takes_first else states[0].mean(axis=0, dtype=np.float64)
        return np.asarray(made, np.float64)


def digests_of(weights: Path) -> tuple[str, ...]:
    """The SHA-256 of weights, and of an export's external data file, if any."""
    beside = [path for pattern in ("*.onnx.data", "*.onnx_data") for path in sorted(weights.parent.glob(pattern))]
    return tuple(map(_sha256_of, (weights, *beside)))


def _sha256_of(path: Path) -> str:
    whole = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            whole.update(block)
    return whole.hexdigest()
