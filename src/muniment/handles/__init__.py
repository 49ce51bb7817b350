"""What a caller holds: a `Memory`, a `Run`, and the handles that stand on them. The rooms behind them do the work.

A method checks what only the handle can know, and calls one use case; what a process does not need to open a store and
to search is imported by the method that does. It never decides anything.

Read `memory` (where a store is opened, and `Memory`) and `run` (`Run`); `run_log`, `run_memory`, `run_learning` and
`run_ledger` are `run.log` and so on, `memory_…` the same for `mem`; `bank`, `rulebook`, `study` and `runner` are
handles of their own. `derived` puts together what all rooms derive from the ledger.
"""
