"""Make src/muniment/core/text/token_filter.py again from the o200k vocabulary in the wheel of `bpe-openai`.

pip install bpe-openai && python tools/make_token_filter.py
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
import re
import sys
import zlib
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src" / "muniment" / "core" / "text" / "token_filter.py"
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
    text = TARGET.read_text("utf-8")
    data = base64.b64encode(filter_of(chosen(vocabulary()))).decode()
    lines = "\n".join(data[at : at + 116] for at in range(0, len(data), 116))
    TARGET.write_text(
        re.sub(r'_DATA = """\n.*\n"""', lambda _: f'_DATA = """\n{lines}\n"""', text, flags=re.DOTALL), "utf-8"
    )


if __name__ == "__main__":
    main()
