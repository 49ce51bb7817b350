"""Answers of a model read from a GGUF by transformers: one file that runs where there is a GPU and no muniment.

    python answers_torch.py --model FILE.gguf|FILE.part --name NAME --prompts prompts.jsonl.gz --out answers.jsonl
                            [--seconds 500] [--tokens 150000] [--limit N] [--stages 0,1]

Greedy, in bfloat16 (float32 without a GPU), a batch as many prompts of like length as `--tokens` allows. A prompt is a
line `{key, system, user, max_new_tokens, stage}`; of those with one key one is asked. Lower stages are asked first.
What stands in the output already is not asked again, and the file is flushed after every batch: a run that is cut
short is taken up by the next. `--model x.part` joins `x.part00`, `x.part01` and so on.

It needs torch, transformers, numpy and the package `gguf`, nothing else.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def joined_model(path: Path) -> Path:
    """The file itself; of one in parts, what they make together."""
    parts = sorted(path.parent.glob(f"{path.name}[0-9][0-9]"))
    if path.exists() or not parts:
        return path
    whole = Path(tempfile.gettempdir()) / f"{path.stem}-joined.gguf"
    if not whole.exists() or whole.stat().st_size != sum(part.stat().st_size for part in parts):
        with whole.open("wb") as out:
            for part in parts:
                out.write(part.read_bytes())
    return whole


def read_prompts(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = {row["key"]: row for row in map(json.loads, lines)}
    return list(found.values())


def answered_keys(path: Path) -> set[str]:
    """The keys that an earlier run answered; a last line that was cut short is none."""
    keys = set()
    if path.exists():
        for line in path.read_text("utf-8").splitlines():
            try:
                keys.add(json.loads(line)["key"])
            except (ValueError, KeyError):
                continue
    return keys


def batches(
    rows: Sequence[tuple[dict[str, Any], list[int]]], tokens_max: int
) -> Iterator[list[tuple[dict[str, Any], list[int]]]]:
    """Of one stage and one kind of answer, the longest first: the sum of the padded lengths stays within the bound."""
    held: list[tuple[dict[str, Any], list[int]]] = []
    order = sorted(
        rows, key=lambda row: (row[0].get("stage", 0), row[0]["max_new_tokens"], -len(row[1]), row[0]["key"])
    )
    for row in order:
        if held:
            first, ids = held[0]
            alike = all(first.get(name, 0) == row[0].get(name, 0) for name in ("stage", "max_new_tokens"))
            if not alike or (len(held) + 1) * (len(ids) + first["max_new_tokens"]) > tokens_max:
                yield held
                held = []
        held.append(row)
    if held:
        yield held


class Answerer:
    """A model, its tokenizer, and where an answer ends."""

    def __init__(self, model: Path) -> None:
        import torch  # type: ignore[import-not-found]
        from transformers import AutoModelForCausalLM, AutoTokenizer  # type: ignore[import-not-found]

        self._torch = torch
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        folder, file = str(model.parent), model.name
        self.tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
        dtype = torch.bfloat16 if self._device == "cuda" else torch.float32
        self._model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=dtype).to(self._device).eval()
        known = self.tokenizer.get_vocab()
        ends = [known[name] for name in ("<|im_end|>", "<|endoftext|>", "</s>") if name in known]
        self._ends = sorted(
            {*ends, *([self.tokenizer.eos_token_id] if self.tokenizer.eos_token_id is not None else [])}
        )
        self._pad = self._ends[0]

    def ids_of(self, prompts: Sequence[dict[str, Any]]) -> list[list[int]]:
        """The tokens of each prompt, read in one call, which uses all cores."""
        texts = [self._text(prompt["system"], prompt["user"]) for prompt in prompts]
        found: list[list[int]] = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        return found

    def _text(self, system: str, user: str) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        if self.tokenizer.chat_template:
            text: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            return text
        said = "".join(f"<|im_start|>{each['role']}\n{each['content']}<|im_end|>\n" for each in messages)
        return f"{said}<|im_start|>assistant\n"

    def answer(self, prompts: Sequence[list[int]], max_new_tokens: int) -> list[list[int]]:
        torch = self._torch
        width = max(map(len, prompts))
        ids = torch.full((len(prompts), width), self._pad, dtype=torch.long)
        mask = torch.zeros((len(prompts), width), dtype=torch.long)
        for place, prompt in enumerate(prompts):
            ids[place, width - len(prompt) :] = torch.tensor(prompt)
            mask[place, width - len(prompt) :] = 1
        with torch.inference_mode():
            made = self._model.generate(
                input_ids=ids.to(self._device),
                attention_mask=mask.to(self._device),
                max_new_tokens=max_new_tokens,
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                repetition_penalty=1.0,
                eos_token_id=self._ends,
                pad_token_id=self._pad,
            )
        rows: list[list[int]] = made[:, width:].tolist()
        return [self._until_end(row) for row in rows]

    def _until_end(self, row: list[int]) -> list[int]:
        for place, token in enumerate(row):
            if token in self._ends:
                return row[:place]
        return row

    def answer_halved(self, prompts: Sequence[list[int]], max_new_tokens: int) -> list[list[int]]:
        """As `answer`; where memory does not do, in two parts."""
        try:
            return self.answer(prompts, max_new_tokens)
        except self._torch.OutOfMemoryError:
            if len(prompts) == 1:
                raise
        self._torch.cuda.empty_cache()
        middle = len(prompts) // 2
        first = self.answer_halved(prompts[:middle], max_new_tokens)
        return first + self.answer_halved(prompts[middle:], max_new_tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--name", required=True, help="what the answers say they are of")
    parser.add_argument("--prompts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--seconds", type=float, default=500.0, help="no batch is begun after so many, loading included"
    )
    parser.add_argument("--tokens", type=int, default=150_000, help="of a batch, padding included")
    parser.add_argument("--limit", type=int, default=0, help="no more prompts than these")
    parser.add_argument("--stages", default="", help="these alone, comma-separated")
    options = parser.parse_args()
    begun = time.perf_counter()
    prompts = read_prompts(options.prompts)
    if options.stages:
        stages = set(map(int, options.stages.split(",")))
        prompts = [row for row in prompts if row.get("stage", 0) in stages]
    known = answered_keys(options.out)
    wanted = [row for row in prompts if row["key"] not in known][: options.limit or None]
    print(f"{options.name}: {len(prompts)} prompts, {len(wanted)} to ask", flush=True)
    if not wanted:
        return
    answerer = Answerer(joined_model(options.model))
    print(f"{options.name}: loaded in {time.perf_counter() - begun:.0f} s", flush=True)
    rows = list(zip(wanted, answerer.ids_of(wanted), strict=True))
    read = time.perf_counter() - begun
    print(
        f"{options.name}: loaded and counted in {read:.0f} s, {sum(len(ids) for _, ids in rows):,} tokens", flush=True
    )
    done = 0
    with options.out.open("a", encoding="utf-8") as out:
        for batch in batches(rows, options.tokens):
            start = time.perf_counter()
            if start - begun > options.seconds:
                print(f"{options.name}: time is up, {len(wanted) - done} left", flush=True)
                sys.exit(3)
            made = answerer.answer_halved([ids for _, ids in batch], batch[0][0]["max_new_tokens"])
            each = (time.perf_counter() - start) / len(batch)
            for (row, ids), tokens in zip(batch, made, strict=True):
                text = answerer.tokenizer.decode(tokens, skip_special_tokens=True).strip()
                told = {
                    "key": row["key"],
                    "model": options.name,
                    "answer": text,
                    "prompt_tokens": len(ids),
                    "new_tokens": len(tokens),
                    "seconds": round(each, 5),
                }
                out.write(json.dumps(told, ensure_ascii=False) + "\n")
            out.flush()
            done += len(batch)
            spent = time.perf_counter() - begun
            print(
                f"{options.name}: {done}/{len(wanted)} in {spent:.0f} s ({len(batch)} × {len(batch[0][1])})", flush=True
            )
    print(f"{options.name}: done", flush=True)


if __name__ == "__main__":
    main()
