"""Are day notes right, and how many relative days have one?

    python -m benchmarks.day_notes [--data DIR]      prints the table and writes results/day_notes.json
    python -m benchmarks.day_notes --show SET        prints the notes of one set, for reading

A note is right if the expression means that stretch of the calendar, counted from the day of speaking. `read.json`
names every note that a person read, by scope, turn and place, and those found wrong. A note that nobody read is counted
apart. Sets without dates are read as if said on one Wednesday: that tests whether an expression is counted from the day
of speaking, which is where notes go wrong.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

from benchmarks.data import default_data
from muniment.core.stats import wilson_bounds
from muniment.packets.page import day_notes, time_words

_FOLDER = Path(__file__).parent
SETS = (
    "beam_100k",
    "beam_500k",
    "friendsqa",
    "locomo",
    "longmemeval",
    "madial",
    "memdaily",
    "qmsum",
    "realmem",
    "realtalk",
    "vehiclemembench",
)
"""Classes of expressions were dropped, and one filter added, after reading all but the last, which was read once."""
_PEOPLE = ("friendsqa", "locomo", "qmsum", "realtalk", "vehiclemembench")
"""Sets in which every speaker is a person."""
_UNDATED = "2023-05-10"
_NAMED = {
    "en": re.compile(
        r"(?i)\b(?:yesterday|tomorrow|last night|ago|in \w+ (?:day|week|month|year)s"
        r"|(?:last|next|this|past|coming) (?:week|month|year|weekend|\w+day|spring|summer|fall|autumn|winter)"
        r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    ),
    "zh": re.compile("[昨前明后]天|[上下]个?(?:周|星期|礼拜|月)|[去明]年|(?:天|周|月|年)[前后]"),
}
"""A turn of which this finds something names a relative day, by a broad reading: what coverage is a share of."""
_CHINESE = re.compile("[一-鿿]")


class Note(NamedTuple):
    """A note of a turn."""

    key: str
    expression: str
    shown: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--show", choices=SETS)
    options = parser.parse_args()
    if options.show:
        for note in (note for _, _, notes in _turns(options.data, options.show) for note in notes):
            print(note.key, note.shown)
        return
    result = measure(options.data)
    (_FOLDER / "results" / "day_notes.json").write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    print(json.dumps(result, indent=1, sort_keys=True))


def measure(data: Path) -> dict[str, object]:
    """Precision of the notes that were read, by expression and set, and the share of turns that have one."""
    known = json.loads((_FOLDER / "read.json").read_text())
    read, wrong = frozenset(known["read"]), known["wrong"]
    rows: dict[str, Counter[str]] = {}
    for name in SETS:
        for language, names_day, notes in _turns(data, name):
            counts = [rows.setdefault(f"coverage {language}", Counter()), rows.setdefault(f"set {name}", Counter())]
            for count in counts:
                count.update(turns=1, turns_with_relative_day=names_day, turns_with_note=bool(notes))
            for note in notes:
                verdict = "unread" if note.key not in read else "wrong" if note.key in wrong else "right"
                for group in ("all", f"expression {note.expression}", f"set {name}"):
                    rows.setdefault(group, Counter()).update([verdict])
    return {group: _row(count) for group, count in rows.items()}


def _row(count: Counter[str]) -> dict[str, object]:
    read = count["right"] + count["wrong"]
    row: dict[str, object] = dict(count)
    if read:
        low, high = wilson_bounds(count["right"], read)
        row |= {"precision": round(count["right"] / read, 4), "bounds": [round(low, 4), round(high, 4)]}
    return row


class _Said(NamedTuple):
    """A turn that a person said."""

    key: str
    day: date
    text: str


def _turns(data: Path, name: str) -> Iterator[tuple[str, bool, list[Note]]]:
    """The language of each turn that a person said, whether it names a relative day, and its notes; no text twice."""
    seen: set[str] = set()
    for key, day, text in _vehicles(data) if name == "vehiclemembench" else _pooled(data, name):
        if text in seen:
            continue
        seen.add(text)
        language = "zh" if _CHINESE.search(text) else "en"
        notes = [
            Note(
                f"{key} {start}",
                text[start:end].lower(),
                f"{day} {text[max(0, start - 120) : start]!r} >> {text[start:end]} << {text[end : end + 60]!r}"
                f" = {time_words(window)}",
            )
            for start, end, window in day_notes(text, day)
        ]
        yield language, _NAMED[language].search(text) is not None, notes


def _pooled(data: Path, name: str) -> Iterator[_Said]:
    with gzip.open(data / "retrieval" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for scope in map(json.loads, lines):
            for turn in (turn for session in scope["sessions"] for turn in session["turns"]):
                if name in _PEOPLE or turn["role"] == "user":
                    day = date.fromisoformat((turn["ts"] or _UNDATED)[:10])
                    yield _Said(f"{name} {scope['scope']} {turn['id']}", day, turn["text"])


def _vehicles(data: Path) -> Iterator[_Said]:
    """Lines such as `[2025-03-03 08:30] Gary Allen: I finally received the edits.`"""
    for path in sorted((data / "vehiclemembench").glob("history_*.txt")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            if found := re.fullmatch(r"\[(\d{4}-\d\d-\d\d) [\d:]+\] [^:]+: (.+)", line):
                yield _Said(f"vehiclemembench {path.stem} {number}", date.fromisoformat(found[1]), found[2])


if __name__ == "__main__":
    main()
