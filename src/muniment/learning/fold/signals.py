"""What a log says of a run though nobody was asked: which failure it is, which bucket it belongs to (RC-02, RC-03).

A verifier that names its cluster, and a caller who names a bucket, are believed. Where they do not, both are read off
what is there: constraints and reason codes, the call that failed and the shape of what it answered, what the verifier
noted; the domain or family of the work, and how much of it was said beforehand. It never guesses how much hangs on a
run: that is `med` until somebody says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from muniment.core.scope import Level
from muniment.core.text.patterns import lazy_pattern
from muniment.learning.fold.results import condition_words, error_shape, is_error_condition, met
from muniment.learning.stored_memory import IntentParts, StepFacts
from muniment.verify.results import DEFAULT_DOMAIN, bucket_key, failure_cluster_id

__all__ = ["derived_bucket", "derived_cluster", "error_shape", "failure_sign", "failure_words", "is_telling"]

STAGE = "run"
_READ_CHARS_MAX = 400
_ASKED_WORDS_MIN = 4
"""A task in fewer words than this leaves much open."""
_WRONG = "wrong"
_HAS_CLASS = lazy_pattern(r"![A-Z]\w*(?:Error|Exception|Warning)\b")


def derived_cluster(violated: Sequence[str], reason_codes: Sequence[str], intent: IntentParts, sign: str) -> str:
    """The cluster of a failed run: by its constraints and reasons where there are any, else by how it went wrong at
    what kind of work.
    """
    if violated or reason_codes:
        return failure_cluster_id(STAGE, violated, reason_codes)
    work = f"work:{intent.domain_tag or ''}|{intent.task_family or ''}"
    return failure_cluster_id(STAGE, (), [f"sign:{sign}", work])


def is_telling(sign: str) -> bool:
    """Does it say what went wrong, and not merely that something did?"""
    return not sign.startswith(_WRONG)


def failure_sign(steps: Sequence[StepFacts], notes: str | None) -> str:
    """How a run went wrong, in a few words that are alike for failures that are alike. To tell clusters apart, and not
    to be told: they are a tool's own.
    """
    calls = [step for step in steps if step.kind == "call"]
    broken = next((step for step in reversed(calls) if step.ok is False), None)
    if broken is not None:
        named = [each for each in met(broken) if is_error_condition(each) and _HAS_CLASS.search(each)]
        if named:
            return condition_words(max(named, key=len))
        shape = error_shape(broken.text or "")
        return f"{broken.action} failed: {shape}" if shape else f"{broken.action} failed"
    noted = error_shape(notes or "")
    if noted:
        return noted
    return f"{_WRONG} after {calls[-1].action}" if calls else f"{_WRONG} answer"


def failure_words(steps: Sequence[StepFacts], notes: str | None) -> str:
    """The same as it may be told: of a call that failed the kind of its error, of a verifier its own words."""
    calls = [step for step in steps if step.kind == "call"]
    broken = next((step for step in reversed(calls) if step.ok is False), None)
    if broken is None:
        return failure_sign(steps, notes)
    errors = [each for each in met(broken) if is_error_condition(each)]
    return condition_words(max(errors, key=len)) if errors else f"{broken.action} failed"


def derived_bucket(intent: IntentParts, asked: str) -> str:
    """The bucket of a run whose caller named none."""
    domain = intent.domain_tag or intent.task_family or DEFAULT_DOMAIN
    return bucket_key("med", domain, _clarity(intent, asked))


def _clarity(intent: IntentParts, asked: str) -> Level:
    """High where the form of the answer or its constraints were said beforehand; low where hardly anything was."""
    if intent.output_format or intent.constraint_profile:
        return "high"
    words = len(asked[:_READ_CHARS_MAX].split()) if asked.isascii() else len(asked)
    return "low" if words < _ASKED_WORDS_MIN else "med"
