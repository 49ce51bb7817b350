"""Facts out of real chats, with no model: recall and precision of `patterns.propose` on turns that people labelled.

    python -m benchmarks.chat_facts                 # every set and part
    python -m benchmarks.chat_facts --misses 40     # what is missed and wrongly taken, of the part to develop on

Labels are offsets and keys alone (`benchmarks/data/chat_facts`); the texts are the shared sets, which are not kept
here. A turn that was read has all its statements labelled, so a proposal that fits none counts as wrong. The part
`judge` is of other people's chats, or of other sessions, and was not read while patterns were written: of it nothing
but counts is printed. The part `fresh` was labelled, and written, by a reader who had not seen the patterns,
and its counts were looked at once, when the patterns were done.

A proposal is right if a label of its turn is of the same family of keys and shares words with its value, and a label
is found if a proposal of its turn is right by it. Families, openly (`FAMILIES`): what is liked, done regularly, played,
favoured or aimed at is one (`taste`), a person's name under any kin is one (`kin`). Facts of one person may stand under
their name or their kin, and a name that a label's key holds (`person.kim.job`) is told by whoever names Kim.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.data import default_data
from benchmarks.harness import report
from muniment.memory.extraction.patterns import propose

LABELS = Path(__file__).parent / "data" / "chat_facts"
FAMILIES = {
    "taste": "likes habit hobby favorite skill dislikes avoids interest schedule goal",
    "food": "diet avoids allergy dislikes health",
    "health": "health medication allergy condition",
    "home": "location origin birthplace nationality city",
    "work": "job employer occupation income schedule study",
    "study": "study job goal skill",
    "own": "owns car phone pet dog cat animal",
    "kin": "partner wife husband girlfriend boyfriend fiance friend best_friend sister brother mother father mom dad "
    "son daughter child children parents colleague boss manager cousin uncle aunt niece nephew grandmother grandfather "
    "roommate neighbor mentor teacher coach teammate classmate sibling stepmother stepfather name nickname relation",
    "family": "relationship children partner husband wife",
    "money": "budget income debt price balance payment rate",
    "when": "birthday age dates duration schedule since departure",
    "self": "personality trait gender religion language nationality",
}
"""Second parts of keys that may tell the same statement; a label and a proposal fit where one family holds both."""
_MEMBERS = {name: frozenset(words.split()) for name, words in FAMILIES.items()}
_WORD = re.compile(r"[^\W_]+")
_SAID = re.compile(r"\[(\d{4}-\d\d-\d\d)[^\]]*\] [^:]*: ")
"""When and by whom a line of a file of turns was said."""
_LITTLE = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "to",
        "for",
        "and",
        "or",
        "with",
        "my",
        "our",
        "your",
        "is",
        "are",
        "i",
        "it",
        "s",
        "t",
    ]
)


class Label(NamedTuple):
    key: str
    value: str
    start: int
    end: int


class Read(NamedTuple):
    """A turn that was read, with all that it states."""

    set: str
    scope: str
    turn: str
    part: str
    text: str
    ts: str
    labels: tuple[Label, ...]
    source: str = ""
    """The file of labels: `a`."""


def read_turns(data: Path) -> Iterator[Read]:
    """Every turn that was read, joined with its text."""
    texts: dict[str, dict[tuple[str, str], tuple[str, str]]] = {}
    for path in sorted(LABELS.glob("*_read.jsonl")):
        labels: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in _rows(path.with_name(path.name.replace("_read", ""))):
            labels[row["set"], row["scope"], row["turn"]].append(row)
        for row in _rows(path):
            name = row["set"]
            if name not in texts:
                texts[name] = dict(_texts(data, name))
            text, ts = texts[name][row["scope"], row["turn"]]
            of = labels[name, row["scope"], row["turn"]]
            found = tuple(Label(r["key"], text[r["value_start"] : r["value_end"]], r["start"], r["end"]) for r in of)
            yield Read(
                name, row["scope"], row["turn"], row["part"], text, ts, found, path.name.removesuffix("_read.jsonl")
            )


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _texts(data: Path, name: str) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    if name.startswith("memorybank"):
        (path,) = (data / "memorybank").glob(f"*{name.removeprefix('memorybank_')}*.json")
        for scope, person in json.loads(path.read_text(encoding="utf-8")).items():
            for date, turns in person["history"].items():
                for number, turn in enumerate(turns):
                    yield (scope, f"{date}/{number}"), (turn["query"], f"{date}T00:00:00Z")
        return
    if name == "longmemeval_trunc500":
        with (data / "longmemeval_s_trunc500_sessions_dev50.jsonl").open(encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                for number, line in enumerate(row["user_text_500"].split("\n")):
                    yield (row["session_id"], f"L{number}"), (line, "2024-01-01T00:00:00Z")
        return
    if name == "vehiclemembench":
        for path in (data / name).glob("*.txt"):
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")):
                if said := _SAID.match(line):
                    yield (path.stem, f"L{number}"), (line[said.end() :], f"{said[1]}T00:00:00Z")
        return
    with gzip.open(data / "retrieval" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            for session in row["sessions"]:
                for turn in session["turns"]:
                    yield (row["scope"], turn["id"]), (turn["text"], turn["ts"] or "2024-01-01T00:00:00Z")


def last_of(key: str) -> str:
    """The part of a key that says what it is about: `user.favorite.color` is about a favourite."""
    parts = key.split(".")
    if "favorite" in parts:
        return "favorite"
    return parts[1] if parts[0] == "user" and len(parts) > 1 else parts[-1]


def fits(label: Label, key: str, value: object) -> bool:
    """Does a proposal tell what a label tells?"""
    whose, other = label.key.split(".")[0], key.split(".")[0]
    one, two = last_of(label.key), last_of(key)
    is_same = one == two or any(one in family and two in family for family in _MEMBERS.values())
    if whose == "instruction" or not is_same or ((whose == "user") != (other == "user") and not _is_kin(one, two)):
        return False
    return bool(_content(label.value) & _content(str(value))) or _is_word_for(label, str(value))


def is_right(labels: list[Label], key: str, value: object) -> bool:
    """Is a proposal what one of the labels tells, or a name or a spouse that the key of one holds?"""
    held = {part for label in labels for part in label.key.casefold().split(".")[1:2]}
    is_kin = key.startswith("user.") and key.split(".")[1] in _MEMBERS["kin"]
    names_key = is_kin and bool(set(str(value).casefold().split()) & held)
    tells_spouse = key == "user.relationship" and not held.isdisjoint(("husband", "wife", "spouse", "fiance"))
    return names_key or tells_spouse or any(fits(label, key, value) for label in labels)


def _is_kin(one: str, two: str) -> bool:
    return one in _MEMBERS["kin"] or two in _MEMBERS["kin"] or "pet" in (one, two)


def _is_word_for(label: Label, value: str) -> bool:
    """`married` for "my husband", a day in figures for a day in words, signs that share a pair."""
    if last_of(label.key) in ("relationship", "birthday", "diet"):
        return True
    pairs = {label.value[at : at + 2] for at in range(len(label.value) - 1)}
    return not label.value.isascii() and any(value[at : at + 2] in pairs for at in range(len(value) - 1))


def _content(text: str) -> set[str]:
    words = {word.rstrip("s") for word in _WORD.findall(text.casefold())}
    return (words - _LITTLE) or words


class Counts(NamedTuple):
    labels: int = 0
    found: int = 0
    proposed: int = 0
    right: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(*(one + two for one, two in zip(self, other, strict=True)))

    def row(self) -> dict[str, Any]:
        return {
            "statements": self.labels,
            "recall": _share(self.found, self.labels),
            "recall_interval": wilson(self.found, self.labels),
            "proposed": self.proposed,
            "precision": _share(self.right, self.proposed),
            "precision_interval": wilson(self.right, self.proposed),
        }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def wilson(part: int, whole: int) -> list[float] | None:
    """The 95 % interval of a share."""
    if not whole:
        return None
    z, share = 1.96, part / whole
    middle = (share + z * z / (2 * whole)) / (1 + z * z / whole)
    half = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole)) / (1 + z * z / whole)
    return [round(middle - half, 3), round(middle + half, 3)]


def judge(turn: Read) -> tuple[Counts, list[Label], list[Any]]:
    """Counts of a turn, the labels that are missed, the proposals that are wrong. Instructions are not counted here."""
    labels = [label for label in turn.labels if not label.key.startswith("instruction")]
    proposals = [each for each in propose(turn.text, "user", turn.ts) if "instruction" not in each.key]
    found = [label for label in labels if any(fits(label, each.key, each.value) for each in proposals)]
    right = [each for each in proposals if is_right(labels, each.key, each.value)]
    counts = Counts(len(labels), len(found), len(proposals), len(right))
    return counts, [each for each in labels if each not in found], [each for each in proposals if each not in right]


def sentences(path: Path) -> Iterator[tuple[str, tuple[Label, ...]]]:
    """Statements and traps of our own: one text a row, with its facts."""
    for row in _rows(path):
        facts = tuple(Label(each["key"], each["value"], 0, 0) for each in row["facts"])
        yield row["text"], facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--misses", type=int, default=0, help="so many of each set's, of the part to develop on")
    parser.add_argument("--set", default="")
    parser.add_argument(
        "--unmatched", type=Path, help="where to write the proposals of the part judge that fit no label"
    )
    given = parser.parse_args()
    rows: dict[str, Counts] = defaultdict(Counts)
    families: dict[str, Counts] = defaultdict(Counts)
    missed: Counter[str] = Counter()
    unmatched: list[dict[str, Any]] = []
    for turn in read_turns(given.data):
        if given.set and not turn.set.startswith(given.set):
            continue
        counts, misses, wrong = judge(turn)
        for name in (f"{turn.part}: {turn.set}", _all(turn)):
            rows[name] = rows[name].plus(counts)
        for label in turn.labels:
            family = f"{turn.part} key: {last_of(label.key)}"
            families[family] = families[family].plus(Counts(1, int(label not in misses)))
        if turn.part == "develop" and missed[turn.set] < given.misses and (misses or wrong):
            missed[turn.set] += 1
            _show(turn, misses, wrong)
        if turn.part == "judge":
            unmatched += [_place(turn, each) for each in wrong]
    for path in sorted(LABELS.glob("lang_*.jsonl")):
        language, part = path.stem.removeprefix("lang_").rsplit("_", 1)
        for number, (text, facts) in enumerate(sentences(path)):
            turn = Read(f"own {language}", "", str(number), part, text, "2026-05-20T12:00:00Z", facts)
            if given.set and not turn.set.startswith(given.set):
                continue
            counts, misses, wrong = judge(turn)
            rows[f"{part}: own {language}"] = rows[f"{part}: own {language}"].plus(counts)
            if part == "develop" and missed[turn.set] < given.misses and (misses or wrong):
                missed[turn.set] += 1
                _show(turn, misses, wrong)
    if given.unmatched:
        given.unmatched.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in unmatched))
    if given.set or given.misses:
        for name, counts in sorted(rows.items()):
            print(name, counts.row())
        return
    kept = {name: counts for name, counts in sorted(families.items()) if counts.labels >= 5}
    table = {name: counts.row() for name, counts in sorted(rows.items())}
    table |= {name: {"statements": c.labels, "recall": _share(c.found, c.labels)} for name, c in kept.items()}
    report("chat_facts", table, {"sets": sorted(rows)})


def _all(turn: Read) -> str:
    is_english = not turn.set.endswith("_cn")
    return f"{turn.part}: all English chats" if is_english else f"{turn.part}: all Chinese chats"


def _show(turn: Read, misses: list[Label], wrong: list[Any]) -> None:
    print(f"## {turn.set} {turn.scope} {turn.turn}: {' '.join(turn.text.split())[:420]}")
    for label in misses:
        print(f"     missed {label.key} = {label.value!r} | {turn.text[label.start : label.end]!r}")
    for each in wrong:
        print(f"     WRONG  {each.key} = {each.value!r} | {each.quote!r} ({each.why})")


def _place(turn: Read, proposal: Any) -> dict[str, Any]:
    start = turn.text.find(proposal.quote)
    at = {"start": start, "end": start + len(proposal.quote)}
    return {"set": turn.set, "scope": turn.scope, "turn": turn.turn, "key": proposal.key, "value": proposal.value, **at}


if __name__ == "__main__":
    main()
