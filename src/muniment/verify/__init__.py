"""Verification: constraints, facts against evidence, execution in a sandbox, and regression tests; also evals of a
memory.

No layer needs a model, and none trusts the output under test: anything it could have forged is UNKNOWN. Nothing runs
outside a sandbox.

Read `verify` (one output from start to end), `results` (combining layers into one result), `constraints`,
`facts.check`, `sandbox.harness`, `regression`; then `evals.run`. `taxonomy` defines the registered keys and codes of a
verifier.
"""
