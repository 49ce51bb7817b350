"""The ledger, the items derived from it, and operations on whole stores: forget, export, import, verify, rebuild.

Entries are append-only and made in one place (`append`); every later record is an item with its lineage. The store does
not know what a fact or a rule means: derivations (`derivation`) turn entries into items and decide what remains after a
forget.

Read `ledger` and `chain` (what an entry is and how it is sealed), `append`, `items`, `derivation`, then `context`,
which every use case receives; then `forget`, `transfer` with `dumps`, and `verify` with `replay`. `engines` holds the
three engines; `ledger` is pure.
"""
