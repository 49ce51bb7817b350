"""What the sentences of a message say, in a language that a table tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from muniment.core.limits import remembered
from muniment.memory.extraction.grammar import USER, TakenBack, Talk
from muniment.memory.extraction.languages.mentions import Mention, mentions_in, owner_at, owner_of_name
from muniment.memory.extraction.languages.tables import Rule, Table, table
from muniment.memory.extraction.languages.values import Value, key_part, read_values
from muniment.memory.extraction.sentences import Sentence
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["read_statements", "read_taken_back"]

CONFIDENCE, CONFIDENCE_TRIED_LITTLE = 0.9, 0.7
"""How sure a reading is; in languages that were tried on few chats so little that it waits for a decision."""
TRIED = frozenset({"chinese", "german", "korean"})
MASK = "\ufffc"
NOTHING = "-"
"""In the place of a value that is taken back: whichever stands."""
IRONY = "🙄"
PETS = ("dog", "cat", "pet")
_QUOTES = re.compile(
    "[\"“”„][^\"“”„\n]{0,400}[\"“”]|«[^»\n]{0,400}»|「[^」\n]{0,400}」|『[^』\n]{0,400}』|(?<!\\w)'[^'\n]{2,300}'(?!\\w)|‘[^’\n]{0,300}’"
)
_FAMILIES = dict.fromkeys(("user.schedule", "user.habit", "user.medication"), "user.habit")
"""What is done every Tuesday is one of these, whichever is read first."""
_KEY_SLOT = re.compile(r"<([a-z]+)>")


@remembered(8)
def _mask_quotes(text: str) -> str:
    """A text with what stands in quotation marks blotted out, sign by sign."""
    return _QUOTES.sub(lambda match: MASK * len(match[0]), text)


def read_statements(language: str, text: str, said: Sequence[Sentence], talk: Talk) -> Iterator[Proposal]:
    """What sentences of a message that are in one language say."""
    reading = Reading(table(language), {name: owner_of_name(name, kin) for name, kin in talk.names.items()})
    masked = _mask_quotes(text)
    for sentence in said:
        yield from reading.propose(masked[sentence.start : sentence.start + len(sentence.text)], sentence, talk)


def read_taken_back(language: str, text: str, said: Sequence[Sentence], talk: Talk) -> Iterator[TakenBack]:
    """What sentences of a message that are in one language take back of their speaker."""
    reading = Reading(table(language))
    masked = _mask_quotes(text)
    for sentence in said:
        yield from reading.taken_back(masked[sentence.start : sentence.start + len(sentence.text)], sentence, talk)


class _Clause(NamedTuple):
    start: int
    end: int
    is_asked: bool
    is_doubtful: bool
    is_past: bool
    denies: bool


@dataclass(slots=True)
class _Said:
    """A sentence while it is read."""

    text: str
    clauses: list[_Clause]
    mentions: list[Mention]
    default: str | None
    taken: list[tuple[str, int, int]] = field(default_factory=list)

    def clause_at(self, at: int) -> _Clause:
        return next((each for each in self.clauses if at < each.end), self.clauses[-1])


@dataclass(slots=True)
class Reading:
    """Reads a message sentence by sentence: whoever was spoken of is known in the next one."""

    table: Table
    names: dict[str, str] = field(default_factory=dict)
    last: str | None = USER
    is_greeted: bool = False
    has_children: bool = False

    def propose(self, masked: str, sentence: Sentence, talk: Talk) -> Iterator[Proposal]:
        """What a sentence says; `masked` is its text without what is quoted."""
        if talk.is_silent or self.table.form("silence").search(masked):
            talk.is_silent = True
            return
        self.is_greeted = self.is_greeted or self.table.form("greeting").search(masked) is not None
        self.has_children = self.has_children or self.table.form("children").search(masked) is not None
        said = _Said(masked, self._clauses(masked, sentence), mentions_in(self.table, masked, self.names), self.last)
        for rule in self.table.rules:
            for proposal in self._apply(rule, said, sentence):
                self._remember(proposal.key, str(proposal.value), talk)
                yield proposal
        if said.mentions:
            self.last = self._spoken_of(said.mentions[-1].owner)

    def _spoken_of(self, owner: str | None) -> str | None:
        """Of whom the next sentence speaks if it names nobody: where verbs do not tell, of nobody for sure."""
        is_sure = self.table.is_inflected or owner is None or owner == USER or owner.startswith("pet.")
        return owner if is_sure else None

    def taken_back(self, masked: str, sentence: Sentence, talk: Talk) -> Iterator[TakenBack]:
        """What a sentence takes back of its speaker."""
        if talk.is_silent or self.table.form("silence").search(masked):
            talk.is_silent = True
            return
        said = _Said(masked, self._clauses(masked, sentence), mentions_in(self.table, masked, {}), self.last)
        for rule in self.table.taken_back:
            match = rule.pattern.search(masked)
            if match is None or owner_at(said.mentions, match.start(), said.default) != USER:
                continue
            clause = said.clause_at(match.start())
            if clause.is_asked or clause.is_doubtful or clause.is_past:
                continue
            value = None if rule.value == NOTHING else rule.value
            if rule.slot is not None and match[rule.slot] is not None:
                read = next(read_values(self.table, rule.slot, masked, *match.span(rule.slot)), None)
                if read is None:
                    continue
                value = read.value
            quote = sentence.text[match.start() : match.end()].strip()
            yield TakenBack(f"{USER}.{rule.key}", value, quote, f"{self.table.language}: no longer {rule.key}")
            return

    def _clauses(self, text: str, sentence: Sentence) -> list[_Clause]:
        spans, start = [], 0
        for match in self.table.form("clause").finditer(text):
            if match.start() > start:
                spans.append((start, match.start()))
            start = match.end()
        if start < len(text) or not spans:
            spans.append((start, len(text)))
        asked = self._asked_from(text, spans, is_question=sentence.is_question)
        found, doubt, past = [], self.table.form("doubt"), self.table.form("past")
        is_doubtful = False
        for number, (begin, end) in enumerate(spans):
            is_doubtful = is_doubtful or doubt.search(text[begin:end]) is not None
            is_past = past.search(text[begin:end]) is not None
            denies = self.table.form("negation").search(text, begin, end) is not None
            found.append(_Clause(begin, end, number >= asked, is_doubtful, is_past, denies))
        return found

    def _asked_from(self, text: str, spans: list[tuple[int, int]], *, is_question: bool) -> int:
        for number, (begin, end) in enumerate(spans):
            if self.table.form("question").search(text[begin:end]):
                return number
        return len(spans) - 1 if is_question else len(spans)

    def _apply(self, rule: Rule, said: _Said, sentence: Sentence) -> Iterator[Proposal]:
        if "+" in rule.signs and not self.is_greeted and not self.table.form("introduction").search(said.text):
            return
        if "&" in rule.signs and not self.has_children:
            return
        for match in rule.pattern.finditer(said.text):
            at = match.start(rule.slot) if rule.slot is not None else match.start()
            if at < 0 or not self._holds(rule, said, match):
                continue
            owner = self._owner(rule, said, match)
            if owner is None:
                continue
            yield from self._proposals(rule, said, match, owner, sentence)

    def _holds(self, rule: Rule, said: _Said, match: re.Match[str]) -> bool:
        end = match.end(rule.slot) if rule.slot is not None else match.end()
        clause, last = said.clause_at(match.start()), said.clause_at(max(match.start(), end - 1))
        if "^" in rule.signs and said.text[clause.start : match.start()].strip():
            return False
        if "?" not in rule.signs and (clause.is_asked or (last.is_asked and rule.slot not in ("things", "allergen"))):
            return False
        if clause.is_past or ("~" not in rule.signs and clause.is_doubtful):
            return False
        if rule.key == "likes" and IRONY in said.text:
            return False
        return "!" in rule.signs or not clause.denies

    def _owner(self, rule: Rule, said: _Said, match: re.Match[str]) -> str | None:
        at = match.start() if self.table.is_inflected or rule.slot is None else match.start(rule.slot)
        owner = owner_at(said.mentions, at, said.default)
        if rule.is_owned:
            return "" if self.table.is_inflected or owner is not None else None
        if self.table.is_inflected and not rule.is_of_others:
            return USER
        if rule.is_of_others or "*" in rule.signs:
            return owner if owner not in (None, USER) else None
        return owner if "@" not in rule.signs or owner == USER else None

    def _proposals(
        self, rule: Rule, said: _Said, match: re.Match[str], owner: str, sentence: Sentence
    ) -> Iterator[Proposal]:
        key = f"{owner}.{rule.key}" if owner else rule.key
        key = _KEY_SLOT.sub(lambda slot: key_part(self.table, slot[1], match[slot[1]] or ""), key)
        if not all(key.split(".")):
            return
        values: Iterable[Value]
        if rule.slot is None:
            values = (Value(rule.value or "", match.start(), match.end()),)
        else:
            values = read_values(self.table, rule.slot, said.text, *match.span(rule.slot))
        for value in values:
            family = _FAMILIES.get(key, key)
            if any(family == other and value.start < end and start < value.end for other, start, end in said.taken):
                continue
            said.taken.append((family, value.start, value.end))
            begin, end = min(match.start(), value.start), max(value.end, match.start() + 1)
            yield Proposal(
                key=key,
                value=value.value,
                quote=sentence.text[begin:end].strip(),
                confidence=CONFIDENCE if self.table.language in TRIED else CONFIDENCE_TRIED_LITTLE,
                why=f"{self.table.language}: {rule.key}",
            )

    def _remember(self, key: str, name: str, talk: Talk) -> None:
        """A name that was told is known from here on."""
        first, _, kin = key.partition(".")
        if first == USER and kin in self.table.kin:
            talk.names.setdefault(name.casefold(), kin)
            self.names[name.casefold()] = owner_of_name(name, kin)
        elif first == USER and kin in PETS and len(name.split()) == 1:
            self.names[name.casefold()] = f"pet.{name.casefold()}"
            self.last = f"pet.{name.casefold()}"
