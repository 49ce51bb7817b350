"""Does a real model answer as well where the packet stands before the question as where it stands in the system prompt?

    python -m benchmarks.placement_answers --scratch FOLDER [--each 20] [--seconds 3000]

The questions of `benchmarks.answers` (`ours 256`), asked twice of one model on a CPU: with the packet in the system
message, and with the same packet before the question in the user's. Both of a question are asked one after the other,
so that whatever was asked when the time is up can be compared. Prompts and answers are kept in the folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.answers_prompts import Prompt, prompts_of, read_prompts, write_prompts
from benchmarks.answers_score import score
from benchmarks.answers_server import Missing, ask, environment, serving, weights
from benchmarks.answers_sets import SETS, asked_of
from benchmarks.answers_torch import answered_keys
from benchmarks.data import default_data
from benchmarks.harness import report
from muniment.integrations.wrapping.placing import DIVIDER

ARM = "ours 256"
NEW_TOKENS = 24
INSTRUCTION_END = "\n\n"


def before_question(prompt: Prompt) -> Prompt:
    """The same packet, before the question."""
    instruction, gap, packet = prompt.system.partition(INSTRUCTION_END)
    user = f"{packet}{DIVIDER}{prompt.user}" if gap else prompt.user
    return prompt._replace(arm="question", system=instruction, user=user)


def pairs(prompts: list[Prompt], each: int) -> Iterator[Prompt]:
    """Both places of the questions whose names hash lowest, the sets in turn."""

    def rank(prompt: Prompt) -> str:
        return hashlib.sha256(f"{prompt.set} {prompt.scope} {prompt.question}".encode()).hexdigest()

    by_set = [sorted((each for each in prompts if each.set == name), key=rank)[:each] for name in SETS]
    for place in range(each):
        for held in by_set:
            for prompt in islice(held, place, place + 1):
                short = prompt._replace(arm="system", max_new_tokens=NEW_TOKENS)
                yield short
                yield before_question(short)


def scored(data: Path, prompts: list[Prompt], answers: dict[str, str]) -> dict[str, dict[str, float | int]]:
    keys = {
        (name, scope.name, question.id): tuple(question.answers)
        for name in SETS
        for scope in asked_of(data, name).scopes
        for question in scope.questions
    }
    rows: dict[str, dict[str, float | int]] = {}
    for name in (*SETS, "all"):
        found: dict[tuple[str, str, str], dict[str, tuple[float, bool]]] = {}
        for prompt in prompts:
            place = (prompt.set, prompt.scope, prompt.question)
            if prompt.key in answers and name in (prompt.set, "all"):
                told = score(answers[prompt.key], keys[place], gold=frozenset(), marks={})
                found.setdefault(place, {})[prompt.arm] = (told.f1, told.declined)
        both = {place: arms for place, arms in found.items() if len(arms) == 2}
        asked = [arms for place, arms in both.items() if keys[place]]
        row: dict[str, float | int] = {"questions": len(both), "answerable": len(asked)}
        for arm in ("system", "question"):
            row[f"{arm}_f1"] = round(sum(arms[arm][0] for arms in asked) / max(1, len(asked)), 3)
            unanswerable = [arms for place, arms in both.items() if not keys[place]]
            row[f"{arm}_declined"] = round(sum(arms[arm][1] for arms in unanswerable) / max(1, len(unanswerable)), 3)
        differences = [arms["question"][0] - arms["system"][0] for arms in asked]
        mean = sum(differences) / max(1, len(differences))
        spread = (sum((each - mean) ** 2 for each in differences) / max(1, len(differences) - 1)) ** 0.5
        row["question_less_system"] = round(mean, 3)
        row["half_width_95"] = round(1.96 * spread / max(1, len(differences)) ** 0.5, 3)
        rows[name] = row
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--limit", type=int, default=6, help="questions of each history")
    parser.add_argument("--seconds", type=float, default=3_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    data = default_data()
    options.scratch.mkdir(parents=True, exist_ok=True)
    kept, out = options.scratch / "place-prompts.jsonl.gz", options.scratch / f"place-{options.model}.jsonl"
    if not kept.exists():
        every = (
            prompt
            for name in SETS
            for prompt in prompts_of(data, name, near=None, has_wordings=False, has_whole=False, limit=options.limit)
            if prompt.arm == ARM
        )
        write_prompts(kept, every)
    prompts = list(pairs(list(read_prompts(kept)), options.each))
    known = answered_keys(out)
    wanted = [{"key": prompt.key, **prompt._asdict()} for prompt in prompts if prompt.key not in known]
    try:
        if wanted:
            model = weights(options.model, options.scratch)
            with serving(environment(options.scratch), model, options.threads) as served:
                ask(served, options.model, wanted, out, options.seconds)
    except Missing as missing:
        print(f"not asked: {missing}")
    lines = out.read_text("utf-8").splitlines() if out.exists() else []
    answers = {row["key"]: row["answer"] for row in map(json.loads, lines)}
    report("placement_answers", dict(scored(data, prompts, answers)), {"model": options.model, "arm": ARM})


if __name__ == "__main__":
    main()
