"""Rules with a life: drafted, tested, tried, promoted by a signature and taken back; and what spends runs: rollouts,
routing, flow map, patterning, tree search.

`promotion.activation` is the only place that makes a rule active. Nothing is promoted unproven, and figures of few runs
say that they are few.

Read `rule_promoting` with `promotion.gate`, `promotion.trials` and `promotion.activation`; `rule_drafting`;
`rule_selecting` with `rulebook.selection` (the rules a run gets, and why not the others); `rollout_running` with
`rollouts`; `router_asking` with `routing.router`; then `flowmap`, `patterning` and `tree_search`, each by itself.
"""
