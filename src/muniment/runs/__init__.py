"""Long runs: steps, claims with a duty of evidence, snapshots that are validated, resuming, drift.

A run is its entries; its log and its snapshots are folds over them. Nothing here invents: a claim is verified only on
evidence that was checked against the stored bytes, and a snapshot that does not hold stops the run.

Read `steps` and `claims`, `compaction.folding` (entries into a log), `compacting` with `compaction.snapshots` and
`compaction.validation`, then `resuming`. `drifting` measures; `narrative` and `snapshot_diff` are pages for people.
"""
