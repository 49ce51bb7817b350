"""Learned memory: logs, folds, plans, hints and seeds that verified runs leave for later ones.

Every change is a plan, applied whole or not at all, recorded, and reversible. It never puts a rule in force: it only
makes drafts, and imports nothing from `rules`.

Read `folding` with `_distill` (a finished run compared with its peers), `plans` with `_operations` (the permitted
changes to a record), `recalling` with `_hints` (recall for a run), `banks` (storage), then `working_sets`, `tidying`
and `puct`.
"""
