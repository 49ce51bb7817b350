"""A Bloom filter over pieces that are one token of the o200k vocabulary.

It holds the Latin words of 5 to 13 letters (as they stand after a space; in lower case, or as names where only the
name is a token), and the Han and Hangul pieces of 1 to 4 characters (a Hangul piece after a space with that space).
About one in forty of other strings is taken for known. `tools/make_token_filter.py` makes its bits, which stand in
`data/token_filter.bin`; a test checks them against the vocabulary where a tokenizer is installed.
"""

from __future__ import annotations

from functools import cache
from zlib import crc32

from muniment.core.text.word_lists import read_data

__all__ = ["is_single_token"]

_BITS = 370000
_HASHES = 5
_SPREAD = 0x9E3779B97F4A7C15
_DIGEST = "e19f60a783ce39b7dfd0a69e345e60eab2b8c03307474159de5d29078668407f"  # of token_filter.bin


def is_single_token(piece: str) -> bool:
    """True for a piece that is one token, and for a few that are not."""
    bits = _bits()
    mixed = crc32(piece.encode("utf-8", "replace")) * _SPREAD & 0xFFFFFFFFFFFFFFFF
    place, step = mixed >> 32, mixed & 0xFFFFFFFF | 1
    for turn in range(_HASHES):
        at = (place + turn * step) % _BITS
        if not bits[at >> 3] >> (at & 7) & 1:
            return False
    return True


@cache
def _bits() -> bytes:
    return read_data(__package__, "token_filter.bin", _DIGEST)
