"""What is remembered of a user: facts, procedures, insights, working state, episodes, documents; how it is found.

Every change is a `state_patch` entry, decided and written in one transaction (`patches`). It never calls a model by
itself, never drops an older value, and finds turns of one user alone.

Read `patches`, `fact_writing` with `facts.rules` (what a new saying does to those that stand), `searching` with
`recall.rank` and `recall.score` (how turns are found), `indexing` and `vectoring` (what is written for that), then
`extracting` (the closed list of rules), `extraction` with `_extract_model` and `_extract_checks` (facts that a model
proposes), `corpus` with `documents`, and `turn_reading` with `episodes`.
"""
