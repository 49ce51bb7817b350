"""The ledger, the items derived from it, and what is done with whole stores: forget, export, import, verify, rebuild.

Entries are only ever added, in one place (`writing`); every later record is an item with its lineage. It never decides
what a fact or a rule means: how entries become items, and what is left of one, is handed to it (`derivation`).

Read `ledger.records` and `ledger.chain` (what an entry is, how it is sealed), `writing`, `items`, `derivation`, then
`context`, which every use case is handed; then `forget`, `transfer` with `dumps`, and `verify`
with `replay`. `engines` holds the three engines; `ledger` is pure.
"""
