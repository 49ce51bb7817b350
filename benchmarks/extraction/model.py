"""What a real model proposes from turns of real chats, and what is left of it; for a person to read.

    python -m benchmarks.extraction.model --model http://127.0.0.1:8080/v1#NAME [--turns 40] [--data DIR]

Turns of users from LongMemEval, each chosen by a fixed seed, in a store of their own. Every proposal is printed with
its fate. What is accepted is read by a person, whose verdicts go to `verdicts.jsonl`: one line `{turn, key, value,
quote, verdict}` a proposal, where `verdict` is `right`, `passing` (true, but for a while or of no use) or `wrong`.
With `--verdicts` they are counted and written to the results.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import muniment
from benchmarks import data as sets
from benchmarks.extraction.planted import SEED, longmemeval_turns, rows_of
from benchmarks.harness import report
from muniment.memory._extract_model import ModelReply
from muniment.memory.outside.models import load_chat

CHARS_MAX = 400
LIMITS = {"batch_turns_max": 4, "answer_tokens_max": 512, "attempts_max": 2}
POLICY = {"memory": {"extraction": LIMITS}}


class Patient:
    """A model behind a server that may take minutes for an answer, as small machines do."""

    def __init__(self, address: str) -> None:
        self._chat = load_chat(address, "$.model", timeout_s=900.0, tokens_max=LIMITS["answer_tokens_max"])
        self.name = self._chat.name

    def ask(self, messages: list[dict[str, str]], schema: dict[str, Any], tokens_max: int) -> ModelReply:
        return ModelReply(*self._chat.ask(messages, form=("facts", schema), tokens_max=tokens_max, attempts_max=1))


def chosen_turns(data: Path, count: int) -> list[str]:
    """Short turns in which somebody speaks of themselves as often as chats have it."""
    texts = sorted({text for text in longmemeval_turns(data) if len(text) <= CHARS_MAX})
    return random.Random(SEED).sample(texts, count)


def read(model: Any, texts: Sequence[str], seconds: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the model is asked and proposes of the turns, within a time."""
    proposals: list[dict[str, Any]] = []
    calls = []
    began = time.monotonic()
    with muniment.open(":memory:", policy=POLICY) as mem:
        run = mem.run(user_id="reader", session_id="s1")
        turns = {run.observe("user", text).id: text for text in texts}
        while time.monotonic() - began < seconds:
            calls.append(mem.extract_pending(model=model, budget={"turns": 4}).to_wire())
            if not calls[-1]["left"]:
                break
        for each in run.memory.candidates():
            said = {"key": each.key, "value": each.value, "quote": each.quote, "fate": each.explanation}
            proposals.append({"turn": turns[each.sources[0]], "status": each.status, **said})
    sums = {
        name: sum(call[name] for call in calls) for name in ("turns", "unreadable", "calls", "tokens_in", "tokens_out")
    }
    sums |= {name: sum(call[name] for call in calls) for name in ("proposed", "accepted", "promoted")}
    rejected: Counter[str] = sum((Counter(call["rejected"]) for call in calls), Counter())
    return {**sums, "rejected": dict(sorted(rejected.items())), "seconds": round(time.monotonic() - began)}, proposals


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--out", type=Path, default=Path("proposals.jsonl"))
    parser.add_argument("--counts", type=Path, default=Path("counts.json"))
    parser.add_argument("--verdicts", action="store_true", help="count the verdicts of what was read before")
    options = parser.parse_args(argv)
    if options.verdicts:
        counts = json.loads(options.counts.read_text("utf-8"))
        verdicts = Counter(row["verdict"] for row in rows_of("verdicts.jsonl"))
        report("extraction_model", {"model": counts, "verdicts": dict(sorted(verdicts.items()))}, {"seed": SEED})
        return
    counts, proposals = read(Patient(options.model), chosen_turns(options.data, options.turns), options.seconds)
    options.counts.write_text(json.dumps(counts) + "\n", "utf-8")
    options.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in proposals), "utf-8")
    print(json.dumps(counts, indent=1))
    for row in proposals:
        print(f"[{row['status']}] {row['key']} = {row['value']!r} · {row['quote']!r} · {row['fate']}")


if __name__ == "__main__":
    main()
