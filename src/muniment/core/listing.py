"""What is asked of a list: in which order, from where, how much, and which of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from muniment.core.instants import check_window, format_instant, parse_instant
from muniment.core.requests import whole
from muniment.errors import InvalidInput

__all__ = ["ORDERS", "Listing", "Placed", "listing_given", "matches", "shown"]

T = TypeVar("T")

ORDERS = ("asc", "desc")
AROUND = 50
"""How many are shown around one, where nobody says how many."""


class Placed(NamedTuple, Generic[T]):
    """Something in a list, and its place: what a cursor goes on after."""

    place: tuple[Any, ...]
    value: T | None
    """None at a place where nothing is to be shown: it was forgotten meanwhile, or is not what was asked for."""


class Listing(NamedTuple):
    """What is asked of a list."""

    descending: bool = False
    since: str | None = None
    """From this moment on."""
    until: str | None = None
    """Before this moment."""
    kind: str | None = None
    q: str | None = None
    """Words that it holds, whatever their case."""
    around: str | None = None
    """The id of one that stands in the midst of what is shown."""
    limit: int | None = None
    after: tuple[Any, ...] | None = None
    """The place that is gone on from."""
    looked_max: int | None = None
    """So many places are looked at, and then the last of them is told, with nothing at it."""

    @property
    def shown_max(self) -> int | None:
        return AROUND if self.limit is None and self.around is not None else self.limit


def listing_given(
    *,
    order: Any = "asc",
    since: Any = None,
    until: Any = None,
    kind: Any = None,
    kinds: tuple[str, ...] = (),
    q: Any = None,
    around: Any = None,
    limit: Any = None,
) -> Listing:
    """What a caller asks of a list, checked; `kinds` are those there are."""
    if order not in ORDERS:
        raise InvalidInput(f"{order!r:.40} is not an order", path="$.order", hint="one of asc, desc")
    for name, given in (("kind", kind), ("q", q), ("around", around)):
        if given is not None and (not isinstance(given, str) or not given.strip()):
            raise InvalidInput(
                f"{name} should be a non-empty string", path=f"$.{name}", hint=f"leave {name} out for the whole list"
            )
    if kind is not None and kind not in kinds:
        raise InvalidInput(f"{kind!r:.40} is not a kind of it", path="$.kind", hint=f"one of {', '.join(kinds)}")
    number = None if limit is None else whole(limit)
    if limit is not None and (type(number) is not int or number < 1):
        raise InvalidInput(
            "limit should be a whole number from 1", path="$.limit", hint="leave limit out for the whole list"
        )
    start = None if since is None else format_instant(parse_instant(since, path="$.since"))
    end = None if until is None else format_instant(parse_instant(until, path="$.until"))
    check_window(start, end)
    return Listing(order == "desc", start, end, kind, q, around, number)


def matches(q: str | None, *texts: str | None) -> bool:
    """Whether one of these texts holds the words, whatever their case and however they are spaced."""
    if q is None:
        return True
    wanted = _folded(q)
    return any(wanted in _folded(text) for text in texts if text)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def shown(placed: Iterable[Placed[T]], asked: Listing) -> Iterator[T]:
    """What a list shows, as far as it was asked for."""
    return islice((each.value for each in placed if each.value is not None), asked.shown_max)
