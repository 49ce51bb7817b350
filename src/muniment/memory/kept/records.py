"""Records of named storage as callers give and get them: values, their search features, checkpoints and writes.

These are the records of every public interface. Within a process the parts of `memory.kept` exchange named tuples.
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
    """The name of a value."""

    namespace: Labels
    key: str


class _Compared(Record):
    """Search input: texts for the store to embed or take words from, or vectors of the caller's."""

    texts: Absent[Texts] = None
    vectors: Absent[Vectors] = None


class ValuePut(_Compared):
    """A value to be kept under a name."""

    namespace: Labels
    key: str
    value: JsonObject
    index: Absent[bool | Items[str]] = None
    """Index setting as the caller gives it: nothing (`false`), or these fields. It is returned unchanged."""
    ttl_minutes: Absent[Minutes] = None
    """Lifetime in minutes; unlimited if absent."""


class ValueTexts(_Compared):
    """Search texts for a value that is already kept."""

    event_id: IdText


class StoredValue(Record):
    """A value as it was put, with its status."""

    event_id: IdText
    namespace: Labels
    key: str
    value: JsonObject
    index: Absent[bool | Items[str]] = None
    ttl_minutes: Absent[Minutes] = None
    status: str
    """`live`, `superseded` or `retracted`."""
    created_at: Timestamp
    """The time at which something was first put under its name."""
    updated_at: Timestamp
    expires_at: Absent[Timestamp] = None


class FoundValue(Record):
    """A value found by a search; without a score if it does not match the query."""

    value: StoredValue
    score: Absent[Number] = None


class FoundValues(Record):
    """The result of a search. `unread` are values without search features yet: `fill` them and search again."""

    found: Items[FoundValue]
    unread: Items[StoredValue] = ()


class NamespaceMatch(Record):
    """A namespace prefix or suffix; `*` matches any label."""

    path: Labels
    is_suffix: bool = False


# -- threads ------------------------------------------------------------------------------------------


class StatePart(Record):
    """A serialized part of a state."""

    type: str
    """The name of its format."""
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
    """A task's write to a channel after a checkpoint."""

    task_id: str
    task_path: str = ""
    number: Annotated[int, Numeric(integral=True)]
    """Its index among the task's writes; negative for special channels."""
    channel: str
    value: StatePart


class CheckpointRef(Record):
    """The name of a thread's checkpoint."""

    namespace: Label = ""
    checkpoint_id: Label


class CheckpointPut(CheckpointRef):
    """A checkpoint to be kept."""

    thread_id: Label
    parent_id: Absent[Label] = None
    head: StatePart
    """Everything except the values of its channels."""
    metadata: StatePart
    values: dict[str, StatePart]


class CheckpointState(CheckpointPut):
    """A stored checkpoint and the writes that followed it."""

    writes: Items[TaskWrite] = ()
    seq: Count


class CheckpointPage(Record):
    """A page of checkpoints, and the cursor of the next."""

    items: Items[CheckpointState]
    more: Absent[str] = None
    """The cursor of the next page, passed as `after`; absent on the last page."""
