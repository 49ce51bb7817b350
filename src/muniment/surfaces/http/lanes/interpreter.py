"""Interpreter settings of a server process, so that small requests stay fast next to large ones.

Both settings affect the whole process, so only a dedicated server process uses them. Their effect was measured
(docs/decisions/0023-fair-shares.md).
"""

from __future__ import annotations

import gc
import sys

__all__ = ["set_interpreter"]

_SWITCH_S = 0.0005
"""Seconds until a computing thread yields the interpreter: a request needs it again after every row it reads, and would
wait ten times as long each time.
"""
_COLLECT = (5_000, 20, 25)
"""Thresholds of the garbage collector: a full collection stops every thread for a tenth of a second."""


def set_interpreter() -> None:
    """Make threads switch often, and exempt everything loaded so far from garbage collection."""
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT)
