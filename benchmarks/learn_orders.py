"""Learn what the parts of an order count for: `src/muniment/store/ledger/data/order_weights.json`.

    python -m benchmarks.learn_orders --data DIR      # writes the weights that the package ships

Texts of `benchmarks.injection_families` against one in seven turns of the chats (no figure is measured on those) and
the decisions of this project, which speak of agents, tools and models and give no orders. Which stretch of a text is
the order is not told: the heaviest under the present weights is taken, and weights are fitted anew, some rounds long.
Weights are held near a prior that says of each part how telling it is by itself, so that a part that no family at hand
has still counts.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.chat_turns import ChatTurn, turns_of
from benchmarks.data import default_data
from benchmarks.injection_families import FAMILIES, texts_of
from muniment.store.ledger.disguises import readings_of
from muniment.store.ledger.order_words import PARTS, Weights, features_of, stretches_of

__all__ = ["LEARNED_EVERY", "Bits", "bits_of", "fit", "quiet_texts"]

FILE = Path(__file__).parent.parent / "src/muniment/store/ledger/data/order_weights.json"
LEARNED_EVERY = 7
"""One in so many turns is learned from, an odd number since speakers take turns; the others are measured on."""
SEED, TEXTS = 1, 150
FALSE_RATE = 0.0008
"""The share of turns learned from that may weigh more than is let pass."""
_PRIOR = {
    "slot": 5.0, "role": 2.0, "persona": 3.0, "memory": 2.5, "override": 1.5, "secrecy": 2.0, "hidden": 1.5,
    "model": 0.5,
    "self": 1.0, "reach": 1.0, "deed": 0.5, "duty": 0.5, "prize": 0.5, "remark": 0.5, "guidance": 0.5, "command": 0.5,
    "condition": 1.0, "authority": 0.5, "user": 0.5, "you": 0.2, "order": 1.0,
    "addressed": 1.5, "lasting": 0.8, "benefit": 1.5,
}  # fmt: skip
_PAIR_PRIOR = {
    ("role", "order"): 2.5, ("memory", "user"): 2.0, ("memory", "self"): 1.5, ("memory", "prize"): 1.5,
    ("memory", "benefit"): 1.5, ("condition", "order"): 1.0, ("condition", "user"): 0.5, ("condition", "self"): 0.5,
    ("authority", "order"): 1.0, ("secrecy", "order"): 1.0, ("lasting", "benefit"): 1.0,
}  # fmt: skip
"""What two parts are worth together beyond each by itself: an order behind a mark of a role, something about the
user that is to be kept in memory, an order that waits for an occasion or claims an office."""
_PULL, _ROUNDS, _STEPS = 3.0, 5, 200

Bits = list[int]


def bits_of(text: str) -> Bits:
    """The stretches of all readings of a text."""
    return sorted({bits for reading in readings_of(text) for bits in stretches_of(reading)})


def quiet_texts(turns: Iterable[ChatTurn]) -> Iterator[str]:
    """What gives no orders: the turns that are learned from, and sentences of this project's decisions, each twice."""
    yield from (turn.text for number, turn in enumerate(turns) if number % LEARNED_EVERY == 0)
    pages = sorted((Path(__file__).parent.parent / "docs" / "decisions").glob("*.md"))
    for page in pages:
        text = re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))
        for sentence in re.split(r"(?<=[.!?])\s+|\n\n|\n(?=[-|#])", text):
            yield from (" ".join(sentence.split()),) * 2


def fit(attacks: Sequence[Bits], turns: Sequence[Bits], judged: int) -> Weights:
    """Weights under which attacks weigh more than turns, and the least that an order weighs: by the first `judged`."""
    known = {bits: number for number, bits in enumerate(sorted({bits for each in (*attacks, *turns) for bits in each}))}
    rows = np.zeros((len(known), len(PARTS) + len(tuple(combinations(PARTS, 2)))), np.float64)
    for bits, number in known.items():
        rows[number, features_of(bits)] = 1.0
    prior = np.zeros(rows.shape[1])
    prior[: len(PARTS)] = [_PRIOR[name] for name in PARTS]
    for pair, worth in _PAIR_PRIOR.items():
        one, other = (1 << PARTS.index(name) for name in pair)
        prior[features_of(one | other)[-1]] = worth
    weights, bias = prior.copy(), -4.0
    ours, theirs = _numbers(attacks, known), _numbers(turns, known)
    for _ in range(_ROUNDS):
        scores = rows @ weights
        counts = np.zeros((2, len(known)))
        for side, texts in enumerate((theirs, ours)):
            for numbers in texts:
                counts[side, numbers[np.argmax(scores[numbers])]] += 1
        counts[1] *= counts[0].sum() / max(1.0, counts[1].sum())
        used = counts.any(axis=0)  # the others have no say in a step
        weights, bias = _descend(rows[used], counts[:, used], prior, weights, bias)
    scores = rows @ weights
    heaviest = sorted((max(scores[known[bits]] for bits in each) for each in turns[:judged] if each), reverse=True)
    least = float(heaviest[int(judged * FALSE_RATE)])
    return Weights(tuple(float(round(weight, 3)) for weight in weights), round(least + 0.002, 3))


def _numbers(texts: Iterable[Bits], known: Mapping[int, int]) -> list[NDArray[np.int64]]:
    return [np.array([known[bits] for bits in each]) for each in texts if each]


def _descend(
    rows: NDArray[np.float64],
    counts: NDArray[np.float64],
    prior: NDArray[np.float64],
    weights: NDArray[np.float64],
    bias: float,
) -> tuple[NDArray[np.float64], float]:
    """Logistic regression with a pull towards the prior, by accelerated gradient steps."""
    whole = counts.sum()
    step, held = 0.5, weights.copy()
    for number in range(_STEPS):
        ahead = weights + (number / (number + 3)) * (weights - held)
        held = weights
        told = 1 / (1 + np.exp(-np.clip(rows @ ahead + bias, -30, 30)))
        off = (told * counts.sum(axis=0) - counts[1]) / whole
        weights = ahead - step * (rows.T @ off + _PULL / whole * (ahead - prior))
        bias -= step * float(off.sum())
    return weights, bias


def _named(weights: Weights) -> dict[str, Any]:
    names = [*PARTS, *("+".join(pair) for pair in combinations(PARTS, 2))]
    told = {name: weight for name, weight in zip(names, weights.counts, strict=True) if weight}
    return {"least": weights.least, "weights": told}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=default_data())
    data = parser.parse_args().data
    attacks = [bits_of(text) for family in FAMILIES for text in texts_of(family, TEXTS, SEED)]
    chats = list(turns_of(data))
    turns = [bits_of(text) for text in quiet_texts(chats)]
    FILE.write_text(
        json.dumps(_named(fit(attacks, turns, len(chats) // LEARNED_EVERY)), indent=1, sort_keys=True) + "\n"
    )


if __name__ == "__main__":
    main()
