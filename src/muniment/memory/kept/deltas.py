"""A byte string told by another that is much like it: what was copied from where, and what is new. Pure.

A state that grows by a message each step is then kept in what the messages take, not in what all states take.
"""

from __future__ import annotations

__all__ = ["Delta", "apply_delta", "make_delta"]

Delta = list[tuple[int, int] | bytes]
"""In order: (start, length) of the base, or bytes that the base does not have."""

_ANCHOR = 24
"""So many bytes that are alike say that the two go on alike."""
_STEPS_MAX = 64
"""How often the two may part; what is left then is taken as new."""
_REACH = (0, 1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256)
"""How far behind the place where they part a common stretch is looked for."""


def make_delta(base: bytes, new: bytes) -> Delta:
    """What makes `new` of `base`. Its work is bounded by the lengths of the two."""
    delta: Delta = []
    at_base = at_new = 0
    literal_from = 0
    for _ in range(_STEPS_MAX):
        length = _common(base, at_base, new, at_new)
        if length >= _ANCHOR or (length and at_base == at_new == 0):
            if literal_from < at_new:
                delta.append(new[literal_from:at_new])
            delta.append((at_base, length))
            at_base, at_new = at_base + length, at_new + length
            literal_from = at_new
        if at_new >= len(new):
            break
        meeting = _meeting(base, at_base, new, at_new)
        if meeting is None:
            break
        at_base, at_new = meeting
    if literal_from < len(new):
        delta.append(new[literal_from:])
    return delta


def apply_delta(base: bytes, delta: Delta) -> bytes:
    return b"".join(part if isinstance(part, bytes) else base[part[0] : part[0] + part[1]] for part in delta)


def _common(base: bytes, at_base: int, new: bytes, at_new: int) -> int:
    """How many bytes are alike from two places on: by halves of what is compared whole."""
    most = min(len(base) - at_base, len(new) - at_new)
    alike = 0
    step = most
    while step > 0 and alike < most:
        step = min(step, most - alike)
        here, there = at_base + alike, at_new + alike
        if base[here : here + step] == new[there : there + step]:
            alike += step
        else:
            step //= 2
    return alike


def _meeting(base: bytes, at_base: int, new: bytes, at_new: int) -> tuple[int, int] | None:
    """The nearest places from which both go on alike: something was put in between, taken out, or changed."""
    found: list[tuple[int, int]] = []
    for reach in _REACH:
        anchor = base[at_base + reach : at_base + reach + _ANCHOR]
        if len(anchor) == _ANCHOR and (place := new.find(anchor, at_new)) >= 0:
            found.append((at_base + reach, place))
            break
    for reach in _REACH:
        anchor = new[at_new + reach : at_new + reach + _ANCHOR]
        if len(anchor) == _ANCHOR and (place := base.find(anchor, at_base)) >= 0:
            found.append((place, at_new + reach))
            break
    return min(found, key=lambda each: each[0] - at_base + each[1] - at_new) if found else None
