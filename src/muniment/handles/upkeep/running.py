"""One process doing a store's upkeep: it takes unowned or abandoned pieces, does them and gives them back.

While working on a piece it renews the lease, four times within the lease time (`store.background.leases`). A lease is
judged stale by how long this process has seen it unchanged, never by wall clocks. Damage in one user or tenant delays
nobody else: the rest is done first, and then the error is raised. A busy tenant is retried. An unavailable service is
retried after growing delays (`resting`).
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from muniment.core.limits import cancellable, checkpoint
from muniment.core.ports.rows import chunked
from muniment.core.ports.schema import UPKEEP
from muniment.errors import (
    EmbedderFailure,
    ModelFailure,
    MunimentError,
    StorageBusy,
    StorageFailure,
)
from muniment.handles.upkeep.chores import CHORES, Piece, names_of
from muniment.handles.upkeep.records import KINDS, UpkeepKind, UpkeepReport
from muniment.handles.upkeep.resting import Rest
from muniment.store.background.fenced import fenced
from muniment.store.background.leases import (
    LeaseLost,
    StillLeases,
    Taken,
    count_on,
    give_back,
    open_leases,
    take_free,
    take_over,
)

if TYPE_CHECKING:
    from muniment.core.ports.engine import Engine
    from muniment.core.ports.schema import LeaseRow
    from muniment.handles.upkeep.chores import Chore
    from muniment.store.context import Context

__all__ = ["Upkeep"]

RETRY_S = 600.0
"""Seconds before retrying a piece on which nothing could be done."""
_BEATS = 4
_SHARES = 8
"""The minimum number of parts that pending work is split into, so that other processes find some."""
_AWAY = (EmbedderFailure, ModelFailure, StorageFailure)
"""Errors of a service that a kind of upkeep needs: the next piece of that kind would fail the same way."""
_RESTING = (EmbedderFailure, ModelFailure)
"""Errors of services outside the store, which are not called again on each check."""
_BUSY_TRIES = 3
"""How often a run retries a busy place."""
_LOGGER = logging.getLogger("muniment.upkeep")


class _Keeper:
    """The leases held by this process, renewed in a background thread. Thread-safe."""

    def __init__(self, engine: Engine, lease_s: float) -> None:
        self._engine = engine
        self._lease_s = lease_s
        self._lock = threading.Lock()
        self._held: dict[str, Taken] = {}
        self._lost: set[str] = set()
        self._beats = 0
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def holding(self, taken: Taken) -> Iterator[None]:
        """Renew the lease while the block runs. A lease no longer renewed can be given back: no statement of this
        process touches its row.
        """
        with self._lock:
            self._held[taken.token] = taken
            if self._thread is None:
                self._is_over.clear()
                self._thread = threading.Thread(target=self._keep, name="muniment-upkeep-leases", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._held[taken.token]
                self._lost.discard(taken.token)

    def is_lost(self, token: str) -> bool:
        return token in self._lost

    def _keep(self) -> None:
        while not self._is_over.wait(self._lease_s / _BEATS):
            try:
                self.beat()
            except MunimentError as error:  # the store is unavailable: leases go stale, and the fence decides
                _LOGGER.warning("leases of upkeep cannot be kept", extra={"said": error.to_dict()})

    def beat(self) -> None:
        """Renew all held leases: one statement for each place."""
        with self._lock:
            self._beats += 1
            for place in {taken.place for taken in self._held.values()}:
                here = [taken for taken in self._held.values() if taken.place == place]
                ids, tokens = [id_ for taken in here for id_ in taken.ids], [taken.token for taken in here]
                mine = self._engine.write(place, partial(count_on, ids=ids, tokens=tokens, beats=self._beats))
                if mine < len(ids):
                    owners = {lease.id: lease.owner for lease in self._engine.read(place, open_leases)}
                    self._lost |= {
                        each.token for each in here if any(owners.get(id_) != each.token for id_ in each.ids)
                    }

    def close(self) -> None:
        self._is_over.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()


class _Look(NamedTuple):
    """The pending work of one kind in a place, by the ids of its leases."""

    free: list[str]
    still: list[LeaseRow]
    """Leases that no process renews."""
    held: list[str]
    apart: list[str]
    """Pieces that failed together, to be tried one by one; filled during the run."""


class Upkeep:
    """The upkeep of some kinds by one process. Used by one thread at a time."""

    def __init__(
        self,
        ctx: Context,
        kinds: tuple[UpkeepKind, ...],
        *,
        tenant_id: str | None,
        lease_s: float,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._ctx = ctx
        self._chores: dict[UpkeepKind, Chore] = {kind: CHORES[kind]() for kind in kinds}
        self._tenant_id = tenant_id
        self._lease_s = lease_s
        self._tell = progress or (lambda _count: None)
        self._process = secrets.token_hex(8)
        self._takings = 0
        self._still = StillLeases(lease_s)
        self._keeper = _Keeper(ctx.engine, lease_s)
        self._fruitless: dict[tuple[str, str], float] = {}
        """When a piece that could not be done was last tried."""
        self._failed: MunimentError | None = None
        """The first error of a run."""
        self._broken: set[tuple[str, str]] = set()
        """Pieces that failed in this run, not retried before the next."""
        self._out: set[UpkeepKind] = set()
        """Kinds that this run has given up."""
        self._busy: Counter[str] = Counter()
        """How often a place was busy in this run."""
        self._met_busy: dict[str, StorageBusy] = {}
        """Places that were busy on the last visit, with their errors."""
        self._rests: dict[UpkeepKind, Rest] = {kind: Rest() for kind in kinds}
        self._stop = threading.Event()

    def stop(self) -> None:
        """Stop as soon as the current piece allows. Called from another thread."""
        self._stop.set()

    @property
    def is_retry_due(self) -> bool:
        """True if a piece that could not be done, or a failed service, has waited long enough."""
        rests = (*self._rests.values(), *(chore.rest for chore in self._chores.values()))
        return any(rest.is_due for rest in rests) or any(
            time.monotonic() - tried > RETRY_S for tried in self._fruitless.values()
        )

    def run(self) -> UpkeepReport:
        """Do pending work until nothing is left or others hold the rest. Stalled processes are waited for, for as long
        as a lease lasts, and their pieces are taken over. The first error is raised when the rest is done.
        """
        self._failed, self._broken = None, set()
        self._out = {kind for kind, rest in self._rests.items() if rest.is_resting}
        self._busy, self._met_busy = Counter(), {}
        now = time.monotonic()
        self._fruitless = {piece: tried for piece, tried in self._fruitless.items() if now - tried <= RETRY_S}
        counted: Counter[str] = Counter(dict.fromkeys((*KINDS, "pieces", "taken_over", "lost"), 0))
        places = self._places()
        held: dict[str, int] = {}
        waited_since: float | None = None
        try:
            while places and not self._stop.is_set():
                began = time.monotonic()
                moved = {place for place in places if self._go_through(place, counted, held)}
                waited_since = time.monotonic() if moved or waited_since is None else waited_since
                busy = {place for place in self._met_busy if self._busy[place] < _BUSY_TRIES}
                others = {place for place, count in held.items() if count} | busy
                # Each lease was seen before the wait began: one unchanged since then was due in this round.
                if not moved and others and began - waited_since > self._lease_s * (1 + 1 / _BEATS):
                    break  # the others are alive
                places = [place for place in places if place in moved or place in others]
                if not moved and places:
                    self._stop.wait(self._lease_s / _BEATS)
        finally:
            self._keeper.close()
        failed = self._failed or next(iter(self._met_busy.values()), None)
        if failed is not None:
            raise failed
        return UpkeepReport(**counted, held=sum(held.values()))

    def _places(self) -> list[str]:
        """Places that may have pending work. For one tenant, the store-wide place is left out."""
        is_for_all = self._tenant_id is None
        of_the_store = [UPKEEP] if is_for_all and any(chore.is_of_the_store for chore in self._chores.values()) else []
        if all(chore.is_of_the_store for chore in self._chores.values()):
            return of_the_store
        tenants = self._ctx.engine.tenants() if self._tenant_id is None else [self._tenant_id]
        return [*tenants, *of_the_store]

    def _go_through(self, place: str, counted: Counter[str], held: dict[str, int]) -> bool:
        """Do the pending work of one place; returns whether anything changed. A busy place is retried."""
        if self._stop.is_set():
            return False
        held[place] = 0
        self._met_busy.pop(place, None)
        try:
            leases = self._ctx.engine.read(place, open_leases)
        except StorageBusy as error:
            self._note_busy(place, error)
            return False
        chores = {kind: chore for kind, chore in self._chores.items() if chore.is_of_the_store == (place == UPKEEP)}
        still = self._still.look(place, leases, time.monotonic())
        has_moved = False
        for kind, chore in chores.items():
            checkpoint()
            if kind in self._out:
                continue
            with self._told_later(kind, place):
                look = self._look(kind, chore.waiting(self._ctx, place), place, leases, still)
                for taken in self._taken(place, chore, look):
                    if self._stop.is_set():
                        self._give_back(taken)
                        return has_moved
                    with self._told_later(kind, place, taken, look):
                        has_moved = self._do(kind, taken, counted) or has_moved
                    if kind in self._out:
                        break
                held[place] += len(look.held)
        return has_moved

    @contextmanager
    def _told_later(
        self, kind: UpkeepKind, place: str, taken: Taken | None = None, look: _Look | None = None
    ) -> Iterator[None]:
        """Raise an error of the block after everything else is done, or at once if the work was stopped. Pieces that
        failed together are then tried one by one.
        """
        try:
            yield
        except MunimentError as error:
            checkpoint()
            if isinstance(error, StorageBusy):
                if taken is not None and look is not None and len(taken.ids) > 1:
                    look.apart.extend(taken.ids)
                else:
                    self._note_busy(place, error)
                return
            self._failed = self._failed or error
            if isinstance(error, EmbedderFailure) and self._chores[kind].rest.is_resting:
                return  # words continue without it
            if isinstance(error, _RESTING):
                self._rests[kind].fail()
            if isinstance(error, _AWAY):
                self._out.add(kind)
            elif taken is not None and look is not None:
                self._broken |= {(taken.place, id_) for id_ in taken.ids}
                look.apart.extend(taken.ids if len(taken.ids) > 1 else ())

    def _note_busy(self, place: str, error: StorageBusy) -> None:
        """Record that a place is busy. It is raised only if it is still busy after everything else is done."""
        self._busy[place] += place not in self._met_busy
        self._met_busy[place] = error

    def _look(self, kind: str, waiting: list[str], place: str, leases: list[LeaseRow], still: list[LeaseRow]) -> _Look:
        """Find pieces that can be taken, starting at a random place so that processes that begin together spread
        out.
        """
        others = {lease.id for lease in leases}
        left = [lease for lease in still if lease.id.startswith(f"{kind}:")]
        ids = [id_ for id_ in (f"{kind}:{name}" for name in waiting) if self._is_worth_trying(place, id_)]
        at = secrets.randbelow(len(ids)) if ids else 0
        ids = ids[at:] + ids[:at]
        gone = {lease.id for lease in left}
        return _Look(
            free=[id_ for id_ in ids if id_ not in others],
            still=left,
            held=[id_ for id_ in ids if id_ in others and id_ not in gone],
            apart=[],
        )

    def _is_worth_trying(self, place: str, id_: str) -> bool:
        return (place, id_) not in self._fruitless and (place, id_) not in self._broken

    # -- taking ---------------------------------------------------------------------------------------

    def _token(self) -> str:
        self._takings += 1
        return f"{self._process}.{self._takings}"

    def _taken(self, place: str, chore: Chore, look: _Look) -> Iterator[Taken]:
        """Yield the pieces this process obtains one by one: abandoned ones, then unowned ones, then each of those that
        failed together.
        """
        engine = self._ctx.engine
        for lease in look.still:
            token = self._token()
            try:
                is_mine = engine.write(place, partial(take_over, lease=lease, token=token))
            except StorageBusy:  # its owner is stuck in a transaction, which the server ends
                is_mine = False
            if is_mine:
                yield Taken(place, token, (lease.id,), left_by=lease.owner)
        for ids in chunked(look.free, max(1, min(chore.pieces_max, len(look.free) // _SHARES))):
            yield from self._taken_free(place, ids)
        for id_ in look.apart:
            yield from self._taken_free(place, [id_])

    def _taken_free(self, place: str, ids: Sequence[str]) -> Iterator[Taken]:
        taken = self._ctx.engine.write(place, partial(take_free, place=place, ids=ids, token=self._token()))
        if taken.ids:
            yield taken

    def _do(self, kind: UpkeepKind, taken: Taken, counted: Counter[str]) -> bool:
        """Do leased pieces, and give them back; returns whether anything was done."""
        chore = self._chores[kind]
        counted["pieces"] += len(taken.ids)
        counted["taken_over"] += taken.left_by is not None
        ctx = fenced(self._ctx, taken, self._keeper.is_lost)
        piece = Piece(taken.place, names_of(kind, taken.ids), taken.token, taken.left_by)
        try:
            with self._keeper.holding(taken):
                done = chore.do(ctx, piece, self._tell)
        except LeaseLost:
            counted["lost"] += len(taken.ids)
            return False
        finally:
            self._give_back(taken)
        self._rests[kind].work()
        counted[kind] += done
        self._broken.difference_update((taken.place, id_) for id_ in taken.ids)
        if not done:  # it may have been empty, or another process has done it
            left, now = set(chore.waiting(self._ctx, taken.place)), time.monotonic()
            named = zip(piece.names, taken.ids, strict=True)
            self._fruitless |= {(taken.place, id_): now for name, id_ in named if name in left}
        return done > 0

    def _give_back(self, taken: Taken) -> None:
        """Give back a lease, also if the work was stopped, so that another process can take it."""
        try:
            with cancellable(None):
                self._ctx.engine.write(taken.place, partial(give_back, taken=taken))
        except MunimentError as error:  # the lease goes stale, and another process takes it
            _LOGGER.warning("a lease of upkeep could not be given back", extra={"said": error.to_dict()})
