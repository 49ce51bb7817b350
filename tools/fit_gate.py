"""Fit the gate of `memory/gate.py` on the sentences in `tools/gate/` and write its data file.

    python tools/fit_gate.py            # writes src/muniment/memory/data/gate.bin
    python tools/fit_gate.py --check    # exit status 1 if the file is not what the sentences give

Five linear models with squared hinge loss over hashed terms. Only additions, products and square roots of doubles in a
fixed order, so that every machine writes the same bytes. Labels: tools/gate/README.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from muniment.memory.gate import BUCKETS, HEADS, TERMS_MIN, gate_terms

ROOT = Path(__file__).parents[1]
SENTENCES = ROOT / "tools" / "gate"
DATA = ROOT / "src" / "muniment" / "memory" / "data" / "gate.bin"
_MARGIN = 64
"""Points between even odds and the margin of the fit, which few sentences that were not fitted on exceed."""
_LETTERS = {"s": "safety", "w": "wish", "d": "decision", "c": "correction"}
_SLOT = re.compile(r"{(\w+)}")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Settings:
    penalty: float = 3.0
    steps: int = 60
    positive_weight: float = 2.0


@dataclass(frozen=True, slots=True)
class Labelled:
    text: str
    frame: int
    language: str
    labels: tuple[int, ...]
    """1, -1, or 0 where the label says nothing, for each head."""
    weight: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    fitted = fit(read_sentences(), Settings())
    if given.check:
        sys.exit(DATA.read_bytes() != fitted)
    DATA.write_bytes(fitted)
    print(f"{DATA.relative_to(ROOT)}: {len(fitted)} bytes")


# -- the sentences


def read_sentences(fillings: int = 4) -> list[Labelled]:
    """Every frame with its slots filled, each filling of a frame with an equal part of the frame's weight."""
    found: list[Labelled] = []
    frame = 0
    for path in sorted(SENTENCES.glob("??.txt")):
        slots: dict[str, list[str]] = {}
        for line in path.read_text("utf-8").splitlines():
            label, _, text = line.partition(" ")
            if label == "=":
                name, _, words = text.partition(": ")
                slots[name] = words.split(", ")
                continue
            frame += 1
            texts = list(dict.fromkeys(_fill(text, slots, turn) for turn in range(fillings)))
            labels = _read_label(label)
            found += [Labelled(each, frame, path.stem, labels, 1 / len(texts)) for each in texts]
    return found


def _fill(frame: str, slots: dict[str, list[str]], turn: int) -> str:
    """A frame with words in its slots, chosen by the frame's own checksum."""
    first, *rest = _SLOT.split(frame)
    filled = first
    for place, (name, text) in enumerate(zip(rest[::2], rest[1::2], strict=True)):
        words = slots[name]
        word = words[(crc32(frame.encode()) + 5 * turn + 3 * place) % len(words)]
        filled += (word if filled else word[:1].upper() + word[1:]) + text
    return filled


def _read_label(label: str) -> tuple[int, ...]:
    labels = [1 if letter in label else -1 for letter in _LETTERS]
    own = -1 if "x" in label else 0 if "?" in label else 1
    return (*labels, own)


# -- the fit


@dataclass(frozen=True, slots=True)
class Matrix:
    """Sentences by terms: the row, column and value of each entry."""

    rows: Integers
    columns: Integers
    values: Floats

    @classmethod
    def read(cls, texts: list[str]) -> Matrix:
        rows: list[int] = []
        columns: list[int] = []
        counts: list[int] = []
        terms: list[int] = []
        for row, text in enumerate(texts):
            counted = Counter(gate_terms(text))
            rows += [row] * len(counted)
            columns += counted.keys()
            counts += counted.values()
            terms.append(counted.total())
        lengths = np.array(terms, np.int64)
        values = np.array(counts, np.float64) / np.sqrt(np.maximum(lengths, TERMS_MIN))[np.array(rows)]
        return cls(np.array(rows), np.array(columns), values)

    def scores(self, weights: Floats, height: int) -> Floats:
        return np.bincount(self.rows, self.values * weights[self.columns], height)


def fit(sentences: list[Labelled], settings: Settings) -> bytes:
    """The data file: scales, then the weights of all heads, bucket by bucket."""
    matrix = Matrix.read([each.text for each in sentences])
    weight = np.array([each.weight for each in sentences])
    columns, scales = [], []
    for head in range(len(HEADS)):
        labels = np.array([each.labels[head] for each in sentences], np.float64)
        weights, bias = fit_head(matrix, labels, weight * np.abs(labels), settings)
        step = float(np.abs(weights).max()) / 127
        columns.append(np.rint(weights / step).astype(np.int64) + 128)
        scales += [round(_MARGIN * step * 256), round((128 + _MARGIN * bias) * 65536)]
    table = np.stack(columns, axis=1).astype(np.uint8).tobytes()
    return b"".join(each.to_bytes(4, "little", signed=True) for each in scales) + table


def fit_head(matrix: Matrix, labels: Floats, weight: Floats, settings: Settings) -> tuple[Floats, float]:
    """Weights and bias of one head: accelerated gradient descent on the squared hinge, a step size for each term."""
    balanced = weight * np.where(labels > 0, settings.positive_weight, 1.0)
    height = len(labels)
    everywhere = np.zeros(height, np.int64)
    sums = np.bincount(matrix.rows, matrix.values, height) + 1.0
    bounds = np.empty(BUCKETS + 1)
    bounds[:BUCKETS] = np.bincount(matrix.columns, matrix.values * (balanced * sums)[matrix.rows], BUCKETS)
    bounds[BUCKETS] = np.bincount(everywhere, balanced * sums)[0]
    penalties = np.full(BUCKETS + 1, settings.penalty)
    penalties[BUCKETS] = 0.0
    steps = 1.0 / (2 * bounds + penalties)
    weights = ahead = np.zeros(BUCKETS + 1)
    momentum = 1.0
    for _ in range(settings.steps):
        scores = matrix.scores(ahead, height) + ahead[BUCKETS]
        slack = balanced * labels * np.maximum(0.0, 1.0 - labels * scores)
        gradient = np.empty(BUCKETS + 1)
        gradient[:BUCKETS] = np.bincount(matrix.columns, matrix.values * slack[matrix.rows], BUCKETS)
        gradient[BUCKETS] = np.bincount(everywhere, slack)[0]
        moved = ahead - steps * (penalties * ahead - 2 * gradient)
        faster = (1 + (1 + 4 * momentum * momentum) ** 0.5) / 2
        ahead = moved + (momentum - 1) / faster * (moved - weights)
        weights, momentum = moved, faster
    return weights[:BUCKETS], float(weights[BUCKETS])


if __name__ == "__main__":
    main()
