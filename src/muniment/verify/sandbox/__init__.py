"""Run code in isolation, and let a run decide (layer 3).

`port` defines the sandbox interface, `traces` its records, `harness` the decision. `bubblewrap` is ours, found by its
entry point like a third party's; the private modules are its parts, and `inside` holds the scripts that run in it.
"""

from muniment.verify.sandbox.harness import Harness, HarnessResult, run_harness
from muniment.verify.sandbox.port import load_sandbox

__all__ = ["Harness", "HarnessResult", "load_sandbox", "run_harness"]
