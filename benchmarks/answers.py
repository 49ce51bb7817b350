"""Does a real model answer better for what memory tells it? Three sets, a model from wheels, no judge.

    python -m benchmarks.answers                                     on a CPU: 60 questions in three arms, resumable
    python -m benchmarks.answers prompts --out P.jsonl.gz [--whole] [--vectors V.npz | --embedder e5-small]
    python benchmarks/answers_torch.py --model M.gguf --name NAME --prompts P.jsonl.gz --out A.jsonl     with a GPU
    python -m benchmarks.answers score --prompts P.jsonl.gz … --answers A.jsonl … [--file NAME] [--every]

Prompts, answers and figures are three stages, each kept in a file: an answer belongs to the hash of its prompt, is
asked once, and is used wherever the same prompt stands. `benchmarks.answers_prompts` explains the arms, `answers_sets`
which questions are asked, `answers_score` what is measured, `answers_table` the intervals. What is written down holds
figures and ids of questions, no text of the sets.

On a CPU an answer takes about half a minute: a fixed sample of questions (`SAMPLE`) is asked, through a server in an
environment of its own, and what is not there is said. `--scratch` keeps environment, weights, prompts and answers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.answers_prompts import Near, Prompt, prompts_of, read_prompts, write_prompts
from benchmarks.answers_server import MODELS, Missing, ask, environment, serving, weights
from benchmarks.answers_sets import CHOOSING, SETS, asked_of
from benchmarks.answers_table import HALVES, answered, kept_of, read_answers, rows_of
from benchmarks.answers_torch import answered_keys
from benchmarks.data import default_data, pooled
from benchmarks.embedders import KeptVectors
from benchmarks.harness import report

SAMPLE = 20
"""Questions of each set that are asked on a CPU."""
SAMPLE_ARMS = ("bm25 512", "ours 512", "gold")


class Kept:
    """Vectors that were made elsewhere, of the texts of all sets in order (`texts_of`)."""

    def __init__(self, data: Path, file: Path) -> None:
        vectors = np.load(file)["vectors"].astype(np.float32)
        self._known = dict(zip(texts_of(data), vectors, strict=True))

    def of_query(self, text: str) -> npt.NDArray[np.float32]:
        row: npt.NDArray[np.float32] = self._known[text]
        return row

    def of_passages(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.array([self._known[text] for text in texts])


def texts_of(data: Path) -> list[str]:
    """Every turn and every question of the sets, each once and sorted."""
    found: set[str] = set()
    for name in SETS:
        for scope in pooled(data, name):
            found.update(turn.text for turn in scope.turns if turn.text.strip())
            found.update(question.text for question in scope.questions)
    return sorted(found)


def _all_prompts(options: argparse.Namespace, near: Near | None) -> Iterator[Prompt]:
    for name in options.sets.split(","):
        yield from prompts_of(options.data, name, near=near, has_whole=options.whole, limit=options.limit)


def _near(options: argparse.Namespace) -> Near | None:
    if options.vectors:
        return Kept(options.data, options.vectors)
    return KeptVectors(options.embedder) if options.embedder else None


def _sampled(prompts: Sequence[Prompt]) -> list[Prompt]:
    """The arms of a CPU's run, for the questions whose names hash lowest."""

    def rank(prompt: Prompt) -> str:
        return hashlib.sha256(f"{prompt.set} {prompt.scope} {prompt.question}".encode()).hexdigest()

    taken: list[Prompt] = []
    for name in SETS:
        held = [prompt for prompt in prompts if prompt.set == name]
        # what has no gold has no arm `gold`, and would not be compared
        names = {(each.scope, each.question): rank(each) for each in held if each.arm == "gold"}
        chosen = sorted(names, key=lambda each: names[each])[:SAMPLE]
        taken += [
            prompt for each in chosen for prompt in held
            if (prompt.scope, prompt.question) == each and prompt.arm in SAMPLE_ARMS
        ]  # fmt: skip
    return taken


def on_cpu(options: argparse.Namespace) -> None:
    """All three stages for the sample."""
    scratch = options.scratch or Path(tempfile.mkdtemp(prefix="muniment-answers-"))
    scratch.mkdir(parents=True, exist_ok=True)
    kept, out = scratch / "prompts.jsonl.gz", scratch / f"answers-{options.model}.jsonl"
    if not kept.exists():
        write_prompts(kept, _all_prompts(options, None))
    sample = _sampled(list(read_prompts(kept)))
    known = answered_keys(out)
    wanted = [{"key": prompt.key, **prompt._asdict()} for prompt in sample if prompt.key not in known]
    try:
        if wanted:
            python, model = environment(scratch), weights(options.model, scratch)
            with serving(python, model, os.cpu_count() or 1) as served:
                ask(served, options.model, wanted, out, options.seconds)
    except (Missing, OSError) as error:
        sys.exit(f"skipped, no model to ask: {error}")
    _report(options, sample, [out], "answers_cpu")


def _report(options: argparse.Namespace, prompts: Sequence[Prompt], answers: Sequence[Path], file: str) -> None:
    rows: dict[str, dict[str, Any]] = {}
    for model, held in sorted(read_answers(answers).items()):
        scored = answered(options.data, prompts, held)
        for half in HALVES:
            table = rows_of(scored, half)
            kept = table if options.every else kept_of(table, half, is_main=model == options.model)
            rows |= {f"{model}, {half}: {name}": row for name, row in kept.items()}
    if not rows:
        sys.exit("no prompt has an answer")
    corrected = [each for name in SETS for each in asked_of(options.data, name).corrected]
    told = {
        "choosing": CHOOSING,
        "corrected": sorted(f"{each.scope} {each.id}" for each in corrected if not each.is_left_out),
        "left_out": sorted(f"{each.scope} {each.id}" for each in corrected if each.is_left_out),
        "no_phrase": {name: asked_of(options.data, name).too_long for name in SETS},
        "prompts": len(prompts),
        "vectors": any(prompt.arm.startswith("vectors") for prompt in prompts),
    }
    report("answers", rows, told, file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("stage", nargs="?", choices=("cpu", "prompts", "texts", "score"), default="cpu")
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--limit", type=int, default=0, help="no more questions of a history than these")
    parser.add_argument("--whole", action="store_true", help="the whole conversation where it fits: for a GPU")
    parser.add_argument("--vectors", type=Path, help="of the texts that `texts` wrote, by benchmarks/answers_embed.py")
    parser.add_argument("--embedder", default="", help="makes vectors here: such as e5-small")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--prompts", type=Path, nargs="*", default=[])
    parser.add_argument("--answers", type=Path, nargs="*", default=[])
    parser.add_argument("--file", default="answers", help="the name of the result file")
    parser.add_argument(
        "--model", choices=sorted(MODELS), default="qwen2.5-coder-1.5b", help="is asked; of others, no more than a mean"
    )
    parser.add_argument("--every", action="store_true", help="write every figure, not what the pages tell alone")
    parser.add_argument("--seconds", type=float, default=7_200.0, help="on a CPU: no question is asked after so many")
    parser.add_argument("--scratch", type=Path)
    options = parser.parse_args()
    if not (options.data / "retrieval").exists():
        sys.exit(f"no data at {options.data}: nothing was measured")
    if options.stage == "prompts":
        print(write_prompts(options.out, _all_prompts(options, _near(options))), "prompts")
    elif options.stage == "texts":
        import gzip

        with gzip.open(options.out, "wt", encoding="utf-8") as out:
            out.writelines(json.dumps(text, ensure_ascii=False) + "\n" for text in texts_of(options.data))
    elif options.stage == "score":
        held = {prompt[:4]: prompt for path in reversed(options.prompts) for prompt in read_prompts(path)}
        _report(options, list(held.values()), options.answers, options.file)
    else:
        on_cpu(options)


if __name__ == "__main__":
    main()
