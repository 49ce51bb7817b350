"""Rate limits of keys: buckets that refill over a minute, of one process or of several over one store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from muniment.core.ports.engine import Delete, Engine, Lock, Transaction
from muniment.core.ports.rows import get, put
from muniment.core.ports.schema import RATES, SERVER, RateRow
from muniment.errors import RateLimited

__all__ = ["RateLimits", "SharedRates", "block_of"]

_HELD_MAX = 10_000


class RateLimits:
    """Buckets that refill over a minute, one for each name; the longest unused are dropped."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str, per_minute: int) -> float:
        """Take one of `per_minute`, and return the rest; raises if there is none."""
        now = self._clock_s()
        left, at = self._buckets.pop(name, (float(per_minute), now))
        left = min(float(per_minute), left + (now - at) * per_minute / 60)
        self._buckets[name] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > _HELD_MAX:
            self._buckets.popitem(last=False)
        if left < 1:
            raise _rate_limited(per_minute, (1 - left) * 60 / per_minute if per_minute else 60.0)
        return left - 1


def _rate_limited(per_minute: int, wait_s: float) -> RateLimited:
    words = f"more than {per_minute} requests in a minute"
    return RateLimited(words, details={"retry_after_s": max(1, round(wait_s))})


_BLOCK_S = 10.0
_UNUSED_MS = 3_600_000
_CLEANED_AFTER = 1000
_AHEAD_MS = 60_000
"""A row further ahead of our clock than this is wrong: a bucket is full after a minute in any case."""


def block_of(per_minute: int) -> int:
    """The number of requests a process takes at a time."""
    return max(1, per_minute // 60)


@dataclass(slots=True)
class _Block:
    """A process's share of a key's requests."""

    left: int
    until_s: float
    wait_until_s: float = 0.0
    """The store had none left: it is not asked again before this time."""
    beyond: float = 0.0
    """The number left in the store when the block was taken."""
    fetched_s: float = 0.0


class SharedRates:
    """The rates of all keys, as counted by one process of several: each takes requests from the store in blocks.

    `take` returns False if the store has to be asked first. A block is a key's allowance for a second, so a busy key
    costs each process one write a second. In any minute the processes together admit no more than one bucket would,
    plus the block that each holds: a sixtieth of the limit. A block not used up in ten seconds is dropped.

    The wall clocks of processes can differ and be changed, so a process that asked before refills a bucket by no more
    than the time on its own steady clock since. A row written more than a minute ahead of us came from a wrong clock,
    and is ignored.
    """

    def __init__(self, engine: Engine, clock_s: Callable[[], float], wall_ms: Callable[[], int]) -> None:
        self._engine, self._clock_s, self._wall_ms = engine, clock_s, wall_ms
        self._blocks: OrderedDict[str, _Block] = OrderedDict()
        self._asked = 0

    def take(self, name: str, per_minute: int) -> bool:
        """Take one from this process's block; False if it has none and should `fetch` one. Raises if the key has none
        left.
        """
        now = self._clock_s()
        block = self._blocks.get(name)
        if block is None:
            return False
        if now < block.wait_until_s:
            raise _rate_limited(per_minute, block.wait_until_s - now)
        if block.left < 1 or now >= block.until_s:
            return False
        block.left -= 1
        return True

    def left(self, name: str) -> float:
        """The least number a key has left: here, and in the store when it was last asked."""
        block = self._blocks.get(name)
        return 0.0 if block is None else block.left + block.beyond

    def fetch(self, name: str, per_minute: int) -> None:
        """Take a block from the store. Blocks on the store: not for the event loop."""
        block, wall_ms = block_of(per_minute), self._wall_ms()
        self._asked += 1
        cleans = self._asked % _CLEANED_AFTER == 0
        before, asked_s = self._blocks.get(name), self._clock_s()
        elapsed_ms = None if before is None else round((asked_s - before.fetched_s) * 1000)

        def work(tx: Transaction) -> tuple[int, int]:
            if cleans:
                tx.do(Delete("rates", (("at_ms", "<", wall_ms - _UNUSED_MS),)))
            return _take(tx, name, per_minute, block, wall_ms, elapsed_ms)

        taken, left_milli = self._engine.write(SERVER, work)
        now = self._clock_s()
        wait_s = 0.0 if taken else (1000 - left_milli) * 60 / (1000 * per_minute)
        held = self._blocks.pop(name, None)
        rest = held.left if held is not None and now < held.until_s else 0
        self._blocks[name] = _Block(rest + taken, now + _BLOCK_S, now + wait_s, left_milli / 1000, asked_s)
        if len(self._blocks) > _HELD_MAX:
            self._blocks.popitem(last=False)


def _take(
    tx: Transaction, name: str, per_minute: int, block: int, wall_ms: int, elapsed_ms: int | None
) -> tuple[int, int]:
    """Take as much of a block as there is; returns that, and the rest, in thousandths.

    `elapsed_ms` is the time since this process last asked, by its steady clock; None the first time.
    """
    tx.do(Lock(("rates", name)))
    full = per_minute * 1000
    row = get(tx, RATES, (name,)) or RateRow(name, full, wall_ms)
    at_ms, passed_ms = row.at_ms, max(0, wall_ms - row.at_ms)  # the clock of another machine may be slightly ahead
    if row.at_ms > wall_ms + _AHEAD_MS:
        passed_ms = _AHEAD_MS if elapsed_ms is None else elapsed_ms
        at_ms = wall_ms - passed_ms
    elif elapsed_ms is not None:
        passed_ms = min(passed_ms, elapsed_ms)
    filled = passed_ms * per_minute // 60
    left, at_ms = row.left_milli + filled, at_ms - (-filled * 60 // per_minute)  # rounded up: never twice
    if left >= full:
        left, at_ms = full, max(at_ms, wall_ms)
    taken = min(block, left // 1000)
    put(tx, RATES, [RateRow(name, left - taken * 1000, at_ms)])
    return taken, left - taken * 1000
