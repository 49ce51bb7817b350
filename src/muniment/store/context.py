"""What every use case is handed: the store, the policy, the time, fresh ids, the declared derivations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from muniment.core.instants import format_instant
from muniment.core.policy.recall import RecallPolicy
from muniment.errors import MissingDependency
from muniment.memory.recall.indexing import SEGMENTS
from muniment.memory.recall.segments import Segment
from muniment.store.caches import IndexCache, LineCounts, RuleCache, TurnCache
from muniment.store.items.blocks import BlockCache

if TYPE_CHECKING:
    from muniment.core.policy.policy import Policy
    from muniment.core.ports.embedding import Embedder
    from muniment.core.ports.engine import Engine
    from muniment.core.ports.outside import Clock, Ids
    from muniment.core.ports.tokens import TokenCounter
    from muniment.handles.derivations import Derivation, Project
    from muniment.memory.recall.vectors import VectorBlock

__all__ = ["Context"]

_DEFAULT_RECALL = RecallPolicy.model_construct()


class Context:
    """Set once, when the store is opened. What not every process needs is fetched when it is first asked for."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy | None,
        clock: Clock,
        ids: Ids,
        *,
        embedder: Embedder | None = None,
        counter: TokenCounter | None = None,
        derivations: Mapping[str, Derivation] | None = None,
    ) -> None:
        self.engine = engine
        if policy is not None:
            self.policy = policy
        self.clock = clock
        self.ids = ids
        self.embedder = embedder
        """What turns text into vectors; None for search by words alone."""
        self.segments: BlockCache[Segment] = BlockCache(SEGMENTS)
        """Decoded parts of the index. They never change, so they can be kept."""
        self.indexes = IndexCache()
        self.turns = TurnCache()
        self.rules = RuleCache()
        if counter is not None:
            self.counter = counter
        if derivations is not None:
            self.derivations = derivations

    @cached_property
    def policy(self) -> Policy:
        """The default, where no other was given: a hundred classes, which a search has no need of."""
        from muniment.core.policy.policy import Policy

        return Policy.model_construct()

    @property
    def recall_policy(self) -> RecallPolicy:
        """`policy.recall`, without the rest of a policy that was not given."""
        given = self.__dict__.get("policy")
        return _DEFAULT_RECALL if given is None else given.recall

    @cached_property
    def vectors(self) -> BlockCache[VectorBlock]:
        """Decoded vectors, kept likewise."""
        from muniment.memory.recall.vectoring import VECTORS, WRITTEN_BYTES_MAX

        return BlockCache(VECTORS, written_max=WRITTEN_BYTES_MAX)

    @cached_property
    def counter(self) -> TokenCounter:
        """What counts tokens."""
        from muniment.core.outside.token_counters import load_token_counter

        return load_token_counter()

    @cached_property
    def line_counts(self) -> LineCounts:
        """The same counter, with a memory for lines."""
        return LineCounts(self.counter)

    @cached_property
    def derivations(self) -> Mapping[str, Derivation]:
        from muniment.handles.derivations import DERIVATIONS

        return DERIVATIONS

    @cached_property
    def listeners(self) -> Mapping[str, tuple[Project, ...]]:
        """Kind of entry → the projections that want to see it."""
        heard: dict[str, tuple[Project, ...]] = {}
        for derivation in self.derivations.values():
            for kind in derivation.listens:
                if derivation.project is not None:
                    heard[kind] = (*heard.get(kind, ()), derivation.project)
        return heard

    def counter_named(self, name: str) -> TokenCounter:
        """The counter a build was made with, to make it again."""
        from muniment.core.outside.token_counters import load_token_counter
        from muniment.core.text.tokens import ESTIMATE_NAME

        if self.counter.name == name:
            return self.counter
        other = load_token_counter(name if name == ESTIMATE_NAME else "auto")
        if other.name != name:
            raise MissingDependency(f"this build counted tokens with {name}", hint="pip install 'muniment[tokens]'")
        return other

    def now(self) -> str:
        return format_instant(self.clock())
