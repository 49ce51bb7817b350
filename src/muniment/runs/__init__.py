"""Long runs: steps, claims with a duty of evidence, snapshots that are validated, resuming, drift, the run's board.

A run is its entries; its log, its snapshots and its board are folds over them. Nothing here invents: a claim is
verified only on evidence that was checked against the stored bytes, and a snapshot that does not hold stops the run.

Read `steps` and `claims` (writing), `fold` (entries into items and a log), `snapshots` (kept, read back, resumed from),
`compaction` with `_validation` (the gate), then `board`. `drift` measures; `narrative` is a page for people.
"""
