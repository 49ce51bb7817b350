"""Long runs: steps, claims, compaction, snapshots, resume, drift."""
