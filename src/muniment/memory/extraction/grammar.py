"""The engine that languages share: sentences in one spelling, their clauses, who each speaks of, what it says of them.

A language is a `Grammar`: data and small functions, no engine of its own. How one plugs in is told at the top of
`muniment.memory.extraction`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from muniment.memory.extraction.sentences import Sentence
from muniment.memory.extraction.views import View
from muniment.memory.facts.candidate_records import Proposal

__all__ = [
    "USER",
    "Clause",
    "Correction",
    "Grammar",
    "Place",
    "Rule",
    "Silence",
    "Subject",
    "TakenBack",
    "Talk",
    "Told",
    "Wide",
    "owner_of",
]

LeftOut = Literal["no", "opening", "terse"]
USER = "user"
"""Whose the facts about the speaker are."""


def owner_of(person: str) -> str:
    """The first parts of a key that tells of somebody else: `person.kim`."""
    return f"person.{'_'.join(person.casefold().split())}"


class Silence(NamedTuple):
    """From where on nothing is taken as the speaker's own word, and how far."""

    start: int
    """In the view of the sentence."""
    is_lasting: bool = False
    """Up to the end of the message: a story, a role to play. Else to the end of the sentence."""


class Clause(NamedTuple):
    """A stretch of a sentence in which one thing is said."""

    start: int
    end: int
    is_asked: bool = False
    is_doubtful: bool = False
    """Supposed, wished for, reported, past."""
    is_first: bool = False
    """The sentence begins with it."""


class Subject(NamedTuple):
    """Of whom a clause speaks, and where what it says of them begins."""

    owner: str
    end: int
    left_out: LeftOut = "no"
    """Nobody is named: a sentence opens with what is said (`Just moved to Leeds`), or it is terse (`2 kids, vegan`)."""
    is_owner: bool = False
    """What follows is theirs: `my`, `my brother's`."""


class Told(NamedTuple):
    """One fact of a match."""

    key: str
    value: Any
    start: int
    end: int
    """Where the value stands in the view."""
    confidence: float | None = None


@dataclass(slots=True)
class Talk:
    """What is known while a message is read."""

    ts: str
    names: dict[str, str] = field(default_factory=dict)
    """Names of the speaker's people, in small letters, and what each is to them: `kim` → `partner`."""
    last: str | None = None
    """Of whom was spoken last, besides the speaker: whom `she` means."""
    is_own: bool = False
    """The clause before spoke of the speaker."""
    is_silent: bool = False
    """A story or a role has begun: nothing from here on is the speaker's own word."""
    around: tuple[str, ...] = ()
    """What is seen of the message around the sentence that is read."""


class TakenBack(NamedTuple):
    """A key and the value that no longer holds; None is whichever stands."""

    key: str
    value: str | None
    quote: str
    why: str
    confidence: float = 0.9


class Correction(NamedTuple):
    """Words that put right what was said before."""

    new: str
    old: str | None
    """What they put right, where it is said."""
    quote: str

    def place_in(self, text: str) -> tuple[int, int] | None:
        """Where the old words stand in a text; None where they do not."""
        if self.old is None:
            return None
        found = re.search(rf"(?i)(?<!\w){re.escape(self.old)}(?!\w)", text)
        return None if found is None else found.span()

    def put_right(self, value: str) -> str | None:
        """A value with the old words replaced; None where they are no part of it."""
        if (place := self.place_in(value)) is None:
            return None
        return value[: place[0]] + self.new + value[place[1] :]

    def of(self, proposal: Proposal) -> Proposal | None:
        """A proposal put right; None where it is not meant."""
        value = self.put_right(proposal.value) if isinstance(proposal.value, str) else None
        if value is None:
            return None
        return proposal.model_copy(update={"value": value, "quote": self.quote, "why": f"{proposal.why}, corrected"})


class Place(NamedTuple):
    """Where a rule is tried."""

    view: View
    clause: Clause
    subject: Subject
    talk: Talk


Reader = Callable[[re.Match[str], Place], Iterable[Told]]


class Wide(NamedTuple):
    """A reading that no rule has, and where its quote begins."""

    told: Told
    quote_start: int
    name: str


class Rule(NamedTuple):
    """Words of this form, behind a subject or anywhere, say this."""

    name: str
    pattern: re.Pattern[str]
    read: Reader
    confidence: float = 0.9
    negates: bool = False
    """Says no by itself: the words of the rule are not held against it."""
    of: str = "any"
    """`user`: the speaker alone; `person`: others alone."""
    leaves_out: LeftOut = "no"
    """May be said with nobody named: where a sentence opens, or in a terse list as well."""
    is_owned: bool = False
    """Stands behind whose it is: `my` name is …"""
    may_doubt: bool = False
    """Words of doubt are part of it: `I've always wanted to …` is a goal."""
    may_ask: bool = False
    """Holds in a question as well: `any tips for my road bike?`"""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language."""

    language: str
    view: Callable[[str, Sentence], View]
    """A sentence of a message in one spelling."""
    silence: Callable[[View, Sentence], Silence | None]
    """Where a story, a role, a translation, an example begins."""
    quoted: Callable[[View], Sequence[tuple[int, int]]]
    """What stands in quotation marks and is somebody's saying."""
    clauses: Callable[[View, Sentence], Sequence[Clause]]
    subjects: Callable[[View, Clause, Talk], Iterable[Subject]]
    denies: Callable[[View, int, int], bool]
    """Does a stretch say no?"""
    rules: tuple[Rule, ...]
    """Tried where a subject ends; the first that reads something is the one."""
    passing: tuple[Rule, ...] = ()
    """Looked for anywhere in a sentence: what is told by the way."""
    endings: tuple[Rule, ...] = ()
    """Tried where the speaker is the subject: what they say no longer holds of them."""
    correct: Callable[[View, Sentence], Correction | None] | None = None
    """What a sentence puts right of what was said before."""
    around: Callable[[str, Sequence[Sentence], int], tuple[str, ...]] | None = None
    """What is seen of a message around one of its sentences."""
    accepts: Callable[[Rule, Told, Place], bool] | None = None
    """Does what a rule reads hold, by all that is seen around it?"""
    wide: Callable[[View, Sequence[Clause], int, Talk], Iterable[Wide]] | None = None
    """What else a sentence says for sure, up to a place in it."""
    is_anothers: Callable[[View, Clause, Told], bool] | None = None
    """Is what was told by the way somebody else's than the speaker's?"""
    mend: Callable[[Sequence[Proposal], Sentence, View], Sequence[Proposal] | None] | None = None
    """What a sentence that corrects makes of what was said before in the same message; None: it corrects nothing."""

    def propose(self, text: str, said: Iterable[Sentence], talk: Talk) -> list[Proposal]:
        """What the sentences of a message say."""
        found: list[Proposal] = []
        said = list(said)
        for number, sentence in enumerate(said):
            if talk.is_silent:
                break
            talk.around = self.around(text, said, number) if self.around is not None else ()
            view = self.view(text, sentence)
            silence = self.silence(view, sentence)
            if self.mend is not None and silence is None:
                mended = self.mend(found, sentence, view)
                if mended is not None:
                    found = list(mended)
                    continue
            stop = silence.start if silence is not None else len(view.text)
            talk.is_silent = silence is not None and silence.is_lasting
            if sentence.is_bare:
                continue
            found.extend(self._read(view, sentence, talk, stop))
        return found

    def corrections(self, text: str, said: Iterable[Sentence]) -> list[Correction]:
        """What the sentences of a message put right."""
        if self.correct is None:
            return []
        found = [self.correct(self.view(text, sentence), sentence) for sentence in said if not sentence.is_bare]
        return [each for each in found if each is not None]

    def take_back(self, text: str, said: Iterable[Sentence], talk: Talk) -> list[TakenBack]:
        """What the sentences of a message say no longer holds of the speaker."""
        found: list[TakenBack] = []
        for sentence in said:
            view = self.view(text, sentence)
            silence = self.silence(view, sentence)
            if silence is not None:
                if silence.is_lasting:
                    break
                continue
            if sentence.is_bare:
                continue
            quoted = self.quoted(view)
            for clause in self.clauses(view, sentence):
                if not (clause.is_asked or clause.is_doubtful or _is_inside(clause.start, quoted)):
                    found.extend(self._ended(view, clause, talk))
        return found

    def _ended(self, view: View, clause: Clause, talk: Talk) -> Iterator[TakenBack]:
        for subject in self.subjects(view, clause, talk):
            if subject.owner != USER or subject.is_owner:
                continue
            for rule in self.endings:
                if subject.left_out != "no" and rule.leaves_out == "no":
                    continue
                match = rule.pattern.match(view.text, subject.end)
                told = list(rule.read(match, Place(view, clause, subject, talk))) if match is not None else []
                for each in told:
                    quote = view.verbatim(clause.start, max(clause.end, each.end)).strip()
                    yield TakenBack(each.key, each.value, quote, f"{self.language}: {rule.name}")
                if told:
                    break

    def _read(self, view: View, sentence: Sentence, talk: Talk, stop: int) -> Iterator[Proposal]:
        quoted = self.quoted(view)
        talk.is_own = False
        taken: list[tuple[str, int, int]] = []
        clauses = [clause for clause in self.clauses(view, sentence) if clause.start < stop]
        yield from self._passing(view, clauses, talk, taken, quoted)
        for clause in clauses:
            if _is_inside(clause.start, quoted):
                continue
            for subject in self.subjects(view, clause, talk):
                if subject.owner not in (USER, ""):
                    talk.last = subject.owner
                yield from self._said(Place(view, clause, subject, talk), taken)
        if self.wide is not None:
            open_clauses = [clause for clause in clauses if not _is_inside(clause.start, quoted)]
            yield from self._widely(view, self.wide(view, open_clauses, stop, talk), taken)

    def _widely(self, view: View, wide: Iterable[Wide], taken: list[tuple[str, int, int]]) -> Iterator[Proposal]:
        """What no rule reads, where nothing was read yet."""
        for each in wide:
            start, end = each.told.start, each.told.end
            if any(start < stop and begin < end for _, begin, stop in taken):
                continue
            taken.append((each.told.key, start, end))
            yield Proposal(
                key=each.told.key,
                value=each.told.value,
                quote=view.verbatim(min(each.quote_start, start), end).strip(),
                confidence=each.told.confidence or 0.8,
                why=f"{self.language}: {each.name}",
            )

    def _said(self, place: Place, taken: list[tuple[str, int, int]]) -> Iterator[Proposal]:
        """What the rules read behind a subject."""
        clause, subject = place.clause, place.subject
        for rule in self.rules:
            if not self._fits(rule, clause, subject):
                continue
            match = rule.pattern.match(place.view.text, subject.end)
            if match is None or (not rule.negates and self.denies(place.view, subject.end, match.end())):
                continue
            told = list(rule.read(match, place))
            if told:
                yield from self._proposals(rule, told, place, taken, (clause.start, match.end()))
                return

    def _fits(self, rule: Rule, clause: Clause, subject: Subject) -> bool:
        is_users = subject.owner == USER
        if (rule.of == "user" and not is_users) or (rule.of == "person" and is_users):
            return False
        if not subject.owner or subject.is_owner != rule.is_owned:
            return False
        if subject.left_out == "terse" and rule.leaves_out != "terse":
            return False
        if subject.left_out == "opening" and rule.leaves_out == "no":
            return False
        return (not clause.is_doubtful or rule.may_doubt) and (not clause.is_asked or rule.may_ask)

    def _passing(
        self,
        view: View,
        clauses: Sequence[Clause],
        talk: Talk,
        taken: list[tuple[str, int, int]],
        quoted: Sequence[tuple[int, int]],
    ) -> Iterator[Proposal]:
        """What is told by the way."""
        if not clauses:
            return
        starts = [clause.start for clause in clauses]
        for rule in self.passing:
            for match in rule.pattern.finditer(view.text, 0, clauses[-1].end):
                clause = clauses[max(0, bisect_right(starts, match.start()) - 1)]
                is_barred = (clause.is_asked and not rule.may_ask) or (clause.is_doubtful and not rule.may_doubt)
                if is_barred or _is_inside(match.start(), quoted):
                    continue
                place = Place(view, clause, Subject(USER, match.start()), talk)
                if not rule.negates and self.denies(view, match.start(), match.end()):
                    continue
                told = [each for each in rule.read(match, place) if self._is_own(view, clause, each)]
                yield from self._proposals(rule, told, place, taken, match.span())

    def _is_own(self, view: View, clause: Clause, told: Told) -> bool:
        return self.is_anothers is None or not self.is_anothers(view, clause, told)

    def _proposals(
        self, rule: Rule, told: Iterable[Told], place: Place, taken: list[tuple[str, int, int]], span: tuple[int, int]
    ) -> Iterator[Proposal]:
        for each in told:
            about = ".".join(each.key.split(".")[:2])
            if any(about == key and each.start < end and begin < each.end for key, begin, end in taken):
                continue
            if self.accepts is not None and not self.accepts(rule, each, place):
                continue
            taken.append((about, each.start, each.end))
            begin, end = min(span[0], each.start), max(span[1], each.end)
            confidence = rule.confidence if each.confidence is None else each.confidence
            yield Proposal(
                key=each.key,
                value=each.value,
                quote=place.view.verbatim(begin, end).strip(),
                confidence=confidence,
                why=f"{self.language}: {rule.name}",
            )


def _is_inside(at: int, stretches: Sequence[tuple[int, int]]) -> bool:
    return any(start <= at < end for start, end in stretches)
