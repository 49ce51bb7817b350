"""An installation's changes: planned completely, shown, then made; and its removal.

Every file is read and edited in memory before the first is written, so that an unreadable one leaves all unchanged.
Installing again with the same arguments changes nothing; other arguments replace what was written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

from muniment.errors import InvalidInput
from muniment.surfaces.hosts.config_files import Notes, apply_edit, holds, read_config, stripped, write_config
from muniment.surfaces.hosts.hosts import HOSTS, Edit, Host, Setup

__all__ = ["Change", "find_host", "install", "list_installed", "plan_install", "plan_uninstall", "uninstall"]


class Change(NamedTuple):
    """The change of one file."""

    path: Path
    before: str | None
    """The current content; None if the file does not exist."""
    after: str | None
    original: str | None
    """The content before anything of ours."""
    backup: Path | None = None

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    def diff(self) -> list[str]:
        """The change as lines of `diff -u`."""
        old, new = (str(self.path) if text is not None else os.devnull for text in (self.before, self.after))
        there, then = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        return [line.rstrip("\r\n") for line in unified_diff(there, then, old, new)]

    def to_wire(self) -> dict[str, Any]:
        done = "created" if self.before is None else "removed" if self.after is None else "changed"
        told = {"path": str(self.path), "does": done if self.is_change else "nothing", "diff": self.diff()}
        return told if self.backup is None or not self.is_change else {**told, "backup": str(self.backup)}


def find_host(name: str, scope: str) -> Host:
    host = HOSTS.get(name)
    if host is None:
        raise InvalidInput(f"no host is named {name!r:.40}", path="$.host", hint=f"known are {', '.join(HOSTS)}")
    if scope not in host.scopes:
        raise InvalidInput(f"{host.title} has no configuration of a project", path="$.scope", hint="leave --scope out")
    return host


def _base(edit: Edit, text: str | None, notes: Notes) -> str | None:
    """The file's content without anything of ours."""
    if text is None:
        return None
    before = notes.before(edit.path)
    if notes.is_as_written(edit.path, text):
        return before
    return stripped(edit, text, before if notes.read(edit.path) is not None else text)


def plan_install(host: Host, setup: Setup, notes: Notes) -> list[Change]:
    """Plan an installation without writing anything."""
    changes = []
    for edit in host.edits(setup):
        text = read_config(edit.path)
        base = _base(edit, text, notes)
        backup = notes.backup(edit.path) if base is not None else None
        changes.append(Change(edit.path, text, apply_edit(edit, base), base, backup))
    return changes


def plan_uninstall(host: Host, setup: Setup, notes: Notes) -> list[Change]:
    """Plan the removal of an installation."""
    changes = []
    for edit in host.edits(setup):
        text = read_config(edit.path)
        if text is not None or notes.read(edit.path) is not None:
            base = _base(edit, text, notes)
            changes.append(Change(edit.path, text, base, base))
    return changes


def install(changes: Iterable[Change], notes: Notes, *, mode: int = 0o600) -> None:
    """Write the planned changes; `mode` is the mode of new files."""
    for change in changes:
        if not change.is_change or change.after is None:
            continue
        folders = _make_folders(Path(os.path.realpath(change.path)).parent)
        held = notes.read(change.path)
        kept = [str(each) for each in (held or {}).get("folders", ())] + folders
        write_config(change.path, change.before, change.after, mode)
        notes.write(change.path, change.original, change.after, kept)


def _make_folders(folder: Path) -> list[str]:
    """Make a folder and its parents; returns the new ones, the innermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return [str(each) for each in missing]


def uninstall(changes: Iterable[Change], notes: Notes) -> None:
    made: list[str] = []
    for change in changes:
        if change.is_change:
            write_config(change.path, change.before, change.after, 0o600)
        made += (notes.read(change.path) or {}).get("folders", ())
        notes.drop(change.path)
    for folder in sorted(set(made), key=len, reverse=True):
        with suppress(OSError):  # it is no longer empty
            Path(folder).rmdir()


def list_installed(setup: Setup) -> list[dict[str, Any]]:
    """Every host: whether it is installed, and our entries in its files, for the user and for this project."""
    return [{"host": host.name, "title": host.title, **_states(host, setup)} for host in HOSTS.values()]


def _states(host: Host, setup: Setup) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for scope in host.scopes:
        edits = host.edits(setup._replace(scope=scope))
        try:
            has = [holds(edit, read_config(edit.path)) for edit in edits]
        except InvalidInput as error:
            found[scope] = {"state": "unreadable", "message": error.message}
            continue
        state = "installed" if all(has) else "partly" if any(has) else "none"
        found[scope] = {"state": state, "files": [str(edit.path) for edit in edits]}
    return found
