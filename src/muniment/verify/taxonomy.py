"""The registered words of a verifier (RC-02): constraint keys `PREFIX:SUB[:DETAIL]` and reason codes.

A registry is a value. The default one holds the contract's words; `with_key` and `with_reason` give a larger one. Open
to registration, closed to typing errors: a key or code that is not registered is refused, with the nearest one that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

from muniment.core.canonical import digest
from muniment.errors import InvalidInput

__all__ = ["DEFAULT_REGISTRY", "FAILURE_KINDS", "Detail", "KeyEntry", "Registry", "detail_of"]

Detail = Literal["none", "optional", "required"]

_KEY = re.compile(r"([A-Z][A-Z0-9_]*):([A-Za-z][A-Za-z0-9_]*)(?::([A-Za-z0-9][A-Za-z0-9_.\-/]{0,127}))?")
_REASON = re.compile(r"[a-z][a-z0-9_]{1,63}")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-/]+")

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
"""What a rule may be predicted to fail by."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A registered `PREFIX:SUB`: what it says, and whether a detail follows."""

    says: str
    detail: Detail = "none"


@dataclass(frozen=True, slots=True)
class Registry:
    """What may stand in `violated_constraints` and `reason_codes`."""

    keys: Mapping[str, KeyEntry]
    reasons: Mapping[str, str]

    @property
    def prefixes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key.partition(":")[0] for key in self.keys))

    def with_key(self, key: str, says: str, detail: Detail = "none") -> Registry:
        """This registry and one key `PREFIX:SUB` more; its prefix may be a new one."""
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
        """The key itself, if it is registered and its detail is as registered."""
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
    """A name as the DETAIL of a key. One that no key may hold is cleaned, and told apart by its digest."""
    plain = _UNSAFE.sub("_", name).lstrip("_.-/")[:96]
    if plain and plain == name:
        return name
    return f"{plain or 'x'}-{digest(name.encode('utf-8', 'surrogatepass')).hex()[:8]}"


def _nearest(word: str, known: Iterable[str], register: str) -> str:
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"register it first: Registry.{register}(…)"


# -- the default --------------------------------------------------------------------------------------

_KEYS = {
    "SCHEMA:JSON": KeyEntry("the JSON fits the given JSON Schema", "optional"),
    "FORMAT:JSON_ONLY": KeyEntry("one JSON document and nothing else"),
    "FORMAT:NOT_EMPTY": KeyEntry("there is an answer"),
    "FORMAT:LENGTH": KeyEntry("characters, bytes or tokens"),
    "FORMAT:LINES": KeyEntry("number of lines"),
    "FORMAT:WORDS": KeyEntry("number of words"),
    "FORMAT:SENTENCES": KeyEntry("number of sentences"),
    "FORMAT:PARAGRAPHS": KeyEntry("number of paragraphs"),
    "FORMAT:PARAGRAPH_START": KeyEntry("the word that a paragraph starts with"),
    "FORMAT:SECTIONS": KeyEntry("number of marked sections"),
    "FORMAT:HEADINGS": KeyEntry("number, level or names of headings"),
    "FORMAT:BULLETS": KeyEntry("number of bullet points"),
    "FORMAT:HIGHLIGHTS": KeyEntry("number of highlighted parts"),
    "FORMAT:PLACEHOLDERS": KeyEntry("number of placeholders in brackets"),
    "FORMAT:TITLE": KeyEntry("a title in double angle brackets"),
    "FORMAT:POSTSCRIPT": KeyEntry("a postscript"),
    "FORMAT:CASE": KeyEntry("upper or lower case throughout"),
    "FORMAT:CAPITAL_WORDS": KeyEntry("number of words in capitals"),
    "FORMAT:PUNCTUATION": KeyEntry("punctuation that must not or must stand"),
    "FORMAT:STARTS_WITH": KeyEntry("the first words"),
    "FORMAT:ENDS_WITH": KeyEntry("the last words"),
    "FORMAT:QUOTED": KeyEntry("wrapped in quotation marks"),
    "FORMAT:ALTERNATIVES": KeyEntry("several different answers, separated"),
    "FORMAT:ONE_OF": KeyEntry("one of the given answers"),
    "FORMAT:EXACT_MATCH": KeyEntry("exactly the given answer"),
    "FORMAT:REGEX_PRESENT": KeyEntry("a pattern that must be found"),
    "FORMAT:REGEX_ABSENT": KeyEntry("a pattern that must not be found"),
    "FORMAT:ANY_OF": KeyEntry("at least one of several constraints"),
    "FORMAT:NONE_OF": KeyEntry("none of several constraints"),
    "CONTENT:CONTAINS": KeyEntry("text that must stand in it"),
    "CONTENT:NOT_CONTAINS": KeyEntry("text that must not stand in it"),
    "CONTENT:KEYWORDS": KeyEntry("keywords that must stand in it"),
    "CONTENT:FORBIDDEN_WORDS": KeyEntry("words that must not stand in it"),
    "CONTENT:KEYWORD_COUNT": KeyEntry("how often a keyword stands in it"),
    "CONTENT:LETTER_COUNT": KeyEntry("how often a letter stands in it"),
    "CONTENT:LANGUAGE": KeyEntry("the language it is written in"),
    "CONTENT:REPEAT_PROMPT": KeyEntry("the request is repeated first"),
    "CONTENT:CLAIMS_CITED": KeyEntry("every claim names its evidence"),
    "CONTENT:MARKS_RESOLVE": KeyEntry("every citation mark names evidence that exists"),
    "CONTENT:CITATIONS": KeyEntry("number of distinct sources cited"),
    "CONTENT:SIMILAR": KeyEntry("near to the given text, word by word"),
    "CONTENT:RUBRIC": KeyEntry("what a grader was asked to look for"),
    "POLICY:PERSONAL_DATA": KeyEntry("no personal data"),
    "TOOL:CALL_REQUIRED": KeyEntry("a tool that must be called", "required"),
    "TOOL:CALL_FORBIDDEN": KeyEntry("a tool that must not be called", "required"),
    "TOOL:ORDER": KeyEntry("the order of tool calls"),
    "TOOL:ARGUMENTS": KeyEntry("the arguments of a tool call", "required"),
    "TOOL:RESULT_OK": KeyEntry("tool calls that must not fail", "optional"),
    "TOOL:ALLOWED": KeyEntry("only the listed tools are called"),
    "TOOL:BUDGET": KeyEntry("number of tool calls", "optional"),
    "POLICY:BUDGET": KeyEntry("tokens, time, turns, attempts or cost", "required"),
    "POLICY:NO_NETWORK": KeyEntry("no network"),
    "POLICY:NETWORK_ALLOWLIST": KeyEntry("only the listed hosts"),
    "POLICY:FILES_READ": KeyEntry("only files under the listed paths are read"),
    "POLICY:FILES_WRITTEN": KeyEntry("only files under the listed paths are written"),
    "POLICY:EVENTS": KeyEntry("nothing that a policy denied was tried"),
    "MEMORY:HINT_LENGTH": KeyEntry("tokens of one hint"),
    "MEMORY:HINT_TOTAL": KeyEntry("tokens of all hints together"),
    "MEMORY:HINT_COUNT": KeyEntry("number of hints"),
}

_CONTRACTS = (
    "MemoryPacket RuleRecord CandidateSelectRequest CandidateSelectResponse VerifierResult FGFCReport EventLog "
    "TraceCapsule FoldResult MemoryActionPlan MemoryActionRecord DistillDraft PatterningPlan RegressionTestSpec "
    "RolloutSummary FlowMapSnapshot ReuseStateRecord ConditionalTacticRecord ReuseBuffer ReuseSelectMeta "
    "WorkingSetRecord WorkingSet ReasoningMemoryRecord ReasoningBank MemoryRecallRequest MemoryHint "
    "MemoryRecallResponse SandboxPolicy SandboxActionTrace CompactionSnapshot EvidencePointer Perspectives SummaryPack"
)

_REASONS = {
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

DEFAULT_REGISTRY = Registry(
    keys=MappingProxyType(
        {**_KEYS, **{f"SCHEMA:{name}": KeyEntry(f"fits the contract {name}") for name in _CONTRACTS.split()}}
    ),
    reasons=MappingProxyType(_REASONS),
)
