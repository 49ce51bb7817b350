"""The context every use case receives: store, policy, clock, ids, derivations and caches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from muniment.core.instants import format_instant
from muniment.core.limits import REMEMBERED, TABLES, cancellable
from muniment.core.policy import RecallPolicy
from muniment.errors import StorageFailure, StoreDamaged
from muniment.store.watermark import Tails

if TYPE_CHECKING:
    from datetime import tzinfo

    from muniment.core.outside.system import Spans
    from muniment.core.policy import Policy
    from muniment.core.ports.engine import Engine, Transaction
    from muniment.core.ports.models import Clock, Embedder, Ids, TokenCounter
    from muniment.core.ports.schema import UserRow
    from muniment.core.scope import Scope
    from muniment.store.derivation import Derivation, Derived, Project
    from muniment.store.ledger import LedgerEntry

__all__ = ["Cache", "Context", "Embedding", "Listeners", "Noticing"]

_DEFAULT_RECALL = RecallPolicy.model_construct()


class Cache(Protocol):
    """Something held in memory between calls, and never the only copy. Thread-safe."""

    def clear(self, tenant_id: str | None = None) -> None:
        """Drop what is cached for a tenant, or everything."""
        ...


class Noticing(Protocol):
    """A background reader, notified of sessions with new turns, that works in its own thread."""

    def notice(self, scope: Scope, model: Any) -> None:
        """Turns of this session are written and await this model."""
        ...

    @property
    def report(self) -> Any:
        """Report what was done so far."""
        ...

    def stop(self) -> None:
        """End as soon as the store allows."""
        ...


CacheT = TypeVar("CacheT", bound=Cache)
R = TypeVar("R")
FOLLOWED_MAX = 4_096
"""Entries of a tail that an append, or closing the store, indexes before it returns. A load may leave more."""


class Embedding(Protocol):
    """A background embedder, notified of users who wait for vectors, that works in its own thread."""

    def notice(self, tenant_id: str, user_id: str) -> None:
        """Entries of this user have no vectors yet."""
        ...

    def stop(self) -> None:
        """End as soon as the store allows."""
        ...


class Listeners:
    """The projections that listen for an entry, in the order in which they are declared."""

    def __init__(self, kinds: Mapping[str, Derivation]) -> None:
        self._kinds = kinds
        self._events = frozenset[str]().union(*(each.events or () for each in kinds.values()))
        self._heard: dict[tuple[str, str | None], tuple[Project, ...]] = {}

    def of(self, entry: LedgerEntry) -> tuple[Project, ...]:
        return self.named(entry.kind, entry.metadata.get("event"))

    def named(self, kind: str, event: object) -> tuple[Project, ...]:
        """Return those that listen for an entry of this kind whose metadata names this event, or none."""
        key = (kind, event if isinstance(event, str) and event in self._events else None)
        if key not in self._heard:
            self._heard[key] = tuple(
                each.project
                for each in self._kinds.values()
                if each.project is not None and kind in each.listens and (each.events is None or key[1] in each.events)
            )
        return self._heard[key]


class Context:
    """The parts of an open store, set once. Parts that not every process needs are loaded on first use."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy | None,
        clock: Clock,
        ids: Ids,
        *,
        derived: Callable[[], Derived],
        embedder: Embedder | None = None,
        counter: TokenCounter | None = None,
        grader: Any = None,
        extract_model: Any = None,
        lessons: Any = None,
        proof_key: bytes | None = None,
        spans: Spans | None = None,
        address: str = "",
        timezone: tzinfo | None = None,
    ) -> None:
        self.engine = engine
        self.address = address
        """The server address that the store was opened with, if any."""
        if policy is not None:
            self.policy = policy
        self.clock = clock
        self.timezone = timezone
        """The time zone of people whose times have no known offset; None for UTC."""
        self.ids = ids
        self.embedder = embedder
        """Turns text into vectors; None for search by words alone."""
        self.grader = grader
        """The grader of a verification whose caller gives none."""
        self.extract_model = extract_model
        """The model that reads pending turns where the caller gives none."""
        self.embedding: Embedding | None = None
        """Makes vectors in the background of writing calls, if enabled."""
        self.background: Noticing | None = None
        """Reads turns in the background of the calls that write them, if enabled."""
        self.lessons = lessons
        """Writes lessons of judged runs where the caller names nothing else."""
        self.proof_key = proof_key
        """The key for proofs of builds and receipts; None where proofs are not keyed."""
        self.spans = spans
        """OpenTelemetry spans for memory operations; None if tracing is off."""
        if counter is not None:
            self.counter = counter
        self._load_derived = derived
        self.tails = Tails()
        """The users whose entries were appended here and await indexing."""
        self._caches: dict[type[Cache], Cache] = {}
        self._lock = threading.Lock()

    @property
    def may_have_hooks(self) -> bool:
        """Return whether hooks of coding agents, which run in their own processes, may write to this store."""
        return self.engine.is_shared_between_processes

    @cached_property
    def policy(self) -> Policy:
        """Return the policy, loading the default if none was given: its hundred classes are not needed for a search."""
        from muniment.core.policy import Policy

        return Policy.model_construct()

    @property
    def indexes_turns(self) -> bool:
        """Return whether turns are indexed, without loading the rest of a default policy."""
        given = self.__dict__.get("policy")
        return True if given is None else bool(given.ledger.index_turns)

    @property
    def recall_policy(self) -> RecallPolicy:
        """Return `policy.recall` without loading the rest of a default policy."""
        given = self.__dict__.get("policy")
        return _DEFAULT_RECALL if given is None else given.recall

    @cached_property
    def counter(self) -> TokenCounter:
        """Return the token counter."""
        from muniment.core.outside.token_counters import load_token_counter

        return load_token_counter()

    @cached_property
    def derived(self) -> Derived:
        """Return the derivations of the rooms."""
        return self._load_derived()

    @cached_property
    def _listeners(self) -> Listeners:
        return Listeners(self.derivations)

    def listeners(self, entry: LedgerEntry) -> tuple[Project, ...]:
        """Return the projections that listen for an entry, in the order in which they are declared."""
        return self._listeners.of(entry)

    def hears(self, kind: str, event: object) -> bool:
        """Return whether a projection listens for an entry of this kind whose metadata names this event."""
        return bool(self._listeners.named(kind, event))

    @property
    def derivations(self) -> Mapping[str, Derivation]:
        return self.derived.kinds

    def cache(self, kind: type[CacheT], make: Callable[[], CacheT] | None = None) -> CacheT:
        """Return the one cache of this kind, made on first use. The room that owns it defines its content."""
        found = self._caches.get(kind)
        if found is None:
            with self._lock:
                found = self._caches.get(kind)
                if found is None:
                    found = self._caches[kind] = kind() if make is None else make()
        return cast("CacheT", found)

    def write(self, tenant_id: str, work: Callable[[Transaction], R]) -> R:
        """Append to the ledger in one transaction, then index the users whose unindexed tails grew too long."""
        answer = self.engine.write(tenant_id, work)
        for owner in self.tails.take_due():
            self._index(*owner)
        return answer

    def index_tails(self, entries_max: int | None = None) -> None:
        """Index what this process has appended, for every user; at most `entries_max` entries of each."""
        for owner in self.tails.take_all():
            self._index(*owner, entries_max)

    def close(self) -> None:
        """Stop background work, index what was appended here, then release the store."""
        for each in (self.background, self.embedding):
            if each is not None:
                each.stop()
        self.index_tails(FOLLOWED_MAX)
        self.engine.close()

    def _index(self, tenant_id: str, user_id: str, entries_max: int | None = FOLLOWED_MAX) -> None:
        """Index the words of a part of a user's tail. The entries are already acknowledged, and searches read them from
        the ledger: a storage failure here surfaces in the next call.
        """
        with suppress(StorageFailure, StoreDamaged), cancellable(None):
            self.derived.index.follow(self, tenant_id, user_id, entries_max=entries_max, embeds=False)

    def note_tails(self, tenant_id: str, *users: UserRow) -> None:
        """Remember whose entries were appended: they await word indexing and vectors."""
        self.tails.note(tenant_id, *users)
        self.note_vectors(tenant_id, *users)

    def note_vectors(self, tenant_id: str, *users: UserRow) -> None:
        """Have the vectors of these users made in the background, if enabled."""
        if self.embedding is not None:
            for user in users:
                if 0 < user.tail - user.embedded <= FOLLOWED_MAX:
                    self.embedding.notice(tenant_id, user.user_id)

    def clear_caches(self, tenant_id: str | None = None) -> None:
        """After a forget in a tenant, or in any: drop everything cached in memory, including what the process remembers
        of texts.
        """
        for held in self._caches.copy().values():
            held.clear(tenant_id)
        for table in TABLES.values():
            table.clear()
        for clear in tuple(REMEMBERED):
            clear()

    def counter_named(self, name: str) -> TokenCounter:
        """Return the counter a build was made with, to reproduce it."""
        from muniment.core.outside.system import not_installed
        from muniment.core.outside.token_counters import load_token_counter
        from muniment.core.text.tokens import ESTIMATE_NAME

        if self.counter.name == name:
            return self.counter
        other = load_token_counter(name if name == ESTIMATE_NAME else "auto")
        if other.name != name:
            raise not_installed(f"this build counted tokens with {name}", "tokens")
        return other

    def now(self) -> str:
        return format_instant(self.clock())
