"""Reading what nobody has read yet, batch by batch, in the background: resumable, within a budget, by several at once.

What is pending follows from the notes that reading leaves (`extraction.projection`). A batch is claimed for a while
before the model is asked, so that no two workers ask about it; what comes of it is written in one transaction with the
note that it was read. Killed in between, a worker leaves a claim that runs out. No lock is held while a model answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import sha256
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from muniment.core.instants import format_instant, parse_instant
from muniment.core.ports.engine import Condition, Reader, Transaction
from muniment.core.ports.rows import select, stream
from muniment.core.ports.schema import ENTRIES, SESSIONS
from muniment.core.record import Absent, Count, Number, Record
from muniment.errors import Forgotten, ModelFailure
from muniment.memory.extracting import BY_RULES, Speakers, extract_from
from muniment.memory.extraction.budget import Limit, cost_usd
from muniment.memory.extraction.model import SaidTurn
from muniment.memory.extraction.projection import EXTRACTION, StoredExtraction, extraction_name
from muniment.memory.model_extracting import (
    BatchRoom,
    Extractor,
    Written,
    check_answer,
    draft_claim,
    draft_read,
    extractor_of,
    model_asked,
    read_by,
    read_context,
    readable,
    said_turn,
    write_proposals,
)
from muniment.memory.patches import Decided, Writer, write_patches
from muniment.store.items import Item, latest, select_items
from muniment.store.ledger import LedgerEntry, entry_of_row
from muniment.store.users import list_users

if TYPE_CHECKING:
    from muniment.memory.extraction.checks import Checked
    from muniment.memory.outside.asking import Asker
    from muniment.store.context import Context

__all__ = ["EXTRACT_SESSION", "ExtractionReport", "extract_pending", "unread_turns"]

EXTRACT_SESSION = "extract"
"""The session that the patches of extraction stand in, so that no conversation waits for them."""
RULES = Extractor(BY_RULES, 1)
PAGE_TURNS = 64
_CLAIM = "ext"
Stop = Literal["done", "claimed", "calls", "turns", "tokens", "tokens_in", "tokens_out", "usd"]


class ExtractionReport(Record):
    """What a call of `extract_pending` read, what it took, what came of it, and what is left."""

    extractor: str
    turns: Count
    """Turns that were read."""
    withheld: Count
    """Turns that were passed over: they read like instructions, are empty, or are not the user's own."""
    unreadable: Count
    """Turns that the model could not be brought to answer for. They are not tried again."""
    calls: Count
    tokens_in: Count
    tokens_out: Count
    is_estimated: bool
    """Whether tokens were counted by the store, since the model's server did not say."""
    usd: Absent[Number] = None
    """What the tokens cost, where prices were given."""
    proposed: Count
    """What the model proposed."""
    accepted: Count
    """What of it holds against its source: facts, and candidates that wait for a decision."""
    promoted: Count
    """What of that is a fact."""
    rejected: dict[str, Count]
    """And what does not hold, by the reason."""
    by_patterns: Count
    """Candidates that the rules gave of the same turns."""
    left: Count
    """Turns that are still to be read."""
    claimed: Count
    """Those of them that another worker is reading."""
    stopped: Stop
    """Why it ended: all is read, all that is left is claimed by others, or a limit of the budget."""


class _Tally:
    """What is counted on the way."""

    def __init__(self) -> None:
        self.turns = self.withheld = self.unreadable = self.proposed = self.promoted = self.by_patterns = 0
        self.rejected: Counter[str] = Counter()


class _Session(NamedTuple):
    session_id: str
    head_seq: int


class _Mark(NamedTuple):
    """How far a session was read, and by which version of which note."""

    seq: int
    note: tuple[str, int] | None
    is_claimed: bool


class _Batch(NamedTuple):
    session_id: str
    since: int
    through: int
    note: tuple[str, int] | None
    entries: tuple[LedgerEntry, ...]
    turns: tuple[SaidTurn, ...]
    withheld: int


def extract_pending(
    ctx: Context,
    tenant_id: str,
    writer_of: Callable[[str], Writer],
    *,
    user_id: str | None,
    model: Any,
    budget: Any,
    done: Callable[[str, bool], None] = lambda _user, _is_stopped: None,
    progress: Callable[[int], None] | None = None,
    lease: str | None = None,
    left_by: str | None = None,
    **options: Any,
) -> ExtractionReport:
    """Read what is pending of a user, or of all; `writer_of` opens a user's run, `done` ends it.

    Who reads under a `lease` claims in its name. Where that was taken over from who `left_by`, the claims of that one
    keep nobody from reading: who made them has ended, or writes nothing more. All others may be of somebody alive.
    """
    asker = model_asked(ctx, _nothing if model is None else model, budget, **options)
    worker = _Worker(
        ctx, tenant_id, asker, has_model=model is not None, progress=progress, lease=lease, left_by=left_by
    )
    users = [user_id] if user_id is not None else [user.user_id for user in list_users(ctx, tenant_id)]
    stopped: Limit | None = None
    for each in users:
        try:
            stopped = worker.read_user(each, writer_of)
        except ModelFailure as error:  # what was read before it stays read, and is told
            error.details = {**(error.details or {}), "extracted": worker.report(*worker.count_left(users)).to_wire()}
            raise
        finally:
            done(each, stopped is not None)
        if stopped is not None:
            break
    return worker.report(*worker.count_left(users), stopped)


def unread_turns(ctx: Context, tenant_id: str, users: list[str], model: Any) -> int:
    """How many turns of these users are still to be read by a model, or by rule where there is none."""
    asker = model_asked(ctx, _nothing if model is None else model)
    return _Worker(ctx, tenant_id, asker, has_model=model is not None).count_left(users)[0]


def _nothing(_messages: list[dict[str, str]]) -> str:
    """The model of who reads by rule alone, which is never asked."""
    return '{"facts": []}'


class _Worker:
    """One call of `extract_pending`."""

    def __init__(
        self,
        ctx: Context,
        tenant_id: str,
        asker: Asker,
        *,
        has_model: bool,
        progress: Callable[[int], None] | None = None,
        lease: str | None = None,
        left_by: str | None = None,
    ) -> None:
        self._ctx = ctx
        self._tenant_id = tenant_id
        self._extractor = extractor_of(asker) if has_model else RULES
        self._model = asker if has_model else None
        self._limits = asker
        self._progress = progress
        self._claims = _CLAIM if lease is None else _claims_of(lease)
        self._void = None if left_by is None else f"{_claims_of(left_by)}_"
        """How the claims begin that keep nobody from reading."""
        self._policy = ctx.policy.memory.extraction
        self.tally = _Tally()

    def report(self, left: int, claimed: int, stopped: Limit | None = None) -> ExtractionReport:
        tally, spent, budget = self.tally, self._limits.spent, self._limits.budget
        cost = cost_usd(budget, spent.tokens_in, spent.tokens_out)
        return ExtractionReport(
            extractor=self._extractor.name,
            turns=tally.turns,
            withheld=tally.withheld,
            unreadable=tally.unreadable,
            calls=spent.calls,
            tokens_in=spent.tokens_in,
            tokens_out=spent.tokens_out,
            is_estimated=self._limits.is_estimated,
            **({} if cost is None else {"usd": round(cost, 9)}),
            proposed=tally.proposed,
            accepted=tally.proposed - tally.rejected.total(),
            promoted=tally.promoted,
            rejected=dict(sorted(tally.rejected.items())),
            by_patterns=tally.by_patterns,
            left=left,
            claimed=claimed,
            stopped=stopped or ("claimed" if left and left == claimed else "done"),
        )

    # -- one user -------------------------------------------------------------------------------------

    def read_user(self, user_id: str, writer_of: Callable[[str], Writer]) -> Limit | None:
        """Read all of a user's sessions; answers the limit that was reached on the way."""
        writer: Writer | None = None
        for session in self._sessions(user_id):
            while self._mark(user_id, session).seq < session.head_seq:
                if writer is None:
                    writer = writer_of(user_id)
                batch = self._next(writer, session)
                if batch is None:
                    break
                limit = self._read(writer, batch)
                if limit is not None:
                    return limit
        return None

    def _sessions(self, user_id: str) -> list[_Session]:
        where: tuple[Condition, ...] = (("user_id", "=", user_id),)
        return self._ctx.engine.read(
            self._tenant_id,
            lambda reader: select(reader, SESSIONS, where, into=_Session, order=("user_id", "session_id")),
        )

    def _mark(self, user_id: str, session: _Session) -> _Mark:
        mark = self._ctx.engine.read(
            self._tenant_id, lambda reader: _mark_in(reader, self._ctx, user_id, session.session_id, self._extractor)
        )
        is_void = self._void is not None and mark.note is not None and mark.note[0].startswith(self._void)
        return mark._replace(is_claimed=mark.is_claimed and not is_void)

    def _next(self, writer: Writer, session: _Session) -> _Batch | None:
        """The next batch of a session; None where all of it is read, or somebody else is reading it."""
        mark = self._mark(writer.scope.user_id, session)
        if mark.is_claimed:
            return None
        voices, room, withheld, seen = Speakers(writer), BatchRoom(self._ctx, self._limits), 0, mark.seq
        entries: dict[str, LedgerEntry] = {}
        turns: list[SaidTurn] = []
        for entry, turn, is_read in self._messages(writer.scope.user_id, session.session_id, mark.seq):
            is_wanted = entry.role in self._policy.roles and not is_read
            if is_wanted and readable(entry, turn.text, self._policy) and voices.why_unheard(entry) is None:
                if not room.takes(turn):
                    break
                turns.append(turn)
                entries[turn.id] = entry
            elif is_wanted:
                withheld += 1
            seen = entry.seq
        if not turns and not withheld and seen - mark.seq < PAGE_TURNS:  # no note is worth it
            return None
        return _Batch(session.session_id, mark.seq, seen, mark.note, tuple(entries.values()), tuple(turns), withheld)

    def _messages(self, user_id: str, session_id: str, after: int) -> Iterator[tuple[LedgerEntry, SaidTurn, bool]]:
        """The messages of a session after an entry, with their texts, and whether they were read by name."""
        while True:
            page = self._ctx.engine.read(
                self._tenant_id,
                lambda reader, after=after: self._page(reader, user_id, session_id, after),  # type: ignore[misc]
            )
            yield from page
            if len(page) < PAGE_TURNS:
                return
            after = page[-1][0].seq

    def _page(
        self, reader: Reader, user_id: str, session_id: str, after: int
    ) -> list[tuple[LedgerEntry, SaidTurn, bool]]:
        where = (*_messages_of(user_id, session_id), ("seq", ">", after))
        rows = select(reader, ENTRIES, where, order=("user_id", "session_id", "seq"), limit=PAGE_TURNS)
        entries = [entry_of_row(self._tenant_id, row) for row in rows]
        known = read_by(reader, self._extractor, [entry.id for entry in entries])
        return [(entry, said_turn(reader, entry, self._policy.turn_chars_max), entry.id in known) for entry in entries]

    # -- one batch ------------------------------------------------------------------------------------

    def _read(self, writer: Writer, batch: _Batch) -> Limit | None:
        from muniment.memory.outside.asking import LimitReached

        turns_max = self._limits.budget.turns
        if batch.turns and turns_max is not None:
            batch = _cut(batch, turns_max - self._limits.spent.turns)
            if not batch.turns:
                return "turns"
        context = () if not batch.turns else self._context(writer, batch)
        if self._model is not None and batch.turns:
            room = self._model.room(batch.turns, context)  # before anything is claimed
            if isinstance(room, LimitReached):
                return room.limit
        with _Claim(writer, self._extractor, batch, self._ctx, self._claims) as claim:
            if not claim.is_held:
                return None  # another worker was faster: look again
            try:
                self.tally.by_patterns += len(extract_from(writer, batch.entries))
            except Forgotten:  # a turn of it was forgotten meanwhile: look again at what is left
                return None
            checked: list[Checked] = []
            unreadable: tuple[str, ...] = ()
            malformed = 0
            if self._model is not None and batch.turns:
                answered = self._model.ask(batch.turns, context)
                if isinstance(answered, LimitReached):
                    return answered.limit
                checked = check_answer(answered, batch.turns, context, self._policy)
                unreadable, malformed = answered.unreadable, answered.answer.malformed
            written = claim.end(checked, unreadable, self._limits)
        if written is not None:
            self._count(batch, written, malformed, len(unreadable))
        return None

    def _context(self, writer: Writer, batch: _Batch) -> tuple[SaidTurn, ...]:
        return read_context(self._ctx, self._tenant_id, writer.scope.user_id, batch.session_id, batch.turns)

    def _count(self, batch: _Batch, written: Written, malformed: int, unreadable: int) -> None:
        tally = self.tally
        tally.turns += len(batch.turns)
        tally.withheld += batch.withheld
        tally.unreadable += unreadable
        tally.proposed += written.proposed + malformed
        tally.rejected += written.rejected + Counter({"malformed": malformed})
        tally.promoted += written.promoted
        self._limits.count_turns(len(batch.turns))
        if self._progress is not None:
            self._progress(len(batch.turns))

    # -- what is left ---------------------------------------------------------------------------------

    def count_left(self, users: list[str]) -> tuple[int, int]:
        """How many turns are still to be read, and how many of those another worker is reading."""
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
            known = [
                read_by(reader, self._extractor, ids[at : at + PAGE_TURNS]) for at in range(0, len(ids), PAGE_TURNS)
            ]
            return len(ids) - sum(map(len, known))

        return self._ctx.engine.read(self._tenant_id, work)


class _Id(NamedTuple):
    id: str


def _messages_of(user_id: str, session_id: str) -> tuple[Condition, ...]:
    return (
        ("user_id", "=", user_id),
        ("session_id", "=", session_id),
        ("kind", "=", "message"),
        ("receipt_id", "=", None),
    )


def _cut(batch: _Batch, turns_max: int) -> _Batch:
    """The first turns of a batch. It ends with the last of them."""
    if len(batch.turns) <= turns_max:
        return batch
    entries, turns = batch.entries[:turns_max], batch.turns[:turns_max]
    through = turns[-1].place if turns else batch.since
    return batch._replace(entries=entries, turns=turns, through=through)


# -- claims -------------------------------------------------------------------------------------------


def _mark_in(reader: Reader, ctx: Context, user_id: str, session_id: str, extractor: Extractor) -> _Mark:
    """How far a session was read, as the newest note on it says."""
    where: tuple[Condition, ...] = (
        ("kind", "=", EXTRACTION),
        ("user_id", "=", user_id),
        ("name", "=", extraction_name(*extractor, session_id)),
        ("receipt_id", "=", None),
    )
    found = select_items(reader, where, order=("created_at", "id", "version"), descending=True, limit=1)
    item: Item | None = found[0] if found else None
    if item is None:
        return _Mark(0, None, is_claimed=False)
    stored = StoredExtraction.from_wire(item.plain())
    seq = stored.through if stored.status == "read" else stored.since
    is_claimed = stored.status == "claimed" and stored.until > ctx.now()
    return _Mark(seq, (item.id, item.version), is_claimed)


def _claims_of(lease: str) -> str:
    """How the ids of claims begin that are made under a lease: whoever takes it over knows them by that."""
    return f"{_CLAIM}_{sha256(lease.encode()).hexdigest()[:16]}"


class _Claim:
    """A batch that is this worker's for a while; given back where it was not read."""

    def __init__(self, writer: Writer, extractor: Extractor, batch: _Batch, ctx: Context, prefix: str) -> None:
        self._writer = writer
        self._extractor = extractor
        self._batch = batch
        self._ctx = ctx
        self._id = ctx.ids.new(prefix)
        self.is_held = False

    def __enter__(self) -> Self:
        batch, ctx = self._batch, self._ctx
        until = format_instant(parse_instant(ctx.now()) + timedelta(seconds=ctx.policy.memory.extraction.claim_s))
        turns = [turn.id for turn in batch.turns]
        claim = draft_claim(
            self._id,
            self._extractor,
            batch.session_id,
            turns,
            since=batch.since,
            through=batch.through,
            until=until,
        )

        def decide(tx: Transaction) -> Decided:
            mark = _mark_in(tx, ctx, self._writer.scope.user_id, batch.session_id, self._extractor)
            return Decided([]) if mark.note != batch.note else claim

        self.is_held = write_patches(self._writer, decide, lambda reader: latest(reader, self._id) is not None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.is_held:
            write_patches(self._writer, lambda tx: self._ended(tx, "released", ()), lambda _: None)

    def end(self, checked: list[Checked], unreadable: tuple[str, ...], asker: Asker) -> Written | None:
        """Write the proposals, and that the turns were read; nothing, where the claim is not held any more."""
        ids = [(self._ctx.ids.new("cnd"), self._ctx.ids.new("fct")) for _ in checked]
        made: list[Written | None] = []

        def decide(tx: Transaction) -> Decided:
            made[:] = [None]
            if not self._is_mine(tx):
                return Decided([])
            made[:] = [write_proposals(tx, self._writer, checked, ids, asker)]
            return self._ended(tx, "read", unreadable)

        written = write_patches(self._writer, decide, lambda _: made[0])
        self.is_held = False
        return written

    def _is_mine(self, tx: Transaction) -> bool:
        user_id = self._writer.scope.user_id
        mark = _mark_in(tx, self._ctx, user_id, self._batch.session_id, self._extractor)
        return mark.note is not None and mark.note[0] == self._id

    def _ended(self, tx: Transaction, status: str, unreadable: tuple[str, ...]) -> Decided:
        item = latest(tx, self._id)
        if item is None or item.body is None or not self._is_mine(tx):
            return Decided([])
        left = StoredExtraction.from_wire(item.plain()).turns
        return draft_read(self._id, left, [id_ for id_ in unreadable if id_ in left], status, item.created_at)
