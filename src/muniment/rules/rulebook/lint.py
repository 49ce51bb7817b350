"""Lint (RC-18): what is wrong with a rule before anybody tries it. An error keeps it from the gate, a warning does not.

It reads words and shape alone. That a rule is clean says nothing of whether it helps: its tests and its trial do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from muniment.contracts.rules import RuleRecord
from muniment.core.canonical import child_path
from muniment.core.policy import LintPolicy
from muniment.rules.promotion.records import LintFinding
from muniment.rules.rulebook.candidates import PREDICATES, CountTokens
from muniment.rules.rulebook.conditions import condition_findings
from muniment.rules.rulebook.findings import FINDINGS, finding
from muniment.rules.rulebook.wording import Checks, word_findings

__all__ = ["FINDINGS", "is_clean", "lint_rule"]

_CHARS_MAX = 20_000
"""Of a text that is looked at further: a longer one is refused for its length."""


def lint_rule(
    record: RuleRecord,
    policy: LintPolicy,
    count_tokens: CountTokens,
    reads_like_instructions: Callable[[str], bool],
    find_secret: Callable[[str], str | None],
) -> tuple[LintFinding, ...]:
    """Everything that is wrong with a rule, in a fixed order; empty where nothing is. `FINDINGS` names the codes."""
    checks = Checks(reads_like_instructions, find_secret, policy.forbidden)
    return (
        *_sizes(record, policy, count_tokens),
        *_words(record, checks),
        *condition_findings(record.applicability, policy.predicates_max),
        *_shape(record),
    )


def is_clean(findings: tuple[LintFinding, ...]) -> bool:
    """No errors; warnings may be."""
    return all(one.severity != "error" for one in findings)


def _sizes(record: RuleRecord, policy: LintPolicy, count_tokens: CountTokens) -> Iterator[LintFinding]:
    body = record.body[:_CHARS_MAX]
    if not any(map(str.isalnum, body)):
        yield finding("body_empty", "$.body")
    tokens = count_tokens(body)
    if tokens > policy.body_tokens_max or len(record.body) > _CHARS_MAX:
        said = (
            f"{tokens} tokens{'' if len(record.body) <= _CHARS_MAX else ' and more'}, at most {policy.body_tokens_max}"
        )
        yield finding("body_too_long", "$.body", said)
    if record.title is not None and len(record.title) > policy.title_chars_max:
        yield finding("title_too_long", "$.title", f"{len(record.title)}, at most {policy.title_chars_max}")


def _words(record: RuleRecord, checks: Checks) -> Iterator[LintFinding]:
    where = record.applicability
    texts = [
        ("$.title", record.title),
        ("$.body", record.body),
        ("$.applicability.domain_tag", where.domain_tag),
        ("$.applicability.task_family", where.task_family),
        *((child_path(PREDICATES, place), text) for place, text in enumerate(where.predicates or ())),
    ]
    for path, text in texts:
        if text is not None:
            yield from word_findings(path, text[:_CHARS_MAX], checks)


def _shape(record: RuleRecord) -> Iterator[LintFinding]:
    if record.type == "GuardrailRule" and (record.priority is None or not record.priority.guardrail_first):
        yield finding("guardrail_not_first", "$.priority.guardrail_first")
    if not record.tests.regression_tests:
        yield finding("no_regression_test", "$.tests.regression_tests")
    if not record.tests.counterexample_tests:
        yield finding("no_counterexample_test", "$.tests.counterexample_tests")
