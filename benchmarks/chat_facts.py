"""Precision of the facts that `run.extract()` finds by rule, on people's turns that the rules were not tuned on.

    python -m benchmarks.chat_facts [--data DIR] [--more DIR]           the figures; every hit must have been judged
    python -m benchmarks.chat_facts [--data DIR] [--more DIR] --read    the hits, with their turns, to be judged

The sets are the users' turns of the shared data, and in `--more` files `NAME.jsonl.gz` of further public chats, a turn
a line: `{"id", "text"}`. The figures kept are with Synthetic-Persona-Chat, PersonaChat, the logs of ConvAI 2018 (bots
among the speakers), Switchboard, Topical-Chat, self-dialogues, DailyDialog++, MTS-Dialog and three sets of questions to
doctors and counsellors; none of them was used to choose a word of the list, but what the list misses in ConvAI 2018,
self-dialogues and half of Synthetic-Persona-Chat was looked at once, to widen how a sentence may begin and end.

`benchmarks/data/certain_facts.json` holds the judgements: the digests of hits (set, turn, key, value) that a person
read and found right, and of those found wrong. A hit is right if its turn states it, of its own speaker, as true and
lasting, with that value. A kind stays in the list while 99 of 100 of its hits are right, of at least 150, and the lower
bound of the 95 % interval is at least 97 %.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.data import default_data
from benchmarks.harness import report
from muniment.core.stats import wilson_bounds
from muniment.memory._rules import extract_certain

JUDGED = Path(__file__).parent / "data" / "certain_facts.json"
_SPACED_MARK = re.compile(r" (?=[.,!?])")
_SAID = re.compile(r"\[\d{4}-\d\d-\d\d[^\]]*\] [^:]*: ")
"""When and by whom a line of a vehicle's talks was said."""


class Hit(NamedTuple):
    """A fact that the rules find in a turn."""

    set: str
    turn: str
    key: str
    value: str
    text: str

    @property
    def digest(self) -> str:
        return sha256("\n".join(self[:4]).encode()).hexdigest()[:12]


def turns_of(data: Path, more: Path | None) -> Iterator[tuple[str, str, str]]:
    """The set, the id and the text of every user's turn."""
    for path in sorted((data / "retrieval").glob("*.jsonl.gz")):
        for scope in _lines(path):
            for session in scope["sessions"]:
                for turn in session["turns"]:
                    if turn["role"] != "assistant":
                        yield scope["set"], f"{scope['scope']}/{turn['id']}", turn["text"]
    with (data / "longmemeval_s_trunc500_sessions_dev50.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            for number, line in enumerate(row["user_text_500"].split("\n")):
                yield "longmemeval_trunc500", f"{row['session_id']}/{number}", line
    for path in sorted((data / "vehiclemembench").glob("*.txt")):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")):
            if said := _SAID.match(line):
                yield "vehiclemembench", f"{path.stem}/{number}", line[said.end() :]
    for path in sorted((data / "memorybank").glob("memory_bank_*.json")):
        for scope, person in json.loads(path.read_text(encoding="utf-8")).items():
            for day, turns in person["history"].items():
                for number, turn in enumerate(turns):
                    yield path.stem, f"{scope}/{day}/{number}", turn["query"]
    for path in sorted(more.glob("*.jsonl.gz")) if more is not None else ():
        for row in _lines(path):
            yield path.name.split(".")[0], row["id"], row["text"]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def hits_of(data: Path, more: Path | None) -> Iterator[Hit]:
    """What the rules find, in turns without the blanks that some sets have before marks."""
    for name, turn, text in turns_of(data, more):
        plain = _SPACED_MARK.sub("", text)
        for found in extract_certain(plain):
            yield Hit(name, turn, found.key, str(found.value), plain)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--more", type=Path)
    parser.add_argument("--read", action="store_true")
    given = parser.parse_args()
    judged = {name: frozenset(digests) for name, digests in json.loads(JUDGED.read_text(encoding="utf-8")).items()}
    cases: dict[str, list[bool]] = defaultdict(list)
    unread = []
    for hit in hits_of(given.data, given.more):
        if given.read:
            print(hit.digest, *hit[:4], "|", " ".join(hit.text.split())[:200])
        elif hit.digest not in judged["right"] | judged["wrong"]:
            unread.append(hit.digest)
        for name in (f"{hit.key}: all", f"{hit.key}: {hit.set}"):
            cases[name].append(hit.digest in judged["right"])
    if given.read:
        return
    if unread:
        raise SystemExit(f"{len(unread)} hits were judged by nobody, read them with --read: {unread[:5]}")
    rows = {}
    for name, right in sorted(cases.items()):
        bounds = wilson_bounds(sum(right), len(right))
        rows[name] = {"cases": len(right), "right": sum(right), "interval": [round(bound, 3) for bound in bounds]}
    report("chat_facts", rows, {"language": "en"})


if __name__ == "__main__":
    main()
