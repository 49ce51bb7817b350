"""`propose`: what a message says of its speaker, by patterns, each with its verbatim quote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from muniment.memory.extraction.chinese import propose_chinese
from muniment.memory.extraction.english.grammar import ENGLISH
from muniment.memory.extraction.english.words import KIN_KEYS
from muniment.memory.extraction.grammar import Correction, Grammar, TakenBack, Talk
from muniment.memory.extraction.korean import propose_korean
from muniment.memory.extraction.sentences import Sentence, sentences
from muniment.memory.extraction.taken_back import take_back as take_back_of
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["KIN", "PROPOSALS_MAX", "corrections", "propose", "take_back"]

PROPOSALS_MAX = 20
"""In one message. More than that is a form or a list of examples, and nothing in it is sure."""

KIN = frozenset(KIN_KEYS.values())
"""The second parts of keys whose values are names: `user.partner` is Kim."""

_CONTACT = re.compile(r"@|://|www\.|\d{5}|\d{3}[ -]\d{3,4}|\[redacted")
_HANGUL = re.compile("[가-힣]")
_HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]")


def propose(text: str, role: str, ts: str, names: Mapping[str, str] | None = None) -> list[Proposal]:
    """What the text says for sure. Only users speak of themselves; contacts and secrets are nobody's fact.

    `names` are those of the speaker's people that are known already, in small letters, and what each is to them.
    """
    if role != "user":
        return []
    talk = Talk(ts, dict(names or {}))
    found: dict[tuple[str, str], Proposal] = {}
    for language, said in groupby(sentences(text), _language_of):
        proposals = _READERS[language](text, list(said), talk) if language is not None else ()
        for proposal in proposals:
            if proposal.quote in text and not _CONTACT.search(str(proposal.value)):
                found.setdefault((proposal.key, str(proposal.value).casefold()), proposal)
        if len(found) > PROPOSALS_MAX:
            return []
    return list(found.values())


def corrections(text: str, role: str) -> list[Correction]:
    """What the text puts right of what its speaker said before it."""
    if role != "user":
        return []
    found: list[Correction] = []
    for language, said in groupby(sentences(text), _language_of):
        grammar = _GRAMMARS.get(language or "")
        found += grammar.corrections(text, said) if grammar is not None else []
    return [each for each in found if each.quote in text]


def take_back(text: str, role: str) -> list[TakenBack]:
    """What the text takes back for sure, of what its speaker said before."""
    if role != "user":
        return []
    found: dict[tuple[str, str | None], TakenBack] = {}
    talk = Talk("")
    for language, said in groupby(sentences(text), _language_of):
        for back in _TAKERS[language](text, list(said), talk) if language is not None else ():
            if back.quote in text:
                found.setdefault((back.key, back.value), back)
        if len(found) > PROPOSALS_MAX:
            return []
    return list(found.values())


_GRAMMARS: dict[str, Grammar] = {"english": ENGLISH}

Reader = Callable[[str, Sequence[Sentence], Talk], Iterable[Proposal]]


def _each(read: Callable[[Sentence, str], Iterator[Proposal]]) -> Reader:
    """A reader of single sentences as one of messages."""
    return lambda _text, said, talk: (each for sentence in said for each in read(sentence, talk.ts))


_READERS: dict[str, Reader] = {
    "korean": _each(propose_korean),
    "chinese": _each(propose_chinese),
    "english": ENGLISH.propose,
}


Taker = Callable[[str, Sequence[Sentence], Talk], Iterable[TakenBack]]


def _each_back(language: str) -> Taker:
    return lambda _text, said, _talk: (back for sentence in said for back in take_back_of(sentence, language))


_TAKERS: dict[str, Taker] = {
    "korean": _each_back("korean"),
    "chinese": _each_back("chinese"),
    "english": ENGLISH.take_back,
}


def _language_of(sentence: Sentence) -> str | None:
    if _HANGUL.search(sentence.text):
        return "korean"
    if _HAN.search(sentence.text):
        return "chinese"
    return "english" if _LATIN.search(sentence.text) else None
