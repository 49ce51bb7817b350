"""`instructions_in`: what a user asks for once and for all, clause by clause, with the words that say it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.memory.extraction.instructions.forms import Language, languages_of, plain_text
from muniment.memory.extraction.instructions.topics import Topic, has_occasion, is_negative, topic_of
from muniment.memory.extraction.sentences import Sentence, sentences
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["Instruction", "instructions_in", "own_sentences", "propose_instructions"]

CONFIDENCE, CONFIDENCE_OTHER = 0.9, 0.7
"""Of an instruction on a matter that has a name here; any other may be none to the agent, and waits for a decision."""
OWN_CHARS_MAX = 1_500
"""A longer message holds somebody's text: of that only its beginning and its end are the user's word to the agent,"""
EDGE_CHARS = 300
"""so much of each."""
OPENERS_MAX = 5
"""So many words of courtesy and the like are looked past before an order."""
_ITEM = re.compile(r"^(?:[-*•·]|\d{1,2}[.)])\s+")
_OUTSIDE = re.compile(r"^[^\w¿¡'\"(]+|(?:(?![\"')\]%])[\W_])+$")
_QUOTES = re.compile(r"\"|(?<!\w)'|'(?!\w)|[«»「」『』《》„]")
_QUOTE_MARK_ALONE = re.compile(r"^\s*[\"'«「『„]")


class Instruction(NamedTuple):
    """What is asked for, verbatim; what it is about; and how the user wants to be called, where that is it."""

    text: str
    topic: Topic
    why: str
    name: str | None = None


def instructions_in(text: str) -> list[Instruction]:
    """The instructions of a user's message, in their order; of two on the same matter each keeps a key of its own."""
    found: dict[str, Instruction] = {}
    for sentence in own_sentences(text):
        for said in _of_sentence(sentence):
            if said.topic.key not in found:
                found[said.topic.key] = said
            elif said.text.casefold() != found[said.topic.key].text.casefold():
                own = said.topic._replace(key=f"{said.topic.key}.{len(found)}")
                found[own.key] = said._replace(topic=own)
    return list(found.values())


def propose_instructions(text: str) -> Iterator[Proposal]:
    """The instructions of a user's message as proposals; a name to be called by is one of its own besides."""
    for said in instructions_in(text):
        sure = CONFIDENCE if said.topic.name is not None else CONFIDENCE_OTHER
        yield Proposal(
            key=said.topic.key, value=said.text, quote=said.text, confidence=sure, why=f"{said.why}: instruction"
        )
        if said.name is not None:
            yield Proposal(
                key="user.nickname", value=said.name, quote=said.text, confidence=CONFIDENCE, why=f"{said.why}: called"
            )


def own_sentences(text: str) -> Iterator[Sentence]:
    """The sentences that are the user's word to the agent: what stands behind `translate this:` is not."""
    edges = None if len(text) <= OWN_CHARS_MAX else text[:EDGE_CHARS] + text[-EDGE_CHARS:]
    for sentence in sentences(text):
        if sentence.is_bare or (edges is not None and sentence.text not in edges):
            continue
        if any(language.material.search(plain_text(sentence.text)) for language in languages_of(sentence.text)):
            return
        yield sentence


def _of_sentence(sentence: Sentence) -> Iterator[Instruction]:
    text = _ITEM.sub("", sentence.text)
    for language in languages_of(text):
        spans = _spans(text, language.name, sentence.is_question)
        if spans:
            for start, end in spans:
                said = text[start:end]
                yield Instruction(said, topic_of(said), language.name, _name_in(said, language))
            return


@remembered(4096)
def _spans(text: str, name: str, is_question: bool) -> tuple[tuple[int, int], ...]:
    """Where the instructions of a sentence stand."""
    language = next(each for each in languages_of(text) if each.name == name)
    plain = plain_text(text)
    if _QUOTE_MARK_ALONE.match(plain) or language.momentary.search(plain):
        return ()
    if is_question and not language.asking.search(plain) and not language.courtesy.search(plain):
        return ()
    found: list[tuple[int, int]] = []
    for joint, start in _starts(plain, language):
        if found and start < found[-1][1] and not _is_apart(plain, start, language):
            continue
        match = _order_at(plain, start, language)
        if match is None or _is_told(plain, start, language):
            continue
        begin, _ = match
        if found and begin < found[-1][1]:
            found[-1] = (found[-1][0], _trimmed(plain, found[-1][0], joint, language))
        found.append((begin, _end(plain, match[1], language)))
    spans = [(begin, _trimmed(plain, begin, end, language)) for begin, end in found]
    return tuple((begin, end) for begin, end in spans if end > begin)


def _starts(plain: str, language: Language) -> list[tuple[int, int]]:
    """Where a clause may end, and the next one begin."""
    return [(0, 0), *(match.span() for match in language.joint.finditer(plain))]


def _order_at(plain: str, start: int, language: Language) -> tuple[int, int] | None:
    """An order that begins here, behind what may stand before it: where it begins, and where its form ends."""
    begins = [start]
    while len(begins) <= OPENERS_MAX and (opener := language.opener.match(plain, begins[-1])) is not None:
        if opener.end() == begins[-1]:
            break
        begins.append(opener.end())
    for at in reversed(begins):
        match = language.forms.match(plain, at)
        if match is not None and not language.idle.match(plain, at) and _is_outside_quotes(plain[:at]):
            return at, match.end()
    return None


def _is_apart(plain: str, start: int, language: Language) -> bool:
    """Is what begins within another instruction one of its own: not the second half of one with an occasion?"""
    return not has_occasion(plain[:start]) and _order_at(plain, start, language) is not None


def _is_outside_quotes(before: str) -> bool:
    return len(_QUOTES.findall(before)) % 2 == 0


def _is_told(plain: str, start: int, language: Language) -> bool:
    """Is it no order but somebody's word, or what somebody does who was named before?"""
    before = plain[:start]
    if language.reported.search(before) is not None:
        return True
    return language.continued.search(before) is not None and language.strong.match(plain, start) is None


def _end(plain: str, end: int, language: Language) -> int:
    tail = language.tail.search(plain, end)
    return len(plain) if tail is None else tail.start()


def _trimmed(plain: str, begin: int, end: int, language: Language) -> int:
    """The end without courtesy, faces and signs that end a sentence."""
    while True:
        said = plain[begin:end]
        outside = _OUTSIDE.search(said.lstrip()) if said.strip() else None
        kept = said.rstrip()
        if outside is not None and outside.end() == len(said.lstrip()) and outside.start() > 0:
            kept = said[: len(said) - (outside.end() - outside.start())]
        courtesy = language.courtesy.search(kept)
        kept = kept if courtesy is None or not courtesy.start() else kept[: courtesy.start()].rstrip(" ,;-–—")
        if len(kept) == len(said):
            return end
        end = begin + len(kept)


def _name_in(said: str, language: Language) -> str | None:
    """How the user wants to be called, as they write it; `don't call me Bob` names nobody."""
    if is_negative(said):
        return None
    plain = plain_text(said)
    for pattern in language.names:
        match = pattern.search(plain)
        if match is not None:
            group = match.lastgroup or "name"
            start, end = match.span(group)
            return said[start:end]
    return None
