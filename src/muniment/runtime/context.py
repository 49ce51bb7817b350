"""What every use case is handed: the store, the policy, the time, fresh ids, the declared derivations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muniment.ports.engine import Engine
from muniment.ports.outside import Clock, Ids
from muniment.records.policy import Policy
from muniment.runtime.derivations import DERIVATIONS, Derivation, Project
from muniment.text.instants import format_instant

__all__ = ["Context"]


@dataclass(frozen=True, slots=True)
class Context:
    engine: Engine
    policy: Policy
    clock: Clock
    ids: Ids
    derivations: Mapping[str, Derivation] = field(default_factory=lambda: DERIVATIONS)

    listeners: Mapping[str, tuple[Project, ...]] = field(init=False)
    """Kind of entry → the projections that want to see it."""

    def __post_init__(self) -> None:
        heard: dict[str, tuple[Project, ...]] = {}
        for derivation in self.derivations.values():
            for kind in derivation.listens:
                if derivation.project is not None:
                    heard[kind] = (*heard.get(kind, ()), derivation.project)
        object.__setattr__(self, "listeners", heard)

    def now(self) -> str:
        return format_instant(self.clock())
