"""Turns read back from the ledger: by id, or the last ones of a stretch. What was read before is not read again.

An entry never changes until it is forgotten, so a turn is kept in memory, and shown only after the store has said that
it was not forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

from muniment.ledger.rows import entry_of_row
from muniment.ports.engine import Condition, Reader, Select
from muniment.records.entry import LedgerEntry
from muniment.runtime.indexing import can_be_turn, is_turn, text_of

if TYPE_CHECKING:
    from muniment.episodes.turns import ReadTurn
    from muniment.runtime.context import Context

__all__ = ["LiveTurn", "entries_by_id", "last_turns", "turns_by_id"]

_ASKED = 1000
TURN_CHARS_MAX = 8_000
"""What of a turn may be quoted: of a longer one, its start."""


class LiveTurn:
    """An entry that can be recalled, and its whole text."""

    def __init__(self, entry: LedgerEntry, text: str) -> None:
        self.entry = entry
        self.text = text

    @cached_property
    def read(self) -> ReadTurn:
        """The turn as a pool holds it. Not validated again: the entry was when it was written."""
        from muniment.episodes.turns import ReadTurn
        from muniment.records.pool import Turn

        entry = self.entry
        turn = Turn.unchecked(
            {
                "id": entry.id,
                "session_id": entry.scope.session_id,
                "seq": entry.seq,
                "kind": entry.kind,
                "role": entry.role,
                "speaker": entry.speaker,
                "ts": entry.ts,
                "text": self.text[:TURN_CHARS_MAX],
                "trust": entry.trust,
                "flags": entry.flags,
            }
        )
        return ReadTurn(turn, entry.tags, entry.entities)


def entries_by_id(reader: Reader, tenant_id: str, ids: Sequence[str]) -> list[LedgerEntry]:
    """The entries with these ids, in their order; those that are not there are left out."""
    by_id: dict[str, LedgerEntry] = {}
    for at in range(0, len(ids), _ASKED):
        for row in reader.do(Select("entries", where=(("id", "in", tuple(ids[at : at + _ASKED])),))):
            by_id[cast("str", row[0])] = entry_of_row(tenant_id, row)
    return [by_id[id_] for id_ in ids if id_ in by_id]


def turns_by_id(
    ctx: Context, reader: Reader, tenant_id: str, ids: Sequence[str], *, is_asked_later: bool = False
) -> dict[str, LiveTurn]:
    """The turns with these ids that were not forgotten.

    With `is_asked_later`, the caller asks the store about all of them before it shows any: those that are known here
    are not asked about twice.
    """
    known = ctx.turns.get(tenant_id, ids)
    if known and not is_asked_later:
        asked = Select("entries", where=(("id", "in", tuple(known)),), columns=("id", "receipt_id"))
        for id_ in [row[0] for row in reader.do(asked) if row[1] is not None]:
            del known[cast("str", id_)]
    return known | _fresh(ctx, reader, tenant_id, [id_ for id_ in ids if id_ not in known])


def last_turns(
    ctx: Context, reader: Reader, tenant_id: str, where: tuple[Condition, ...], count: int
) -> list[LiveTurn]:
    """The turns among the last `count` entries of a user that meet the conditions, oldest first."""
    order, columns = ("user_id", "session_id", "seq"), ("id", "kind", "role", "receipt_id")
    select = Select("entries", where=where, order=order, descending=True, limit=count, columns=columns)
    rows = cast("list[tuple[str, str, str, str | None]]", reader.do(select))
    ids = [id_ for id_, kind, role, receipt_id in reversed(rows) if receipt_id is None and can_be_turn(kind, role)]
    known = ctx.turns.get(tenant_id, ids)
    known |= _fresh(ctx, reader, tenant_id, [id_ for id_ in ids if id_ not in known])
    return [known[id_] for id_ in ids]


def _fresh(ctx: Context, reader: Reader, tenant_id: str, ids: Sequence[str]) -> dict[str, LiveTurn]:
    """Read from the store and kept for the next time, unless they are long."""
    entries = entries_by_id(reader, tenant_id, ids)
    turns = [LiveTurn(entry, text_of(reader, entry)) for entry in entries if is_turn(entry)]
    ctx.turns.put(tenant_id, (turn for turn in turns if len(turn.text) <= TURN_CHARS_MAX))
    return {turn.entry.id: turn for turn in turns}
