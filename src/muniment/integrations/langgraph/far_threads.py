"""The threads of a saver, on a store opened here or over a connection, with the same calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from muniment.memory.kept.records import CheckpointPut, CheckpointRef, StatePart, TaskWrite
from muniment.memory.kept.threads import Checkpoint, NewCheckpoint, Threads, Write

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.thread_space import ThreadSpace
    from muniment.memory.kept.records import CheckpointState
    from muniment.store.ledger import Receipt

__all__ = ["SavedThreads", "threads_of"]

PAGE = 50
"""Checkpoints fetched at a time: each may hold a whole state."""


class SavedThreads(Protocol):
    """Operations a saver needs of its threads, described at `memory.kept.threads.Threads`."""

    def put(self, new: NewCheckpoint, holder: str | None = None) -> None: ...

    def put_writes(
        self,
        thread_id: str,
        namespace: str,
        checkpoint_id: str,
        writes: Sequence[Write],
        *,
        replaces: bool,
        holder: str | None = None,
    ) -> None: ...

    def get(
        self, thread_id: str, namespace: str, checkpoint_id: str | None = None, holder: str | None = None
    ) -> Checkpoint | None: ...

    def walk(
        self,
        thread_id: str | None,
        namespace: str | None,
        *,
        checkpoint_id: str | None = None,
        before: str | None = None,
        holder: str | None = None,
    ) -> Iterator[Checkpoint]: ...

    def forget(self, thread_id: str, keep: Collection[tuple[str, str]] = ()) -> list[Receipt]: ...

    def copy(self, source_id: str, target_id: str) -> None: ...

    def thread_ids(self) -> list[str]: ...


def threads_of(mem: Memory, tenant_id: str, name: str, user_id: str | None) -> SavedThreads:
    """Threads of a saver, accessed directly if the store is open in this process."""
    if mem._is_near:
        return Threads(mem._ctx, tenant_id, name, user_id)
    return FarThreads(mem.store.threads(name, user_id=user_id, tenant_id=tenant_id))


class FarThreads:
    """Threads over a connection."""

    def __init__(self, space: ThreadSpace) -> None:
        self._space = space

    def put(self, new: NewCheckpoint, holder: str | None = None) -> None:
        parent = {} if new.parent_id is None else {"parent_id": new.parent_id}
        self._space.put(
            CheckpointPut(
                thread_id=new.thread_id,
                namespace=new.namespace,
                checkpoint_id=new.checkpoint_id,
                head=StatePart.of_bytes(*new.head),
                metadata=StatePart.of_bytes(*new.metadata),
                values={name: StatePart.of_bytes(*typed) for name, typed in new.values.items()},
                **parent,
            ),
            holder=holder,
        )

    def put_writes(
        self,
        thread_id: str,
        namespace: str,
        checkpoint_id: str,
        writes: Sequence[Write],
        *,
        replaces: bool,
        holder: str | None = None,
    ) -> None:
        sent = [
            TaskWrite(
                task_id=each.task_id,
                task_path=each.task_path,
                number=each.number,
                channel=each.channel,
                value=StatePart.of_bytes(*each.typed),
            )
            for each in writes
        ]
        if sent:
            self._space.put_writes(
                thread_id, checkpoint_id, sent, namespace=namespace, replaces=replaces, holder=holder
            )

    def get(
        self, thread_id: str, namespace: str, checkpoint_id: str | None = None, holder: str | None = None
    ) -> Checkpoint | None:
        found = self._space.get(thread_id, namespace=namespace, checkpoint_id=checkpoint_id, holder=holder)
        return None if found is None else _checkpoint(found)

    def walk(
        self,
        thread_id: str | None,
        namespace: str | None,
        *,
        checkpoint_id: str | None = None,
        before: str | None = None,
        holder: str | None = None,
    ) -> Iterator[Checkpoint]:
        after: str | None = None
        while True:
            page = self._space.checkpoints(
                thread_id=thread_id,
                namespace=namespace,
                checkpoint_id=checkpoint_id,
                before=before,
                holder=holder,
                limit=PAGE,
                after=after,
            )
            yield from map(_checkpoint, page.items)
            after = page.more
            if after is None:
                return

    def forget(self, thread_id: str, keep: Collection[tuple[str, str]] = ()) -> list[Receipt]:
        kept = [CheckpointRef(namespace=namespace, checkpoint_id=id_) for namespace, id_ in sorted(keep)]
        return self._space.forget(thread_id, keep=kept)

    def copy(self, source_id: str, target_id: str) -> None:
        self._space.copy(source_id, target_id)

    def thread_ids(self) -> list[str]:
        return self._space.thread_ids()


def _checkpoint(told: CheckpointState) -> Checkpoint:
    return Checkpoint(
        told.thread_id,
        told.namespace,
        told.checkpoint_id,
        told.parent_id,
        told.head.read("$.head"),
        told.metadata.read("$.metadata"),
        {name: part.read("$.values") for name, part in told.values.items()},
        tuple(
            Write(each.task_id, each.task_path, each.number, each.channel, each.value.read("$.writes"))
            for each in told.writes
        ),
        told.seq,
    )
