"""From a hit's signs to the chance that it is evidence: fitted on many sets, judged on the one left out.

    python -m benchmarks.learn_evidence [--data DIR] [--embedder wordllama] [--write]

For every question of the pool, the signs of the best turns (`muniment.memory.recall.evidence`) and whether each is
gold. A logistic model of few weights is fitted with every set but one (the two of BEAM are one) and measured on that
one: Brier score beside that of its base rate, expected calibration error over ten equal parts, AUC, what the first hit
is said and found to be, and the AUC of the first hit's chance between questions that can be answered and those that
nothing answers. Every set counts the same, but those that are easy, which count a third; `realmem` marks sessions and
no turns, and is left out.

To learn what it looks like when memory holds nothing or little, some questions are also asked of a history that they do
not belong to, of the other one where two people talk, and of a few turns alone, with those that answer them among them
or not. `--write` fits on all sets and writes the data file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import muniment
from benchmarks.data import POOL, Question, Scope, Turn, default_data, pooled
from benchmarks.harness import report
from benchmarks.recall import Near, Vectors, index_of
from muniment.core.policy.recall import RecallPolicy
from muniment.memory.recall.dense import weigh_dense
from muniment.memory.recall.evidence import SIGNS
from muniment.memory.recall.rank import signs_of
from muniment.memory.recall.reasons import match_text, read_wanted
from muniment.memory.recall.score import Dense

Array = npt.NDArray[np.float64]

DEPTH = 40
FOREIGN, SWAPPED = 5, 4
"""One question of so many is asked of another history; of the other speaker."""
FEW, FEW_TURNS = 4, (6, 12, 24)
"""One question of so many is asked of a few turns alone; how many these are."""
EASY = ("factconsolidation", "bfcl_memory")
STRENGTH = 3e-4
"""Of the ridge that keeps weights small."""
SHORT_WORDS = 14
"""A turn of no more words is like a fact."""

PRODUCTS = (
    "own*own", "of_best*of_best", "place*place", "own*query_words", "around*query_words", "of_best*best_own",
    "place*turns", "place*best_own", "own*turn_words", "around*turn_words", "own*best_own", "by_named*other_own",
    "by_other*other_own",
)  # fmt: skip
NEAR = ("near*near", "near*own", "best_near*best_own")
VECTOR_SIGNS = ("near", "best_near", "near_window")
TERMS = ("1", *SIGNS, *PRODUCTS, *NEAR)


class Sample(NamedTuple):
    """A question and its best hits: their signs, and which are gold."""

    signs: Array
    gold: Array
    answerable: bool
    is_made: bool
    """Asked of another history, of the other speaker or of a few turns: to learn from, not to judge by."""
    facts: Array
    """Of the short turns among the hits, how much of what is wanted they hold, and whether they are gold."""


def group_of(name: str) -> str:
    return "beam" if name.startswith("beam") else name


# -- samples ------------------------------------------------------------------------------------------


def samples(scopes: Sequence[Scope], vectors: Vectors | None) -> list[Sample]:
    found: list[Sample] = []
    policy = RecallPolicy()
    for place, scope in enumerate(scopes):
        index = index_of(scope.turns)
        near = None if vectors is None else Near(scope.turns, vectors)
        foreign = scopes[(place + 1) % len(scopes)].questions[::FOREIGN] if len(scopes) > 1 else []
        asked = [(each, False) for each in scope.questions] + [(each, True) for each in (*foreign, *_swapped(scope))]
        for question, is_made in asked:
            weighed, dense = _nearness(question, policy, vectors, near)
            now = (scope.questions[0] if is_made else question).now.date()
            order, signs = signs_of(question.text, index, weighed, now, DEPTH, dense)
            gold = np.array([not is_made and scope.turns[at].id in question.gold for at in order], np.float64)
            facts = np.zeros((0, 2)) if is_made else _short(question, scope, order, gold)
            found.append(Sample(signs, gold, question.answerable and not is_made, is_made, facts))
        found += _of_few(scope, policy, vectors)
    return found


def _nearness(
    question: Question, policy: RecallPolicy, vectors: Vectors | None, near: Near | None
) -> tuple[RecallPolicy, Dense | None]:
    if vectors is None or near is None:
        return policy, None
    weighed = weigh_dense(policy, vectors.identity, question.text)
    return weighed, Dense(*near.to(question.text)) if weighed.dense_turn else None


def _of_few(scope: Scope, policy: RecallPolicy, vectors: Vectors | None) -> Iterator[Sample]:
    """Questions asked of a stretch around a gold turn, and each of the stretch of the one before it."""
    places = {turn.id: place for place, turn in enumerate(scope.turns)}
    few: list[Turn] = []
    for number, question in enumerate(scope.questions[::FEW]):
        gold = sorted(places[each] for each in question.gold if each in places)
        if not gold:
            continue
        count = FEW_TURNS[number % len(FEW_TURNS)]
        start = max(0, gold[0] - (7 * number) % count)
        before, few = few, scope.turns[start : start + count]
        for turns in (few, before):
            if turns:
                weighed, dense = _nearness(question, policy, vectors, None if vectors is None else Near(turns, vectors))
                order, signs = signs_of(question.text, index_of(turns), weighed, question.now.date(), DEPTH, dense)
                is_gold = np.array([turns[at].id in question.gold for at in order], np.float64)
                yield Sample(signs, is_gold, bool(is_gold.any()), True, np.zeros((0, 2)))


def _swapped(scope: Scope) -> Iterator[Question]:
    """Questions on one of two speakers, asked of the other one: what is asked was said, but not by them."""
    names = sorted({turn.speaker.split()[0] for turn in scope.turns if turn.speaker.strip()})
    if len(names) != 2:
        return
    for question in scope.questions[::SWAPPED]:
        named = [name for name in names if re.search(rf"\b{re.escape(name)}\b", question.text)]
        if len(named) == 1 and question.answerable:
            other = names[1 - names.index(named[0])]
            text = re.sub(rf"\b{re.escape(named[0])}\b", other, question.text)
            yield Question(text, frozenset(), question.kind, question.now, answerable=False)


def _short(question: Question, scope: Scope, order: Sequence[int], gold: Array) -> Array:
    wanted = read_wanted(question.text)
    rows = []
    for at, is_gold in zip(order, gold.tolist(), strict=True):
        text = scope.turns[at].text
        if len(text.split()) <= SHORT_WORDS:
            rows.append((match_text(wanted, text).score, is_gold))
    return np.array(rows).reshape(-1, 2)


# -- the model ----------------------------------------------------------------------------------------


def columns(signs: Array) -> Array:
    made = []
    for term in TERMS:
        column = np.ones(len(signs))
        for sign in term.split("*"):
            if sign != "1":
                column = column * signs[:, SIGNS.index(sign)]
        made.append(column)
    return np.stack(made, axis=1)


def fit(rows: Array, gold: Array, weights: Array) -> Array:
    """Weights of a logistic model, by Newton's method, with a ridge over standardised columns."""
    middle, spread = rows.mean(axis=0), rows.std(axis=0)
    spread[spread == 0] = np.inf  # what never differs weighs nothing
    middle[0], spread[0] = 0.0, 1.0
    standard = (rows - middle) / spread
    ridge = np.eye(rows.shape[1]) * STRENGTH
    ridge[0, 0] = 0.0
    weights = weights / weights.sum()
    found = np.zeros(rows.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-(standard @ found)))
        slope = standard.T @ (weights * (chance - gold)) + ridge @ found
        bend = (standard * (weights * chance * (1 - chance))[:, np.newaxis]).T @ standard + ridge
        bend[np.diag_indices_from(bend)] += 1e-12
        step = np.linalg.solve(bend, slope)
        found -= step
        if float(np.abs(step).max()) < 1e-9:
            break
    plain = found / spread
    plain[0] = found[0] - float((found[1:] * middle[1:] / spread[1:]).sum())
    return np.asarray(plain)


def gathered(pool: dict[str, list[Sample]]) -> tuple[Array, Array, Array]:
    """The rows of all sets but none more than another."""
    sizes: dict[str, int] = {}
    for name, held in pool.items():
        sizes[group_of(name)] = sizes.get(group_of(name), 0) + len(held)
    rows, gold, weights = [], [], []
    for name, held in pool.items():
        share = (1 / 3 if name in EASY else 1.0) / sizes[group_of(name)]
        for sample in held:
            rows.append(sample.signs)
            gold.append(sample.gold)
            weights.append(np.full(len(sample.gold), share))
    return columns(np.concatenate(rows)), np.concatenate(gold), np.concatenate(weights)


def chances_of(model: Array, sample: Sample) -> Array:
    if not len(sample.signs):
        return np.zeros(0)
    return np.minimum.accumulate(1 / (1 + np.exp(-(columns(sample.signs) @ model))))


def fit_facts(pool: dict[str, list[Sample]]) -> Array:
    rows, weights = [], []
    for held in pool.values():
        found = np.concatenate([sample.facts for sample in held])
        rows.append(found)
        weights.append(np.full(len(found), 1 / max(len(found), 1)))
    every = np.concatenate(rows)
    return fit(np.stack([np.ones(len(every)), every[:, 0]], axis=1), every[:, 1], np.concatenate(weights))


# -- measures -----------------------------------------------------------------------------------------


def auc(values: Array, is_one: Array) -> float:
    """The chance that one of the first kind is above one of the other, ties counting half."""
    ones, others = values[is_one > 0], np.sort(values[is_one == 0])
    if not len(ones) or not len(others):
        return float("nan")
    below = np.searchsorted(others, ones, "left") + np.searchsorted(others, ones, "right")
    return float(below.mean() / 2 / len(others))


def judge(model: Array, held: Sequence[Sample]) -> dict[str, Any]:
    real = [sample for sample in held if not sample.is_made]
    each = [chances_of(model, sample) for sample in real]
    chance, gold = np.concatenate(each), np.concatenate([sample.gold for sample in real])
    parts = np.array_split(np.argsort(chance, kind="stable"), 10)
    error = sum(len(part) * abs(float(chance[part].mean() - gold[part].mean())) for part in parts) / len(chance)
    first = np.array([found[0] if len(found) else 0.0 for found in each])
    row = {
        "questions": len(real),
        "base_rate": round(float(gold.mean()), 4),
        "brier": round(float(((chance - gold) ** 2).mean()), 4),
        "brier_of_base_rate": round(float(gold.var()), 4),
        "ece": round(float(error), 4),
        "auc": round(auc(chance, gold), 4),
        "first_said": round(float(first.mean()), 3),
        "first_is": round(float(np.mean([sample.gold[0] if len(sample.gold) else 0.0 for sample in real])), 3),
    }
    answerable = np.array([sample.answerable for sample in real], np.float64)
    if not answerable.all():
        row["abstain_auc"] = round(auc(first, answerable), 4)
    return row


def _rounded(model: Array) -> list[float]:
    return [round(float(weight), 5) for weight in model]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--embedder", default="wordllama", help="whose vectors the second model is fitted with")
    parser.add_argument("--write", action="store_true", help="write the data file of the package")
    arguments = parser.parse_args()
    if not (arguments.data / "retrieval").exists():
        sys.exit(f"no data at {arguments.data}: nothing was fitted")
    scopes = {name: pooled(arguments.data, name) for name in POOL if name != "realmem"}
    rows: dict[str, dict[str, Any]] = {}
    models: dict[str, Array] = {}
    facts = np.zeros(2)
    for kind, vectors in (("words", None), ("vectors", Vectors(arguments.embedder) if arguments.embedder else None)):
        if kind == "vectors" and vectors is None:
            continue
        pool = {name: samples(each, vectors) for name, each in scopes.items()}
        for name in pool:
            others = {other: held for other, held in pool.items() if group_of(other) != group_of(name)}
            rows[f"{kind}, {name} left out"] = judge(fit(*gathered(others)), pool[name])
        models[kind] = fit(*gathered(pool))
        if kind == "words":
            facts = fit_facts(pool)
    report("learn_evidence", rows, {"embedder": arguments.embedder, "depth": DEPTH})
    if arguments.write:
        if set(models) != {"words", "vectors"}:
            sys.exit("a data file has both models: name an embedder")
        _write(models, facts, arguments.embedder)


def _write(models: dict[str, Array], facts: Array, embedder: str) -> None:
    where = Path(muniment.__file__).parent / "memory" / "recall" / "data" / "evidence.json"
    told = {
        "about": "Weights of the signs of a hit, by which it becomes the chance that the hit is evidence. Fitted by "
        f"benchmarks.learn_evidence on the development sets {', '.join(name for name in POOL if name != 'realmem')}; "
        f"`vectors` with those of {embedder}. No text of a set is in it.",
        "terms": TERMS,
        **{kind: _rounded(model) for kind, model in models.items()},
        "fact": _rounded(facts),
    }
    where.write_text(json.dumps(told, indent=1) + "\n")
    print(f"digest {sha256(where.read_bytes()).hexdigest()[:16]}: name it in core/policy/recall.py")


if __name__ == "__main__":
    main()
