"""The threads of one saver: checkpoints and the writes of tasks since, stored, read, copied and forgotten.

LangGraph's checkpointer uses this over a connection (`muniment.integrations.langgraph`). States are bytes from the
caller's serializer; nothing here reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import canonical_text, parse_json
from muniment.errors import InvalidInput, InvalidJson
from muniment.memory.kept.records import (
    CheckpointPage,
    CheckpointPut,
    CheckpointRef,
    CheckpointState,
    StatePart,
    TaskWrite,
)
from muniment.memory.kept.threads import Checkpoint, NewCheckpoint, Place, Threads, Write

if TYPE_CHECKING:
    from muniment.store.context import Context
    from muniment.store.ledger import Receipt

__all__ = ["ThreadSpace"]

PAGE_MAX = 1_000
WRITES_MAX = 10_000


class ThreadSpace:
    """Checkpoints of threads, of a saver or of one user: `mem.store.threads(name)`. Thread-safe.

    `holder` is the user who owns a thread, if the space is not one user's: a call that names one sees no other user's
    threads.
    """

    def __init__(self, ctx: Context, name: str, tenant_id: str, user_id: str | None) -> None:
        self._threads = Threads(ctx, tenant_id, name, user_id)

    def put(self, checkpoint: CheckpointPut | Mapping[str, Any], *, holder: str | None = None) -> None:
        """Store a checkpoint, replacing one of the same id. Only changed channels are written."""
        given = _one(checkpoint)
        self._threads.put(
            NewCheckpoint(
                given.thread_id,
                given.namespace,
                given.checkpoint_id,
                given.parent_id,
                given.head.read("$.checkpoint.head"),
                given.metadata.read("$.checkpoint.metadata"),
                {name: part.read(f"$.checkpoint.values.{name}") for name, part in given.values.items()},
            ),
            _text(holder, "holder"),
        )

    def put_writes(
        self,
        thread_id: str,
        checkpoint_id: str,
        writes: Sequence[TaskWrite | Mapping[str, Any]],
        *,
        namespace: str = "",
        replaces: bool = False,
        holder: str | None = None,
    ) -> None:
        """Store a task's writes after a checkpoint. An earlier write under the same number stays, or is replaced
        (`replaces`).
        """
        if isinstance(writes, str | Mapping) or not isinstance(writes, Sequence) or len(writes) > WRITES_MAX:
            raise InvalidInput(f"wanted an array of at most {WRITES_MAX}", path="$.writes")
        given = [
            each if isinstance(each, TaskWrite) else TaskWrite.of_given(each, "not a write", path=f"$.writes[{at}]")
            for at, each in enumerate(writes)
        ]
        self._threads.put_writes(
            _named(thread_id, "thread_id"),
            _named(namespace, "namespace"),
            _named(checkpoint_id, "checkpoint_id"),
            [
                Write(each.task_id, each.task_path, each.number, each.channel, each.value.read(f"$.writes[{at}].value"))
                for at, each in enumerate(given)
            ],
            replaces=bool(replaces),
            holder=_text(holder, "holder"),
        )

    def get(
        self, thread_id: str, *, namespace: str = "", checkpoint_id: str | None = None, holder: str | None = None
    ) -> CheckpointState | None:
        """A checkpoint of a thread, or its last, with the writes after it; None if there is none."""
        found = self._threads.get(
            _named(thread_id, "thread_id"),
            _named(namespace, "namespace"),
            _text(checkpoint_id, "checkpoint_id"),
            _text(holder, "holder"),
        )
        return None if found is None else _state(found)

    def checkpoints(
        self,
        *,
        thread_id: str | None = None,
        namespace: str | None = None,
        checkpoint_id: str | None = None,
        before: str | None = None,
        holder: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> CheckpointPage:
        """A page of checkpoints, newest first: of a thread, of one namespace of it, or of all threads.

        Only those with an id lower than `before`; starting behind an earlier page's position (`after`).
        """
        if type(limit) is not int or not 1 <= limit <= PAGE_MAX:
            raise InvalidInput(f"limit should be a whole number from 1 to {PAGE_MAX}", path="$.limit")
        walked = self._threads.walk(
            _text(thread_id, "thread_id"),
            _text(namespace, "namespace"),
            checkpoint_id=_text(checkpoint_id, "checkpoint_id"),
            before=_text(before, "before"),
            holder=_text(holder, "holder"),
            after=None if after is None else _place(after),
        )
        items = [_state(each) for each in islice(walked, limit)]
        if len(items) < limit:
            return CheckpointPage(items=tuple(items))
        return CheckpointPage(items=tuple(items), more=_more(items[-1]))

    def thread_ids(self) -> list[str]:
        """Every thread with stored data."""
        return self._threads.thread_ids()

    def copy(self, thread_id: str, to: str) -> None:
        """Copy all checkpoints of a thread into another."""
        self._threads.copy(_named(thread_id, "thread_id"), _named(to, "to"))

    def forget(self, thread_id: str, *, keep: Sequence[CheckpointRef | Mapping[str, Any]] = ()) -> list[Receipt]:
        """Erase a thread with all its checkpoints; those in `keep` are written anew first. Returns the receipts."""
        if isinstance(keep, str | Mapping) or not isinstance(keep, Sequence):
            raise InvalidInput("wanted an array of checkpoints", path="$.keep")
        kept = {
            (each.namespace, each.checkpoint_id)
            for each in (
                one
                if isinstance(one, CheckpointRef)
                else CheckpointRef.of_given(one, "not a checkpoint", path="$.keep")
                for one in keep
            )
        }
        return self._threads.forget(_named(thread_id, "thread_id"), kept)


def _one(checkpoint: CheckpointPut | Mapping[str, Any]) -> CheckpointPut:
    if isinstance(checkpoint, CheckpointPut):
        return checkpoint
    return CheckpointPut.of_given(checkpoint, "not a checkpoint", path="$.checkpoint")


def _text(value: Any, name: str) -> str | None:
    return None if value is None else _named(value, name)


def _named(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} should be a text", path=f"$.{name}")
    return value


def _more(last: CheckpointState) -> str:
    return canonical_text([last.checkpoint_id, last.seq, last.thread_id, last.namespace])


def _place(after: str) -> Place:
    try:
        told = parse_json(_named(after, "after").encode())
    except InvalidJson:
        told = None
    match told:
        case [str() as checkpoint_id, int() as seq, str() as thread_id, str() as namespace]:
            return checkpoint_id, seq, (thread_id, namespace)
    raise InvalidInput("this is no place of a list", path="$.after", hint="give `more` of the page before")


def _state(kept: Checkpoint) -> CheckpointState:
    fields: dict[str, Any] = {} if kept.parent_id is None else {"parent_id": kept.parent_id}
    return CheckpointState(
        thread_id=kept.thread_id,
        namespace=kept.namespace,
        checkpoint_id=kept.checkpoint_id,
        head=StatePart.of_bytes(*kept.head),
        metadata=StatePart.of_bytes(*kept.metadata),
        values={name: StatePart.of_bytes(*typed) for name, typed in kept.values.items()},
        writes=tuple(
            TaskWrite(
                task_id=each.task_id,
                task_path=each.task_path,
                number=each.number,
                channel=each.channel,
                value=StatePart.of_bytes(*each.typed),
            )
            for each in kept.writes
        ),
        seq=kept.seq,
        **fields,
    )
