"""Numbers as they are written, in digits or in English, Chinese and Korean words: one form for each."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern

__all__ = [
    "KOREAN_COUNTERS",
    "ORDINALS",
    "Number",
    "chinese_number",
    "is_spelled",
    "korean_number",
    "read_number",
    "spelled_number",
]

_LARGE = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_MULTIPLIERS = _LARGE | {"k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9, "b": 1e9, "tn": 1e12}
_CJK_MULTIPLIERS = dict(zip("百千万萬亿億백천만억", (1e2, 1e3, 1e4, 1e4, 1e8, 1e8, 1e2, 1e3, 1e4, 1e8), strict=True))
_ONES_TEXT = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS_TEXT = "twenty thirty forty fifty sixty seventy eighty ninety"
_ONES = {word: float(value) for value, word in enumerate(_ONES_TEXT.split())}
_TENS = {word: float(value * 10) for value, word in enumerate(_TENS_TEXT.split(), start=2)}
_SPELLED = _ONES | _TENS | {"dozen": 12.0, "half": 0.5}
_ORDINALS_TEXT = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: f"{value}th" for value, word in enumerate(_ORDINALS_TEXT.split(), start=1)}
_KOREAN_TEXT = "하나 둘 셋 넷 다섯 여섯 일곱 여덟 아홉 열"
_KOREAN = {word: value for value, word in enumerate(_KOREAN_TEXT.split(), start=1)}
_KOREAN |= {"한": 1, "두": 2, "세": 3, "네": 4}
KOREAN_COUNTERS = frozenset("명개살번달시마권잔대")
_CHINESE = lazy_pattern(
    "[一二两三四五六七八九十百千万亿零〇]{1,12}(?=[个人名年月日号岁天次只家位元块米公里小时分钟周件本场届])"
)
_CHINESE_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000}
_DIGITS_MAX = 15
_MONTHS = range(1, 13)


class Number(NamedTuple):
    """The form it is compared by, where it ends, and how many tokens it takes."""

    key: str
    end: int
    tokens: int


def _digits(value: float) -> str:
    """A number in digits, without needless ones."""
    return f"{value:.10g}"


def read_number(text: str, found: Sequence[re.Match[str]], at: int) -> Number:
    """A number with what multiplies it ("5 million", "2.5m", "3万") or makes it an ordinal ("7th")."""
    token = found[at]
    start, end = token.span()
    value = _value(token[0])
    if value is None:
        return Number(unicodedata.normalize("NFKC", token[0]), end, 1)
    before = found[at - 1] if at else None
    if before and len(token[0]) == 2 and len(before[0]) == 4 and text[before.end() : start] in ("-", "–", "/"):
        return Number(before[0][:2] + token[0], end, 1)  # 2018–19
    if text[end : end + 1] in ("月", "월") and value in _MONTHS:
        return Number(f"#m{int(value)}", end, 1)
    if at + 1 < len(found):
        after = found[at + 1]
        gap, tail = text[end : after.start()], after[0].casefold()
        if tail in _MULTIPLIERS and (gap == "" or (tail in _LARGE and gap in (" ", "-", "\u00a0"))):
            return Number(_digits(value * _MULTIPLIERS[tail]), after.end(), 2)
        if gap == "" and tail in ("st", "nd", "rd", "th"):
            return Number(f"{_digits(value)}th", after.end(), 2)
        if gap == "" and tail[0] in _CJK_MULTIPLIERS:
            return Number(_digits(value * _CJK_MULTIPLIERS[tail[0]]), end + 1, 1 + (len(tail) == 1))
    return Number(_digits(value), end, 1)


def _value(body: str) -> float | None:
    digits = body.replace(",", "")
    if digits.count(".") > 1 or ":" in digits or len(digits) > _DIGITS_MAX:
        return None
    return float(digits)


def is_spelled(word: str) -> bool:
    """Is it the beginning of a number in English words?"""
    return word.casefold() in _SPELLED


def spelled_number(found: Sequence[re.Match[str]], at: int) -> Number | None:
    """A number in English words: "twenty-two", "five million"."""
    word = found[at][0].casefold()
    if word not in _SPELLED:
        return None
    value, used = _SPELLED[word], 1
    if word in _TENS and at + 1 < len(found):
        ones = _ONES.get(found[at + 1][0].casefold(), 0.0)
        if 0 < ones < 10:
            value, used = value + ones, 2
    if at + used < len(found) and found[at + used][0].casefold() in _LARGE:
        value, used = value * _LARGE[found[at + used][0].casefold()], used + 1
    return Number(_digits(value), found[at + used - 1].end(), used)


def chinese_number(run: str, at: int) -> Number | None:
    """A number in Chinese signs, with what it counts behind it."""
    found = _CHINESE.match(run, at)
    if found is None:
        return None
    total = section = current = 0
    for sign in found[0]:
        if sign in _CHINESE_DIGITS:
            row = current * 10 if current and not section and not total else 0  # 二〇二三
            current = row + _CHINESE_DIGITS[sign]
        elif sign in _CHINESE_UNITS:
            section += (current or 1) * _CHINESE_UNITS[sign]
            current = 0
        else:
            total = (total + section + current or 1) * int(_CJK_MULTIPLIERS[sign])
            section = current = 0
    return Number(str(total + section + current), found.end(), 1)


def korean_number(root: str, after: str) -> str | None:
    """The value of a native Korean number that stands with what it counts, or before it."""
    word = root[:-1] if root[-1] in KOREAN_COUNTERS else root if after in KOREAN_COUNTERS else ""
    value = _KOREAN.get(word)
    return None if value is None else str(value)
