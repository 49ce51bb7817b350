"""Make src/muniment/verify/data/languages.bin again from the profiles in the wheel of `langdetect` (Apache-2.0).

pip install langdetect && python tools/make_language_table.py

The profiles were counted over Wikipedia by Cybozu Labs. Languages that are alone in their script need no counts and are
left out; what remains is rounded to a byte: 24 steps a nat above the floor.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import re
import sys
import zlib
from pathlib import Path

READER = Path(__file__).parent.parent / "src" / "muniment" / "verify" / "_text_measures.py"
TARGET = READER.parent / "data" / "languages.bin"
OWN_SCRIPT = {"ko", "ja", "zh-cn", "zh-tw", "th", "ta", "te", "bn", "gu", "pa", "kn", "ml", "he", "el"}
SHARED = ((0, 0x370), (0x400, 0x530), (0x600, 0x780), (0x900, 0x980), (0x1E00, 0x1F00))
FLOOR, STEPS = 0.00005, 24


def profiles() -> dict[str, dict[str, float]]:
    """Language → n-gram → its share among the language's n-grams of that length."""
    found = importlib.util.find_spec("langdetect")
    if found is None or found.origin is None:
        sys.exit("langdetect is not installed")
    made = {}
    for path in sorted((Path(found.origin).parent / "profiles").iterdir()):
        if path.name not in OWN_SCRIPT:
            profile = json.loads(path.read_text("utf-8"))
            made[path.name] = {
                gram: count / profile["n_words"][len(gram) - 1] for gram, count in profile["freq"].items()
            }
    return made


def is_shared(gram: str) -> bool:
    return all(any(low <= ord(char) < high for low, high in SHARED) for char in gram)


def level(share: float) -> int:
    return min(255, round(STEPS * math.log((share + FLOOR) / FLOOR)))


def main() -> None:
    table = profiles()
    grams = sorted({gram for shares in table.values() for gram in shares if is_shared(gram)})
    body = b"".join(bytes(level(shares.get(gram, 0.0)) for gram in grams) for shares in table.values())
    head = "\n".join([" ".join(table), *grams]).encode()
    made = zlib.compress(head + b"\0" + body, 9)
    TARGET.write_bytes(made)
    text = READER.read_text("utf-8")
    READER.write_text(re.sub(r'(?m)^_DIGEST = "\w+"', f'_DIGEST = "{hashlib.sha256(made).hexdigest()}"', text), "utf-8")


if __name__ == "__main__":
    main()
