"""What an argument may hold, as the record says that checks it: enums, bounds, patterns, formats.

A method's signature says which type an argument has; what the library refuses beyond that, its requests and records
say. Here each operation is told which record checks which of its arguments, so that the document and the door are of
one word. Nothing in here checks anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema

from muniment.core.record import Record
from muniment.surfaces.operations.shapes import Components, generated
from muniment.surfaces.operations.signatures import hints_of

__all__ = ["bound_schema", "without_null"]

_COUNT = "muniment.core.record:Count"
_FROM_ONE = "muniment.core.requests:FromOne"
_ID = "muniment.core.scope:IdText"
_PART = {"start": _COUNT, "length": _COUNT}
_SEARCH = {"k": "muniment.memory.search:HitCount", "min_score": "muniment.core.record:Confidence"}
_SEQUENCE = {"sequence": _FROM_ONE}
_EVENT = "muniment.store.ledger:EntryDraft"
_FACT = "muniment.memory.facts:FactRequest"
_BANK = "muniment.handles.bank:BankQuery"
_CORPUS = "muniment.memory.corpus:CorpusQuery"
_SELECTION = "muniment.rules.selection:SelectionRequest"
_SIGNED = "muniment.rules.promotion:SignedRequest"
_RUN = {"agent_id": _ID, "session_id": _ID, "run_id": _ID}

_CHECKED_BY: Mapping[str, str | Mapping[str, str]] = {
    "memory.run": _RUN,
    "memory.verify": {"entries_max": _FROM_ONE},
    "memory.snapshot": _SEQUENCE,
    "memory.check_snapshot": _SEQUENCE,
    "memory.narrative": _SEQUENCE,
    "memory.preview": "muniment.packets.builds:BuildRequest",
    "memory.preview.window_turns": "muniment.packets.compare:WindowTurns",
    "memory.content": _PART,
    "memory.ingest_otel": "muniment.handles.tracing:IngestRequest",
    "run.content": _PART,
    "run.observe": _EVENT,
    "run.observe_tool": _EVENT,
    "run.remember": _FACT,
    "run.propose": _FACT,
    "run.insight": "muniment.contracts.packet:InsightItem",
    "run.search": _SEARCH,
    "run.search.within": "muniment.memory.search:Within",
    "corpus.search": _SEARCH,
    "run.compose": "muniment.packets.builds:KeyedRequest",
    "run.compose.cues": "muniment.contracts.packet:Cues",
    "run.select_rules": _SELECTION,
    "run.step": "muniment.runs.steps:StepRequest",
    "run.claim": "muniment.runs.claims:ClaimRequest",
    "corpus.add": "muniment.memory._chunking:SourceRequest",
    "corpus.get": _CORPUS,
    "bank.records": _BANK,
    "bank.add_lesson": "muniment.learning.lesson_adding:LessonRequest",
    "rulebook.select": _SELECTION,
    "rulebook.canary": "muniment.rules.promotion:TrialRequest",
    "rulebook.promote": _SIGNED,
    "rulebook.retire": _SIGNED,
    "rulebook.rollback": "muniment.rules.promotion:RollbackRequest",
}
"""By operation: the record that checks its arguments, or the type of an argument that is checked by hand. By operation
and argument: the record that an object is read into."""

_TELLING = frozenset(
    {"enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern",
     "format", "minItems", "maxItems", "$ref"}
)  # fmt: skip


def bound_schema(operation_id: str, name: str, components: Components) -> dict[str, Any] | None:
    """What is told of an argument beyond its type; None where that is nothing."""
    hint = _hint(operation_id, name)
    if hint is None or hint in (str, int, float, bool):
        return None
    try:
        made = without_null(generated(hint, components))
    except PydanticInvalidForJsonSchema:  # an argument that a function reads has no schema of its own
        return None
    inner = made.get("items", {}) if made.get("type") == "array" else {}
    return made if _TELLING & (made.keys() | inner.keys()) else None


def _hint(operation_id: str, name: str) -> Any:
    own = _CHECKED_BY.get(f"{operation_id}.{name}")
    if isinstance(own, str):
        return _named(own)
    checked_by = _CHECKED_BY.get(operation_id)
    if checked_by is None:
        return None
    if not isinstance(checked_by, str):
        return _named(checked_by[name]) if name in checked_by else None
    record = _named(checked_by)
    assert issubclass(record, Record)
    return hints_of(record).get(name)


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of what is given, where null is the same as giving nothing."""
    kinds = schema.get("type")
    if isinstance(kinds, list):
        kept = [kind for kind in kinds if kind != "null"]
        return schema | {"type": kept[0] if len(kept) == 1 else kept}
    choices = schema.get("anyOf")
    if not choices:
        return schema
    left = [each for each in choices if each.get("type") != "null"]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return left[0] | rest if len(left) == 1 else rest | {"anyOf": left}
