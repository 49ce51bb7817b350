"""Looking for candidates in what was said: by patterns, and by a model where one is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muniment.errors import InvalidInput
from muniment.extract import patterns
from muniment.ledger.rows import entry_of_row
from muniment.ports.engine import Condition, Reader, Select
from muniment.ports.model import Model
from muniment.records.candidate import Candidate, Proposal
from muniment.records.entry import LedgerEntry
from muniment.records.scope import Scope
from muniment.runtime.candidates import Proposed, propose
from muniment.runtime.facts import request_fact
from muniment.runtime.patches import Desk, texts_of
from muniment.runtime.reading import content_in, get_entry

__all__ = ["extract", "extract_from"]

BY_PATTERNS = "patterns"


def extract(desk: Desk, event_ids: Any, model: Model | None) -> list[Candidate]:
    """Candidates from the named events, or from all messages of this run."""
    ctx, scope = desk.ctx, desk.scope
    if model is not None and not callable(getattr(model, "propose", None)):
        raise InvalidInput("a model should be able to propose", path="$.model", hint="see muniment.ports.model.Model")
    if event_ids is None:
        entries = ctx.engine.read(scope.tenant_id, lambda reader: _messages(reader, scope))
    else:
        named = texts_of(event_ids, "$.event_ids")
        entries = [get_entry(ctx, scope.tenant_id, id_, scope.user_id) for id_ in named]
    return extract_from(desk, entries, model)


def _messages(reader: Reader, scope: Scope) -> list[LedgerEntry]:
    where: tuple[Condition, ...] = (
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
        ("run_id", "=", scope.run_id),
    )
    rows = reader.do(Select("entries", where=where, order=("user_id", "session_id", "seq")))
    return [entry_of_row(scope.tenant_id, row) for row in rows]


def extract_from(desk: Desk, entries: Iterable[LedgerEntry], model: Model | None = None) -> list[Candidate]:
    """Each proposal as a candidate. What a text was read for before gives the same candidates, not new ones."""
    found: list[Candidate] = []
    for entry in entries:
        if entry.kind != "message" or entry.is_forgotten or not _is_of_the_user(entry):
            continue
        text = desk.ctx.engine.read(
            desk.scope.tenant_id,
            lambda reader, id_=entry.id: content_in(reader, desk.scope.tenant_id, id_, desk.scope.user_id),  # type: ignore[misc]
        )
        said = [(each, BY_PATTERNS) for each in patterns.propose(text, entry.role, entry.ts)]
        if model is not None:
            said += [(each, f"model:{model.name}") for each in model.propose(text, entry.role, entry.ts)]
        found += [propose(desk, _proposed(each, entry.id, proposed_by)) for each, proposed_by in said]
    return found


def _is_of_the_user(entry: LedgerEntry) -> bool:
    """What someone else says of themselves is no fact about the user. A speaker without a name is the user."""
    if entry.role != "user" or entry.speaker is None:
        return True
    names = entry.speaker.casefold().split()
    return entry.scope.user_id.casefold() in (*names, entry.speaker.casefold(), "".join(names), "user", "me")


def _proposed(proposal: Proposal, event_id: str, proposed_by: str) -> Proposed:
    request = request_fact(
        key=proposal.key,
        value=proposal.value,
        sources=(event_id,),
        quote=proposal.quote,
        confidence=proposal.confidence,
    )
    return Proposed(request, proposed_by, proposal.why, must_quote=False)
