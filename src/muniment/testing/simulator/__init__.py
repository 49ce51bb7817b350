"""A simulator: a seed draws a story of calls, faults and races, and every promise is checked against a plain model.

    python -m benchmarks.simulator --seeds 100

One story runs on several stores at once (memory, SQLite, PostgreSQL, or an engine of your own). After every step the
stores must have answered alike, and each must keep its promises: nothing acknowledged is lost, nothing crosses a scope,
forgotten content is gone, facts lead to evidence, builds replay to the byte, repeats write nothing, chains hold,
receipts are true. Read `simulating` first, then `act` and the modules of acts (possible steps: `saying`, `knowing`,
`asking`, `upkeep`, `damage`, `races`, `loading`), `promises` (invariants), `faults`, `specimens` (injected failures,
and their targets). A failing seed prints the command that repeats it and the shortest story that still fails. Never
part of a running store.
"""
