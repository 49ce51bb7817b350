"""Which of the instructions that stand a message ends: what is allowed again, let go of, or asked for otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muniment.memory.extraction.instructions.forms import Language, languages_of, plain_text
from muniment.memory.extraction.instructions.reading import Instruction, instructions_in, own_sentences
from muniment.memory.extraction.instructions.topics import is_negative, terms_of, topic_of

__all__ = ["Ended", "Standing", "ended_by", "may_end"]

SHARE_MIN = 0.6
"""How much of what an instruction names must be named again by what ends it, where it is about nothing with a name."""


class Standing(NamedTuple):
    """An instruction that stands: its key, and its words."""

    key: str
    text: str


class Ended(NamedTuple):
    """One that a message ends, and the words that do."""

    standing: Standing
    quote: str
    why: str


def may_end(text: str) -> bool:
    """Does a message end any instruction at all, so that it is worth looking at those that stand?"""
    return any(True for _ in _leaves(text)) or bool(instructions_in(text))


def ended_by(text: str, standing: Sequence[Standing]) -> list[Ended]:
    """The instructions that a user's message ends. One that takes the place of another of its key does so by itself."""
    found: dict[Standing, Ended] = {}
    for leave in _leaves(text):
        for each in standing:
            if leave.is_for(each):
                found.setdefault(each, Ended(each, leave.quote, leave.why))
    for said in instructions_in(text):
        for each in standing:
            if each.key != said.topic.key and _is_contrary(said, each):
                found.setdefault(each, Ended(each, said.text, f"{said.why}: asked otherwise"))
    return list(found.values())


class _Leave(NamedTuple):
    """A sentence that allows or lets go of something, or of everything."""

    kind: str
    quote: str
    why: str

    def is_for(self, standing: Standing) -> bool:
        if self.kind == "everything":
            return True
        named, held = terms_of(self.quote), terms_of(standing.text)
        topic, of = topic_of(self.quote), topic_of(standing.text)
        if topic.name is None or of.name is None:
            return topic.name is of.name and _names(held, named)
        if topic.name != of.name:
            return False
        if self.kind == "permitted" and not is_negative(standing.text):
            return False  # what may be done ends only what forbade it
        # `Back to English` ends any other choice; `no longer in French` only that one.
        return self.kind in ("allowed", "permitted") or not topic.is_choice or not held.isdisjoint(named)


def _leaves(text: str) -> Iterator[_Leave]:
    for sentence in own_sentences(text):
        if sentence.is_question or sentence.is_quoting:
            continue
        for language in languages_of(sentence.text):
            if (kind := _kind_of(plain_text(sentence.text), language)) is not None:
                yield _Leave(kind, sentence.text, f"{language.name}: {kind}")
                break


def _kind_of(plain: str, language: Language) -> str | None:
    for kind, pattern in (
        ("everything", language.everything),
        ("released", language.released),
        ("allowed", language.allowed),
        ("permitted", language.permitted),
    ):
        found = pattern.search(plain)
        if found is None or language.reported.search(plain, 0, found.start()) is not None:
            continue
        # The `now` of `you can use emojis now` is part of it, and says nothing of this once.
        around = f"{plain[: found.start()]} {found[0].removesuffix(' now')} {plain[found.end() :]}"
        if language.momentary.search(around) is None:
            return kind
    return None


def _is_contrary(said: Instruction, standing: Standing) -> bool:
    """Is one the no to the other's yes: on the same topic, and of the same thing?"""
    of = topic_of(standing.text)
    if of.name != said.topic.name or is_negative(said.text) == is_negative(standing.text):
        return False
    held, named = terms_of(standing.text), terms_of(said.text)
    return _names(held, named) or (of.name is not None and of.is_choice and _names(named, held))


def _names(held: frozenset[str], named: frozenset[str]) -> bool:
    shared = len(held & named)
    return bool(held) and shared >= min(2, len(held)) and shared >= SHARE_MIN * len(held)
