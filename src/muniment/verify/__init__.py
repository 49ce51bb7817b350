"""Verification: constraints, facts against evidence, execution in a sandbox, regression tests; and evals of a memory.

No layer needs a model, and none believes the output under test: what could be forged by it is UNKNOWN. It never runs
anything outside a sandbox.

Read `verify` (one output from start to end), `results` (how layers become one result), `constraints`, `facts.check`,
`sandbox.harness`, `regression`; then `evals.run`. `taxonomy` is the form of the registered words of a verifier.
"""
