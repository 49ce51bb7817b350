"""Everything that lint can say of a rule: a code, how grave it is, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from muniment.rules.promotion.records import LintFinding

__all__ = ["FINDINGS", "Meaning", "finding"]


class Meaning(NamedTuple):
    """What a code stands for."""

    severity: Literal["error", "warning"]
    says: str


def _all(severity: Literal["error", "warning"], says: dict[str, str]) -> dict[str, Meaning]:
    return {code: Meaning(severity, words) for code, words in says.items()}


FINDINGS: Mapping[str, Meaning] = MappingProxyType(
    _all(
        "error",
        {
            # the words
            "body_empty": "a rule says something",
            "body_too_long": "the body has more tokens than a rule may take of a prompt",
            "title_too_long": "the title has more characters than a title may have",
            "control_character": "a control character stands in the text",
            "hidden_character": "a character that nobody sees, or that turns the text round, stands in it",
            "mixed_script": "a word is made of letters of two scripts that look alike",
            "injection": "the text gives orders to whoever reads it, beyond the task",
            "role_marker": "the text passes for another part of the conversation",
            "secret": "the text holds what looks like a credential",
            "mailbox": "a mailbox in a rule: what is learnt from runs names none",
            "takes_private_data": "the advice is to keep, show or send what is private",
            "link_out": "an address that can carry data away, or that runs something",
            "runs_remote_code": "a command that fetches and runs what it got",
            "games_the_verifier": "the advice is to pass the check rather than to do the task",
            "forbidden_pattern": "the policy forbids these words",
            "opaque_text": "a long run of signs that nobody can read",
            "internal_words": "words of the library's own book-keeping, which tell an agent nothing",
            # where it applies
            "predicate_invalid": "not a predicate",
            "too_many_predicates": "more predicates than a rule may have",
            "never_holds": "the predicate can never hold",
            "predicates_contradict": "the predicates can never hold together",
            "never_applies": "the predicate is false wherever the domain, family and buckets let the rule apply",
            "bucket_key_invalid": "not a bucket key",
        },
    )
    | _all(
        "warning",
        {
            "link": "an address in a rule: what stands there may change, and no policy signs for it alone",
            "host": "the name of a host in a rule: no policy signs for it alone",
            "always_holds": "the predicate holds wherever it can be asked, and keeps the rule from nothing",
            "unknown_before_run": "not known before a run acts, so the rule is hardly ever chosen",
            "bucket_never_applies": "the rule cannot apply in this bucket, so that naming it is no use",
            "applies_to_all": "the rule applies to every run: it names no domain, family, bucket or condition",
            "unknown_condition": "a key of the applicability that nobody reads: the rule applies without it",
            "guardrail_not_first": "a guardrail should say that it comes first",
            "no_regression_test": "without a regression test the gate keeps it temporary",
            "no_counterexample_test": "without a counterexample the gate keeps it temporary",
        },
    )
)


def finding(code: str, path: str, detail: str = "") -> LintFinding:
    """A finding in the words of its code, and what was found."""
    meaning = FINDINGS[code]
    message = f"{meaning.says}: {detail}" if detail else meaning.says
    return LintFinding(code=code, path=path, message=message, severity=meaning.severity)
