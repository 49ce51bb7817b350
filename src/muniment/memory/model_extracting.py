"""What a model proposes becomes candidates here: turns in batches, each proposal checked, a batch in one transaction.

The model is asked outside of any transaction. What it says is written with the note that these turns were read, all of
it or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.ports.engine import Condition, Reader, Transaction
from muniment.core.ports.rows import by_ids, get, select
from muniment.core.ports.schema import ENTRIES, LINKS
from muniment.errors import Forgotten
from muniment.memory.candidate_deciding import Proposed, propose_in
from muniment.memory.extraction.checks import REASONS, Checked, check_proposal
from muniment.memory.extraction.model import SaidTurn
from muniment.memory.extraction.projection import EXTRACTION, StoredExtraction
from muniment.memory.extraction.prompts import PROMPT_VERSION
from muniment.memory.fact_writing import request_fact
from muniment.memory.facts.candidate_records import Candidate
from muniment.memory.patches import Decided, Writer, append_decided, draft_patch, write_patches
from muniment.store.injection import has_injection_form, reads_like_instructions
from muniment.store.items import latest
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
    from muniment.core.policy import ExtractionPolicy
    from muniment.memory.outside.asking import Answered, Asker
    from muniment.store.context import Context

__all__ = [
    "BatchRoom",
    "Extractor",
    "Written",
    "check_answer",
    "draft_claim",
    "draft_read",
    "extract_named",
    "extractor_of",
    "model_asked",
    "read_by",
    "read_context",
    "readable",
    "said_turn",
    "write_proposals",
]


class Extractor(NamedTuple):
    """Who reads, and which way of reading it is."""

    name: str
    version: int


class Written(NamedTuple):
    """What came of the proposals of a batch."""

    candidates: tuple[Candidate, ...]
    rejected: Counter[str]
    proposed: int
    promoted: int
    """Those that hold and are facts, by this proposal or by one before it."""


def model_asked(ctx: Context, model: Any, budget: Any = None, **options: Any) -> Asker:
    """What a caller gave as a model, under a budget."""
    from muniment.memory.extraction.budget import budget_given
    from muniment.memory.outside.asking import Asker, batch_model

    policy = ctx.policy.memory.extraction
    return Asker(batch_model(model, policy), policy, ctx.counter, budget_given(budget), **options)


def extractor_of(asker: Asker) -> Extractor:
    return Extractor(f"model:{asker.name}"[:256], PROMPT_VERSION)


# -- which turns --------------------------------------------------------------------------------------


def readable(entry: LedgerEntry, text: str, policy: ExtractionPolicy) -> bool:
    """Whether a model is given a turn to read: somebody's who may teach, and nothing that would turn the model. Users
    ask assistants for things all day: of theirs only what is worded as injections usually are is held back.
    """
    if entry.role not in policy.roles or INSTRUCTION_LIKE in entry.flags or not text.strip():
        return False
    is_own = entry.role == "user" and entry.trust == "user"
    return not (has_injection_form(text) if is_own else reads_like_instructions(text))


class BatchRoom:
    """How many whole turns one call takes: one always, more up to a number and a length."""

    def __init__(self, ctx: Context, asker: Asker) -> None:
        self._counter = ctx.counter
        self._turns_max = asker.turns_max
        self._tokens_max = ctx.policy.memory.extraction.batch_tokens_max
        self._turns = self._tokens = 0

    def takes(self, turn: SaidTurn) -> bool:
        """Take one turn more, if there is room for it."""
        size = self._counter.count(turn.text)
        if self._turns and (self._turns >= self._turns_max or self._tokens + size > self._tokens_max):
            return False
        self._turns, self._tokens = self._turns + 1, self._tokens + size
        return True


def batches_of(turns: Iterable[SaidTurn], asker: Asker, ctx: Context) -> Iterator[list[SaidTurn]]:
    """Whole turns, in order, as many as one call takes."""
    room, batch = BatchRoom(ctx, asker), list[SaidTurn]()
    for turn in turns:
        if not room.takes(turn):
            yield batch
            room, batch = BatchRoom(ctx, asker), []
            room.takes(turn)
        batch.append(turn)
    if batch:
        yield batch


def read_context(
    ctx: Context, tenant_id: str, user_id: str, session_id: str, turns: Sequence[SaidTurn]
) -> tuple[SaidTurn, ...]:
    """What was said before these turns and between them, as far as it is shown so that they are understood."""
    policy = ctx.policy.memory.extraction
    named = {turn.id for turn in turns}
    first, last = turns[0].place, turns[-1].place
    where: tuple[Condition, ...] = (
        ("user_id", "=", user_id),
        ("session_id", "=", session_id),
        ("kind", "=", "message"),
        ("receipt_id", "=", None),
    )
    order = ("user_id", "session_id", "seq")

    def work(reader: Reader) -> list[SaidTurn]:
        before = (
            select(
                reader,
                ENTRIES,
                (*where, ("seq", "<", first)),
                order=order,
                descending=True,
                limit=policy.context_turns_max,
            )
            if policy.context_turns_max
            else []
        )
        between = select(reader, ENTRIES, (*where, ("seq", ">", first), ("seq", "<", last)), order=order)
        rows = [*reversed(before), *(row for row in between if row.id not in named)]
        entries = [entry_of_row(tenant_id, row) for row in rows]
        plain = [entry for entry in entries if not set(entry.flags) - {PARTLY_ANALYSED}]
        return [said_turn(reader, entry, policy.context_chars_max) for entry in plain]

    shown = ctx.engine.read(tenant_id, work)
    return tuple(turn for turn in shown if not reads_like_instructions(turn.text))


def said_turn(reader: Reader, entry: LedgerEntry, chars_max: int) -> SaidTurn:
    text = content_in(reader, entry.scope.tenant_id, entry.id, entry.scope.user_id)
    return SaidTurn(entry.id, entry.role, entry.speaker, entry.ts, text[:chars_max], entry.seq)


def read_by(reader: Reader, extractor: Extractor, ids: Sequence[str]) -> set[str]:
    """Those of these turns that the extractor has read, as the notes say."""
    linked = {link.item_id for link in by_ids(reader, LINKS, list(ids), column="source_id")}
    found: set[str] = set()
    for item_id in sorted(linked):
        item = latest(reader, item_id)
        if item is not None and item.kind == EXTRACTION and item.body is not None and item.status == "read":
            stored = StoredExtraction.from_wire(item.plain())
            if (stored.extractor, stored.version) == extractor:
                found.update(stored.turns)
    return found & set(ids)


# -- what is written ----------------------------------------------------------------------------------


def check_answer(
    answered: Answered, turns: Sequence[SaidTurn], context: Sequence[SaidTurn], policy: ExtractionPolicy
) -> list[Checked]:
    """Every proposal of an answer, looked at; what is over for one turn is rejected."""
    by_id = {turn.id: turn for turn in turns}
    shown = sorted((*context, *turns), key=lambda turn: turn.place)
    counts: Counter[str] = Counter()
    checked: list[Checked] = []
    for each in answered.answer.proposals:
        counts[each.event_id] += 1
        is_over = each.event_id in by_id and counts[each.event_id] > policy.facts_per_turn_max
        checked.append(Checked(each, "too_many") if is_over else check_proposal(each, by_id, shown, policy))
    return checked


def write_proposals(
    tx: Transaction, writer: Writer, checked: Sequence[Checked], ids: Sequence[tuple[str, str]], asker: Asker
) -> Written:
    """Each proposal that names a turn as a candidate with its fate: declined where it did not hold."""
    made: list[Candidate] = []
    rejected: Counter[str] = Counter()
    promoted = 0
    for each, fresh in zip(checked, ids, strict=True):
        if not each.sources:
            rejected[each.rejection or "malformed"] += 1
            continue
        try:
            candidate = propose_in(tx, writer, _proposed(each, writer, asker), fresh)
        except Forgotten:
            rejected["forgotten"] += 1
            continue
        made.append(candidate)
        if each.rejection is not None:
            rejected[each.rejection] += 1
        elif candidate.status == "declined":
            rejected["contradiction"] += 1
        promoted += each.rejection is None and candidate.status == "promoted"
    return Written(tuple(made), rejected, len(checked), promoted)


def _proposed(checked: Checked, writer: Writer, asker: Asker) -> Proposed:
    proposal = checked.proposed.proposal
    confidence, why = proposal.confidence, proposal.why
    if checked.doubts and not asker.is_sure_itself:
        confidence = min(confidence, writer.ctx.policy.memory.extraction.doubtful_confidence_max)
        why = f"{why}; in doubt: {', '.join(checked.doubts)}"
    request = request_fact(
        key=proposal.key, value=proposal.value, sources=checked.sources, quote=proposal.quote, confidence=confidence
    )
    against = None if checked.rejection is None else REASONS[checked.rejection]
    return Proposed(request, extractor_of(asker).name, why, must_quote=False, against=against)


def draft_claim(
    id_: str, extractor: Extractor, session_id: str, turns: Sequence[str], *, since: int, through: int, until: str
) -> Decided:
    """The entry that says that somebody reads these turns now."""
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


def draft_read(id_: str, turns: Sequence[str], unreadable: Sequence[str], status: str, after: str) -> Decided:
    """The entry that says that they were read, or given back."""
    said = {"id": id_, "sources": list(turns), "unreadable": list(unreadable), "status": status}
    return Decided([draft_patch(TURNS_READ, "assistant", said)], after)


# -- turns that a caller names ------------------------------------------------------------------------


def extract_named(writer: Writer, entries: Sequence[LedgerEntry], asker: Asker) -> dict[str, list[Candidate]]:
    """The candidates that a model gives of these messages, by the message. They count as read afterwards."""
    ctx, scope, policy = writer.ctx, writer.scope, writer.ctx.policy.memory.extraction

    def work(reader: Reader) -> list[tuple[LedgerEntry, SaidTurn]]:
        return [(entry, said_turn(reader, entry, policy.turn_chars_max)) for entry in entries]

    said = [each for each in ctx.engine.read(scope.tenant_id, work) if readable(each[0], each[1].text, policy)]
    said.sort(key=lambda each: (each[0].scope.session_id, each[0].seq))
    found: dict[str, list[Candidate]] = {}
    for session_id, of_session in groupby(said, key=lambda each: each[0].scope.session_id):
        for batch in batches_of((turn for _, turn in of_session), asker, ctx):
            for candidate in _read_named(writer, session_id, batch, asker):
                found.setdefault(candidate.sources[0], []).append(candidate)
    return found


def _read_named(writer: Writer, session_id: str, turns: Sequence[SaidTurn], asker: Asker) -> tuple[Candidate, ...]:
    from muniment.memory.outside.asking import LimitReached

    ctx, scope = writer.ctx, writer.scope
    context = read_context(ctx, scope.tenant_id, scope.user_id, session_id, turns)
    answered = asker.ask(turns, context)
    assert not isinstance(answered, LimitReached)  # there is no limit
    checked = check_answer(answered, turns, context, ctx.policy.memory.extraction)
    ids = [(ctx.ids.new("cnd"), ctx.ids.new("fct")) for _ in checked]
    extraction_id, extractor = ctx.ids.new("ext"), extractor_of(asker)
    made: list[Candidate] = []

    def decide(tx: Transaction) -> Decided:
        made[:] = write_proposals(tx, writer, checked, ids, asker).candidates
        left = [turn.id for turn in turns if _is_there(tx, turn.id)]
        fresh = [id_ for id_ in left if id_ not in read_by(tx, extractor, left)]
        if not fresh:
            return Decided([])
        claim = draft_claim(extraction_id, extractor, session_id, fresh, since=0, through=0, until=ctx.now())
        append_decided(tx, writer, claim)
        item = latest(tx, extraction_id)
        assert item is not None  # just made
        unreadable = [id_ for id_ in answered.unreadable if id_ in fresh]
        return draft_read(extraction_id, fresh, unreadable, "read", item.created_at)

    return write_patches(writer, decide, lambda _: tuple(made))


def _is_there(reader: Reader, id_: str) -> bool:
    row = get(reader, ENTRIES, (id_,))
    return row is not None and row.receipt_id is None
