"""What is kept under names for a framework: the values of its stores, and the checkpoints of its threads.

Everything put here is an entry of the ledger. Rows say where each stands (`names`, `fold`, `rows`); on them stand the
values, which are found again by words or by meaning (`values`, `features`, `search`), and the threads, whose states are
kept as what changed (`deltas`, `states`, `threads`). It knows nothing of any framework.
"""
