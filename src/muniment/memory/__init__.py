"""User memory: facts, procedures, insights, working state, episodes and documents, and how they are searched.

Every change is a `state_patch` entry, decided and written in one transaction (`patches`). This package never calls a
model on its own, never drops an older value, and never returns another user's turns.

Read `patches`, `fact_writing` with `facts.rules` (how a new assertion affects existing facts), `searching` with
`recall.rank` and `recall.score` (how turns are found), `indexing` and `vectoring` (the data written for search), then
`extracting` (the closed list of rules), `extraction` with `_extract_model` and `_extract_checks` (facts that a model
proposes), `corpus` with `documents`, and `turn_reading` with `episodes`.
"""
