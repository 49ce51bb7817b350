"""Registered vocabulary of verifiers: constraint keys `PREFIX:SUB[:DETAIL]` and reason codes.

A registry is a value. `constraints.DEFAULT_REGISTRY` covers every kind of constraint; `with_key` and `with_reason`
return a larger one. Unregistered keys and codes are refused, with the nearest registered one as a hint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

from muniment.core.canonical import digest
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput

Detail = Literal["none", "optional", "required"]

_KEY = lazy_pattern(r"([A-Z][A-Z0-9_]*):([A-Za-z][A-Za-z0-9_]*)(?::([A-Za-z0-9][A-Za-z0-9_.\-/]{0,127}))?")
_REASON = lazy_pattern(r"[a-z][a-z0-9_]{1,63}")
_UNSAFE = lazy_pattern(r"[^A-Za-z0-9_.\-/]+")

FAILURE_KINDS = (
    "context_dilution",
    "instruction_conflict",
    "format_leak",
    "tool_misroute",
    "overconstraint",
    "underconstraint",
    "distribution_shift",
    "adversarial_prompting",
)
"""Failures that a rule may predict."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A registered `PREFIX:SUB`: its description, and whether a detail follows."""

    says: str
    detail: Detail = "none"


@dataclass(frozen=True, slots=True)
class Registry:
    """Allowed values of `violated_constraints` and `reason_codes`."""

    keys: Mapping[str, KeyEntry]
    reasons: Mapping[str, str]

    @property
    def prefixes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key.partition(":")[0] for key in self.keys))

    def with_key(self, key: str, says: str, detail: Detail = "none") -> Registry:
        """Return a registry with one more key `PREFIX:SUB`; its prefix may be new."""
        found = _KEY.fullmatch(key)
        if found is None or found[3] is not None:
            raise InvalidInput(f"{key!r} cannot be registered", hint="PREFIX:SUB, such as STYLE:PASSIVE_VOICE")
        if self.keys.get(key, KeyEntry(says, detail)) != KeyEntry(says, detail):
            raise InvalidInput(f"the key {key!r} is registered already", hint="it means what it means; take another")
        return replace(self, keys=MappingProxyType({**self.keys, key: KeyEntry(says, detail)}))

    def with_reason(self, code: str, says: str) -> Registry:
        if _REASON.fullmatch(code) is None:
            raise InvalidInput(f"{code!r} cannot be registered", hint="lower case, such as style_drift")
        return replace(self, reasons=MappingProxyType({**self.reasons, code: says}))

    def check_key(self, key: str, path: str | None = None) -> str:
        """Return the key if it is registered and its detail is valid."""
        found = _KEY.fullmatch(key)
        base = f"{found[1]}:{found[2]}" if found else key
        entry = self.keys.get(base)
        if found is None or entry is None:
            raise InvalidInput(f"unknown constraint key {key!r}", path=path, hint=_nearest(base, self.keys, "with_key"))
        if entry.detail == "required" and found[3] is None:
            raise InvalidInput(f"the key {key!r} wants a detail", path=path, hint=f"{base}:DETAIL")
        if entry.detail == "none" and found[3] is not None:
            raise InvalidInput(f"the key {base!r} has no detail", path=path, hint=f"leave out {found[3]!r}")
        return key

    def check_reason(self, code: str, path: str | None = None) -> str:
        if code not in self.reasons:
            hint = _nearest(code, self.reasons, "with_reason")
            raise InvalidInput(f"unknown reason code {code!r}", path=path, hint=hint)
        return code


def detail_of(name: str) -> str:
    """Format a name as the DETAIL of a key; invalid names are cleaned and made unique by a digest."""
    plain = _UNSAFE.sub("_", name).lstrip("_.-/")[:96]
    if plain and plain == name:
        return name
    return f"{plain or 'x'}-{digest(name.encode('utf-8', 'surrogatepass')).hex()[:8]}"


def _nearest(word: str, known: Iterable[str], register: str) -> str:
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"register it first: Registry.{register}(…)"


REASONS: Mapping[str, str] = MappingProxyType(
    {
        "format_leak": "something stands outside the wanted format",
        "constraint_violation": "a constraint of the task does not hold",
        "insufficient_evidence": "what is said is not shown",
        "instruction_conflict": "instructions contradict each other",
        "partial_success": "part of it holds",
        "truncation_or_cutoff": "the output ends too early",
        "numeric_error": "a number is wrong",
        "self_inconsistency": "it contradicts itself",
        "env_nondeterminism": "the same run gave different results",
        "retry_recovered": "it failed first and held when tried again",
        "test_fail": "a test failed",
        "tool_misroute": "the wrong tool, or none",
        "tool_failure": "a tool failed",
        "tool_timeout": "a tool took too long",
        "tool_output_invalid": "a tool's output is not what was agreed",
        "tool_output_inconsistent": "a tool's outputs contradict each other",
        "search_budget_exhausted": "a budget was used up",
        "prover_incomplete": "the prover cannot tell",
        "proof_not_found": "no proof was found",
        "fact_predicate_mismatch": "PredE",
        "fact_entity_mismatch": "EntE",
        "fact_circumstance_mismatch": "CircE",
        "fact_coreference_mismatch": "CorefE",
        "fact_discourse_link_mismatch": "LinkE",
        "fact_extrinsic_claim": "OutE",
        "memory_recall_miss": "what was needed was not recalled",
        "memory_overinject": "more was injected than the budget allows",
        "memory_conflict": "memories contradict each other",
        "memory_stale": "a memory is out of date",
        "memory_poison_risk": "a memory may have been planted",
        "praxis_tactic_mismatch": "a tactic did not fit the case",
        "praxis_tactic_overinject": "tactics over their budget",
        "praxis_tactic_conflict": "tactics contradict each other",
        "sandbox_timeout": "the sandbox ran out of time",
        "sandbox_denied": "the sandbox refused",
        "exec_unavailable": "nothing could be executed",
    }
)
"""The reason codes of the contract."""
