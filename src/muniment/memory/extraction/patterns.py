"""`propose`: what a message says of its speaker, by patterns, each with its verbatim quote."""

from __future__ import annotations

import re

from muniment.memory.extraction.chinese import propose_chinese
from muniment.memory.extraction.english import propose_english
from muniment.memory.extraction.korean import propose_korean
from muniment.memory.extraction.languages.choice import language_of
from muniment.memory.extraction.languages.reading import Reading, mask_quotes
from muniment.memory.extraction.languages.tables import table
from muniment.memory.extraction.sentences import Sentence, sentences
from muniment.memory.extraction.taken_back import TakenBack
from muniment.memory.extraction.taken_back import take_back as take_back_of
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["PROPOSALS_MAX", "propose", "take_back"]

PROPOSALS_MAX = 20
"""In one message. More than that is a form or a list of examples, and nothing in it is sure."""

_CONTACT = re.compile(r"@|://|www\.|\d{5}|\d{3}[ -]\d{3,4}|\[redacted")
_HANGUL = re.compile("[가-힣]")
_HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]")


def propose(text: str, role: str, ts: str) -> list[Proposal]:
    """What the text says for sure. Only users speak of themselves; contacts and secrets are nobody's fact."""
    if role != "user":
        return []
    found: dict[tuple[str, str], Proposal] = {}
    readings: dict[str, Reading] = {}
    masked = mask_quotes(text)
    at = 0
    for sentence in sentences(text):
        language = language_of(sentence.text, text)
        if language is None:
            continue
        at = text.find(sentence.text, at)
        if language == "english":
            proposals = propose_english(sentence, ts)
        else:
            if language not in readings:
                readings[language] = Reading(table(language))
            proposals = readings[language].propose(masked[at : at + len(sentence.text)], sentence)
        for proposal in proposals:
            if proposal.quote in text and not _CONTACT.search(str(proposal.value)):
                found.setdefault((proposal.key, str(proposal.value).casefold()), proposal)
        if len(found) > PROPOSALS_MAX:
            return []
    return list(found.values())


def take_back(text: str, role: str) -> list[TakenBack]:
    """What the text takes back for sure, of what its speaker said before."""
    if role != "user":
        return []
    found: dict[tuple[str, str | None], TakenBack] = {}
    for sentence in sentences(text):
        language = _language_of(sentence)
        for back in take_back_of(sentence, language) if language is not None else ():
            if back.quote in text:
                found.setdefault((back.key, back.value), back)
        if len(found) > PROPOSALS_MAX:
            return []
    return list(found.values())


_READERS = {"korean": propose_korean, "chinese": propose_chinese, "english": propose_english}


def _language_of(sentence: Sentence) -> str | None:
    if _HANGUL.search(sentence.text):
        return "korean"
    if _HAN.search(sentence.text):
        return "chinese"
    return "english" if _LATIN.search(sentence.text) else None
