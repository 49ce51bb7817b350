"""Running code behind walls (RC-25), and letting a run decide (RC-17, layer 3).

`port` is what a sandbox is, `traces` what it records, `harness` how a run decides. `bubblewrap` is ours, found by its
entry point like a third party's; the private modules are its parts, and `inside` is what runs in it.
"""

from muniment.verify.sandbox.harness import Harness, HarnessResult, run_harness
from muniment.verify.sandbox.port import load_sandbox

__all__ = ["Harness", "HarnessResult", "load_sandbox", "run_harness"]
