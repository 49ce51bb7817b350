"""Extract candidates from messages, by the closed list of `_rules` and by a model if given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from muniment.core.instants import format_instant, parse_instant
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES
from muniment.core.scope import Scope
from muniment.memory._extract_checks import is_nameless, why_unheard
from muniment.memory._fact_records import Candidate, Proposal, StoredCandidate, StoredFact, Unheard
from muniment.memory._rules import CONFIDENCE, extract_certain, find_endings
from muniment.memory.candidates import Proposed, propose
from muniment.memory.facts import facts_of_level, read_facts, request_fact, retract_fact
from muniment.memory.patches import Writer, texts_of
from muniment.store.items import latest
from muniment.store.ledger import LedgerEntry, entry_of_row
from muniment.store.reading import content_in, get_entry

__all__ = ["BY_RULES", "Speakers", "extract", "extract_from", "is_made_by", "list_unheard", "retract_old_facts"]

BY_RULES = "rules"
NAME = "user.name"
_FIRST, _INSTANT = datetime.min.replace(tzinfo=UTC), timedelta(microseconds=1)


def extract(writer: Writer, event_ids: Any, model: Any) -> list[Candidate]:
    """Extract candidates from the named events, or from all messages of this run, or of its session if the run has
    none, by rule and by a model if given.
    """
    if model is None:
        return extract_from(writer, _entries(writer, event_ids))
    from muniment.memory.extraction import extract_turns

    return extract_turns(writer, lambda: [entry for entry in _entries(writer, event_ids) if _is_said(entry)], model)


def list_unheard(writer: Writer, event_ids: Any) -> list[Unheard]:
    """The speakers in these messages whose words are ignored, by name."""
    voices = Speakers(writer)
    reasons = [(entry.speaker, voices.why_unheard(entry)) for entry in _entries(writer, event_ids) if _is_said(entry)]
    found = Counter((speaker, why) for speaker, why in reasons if speaker is not None and why is not None)
    return [Unheard(speaker=speaker, messages=count, why=why) for (speaker, why), count in sorted(found.items())]


def _entries(writer: Writer, event_ids: Any) -> list[LedgerEntry]:
    ctx, scope = writer.ctx, writer.scope
    if event_ids is None:
        return ctx.engine.read(scope.tenant_id, lambda reader: _written_in_run(reader, scope))
    named = texts_of(event_ids, "$.event_ids")
    return [get_entry(ctx, scope.tenant_id, id_, scope.user_id) for id_ in named]


def _written_in_run(reader: Reader, scope: Scope) -> list[LedgerEntry]:
    """Read the run's entries, or its session's if the run has no messages, so that a resumed session is read too."""
    own = _written(reader, scope, scope.session_id, ("run_id", "=", scope.run_id))
    return own if any(map(_is_said, own)) else _written(reader, scope, scope.session_id)


def _written(reader: Reader, scope: Scope, session_id: str, *more: Condition) -> list[LedgerEntry]:
    where: tuple[Condition, ...] = (("user_id", "=", scope.user_id), ("session_id", "=", session_id), *more)
    rows = select(reader, ENTRIES, where, order=("user_id", "session_id", "seq"))
    return [entry_of_row(scope.tenant_id, row) for row in rows]


def _is_said(entry: LedgerEntry) -> bool:
    return entry.kind == "message" and not entry.is_forgotten


def extract_from(writer: Writer, entries: Iterable[LedgerEntry], speakers: Speakers | None = None) -> list[Candidate]:
    """Turn each proposal into a candidate. Texts read before give the same candidates, not new ones.

    Pass the same `speakers` to consecutive calls.
    """
    made = _by_entry(writer, entries, Speakers(writer) if speakers is None else speakers)
    return [candidate for of_entry in made.values() for candidate in of_entry]


def _by_entry(writer: Writer, entries: Iterable[LedgerEntry], voices: Speakers) -> dict[str, list[Candidate]]:
    """The rules' results by entry, for all entries that speak for the user: read in time order, returned in the given
    order.
    """
    said = [entry for entry in entries if _is_said(entry) and voices.why_unheard(entry) is None]
    found: dict[str, list[Candidate]] = {}
    for entry in sorted(said, key=lambda entry: entry.ts):
        read = {each.candidate_id: each for each in _read(writer, entry)}
        found[entry.id] = list(read.values())
    return {id_: found[id_] for id_ in dict.fromkeys(entry.id for entry in said)}


def _read(writer: Writer, entry: LedgerEntry) -> Iterator[Candidate]:
    """Propose the end of facts that earlier words of the user stated, then those that this entry states."""
    if entry.role != "user":
        return
    tenant_id, user_id = writer.scope.tenant_id, writer.scope.user_id
    text = writer.ctx.engine.read(tenant_id, lambda reader: content_in(reader, tenant_id, entry.id, user_id))
    text = text[: entry.analysed_chars]
    for key, quote in find_endings(text).items():
        for value in writer.ctx.engine.read(tenant_id, partial(_ended, writer.scope, entry, key)):
            end = format_instant(max(parse_instant(entry.ts), _FIRST + _INSTANT) - _INSTANT)
            ending = Proposal(key=key, value=value, quote=quote, confidence=CONFIDENCE, why="says that it is over")
            yield propose(writer, _proposed(ending, entry, end))
    for each in extract_certain(text):
        yield propose(writer, _proposed(each, entry))


def _proposed(said: Proposal, entry: LedgerEntry, valid_to: str | None = None) -> Proposed:
    request = request_fact(
        key=said.key,
        value=said.value,
        sources=(entry.id,),
        quote=said.quote,
        confidence=said.confidence,
        valid_to=valid_to,
    )
    return Proposed(request, BY_RULES, said.why, must_quote=False)


def _ended(scope: Scope, entry: LedgerEntry, key: str, reader: Reader) -> list[Any]:
    """The values that the rules found for a key before an entry and that held until then."""
    facts = [each.fact for each in read_facts(reader, scope, key) if each.fact.scope_level == "user"]
    return [fact.value for fact in facts if _holds_until(fact, entry) and is_made_by(reader, fact, BY_RULES)]


def _holds_until(fact: StoredFact, entry: LedgerEntry) -> bool:
    here = [assertion for assertion in fact.assertions if entry.id in assertion.sources]
    if here:  # the entry was read before: its candidate exists, unless it stated the fact itself
        return all(assertion.valid_to is not None for assertion in here)
    is_older = all(assertion.since <= entry.ts for assertion in fact.assertions)
    return fact.status == "active" and is_older and (fact.until is None or fact.until >= entry.ts)


def is_made_by(reader: Reader, fact: StoredFact, proposer: str) -> bool:
    """True if a fact rests only on undecided proposals of one proposer."""
    return all(_is_proposed_by(reader, assertion.origin, proposer) for assertion in fact.assertions)


def _is_proposed_by(reader: Reader, origin: str | None, proposer: str) -> bool:
    item = None if origin is None else latest(reader, origin)
    if item is None or item.kind != "candidate" or item.body is None:
        return False
    candidate = StoredCandidate.from_wire(item.plain())
    return candidate.proposed_by == proposer and candidate.decided_by is None


# -- facts of older rules ------------------------------------------------------------------------------

_OLD_RULES = "patterns"
"""The proposer name of the rules of version 0.1."""


def retract_old_facts(writer: Writer) -> int:
    """Retract the user's facts found only by the rules of version 0.1 and not by today's; return their number.

    Facts that a caller also remembered, or a person decided on, are kept.
    """
    ctx, tenant_id = writer.ctx, writer.scope.tenant_id

    def find(reader: Reader) -> list[str]:
        facts = [each.fact for each in facts_of_level(reader, writer.scope, "user")]
        standing = [fact for fact in facts if fact.status in ("active", "disputed")]
        made = [fact for fact in standing if is_made_by(reader, fact, _OLD_RULES)]
        return [fact.fact_id for fact in made if not _is_found_today(reader, writer.scope, fact)]

    found = ctx.engine.read(tenant_id, find)
    for fact_id in found:
        retract_fact(writer, fact_id, (), "found by a rule of version 0.1, which is no longer held to be certain")
    return len(found)


def _is_found_today(reader: Reader, scope: Scope, fact: StoredFact) -> bool:
    sources = {source for assertion in fact.assertions for source in assertion.sources}
    texts = [content_in(reader, scope.tenant_id, source, scope.user_id) for source in sorted(sources)]
    return any((each.key, each.value) == (fact.key, fact.value) for text in texts for each in extract_certain(text))


# -- speakers -----------------------------------------------------------------------------------------


class Speakers:
    """Judges whether speakers speak for the user; loads names and sessions once, only for named speakers."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._names: tuple[str, ...] | None = None
        self._heard: dict[str, frozenset[str | None]] = {}
        self.user_id = writer.scope.user_id

    def why_unheard(self, entry: LedgerEntry) -> str | None:
        """Judge a message of role `user` by its speaker; the rules read no other roles."""
        if entry.role != "user" or is_nameless(entry.speaker):
            return None
        scope = entry.scope
        return why_unheard(entry.speaker, scope.user_id, self._known(), lambda: self._voices(scope.session_id))

    def _known(self) -> tuple[str, ...]:
        """The user's names: as facts, and as used by those who stated them."""
        if self._names is None:
            self._names = self._writer.ctx.engine.read(self._writer.scope.tenant_id, self._read_names)
        return self._names

    def _read_names(self, reader: Reader) -> tuple[str, ...]:
        scope = self._writer.scope
        facts = [each.fact for each in read_facts(reader, scope, NAME) if each.fact.scope_level == "user"]
        facts = [fact for fact in facts if fact.status == "active"]
        sources = tuple(sorted({id_ for fact in facts for assertion in fact.best for id_ in assertion.sources}))
        rows = select(reader, ENTRIES, (("id", "in", sources),), order=("id",)) if sources else []
        speakers = [entry.speaker for row in rows if (entry := entry_of_row(scope.tenant_id, row)).role == "user"]
        return (
            *(fact.value for fact in facts if isinstance(fact.value, str)),
            *(speaker for speaker in speakers if speaker is not None and not is_nameless(speaker)),
        )

    def _voices(self, session_id: str) -> frozenset[str | None]:
        """The speaker names on messages of role `user` in a session; None for a message without one."""
        if session_id not in self._heard:
            scope = self._writer.scope
            entries = self._writer.ctx.engine.read(
                scope.tenant_id, lambda reader: _written(reader, scope, session_id, ("kind", "=", "message"))
            )
            self._heard[session_id] = frozenset(
                None if is_nameless(entry.speaker) else entry.speaker
                for entry in entries
                if entry.role == "user" and _is_said(entry)
            )
        return self._heard[session_id]
