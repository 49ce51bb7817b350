"""Learned memory: what verified runs leave for the next, as logs, folds, plans, hints and seeds.

Every change is a plan that is applied whole or not at all, recorded, and can be undone. It never puts a rule in force:
drafts are all it makes, and it imports nothing of `rules`.

Read `folding` with `fold.planning` and `fold.distill` (a finished run compared with its peers), `plans` with
`fold.operations` (what may be done to a record), `recalling` with `hints` (what comes back for a run), `banks` (where
it is kept), then `working_sets`, `tidying` and `reuse`.
"""
