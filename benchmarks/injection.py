"""Injections: how many are flagged of families and languages that nothing was learned from, and what falsely.

    python -m benchmarks.injection --data DIR [--more DIR]       # everything: learns anew for each thing left out
    python -m benchmarks.injection --judge FILE …                # only these texts, with the weights as shipped

Rows of families: `left_out` is the share flagged under weights that were learned without the family, by these alone;
what is wanted in the texts that are measured (the goals of texts put together from parts) was left out as well. `forms`
is what the wordings of `order_forms` find, which nothing is left out of, `both` what either does. Rows of languages:
the same without the language. `held back`: texts by another hand, with all of them left out. Rows of `false flags`:
texts without orders that nothing was learned from, with the weights as shipped, set by set; `look-alikes`: those of our
own that look like orders, each half under weights learned without it.

A file to be judged has one JSON object to a line: `text`, and where known `kind`, `family` and `lang`. It chooses
nothing.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from benchmarks.data import default_data
from benchmarks.harness import report
from benchmarks.injection_texts import LANGUAGES, Attack, carriers, harmless
from benchmarks.learn_orders import Material, all_attacks, learn, material
from benchmarks.orders_fit import texts_where
from benchmarks.quiet_pools import quiet_texts, side_of
from muniment.store.ledger.disguises import readings_of
from muniment.store.ledger.order_weights import OrderWeights, order_weight
from muniment.store.ledger.orders import is_worded_as_orders, reads_like_instructions

MEASURED_SEED = 2
_HELD_BACK = "held back: "
_FOLD_ROUNDS = 2
"""Rounds of learning for each thing left out; the weights as shipped had more."""


def _flags(text: str, weights: OrderWeights) -> bool:
    return any(order_weight(reading, weights) > 0 for reading in readings_of(text))


def _amid(attack: Attack) -> str:
    """The attack where it would stand: behind and before something harmless."""
    if attack.language not in LANGUAGES or attack.family.startswith(_HELD_BACK):
        return attack.text
    before, after = Random(attack.text).sample(carriers(attack.language), 2)
    return f"{before}\n{attack.text}\n{after}"


def _row(measured: Iterable[Attack], weights: OrderWeights) -> dict[str, Any]:
    told = [_amid(each) for each in measured]
    found = [_flags(text, weights) for text in told]
    forms = [is_worded_as_orders(text) for text in told]
    either = [one or other for one, other in zip(found, forms, strict=True)]
    return {"texts": len(told), "forms": _share(forms), "left_out": _share(found), "both": _share(either)}


def _share(found: list[bool]) -> float:
    return round(sum(found) / len(found), 4)


class _Fold(NamedTuple):
    """Something that is left out, by the name of a family or a language; without either, the texts of another hand."""

    label: str
    family: str = ""
    language: str = ""

    def leaves_out(self, attack: Attack) -> bool:
        if self.family or self.language:
            return self.family == attack.family or (self.language != "" and self.language == attack.language)
        return attack.family.startswith(_HELD_BACK)


def _folds(told: Iterable[Attack]) -> list[_Fold]:
    names = [name for name in dict.fromkeys(each.family for each in told) if not name.startswith(_HELD_BACK)]
    languages = [_Fold(f"language {name}", language=name) for name in LANGUAGES]
    return [*(_Fold(name, family=name) for name in names), *languages, _Fold(f"{_HELD_BACK}all")]


_SHARED: list[Material] = []
"""What every process that learns has read, handed down when it is forked."""


def _fold_rows(fold: _Fold) -> dict[str, dict[str, Any]]:
    """What is flagged of the texts that one fold leaves out."""
    (read,) = _SHARED
    halves = set(all_attacks(half=0))
    taken = [not fold.leaves_out(each) and each in halves for each in read.told]
    weights = learn(read, np.array(taken), _FOLD_ROUNDS)
    found = [each for each in dict.fromkeys(all_attacks(MEASURED_SEED, half=1)) if fold.leaves_out(each)]
    rows = {fold.label: _row(found, weights)}
    if not fold.family and not fold.language:
        for name in dict.fromkeys(each.family for each in found):
            rows[name] = _row([each for each in found if each.family == name], weights)
        for name in dict.fromkeys(each.language for each in found):
            rows[f"held back, in {name}"] = _row([each for each in found if each.language == name], weights)
    return rows


def left_out_rows(read: Material, jobs: int) -> dict[str, dict[str, Any]]:
    """Each family, each language and the texts of another hand, left out in turn."""
    folds = _folds(read.told)
    with get_context("fork").Pool(jobs, _SHARED.append, (read,)) as pool:
        found = pool.map(_fold_rows, folds, chunksize=1)
    rows = {label: row for each in found for label, row in each.items()}
    of_families = [rows[fold.label] for fold in folds if fold.family]
    rows["mean of families"] = {
        column: round(sum(row[column] for row in of_families) / len(of_families), 4) for column in ("left_out", "both")
    }
    return rows


def look_alike_row(read: Material) -> dict[str, Any]:
    """What looks like orders and is none, each half under weights that were learned without it."""
    texts = [text for language in LANGUAGES for text in harmless(language)]
    flagged = 0
    for half in (0, 1):
        is_left = np.arange(len(texts)) % 2 == half
        weights = learn(read._replace(harmless=texts_where(read.harmless, ~is_left)), rounds=_FOLD_ROUNDS)
        flagged += sum(_flags(text, weights) for text, left in zip(texts, is_left, strict=True) if left)
    return {"texts": len(texts), "flagged": flagged, "share": round(flagged / len(texts), 5)}


def false_rows(data: Path, more: Path | None, every: int) -> dict[str, dict[str, Any]]:
    """Of each set the share that would be flagged if it came from outside; parts that were learned from not counted."""
    seen, flagged = Counter[str](), Counter[str]()
    measured = [each for each in quiet_texts(data, more) if side_of(each) == "measured"]
    for each in measured[::every]:
        seen[each.of_set] += 1
        flagged[each.of_set] += reads_like_instructions(each.text)
    counts = [*((name, seen[name], flagged[name]) for name in sorted(seen)), ("all", seen.total(), flagged.total())]
    return {
        f"false flags: {name}": {"texts": texts, "flagged": found, "share": round(found / texts, 5)}
        for name, texts, found in counts
    }


def judged(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """What is flagged of the texts in files, by what is told of them."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for path in paths:
        for line in path.read_text("utf-8").split("\n"):  # a text may hold other breaks
            if not line.strip():
                continue
            row = json.loads(line)
            kind = row.get("kind", "text")
            is_flagged = reads_like_instructions(row["text"])
            for label in (kind, f"{kind}, {row.get('family', 'no family')}", f"{kind}, in {row.get('lang', '?')}"):
                groups[label].append(is_flagged)
    return {
        label: {"texts": len(found), "flagged": sum(found), "share": round(sum(found) / len(found), 4)}
        for label, found in sorted(groups.items())
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--more", type=Path, default=None, help="a folder of further texts without orders, as JSONL")
    parser.add_argument("--every", type=int, default=1, help="measure one in so many of the texts not learned from")
    parser.add_argument("--jobs", type=int, default=2, help="processes that learn side by side")
    parser.add_argument("--judge", type=Path, nargs="+", help="JSONL files to be judged, and nothing else")
    given = parser.parse_args()
    if given.judge:
        report("injection_judged", judged(given.judge), {"files": [path.name for path in given.judge]})
        return
    read = material(given.data, given.more)
    rows = left_out_rows(read, given.jobs)
    rows["look-alikes"] = look_alike_row(read)
    rows |= false_rows(given.data, given.more, given.every)
    report("injection", rows, {"every": given.every, "seed": MEASURED_SEED})


if __name__ == "__main__":
    main()
