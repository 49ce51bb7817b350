"""A calibrated estimate of token counts without a tokenizer, which errs upward.

One regular expression cuts the text much as the o200k vocabulary's own first step does; each piece has a cost in
thousandths of a token. Words that a filter knows cost about one, others by script, case and length, from averages over
prose, chat, reports, JSON and code; Han and Hangul are cut greedily into pieces that the filter knows. A margin is
added, so that what fits a budget by the estimate fits it under the real tokenizer. Chance weighs less in a longer text,
so a part of the margin grows with the square root of the count.

The filter is a Bloom filter over Latin words of 5 to 13 letters (behind a space; in lower case, or as names where only
the name is a token) and Han and Hangul pieces of 1 to 4 characters (a Hangul piece behind a space with that space).
About one in forty other strings passes. `tools/make_token_filter.py` makes its bits, in `data/token_filter.bin`; a test
compares them with the vocabulary where a tokenizer is installed.
"""

from __future__ import annotations

import re
from functools import cache
from math import isqrt
from zlib import crc32

from muniment.core.limits import Memo
from muniment.core.text.word_lists import read_data

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


ESTIMATE_NAME = "estimate_v1"
"""Change the number whenever a text could get another count: budgets of stored builds name it."""

_MARGIN_PERMILLE = 70
_MARGIN_ROOT_PERMILLE = 800
"""The margin: 7 % of the count and 0.8 of its square root. It underestimates, among texts of 40 tokens and more, fewer
than 1 in 1,000 (English, Chinese, Korean, code), up to 3 in 1,000 of other files; by 14 % at worst: lists of rare
names.
"""

_MEMO_PIECES_MAX = 65_536
_MEMO_CHARS_MAX = 32

_MARKS = r"!-/:-@\[-`{-~"
_LATIN = r"\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff"
_HAN = r"\u3400-\u9fff\uf900-\ufaff"
_KANA = r"\u3040-\u30ff"
_HANGUL = r"\uac00-\ud7a3"

# White space is looked through for a line break, or a number behind it, from its start and behind a break alone: what
# is not found from there is not found from any place within it, and a page of tabs is read once.
_PIECE = re.compile(
    rf"[{_MARKS}]?+(?:[A-Z]*+[a-z]++(?![{_LATIN}])(?:'(?:[smtd]|ll|ve|re)(?![A-Za-z]))?|[A-Z]++(?![{_LATIN}]))"
    r"| ?[0-9]{1,3}"
    rf"| ?[{_MARKS}]++[\r\n]*"
    r"|(?<![^\S\r\n])(?:\s*[\r\n]+|\s+(?= [0-9]))|[^\S ]|\s{2,}"
    rf"|[A-Za-z{_LATIN}]+"
    rf"| ?[{_HAN}]+| ?[{_HANGUL}]+|[{_KANA}]+"
    rf"|[^\s!-~{_LATIN}{_HAN}{_KANA}{_HANGUL}]+"
)

_KNOWN = (0, 1000, 1000, 1030, 1070, 1020, 1030, 1060, 1080, 1110, 1140, 1160, 1180, 1220)
"""Thousandths for a word of a common kind, by its letters; below 5 letters every word is assumed to be one."""
_CAPITAL_MORE = 40
_CJK_PIECE = 1010
_SPELLED = 2150
_SPACE_APART = 800
_UPPER = (0, 1000, 1020, 1350, 1600, 2000, 2250)
_LETTER_MORE = 370
_JOINED = 360
_BESIDE = 900
"""A punctuation mark right before a word: some usually merge with it into one token, others seldom."""
_RULES = "=-*#_.~+/"
"""Marks used for drawing lines: long runs of them are few tokens."""

_SCRIPTS: tuple[tuple[int, int, int, int], ...] = (
    # first and last code point, thousandths for a run, thousandths for a letter
    (0x0080, 0x00BF, 0, 1000),
    (0x0250, 0x02FF, 0, 2000),
    (0x0370, 0x03FF, 300, 420),
    (0x0400, 0x052F, 550, 260),
    (0x0530, 0x058F, 400, 420),
    (0x0591, 0x05C7, 0, 1000),
    (0x0590, 0x05FF, 350, 370),
    (0x0600, 0x077F, 400, 310),
    (0x0900, 0x0DFF, 400, 420),
    (0x0E00, 0x0E7F, 500, 420),
    (0x10A0, 0x10FF, 500, 380),
    (0x2000, 0x206F, 0, 1000),
    (0x2070, 0x2BFF, 0, 2000),
    (0x3000, 0x303F, 0, 1000),
    (0xFE00, 0xFE0F, 0, 1000),
    (0xFF00, 0xFFEF, 0, 1000),
    (0x1F000, 0x1F8FF, 0, 2200),
    (0x1F900, 0x1FAFF, 0, 3000),
)
_UNKNOWN_LETTER = 3000
_UNKNOWN_FAR_LETTER = 4000


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text under o200k: rarely too few, a fifth too many at 80, a seventh at 500."""
    return tokens_of_weight(weigh(text)) or (1 if text else 0)


def weigh(text: str) -> int:
    """Return the cost of a text's pieces, in thousandths of a token.

    No piece goes past a line break into a character that is neither a space nor a break, and a number of up to three
    digits in brackets costs the same whatever the digits: the weights of lines, each with its break, add up to the
    page's.
    """
    memo = _COSTS
    if len(memo) > _MEMO_PIECES_MAX:
        memo.clear()
    return sum(map(memo.__getitem__, _PIECE.findall(text)))


def tokens_of_weight(weight: int) -> int:
    """Return the estimate for a text of this weight, with its margin."""
    margin = weight * _MARGIN_PERMILLE // 1000 + isqrt(weight * 1000) * _MARGIN_ROOT_PERMILLE // 1000
    return -(-(weight + margin) // 1000)


class _Costs(Memo[str, int]):
    """A cached map of pieces to thousandths of a token; only short pieces are cached."""

    def __missing__(self, piece: str) -> int:
        cost = _cost(piece)
        if len(piece) <= _MEMO_CHARS_MAX:
            self[piece] = cost
        return cost


class _Singles(Memo[str, bool]):
    """Cached results of the filter."""

    def __missing__(self, piece: str) -> bool:
        if len(self) > _MEMO_PIECES_MAX:
            self.clear()
        self[piece] = known = is_single_token(piece)
        return known


_COSTS = _Costs()
_IS_SINGLE = _Singles()


def _cost(piece: str) -> int:
    first = piece[0]
    size = len(piece)
    if not piece.isascii():
        return _foreign(piece)
    if first.isalpha():
        return _word(piece)
    if piece[-1].isalpha():
        return _word(piece[1:]) + (_JOINED if first in "_.(-'" else _BESIDE)
    if piece[-1].isdigit():
        return 2000 if first == " " else 1000
    if piece.isspace():
        return 1000 + (260 * max(0, size - 8) if "\n" in piece or "\r" in piece else 10 * max(0, size - 16))
    marks = piece.strip()
    size = len(marks)
    if not marks.isprintable():
        return 1000 * size
    if size <= 3:
        return (0, 1000, 1050, 1200)[size]
    if marks == marks[0] * size:
        return 1000 + (90 if marks[0] in _RULES else 520) * (size - 3)
    return 1300 + 720 * (size - 3)


def _word(piece: str) -> int:
    stem, apostrophe, _ = piece.partition("'")
    extra = 750 if apostrophe else 0
    size = len(stem)
    if stem.isupper():
        last = len(_UPPER) - 1
        return extra + _UPPER[min(size, last)] + _LETTER_MORE * max(0, size - last)
    if not stem.islower():
        if not stem[1:].islower():
            return extra + 1100 + 330 * size
        extra += _CAPITAL_MORE
    if size < 5 or (size < len(_KNOWN) and (is_single_token(stem.lower()) or is_single_token(stem))):
        return extra + _KNOWN[size]
    return extra + 1150 + 140 * size + 400 * max(0, size - 12)


def _greedy_han(run: str) -> int:
    """Split from the left into pairs that are one token, else single characters, the rare ones spelled in bytes."""
    known = _IS_SINGLE
    total = at = 0
    while at < len(run):
        if known[run[at : at + 2]]:
            total += _CJK_PIECE
            at += 2
        else:
            total += _CJK_PIECE if known[run[at]] else _SPELLED
            at += 1
    return total


def _greedy_hangul(run: str) -> int:
    """Split Hangul greedily, like Han, but into pieces of up to three signs: endings of verbs are that long."""
    known = _IS_SINGLE
    total = at = 0
    while at < len(run):
        if known[run[at : at + 3]]:
            at += 3
        elif known[run[at : at + 2]]:
            at += 2
        else:
            total += 0 if known[run[at]] else _SPELLED - _CJK_PIECE
            at += 1
        total += _CJK_PIECE
    return total


def _foreign(piece: str) -> int:
    """Group runs of one kind of letter; the rest letter by letter."""
    code, size = ord(piece[0]), len(piece)
    if "\uac00" <= piece[-1] <= "\ud7a3":
        if code == 0x20 and not _IS_SINGLE[piece[:2]]:
            return _greedy_hangul(piece[1:]) + _SPACE_APART
        return _greedy_hangul(piece)
    if code == 0x20:
        return _greedy_han(piece[1:]) + _SPACE_APART
    if 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF:
        return _greedy_han(piece)
    if 0x3040 <= code <= 0x30FF:
        return 450 + 590 * size
    if _is_latin(piece[0]):
        return 650 + 260 * size + 900 * sum("\u0300" <= char <= "\u036f" for char in piece)
    total = 0
    before: tuple[int, int] | None = None
    for char in piece:
        run, each = _script(ord(char))
        total += each if (run, each) == before else run + each
        before = (run, each)
    return total


def _is_latin(char: str) -> bool:
    return (
        char.isascii() or "\u00c0" <= char <= "\u024f" or "\u0300" <= char <= "\u036f" or "\u1e00" <= char <= "\u1eff"
    )


def _script(code: int) -> tuple[int, int]:
    for first, last, run, each in _SCRIPTS:
        if first <= code <= last:
            return run, each
    return 0, _UNKNOWN_LETTER if code < 0x10000 else _UNKNOWN_FAR_LETTER
