"""Facts that a model proposes from users' messages: find unread turns, read them in batches, write the results.

The turns already read follow from notes in the ledger, which hold no word of any turn. A batch is claimed for a while
before the model is called, so that no two workers ask about it; the results are written in one transaction with the
note that it was read. A worker killed in between leaves a claim that expires. No lock is held while a model answers.
Reading a session takes one pass over its turns, regardless of the number of batches and calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from hashlib import sha256
from itertools import groupby
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from muniment.core.instants import format_instant, parse_instant
from muniment.core.limits import cancellable
from muniment.core.ports.engine import Condition, Reader, Transaction
from muniment.core.ports.rows import by_ids, get, select, stream
from muniment.core.ports.schema import ENTRIES, LINKS, SESSIONS
from muniment.core.record import Absent, Count, Items, Number, Record
from muniment.core.scope import IdText
from muniment.errors import Forgotten, InvalidRecord, ModelFailure
from muniment.memory._extract_checks import OWN, REASONS, CheckedProposal, SourceTurn, check_proposals, speaker_label
from muniment.memory._fact_records import ModelQuote, left_of, model_note
from muniment.memory.patches import Decided, Writer, append_decided, draft_patch, write_patches
from muniment.store.injection import has_injection_form, reads_like_instructions
from muniment.store.items import Change, Item, Rewritten, digest_name, latest, select_items
from muniment.store.ledger import (
    INSTRUCTION_LIKE,
    PARTLY_ANALYSED,
    TURNS_CLAIMED,
    TURNS_READ,
    LedgerEntry,
    entry_of_row,
)
from muniment.store.reading import content_in

if TYPE_CHECKING:
    from muniment.memory._extract_model import MeteredModel
    from muniment.memory._fact_records import Candidate
    from muniment.memory.extracting import Speakers
    from muniment.store.context import Context

# Imports for model calls and candidates are local: the first write of any process loads this module.

__all__ = [
    "EXTRACTION",
    "EXTRACT_SESSION",
    "ExtractionReport",
    "StoredExtraction",
    "count_unread",
    "extract_pending",
    "extract_turns",
    "extraction_without",
    "project_extraction",
]

EXTRACT_SESSION = "extract"
"""The session of extraction's own patches, so that no conversation waits for them."""
PAGE_TURNS = 64
_CLAIM = "ext"
_BY_MODEL = "model"
Stop = Literal["done", "claimed", "calls", "turns", "tokens", "tokens_in", "tokens_out", "usd"]


class ExtractionReport(Record):
    """The outcome of a call of `extract_pending`: turns read, usage, results, and turns left."""

    extractor: str
    turns: Count
    """Turns read."""
    withheld: Count
    """Turns skipped because they read like instructions or are empty."""
    unreadable: Count
    """Turns for which the model gave no valid answer. They are not tried again."""
    calls: Count
    tokens_in: Count
    tokens_out: Count
    is_estimated: bool
    """True if tokens were counted by the store because the server did not report them."""
    usd: Absent[Number] = None
    """Cost of the tokens, if prices were given."""
    proposed: Count
    """Proposals of the model."""
    accepted: Count
    """Proposals that passed the checks against their source."""
    promoted: Count
    """Accepted proposals that became facts."""
    rejected: dict[str, Count]
    """Proposals that failed a check, by reason."""
    by_patterns: Count
    """Candidates found by rules, if no model is used."""
    left: Count
    """Turns still to be read."""
    claimed: Count
    """Turns among them claimed by another worker."""
    stopped: Stop
    """The reason it ended: nothing left, all the rest claimed by others, or a budget limit."""


def extract_pending(
    ctx: Context,
    tenant_id: str,
    writer_of: Callable[[str], Writer],
    *,
    user_id: str | None,
    model: Any,
    budget: Any,
    sessions: Collection[str] | None = None,
    done: Callable[[str, bool], None] = lambda _user, _is_stopped: None,
    progress: Callable[[int], None] | None = None,
    lease: str | None = None,
    left_by: str | None = None,
) -> ExtractionReport:
    """Read the pending turns of one user or of all; `writer_of` opens a user's run, `done` ends it.

    `sessions` restricts the sessions read. A worker under a `lease` claims in its name. If that lease was taken over
    from `left_by`, claims of the latter are ignored.
    """
    from muniment.memory._extract_model import BudgetReached
    from muniment.store.users import list_users

    worker = _Worker(ctx, tenant_id, model, budget, sessions, progress, lease=lease, left_by=left_by)
    users = [user_id] if user_id is not None else [user.user_id for user in list_users(ctx, tenant_id)]
    stopped: Stop | None = None
    for each in users:
        try:
            worker.read_user(each, writer_of)
        except BudgetReached as reached:
            stopped = reached.limit
        except ModelFailure as error:  # results so far are kept
            error.details = {**(error.details or {}), "extracted": worker.report(users).to_wire()}
            raise
        finally:
            done(each, stopped is not None)
        if stopped is not None:
            break
    return worker.report(users, stopped)


def count_unread(ctx: Context, tenant_id: str, users: list[str], model: Any) -> int:
    """The number of these users' turns still to be read: by a model, or by rules if none is given."""
    return _Worker(ctx, tenant_id, model, None, None, None).count_left(users)[0]


def extract_turns(writer: Writer, load: Callable[[], Sequence[LedgerEntry]], model: Any) -> list[Candidate]:
    """The candidates that a model extracts from named messages. They count as read afterwards."""
    ctx, scope = writer.ctx, writer.scope
    asked = _metered(ctx, model, None)  # refuses an invalid model before anything is read
    named, names = load(), _user_names(writer)

    def turns_of(reader: Reader) -> list[tuple[str, SourceTurn]]:
        said = sorted(named, key=lambda entry: (entry.scope.session_id, entry.seq))
        pairs = [(entry, _source_turn(reader, entry, ctx, names)) for entry in said]
        return [(entry.scope.session_id, turn) for entry, turn in pairs if _is_readable(entry, turn.text, ctx)]

    found: list[Candidate] = []
    for session_id, of_session in groupby(ctx.engine.read(scope.tenant_id, turns_of), key=lambda each: each[0]):
        left = [turn for _, turn in of_session]
        while left:
            turns = left[: _count_fitting(left, ctx)]
            left = left[len(turns) :]
            context = _read_context(ctx, scope.tenant_id, scope.user_id, session_id, turns, names)
            answered = asked.ask(turns, context)
            checked = check_proposals(answered.proposals, turns, ctx.policy.memory.extraction)
            found += _write_named(writer, session_id, turns, checked, answered.unreadable, asked)
    return found


# -- the worker -------------------------------------------------------------------------------------------------


class _Extractor(NamedTuple):
    """The reader of turns and its version. A turn counts as read regardless of which model read it."""

    name: str
    version: int


class _Session(NamedTuple):
    session_id: str
    head_seq: int


class _Mark(NamedTuple):
    """A session's reading progress, the version of its newest note, and whether a worker is continuing there."""

    seq: int
    note: tuple[str, int] | None
    is_claimed: bool


class _PendingTurn(NamedTuple):
    entry: LedgerEntry
    turn: SourceTurn
    is_wanted: bool
    """True if its role is read and it was not already read by name."""


class _Batch(NamedTuple):
    session_id: str
    since: int
    through: int
    note: tuple[str, int] | None
    entries: tuple[LedgerEntry, ...]
    turns: tuple[SourceTurn, ...]
    withheld: int


class _Worker:
    """One call of `extract_pending`."""

    def __init__(
        self,
        ctx: Context,
        tenant_id: str,
        model: Any,
        budget: Any,
        sessions: Collection[str] | None,
        progress: Callable[[int], None] | None,
        *,
        lease: str | None = None,
        left_by: str | None = None,
    ) -> None:
        self._ctx = ctx
        self._tenant_id = tenant_id
        self._has_model = model is not None
        self._model = _metered(ctx, _no_facts if model is None else model, budget)
        self._extractor = _extractor(has_model=self._has_model)
        self._only = sessions
        self._progress = progress
        self._claims = _CLAIM if lease is None else _claims_of(lease)
        self._void = None if left_by is None else f"{_claims_of(left_by)}_"
        """The id prefix of the claims to ignore."""
        self._policy = ctx.policy.memory.extraction
        self._turns = self._withheld = self._unreadable = self._proposed = self._promoted = self._by_rules = 0
        self._rejected: Counter[str] = Counter()
        self._speakers: Speakers | None = None

    def report(self, users: list[str], stopped: Stop | None = None) -> ExtractionReport:
        left, claimed = self.count_left(users)
        model = self._model
        usd = model.budget.cost(model.tokens_in, model.tokens_out)
        return ExtractionReport(
            extractor=f"model:{model.name}" if self._has_model else self._extractor.name,
            turns=self._turns,
            withheld=self._withheld,
            unreadable=self._unreadable,
            calls=model.calls,
            tokens_in=model.tokens_in,
            tokens_out=model.tokens_out,
            is_estimated=model.is_estimated,
            **({} if usd is None else {"usd": round(usd, 9)}),
            proposed=self._proposed,
            accepted=self._proposed - self._rejected.total(),
            promoted=self._promoted,
            rejected=dict(sorted(self._rejected.items())),
            by_patterns=self._by_rules,
            left=left,
            claimed=claimed,
            stopped=stopped or ("claimed" if left and left == claimed else "done"),
        )

    # -- choosing turns

    def read_user(self, user_id: str, writer_of: Callable[[str], Writer]) -> None:
        """Read the user's sessions; `BudgetReached` if a limit is met on the way."""
        writer: Writer | None = None
        names: tuple[str, ...] = ()
        for session in self._sessions(user_id):
            buffered: list[_PendingTurn] = []
            mark = self._mark(user_id, session)
            while mark.seq < session.head_seq and not mark.is_claimed:
                if writer is None:
                    writer = writer_of(user_id)
                    names = _user_names(writer)
                batch = self._next(user_id, session.session_id, mark, buffered, names)
                if batch is None:
                    break
                self._read(writer, batch, names)
                before, mark = mark, self._mark(user_id, session)
                if mark.seq <= before.seq:  # the claim was returned, or another worker was faster
                    buffered.clear()

    def _sessions(self, user_id: str) -> list[_Session]:
        where: list[Condition] = [("user_id", "=", user_id)]
        if self._only is not None:
            where.append(("session_id", "in", tuple(sorted(self._only))))
        return self._ctx.engine.read(
            self._tenant_id,
            lambda reader: select(reader, SESSIONS, tuple(where), into=_Session, order=("user_id", "session_id")),
        )

    def _mark(self, user_id: str, session: _Session) -> _Mark:
        mark = self._ctx.engine.read(
            self._tenant_id, lambda reader: _mark_in(reader, self._ctx, user_id, session.session_id, self._extractor)
        )
        is_void = self._void is not None and mark.note is not None and mark.note[0].startswith(self._void)
        return mark._replace(is_claimed=mark.is_claimed and not is_void)

    def _next(
        self, user_id: str, session_id: str, mark: _Mark, buffered: list[_PendingTurn], names: tuple[str, ...]
    ) -> _Batch | None:
        """The next batch of a session; None if all of it is read. Unused rows stay buffered."""
        buffered[:] = [each for each in buffered if each.entry.seq > mark.seq]
        taken: list[_PendingTurn] = []
        withheld, seen, at = 0, mark.seq, 0
        while True:
            if at == len(buffered):
                after = buffered[-1].entry.seq if buffered else mark.seq
                page = self._page(user_id, session_id, after, names)
                buffered += page
                if not page:
                    break
            each = buffered[at]
            if each.is_wanted and _is_readable(each.entry, each.turn.text, self._ctx):
                longer = [*(one.turn for one in taken), each.turn]
                if _count_fitting(longer, self._ctx) < len(longer):
                    break
                taken.append(each)
            elif each.is_wanted:
                withheld += 1
            seen, at = each.entry.seq, at + 1
        if not taken and not withheld and seen - mark.seq < PAGE_TURNS:  # too little progress for a note
            return None
        entries, turns = tuple(each.entry for each in taken), tuple(each.turn for each in taken)
        return _Batch(session_id, mark.seq, seen, mark.note, entries, turns, withheld)

    def _page(self, user_id: str, session_id: str, after: int, names: tuple[str, ...]) -> list[_PendingTurn]:
        where = (*_messages_of(user_id, session_id), ("seq", ">", after))

        def work(reader: Reader) -> list[_PendingTurn]:
            rows = select(reader, ENTRIES, where, order=("user_id", "session_id", "seq"), limit=PAGE_TURNS)
            entries = [entry_of_row(self._tenant_id, row) for row in rows]
            wanted = [entry.id for entry in entries if entry.role in self._policy.roles]
            unread = set(wanted) - _read_by(reader, self._extractor, wanted)
            return [
                _PendingTurn(entry, _source_turn(reader, entry, self._ctx, names), entry.id in unread)
                for entry in entries
            ]

        return self._ctx.engine.read(self._tenant_id, work)

    # -- one batch

    def _read(self, writer: Writer, batch: _Batch, names: tuple[str, ...]) -> None:
        from muniment.memory._extract_model import Answered

        batch = self._within_turns(batch)
        asks = self._has_model and bool(batch.turns)
        context: tuple[SourceTurn, ...] = ()
        if asks:
            user_id = writer.scope.user_id
            context = _read_context(self._ctx, self._tenant_id, user_id, batch.session_id, batch.turns, names)
            self._model.room(batch.turns, context)  # before anything is claimed
        with _Claim(writer, self._extractor, batch, self._claims) as claim:
            if not claim.is_held:
                return  # another worker was faster, or a turn was forgotten: look again
            answered = Answered()
            if asks:
                answered = self._model.ask(batch.turns, context)
            elif batch.entries and not self._extract_by_rules(writer, batch.entries):
                return
            checked = check_proposals(answered.proposals, batch.turns, self._policy)
            written = claim.end(checked, answered.unreadable, self._model)
        if written is None:
            return
        self._turns += len(batch.turns)
        self._model.turns += len(batch.turns)
        self._withheld += batch.withheld
        self._unreadable += len(answered.unreadable)
        self._proposed += len(checked) + answered.malformed
        self._rejected += written.rejected + Counter({"malformed": answered.malformed})
        self._promoted += written.promoted
        if self._progress is not None:
            self._progress(len(batch.turns))

    def _within_turns(self, batch: _Batch) -> _Batch:
        """The batch, cut to the first turns that fit the budget; it then ends with the last of them."""
        from muniment.memory._extract_model import BudgetReached

        turns_max = self._model.budget.turns
        room = len(batch.turns) if turns_max is None else turns_max - self._model.turns
        if len(batch.turns) <= room:
            return batch
        if room <= 0:
            raise BudgetReached("turns")
        through = batch.turns[room - 1].seq
        return batch._replace(entries=batch.entries[:room], turns=batch.turns[:room], through=through)

    def _extract_by_rules(self, writer: Writer, entries: Sequence[LedgerEntry]) -> bool:
        """Extract by rules; return False if a turn was forgotten meanwhile, so that the rest is looked at again."""
        from muniment.memory.extracting import Speakers, extract_from

        if self._speakers is None or self._speakers.user_id != writer.scope.user_id:
            self._speakers = Speakers(writer)  # shared by all batches: it scans a session once
        try:
            self._by_rules += len(extract_from(writer, entries, self._speakers))
        except Forgotten:
            return False
        return True

    # -- counting the rest

    def count_left(self, users: list[str]) -> tuple[int, int]:
        """The number of turns still to be read, and the number of those claimed by another worker."""
        left = claimed = 0
        for user_id in users:
            for session in self._sessions(user_id):
                mark = self._mark(user_id, session)
                count = 0 if mark.seq >= session.head_seq else self._count_after(user_id, session.session_id, mark.seq)
                left += count
                claimed += count if mark.is_claimed else 0
        return left, claimed

    def _count_after(self, user_id: str, session_id: str, after: int) -> int:
        where = (*_messages_of(user_id, session_id), ("seq", ">", after), ("role", "in", tuple(self._policy.roles)))

        def work(reader: Reader) -> int:
            ids = [row.id for row in stream(reader, ENTRIES, where, into=_Id)]
            pages = [ids[at : at + PAGE_TURNS] for at in range(0, len(ids), PAGE_TURNS)]
            return len(ids) - sum(len(_read_by(reader, self._extractor, page)) for page in pages)

        return self._ctx.engine.read(self._tenant_id, work)


class _Id(NamedTuple):
    id: str


def _no_facts(_messages: list[dict[str, str]]) -> str:
    """The model of a worker that reads only by rules; never called."""
    return '{"facts": []}'


def _metered(ctx: Context, model: Any, budget: Any) -> MeteredModel:
    """The caller's model under a budget."""
    from muniment.memory._extract_model import MeteredModel, budget_given, load_turn_model

    policy = ctx.policy.memory.extraction
    return MeteredModel(load_turn_model(model, policy), policy, ctx.counter, budget_given(budget))


def _extractor(*, has_model: bool) -> _Extractor:
    from muniment.memory._extract_model import PROMPT_VERSION
    from muniment.memory.extracting import BY_RULES

    return _Extractor(_BY_MODEL, PROMPT_VERSION) if has_model else _Extractor(BY_RULES, 1)


# -- turns ------------------------------------------------------------------------------------------------------


def _messages_of(user_id: str, session_id: str) -> tuple[Condition, ...]:
    return (
        ("user_id", "=", user_id),
        ("session_id", "=", session_id),
        ("kind", "=", "message"),
        ("receipt_id", "=", None),
    )


def _user_names(writer: Writer) -> tuple[str, ...]:
    """The user's names, from facts."""
    from muniment.memory.facts import read_facts

    scope = writer.scope
    held = writer.ctx.engine.read(scope.tenant_id, lambda reader: read_facts(reader, scope, "user.name"))
    facts = [each.fact for each in held]
    known = [fact.value for fact in facts if fact.status == "active" and fact.scope_level == "user"]
    return tuple(name for name in known if isinstance(name, str))


def _source_turn(
    reader: Reader, entry: LedgerEntry, ctx: Context, names: Iterable[str], chars_max: int | None = None
) -> SourceTurn:
    scope = entry.scope
    text = content_in(reader, scope.tenant_id, entry.id, scope.user_id)
    limit = ctx.policy.memory.extraction.turn_chars_max if chars_max is None else chars_max
    who = speaker_label(entry.role, entry.speaker, scope.user_id, names)
    return SourceTurn(entry.id, entry.role, who, entry.ts, text[:limit], entry.seq)


def _is_readable(entry: LedgerEntry, text: str, ctx: Context) -> bool:
    """True if a turn may be given to a model: its role is eligible and it is no prompt injection. Users ask assistants
    for things all day, so of their turns only those worded like typical injections are withheld.
    """
    if entry.role not in ctx.policy.memory.extraction.roles or INSTRUCTION_LIKE in entry.flags or not text.strip():
        return False
    is_own = entry.role == "user" and entry.trust == "user"
    return not (has_injection_form(text) if is_own else reads_like_instructions(text))


def _count_fitting(turns: Sequence[SourceTurn], ctx: Context) -> int:
    """The number of whole turns for one call: at least one, more up to a count and a length."""
    policy, tokens = ctx.policy.memory.extraction, 0
    for count, turn in enumerate(turns):
        tokens += ctx.counter.count(turn.text)
        if count and (count >= policy.batch_turns_max or tokens > policy.batch_tokens_max):
            return count
    return len(turns)


def _read_context(
    ctx: Context,
    tenant_id: str,
    user_id: str,
    session_id: str,
    turns: Sequence[SourceTurn],
    names: Iterable[str],
) -> tuple[SourceTurn, ...]:
    """Earlier and interleaved turns, within limits, as context for the model."""
    policy = ctx.policy.memory.extraction
    named = {turn.id for turn in turns}
    where = _messages_of(user_id, session_id)
    order = ("user_id", "session_id", "seq")

    def work(reader: Reader) -> list[SourceTurn]:
        earlier = (*where, ("seq", "<", turns[0].seq))
        before = select(reader, ENTRIES, earlier, order=order, descending=True, limit=policy.context_turns_max or 1)
        inner = (*where, ("seq", ">", turns[0].seq), ("seq", "<", turns[-1].seq))
        between = [row for row in select(reader, ENTRIES, inner, order=order) if row.id not in named]
        shown = [*reversed(before if policy.context_turns_max else []), *between]
        entries = [entry_of_row(tenant_id, row) for row in shown]
        plain = [entry for entry in entries if not set(entry.flags) - {PARTLY_ANALYSED}]
        return [_source_turn(reader, entry, ctx, names, policy.context_chars_max) for entry in plain]

    shown = ctx.engine.read(tenant_id, work)
    return tuple(turn for turn in shown if not reads_like_instructions(turn.text))


def _read_by(reader: Reader, extractor: _Extractor, ids: Sequence[str]) -> set[str]:
    """The subset of these turns that the notes list as read."""
    linked = {link.item_id for link in by_ids(reader, LINKS, list(ids), column="source_id")}
    found: set[str] = set()
    for item_id in sorted(linked):
        item = latest(reader, item_id)
        if item is not None and item.kind == EXTRACTION and item.body is not None and item.status == "read":
            stored = StoredExtraction.from_wire(item.plain())
            if (stored.extractor, stored.version) == extractor:
                found.update(stored.turns)
    return found & set(ids)


# -- writing results --------------------------------------------------------------------------------------------


class _Written(NamedTuple):
    """Counts of a batch's results."""

    candidates: tuple[Candidate, ...]
    rejected: Counter[str]
    promoted: int
    """Accepted proposals that are facts, by this proposal or an earlier one."""


def _write_proposals(
    tx: Transaction,
    writer: Writer,
    turns: Sequence[SourceTurn],
    checked: Sequence[CheckedProposal],
    ids: Sequence[tuple[str, str]],
    model: MeteredModel,
) -> _Written:
    """Record each proposal of a turn that was read as a candidate with its fate: declined if it failed a check."""
    from muniment.memory.candidates import Proposed, propose_in
    from muniment.memory.facts import request_fact

    by_id = {turn.id: turn for turn in turns}
    made: list[Candidate] = []
    rejected: Counter[str] = Counter()
    promoted = 0
    by, why = f"{_BY_MODEL}:{model.name}"[:256], f"read by {model.name}"
    confidence = writer.ctx.policy.memory.extraction.confidence
    for each, fresh in zip(checked, ids, strict=True):
        if not each.is_sourced:
            rejected[each.rejection or "malformed"] += 1
            continue
        proposal, turn = each.proposal, by_id[each.proposal.turn_id]
        request = request_fact(
            key=proposal.key,
            value=proposal.value,
            sources=(proposal.turn_id,),
            quote=proposal.quote,
            confidence=confidence,
            notes=model_note(ModelQuote(turn.ts, None if turn.who == OWN else turn.who, proposal.quote)),
        )
        against = None if each.rejection is None else REASONS[each.rejection]
        try:
            candidate = propose_in(tx, writer, Proposed(request, by, why, must_quote=False, against=against), fresh)
        except Forgotten:
            rejected["forgotten"] += 1
            continue
        made.append(candidate)
        if each.rejection is not None:
            rejected[each.rejection] += 1
        elif candidate.status == "declined":
            rejected["contradiction"] += 1
        promoted += each.rejection is None and candidate.status == "promoted"
    return _Written(tuple(made), rejected, promoted)


def _still_there(reader: Reader, ids: Sequence[str]) -> list[str]:
    """The subset of these turns not forgotten meanwhile."""
    rows = [get(reader, ENTRIES, (id_,)) for id_ in ids]
    return [row.id for row in rows if row is not None and row.receipt_id is None]


def _fresh_ids(ctx: Context, count: int) -> list[tuple[str, str]]:
    return [(ctx.ids.new("cnd"), ctx.ids.new("fct")) for _ in range(count)]


def _write_named(
    writer: Writer,
    session_id: str,
    turns: Sequence[SourceTurn],
    checked: Sequence[CheckedProposal],
    unreadable: Sequence[str],
    model: MeteredModel,
) -> tuple[Candidate, ...]:
    ctx = writer.ctx
    ids, note_id, extractor = _fresh_ids(ctx, len(checked)), ctx.ids.new(_CLAIM), _extractor(has_model=True)
    made: list[Candidate] = []

    def decide(tx: Transaction) -> Decided:
        made[:] = _write_proposals(tx, writer, turns, checked, ids, model).candidates
        left = _still_there(tx, [turn.id for turn in turns])
        known = _read_by(tx, extractor, left)
        fresh = [id_ for id_ in left if id_ not in known]
        if not fresh:
            return Decided([])
        claim = _draft_claim(note_id, extractor, session_id, fresh, since=0, through=0, until=ctx.now())
        append_decided(tx, writer, claim)
        item = latest(tx, note_id)
        assert item is not None  # just made
        return _draft_end(note_id, fresh, [id_ for id_ in unreadable if id_ in fresh], "read", item.created_at)

    return write_patches(writer, decide, lambda _: tuple(made))


def _draft_claim(
    id_: str, extractor: _Extractor, session_id: str, turns: Sequence[str], *, since: int, through: int, until: str
) -> Decided:
    """The entry that claims these turns."""
    said = {
        "id": id_,
        "sources": list(turns),
        "extractor": extractor.name,
        "version": extractor.version,
        "session_id": session_id,
        "since": since,
        "through": through,
        "until": until,
    }
    return Decided([draft_patch(TURNS_CLAIMED, "assistant", said)])


def _draft_end(id_: str, turns: Sequence[str], unreadable: Sequence[str], status: str, after: str) -> Decided:
    """The entry that marks these turns as read, or returns them."""
    said = {"id": id_, "sources": list(turns), "unreadable": list(unreadable), "status": status}
    return Decided([draft_patch(TURNS_READ, "assistant", said)], after)


# -- claims -----------------------------------------------------------------------------------------------------


def _mark_in(reader: Reader, ctx: Context, user_id: str, session_id: str, extractor: _Extractor) -> _Mark:
    """A session's reading progress, by its newest note."""
    where: tuple[Condition, ...] = (
        ("kind", "=", EXTRACTION),
        ("user_id", "=", user_id),
        ("name", "=", _note_name(*extractor, session_id)),
        ("receipt_id", "=", None),
    )
    found = select_items(reader, where, order=("created_at", "id", "version"), descending=True, limit=1)
    if not found:
        return _Mark(0, None, is_claimed=False)
    item: Item = found[0]
    stored = StoredExtraction.from_wire(item.plain())
    seq = stored.through if stored.status == "read" else stored.since
    is_claimed = stored.status == "claimed" and stored.until > ctx.now()
    return _Mark(seq, (item.id, item.version), is_claimed)


def _claims_of(lease: str) -> str:
    """The id prefix of claims under a lease, by which a successor recognises them."""
    return f"{_CLAIM}_{sha256(lease.encode()).hexdigest()[:16]}"


class _Claim:
    """A batch claimed by this worker for a while; returned if it was not read."""

    def __init__(self, writer: Writer, extractor: _Extractor, batch: _Batch, prefix: str) -> None:
        self._writer = writer
        self._ctx = writer.ctx
        self._extractor = extractor
        self._batch = batch
        self._id = writer.ctx.ids.new(prefix)
        self.is_held = False

    def __enter__(self) -> Self:
        batch, ctx = self._batch, self._ctx
        until = format_instant(parse_instant(ctx.now()) + timedelta(seconds=ctx.policy.memory.extraction.claim_s))
        turns = [turn.id for turn in batch.turns]
        span = {"since": batch.since, "through": batch.through}
        claim = _draft_claim(self._id, self._extractor, batch.session_id, turns, until=until, **span)

        def decide(tx: Transaction) -> Decided:
            is_next = self._mark_in(tx).note == batch.note
            return claim if is_next and len(_still_there(tx, turns)) == len(turns) else Decided([])

        self.is_held = write_patches(self._writer, decide, lambda reader: latest(reader, self._id) is not None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.is_held:
            with cancellable(None):  # also if the work was cancelled: then others especially need it
                write_patches(self._writer, lambda tx: self._end_in(tx, "released", ()), lambda _: None)

    def end(
        self, checked: Sequence[CheckedProposal], unreadable: Sequence[str], model: MeteredModel
    ) -> _Written | None:
        """Write the proposals and mark the turns as read; do nothing if the claim was lost."""
        ids = _fresh_ids(self._ctx, len(checked))
        made: list[_Written | None] = []

        def decide(tx: Transaction) -> Decided:
            made[:] = [None]
            if not self._is_mine(tx):
                return Decided([])
            made[:] = [_write_proposals(tx, self._writer, self._batch.turns, checked, ids, model)]
            return self._end_in(tx, "read", unreadable)

        written = write_patches(self._writer, decide, lambda _: made[0])
        self.is_held = False
        return written

    def _mark_in(self, reader: Reader) -> _Mark:
        return _mark_in(reader, self._ctx, self._writer.scope.user_id, self._batch.session_id, self._extractor)

    def _is_mine(self, reader: Reader) -> bool:
        note = self._mark_in(reader).note
        return note is not None and note[0] == self._id

    def _end_in(self, tx: Transaction, status: str, unreadable: Sequence[str]) -> Decided:
        item = latest(tx, self._id)
        if item is None or item.body is None or not self._is_mine(tx):
            return Decided([])
        left = StoredExtraction.from_wire(item.plain()).turns
        return _draft_end(self._id, left, [id_ for id_ in unreadable if id_ in left], status, item.created_at)


# -- the projection ---------------------------------------------------------------------------------------------


EXTRACTION = "extraction"
"""The kind of item."""


class StoredExtraction(Record):
    """A batch of turns of one session, and its reader."""

    extraction_id: IdText
    extractor: IdText
    """`model`, or the name of the rules."""
    version: Count
    """The version of the prompt and checks."""
    session_id: IdText
    turns: Items[IdText]
    unreadable: Items[IdText]
    """Turns for which the model gave no valid answer. They count as read."""
    status: Literal["claimed", "read", "released"]
    since: Count
    """The entry number up to which the session was read before."""
    through: Count
    """The entry number up to which it is read with this batch; 0 if the turns were named one by one."""
    until: str
    """The time at which the claim expires."""
    patch: IdText


def _note_name(extractor: str, version: int, session_id: str, *, is_sweep: bool = True) -> str:
    """The common name of a session's consecutive batches, or of those whose turns were named one by one."""
    return digest_name(f"{extractor}\n{version}\n{'sweep' if is_sweep else 'named'}\n{session_id}")


def project_extraction(entry: LedgerEntry, lookup: Callable[[str], Item | None]) -> list[Change]:
    """Project a batch: claimed, then read or returned."""
    said = entry.metadata
    id_ = said.get("id")
    before = lookup(id_) if isinstance(id_, str) else None
    try:
        if said.get("event") == TURNS_CLAIMED and before is None:
            names = ("extractor", "version", "session_id", "since", "through", "until")
            plain = {name: said.get(name) for name in names}
            here = {"extraction_id": id_, "turns": said.get("sources"), "patch": entry.id}
            stored = StoredExtraction.from_wire(plain | here | {"status": "claimed", "unreadable": []})
        elif said.get("event") == TURNS_READ and before is not None and _is_open(before):
            fate = {"status": said.get("status"), "unreadable": said.get("unreadable"), "turns": said.get("sources")}
            stored = StoredExtraction.from_wire(before.plain() | fate)
        else:
            return []
    except InvalidRecord:  # not written by one of our runs, so nothing was read
        return []
    return [_change(stored, entry)]


def _is_open(before: Item) -> bool:
    return before.kind == EXTRACTION and before.body is not None


def _change(stored: StoredExtraction, entry: LedgerEntry) -> Change:
    is_sweep = stored.through > 0
    return Change(
        id=stored.extraction_id,
        kind=EXTRACTION,
        status=stored.status,
        body=stored.to_wire(),
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=(*stored.turns, entry.id),
        name=_note_name(stored.extractor, stored.version, stored.session_id, is_sweep=is_sweep),
        user_id=entry.scope.user_id,
        session_id=stored.session_id,
    )


def extraction_without(item: Item, lost: frozenset[str]) -> Rewritten | None:
    """A batch without forgotten turns. An empty batch is removed, as is one whose own entry is lost."""
    stored = StoredExtraction.from_wire(item.plain())
    left = left_of(stored.turns, lost)
    if stored.patch in lost or (stored.turns and not left):
        return None
    kept = stored.model_copy(update={"turns": left, "unreadable": left_of(stored.unreadable, lost)})
    return Rewritten(kept.to_wire(), item.status, item.trust)
