"""A sentence model of a few hundred bytes: each token has its own vector, written as ONNX by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["WORDS", "write_model"]

WORDS = ("[UNK]", "the", "cat", "dog", "sat", "query", "passage", ":")


def _varint(value: int) -> bytes:
    written = b""
    while value > 127:
        written, value = written + bytes((value & 127 | 128,)), value >> 7
    return written + bytes((value,))


def _field(number: int, value: bytes | int) -> bytes:
    """A field of a protocol buffer."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    sides = (_field(1, side) if isinstance(side, int) else _field(2, side.encode()) for side in shape)
    tensor = _field(1, kind) + _field(2, b"".join(_field(1, side) for side in sides))
    return _field(1, name.encode()) + _field(2, _field(1, tensor))


def write_model(folder: Path, *, seed: int = 0, dim: int = 6, files: Mapping[str, Any] | None = None) -> Path:
    """Write `model.onnx` (ids → a vector a token), `tokenizer.json` and further JSON files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(seed).normal(size=(len(WORDS), dim)).astype("<f4")
    tensor = _field(1, len(WORDS)) + _field(1, dim) + _field(2, 1) + _field(8, b"table") + _field(9, table.tobytes())
    node = _field(1, b"table") + _field(1, b"input_ids") + _field(2, b"states") + _field(4, b"Gather")
    graph = _field(1, node) + _field(2, b"g") + _field(5, tensor)
    graph += _field(11, _value("input_ids", 7, ("batch", "seq"))) + _field(
        12, _value("states", 1, ("batch", "seq", dim))
    )
    model = _field(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _field(2, 13))
    (folder / "model.onnx").write_bytes(model)
    tokenizer = {
        "version": "1.0",
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {word: at for at, word in enumerate(WORDS)}, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    for name, content in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content), "utf-8")
    return folder
