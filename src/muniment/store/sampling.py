"""A sample of a tenant's sessions, spread over their names, at a cost independent of their number.

Names are bisected like numbers: between two known sessions, the middle of their names is looked up, and the sessions on
either side of it are two more. Where two names have no middle, the one after the lower is looked up. This closes gaps
without a session at once, so that a store of few sessions is sampled whole. Writes nothing, and reads only the sessions
it returns and their neighbours.
"""

from __future__ import annotations

from collections import deque

from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import select
from muniment.core.ports.schema import SESSIONS, SessionRow

__all__ = ["middle", "sampled_sessions"]

Name = tuple[str, str]
"""A user and a session."""
_BASE = 0x110000 + 1
"""Code points a text may have, plus one for its end."""
_SURROGATES = range(0xD800, 0xE000)
_BETWEEN = 1
"""The digit between the two names: that of NUL, which no name has."""


def sampled_sessions(reader: Reader, count: int) -> list[SessionRow]:
    """Return at most this many sessions in the order of their names; all if there are no more."""
    ends = [_beside(reader, None, is_down=is_down) for is_down in (False, True)]
    found = {_name(row): row for row in ends if row is not None}
    gaps = deque([(min(found), max(found))] if len(found) == 2 and count > 1 else [])
    while gaps and len(found) < count:
        low, high = gaps.popleft()
        between = middle(low, high)
        after = _beside(reader, low if between is None else between)
        before = None if after is None else _beside(reader, _name(after), is_down=True)
        for row in (after, before):
            if row is not None and low < _name(row) < high and len(found) < count:
                found[_name(row)] = row
        if after is not None and low < _name(after) < high:
            gaps.append((_name(after), high))
        if before is not None and low < _name(before) < high:
            gaps.append((low, _name(before)))
    return [found[name] for name in sorted(found)][:count]


def _name(row: SessionRow) -> Name:
    return row.user_id, row.session_id


def _beside(reader: Reader, name: Name | None, *, is_down: bool = False) -> SessionRow | None:
    """Return the first session after a name, or the last before it; without a name, the first or last of all."""
    rows = select(reader, SESSIONS, order=("user_id", "session_id"), after=name, descending=is_down, limit=1)
    return rows[0] if rows else None


def middle(low: Name, high: Name) -> Name | None:
    """Return a name about midway between two; None where they are too close."""
    size = max(len(user_id) + len(session_id) for user_id, session_id in (low, high)) + 2
    number = (_number(low, size) + _number(high, size)) // 2
    digits: list[int] = []
    for _ in range(size):
        number, digit = divmod(number, _BASE)
        digits.append(digit)
    digits.reverse()
    user_id, rest = _text(digits)
    found = user_id, _text(rest)[0]
    return found if low < found < high else None


def _number(name: Name, size: int) -> int:
    digits = [*(ord(sign) + 1 for sign in name[0]), _BETWEEN, *(ord(sign) + 1 for sign in name[1])]
    number = 0
    for digit in digits:
        number = number * _BASE + digit
    return number * int(_BASE ** (size - len(digits)))


def _text(digits: list[int]) -> tuple[str, list[int]]:
    """Return the text up to its end, and the digits after that."""
    signs: list[str] = []
    for at, digit in enumerate(digits):
        if digit <= _BETWEEN:
            return "".join(signs), digits[at + 1 :]
        code = digit - 1
        signs.append(chr(_SURROGATES.start - 1 if code in _SURROGATES else code))
    return "".join(signs), []
