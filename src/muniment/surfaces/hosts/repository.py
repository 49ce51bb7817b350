"""The repository a directory belongs to, and the tenant of its memory.

Nothing crosses a tenant, so each repository is one: what a session records there is never shown in another. A checkout
is identified by a random mark in its git directory, so that nobody can guess it and a renamed directory keeps it.
Worktrees share the git directory and so the memory; a submodule has its own. A copy of the whole directory is
distinguished from a renamed one by checking whether the mark is still at its original place, and gets a new mark.

A `.git` that points elsewhere is trusted only if that git directory names this checkout too: else a folder from an
archive could pass for a worktree of another repository and be given its memory.

Git is never run: its files are read, and nothing in them is executed. Only the standard library is imported, since
every hook runs this.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from muniment.errors import InvalidInput

__all__ = ["KINDS", "Repository", "find_repository", "scoped_tenant"]

KINDS = ("none", "checkout", "remote")
"""The extent of one memory: everything (`none`), a checkout with its worktrees, or all checkouts of one remote."""

_MARK = "muniment-repository.json"
_MARK_BYTES_MAX = 4096
_GIT_FILE_BYTES_MAX = 1 << 20
_ID = re.compile(r"[a-z0-9-]{1,40}-[0-9a-f]{16}")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


class Repository(NamedTuple):
    """A directory's repository, or the directory itself if it is in none."""

    root: Path
    """The checkout's own directory."""
    git_dir: Path | None
    """The git directory, common to all worktrees; None outside of a repository."""
    branch: str
    """The current branch; empty if there is none."""


def find_repository(directory: str | os.PathLike[str]) -> Repository:
    """Find the repository of a directory: the nearest one above it."""
    start = Path(os.path.realpath(directory))
    for place in (start, *start.parents):
        own = _git_dir(place)
        if own is not None:
            return Repository(place, _common(own), _branch(own))
    return Repository(start, None, "")


def scoped_tenant(
    base: str, directory: str | os.PathLike[str], *, kind: str = "checkout", branches: str = "any"
) -> str:
    """The tenant of a directory's repository below a base tenant.

    `branches` groups the branches by memory: `any` shares one, `same` gives each its own, and a list with commas
    (`main,release/*`) shares one among those, and gives every other branch its own.
    """
    if kind not in KINDS:
        raise InvalidInput(f"repository is one of {', '.join(KINDS)}, not {kind!r:.40}", path="$.repository")
    if kind == "none":
        return base
    found = find_repository(directory)
    tenant = f"{base}.{_name_of(found, kind)}"
    shared = branches == "any" or (branches != "same" and _is_listed(found.branch, branches.split(",")))
    return tenant if shared or found.git_dir is None else f"{tenant}.{_slug(found.branch)}-{_digest(found.branch)}"


def _is_listed(branch: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(branch, pattern.strip()) for pattern in patterns)


def _name_of(found: Repository, kind: str) -> str:
    if found.git_dir is None:
        return f"{_slug(found.root.name)}-{_digest(str(found.root))}"
    remote = _remote(found.git_dir) if kind == "remote" else ""
    if remote:
        return f"{_slug(remote.rpartition('/')[2])}-{_digest(remote)}"
    return _marked(found.git_dir, found.git_dir.parent.name if found.git_dir.name == ".git" else found.root.name)


def _slug(name: str) -> str:
    return _NOT_IN_NAMES.sub("-", name.lower()).strip("-")[:40].strip("-") or "project"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


# -- git's files --------------------------------------------------------------------------------------


def _read(path: Path, bytes_max: int = _GIT_FILE_BYTES_MAX) -> str:
    """Read a small file's text; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(bytes_max).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _git_dir(place: Path) -> Path | None:
    """The git directory of a checkout that begins here: `.git` itself, or the one it points to that points back."""
    dot = place / ".git"
    if dot.is_dir():
        own = Path(os.path.realpath(dot))
        is_own = own == dot or _leads_to(own, place)
        return own if is_own and (own / "HEAD").is_file() else None
    pointed = _read(dot) if dot.is_file() and not dot.is_symlink() else ""
    if not pointed.startswith("gitdir:"):
        return None
    target = Path(os.path.realpath(place / pointed.removeprefix("gitdir:").strip()))
    return target if target.is_dir() and _leads_to(target, place) else None


def _leads_to(own: Path, place: Path) -> bool:
    """True if a git directory names this checkout as its own: as one of its worktrees, or as its `core.worktree`."""
    named = _read(own / "gitdir").strip()
    if named:  # written by `git worktree add`: the path of the worktree's `.git` file
        back = own / named
        return back.name == ".git" and Path(os.path.realpath(back.parent)) == place
    worktree = _setting(own, "config.worktree", "core", "worktree") or _setting(own, "config", "core", "worktree")
    return bool(worktree) and Path(os.path.realpath(own / worktree)) == place


def _common(own: Path) -> Path:
    """The directory shared by all worktrees: the one that holds this worktree's own, if that names it."""
    named = _read(own / "commondir").strip()
    holder = own.parent.parent
    is_worktree = bool(named) and own.parent.name == "worktrees" and Path(os.path.realpath(own / named)) == holder
    return holder if is_worktree else own


def _branch(own: Path) -> str:
    head = _read(own / "HEAD").strip()
    return head.removeprefix("ref:").strip().removeprefix("refs/heads/") if head.startswith("ref:") else ""


def _remote(git_dir: Path) -> str:
    """The address of the remote `origin`, normalized across protocols; empty if there is none."""
    url = _setting(git_dir, "config", 'remote"origin"', "url")
    return _plain_address(url, git_dir.parent) if url else ""


def _setting(git_dir: Path, file: str, section: str, name: str) -> str:
    """Read a setting of a git configuration file, the last one if repeated; empty if missing."""
    inside, found = False, ""
    for line in _read(git_dir / file).splitlines():
        text = line.strip()
        if text.startswith("["):
            inside = text.replace(" ", "").lower() == f"[{section}]"
        elif inside and text.partition("=")[0].strip().lower() == name:
            found = text.partition("=")[2].strip().strip('"')
    return found


def _plain_address(url: str, root: Path) -> str:
    scheme, found, rest = url.partition("://")
    if not found:
        host, colon, path = url.partition(":")
        if not colon or "/" in host:  # a path on this machine
            return os.path.realpath(root / url)
        rest = f"{host}/{path}"
    elif scheme == "file":
        return os.path.realpath(rest)
    host, _, path = rest.rpartition("@")[2].partition("/") if "@" in rest.partition("/")[0] else rest.partition("/")
    return f"{host.partition(':')[0].lower()}/{path.strip('/').removesuffix('.git')}"


# -- the mark -----------------------------------------------------------------------------------------


def _marked(git_dir: Path, name: str) -> str:
    """The id in a git directory's mark, which is created if missing, or if this is a copy of another.

    A directory that cannot be written is identified by its path.
    """
    held = _held(git_dir)
    if held is not None:
        made_at, known = Path(held["path"]), str(held["id"])
        if made_at == git_dir:
            return known
        there = _held(made_at)
        if there is None or there["id"] != known:  # it was renamed
            _write_mark(git_dir, known, replaces=True)
            return known
    fresh = f"{_slug(name)}-{os.urandom(8).hex()}"
    if _write_mark(git_dir, fresh, replaces=held is not None):
        return fresh
    held = _held(git_dir)  # another process was faster
    return f"{_slug(name)}-{_digest(str(git_dir))}" if held is None else str(held["id"])


def _held(git_dir: Path) -> dict[str, str] | None:
    try:
        said = json.loads(_read(git_dir / _MARK, _MARK_BYTES_MAX))
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or not isinstance(said.get("path"), str) or not isinstance(said.get("id"), str):
        return None
    return said if _ID.fullmatch(said["id"]) else None


def _write_mark(git_dir: Path, known: str, *, replaces: bool) -> bool:
    """Write the mark atomically, over another only if asked to; returns whether it was written."""
    beside = git_dir / f"{_MARK}.{os.getpid()}"
    try:
        beside.write_text(json.dumps({"id": known, "path": str(git_dir)}) + "\n", "utf-8")
        try:
            if replaces:
                beside.replace(git_dir / _MARK)
            else:
                os.link(beside, git_dir / _MARK)
        finally:
            beside.unlink(missing_ok=True)
    except OSError:
        return False
    return True
