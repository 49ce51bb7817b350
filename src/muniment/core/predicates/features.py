"""The features of a run that a predicate may speak of: the contract's own names (001: EventLog, keys, VerifierResult).

Whatever the contract leaves to the user stands below `x_features`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import get_args

from muniment.core.predicates.schema import Feature, Schema, Type
from muniment.core.vocabulary import Level, Network, Outcome, Verdict

__all__ = ["RUN_FEATURES"]

_MODES = ("main", "sot", "matts", "kroll", "synth", "tree")


def _all(type: Type, prefix: str, names: str) -> dict[str, Feature]:
    return {prefix + name: Feature(type) for name in names.split()}


RUN_FEATURES = Schema(
    MappingProxyType(
        {
            # what the run is about: the intent and its bucket
            "impact_level": Feature("string", get_args(Level)),
            "user_clarity": Feature("string", get_args(Level)),
            **_all("string", "", "bucket_key intent_key state_key domain_tag task_family task_type"),
            **_all("string", "", "output_format constraint_profile"),
            **_all("list[string]", "", "required_tools tags flow_tags"),
            # the state it is in
            "run.mode": Feature("string", _MODES),
            **_all("string", "run.cfg.", "seed_prompt tool_order plan_style"),
            **_all("number", "run.cfg.", "temperature self_refine_steps"),
            **_all("string", "", "budget_tier policy_profile verifier_profile sot_profile"),
            **_all("list[string]", "", "tool_availability sandbox_flags"),
            **_all("number", "", "sot_max_turns"),
            **_all("number", "policy_signals.", "risk_score opp_score efficiency"),
            # what it did
            **_all("list[string]", "", "tools selected_rule_ids"),
            **_all("number", "cost.", "latency_ms tokens_in tokens_out tool_calls"),
            "sandbox.network": Feature("string", get_args(Network)),
            **_all("bool", "sandbox.", "enabled"),
            **_all("string", "sandbox.", "image_id"),
            **_all("list[string]", "sandbox.", "allowlist"),
            **_all("number", "sandbox.", "turns actions_n files_read_n files_written_n external_fetch_n exec_fail_n"),
            **_all("bool", "experiment.", "exec_ok"),
            **_all("string", "experiment.", "kind harness_id idea_id population_id exec_failure_class"),
            **_all("number", "experiment.", "search_epoch"),
            **_all("number", "experiment.reward.", "total pass cost diversity consistency"),
            **_all("bool", "", "reuse_select.enabled tree_search.enabled praxis.enabled memory_recall.enabled"),
            **_all("string", "", "reuse_select.selected_state_id tree_search.algo memory_fold.trigger_kind"),
            **_all("number", "tree_search.", "node_expanded depth_max frontier_max"),
            **_all("list[string]", "", "praxis.retrieved_tactic_ids praxis.used_tactic_ids"),
            **_all("list[string]", "", "memory_recall.sources memory_recall.retrieved_ids memory_recall.used_ids"),
            **_all("number", "rollout_select.", "rollouts_n top_m diversity_score"),
            # how it was judged
            "verifier.verdict": Feature("string", get_args(Verdict)),
            "verifier.outcome": Feature("string", get_args(Outcome)),
            **_all("string", "", "verifier.verifier_id failure_cluster_id"),
            **_all("number", "verifier.", "score"),
            **_all("list[string]", "", "reason_codes violated_constraints"),
        }
    ),
    open=frozenset({"x_features"}),
)
