"""A study in the store: its revisions, their artifacts, and the intended files of the run directory.

A revision is a `state_patch` entry with the manifest and the gates at that time, written together with its new
artifacts (each a complete entry of its own). `commit` is the only writer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.research import Perspective, Perspectives
from muniment.core.canonical import canonical_text, digest
from muniment.core.ports.engine import Condition, Lock
from muniment.core.scope import owner_of
from muniment.errors import NotFound, StaleState
from muniment.memory.patches import draft_patch
from muniment.research.projection import check_id, study_id
from muniment.research.records import (
    GATES,
    Artifact,
    Citation,
    GateResult,
    GatesFile,
    ResearchManifest,
    SourceCheck,
    Stage,
    StageMove,
)
from muniment.store.append import append_in
from muniment.store.items import Item, latest, lock_memory, newest_of, select_items, stream_items
from muniment.store.ledger import ARTIFACT_KEPT, SOURCE_CHECKED, STUDY_CHANGED, EntryDraft
from muniment.store.reading import content_in

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope, Trust
    from muniment.memory.patches import Writer
    from muniment.store.context import Context

MANIFEST, GATES_FILE, AUDIT = "manifest.json", "gates.json", "audit.jsonl"
PERSPECTIVES, CITATIONS = "perspectives.json", "citations/citations.jsonl"


def wave_path(wave: int, perspective_id: str) -> str:
    return f"wave-{wave}/{perspective_id}.md"


class NewArtifact(NamedTuple):
    """An artifact added by a change: its path (None: kept as evidence, not as a file) and its text."""

    path: str | None
    text: str
    trust: Trust = "assistant"
    about: Mapping[str, Any] = {}
    id: str | None = None
    """Its event's id, if something refers to it already."""


@dataclass(frozen=True, slots=True)
class StudyChange:
    """A change of a study: the changed fields of the manifest and gates, and the artifacts to store."""

    what: str
    """A line of the audit."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the manifest that change, as records."""
    stage: Stage | None = None
    reason: str = ""
    gates: Sequence[GateResult] = ()
    artifacts: Sequence[NewArtifact] = ()
    removed: Sequence[str] = ()
    """Removed paths: files that must be regenerated."""
    sources: Sequence[str] = ()
    """Further evidence for it: chunks of pages."""


class StudyView:
    """A study at its latest revision."""

    def __init__(self, ctx: Context, scope: Scope, item: Item) -> None:
        body = item.plain()
        self.ctx, self.scope = ctx, scope
        self.manifest = ResearchManifest.from_wire(body["manifest"])
        self.gates = GatesFile.from_wire(body["gates"])
        self.directory: str = body["directory"]
        self.audit_line = _audit_line(body)

    @property
    def revision(self) -> int:
        return self.manifest.revision

    @cached_property
    def artifacts(self) -> dict[str, Artifact]:
        return {artifact.path: artifact for artifact in self.manifest.artifacts}

    def gate(self, name: str) -> GateResult:
        return next(gate for gate in self.gates.gates if gate.gate == name)

    def text(self, path: str) -> str:
        """Read an artifact from the store; not cached, as outputs may be large."""
        artifact = self.artifacts.get(path)
        if artifact is None:
            raise NotFound(f"the run {self.manifest.run_id} has no {path} yet", path="$.path")
        return self.event_text(artifact.evidence_id)

    def event_text(self, event_id: str) -> str:
        scope = self.scope
        return self.ctx.engine.read(
            scope.tenant_id, lambda reader: content_in(reader, scope.tenant_id, event_id, scope.user_id)
        )

    @cached_property
    def perspectives(self) -> tuple[Perspective, ...]:
        if PERSPECTIVES not in self.artifacts:
            return ()
        return Perspectives.from_wire(json.loads(self.text(PERSPECTIVES))).perspectives

    @cached_property
    def citations(self) -> tuple[Citation, ...]:
        from muniment.research.sources import read_citations

        return () if CITATIONS not in self.artifacts else tuple(read_citations(self.text(CITATIONS)))

    @cached_property
    def audit(self) -> str:
        """The contents of audit.jsonl."""
        return render_audit(self.ctx, self.scope, self.revision)

    @cached_property
    def rendered(self) -> dict[str, str]:
        """Path → text of the files generated from the revisions themselves."""
        return {
            MANIFEST: pretty(self.manifest.to_wire()),
            GATES_FILE: pretty(self.gates.to_wire()),
            AUDIT: self.audit,
        }

    @cached_property
    def files(self) -> dict[str, str]:
        """Path → SHA-256 of every file the directory should contain."""
        files = {path: artifact.digest for path, artifact in self.artifacts.items()}
        return files | {path: digest(text.encode()).hex() for path, text in self.rendered.items()}

    def next_view(self) -> StudyView:
        """The current study; its audit extends this one's, if only one revision was added."""
        after = load_view(self.ctx, self.scope)
        if after.revision == self.revision + 1 and "audit" in self.__dict__:
            after.audit = self.audit + after.audit_line
        return after


def find_view(ctx: Context, scope: Scope) -> StudyView | None:
    """The study of a run at its latest revision; None if it has none."""
    item = ctx.engine.read(scope.tenant_id, lambda reader: latest(reader, study_id(scope.run_id)))
    if item is None or item.user_id != scope.user_id:
        return None
    return StudyView(ctx, scope, item)


def load_view(ctx: Context, scope: Scope) -> StudyView:
    found = find_view(ctx, scope)
    if found is None:
        raise NotFound(f"no research run {scope.run_id!r:.80}", path="$.run_id", hint="start one with a question")
    return found


def no_gates(run_id: str) -> GatesFile:
    return GatesFile(run_id=run_id, revision=1, gates=tuple(GateResult(gate=gate, status="not_run") for gate in GATES))


# -- writing ------------------------------------------------------------------------------------------


def commit(
    writer: Writer, before: StudyView | None, first: ResearchManifest | None, step: StudyChange, directory: str
) -> None:
    """Write a change as the next revision; of two concurrent writers the second gets `StaleState`."""
    ctx, scope = writer.ctx, writer.scope
    held = before.manifest if before is not None else first
    assert held is not None
    revision = before.revision + 1 if before is not None else 1
    now = ctx.now()
    kept, drafts = _keep(ctx, scope.run_id, step.artifacts)
    manifest = _next_manifest(held, step, revision, now, kept)
    held_gates = before.gates if before is not None else no_gates(scope.run_id)
    gates = _next_gates(held_gates, step.gates, revision, manifest.artifacts)
    sources = [*(draft.id for draft in drafts if draft.id), *step.sources]
    body = {
        "id": study_id(scope.run_id),
        "what": step.what,
        "manifest": manifest.to_wire(),
        "gates": gates.to_wire(),
        "directory": directory,
        "sources": sources,
    }
    drafts.append(draft_patch(STUDY_CHANGED, "assistant", body))

    def work(tx: Transaction) -> None:
        tx.do(Lock(("session", scope.user_id, scope.session_id)))
        lock_memory(tx, scope.user_id, owner_of(manifest.corpus_id, scope.user_id))
        item = latest(tx, study_id(scope.run_id))
        if item is not None:
            item.plain()  # a forgotten one reports that
        check_revision(item.version if item is not None else 0, revision - 1)
        append_in(ctx, tx, scope, drafts, writer.opening, item.created_at if item else "", repairs=writer.repairs)

    ctx.write(scope.tenant_id, work)


def check_revision(current: int, expected: int) -> None:
    if current != expected:
        raise StaleState(
            f"the research run is at revision {current}, not {expected}: somebody else has moved it",
            path="$.expected_revision",
            hint="read its status, then decide again",
            details={"current_version": current, "expected_version": expected},
        )


def _keep(ctx: Context, run_id: str, new: Sequence[NewArtifact]) -> tuple[list[Artifact], list[EntryDraft]]:
    """Each artifact as an entry with an id of its own."""
    kept: list[Artifact] = []
    drafts: list[EntryDraft] = []
    for each in new:
        data = each.text.encode()
        hashed, id_ = digest(data).hex(), each.id or ctx.ids.new("evt")
        about = {"event": ARTIFACT_KEPT, "id": study_id(run_id), "digest": hashed, **each.about}
        if each.path is not None:
            about["path"] = each.path
            kept.append(Artifact(path=each.path, digest=hashed, bytes=len(data), evidence_id=id_))
        drafts.append(
            EntryDraft(kind="state_patch", role="system", content=each.text, id=id_, trust=each.trust, metadata=about)
        )
    return kept, drafts


def _next_manifest(
    held: ResearchManifest, step: StudyChange, revision: int, now: str, kept: Sequence[Artifact]
) -> ResearchManifest:
    artifacts = {each.path: each for each in held.artifacts if each.path not in step.removed}
    artifacts |= {each.path: each for each in kept}
    changes: dict[str, Any] = dict(step.manifest) | {
        "revision": revision,
        "updated_at": now,
        "artifacts": tuple(artifacts[path] for path in sorted(artifacts)),
    }
    if step.stage is not None:
        inputs = {path: each.digest for path, each in sorted(artifacts.items())}
        move = StageMove(stage=step.stage, at=now, revision=revision, reason=step.reason or step.what, inputs=inputs)
        changes |= {"stage": step.stage, "history": (*held.history, move)}
    return held.model_copy(update=changes)


_BASED_ON: Mapping[str, str] = {"A": PERSPECTIVES, "B": "wave-", "C": "citations/", "D": "summaries/"}
"""Gate → prefix of the paths it examines."""


def with_inputs(gate: GateResult, artifacts: Iterable[Artifact]) -> GateResult:
    """The gate with the digests of its inputs."""
    prefix = _BASED_ON.get(gate.gate)
    if prefix is None or gate.status == "not_run":
        return gate
    inputs = {each.path: each.digest for each in artifacts if each.path.startswith(prefix)}
    return gate.model_copy(update={"inputs": inputs})


def _next_gates(
    held: GatesFile, changed: Sequence[GateResult], revision: int, artifacts: Sequence[Artifact]
) -> GatesFile:
    by_name = {gate.gate: gate for gate in (*held.gates, *(with_inputs(gate, artifacts) for gate in changed))}
    return held.model_copy(update={"revision": revision, "gates": tuple(by_name[name] for name in GATES)})


# -- looks at sources ---------------------------------------------------------------------------------


def keep_checks(writer: Writer, checks: Sequence[SourceCheck]) -> None:
    """Store results of looking up addresses. This changes no revision: `citations` reads them when it assesses the
    sources.
    """
    ctx, scope = writer.ctx, writer.scope
    drafts = [
        draft_patch(SOURCE_CHECKED, "tool", {"id": check_id(scope.run_id, check.cid), "check": check.to_wire()})
        for check in checks
    ]

    def work(tx: Transaction) -> None:
        tx.do(Lock(("session", scope.user_id, scope.session_id)))
        lock_memory(tx, scope.user_id)
        append_in(ctx, tx, scope, drafts, writer.opening, "", repairs=writer.repairs)

    if drafts:
        ctx.write(scope.tenant_id, work)


def checks_of(ctx: Context, scope: Scope) -> dict[str, SourceCheck]:
    """The newest look-up of each address."""
    where: tuple[Condition, ...] = (("kind", "=", "source_check"), ("run_id", "=", scope.run_id))

    def work(reader: Reader) -> dict[str, SourceCheck]:
        looked = [item for item in newest_of(stream_items(reader, where)) if item.user_id == scope.user_id]
        checks = [SourceCheck.from_wire(item.plain()) for item in looked]
        return {check.cid: check for check in checks}

    return ctx.engine.read(scope.tenant_id, work)


# -- the files of a study -----------------------------------------------------------------------------


def pretty(value: Any) -> str:
    """Readable JSON, with the same bytes for the same value."""
    return json.dumps(json.loads(canonical_text(value)), ensure_ascii=False, indent=2) + "\n"


def _audit_line(body: Mapping[str, Any]) -> str:
    line = {
        "revision": body["manifest"]["revision"],
        "at": body["at"],
        "what": body["what"],
        "stage": body["manifest"]["stage"],
        "evidence_id": body["entry"],
    }
    return canonical_text(line) + "\n"


def render_audit(ctx: Context, scope: Scope, revision: int) -> str:
    """A line for each revision up to this one, read from all of them."""
    where: tuple[Condition, ...] = (("id", "=", study_id(scope.run_id)),)
    items = ctx.engine.read(scope.tenant_id, lambda reader: select_items(reader, where))
    bodies = (item.plain() for item in items)
    return "".join(_audit_line(body) for body in bodies if body["manifest"]["revision"] <= revision)
