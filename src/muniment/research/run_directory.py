"""The files of a research run, kept in sync with the store: the only module that touches them (RP-07).

Files are replaced atomically: written under another name, synced and renamed, with the folder synced too. Paths are
resolved step by step from an open folder without following symbolic links, so nothing outside the directory is read or
written, whatever it contains. Only `publish` creates files of a study.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from muniment.core.canonical import digest, parse_json
from muniment.core.outside.posix import fcntl
from muniment.errors import (
    ArtifactEdited,
    Conflict,
    InvalidInput,
    InvalidJson,
    MunimentError,
    StorageBusy,
    StorageFailure,
    StorageFull,
    StorageReadOnly,
)
from muniment.research.store import AUDIT, GATES_FILE, MANIFEST, StudyView, wave_path

if TYPE_CHECKING:
    from muniment.store.items import Item

MADE_FOLDERS = ("citations", "claims", "summaries")
"""Folders that contain only files generated here."""

_LOCK = ".lock"
_PENDING = ".pending"
_PATH = re.compile(r"(?:([a-z0-9_-][a-z0-9._-]{0,99})/)?([a-z0-9_-][a-z0-9._-]{0,199})")
_RUN_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_TEMPORARY = re.compile(r"\.[a-z0-9._-]+\.[0-9]+-[0-9]+\.tmp")
_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS_MAX = 10
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


def default_root(environ: Mapping[str, str] = os.environ) -> Path:
    """The directory of all runs: `$XDG_CONFIG_HOME/opencode/research-runs`, else under `~/.config`.

    Following the XDG specification, an empty or relative value is ignored.
    """
    given = environ.get("XDG_CONFIG_HOME", "")
    try:
        config = Path(given) if os.path.isabs(given) else Path.home() / ".config"
    except RuntimeError:
        raise StorageFailure(
            "this user has no home folder to keep runs in", hint="set XDG_CONFIG_HOME, or say which directory to use"
        ) from None
    return config / "opencode" / "research-runs"


class RunDirectory:
    """One run's directory. Created, accessible to its owner only, at the first write or lock."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))

    @classmethod
    def of(cls, run_id: str, root: str | os.PathLike[str] | None = None) -> Self:
        """The directory of a run under `root`, or under `default_root()`; the id must be valid as a folder name."""
        if not _RUN_ID.fullmatch(run_id):
            raise InvalidInput(
                "the run's id cannot name a folder",
                path="$.run_id",
                hint="letters, digits, '-', '_' and '.' will do, with no '.' in front; or say which directory to use",
            )
        return cls((default_root() if root is None else Path(root)) / run_id)

    # -- one at a time ------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory. A second thread or process gets `StorageBusy` at once."""
        with self._translated_errors(_LOCK):
            held = self._hold()
        with held:
            yield

    def _hold(self) -> ExitStack:
        for _ in range(_ATTEMPTS_MAX):  # repeat if the run was erased between two of these calls
            with suppress(FileNotFoundError), self._made() as folder, ExitStack() as held:
                handle = os.open(_LOCK, os.O_RDWR | os.O_CREAT | _OPEN, _FILE_MODE, dir_fd=folder)
                held.callback(os.close, handle)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    break
                if os.path.samestat(os.fstat(handle), os.stat(_LOCK, dir_fd=folder, follow_symlinks=False)):
                    return held.pop_all()
        raise StorageBusy(
            f"another process or thread is moving the run in {self.path}",
            hint="wait until it is through, and call again",
            details={"location": str(self.path)},
        )

    # -- files --------------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes | None:
        """The file's bytes; None if there is no regular file of that name, or only behind a link."""
        folder_name, name = _segments(path)
        return self._read(folder_name, name)

    def write(self, path: str, data: bytes) -> None:
        """Write the file durably and atomically, replacing any previous one."""
        folder_name, name = _segments(path)
        self._write(folder_name, name, data)

    def remove(self, path: str) -> None:
        """Remove the file, if it exists."""
        folder_name, name = _segments(path)
        self._remove(folder_name, name)

    def paths(self, folder_name: str) -> list[str]:
        """The files of a folder that `read` and `remove` accept, in order."""
        _segments(f"{folder_name}/any")
        with self._translated_errors(folder_name), self._opened_folder(folder_name) as folder:
            if folder is None:
                return []
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        return [path for name in names if _PATH.fullmatch(path := f"{folder_name}/{name}")]

    def _read(self, folder_name: str | None, name: str) -> bytes | None:
        with self._translated_errors(name, folder_name), self._opened_folder(folder_name) as folder:
            if folder is None:
                return None
            try:
                with _opened(name, folder, os.O_NONBLOCK) as handle, open(handle, "rb", closefd=False) as file:
                    return file.read() if stat.S_ISREG(os.fstat(handle).st_mode) else None
            except OSError as error:
                if error.errno in _ABSENT | {errno.EISDIR, errno.ENXIO}:
                    return None
                raise

    def _write(self, folder_name: str | None, name: str, data: bytes) -> None:
        temporary = f".{name.lstrip('.')}.{os.getpid()}-{threading.get_native_id()}.tmp"
        with self._translated_errors(name, folder_name), self._made(folder_name) as folder:
            _unlink(temporary, folder)
            try:
                handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, _FILE_MODE, dir_fd=folder)
                with open(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(handle)
                os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                with suppress(OSError):
                    _unlink(temporary, folder)
                raise
            _sync(folder)

    def _remove(self, folder_name: str | None, name: str) -> bool:
        with self._translated_errors(name, folder_name), self._opened_folder(folder_name) as folder:
            if folder is None or not _unlink(name, folder):
                return False
            _sync(folder)
            return True

    # -- pending revisions --------------------------------------------------------------------------------

    def mark_pending(self, revision: int) -> None:
        """Mark the files as being updated to this revision."""
        self._write(None, _PENDING, b"%d\n" % revision)

    def pending(self) -> int | None:
        """The revision of an interrupted update; 0 if the mark cannot be read, None without one."""
        mark = self._read(None, _PENDING)
        return None if mark is None else int(mark) if mark.strip().isdigit() and len(mark) < 20 else 0

    def clear_pending(self) -> None:
        self._remove(None, _PENDING)

    def sweep(self) -> None:
        """Remove temporary files left by a crash. The caller must hold the lock: they may be another writer's."""
        with self._translated_errors():
            for folder_name in (None, *self._folders()):
                with self._opened_folder(folder_name) as folder:
                    for name in os.listdir(folder) if folder is not None else ():
                        if folder is not None and _TEMPORARY.fullmatch(name):
                            _unlink(name, folder)

    def _folders(self) -> list[str]:
        with self._opened_folder() as root:
            if root is None:
                return []
            with os.scandir(root) as entries:
                return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]

    # -- forgetting ---------------------------------------------------------------------------------------

    def empty(self, paths: Iterable[str]) -> int:
        """Remove these files and our own marks, then their folders if empty; the lock stays."""
        places = [_segments(path) for path in paths]
        removed = sum(self._remove(folder_name, name) for folder_name, name in places)
        self.sweep()
        self.clear_pending()
        with self._translated_errors(), self._opened_folder() as root:
            if root is not None:
                for folder_name in {folder_name for folder_name, _ in places if folder_name is not None}:
                    _rmdir(folder_name, root)
                _sync(root)
        return removed

    def vanish(self) -> None:
        """Remove the directory with the lock, if nothing else is in it. The caller must hold the lock."""
        with self._translated_errors(), self._opened_folder() as root:
            if root is not None:
                if set(os.listdir(root)) <= {_LOCK}:
                    _unlink(_LOCK, root)
                    _rmdir(str(self.path))
                _sync(root)

    # -- folders ------------------------------------------------------------------------------------------

    @contextmanager
    def _opened_folder(self, name: str | None = None) -> Iterator[int | None]:
        """Open the directory or a folder in it; None if it does not exist or is a link."""
        with ExitStack() as opened:
            try:
                folder = opened.enter_context(_opened(str(self.path)))
                if name is not None:
                    folder = opened.enter_context(_opened(name, folder))
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                yield None
                return
            yield folder

    @contextmanager
    def _made(self, name: str | None = None) -> Iterator[int]:
        """Open the directory or a folder in it, creating it if necessary."""
        for parent in reversed((self.path, *self.path.parents)):
            if not parent.is_dir():
                _mkdir(str(parent))
        with _opened(str(self.path)) as root:
            if name is None:
                yield root
                return
            _mkdir(name, root)
            with _opened(name, root) as folder:
                yield folder

    @contextmanager
    def _translated_errors(self, name: str = "", folder_name: str | None = None) -> Iterator[None]:
        """Translate the system's errors into those of `errors`."""
        try:
            yield
        except OSError as error:
            raise _translate(error, str(self.path / (folder_name or "") / name)) from error


def _segments(path: str) -> tuple[str | None, str]:
    """Folder and name. Names starting with a dot are reserved."""
    found = _PATH.fullmatch(path)
    if found is None:
        raise InvalidInput(
            f"{path!r:.200} cannot name a file of a run",
            hint="small letters, digits, '-', '_' and '.', in one folder at most, with no '.' in front",
        )
    return found[1], found[2]


@contextmanager
def _opened(name: str, folder: int | None = None, flags: int = os.O_DIRECTORY) -> Iterator[int]:
    handle = os.open(name, os.O_RDONLY | flags | _OPEN, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)


def _mkdir(name: str, folder: int | None = None) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, _FOLDER_MODE, dir_fd=folder)
        if folder is not None:
            _sync(folder)


def _rmdir(name: str, folder: int | None = None) -> None:
    """Remove it if empty."""
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as error:
        if error.errno not in _ABSENT | {errno.ENOTEMPTY, errno.EEXIST}:
            raise


def _unlink(name: str, folder: int) -> bool:
    """Remove a file; returns whether it existed."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def _sync(folder: int) -> None:
    """Sync the folder so that names are durable; some file systems do not support this."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def _translate(error: OSError, location: str) -> MunimentError:
    details = {"location": location, "system": f"{errno.errorcode.get(error.errno or 0, '')} {error.strerror}".strip()}
    if error.errno in _FULL:
        return StorageFull(f"no space left for {location}", details=details)
    if error.errno in _READ_ONLY:
        return StorageReadOnly(
            f"{location} cannot be read or written",
            hint="check the permissions of the file and its folder, and whether the disk is mounted read-only",
            details=details,
        )
    if error.errno in _ABSENT:
        return StorageFailure(
            f"{location} leads over a link or a file where a folder should be",
            hint="nothing is written through links: put a real folder there, or take it away",
            details=details,
        )
    return StorageFailure(f"{location} cannot be read or written: {error.strerror}", details=details)


# -- syncing with the store -----------------------------------------------------------------------------


def publish(directory: RunDirectory, view: StudyView) -> list[str]:
    """Write the files held in the store, manifest.json last; returns the paths written."""
    if not _is_ours(directory, view.manifest.run_id):
        raise Conflict(
            f"{directory.path} holds the files of another run",
            path="$.directory",
            hint="say which directory is this run's: open_research(run_id, directory=…)",
        )
    directory.sweep()
    written = [path for path in edited_files(directory, view) if path != MANIFEST]
    for path in written:
        text = view.rendered[path] if path in view.rendered else view.text(path)
        directory.write(path, text.encode())
    for folder in MADE_FOLDERS:  # not in the waves' folders: an agent may have left an output there
        for path in directory.paths(folder):
            if path not in view.artifacts:
                directory.remove(path)
    if _digest(directory, MANIFEST) != view.files[MANIFEST]:
        directory.write(MANIFEST, view.rendered[MANIFEST].encode())
        written.append(MANIFEST)
    return written


def edited_files(directory: RunDirectory, view: StudyView) -> list[str]:
    """Files that differ from the store, in order, including missing ones."""
    return [path for path, expected in sorted(view.files.items()) if _digest(directory, path) != expected]


def check_directory(directory: RunDirectory, view: StudyView, *, but: Collection[str] = ()) -> None:
    """Refuse to continue with edited files. After a crash they are first restored."""
    if directory.pending() is not None:
        publish(directory, view)
        directory.clear_pending()
        return
    edited = [path for path in edited_files(directory, view) if path not in but]
    if not edited:
        return
    behind = _manifest_of(directory).get("revision")
    if isinstance(behind, int) and behind < view.revision and MANIFEST in edited:
        message = f"manifest.json is of revision {behind}, the store is at {view.revision}"
    else:
        message = f"not what the store holds: {', '.join(edited[:5])}" + (" …" if len(edited) > 5 else "")
    raise ArtifactEdited(
        message,
        path="$.directory",
        hint="resume() (`muniment research status RUN --write`) writes the store's files; to change an output, "
        "ingest it again",
        details={"paths": edited, "revision": view.revision},
    )


def erase_files(versions: Sequence[Item], held: ExitStack) -> int:
    """Remove the files of a study that is being forgotten, wherever a revision put them; returns how many.

    The directories stay locked, in `held`, so that nobody writes to them before the store has forgotten the study
    (others get `StorageBusy`). Directories on other machines are out of reach.
    """
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
    """Return false if its manifest.json names another run."""
    return bool(_manifest_of(directory).get("run_id", run_id) == run_id)


def _manifest_of(directory: RunDirectory) -> dict[str, Any]:
    """The manifest.json of the directory; empty if there is none or it cannot be read."""
    data = directory.read(MANIFEST)
    try:
        plain = None if data is None else parse_json(data)
    except InvalidJson:
        return {}
    return plain if isinstance(plain, dict) else {}


def _digest(directory: RunDirectory, path: str) -> str | None:
    data = directory.read(path)
    return None if data is None else digest(data).hex()
