"""Does a real model answer as well where the packet stands before the question as where it stands in the system prompt?

    python -m benchmarks.placement_answers prompts FOLDER [--limit 60]     the prompts of both places, for any machine
    python -m benchmarks.placement_answers ask FOLDER [--seconds 3000]     answered here, on a CPU
    python -m benchmarks.placement_answers score FOLDER --answers FILE

The questions of `benchmarks.answers` with packets of 256 and 512 tokens, asked twice: with the packet in the system
message, and with the same packet before the question in the user's. `prompts` writes what `answers_torch.py` reads on a
machine with a GPU; its answers are scored. Both of a question are asked one after the other, so that whatever was asked
when the time is up can be compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.answers_prompts import Prompt, prompts_of, read_prompts, write_prompts
from benchmarks.answers_score import score
from benchmarks.answers_server import Missing, ask, environment, serving, weights
from benchmarks.answers_sets import SETS, asked_of
from benchmarks.answers_torch import answered_keys
from benchmarks.data import default_data
from benchmarks.harness import report
from muniment.packets.render import DIVIDER

ARMS = ("ours 256", "ours 512")
PROMPTS, ASKED = "place-prompts.jsonl.gz", "place-asked.jsonl.gz"
NEW_TOKENS = 24
INSTRUCTION_END = "\n\n"


def before_question(prompt: Prompt) -> Prompt:
    """The same packet, before the question."""
    instruction, gap, packet = prompt.system.partition(INSTRUCTION_END)
    user = f"{packet}{DIVIDER}{prompt.user}" if gap else prompt.user
    return prompt._replace(arm="question", system=instruction, user=user)


def pairs(prompts: list[Prompt], arm: str) -> Iterator[Prompt]:
    """Both places of each question, in an order that is no set's."""

    def rank(prompt: Prompt) -> str:
        return hashlib.sha256(f"{prompt.set} {prompt.scope} {prompt.question}".encode()).hexdigest()

    for prompt in sorted((each for each in prompts if each.arm == arm), key=rank):
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


def write(folder: Path, limit: int) -> list[Prompt]:
    """The packets, and what is asked of them, once."""
    kept = folder / PROMPTS
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        data = default_data()
        every = (
            prompt
            for name in SETS
            for prompt in prompts_of(data, name, near=None, has_whole=False, limit=limit)
            if prompt.arm in ARMS
        )
        write_prompts(kept, every)
    prompts = list(read_prompts(kept))
    write_prompts(folder / ASKED, (asked for arm in ARMS for asked in pairs(prompts, arm)))
    return prompts


def ask_here(folder: Path, prompts: list[Prompt], model: str, seconds: float) -> Path:
    out = folder / f"place-{model}.jsonl"
    known = answered_keys(out)
    both = [asked for arm in ARMS for asked in pairs(prompts, arm)]
    wanted = [{"key": prompt.key, **prompt._asdict()} for prompt in both if prompt.key not in known]
    try:
        if wanted:
            with serving(environment(folder), weights(model, folder), os.cpu_count() or 1) as served:
                ask(served, model, wanted, out, seconds)
    except Missing as missing:
        print(f"not asked: {missing}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=["prompts", "ask", "score"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--limit", type=int, default=60, help="questions of each history")
    parser.add_argument("--seconds", type=float, default=3_000)
    parser.add_argument("--answers", type=Path, help="lines of key and answer, as answers_torch.py writes them")
    options = parser.parse_args()
    prompts = write(options.folder, options.limit)
    if options.stage == "prompts":
        print(f"{options.folder / ASKED}: to be asked by answers_torch.py")
        return
    told = options.answers
    if options.stage == "ask":
        told = ask_here(options.folder, prompts, options.model, options.seconds)
    if told is None or not told.exists():
        raise SystemExit("score needs --answers FILE")
    answers = {row["key"]: row["answer"] for row in map(json.loads, told.read_text("utf-8").splitlines())}
    rows = {
        f"{arm}, {name}": row
        for arm in ARMS
        for name, row in scored(default_data(), list(pairs(prompts, arm)), answers).items()
    }
    report("placement_answers", rows, {"model": options.model, "limit": options.limit})


if __name__ == "__main__":
    main()
