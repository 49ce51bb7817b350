"""Injections by another hand: how many are flagged of each family, and how many turns of real chats falsely.

    python -m benchmarks.injection --data DIR

For each family: `forms`, the baseline, what the wordings of `order_forms` find; `flagged`, what the package as it is
flags; and `left_out`, the same with weights learned on the other families alone. Texts to learn from and texts to
measure on are drawn with different seeds. Per chat set: the share of turns that would be flagged if they came from
outside; turns that weights were learned on are left out. One in `--every` turns is looked at.

`held back`: families in six languages (`data/injection_held_back.txt`) that nothing was made from, per family and per
language. Their figures choose nothing.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.chat_turns import turns_of
from benchmarks.data import default_data
from benchmarks.harness import report
from benchmarks.injection_families import FAMILIES, texts_of
from benchmarks.learn_orders import LEARNED_EVERY, SEED, TEXTS, Bits, bits_of, fit, quiet_texts
from muniment.store.ledger.disguises import readings_of
from muniment.store.ledger.order_words import Weights
from muniment.store.ledger.orders import has_form, reads_like_instructions

MEASURED_SEED = 2
HELD_BACK = Path(__file__).parent / "data" / "injection_held_back.txt"


def _has_form(text: str) -> bool:
    return any(has_form(reading) for reading in readings_of(text))


def _weighs(weights: Weights, bits: Bits) -> bool:
    return max(map(weights.weigh, bits), default=-1.0) > 0


def _share(found: list[bool]) -> float:
    return round(sum(found) / len(found), 4)


def held_back() -> Iterator[tuple[str, str, str]]:
    """The texts that are measured alone, each with its family and its language."""
    family = language = ""
    for line in HELD_BACK.read_text("utf-8").splitlines():
        heading = re.fullmatch(r"\[([^|]+) \| (\w\w)\]", line)
        if heading is not None:
            family, language = heading.groups()
        elif line and not line.startswith("#"):
            yield family, language, line.replace("\\n", "\n")


def held_back_rows() -> dict[str, dict[str, Any]]:
    """What is flagged of them."""
    told = [
        (family, language, _has_form(text), reads_like_instructions(text)) for family, language, text in held_back()
    ]
    groups = [(f"held back: {name}", 0, name) for name in dict.fromkeys(each[0] for each in told)]
    groups += [(f"held back, in {name}", 1, name) for name in dict.fromkeys(each[1] for each in told)]
    rows: dict[str, dict[str, Any]] = {}
    for label, column, name in [*groups, ("held back: all", -1, "")]:
        of_group = [each for each in told if column < 0 or each[column] == name]
        rows[label] = {
            "texts": len(of_group),
            "forms": _share([each[2] for each in of_group]),
            "flagged": _share([each[3] for each in of_group]),
        }
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--texts", type=int, default=100, help="texts of each family that are measured")
    parser.add_argument("--every", type=int, default=1, help="measure one in so many of the turns not learned from")
    given = parser.parse_args()
    learned: dict[str, list[Bits]] = {
        name: [bits_of(text) for text in texts_of(name, TEXTS, SEED)] for name in FAMILIES
    }
    turns = list(turns_of(given.data))
    quiet = [bits_of(text) for text in quiet_texts(turns)]
    rows: dict[str, dict[str, Any]] = {}
    for name in FAMILIES:
        texts = texts_of(name, given.texts, MEASURED_SEED)
        weights = fit(
            [bits for other in FAMILIES if other != name for bits in learned[other]], quiet, len(turns) // LEARNED_EVERY
        )
        formed = [_has_form(text) for text in texts]
        rows[name] = {
            "texts": len(texts),
            "forms": _share(formed),
            "flagged": _share([reads_like_instructions(text) for text in texts]),
            "left_out": _share(
                [has or _weighs(weights, bits_of(text)) for has, text in zip(formed, texts, strict=True)]
            ),
        }
    columns = ("forms", "flagged", "left_out")
    rows["mean of families"] = {name: round(sum(row[name] for row in rows.values()) / len(rows), 4) for name in columns}
    rows |= held_back_rows()
    seen, flagged, formed_turns = Counter[str](), Counter[str](), Counter[str]()
    unlearned = [turn for number, turn in enumerate(turns) if number % LEARNED_EVERY]
    for turn in unlearned[:: given.every]:
        seen[turn.of_set] += 1
        flagged[turn.of_set] += reads_like_instructions(turn.text)
        formed_turns[turn.of_set] += _has_form(turn.text)
    for name, count in [*sorted(seen.items()), ("all sets", seen.total())]:
        both = (flagged.total(), formed_turns.total()) if name == "all sets" else (flagged[name], formed_turns[name])
        rows[f"false flags: {name}"] = {
            "turns": count,
            "flagged": both[0],
            "share": round(both[0] / count, 5),
            "forms": round(both[1] / count, 5),
        }
    report("injection", rows, {"texts": given.texts, "every": given.every, "seed": MEASURED_SEED})


if __name__ == "__main__":
    main()
