"""Answers of the library that are not records: handles, builds, resolved pointers; and their wire forms.

A handle is sent as a reference to its owner. The receiver makes its own handle from it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from muniment.contracts.packet import MemoryPacket
from muniment.contracts.snapshot import CompactionSnapshot
from muniment.core.canonical import canonical_bytes
from muniment.core.policy import Policy
from muniment.core.scope import Scope, Span, bank_names
from muniment.handles.bank import Bank
from muniment.handles.run import Run
from muniment.handles.study import Study
from muniment.packets.builds import Build
from muniment.packets.pool import Pool
from muniment.rules._records import RefusedRule
from muniment.rules.selection import RuleSelection
from muniment.runs.records import RunLog
from muniment.runs.snapshots import Rejected, Resumed
from muniment.store.ledger import Resolved
from muniment.surfaces.operations.shapes import Components, Fields, Shape, register, shape_of
from muniment.surfaces.operations.signatures import fields_of

__all__ = ["BankRef", "BuildInputs", "ResumedRef", "RunRef", "SentBuild", "StudyRef"]


class RunRef(NamedTuple):
    """A run by its scope, and its handle's permissions."""

    scope: Scope
    task_type: str
    grants: tuple[str, ...]
    repair: bool


class StudyRef(NamedTuple):
    """A research run."""

    run: RunRef
    directory: str


class BankRef(NamedTuple):
    """A bank by its owner: a user, an agent or, without either, the tenant."""

    name: str
    user_id: str | None
    agent_id: str | None


class ResumedRef(NamedTuple):
    """A resumed run."""

    run: RunRef
    log: RunLog
    snapshot: CompactionSnapshot | None
    tail: int
    rejected: tuple[Rejected, ...]


class BuildInputs(NamedTuple):
    """The inputs of a build, apart from its request."""

    pool: Pool
    policy: Policy


class SentBuild(Build):
    """A build as received: its inputs are fetched on demand."""

    _fetch: Callable[[], BuildInputs]

    @property
    def pool(self) -> Pool:
        return self._fetch().pool

    @property
    def policy(self) -> Policy:
        return self._fetch().policy

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Build) and all(getattr(self, name) == getattr(other, name) for name in _SENT)

    def __hash__(self) -> int:
        return hash(self.id)


_SENT = ("id", "packet", "text", "tokens", "marks", "found", "request", "rules", "stable_chars")


def _sent_build(**parts: Any) -> SentBuild:
    build = object.__new__(SentBuild)
    for name, value in (parts | {"packet_bytes": canonical_bytes(parts["packet"].to_wire())}).items():
        object.__setattr__(build, name, value)
    return build


class Referred(Shape):
    """A handle, sent as the reference that `refer` makes of it."""

    def __init__(self, reference: type, refer: Callable[[Any], Any]) -> None:
        self._inner = shape_of(reference)
        self._refer = refer

    def encode(self, value: Any) -> Any:
        return self._inner.encode(self._refer(value))

    def decode(self, plain: Any) -> Any:
        return self._inner.decode(plain)

    def schema(self, components: Components) -> dict[str, Any]:
        return self._inner.schema(components)


def _run_ref(run: Run) -> RunRef:
    return RunRef(run.scope, run._task_type, tuple(sorted(run._grants)), run._repairs)


def _study_ref(study: Study) -> StudyRef:
    return StudyRef(_run_ref(study.run), str(study.directory))


def _bank_ref(bank: Bank) -> BankRef:
    holder = bank_names(bank._owner)
    return BankRef(bank.name, holder.get("user_id"), holder.get("agent_id"))


def _resumed_ref(resumed: Resumed[Run]) -> ResumedRef:
    return ResumedRef(_run_ref(resumed.run), resumed.log, resumed.snapshot, resumed.tail, resumed.rejected)


_BUILD_DOC = "A packet, the text it makes, and what was asked. What it was made from is at `…/inputs`."
_BUILD = {name: shape_of((fields_of(Build) | {"packet": MemoryPacket, "found": bool})[name]) for name in _SENT}
_RESOLVED = {"evidence_id": shape_of(str), "text": shape_of(str), "span": shape_of(Span)}


def _resolved(evidence_id: str, text: str, span: Span) -> Resolved:
    return Resolved(evidence_id, text.encode(), span)


_SELECTION = {name: shape_of(hint) for name, hint in fields_of(RuleSelection).items() if name != "chosen"} | {
    "refused": shape_of(tuple[RefusedRule, ...])
}


def _selection(refused: tuple[RefusedRule, ...], **parts: Any) -> RuleSelection:
    """A selection as received: of the rules it was chosen from, only the refused ones and their reasons are sent."""
    return RuleSelection(**parts, chosen=cast("Any", SimpleNamespace(refused=refused)))


register(RuleSelection, Fields("RuleSelection", _SELECTION, _selection, "The rules of a run, and why."))
register(Run, Referred(RunRef, _run_ref))
register(Study, Referred(StudyRef, _study_ref))
register(Bank, Referred(BankRef, _bank_ref))
register(Resumed, Referred(ResumedRef, _resumed_ref))
register(Build, Fields("Build", _BUILD, _sent_build, _BUILD_DOC))
register(Resolved, Fields("Resolved", _RESOLVED, _resolved, "What a pointer points to, and where it stands."))
