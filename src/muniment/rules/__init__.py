"""Rules: drafting, testing, trials and promotion; and the features that spend runs (rollouts, routing, flow map,
patterning, tree search).

`activation` is the only module that makes a rule active. Read `promotion` with `_gate` and `activation`; `rulebook` for
drafts, revisions and lint; `selection` with `_select` for the rules that a run gets; `testing` and `advance` for the
way from a draft to a trial. `rollouts`, `routing`, `flow_map`, `patterning` and `tree_search` are independent.
"""
