"""The arguments of upkeep, checked, and its report."""

from collections.abc import Iterable
from typing import Any, Literal, get_args

from muniment.core.record import Count, Record
from muniment.errors import InvalidInput

__all__ = ["KINDS", "UpkeepKind", "UpkeepReport", "kinds_given", "lease_given"]

UpkeepKind = Literal["index", "extract", "scrub"]
"""`index`: entries that the stored index and vectors do not cover. `extract`: turns not yet read for facts. `scrub`:
the store's files, after a forget left data in them.
"""
KINDS: tuple[UpkeepKind, ...] = get_args(UpkeepKind)
_LEASE_S_MIN, _LEASE_S_MAX = 0.1, 3600


def kinds_given(kinds: Iterable[str] | str, tenant_id: str | None = None) -> tuple[UpkeepKind, ...]:
    """The kinds a caller names, checked, each once and in the order in which they are done.

    There is no scrub of one tenant: it covers the files, and its duration would reveal other tenants' data.
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
    """The seconds that a lease may go without a heartbeat, checked."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not _LEASE_S_MIN <= seconds <= _LEASE_S_MAX:
        raise InvalidInput(
            "a lease lasts a number of seconds", path="$.lease_seconds", hint=f"{_LEASE_S_MIN} to {_LEASE_S_MAX}"
        )
    return float(seconds)


class UpkeepReport(Record):
    """The upkeep done by one process."""

    index: Count = 0
    """Turns indexed."""
    extract: Count = 0
    """Turns read."""
    scrub: Count = 0
    """Receipts settled."""
    pieces: Count = 0
    """Pieces taken."""
    taken_over: Count = 0
    """Pieces taken that another process had started and left."""
    lost: Count = 0
    """Pieces taken over from this process, which wrote nothing more of them."""
    held: Count = 0
    """Pieces that other processes are still working on."""

    @property
    def is_idle(self) -> bool:
        """True if there was nothing to do, here or elsewhere."""
        return not self.pieces and not self.held
