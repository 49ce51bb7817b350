"""Long runs: steps, claims backed by evidence, validated snapshots, resuming, drift, the run's board.

A run is its entries; its log, its snapshots and its board are folds over them. Nothing here is invented: a claim is
verified only on evidence that was checked against the stored bytes, and an invalid snapshot stops the run.

Read `steps` and `claims` (writing), `fold` (entries into items and a log), `snapshots` (kept, read back, resumed from),
`compaction` with `_validation` (the gate), then `board`. `drift` measures; `narrative` is a page for people.
"""
