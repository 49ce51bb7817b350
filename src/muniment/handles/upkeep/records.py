"""What upkeep is asked for, checked, and what it tells."""

from collections.abc import Iterable
from typing import Any, Literal, get_args

from muniment.core.record import Count, Record
from muniment.errors import InvalidInput

__all__ = ["KINDS", "UpkeepKind", "UpkeepReport", "kinds_given", "lease_given"]

UpkeepKind = Literal["index", "extract", "scrub"]
"""`index`: entries that the stored index and vectors do not cover. `extract`: turns that nobody has read for facts.
`scrub`: the store's files, where a forget left something."""
KINDS: tuple[UpkeepKind, ...] = get_args(UpkeepKind)
_LEASE_S_MIN, _LEASE_S_MAX = 0.1, 3600


def kinds_given(kinds: Iterable[str] | str, tenant_id: str | None = None) -> tuple[UpkeepKind, ...]:
    """The kinds that a caller names, checked, each once and in the order in which they are done.

    Of one tenant there is no scrub: it is of the files, and how long it takes would tell of others.
    """
    named = [kinds] if isinstance(kinds, str) else list(kinds) if isinstance(kinds, Iterable) else [None]
    for each in named:
        if each not in KINDS:
            raise InvalidInput(f"no kind of upkeep: {each!r:.80}", path="$.kinds", hint=f"some of {', '.join(KINDS)}")
    if not named:
        raise InvalidInput("no kind of upkeep is named", path="$.kinds", hint=f"some of {', '.join(KINDS)}")
    if tenant_id is not None:
        named = [each for each in named if each != "scrub"]
    if not named:
        raise InvalidInput(
            "a scrub is of the whole store, and not of one tenant", path="$.kinds", hint="ask for it without a tenant"
        )
    return tuple(kind for kind in KINDS if kind in named)


def lease_given(seconds: Any) -> float:
    """For how long a lease may stand still, checked."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not _LEASE_S_MIN <= seconds <= _LEASE_S_MAX:
        raise InvalidInput(
            "a lease lasts a number of seconds", path="$.lease_seconds", hint=f"{_LEASE_S_MIN} to {_LEASE_S_MAX}"
        )
    return float(seconds)


class UpkeepReport(Record):
    """What one process has done of the upkeep that waited."""

    index: Count = 0
    """Turns that were indexed."""
    extract: Count = 0
    """Turns that were read."""
    scrub: Count = 0
    """Receipts that wait no longer."""
    pieces: Count = 0
    """Pieces of work that were taken."""
    taken_over: Count = 0
    """Those of them that another process had begun with, and left."""
    lost: Count = 0
    """Pieces that another process took over from this one, which wrote nothing more of them."""
    held: Count = 0
    """Pieces that other processes are still at."""

    @property
    def is_idle(self) -> bool:
        """Was there nothing to do, for anybody?"""
        return not self.pieces and not self.held
