"""Objects that a call needs, fetched while it holds no transaction.

A transaction that meets content outside which is not at hand ends there (`Lacking`); the object is fetched, and the
transaction is done again, which an engine may do anyway. So a bucket that answers late, or not at all, holds no
connection of a pool, no lock and no view of the store. How an object failed to come is kept as well, and told in the
place that asked for it. Long views cannot be done again: they wait where they are (`is_patient`), as does a call that
needs more than is held in memory, or that was begun again often enough.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from muniment.core.cancellation import checkpoint
from muniment.core.ports.objects import ObjectRow
from muniment.errors import MunimentError
from muniment.store.objects.archives import read_archive
from muniment.store.objects.outside import Outside

__all__ = ["Brought", "Fetcher", "Lacking", "Wanted"]

R = TypeVar("R")
HELD_BYTES_MAX = 256 * 1024 * 1024
"""What one call may hold in memory of objects. One that needs more fetches the rest as it goes, one such call at a
time."""
RESTARTS_MAX = 12
"""How often a call is done again from its start. Each time brings twice as many objects as the one before where they
were named in time: one that still lacks some meets them one by one, and would do all its work again for each."""


class Wanted(NamedTuple):
    """An object, and the salt of the event whose content it is; None of an archive."""

    row: ObjectRow
    salt: bytes | None = None


class Lacking(Exception):
    """A transaction needs these objects, the first of them at once. It is rolled back, and done again with them."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        super().__init__(f"{len(wanted)} objects")
        self.wanted = wanted


class Brought:
    """The objects that one call has been brought so far."""

    def __init__(self, outside: Outside, tenant_id: str, *, is_patient: bool) -> None:
        self.is_patient = is_patient
        """Does it wait for an object where it stands, within its transaction?"""
        self._outside = outside
        self._tenant_id = tenant_id
        self._held: dict[str, Any] = {}
        self.size_bytes = 0
        self.restarts = 0
        """How often its work was begun again."""

    @property
    def is_enough(self) -> bool:
        """Is the rest to be fetched as it is met?"""
        return self.size_bytes > HELD_BYTES_MAX or self.restarts >= RESTARTS_MAX

    def has(self, held_at: str) -> bool:
        return held_at in self._held or self._outside.fetched.get(held_at) is not None

    @property
    def ahead(self) -> int:
        """How many more than the one that is lacking are fetched with it: as many as were needed so far, so that a call
        that reads many begins anew a few times."""
        return len(self._held)

    def read(self, wanted: Wanted, others: Callable[[], Sequence[Wanted]]) -> Any:
        """What an object holds, None where it is missing. `others` are those that may be asked for next."""
        held_at = wanted.row.held_at
        if held_at in self._held:
            found = self._held[held_at]
            if isinstance(found, MunimentError):
                raise found
            return found
        known = self._outside.fetched.get(held_at)
        if known is not None:
            return known
        if self.is_patient:
            return self._fetch(wanted)
        raise Lacking([wanted, *others()])

    def _fetch(self, wanted: Wanted) -> Any:
        """The content of an event, or the entries of an archive."""
        if wanted.row.use == "blob":
            return self._outside.blob(self._tenant_id, wanted.row, wanted.salt)
        return read_archive(self._outside, self._tenant_id, wanted.row)

    def bring(self, wanted: Sequence[Wanted]) -> None:
        """Fetch these. The first one that does not come ends it: the work is told when it asks for that one."""
        for each in wanted:
            checkpoint()
            try:
                found = self._fetch(each)
            except MunimentError as error:
                self._held[each.row.held_at] = error
                return
            self._held[each.row.held_at] = found
            self.size_bytes += each.row.size
            if self.size_bytes > HELD_BYTES_MAX:
                return


class Fetcher:
    """Does the calls of a store that read what lies outside. Thread-safe."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._patient = threading.Lock()

    def view(self, tenant_id: str) -> Brought:
        """For a long view, which waits where it is."""
        return Brought(self._outside, tenant_id, is_patient=True)

    def call(self, tenant_id: str, work: Callable[[Brought], R]) -> R:
        """Do a transaction, again and again until it lacks nothing."""
        held = Brought(self._outside, tenant_id, is_patient=False)
        while not held.is_enough:
            try:
                return work(held)
            except Lacking as lacking:
                wanted = lacking.wanted
            held.bring(wanted)
            held.restarts += 1
        with self._patient:  # before its transaction begins, so that no more than one waits within
            held.is_patient, held.restarts = True, 0
            return work(held)
