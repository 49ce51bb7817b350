"""`propose`: what a message says of its speaker, by patterns, each with its verbatim quote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from muniment.memory.extraction.english.grammar import ENGLISH
from muniment.memory.extraction.english.words import KIN_KEYS
from muniment.memory.extraction.grammar import Correction, Grammar, TakenBack, Talk
from muniment.memory.extraction.instructions.reading import propose_instructions
from muniment.memory.extraction.languages.choice import language_of
from muniment.memory.extraction.languages.reading import read_statements, read_taken_back
from muniment.memory.extraction.languages.tables import LANGUAGES
from muniment.memory.extraction.sentences import Sentence, sentences
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["KIN", "PROPOSALS_MAX", "corrections", "propose", "take_back"]

PROPOSALS_MAX = 20
"""In one message. More than that is a form or a list of examples, and nothing in it is sure."""

KIN = frozenset(KIN_KEYS.values())
"""The second parts of keys whose values are names: `user.partner` is Kim."""

_HIDDEN = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
"""Signs that are not seen, and cut words in two for whoever reads them letter by letter."""


class Plain:
    """A text without the signs that are not seen, and where each of the others stands in it."""

    def __init__(self, text: str) -> None:
        self._source = text
        self._places = [at for at, sign in enumerate(text) if not _HIDDEN.match(sign)]
        self.text = "".join(text[at] for at in self._places)

    def verbatim(self, quote: str) -> str:
        """A stretch of the plain text as it stands in the source."""
        at = self.text.find(quote)
        return self._source[self._places[at] : self._places[at + len(quote) - 1] + 1] if quote and at >= 0 else quote


_CONTACT = re.compile(r"@|://|www\.|\d{5}|\d{3}[ -]\d{3,4}|\[redacted")


def propose(text: str, role: str, ts: str, names: Mapping[str, str] | None = None) -> list[Proposal]:
    """What the text says for sure. Only users speak of themselves; contacts and secrets are nobody's fact.

    `names` are those of the speaker's people that are known already, in small letters, and what each is to them.
    """
    if role != "user":
        return []
    if _HIDDEN.search(text):
        plain = Plain(text)
        found_plain = propose(plain.text, role, ts, names)
        return [each.model_copy(update={"quote": plain.verbatim(each.quote)}) for each in found_plain]
    talk = Talk(ts, dict(names or {}))
    found: dict[tuple[str, str], Proposal] = {}
    for language, said in _by_language(text):
        proposals = _READERS[language](text, list(said), talk) if language is not None else ()
        for proposal in proposals:
            if proposal.quote in text and not _CONTACT.search(str(proposal.value)):
                found.setdefault((proposal.key, str(proposal.value).casefold()), proposal)
        if len(found) > PROPOSALS_MAX:
            return []
    for proposal in propose_instructions(text):
        if proposal.quote in text and not _CONTACT.search(str(proposal.value)):
            found.setdefault((proposal.key, str(proposal.value).casefold()), proposal)
    return list(found.values()) if len(found) <= PROPOSALS_MAX else []


def corrections(text: str, role: str) -> list[Correction]:
    """What the text puts right of what its speaker said before it."""
    if role != "user":
        return []
    if _HIDDEN.search(text):
        plain = Plain(text)
        return [each._replace(quote=plain.verbatim(each.quote)) for each in corrections(plain.text, role)]
    found: list[Correction] = []
    for language, said in _by_language(text):
        grammar = _GRAMMARS.get(language or "")
        found += grammar.corrections(text, said) if grammar is not None else []
    return [each for each in found if each.quote in text]


def take_back(text: str, role: str) -> list[TakenBack]:
    """What the text takes back for sure, of what its speaker said before."""
    if role != "user":
        return []
    if _HIDDEN.search(text):
        plain = Plain(text)
        return [each._replace(quote=plain.verbatim(each.quote)) for each in take_back(plain.text, role)]
    found: dict[tuple[str, str | None], TakenBack] = {}
    talk = Talk("")
    for language, said in _by_language(text):
        for back in _TAKERS[language](text, list(said), talk) if language is not None else ():
            if back.quote in text:
                found.setdefault((back.key, back.value), back)
        if len(found) > PROPOSALS_MAX:
            return []
    return list(found.values())


_GRAMMARS: dict[str, Grammar] = {"english": ENGLISH}

Reader = Callable[[str, Sequence[Sentence], Talk], Iterable[Proposal]]
_READERS: dict[str, Reader] = {
    "english": ENGLISH.propose,
    **{language: partial(read_statements, language) for language in LANGUAGES},
}

Taker = Callable[[str, Sequence[Sentence], Talk], Iterable[TakenBack]]
_TAKERS: dict[str, Taker] = {
    "english": ENGLISH.take_back,
    **{language: partial(read_taken_back, language) for language in LANGUAGES},
}


def _by_language(text: str) -> Iterator[tuple[str | None, Iterator[Sentence]]]:
    """The sentences of a text in order, those of one language that follow each other together."""
    return groupby(sentences(text), lambda sentence: language_of(sentence.text, text))
