"""Is a claim with one slot swapped ever called supported, and does a true one in other words stay so?

    python -m benchmarks.verify_swaps [--data DIR] [--sets NAME …] [--seed TEXT] [--jobs N] [--show KIND] [--file NAME]

The true claims are the supported rows of the attribution sets and BUMP's references; `benchmarks.swaps` makes false
ones of them, one slot each, and true ones in other forms, and does the same with single sentences of the sources. A
false claim fails where every unit of it is SUPPORTED, a true one where a unit is not. The rules of alignment were
written with `DEVELOPED` in sight; the sets in `JUDGED` had no part in it: they are the figures to read.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import data as sets
from benchmarks.harness import report
from benchmarks.swaps import Made, claims_of, make_claims
from muniment.core.policy import FactCheckPolicy
from muniment.verify.facts import Source, SourceText, check_source
from muniment.verify.results import fact_verdict

DEVELOPED = ("hagrid", "stanford_gensearch", "expertqa")
JUDGED = ("bump", "lfqa", "attributedqa", "wice")
SENTENCES = 2
"""Sentences of each source that are made claims."""
SEED = "swaps"
_MARK = re.compile(r"\s*\[\d+(?:,\s*\d+)*\]")


class Row(NamedTuple):
    """A claim that its source supports."""

    set: str
    claim: str
    source: str


class Answer(NamedTuple):
    """What was asked, of which set, from a claim or a sentence of the source, and was it called supported?"""

    set: str
    origin: str
    made: Made
    supported: bool


def supported_rows(data: Path, name: str) -> list[Row]:
    """Claims without their marks of citation, which say nothing."""
    if name == "bump":
        rows = json.loads((data / "bump_task1_dev.json").read_text("utf-8"))
        pairs = dict.fromkeys((row["reference_summary"], row["article"]) for row in rows)
        return [Row(name, claim, source) for claim, source in pairs]
    with gzip.open(data / "attribution" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["label"] == "supported"]
    return [Row(name, _MARK.sub("", row["claim"]), _MARK.sub("", "\n".join(row["sources"]))) for row in rows]


def answers(rows: Sequence[Row], seed: str, policy: FactCheckPolicy) -> list[Answer]:
    found: list[Answer] = []
    read: dict[str, Source] = {}
    for row in rows:
        first = row.source not in read
        if first:
            read = {row.source: Source([SourceText("source", row.source)])}
        source = read[row.source]
        asked = [("claim", Made("as it stands", row.claim, True))]
        asked += [("claim", made) for made in make_claims(row.claim, row.source, seed)]
        if first:
            asked += [("sentence", made) for made in claims_of(row.source, seed, SENTENCES)]
        for origin, made in asked:
            passed = fact_verdict(check_source(made.text, source, policy=policy)) == "PASS"
            found.append(Answer(row.set, origin, made, passed))
    return found


def tally(found: Sequence[Answer]) -> dict[str, Any]:
    """Of the false ones the share called supported, of the true ones the share that is not."""
    false = [one.supported for one in found if not one.made.true]
    given = [not one.supported for one in found if one.made.kind == "as it stands"]
    other = [not one.supported for one in found if one.made.true and one.made.kind != "as it stands"]
    return {
        "false": len(false),
        "false_supported": sum(false) / max(1, len(false)),
        "given": len(given),
        "given_lost": sum(given) / max(1, len(given)),
        "reworded": len(other),
        "reworded_lost": sum(other) / max(1, len(other)),
    }


def by_kind(found: Sequence[Answer]) -> dict[str, Any]:
    kinds = dict.fromkeys(one.made.kind for one in found)
    wrong = {kind: [one.supported != one.made.true for one in found if one.made.kind == kind] for kind in kinds}
    return {kind: f"{sum(rows)} of {len(rows)}" for kind, rows in wrong.items()}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--sets", nargs="*", default=[*DEVELOPED, *JUDGED])
    parser.add_argument("--seed", default=SEED)
    parser.add_argument("--jobs", type=int, default=2, help="sets that are gone through at a time")
    parser.add_argument("--show", default="", help="print what was answered wrongly of this kind")
    parser.add_argument("--file", default="", help="write the result under this name")
    options = parser.parse_args(argv)
    policy = FactCheckPolicy()
    rows_of = [supported_rows(options.data, name) for name in options.sets]
    with ProcessPoolExecutor(options.jobs) as pool:
        each = pool.map(answers, rows_of, repeat(options.seed), repeat(policy))
        found = dict(zip(options.sets, each, strict=True))
    rows = {f"{name}{' (judged)' if name in JUDGED else ''}": tally(found[name]) for name in options.sets}
    for title, names in (("developed", DEVELOPED), ("judged", JUDGED)):
        pooled = [one for name in names for one in found.get(name, ())]
        if pooled:
            rows |= {
                f"{title}: {origin}s": tally([one for one in pooled if one.origin == origin])
                for origin in ("claim", "sentence")
            }
            rows[f"{title}: wrong by kind"] = by_kind(pooled)
    for one in (one for rows_ in found.values() for one in rows_):
        if one.made.kind == options.show and one.supported != one.made.true:
            print(f"{one.set} {one.origin}: {one.made.text}")
    if options.file:
        report("verify_swaps", rows, {"seed": options.seed, "sentences": SENTENCES}, options.file)
        return
    for name, row in rows.items():
        print(
            name,
            json.dumps({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}),
        )


if __name__ == "__main__":
    main()
