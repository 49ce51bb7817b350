"""Questions that go from one statement to the next: "the capital of the country where she lives".

A statement that is found ends in something ("she lives in Portugal") of which a further statement says what else is
asked ("the capital of Portugal is Lisbon"). Both ends are words of the statements themselves, and what is asked is
told by the words of the question that no step has answered yet: no model, no table of what relates to what beyond the
words that name one relation (`core.text.stated.relations`). Of statements that differ in their ends alone the newest
holds; what was denied since does not, and what is only supposed or wished for is no statement. Steps, paths and turns
that are read are bounded; the same inputs give the same chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muniment.core.text.analyzer import analyze, stop_words, term_hash
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import sentence_spans
from muniment.core.text.stated.relations import (
    denies,
    doubts,
    inside_names,
    is_form,
    leads_on,
    may_answer,
    opens,
    states,
    tells_little,
)
from muniment.memory.recall.index import Ints, ScopeIndex, role_number

__all__ = ["Read", "Step", "find_chain"]

STEPS_MAX = 5
PATHS_MAX = 8
"""How many paths are followed side by side."""
READ_MAX = 24
"""Turns that are read for one end of a path."""
READS_MAX = 400
"""Turns that are read for one question."""
QUESTION_WORDS_MAX = 60
STATEMENT_WORDS_MAX = 24
TERMS_MAX = 60
TEXT_CHARS_MAX = 2_000
"""A longer turn is no plain statement."""
END_WORDS_MAX = 8

Read = Callable[[Sequence[int]], Sequence[str]]
"""From ordinals to the texts of these turns; an empty one for what cannot be shown."""

_WORD = lazy_pattern(r"[^\W_]+(?:(?:[.&-]|['’](?!s\b))[^\W_]+)*")
_QUOTED = lazy_pattern(r"[\"“]([^\"”\n]{2,80})[\"”]")
_USER = role_number("user")
"""Only people state: an assistant repeats and suggests, and what a tool read may have been written to be newest."""
_OWN = frozenset(("my", "our"))
"""Who asks names what is theirs so."""


class Step(NamedTuple):
    """A statement on the way, and the words in it that the next one is about; of the last one none."""

    ordinal: int
    statement: str
    end: str


class _Sentence(NamedTuple):
    ordinal: int
    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    terms: tuple[str, ...]
    """For each word its stem, nothing for one that says nothing by itself."""
    is_name: tuple[bool, ...]
    """Which words are written as parts of names are."""
    denies: bool
    """Does it say that something does not hold? It leads nowhere, and ends what older statements say of the same."""


class _Answered(NamedTuple):
    """The places of words of a question that are answered."""

    said: frozenset[int]
    """In the same word."""
    meant: frozenset[int]
    """In a word that may name the same relation, or in the same."""

    @property
    def worth(self) -> int:
        return len(self.said) + len(self.meant)

    def first_beyond(self, other: _Answered) -> int:
        """The first place that the other did not answer, or in another word alone; -1 where there is none."""
        return min((self.said - other.said) | (self.meant - other.meant), default=-1)


class _Path(NamedTuple):
    told: tuple[tuple[_Sentence, int], ...]
    """The statements, each with the place where what it says of its subject begins."""
    answered: _Answered
    """What of the question they answer."""
    first: int = 0
    """The first word that the last one answers; -1 where it answers none and is only passed through."""


class _Question:
    """The words of a question that may name a relation, and those that may name what it starts from."""

    def __init__(self, text: str, *, is_one_user: bool = True) -> None:
        """Where several people tell as users, who says "my" names nobody in particular."""
        found = list(_WORD.finditer(text))
        self.words = tuple(match[0].casefold() for match in found)
        quoted = [match.span(1) for match in _QUOTED.finditer(text)]
        stops = stop_words("english")
        is_own = [is_one_user and word in _OWN for word in self.words]
        self.is_name = tuple(
            any(start <= match.start() < end for start, end in quoted)
            or (_is_name(match[0]) and (place > 0 or word not in stops))
            or any(is_own[max(0, place - 1) : place + 1])
            for place, (match, word) in enumerate(zip(found, self.words, strict=True))
        )
        self.terms = tuple("where" if word == "where" else _term(word) for word in self.words)

    def names(self) -> Iterator[tuple[str, ...]]:
        """The names in it, each as far as its words stand side by side."""
        start = 0
        for place, is_name in enumerate((*self.is_name, False)):
            if not is_name:
                if start < place:
                    yield self.words[start:place]
                start = place + 1

    def wanted(self) -> list[int]:
        """The places of the words that ask for something."""
        little = tells_little()
        return [
            place
            for place, (word, term) in enumerate(zip(self.words, self.terms, strict=True))
            if term and word not in little
        ]


def find_chain(
    text: str, index: ScopeIndex, read: Read, among: npt.NDArray[np.bool_] | None = None
) -> tuple[Step, ...]:
    """The statements that lead from what a question names to what it asks for, in their order; none where one does."""
    question = _Question(text, is_one_user=index.kept("one user", lambda: _is_one_user(index)))
    if len(question.words) > QUESTION_WORDS_MAX or len(question.wanted()) < 2 or not any(question.is_name):
        return ()
    return _Following(question, index, read, among).best()


def _is_one_user(index: ScopeIndex) -> bool:
    return len(np.unique(index.speaker[index.role == _USER])) == 1


class _Following:
    """The search for a chain, with what it has read."""

    def __init__(self, question: _Question, index: ScopeIndex, read: Read, among: npt.NDArray[np.bool_] | None) -> None:
        self._question, self._index, self._read_texts, self._among = question, index, read, among
        self._known: dict[int, list[_Sentence]] = {}
        self._ends: dict[tuple[str, ...], list[tuple[_Sentence, int]]] = {}

    def best(self) -> tuple[Step, ...]:
        paths = self._starts()
        most = max((path.answered.worth for path in paths), default=0)
        found: list[_Path] = []
        for _ in range(STEPS_MAX - 1):
            paths = self._kept([after for path in paths for after in self._further(path)])
            if not paths:
                break
            found += paths
        whole = [path for path in found if path.first >= 0 and path.answered.worth > most]
        if not whole:
            return ()
        best = min(whole, key=self._order)
        return self._steps(best)

    def _order(self, path: _Path) -> tuple[int, int, int, tuple[tuple[int, int], ...]]:
        """The one that answers most of the question, in the fewest steps, comes first; then the one whose last step
        answers what stands first in the question, which is what it asks for; then the newest.
        """
        when = [self._when(sentence) for sentence, _ in reversed(path.told)]
        newest = tuple((-second, -ordinal) for second, ordinal in when)
        return -path.answered.worth, len(path.told), path.first, newest

    def _kept(self, paths: list[_Path]) -> list[_Path]:
        return sorted(paths, key=self._order)[:PATHS_MAX]

    # -- where it starts --------------------------------------------------------------------------------

    def _starts(self) -> list[_Path]:
        """Statements of what the question names."""
        ordinals = [ordinal for name in self._question.names() for ordinal in self._holding(name)]
        paths = []
        for sentence in self._sentences(list(dict.fromkeys(ordinals))):
            named = self._named(sentence)
            if named is not None:
                start, place, size = named
                name = frozenset(range(place, place + size))
                answered = self._answered(sentence, _Answered(name, name), start, start + size)
                paths.append(_Path(((sentence, start + size),), answered))
        return self._kept(self._newest(paths))

    def _named(self, sentence: _Sentence) -> tuple[int, int, int] | None:
        """The longest name of the question that the statement has: where there, where in the question, how many words.

        A name of the question counts whole: "Ana Lima" is not "Ana Costa".
        """
        question, words = self._question, sentence.words
        best: tuple[int, int, int] | None = None
        for place, is_name in enumerate(question.is_name):
            if not is_name or (place and question.is_name[place - 1]):
                continue
            for start in _subject_places(sentence):
                size = 0
                while (
                    start + size < len(words) - 1
                    and place + size < len(question.words)
                    and words[start + size] == question.words[place + size]
                ):
                    size += 1
                while size and question.terms[place + size - 1] == "" and not question.is_name[place + size - 1]:
                    size -= 1
                goes_on = place + size < len(question.words) and question.is_name[place + size]
                is_best = size and not goes_on and (best is None or size > best[2])
                if is_best and _is_whole(sentence, start, start + size):
                    best = start, place, size
        return best

    # -- the next step ----------------------------------------------------------------------------------

    def _further(self, path: _Path) -> Iterator[_Path]:
        sentence, begin = path.told[-1]
        seen = {each.ordinal for each, _ in path.told}
        for end in _ends(sentence, begin):
            about = self._about(end)
            paths = []
            for following, behind in about:
                if following.ordinal in seen:
                    continue
                answered = self._answered(following, path.answered, behind - len(end), behind)
                told = (*path.told, (following, behind))
                first = answered.first_beyond(path.answered)
                is_passed = path.first >= 0 and _only_places(following, behind - len(end), behind)
                if first >= 0 or is_passed or following.denies:
                    paths.append(_Path(told, answered, first))
            yield from self._newest(paths)
            if about:
                return

    def _about(self, end: tuple[str, ...]) -> list[tuple[_Sentence, int]]:
        """The statements that say something of these words, and where what they say of it begins."""
        found = self._ends.get(end)
        if found is None:
            found = self._ends[end] = []
            for sentence in self._sentences(self._holding(end)):
                at = _subject_at(end, sentence)
                if at is not None:
                    found.append((sentence, at + len(end)))
        return found

    def _holding(self, end: tuple[str, ...]) -> list[int]:
        """The turns that have all these words, those with most of what is asked first, then the newest."""
        index = self._index
        terms = list(dict.fromkeys(analyze(" ".join(end))))
        if not terms:
            return []
        lists = sorted((index.postings(term_hash(term))[0] for term in terms), key=len)
        held: Ints = lists[0]
        for other in lists[1:]:
            held = held[np.isin(held, other, assume_unique=True)]
        if self._among is not None:
            held = held[self._among[held]]
        held = held[(index.length[held] <= TERMS_MAX) & (index.role[held] == _USER)]
        if len(held) > READ_MAX:
            asked = np.zeros(len(held), np.int64)
            for each in self._asked_for:
                says = np.zeros(len(held), bool)
                for term in each:
                    says |= np.isin(held, index.postings(term)[0], assume_unique=True)
                asked += says
            held = held[np.lexsort((-held, -index.ts[held], -asked))][:READ_MAX]
        found: list[int] = held.tolist()
        return found

    @cached_property
    def _asked_for(self) -> list[list[int]]:
        """For each word of the question that asks for something, the terms that may answer it."""
        question = self._question
        words = dict.fromkeys(question.terms[place] for place in question.wanted())
        terms = [[term_hash(term) for term in sorted(may_answer(word))] for word in words]
        self._index.prepare([term for each in terms for term in each])
        return terms

    def _answered(self, sentence: _Sentence, before: _Answered, start: int, stop: int) -> _Answered:
        """What is answered with this statement, whose subject stands between two places."""
        stated = [term for place, term in enumerate(sentence.terms) if term and not start <= place < stop]
        terms, wanted = self._question.terms, self._question.wanted()
        said = {place for place in wanted if any(is_form(terms[place], term) for term in stated)}
        meant = {place for place in wanted if not may_answer(terms[place]).isdisjoint(stated)}
        return _Answered(before.said | said, before.meant | said | meant)

    def _newest(self, paths: list[_Path]) -> list[_Path]:
        """Of paths whose last statements differ in their ends alone, those with the newest one; none that is denied."""
        kept: list[_Path] = []
        denied: list[frozenset[str]] = []
        for path in sorted(paths, key=lambda path: self._when(path.told[-1][0]), reverse=True):
            last = path.told[-1][0]
            terms = frozenset(filter(None, last.terms))
            if last.denies:
                denied.append(terms)
            elif not any(terms <= each for each in denied) and not any(
                _ends_otherwise(last, newer.told[-1][0]) for newer in kept
            ):
                kept.append(path)
        return kept

    def _when(self, sentence: _Sentence) -> tuple[int, int]:
        return int(self._index.ts[sentence.ordinal]), sentence.ordinal

    # -- reading ----------------------------------------------------------------------------------------

    def _sentences(self, ordinals: Sequence[int]) -> list[_Sentence]:
        new = [ordinal for ordinal in ordinals if ordinal not in self._known]
        new = new[: max(0, READS_MAX - len(self._known))]
        for ordinal, text in zip(new, self._read_texts(new) if new else (), strict=True):
            self._known[ordinal] = list(_statements(ordinal, text))
        return [sentence for ordinal in ordinals for sentence in self._known.get(ordinal, ())]

    def _steps(self, path: _Path) -> tuple[Step, ...]:
        steps = []
        for (sentence, begin), following in zip(path.told, (*path.told[1:], None), strict=True):
            end = ""
            if following is not None:
                size = next(len(each) for each in _ends(sentence, begin) if self._about(each))
                end = sentence.text[sentence.spans[-size][0] : sentence.spans[-1][1]]
            steps.append(Step(sentence.ordinal, sentence.text, end))
        return tuple(steps)


def _is_name(word: str) -> bool:
    """Is a word written as a part of a name is? Who says "I" names nobody."""
    return (word[0].isupper() or word[0].isdigit()) and word != "I" and not word.startswith(("I'", "I’"))


def _term(word: str) -> str:
    found = analyze(word)
    return found[0] if found and not found[0].startswith(("#", "^")) else ""


def _statements(ordinal: int, text: str) -> Iterator[_Sentence]:
    """The sentences of a turn that are short enough to state one thing, or deny it, and neither ask nor suppose it."""
    if not text or len(text) > TEXT_CHARS_MAX:
        return
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        before = text[slice(*spans[-1])] if spans else ""
        if before and (text[start].islower() or " " not in before):  # the dot before it closed a shortened word
            spans[-1] = spans[-1][0], end
        else:
            spans.append((start, end))
    for start, end in spans:
        found = list(_WORD.finditer(text, start, end))
        if 3 <= len(found) <= STATEMENT_WORDS_MAX and not text[start:end].endswith(("?", "？")):
            words = tuple(match[0].casefold() for match in found)
            places = tuple((match.start() - start, match.end() - start) for match in found)
            is_name = tuple(_is_name(match[0]) for match in found)
            said = [word for word, is_part in zip(words, is_name, strict=True) if not is_part]  # Will is a name
            if not doubts(said):
                terms = tuple(map(_term, words))
                yield _Sentence(ordinal, text[start:end], words, places, terms, is_name, denies(said))


def _ends(sentence: _Sentence, begin: int) -> Iterator[tuple[str, ...]]:
    """What a statement may end in, the longest first."""
    words = sentence.words
    for start in range(max(begin + 1, len(words) - END_WORDS_MAX), len(words)):
        if _ends_before(words[start - 1]) and words[start] not in leads_on():
            yield words[start:]


def _ends_before(word: str) -> bool:
    """May a name begin behind this word?"""
    return word == "the" or word in leads_on()


def _subject_at(end: tuple[str, ...], sentence: _Sentence) -> int | None:
    """Where a statement speaks of these words, as a whole name, before it says something of them.

    What is not written as a name is, it must begin with: "rugby was first played in …".
    """
    size = len(end)
    for at in _subject_places(sentence):
        stop = at + size
        if stop < len(sentence.words) and sentence.words[at:stop] == end and _is_whole(sentence, at, stop):
            return at if at == 0 or any(sentence.is_name[at:stop]) else None
    return None


def _subject_places(sentence: _Sentence) -> Iterator[int]:
    """The places at which what a statement is about may be named: it begins there, or leads up to it."""
    words = sentence.words
    for place in range(len(words) - 1):
        if place and (words[place - 1] in states() or words[0] not in opens()):
            return
        yield place


def _is_whole(sentence: _Sentence, start: int, stop: int) -> bool:
    """Are these words a name, and not a part of a longer one: Kiev of "Olga of Kiev"?"""
    words, is_name = sentence.words, sentence.is_name
    if sentence.text[sentence.spans[stop - 1][1] :][:1] in (
        ",",
        "!",
        ":",
        ";",
    ):  # somebody is spoken to, or named beside
        return False
    before, joint = start - 1, False
    while before > 0 and words[before] in inside_names():
        before, joint = before - 1, True
    goes_before = (before > 0 and is_name[before]) or (joint and before == 0 and is_name[0] and words[0] != "the")
    behind = stop
    while behind < len(words) - 1 and words[behind] in inside_names():
        behind += 1
    return not goes_before and not is_name[behind]


def _only_places(sentence: _Sentence, start: int, stop: int) -> bool:
    """Does a statement say of its subject nothing but what it belongs to: "Porto is in Portugal"?"""
    return start == 0 and all(map(_ends_before, sentence.words[stop:-1])) and bool(sentence.is_name[-1])


def _ends_otherwise(one: _Sentence, other: _Sentence) -> bool:
    """Do two statements say the same of the same, with another end?"""
    if one.ordinal == other.ordinal:
        return False
    shared = 0
    for left, right in zip(one.words, other.words, strict=False):
        if left != right:
            break
        shared += 1
    rest = one.words[shared : shared + 1] + other.words[shared : shared + 1]
    return shared >= 2 and len(rest) == 2 and leads_on().isdisjoint(rest)
