"""What every use case is handed: the store, the policy, the time, fresh ids, the declared derivations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muniment.adapters.token_counters import load_token_counter
from muniment.errors import MissingDependency
from muniment.ports.embedding import Embedder
from muniment.ports.engine import Engine
from muniment.ports.outside import Clock, Ids
from muniment.ports.tokens import TokenCounter
from muniment.recall.segments import Segment
from muniment.recall.vectors import VectorBlock
from muniment.records.policy import Policy
from muniment.runtime.blocks import BlockCache
from muniment.runtime.caches import IndexCache
from muniment.runtime.derivations import DERIVATIONS, Derivation, Project
from muniment.runtime.indexing import SEGMENTS
from muniment.runtime.vectoring import VECTORS
from muniment.text.instants import format_instant
from muniment.text.tokens import ESTIMATE_NAME

__all__ = ["Context"]


@dataclass(frozen=True, slots=True)
class Context:
    engine: Engine
    policy: Policy
    clock: Clock
    ids: Ids
    derivations: Mapping[str, Derivation] = field(default_factory=lambda: DERIVATIONS)

    segments: BlockCache[Segment] = field(default_factory=lambda: BlockCache(SEGMENTS), repr=False)
    """Decoded parts of the index. They never change, so they can be kept."""

    indexes: IndexCache = field(default_factory=IndexCache, repr=False)

    embedder: Embedder | None = None
    """What turns text into vectors; None for search by words alone."""
    vectors: BlockCache[VectorBlock] = field(default_factory=lambda: BlockCache(VECTORS), repr=False)

    counter: TokenCounter = field(default_factory=load_token_counter, repr=False)
    """What counts tokens."""

    listeners: Mapping[str, tuple[Project, ...]] = field(init=False)
    """Kind of entry → the projections that want to see it."""

    def __post_init__(self) -> None:
        heard: dict[str, tuple[Project, ...]] = {}
        for derivation in self.derivations.values():
            for kind in derivation.listens:
                if derivation.project is not None:
                    heard[kind] = (*heard.get(kind, ()), derivation.project)
        object.__setattr__(self, "listeners", heard)

    def counter_named(self, name: str) -> TokenCounter:
        """The counter a build was made with, to make it again."""
        if self.counter.name == name:
            return self.counter
        other = load_token_counter(name if name == ESTIMATE_NAME else "auto")
        if other.name != name:
            raise MissingDependency(f"this build counted tokens with {name}", hint="pip install 'muniment[tokens]'")
        return other

    def now(self) -> str:
        return format_instant(self.clock())
