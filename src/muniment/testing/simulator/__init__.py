"""A simulator: a seed draws a story of calls, faults and races, and every promise is held against a plain model.

    python -m benchmarks.simulator --seeds 100

One story is told to several stores at once (memory, SQLite, PostgreSQL, or an engine of your own). After every step the
stores must have answered alike, and each must hold what it promised: nothing acknowledged is lost, nothing crosses a
scope, what was forgotten is gone, facts lead to evidence, builds replay to the byte, repeats write nothing, chains
hold, receipts are true. Read `simulating` first, then `act` and the modules of acts (what may happen: `saying`,
`knowing`, `asking`, `upkeep`, `damage`, `races`, `loading`), `promises` (what must hold), `faults`,
`specimens` (what goes wrong, and where). A failing seed prints the command that repeats it and the
shortest story that still fails. Never part of a running store.
"""
