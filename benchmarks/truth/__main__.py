"""Does what is handed to a model contain what it must, and nothing that misleads?

    python -m benchmarks.truth                               the development half; writes benchmarks/truth/results/
    python -m benchmarks.truth --split who_the_user_is       a sealed quarter, once

Every arm answers every request within 256, 512 and 1,024 tokens. Shares are of packets; the bounds are 95 % intervals
from resampling stores, since the requests of one person are not independent.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.data import default_data
from benchmarks.truth._arms import ARMS, OPTIONAL_ARMS
from benchmarks.truth._scoring import Score, score
from benchmarks.truth._stores import SPLITS, Request, Store, load_stores, split_digest

_FOLDER = Path(__file__).parent
BUDGETS = (256, 512, 1024)
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Result:
    arm: str
    store: Store
    request: Request
    budget: int
    score: Score


Measure = Callable[[Sequence[Result]], float | None]


def _share(counts: Callable[[Score], bool], among: Callable[[Score], bool] = lambda _: True) -> Measure:
    def measure(results: Sequence[Result]) -> float | None:
        judged = [each.score for each in results if among(each.score)]
        return sum(map(counts, judged)) / len(judged) if judged else None

    return measure


def _ratio(part: Callable[[Score], float], whole: Callable[[Score], float]) -> Measure:
    def measure(results: Sequence[Result]) -> float | None:
        total = sum(whole(each.score) for each in results)
        return sum(part(each.score) for each in results) / total if total else None

    return measure


def _precision(kind: str) -> Measure:
    def measure(results: Sequence[Result]) -> float | None:
        judged = [right for each in results for which, right in each.score.additions if which == kind]
        known = [right for right in judged if right is not None]
        return sum(known) / len(known) if known else None

    return measure


MEASURES: dict[str, Measure] = {
    "crucial omission": _share(lambda each: bool(each.missing), lambda each: each.crucial > 0),
    "… with room free": _share(lambda each: bool(each.missing) and each.has_room, lambda each: each.crucial > 0),
    "stale alone": _share(lambda each: bool(each.stale_alone)),
    "helpful in": _ratio(lambda each: each.helpful_conveyed, lambda each: each.helpful),
    "noise": _ratio(lambda each: each.noise, lambda each: each.tokens),
    "frame": _ratio(lambda each: each.frame_tokens, lambda each: each.tokens),
    "denies an answer": _share(lambda each: each.denies_an_answer, lambda each: each.crucial > 0),
    "facts right": _precision("fact"),
    "day notes right": _precision("day"),
    "marks right": _precision("mark"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=SPLITS, default=SPLITS[0])
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument(
        "--arm", action="append", choices=[*ARMS, *OPTIONAL_ARMS], help="only these; nothing is written"
    )
    parser.add_argument("--show", metavar="STORE", help="print every context of a store with what it misses, and stop")
    given = parser.parse_args()
    file = _FOLDER / "results" / f"{given.split}.json"
    if given.split != SPLITS[0] and file.exists():
        sys.exit(f"{given.split} has been scored: {file.name} is there, and a sealed quarter is scored once")
    frozen = json.loads((_FOLDER / "stores" / "frozen.json").read_text())
    if split_digest(given.split) != frozen[given.split]:
        sys.exit(f"the labels of {given.split} are not those that were frozen")
    arms = given.arm or list(ARMS)
    stores = load_stores(given.split, given.data)
    if given.show:
        _show([store for store in stores if store.id == given.show], arms)
        return
    results = [result for store in stores for arm in arms for result in _answer(store, arm)]
    rows = _table(results, arms)
    _print_table(rows, len(stores))
    if not given.arm:
        _write(file, given.split, stores, rows, results)


def _answer(store: Store, arm: str) -> Iterable[Result]:
    with (ARMS | OPTIONAL_ARMS)[arm](store) as ask:
        for request in store.requests:
            for budget in BUDGETS:
                yield Result(arm, store, request, budget, score(store, request, ask(request, budget), budget))


# -- tables


def _table(results: list[Result], arms: Sequence[str]) -> list[dict[str, Any]]:
    rows = []
    for arm in arms:
        for budget in BUDGETS:
            mine = [each for each in results if each.arm == arm and each.budget == budget]
            groups = {"all": mine}
            for result in mine:
                groups.setdefault(f"purpose {result.request.purpose}", []).append(result)
                groups.setdefault(f"language {result.store.language}", []).append(result)
            for group, some in sorted(groups.items()):
                rows.append({"arm": arm, "budget": budget, "group": group, "n": len(some), **_measured(some)})
    return rows


def _measured(results: list[Result]) -> dict[str, Any]:
    by_store: dict[str, list[Result]] = {}
    for result in results:
        by_store.setdefault(result.store.id, []).append(result)
    row: dict[str, Any] = {}
    for name, measure in MEASURES.items():
        value = measure(results)
        row[name] = None if value is None else {"value": round(value, 4), "bounds": _bounds(by_store, measure)}
    additions = [right for each in results for _, right in each.score.additions]
    row["additions"] = {str(verdict): additions.count(verdict) for verdict in (True, False, None)}
    return row


def _bounds(by_store: dict[str, list[Result]], measure: Measure) -> list[float] | None:
    draw = Random(7)
    names = sorted(by_store)
    values = []
    for _ in range(_RESAMPLES if len(names) > 1 else 0):
        drawn = [result for name in draw.choices(names, k=len(names)) for result in by_store[name]]
        if (value := measure(drawn)) is not None:
            values.append(value)
    if not values:
        return None
    values.sort()
    return [round(values[int(0.025 * len(values))], 4), round(values[int(0.975 * len(values)) - 1], 4)]


def _print_table(rows: list[dict[str, Any]], stores: int) -> None:
    print(f"{stores} stores; per cent, with 95 % bounds over stores\n")
    print("| arm | budget | group | n | " + " | ".join(MEASURES) + " |")
    print("|---" * (4 + len(MEASURES)) + "|")
    for row in rows:
        cells = [row["arm"], str(row["budget"]), row["group"], str(row["n"])]
        print("| " + " | ".join(cells + [_cell(row[name]) for name in MEASURES]) + " |")


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return "–"
    low, high = found["bounds"] or (found["value"], found["value"])
    return f"{100 * found['value']:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def _write(file: Path, split: str, stores: list[Store], rows: list[dict[str, Any]], results: list[Result]) -> None:
    file.parent.mkdir(exist_ok=True)
    kinds: dict[str, int] = {}
    for store in stores:
        for statement in store.statements.values():
            kinds[statement.kind] = kinds.get(statement.kind, 0) + 1
    document = {
        "command": f"python -m benchmarks.truth --split {split}",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "stores": len(stores),
        "turns": sum(len(store.turns) for store in stores),
        "requests": len({(each.store.id, each.request.id) for each in results}),
        "statements": dict(sorted(kinds.items())),
        "rows": rows,
    }
    text = json.dumps(document, ensure_ascii=False)
    file.write_text(text.replace('{"arm"', '\n {"arm"') + "\n")  # a row a line


def _show(stores: list[Store], arms: Sequence[str]) -> None:
    for store in stores:
        for arm in arms:
            with (ARMS | OPTIONAL_ARMS)[arm](store) as ask:
                for request in store.requests:
                    context = ask(request, BUDGETS[1])
                    found = score(store, request, context, BUDGETS[1])
                    print(f"\n=== {store.id} {arm} {request.id} {request.kind}: {request.text}")
                    for line in context.lines:
                        print(f"    {line.turns} {line.text}")
                    print(f"    missing {found.missing}, stale alone {found.stale_alone}, noise {found.noise:.0f}")
                    print(f"    of {found.tokens} tokens, additions {found.additions}")


if __name__ == "__main__":
    main()
