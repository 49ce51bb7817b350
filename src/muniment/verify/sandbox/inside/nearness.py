"""Which plain answers of an object say that it is the same as the value of the test it was handed.

`found - 0.3` answered by 0.0 says so, `found / 2` answered by 5 does not: an object that was told 2 cannot know that 5
is wanted. What counts as near is wide, because a suite may allow for much (`abs(found - 100) < 20`). An answer of a
kind that is not known here says the same, whatever it is. Nothing here asks the code for anything.
"""

import math
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath
from typing import Any

__all__ = ["Origin", "joined", "measure_says_same", "origin_of", "says_same"]

Origin = tuple[str, float]
"""How an object came of a value of the test: by which operator, and how large the value was."""

_NUMBERS = (int, float, complex, Decimal, Fraction)
_ROWS, _SETS, _MAPS = (list, tuple, deque), (set, frozenset), (dict, Counter, OrderedDict, defaultdict)
_TEXTS = (str, bytes, bytearray)
_SUMS = ("add", "sub")
_ANY: Origin = ("", 0.0)


def origin_of(act: str, other: Any) -> Origin:
    return act, _size(other)


def joined(before: Origin, act: str, other: Any) -> Origin:
    """The origin of what an operator makes of a difference: a sum is followed, and anything else is believed never."""
    return ("sub", max(before[1], _size(other))) if before[0] in _SUMS and act in _SUMS else _ANY


def says_same(act: str, said: Any, other: Any) -> bool:
    """Whether a plain answer to an operator says that the object is the value it was held against."""
    kind = type(said)
    if kind in _NUMBERS:
        return (act in ("and_", "or_", "mod") and said == other) or _is_near(act, said, other)
    if kind in _TEXTS or kind is PosixPath:
        return kind is not PosixPath and not said
    if kind not in (*_ROWS, *_SETS, *_MAPS):
        return True
    if not said or (act != "add" and said == other):
        return True
    if kind in _SETS:
        return False
    is_joined = act == "or_" or (act == "add" and (kind in _MAPS or not _is_as_long(said, other)))
    within = said.values() if kind in _MAPS else said
    return not is_joined and any(type(each) not in _TEXTS and says_same(act, each, _size(other)) for each in within)


def measure_says_same(act: str, said: Any, origin: Origin) -> bool:
    """The same of what a difference says of its size (`len`, `float`, `abs`, …)."""
    if type(said) not in _NUMBERS or origin == _ANY:
        return True
    return said == 0 if act == "len" else _is_near(origin[0], said, origin[1])


def _is_near(act: str, said: Any, other: Any) -> bool:
    size, told = _size(said), _size(other)
    if math.isnan(size):
        return True
    if act == "truediv":
        return bool(abs(complex(said) - 1) < 0.5) if size < 2 else False
    if act == "floordiv":
        return size <= 1
    if act in ("mod", "and_", "or_", "xor"):
        return size < 1
    if size < 1 or size <= told / 2:
        return True
    return size == 1 and not (act == "add" and type(said) is type(other) is int and other > 0)


def _is_as_long(said: Any, other: Any) -> bool:
    return type(other) not in _ROWS or len(said) == len(other)


def _size(value: Any) -> float:
    """How far from nought a number is, or the farthest of those in a row; not a number where that cannot be told."""
    kind = type(value)
    if kind in _ROWS or kind in _SETS:
        return max((_size(each) for each in value), default=0.0)
    if kind in _MAPS:
        return max((_size(each) for each in value.values()), default=0.0)
    if kind not in _NUMBERS:
        return 0.0
    try:
        return float(abs(value))
    except OverflowError:
        return math.inf
    except ValueError:  # a signalling NaN
        return math.nan
