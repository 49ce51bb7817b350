"""The handles that callers hold: `Memory`, `Run`, and the handles reached from them. Other rooms do the work.

A method checks what only the handle knows, then calls one use case. It decides nothing. Whatever a process does not
need to open a store and to search is imported inside the method that needs it.

Read `memory` (opening a store, and `Memory`) and `run` (`Run`). `run_log`, `run_memory`, `run_learning` and
`run_ledger` are `run.log` and so on; the `memory_…` modules are the same for `mem`. `bank`, `rulebook`, `study` and
`runner` are separate handles. `derived` combines what all rooms derive from the ledger.
"""
