"""How the interpreter of a server's process is set: for those who ask for little, beside those who ask for much.

Both are the process' own, so only a process that does nothing but serve is set so. What each is worth was measured
(docs/decisions/0023-fair-shares.md).
"""

from __future__ import annotations

import gc
import sys

__all__ = ["set_interpreter"]

_SWITCH_S = 0.0005
"""After which a thread that computes lets another one have the interpreter: a request asks for it again after every
row it reads, and would wait ten times as long each time."""
_COLLECT = (5_000, 20, 25)
"""Objects after which the youngest are looked through for rings of garbage, and how often the older ones: a look at all
of them stops every thread for a tenth of a second."""


def set_interpreter() -> None:
    """Let threads change often, and what was loaded so far never be looked through for garbage."""
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT)
