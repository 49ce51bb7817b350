"""The acknowledged state, in plain dictionaries: what a store must return after any sequence of events."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

__all__ = ["Assertion", "BrokenPromise", "Event", "HeldBuild", "HeldFact", "Model", "Owner", "Word", "must"]

_WORD = re.compile(r"zq[a-p]{12}")
"""A word unique to one step of one story."""
_HEX_TO_LETTER = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


class BrokenPromise(AssertionError):
    """A store broke a promise; the message names it, with the observation."""


def must(holds: object, promise: str, seen: object = "") -> None:
    """Raise `BrokenPromise` unless it holds."""
    if not holds:
        raise BrokenPromise(f"{promise}: {seen!s:.600}" if seen != "" else promise)


class Owner(NamedTuple):
    """A tenant and user."""

    tenant_id: str
    user_id: str


@dataclass(slots=True)
class Word:
    """A word that was used once: who may see it, and whether it was forgotten."""

    owner: Owner
    is_gone: bool = False
    is_supposed: bool = False
    """It is part of a hypothesis: no responder may see it."""


@dataclass(slots=True)
class Event:
    """An acknowledged message or tool result."""

    id: str
    owner: Owner
    session_id: str
    content: str
    trust: str
    word: str
    is_gone: bool = False


@dataclass(slots=True)
class Assertion:
    """One assertion of a fact: its events, and its session."""

    sources: tuple[str, ...]
    session_id: str


@dataclass(slots=True)
class HeldFact:
    """An acknowledged fact."""

    id: str
    owner: Owner
    key: str
    value: str
    assertions: list[Assertion]
    is_gone: bool = False


@dataclass(slots=True)
class HeldBuild:
    """A composed packet, and whether something of its owner was forgotten since."""

    id: str
    owner: Owner
    session_id: str
    purpose: str
    packet_bytes: bytes
    text: str
    may_be_gone: bool = False


@dataclass(slots=True)
class Derived:
    """Another thing derived from events: its word goes when all of them go, or its session."""

    word: str
    owner: Owner
    sources: tuple[str, ...]
    session_id: str
    falls_with_any: bool = False


@dataclass(slots=True)
class Model:
    """Everything acknowledged in one story."""

    seed: int
    tenants: tuple[str, ...]
    now: datetime = datetime(2026, 1, 5, 9, tzinfo=UTC)
    events: dict[str, Event] = field(default_factory=dict)
    facts: dict[str, HeldFact] = field(default_factory=dict)
    builds: dict[str, HeldBuild] = field(default_factory=dict)
    derived: list[Derived] = field(default_factory=list)
    words: dict[str, Word] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Idempotency key → the call made under it, with the id it returned."""
    chats: dict[tuple[Owner, str], list[dict[str, str]]] = field(default_factory=dict)
    receipts: dict[str, str] = field(default_factory=dict)
    """Receipt id → tenant."""
    is_scrub_due: bool = False
    """A forget was interrupted after its commit: residue in files goes with the next scrub."""
    loads: list[dict[str, Any]] = field(default_factory=list)
    """Bulk loads, complete or interrupted."""
    runs: dict[tuple[Owner, str], int] = field(default_factory=dict)
    """Number of finished runs of a session."""

    # -- words

    def new_word(self, *parts: object) -> str:
        """Return a fresh word of this story; `parts` name its use."""
        digest = sha256(repr((self.seed, *parts)).encode()).hexdigest()
        return "zq" + digest[:12].translate(_HEX_TO_LETTER)

    def say(self, word: str, owner: Owner, *, is_supposed: bool = False) -> None:
        self.words[word] = Word(owner, is_supposed=is_supposed)

    def check_words(self, text: str, where: str, tenant_id: str, user_id: str | None = None) -> None:
        """Check that no word in an answer is another's, or forgotten; for an answer to no particular user, the tenant's
        count.
        """
        for found in dict.fromkeys(_WORD.findall(text)):
            word = self.words.get(found)
            must(word is not None, f"{where} holds a word that was never acknowledged", found)
            assert word is not None
            own = word.owner.tenant_id == tenant_id and user_id in (None, word.owner.user_id)
            must(own, f"{where} of {tenant_id}/{user_id} holds a word of {word.owner}", found)
            must(not word.is_gone, f"{where} holds a word that was forgotten", found)
        for secret in self.secrets:
            must(secret not in text, f"{where} holds a secret")

    def gone_words(self) -> list[str]:
        return [word for word, each in self.words.items() if each.is_gone]

    # -- who is there

    def owners(self) -> list[Owner]:
        return list(dict.fromkeys(event.owner for event in self.events.values()))

    def events_of(self, owner: Owner, session_id: str | None = None, *, live: bool = True) -> list[Event]:
        return [
            event
            for event in self.events.values()
            if event.owner == owner and session_id in (None, event.session_id) and not (live and event.is_gone)
        ]

    def live_events(self) -> list[Event]:
        return [event for event in self.events.values() if not event.is_gone]

    def event_of_word(self, word: str) -> Event | None:
        return next((event for event in self.events.values() if event.word == word), None)

    def live_facts(self, owner: Owner | None = None) -> list[HeldFact]:
        return [fact for fact in self.facts.values() if not fact.is_gone and owner in (None, fact.owner)]

    def run_of(self, owner: Owner, session_id: str) -> str:
        """Return the id of the current run of a session."""
        ended = self.runs.get((owner, session_id), 0)
        return f"run-{owner.tenant_id}-{owner.user_id}-{session_id}-{ended}"

    def end_run(self, owner: Owner, session_id: str) -> None:
        self.runs[(owner, session_id)] = self.runs.get((owner, session_id), 0) + 1

    def at(self, skew: timedelta = timedelta(0)) -> datetime:
        return self.now + skew

    # -- forgetting

    def forget(self, ids: Collection[str], sessions: Collection[tuple[Owner, str]] = ()) -> None:
        """Record a forget of these events and all content of the sessions, with everything that depended on them
        alone.
        """
        owners = {self.events[id_].owner for id_ in ids} | {owner for owner, _ in sessions}
        for id_ in ids:
            self.events[id_].is_gone = True
            self.words[self.events[id_].word].is_gone = True
            self.chats.pop((self.events[id_].owner, self.events[id_].session_id), None)
        for fact in self.live_facts():
            fact.assertions = [each for each in fact.assertions if self._stands(each, fact.owner, sessions)]
            if not fact.assertions:
                self.drop_fact(fact)
        for each in self.derived:
            lost = [source for source in each.sources if self.events[source].is_gone]
            falls = lost if each.falls_with_any else len(lost) == len(each.sources) and lost
            if falls or (each.owner, each.session_id) in sessions:
                self.words[each.word].is_gone = True
        for owner, session_id in sessions:
            self.end_run(owner, session_id)
            self.chats.pop((owner, session_id), None)
        self.shake_builds(owners)

    def _stands(self, assertion: Assertion, owner: Owner, sessions: Collection[tuple[Owner, str]]) -> bool:
        assertion.sources = tuple(source for source in assertion.sources if not self.events[source].is_gone)
        return bool(assertion.sources) and (owner, assertion.session_id) not in sessions

    def drop_fact(self, fact: HeldFact) -> None:
        """Remove a fact and its words, except those that an event or another fact still contains."""
        fact.is_gone = True
        said = {event.word for event in self.live_events()}
        said.update(word for other in self.live_facts() for word in _WORD.findall(other.value))
        for word in _WORD.findall(fact.value):
            self.words[word].is_gone = self.words[word].is_gone or word not in said
        self.shake_builds({fact.owner})

    def shake_builds(self, owners: Iterable[Owner]) -> None:
        """Record that something of these owners was forgotten: their builds may report it from now on."""
        touched = set(owners)
        for build in self.builds.values():
            build.may_be_gone = build.may_be_gone or build.owner in touched
