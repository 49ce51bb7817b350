"""Learn the weights by which readings of English chats are told from facts (`extraction/english/acceptor.py`).

    python -m benchmarks.learn_chat_facts            # cross-fitted figures of every part, by chats left out
    python -m benchmarks.learn_chat_facts --write    # and the weights of all parts, as the data file

A reading is right if a label of its turn fits it, as `benchmarks.chat_facts` judges. The part `develop` is learned
from; the part `judge` is judged by what was learned, and has no share in it. Folds of `develop` are whole sessions, so
that no chat is judged by weights that saw it.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.chat_facts import LABELS, Counts, Read, fits, is_right, read_turns, sentences
from benchmarks.data import default_data
from muniment.memory.extraction.english import acceptor
from muniment.memory.extraction.english.candidates import Setting, around, candidates, rule_features
from muniment.memory.extraction.english.grammar import ENGLISH
from muniment.memory.extraction.grammar import Place, Rule, Talk, Told
from muniment.memory.extraction.languages.choice import language_of
from muniment.memory.extraction.sentences import sentences as sentences_of

READER = Path(acceptor.__file__)
TARGET = READER.parent / "data" / "acceptor.bin"
FOLDS, COUNT_MIN, PENALTY, STEPS = 5, 4, 2.0, 200


class Reading(NamedTuple):
    features: tuple[str, ...]
    is_right: bool
    is_rule: bool
    labels: frozenset[int]
    key: str
    value: str


class Turn(NamedTuple):
    name: str
    fold: int
    stated: int
    readings: tuple[Reading, ...]


def read(turn: Read) -> Iterator[Reading]:
    labels = [label for label in turn.labels if not label.key.startswith("instruction")]

    def reading(features: tuple[str, ...], key: str, value: str, *, is_rule: bool) -> Reading:
        fit = frozenset(number for number, label in enumerate(labels) if fits(label, key, value))
        return Reading(features, is_right(labels, key, value), is_rule, fit, key, value)

    seen: dict[tuple[str, str], tuple[str, ...]] = {}

    def capture(rule: Rule, told: Told, place: Place) -> bool:
        features = rule_features(rule.name, told.key, place.view, place.clause, place.talk.around, told.start, told.end)
        seen.setdefault((told.key, str(told.value)), features)
        return True

    grammar = dataclasses.replace(ENGLISH, accepts=capture, wide=None)
    said = [each for each in sentences_of(turn.text) if language_of(each.text, turn.text) == "english"]
    talk = Talk(turn.ts)
    for each in grammar.propose(turn.text, said, talk):
        if (each.key, str(each.value)) in seen:
            yield reading(seen[each.key, str(each.value)], each.key, str(each.value), is_rule=True)
    for number, sentence in enumerate(said):
        view = ENGLISH.view(turn.text, sentence)
        silence = ENGLISH.silence(view, sentence)
        stop = silence.start if silence is not None else len(view.text)
        where = Setting(
            view, ENGLISH.clauses(view, sentence), ENGLISH.quoted(view), stop, around(turn.text, said, number)
        )
        for found in candidates(where):
            value = view.verbatim(found.start, found.end)
            yield reading(found.features, f"user.{found.attribute}", value, is_rule=False)
        if silence is not None and silence.is_lasting:
            break


def turns(data: Path) -> list[Turn]:
    found = []
    for turn in read_turns(data):
        if not turn.set.endswith("_cn"):
            session = f"{turn.set}/{turn.scope}/{turn.turn.split('#')[0].split('/')[0]}"
            found.append(_turn(turn, turn.source, session))
    for text, facts in sentences(LABELS / "lang_en_develop.jsonl"):
        found.append(_turn(Read("own", "", "", "develop", text, "2026-05-20T12:00:00Z", facts, "own"), "own", text))
    return found


def _turn(turn: Read, source: str, session: str) -> Turn:
    fold = int(hashlib.sha256(session.encode()).hexdigest(), 16) % FOLDS
    count = sum(not label.key.startswith("instruction") for label in turn.labels)
    return Turn(f"{source} {turn.part}", fold, count, tuple(read(turn)))


def learn(readings: Sequence[Reading]) -> dict[str, int]:
    """Weights in hundredths, by logistic regression."""
    counted = Counter(feature for each in readings for feature in set(each.features))
    names = sorted(name for name, count in counted.items() if count >= COUNT_MIN)
    places = {name: at for at, name in enumerate(names)}
    pairs = [(row, places[f]) for row, each in enumerate(readings) for f in set(each.features) if f in places]
    rows, columns = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    right = np.array([each.is_right for each in readings], float)
    weights, bias = np.zeros(len(names)), 0.0
    squares, bias_squares = np.full(len(names), 1e-6), 1e-6
    for _ in range(STEPS):
        sums = np.bincount(rows, weights=weights[columns], minlength=len(readings)) + bias
        wrong = 1 / (1 + np.exp(-sums)) - right
        slope = np.bincount(columns, weights=wrong[rows], minlength=len(names)) + PENALTY * weights
        squares += slope * slope
        bias_squares += float(wrong.sum()) ** 2
        weights -= 0.5 * slope / np.sqrt(squares)
        bias -= 0.5 * float(wrong.sum()) / bias_squares**0.5
    whole = {name: round(100 * float(weight)) for name, weight in zip(names, weights, strict=True)}
    return {acceptor.BIAS: round(100 * bias)} | {name: weight for name, weight in whole.items() if abs(weight) > 1}


def judge(turn: Turn, weights: dict[str, int], rule_min: float, wide_min: float) -> Counts:
    def weigh(each: Reading) -> int:
        return weights[acceptor.BIAS] + sum(weights.get(name, 0) for name in set(each.features))

    taken: list[Reading] = [each for each in turn.readings if each.is_rule and weigh(each) >= rule_min]
    scored = [(weigh(each), at) for at, each in enumerate(turn.readings) if not each.is_rule]
    for score, at in sorted(scored, key=lambda pair: (-pair[0], pair[1])):
        value = turn.readings[at].value.lower()
        if score >= wide_min and not any(value in each.value.lower() or each.value.lower() in value for each in taken):
            taken.append(turn.readings[at])
    found = frozenset().union(*(each.labels for each in taken))
    return Counts(turn.stated, len(found), len(taken), sum(each.is_right for each in taken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    all_turns = turns(given.data)
    learned = [each for each in all_turns if not each.name.endswith("judge")]
    rows: dict[tuple[str, str], Counts] = {}
    choices = [("rules alone", -9999, 9999), ("chosen", acceptor.RULE_MIN, acceptor.WIDE_MIN)]
    choices += [(f"rules {r} wide {w}", r, w) for r, w in ((0, 200), (50, 150), (0, 100), (50, 100), (50, 50))]
    final = learn([each for turn in learned for each in turn.readings])
    for fold in range(FOLDS):
        folded = learn([each for turn in learned if turn.fold != fold for each in turn.readings])
        for turn in all_turns:
            weights = final if turn.name.endswith("judge") else folded
            for name, rule_min, wide_min in choices if turn.fold == fold else ():
                rows[turn.name, name] = rows.get((turn.name, name), Counts()).plus(
                    judge(turn, weights, rule_min, wide_min)
                )
    for (part, name), counts in sorted(rows.items()):
        print(f"{part:12} {name:20} {counts.row()}")
    if given.write:
        lines = "\n".join(f"{name} {weight}" for name, weight in sorted(final.items()))
        made = zlib.compress(lines.encode(), 9)
        TARGET.write_bytes(made)
        text = READER.read_text("utf-8")
        READER.write_text(
            re.sub(r'(?m)^_DIGEST = "\w*"', f'_DIGEST = "{hashlib.sha256(made).hexdigest()}"', text), "utf-8"
        )
        print(len(final), "weights,", len(made), "bytes")


if __name__ == "__main__":
    main()
