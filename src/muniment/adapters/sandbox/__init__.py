"""Running things walled off, on bubblewrap (RC-25), and letting a run decide (RC-17, layer 3).

arguments caps seccomp allowlist editing traces judging     pure: what is asked, what it meant
finding trees stage scratch cgroups watching running proxy  the outside, one thing each
session bubblewrap harness                                  what callers use
"""

from muniment.adapters.sandbox.bubblewrap import BubblewrapSandbox, probe
from muniment.adapters.sandbox.harness import Harness, HarnessResult, run_harness
from muniment.adapters.sandbox.session import BubblewrapSession
from muniment.adapters.sandbox.traces import sandbox_block

__all__ = [
    "BubblewrapSandbox",
    "BubblewrapSession",
    "Harness",
    "HarnessResult",
    "probe",
    "run_harness",
    "sandbox_block",
]
