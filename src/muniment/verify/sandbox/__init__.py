"""Running things walled off, on bubblewrap (RC-25), and letting a run decide (RC-17, layer 3).

arguments caps seccomp allowlist editing traces judging     pure: what is asked, what it meant
finding trees stage scratch cgroups watching running proxy  the outside, one thing each
session bubblewrap harness                                  what callers use
"""

from muniment.verify.sandbox.bubblewrap import BubblewrapSandbox, probe
from muniment.verify.sandbox.harness import Harness, HarnessResult, run_harness
from muniment.verify.sandbox.session import BubblewrapSession
from muniment.verify.sandbox.traces import sandbox_block

__all__ = [
    "BubblewrapSandbox",
    "BubblewrapSession",
    "Harness",
    "HarnessResult",
    "probe",
    "run_harness",
    "sandbox_block",
]
