"""What turns words round or leaves them open: denials, questions, suppositions, in three languages. Pure."""

from __future__ import annotations

import re

from muniment.core.text.sentences import sentence_spans

__all__ = ["clause_around", "is_denied", "is_of_speaker", "is_question", "is_supposed"]

_DENIAL = re.compile(
    r"(?i)\b(?:not|never|no longer|hardly|barely|neither|nor|cannot|stopped|quit)\b|n['’]t\b"
    r"|[不没沒未无無]|(?:^|\s)(?:안|못)\s|지 않|지 못|아니|없"
)
_SUPPOSED = re.compile(
    r"(?i)\b(?:if|unless|wish|would|could|might|maybe|perhaps|probably|possibly|suppose|imagine|pretend|almost|nearly"
    r"|thinking of|think of|considering|used to|kidding|joking)\b|['’]d\b|如果|要是|也许|可能|大概|만약|아마|려고|라면"
)
_SPEAKER = re.compile(
    r"(?i)\b(?:i|me|my|mine|myself|we|us|our|ours)\b|\b(?:i|we)['’]|[我咱俺]|(?:^|\s)(?:나|저|제|내|우리|저희)(?:[는은가를의도]|\s|$)"
)
_CLAUSE = re.compile(r"[,;:—–()，；：、]|\s(?:but|and|though|although|because|so|while|whereas)\s")
_ASKING = ("?", "？")


def is_denied(text: str) -> bool:
    """Does the text deny something?"""
    return _DENIAL.search(text) is not None


def is_supposed(text: str) -> bool:
    """Does it only suppose, wish or remember something?"""
    return _SUPPOSED.search(text) is not None


def is_of_speaker(text: str) -> bool:
    """Does it speak of whoever speaks?"""
    return _SPEAKER.search(text) is not None


def is_question(text: str) -> bool:
    return text.rstrip("\"'”’)] ").endswith(_ASKING)


def clause_around(text: str, start: int, end: int) -> tuple[str, str]:
    """The clauses and the sentences that a stretch of a text stands in, each from beginning to end."""
    spans = [span for span in sentence_spans(text) if span[0] < end and span[1] > start]
    if not spans:
        return text[start:end], text[start:end]
    first, last = spans[0][0], spans[-1][1]
    marks = [mark.span() for mark in _CLAUSE.finditer(text, first, last)]
    before = [mark_end for _, mark_end in marks if mark_end <= start]
    after = [mark_start for mark_start, _ in marks if mark_start >= end]
    return text[max([first, *before]) : min([last, *after])], text[first:last]
