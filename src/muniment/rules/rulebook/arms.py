"""Which runs take part in a trial: by hash, so that nobody can choose, and each trial draws its own (RC-16)."""

from __future__ import annotations

from muniment.core.canonical import digest
from muniment.errors import InvalidInput

__all__ = ["in_arm"]


def in_arm(canary_id: str, run_id: str, share: float) -> bool:
    """Is this run among the `share` of runs that the trial draws? The same answer for ever, and no other trial's."""
    if not 0 <= share <= 1:
        raise InvalidInput(f"a share of {share!r}", hint="from 0 to 1")
    drawn = digest(f"{canary_id}\n{run_id}".encode("utf-8", "surrogatepass"))
    return int.from_bytes(drawn[:8], "big") < share * 2**64
