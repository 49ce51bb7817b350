"""What is kept under names as callers give and get it: values, what is compared of them, checkpoints and writes.

These are the records of every door. Inside of a process the parts of `memory.kept` hand each other named tuples.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from pydantic import Field

from muniment.core.record import Absent, Count, Items, JsonObject, Number, Numeric, Record, Timestamp
from muniment.core.scope import IdText
from muniment.errors import InvalidInput

__all__ = [
    "CheckpointPage",
    "CheckpointPut",
    "CheckpointRef",
    "CheckpointState",
    "FoundValue",
    "FoundValues",
    "NamespaceMatch",
    "StatePart",
    "StoredValue",
    "TaskWrite",
    "ValuePut",
    "ValueRef",
    "ValueTexts",
]

TEXTS_MAX = 1_000
Label = Annotated[str, Field(max_length=1_000)]
Labels = Items[Label]
Vectors = Annotated[Items[Items[Number]], Field(max_length=TEXTS_MAX)]
Texts = Annotated[Items[str], Field(max_length=TEXTS_MAX)]
Minutes = Annotated[float, Numeric(minimum=0)]


# -- values -------------------------------------------------------------------------------------------


class ValueRef(Record):
    """A value by its name."""

    namespace: Labels
    key: str


class _Compared(Record):
    """What a search compares: texts for the store to embed or to take the words of, or vectors of the caller's."""

    texts: Absent[Texts] = None
    vectors: Absent[Vectors] = None


class ValuePut(_Compared):
    """A value that is to be kept under a name."""

    namespace: Labels
    key: str
    value: JsonObject
    index: Absent[bool | Items[str]] = None
    """What of it is searched, as the caller has it: nothing (`false`), or these fields. It is handed back as it is."""
    ttl_minutes: Absent[Minutes] = None
    """How long it lives; for good unless said."""


class ValueTexts(_Compared):
    """What is to be compared of a value that is kept already."""

    event_id: IdText


class StoredValue(Record):
    """A value as it was put, and how it stands."""

    event_id: IdText
    namespace: Labels
    key: str
    value: JsonObject
    index: Absent[bool | Items[str]] = None
    ttl_minutes: Absent[Minutes] = None
    status: str
    """`live`, `superseded` or `retracted`."""
    created_at: Timestamp
    """When something was first put under its name."""
    updated_at: Timestamp
    expires_at: Absent[Timestamp] = None


class FoundValue(Record):
    """A value that a search found; without a score where it does not answer the query."""

    value: StoredValue
    score: Absent[Number] = None


class FoundValues(Record):
    """What a search found. `unread` are values of which nothing is kept yet that it could compare: `fill` that, and ask
    again."""

    found: Items[FoundValue]
    unread: Items[StoredValue] = ()


class NamespaceMatch(Record):
    """How a namespace begins, or ends; `*` is any label."""

    path: Labels
    is_suffix: bool = False


# -- threads ------------------------------------------------------------------------------------------


class StatePart(Record):
    """What a serializer made of a part of a state."""

    type: str
    """The name of its form."""
    data: str
    """The bytes, as base64."""

    @classmethod
    def of_bytes(cls, form: str, data: bytes) -> StatePart:
        return cls(type=form, data=base64.b64encode(data).decode("ascii"))

    def read(self, path: str) -> tuple[str, bytes]:
        try:
            return self.type, base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput("this is no base64", path=path) from None


class TaskWrite(Record):
    """What a task wrote to a channel after a checkpoint."""

    task_id: str
    task_path: str = ""
    number: Annotated[int, Numeric(integral=True)]
    """Its place among what the task wrote; of special channels, a number below zero."""
    channel: str
    value: StatePart


class CheckpointRef(Record):
    """A checkpoint of a thread by its name."""

    namespace: Label = ""
    checkpoint_id: Label


class CheckpointPut(CheckpointRef):
    """A checkpoint that is to be kept."""

    thread_id: Label
    parent_id: Absent[Label] = None
    head: StatePart
    """All of it but the values of its channels."""
    metadata: StatePart
    values: dict[str, StatePart]


class CheckpointState(CheckpointPut):
    """A checkpoint as it was kept, and what was written after it."""

    writes: Items[TaskWrite] = ()
    seq: Count


class CheckpointPage(Record):
    """Some of the checkpoints that were asked for, and where to go on."""

    items: Items[CheckpointState]
    more: Absent[str] = None
    """Where to go on, as `after`; absent behind the last."""
