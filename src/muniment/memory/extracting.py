"""Looking for candidates in what was said: by patterns, and by a model where one is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from muniment.core.instants import format_instant, parse_instant
from muniment.core.policy import FactPolicy
from muniment.core.ports.engine import Condition, Reader
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES
from muniment.core.scope import Scope
from muniment.core.text.times.when import resolve
from muniment.memory.candidates import Proposed, propose
from muniment.memory.extraction import patterns
from muniment.memory.extraction.grammar import Correction, TakenBack
from muniment.memory.extraction.instructions.endings import Standing, ended_by, may_end
from muniment.memory.extraction.speakers import is_nameless, why_unheard
from muniment.memory.extraction.taken_back import opposite_of
from muniment.memory.fact_reading import read_facts
from muniment.memory.fact_writing import request_fact
from muniment.memory.facts.candidate_records import Candidate, Proposal, Unheard
from muniment.memory.facts.records import INSTRUCTION_KEYS, StoredFact
from muniment.memory.facts.rules import is_many_valued, names_value
from muniment.memory.patches import Writer, texts_of
from muniment.store.ledger import LedgerEntry, entry_of_row
from muniment.store.reading import content_in, get_entry

__all__ = ["Speakers", "extract", "extract_from", "list_unheard"]

BY_PATTERNS = "patterns"
NAME = "user.name"
_FIRST, _INSTANT = datetime.min.replace(tzinfo=UTC), timedelta(microseconds=1)


def extract(writer: Writer, event_ids: Any, model: Any) -> list[Candidate]:
    """Candidates from the named events, or from all messages of this run, or of its session where the run has none: by
    patterns, and by a model where given."""
    if model is None:
        return extract_from(writer, _entries(writer, event_ids))
    from muniment.memory.pending_extracting import extract_turns

    return extract_turns(writer, lambda: [entry for entry in _entries(writer, event_ids) if _is_said(entry)], model)


def list_unheard(writer: Writer, event_ids: Any) -> list[Unheard]:
    """Whose words in these messages are left aside, by name."""
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
    """Read the run's entries, or its session's where nothing was said in the run itself. So whoever takes a session
    up again has it read."""
    own = _written(reader, scope, scope.session_id, ("run_id", "=", scope.run_id))
    return own if any(map(_is_said, own)) else _written(reader, scope, scope.session_id)


def _written(reader: Reader, scope: Scope, session_id: str, *more: Condition) -> list[LedgerEntry]:
    where: tuple[Condition, ...] = (("user_id", "=", scope.user_id), ("session_id", "=", session_id), *more)
    rows = select(reader, ENTRIES, where, order=("user_id", "session_id", "seq"))
    return [entry_of_row(scope.tenant_id, row) for row in rows]


def _is_said(entry: LedgerEntry) -> bool:
    return entry.kind == "message" and not entry.is_forgotten


def extract_from(writer: Writer, entries: Iterable[LedgerEntry]) -> list[Candidate]:
    """Each proposal as a candidate. What a text was read for before gives the same candidates, not new ones."""
    return [candidate for made in _by_entry(writer, entries).values() for candidate in made]


def _by_entry(writer: Writer, entries: Iterable[LedgerEntry]) -> dict[str, list[Candidate]]:
    """What patterns find, by entry, for all that speak for the user.

    Texts are read in the order of their times, so that what takes a fact back finds it; they are answered as given.
    """
    voices = Speakers(writer)
    said = [entry for entry in entries if _is_said(entry) and voices.why_unheard(entry) is None]
    found: dict[str, list[Candidate]] = {}
    names = _people(writer) if said else {}
    for entry in sorted(said, key=lambda entry: entry.ts):
        read = {each.candidate_id: each for each in _read(writer, entry, names)}
        found[entry.id] = list(read.values())
    return {id_: found[id_] for id_ in dict.fromkeys(entry.id for entry in said)}


def _people(writer: Writer) -> dict[str, str]:
    """The names of the user's people, in small letters, and what each is to them: `kim` → `partner`."""
    facts = writer.ctx.engine.read(
        writer.scope.tenant_id, lambda reader: [each.fact for each in read_facts(reader, writer.scope)]
    )
    found: dict[str, str] = {}
    for fact in facts:
        kin = fact.key.removeprefix("user.")
        is_name = kin in patterns.KIN and fact.status == "active" and isinstance(fact.value, str)
        if is_name and fact.scope_level == "user":
            found[str(fact.value).casefold()] = kin
    return found


def _read(writer: Writer, entry: LedgerEntry, names: dict[str, str]) -> Iterator[Candidate]:
    text = writer.ctx.engine.read(
        writer.scope.tenant_id,
        lambda reader: content_in(reader, writer.scope.tenant_id, entry.id, writer.scope.user_id),
    )
    text = text[: entry.analysed_chars]
    said = patterns.propose(text, entry.role, entry.ts, names)
    _know(names, said, writer.ctx.policy.memory.facts)
    for correction in patterns.corrections(text, entry.role):
        yield from _put_right(writer, correction, entry)
    taken_back = patterns.take_back(text, entry.role)
    taken_back += [back for each in said if (back := opposite_of(each)) is not None]
    if entry.role == "user" and may_end(text):
        taken_back += _ended_instructions(writer, text)
    for back in taken_back:
        for value in _ended(writer, back, entry):
            yield propose(writer, _ending(back, value, entry))
    for each in said:
        yield propose(writer, _proposed(each, entry.id))


def _know(names: dict[str, str], said: Iterable[Proposal], policy: FactPolicy) -> None:
    """The names of people that were told. Of whom there is one at a time, the new one takes the place of the old."""
    for each in said:
        kin = each.key.removeprefix("user.")
        if kin not in patterns.KIN:
            continue
        if not is_many_valued(each.key, policy):
            for old in [name for name, known in names.items() if known == kin]:
                del names[old]
        names[str(each.value).casefold()] = kin


def _proposed(proposal: Proposal, event_id: str) -> Proposed:
    request = request_fact(
        key=proposal.key,
        value=proposal.value,
        sources=(event_id,),
        quote=proposal.quote,
        confidence=proposal.confidence,
    )
    return Proposed(request, BY_PATTERNS, proposal.why, must_quote=False)


# -- what is put right --------------------------------------------------------------------------------


def _put_right(writer: Writer, correction: Correction, entry: LedgerEntry) -> Iterator[Candidate]:
    """What was said before in the session, with other words: the old value ends, the new one stands."""

    def standing(reader: Reader) -> list[StoredFact]:
        facts = [each.fact for each in read_facts(reader, writer.scope)]
        facts = [fact for fact in facts if fact.status == "active" and fact.scope_level == "user"]
        meant = [fact for fact in facts if isinstance(fact.value, str) and correction.put_right(fact.value) is not None]
        return [fact for fact in meant if _is_of_session(reader, fact, entry)]

    for fact in writer.ctx.engine.read(writer.scope.tenant_id, standing):
        why, said = "corrected in the same session", str(fact.value)
        back = TakenBack(fact.key, said, correction.quote, why)
        if is_many_valued(fact.key, writer.ctx.policy.memory.facts):
            yield propose(writer, _ending(back, fact.value, entry))
        proposal = Proposal(
            key=fact.key,
            value=correction.put_right(said),
            quote=correction.quote,
            confidence=back.confidence,
            why=why,
        )
        yield propose(writer, _proposed(proposal, entry.id))


def _is_of_session(reader: Reader, fact: StoredFact, entry: LedgerEntry) -> bool:
    """Was it said in this session, before these words?"""
    sources = tuple(sorted({id_ for assertion in fact.assertions for id_ in assertion.sources}))
    rows = select(reader, ENTRIES, (("id", "in", sources),), order=("id",))
    told = [entry_of_row(entry.scope.tenant_id, row) for row in rows]
    return any(
        each.scope.session_id == entry.scope.session_id and each.ts <= entry.ts for each in told if each.id != entry.id
    )


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


class Speakers:
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
