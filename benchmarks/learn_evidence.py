"""From a hit's signs to the chance that it is evidence: fitted on the permitted sets, judged on what was left out.

    python -m benchmarks.learn_evidence [--data DIR] [--embedder e5-small] [--scopes qmsum=20] [--only locomo,qmsum,…]
                                        [--vectors-only] [--write]

For every question, the signs of the best turns (`muniment.memory.evidence`) and whether each is gold; and the signs of
the question as a whole and whether anything answers it. Two logistic models of few weights are fitted: that there is
evidence at all, and, where there is, that a hit is it. A hit's chance is the product. They are fitted with the sets
whose licence permits it (`benchmarks.data.PERMITTED`) but one, and measured on that one; all together are measured on
the sets that are for measuring only:

- Brier score beside that of its base rate, expected calibration error over ten equal parts, AUC, what the first hit is
  said and found to be;
- `abstain_auc`, the AUC of the first hit's chance between questions that can be answered and those that nothing
  answers, with the middle nine tenths of what it is when scopes are drawn anew, and once over all such sets but LoCoMo
  together; `found_auc`, that of the first model;
- `cut_off`, the highest chance of the first hit below which no more than a twentieth of the questions that can be
  answered lie on the mean of the *other* sets; what it refuses here of those that can be answered, and recognises of
  those that nothing answers;
- of the first ten hits, the share that is evidence (`precision`); the highest `min_score` by which no more than .03 of
  their recall is lost (`kept_at`) and the share of evidence above it; the least by which half of what is left is
  evidence (`half_at`) and what recall that costs.

Every set counts the same, but those that are easy, which count a third; `realmem` marks sessions and no turns, and is
left out.

To learn what it looks like when memory holds nothing or little, questions are also asked of a history that they do not
belong to, of another one of those who talk, of the history without the turns that answer them, and of a few turns
alone, with those that answer them among them or not. `--write` fits on all sets and writes the data file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import muniment
from benchmarks.data import PERMITTED, POOL, Question, Scope, Turn, default_data
from benchmarks.embedders import KeptVectors
from benchmarks.harness import report
from benchmarks.recall import Near, index_of
from benchmarks.recall_pool_side import counts_of, drawn
from muniment.core.policy import RecallPolicy
from muniment.memory.evidence import FOUND_SIGNS, SIGNS, match_text, read_wanted
from muniment.memory.ranking import signs_of
from muniment.memory.scoring import Dense, weigh_dense

Array = npt.NDArray[np.float64]

DEPTH = 40
FOREIGN = 3
"""One question of so many is asked of another history."""
WITHOUT, WITHOUT_TIMES = 6, 2
"""One question of so many is asked of the history without what answers any of them; how often that is done."""
SPEAKERS_MAX = 12
"""So many of those who talk are asked what another one did."""
FEW, FEW_TURNS = 4, (6, 12, 24)
"""One question of so many is asked of a few turns alone; how many these are."""
EASY = ("factconsolidation", "bfcl_memory")
STRENGTH, FOUND_STRENGTH = 3e-4, 3e-3
"""Of the ridge that keeps weights small."""
LOST_MAX, REFUSED_MAX = 0.03, 0.05
"""How much recall a `min_score` may cost; how many questions that can be answered a cut-off may refuse."""
SHOWN = 10
"""How many hits a search answers."""
DRAWS = 400
"""How often scopes are drawn anew, for the spread."""
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
FOUND_TERMS = ("1", *FOUND_SIGNS, "says*named", "hears*named")


class Model(NamedTuple):
    """Weights of the terms of a hit, and of those of a question."""

    hit: Array
    found: Array


class Sample(NamedTuple):
    """A question and its best hits: their signs and its own, and which are gold."""

    scope: str
    signs: Array
    found: Array
    gold: Array
    golds: int
    """How many gold turns there are."""
    answerable: bool
    is_made: bool
    """Asked of what it does not belong to, or of a part of it: to learn from, not to judge by."""
    facts: Array
    """Of the short turns among the hits, how much of what is wanted they hold, and whether they are gold."""


# -- samples ------------------------------------------------------------------------------------------


def samples(scopes: Sequence[Scope], vectors: KeptVectors | None) -> list[Sample]:
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
            order, signs, whole = signs_of(question.text, index, weighed, now, DEPTH, dense)
            gold = np.array([not is_made and scope.turns[at].id in question.gold for at in order], np.float64)
            facts = np.zeros((0, 2)) if is_made else _short(question, scope, order, gold)
            is_answerable = question.answerable and not is_made
            found.append(Sample(scope.name, signs, whole, gold, len(question.gold), is_answerable, is_made, facts))
        for turns, questions in (*_without(scope), *_of_few(scope)):
            found += _asked_of(scope.name, turns, questions, policy, vectors)
    return found


def _asked_of(
    scope: str, turns: list[Turn], questions: Sequence[Question], policy: RecallPolicy, vectors: KeptVectors | None
) -> Iterator[Sample]:
    """Questions asked of some turns of their scope."""
    index = index_of(turns)
    near = None if vectors is None else Near(turns, vectors)
    for question in questions:
        weighed, dense = _nearness(question, policy, vectors, near)
        order, signs, whole = signs_of(question.text, index, weighed, question.now.date(), DEPTH, dense)
        gold = np.array([turns[at].id in question.gold for at in order], np.float64)
        yield Sample(scope, signs, whole, gold, int(gold.sum()), bool(gold.any()), True, np.zeros((0, 2)))


def _nearness(
    question: Question, policy: RecallPolicy, vectors: KeptVectors | None, near: Near | None
) -> tuple[RecallPolicy, Dense | None]:
    if vectors is None or near is None:
        return policy, None
    weighed = weigh_dense(policy, vectors.identity, question.text)
    return weighed, Dense(*near.to(question.text)) if weighed.dense_turn else None


def _of_few(scope: Scope) -> Iterator[tuple[list[Turn], list[Question]]]:
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
                yield turns, [question]


def _without(scope: Scope) -> Iterator[tuple[list[Turn], list[Question]]]:
    """Some questions, and the history without the turns that answer any of them, where most of it is left."""
    for start in range(WITHOUT_TIMES):
        questions = [each for each in scope.questions[start::WITHOUT] if each.answerable]
        gone = {id_ for question in questions for id_ in question.gold}
        rest = [turn for turn in scope.turns if turn.id not in gone]
        if questions and 2 * len(rest) > len(scope.turns):
            yield rest, questions


def _swapped(scope: Scope) -> Iterator[Question]:
    """Questions on one of those who talk most, asked of another: what is asked was said, but not by them."""
    counted = Counter(turn.speaker.strip() for turn in scope.turns)
    speakers = sorted(name for name, _ in counted.most_common(SPEAKERS_MAX) if name[:1].isalpha())
    words = {word for turn in scope.turns for word in turn.text.split()}
    firsts = Counter(name.split()[0] for name in speakers)
    names = list(speakers)
    for place, name in enumerate(speakers):  # by the first name, where that is one and nobody else's
        first = name.split()[0]
        if firsts[first] == 1 and len(first) > 2 and first.lower() not in words:
            names[place] = first
    spelled = {name: re.compile(rf"\b{re.escape(name)}\b") for name in names}
    for question in scope.questions:
        named = [name for name in names if spelled[name].search(question.text)]
        if len(named) == 1 and len(names) > 1 and question.answerable:
            others = [name for name in names if name != named[0]]
            text = spelled[named[0]].sub(others[len(question.text) % len(others)], question.text)
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


def columns(signs: Array, names: Sequence[str] = SIGNS, terms: Sequence[str] = TERMS) -> Array:
    made = []
    for term in terms:
        column = np.ones(len(signs))
        for sign in term.split("*"):
            if sign != "1":
                column = column * signs[:, names.index(sign)]
        made.append(column)
    return np.stack(made, axis=1)


def fit(rows: Array, gold: Array, weights: Array, strength: float = STRENGTH) -> Array:
    """Weights of a logistic model, by Newton's method, with a ridge over standardised columns."""
    middle, spread = rows.mean(axis=0), rows.std(axis=0)
    spread[spread == 0] = np.inf  # what never differs weighs nothing
    middle[0], spread[0] = 0.0, 1.0
    standard = (rows - middle) / spread
    ridge = np.eye(rows.shape[1]) * strength
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


def fit_both(pool: dict[str, list[Sample]]) -> Model:
    """Both models, with all sets and none more than another: a hit's with what can be answered alone."""
    answered = {name: [sample for sample in held if sample.answerable] for name, held in pool.items()}
    shares = _shares(answered)
    hit = fit(
        columns(np.concatenate([sample.signs for held in answered.values() for sample in held])),
        np.concatenate([sample.gold for held in answered.values() for sample in held]),
        np.concatenate([np.full(len(each.gold), shares[name]) for name, held in answered.items() for each in held]),
    )
    shares = _shares(pool)
    found = fit(
        columns(np.concatenate([sample.found for held in pool.values() for sample in held]), FOUND_SIGNS, FOUND_TERMS),
        np.array([sample.answerable for held in pool.values() for sample in held], np.float64),
        np.array([shares[name] for name, held in pool.items() for _ in held]),
        FOUND_STRENGTH,
    )
    return Model(hit, found)


def _shares(pool: dict[str, list[Sample]]) -> dict[str, float]:
    """What one question of each set counts."""
    sizes: dict[str, int] = {}
    for name, held in pool.items():
        sizes[name] = len(held)
    return {name: (1 / 3 if name in EASY else 1.0) / sizes[name] for name in pool}


def found_of(model: Model, sample: Sample) -> float:
    return float(1 / (1 + np.exp(-(columns(sample.found, FOUND_SIGNS, FOUND_TERMS) @ model.found)[0])))


def chances_of(model: Model, sample: Sample) -> Array:
    if not len(sample.signs):
        return np.zeros(0)
    likely = np.minimum.accumulate(1 / (1 + np.exp(-(columns(sample.signs) @ model.hit))))
    return np.asarray(found_of(model, sample) * likely)


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


def judge(model: Model, held: Sequence[Sample], cut_off: float) -> dict[str, Any]:
    real = [sample for sample in held if not sample.is_made]
    each = [chances_of(model, sample) for sample in real]
    chance, gold = np.concatenate(each), np.concatenate([sample.gold for sample in real])
    parts = np.array_split(np.argsort(chance, kind="stable"), 10)
    error = sum(len(part) * abs(float(chance[part].mean() - gold[part].mean())) for part in parts) / len(chance)
    first = firsts_of(each)
    answerable = np.array([sample.answerable for sample in real], np.float64)
    row: dict[str, Any] = {
        "questions": len(real),
        "base_rate": round(float(gold.mean()), 4),
        "brier": round(float(((chance - gold) ** 2).mean()), 4),
        "brier_of_base_rate": round(float(gold.var()), 4),
        "ece": round(float(error), 4),
        "auc": round(auc(chance, gold), 4),
        "first_said": round(float(first.mean()), 3),
        "first_is": round(float(np.mean([sample.gold[0] if len(sample.gold) else 0.0 for sample in real])), 3),
        "cut_off": cut_off,
        "refused": round(float((first[answerable > 0] < cut_off).mean()), 3),
    }
    if not answerable.all():
        row["recognised"] = round(float((first[answerable == 0] < cut_off).mean()), 3)
        row["abstain_auc"] = round(auc(first, answerable), 4)
        row["abstain_spread"] = _spread(first, answerable, [sample.scope for sample in real])
        row["found_auc"] = round(auc(np.array([found_of(model, sample) for sample in real]), answerable), 4)
    return row | _kept(real, each)


def firsts_of(each: Sequence[Array]) -> Array:
    return np.array([found[0] if len(found) else 0.0 for found in each])


def _spread(first: Array, answerable: Array, scopes: Sequence[str]) -> list[float]:
    """Between what the AUC lies nine times of ten, when as many scopes are drawn anew, some of them twice."""
    draw = np.random.default_rng(7)
    names = sorted(set(scopes))
    places = [np.flatnonzero(np.array(scopes) == name) for name in names]
    found = []
    for _ in range(DRAWS):
        again = np.concatenate([places[at] for at in draw.integers(0, len(names), len(names))])
        found.append(auc(first[again], answerable[again]))
    return [round(float(value), 3) for value in np.nanquantile(found, (0.05, 0.95))]


def _pooled(left_out: dict[str, list[tuple[Array, Sample]]]) -> float:
    """The AUC over all sets but LoCoMo in which something cannot be answered, each judged when it was left out."""
    pairs = [
        pair
        for name, held in left_out.items()
        if name != "locomo" and not all(sample.answerable for _, sample in held)
        for pair in held
    ]
    answerable = np.array([sample.answerable for _, sample in pairs], np.float64)
    return round(auc(firsts_of([found for found, _ in pairs]), answerable), 4)


def _kept(real: Sequence[Sample], each: Sequence[Array]) -> dict[str, float]:
    """What a `min_score` leaves of the hits that a search shows, and what it costs."""
    chance = np.concatenate([found[:SHOWN] for found in each])
    gold = np.concatenate([sample.gold[:SHOWN] for sample in real])
    asked = sum(1 for sample in real if sample.golds)
    part = np.concatenate([sample.gold[:SHOWN] / max(sample.golds, 1) for sample in real]) / max(asked, 1)
    order = np.argsort(-chance, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(chance[order]) != 0, True))  # what is as likely is kept together
    precision = (np.cumsum(gold[order]) / np.arange(1, len(order) + 1))[ends]
    lost = part.sum() - np.cumsum(part[order])[ends]
    least = chance[order][ends]
    kept = int(np.argmax(lost <= LOST_MAX + 1e-12))
    row = {
        "precision": float(gold.mean()),
        "kept_at": float(least[kept]),
        "precision_kept": float(precision[kept]),
    }
    half = np.flatnonzero(precision >= 0.5)
    if len(half):
        row |= {"half_at": float(least[half[-1]]), "lost_at_half": float(lost[half[-1]])}
    return {name: round(value, 4) for name, value in row.items()}


def cut_off_of(model: Model, pool: dict[str, list[Sample]]) -> float:
    """The highest chance of the first hit that refuses few enough of what can be answered, on the mean of all sets."""
    firsts = [
        firsts_of([chances_of(model, each) for each in held if each.answerable and not each.is_made])
        for held in pool.values()
    ]
    tried = np.arange(1, 100) / 200
    refused = [float(np.mean([(first < cut_off).mean() for first in firsts])) for cut_off in tried]
    return float(tried[max(0, int(np.searchsorted(refused, REFUSED_MAX, "right")) - 1)])


def _rounded(model: Array) -> list[float]:
    return [round(float(weight), 5) for weight in model]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--embedder", default="e5-small", help="whose vectors the second model is fitted with")
    parser.add_argument("--scopes", default="", help="of some sets so many scopes, drawn with a fixed seed: qmsum=20")
    parser.add_argument("--only", default="", help="sets, comma-separated")
    parser.add_argument("--vectors-only", action="store_true", help="leave what is fitted by words as it is")
    parser.add_argument("--write", action="store_true", help="write the data file of the package")
    arguments = parser.parse_args()
    if not (arguments.data / "retrieval").exists():
        sys.exit(f"no data at {arguments.data}: nothing was fitted")
    sets = [name for name in POOL if name in arguments.only.split(",") or (not arguments.only and name != "realmem")]
    scopes = {name: drawn(arguments.data, name, counts_of(arguments.scopes)) for name in sets}
    rows: dict[str, dict[str, Any]] = {}
    models: dict[str, Model] = {}
    facts = np.zeros(2)
    kinds: dict[str, KeptVectors | None] = {} if arguments.vectors_only else {"words": None}
    for kind, vectors in (kinds | {"vectors": KeptVectors(arguments.embedder)}).items():
        pool = {name: samples(each, vectors) for name, each in scopes.items()}
        left_out: dict[str, list[tuple[Array, Sample]]] = {}
        for name in pool:
            others = {other: pool[other] for other in PERMITTED if other != name}
            model = fit_both(others)
            rows[f"{kind}, {name} left out"] = judge(model, pool[name], cut_off_of(model, others))
            left_out[name] = [(chances_of(model, each), each) for each in pool[name] if not each.is_made]
        fitted = {name: pool[name] for name in PERMITTED}
        models[kind] = fit_both(fitted)
        rows[f"{kind}, all"] = {
            "cut_off": cut_off_of(models[kind], fitted),
            "abstain_auc_but_locomo": _pooled(left_out),
        }
        if kind == "words":
            facts = fit_facts(fitted)
    told = {"embedder": arguments.embedder, "depth": DEPTH, "scopes": arguments.scopes}
    report("learn_evidence", rows, told, f"learn_evidence_{arguments.embedder}" if arguments.vectors_only else "")
    if arguments.write:
        _write(models, facts, arguments.embedder)


def _write(models: dict[str, Model], facts: Array, embedder: str) -> None:
    where = Path(muniment.__file__).parent / "memory" / "data" / "evidence.json"
    held = json.loads(where.read_bytes())
    hits = {kind: _rounded(model.hit) for kind, model in models.items()}
    founds = {kind: _rounded(model.found) for kind, model in models.items()}
    told = {
        "about": "Weights of the signs of a hit and of a query: the chance that the hit is evidence, where there is "
        "any, and that there is any. Fitted by "
        f"benchmarks.learn_evidence on the development parts of {', '.join(PERMITTED)}; "
        f"`vectors` with those of {embedder}. No text of a set is in it.",
        "hit": held["hit"] | {"terms": TERMS} | hits,
        "found": held["found"] | {"terms": FOUND_TERMS} | founds,
        "fact": _rounded(facts) if "words" in models else held["fact"],
    }
    where.write_text(json.dumps(told, indent=1) + "\n")
    print(f"digest {sha256(where.read_bytes()).hexdigest()[:16]}: name it in core/policy.py")


if __name__ == "__main__":
    main()
