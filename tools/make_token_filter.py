"""Make src/muniment/core/text/data/token_filter.bin again from the o200k vocabulary in the wheel of `bpe-openai`.

pip install bpe-openai && python tools/make_token_filter.py
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import re
import sys
import zlib
from pathlib import Path

READER = Path(__file__).parent.parent / "src" / "muniment" / "core" / "text" / "token_filter.py"
TARGET = READER.parent / "data" / "token_filter.bin"
BITS, HASHES, SPREAD = 370_000, 5, 0x9E3779B97F4A7C15
LATIN_WORDS = 40_000
HAN, HANGUL = "\u3400-\u9fff\uf900-\ufaff", "\uac00-\ud7a3"


def vocabulary() -> list[str]:
    """Tokens that are text by themselves, most frequent first."""
    found = importlib.util.find_spec("bpe_openai")
    if found is None or found.origin is None:
        sys.exit("bpe-openai is not installed")
    data = gzip.decompress((Path(found.origin).parent / "data" / "o200k_base.tiktoken.gz").read_bytes())
    ranked = sorted((int(rank), base64.b64decode(token)) for token, rank in map(bytes.split, data.splitlines()))
    pieces = (token.decode("utf-8", "replace") for _, token in ranked)
    return [piece for piece in pieces if "\ufffd" not in piece]


def chosen(pieces: list[str]) -> set[str]:
    words = [piece[1:] for piece in pieces if re.fullmatch(" [a-z]{5,13}", piece)]
    names = {piece[1:] for piece in pieces if re.fullmatch(" [A-Z][a-z]{4,12}", piece)}
    han = {piece for piece in pieces if re.fullmatch(f"[{HAN}]{{1,4}}", piece)}
    hangul = {piece for piece in pieces if re.fullmatch(f"[{HANGUL}]{{1,4}}", piece.strip())}
    known = set(words)
    return set(words[:LATIN_WORDS]) | {name for name in names if name.lower() not in known} | han | hangul


def filter_of(words: set[str]) -> bytes:
    bits = bytearray(BITS // 8)
    for word in words:
        mixed = zlib.crc32(word.encode()) * SPREAD & 0xFFFFFFFFFFFFFFFF
        place, step = mixed >> 32, mixed & 0xFFFFFFFF | 1
        for turn in range(HASHES):
            at = (place + turn * step) % BITS
            bits[at >> 3] |= 1 << (at & 7)
    return bytes(bits)


def main() -> None:
    made = filter_of(chosen(vocabulary()))
    TARGET.write_bytes(made)
    text = READER.read_text("utf-8")
    READER.write_text(re.sub(r'(?m)^_DIGEST = "\w+"', f'_DIGEST = "{hashlib.sha256(made).hexdigest()}"', text), "utf-8")


if __name__ == "__main__":
    main()
