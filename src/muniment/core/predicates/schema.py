"""What features a predicate may speak of, and their types; the features of a run, by the contract's own names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal, get_args

from muniment.core.vocabulary import Level, Network, Outcome, Verdict
from muniment.errors import InvalidInput

__all__ = ["RUN_FEATURES", "Feature", "Schema", "Type", "nearest"]

_MODES = ("main", "sot", "matts", "kroll", "synth", "tree")


def _all(type: Type, prefix: str, names: str) -> dict[str, Feature]:
    return {prefix + name: Feature(type) for name in names.split()}


Type = Literal["string", "number", "bool", "null", "list[string]", "list[number]", "list[any]", "map", "any"]

_DECLARABLE = ("string", "number", "bool", "list[string]", "list[number]", "list[any]", "map", "any")


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature's type and, where the contract closes it, the words it can be."""

    type: Type
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Schema:
    """Dotted paths and their features; `open` names the paths below which anything may stand."""

    features: Mapping[str, Feature]
    open: frozenset[str] = frozenset()
    _inner: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for path, feature in self.features.items():
            if feature.type not in _DECLARABLE:
                raise InvalidInput(f"{path!r} is of no known type: {feature.type!r}", hint=", ".join(_DECLARABLE))
        inner = {".".join(path.split(".")[:end]) for path in self.features for end in range(1, path.count(".") + 1)}
        object.__setattr__(self, "_inner", frozenset(inner - self.features.keys()))

    def with_fields(self, features: Mapping[str, Feature | Type], open: Iterable[str] = ()) -> Schema:
        """This schema and some features more."""
        made = {path: found if isinstance(found, Feature) else Feature(found) for path, found in features.items()}
        return replace(self, features=MappingProxyType({**self.features, **made}), open=self.open | set(open))

    def find(self, path: tuple[str, ...]) -> Feature | None:
        """The feature at a path; None where there is none."""
        dotted = ".".join(path)
        if all("." not in part for part in path):
            if (found := self.features.get(dotted)) is not None:
                return found
            if dotted in self._inner or dotted in self.open:
                return _MAP
        return _ANY if any(".".join(path[:end]) in self.open for end in range(1, len(path))) else None

    def hint_for(self, path: tuple[str, ...]) -> str:
        """What to do about a path that is not there."""
        opened = f"; what has no name here goes below {', '.join(sorted(self.open))}" if self.open else ""
        close = nearest(".".join(path), self.features) or nearest(path[-1], self._by_last_part())
        if close:
            return f"did you mean {self._by_last_part().get(close, close)}?"
        return f"predicates.features names them all{opened}"

    def _by_last_part(self) -> dict[str, str]:
        return {path.rpartition(".")[2]: path for path in reversed(list(self.features))}


_MAP, _ANY = Feature("map"), Feature("any")


def nearest(word: str, known: Iterable[str]) -> str | None:
    close = get_close_matches(word[:64], list(known), n=1, cutoff=0.6)
    return close[0] if close else None


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
