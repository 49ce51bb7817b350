"""Facts that a model proposes from real chats, and what is left of them when each is held against its quote.

    python -m benchmarks.chat_facts_model prompts --file prompts.jsonl.gz [--data DIR]
    python -m benchmarks.answers_torch --model FILE.gguf --name NAME --prompts prompts.jsonl.gz --out answers.jsonl
    python -m benchmarks.chat_facts_model judge --answers answers.jsonl [--data DIR]

The labelled turns of `benchmarks.chat_facts`, one turn a call. Per set: recall and precision of what the model
proposes, of what `check_proposal` leaves of it, and of that together with the patterns. Nothing was chosen by these
turns but the wording of the task, which was written without them.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import data as sets
from benchmarks.chat_facts import Counts, Label, Read, fits, read_turns
from benchmarks.harness import report
from muniment.core.policy import ExtractionPolicy
from muniment.errors import ModelMalformed
from muniment.memory.extraction.checks import check_proposal
from muniment.memory.extraction.model import SaidTurn
from muniment.memory.extraction.patterns import propose
from muniment.memory.extraction.prompts import messages_of, read_answer

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
        ours = [Told(each.key, each.value) for each in propose(turn.text, "user", turn.ts)]
        arms = {"as proposed": told, "checked": held, "checked, and patterns": [*ours, *held], "patterns": ours}
        for arm, each in arms.items():
            for name in (turn.set, "all"):
                rows[f"{name}: {arm}"] = rows[f"{name}: {arm}"].plus(counts_of(labels, each))
    model = next(iter(answers.values()))["model"]
    table = {name: counts.row() for name, counts in sorted(rows.items())}
    report("chat_facts_model", table | {"rejected": dict(rejected)}, {"model": model})


if __name__ == "__main__":
    main()
