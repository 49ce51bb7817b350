"""What can be said of an output: static checks, facts against evidence, execution in a sandbox, regression tests; and
of a memory: questions whose answers are known.

No layer needs a model, and none believes the output under test: what could be forged by it is UNKNOWN. It never runs
anything outside a sandbox.

Read `verifying` (one output from start to end), `composition` and `verdicts` (how layers become one result), `static`
(the constraint language), `facts.checking` (sentence by sentence), `sandbox.session`, `regression`; then
`eval_running` and `evals`. `taxonomy` holds the registered words of a verifier.
"""
