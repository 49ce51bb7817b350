"""Facts that a model proposes from real chats, and what is left of them when each is held against its quote.

    python -m benchmarks.chat_facts_model prompts --file prompts.jsonl.gz [--data DIR]
    python -m benchmarks.answers_torch --model FILE.gguf --name NAME --prompts prompts.jsonl.gz --out answers.jsonl
    python -m benchmarks.chat_facts_model judge --answers answers.jsonl [--data DIR]

Real turns that people labelled, one turn a call. Labels are offsets and keys alone (`benchmarks/data/chat_facts`); the
texts are the shared sets, which are not kept here. Per set: recall and precision of what the model proposes, of what
`check_proposal` leaves of it, and of that together with what the rules find. Nothing was chosen by these turns but the
wording of the task, which was written without them.

A proposal is right if a label of its turn is of the same family of keys (`FAMILIES`) and shares words with its value.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import data as sets
from benchmarks.harness import report
from muniment.core.policy import ExtractionPolicy
from muniment.errors import ModelMalformed
from muniment.memory._rules import extract_certain
from muniment.memory.extraction.checks import check_proposal
from muniment.memory.extraction.model import SaidTurn
from muniment.memory.extraction.prompts import messages_of, read_answer

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
    "a an the of in on at to for and or with my our your is are i it s t".split()  # noqa: SIM905
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


# -- the model's answers --------------------------------------------------------------------------------

ANSWER_TOKENS = 256
CONFIDENCE_MAX = 0.7


class Told(NamedTuple):
    """A key and a value, whoever says so."""

    key: str
    value: Any


def key_of(turn: Read) -> str:
    return "/".join((turn.set, turn.scope, turn.turn))


def said_turn(turn: Read) -> SaidTurn:
    return SaidTurn(key_of(turn), "user", None, turn.ts, turn.text)


def prompt_of(turn: Read) -> dict[str, Any]:
    system, user = (message["content"] for message in messages_of([said_turn(turn)], ()))
    return {"key": key_of(turn), "system": system, "user": user, "max_new_tokens": ANSWER_TOKENS}


def proposals_of(turn: Read, answer: str, rejected: Counter[str]) -> tuple[list[Told], list[Told]]:
    """What the model proposes of a turn, and what of it holds."""
    said = said_turn(turn)
    try:
        found = read_answer(answer, [said], "model", CONFIDENCE_MAX, is_cut=not answer.rstrip("` \n").endswith("}"))
    except ModelMalformed:
        rejected["no list of facts"] += 1
        return [], []
    rejected["malformed"] += found.malformed
    checked = [check_proposal(each, {said.id: said}, [said], ExtractionPolicy()) for each in found.proposals]
    rejected.update(each.rejection for each in checked if each.rejection is not None)
    told = [Told(each.proposal.key, each.proposal.value) for each in found.proposals]
    return told, [
        Told(each.proposed.proposal.key, each.proposed.proposal.value) for each in checked if each.rejection is None
    ]


def counts_of(labels: Sequence[Label], told: Sequence[Told]) -> Counts:
    found = [label for label in labels if any(fits(label, each.key, each.value) for each in told)]
    right = [each for each in told if any(fits(label, each.key, each.value) for label in labels)]
    return Counts(len(labels), len(found), len(told), len(right))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["prompts", "judge"])
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--file", type=Path, default=Path("prompts.jsonl.gz"))
    parser.add_argument("--answers", type=Path, default=Path("answers.jsonl"))
    options = parser.parse_args(argv)
    turns = list(read_turns(options.data))
    if options.step == "prompts":
        with gzip.open(options.file, "wt", encoding="utf-8") as out:
            out.writelines(json.dumps(prompt_of(turn), ensure_ascii=False) + "\n" for turn in turns)
        print(f"{len(turns)} prompts")
        return
    answers = {row["key"]: row for row in map(json.loads, options.answers.read_text("utf-8").splitlines())}
    rows: dict[str, Counts] = defaultdict(Counts)
    rejected: Counter[str] = Counter()
    for turn in turns:
        if key_of(turn) not in answers:
            continue
        labels = [label for label in turn.labels if not label.key.startswith("instruction")]
        told, held = proposals_of(turn, answers[key_of(turn)]["answer"], rejected)
        ours = [Told(each.key, each.value) for each in extract_certain(turn.text)]
        arms = {"as proposed": told, "checked": held, "checked, and rules": [*ours, *held], "rules": ours}
        for arm, each in arms.items():
            for name in (turn.set, "all"):
                rows[f"{name}: {arm}"] = rows[f"{name}: {arm}"].plus(counts_of(labels, each))
    model = next(iter(answers.values()))["model"]
    table = {name: counts.row() for name, counts in sorted(rows.items())}
    report("chat_facts_model", table | {"rejected": dict(rejected)}, {"model": model})


if __name__ == "__main__":
    main()
