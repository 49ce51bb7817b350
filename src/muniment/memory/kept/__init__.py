"""Named storage for frameworks: the values of their stores, and the checkpoints of their threads.

Everything put here is an entry of the ledger. Rows record the current place of each name (`names`, `fold`, `rows`).
Values are searchable by words or by meaning (`values`, `features`, `search`); thread states are kept as deltas
(`deltas`, `states`, `threads`). This package knows nothing of any framework.
"""
