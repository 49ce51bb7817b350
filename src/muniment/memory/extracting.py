"""Looking for candidates in what was said: by patterns, and by a model where one is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from muniment.core.instants import format_instant, parse_instant
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES
from muniment.core.scope import Scope
from muniment.core.text.times.when import resolve
from muniment.errors import InvalidInput
from muniment.memory.candidate_deciding import Proposed, propose
from muniment.memory.extraction import patterns
from muniment.memory.extraction.instructions.endings import Standing, ended_by, may_end
from muniment.memory.extraction.model import Model
from muniment.memory.extraction.speakers import is_nameless, why_unheard
from muniment.memory.extraction.taken_back import TakenBack, opposite_of
from muniment.memory.fact_reading import read_facts
from muniment.memory.fact_writing import request_fact
from muniment.memory.facts.candidate_records import Candidate, Proposal, Unheard
from muniment.memory.facts.records import INSTRUCTION_KEYS, StoredFact
from muniment.memory.facts.rules import names_value
from muniment.memory.patches import Writer, texts_of
from muniment.store.ledger.records import LedgerEntry
from muniment.store.ledger.rows import entry_of_row
from muniment.store.reading import content_in, get_entry

__all__ = ["extract", "extract_from", "list_unheard"]

BY_PATTERNS = "patterns"
NAME = "user.name"
_FIRST, _INSTANT = datetime.min.replace(tzinfo=UTC), timedelta(microseconds=1)


def extract(writer: Writer, event_ids: Any, model: Model | None) -> list[Candidate]:
    """Candidates from the named events, or from all messages of this run."""
    if model is not None and not callable(getattr(model, "propose", None)):
        raise InvalidInput(
            "a model should be able to propose", path="$.model", hint="see muniment.memory.extraction.model.Model"
        )
    return extract_from(writer, _entries(writer, event_ids), model)


def list_unheard(writer: Writer, event_ids: Any) -> list[Unheard]:
    """Whose words in these messages are left aside, by name."""
    voices = _Speakers(writer)
    reasons = [(entry.speaker, voices.why_unheard(entry)) for entry in _entries(writer, event_ids) if _is_said(entry)]
    found = Counter((speaker, why) for speaker, why in reasons if speaker is not None and why is not None)
    return [Unheard(speaker=speaker, messages=count, why=why) for (speaker, why), count in sorted(found.items())]


def _entries(writer: Writer, event_ids: Any) -> list[LedgerEntry]:
    ctx, scope = writer.ctx, writer.scope
    if event_ids is None:
        return ctx.engine.read(
            scope.tenant_id, lambda reader: _written(reader, scope, scope.session_id, ("run_id", "=", scope.run_id))
        )
    named = texts_of(event_ids, "$.event_ids")
    return [get_entry(ctx, scope.tenant_id, id_, scope.user_id) for id_ in named]


def _written(reader: Reader, scope: Scope, session_id: str, *more: Condition) -> list[LedgerEntry]:
    where: tuple[Condition, ...] = (("user_id", "=", scope.user_id), ("session_id", "=", session_id), *more)
    rows = select(reader, ENTRIES, where, order=("user_id", "session_id", "seq"))
    return [entry_of_row(scope.tenant_id, row) for row in rows]


def _is_said(entry: LedgerEntry) -> bool:
    return entry.kind == "message" and not entry.is_forgotten


def extract_from(writer: Writer, entries: Iterable[LedgerEntry], model: Model | None = None) -> list[Candidate]:
    """Each proposal as a candidate. What a text was read for before gives the same candidates, not new ones.

    Texts are read in the order of their times, so that what takes a fact back finds it; they are answered as given.
    """
    voices = _Speakers(writer)
    said = [entry for entry in entries if _is_said(entry) and voices.why_unheard(entry) is None]
    found: dict[str, list[Candidate]] = {}
    for entry in sorted(said, key=lambda entry: entry.ts):
        found[entry.id] = list(_read(writer, entry, model))
    return [candidate for id_ in dict.fromkeys(entry.id for entry in said) for candidate in found[id_]]


def _read(writer: Writer, entry: LedgerEntry, model: Model | None) -> Iterator[Candidate]:
    text = writer.ctx.engine.read(
        writer.scope.tenant_id,
        lambda reader: content_in(reader, writer.scope.tenant_id, entry.id, writer.scope.user_id),
    )
    said = [(each, BY_PATTERNS) for each in patterns.propose(text, entry.role, entry.ts)]
    taken_back = patterns.take_back(text, entry.role)
    taken_back += [back for each, _ in said if (back := opposite_of(each)) is not None]
    if entry.role == "user" and may_end(text):
        taken_back += _ended_instructions(writer, text)
    for back in taken_back:
        for value in _ended(writer, back, entry):
            yield propose(writer, _ending(back, value, entry))
    if model is not None:
        said += [(each, f"model:{model.name}") for each in model.propose(text, entry.role, entry.ts)]
    for each, proposed_by in said:
        yield propose(writer, _proposed(each, entry.id, proposed_by))


def _proposed(proposal: Proposal, event_id: str, proposed_by: str) -> Proposed:
    request = request_fact(
        key=proposal.key,
        value=proposal.value,
        sources=(event_id,),
        quote=proposal.quote,
        confidence=proposal.confidence,
    )
    return Proposed(request, proposed_by, proposal.why, must_quote=False)


# -- what is taken back -------------------------------------------------------------------------------


def _ended(writer: Writer, back: TakenBack, entry: LedgerEntry) -> list[Any]:
    """The values that the words take back: those that stand, of facts that were said before and not since."""
    standing = writer.ctx.engine.read(
        writer.scope.tenant_id, lambda reader: [each.fact for each in read_facts(reader, writer.scope, back.key)]
    )
    return [fact.value for fact in standing if _is_taken_back(fact, back, entry)]


def _ended_instructions(writer: Writer, text: str) -> list[TakenBack]:
    """What the words end of what the user asked for before, by key and value."""
    held = writer.ctx.engine.read(writer.scope.tenant_id, lambda reader: read_facts(reader, writer.scope))
    standing = [
        Standing(each.fact.key, each.fact.value)
        for each in held
        if each.fact.key.startswith(INSTRUCTION_KEYS) and isinstance(each.fact.value, str)
    ]
    ended = ended_by(text, list(dict.fromkeys(standing)))
    return [TakenBack(each.standing.key, each.standing.text, each.quote, each.why) for each in ended]


def _is_taken_back(fact: StoredFact, back: TakenBack, entry: LedgerEntry) -> bool:
    is_named = back.value is None or names_value(back.value, fact.value)
    if fact.scope_level != "user" or not is_named:
        return False
    here = [assertion for assertion in fact.assertions if entry.id in assertion.sources]
    if here:  # it was read before: its candidate is there, unless the same message says that the fact holds
        return all(assertion.valid_to is not None for assertion in here)
    moment = _taken_back_at(back, entry)
    is_older = all(assertion.since <= moment for assertion in fact.assertions)
    return fact.status == "active" and is_older and (fact.until is None or fact.until >= entry.ts)


def _taken_back_at(back: TakenBack, entry: LedgerEntry) -> str:
    """`I quit my job two years ago` says nothing of the job that somebody told of since, unless it is named."""
    if back.value is not None:
        return entry.ts
    said = parse_instant(entry.ts).date()
    ends = [f"{window.end.isoformat()}T23:59:59.999999Z" for window in resolve(back.quote, said)]
    return min([entry.ts, *ends])


def _ending(back: TakenBack, value: Any, entry: LedgerEntry) -> Proposed:
    """The proposal that ends a fact: it repeats the fact, which held until just before these words."""
    end = format_instant(max(parse_instant(entry.ts), _FIRST + _INSTANT) - _INSTANT)
    request = request_fact(
        key=back.key, value=value, sources=(entry.id,), quote=back.quote, confidence=back.confidence, valid_to=end
    )
    return Proposed(request, BY_PATTERNS, back.why, must_quote=False)


# -- who speaks ---------------------------------------------------------------------------------------


class _Speakers:
    """Who speaks for the user; looks up names and sessions once, and only where a speaker has a name to be judged."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._names: tuple[str, ...] | None = None
        self._heard: dict[str, frozenset[str | None]] = {}

    def why_unheard(self, entry: LedgerEntry) -> str | None:
        """Only messages of role `user` are judged by their speaker; patterns read no others."""
        if entry.role != "user" or is_nameless(entry.speaker):
            return None
        scope = entry.scope
        return why_unheard(entry.speaker, scope.user_id, self._known(), lambda: self._voices(scope.session_id))

    def _known(self) -> tuple[str, ...]:
        """The user's names: as facts, and as those who stated them are called."""
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
        """The names under which messages of role `user` stand in a session; None is a message without one."""
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
