"""What an instruction is about, and so under which key it stands: a newer one of the same key takes its place."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from typing import NamedTuple

from muniment.core.text.analyzer import analyze
from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.instructions.forms import languages_of, plain_text
from muniment.memory.facts.instruction_keys import INSTRUCTION_KEYS

__all__ = ["Topic", "has_occasion", "is_negative", "terms_of", "topic_of"]

_WORDS = WordList(__package__, "topics.txt")
_DIGEST_CHARS = 8
OTHER = "other"
_FIRST_CLAUSE = re.compile(r".[^,;，、；]*")


class Topic(NamedTuple):
    """What an instruction is about."""

    name: str | None
    """None: nothing that has a name here."""
    is_choice: bool
    """Are there many ways to have it, of which one that is forbidden leaves the others?"""
    key: str


def topic_of(text: str) -> Topic:
    """The topic of an instruction, with the key that those on the same matter share.

    The matter (mails, recipes) and the occasion (`whenever I paste code`) set it apart from what holds of all answers;
    so does what is forbidden of a choice: `never in English` leaves `always in French` as it stands.
    """
    plain = plain_text(text)
    name, is_choice = next(((name, kind) for name, kind, form in _topics() if form.search(plain)), (None, False))
    parts = [OTHER if name is None else name]
    parts += [matter for matter, form in _matters() if matter != name and form.search(plain)][:1]
    if name is None:
        parts[0] = f"{OTHER}_{_digest(plain)}"
    elif (occasion := _pattern("condition").search(plain)) is not None:
        parts.append(f"when_{_digest(plain[occasion.start() :])}")
    elif is_choice and is_negative(text):
        parts.append(f"not_{_digest(plain)}")
    return Topic(name, is_choice, INSTRUCTION_KEYS + ".".join(parts))


def has_occasion(text: str) -> bool:
    """Is it for some occasions only?"""
    return _pattern("condition").search(plain_text(text)) is not None


def is_negative(text: str) -> bool:
    """Does an instruction forbid something? `Always in metres, never in feet` asks for something first."""
    plain = _FIRST_CLAUSE.match(plain_text(text))
    said = "" if plain is None else plain[0]
    for language in languages_of(text):
        found, first = language.negative.search(said), language.positive.search(said)
        if found is not None and (first is None or found.start() < first.start()):
            return True
    return False


def terms_of(text: str) -> frozenset[str]:
    """What an instruction names, beside the words that make it one. Of signs without blanks the pairs."""
    terms = frozenset(analyze(plain_text(text))) - _idle_terms()
    pairs = frozenset(term for term in terms if term.isascii() or len(term.lstrip("^")) > 1)
    return pairs or terms


def _digest(plain: str) -> str:
    """A short name of what a text names: the same for the same words in any order."""
    return sha256((" ".join(sorted(terms_of(plain))) or plain).encode()).hexdigest()[:_DIGEST_CHARS]


@cache
def _idle_terms() -> frozenset[str]:
    return frozenset(analyze(" ".join(_WORDS.words("idle terms"))))


@cache
def _pattern(section: str) -> re.Pattern[str]:
    return re.compile(_WORDS.either(section))


@cache
def _topics() -> tuple[tuple[str, bool, re.Pattern[str]], ...]:
    return tuple((name, kind == "choice", _pattern(name)) for name, kind in _WORDS.pairs("topics"))


@cache
def _matters() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, _pattern(name)) for name in _WORDS.entries("matters"))
