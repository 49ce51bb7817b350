"""A LangGraph checkpointer over a muniment store: each checkpoint and each task's writes are a ledger entry.

Entries altered in the file are refused on reading and reported by `mem.verify()`. `delete_thread` and `prune` forget
with a receipt, and `mem.forget(user_id=…)` forgets the threads of a user. Only changes of a state are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from muniment.core.outside.system import SystemIds
from muniment.core.scope import DEFAULT_TENANT
from muniment.integrations.langgraph.far_threads import threads_of
from muniment.integrations.packages import missing
from muniment.memory.kept.search import found_at
from muniment.memory.kept.threads import Checkpoint as KeptCheckpoint
from muniment.memory.kept.threads import NewCheckpoint, Write

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_id,
        get_checkpoint_metadata,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
except ModuleNotFoundError as error:
    raise missing("langgraph", "langgraph", error) from error

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.store.ledger import Receipt

__all__ = ["MunimentSaver"]


_IDS = SystemIds()


class MunimentSaver(BaseCheckpointSaver[str]):
    """LangGraph's checkpoints in a muniment store, with and without `await`.

    With `user_id` the saver only has that user's threads. Without it, a thread belongs to the `user_id` in
    `configurable` when it begins: it is forgotten with `mem.forget(user_id=…)`, and is hidden from any other user that
    `configurable` names. `name` separates savers in one file. States are stored unchanged, without redaction. `mem` is
    opened here or connected to; a connection whose key is for one user has that user's threads.
    """

    def __init__(
        self,
        mem: Memory,
        *,
        name: str = "langgraph",
        user_id: str | None = None,
        tenant_id: str = DEFAULT_TENANT,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._threads = threads_of(mem, tenant_id, name, user_id)

    # -- what LangGraph calls -------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The requested checkpoint, or the last of its thread, with the writes after it."""
        thread_id, namespace, holder = _named(config)
        found = self._threads.get(thread_id, namespace, get_checkpoint_id(config) or None, holder)
        return None if found is None else self._tuple(found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first, of one thread or all, whose metadata match the filter."""
        given = {} if config is None else config.get("configurable", {})
        thread_id = given.get("thread_id")
        found = self._threads.walk(
            None if thread_id is None else str(thread_id),
            given.get("checkpoint_ns"),
            checkpoint_id=given.get("checkpoint_id"),
            before=None if before is None else get_checkpoint_id(before),
            holder=_holder(given),
        )
        tuples = (self._tuple(each) for each in found)
        fitting = (each for each in tuples if _fits(each.metadata, filter))
        return islice(fitting, limit)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint. Only channels that changed are written, whatever their versions."""
        del new_versions
        thread_id, namespace, holder = _named(config)
        head = {key: value for key, value in checkpoint.items() if key != "channel_values"}
        values = checkpoint.get("channel_values") or {}
        new = NewCheckpoint(
            thread_id=thread_id,
            namespace=namespace,
            checkpoint_id=checkpoint["id"],
            parent_id=get_checkpoint_id(config),
            head=self.serde.dumps_typed(head),
            metadata=self.serde.dumps_typed(get_checkpoint_metadata(config, metadata)),
            values={name: self.serde.dumps_typed(value) for name, value in values.items()},
        )
        self._threads.put(new, holder)
        return _config(thread_id, namespace, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store a task's writes after a checkpoint; repeating it changes nothing."""
        thread_id, namespace, holder = _named(config)
        self._threads.put_writes(
            thread_id,
            namespace,
            str(config["configurable"]["checkpoint_id"]),
            [
                Write(task_id, task_path, WRITES_IDX_MAP.get(channel, number), channel, self.serde.dumps_typed(value))
                for number, (channel, value) in enumerate(writes)
            ],
            replaces=all(channel in WRITES_IDX_MAP for channel, _ in writes),
            holder=holder,
        )

    def delete_thread(self, thread_id: str) -> None:
        """Forget a thread; see `forget_thread`, which returns the receipts."""
        self.forget_thread(thread_id)

    def forget_thread(self, thread_id: str) -> Sequence[Receipt]:
        """Erase a thread with all its checkpoints, so that no byte of it is left; return the receipts."""
        return self._threads.forget(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Forget the checkpoints of these runs, in any thread."""
        gone = {str(run_id) for run_id in run_ids}
        for thread_id in self._threads.thread_ids():
            held = [*self._threads.walk(thread_id, None)]
            kept = [each for each in held if str(self._metadata(each).get("run_id")) not in gone]
            if len(kept) < len(held):
                self._threads.forget(thread_id, {(each.namespace, each.checkpoint_id) for each in kept})

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints of a thread to another."""
        self._threads.copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Forget all checkpoints of these threads except the last of each namespace, or all (`strategy="delete"`).

        For a channel stored as writes since a snapshot, the checkpoints back to the snapshot stay.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"Unknown strategy: {strategy!r}")
        for thread_id in map(str, thread_ids):
            held = [*self._threads.walk(thread_id, None)]
            kept = self._latest(held) if strategy == "keep_latest" else []
            if len(kept) < len(held):
                self._threads.forget(thread_id, {(each.namespace, each.checkpoint_id) for each in kept})

    # -- the same with await --------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    # -- small things ---------------------------------------------------------------------------------

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Next version of a channel: rising texts of one length, different for two branches of one checkpoint."""
        del channel
        if current is None:
            number = 0
        elif isinstance(current, str):
            number = int(current.split(".")[0])
        else:
            number = int(current)
        return f"{number + 1:032}.{_IDS.salts(1)[0].hex()[:16]:>016}"

    def _latest(self, held: Sequence[KeptCheckpoint]) -> Sequence[KeptCheckpoint]:
        """The last of each namespace, and the ones its delta channels depend on."""
        by_id = {(each.namespace, each.checkpoint_id): each for each in held}
        kept: dict[tuple[str, str], KeptCheckpoint] = {}
        for each in held:  # newest first
            if not any(namespace == each.namespace for namespace, _ in kept):
                at: KeptCheckpoint | None = each
                open_channels = set(self._metadata(each).get("counters_since_delta_snapshot") or ())
                open_channels -= set(each.values)
                while at is not None:
                    kept[at.namespace, at.checkpoint_id] = at
                    if not open_channels:
                        break
                    at = by_id.get((at.namespace, at.parent_id or ""))
                    open_channels -= set(() if at is None else at.values)
        return tuple(kept.values())

    def _metadata(self, kept: KeptCheckpoint) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.serde.loads_typed(kept.metadata))

    def _tuple(self, kept: KeptCheckpoint) -> CheckpointTuple:
        head: dict[str, Any] = self.serde.loads_typed(kept.head)
        head["channel_values"] = {name: self.serde.loads_typed(typed) for name, typed in kept.values.items()}
        parent = None if not kept.parent_id else _config(kept.thread_id, kept.namespace, kept.parent_id)
        return CheckpointTuple(
            config=_config(kept.thread_id, kept.namespace, kept.checkpoint_id),
            checkpoint=cast("Checkpoint", head),
            metadata=cast("CheckpointMetadata", self._metadata(kept)),
            parent_config=parent,
            pending_writes=[(each.task_id, each.channel, self.serde.loads_typed(each.typed)) for each in kept.writes],
        )


def _named(config: RunnableConfig) -> tuple[str, str, str | None]:
    given = config["configurable"]
    return str(given["thread_id"]), str(given.get("checkpoint_ns") or ""), _holder(given)


def _holder(given: Mapping[str, Any]) -> str | None:
    holder = given.get("user_id")
    return None if holder is None else str(holder)


def _config(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    named = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return {"configurable": named}


def _fits(metadata: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(found_at(metadata, key) == value for key, value in (wanted or {}).items())
