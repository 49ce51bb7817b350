"""Write another system's content into the ledger: never twice, never partially, and never presented as observed.

A source is read to its end before anything is written. Then each conversation is one transaction (a very long one,
several), and repeating an import continues where an earlier one stopped: existing items are recognised by id and words.
Content that was forgotten here is not brought back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from muniment.contracts.portable import PortableFact, PortableMemory, PortableMessage, PortableSession, PortableSummary
from muniment.core.instants import format_instant, parse_instant
from muniment.core.limits import checkpoint
from muniment.core.ports.engine import Lock, Reader, Transaction
from muniment.core.ports.rows import by_ids
from muniment.core.ports.schema import ENTRIES
from muniment.core.scope import TRUST_RANK, Origin, Trust, is_nobody_s, scope_given
from muniment.errors import InvalidInput, MunimentError
from muniment.memory._fact_records import StoredFact, same_value
from muniment.memory.facts import FactRequest, dispute_fact, facts_of_level, plan_fact, request_fact, retract_fact
from muniment.memory.patches import Decided, Writer, append_decided, cleaned, read_evidence
from muniment.memory.sessions import newest_given, summarize
from muniment.moving.portable import LEFT_OUT_MAX, Found, LeftOut, MoveReport, kind_of, not_carried
from muniment.moving.sources import Source
from muniment.store.admission import admit, trust_of
from muniment.store.append import append, opening_draft
from muniment.store.context import Context
from muniment.store.items import latest, lock_memory, taken_ids
from muniment.store.ledger import INSTRUCTION_LIKE, EntryDraft, entry_of_row
from muniment.store.reading import content_in
from muniment.store.turns import text_of

# -- fact importing -------------------------------------------------------------------------------------


BATCH_FACTS = 200
_IMPORTED = "imported from "


class _Saying(NamedTuple):
    """A fact to assert, with its finder and its order in the source."""

    path: str
    order: int
    fact_id: str
    request: FactRequest


class FactImport:
    """Facts and summaries of one user, held back until all of their evidence has been imported."""

    def __init__(
        self,
        writer: Writer,
        dry_run: bool,
        id_here: Callable[[str], str | None],
        leave: Callable[[LeftOut], None],
        written: Counter[str],
        known: Counter[str],
    ) -> None:
        """Takes `id_here`, which maps a source's event id to the id here; adds counts to `written` and `known`."""
        self._writer = writer
        self._dry_run = dry_run
        self._id_here = id_here
        self._leave = leave
        self._written = written
        self._known = known
        self._facts: list[tuple[str, PortableFact]] = []
        self._summaries: list[tuple[str, PortableSummary]] = []

    def add(self, path: str, item: PortableFact | PortableSummary) -> None:
        if isinstance(item, PortableFact):
            self._facts.append((path, item))
        else:
            self._summaries.append((path, item))

    def finish(self) -> None:
        """Write all facts in their original order."""
        sayings = sorted(self._given_facts(), key=lambda each: each.order)
        for start in range(0, len(sayings), BATCH_FACTS):
            self._write(sayings[start : start + BATCH_FACTS])
        if not self._dry_run:
            for path, fact in self._facts:
                self._object(path, fact)
        for path, summary in self._summaries:
            self._summarize(path, summary)

    # -- facts ----------------------------------------------------------------------------------------

    def _given_facts(self) -> Iterable[_Saying]:
        for path, fact in self._facts:
            for number, assertion in enumerate(fact.assertions):
                sources = self._sources(assertion.sources)
                if not sources:
                    self._leave(LeftOut(path, "facts", "what it rests on is not here", is_loss=number == 0))
                    continue
                try:
                    request = request_fact(
                        key=fact.key, value=fact.value, sources=sources, confidence=assertion.confidence,
                        valid_from=assertion.valid_from, valid_to=assertion.valid_to, notes=assertion.notes,
                        quote=assertion.quote, is_preference=fact.is_preference,
                    )  # fmt: skip
                except MunimentError as error:
                    self._leave(LeftOut(path, "facts", error.message))
                    continue
                yield _Saying(path, assertion.order, fact.id, request)

    def _sources(self, named: Sequence[str]) -> tuple[str, ...]:
        return tuple(here for source in named if (here := self._id_here(source)) is not None)

    def _write(self, sayings: Sequence[_Saying]) -> None:
        """Assert facts in one transaction; each sees the effect of the one before it."""
        writer, ctx = self._writer, self._writer.ctx
        tally: Counter[str] = Counter()
        if self._dry_run:
            ctx.engine.read(writer.scope.tenant_id, lambda reader: self._count(reader, sayings, tally))
        else:
            ctx.engine.write(writer.scope.tenant_id, lambda tx: self._say(tx, sayings, tally))
        self._written["facts"] += tally["written"]
        self._known["facts"] += tally["known"]

    def _count(self, reader: Reader, sayings: Sequence[_Saying], tally: Counter[str]) -> None:
        tally.clear()
        for each in sayings:
            tally["known" if self._is_said(reader, each) else "written"] += 1

    def _say(self, tx: Transaction, sayings: Sequence[_Saying], tally: Counter[str]) -> None:
        scope = self._writer.scope
        tally.clear()
        tx.do(Lock(("session", scope.user_id, scope.session_id)))
        lock_memory(tx, scope.user_id)
        for each in sayings:
            if self._is_said(tx, each):
                tally["known"] += 1
                continue
            request = each.request
            evidence = read_evidence(tx, scope, request.sources)
            if request.quote is not None and not self._stands(tx, request):
                request = request.model_copy(update={"quote": None})
            fact_id = each.fact_id if latest(tx, each.fact_id) is None else self._writer.ctx.ids.new("fct")
            planned = plan_fact(tx, self._writer, request, fact_id, evidence)
            append_decided(tx, self._writer, Decided([planned.draft], planned.after))
            tally["written"] += 1

    def _stands(self, reader: Reader, request: FactRequest) -> bool:
        """True if the quote occurs in a source as stored here, with secrets removed."""
        scope = self._writer.scope
        texts = (content_in(reader, scope.tenant_id, source, scope.user_id) for source in request.sources)
        return any((request.quote or "") in text for text in texts)

    def _is_said(self, reader: Reader, each: _Saying) -> bool:
        """True if this was asserted before on the same evidence, even if it was forgotten since."""
        item = latest(reader, each.fact_id)
        if item is not None and item.kind == "fact" and item.body is None:
            return True
        return any(
            _holds(fact.fact, each) for fact in facts_of_level(reader, self._writer.scope, "user", each.request.key)
        )

    def _object(self, path: str, fact: PortableFact) -> None:
        """Retract or dispute a fact as the source did."""
        item = self._writer.ctx.engine.read(self._writer.scope.tenant_id, lambda reader: latest(reader, fact.id))
        if item is None or item.kind != "fact" or item.body is None or item.status == fact.status:
            return
        objections = [(self._sources(each.sources), each.reason) for each in fact.objections or ()]
        sources, reason = objections[-1] if objections else ((), None)
        try:
            if fact.is_retracted and item.status in ("active", "disputed"):
                retract_fact(self._writer, fact.id, sources, reason)
            elif fact.status == "disputed" and item.status == "active" and objections:
                dispute_fact(self._writer, fact.id, sources, reason)
        except MunimentError as error:
            self._leave(LeftOut(path, "facts", f"that it was objected to: {error.message}"))

    # -- summaries ------------------------------------------------------------------------------------

    def _summarize(self, path: str, summary: PortableSummary) -> None:
        sources = self._sources(summary.sources)
        if not sources:
            self._leave(LeftOut(path, "summaries", "what it rests on is not here"))
            return
        scope = self._writer.scope.model_copy(
            update={"session_id": summary.session_id, "run_id": _run_id(self._writer, summary.session_id)}
        )
        there = self._writer.ctx.engine.read(
            scope.tenant_id, lambda reader: newest_given(reader, scope.user_id, summary.session_id)
        )
        text = summary.text if summary.text.startswith(_IMPORTED) else f"{_IMPORTED}muniment: {summary.text}"
        if there is not None and there.text in (summary.text, text):
            self._known["summaries"] += 1
            return
        if not self._dry_run:
            writer = Writer(self._writer.ctx, scope, self._writer.opening, frozenset())
            try:
                summarize(writer, text, sources)
            except MunimentError as error:
                self._leave(LeftOut(path, "summaries", error.message))
                return
        self._written["summaries"] += 1


def _run_id(writer: Writer, session_id: str) -> str:
    named = "\x00".join((writer.scope.user_id, writer.scope.agent_id, session_id, "summary"))
    return "import-" + sha256(named.encode()).hexdigest()[:24]


def _holds(fact: StoredFact, each: _Saying) -> bool:
    """True if this is one of the fact's assertions."""
    sources = set(each.request.sources)
    return same_value(fact.value, each.request.value) and any(
        set(assertion.sources) == sources and assertion.valid_from == each.request.valid_from
        for assertion in fact.assertions
    )


# -- importing ------------------------------------------------------------------------------------------


BATCH_ITEMS = 1000
"""Messages of a conversation written in one transaction."""
_REST_BYTES = 64 * 1024
"""Upper bound of a foreign item's metadata including its origin."""
MEMORY = "memory"
"""Speaker of text that another system worded."""
Progress = Callable[[int], None]


def import_source(
    ctx: Context,
    source: Source,
    *,
    tenant_id: str,
    user_id: str | None,
    agent_id: str,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> MoveReport:
    """Import a source, or report what an import would write. Raises before anything is written."""
    if progress is not None and not callable(progress):
        raise InvalidInput("progress should be a function", path="$.progress")
    check_source(source, user_id, is_read=not dry_run)
    work = _Import(ctx, source, tenant_id, user_id, agent_id, dry_run, progress)
    return work.run()


def check_source(source: Source, user_id: str | None, *, is_read: bool = True) -> None:
    """Read a source to its end and raise its first error, before anything is written."""
    if user_id is not None and (not isinstance(user_id, str) or not user_id):
        raise InvalidInput("user_id should be a non-empty string", path="$.user_id")
    if source.needs_user and user_id is None:
        raise InvalidInput(
            f"a file of {source.system} does not say whose it is", path="$.user_id", hint="give user_id (--user)"
        )
    for _ in source.read() if is_read else ():
        checkpoint()


class _Batch(NamedTuple):
    """Items of one session of one user, written at once."""

    user_id: str
    session_id: str
    agent_id: str


@dataclass(slots=True)
class _Import:
    """One import in progress: counts, skipped items and assigned ids."""

    ctx: Context
    source: Source
    tenant_id: str
    user_id: str | None
    agent_id: str
    dry_run: bool
    progress: Progress | None
    read: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    users: set[str] = field(default_factory=set)
    sessions: set[tuple[str, str]] = field(default_factory=set)
    changed: int = 0
    flagged: int = 0
    left: list[LeftOut] = field(default_factory=list)
    left_counts: Counter[str] = field(default_factory=Counter)
    losses: int = 0
    agents: dict[tuple[str, str], str] = field(default_factory=dict)
    """The agent that the source names, by user and session."""
    given: dict[tuple[str, str], tuple[str, bytes]] = field(default_factory=dict)
    """The id here and a digest of the words, by user and source id, for items seen in this import."""
    titles: dict[str, str] = field(default_factory=dict)
    facts: dict[str, FactImport] = field(default_factory=dict)

    def run(self) -> MoveReport:
        for batch, items in self._batches():
            checkpoint()
            self._write(batch, items)
            if self.progress is not None:
                self.progress(len(items))
        for facts in self.facts.values():
            facts.finish()
        return self._report()

    # -- what is read ---------------------------------------------------------------------------------

    def _batches(self) -> Iterator[tuple[_Batch, list[Found]]]:
        """Group consecutive items of one session, in source order."""
        current: _Batch | None = None
        held: list[Found] = []
        for found in self.source.read():
            if isinstance(found, LeftOut):
                self.leave(found)
                continue
            user_id = self._user_of(found)
            if user_id is None:
                continue
            if not isinstance(found.item, PortableSession):
                self.read[kind_of(found.item)] += 1
            batch = self._place(user_id, found)
            if batch is None:
                continue
            if held and (batch != current or len(held) >= BATCH_ITEMS):
                assert current is not None
                yield current, held
                held = []
            current = batch
            held.append(found)
        if held and current is not None:
            yield current, held

    def _user_of(self, found: Found) -> str | None:
        """The user an item is imported for: the one given, or else the one in the source."""
        user_id = self.user_id or found.user
        if user_id is None or is_nobody_s(user_id):
            self.leave(LeftOut(found.path, kind_of(found.item), "whose it is nobody says: give a user"))
            return None
        self.users.add(user_id)
        return user_id

    def _place(self, user_id: str, found: Found) -> _Batch | None:
        """The batch an item belongs to; None for one that is deferred or is only a name."""
        match found.item:
            case PortableSession() as session:
                self.agents[user_id, session.session_id] = session.agent_id or self.agent_id
                if session.title:
                    self.titles[session.session_id] = session.title
                return None
            case PortableFact() | PortableSummary() as item:
                self._facts_of(user_id).add(found.path, item)
                return None
            case PortableMessage() as message:
                session_id = message.session_id
            case PortableMemory() as memory:
                session_id = memory.session_id or f"imported-{memory.origin.system}"
        self.sessions.add((user_id, session_id))
        return _Batch(user_id, session_id, self.agents.get((user_id, session_id), self.agent_id))

    def _facts_of(self, user_id: str) -> FactImport:
        if user_id not in self.facts:
            writer = self._writer(_Batch(user_id, f"imported-{self.source.system}", self.agent_id))
            self.facts[user_id] = FactImport(
                writer, self.dry_run, lambda id_: self.given.get((user_id, id_), (None, b""))[0], self.leave,
                self.written, self.known,
            )  # fmt: skip
        return self.facts[user_id]

    # -- what is written ------------------------------------------------------------------------------

    def _writer(self, batch: _Batch) -> Writer:
        """Open the session's own import run, which the next import resumes."""
        named = [batch.user_id, batch.agent_id, batch.session_id]
        run_id = "import-" + sha256("\x00".join(named).encode()).hexdigest()[:24]
        scope = scope_given(
            {
                "tenant_id": self.tenant_id,
                "user_id": batch.user_id,
                "agent_id": batch.agent_id,
                "session_id": batch.session_id,
                "run_id": run_id,
            }
        )
        opening = admit(opening_draft({"task_type": "import"}), self.ctx.policy.ledger)
        return Writer(self.ctx, scope, opening, frozenset())

    def _write(self, batch: _Batch, items: list[Found]) -> None:
        writer = self._writer(batch)
        drafts: list[EntryDraft] = []
        resolved = self.ctx.engine.read(self.tenant_id, lambda reader: self._resolve(reader, batch.user_id, items))
        for found, fate in zip(items, resolved, strict=True):
            kind = kind_of(found.item)
            if fate.is_gone:
                self.leave(LeftOut(found.path, kind, "it was forgotten here, and is not brought back", is_loss=False))
                continue
            draft = self._draft(found, fate)
            if draft is None or not self._takes(found, draft, fate):
                continue
            if fate.is_known:
                self.known[kind] += 1
                continue
            drafts.append(draft)
            self.written[kind] += 1
            self.changed += fate.replaces is not None
        self._append(writer, drafts)

    def _append(self, writer: Writer, drafts: list[EntryDraft]) -> None:
        if not drafts:
            return
        if self.dry_run:
            return
        entries = append(self.ctx, writer.scope, drafts, writer.opening)
        self.flagged += sum(INSTRUCTION_LIKE in entry.flags for entry in entries)
        if self.ctx.policy.memory.extract_on_observe:
            from muniment.memory.extracting import extract_from

            said = [entry for entry in entries if entry.imported is not None and entry.imported.kind == "message"]
            extract_from(writer, said)

    def _draft(self, found: Found, fate: _Fate) -> EntryDraft | None:
        """Draft an item as an event; None, with the reason reported, if it cannot be one."""
        try:
            return _draft_of(found.item, self.source.system, fate, self.titles)
        except MunimentError as error:
            self.leave(LeftOut(found.path, kind_of(found.item), error.message))
            return None

    def _takes(self, found: Found, draft: EntryDraft, fate: _Fate) -> bool:
        """True if the ledger would accept the draft. A dry run also counts what would be flagged; small items need no
        second check.
        """
        policy = self.ctx.policy.ledger
        is_small = 4 * len(draft.content) <= policy.content_bytes_max and policy.body_bytes_max >= _REST_BYTES
        if is_small and not self.dry_run and draft.tool is None and self.source.system != "portable":
            return True
        try:
            admitted = admit(draft, policy)
        except MunimentError as error:
            self.leave(LeftOut(found.path, kind_of(found.item), error.message))
            return False
        self.flagged += self.dry_run and not fate.is_known and INSTRUCTION_LIKE in admitted.flags
        return True

    def _resolve(self, reader: Reader, user_id: str, items: list[Found]) -> list[_Fate]:
        """Decide the id of each item, and whether it already exists."""
        wanted = {id_: None for found in items for id_ in _names(user_id, found)}
        taken = taken_ids(reader, list(wanted))
        rows = {row.id: row for row in by_ids(reader, ENTRIES, tuple(taken))}
        here: dict[str, tuple[str, bytes | None]] = {}
        for id_ in taken:
            row = rows.get(id_)
            if row is None or row.user_id != user_id:
                here[id_] = ("other", None)
            elif row.receipt_id is not None:
                here[id_] = ("gone", None)
            else:
                here[id_] = ("own", _digest(text_of(reader, entry_of_row(self.tenant_id, row))))
        return [self._fate(user_id, found, here) for found in items]

    def _fate(self, user_id: str, found: Found, here: dict[str, tuple[str, bytes | None]]) -> _Fate:
        own_id, later_id, minted_id = _names(user_id, found)
        digest = _digest(cleaned(self.ctx, _words(found)))
        base = minted_id if here.get(own_id, ("", None))[0] == "other" else own_id
        names = (base, later_id if base == own_id else f"{minted_id}~{digest.hex()[:12]}")
        states = [here.get(name) for name in names]
        if any(state is not None and state[0] == "gone" for state in states):
            fate = _Fate(base, is_gone=True)
        elif (same := next((name for name in names if here.get(name) == ("own", digest)), None)) is not None:
            fate = _Fate(same, is_known=True)
        elif states[0] is None:
            fate = _Fate(base)
            here[base] = ("own", digest)
        else:
            fate = _Fate(names[1], replaces=None if _is_past(found) else base)
            here[names[1]] = ("own", digest)
        before = self.given.get((user_id, _own_id(found)))
        if before is not None and self.dry_run and fate == _Fate(base):  # from an earlier batch, not in the store yet
            replaced = None if _is_past(found) else before[0]
            fate = _Fate(before[0], is_known=True) if before[1] == digest else _Fate(names[1], replaces=replaced)
        if not fate.is_gone:
            self.given[user_id, _own_id(found)] = (fate.id, digest)
        return fate

    # -- what is said ---------------------------------------------------------------------------------

    def leave(self, left: LeftOut) -> None:
        self.left_counts[left.kind] += left.times
        self.losses += left.times if left.is_loss else 0
        if len(self.left) < LEFT_OUT_MAX:
            self.left.append(left)

    def _report(self) -> MoveReport:
        return MoveReport(
            system=self.source.system,
            tenant_id=self.tenant_id,
            users=tuple(sorted(self.users)),
            dry_run=self.dry_run,
            sessions=len(self.sessions),
            read=dict(sorted(self.read.items())),
            written=dict(sorted((+self.written).items())),
            known=dict(sorted((+self.known).items())),
            changed=self.changed,
            flagged=self.flagged,
            left_out=not_carried(self.left),
            left_out_counts=dict(sorted(self.left_counts.items())),
            losses=self.losses,
        )


class _Fate(NamedTuple):
    """An item's id here, and whether it is new, known or forgotten."""

    id: str
    is_known: bool = False
    is_gone: bool = False
    replaces: str | None = None


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()[:16]


def _words(found: Found) -> str:
    item = found.item
    assert isinstance(item, PortableMessage | PortableMemory)
    return item.content if isinstance(item, PortableMessage) else item.text


def _own_id(found: Found) -> str:
    assert isinstance(found.item, PortableMessage | PortableMemory)
    return found.item.id


def _is_past(found: Found) -> bool:
    """True for a version that the source itself has superseded."""
    return isinstance(found.item, PortableMemory) and found.item.origin.valid_to is not None


def _names(user_id: str, found: Found) -> tuple[str, str, str]:
    """Candidate ids of an item: its own, that of a later version, and one for when its own is taken."""
    own = _own_id(found)
    mark = _digest(_words(found)).hex()[:12]
    minted = "imp-" + sha256(f"{user_id}\x00{own}".encode()).hexdigest()[:32]
    return own, f"{own[:240]}~{mark}", minted


def _draft_of(item: Any, system: str, fate: _Fate, titles: dict[str, str]) -> EntryDraft:
    if isinstance(item, PortableMemory):
        origin = item.origin
        speaker = f"{item.speaker or MEMORY}{_window(origin)}"
        return EntryDraft.of_given(
            _set(
                role="assistant", content=item.text, speaker=speaker, ts=item.ts, id=fate.id, metadata=item.metadata,
                imported=_replacing(origin, fate), trust="external",
            ),
            "this cannot be recorded",
        )  # fmt: skip
    held = item.origin or Origin(system="muniment" if system == "portable" else system, kind="message", id=item.id)
    metadata = dict(item.metadata or {})
    if item.session_id in titles and "title" not in metadata and system != "portable":
        metadata["title"] = titles[item.session_id][:300]
    if item.role in ("system", "developer"):
        metadata.pop("event", None)
    kind = "tool_result" if item.tool is not None else "system" if item.role in ("system", "developer") else "message"
    return EntryDraft.of_given(
        _set(
            kind=kind, role=item.role, content=item.content, speaker=item.speaker, ts=item.ts, id=fate.id,
            tags=item.tags, entities=item.entities, metadata=metadata or None, tool=_tool(item.tool),
            imported=_replacing(held, fate), trust=_trust(item),
        ),
        "this cannot be recorded",
    )  # fmt: skip


def _set(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _tool(given: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if given is None else {"ok": True} | given


def _replacing(origin: Origin, fate: _Fate) -> Origin:
    return origin if fate.replaces is None else origin.model_copy(update={"replaces": fate.replaces})


def _window(origin: Origin) -> str:
    """Until when another system held this to be true, as a suffix of the speaker's name, so that the words stay
    unchanged.
    """
    if origin.valid_to is None:
        return ""
    return f" (held until {format_instant(parse_instant(origin.valid_to))[:10]})"


def _trust(item: PortableMessage) -> Trust | None:
    """Trust given in a file may only lower ours; a model's instructions are never trusted."""
    if item.role in ("system", "developer"):
        return "external"
    given = trust_of(item.role, None)
    return item.trust if item.trust is not None and TRUST_RANK[item.trust] > TRUST_RANK[given] else None
