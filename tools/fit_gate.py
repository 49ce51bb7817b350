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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from muniment.memory.gate import HEADS, SCALE_BYTES, TERMS_MIN, gate_terms

ROOT = Path(__file__).parents[1]
SENTENCES = ROOT / "tools" / "gate"
DATA = ROOT / "src" / "muniment" / "memory" / "data" / "gate.bin"
_MARGIN = 96
"""Points between even odds and the margin of the fit, which few sentences that were not fitted on exceed."""
TERMS = 16_379
"""What fits into 128 KiB."""
SHARES = (4, 4, 1, 1, 1)
"""How much each score counts when terms are chosen: a profile is ordered by the first two."""
FRAMES_MIN = 2
"""A term of a single frame is chance."""
JOINED = 2
"""How many times a sentence is fitted together with a plain one."""
_PLAIN = (-1, -1, -1, -1, 1)
_LETTERS = {"s": "safety", "w": "wish", "d": "decision", "c": "correction"}
_SLOT = re.compile(r"{(\w+)}")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Settings:
    penalty: float = 1.5
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


def read_sentences(fillings: int = 6) -> list[Labelled]:
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


def join_sentences(sentences: list[Labelled]) -> list[Labelled]:
    """Each sentence together with a plain one of its language: what matters is often half of what is said."""
    found: list[Labelled] = []
    for language in sorted({each.language for each in sentences}):
        own = [each for each in sentences if each.language == language]
        plain = [each.text for each in own if each.labels == _PLAIN]
        for each in own:
            for turn in range(JOINED):
                seed = crc32(f"{turn} {each.text}".encode())
                pair = [each.text, plain[(seed >> 3) % len(plain)]]
                joined = _join(pair[:: 1 if seed & 1 else -1], language, is_one_sentence=bool(seed & 2))
                found.append(replace(each, text=joined, weight=each.weight / JOINED))
    return found


def _join(pair: list[str], language: str, *, is_one_sentence: bool) -> str:
    is_spaced = language not in ("ja", "zh")
    if is_one_sentence:
        return (", " if is_spaced else "，").join([pair[0].rstrip(".!。！"), pair[1]])
    return (" " if is_spaced else "").join(pair)


# -- the fit


@dataclass(frozen=True, slots=True)
class Matrix:
    """Sentences by terms: the row, column and value of each entry."""

    rows: Integers
    columns: Integers
    values: Floats
    width: int

    @classmethod
    def read(cls, counted: list[Counter[int]], keys: list[int]) -> Matrix:
        column_of = {key: column for column, key in enumerate(keys)}
        rows: list[int] = []
        columns: list[int] = []
        counts: list[int] = []
        for row, terms in enumerate(counted):
            known = [key for key in terms if key in column_of]
            rows += [row] * len(known)
            columns += [column_of[key] for key in known]
            counts += [terms[key] for key in known]
        lengths = np.array([max(terms.total(), TERMS_MIN) for terms in counted], np.float64)
        at = np.array(rows, np.int64)
        return cls(at, np.array(columns, np.int64), np.array(counts, np.float64) / np.sqrt(lengths)[at], len(keys))

    def scores(self, weights: Floats, height: int) -> Floats:
        return np.bincount(self.rows, self.values * weights[self.columns], height)


def fit(sentences: list[Labelled], settings: Settings) -> bytes:
    """The data file: scales, then key and weights of each term that is worth its place."""
    everything = [*sentences, *join_sentences(sentences)]
    counted = [Counter(gate_terms(each.text)) for each in everything]
    frames: dict[int, set[int]] = {}
    for each, terms in zip(everything, counted, strict=True):
        for key in terms:
            frames.setdefault(key, set()).add(each.frame)
    keys = sorted(key for key, own in frames.items() if len(own) >= FRAMES_MIN)
    worth = np.zeros(len(keys))
    for share, (weights, _) in zip(SHARES, _fit_heads(counted, keys, everything, settings), strict=True):
        worth += share * (weights / np.abs(weights).max()) ** 2
    worth *= np.sqrt(np.array([len(frames[key]) for key in keys]))
    best = sorted(keys[at] for at in np.argsort(-worth, kind="stable")[:TERMS])
    table, scales = [np.array(best)], []
    for weights, bias in _fit_heads(counted, best, everything, settings):
        step = float(np.abs(weights).max()) / 127
        table.append(np.rint(weights / step).astype(np.int64) + 128)
        scales += [round(_MARGIN * step * 256), round((128 + _MARGIN * bias) * 65536)]
    head = b"".join(each.to_bytes(SCALE_BYTES // len(scales), "little", signed=True) for each in scales)
    return head + b"".join(row[0].to_bytes(3) + bytes(row[1:]) for row in np.stack(table, axis=1).tolist())


def _fit_heads(
    counted: list[Counter[int]], keys: list[int], sentences: list[Labelled], settings: Settings
) -> Iterator[tuple[Floats, float]]:
    matrix = Matrix.read(counted, keys)
    weight = np.array([each.weight for each in sentences])
    for head in range(len(HEADS)):
        labels = np.array([each.labels[head] for each in sentences], np.float64)
        yield fit_head(matrix, labels, weight * np.abs(labels), settings)


def fit_head(matrix: Matrix, labels: Floats, weight: Floats, settings: Settings) -> tuple[Floats, float]:
    """Weights and bias of one head: accelerated gradient descent on the squared hinge, a step size for each term."""
    balanced = weight * np.where(labels > 0, settings.positive_weight, 1.0)
    height = len(labels)
    everywhere = np.zeros(height, np.int64)
    sums = np.bincount(matrix.rows, matrix.values, height) + 1.0
    bounds = np.empty(matrix.width + 1)
    bounds[: matrix.width] = np.bincount(matrix.columns, matrix.values * (balanced * sums)[matrix.rows], matrix.width)
    bounds[matrix.width] = np.bincount(everywhere, balanced * sums)[0]
    penalties = np.full(matrix.width + 1, settings.penalty)
    penalties[matrix.width] = 0.0
    steps = 1.0 / (2 * bounds + penalties)
    weights = ahead = np.zeros(matrix.width + 1)
    momentum = 1.0
    for _ in range(settings.steps):
        scores = matrix.scores(ahead, height) + ahead[matrix.width]
        slack = balanced * labels * np.maximum(0.0, 1.0 - labels * scores)
        gradient = np.empty(matrix.width + 1)
        gradient[: matrix.width] = np.bincount(matrix.columns, matrix.values * slack[matrix.rows], matrix.width)
        gradient[matrix.width] = np.bincount(everywhere, slack)[0]
        moved = ahead - steps * (penalties * ahead - 2 * gradient)
        faster = (1 + (1 + 4 * momentum * momentum) ** 0.5) / 2
        ahead = moved + (momentum - 1) / faster * (moved - weights)
        weights, momentum = moved, faster
    return weights[: matrix.width], float(weights[matrix.width])


if __name__ == "__main__":
    main()
