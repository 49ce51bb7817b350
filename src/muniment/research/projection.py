"""Projections of studies and source checks from `state_patch` entries. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muniment.core.canonical import short_id
from muniment.core.scope import owner_of
from muniment.errors import InvalidRecord
from muniment.runs.fold import change_of, erased
from muniment.store.derivation import Projections, of_patches
from muniment.store.items import Change, Item
from muniment.store.ledger import SOURCE_CHECKED, STUDY_CHANGED, LedgerEntry

__all__ = ["check_id", "project_source_check", "project_study", "projections", "study_id"]

Lookup = Callable[[str], Item | None]
_KEPT = ("manifest", "gates", "what", "directory")


def study_id(run_id: str) -> str:
    """The id of the item whose versions are the revisions of a run's study."""
    return short_id("stu", run_id)


def check_id(run_id: str, cid: str) -> str:
    return short_id("src", [run_id, cid])


def project_study(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project the next revision. One that does not follow the last is ignored, as imports are untrusted."""
    from muniment.research.records import GatesFile, ResearchManifest

    given = entry.metadata
    run_id = entry.scope.run_id
    id_ = study_id(run_id)
    if given.get("event") != STUDY_CHANGED or given.get("id") != id_:
        return []
    before = lookup(id_)
    try:
        manifest = ResearchManifest.from_wire(given.get("manifest"))
        GatesFile.from_wire(given.get("gates"))
    except InvalidRecord:
        return []
    if manifest.revision != (before.version if before else 0) + 1 or not _is_its(entry, before):
        return []
    named = given.get("sources")
    sources = [each for each in named if isinstance(each, str)] if isinstance(named, list) else []
    body: dict[str, Any] = {key: given[key] for key in _KEPT if key in given} | {
        "entry": entry.id,
        "at": entry.recorded_at,
    }
    return [change_of(entry, id_, "study", manifest.stage, body, (entry.id, *sources))]


def project_source_check(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project the check of an address; the newest counts. It is forgotten with its study."""
    from muniment.research.records import SourceCheck

    given = entry.metadata
    if given.get("event") != SOURCE_CHECKED:
        return []
    try:
        check = SourceCheck.from_wire(given.get("check"))
    except InvalidRecord:
        return []
    run_id = entry.scope.run_id
    id_ = check_id(run_id, check.cid)
    if given.get("id") != id_ or not _is_its(entry, lookup(id_)):
        return []
    return [change_of(entry, id_, "source_check", check.status, check.to_wire(), (entry.id, study_id(run_id)))]


def _is_its(entry: LedgerEntry, item: Item | None) -> bool:
    return item is None or (item.run_id, item.user_id) == (entry.scope.run_id, entry.scope.user_id)


def projections() -> Projections:
    """The item kinds that research adds to a store (entry point `muniment.projections`)."""
    from muniment.research.run_directory import erase_files

    return Projections(
        (
            of_patches("study", erased, project_study, STUDY_CHANGED, owners=_document_owners, erase_files=erase_files),
            of_patches("source_check", erased, project_source_check, SOURCE_CHECKED),
        )
    )


def _document_owners(study: Item) -> tuple[str, ...]:
    """The owner of the documents supplied for this study only."""
    return (owner_of(study.plain()["manifest"]["corpus_id"], study.user_id),)
