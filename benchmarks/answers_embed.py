"""Vectors of texts by a sentence model of transformers, where there is a GPU: one file that needs no muniment.

    python answers_embed.py --model FOLDER --texts texts.jsonl.gz --out vectors.npz

A line of the texts is one JSON string; the vectors are means over the tokens (256 at most), of length one.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

TOKENS_MAX = 256
BATCH = 256


def main() -> None:
    import numpy as np
    import torch  # type: ignore[import-not-found]
    from transformers import AutoModel, AutoTokenizer  # type: ignore[import-not-found]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with gzip.open(options.texts, "rt", encoding="utf-8") as lines:
        texts: list[str] = [json.loads(line) for line in lines]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer: Any = AutoTokenizer.from_pretrained(options.model)
    model = AutoModel.from_pretrained(options.model, dtype=torch.float32).to(device).eval()
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    vectors = np.zeros((len(texts), model.config.hidden_size), np.float16)
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        read = tokenizer(
            [texts[place] for place in places],
            padding=True,
            truncation=True,
            max_length=TOKENS_MAX,
            return_tensors="pt",
        ).to(device)
        with torch.inference_mode():
            states = model(**read).last_hidden_state
            mask = read["attention_mask"].unsqueeze(-1).float()
            mean = (states * mask).sum(1) / mask.sum(1)
            vectors[places] = torch.nn.functional.normalize(mean, dim=1).half().cpu().numpy()
    np.savez(options.out, vectors=vectors)
    print(f"{len(texts)} texts embedded", flush=True)


if __name__ == "__main__":
    main()
