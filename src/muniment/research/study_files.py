"""A study's run directory kept in step with the store. `publish` is the one way in which files come to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muniment.core.canonical import digest, parse_json
from muniment.errors import ArtifactEdited, Conflict, InvalidJson
from muniment.research.study_store import AUDIT, GATES_FILE, MANIFEST, StudyView, files_of, rendered, wave_path

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from contextlib import ExitStack

    from muniment.research.outside.run_directory import RunDirectory
    from muniment.store.items import Item

__all__ = ["MADE_FOLDERS", "check_directory", "edited_files", "erase_files", "is_behind", "publish"]

MADE_FOLDERS = ("citations", "claims", "summaries")
"""Folders that hold nothing but what is made here."""


def publish(directory: RunDirectory, view: StudyView) -> list[str]:
    """Make the directory what the store says, manifest.json last; answers the paths that were written."""
    if not _is_ours(directory, view.manifest.run_id):
        raise Conflict(
            f"{directory.path} holds the files of another run",
            path="$.directory",
            hint="say which directory is this run's: open_research(run_id, directory=…)",
        )
    directory.sweep()
    told = rendered(view)
    written: list[str] = []
    for path, wanted in sorted(files_of(view).items()):
        if _digest(directory, path) != wanted:
            text = told[path] if path in told else view.text(path)
            directory.write(path, text.encode())
            written.append(path)
    for folder in MADE_FOLDERS:  # never the waves': an agent may have left an output there
        for path in directory.paths(folder):
            if path not in view.artifacts:
                directory.remove(path)
    if _digest(directory, MANIFEST) != digest(told[MANIFEST].encode()).hex():
        directory.write(MANIFEST, told[MANIFEST].encode())
        written.append(MANIFEST)
    return written


def edited_files(directory: RunDirectory, view: StudyView) -> list[str]:
    """Files that are not what the store says, in order; one that is missing counts."""
    wanted = files_of(view) | {MANIFEST: digest(rendered(view)[MANIFEST].encode()).hex()}
    return [path for path, expected in sorted(wanted.items()) if _digest(directory, path) != expected]


def is_behind(directory: RunDirectory, view: StudyView) -> int | None:
    """The revision of a manifest.json that is older than the store's; None where it is not, or cannot be read."""
    revision = _said_by(directory).get("revision")
    return revision if isinstance(revision, int) and revision < view.revision else None


def check_directory(directory: RunDirectory, view: StudyView, *, but: Collection[str] = ()) -> None:
    """Refuse to go on from files that somebody changed. After a crash they are first put right."""
    if directory.pending() is not None:
        publish(directory, view)
        directory.clear_pending()
        return
    edited = [path for path in edited_files(directory, view) if path not in but]
    if not edited:
        return
    behind = is_behind(directory, view)
    if behind is not None and MANIFEST in edited:
        message = f"manifest.json is of revision {behind}, the store is at {view.revision}"
    else:
        message = f"not what the store holds: {', '.join(edited[:5])}" + (" …" if len(edited) > 5 else "")
    raise ArtifactEdited(
        message,
        path="$.directory",
        hint="resume() (`muniment research resume`) writes the store's files; to change an output, ingest it again",
        details={"paths": edited, "revision": view.revision},
    )


def erase_files(versions: Sequence[Item], held: ExitStack) -> int:
    """Remove the files of a study that is being forgotten, wherever a revision of it put them; answers how many.

    The directories stay locked, in `held`, so that nobody writes them anew before the store has forgotten: who finds
    one locked is told (`StorageBusy`). Those of another machine are out of reach.
    """
    from muniment.research.outside.run_directory import RunDirectory

    bodies = [item.plain() for item in versions]
    paths = {GATES_FILE, AUDIT, MANIFEST}
    for manifest in (body["manifest"] for body in bodies):
        paths |= {artifact["path"] for artifact in manifest.get("artifacts", ())}
        paths |= {wave_path(wave, each) for wave in (1, 2) for each in manifest.get("standings", ())}
    removed = 0
    for place in sorted({body["directory"] for body in bodies}):
        directory = RunDirectory(place)
        if directory.path.is_dir():
            held.enter_context(directory.locked())
            if _is_ours(directory, bodies[0]["manifest"]["run_id"]):
                held.callback(directory.vanish)
                removed += directory.empty(sorted(paths))
    return removed


def _is_ours(directory: RunDirectory, run_id: str) -> bool:
    """Whether a folder is this run's: not where its manifest.json names another run."""
    return bool(_said_by(directory).get("run_id", run_id) == run_id)


def _said_by(directory: RunDirectory) -> dict[str, Any]:
    """What manifest.json says; nothing, where there is none or it cannot be read."""
    data = directory.read(MANIFEST)
    try:
        said = None if data is None else parse_json(data)
    except InvalidJson:
        return {}
    return said if isinstance(said, dict) else {}


def _digest(directory: RunDirectory, path: str) -> str | None:
    data = directory.read(path)
    return None if data is None else digest(data).hex()
